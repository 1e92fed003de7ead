"""Conjunctions come and go.

A change that finds no room stops between two steps, says what it needs, and goes on when it is
called again.

Source: algorithm 4 of "PS-Tree-Based Efficient Boolean Expression Matching for High-Dimensional and
Dense Workloads".
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.geometry import required_end
from colmatch.kernels.layout import ATTR_MASK
from colmatch.kernels.pstbloom.arrays import (
    CELL_SIGNED,
    GOES_NEXT,
    INTERVAL,
    NEED_CUTS,
    NEED_ENTRIES,
    NEED_INNERS,
    NEED_SPACES,
    PLACE,
    PREDICATE,
    SIGNED,
    SPACES_FROM,
    STEP,
    STRIDE,
    WORDS,
)
from colmatch.kernels.pstbloom.sign import clear_cell, clear_space, sign_cells, sign_spaces
from colmatch.kernels.pstree.arrays import (
    ALWAYS,
    CELL_USES,
    CELLS,
    COUNT,
    FANOUT,
    FIRST,
    LESS,
    NEXT,
    NONE,
    PREDS,
    START,
    USES,
)
from colmatch.kernels.pstree.change import (
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
from colmatch.kernels.pstree.choose import ACCESS, BY_CELL, BY_SPACE, PRESENT, choose, is_placed
from colmatch.kernels.pstree.intervals import cells_within, interval, intervals
from colmatch.kernels.pstree.lists import class_for, copy_list, drop_list, has_room, lacks_block, pull, push, room_of
from colmatch.kernels.pstree.search import find_space
from colmatch.kernels.pstree.tables import MOST_DIGITS, free_space, lacks_rows, new_cells

CHOOSE, CUT_BELOW, CUT_ABOVE, WALK, LISTS = range(5)  # steps


@device
def _lacks(tree, work, inners, cuts, spaces, count):
    """Whether there is no room for rows and a block of ``count`` entries, which is noted."""
    entries = room_of(class_for(count)) if count > 0 else 0
    work.left[NEED_INNERS], work.left[NEED_CUTS] = inners, cuts
    work.left[NEED_SPACES], work.left[NEED_ENTRIES] = spaces, entries
    return lacks_rows(tree, inners, cuts, spaces) or (count > 0 and lacks_block(tree.state, tree.entry, count))


@device
def _cut(tree, work, a, key):
    """Cuts at a key. What is new has the list and the signature of what it was part of.

    Says whether there was room.
    """
    s = find_space(tree.tree, tree.top, tree.inner, tree.cut, a, key)
    if _lacks(tree, work, MOST_DIGITS, 1, 1, np.int64(tree.space[s, COUNT])):
        return False
    new = cut_at(tree, a, key)
    if new == NONE:
        return True
    below, stride = np.int64(tree.cut[np.int64(tree.space[new, START]), LESS]), tree.state[STRIDE]
    copy_list(tree.state, tree.entry, tree.space, below, new)
    for w in range(SPACES_FROM, SPACES_FROM + stride):
        tree.sign[new * stride + w] = tree.sign[below * stride + w]
    tree.state[SIGNED] += np.int64(tree.space[below, PREDS]) - np.int64(tree.space[below, COUNT])
    return True


@device
def _list(tree, work, s, c):
    """Puts a conjunction into the list of a space. Says whether there was room."""
    count = np.int64(tree.space[s, COUNT])
    if not has_room(tree.space, s) and _lacks(tree, work, 0, 0, 0, count + 1):
        return False
    push(tree.state, tree.entry, tree.space, s, c, work.next[c, 0], work.next[c, 1])
    return True


@device
def _enter_run(tree, work, c, p, s, last):
    """Enters a conjunction at the spaces from one to another, or goes on at ``work.left``."""
    left = work.left
    if np.int64(tree.probe[p]) & ACCESS == 0:
        tree.state[SIGNED] += count_spaces(tree.space, s, last, PREDS, 1)
        words, stride = np.uint64(tree.state[WORDS]), np.uint64(tree.state[STRIDE])
        sign_spaces(tree.space, tree.sign, words, stride, s, last, c)
        return True
    if left[STEP] == WALK:  # this stands in psthash/change.py as well
        left[STEP], left[PLACE] = LISTS, s
    while left[PLACE] != NONE:
        s = left[PLACE]
        if not _list(tree, work, s, c):
            return False
        tree.space[s, PREDS] += 1
        left[PLACE] = NONE if s == last else np.int64(tree.space[s, NEXT])
    return True


@device
def _enter_spaces(tree, preds, work, c, p):
    """Enters a predicate at the spaces that it covers, which may have to be cut first."""
    left, a = work.left, np.int64(preds.pred[p, 0]) & ATTR_MASK
    if tree.tree[a, FIRST] == NONE:
        if _lacks(tree, work, 0, 0, 1, 0):
            return False
        begin_attribute(tree, a)
    # what goes step by step stands in psthash/change.py as well: kernels take no functions
    begin, end = intervals(preds, p)
    while left[INTERVAL] < end - begin:
        lo, hi = interval(preds, p, begin + left[INTERVAL])
        if lo <= hi:
            if left[STEP] == CUT_BELOW:
                if cuts_below(tree, lo) and not _cut(tree, work, a, np.uint64(lo)):
                    return False
                left[STEP] = CUT_ABOVE
            if left[STEP] == CUT_ABOVE:
                if cuts_above(tree, a, hi) and not _cut(tree, work, a, np.uint64(hi + 1)):
                    return False
                left[STEP] = WALK
            s, last = run_of(tree, a, lo, hi)
            if not _enter_run(tree, work, c, p, s, last):
                return False
        left[INTERVAL] += 1
        left[STEP] = CUT_BELOW
    tree.tree[a, USES] += 1
    return True


@device
def _enter_cells(tree, preds, work, c, p):
    """Enters a predicate at the cells that it has keys in."""
    left, a = work.left, np.int64(preds.pred[p, 0]) & ATTR_MASK
    if tree.tree[a, CELLS] == NONE:
        if _lacks(tree, work, 0, 0, FANOUT, 0):
            return False
        tree.tree[a, CELLS] = new_cells(tree)
    cells = cells_within(tree.tree, preds.pred, preds.run_lo, preds.run_hi, p)
    is_access = np.int64(tree.probe[p]) & ACCESS != 0
    while left[PLACE] < FANOUT:
        s = np.int64(tree.tree[a, CELLS]) + left[PLACE]
        if (cells >> left[PLACE]) & 1:
            if not is_access:
                tree.state[CELL_SIGNED] += 1
            elif not _list(tree, work, s, c):
                return False
            tree.space[s, PREDS] += 1
        left[PLACE] += 1
    if not is_access:
        sign_cells(tree.sign, tree.state, a, cells, c)
    tree.tree[a, CELL_USES] += 1
    return True


@kernel
def enter(tree, preds, codes, work, end):
    """Enters conjunctions up to ``end``, from ``work.left`` on. Says whether there was room."""
    left = work.left  # how this goes on stands in psthash/change.py as well
    while left[GOES_NEXT] < end:
        c = left[GOES_NEXT]
        if left[STEP] == CHOOSE:
            choose(tree, preds, codes, work.score, c, work.next)
            if not is_placed(tree.probe, preds.first, c) and not _list(tree, work, np.int64(ALWAYS), c):
                return False
            left[PREDICATE], left[INTERVAL], left[STEP], left[PLACE] = preds.first[c], 0, CUT_BELOW, 0
        last = required_end(preds, c)
        while left[PREDICATE] < last:
            p = left[PREDICATE]
            how = np.int64(tree.probe[p]) & PRESENT
            if how == BY_SPACE and not _enter_spaces(tree, preds, work, c, p):
                return False
            if how == BY_CELL and not _enter_cells(tree, preds, work, c, p):
                return False
            left[PREDICATE] += 1
            left[INTERVAL], left[STEP], left[PLACE] = 0, CUT_BELOW, 0
        tree.at[c] = 1
        left[GOES_NEXT] += 1
        left[STEP] = CHOOSE
    return True


@device
def _drop(tree, s):
    """Takes what hangs at a space away."""
    drop_list(tree.state, tree.entry, tree.space, s)
    clear_space(tree.sign, tree.state, s)


@device
def _uncut(tree, a, key):
    s = uncut_at(tree, a, key)
    if s != NONE:
        tree.state[SIGNED] -= np.int64(tree.space[s, PREDS]) - np.int64(tree.space[s, COUNT])
        _drop(tree, s)
        free_space(tree, s)


@device
def _uncover(tree, s, c, p, signed):
    """Takes a conjunction out of a row. Says whether nobody is signed there any more.

    Only then are bits cleared, since one bit may be that of several conjunctions.

    signed : place in the state of the number of conjunctions that are signed
    """
    tree.space[s, PREDS] -= 1
    if np.int64(tree.probe[p]) & ACCESS:
        pull(tree.state, tree.entry, tree.space, s, c)
        return False
    tree.state[signed] -= 1
    return tree.space[s, PREDS] == tree.space[s, COUNT]


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
            if _uncover(tree, s, c, p, SIGNED):
                clear_space(tree.sign, tree.state, s)
            if s == last:
                break
            s = np.int64(tree.space[s, NEXT])
        if cuts_below(tree, lo):
            _uncut(tree, a, np.uint64(lo))
        if cuts_above(tree, a, hi):
            _uncut(tree, a, np.uint64(hi + 1))
    tree.tree[a, USES] -= 1
    end_attribute(tree, a)


@device
def _leave_cells(tree, preds, c, p):
    a = np.int64(preds.pred[p, 0]) & ATTR_MASK
    cells, first = cells_within(tree.tree, preds.pred, preds.run_lo, preds.run_hi, p), np.int64(tree.tree[a, CELLS])
    for i in range(FANOUT):
        if (cells >> i) & 1 and _uncover(tree, first + i, c, p, CELL_SIGNED):
            clear_cell(tree.sign, tree.state, a, i)
    leave_cells(tree, a)


@kernel
def remove(tree, preds, conjunctions):
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
            pull(tree.state, tree.entry, tree.space, ALWAYS, c)
        tree.at[c] = 0
