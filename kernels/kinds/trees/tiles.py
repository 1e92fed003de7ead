"""Matching of up to 64 events that go down the tree together: each bucket is visited once for all.

Two tests of an entry come before verification: its range of the bucket's attribute, and the bits of
the attributes that it needs. They leave so few predicates to verify that a table of the distinct
ones costs more than it saves (``memo.py``, ``colmatch/kinds/betree.py``).
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
def filter_by_range(left, multi, there, tile, a, lo, hi):
    """Returns those of the rows ``left`` that have a value of an attribute within a range."""
    # Keep the rows that have the attribute
    left &= there[a]
    if left == 0 or lo > hi:
        return np.uint64(0)
    # Compare single values together
    if not multi[a]:
        return left & lanes_within(tile, a, lo, hi)
    # Search the entries of each row with several values
    rows = left
    while rows != 0:
        lane = ctz(rows)
        rows = without_lowest(rows)
        end = tile.first[lane + np.uint64(1)]
        e = tile.first[lane] + np.int64(tile.value[np.uint64(a) * np.uint64(TILE_ROWS) + lane]) - 1
        hit = False
        while not hit and e < end and tile.attr[e] == a:
            hit = lo <= tile.code[e] and tile.code[e] <= hi
            e += 1
        left ^= np.uint64(not hit) << lane
    return left


@device
def enter_rows(tile, there, absent):
    """Notes the rows that have each attribute, and the attributes that each row lacks."""
    for lane in range(np.uint64(len(tile.first) - 1)):
        bits = np.uint64(0)
        for e in range(tile.first[lane], tile.first[lane + np.uint64(1)]):
            bits |= attribute_bit(tile.attr[e])
            there[tile.attr[e]] |= np.uint64(1) << lane
        absent[lane] = ~bits


@device
def leave_rows(tile, there):
    """Clears the notes of ``enter_rows`` on attributes."""
    for e in range(tile.first[0], tile.first[len(tile.first) - 1]):
        there[tile.attr[e]] = 0


@device
def find_absent(absent, rows):
    """Returns the bits of the attributes that all of the rows lack."""
    bits = ~np.uint64(0)
    while rows != 0:
        bits &= absent[ctz(rows)]
        rows = without_lowest(rows)
    return bits


@device
def filter_by_need(left, need, absent):
    """Returns those of the rows ``left`` that have all the attributes in ``need``."""
    rows = left
    while rows != 0:
        lane = ctz(rows)
        rows = without_lowest(rows)
        left ^= np.uint64(need & absent[lane] != 0) << lane
    return left


@device
def note(node, stack, waiting, height, n, rows):
    """Pushes a bucket to visit for some rows, if there are any. Returns the height of the stack."""
    if rows == 0:
        return height
    stack[height], waiting[height] = n, rows
    ask_for(node, np.uint64(n) * np.uint64(bt.NODE_WORDS))
    return height + 1


@inlined
def note_halves(index, n, rows, there, tile, stack, waiting, height):
    """Pushes the halves of a placed bucket, each for the rows that meet it.

    Returns the rows that may have matches in the bucket's own leaf, and the height of the stack.
    """
    node, multi, a = index.node, index.multi, np.uint32(index.node[n, bt.ATTR])
    for half, low in bt.HALVES:
        if node[n, half] != bt.NONE:
            lanes = filter_by_range(rows, multi, there, tile, a, node[n, low], node[n, low + 1])
            height = note(node, stack, waiting, height, node[n, half], lanes)
    return filter_by_range(rows, multi, there, tile, a, node[n, bt.OWN_LO], node[n, bt.OWN_HI]), height


@device
def match_tile(index, preds, rows, start, stop, scratch, sink, counters):
    """Matches rows ``start:stop``, at most ``TILE_ROWS``. Returns False if the sink has no room."""
    node, part, entry, need, reach, multi = index.node, index.part, index.entry, index.need, index.reach, index.multi
    short, same, truth = index.plan[bt.SHORT_CIRCUIT] != 0, index.same, scratch.truth
    conds, owner, jump_first = conditions_of(preds), preds.owner, preds.jump_first
    there, absent, stack, waiting = scratch.there, scratch.absent, scratch.stack, scratch.rows
    # Fill the tile
    tile = fill_tile(rows, start, stop, multi, scratch.tile)
    enter_rows(tile, there, absent)
    whole = ~np.uint64(0) >> np.uint64(TILE_ROWS - (stop - start))
    # Begin with the root and the bucket of unplaced conjunctions, for all rows
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
        # Push the halves of the bucket
        a, placed = np.uint32(node[n, bt.ATTR]), n > bt.ALWAYS
        own = here
        if placed:
            own, height = note_halves(index, n, here, there, tile, stack, waiting, height)
        if own == 0:
            continue
        # Push the topmost buckets of the parts
        p = np.int64(node[n, bt.FIRST])
        while p != bt.NONE:
            visited += np.uint64(1)
            lanes = own & there[part[p, bt.PART_ATTR]]
            if lanes != 0:
                by, lo, hi = part[p, bt.PART_ATTR], part[p, bt.PART_LO], part[p, bt.PART_HI]
                lanes = filter_by_range(lanes, multi, there, tile, by, lo, hi)
                height = note(node, stack, waiting, height, part[p, bt.TOP], lanes)
            p = np.int64(part[p, bt.NEXT])
        # Find the entries that the rows may match, and the attributes that all rows lack
        leaf, end = np.uint64(node[n, bt.LEAF]), np.uint64(node[n, bt.LEAF]) + np.uint64(node[n, bt.COUNT])
        if leaf == end:
            continue
        looked_at += (end - leaf) * popcount(own)
        nowhere = find_absent(absent, own)
        one = placed and not multi[a]
        for i in range(leaf, end):
            # Test the entry's attributes and its range
            if short and need[i] & nowhere != 0:
                continue
            left = own & whole & (lanes_within(tile, a, reach[i, 0], reach[i, 1]) if one else own)
            if short:
                left = filter_by_need(left, need[i], absent)
            if left == 0:
                continue
            # Verify the conjunction for the remaining rows
            candidates += popcount(left)
            c = np.int64(entry[i])
            if len(same) > 0 and (len(jump_first) == 0 or jump_first[c] < 0):
                left, taken = lanes_by_memo(conds, c, left, tile, same, truth)
            else:
                left, taken = lanes_that_hold(conds, c, left, tile)
            steps += taken
            # Write the matches, and drop the rows that are decided
            fits, decided = take_lanes(left, start, np.int64(owner[c]), sink, counters)
            whole &= ~decided
            if not fits:
                break
    # Clear the tile, and add up the counters
    leave_rows(tile, there)
    clear_tile(tile)
    for place, more in ((NODES, visited), (CONJUNCTIONS, looked_at), (CANDIDATES, candidates), (PREDICATES, steps)):
        counters[place] += np.int64(more)
    return fits
