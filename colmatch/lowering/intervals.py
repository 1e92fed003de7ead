"""Floors of literals -> intervals of keys, for all literals of one operator at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous
from colmatch.kernels.lowering.intervals import key_intervals
from colmatch.lowering.floors import Floors
from colmatch.lowering.forms import Op

Intervals = tuple[NDArray[np.int64], NDArray[np.int64]]  # lo (n), hi (n)


def intervals(op: Op, floors: Sequence[Floors]) -> Intervals:
    """Makes the closed key interval of each literal, for IN of each of its points.

    Parameters
    ----------
    op : EQ LT LE GT GE IN with floors of one operand, BETWEEN and PREFIX with those of two

    Returns
    -------
    lo, hi (n) int64; ``lo > hi`` where no key fits
    """
    floor, place = contiguous(floors[0][0]), contiguous(floors[0][1])
    end, end_place = contiguous(floors[-1][0]), contiguous(floors[-1][1])
    lo, hi = np.empty(len(floor), np.int64), np.empty(len(floor), np.int64)
    key_intervals(op.value, floor, place, end, end_place, lo, hi)
    return lo, hi
