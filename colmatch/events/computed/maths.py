"""Functions of numbers and days by NumPy, with the results of Spark.

Each takes arrays without NULLs, and returns results and where they are NULL.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from colmatch.events.computed.failed import refuse
from colmatch.kernels.layout import Bools

Value = Any  # a pyarrow.Array, or a pyarrow.Scalar where it is the same in all rows
_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def vectorised(function: Callable[..., tuple[Any, Any]], type: pa.DataType | None) -> Callable[..., Value]:
    """Returns a function on Arrow's values. Its result is NULL where an argument is.

    type : of the result; None for that of the first argument
    """

    def run(*values: Any) -> Value:
        arrow = [value for value in values if isinstance(value, (pa.Array, pa.Scalar))]
        constants = values[len(arrow) :]
        rows = max(len(value) for value in arrow if isinstance(value, pa.Array))
        arrays = [pa.repeat(value, rows) if isinstance(value, pa.Scalar) else value for value in arrow]
        null = np.zeros(rows, np.bool_)
        numbers = []
        for array in arrays:
            if pa.types.is_date(array.type):
                array = array.cast(pa.int32())
            elif pa.types.is_timestamp(array.type):
                array = array.cast(pa.int64())
            null |= array.is_null().to_numpy(zero_copy_only=False)
            numbers.append(pc.fill_null(array, 1).to_numpy(zero_copy_only=False))
        with np.errstate(all="ignore"):
            found, missing = function(*numbers, *constants)
        to = arrow[0].type if type is None else type
        large = np.zeros(rows, np.bool_)
        if pa.types.is_date(to):
            large = np.broadcast_to((found < -(2**31)) | (found >= 2**31), rows) & ~(null | missing)
            found = np.where(large, 0, found)
        made = pa.array(found, mask=null | missing | large, from_pandas=False)
        made = made if made.type == to else made.cast(pa.int32() if pa.types.is_date(to) else to, safe=False).cast(to)
        return refuse(large, made, "the result is too large")

    return run


def _plain(function: Callable[..., Any]) -> Callable[..., tuple[Any, Any]]:
    return lambda *values: (function(*values), False)


def _above(least: float, function: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, Bools]]:
    """Returns a logarithm, which is NULL up to ``least``."""
    return lambda values: (function(values), values <= least)


def _pow(base: Any, exponent: Any) -> tuple[Any, Any]:
    """Returns powers. As in Java, 1 to the power of NaN is NaN, and so is 1 or -1 of infinity."""
    undefined = np.isnan(exponent) | ((np.abs(base) == 1) & np.isinf(exponent))
    return np.where(undefined, np.nan, np.power(base, exponent)), False


def _shift(is_left: bool) -> Callable[[Any, Any], tuple[Any, Any]]:
    """Returns a shift by the low bits of a number, as Java has it."""

    def shift(values: Any, count: Any) -> tuple[Any, Any]:
        by = (count & (8 * values.dtype.itemsize - 1)).astype(values.dtype)
        return (values << by if is_left else values >> by), False

    return shift


def _shift_unsigned(values: Any, count: Any) -> tuple[Any, Any]:
    unsigned = values.view(f"u{values.dtype.itemsize}")
    by = (count & (8 * values.dtype.itemsize - 1)).astype(unsigned.dtype)
    return (unsigned >> by).view(values.dtype), False


def _bit_count(values: Any) -> tuple[Any, Any]:
    return np.bitwise_count(values.astype(np.int64).view(np.uint64)).astype(np.int32), False


def _cbrt(values: Any) -> Any:
    """Returns cube roots, bit by bit as Java's library computes them (fdlibm)."""
    x = np.abs(values)
    is_small = x < 2.0**-1022
    high = ((np.where(is_small, x * 2.0**54, x)).view(np.int64) >> 32) // 3 + np.where(
        is_small, 696_219_795, 715_094_163
    )
    t = (high << 32).view(np.float64)
    r = t * t / x
    s = 19.0 / 35.0 + r * t
    t = t * (5.0 / 14.0 + 45.0 / 28.0 / (s + 99.0 / 70.0 + -864.0 / 1225.0 / s))
    t = (((t.view(np.int64) >> 32) + 1) << 32).view(np.float64)
    r = x / (t * t)
    t = t + t * ((r - t) / (t + t + r))
    return np.where((x == 0) | ~np.isfinite(x), values, np.copysign(t, values))


def _bit_get(values: Any, place: int) -> tuple[Any, Any]:
    return (values >> place & 1).astype(np.int8), False


def _log(base: Any, values: Any) -> tuple[Any, Any]:
    return np.log(values) / np.log(base), (base <= 0.0) | (values <= 0.0)


def _factorial(numbers: Any) -> tuple[Any, Any]:
    beyond = (numbers < 0) | (numbers > 20)
    return _FACTORIALS[np.where(beyond, 0, numbers)], beyond


def _bitmap_place(numbers: Any) -> tuple[Any, Any]:
    return np.where(numbers > 0, numbers - 1, -numbers) % _BITMAP, False


def _bitmap(numbers: Any) -> tuple[Any, Any]:
    whole = numbers.astype(np.int64)
    return np.where(whole > 0, 1 + (whole - 1) // _BITMAP, (whole + _BITMAP - 1) // _BITMAP), False


def _add_months(days: Any, months: Any) -> tuple[Any, Any]:
    """Adds months to days; the last day of a shorter month takes the place of one that it lacks."""
    month = days.astype("M8[D]").astype("M8[M]")
    day = days - month.astype("M8[D]").astype(np.int64)
    return _day_of(month + months.astype("m8[M]"), day), False


def _day_of(month: Any, day: Any) -> Any:
    first, after = (m.astype("M8[D]").astype(np.int64) for m in (month, month + np.timedelta64(1, "M")))
    return first + np.minimum(day, after - first - 1)


def _last_day(days: Any) -> tuple[Any, Any]:
    return _day_of(days.astype("M8[D]").astype("M8[M]"), np.int64(31)), False


def weekday(name: str) -> int | None:
    """Returns the number of a day of the week, 0 for Monday; None if it has no such name."""
    plain = name.lower()
    return next((i for i, full in enumerate(_NAMES) if plain in (full, full[:3], full[:2])), None)


def _next_day(days: Any, name: str) -> tuple[Any, Any]:
    """Returns the first later day with a name; NULL if it is the name of none."""
    number = weekday(name)
    if number is None:
        return days, True
    return days + 1 + (number - (days.astype(np.int64) + 3) - 1) % 7, False


def _make_date(year: Any, month: Any, day: Any) -> tuple[Any, Any]:
    """Returns days; NULL where there is none, or the year is beyond five million."""
    wrong = (month < 1) | (month > 12) | (day < 1) | (day > 31) | (np.abs(year.astype(np.int64)) > 5_000_000)
    months = (np.where(wrong, 1970, year).astype(np.int64) - 1970) * 12 + np.where(wrong, 1, month) - 1
    first = months.astype("M8[M]")
    found = first.astype("M8[D]").astype(np.int64) + np.where(wrong, 1, day) - 1
    return found, wrong | (found.astype("M8[D]").astype("M8[M]") != first)


_BITMAP = 32_768  # bits of a bitmap
_FACTORIALS = np.array([math.factorial(n) for n in range(21)], np.int64)
INT, BIGINT, DOUBLE, DATE = pa.int32(), pa.int64(), pa.float64(), pa.date32()
MATHS: dict[str, tuple[Callable[..., tuple[Any, Any]], pa.DataType | None]] = {
    **{name: (_plain(getattr(np, name)), DOUBLE)
       for name in ("exp", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh", "degrees", "radians", "hypot", "rint")},
    "cbrt": (_plain(_cbrt), DOUBLE),
    "asin": (_plain(np.arcsin), DOUBLE), "acos": (_plain(np.arccos), DOUBLE), "atan": (_plain(np.arctan), DOUBLE),
    "atan2": (_plain(lambda y, x: np.arctan2(y + 0.0, x + 0.0)), DOUBLE), "pow": (_pow, DOUBLE),
    "ln": (_above(0.0, np.log), DOUBLE), "log10": (_above(0.0, np.log10), DOUBLE), "log2": (_above(0.0, np.log2), DOUBLE),
    "acosh": (_plain(np.arccosh), DOUBLE), "asinh": (_plain(np.arcsinh), DOUBLE),
    "atanh": (_plain(np.arctanh), DOUBLE), "cot": (_plain(lambda x: 1.0 / np.tan(x)), DOUBLE),
    "sec": (_plain(lambda x: 1.0 / np.cos(x)), DOUBLE), "csc": (_plain(lambda x: 1.0 / np.sin(x)), DOUBLE), "log": (_log, DOUBLE),
    "factorial": (_factorial, BIGINT), "bit_get": (_bit_get, pa.int8()), "bitmap_bit_position": (_bitmap_place, BIGINT),
    "bitmap_bucket_number": (_bitmap, BIGINT),
    "log1p": (_above(-1.0, np.log1p), DOUBLE),
    "shiftleft": (_shift(True), None), "shiftright": (_shift(False), None), "shiftrightunsigned": (_shift_unsigned, None),
    "bit_count": (_bit_count, INT),
    "add_months": (_add_months, DATE), "last_day": (_last_day, DATE), "next_day": (_next_day, DATE), "make_date": (_make_date, DATE),
    "unix_date": (_plain(np.asarray), INT), "date_from_unix_date": (_plain(np.asarray), DATE),
    "unix_micros": (_plain(np.asarray), BIGINT), "unix_millis": (_plain(lambda at: at // 1000), BIGINT),
    "unix_seconds": (_plain(lambda at: at // 1_000_000), BIGINT),
    "unix_timestamp": (_plain(lambda at: np.sign(at) * (np.abs(at) // 1_000_000)), BIGINT),
}  # fmt: skip
