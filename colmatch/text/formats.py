"""Formats of dates and times: the letters of Spark, as in ``yyyy-MM-dd HH:mm:ss``.

A format is cut into pieces. Reading makes one regular expression of them, and writing is a piece
after the other (``events/computed/formats.py``).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from colmatch.text.moments import DAY, Moment, day_of

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MOST = {"y": 6, "M": 4, "L": 4, "d": 2, "D": 3, "H": 2, "h": 2, "k": 2, "K": 2, "m": 2, "s": 2, "S": 9, "a": 1, "E": 4, "Q": 2,
         "X": 3, "x": 3, "Z": 3}  # fmt: skip
_WRITTEN_ONLY = ("E", "Q", "D")
_ZONES = {
    "X": r"Z|[+-]\d\d(?:\d\d)?", "XX": r"Z|[+-]\d{4}", "XXX": r"Z|[+-]\d\d:\d\d",
    "x": r"[+-]\d\d(?:\d\d)?", "xx": r"[+-]\d{4}", "xxx": r"[+-]\d\d:\d\d", "Z": r"[+-]\d{4}", "ZZ": r"[+-]\d{4}", "ZZZ": r"[+-]\d{4}",
}  # fmt: skip
MOST_LETTERS = 128


class Piece(NamedTuple):
    """A part of a format.

    letter : of a field; "" for a plain text, "[" or "]" for the ends of a section that may lack
    text : the plain text
    width : how often the letter is written
    """

    letter: str
    text: str
    width: int


@lru_cache(1024)
def pieces_of(format: str) -> tuple[Piece, ...]:
    """Cuts a format. Raises ValueError: it has a letter that is not known here."""
    if len(format) > MOST_LETTERS:
        raise ValueError(f"the format has more than {MOST_LETTERS} letters")
    pieces: list[Piece] = []
    for found in re.finditer(r"'((?:[^']|'')*)'|([A-Za-z])\2*|([\[\]])|([{}#'])|(.)", format, re.DOTALL):
        quoted, letter, bracket, reserved, plain = found.groups()
        if reserved is not None:
            raise ValueError(f"{reserved!r} in the format needs quotes around it, and a quote is written twice")
        if letter is None:
            text = plain or ("'" if quoted == "" else (quoted or "").replace("''", "'"))
            pieces.append(Piece(bracket or "", "" if bracket else text, 1))
            continue
        count = len(found[0])
        if count > _MOST.get(letter, 0):
            known = " ".join(_MOST)
            raise ValueError(
                f"the format has {found[0]!r}, which is not read here: the letters are {known}, and texts in quotes"
            )
        pieces.append(Piece(letter, "", count))
    depth = 0
    for piece in pieces:
        depth += (piece.letter == "[") - (piece.letter == "]")
        if depth < 0:
            break
    if depth:
        raise ValueError("the format has a [ or ] without the other")
    return tuple(pieces)


class FormatReader:
    """A reader of texts in one format.

    Raises ValueError: texts cannot be read in this format.
    """

    def __init__(self, format: str) -> None:
        self._letters: list[str] = []
        self._reduced: set[int] = set()
        pieces, pattern = pieces_of(format), []
        for i, piece in enumerate(pieces):
            if piece.letter == "[":
                pattern.append("(?:")
            elif piece.letter == "]":
                pattern.append(")?+")
            elif not piece.letter:
                pattern.append(re.escape(piece.text))
            else:
                pattern.append(f"({self._field(piece, pieces[i + 1 :])})")
                self._reduced |= {len(self._letters)} if piece.letter == "y" and piece.width == 2 else set()
                self._letters.append("M" if piece.letter == "L" else piece.letter)
        self._pattern = re.compile("".join(pattern), re.IGNORECASE | re.ASCII)

    def _field(self, piece: Piece, behind: tuple[Piece, ...]) -> str:
        """Returns the regular expression of a field."""
        letter, count = piece.letter, piece.width
        if letter in _WRITTEN_ONLY:
            raise ValueError(f"{letter!r} in a format is written, but not read")
        if letter in "XxZ":
            return _ZONES[letter * count]
        if letter == "a":
            return "am|pm"
        if letter in "ML" and count > 2:
            return "|".join(month if count == 4 else month[:3] for month in MONTHS)
        is_fixed = count == 2
        if not is_fixed and behind and _is_number(behind[0]) and (letter != "y" or not _is_fixed(behind[0])):
            raise ValueError(
                f"numbers without a sign between them need two digits, as MM: {letter * count!r} may have more"
            )
        if is_fixed and letter != "S":
            return r"\d{2}"
        ends = "" if behind and _is_number(behind[0]) else "+"
        if letter == "S":
            return rf"\d{{1,{count}}}{ends}"
        if letter != "y":
            return rf"\d{{1,19}}{ends}"
        if count < 4:
            return rf"-?\d{{{count},19}}{ends}"
        longer = rf"-\d{{{count},19}}{ends}|[+]\d{{{count + 1},19}}{ends}"
        return rf"\d{{{count}}}|{longer}"

    def read(self, text: str) -> Moment | None:
        """Returns the timestamp of a text; None if it has another format."""
        found = self._pattern.fullmatch(text)
        if found is None:
            return None
        fields: dict[str, str] = {}
        for i, (letter, value) in enumerate(zip(self._letters, found.groups(), strict=True)):
            if value is None:
                continue
            value = "20" + value if i in self._reduced else value.lower()
            if fields.setdefault(letter, value) != value and not (
                value.isdigit() and int(fields[letter]) == int(value)
            ):
                return None
        year, day = int(fields.get("y", "1970")), int(fields.get("d", "1"))
        number = day_of(year, _month(fields.get("M", "1")), day)
        nanos = _nanos(fields)
        if number is None or nanos is None or abs(year) > 999_999_999:
            return None
        zone = next((fields[letter] for letter in "XxZ" if letter in fields), None)
        if zone is None:
            return Moment(number, nanos, None)
        digits = zone.replace(":", "")
        if zone == "z":
            return Moment(number, nanos, "+00:00:00")
        hours, minutes = int(digits[1:3]), int(digits[3:5] or 0)
        if minutes > 59 or hours * 60 + minutes > 18 * 60:
            return None
        return Moment(number, nanos, f"{zone[0]}{hours:02}:{minutes:02}:00")


def _is_number(piece: Piece) -> bool:
    return piece.letter in tuple("ydHhkKmsS") or (piece.letter in ("M", "L") and piece.width < 3)


def _is_fixed(piece: Piece) -> bool:
    return piece.width == 2 and piece.letter not in "yS"


def _month(text: str) -> int:
    if text.isdigit():
        return int(text)
    return next(i for i, month in enumerate(MONTHS, 1) if month[:3].lower() == text[:3])


def _nanos(fields: dict[str, str]) -> int | None:
    """Returns the nanoseconds since midnight; None if there is no such time."""
    of_half: int | None = None
    for letter, least, most in (("H", 0, 23), ("k", 1, 24), ("h", 1, 12), ("K", 0, 11), ("m", 0, 59), ("s", 0, 59)):
        if letter in fields and not least <= int(fields[letter]) <= most:
            return None
    if "h" in fields or "K" in fields:
        halves = {int(fields[letter]) % 12 for letter in "hK" if letter in fields}
        if len(halves) > 1:
            return None
        of_half = halves.pop()
    afternoon = fields.get("a") == "pm"
    hours = {int(fields[letter]) % 24 for letter in "Hk" if letter in fields}
    if of_half is not None and "a" in fields:
        hours.add(of_half + 12 * afternoon)
    if len(hours) > 1:
        return None
    if hours:
        hour = hours.pop()
        if (of_half is not None and hour % 12 != of_half) or ("a" in fields and (hour >= 12) != afternoon):
            return None
    else:
        hour = of_half if of_half is not None else 12 * afternoon
    minute, second = int(fields.get("m", "0")), int(fields.get("s", "0"))
    nanos = (hour * 3600 + minute * 60 + second) * 10**9 + int(fields.get("S", "0").ljust(9, "0"))
    assert nanos < DAY
    return nanos


@lru_cache(256)
def reader_of(format: str) -> FormatReader:
    """Returns the reader of a format. Raises ValueError: texts cannot be read in it."""
    return FormatReader(format)
