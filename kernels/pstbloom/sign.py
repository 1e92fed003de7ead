"""Signatures: Bloom filters of conjunctions, one for each space and cell."""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import ATTR_MASK
from colmatch.kernels.pstbloom.arrays import STRIDE, WORDS
from colmatch.kernels.pstree.arrays import CELLS, EVERYWHERE, FANOUT, NEXT
from colmatch.kernels.pstree.change import run_of
from colmatch.kernels.pstree.choose import ACCESS, BY_CELL, BY_SPACE, PRESENT
from colmatch.kernels.pstree.intervals import cells_within, interval, intervals


@device
def sign_rows(signature, words, stride, s, last, c):
    """Puts a conjunction into the signatures of neighbouring rows.

    words, stride uint64
    """
    at = (np.uint64(c) >> np.uint64(6)) & (words - np.uint64(1))
    bit = np.uint64(1) << (np.uint64(c) & np.uint64(63))
    for row in range(np.uint64(s), np.uint64(last + 1)):
        signature[row * stride + at] |= bit


@device
def sign_spaces(space, signature, words, stride, s, last, c):
    """Puts a conjunction into the signatures of the spaces from one to another."""
    sign_rows(signature, words, stride, s, s, c)
    while s != last:
        s = np.int64(space[s, NEXT])
        sign_rows(signature, words, stride, s, s, c)


@device
def clear_signature(signature, stride, s):
    for w in range(s * stride, (s + 1) * stride):
        signature[w] = 0


@device
def sign_everywhere(tree):
    """Puts everybody into the signature of ``EVERYWHERE``."""
    stride = tree.state[STRIDE]
    for w in range(EVERYWHERE * stride, (EVERYWHERE + 1) * stride):
        tree.sign[w] = ~np.uint64(0)


@kernel
def sign_all(tree, preds):
    """Makes the signatures anew, which are all zero, of the conjunctions that are there."""
    sign_everywhere(tree)
    words, stride = np.uint64(tree.state[WORDS]), np.uint64(tree.state[STRIDE])
    for c in range(len(tree.at)):
        for p in range(preds.first[c], preds.first[c + 1]):
            how, a = np.int64(tree.probe[p]), np.int64(tree.probe[p]) & ATTR_MASK
            if not tree.at[c] or how & ACCESS:
                continue
            if how & PRESENT == BY_CELL:
                cells = cells_within(tree.top, preds.pred, preds.run_lo, preds.run_hi, p)
                for i in range(FANOUT):
                    if (cells >> i) & 1:
                        s = np.int64(tree.tree[a, CELLS]) + i
                        sign_rows(tree.sign, words, stride, s, s, c)
            elif how & PRESENT == BY_SPACE:
                begin, end = intervals(preds, p)
                for j in range(begin, end):
                    lo, hi = interval(preds, p, j)
                    if lo <= hi:
                        s, last = run_of(tree, a, lo, hi)
                        sign_spaces(tree.space, tree.sign, words, stride, s, last, c)
