"""Parts of dates and timestamps, as in Spark.

Arrow differs from Spark in zones with seconds in their offsets, and when clocks are set forward or
back. Both are corrected here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from colmatch.events.computed.failed import refuse, set_nulls, true_rows
from colmatch.events.computed.late import LATE, compute_local, instants_of
from colmatch.kernels.layout import I64

DAY_SECONDS = 86_400
MOST_YEARS = 32_000  # before and after 1970: Arrow has 16 bits for a year
_MOST = {pa.date32(): MOST_YEARS * 365, pa.timestamp("us"): MOST_YEARS * 365 * DAY_SECONDS * 10**6}
LAST = 2**63 - 1 - DAY_SECONDS * 10**6  # microseconds: a zone does not move it out of 64 bits
PARTS: dict[str, Callable[[Any], Any]] = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "day": pc.day,
    "dayofyear": pc.day_of_year,
    "dayofweek": partial(pc.day_of_week, count_from_zero=False, week_start=7),
    "weekday": pc.day_of_week,
    "week": pc.iso_week,
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
}
_CLOCK = ("hour", "minute", "second", "millisecond", "microsecond")


def within_years(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that fails in rows beyond Arrow's years: over 32,000 years from 1970."""

    @wraps(function)
    def run(values: Any, *constants: Any) -> Any:
        days = pa.types.is_date(values.type)
        numbers = values.cast(pa.int32() if days else pa.int64())
        ends, most = pc.min_max(numbers), _MOST[pa.date32() if days else pa.timestamp("us")]
        low, high = ends["min"].as_py(), ends["max"].as_py()
        if low is None or (low >= -most and high <= most):
            return function(values, *constants)
        far = true_rows(pc.or_(pc.less(numbers, -most), pc.greater(numbers, most)))
        message = "the date is more than 32,000 years from 1970: its parts cannot be computed"
        return refuse(far, function(set_nulls(values, far), *constants), message)

    return run


def part_of(name: str) -> Callable[..., Any]:
    """Returns a function for a part of dates or timestamps, in a zone if they have one."""
    function = PARTS[name]

    def part(values: Any, zone: str | None = None) -> Any:
        if zone is not None:
            values = local(values, zone)  # Arrow's own seconds are in UTC
        return function(values).cast(pa.int32())

    return within_years(part)


def local(values: Any, zone: str) -> Any:
    """Returns the local times of a zone, as timestamps without a zone.

    Instants within a day of either end of 64 bits are moved to a day from it.
    """
    if zone in ("UTC", "+00:00"):
        return values.cast(pa.timestamp("us"))
    return _convert_by_age(
        values, lambda some: pc.local_timestamp(some.cast(pa.timestamp("us", zone))), compute_local, zone, None
    )


def _convert_by_age(
    values: Any, early: Callable[[Any], Any], late: Callable[..., I64], zone: str, to: str | None
) -> Any:
    """Converts timestamps with ``early``, or from 2038 on in zones of regions with ``late``."""
    number = pc.fill_null(values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64()), 0).to_numpy()
    is_late = (number >= LATE) if zone[0] not in "+-" else np.zeros(len(number), bool)
    clipped = np.clip(number, -LAST, LAST)
    if not is_late.any() and (clipped == number).all():
        return early(values)
    null = np.asarray(values.is_null().to_numpy(zero_copy_only=False))
    sooner = pa.array(np.where(is_late, 0, clipped)).cast(pa.timestamp("us", values.type.tz))
    converted = early(sooner).cast(pa.int64()).to_numpy().copy()
    converted[is_late] = late(clipped[is_late], zone)
    return pa.array(converted, mask=null).cast(pa.timestamp("us", to))


def instant(values: Any, zone: str) -> Any:
    """Returns the instants of local times in a zone.

    The first of two instants counts. A time that clocks skip moves forward by the length of
    the gap.
    """
    if zone[0] in "+-":
        minutes = (int(zone[1:3]) * 60 + int(zone[4:])) * (-1 if zone[0] == "-" else 1)
        moved = pa.scalar(minutes * 60 * 10**6, pa.int64())

        def shifted(some: Any) -> Any:
            return pc.subtract(some.cast(pa.int64()), moved).cast(pa.timestamp("us", "UTC"))

        return _convert_by_age(values, shifted, instants_of, zone, "UTC")
    return _convert_by_age(values, lambda some: _early_instant(some, zone), instants_of, zone, "UTC")


def _early_instant(values: Any, zone: str) -> Any:
    instants = pc.assume_timezone(values, zone, ambiguous="earliest", nonexistent="earliest")
    shown = pc.local_timestamp(instants)
    if not pc.all(pc.equal(shown, values)).as_py() and instants.null_count != len(instants):
        after = pc.assume_timezone(values, zone, ambiguous="earliest", nonexistent="latest")
        # "earliest" is the last microsecond before a gap, "latest" the first behind it
        within = pc.subtract(pc.subtract(values.cast(pa.int64()), shown.cast(pa.int64())), 1)
        moved = pc.add(after.cast(pa.int64()), within).cast(after.type)
        instants = pc.if_else(pc.equal(shown, values), instants, moved)
    return instants.cast(pa.timestamp("us", "UTC"))


@within_years
def seconds_of(values: Any, zone: str | None = None) -> Any:
    """Returns the seconds of timestamps with their fraction, as decimals."""
    if zone is not None:
        values = local(values, zone)
    micros = pc.subtract(values, pc.floor_temporal(values, unit="minute")).cast(pa.int64())
    micro = pa.scalar("0.000001").cast(pa.decimal128(7, 6))  # made here, since the first scalar imports pandas
    return pc.multiply(micros.cast(pa.decimal128(19, 0)), micro).cast(pa.decimal128(8, 6))


@within_years
def date_trunc(values: Any, unit: str, zone: str) -> Any:
    """Returns the start of the unit that an instant is in, in the local time of a zone."""
    clocks = local(values, zone)
    floor = pc.floor_temporal(clocks, unit=unit)
    if unit in _CLOCK or unit == "day":
        into = pc.subtract(clocks.cast(pa.int64()), floor.cast(pa.int64()))
        start = pc.subtract(values.cast(pa.int64()), into).cast(pa.timestamp("us", "UTC"))
        kept = pc.equal(local(start, zone), floor)
        if pc.all(kept).as_py() is not False:
            return start
        return pc.if_else(kept, start, instant(floor, zone))
    return instant(floor, zone)
