"""Up to 64 events go down the tree together: each bucket is visited once for all that reach it.

Two tests of an entry stand beside it and come before verification: its range of the bucket's
attribute, and bits of the attributes that it needs. So few predicates are left to verify that a
table of the distinct ones costs more than it spares (``memo.py``, ``colmatch/kinds/betree.py``).
"""

import numpy as np

from colmatch.kernels._jit import device, inlined
from colmatch.kernels.bits import ask_for, ctz, popcount, without_lowest
from colmatch.kernels.geometry import attribute_bit
from colmatch.kernels.kinds.trees import arrays as bt
from colmatch.kernels.kinds.trees.memo import lanes_by_memo, start_memo
from colmatch.kernels.layout import CANDIDATES, CONJUNCTIONS, NODES, PREDICATES
from colmatch.kernels.predicates import conditions_of
from colmatch.kernels.tiles import TILE_ROWS, clear_tile, fill_tile, lanes_that_hold, lanes_within, take_lanes


@device
def that_meet(left, multi, there, tile, a, lo, hi):
    """Of the rows ``left``, those that have a value of an attribute within a range."""
    left &= there[a]
    if left == 0 or lo > hi:
        return np.uint64(0)
    if not multi[a]:
        return left & lanes_within(tile, a, lo, hi)
    rows = left
    while rows != 0:
        lane = ctz(rows)
        rows = without_lowest(rows)
        end = tile.first[lane + np.uint64(1)]
        e = tile.first[lane] + np.int64(tile.value[np.uint64(a) * np.uint64(TILE_ROWS) + lane]) - 1
        found = False
        while not found and e < end and tile.attr[e] == a:
            found = lo <= tile.code[e] and tile.code[e] <= hi
            e += 1
        left ^= np.uint64(not found) << lane
    return left


@device
def enter_rows(tile, there, absent):
    """Notes which rows have an attribute, and which attributes a row has not."""
    for lane in range(np.uint64(len(tile.first) - 1)):
        bits = np.uint64(0)
        for e in range(tile.first[lane], tile.first[lane + np.uint64(1)]):
            bits |= attribute_bit(tile.attr[e])
            there[tile.attr[e]] |= np.uint64(1) << lane
        absent[lane] = ~bits


@device
def leave_rows(tile, there):
    """Takes back what ``enter_rows`` noted of attributes."""
    for e in range(tile.first[0], tile.first[len(tile.first) - 1]):
        there[tile.attr[e]] = 0


@device
def absent_from_all(absent, rows):
    """Returns bits of attributes that none of the rows has."""
    bits = ~np.uint64(0)
    while rows != 0:
        bits &= absent[ctz(rows)]
        rows = without_lowest(rows)
    return bits


@device
def that_have(left, need, absent):
    """Of the rows ``left``, those with all the attributes that a conjunction needs."""
    rows = left
    while rows != 0:
        lane = ctz(rows)
        rows = without_lowest(rows)
        left ^= np.uint64(need & absent[lane] != 0) << lane
    return left


@device
def note(node, stack, waiting, height, n, rows):
    """Notes that a bucket is to be visited for some rows, if there are any."""
    if rows == 0:
        return height
    stack[height], waiting[height] = n, rows
    ask_for(node, np.uint64(n) * np.uint64(bt.NODE_WORDS))
    return height + 1


@inlined
def note_halves(index, n, rows, there, tile, stack, waiting, height):
    """Notes the halves of a bucket, which is placed, for those of some rows that meet them.

    Returns the rows for which its own leaf may have something, and the height of the stack.
    """
    node, multi, a = index.node, index.multi, np.uint32(index.node[n, bt.ATTR])
    for half, low in bt.HALVES:
        if node[n, half] != bt.NONE:
            some = that_meet(rows, multi, there, tile, a, node[n, low], node[n, low + 1])
            height = note(node, stack, waiting, height, node[n, half], some)
    return that_meet(rows, multi, there, tile, a, node[n, bt.OWN_LO], node[n, bt.OWN_HI]), height


@device
def match_tile(index, preds, rows, start, stop, scratch, sink, counters):
    """Matches rows ``start:stop``, at most ``TILE_ROWS``. False when there is no room
    in the sink.
    """
    node, part, entry, need, reach, multi = index.node, index.part, index.entry, index.need, index.reach, index.multi
    short, same, truth = index.plan[bt.SHORT_CIRCUIT] != 0, index.same, scratch.truth
    conds, owner, jump_first = conditions_of(preds), preds.owner, preds.jump_first
    there, absent, stack, waiting = scratch.there, scratch.absent, scratch.stack, scratch.rows
    tile = fill_tile(rows, start, stop, multi, scratch.tile)
    enter_rows(tile, there, absent)
    whole = ~np.uint64(0) >> np.uint64(TILE_ROWS - (stop - start))
    stack[0], stack[1] = bt.ALWAYS, bt.ROOT
    waiting[0] = waiting[1] = whole
    height = 2
    visited = looked_at = candidates = steps = np.uint64(0)
    steps += start_memo(whole, index.by_attr, index.some, preds.pred, tile, truth)
    fits = True
    while height > 0 and fits:
        height -= 1
        n, here = np.int64(stack[height]), waiting[height] & whole
        visited += np.uint64(1)
        a, placed = np.uint32(node[n, bt.ATTR]), n > bt.ALWAYS
        own = here
        if placed:
            own, height = note_halves(index, n, here, there, tile, stack, waiting, height)
        if own == 0:
            continue
        p = np.int64(node[n, bt.FIRST])
        while p != bt.NONE:
            visited += np.uint64(1)
            some = own & there[part[p, bt.PART_ATTR]]
            if some != 0:
                by, lo, hi = part[p, bt.PART_ATTR], part[p, bt.PART_LO], part[p, bt.PART_HI]
                some = that_meet(some, multi, there, tile, by, lo, hi)
                height = note(node, stack, waiting, height, part[p, bt.TOP], some)
            p = np.int64(part[p, bt.NEXT])
        leaf, end = np.uint64(node[n, bt.LEAF]), np.uint64(node[n, bt.LEAF]) + np.uint64(node[n, bt.COUNT])
        if leaf == end:
            continue
        looked_at += (end - leaf) * popcount(own)
        nowhere = absent_from_all(absent, own)
        one = placed and not multi[a]
        for i in range(leaf, end):
            if short and need[i] & nowhere != 0:
                continue
            left = own & whole & (lanes_within(tile, a, reach[i, 0], reach[i, 1]) if one else own)
            if short:
                left = that_have(left, need[i], absent)
            if left == 0:
                continue
            candidates += popcount(left)
            c = np.int64(entry[i])
            if len(same) > 0 and (len(jump_first) == 0 or jump_first[c] < 0):
                left, taken = lanes_by_memo(conds, c, left, tile, same, truth)
            else:
                left, taken = lanes_that_hold(conds, c, left, tile)
            steps += taken
            fits, decided = take_lanes(left, start, np.int64(owner[c]), sink, counters)
            whole &= ~decided
            if not fits:
                break
    leave_rows(tile, there)
    clear_tile(tile)
    for place, more in ((NODES, visited), (CONJUNCTIONS, looked_at), (CANDIDATES, candidates), (PREDICATES, steps)):
        counters[place] += np.int64(more)
    return fits
