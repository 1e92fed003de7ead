"""Functions of one text, with the results of Spark. Batches call them once a distinct text.

Each takes a text and constants. It raises ValueError for constants that it cannot use, whatever the
text.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa

_HASHES = {0: hashlib.sha256, 224: hashlib.sha224, 256: hashlib.sha256, 384: hashlib.sha384, 512: hashlib.sha512}
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


def _sha2(text: str, bits: int) -> str | None:
    """Returns a hash of so many bits; 0 is 256, and other sizes make it NULL."""
    function = _HASHES.get(bits)
    return None if function is None else function(text.encode()).hexdigest()


def _base64(text: str) -> str:
    """Returns Base64 in lines of 76 characters."""
    letters = base64.b64encode(text.encode()).decode()
    return "\r\n".join([letters[i : i + 76] for i in range(0, len(letters), 76)])


def _levenshtein(text: str, other: str) -> int:
    """Returns the number of characters to insert, delete or replace between two texts."""
    row = list(range(len(other) + 1))
    for i, character in enumerate(text, 1):
        before, row[0] = row[0], i
        for j, another in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (character != another))
    return row[-1]


def _find_in_set(text: str, texts: str) -> int:
    """Returns the place of a text in a list with commas, counted from 1; 0 if it is not there."""
    parts = texts.split(",")
    return parts.index(text) + 1 if text in parts else 0


STRING, INT, BIGINT = pa.string(), pa.int32(), pa.int64()
TEXTS: dict[str, tuple[Callable[..., Any], pa.DataType]] = {
    "split_part": (_split_part, STRING),
    "substring_index": (_substring_index, STRING),
    "translate": (_translate, STRING),
    "lpad": (_lpad, STRING),
    "rpad": (_rpad, STRING),
    "initcap": (_initcap, STRING),
    "ascii": (_ascii, INT),
    "octet_length": (lambda text: len(text.encode()), INT),
    "bit_length": (lambda text: 8 * len(text.encode()), INT),
    "crc32": (lambda text: zlib.crc32(text.encode()), BIGINT),
    "md5": (lambda text: hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(), STRING),
    "sha1": (lambda text: hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest(), STRING),
    "sha2": (_sha2, STRING),
    "base64": (_base64, STRING),
    "hex": (lambda text: text.encode().hex().upper(), STRING),
    "levenshtein": (_levenshtein, INT),
    "find_in_set": (_find_in_set, INT),
}
