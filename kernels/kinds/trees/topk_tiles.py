"""The best subscriptions of up to 64 events that go down the tree together, as in
``match_topk.py``.

Bounds are the same for all events, so parts are visited in one order. Each event has its own floor,
and leaves a bucket with a bound below it.
"""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.bits import ctz, popcount, without_lowest, words_within
from colmatch.kernels.kinds.trees import arrays as bt
from colmatch.kernels.kinds.trees.caps import find_floor, find_leaf_floor, goes_by_largest, weigh_attributes
from colmatch.kernels.kinds.trees.heap import pop, push
from colmatch.kernels.kinds.trees.tiles import (
    enter_rows,
    filter_by_need,
    filter_by_range,
    find_absent,
    leave_rows,
    note_halves,
)
from colmatch.kernels.layout import CANDIDATES, CONJUNCTIONS, MATCHES, NODES, PREDICATES, PRIORITY
from colmatch.kernels.predicates import clear, conditions_of, spread
from colmatch.kernels.scores import is_static, plain_score, program_score, static_score, unweigh_row, weigh_row
from colmatch.kernels.sink import is_deleted
from colmatch.kernels.tiles import TILE_ROWS, clear_tile, fill_tile, lanes_that_hold, lanes_within
from colmatch.kernels.topk import AGAIN, BASE, SCORING, least_score, offer

FEW_ROWS = np.uint64(4)


@device
def filter_by_bound(left, bound, floor):
    """Returns those of the rows ``left`` that may have a subscription with this bound among their
    best.
    """
    return left & words_within(floor, np.uint64(0), np.uint32(0), bound)


@device
def lowest_floor(rows, floor):
    lowest = np.uint32(bt.NONE)
    while rows != 0:
        lowest = min(lowest, floor[ctz(rows)])
        rows = without_lowest(rows)
    return lowest


@device
def score_in_tile(preds, c, scoring, rows, row, multi, table, weight_of, stack):
    """Returns the score of a conjunction that is true for a row.

    weight_of (A) : the row's weights of attributes
    """
    if is_static(preds.weight, scoring):
        return static_score(preds.priority, c) if scoring == PRIORITY else 0.0
    if len(preds.jump_first) == 0 or preds.jump_first[c] < 0:
        return plain_score(preds, c, scoring, weight_of)
    event = spread(rows, row, multi, table)
    score = program_score(preds, c, scoring, weight_of, event, event.table, stack)
    clear(event)
    return score


@device
def leaf_floors(index, start, n, own, scratch, top):
    """Writes the floors of the rows ``own`` within a leaf. Returns the rows that may gain there.

    If few rows share a leaf, each of them searches the leaf's own caps.
    """
    floor, bound, left, few = scratch.leaf_floor, index.bound, own, popcount(own) <= FEW_ROWS
    while left != 0:
        lane = ctz(left)
        left = without_lowest(left)
        floor[lane] = scratch.floor[lane]
        if few:
            floor[lane] = find_leaf_floor(
                index, n, scratch, lane, least_score(top.score, top.fill, start + np.int64(lane))
            )
    return filter_by_bound(own, bound[index.node[n, bt.LEAF]], floor) if len(bound) > 0 else own


@device
def offer_tile_leaf(index, preds, rows, start, tile, n, own, scratch, scores, top, counters):
    """Offers the matches in the leaf of a bucket to the best of the rows ``own`` of the tile."""
    multi, bound, reach, need, entry = index.multi, index.bound, index.reach, index.need, index.entry
    owner, table, absent, deleted_bits = preds.owner, scratch.table, scratch.absent, top.deleted_bits
    conds = conditions_of(preds)
    scoring, base, again = top.state[SCORING], np.uint64(top.state[BASE]), top.state[AGAIN] != 0
    short, bounded, a = index.plan[bt.SHORT_CIRCUIT] != 0, len(bound) > 0, np.uint32(index.node[n, bt.ATTR])
    leaf, one = np.uint64(index.node[n, bt.LEAF]), n > bt.ALWAYS and not multi[a]
    looked_at = candidates = steps = scored = np.uint64(0)
    # Find the floors of the rows, and the attributes that all rows lack
    own = leaf_floors(index, start, n, own, scratch, top)
    floor = scratch.leaf_floor
    nowhere, lowest = find_absent(absent, own), lowest_floor(own, floor)
    for i in range(leaf, leaf + np.uint64(index.node[n, bt.COUNT])):
        # Leave the leaf at the first bound that is too low for all rows
        if bounded and bound[i] < lowest:
            break
        # Test the entry's attributes, its range and its bound
        looked_at += popcount(own)
        if short and need[i] & nowhere != 0:
            continue
        left = own & lanes_within(tile, a, reach[i, 0], reach[i, 1]) if one else own
        if short:
            left = filter_by_need(left, need[i], absent)
        if bounded and left != 0:
            left = filter_by_bound(left, bound[i], floor)
        if left == 0:
            continue
        # Verify the conjunction for the remaining rows
        candidates += popcount(left)
        c = np.int64(entry[i])
        left, taken = lanes_that_hold(conds, c, left, tile)
        steps += taken
        sub = np.uint64(owner[c]) + base
        if left == 0 or is_deleted(deleted_bits, sub):
            continue
        # Score it for each row, and raise the row's floor
        scored += popcount(left)
        while left != 0:
            lane = ctz(left)
            left = without_lowest(left)
            row = start + np.int64(lane)
            score = score_in_tile(preds, c, scoring, rows, row, multi, table, scratch.weighed[lane], scores.stack)
            before = least_score(top.score, top.fill, row)
            offer(top.score, top.number, top.fill, row, score, np.uint32(sub), again, top.id, top.offset, top.data)
            least = least_score(top.score, top.fill, row)
            if least > before:
                scratch.floor[lane] = find_floor(scratch, lane, least, index.cap, 0, 0)
                floor[lane] = max(floor[lane], scratch.floor[lane])
        # Drop the rows that cannot gain any more
        if bounded:
            own = filter_by_bound(own, bound[i], floor)
            lowest = lowest_floor(own, floor)
    # Add up the counters
    counters[CONJUNCTIONS] += np.int64(looked_at)
    counters[CANDIDATES] += np.int64(candidates)
    counters[PREDICATES] += np.int64(steps)
    counters[MATCHES] += np.int64(scored)


@device
def offer_tile(index, preds, rows, start, stop, scratch, weights, scores, top, counters):
    """Offers the matches of rows ``start:stop``, at most ``TILE_ROWS``, to the best of each row."""
    node, part, multi = index.node, index.part, index.multi
    bound_below = index.most_below if goes_by_largest(index, top.state[SCORING]) else index.bound_below
    there, stack, waiting = scratch.there, scratch.stack, scratch.rows
    heap, parts, part_rows, floor = scratch.heap, scratch.parts, scratch.part_rows, scratch.floor
    bounded = len(bound_below) > 0
    # Fill the tile, and find the floor of each row
    tile = fill_tile(rows, start, stop, multi, scratch.tile)
    enter_rows(tile, there, scratch.absent)
    for row in range(start, stop):
        weight_of = scratch.weighed[row - start]
        weigh_row(weights.first, weights.attr, weights.value, row, weight_of)
        weigh_attributes(index, rows, row, weights, top.state[SCORING], weight_of, scratch, row - start)
        floor[row - start] = find_floor(scratch, row - start, least_score(top.score, top.fill, row), index.cap, 0, 0)
    # Begin with the root and the bucket of unplaced conjunctions, for all rows
    stack[0], stack[1] = bt.ALWAYS, bt.ROOT
    everyone = ~np.uint64(0) >> np.uint64(TILE_ROWS - (stop - start))
    waiting[0] = waiting[1] = everyone
    depth, height, visited = np.int64(2), np.int64(0), np.int64(0)
    while depth > 0:
        depth -= 1
        n, own = np.int64(stack[depth]), waiting[depth]
        visited += 1
        # Drop the rows that cannot gain, and push the halves
        if bounded:
            own = filter_by_bound(own, bound_below[n], floor)
        if own != 0 and n > bt.ALWAYS:
            own, depth = note_halves(index, n, own, there, tile, stack, waiting, depth)
        if own != 0:
            # Enter the parts into the heap
            p = np.int64(node[n, bt.FIRST])
            while p != bt.NONE:
                visited += 1
                by, lo, hi = part[p, bt.PART_ATTR], part[p, bt.PART_LO], part[p, bt.PART_HI]
                lanes = filter_by_range(own, multi, there, tile, by, lo, hi)
                if lanes != 0:
                    part_rows[p] = lanes
                    high = bound_below[part[p, bt.TOP]] if bounded else np.uint32(0)
                    height = push(heap, parts, height, high, p)
                p = np.int64(part[p, bt.NEXT])
            # Offer the leaf's matches
            if node[n, bt.COUNT] > 0:
                offer_tile_leaf(index, preds, rows, start, tile, n, own, scratch, scores, top, counters)
        # Go on with the part that has the highest bound
        if depth == 0 and height > 0 and filter_by_bound(everyone, heap[0], floor) != 0:
            p = np.int64(parts[0])
            stack[0], waiting[0], depth = part[p, bt.TOP], part_rows[p], np.int64(1)
            height = pop(heap, parts, height)
    # Clear the tile
    for row in range(start, stop):
        unweigh_row(weights.first, weights.attr, row, scratch.weighed[row - start])
    leave_rows(tile, there)
    clear_tile(tile)
    counters[NODES] += visited
