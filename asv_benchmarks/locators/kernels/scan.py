"""All intervals, compared with each point: what the other locators are measured against."""

from typing import NamedTuple

import numpy as np

from colmatch.kernels._jit import kernel
from colmatch.kernels.layout import I64, U32
from locators.kernels.counting import LINE, LINES, NODES


class Intervals(NamedTuple):
    """n intervals in any order, and room for more behind them."""

    low: I64  # (R) lower end
    high: I64  # (R) upper end, which belongs to it
    number: U32  # (R)
    size: I64  # (1) n


@kernel
def count(intervals, points, hits, counters):
    """Write how many intervals contain each point.

    points (m) int64, hits (m) int64, counters of ``counting.py``
    """
    low, high, n = intervals.low, intervals.high, intervals.size[0]
    for i in range(len(points)):
        key, size = points[i], np.int64(0)
        for j in range(n):
            size += np.int64((low[j] <= key) & (key <= high[j]))
        hits[i] = size
    counters[NODES] += len(points) * n
    counters[LINES] += len(points) * 2 * ((n + (1 << LINE) - 1) >> LINE)


@kernel
def fill(intervals, points, place, found):
    """Write the intervals that contain each point.

    place (m + 1) int64 : point -> its part of ``found``
    """
    low, high, number, n = intervals.low, intervals.high, intervals.number, intervals.size[0]
    for i in range(len(points)):
        key, to = points[i], place[i]
        for j in range(n):
            if (low[j] <= key) & (key <= high[j]):  # one branch, which is hardly ever taken
                found[to] = number[j]
                to += 1


@kernel
def insert(intervals, low, high, number):
    """Put an interval behind the others, where there must be room."""
    n = intervals.size[0]
    intervals.low[n], intervals.high[n], intervals.number[n] = low, high, number
    intervals.size[0] = n + 1


@kernel
def delete(intervals, low, high, number):
    """Put the last interval in the place of another. Returns whether that was there."""
    n = intervals.size[0]
    for j in range(n):
        if intervals.number[j] == number and intervals.low[j] == low and intervals.high[j] == high:
            intervals.low[j] = intervals.low[n - 1]
            intervals.high[j] = intervals.high[n - 1]
            intervals.number[j] = intervals.number[n - 1]
            intervals.size[0] = n - 1
            return True
    return False
