"""Versions as texts in the order of Semantic Versioning 2.0.0.

Such a text has the numbers without the last zeros, then a point. The point is higher than the first
character of a prerelease. A number is its count of digits and the digits. An identifier of a
prerelease begins with ``#`` before a number and with ``$`` before letters.

    1.2.0          1112.
    1.2.0-rc.10    1112$rc#210
"""

from __future__ import annotations

import re

_NUMBER = r"(?:0|[1-9][0-9]*)"
_IDENTIFIER = rf"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION = re.compile(
    rf"[vV]?({_NUMBER}(?:\.{_NUMBER})*)(?:-({_IDENTIFIER}(?:\.{_IDENTIFIER})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
_PART = re.compile(r"\$([0-9A-Za-z-]+)|#|\.")
_LEVEL = 9  # counts from here on are numbers themselves
NUMBERS, NUMBERS_MOST = 3, 9  # of a version, and most that a caller may ask for


def version_key(text: str, numbers: int = NUMBERS) -> str | None:
    """Returns the text of a version, None if it is none.

    numbers : most numbers of a version; missing ones are 0

    Raises ValueError: there can be no such versions.
    """
    if not 1 <= numbers <= NUMBERS_MOST:
        raise ValueError(f"a version has 1 to {NUMBERS_MOST} numbers, not {numbers}")
    match = _VERSION.fullmatch(text)
    parts = match[1].split(".") if match else []
    if match is None or len(parts) > numbers:
        return None
    while parts and parts[-1] == "0":
        parts.pop()
    key = "".join(map(_number_key, parts))
    if match[2] is None:
        return key + "."
    identifiers = match[2].split(".")
    return key + "".join([f"#{_number_key(one)}" if one.isdigit() else f"${one}" for one in identifiers])


def version_of(key: str) -> str:
    """Returns the version of such a text, with three numbers or more."""
    numbers: list[str] = []
    at = 0
    while key[at].isdigit():
        number, at = _read_number(key, at)
        numbers.append(number)
    identifiers: list[str] = []
    while part := _PART.match(key, at):
        at = part.end()
        if part[0] == "#":
            number, at = _read_number(key, at)
            identifiers.append(number)
        elif part[1]:
            identifiers.append(part[1])
    release = ".".join([*numbers, *["0"] * (NUMBERS - len(numbers))])
    return f"{release}-{'.'.join(identifiers)}" if identifiers else release


def _number_key(digits: str) -> str:
    """Returns a text for a number; such texts have the order of the numbers, of any length."""
    count = len(digits)
    return (str(count) if count < _LEVEL else f"{_LEVEL}{_number_key(str(count))}") + digits


def _read_number(key: str, at: int) -> tuple[str, int]:
    """Returns the number at a place of a key, and the place behind it."""
    count, at = int(key[at]), at + 1
    if count == _LEVEL:
        digits, at = _read_number(key, at)
        count = int(digits)
    return key[at : at + count], at + count
