"""Predicates that several conjunctions have: the truth of each is found once for a tile of events.

It is a word of bits, one for each row, in a table ``truth`` over the distinct predicates; beside it
is the number of the tile that it is of. The last row of the table has the bits of all rows of the
present tile, and its number. Programs are followed as without the table, and so are events that go
down alone.
"""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.bits import ctz, popcount, without_lowest
from colmatch.kernels.layout import ATTR_MASK
from colmatch.kernels.predicates import flagged_holds
from colmatch.kernels.tiles import TILE_ROWS, lanes_within


@device
def start_memo(whole, by_attr, some, pred, row_first, row_attr, tile, truth):
    """Makes the table that of another tile, and evaluates the predicates in ``some``.

    They are plain ones; those are taken that are on attributes which the tile's rows have.

    whole : bits of the tile's rows
    row_first : from the first row of the tile on, to the end of the last
    Returns how many predicates of rows were evaluated.
    """
    now = truth[len(truth) - 1, 1] + np.uint64(1)
    truth[len(truth) - 1, 0], truth[len(truth) - 1, 1] = whole, now
    steps = np.uint64(0)
    if len(some) == 0:
        return steps
    for e in range(row_first[0], row_first[len(row_first) - 1]):
        a = np.int64(row_attr[e])
        begin, end = np.int64(by_attr[a]), np.int64(by_attr[a + 1])
        if begin == end or truth[begin, 1] == now:  # those of an attribute are evaluated together
            continue
        for d in range(begin, end):
            p = some[d]
            truth[d, 0], truth[d, 1] = lanes_within(tile, pred[p, 0], pred[p, 1], pred[p, 2]), now
        steps += np.uint64(end - begin) * popcount(whole)
    return steps


@device
def lanes_by_memo(left, c, first, pred, run_lo, run_hi, row_first, row_attr, row_code, tile, same, truth):
    """As ``lanes_that_hold``, for a conjunction that is no program.

    What is not in the table yet is evaluated for the whole tile.
    """
    whole, now = truth[len(truth) - 1, 0], truth[len(truth) - 1, 1]
    steps = np.uint64(0)
    p, p_end = np.uint64(first[c]), np.uint64(first[c + 1])
    while left != 0 and p < p_end:
        d = same[p]
        if truth[d, 1] != now:
            word, holds = pred[p, 0], np.uint64(0)
            if word <= ATTR_MASK:
                holds = lanes_within(tile, word, pred[p, 1], pred[p, 2])
            else:
                rows = whole
                while rows != 0:
                    lane = ctz(rows)
                    rows = without_lowest(rows)
                    v = tile[np.uint64(word & ATTR_MASK) * np.uint64(TILE_ROWS) + lane]
                    begin, end = row_first[lane], row_first[lane + np.uint64(1)]
                    found = flagged_holds(pred, run_lo, run_hi, p, v, row_attr, row_code, begin, end)
                    holds |= np.uint64(found) << lane
            truth[d, 0], truth[d, 1] = holds, now
            steps += popcount(whole)
        left &= truth[d, 0]
        p += np.uint64(1)
    return left, steps
