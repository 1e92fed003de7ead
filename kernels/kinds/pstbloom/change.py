"""Inserts and deletes of conjunctions.

A change without room stops between two steps and notes its needs. It goes on when it is called
again.

Source: algorithm 4 of "PS-Tree-Based Efficient Boolean Expression Matching for High-Dimensional and
Dense Workloads".
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.geometry import required_end
from colmatch.kernels.kinds.pstbloom import arrays as psb
from colmatch.kernels.kinds.pstbloom.arrays import PSTBloom, UpdateScratch
from colmatch.kernels.kinds.pstbloom.sign import clear_cell, clear_space, sign_cells, sign_spaces
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
from colmatch.kernels.kinds.pstree.choose import ACCESS, BY_CELL, BY_SPACE, PRESENT, choose, is_placed
from colmatch.kernels.kinds.pstree.intervals import cells_within, interval, intervals
from colmatch.kernels.kinds.pstree.lists import (
    class_for,
    copy_list,
    drop_list,
    has_room,
    lacks_block,
    pull,
    push,
    room_of,
)
from colmatch.kernels.kinds.pstree.search import find_space
from colmatch.kernels.kinds.pstree.tables import MOST_DIGITS, free_space, lacks_rows, new_cells
from colmatch.kernels.layout import ATTR_MASK, I64, Codes, Predicates, Written

CHOOSE, CUT_BELOW, CUT_ABOVE, WALK, LISTS = range(5)  # steps


@device
def _lacks(tree, work, inners, cuts, spaces, count):
    """Returns whether there is no room for rows and a block of ``count`` entries. Notes these
    needs.
    """
    entries = room_of(class_for(count)) if count > 0 else 0
    work.left[psb.NEED_INNERS], work.left[psb.NEED_CUTS] = inners, cuts
    work.left[psb.NEED_SPACES], work.left[psb.NEED_ENTRIES] = spaces, entries
    return lacks_rows(tree, inners, cuts, spaces) or (count > 0 and lacks_block(tree.state, tree.entry, count))


@device
def _cut(tree, work, a, key):
    """Cuts at a key. A new space gets the list and the signature of the old one.

    Returns whether there was room.
    """
    s = find_space(tree.tree, tree.top, tree.inner, tree.cut, a, key)
    if _lacks(tree, work, MOST_DIGITS, 1, 1, np.int64(tree.space[s, ps.COUNT])):
        return False
    new = cut_at(tree, a, key)
    if new == ps.NONE:
        return True
    below, stride = np.int64(tree.cut[np.int64(tree.space[new, ps.START]), ps.LESS]), tree.state[psb.STRIDE]
    copy_list(tree.state, tree.entry, tree.space, below, new)
    for w in range(psb.SPACES_FROM, psb.SPACES_FROM + stride):
        tree.sign[new * stride + w] = tree.sign[below * stride + w]
    tree.state[psb.SIGNED] += np.int64(tree.space[below, ps.PREDS]) - np.int64(tree.space[below, ps.COUNT])
    return True


@device
def _list(tree, work, s, c):
    """Appends a conjunction to the list of a space. Returns whether there was room."""
    count = np.int64(tree.space[s, ps.COUNT])
    if not has_room(tree.space, s) and _lacks(tree, work, 0, 0, 0, count + 1):
        return False
    push(tree.state, tree.entry, tree.space, s, c, work.next[c, 0], work.next[c, 1])
    return True


@device
def _enter_run(tree, work, c, p, s, last):
    """Enters a conjunction at the spaces from ``s`` to ``last``, or goes on at ``work.left``."""
    left = work.left
    if np.int64(tree.probe[p]) & ACCESS == 0:
        tree.state[psb.SIGNED] += count_spaces(tree.space, s, last, ps.PREDS, 1)
        words, stride = np.uint64(tree.state[psb.WORDS]), np.uint64(tree.state[psb.STRIDE])
        sign_spaces(tree.space, tree.sign, words, stride, s, last, c)
        return True
    if left[psb.STEP] == WALK:  # psthash/change.py has this, too
        left[psb.STEP], left[psb.PLACE] = LISTS, s
    while left[psb.PLACE] != ps.NONE:
        s = left[psb.PLACE]
        if not _list(tree, work, s, c):
            return False
        tree.space[s, ps.PREDS] += 1
        left[psb.PLACE] = ps.NONE if s == last else np.int64(tree.space[s, ps.NEXT])
    return True


@device
def _enter_spaces(tree, preds, work, c, p):
    """Enters a predicate at the spaces that it covers, after cutting them if needed."""
    # Give the attribute its first space
    left, a = work.left, np.int64(preds.pred[p, 0]) & ATTR_MASK
    if tree.tree[a, ps.FIRST] == ps.NONE:
        if _lacks(tree, work, 0, 0, 1, 0):
            return False
        begin_attribute(tree, a)
    # psthash/change.py has the same steps, since kernels take no functions
    begin, end = intervals(preds, p)
    while left[psb.INTERVAL] < end - begin:
        lo, hi = interval(preds, p, begin + left[psb.INTERVAL])
        if lo <= hi:
            # Cut at both ends of the interval
            if left[psb.STEP] == CUT_BELOW:
                if needs_cut_below(tree, lo) and not _cut(tree, work, a, np.uint64(lo)):
                    return False
                left[psb.STEP] = CUT_ABOVE
            if left[psb.STEP] == CUT_ABOVE:
                if needs_cut_above(tree, a, hi) and not _cut(tree, work, a, np.uint64(hi + 1)):
                    return False
                left[psb.STEP] = WALK
            # Enter the conjunction at the spaces in between
            s, last = run_of(tree, a, lo, hi)
            if not _enter_run(tree, work, c, p, s, last):
                return False
        left[psb.INTERVAL] += 1
        left[psb.STEP] = CUT_BELOW
    tree.tree[a, ps.USES] += 1
    return True


@device
def _enter_cells(tree, preds, work, c, p):
    """Enters a predicate at the cells with its keys."""
    # Give the attribute its cells
    left, a = work.left, np.int64(preds.pred[p, 0]) & ATTR_MASK
    if tree.tree[a, ps.CELLS] == ps.NONE:
        if _lacks(tree, work, 0, 0, ps.FANOUT, 0):
            return False
        tree.tree[a, ps.CELLS] = new_cells(tree)
    # List the conjunction at each cell, or count it as signed
    cells = cells_within(tree.tree, preds.pred, preds.run_lo, preds.run_hi, p)
    is_access = np.int64(tree.probe[p]) & ACCESS != 0
    while left[psb.PLACE] < ps.FANOUT:
        s = np.int64(tree.tree[a, ps.CELLS]) + left[psb.PLACE]
        if (cells >> left[psb.PLACE]) & 1:
            if not is_access:
                tree.state[psb.CELL_SIGNED] += 1
            elif not _list(tree, work, s, c):
                return False
            tree.space[s, ps.PREDS] += 1
        left[psb.PLACE] += 1
    # Sign it at all cells together
    if not is_access:
        sign_cells(tree.sign, tree.state, a, cells, c)
    tree.tree[a, ps.CELL_USES] += 1
    return True


@kernel
def enter(tree: Written[PSTBloom], preds: Predicates, codes: Codes, work: Written[UpdateScratch], end: int) -> bool:
    """Enters conjunctions up to ``end``, from ``work.left`` on. Returns whether there was room."""
    left = work.left  # psthash/change.py goes on in the same way
    while left[psb.GOES_NEXT] < end:
        c = left[psb.GOES_NEXT]
        # Choose the access predicates, or list the conjunction for every event
        if left[psb.STEP] == CHOOSE:
            choose(tree, preds, codes, work.score, c, work.next)
            if not is_placed(tree.probe, preds.first, c) and not _list(tree, work, np.int64(ps.ALWAYS), c):
                return False
            left[psb.PREDICATE], left[psb.INTERVAL], left[psb.STEP], left[psb.PLACE] = preds.first[c], 0, CUT_BELOW, 0
        # Enter its predicates
        last = required_end(preds, c)
        while left[psb.PREDICATE] < last:
            p = left[psb.PREDICATE]
            how = np.int64(tree.probe[p]) & PRESENT
            if how == BY_SPACE and not _enter_spaces(tree, preds, work, c, p):
                return False
            if how == BY_CELL and not _enter_cells(tree, preds, work, c, p):
                return False
            left[psb.PREDICATE] += 1
            left[psb.INTERVAL], left[psb.STEP], left[psb.PLACE] = 0, CUT_BELOW, 0
        # Go on with the next conjunction
        tree.at[c] = 1
        left[psb.GOES_NEXT] += 1
        left[psb.STEP] = CHOOSE
    return True


@device
def _drop(tree, s):
    """Removes the list and the signature of a space."""
    drop_list(tree.state, tree.entry, tree.space, s)
    clear_space(tree.sign, tree.state, s)


@device
def _uncut(tree, a, key):
    s = uncut_at(tree, a, key)
    if s != ps.NONE:
        tree.state[psb.SIGNED] -= np.int64(tree.space[s, ps.PREDS]) - np.int64(tree.space[s, ps.COUNT])
        _drop(tree, s)
        free_space(tree, s)


@device
def _uncover(tree, s, c, p, signed):
    """Removes a conjunction from a row. Returns whether the signature there has no conjunction
    left.

    Bits are cleared only then, since several conjunctions may share one bit.

    signed : place in ``state`` of the number of signed conjunctions
    """
    tree.space[s, ps.PREDS] -= 1
    if np.int64(tree.probe[p]) & ACCESS:
        pull(tree.state, tree.entry, tree.space, s, c)
        return False
    tree.state[signed] -= 1
    return tree.space[s, ps.PREDS] == tree.space[s, ps.COUNT]


@device
def _leave_spaces(tree, preds, c, p):
    a = np.int64(preds.pred[p, 0]) & ATTR_MASK
    begin, end = intervals(preds, p)  # psthash/change.py has this loop, too
    for j in range(begin, end):
        lo, hi = interval(preds, p, j)
        if lo > hi:
            continue
        # Remove the conjunction from the spaces of the interval
        s, last = run_of(tree, a, lo, hi)
        while True:
            if _uncover(tree, s, c, p, psb.SIGNED):
                clear_space(tree.sign, tree.state, s)
            if s == last:
                break
            s = np.int64(tree.space[s, ps.NEXT])
        # Remove the ends of the interval
        if needs_cut_below(tree, lo):
            _uncut(tree, a, np.uint64(lo))
        if needs_cut_above(tree, a, hi):
            _uncut(tree, a, np.uint64(hi + 1))
    # Lower the count of predicates, and free the last space
    tree.tree[a, ps.USES] -= 1
    end_attribute(tree, a)


@device
def _leave_cells(tree, preds, c, p):
    a = np.int64(preds.pred[p, 0]) & ATTR_MASK
    cells, first = cells_within(tree.tree, preds.pred, preds.run_lo, preds.run_hi, p), np.int64(tree.tree[a, ps.CELLS])
    for i in range(ps.FANOUT):
        if (cells >> i) & 1 and _uncover(tree, first + i, c, p, psb.CELL_SIGNED):
            clear_cell(tree.sign, tree.state, a, i)
    leave_cells(tree, a)


@kernel
def remove(tree: Written[PSTBloom], preds: Predicates, conjunctions: I64) -> None:
    """Removes conjunctions. Missing ones are passed over."""
    for c in conjunctions:
        if not tree.at[c]:
            continue
        for p in range(preds.first[c], required_end(preds, c)):
            how = np.int64(tree.probe[p]) & PRESENT
            if how == BY_SPACE:
                _leave_spaces(tree, preds, c, p)
            elif how == BY_CELL:
                _leave_cells(tree, preds, c, p)
        if not is_placed(tree.probe, preds.first, c):
            pull(tree.state, tree.entry, tree.space, ps.ALWAYS, c)
        tree.at[c] = 0
