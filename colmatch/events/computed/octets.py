"""Functions of bytes, and of texts as bytes in a character set, with the results of Spark.

Batches call them once a distinct value. They raise ValueError for constants that they cannot use,
and ``Unfit`` for values that are an error.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from typing import Any

from colmatch.events.computed.failed import Unfit

_CHARSETS = {
    "us-ascii": "ascii", "iso-8859-1": "latin-1", "utf-8": "utf-8", "utf-16be": "utf-16-be", "utf-16le": "utf-16-le",
    "utf-16": "utf-16-be", "utf-32": "utf-32-be",
}  # fmt: skip
_MARKS = {"utf-16": ("utf-16-be", "utf-16-le"), "utf-32": ("utf-32-be", "utf-32-le")}  # of the order of bytes
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_SEXTETS = {ord(letter): number for number, letter in enumerate(_ALPHABET)}
_PAD = ord("=")
_NO_BASE32 = re.compile("[^A-Za-z2-7]+")
_DIGESTS = {
    "SHA-1": "sha1", "SHA-224": "sha224", "SHA-256": "sha256", "SHA-384": "sha384", "SHA-512": "sha512", "MD5": "md5",
}  # fmt: skip


def octets(value: str | bytes) -> bytes:
    """Returns bytes, which a text has in UTF-8."""
    return value.encode() if isinstance(value, str) else value


def _charset(name: str) -> str:
    found = _CHARSETS.get(name.lower())
    if found is None:
        raise ValueError(f"{name!r:.40} is none of the character sets {', '.join(map(str.upper, _CHARSETS))}")
    return found


def encode(text: str, charset: str) -> bytes:
    """Returns the bytes of a text. A character that a set lacks is an error."""
    codec = _charset(charset)
    try:
        return (b"\xfe\xff" if charset.lower() == "utf-16" and text else b"") + text.encode(codec)
    except UnicodeEncodeError:
        raise Unfit(f"the text has a character that {charset.upper()} lacks") from None


def decode(value: str | bytes, charset: str) -> str:
    """Returns the text of bytes. Bytes that are no text are an error."""
    data, codec = octets(value), _charset(charset)
    for other in _MARKS.get(charset.lower(), ()):
        mark = "\ufeff".encode(other)
        if data.startswith(mark):
            data, codec = data[len(mark) :], other
            break
    try:
        return data.decode(codec)
    except UnicodeDecodeError:
        raise Unfit(f"the bytes are no text in {charset.upper()}") from None


def unhex(text: str) -> bytes | None:
    """Returns the bytes of hexadecimal digits; None for other characters."""
    digits = "0" * (len(text) % 2) + text
    return (
        bytes.fromhex(digits)
        if digits.isascii() and digits.isalnum() and _is_hex(digits)
        else b""
        if not text
        else None
    )


def _is_hex(digits: str) -> bool:
    return not set(digits) - set("0123456789abcdefABCDEF")


def unbase64(text: str) -> bytes:
    """Returns the bytes of Base64, as Java reads it: other characters are passed over."""
    data, at, found = text.encode(), 0, bytearray()
    sextets: list[int] = []
    while at < len(data):
        byte = data[at]
        at += 1
        if byte == _PAD:
            if not sextets or (len(sextets) == 2 and data[at : at + 1] != b"="):
                raise Unfit("the text is no Base64")
            at += len(sextets) == 2
            break
        if byte in _SEXTETS:
            sextets.append(_SEXTETS[byte])
            if len(sextets) == 4:
                found += _join(sextets)
                sextets = []
    if len(sextets) == 1 or any(byte in _SEXTETS for byte in data[at:]):
        raise Unfit("the text is no Base64")
    if sextets:
        found += _join(sextets + [0] * (4 - len(sextets)))[: len(sextets) - 1]
    return bytes(found)


def _join(sextets: list[int]) -> bytes:
    return sum(sextet << 6 * (3 - i) for i, sextet in enumerate(sextets)).to_bytes(3, "big")


def to_binary(text: str, form: str = "hex") -> bytes:
    """Returns the bytes of a text in hexadecimal digits, Base64 or UTF-8."""
    form = form.lower()
    if form in ("utf-8", "utf8"):
        return text.encode()
    if form == "base64":
        if not _is_base64(text):
            raise Unfit("the text is no Base64")
        return unbase64(text)
    if form != "hex":
        raise Unfit("to_binary takes the forms 'hex', 'base64' and 'utf-8'")
    found = unhex(text)
    if found is None:
        raise Unfit("the text is no number in hexadecimal digits")
    return found


def _is_base64(text: str) -> bool:
    """Returns whether a text is Base64 with its padding, or without all of it."""
    letters = "".join(text.split())
    body = letters.rstrip("=")
    pads = len(letters) - len(body)
    if not body.isascii() or any(ord(letter) not in _SEXTETS for letter in body):
        return False
    if not pads:
        return len(body) % 4 != 1
    return pads <= 2 and len(letters) % 4 == 0 and text.endswith("=")  # no space behind it


def is_valid(value: str | bytes) -> bool:
    try:
        octets(value).decode()
    except UnicodeDecodeError:
        return False
    return True


def make_valid(value: str | bytes) -> str:
    """Returns a text with U+FFFD for bytes that are none."""
    return octets(value).decode(errors="replace")


def validate(value: str | bytes) -> str:
    """Returns the text of bytes. Other bytes are an error."""
    try:
        return octets(value).decode()
    except UnicodeDecodeError:
        raise Unfit("the bytes are no text in UTF-8") from None


def sign(message: str | bytes, key: str, algorithm: str = "SHA-256") -> bytes:
    """Returns the HMAC of a message."""
    digest = _DIGESTS.get(algorithm.upper())
    if digest is None or not key:
        raise ValueError(f"hmac takes a key and one of {', '.join(_DIGESTS)}")
    return hmac.new(key.encode(), octets(message), getattr(hashlib, digest)).digest()


def to_base32(value: str | bytes) -> str:
    return base64.b32encode(octets(value)).decode()


def from_base32(text: str) -> bytes:
    """Returns the bytes of Base32, as Java reads it: up to a padding, other characters passed over.

    Java drops the last bits where they fill no byte. A single letter at the end is no byte either,
    but Java makes one of its bits and of those before it.
    """
    letters = _NO_BASE32.sub("", text.partition("=")[0]).upper()
    found = base64.b32decode(letters + "A" * (-len(letters) % 8))[: 5 * len(letters) // 8]
    if len(letters) % 8 == 1:
        found += bytes([int.from_bytes(base64.b32decode(letters[-2:].rjust(8, "A"))) >> 2 & 0xFF])
    return found


def count_bits(value: bytes | str) -> int:
    return int.from_bytes(octets(value), "big").bit_count()


OCTETS: dict[str, Any] = {
    "encode": encode, "decode": decode, "unhex": unhex, "unbase64": unbase64, "to_binary": to_binary, "is_valid_utf8": is_valid,
    "make_valid_utf8": make_valid, "validate_utf8": validate, "hmac": sign, "to_base32": to_base32,
    "from_base32": from_base32, "bitmap_count": count_bits,
}  # fmt: skip
