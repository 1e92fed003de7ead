"""Intervals of keys that operators allow, from the floors of literals among keys."""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import I8, I64, KEY_MAX, KEY_MIN, Written
from colmatch.kernels.lowering.operators import ABOVE, BELOW, BETWEEN, EQ, EXACT, GE, GT, IN, LE, LT, PREFIX


@kernel
def key_intervals(op: int, floor: I64, place: I8, end: I64, end_place: I8, lo: Written[I64], hi: Written[I64]) -> None:
    """Writes the closed interval of each literal, or of each pair of literals.

    floor, end (n) int64, place, end_place (n) int8 : of both literals of a pair; otherwise ``end``
        and ``end_place`` may be anything
    lo, hi (n) int64 : written
    """
    for i in range(len(floor)):
        lo[i], hi[i] = interval(op, floor[i], place[i], end[i], end_place[i])


@device
def interval(op, floor, place, end, end_place):
    """Returns the closed interval of one literal or pair: lo, hi. lo > hi if no key fits."""
    lo, hi = np.int64(KEY_MIN), np.int64(KEY_MAX)
    if op == PREFIX:  # from a prefix's label to just before its successor's label
        return floor, end - 1
    # Take a single key
    none = False
    if op == EQ or op == IN:
        none = place != EXACT
        lo, hi = floor, floor
    # Take the lower end
    if op == GT or op == GE or op == BETWEEN:
        lo = floor
        if place == ABOVE or (op == GT and place == EXACT):
            none = floor == KEY_MAX
            lo = floor if none else floor + 1
    # Take the upper end
    if op == LT or op == LE or op == BETWEEN:
        hi, hi_place = (end, end_place) if op == BETWEEN else (floor, place)
        none |= hi_place == BELOW
        if op == LT and hi_place == EXACT:
            none |= hi == KEY_MIN
            hi = hi if none else hi - 1
    # Return an empty interval in one form
    if none or lo > hi:
        return np.int64(KEY_MAX), np.int64(KEY_MIN)
    return lo, hi
