"""Matching of events: down the tree by the attributes that a row has, and by their values.

A bucket is on the stack at most once for each row, since only the bucket or part above pushes it.
So a stack with a place for each bucket never overflows.
"""

import numpy as np

from colmatch.kernels._jit import kernel
from colmatch.kernels.bits import ask_for
from colmatch.kernels.kinds.trees import arrays as bt
from colmatch.kernels.kinds.trees.arrays import Tree, TreeScratch
from colmatch.kernels.kinds.trees.tiles import match_tile
from colmatch.kernels.kinds.trees.values import collect_attributes, enter_halves, enter_parts, leads_on
from colmatch.kernels.layout import CANDIDATES, CONJUNCTIONS, I64, NODES, PREDICATES, Predicates, Rows, Sink, Written
from colmatch.kernels.predicates import clear, conditions_of, conjunction_holds, spread
from colmatch.kernels.sink import FILL, emit, roll_back, stops
from colmatch.kernels.tiles import TILE_LEAST, TILE_ROWS


@kernel
def match(
    index: Tree,
    preds: Predicates,
    rows: Written[Rows],
    start: int,
    stop: int,
    scratch: Written[TreeScratch],
    sink: Written[Sink],
    counters: Written[I64],
) -> int:
    """Matches rows ``start:stop``.

    Returns the first row not finished: ``stop``, unless the sink became full.
    """
    node, part, entry, need, reach, multi = index.node, index.part, index.entry, index.need, index.reach, index.multi
    short = index.plan[bt.SHORT_CIRCUIT] != 0
    owner, table, stack = preds.owner, scratch.table, scratch.stack
    conds = conditions_of(preds)
    row = start
    while row < stop:
        fill = sink.state[FILL]
        # Match many rows together, as a tile
        if stop - row >= TILE_LEAST and len(scratch.tile) > 0:
            end = min(row + TILE_ROWS, stop)
            if not match_tile(index, preds, rows, row, end, scratch, sink, counters):
                roll_back(sink, fill, counters)
                return row
            row = end
            continue
        # Spread the event, and begin with the root and the bucket of unplaced conjunctions
        event = spread(rows, row, multi, table)
        absent = ~collect_attributes(event)
        stack[0], stack[1] = bt.ALWAYS, bt.ROOT
        height = 2
        full = False
        visited = looked_at = candidates = steps = np.int64(0)
        while height > 0 and not full:
            height -= 1
            n = np.int64(stack[height])
            visited += 1
            # Push the halves that the event meets
            own = n <= bt.ALWAYS
            if not own:
                own, height = enter_halves(index, n, event, stack, height)
            if not own:
                continue
            # Push the topmost buckets of the parts that it meets
            if leads_on(node, n, absent):
                base = height
                height, more = enter_parts(index, n, event, table, stack, height)
                visited += more
                for i in range(base, height):
                    stack[i] = part[stack[i], bt.TOP]
                    ask_for(node, np.uint64(stack[i]) * np.uint64(bt.NODE_WORDS))
            # Verify the entries of the leaf
            leaf, count = np.int64(node[n, bt.LEAF]), np.int64(node[n, bt.COUNT])
            v, one = (
                np.int64(0),
                n > bt.ALWAYS and not multi[np.int64(node[n, bt.ATTR])],
            )  # one: the attribute has a single value
            if one:
                v = np.int64(table[np.int64(node[n, bt.ATTR])])
            looked_at += count
            for i in range(leaf, leaf + count):
                if one and (v < reach[i, 0] or v > reach[i, 1]):
                    continue
                if short and need[i] & absent != 0:
                    continue
                c = np.int64(entry[i])
                candidates += 1
                holds, taken = conjunction_holds(conds, c, event)
                steps += taken
                if holds and not emit(sink, row, owner[c], counters):
                    full = True
                    break
        # Add up the counters, and stop if the sink is full
        counters[NODES] += visited
        counters[CONJUNCTIONS] += looked_at
        counters[CANDIDATES] += candidates
        counters[PREDICATES] += steps
        clear(event)
        if full and stops(sink, fill, counters):
            return row
        row += 1
    return stop
