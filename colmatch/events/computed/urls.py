"""Addresses of the web, with the results of Spark, which Java's classes URI and URLDecoder give."""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from urllib.parse import quote_plus

from colmatch.events.computed.failed import Unfit

_ESCAPED = "%[0-9A-Fa-f]{2}"
_OTHER = r"[^\x00-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
_MARKS = r"A-Za-z0-9\-_.!~*'()"
_URIC = rf"(?:[{_MARKS};/?:@&=+$,\[\]]|{_ESCAPED}|{_OTHER})*"
_PATH = rf"(?:[{_MARKS}:@&=+$,;/]|{_ESCAPED}|{_OTHER})*"
_URL = re.compile(
    rf"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+\-.]*):(?!\Z|\#)|(?![^/?#]*:))"
    rf"(?:(?P<opaque>(?<=:)(?!/){_URIC})|"
    rf"(?://(?P<authority>[^/?#]+)|//(?=[/?#])|(?!//))(?P<path>{_PATH})(?:\?(?P<query>{_URIC}))?)"
    rf"(?:\#(?P<fragment>{_URIC}))?"
)
_USER = rf"(?:(?P<user>(?:[{_MARKS};:&=+$,]|{_ESCAPED}|{_OTHER})*)@)?"
_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_NUMBER = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|0*[0-9]{1,2})"
_HOST = rf"(?P<host>{_NUMBER}(?:\.{_NUMBER}){{3}}|(?:{_LABEL}\.)*[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.?)"
_SERVER = re.compile(rf"{_USER}{_HOST}(?::[0-9]*)?")
_SIX = re.compile(rf"{_USER}(?P<host>\[(?P<six>[0-9A-Fa-f:.]+)\])(?::[0-9]*)?")
_REGISTRY = re.compile(rf"(?:[{_MARKS}$,;:@&=+]|{_ESCAPED}|{_OTHER})+")
_RUN = re.compile(r"(?:%(?:[0-9A-Fa-f]{2}|\+[0-9A-Fa-f]))+")
_PARTS = ("HOST", "PATH", "QUERY", "REF", "PROTOCOL", "FILE", "AUTHORITY", "USERINFO")


def url_encode(text: str) -> str:
    return quote_plus(text, safe="*").replace("~", "%7E")


def url_decode(text: str) -> str:
    """Returns a text with the characters of its escapes. Other signs of per cent are an error."""
    plain = text.replace("+", " ") if "%" not in text else None
    if plain is not None:
        return plain
    parts, at = list[str](), 0
    for run in _RUN.finditer(text):
        parts.append(text[at : run.start()].replace("+", " "))
        parts.append(bytes([int(byte, 16) for byte in run[0].split("%")[1:]]).decode(errors="replace"))
        at = run.end()
    parts.append(text[at:].replace("+", " "))
    if "%" in "".join(parts[::2]):
        raise Unfit("the text has a sign of per cent without two hexadecimal digits")
    return "".join(parts)


def _version_6(authority: str) -> re.Match[str] | None:
    """Returns a match for the server with an address of version 6, None without one."""
    match = _SIX.fullmatch(authority)
    try:
        IPv6Address(match["six"] if match else "")
    except ValueError:
        return None
    return match


def parse_url(url: str, part: str, key: str | None = None) -> str | None:
    """Returns a part of a URL, or of its query; None if there is none. No URL is an error."""
    if part not in _PARTS or (key is not None and (part != "QUERY" or not re.fullmatch(r"\w+", key, re.ASCII))):
        raise ValueError(f"parse_url takes one of {', '.join(_PARTS)}, and behind QUERY a key of letters and digits")
    match = _URL.fullmatch(url)
    if match is None:
        raise Unfit(f"{url!r:.80} is no URL")
    authority, path, query = match["authority"], match["path"], match["query"]
    server = _SERVER.fullmatch(authority or "") or _version_6(authority or "")
    if authority is not None and server is None and not _REGISTRY.fullmatch(authority):
        raise Unfit(f"{url!r:.80} is no URL")
    if part == "QUERY" and key is not None:
        found = re.search(rf"(?:&|^){key}=([^&]*)", query or "")
        return found[1] if found else None
    parts = {
        "PATH": path, "QUERY": query, "REF": match["fragment"], "PROTOCOL": match["scheme"], "AUTHORITY": authority,
        "FILE": path if query is None else f"{path}?{query}",
    }  # fmt: skip
    return parts[part] if part in parts else server["host" if part == "HOST" else "user"] if server else None
