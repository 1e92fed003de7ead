"""Literals of one kind -> their floors among the keys of a column, and intervals of keys.

A literal need not be a value of the column: ``age < 5.5`` is meaningful for an integer column, and
so is ``age < 10**30``. So it is converted to the *floor* among the column's keys and a *place*:
EXACT, ABOVE (strictly between the floor and the next key, or above all keys), BELOW (below all
keys). ``intervals`` turns both into key intervals for each operator.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_FLOOR, Decimal, InvalidOperation
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous
from colmatch.errors import show_value
from colmatch.given.schema import UNITS, UUID, Family, Type
from colmatch.given.session import Session
from colmatch.kernels.layout import KEY_MAX, KEY_MIN
from colmatch.kernels.lowering.intervals import key_intervals
from colmatch.kernels.lowering.operators import ABOVE, BELOW, EXACT
from colmatch.lowering.forms import Kind, Op
from colmatch.lowering.keys import NEVER_ROUNDS, UINT64_OFFSET, float_key, float_keys
from colmatch.lowering.times import SECOND, days, instant, time_of_day

Floors = tuple[NDArray[np.int64], NDArray[np.int8]]  # floor (n), place (n)
Intervals = tuple[NDArray[np.int64], NDArray[np.int64]]  # lo (n), hi (n)
Convert = Callable[[Any], tuple[int, int]]  # one literal -> floor, place

_NUMBERS = frozenset({Kind.INT, Kind.DECIMAL, Kind.DOUBLE})
_FITS: dict[Family, tuple[frozenset[Kind], str]] = {
    Family.BOOL: (frozenset({Kind.BOOL}), "TRUE or FALSE"),
    Family.INT: (_NUMBERS, "a number"),
    Family.UINT64: (_NUMBERS, "a number"),
    Family.FLOAT: (_NUMBERS, "a number"),
    Family.DECIMAL: (_NUMBERS, "a number"),
    Family.WIDE_DECIMAL: (_NUMBERS, "a number"),
    Family.STRING: (frozenset({Kind.STRING}), "a string"),
    Family.BINARY: (frozenset({Kind.BINARY}), "a binary literal such as X'1F'"),
    Family.DATE: (frozenset({Kind.DATE, Kind.STRING}), "a date such as DATE '2013-01-31'"),
    Family.TIMESTAMP: (
        frozenset({Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ, Kind.DATE, Kind.STRING}),
        "a timestamp such as TIMESTAMP '2013-01-31 10:00:00'",
    ),
    Family.TIME: (frozenset({Kind.STRING}), "a time of day such as '10:30:00'"),
}


_TRUTHS = {
    **dict.fromkeys(("t", "true", "y", "yes", "1"), 1), **dict.fromkeys(("f", "false", "n", "no", "0"), 0),
}  # fmt: skip  # texts that Spark casts to a Boolean


def misfit(type: Type, kind: Kind, is_cast: bool = False) -> str | None:
    """Returns the literals that a column of this type needs instead; None if this kind fits.

    is_cast : numbers and strings meet Booleans as Spark casts them
    """
    if type == UUID and kind is Kind.STRING:
        return None
    kinds, needed = _FITS[type.family]
    if is_cast and type.family is Family.BOOL and kind in (Kind.STRING, *_NUMBERS):
        return None
    if type == UUID:
        needed = "its text, as in '550e8400-e29b-41d4-a716-446655440000'"
    return None if kind in kinds else needed


class Side(Enum):
    """An end of the numbers of a column that become a given DOUBLE when they are cast.

    Spark casts whole numbers and decimals to DOUBLE if they are compared with one. Several may
    become the same double. If none does, the least is above the most.
    """

    LEAST = 0
    MOST = 1


ROUNDED = frozenset({Family.INT, Family.UINT64, Family.DECIMAL, Family.WIDE_DECIMAL})  # meet a DOUBLE as doubles


def numbers_of_double(number: float, scale: int) -> tuple[int, int]:
    """Returns the least and the most of the numbers that become a finite double when they are cast.

    Both are unscaled, with ``scale`` digits behind the point.
    """
    value, power = Fraction(number), 10**scale
    below, above = _neighbours(number)
    ends = (value + below) / 2 * power, (value + above) / 2 * power
    least, most = math.ceil(ends[0]), math.floor(ends[1])
    if number != 0 and math.frexp(number)[0] * 2**53 % 2:  # half way, it goes to the double with an even mantissa
        least, most = least + (least == ends[0]), most - (most == ends[1])
    return least, most


def _neighbours(number: float) -> tuple[Fraction, Fraction]:
    """Returns the doubles below and above; the largest double mirrors the one below it."""
    beyond = 2 * Fraction(number) - Fraction(math.nextafter(number, 0.0))
    ends = math.nextafter(number, -math.inf), math.nextafter(number, math.inf)
    below, above = (Fraction(end) if math.isfinite(end) else beyond for end in ends)
    return below, above


class LiteralErrors(ValueError):
    """Errors of literals in one conversion that cannot be read.

    ``reasons`` has the reason for each, by position.
    """

    def __init__(self, reasons: dict[int, str]) -> None:
        super().__init__(reasons)
        self.reasons = reasons


def literal_floors(
    type: Type,
    kind: Kind,
    values: Sequence[Any] | NDArray[Any],
    negative: bool,
    session: Session,
    side: Side | None = None,
) -> Floors:
    """Finds the floors of literals of one kind, for columns of one type that is not textual.

    Parameters
    ----------
    values : n literals, as texts or as Python values, or a numeric array. A date or timestamp also
        as nanoseconds since 1970 on its zone's clocks, and the zone
    negative : each of them follows a minus
    session : has the zone of timestamp literals without one, and notes these
    side : of the numbers that meet the literals as doubles

    Returns
    -------
    floor (n) int64, place (n) int8

    Raises LiteralErrors: has the reason for each literal that is not a value of ``kind``.
    """
    family = type.family
    if side is not None and family is Family.INT:
        doubles = _floats(values, negative)
        if np.all(np.abs(doubles) < 2.0**53):
            return exact((np.ceil if side is Side.LEAST else np.floor)(doubles).astype(np.int64))
    if side is not None:
        return _each(values, converter(type, kind, negative, session, side))
    if family is Family.BOOL and kind is Kind.BOOL and isinstance(values, np.ndarray):
        return exact(values.astype(np.int64))
    if family is Family.FLOAT:
        return exact(float_keys(_floats(values, negative)))
    if family is Family.INT or (family is Family.DECIMAL and type.scale == 0):
        whole = _whole(kind, values, negative)
        if whole is not None:
            return exact(whole)
        floats = isinstance(values, np.ndarray) and values.dtype.kind == "f"
        if isinstance(values, np.ndarray) and floats and np.all(np.abs(values.astype(np.float64)) < 2.0**62):
            numbers = -values if negative else values
            floor = np.floor(numbers)
            return floor.astype(np.int64), np.where(floor == numbers, EXACT, ABOVE).astype(np.int8)
    return _each(values, converter(type, kind, negative, session))


def converter(type: Type, kind: Kind, negative: bool, session: Session, side: Side | None = None) -> Convert:
    """Returns a function that finds the floor of one literal, as ``literal_floors`` does for many.

    The function raises ValueError or ArithmeticError for a literal that is not a value of ``kind``.
    """
    family = type.family
    if side is not None:
        return _side(type, negative, side)
    if family is Family.BOOL and kind in _NUMBERS:
        return lambda v: _number(v, negative, 0, 0)
    if family is Family.BOOL:
        return lambda v: (_cast_text(v) if kind is Kind.STRING else _bool(v), EXACT)
    if family is Family.FLOAT:
        return lambda v: (float_key(-_float(v) if negative else _float(v)), EXACT)
    if family is Family.INT and kind is Kind.INT:
        return lambda v: _integer(v, negative)
    if family in (Family.INT, Family.UINT64, Family.DECIMAL):
        scale = type.scale if family is Family.DECIMAL else 0
        offset = UINT64_OFFSET if family is Family.UINT64 else 0
        return lambda v: _number(v, negative, scale, offset)
    if family is Family.DATE:
        return lambda v: (days(v), EXACT)
    if family is Family.TIME:
        return lambda v: _in_units(time_of_day(v), type.unit)
    assert family is Family.TIMESTAMP
    return lambda v: _in_units(instant(v, type, session), type.unit)


def _side(type: Type, negative: bool, side: Side) -> Convert:
    """Returns a function that finds the floor of one side of the numbers that meet a double."""
    scale = type.scale if type.family is Family.DECIMAL else 0
    offset = UINT64_OFFSET if type.family is Family.UINT64 else 0

    def convert(value: Any) -> tuple[int, int]:
        double = -_float(value) if negative else _float(value)
        if not math.isfinite(double):
            return _number(double, False, scale, offset)
        return _clip_floor(numbers_of_double(double, scale)[side.value] - offset, True)

    return convert


def exact(keys: NDArray[np.int64]) -> Floors:
    """Returns the floors of literals that are keys themselves."""
    return keys, np.zeros(len(keys), np.int8)


def _each(values: Sequence[Any] | NDArray[Any], convert: Convert) -> Floors:
    """Converts literals one by one, each distinct value once.

    This is for kinds that need exact arithmetic or a calendar.
    """
    floor, place = np.empty(len(values), np.int64), np.empty(len(values), np.int8)
    pairs: dict[Any, tuple[int, int]] = {}
    bad: dict[int, str] = {}
    for i, value in enumerate(values):
        pair = pairs.get(value)
        if pair is None:
            try:
                pair = pairs[value] = convert(value)
            except (ValueError, ArithmeticError) as error:
                bad[i] = str(error) or f"{show_value(value)} cannot be read"
                continue
        floor[i], place[i] = pair
    if bad:
        raise LiteralErrors(bad)
    return floor, place


def _bool(value: Any) -> int:
    return value.lower() == "true" if isinstance(value, str) else bool(value)


def _cast_text(value: str) -> int:
    """Returns the Boolean that Spark casts a text to, as 0 or 1."""
    truth = _TRUTHS.get(value.strip("".join(map(chr, range(33))) + "\x7f").lower())
    if truth is None:
        raise ValueError(f"{show_value(value)} is no Boolean: write TRUE or FALSE")
    return truth


def _whole(kind: Kind, values: Sequence[Any] | NDArray[Any], negative: bool) -> NDArray[np.int64] | None:
    """Returns the keys of whole numbers; None if a number is not whole or does not fit int64."""
    if isinstance(values, np.ndarray):
        if values.dtype.kind not in "iu" or (values.dtype == np.uint64 and values.size and values.max() > KEY_MAX):
            return None
        numbers = values.astype(np.int64)
    elif kind is not Kind.INT:
        return None
    else:
        try:
            numbers = np.fromiter(map(int, values), np.int64, len(values))
        except OverflowError:
            return None
    if negative:
        if numbers.size and numbers.min() == KEY_MIN:
            return None
        numbers = -numbers
    return numbers


def _floats(values: Sequence[Any] | NDArray[Any], negative: bool) -> NDArray[np.float64]:
    if isinstance(values, np.ndarray):
        numbers = values.astype(np.float64)
    else:
        numbers = np.fromiter(map(_float, values), np.float64, len(values))
    return -numbers if negative else numbers


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _integer(value: Any, negative: bool) -> tuple[int, int]:
    number = -int(value) if negative else int(value)
    return (number, EXACT) if KEY_MIN <= number <= KEY_MAX else _number(value, negative, 0, 0)


def number_of(value: Any, negative: bool) -> Decimal:
    """Returns the exact number of a literal, without any rounding.

    Raises ValueError if it is no number.
    """
    try:
        number = NEVER_ROUNDS.create_decimal(float.__repr__(value) if isinstance(value, float) else str(value))
    except InvalidOperation:
        raise ValueError(f"{show_value(value)} is not a number") from None
    return number.copy_negate() if negative else number


def _number(value: Any, negative: bool, scale: int, offset: int) -> tuple[int, int]:
    number = number_of(value, negative)
    if number.is_nan():
        return KEY_MAX, ABOVE
    # far beyond every key; also keeps 1e999999999 from being multiplied out
    if not number.is_finite() or number.adjusted() + scale > 40:
        return (KEY_MAX, ABOVE) if number > 0 else (KEY_MIN, BELOW)
    if number and number.adjusted() + scale < -40:
        return (-offset, ABOVE) if number > 0 else (-1 - offset, ABOVE) if offset == 0 else (KEY_MIN, BELOW)
    scaled = NEVER_ROUNDS.scaleb(number, scale)
    floor = int(scaled.to_integral_value(ROUND_FLOOR, NEVER_ROUNDS))
    exact = scaled == floor
    return _clip_floor(floor - offset, exact)


def _in_units(nanos: int, unit: str) -> tuple[int, int]:
    floor, rest = divmod(nanos, SECOND // UNITS[unit])
    return _clip_floor(floor, not rest)


def _clip_floor(floor: int, exact: bool) -> tuple[int, int]:
    """Returns the floor and place of a literal that may lie beyond all keys."""
    if floor < KEY_MIN:
        return KEY_MIN, BELOW
    if floor > KEY_MAX:
        return KEY_MAX, ABOVE
    return floor, EXACT if exact else ABOVE


def intervals(op: Op, floors: Sequence[Floors]) -> Intervals:
    """Makes the closed key interval of each literal; for IN, of each of its points.

    Parameters
    ----------
    op : EQ LT LE GT GE IN with floors of one operand, BETWEEN and PREFIX with floors of two

    Returns
    -------
    lo, hi (n) int64; ``lo > hi`` where no key fits
    """
    floor, place = contiguous(floors[0][0]), contiguous(floors[0][1])
    end, end_place = contiguous(floors[-1][0]), contiguous(floors[-1][1])
    lo, hi = np.empty(len(floor), np.int64), np.empty(len(floor), np.int64)
    key_intervals(op.value, floor, place, end, end_place, lo, hi)
    return lo, hi
