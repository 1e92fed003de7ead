"""Local times of zones from 2038 on: Arrow knows summer time only until then.

The offsets of ``zoneinfo`` are in one table for each zone. The calendar repeats after 400 years,
and by 2100 the rules of each zone repeat with it. So the table ends in 2500.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_left
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colmatch.given.session import time_zone
from colmatch.kernels.layout import I64

MICROSECONDS = 10**6  # in a second
LATE = 2_145_916_800 * MICROSECONDS  # the beginning of 2038
_FROM, _TO, _FOLD = 2_143_238_400, 16_725_225_600, 4_102_444_800  # December 2037, 2500, 2100
_CYCLE = 146_097 * 86_400  # seconds of 400 years
_STEP = 7 * 86_400  # no zone changes its offset twice within it


class Offsets(NamedTuple):
    """The changes of a zone's offset, and the offsets before each change and after the last."""

    change: I64  # (n) seconds since 1970
    offset: I64  # (n + 1) seconds


@lru_cache(maxsize=64)
def offsets_of(name: str) -> Offsets:
    """Returns the offsets of a zone from December 2037 to 2500."""
    zone = time_zone(name)

    def offset_at(second: int) -> int:
        delta = dt.datetime.fromtimestamp(second, zone).utcoffset()
        assert delta is not None
        return int(delta.total_seconds())

    def changed(begin: int, after: int) -> int:
        return bisect_left(range(begin + _STEP), True, begin, key=lambda second: offset_at(second) == after)

    offset = np.array([offset_at(second) for second in range(_FROM, _TO + _STEP, _STEP)])
    weeks = np.flatnonzero(np.diff(offset))  # with a change
    change = list(map(changed, (_FROM + weeks * _STEP).tolist(), offset[weeks + 1].tolist()))
    return Offsets(np.array(change, np.int64), offset[np.append(0, weeks + 1)])


def compute_local(instant: NDArray[np.int64], zone: str) -> I64:
    """Returns the local times of instants from 2038 on, both in microseconds."""
    offsets = offsets_of(zone)
    place = np.searchsorted(offsets.change, _fold_times(instant), side="right")
    return instant + offsets.offset[place] * MICROSECONDS


def instants_of(clock: NDArray[np.int64], zone: str) -> I64:
    """Returns the instants of local times from 2038 on, like ``dates.instant``."""
    change, offset = offsets_of(zone)
    second = _fold_times(clock)
    place = np.searchsorted(change + offset[:-1], second, side="right")
    begin = np.concatenate([[_FROM - _STEP], change])[place]
    in_gap = second - offset[place] < begin
    return clock - offset[place - in_gap] * MICROSECONDS


def _fold_times(times: NDArray[np.int64]) -> I64:
    """Returns seconds in the years of the table that have the same offsets as these times."""
    seconds = times // MICROSECONDS
    return np.where(seconds < _TO, seconds, _FOLD + (seconds - _FOLD) % _CYCLE)
