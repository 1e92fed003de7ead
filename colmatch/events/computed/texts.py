"""Functions of one text, with the results of Spark. Batches call them once a distinct text.

Each takes a text and constants. It raises ValueError for constants that it cannot use, whatever the
text.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa

_HASHES = {0: hashlib.sha256, 224: hashlib.sha224, 256: hashlib.sha256, 384: hashlib.sha384, 512: hashlib.sha512}
LONGEST = 1 << 20  # characters of a result: a short text and a constant could ask for gigabytes


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
    if size > LONGEST:
        raise ValueError(f"texts are padded to {LONGEST:,} characters at most")
    missing = size - len(text)
    return (pad * (missing // len(pad) + 1))[:missing] if missing > 0 and pad else ""


def _lpad(text: str, size: int, pad: str = " ") -> str:
    return _padding(text, size, pad) + text[: max(size, 0)]


def _rpad(text: str, size: int, pad: str = " ") -> str:
    return text[: max(size, 0)] + _padding(text, size, pad)


def _repeat(text: str, count: int) -> str:
    if max(len(text), 1) * count > LONGEST:
        raise ValueError(f"a text is repeated to {LONGEST:,} characters at most")
    return text * count


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
    return 0 if "," in text else (texts.split(",").index(text) + 1 if text in texts.split(",") else 0)


def _regex(pattern: str) -> re.Pattern[str]:
    """Returns an expression that means the same to Java and to Python.

    Raises ValueError: it is none, or means something else to one of them.
    """
    odd = re.search(r"\$(?!$)|\\[bBGhHpPQRvVXZz]|\(\?[^:]|\[[^\]]*(?:&&|\[)|[*+?}]\+|\\Z", pattern)
    if odd:
        raise ValueError(f"{odd[0]} in {pattern!r:.80} is not taken here")
    try:
        return re.compile(pattern.replace("$", r"(?=\n?\Z)"), re.ASCII)
    except re.error as error:
        raise ValueError(f"{pattern!r:.80} is no regular expression: {error}") from None


def _regexp_extract(text: str, pattern: str, group: int = 1) -> str:
    """Returns a group of the first match, '' without a match or where the group has none."""
    regex = _regex(pattern)
    if not 0 <= group <= regex.groups:
        raise ValueError(f"{pattern!r:.80} has {regex.groups} groups in parentheses, and {group} is none of them")
    match = regex.search(text)
    return (match[group] or "") if match else ""


def _regexp_substr(text: str, pattern: str) -> str | None:
    match = _regex(pattern).search(text)
    return match[0] if match else None


def _regexp_count(text: str, pattern: str) -> int:
    return sum(1 for _ in _regex(pattern).finditer(text))


def _regexp_replace(text: str, pattern: str, new: str) -> str:
    """Replaces all matches. In ``new``, $1 is the first group, and a backslash escapes."""
    regex = _regex(pattern)
    parts: list[str | int] = []
    for piece in re.finditer(r"\\(.)|\$(\d)|([^\\$]+)|(.)", new, re.DOTALL):
        escaped, group, plain, _ = piece.groups()
        if group is not None and int(group) <= regex.groups:
            parts.append(int(group))
        elif escaped is not None or plain is not None:
            parts.append(escaped or plain or "")
        else:
            raise ValueError(f"{piece[0]!r} in {new!r:.80} is no group: write \\\\$ for a dollar sign")
    return regex.sub(lambda match: "".join([(match[p] or "") if isinstance(p, int) else p for p in parts]), text)


STRING, INT, BIGINT = pa.string(), pa.int32(), pa.int64()
TEXTS: dict[str, tuple[Callable[..., Any], pa.DataType]] = {
    "split_part": (_split_part, STRING),
    "substring_index": (_substring_index, STRING),
    "translate": (_translate, STRING),
    "lpad": (_lpad, STRING),
    "rpad": (_rpad, STRING),
    "repeat": (_repeat, STRING),
    "initcap": (_initcap, STRING),
    "ascii": (_ascii, INT),
    "octet_length": (lambda text: len(text.encode()), INT),
    "bit_length": (lambda text: 8 * len(text.encode()), INT),
    "crc32": (lambda text: zlib.crc32(text.encode()), BIGINT),
    "md5": (lambda text: hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(), STRING),
    "sha1": (lambda text: hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest(), STRING),
    "sha2": (_sha2, STRING),
    "base64": (lambda text: base64.b64encode(text.encode()).decode(), STRING),
    "hex": (lambda text: text.encode().hex().upper(), STRING),
    "levenshtein": (_levenshtein, INT),
    "find_in_set": (_find_in_set, INT),
    "regexp_extract": (_regexp_extract, STRING),
    "regexp_substr": (_regexp_substr, STRING),
    "regexp_count": (_regexp_count, INT),
    "regexp_replace": (_regexp_replace, STRING),
}
