"""Inserts and deletes of conjunctions.

A change without room stops between two steps and notes its needs. It goes on when it is called
again.

Source: algorithm 6 of "PS-Tree-Based Efficient Boolean Expression Matching for High-Dimensional and
Dense Workloads", and its section 6.2 for the copying of a split.
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.kinds.psthash import arrays as psh
from colmatch.kernels.kinds.psthash.arrays import PSTHash, UpdateScratch
from colmatch.kernels.kinds.psthash.buckets import collect, find_nth, free_empty, lacks_buckets, make_nth
from colmatch.kernels.kinds.pstree import arrays as ps
from colmatch.kernels.kinds.pstree.change import (
    begin_attribute,
    count_spaces,
    cut_at,
    end_attribute,
    leave_cells,
    needs_cut_above,
    needs_cut_below,
    run_of,
    uncut_at,
)
from colmatch.kernels.kinds.pstree.choose import ACCESS, BY_CELL, choose, is_placed
from colmatch.kernels.kinds.pstree.intervals import cells_within, interval, intervals
from colmatch.kernels.kinds.pstree.lists import class_for, drop_list, has_room, lacks_block, pull, push, room_of
from colmatch.kernels.kinds.pstree.tables import MOST_DIGITS, free_space, lacks_rows, new_cells
from colmatch.kernels.layout import ATTR_MASK, I64, Codes, Predicates, Written

CHOOSE, CUT_BELOW, CUT_ABOVE, WALK, LISTS = range(5)  # steps


@device
def _lacks(tree, work, inners, cuts, spaces, count, buckets):
    """Returns whether there is no room for rows, buckets and a block of ``count`` entries. Notes
    these needs.
    """
    entries = room_of(class_for(count)) if count > 0 else 0
    left = work.left
    left[psh.NEED_INNERS], left[psh.NEED_CUTS], left[psh.NEED_SPACES] = inners, cuts, spaces
    left[psh.NEED_ENTRIES], left[psh.NEED_BUCKETS] = entries, buckets
    return (
        lacks_rows(tree, inners, cuts, spaces)
        or (count > 0 and lacks_block(tree.state, tree.entry, count))
        or (buckets > 0 and lacks_buckets(tree, buckets))
    )


@device
def _list(tree, work, table, row, c):
    """Appends a conjunction to the list of a space or bucket. Returns whether there was room."""
    if not has_room(table, row) and _lacks(tree, work, 0, 0, 0, np.int64(table[row, ps.COUNT]) + 1, 0):
        return False
    push(tree.state, tree.entry, table, row, c, work.next[c, 0], work.next[c, 1])
    return True


@device
def _enter_nth(tree, work, c, n):
    """Enters a conjunction into the n-th bucket of its collected spaces. Returns whether there was
    room.
    """
    if _lacks(tree, work, 0, 0, 0, 0, psh.DIMENSIONS_MOST):
        return False
    b = make_nth(tree.bucket, tree.slot, tree.space, tree.state, work.spaces, work.dims, n)
    return _list(tree, work, tree.bucket, b, c)


@device
def _finish_split(tree, preds, work, a):
    """Enters the members of a divided space into the buckets of the new space.

    Returns whether there was room.
    """
    left = work.left
    new, old = left[psh.NEW_SPACE], left[psh.OLD_SPACE]
    if new == ps.NONE:
        return True
    while left[psh.MEMBER] < np.int64(tree.space[old, ps.COUNT]):
        # Enter the next member into its buckets with the new space
        at = np.int64(tree.space[old, ps.LIST]) + left[psh.MEMBER]
        c = np.int64(tree.entry[at, 0])
        work.next[c, 0], work.next[c, 1] = tree.entry[at, 1], tree.entry[at, 2]
        buckets = collect(tree, preds, work, c, a, new)
        while left[psh.MEMBER_PLACE] < buckets:
            if not _enter_nth(tree, work, c, left[psh.MEMBER_PLACE]):
                return False
            left[psh.MEMBER_PLACE] += 1
        # Make it a member of the new space
        if not _list(tree, work, tree.space, new, c):
            return False
        left[psh.MEMBER] += 1
        left[psh.MEMBER_PLACE] = 0
    left[psh.NEW_SPACE] = ps.NONE
    return True


@device
def _cut(tree, work, a, key):
    """Cuts at a key. Returns whether there was room for the cut; copying may wait."""
    if _lacks(tree, work, MOST_DIGITS, 1, 1, 0, 0):
        return False
    new = cut_at(tree, a, key)
    if new != ps.NONE:
        left = work.left
        left[psh.NEW_SPACE], left[psh.MEMBER], left[psh.MEMBER_PLACE] = new, 0, 0
        left[psh.OLD_SPACE] = tree.cut[np.int64(tree.space[new, ps.START]), ps.LESS]
    return True


@device
def _enter_spaces(tree, preds, work, c, p):
    """Makes a conjunction a member of the spaces of a predicate, after cutting them if needed."""
    # Give the attribute its first space
    left, a = work.left, np.int64(preds.pred[p, 0]) & ATTR_MASK
    if tree.tree[a, ps.FIRST] == ps.NONE:
        if _lacks(tree, work, 0, 0, 1, 0, 0):
            return False
        begin_attribute(tree, a)
    # pstbloom/change.py has the same steps, since kernels take no functions
    begin, end = intervals(preds, p)
    while left[psh.INTERVAL] < end - begin:
        lo, hi = interval(preds, p, begin + left[psh.INTERVAL])
        if lo <= hi:
            # Cut at both ends of the interval, and finish each split
            if left[psh.STEP] == CUT_BELOW:
                if needs_cut_below(tree, lo) and not _cut(tree, work, a, np.uint64(lo)):
                    return False
                left[psh.STEP] = CUT_ABOVE
            if not _finish_split(tree, preds, work, a):
                return False
            if left[psh.STEP] == CUT_ABOVE:
                if needs_cut_above(tree, a, hi) and not _cut(tree, work, a, np.uint64(hi + 1)):
                    return False
                left[psh.STEP] = WALK
            if not _finish_split(tree, preds, work, a):
                return False
            # Make the conjunction a member of the spaces in between
            s, last = run_of(tree, a, lo, hi)
            if left[psh.STEP] == WALK:  # pstbloom/change.py has this, too
                left[psh.STEP], left[psh.PLACE] = LISTS, s
            while left[psh.PLACE] != ps.NONE:
                s = left[psh.PLACE]
                if not _list(tree, work, tree.space, s, c):
                    return False
                tree.space[s, ps.PREDS] += 1
                left[psh.PLACE] = ps.NONE if s == last else np.int64(tree.space[s, ps.NEXT])
        left[psh.INTERVAL] += 1
        left[psh.STEP] = CUT_BELOW
    tree.tree[a, ps.USES] += 1
    return True


@device
def _count_cells(tree, preds, p, step):
    a = np.int64(preds.pred[p, 0]) & ATTR_MASK
    cells, first = cells_within(tree.tree, preds.pred, preds.run_lo, preds.run_hi, p), np.int64(tree.tree[a, ps.CELLS])
    for i in range(ps.FANOUT):
        if (cells >> i) & 1:
            count_spaces(tree.space, first + i, first + i, ps.PREDS, step)


@device
def _enter_cells(tree, preds, work, p):
    a = np.int64(preds.pred[p, 0]) & ATTR_MASK
    if tree.tree[a, ps.CELLS] == ps.NONE:
        if _lacks(tree, work, 0, 0, ps.FANOUT, 0, 0):
            return False
        tree.tree[a, ps.CELLS] = new_cells(tree)
    _count_cells(tree, preds, p, 1)
    tree.tree[a, ps.CELL_USES] += 1
    return True


@kernel
def enter(tree: Written[PSTHash], preds: Predicates, codes: Codes, work: Written[UpdateScratch], end: int) -> bool:
    """Enters conjunctions up to ``end``, from ``work.left`` on. Returns whether there was room."""
    left = work.left  # pstbloom/change.py goes on in the same way
    while left[psh.GOES_NEXT] < end:
        c = left[psh.GOES_NEXT]
        # Choose the access predicates, or list the conjunction for every event
        if left[psh.STEP] == CHOOSE:
            choose(tree, preds, codes, work.score, c, work.next)
            if not is_placed(tree.probe, preds.first, c) and not _list(tree, work, tree.space, np.int64(ps.ALWAYS), c):
                return False
            left[psh.PREDICATE], left[psh.INTERVAL], left[psh.STEP], left[psh.PLACE] = preds.first[c], 0, CUT_BELOW, 0
        # Enter it at the spaces of its access predicates
        while left[psh.PREDICATE] < preds.first[c + 1]:
            how = np.int64(tree.probe[left[psh.PREDICATE]])
            if how & ACCESS:
                if how & BY_CELL:
                    fits = _enter_cells(tree, preds, work, left[psh.PREDICATE])
                else:
                    fits = _enter_spaces(tree, preds, work, c, left[psh.PREDICATE])
                if not fits:
                    return False
            left[psh.PREDICATE] += 1
            left[psh.INTERVAL], left[psh.STEP], left[psh.PLACE] = 0, CUT_BELOW, 0
        # Enter it into its buckets
        buckets = collect(tree, preds, work, c, np.int64(-1), 0)
        while left[psh.PLACE] < buckets:
            if not _enter_nth(tree, work, c, left[psh.PLACE]):
                return False
            left[psh.PLACE] += 1
        # Go on with the next conjunction
        tree.at[c] = 1
        left[psh.GOES_NEXT] += 1
        left[psh.STEP] = CHOOSE
    return True


@device
def _leave_buckets(tree, preds, work, c, a, s):
    """Removes a conjunction from its buckets, or only from buckets with the space ``s`` of
    ``a``.
    """
    for n in range(collect(tree, preds, work, c, a, s)):
        b = find_nth(tree, work, n)
        pull(tree.state, tree.entry, tree.bucket, b, c)
        free_empty(tree, b)


@device
def _uncut(tree, preds, work, a, key):
    """Removes an end of a predicate, and the buckets of a space that is merged with the one
    below.
    """
    s = uncut_at(tree, a, key)
    if s == ps.NONE:
        return
    for i in range(np.int64(tree.space[s, ps.COUNT])):
        c = np.int64(tree.entry[np.int64(tree.space[s, ps.LIST]) + i, 0])
        _leave_buckets(tree, preds, work, c, a, s)
    drop_list(tree.state, tree.entry, tree.space, s)
    free_space(tree, s)


@device
def _leave_spaces(tree, preds, work, c, p):
    a = np.int64(preds.pred[p, 0]) & ATTR_MASK
    begin, end = intervals(preds, p)  # pstbloom/change.py has this loop, too
    for j in range(begin, end):
        lo, hi = interval(preds, p, j)
        if lo > hi:
            continue
        # Remove the conjunction from the members of the interval's spaces
        s, last = run_of(tree, a, lo, hi)
        count_spaces(tree.space, s, last, ps.PREDS, -1)
        pull(tree.state, tree.entry, tree.space, s, c)
        while s != last:
            s = np.int64(tree.space[s, ps.NEXT])
            pull(tree.state, tree.entry, tree.space, s, c)
        # Remove the ends of the interval
        if needs_cut_below(tree, lo):
            _uncut(tree, preds, work, a, np.uint64(lo))
        if needs_cut_above(tree, a, hi):
            _uncut(tree, preds, work, a, np.uint64(hi + 1))
    # Lower the count of predicates, and free the last space
    tree.tree[a, ps.USES] -= 1
    end_attribute(tree, a)


@device
def _leave_cells(tree, preds, p):
    a = np.int64(preds.pred[p, 0]) & ATTR_MASK
    _count_cells(tree, preds, p, -1)
    leave_cells(tree, a)


@kernel
def remove(tree: Written[PSTHash], preds: Predicates, work: Written[UpdateScratch], conjunctions: I64) -> None:
    """Removes conjunctions. Missing ones are passed over."""
    for c in conjunctions:
        if not tree.at[c]:
            continue
        _leave_buckets(tree, preds, work, c, np.int64(-1), 0)
        for p in range(preds.first[c], preds.first[c + 1]):
            how = np.int64(tree.probe[p])
            if how & ACCESS:
                if how & BY_CELL:
                    _leave_cells(tree, preds, p)
                else:
                    _leave_spaces(tree, preds, work, c, p)
        if not is_placed(tree.probe, preds.first, c):
            pull(tree.state, tree.entry, tree.space, ps.ALWAYS, c)
        tree.at[c] = 0
