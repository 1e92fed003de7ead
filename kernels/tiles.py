"""Up to 64 events at once: a *tile* has their tables (``predicates.py``), transposed.

The values of one attribute are adjacent, so one comparison of vectors finds the events that make a
predicate true. The comparison is exact, and an event that fails it is tested no further.
"""

from typing import NamedTuple

import numpy as np

from colmatch.kernels._jit import device, inlined
from colmatch.kernels.bits import ctz, popcount, without_lowest, words_within
from colmatch.kernels.layout import ACCEPT, ATTR_MASK, I64, U32
from colmatch.kernels.predicates import Event, flagged_holds
from colmatch.kernels.sink import is_decided, take

TILE_ROWS = 64
TILE_LEAST = 24  # fewest rows of a tile: fewer are quicker one by one
TILE_MOST = 1 << 16  # values of a tile, beyond which it would leave the second-level cache


class Tile(NamedTuple):
    """N rows, at most ``TILE_ROWS``: their tables, transposed, and their entries."""

    value: U32  # (A * 64)
    first: I64  # (N + 1) row -> its entries among those of all rows
    attr: U32  # (E) of all rows
    code: U32  # (E)


@device
def fill_tile(rows, start, stop, multi, value):
    """Enters the rows ``start:stop``, each like ``spread`` into a table. Returns the tile."""
    first, attr, code = rows.first[start : stop + 1], rows.attr, rows.code
    for lane in range(np.uint64(stop - start)):
        begin = first[lane]
        for e in range(first[lane + np.uint64(1)] - 1, begin - 1, -1):
            a = np.uint64(attr[e])
            value[a * np.uint64(TILE_ROWS) + lane] = 1 + e - begin if multi[a] else code[e]
    return Tile(value, first, attr, code)


@device
def clear_tile(tile):
    """Removes all rows from the tile. Only entries that they had set are written."""
    for lane in range(np.uint64(len(tile.first) - 1)):
        for e in range(tile.first[lane], tile.first[lane + np.uint64(1)]):
            tile.value[np.uint64(tile.attr[e]) * np.uint64(TILE_ROWS) + lane] = 0


@device
def take_lanes(left, start, sub, sink, counters):
    """Notes a match of a subscription with the rows ``left`` of a tile that begins with row
    ``start``.

    Returns whether there was room in the sink, and the rows that need no further match.
    """
    fits, decided = True, np.uint64(0)
    while left != 0 and fits:
        lane = ctz(left)
        row = start + np.int64(lane)
        fits = take(sink, row, sub, counters)
        decided |= np.uint64(is_decided(sink, row)) << lane
        left = without_lowest(left)
    return fits, decided


@inlined
def lanes_within(tile, attr, low, high):
    """Returns the rows where the value of an attribute lies in a range, which may be empty."""
    return words_within(tile.value, np.uint64(attr) * np.uint64(TILE_ROWS), low, high) if low <= high else np.uint64(0)


@device
def lane_holds(conds, p, lane, tile):
    """Returns whether one row of the tile makes a predicate true."""
    word = conds.pred[p, 0]
    v = tile.value[np.uint64(word & ATTR_MASK) * np.uint64(TILE_ROWS) + lane]
    if word <= ATTR_MASK:
        return conds.pred[p, 1] <= v and v <= conds.pred[p, 2]
    begin, end = tile.first[lane], tile.first[lane + np.uint64(1)]
    return flagged_holds(conds, p, v, Event(tile.attr, tile.code, begin, end, tile.value))


@inlined
def lanes_where(conds, p, left, tile):
    """Returns those of the rows ``left`` that make a predicate true."""
    word = conds.pred[p, 0]
    if word <= ATTR_MASK:
        return left & lanes_within(tile, word, conds.pred[p, 1], conds.pred[p, 2])
    there = left
    while there != 0:
        lane = ctz(there)
        there = without_lowest(there)
        left ^= np.uint64(not lane_holds(conds, p, lane, tile)) << lane
    return left


@device
def accept_lanes(conds, c, left, tile):
    """Follows a program for each of the rows ``left``.

    Returns the rows that it accepts, and the number of predicates evaluated for all rows.
    """
    first, at_jump, steps = conds.first[c], conds.jump_first[c], np.uint64(0)
    there = left
    while there != 0:
        lane = ctz(there)
        there = without_lowest(there)
        at = np.int64(0)
        while at >= 0:
            steps += np.uint64(1)
            at = np.int64(conds.jump[at_jump + at, 0 if lane_holds(conds, first + at, lane, tile) else 1])
        left ^= np.uint64(at != ACCEPT) << lane
    return left, steps


@inlined
def lanes_that_hold(conds, c, left, tile):
    """Returns those of the rows ``left`` that make a conjunction true.

    The second result is the number of predicates evaluated for all rows.
    """
    if len(conds.jump_first) > 0 and conds.jump_first[c] >= 0:
        return accept_lanes(conds, c, left, tile)
    steps = np.uint64(0)
    p, p_end = np.uint64(conds.first[c]), np.uint64(conds.first[c + 1])
    while left != 0 and p < p_end:
        steps += popcount(left)
        left = lanes_where(conds, p, left, tile)
        p += np.uint64(1)
    return left, steps
