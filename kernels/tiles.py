"""Up to 64 events at once: a *tile* has their tables (``predicates.py``), turned.

The values of one attribute stand side by side, so one comparison of vectors tells of which events a
predicate is true. It is exact, and events of which one is not are looked at no more.
"""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.bits import ctz, popcount, without_lowest, words_within
from colmatch.kernels.layout import ACCEPT, ATTR_MASK
from colmatch.kernels.predicates import flagged_holds
from colmatch.kernels.sink import is_decided, take

TILE_ROWS = 64
TILE_LEAST = 24  # rows for which a tile is made: fewer are quicker one by one
TILE_MOST = 1 << 16  # values of a tile, beyond which it would leave the second-level cache


@device
def fill_tile(first, attr, code, start, stop, multi, tile):
    """Enters the rows ``start:stop`` into the tile, each as ``spread`` would into a table."""
    for row in range(start, stop):
        begin, lane = first[row], np.uint64(row - start)
        for e in range(first[row + 1] - 1, begin - 1, -1):
            a = np.uint64(attr[e])
            tile[a * np.uint64(TILE_ROWS) + lane] = 1 + e - begin if multi[a] else code[e]


@device
def clear_tile(first, attr, start, stop, tile):
    """Takes the rows ``start:stop`` out of the tile again: only what they had set."""
    for row in range(start, stop):
        for e in range(first[row], first[row + 1]):
            tile[np.uint64(attr[e]) * np.uint64(TILE_ROWS) + np.uint64(row - start)] = 0


@device
def take_lanes(left, start, sub, sink, counters):
    """Notes a match of a subscription with some rows of the tile, which begins with row ``start``.

    Says whether there was room in the sink, and of which rows nothing more is wanted.
    """
    fits, decided = True, np.uint64(0)
    while left != 0 and fits:
        lane = ctz(left)
        row = start + np.int64(lane)
        fits = take(sink, row, sub, counters)
        decided |= np.uint64(is_decided(sink, row)) << lane
        left = without_lowest(left)
    return fits, decided


@device
def lanes_within(tile, attr, low, high):
    """Rows of the tile whose value of an attribute lies in a range, which may be empty."""
    return words_within(tile, np.uint64(attr) * np.uint64(TILE_ROWS), low, high) if low <= high else np.uint64(0)


@device
def lane_accepted(pred, run_lo, run_hi, first, jump, at_jump, attr, code, begin, end, tile, lane):
    """Follows a program for one row of the tile, as ``program_accepts`` does for a table."""
    at, steps = np.int64(0), 0
    while at >= 0:
        steps += 1
        word = pred[first + at, 0]
        v = tile[np.uint64(word & ATTR_MASK) * np.uint64(TILE_ROWS) + lane]
        holds = pred[first + at, 1] <= v and v <= pred[first + at, 2]
        if word > ATTR_MASK:
            holds = flagged_holds(pred, run_lo, run_hi, first + at, v, attr, code, begin, end)
        at = np.int64(jump[at_jump + at, 0 if holds else 1])
    return at == ACCEPT, steps


@device
def lanes_that_hold(left, c, first, pred, run_lo, run_hi, jump_first, jump, row_first, row_attr, row_code, tile):
    """Of the rows ``left``, those for which a conjunction is true, and how many predicates of rows
    were evaluated.

    row_first : from the first row of the tile on
    """
    steps = np.uint64(0)
    if len(jump_first) > 0 and jump_first[c] >= 0:
        there = left
        while there != 0:
            lane = ctz(there)
            there = without_lowest(there)
            begin, end = row_first[lane], row_first[lane + np.uint64(1)]
            holds, taken = lane_accepted(
                pred, run_lo, run_hi, first[c], jump, jump_first[c], row_attr, row_code, begin, end, tile, lane
            )
            steps += np.uint64(taken)
            left ^= np.uint64(not holds) << lane
        return left, steps
    p, p_end = np.uint64(first[c]), np.uint64(first[c + 1])
    while left != 0 and p < p_end:
        steps += popcount(left)
        word = pred[p, 0]  # this loop stands in scan/tiles.py as well: that says why
        if word <= ATTR_MASK:
            left &= lanes_within(tile, word, pred[p, 1], pred[p, 2])
        else:
            there = left
            while there != 0:
                lane = ctz(there)
                there = without_lowest(there)
                v = tile[np.uint64(word & ATTR_MASK) * np.uint64(TILE_ROWS) + lane]
                begin, end = row_first[lane], row_first[lane + np.uint64(1)]
                if not flagged_holds(pred, run_lo, run_hi, p, v, row_attr, row_code, begin, end):
                    left ^= np.uint64(1) << lane
        p += np.uint64(1)
    return left, steps
