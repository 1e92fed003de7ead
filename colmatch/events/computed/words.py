"""Functions of one text that compare, hide, repeat or replace characters, as in Spark.

Batches call them once a distinct text. They raise ValueError for constants that they cannot use.
"""

from __future__ import annotations

import unicodedata

_CODES = dict(zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "01230127022455012623017202", strict=True))
_SKIPPED = "7"  # the code of H and W
REPEATED_MOST = 4096  # times: a constant could ask for gigabytes
_ALL = 1 << 40  # characters


def soundex(text: str) -> str:
    """Returns a letter and three digits for the sound of an English word."""
    first = text[:1].upper() if text[:1].isascii() else ""
    if first not in _CODES or not first:
        return text
    code, last = first, _CODES[first]
    for letter in text[1:]:
        digit = _CODES.get(letter.upper()) if letter.isascii() else None
        if digit is None:
            last = "0"
        elif digit != _SKIPPED:
            code += digit if digit not in ("0", last) else ""
            last = digit
        if len(code) == 4:
            break
    return code.ljust(4, "0")


def luhn_check(text: str) -> bool:
    """Returns whether the last digit of a number is the check digit of Luhn."""
    total = 0
    for i, character in enumerate(reversed(text)):
        digit = unicodedata.decimal(character, -1)
        if digit < 0 or ord(character) > 0xFFFF:
            return False
        double = digit * (1 + i % 2)
        total += double // 10 + double % 10
    return bool(text) and total % 10 == 0


def mask(
    text: str, upper: str | None = "X", lower: str | None = "x", digit: str | None = "n", other: str | None = None
) -> str:
    """Returns a text with characters of a kind for those of a kind, which None keeps."""
    if any(sign is not None and len(sign) != 1 for sign in (upper, lower, digit, other)):
        raise ValueError("mask takes single characters, or NULL to keep what is there")
    masked = []
    for character in text:
        beyond = ord(character) > 0xFFFF  # two characters in Java
        sign = other
        if not beyond and character.isupper():
            sign = upper
        elif not beyond and character.islower():
            sign = lower
        elif not beyond and unicodedata.category(character) == "Nd":
            sign = digit
        masked.append(character if sign is None else sign * (1 + beyond))
    return "".join(masked)


def quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def repeat(text: str, times: int) -> str:
    if times > REPEATED_MOST:
        raise ValueError(f"texts are repeated {REPEATED_MOST:,} times at most")
    return text * max(times, 0)


def overlay(text: str, new: str, place: int, count: int = -1) -> str:
    """Returns a text with ``count`` characters replaced, as many as are new if it is negative."""
    count = count if count >= 0 else len(new)
    return _substring(text, 1, place - 1) + new + _substring(text, place + count, _ALL)


def _substring(text: str, place: int, count: int) -> str:
    start = place - 1 if place > 0 else len(text) + place if place < 0 else 0
    return text[max(start, 0) : max(start + count, 0)] if count > 0 else ""


def trimmed(text: str, characters: str = " ") -> str:
    return text.strip(characters)


def trimmed_left(text: str, characters: str) -> str:
    return text.lstrip(characters)


def trimmed_right(text: str, characters: str) -> str:
    return text.rstrip(characters)


def find_from(text: str, part: str, place: int, number: int = 1) -> int:
    """Returns the place of an occurrence from ``place`` on, or from the end; 0 for none."""
    if place == 0 or number < 1:
        raise ValueError("places count from 1, or from -1 at the end, and occurrences from 1")
    at = place - 1 if place > 0 else len(text) + place
    step = 1 if place > 0 else -1
    while 0 <= at <= len(text):
        if text.startswith(part, at):
            number -= 1
            if not number:
                return at + 1
        at += step
    return 0


def jaro_winkler(text: str, other: str) -> float:
    """Returns how alike two texts are, from 0 to 1, by common characters and a common beginning."""
    if text == other:
        return 1.0
    window = max(len(text), len(other)) // 2 - 1
    left, taken = list[str](), [False] * len(other)
    for i, character in enumerate(text):
        for j in range(max(0, i - window), min(len(other), i + window + 1)):
            if not taken[j] and other[j] == character:
                taken[j] = True
                left.append(character)
                break
    right = [character for character, is_taken in zip(other, taken, strict=True) if is_taken]
    common = len(left)
    if not common:
        return 0.0
    moved = sum(one != two for one, two in zip(left, right, strict=True)) // 2
    jaro = (common / len(text) + common / len(other) + (common - moved) / common) / 3.0
    prefix = 0
    while prefix < min(4, len(text), len(other)) and text[prefix] == other[prefix]:
        prefix += 1
    return jaro + prefix * 0.1 * (1.0 - jaro)


WORDS = {
    "soundex": soundex, "luhn_check": luhn_check, "mask": mask, "quote": quote, "repeat": repeat, "overlay": overlay, "btrim": trimmed,
    "ltrim of": trimmed_left, "rtrim of": trimmed_right, "instr_from": find_from, "jaro_winkler_similarity": jaro_winkler,
}  # fmt: skip
