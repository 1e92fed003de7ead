"""Every type as an order-preserving int64 *key*: literals to keys, and keys back to literals for
people.

======================  ==========================================================================
family                  key
======================  ==========================================================================
BOOL                    0, 1
INT, DATE               the value; days since 1970-01-01
UINT64                  value - 2**63
FLOAT                   bits of the float64, negative ones flipped; one NaN, above all; one zero
DECIMAL                 the unscaled integer at the column's scale
TIMESTAMP               units since 1970-01-01, of UTC when the column has a zone
STRING, BINARY          label among the attribute's sorted distinct literals, see
                        ``kernels.layout.Literals``
======================  ==========================================================================

A literal need not be a value that the column can hold: ``age < 5.5`` is meaningful for an integer
column, and so is ``age < 10**30``. It is therefore converted to the *floor* among the column's keys
and a *place*: EXACT, ABOVE (strictly between the floor and the next key, or above all keys), BELOW
(below all keys). ``intervals`` turns both into key intervals for each operator.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, ROUND_FLOOR, Context, Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.lowering.forms import Kind, Op
from colmatch.schema import Family, Type
from colmatch.session import Session, time_zone

KEY_MIN = -(2**63)
KEY_MAX = 2**63 - 1

BELOW, EXACT, ABOVE = -1, 0, 1

Keys = tuple[NDArray[np.int64], NDArray[np.int8]]
Intervals = tuple[NDArray[np.int64], NDArray[np.int64]]

_NUMBERS = frozenset({Kind.INT, Kind.DECIMAL, Kind.DOUBLE})
_FITS: dict[Family, tuple[frozenset[Kind], str]] = {
    Family.BOOL: (frozenset({Kind.BOOL}), "TRUE or FALSE"),
    Family.INT: (_NUMBERS, "a number"),
    Family.UINT64: (_NUMBERS, "a number"),
    Family.FLOAT: (_NUMBERS, "a number"),
    Family.DECIMAL: (_NUMBERS, "a number"),
    Family.STRING: (frozenset({Kind.STRING}), "a string"),
    Family.BINARY: (frozenset({Kind.BINARY}), "a binary literal such as X'1F'"),
    Family.DATE: (frozenset({Kind.DATE, Kind.STRING}), "a date such as DATE '2013-01-31'"),
    Family.TIMESTAMP: (
        frozenset({Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ, Kind.DATE, Kind.STRING}),
        "a timestamp such as TIMESTAMP '2013-01-31 10:00:00'",
    ),
}


def misfit(type: Type, kind: Kind) -> str | None:
    """What a column of this type needs when a literal of this kind cannot be compared with it,
    None when it can.
    """
    kinds, needed = _FITS[type.family]
    return None if kind in kinds else needed


class LiteralErrors(ValueError):
    """Some literals of one conversion cannot be read: ``reasons`` by position."""

    def __init__(self, reasons: dict[int, str]) -> None:
        super().__init__(reasons)
        self.reasons = reasons


def literal_keys(
    type: Type, kind: Kind, values: Sequence[Any] | NDArray[Any], negative: bool, session: Session
) -> Keys:
    """Keys of literals of one kind for columns of one type that is not textual.

    Parameters
    ----------
    values : n literals, as their text or as Python values, or a numeric array; a date or timestamp
        also as nanoseconds since 1970 of its zone's clocks, and the zone
    negative : a minus stood before each of them
    session : where timestamp literals without a zone are read; is told of them

    Returns
    -------
    floor (n) int64, place (n) int8

    Raises
    ------
    LiteralErrors : with the reason for each literal that is not a value of ``kind``
    """
    family = type.family
    if family is Family.BOOL:
        if isinstance(values, np.ndarray):
            return exact(values.astype(np.int64))
        return exact(np.fromiter((_bool(v) for v in values), np.int64, len(values)))
    if family is Family.FLOAT:
        return exact(float_keys(_floats(values, negative)))
    if family in (Family.INT, Family.UINT64, Family.DECIMAL):
        scale = type.scale if family is Family.DECIMAL else 0
        offset = 2**63 if family is Family.UINT64 else 0
        if scale == 0 and offset == 0:
            whole = _whole(kind, values, negative)
            if whole is not None:
                return exact(whole)
            if (
                isinstance(values, np.ndarray)
                and values.dtype.kind == "f"
                and np.all(np.abs(values.astype(np.float64)) < 2.0**62)
            ):
                floor = np.floor(-values if negative else values)
                return floor.astype(np.int64), np.where(
                    floor == (-values if negative else values), EXACT, ABOVE
                ).astype(np.int8)
        return _each(values, lambda v: _number(v, negative, scale, offset))
    if family is Family.DATE:
        return _each(values, lambda v: (_days(v), EXACT))
    assert family is Family.TIMESTAMP
    return _each(values, lambda v: _instant(v, type, session))


def exact(keys: NDArray[np.int64]) -> Keys:
    return keys, np.zeros(len(keys), np.int8)


def _each(values: Sequence[Any] | NDArray[Any], convert: Callable[[Any], tuple[int, int]]) -> Keys:
    """One by one, each distinct value once: for the kinds of literals that need exact arithmetic
    or a calendar.
    """
    floor, place = np.empty(len(values), np.int64), np.empty(len(values), np.int8)
    known: dict[Any, tuple[int, int]] = {}
    bad: dict[int, str] = {}
    for i, value in enumerate(values):
        pair = known.get(value)
        if pair is None:
            try:
                pair = known[value] = convert(value)
            except (ValueError, ArithmeticError) as error:
                bad[i] = str(error) or f"{value!r:.60} cannot be read"
                continue
        floor[i], place[i] = pair
    if bad:
        raise LiteralErrors(bad)
    return floor, place


def _bool(value: Any) -> int:
    return value.lower() == "true" if isinstance(value, str) else bool(value)


def _whole(kind: Kind, values: Sequence[Any] | NDArray[Any], negative: bool) -> NDArray[np.int64] | None:
    """Keys of whole numbers that fit int64, None when some do not or are not whole numbers."""
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


def float_keys(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Keys of float64 values, any shape: ascending as Spark orders them, NaN last, -0.0 as 0.0."""
    clean = np.where(np.isnan(values), np.nan, values + 0.0)  # adding 0.0 turns -0.0 into 0.0
    bits = np.ascontiguousarray(clean).view(np.int64)
    return np.where(bits >= 0, bits, bits ^ np.int64(KEY_MAX))


def key_float(key: int) -> float:
    bits = key if key >= 0 else key ^ KEY_MAX
    return float(np.int64(bits).view(np.float64))


_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)  # never rounds


def _number(value: Any, negative: bool, scale: int, offset: int) -> tuple[int, int]:
    try:
        number = _EXACT.create_decimal(float.__repr__(value) if isinstance(value, float) else str(value))
    except InvalidOperation:
        raise ValueError(f"{value!r:.60} is not a number") from None
    if number.is_nan():
        return KEY_MAX, ABOVE
    if negative:
        number = -number
    # far beyond every key; also keeps 1e999999999 from being multiplied out
    if not number.is_finite() or number.adjusted() > 40:
        return (KEY_MAX, ABOVE) if number > 0 else (KEY_MIN, BELOW)
    if number and number.adjusted() < -40:
        return (-offset, ABOVE) if number > 0 else (-1 - offset, ABOVE) if offset == 0 else (KEY_MIN, BELOW)
    scaled = _EXACT.scaleb(number, scale)
    floor = int(scaled.to_integral_value(ROUND_FLOOR, _EXACT))
    exact = scaled == floor
    floor -= offset
    if floor < KEY_MIN:
        return KEY_MIN, BELOW
    if floor > KEY_MAX:
        return KEY_MAX, ABOVE
    return floor, EXACT if exact else ABOVE


_DATE = re.compile(r"\s*(\d{4})-(\d{1,2})-(\d{1,2})\s*", re.ASCII)
_TIME = re.compile(
    r"\s*(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?)?"
    r"(?:\s*(Z|UTC|GMT|[+-]\d{1,2}(?::?\d{2})?|[A-Za-z]+(?:/[A-Za-z0-9_+-]+)+))?\s*",
    re.ASCII,
)
_EPOCH = dt.date(1970, 1, 1).toordinal()
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def _days(value: Any) -> int:
    if isinstance(value, str):
        found = _DATE.fullmatch(value)
        if not found:
            raise ValueError(f"{value!r:.60} is not a date: write it as '2013-01-31'")
        value = _calendar(value, found)
    elif isinstance(value, dt.datetime) or not isinstance(value, dt.date):
        raise ValueError(f"{value!r:.60} is not a date")
    return int(value.toordinal()) - _EPOCH


def _calendar(text: str, found: re.Match[str]) -> dt.date:
    try:
        return dt.date(int(found[1]), int(found[2]), int(found[3]))
    except ValueError:
        raise ValueError(f"{text!r:.60} is not a day of the calendar") from None


def _instant(value: Any, type: Type, session: Session) -> tuple[int, int]:
    """Floor and place, in the column's unit, of a timestamp or date."""
    try:
        return _placed(value, *_local(value), type, session)
    except OverflowError:
        raise ValueError("a timestamp outside the years 1 to 9999, of which no time zone is known") from None


def _placed(value: Any, nanos: int, zone: dt.tzinfo | None, type: Type, session: Session) -> tuple[int, int]:
    if type.unit != "ns":
        nanos -= nanos % 1000  # Spark's timestamps have microseconds: further digits of a literal are cut off
    if type.zone is not None:
        nanos -= _offset(nanos, zone or session.zone_for(value))  # local time to UTC
    elif zone is not None:  # an instant against a column without zone: what the session's clocks showed
        nanos -= _offset(nanos, zone)
        utc = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=nanos // 10**9)
        shown = utc.astimezone(session.zone_for(value)).utcoffset()
        assert shown is not None
        nanos += _nanos(shown)
    floor, rest = divmod(nanos, 10**9 // UNITS[type.unit])
    if floor > KEY_MAX:
        return KEY_MAX, ABOVE
    if floor < KEY_MIN:
        return KEY_MIN, BELOW
    return floor, ABOVE if rest else EXACT


def _nanos(delta: dt.timedelta) -> int:
    return (delta.days * 86_400 + delta.seconds) * 10**9 + delta.microseconds * 1000


def _offset(nanos: int, zone: dt.tzinfo) -> int:
    """Nanoseconds that local clocks of ``zone`` are ahead of UTC at a local time."""
    moment = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=nanos // 10**9)
    ahead = moment.replace(tzinfo=zone).utcoffset()
    assert ahead is not None
    return _nanos(ahead)


def _local(value: Any) -> tuple[int, dt.tzinfo | None]:
    """Nanoseconds since 1970 as the clock of the literal's own zone showed them, and that zone."""
    if isinstance(value, tuple):
        return value
    if isinstance(value, dt.datetime):
        bare = value.replace(tzinfo=None) - dt.datetime(1970, 1, 1)
        return _nanos(bare), value.tzinfo
    if isinstance(value, dt.date):
        return (value.toordinal() - _EPOCH) * 86_400 * 10**9, None
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    if not found:
        raise ValueError(f"{value!r:.60} is not a timestamp: write it as '2013-01-31 10:00:00'")
    day = _calendar(value, found).toordinal() - _EPOCH
    hour, minute, second = (int(found[i] or 0) for i in (4, 5, 6))
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"{value!r:.60} is not a time of day")
    nanos = (day * 86_400 + hour * 3600 + minute * 60 + second) * 10**9 + int((found[7] or "").ljust(9, "0"))
    return nanos, None if found[8] is None else time_zone(found[8])


def intervals(op: Op, keys: Sequence[Keys]) -> Intervals:
    """Closed key intervals, one for each literal (IN: each of its points): ``lo > hi`` where no key
    fits.

    Parameters
    ----------
    op : EQ LT LE GT GE IN with one (floor, place), BETWEEN with two. A ``floor`` may be changed and
        returned, as both ends if need be
    """
    floor, place = keys[0]
    if op in (Op.EQ, Op.IN):
        lo = hi = floor
        none = place != EXACT
        if none.any():
            hi = floor.copy()
    elif op in (Op.LT, Op.LE):
        hi, none = _highest(op, floor, place)
        lo = np.full(len(floor), KEY_MIN)
    elif op in (Op.GT, Op.GE):
        lo, none = _lowest(op, floor, place)
        hi = np.full(len(floor), KEY_MAX)
    else:
        assert op is Op.BETWEEN
        lo, above = _lowest(Op.GE, floor, place)
        hi, below = _highest(Op.LE, *keys[1])
        none = above | below | (lo > hi)
    if none.any():
        lo[none], hi[none] = KEY_MAX, KEY_MIN
    return lo, hi


def _lowest(op: Op, floor: NDArray[np.int64], place: NDArray[np.int8]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The lowest keys that GT or GE allows, and where there are none."""
    up = (place != BELOW) if op is Op.GT else (place == ABOVE)
    if not up.any():
        return floor, up
    none = up & (floor == KEY_MAX)
    return floor + (up & ~none), none


def _highest(op: Op, floor: NDArray[np.int64], place: NDArray[np.int8]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The highest keys that LT or LE allows, and where there are none."""
    none = place == BELOW
    if op is Op.LE:
        return floor, none
    down = place == EXACT
    none |= down & (floor == KEY_MIN)
    return floor - (down & ~none), none


def literal_text(type: Type, key: int) -> str:
    """A key as the expression language writes it, for types that are not textual."""
    family = type.family
    if family is Family.BOOL:
        return "TRUE" if key else "FALSE"
    if family is Family.UINT64:
        return str(key + 2**63)
    if family is Family.FLOAT:
        value = key_float(key)
        return f"CAST('{value}' AS DOUBLE)" if value != value or value in (float("inf"), float("-inf")) else repr(value)
    if family is Family.DECIMAL:
        return str(Decimal(key).scaleb(-type.scale, _EXACT))
    if family is Family.DATE:
        ordinal = key + _EPOCH
        return f"DATE '{dt.date.fromordinal(ordinal)}'" if 1 <= ordinal <= dt.date.max.toordinal() else f"day {key}"
    if family is Family.TIMESTAMP:
        return f"TIMESTAMP '{pa.scalar(key, pa.timestamp(type.unit, 'UTC' if type.zone else None)).cast(pa.string())}'"
    return str(key)
