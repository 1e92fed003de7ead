"""Sorted boundaries, searched by halving within what hints leave: as keys of events are coded."""

import numpy as np

from colmatch.kernels._jit import kernel
from colmatch.kernels.hints import TILE, bound_code, cell_of, distance, find_code, find_codes
from locators.kernels.counting import LINES, NODES, read_key

TOGETHER = int(TILE)


@kernel
def locate(bound, hints, points, found, space):
    """Write the space of each point.

    bound (B) int64 ascending, hints : ``hints.Hints`` of it alone, points (m) int64, found
    (``hints.TILE``) uint32 : scratch, space (m) int64
    """
    lowest, highest, shift, below = hints.lowest[0], hints.highest[0], hints.shift[0], hints.below
    m = np.uint64(len(points))
    if shift == 0:
        for i in range(m):
            space[i] = find_code(bound, 0, lowest, highest, 0, shift, below, points[i]) - 1
        return
    for begin in range(np.uint64(0), m, TILE):
        start = np.uint64(begin)
        keys = min(m - start, TILE)
        find_codes(bound, 0, len(bound), lowest, highest, 0, shift, below, points, start, keys, found)
        for i in range(keys):
            space[start + np.uint64(i)] = found[i] - 1


@kernel
def touch(bound, hints, points, counters):
    """Count what ``locate`` reads; counters are those of ``counting.py``. A cell counts, too.

    Points go as many steps as the fullest cell among ``TILE`` of them takes.
    """
    lowest, highest, shift, below = hints.lowest[0], hints.highest[0], hints.shift[0], hints.below
    for tile in range(0, len(points), TOGETHER):
        stop, most = min(tile + TOGETHER, len(points)), np.int64(0)
        for i in range(tile, stop):
            low, high = bound_code(lowest, highest, 0, shift, below, points[i])
            most |= high - low
        for i in range(tile, stop):
            key = min(max(points[i], lowest), highest)
            counters[NODES] += 1
            # 16 cells have one line, and a cell is read with the next.
            counters[LINES] += 1
            if cell_of(distance(lowest, key), shift) & np.uint64(15) == np.uint64(15):
                counters[LINES] += 1
            base, line, step = bound_code(lowest, highest, 0, shift, below, key)[0], np.int64(-1), np.int64(1)
            while step <= most:
                step += step
            while step > 1:
                step >>= 1
                at = min(base + step, len(bound)) - 1
                line = read_key(counters, at, line)
                base += step * (bound[at] <= points[i])
