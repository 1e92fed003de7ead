"""Conjunctions come and go.

A change that finds no room stops between two steps, says what it needs, and goes on when it is
called again.

Source: algorithm 4 of "PS-Tree-Based Efficient Boolean Expression Matching for High-Dimensional and
Dense Workloads".
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.geometry import required_end
from colmatch.kernels.kinds.pstbloom import arrays as psb
from colmatch.kernels.kinds.pstbloom.arrays import PSTBloom, Work
from colmatch.kernels.kinds.pstbloom.sign import clear_cell, clear_space, sign_cells, sign_spaces
from colmatch.kernels.kinds.pstree import arrays as ps
from colmatch.kernels.kinds.pstree.change import (
    begin_attribute,
    count_spaces,
    cut_at,
    cuts_above,
    cuts_below,
    end_attribute,
    leave_cells,
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
    """Returns whether there is no room for rows and a block of ``count`` entries, which
    is noted.
    """
    entries = room_of(class_for(count)) if count > 0 else 0
    work.left[psb.NEED_INNERS], work.left[psb.NEED_CUTS] = inners, cuts
    work.left[psb.NEED_SPACES], work.left[psb.NEED_ENTRIES] = spaces, entries
    return lacks_rows(tree, inners, cuts, spaces) or (count > 0 and lacks_block(tree.state, tree.entry, count))


@device
def _cut(tree, work, a, key):
    """Cuts at a key. What is new has the list and the signature of what it was part of.

    Says whether there was room.
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
    """Puts a conjunction into the list of a space. Says whether there was room."""
    count = np.int64(tree.space[s, ps.COUNT])
    if not has_room(tree.space, s) and _lacks(tree, work, 0, 0, 0, count + 1):
        return False
    push(tree.state, tree.entry, tree.space, s, c, work.next[c, 0], work.next[c, 1])
    return True


@device
def _enter_run(tree, work, c, p, s, last):
    """Enters a conjunction at the spaces from one to another, or goes on at ``work.left``."""
    left = work.left
    if np.int64(tree.probe[p]) & ACCESS == 0:
        tree.state[psb.SIGNED] += count_spaces(tree.space, s, last, ps.PREDS, 1)
        words, stride = np.uint64(tree.state[psb.WORDS]), np.uint64(tree.state[psb.STRIDE])
        sign_spaces(tree.space, tree.sign, words, stride, s, last, c)
        return True
    if left[psb.STEP] == WALK:  # this stands in psthash/change.py as well
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
    """Enters a predicate at the spaces that it covers, which may have to be cut first."""
    left, a = work.left, np.int64(preds.pred[p, 0]) & ATTR_MASK
    if tree.tree[a, ps.FIRST] == ps.NONE:
        if _lacks(tree, work, 0, 0, 1, 0):
            return False
        begin_attribute(tree, a)
    # what goes step by step stands in psthash/change.py as well: kernels take no functions
    begin, end = intervals(preds, p)
    while left[psb.INTERVAL] < end - begin:
        lo, hi = interval(preds, p, begin + left[psb.INTERVAL])
        if lo <= hi:
            if left[psb.STEP] == CUT_BELOW:
                if cuts_below(tree, lo) and not _cut(tree, work, a, np.uint64(lo)):
                    return False
                left[psb.STEP] = CUT_ABOVE
            if left[psb.STEP] == CUT_ABOVE:
                if cuts_above(tree, a, hi) and not _cut(tree, work, a, np.uint64(hi + 1)):
                    return False
                left[psb.STEP] = WALK
            s, last = run_of(tree, a, lo, hi)
            if not _enter_run(tree, work, c, p, s, last):
                return False
        left[psb.INTERVAL] += 1
        left[psb.STEP] = CUT_BELOW
    tree.tree[a, ps.USES] += 1
    return True


@device
def _enter_cells(tree, preds, work, c, p):
    """Enters a predicate at the cells that it has keys in."""
    left, a = work.left, np.int64(preds.pred[p, 0]) & ATTR_MASK
    if tree.tree[a, ps.CELLS] == ps.NONE:
        if _lacks(tree, work, 0, 0, ps.FANOUT, 0):
            return False
        tree.tree[a, ps.CELLS] = new_cells(tree)
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
    if not is_access:
        sign_cells(tree.sign, tree.state, a, cells, c)
    tree.tree[a, ps.CELL_USES] += 1
    return True


@kernel
def enter(tree: Written[PSTBloom], preds: Predicates, codes: Codes, work: Written[Work], end: int) -> bool:
    """Enters conjunctions up to ``end``, from ``work.left`` on. Says whether there was room."""
    left = work.left  # how this goes on stands in psthash/change.py as well
    while left[psb.GOES_NEXT] < end:
        c = left[psb.GOES_NEXT]
        if left[psb.STEP] == CHOOSE:
            choose(tree, preds, codes, work.score, c, work.next)
            if not is_placed(tree.probe, preds.first, c) and not _list(tree, work, np.int64(ps.ALWAYS), c):
                return False
            left[psb.PREDICATE], left[psb.INTERVAL], left[psb.STEP], left[psb.PLACE] = preds.first[c], 0, CUT_BELOW, 0
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
        tree.at[c] = 1
        left[psb.GOES_NEXT] += 1
        left[psb.STEP] = CHOOSE
    return True


@device
def _drop(tree, s):
    """Takes what hangs at a space away."""
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
    """Takes a conjunction out of a row. Says whether nobody is signed there any more.

    Only then are bits cleared, since one bit may be that of several conjunctions.

    signed : place in the state of the number of conjunctions that are signed
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
    begin, end = intervals(preds, p)  # this loop stands in psthash/change.py as well
    for j in range(begin, end):
        lo, hi = interval(preds, p, j)
        if lo > hi:
            continue
        s, last = run_of(tree, a, lo, hi)
        while True:
            if _uncover(tree, s, c, p, psb.SIGNED):
                clear_space(tree.sign, tree.state, s)
            if s == last:
                break
            s = np.int64(tree.space[s, ps.NEXT])
        if cuts_below(tree, lo):
            _uncut(tree, a, np.uint64(lo))
        if cuts_above(tree, a, hi):
            _uncut(tree, a, np.uint64(hi + 1))
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
    """Takes conjunctions out; those that are not there are passed over."""
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
