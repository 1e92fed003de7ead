"""Predicates that several conjunctions share, each evaluated once for a tile of events.

A table ``truth`` has a row for each distinct predicate. The row has a word of bits, one for each
row of events, and the number of the tile that they belong to. The last row has the bits of all rows
of the present tile, and its number. Programs, and events that go down alone, do not use the table.
"""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.bits import popcount
from colmatch.kernels.tiles import lanes_where, lanes_within


@device
def start_memo(whole, by_attr, some, pred, tile, truth):
    """Prepares the table for another tile, and evaluates the predicates in ``some``.

    These are plain predicates. Only those on attributes of the tile's rows are evaluated.

    whole : bits of the tile's rows

    Returns the number of predicates evaluated, each counted for each row.
    """
    now = truth[len(truth) - 1, 1] + np.uint64(1)
    truth[len(truth) - 1, 0], truth[len(truth) - 1, 1] = whole, now
    steps = np.uint64(0)
    if len(some) == 0:
        return steps
    for e in range(tile.first[0], tile.first[len(tile.first) - 1]):
        a = np.int64(tile.attr[e])
        begin, end = np.int64(by_attr[a]), np.int64(by_attr[a + 1])
        if begin == end or truth[begin, 1] == now:  # the predicates of an attribute are evaluated together
            continue
        for d in range(begin, end):
            p = some[d]
            truth[d, 0], truth[d, 1] = lanes_within(tile, pred[p, 0], pred[p, 1], pred[p, 2]), now
        steps += np.uint64(end - begin) * popcount(whole)
    return steps


@device
def lanes_by_memo(conds, c, left, tile, same, truth):
    """Works like ``lanes_that_hold``, for a conjunction that is no program.

    A predicate that is not in the table yet is evaluated for the whole tile.
    """
    whole, now = truth[len(truth) - 1, 0], truth[len(truth) - 1, 1]
    steps = np.uint64(0)
    p, p_end = np.uint64(conds.first[c]), np.uint64(conds.first[c + 1])
    while left != 0 and p < p_end:
        d = same[p]
        if truth[d, 1] != now:
            truth[d, 0], truth[d, 1] = lanes_where(conds, p, whole, tile), now
            steps += popcount(whole)
        left &= truth[d, 0]
        p += np.uint64(1)
    return left, steps
