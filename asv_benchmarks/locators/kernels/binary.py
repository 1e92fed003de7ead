"""Sorted boundaries, searched by halving."""

import numpy as np

from colmatch.kernels._jit import kernel
from colmatch.kernels.layout import KEY_MAX
from colmatch.kernels.search import first_at_least
from locators.kernels.counting import read_key


@kernel
def locate(bound, points, space):
    """Write the space of each point.

    bound (B) int64 ascending, points (m) int64, space (m) int64
    """
    for i in range(np.uint64(len(points))):
        key = points[i]
        space[i] = len(bound) if key == KEY_MAX else first_at_least(bound, 0, len(bound), key + 1)


@kernel
def touch(bound, points, counters):
    """Count what ``locate`` reads; counters are those of ``counting.py``."""
    for i in range(len(points)):
        base, size, line = 0, len(bound), -1
        while size > 0:
            half = (size + 1) >> 1
            line = read_key(counters, base + half - 1, line)
            if bound[base + half - 1] <= points[i]:
                base += half
            size -= half
