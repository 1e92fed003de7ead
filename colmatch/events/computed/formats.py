"""Timestamps as texts in a format of Spark, such as ``yyyy-MM-dd``."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from colmatch.events.computed.dates import local, within_years
from colmatch.text.formats import MONTHS, WEEKDAYS, Piece, pieces_of

_ZONES = "XxZ"
_NUMBERS: dict[str, Callable[[Any], Any]] = {
    "d": pc.day, "D": pc.day_of_year, "H": pc.hour, "m": pc.minute, "s": pc.second, "Q": pc.quarter, "M": pc.month, "L": pc.month,
    "h": lambda at: pc.add(_modulo(pc.subtract(pc.hour(at), 1), 12), 1), "K": lambda at: _modulo(pc.hour(at), 12),
    "k": lambda at: pc.if_else(pc.equal(pc.hour(at), 0), 24, pc.hour(at)),
}  # fmt: skip


def _modulo(values: Any, divisor: int) -> Any:
    """Returns the remainders of numbers from -1 on."""
    rest = pc.subtract(values, pc.multiply(pc.divide(values, divisor), divisor))
    return pc.if_else(pc.less(rest, 0), pc.add(rest, divisor), rest)


@within_years
def write(values: pa.Array, format: str, zone: str) -> pa.Array:
    """Writes timestamps as the clocks of a zone show them."""
    clocks = local(values, zone)
    parts = [_write(piece, clocks, values) for piece in writer_of(format)]
    texts = pc.binary_join_element_wise(*parts, "") if parts else pa.repeat("", len(values))
    return pc.if_else(values.is_null(), pa.scalar(None, pa.string()), texts)


@lru_cache(1024)
def writer_of(format: str) -> tuple[Piece, ...]:
    """Returns the pieces to write. Raises ValueError: the format cannot be written."""
    return tuple([piece for piece in pieces_of(format) if piece.letter not in ("[", "]")])


def _write(piece: Piece, clocks: pa.Array, instants: pa.Array) -> Any:
    letter, count = piece.letter, piece.width
    if not letter:
        return piece.text
    if letter == "y":
        return _year(pc.year(clocks), count)
    if letter == "S":
        micros = pc.add(pc.multiply(pc.millisecond(clocks), 1000), pc.microsecond(clocks))
        return pc.utf8_slice_codeunits(pc.utf8_rpad(_padded(micros, 6), 9, "0"), 0, count)
    if letter == "a":
        return pc.if_else(pc.less(pc.hour(clocks), 12), "AM", "PM")
    if letter == "E" or (letter in "ML" and count > 2):
        names = WEEKDAYS if letter == "E" else MONTHS
        shown = pa.array([name if count == 4 else name[:3] for name in names])
        number = pc.day_of_week(clocks) if letter == "E" else pc.subtract(pc.month(clocks), 1)
        return shown.take(number)
    if letter in _ZONES:
        return _zone(letter, count, pc.subtract(clocks.cast(pa.int64()), instants.cast(pa.int64())))
    return _padded(_NUMBERS[letter](clocks), count)


def _padded(numbers: Any, count: int) -> Any:
    return pc.utf8_lpad(numbers.cast(pa.string()), count, "0")


def _year(years: Any, count: int) -> Any:
    if count == 2:
        return _padded(_modulo(pc.abs(years), 100), 2)
    digits = _padded(pc.abs(years), count)
    long = pc.if_else(pc.greater(pc.utf8_length(digits), count), "+", "") if count > 3 else ""
    sign = pc.if_else(pc.less(years, 0), "-", long)
    return pc.binary_join_element_wise(sign, digits, "")


def _zone(letter: str, count: int, ahead: Any) -> Any:
    """Writes offsets from UTC, which are microseconds."""
    minutes = pc.divide(ahead, 60_000_000)
    sign = pc.if_else(pc.less(minutes, 0), "-", "+")
    hours, rest = pc.divide(pc.abs(minutes), 60), _modulo(pc.abs(minutes), 60)
    between = ":" if count == 3 and letter != "Z" else ""
    shown = _padded(rest, 2)
    if count == 1 and letter != "Z":
        shown = pc.if_else(pc.equal(rest, 0), "", shown)
    text = pc.binary_join_element_wise(sign, _padded(hours, 2), between, shown, "")
    return pc.if_else(pc.equal(minutes, 0), "Z", text) if letter == "X" else text
