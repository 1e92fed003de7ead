"""Events whose attributes may be ranges go down the tree, row by row.

A bucket, a part or an entry of a leaf whose own range does not meet that of the event is left out:
none of the predicates below can be true of a value between the two ends. As in ``match``, a stack
with a place for each bucket never overflows.
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.kinds.trees import arrays as bt
from colmatch.kernels.kinds.trees.arrays import Tree, TreeScratch
from colmatch.kernels.kinds.trees.values import attributes_there, enter_parts, leads_on, meets
from colmatch.kernels.layout import CANDIDATES, CONJUNCTIONS, I64, NODES, PREDICATES, Predicates, Rows, Sink, Written
from colmatch.kernels.meets import Meeting, clear_ends, conjunction_meets, spread_ends
from colmatch.kernels.predicates import conditions_of
from colmatch.kernels.sink import FILL, emit, stops


@device
def _go_down(index, stack, height, n, absent, event, high):
    """Notes what a row is to visit below a bucket.

    Returns whether it is to look at the bucket's own leaf, how many buckets are noted, and how many
    parts were visited. absent : bits of attributes that the row has not
    """
    node, part, multi = index.node, index.part, index.multi
    own, visited = n <= bt.ALWAYS, np.int64(0)
    if not own:
        a = np.int64(node[n, bt.ATTR])
        own = meets(multi, event, high, a, node[n, bt.OWN_LO], node[n, bt.OWN_HI])
        for half, lowest in bt.HALVES:
            below, lo, hi = node[n, half], node[n, lowest], node[n, lowest + 1]
            if below != bt.NONE and meets(multi, event, high, a, lo, hi):
                stack[height] = below
                height += 1
    if own and leads_on(node, n, absent):
        known = height
        height, visited = enter_parts(index, n, event, high, stack, height)
        for i in range(known, height):
            stack[i] = part[stack[i], bt.TOP]
    return own, height, visited


@device
def _leaf_fits(index, preds, n, row, absent, event, meeting, sink, counters):
    """Matches a row with a leaf. False when there is no room in the sink."""
    node, reach, need, entry = index.node, index.reach, index.need, index.entry
    low, high, conds = meeting.low, meeting.high, conditions_of(preds)
    short = index.plan[bt.SHORT_CIRCUIT] != 0
    leaf, last = np.int64(node[n, bt.LEAF]), np.int64(node[n, bt.LEAF]) + np.int64(node[n, bt.COUNT])
    bottom, top = np.int64(0), np.int64(bt.NONE)
    if n > bt.ALWAYS and not index.multi[np.int64(node[n, bt.ATTR])]:
        bottom, top = np.int64(low[np.int64(node[n, bt.ATTR])]), np.int64(high[np.int64(node[n, bt.ATTR])])
    counters[CONJUNCTIONS] += last - leaf
    for i in range(leaf, last):
        if top < reach[i, 0] or reach[i, 1] < bottom or (short and need[i] & absent != 0):
            continue
        c = np.int64(entry[i])
        holds, taken = conjunction_meets(conds, c, event, meeting)
        counters[CANDIDATES] += 1
        counters[PREDICATES] += taken
        if holds and not emit(sink, row, preds.owner[c], counters):
            return False
    return True


@kernel
def match_ranges(
    index: Tree,
    preds: Predicates,
    low: Written[Rows],
    high: Written[Rows],
    start: int,
    stop: int,
    scratch: Written[TreeScratch],
    meeting: Written[Meeting],
    sink: Written[Sink],
    counters: Written[I64],
) -> int:
    """Matches rows ``start:stop``.

    Returns the first row not finished: ``stop``, unless the sink became full.

    low, high : ``layout.Rows`` of the lower and the upper ends, which differ in ``code`` only
    """
    stack = scratch.stack
    for row in range(start, stop):
        fill = sink.state[FILL]
        event = spread_ends(low, high, row, index.multi, meeting)
        absent = ~attributes_there(event)
        stack[0], stack[1] = bt.ALWAYS, bt.ROOT
        height, visited, fits = 2, np.int64(0), True
        while height > 0 and fits:
            height -= 1
            n = np.int64(stack[height])
            own, height, parts = _go_down(index, stack, height, n, absent, event, meeting.high)
            visited += 1 + parts
            if own:
                fits = _leaf_fits(index, preds, n, row, absent, event, meeting, sink, counters)
        counters[NODES] += visited
        clear_ends(event, meeting)
        if not fits and stops(sink, fill, counters):
            return row
    return stop
