"""Sums and differences of dates, timestamps and intervals, with the results of Spark.

Intervals are microseconds or months. Days of a zone have its summer time, so they are counted on
its clocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from colmatch.errors import show_value
from colmatch.events.computed.dates import instant, local
from colmatch.events.computed.failed import array_of, refuse, set_nulls
from colmatch.kernels.layout import I64, Bools
from colmatch.text.moments import read_zone

DAY = 86_400 * 10**6  # microseconds
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


def _numbers(values: Any) -> tuple[I64, Bools]:
    """Returns the numbers of values, and where they are NULL."""
    array = array_of(values)
    if pa.types.is_date(array.type):
        array = array.cast(pa.int32())
    null = np.asarray(array.is_null().to_numpy(zero_copy_only=False))
    return array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False), null


def _made(numbers: I64, null: Bools, wrong: Bools, type: pa.DataType) -> Any:
    """Returns values of a type. Those that are too large are refused."""
    found = pa.array(np.where(wrong, 0, numbers), mask=null)
    found = (found.cast(pa.int32()) if pa.types.is_date(type) else found).cast(type)
    return refuse(wrong & ~null, set_nulls(found, wrong & ~null), "the result is too large")


def _sum(one: I64, other: I64) -> tuple[I64, Bools]:
    """Returns sums, and which are too large."""
    total = one + other
    return total, ((one ^ total) & (other ^ total)) < 0


def add_micros(values: Any, amounts: Any, zone: str = "UTC") -> Any:
    """Adds microseconds to timestamps; whole days among them are days on the clocks of a zone."""
    numbers, null = _numbers(values)
    more, more_null = _numbers(amounts)
    rest = more
    wrong = np.zeros(np.broadcast_shapes(numbers.shape, more.shape), np.bool_)
    null = null | more_null
    if values.type.tz is not None and zone[0] not in "+-" and zone != "UTC":
        days = np.sign(more) * (np.abs(more) // DAY)
        if days.any():
            rest = more - days * DAY
            clocks = local(pa.array(numbers).cast(values.type), zone).cast(pa.int64()).to_numpy()
            moved, far = _sum(clocks, days * DAY)
            there = instant(pa.array(np.where(far, 0, moved)).cast(pa.timestamp("us")), zone)
            # An hour that clocks show twice stays the one that it was
            kept = days == 0
            numbers = np.where(kept, numbers, _same_offset(there, numbers, clocks, np.where(far, 0, moved), zone))
            wrong = wrong | far
    total, large = _sum(numbers, rest)
    return _made(total, null, wrong | large, values.type)


def _same_offset(there: pa.Array, numbers: I64, clocks: I64, moved: I64, zone: str) -> I64:
    """Returns instants of local times, with the offset from before where it is right, too."""
    found = there.cast(pa.int64()).to_numpy()
    same = moved - (clocks - numbers)
    shown = local(pa.array(same).cast(pa.timestamp("us", "UTC")), zone).cast(pa.int64()).to_numpy()
    return np.where(shown == moved, same, found)


def add_months(values: Any, amounts: Any, zone: str = "UTC") -> Any:
    """Adds months to timestamps on the clocks of a zone; a missing day becomes the month's last."""
    numbers, null = _numbers(values)
    more, more_null = _numbers(amounts)
    is_zoned = values.type.tz is not None
    clocks = local(pa.array(numbers).cast(values.type), zone).cast(pa.int64()).to_numpy() if is_zoned else numbers
    days = clocks // DAY
    month = days.astype("M8[D]").astype("M8[M]")
    day = days - month.astype("M8[D]").astype(np.int64)
    to = month + more.astype("m8[M]")
    first, after = (m.astype("M8[D]").astype(np.int64) for m in (to, to + np.timedelta64(1, "M")))
    moved_day = first + np.minimum(day, after - first - 1)
    wrong = np.abs(moved_day) > _MOST // DAY - 1
    moved = np.where(wrong, 0, moved_day) * DAY + clocks % DAY
    if is_zoned:
        there = instant(pa.array(moved).cast(pa.timestamp("us")), zone)
        moved = np.where(more == 0, numbers, _same_offset(there, numbers, clocks, moved, zone))
    return _made(moved, null | more_null, wrong, values.type)


def micros_between(later: Any, sooner: Any) -> Any:
    """Returns the microseconds from one timestamp or date to another; beyond 64 bits, the most."""
    one, null = _numbers(later)
    other, other_null = _numbers(sooner)
    difference = one - other
    if pa.types.is_date(later.type):
        far = np.abs(difference) > _MOST // DAY
        difference = difference * DAY
    else:
        far = ((one ^ other) & (one ^ difference)) < 0
    difference = np.where(far, np.where(one < other, _LEAST, _MOST), difference)
    return pa.array(difference, mask=np.broadcast_to(null | other_null, difference.shape))


def whole_units(micros: Any, factor: int) -> Any:
    """Returns how many whole units a difference has."""
    numbers, null = _numbers(micros)
    return pa.array(np.sign(numbers) * (np.abs(numbers) // factor), mask=null)


def whole_months(later: Any, sooner: Any, factor: int) -> Any:
    """Returns how many whole months lie between local times, divided by ``factor``."""
    one, null = _numbers(later)
    other, other_null = _numbers(sooner)
    # As Java counts: a day that is not whole is left out first, then days of 32 to a month
    day, other_day, time, other_time = one // DAY, other // DAY, one % DAY, other % DAY
    day = day - ((day > other_day) & (time < other_time)) + ((day < other_day) & (time > other_time))
    packed = _packed(day) - _packed(other_day)
    months = np.sign(packed) * (np.abs(packed) // 32)
    return pa.array(np.sign(months) * (np.abs(months) // factor), mask=np.broadcast_to(null | other_null, months.shape))


def _packed(days: I64) -> I64:
    """Returns days as 32 times their month, and the day of the month."""
    month = days.astype("M8[D]").astype("M8[M]")
    return month.astype(np.int64) * 32 + days - month.astype("M8[D]").astype(np.int64)


def months_between(later: Any, sooner: Any, rounded: str, zone: str) -> Any:
    """Returns months as Spark counts them: a month of 31 days for what is left.

    rounded : "true" rounds to 8 digits
    zone : of the clocks that say days and months
    """
    one, null = _numbers(later)
    other, other_null = _numbers(sooner)
    month, day, last, second = _days_of_months(one, zone)
    other_month, other_day, other_last, other_second = _days_of_months(other, zone)
    months = month - other_month
    whole = (day == other_day) | (last & other_last)
    seconds = (day - other_day) * 86_400 + second - other_second
    found = months + np.where(whole, 0.0, seconds / (31 * 86_400))
    if rounded == "true":
        found = np.where(whole, found, np.floor(found * 1e8 + 0.5) / 1e8)
    return pa.array(found, mask=np.broadcast_to(null | other_null, found.shape))


def _days_of_months(numbers: I64, zone: str) -> tuple[Any, Any, Any, Any]:
    """Returns month and day of instants, whether it is the last, and seconds since it began."""
    clocks = local(pa.array(numbers).cast(pa.timestamp("us", "UTC")), zone).cast(pa.int64()).to_numpy()
    days = clocks // DAY
    month = days.astype("M8[D]").astype("M8[M]")
    day = days - month.astype("M8[D]").astype(np.int64)
    after = (month + np.timedelta64(1, "M")).astype("M8[D]").astype(np.int64)
    began = instant(pa.array(days * DAY).cast(pa.timestamp("us")), zone).cast(pa.int64()).to_numpy()
    return month.astype(np.int64), day, days == after - 1, (numbers - began) // 10**6


def check_zone(name: str) -> str:
    """Returns the name of a zone in Arrow. Raises ValueError: there is no such zone."""
    zone = read_zone(name)
    if zone is None or (zone[0] in "+-" and not zone.endswith(":00")):
        raise ValueError(f"{show_value(name)} is not a known time zone")
    return zone[:6] if zone[0] in "+-" else zone


def from_utc(values: Any, zone: str) -> Any:
    """Returns timestamps that show in UTC what the clocks of a zone showed."""
    return local(values, check_zone(zone)).cast(pa.int64()).cast(pa.timestamp("us", "UTC"))


def to_utc(values: Any, zone: str) -> Any:
    """Returns the instants at which clocks of a zone showed what timestamps show in UTC."""
    return instant(values.cast(pa.int64()).cast(pa.timestamp("us")), check_zone(zone))


INTERVALS: dict[str, Callable[..., Any]] = {
    "add_micros": add_micros,
    "add_months_time": add_months,
    "micros_between": micros_between,
    "whole_units": whole_units,
    "whole_months": whole_months,
    "months_between": months_between,
    "from_utc_timestamp": from_utc,
    "to_utc_timestamp": to_utc,
}
