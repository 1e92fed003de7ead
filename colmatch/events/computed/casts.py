"""Casts between the types of computed values, as Spark makes them with ANSI off and on."""

from __future__ import annotations

import re
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from colmatch.errors import EventError, show_value
from colmatch.events.computed.dates import DAY_SECONDS, instant, local
from colmatch.events.computed.failed import RowsError, forgive, refuse, set_nulls, true_rows
from colmatch.events.computed.functions import map_distinct
from colmatch.events.computed.moments import of_seconds, read_texts, show, to_double, to_seconds
from colmatch.given.incoming import refusing

_TRUE = frozenset({"t", "true", "y", "yes", "1"})
_FALSE = frozenset({"f", "false", "n", "no", "0"})
_SPACES = "".join(map(chr, range(33)))  # Spark strips these from both ends of a text
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_WHOLE_PART = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d*)", re.ASCII)  # a point alone is 0
_DOUBLE = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?[df]?", re.ASCII | re.IGNORECASE)
_HEXADECIMAL = re.compile(r"[+-]?0x(?:[0-9a-f]+\.?|[0-9a-f]*\.[0-9a-f]+)p[+-]?\d+[df]?", re.ASCII | re.IGNORECASE)
_DECIMAL = re.compile(r"[+-]?(?=\.?\d)\d*(?:\.(\d*))?(?:[eE]([+-]?\d+))?")
_PLAIN_SCALE = 6  # of decimals that are never written with an exponent
_MOST_SCALE, _LONGEST = 2**31 - 1, 1000  # the second in characters of an exponent
_HALF_UP = Context(prec=80, rounding=ROUND_HALF_UP, Emin=MIN_EMIN, Emax=MAX_EMAX)
_WORDS = {"nan": "nan", "inf": "inf", "+inf": "inf", "infinity": "inf", "+infinity": "inf", "-inf": "-inf",
          "-infinity": "-inf"}  # fmt: skip


def cast(values: Any, to: pa.DataType, mode: str, zone: str = "UTC") -> Any:
    """Casts an array.

    mode : "ansi", or ""
    zone : time zone of the session, for casts between instants and local times

    Raises EventError: with ANSI, a value does not fit.
    """
    ansi, have, types = mode == "ansi", values.type, pa.types
    if types.is_string(have):
        is_time = types.is_date(to) or types.is_timestamp(to)
        return read_texts(values, to, ansi, zone) if is_time else _of_text(values, to, ansi)
    if types.is_timestamp(have) or types.is_date(have):
        return _of_instants(values, to, ansi, zone)
    if types.is_timestamp(to):
        return of_seconds(values, ansi)
    if types.is_string(to):
        is_plain = ansi and types.is_decimal(have) and have.scale > _PLAIN_SCALE
        return map_distinct(values, lambda value: format(value, "f"), to) if is_plain else values.cast(to)
    if types.is_boolean(to):
        return pc.not_equal(values, pa.scalar(0, have))
    if types.is_boolean(have):
        return values.cast(pa.int8()).cast(to)
    if types.is_decimal(have):
        return _of_decimal(values, to, ansi)
    if types.is_decimal(to):
        return _to_decimal(values, to, ansi)
    if types.is_integer(to):
        return _whole(values, to, ansi)
    return values.cast(to, safe=False)


def try_cast(values: Any, to: pa.DataType, zone: str = "UTC") -> Any:
    """Casts an array as with ANSI, and makes NULL of what does not fit."""
    return forgive(cast, values, to, "ansi", zone)


def _of_instants(values: Any, to: pa.DataType, ansi: bool, zone: str) -> Any:
    have, types = values.type, pa.types
    if types.is_string(to):
        return show(values, zone)
    if types.is_floating(to):
        return to_double(values).cast(to, safe=False)
    if types.is_integer(to):
        try:
            return _whole(to_seconds(values), to, True)
        except RowsError as error:  # NULL without ANSI, where other numbers wrap
            if ansi:
                raise
            return error.values
    if types.is_timestamp(have) and have.tz is not None:
        values = local(values, zone)
    if types.is_date(to):
        return values.cast(to) if types.is_date(have) else _days(values)
    far = true_rows(_is_beyond(values)) if types.is_date(have) else np.zeros(1, np.bool_)
    values = set_nulls(values, far).cast(pa.timestamp("us"))
    return refuse(far, values if to.tz is None else instant(values, zone), "the timestamp is too large")


def _is_beyond(days: Any) -> Any:
    """Returns whether dates begin beyond the 64 bits of a timestamp."""
    numbers, most = days.cast(pa.int32()), (1 << 63) // (DAY_SECONDS * 10**6)
    return pc.or_(pc.less(numbers, -most), pc.greater(numbers, most))


def _days(values: Any) -> Any:
    """Returns the dates of timestamps. Arrow's own floor overflows near both ends of 64 bits."""
    number = pc.fill_null(values.cast(pa.timestamp("us")).cast(pa.int64()), 0).to_numpy() // (DAY_SECONDS * 10**6)
    null = np.asarray(values.is_null().to_numpy(zero_copy_only=False))
    return pa.array(number.astype(np.int32), mask=null).cast(pa.date32())


def _whole(values: Any, to: pa.DataType, ansi: bool) -> Any:
    """Casts numbers to whole numbers, and cuts fractions off.

    With ANSI, numbers that are too large are refused. Otherwise integers wrap, and floats are
    clipped to 32 or 64 bits before they wrap.
    """
    if pa.types.is_integer(values.type):
        if not ansi or values.type.bit_width <= to.bit_width:
            return values.cast(to, safe=False)
        least, most = (pa.scalar(end, values.type) for end in _ends(to))
        return _cast_within(values, least, most, to)
    # Clip floats to 32 or 64 bits
    first = to if to.bit_width >= 32 else pa.int32()
    least, most = -(2.0 ** (first.bit_width - 1)), 2.0 ** (first.bit_width - 1)
    null = np.asarray(values.is_null().to_numpy(zero_copy_only=False))
    numbers = np.trunc(pc.fill_null(values, 0.0).to_numpy(zero_copy_only=False).astype(np.float64))
    low, high = numbers <= least, numbers >= most
    inside = np.where(low | high | np.isnan(numbers), 0.0, numbers).astype(np.int64)
    inside[low], inside[high] = _ends(first)
    # Refuse values beyond the type, or let them wrap
    if ansi:
        lowest, highest = map(float, _ends(to))  # 2^63 fits 64 bits, since Spark compares doubles, too
        beyond = ~((numbers >= lowest) & (numbers <= highest))
        whole = pa.array(inside, mask=null | beyond).cast(to, safe=False)
        return refuse(beyond, whole, f"a value does not fit {to}")
    return pa.array(inside, mask=null).cast(to, safe=False)


def _ends(type: pa.DataType) -> tuple[int, int]:
    """Returns the least and the greatest whole number of a type."""
    return -(1 << type.bit_width - 1), (1 << type.bit_width - 1) - 1


def _cast_within(values: Any, least: Any, most: Any, to: pa.DataType) -> Any:
    """Casts values between ``least`` and ``most``, and refuses others."""
    inside = pc.and_(pc.greater_equal(values, least), pc.less_equal(values, most))
    beyond = true_rows(pc.invert(inside))
    return refuse(beyond, set_nulls(values, beyond).cast(to), f"a value does not fit {to}")


def _of_decimal(values: Any, to: pa.DataType, ansi: bool) -> Any:
    if pa.types.is_floating(to):
        return values.cast(pa.string()).cast(pa.float64()).cast(to, safe=False)
    if pa.types.is_decimal(to):
        return _to_decimal(values, to, ansi)
    whole = pc.round(with_another_digit(values), 0, "towards_zero").cast(pa.decimal128(38, 0))
    if ansi:
        least, most = (pa.scalar(Decimal(end), whole.type) for end in _ends(to))
        return _cast_within(whole, least, most, to)
    with refusing(EventError, f"a value does not fit {to}"):
        return _whole(_wrap_decimals(whole).cast(pa.int64()), to, False)


def _wrap_decimals(whole: Any) -> Any:
    """Returns whole decimals that wrap beyond 64 bits."""
    least, most = (pa.scalar(Decimal(end), pa.decimal128(38, 0)) for end in (-(2**63), 2**63 - 1))
    inside = pc.and_(pc.greater_equal(whole, least), pc.less_equal(whole, most))
    large = np.flatnonzero(pc.invert(pc.fill_null(inside, True)).to_numpy(zero_copy_only=False))
    if not len(large):
        return whole
    values = [(int(value) + 2**63) % 2**64 - 2**63 for value in whole.take(pa.array(large)).to_pylist()]
    mask = np.zeros(len(whole), np.bool_)
    mask[large] = True
    return pc.replace_with_mask(whole, pa.array(mask), pa.array(values, whole.type))


def with_another_digit(values: Any) -> Any:
    """Returns decimals in a type with one more digit, which rounding may need; others unchanged.

    Arrow refuses results that do not fit, and ``ceil`` of pyarrow 26 turns them into 0.
    """
    have = values.type
    if not pa.types.is_decimal(have):
        return values
    wider = pa.decimal128 if have.precision < 38 else pa.decimal256
    return values.cast(wider(have.precision + 1, have.scale))


def _to_decimal(values: Any, to: pa.DataType, ansi: bool) -> Any:
    """Casts to a decimal, rounding half up. Values with too many digits are NULL, or refused."""
    if pa.types.is_integer(values.type):
        values = values.cast(pa.decimal128(20, 0))
    have = values.type
    if have.scale > to.scale:
        values = pc.round(with_another_digit(values), to.scale, "half_towards_infinity")
    elif to.precision - to.scale >= have.precision - have.scale:
        return values.cast(to)
    whole = to.precision - to.scale
    if whole < values.type.precision - values.type.scale:
        large = true_rows(pc.greater_equal(pc.abs(values), pa.scalar(10**whole, values.type)))
        fitting = set_nulls(values, large).cast(to)
        return refuse(large, fitting, f"a value does not fit {to}") if ansi else fitting
    return values.cast(to)


def _of_text(values: Any, to: pa.DataType, ansi: bool) -> Any:
    parsed = map_distinct(values, lambda text: _read(text.strip(_SPACES), to, ansi), to)
    if not ansi:
        return parsed
    wrong = pc.and_(pc.is_valid(values), pc.is_null(parsed))
    return refuse(wrong, parsed, lambda row: f"{show_value(values[row].as_py())} does not fit {to}")


def _read(text: str, to: pa.DataType, ansi: bool) -> Any:
    """Returns the value of a text, None if the text has no value of the type."""
    if pa.types.is_boolean(to):
        return True if text.lower() in _TRUE else False if text.lower() in _FALSE else None
    if pa.types.is_floating(to):
        if _HEXADECIMAL.fullmatch(text):
            value = _of_hexadecimal(text.rstrip("dDfF"))
            return float(np.float32(value)) if to.bit_width == 32 else value
        word = _WORDS.get(text.lower()) or ("nan" if text in ("+NaN", "-NaN") else None)
        if word is None and not _DOUBLE.fullmatch(text):
            return None
        plain = word or text.rstrip("dDfF")
        return float(np.float32(plain)) if to.bit_width == 32 else float(plain)
    if pa.types.is_decimal(to):
        return _read_decimal(text, to)
    pattern = _WHOLE if ansi else _WHOLE_PART
    if not pattern.fullmatch(text):
        return None
    whole = text.partition(".")[0]
    digits = whole.lstrip("+-").lstrip("0")
    if len(digits) > 19:  # of 64 bits; Python's own limit is some thousands
        return None
    value = int(digits or "0") * (-1 if whole.startswith("-") else 1)
    most = 1 << to.bit_width - 1
    return value if -most <= value < most else None


def _read_decimal(text: str, to: pa.DataType) -> Decimal | None:
    """Returns the number of a text, rounded half up; None if the text has none that fits."""
    found = _DECIMAL.fullmatch(text)
    if found is None or len(found[2] or "") > _LONGEST:
        return None
    scale = len(found[1] or "") - int(found[2] or 0)  # of the BigDecimal that Java reads
    if not -_MOST_SCALE <= scale <= _MOST_SCALE:
        return None
    value = Decimal(text)
    if value.adjusted() >= to.precision - to.scale:
        return Decimal(0) if value.is_zero() else None
    rounded = value.quantize(Decimal(1).scaleb(-to.scale), context=_HALF_UP)
    return rounded if rounded.adjusted() < to.precision - to.scale or rounded.is_zero() else None


def _of_hexadecimal(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return -np.inf if text.startswith("-") else np.inf
