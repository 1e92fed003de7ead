"""Floors of literals among keys -> the intervals of keys that operators allow."""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import I8, I64, KEY_MAX, KEY_MIN, Written
from colmatch.kernels.lowering.operators import ABOVE, BELOW, BETWEEN, EQ, EXACT, GE, GT, IN, LE, LT, PREFIX


@kernel
def key_intervals(op: int, floor: I64, place: I8, end: I64, end_place: I8, lo: Written[I64], hi: Written[I64]) -> None:
    """Writes the closed interval of each literal, or of each pair of them.

    floor, end (n) int64, place, end_place (n) int8 : of both literals of a pair, else any. lo, hi
    (n) int64
    """
    for i in range(len(floor)):
        lo[i], hi[i] = interval(op, floor[i], place[i], end[i], end_place[i])


@device
def interval(op, floor, place, end, end_place):
    """Returns the closed interval of one literal or pair: lo, hi; lo > hi where no key fits."""
    lo, hi = np.int64(KEY_MIN), np.int64(KEY_MAX)
    if op == PREFIX:  # from a prefix's label to just before that of its successor
        return floor, end - 1
    none = False
    if op == EQ or op == IN:
        none = place != EXACT
        lo, hi = floor, floor
    if op == GT or op == GE or op == BETWEEN:
        lo = floor
        if place == ABOVE or (op == GT and place == EXACT):
            none = floor == KEY_MAX
            lo = floor if none else floor + 1
    if op == LT or op == LE or op == BETWEEN:
        hi, hi_place = (end, end_place) if op == BETWEEN else (floor, place)
        none |= hi_place == BELOW
        if op == LT and hi_place == EXACT:
            none |= hi == KEY_MIN
            hi = hi if none else hi - 1
    if none or lo > hi:
        return np.int64(KEY_MAX), np.int64(KEY_MIN)
    return lo, hi
