"""The intervals of a predicate, and the cells with its keys."""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.kinds.pstree.arrays import BASE, FANOUT, SHIFT
from colmatch.kernels.layout import ATTR_MASK, FLAG_RUN


@device
def intervals(preds, p):
    """Returns the range of a predicate's intervals in ``run_lo``, or 0 and 1 for a single one."""
    return intervals_of(preds.pred, p)


@device
def interval(preds, p, j):
    """Returns an interval of a predicate, which may be empty."""
    return interval_of(preds.pred, preds.run_lo, preds.run_hi, p, j)


@device
def intervals_of(pred, p):
    """``intervals`` on an array, for inner loops."""
    if pred[p, 0] & np.uint32(FLAG_RUN):
        return np.int64(pred[p, 1]), np.int64(pred[p, 2])
    return np.int64(0), np.int64(1)


@device
def interval_of(pred, run_lo, run_hi, p, j):
    """``interval`` on arrays, for inner loops."""
    if pred[p, 0] & np.uint32(FLAG_RUN):
        return np.int64(run_lo[j]), np.int64(run_hi[j])
    return np.int64(pred[p, 1]), np.int64(pred[p, 2])


@device
def cell_of(tree, a, code):
    """Returns the number of the cell of an attribute that has a code, or label.

    tree (A, 8) : of ``PSTree``
    """
    return min(max(code - np.int64(tree[a, BASE]), 0) >> np.int64(tree[a, SHIFT]), FANOUT - 1)


@device
def cells_within(tree, pred, run_lo, run_hi, p):
    """Returns the cells that have keys of a predicate, as bits.

    tree (A, 8) : of ``PSTree``
    """
    a, cells = np.int64(pred[p, 0]) & ATTR_MASK, np.int64(0)
    begin, end = intervals_of(pred, p)
    for j in range(begin, end):
        lo, hi = interval_of(pred, run_lo, run_hi, p, j)
        if lo <= hi:
            cells |= (2 << cell_of(tree, a, hi)) - (1 << cell_of(tree, a, lo))
    return cells
