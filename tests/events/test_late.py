"""What clocks show from 2038 on, against ``zoneinfo``, and at both ends of 64 bits."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.events.computed.dates import instant, local
from colmatch.events.computed.late import LATE, offsets_of

SECOND = 10**6
ZONES = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "Asia/Kolkata",
    "America/Santiago",
]
EPOCH = dt.datetime(1970, 1, 1)


def some_times(zone: str, count: int = 500) -> list[int]:
    """Microseconds in 1900 to 9990, many of them near a change of clocks."""
    rng = np.random.default_rng(5)
    change = offsets_of(zone).change[:200] if len(offsets_of(zone).change) else np.array([LATE // SECOND])
    near = rng.choice(change, count) * SECOND + rng.integers(-3 * 3600, 3 * 3600, count) * SECOND // 2
    wide = rng.integers(-2_208_988_800, 253_000_000_000, count) * SECOND + 7
    return [*near.tolist(), *wide.tolist(), LATE - 1, LATE, 2_140_000_000 * SECOND]


@pytest.mark.parametrize("zone", ZONES)
def test_clocks_are_those_of_zoneinfo(zone: str) -> None:
    times, info = some_times(zone), ZoneInfo(zone)
    found = local(pa.array([*times, None], pa.timestamp("us", "UTC")), zone).cast(pa.int64()).to_pylist()
    assert found.pop() is None
    for time, clock in zip(times, found, strict=True):
        shown = (EPOCH + dt.timedelta(microseconds=time)).replace(tzinfo=dt.UTC).astimezone(info)
        assert EPOCH + dt.timedelta(microseconds=clock) == shown.replace(tzinfo=None), time


@pytest.mark.parametrize("zone", ZONES)
def test_instants_are_those_of_zoneinfo(zone: str) -> None:
    """Of two the first; from within a gap, as far behind it."""
    info = ZoneInfo(zone)
    clocks = [time + offset * 3600 * SECOND for time in some_times(zone) if time >= LATE for offset in (-5, 0, 1, 2)]
    clocks = [clock for clock in clocks if clock > LATE]
    found = instant(pa.array(clocks, pa.timestamp("us")), zone).cast(pa.int64()).to_pylist()
    for clock, time in zip(clocks, found, strict=True):
        at = (EPOCH + dt.timedelta(microseconds=clock)).replace(tzinfo=info)
        offset = at.utcoffset()
        assert offset is not None and time == clock - offset // dt.timedelta(microseconds=1), clock


def test_hours_after_2037_are_summers() -> None:
    events = pa.table({"at": pa.array([2_540_275_200 * SECOND], pa.timestamp("us", "UTC"))})  # July 2050, 08:00
    texts = {1: "hour(at) = 10", 2: "hour(at) = 9", 3: "date_trunc('hour', at) = TIMESTAMP '2050-07-01 10:00:00'"}
    matcher = cm.Matcher.build(texts, events.schema, options=cm.Options(timezone="Europe/Berlin"))
    assert matcher.match_lists(events).to_pylist() == [[1, 3]]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "-08:00", "America/Los_Angeles"])
def test_the_first_and_the_last_timestamp(zone: str) -> None:
    """They do not leave 64 bits: what comes first stays before all else, what is last behind it."""
    ends = [-(2**63), 2**63 - 1]
    events = pa.table(
        {
            "t": pa.array(ends, pa.timestamp("us", "UTC")), "n": pa.array(ends, pa.timestamp("us")),
            "now": pa.array([0, 0], pa.timestamp("us", "UTC")), "clock": pa.array([0, 0], pa.timestamp("us")),
        }
    )  # fmt: skip
    texts = {
        1: "CAST(t AS DATE) < DATE '1970-01-01'", 2: "CAST(n AS DATE) < DATE '1970-01-01'", 3: "t < clock", 4: "n < now",
        11: "CAST(t AS DATE) > DATE '1970-01-02'", 12: "CAST(n AS DATE) > DATE '1970-01-02'", 13: "t > clock", 14: "n > now",
    }  # fmt: skip
    matcher = cm.Matcher.build(texts, events.schema, options=cm.Options(timezone=zone))
    assert matcher.match_lists(events).to_pylist() == [[1, 2, 3, 4], [11, 12, 13, 14]]
