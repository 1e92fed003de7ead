"""All intervals are compared with each point."""

from __future__ import annotations

import numpy as np

from colmatch.arrays.growing import extend_array
from colmatch.kernels.layout import I64
from locators.base import counting_kind
from locators.kernels import scan
from locators.kernels.scan import Intervals


def build(low: I64, high: I64) -> Intervals:
    """The intervals as they are."""
    return Intervals(low.copy(), high.copy(), np.arange(len(low), dtype=np.uint32), np.array([len(low)]))


def insert(of: Intervals, low: int, high: int, number: int) -> Intervals:
    """The intervals with one more behind them."""
    n = int(of.size[0])
    of = Intervals(
        extend_array(of.low, n, n + 1), extend_array(of.high, n, n + 1), extend_array(of.number, n, n + 1), of.size
    )
    scan.insert(of, low, high, number)
    return of


def delete(of: Intervals, low: int, high: int, number: int) -> Intervals | None:
    """The intervals without one, or None if that is not there."""
    return of if scan.delete(of, low, high, number) else None


KIND = counting_kind("scan", "all intervals, one after the other", build, scan.count, scan.fill, insert, delete)
