"""Parts of dates and timestamps, as Spark has them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from colmatch.errors import EventError

DAY_SECONDS = 86_400
MOST_YEARS = 32_000  # before and after 1970: Arrow has 16 bits for a year
_MOST = {pa.date32(): MOST_YEARS * 365, pa.timestamp("us"): MOST_YEARS * 365 * DAY_SECONDS * 10**6}
PARTS: dict[str, Callable[[Any], Any]] = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "day": pc.day,
    "dayofyear": pc.day_of_year,
    "dayofweek": partial(pc.day_of_week, count_from_zero=False, week_start=7),
    "weekday": pc.day_of_week,
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
}
_CLOCK = ("hour", "minute", "second", "millisecond", "microsecond")


def part_of(name: str) -> Callable[..., Any]:
    """Returns the function that takes a part of instants, in a zone if they have one."""
    function = PARTS[name]

    def part(values: Any, zone: str | None = None) -> Any:
        check(values)
        if zone is not None:
            values = local(values, zone)  # Arrow's own seconds are those of UTC
        return function(values).cast(pa.int32())

    return part


def check(values: Any) -> None:
    """Refuses years that Arrow has no number for.

    Raises
    ------
    EventError : some value is 32,000 years from 1970, or more
    """
    days = pa.types.is_date(values.type)
    ends = pc.min_max(values.cast(pa.int32() if days else pa.int64()))
    most = _MOST[pa.date32() if days else pa.timestamp("us")]
    low, high = ends["min"].as_py(), ends["max"].as_py()
    if low is not None and (low < -most or high > most):
        raise EventError("there are dates more than 32,000 years from 1970, whose parts cannot be computed")


def local(values: Any, zone: str) -> Any:
    """What clocks of a zone show, as timestamps without a zone."""
    if zone in ("UTC", "+00:00"):
        return values.cast(pa.timestamp("us"))
    return pc.local_timestamp(values.cast(pa.timestamp("us", zone)))


def instant(values: Any, zone: str) -> Any:
    """The instants at which clocks of a zone show something.

    Of two it is the first. Where clocks are set forward, it is as long behind the gap as the value
    is within it.
    """
    if zone[0] in "+-":
        minutes = (int(zone[1:3]) * 60 + int(zone[4:])) * (-1 if zone[0] == "-" else 1)
        shifted = pc.subtract(values.cast(pa.int64()), pa.scalar(minutes * 60 * 10**6, pa.int64()))
        return shifted.cast(pa.timestamp("us", "UTC"))
    given = pc.assume_timezone(values, zone, ambiguous="earliest", nonexistent="earliest")
    found = local(given, zone)
    if not pc.all(pc.equal(found, values)).as_py() and given.null_count != len(given):
        after = pc.assume_timezone(values, zone, ambiguous="earliest", nonexistent="latest")
        # "earliest" is the last microsecond before a gap, "latest" the first behind it
        within = pc.subtract(pc.subtract(values.cast(pa.int64()), found.cast(pa.int64())), 1)
        moved = pc.add(after.cast(pa.int64()), within).cast(after.type)
        given = pc.if_else(pc.equal(found, values), given, moved)
    return given.cast(pa.timestamp("us", "UTC"))


def date_trunc(values: Any, unit: str, zone: str) -> Any:
    """The beginning of the unit that an instant is in, by the clocks of a zone."""
    check(values)
    clocks = local(values, zone)
    floor = pc.floor_temporal(clocks, unit=unit)
    if unit in _CLOCK or unit == "day":
        into = pc.subtract(clocks.cast(pa.int64()), floor.cast(pa.int64()))
        found = pc.subtract(values.cast(pa.int64()), into).cast(pa.timestamp("us", "UTC"))
        kept = pc.equal(local(found, zone), floor)
        if isinstance(kept, pa.Scalar) or pc.all(kept).as_py() is not False:
            return found
        return pc.if_else(kept, found, instant(floor, zone))
    return instant(floor, zone)
