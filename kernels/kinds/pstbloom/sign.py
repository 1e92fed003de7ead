"""Signatures: Bloom filters of conjunctions, one for each space and cell."""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.kinds.pstbloom import arrays as psb
from colmatch.kernels.kinds.pstbloom.arrays import PSTBloom
from colmatch.kernels.kinds.pstree.arrays import FANOUT, NEXT
from colmatch.kernels.kinds.pstree.change import run_of
from colmatch.kernels.kinds.pstree.choose import ACCESS, BY_CELL, BY_SPACE, PRESENT
from colmatch.kernels.kinds.pstree.intervals import cells_within, interval, intervals
from colmatch.kernels.layout import ATTR_MASK, Predicates, Written


@device
def sign_rows(signature, words, stride, s, last, c):
    """Puts a conjunction into the signatures of neighbouring rows, if spaces have any.

    words, stride : uint64
    """
    if words == 0:
        return
    at = (np.uint64(c) >> np.uint64(6)) & (words - np.uint64(1))
    at += np.uint64(psb.SPACES_FROM)
    bit = np.uint64(1) << (np.uint64(c) & np.uint64(63))
    for row in range(np.uint64(s), np.uint64(last + 1)):
        signature[row * stride + at] |= bit


@device
def sign_spaces(space, signature, words, stride, s, last, c):
    """Puts a conjunction into the signatures of the spaces from ``s`` to ``last``."""
    sign_rows(signature, words, stride, s, s, c)
    while s != last:
        s = np.int64(space[s, NEXT])
        sign_rows(signature, words, stride, s, s, c)


@device
def sign_cells(signature, state, a, cells, c):
    """Puts a conjunction into the signatures of some cells of an attribute.

    cells : bits of these cells
    """
    words = state[psb.CELL_WORDS]
    if words == 0:
        return
    bit = np.uint64(1) << (np.uint64(c) & np.uint64(63))
    for i in range(FANOUT):
        if (cells >> i) & 1:
            signature[first_of_cell(state, a, i) + ((c >> 6) & (words - 1))] |= bit


@device
def first_of_cell(state, a, i):
    """Returns the first word of the signature of a cell."""
    return state[psb.FIRST_CELL] + (np.int64(a) * FANOUT + i) * state[psb.CELL_STRIDE]


@device
def clear_space(signature, state, s):
    at = psb.SPACES_FROM + s * state[psb.STRIDE]
    for w in range(at, at + state[psb.STRIDE]):
        signature[w] = 0


@device
def clear_cell(signature, state, a, i):
    at = first_of_cell(state, a, i)
    for w in range(at, at + state[psb.CELL_STRIDE]):
        signature[w] = 0


@kernel
def sign_all(tree: Written[PSTBloom], preds: Predicates) -> None:
    """Signs all entered conjunctions. The signatures must be zero."""
    tree.sign[psb.EVERYBODY] = ~np.uint64(0)
    words, stride = np.uint64(tree.state[psb.WORDS]), np.uint64(tree.state[psb.STRIDE])
    for c in range(len(tree.at)):
        for p in range(preds.first[c], preds.first[c + 1]):
            # Skip deleted conjunctions and access predicates
            how, a = np.int64(tree.probe[p]), np.int64(tree.probe[p]) & ATTR_MASK
            if not tree.at[c] or how & ACCESS:
                continue
            # Sign at the cells or the spaces of the predicate
            if how & PRESENT == BY_CELL:
                cells = cells_within(tree.tree, preds.pred, preds.run_lo, preds.run_hi, p)
                sign_cells(tree.sign, tree.state, a, cells, c)
            elif how & PRESENT == BY_SPACE:
                begin, end = intervals(preds, p)
                for j in range(begin, end):
                    lo, hi = interval(preds, p, j)
                    if lo <= hi:
                        s, last = run_of(tree, a, lo, hi)
                        sign_spaces(tree.space, tree.sign, words, stride, s, last, c)
