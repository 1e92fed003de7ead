"""Functions of one text, with the results of Spark. Batches call them once a distinct text.

Each takes a text and constants. It raises ValueError for constants that it cannot use, whatever the
text, and ``Unfit`` for a text that is an error. Some take bytes, numbers or other values.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from colmatch.events.computed.digits import bin_of, char_of, format_number, hex_of, spaces
from colmatch.events.computed.failed import Unfit
from colmatch.events.computed.json_values import get_json_object, json_array_length, json_value
from colmatch.events.computed.octets import OCTETS, octets
from colmatch.events.computed.urls import parse_url, url_decode, url_encode
from colmatch.events.computed.variant_bytes import parse_json
from colmatch.events.computed.variants import variant_at
from colmatch.events.computed.words import WORDS
from colmatch.text.versions import version_key

_HASHES = {0: hashlib.sha256, 224: hashlib.sha224, 256: hashlib.sha256, 384: hashlib.sha384, 512: hashlib.sha512}
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
PADDED_MOST = 4096  # characters: a constant could ask for gigabytes


def _split_part(text: str, separator: str, number: int) -> str:
    """Returns a part, counted from 1, or from the end if negative; '' if there is none."""
    if number == 0:
        raise ValueError("parts count from 1, or from -1 at the end")
    parts = text.split(separator) if separator else [text]
    place = number - 1 if number > 0 else number + len(parts)
    return parts[place] if 0 <= place < len(parts) else ""


def _substring_index(text: str, separator: str, count: int) -> str:
    """Returns what is before the ``count``-th separator, or behind it, counted from the end."""
    if not separator or not count:
        return ""
    at = -1 if count > 0 else len(text)
    for _ in range(abs(count)):
        at = text.find(separator, at + 1) if count > 0 else _find_before(text, separator, at)
        if at < 0:
            return text
    return text[:at] if count > 0 else text[at + len(separator) :]


def _find_before(text: str, separator: str, at: int) -> int:
    """Returns the last place before ``at`` where a separator begins, which may overlap."""
    while at > 0:
        at -= 1
        if text.startswith(separator, at):
            return at
    return -1


def _translate(text: str, old: str, new: str) -> str:
    table: dict[int, str | None] = {}
    for i, character in enumerate(old):
        table.setdefault(ord(character), new[i] if i < len(new) else None)
    return text.translate(table)


def _padding(text: str, size: int, pad: str) -> str:
    if size > PADDED_MOST:
        raise ValueError(f"texts are padded to {PADDED_MOST:,} characters at most")
    missing = size - len(text)
    return (pad * (missing // len(pad) + 1))[:missing] if missing > 0 and pad else ""


def _lpad(text: str, size: int, pad: str = " ") -> str:
    return _padding(text, size, pad) + text[: max(size, 0)]


def _rpad(text: str, size: int, pad: str = " ") -> str:
    return text[: max(size, 0)] + _padding(text, size, pad)


def _initcap(text: str) -> str:
    """Returns a text with capitals at its beginning and after spaces, and else small letters."""
    words = zip(text.split(" "), text.lower().split(" "), strict=True)
    # In small letters, a dotted capital I is two characters
    return " ".join(["İ" + low[2:] if word[:1] == "İ" else low[:1].title() + low[1:] for word, low in words])


def _ascii(text: str) -> int:
    return ord(text[0]) if text else 0


def _sha2(text: str | bytes, bits: int) -> str | None:
    """Returns a hash of so many bits; 0 is 256, and other sizes make it NULL."""
    function = _HASHES.get(bits)
    return None if function is None else function(octets(text)).hexdigest()


def _base64(text: str | bytes) -> str:
    """Returns Base64 in lines of 76 characters."""
    letters = base64.b64encode(octets(text)).decode()
    return "\r\n".join([letters[i : i + 76] for i in range(0, len(letters), 76)])


def _conv_checked(text: str, have: int, to: int) -> str | None:
    return _conv(text, have, to, True)


def _conv(text: str, have: int, to: int, is_checked: bool = False) -> str | None:
    """Returns a number of base ``have`` in base ``to``, up to what is no digit.

    It has 64 bits, with a sign if ``to`` is negative. The greatest stands for larger numbers, which
    are unfit if it is checked.
    """
    if not 2 <= have <= 36 or not 2 <= abs(to) <= 36 or not text.strip(" "):
        return None
    digits = text.strip(" ")
    is_negative, number, most = digits[0] == "-", 0, (1 << 64) - 1
    for character in digits[is_negative:].lower():
        digit = _DIGITS.find(character)
        if not 0 <= digit < have:
            break
        number = number * have + digit
        if number > most and is_checked:
            raise Unfit(f"{text!r:.80} has more than 64 bits")
        number = min(number, most)
    if is_negative and to > 0:
        number = most if number >> 63 else -number & most
    elif to < 0 and number >> 63:
        is_negative, number = True, -number & most
    written = ""
    while number or not written:
        number, digit = divmod(number, abs(to))
        written = _DIGITS[digit].upper() + written
    return f"-{written}" if is_negative and to < 0 else written


def _levenshtein(text: str, other: str, most: int | None = None) -> int:
    """Returns how many characters to insert, delete or replace, -1 for more than ``most``."""
    row = list(range(len(other) + 1))
    for i, character in enumerate(text, 1):
        before, row[0] = row[0], i
        for j, another in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (character != another))
    return row[-1] if most is None or row[-1] <= most else -1


def _find_in_set(text: str, texts: str) -> int:
    """Returns the place of a text in a list with commas, counted from 1; 0 if it is not there."""
    parts = texts.split(",")
    return parts.index(text) + 1 if text in parts else 0


def _elt_none(place: int) -> str:
    raise Unfit(f"there is no text at the place {place}")


STRING, INT, BIGINT = pa.string(), pa.int32(), pa.int64()
BINARY, BOOL, DOUBLE = pa.binary(), pa.bool_(), pa.float64()
_TYPES = {
    **dict.fromkeys(("encode", "unhex", "unbase64", "to_binary", "hmac", "from_base32"), BINARY), "bitmap_count": BIGINT,
    **dict.fromkeys(("is_valid_utf8", "luhn_check"), BOOL), "instr_from": INT, "jaro_winkler_similarity": DOUBLE,
}  # fmt: skip  # of results that are no texts
TEXTS: dict[str, tuple[Callable[..., Any], pa.DataType]] = {
    "split_part": (_split_part, STRING),
    "substring_index": (_substring_index, STRING),
    "translate": (_translate, STRING),
    "lpad": (_lpad, STRING),
    "rpad": (_rpad, STRING),
    "initcap": (_initcap, STRING),
    "ascii": (_ascii, INT),
    "octet_length": (lambda text: len(octets(text)), INT),
    "bit_length": (lambda text: 8 * len(octets(text)), INT),
    "crc32": (lambda text: zlib.crc32(octets(text)), BIGINT),
    "md5": (lambda text: hashlib.md5(octets(text), usedforsecurity=False).hexdigest(), STRING),
    "sha1": (lambda text: hashlib.sha1(octets(text), usedforsecurity=False).hexdigest(), STRING),
    "sha2": (_sha2, STRING),
    "base64": (_base64, STRING),
    "hex": (lambda text: octets(text).hex().upper(), STRING),
    "levenshtein": (_levenshtein, INT),
    "find_in_set": (_find_in_set, INT),
    "conv": (_conv, STRING),
    "get_json_object": (get_json_object, STRING),
    "json_value": (json_value, STRING),
    "parse_json": (parse_json, BINARY),
    "variant_at": (variant_at, BINARY),
    "semver": (version_key, STRING),
    **{name: (function, _TYPES.get(name, STRING)) for name, function in (OCTETS | WORDS).items()},
    "url_encode": (url_encode, STRING),
    "url_decode": (url_decode, STRING),
    "parse_url": (parse_url, STRING),
    "bin": (bin_of, STRING),
    "hex_of": (hex_of, STRING),
    "char": (char_of, STRING),
    "space": (spaces, STRING),
    "format_number": (format_number, STRING),
    "elt_none": (_elt_none, STRING),
    "json_array_length": (json_array_length, INT),
    "conv_checked": (_conv_checked, STRING),
}
ONLY_ANSI = frozenset({"parse_url", "elt_none"})  # functions whose errors are NULL without ANSI
TRIED = {  # functions that are NULL where another one fails
    **{name: name for name in ONLY_ANSI},
    **{f"try_{name}": name for name in ("url_decode", "parse_url", "to_binary", "validate_utf8", "parse_json")},
}
