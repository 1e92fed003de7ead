"""Building at once: lists side by side, and signatures."""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.kinds.pstbloom.arrays import (
    CELL_SIGNED,
    EVERYBODY,
    SIGNED,
    STRIDE,
    WORDS,
    PSTBloom,
    UpdateScratch,
)
from colmatch.kernels.kinds.pstbloom.sign import sign_cells, sign_rows
from colmatch.kernels.kinds.pstree.arrays import ALWAYS, CELLS, COUNT, FANOUT, LIST, NONE, PREDS, RESERVED, SPACES
from colmatch.kernels.kinds.pstree.build import choose_each, count_run, rows_of
from colmatch.kernels.kinds.pstree.choose import ACCESS, BY_CELL, BY_SPACE, PRESENT, is_placed
from colmatch.kernels.kinds.pstree.intervals import cells_within, interval_of, intervals_of
from colmatch.kernels.layout import ATTR_MASK, I64, U32, Codes, Predicates, Table, Written


@kernel
def choose_all(
    tree: Written[PSTBloom], preds: Predicates, codes: Codes, work: Written[UpdateScratch], key: Written[I64]
) -> None:
    """Chooses the access predicates, and writes keys to order conjunctions by."""
    choose_each(tree, preds, codes, work, key)


@kernel
def count_lists(
    tree: Written[PSTBloom],
    preds: Predicates,
    codes: Codes,
    row: Written[U32],
    covers: Written[I64],
    lists: Written[I64],
) -> int:
    """Counts the predicates of each space, and the entries of its list.

    Writes ``PREDS``, and ``LIST`` with the start of the list. Returns the number of entries.

    covers, lists (S + 1) int64 : zeros on entry
    """
    pred, run_lo, run_hi = preds.pred, preds.run_lo, preds.run_hi
    trees, probe, code_first, label = tree.tree, tree.probe, codes.first, codes.label
    # Count the runs of spaces and cells by their first and last rows
    for p in range(len(probe)):
        how, a = np.int64(probe[p]) & PRESENT, np.int64(probe[p]) & ATTR_MASK
        is_access = np.int64(probe[p]) & ACCESS != 0
        if how == BY_CELL:
            cells = cells_within(tree.tree, pred, run_lo, run_hi, p)
            for i in range(FANOUT):
                if (cells >> i) & 1:
                    count_run(covers, lists, np.int64(trees[a, CELLS]) + i, np.int64(trees[a, CELLS]) + i, is_access)
        elif how == BY_SPACE:
            begin, end = intervals_of(pred, p)
            for j in range(begin, end):
                lo, hi = interval_of(pred, run_lo, run_hi, p, j)
                if lo <= hi:
                    s, last = rows_of(trees, code_first, label, row, a, lo, hi)
                    count_run(covers, lists, s, last, is_access)
    # Count the conjunctions without access predicate
    n, covering, listed = np.int64(0), np.int64(0), np.int64(0)
    for c in range(len(preds.owner)):
        n += not is_placed(probe, preds.first, c)
    tree.space[ALWAYS, LIST] = 0
    # Sum up the counts, and place the lists
    for s in range(RESERVED, tree.state[SPACES]):
        covering += covers[s]
        listed += lists[s]
        lists[s] = covering - listed
        tree.space[s, PREDS] = covering
        tree.state[SIGNED] += covering - listed
        tree.space[s, LIST] = n if listed > 0 else NONE
        n += listed
    # Move the counts of signed conjunctions from spaces to cells
    for a in range(len(trees)):
        if trees[a, CELLS] != NONE:
            for s in range(trees[a, CELLS], np.int64(trees[a, CELLS]) + FANOUT):
                tree.state[SIGNED] -= lists[s]
                tree.state[CELL_SIGNED] += lists[s]
    return n


@kernel
def fill_all(
    tree: Written[PSTBloom], preds: Predicates, codes: Codes, next: Written[Table[U32]], row: Written[U32]
) -> None:
    """Writes the counted lists, and the signatures, which must be zero.

    next (C, 2) uint32 : tests of each conjunction for its entries
    """
    pred, run_lo, run_hi = preds.pred, preds.run_lo, preds.run_hi
    trees, probe, space, entry, signature = tree.tree, tree.probe, tree.space, tree.entry, tree.sign
    words, stride = np.uint64(tree.state[WORDS]), np.uint64(tree.state[STRIDE])
    code_first, label = codes.first, codes.label
    for c in range(len(preds.owner)):
        # List a conjunction without access predicate for every event
        tree.at[c] = 1
        if not is_placed(probe, preds.first, c):
            _append(space, entry, np.int64(ALWAYS), np.int64(ALWAYS), c, next)
        for p in range(preds.first[c], preds.first[c + 1]):
            how, a = np.int64(probe[p]) & PRESENT, np.int64(probe[p]) & ATTR_MASK
            is_access = np.int64(probe[p]) & ACCESS != 0
            # Enter or sign it at the cells of a predicate
            if how == BY_CELL:
                cells = cells_within(tree.tree, pred, run_lo, run_hi, p)
                if not is_access:
                    sign_cells(signature, tree.state, a, cells, c)
                    continue
                for i in range(FANOUT):
                    if (cells >> i) & 1:
                        _append(space, entry, np.int64(trees[a, CELLS]) + i, np.int64(trees[a, CELLS]) + i, c, next)
            elif how == BY_SPACE:
                # Enter or sign it at the spaces of a predicate
                begin, end = intervals_of(pred, p)
                for j in range(begin, end):
                    lo, hi = interval_of(pred, run_lo, run_hi, p, j)
                    if lo > hi:
                        continue
                    s, last = rows_of(trees, code_first, label, row, a, lo, hi)
                    if is_access:
                        _append(space, entry, s, last, c, next)
                    else:
                        sign_rows(signature, words, stride, s, last, c)
    signature[EVERYBODY] = ~np.uint64(0)


@device
def _append(space, entry, s, last, c, next):
    for row in range(np.uint64(s), np.uint64(last + 1)):
        at = np.uint64(space[row, LIST]) + np.uint64(space[row, COUNT])
        entry[at, 0], entry[at, 1], entry[at, 2] = c, next[c, 0], next[c, 1]
        space[row, COUNT] += np.uint32(1)
