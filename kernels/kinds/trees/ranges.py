"""Matching of events with ranges as values, row by row.

A bucket, a part or an entry of a leaf is left out if its own range does not meet the event's range.
Then no predicate below can be true of a value between the two ends. As in ``match``, a stack with a
place for each bucket never overflows.
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.kinds.trees import arrays as bt
from colmatch.kernels.kinds.trees.arrays import Tree, TreeScratch
from colmatch.kernels.kinds.trees.values import collect_attributes, enter_parts, leads_on, meets
from colmatch.kernels.layout import CANDIDATES, CONJUNCTIONS, I64, NODES, PREDICATES, Predicates, Rows, Sink, Written
from colmatch.kernels.meets import Meeting, clear_ends, conjunction_meets, spread_ends
from colmatch.kernels.predicates import conditions_of
from colmatch.kernels.sink import FILL, emit, stops


@device
def _go_down(index, stack, height, n, absent, event, high):
    """Pushes the buckets below a bucket that a row is to visit.

    Returns whether the row is to visit the bucket's own leaf, the height of the stack, and the
    number of parts visited.

    absent : bits of the attributes that the row lacks
    """
    node, part, multi = index.node, index.part, index.multi
    own, visited = n <= bt.ALWAYS, np.int64(0)
    # Push the halves that the event meets
    if not own:
        a = np.int64(node[n, bt.ATTR])
        own = meets(multi, event, high, a, node[n, bt.OWN_LO], node[n, bt.OWN_HI])
        for half, lowest in bt.HALVES:
            below, lo, hi = node[n, half], node[n, lowest], node[n, lowest + 1]
            if below != bt.NONE and meets(multi, event, high, a, lo, hi):
                stack[height] = below
                height += 1
    # Push the topmost buckets of the parts that the event meets
    if own and leads_on(node, n, absent):
        base = height
        height, visited = enter_parts(index, n, event, high, stack, height)
        for i in range(base, height):
            stack[i] = part[stack[i], bt.TOP]
    return own, height, visited


@device
def _leaf_fits(index, preds, n, row, absent, event, meeting, sink, counters):
    """Matches a row with a leaf. Returns False when the sink has no room."""
    node, reach, need, entry = index.node, index.reach, index.need, index.entry
    low, high, conds = meeting.low, meeting.high, conditions_of(preds)
    short = index.plan[bt.SHORT_CIRCUIT] != 0
    leaf, last = np.int64(node[n, bt.LEAF]), np.int64(node[n, bt.LEAF]) + np.int64(node[n, bt.COUNT])
    # Take the event's range of the bucket's attribute, if there is one range
    bottom, top = np.int64(0), np.int64(bt.NONE)
    if n > bt.ALWAYS and not index.multi[np.int64(node[n, bt.ATTR])]:
        bottom, top = np.int64(low[np.int64(node[n, bt.ATTR])]), np.int64(high[np.int64(node[n, bt.ATTR])])
    # Verify the entries that meet it and need no missing attribute
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
        # Spread the event
        fill = sink.state[FILL]
        event = spread_ends(low, high, row, index.multi, meeting)
        absent = ~collect_attributes(event)
        # Go down from the root and the bucket of unplaced conjunctions
        stack[0], stack[1] = bt.ALWAYS, bt.ROOT
        height, visited, fits = 2, np.int64(0), True
        while height > 0 and fits:
            height -= 1
            n = np.int64(stack[height])
            own, height, parts = _go_down(index, stack, height, n, absent, event, meeting.high)
            visited += 1 + parts
            if own:
                fits = _leaf_fits(index, preds, n, row, absent, event, meeting, sink, counters)
        # Stop at a row that did not fit into the sink
        counters[NODES] += visited
        clear_ends(event, meeting)
        if not fits and stops(sink, fill, counters):
            return row
    return stop
