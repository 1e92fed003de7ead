"""Predicates of several segments as predicates of one, written straight to their places."""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import ATTR_MASK, FLAG_RUN, I64, U8, U32, Predicates, Table, Written


@device
def _mark(low, high, begin, end, used):
    """Marks the boundaries of a range of dense codes, on an attribute with boundaries
    ``begin:end``.
    """
    if low > high:
        return
    if low > 1:
        used[begin + low - 2] = 1
    if begin + high - 1 < end:
        used[begin + high - 1] = 1


@kernel
def mark_boundaries(preds: Predicates, conjunctions: U32, first: I64, used: Written[U8]) -> tuple[int, int]:
    """Marks the boundaries that some conjunctions have: used (B) uint8, zero before.

    Returns their highest attribute plus one, and the number of intervals of predicates with
    several.

    preds : ``layout.Predicates`` with dense codes
    first (A + 1)
    """
    pred_first, pred, run_lo, run_hi = preds.first, preds.pred, preds.run_lo, preds.run_hi
    attributes = runs = np.int64(0)
    for i in range(len(conjunctions)):
        c = conjunctions[i]
        for p in range(pred_first[c], pred_first[c + 1]):
            # Track the highest attribute
            word = pred[p, 0]
            a = np.int64(word & np.uint32(ATTR_MASK))
            if a >= attributes:
                attributes = a + 1
            # Mark the ends of the intervals
            low, high = np.int64(pred[p, 1]), np.int64(pred[p, 2])
            if word & np.uint32(FLAG_RUN):
                runs += high - low
                for j in range(low, high):
                    _mark(np.int64(run_lo[j]), np.int64(run_hi[j]), first[a], first[a + 1], used)
            else:
                _mark(low, high, first[a], first[a + 1], used)
    return attributes, runs


@device
def _lowest(low, begin, out_begin, place):
    return place[begin + low - 2] - out_begin + 2 if low > 1 else np.int64(1)


@device
def _highest(high, begin, end, out_begin, out_end, place):
    return place[begin + high - 1] - out_begin + 1 if begin + high - 1 < end else out_end - out_begin + 1


@kernel
def recode_predicates(
    preds: Predicates,
    conjunctions: U32,
    at: I64,
    first: I64,
    place: I64,
    code_first: I64,
    runs: int,
    out: Written[tuple[Table[U32], U32, U32]],
) -> int:
    """Replaces a segment's dense codes of predicates with dense codes among all boundaries.

    Returns the end of the intervals written.

    preds, conjunctions : as for ``mark_boundaries``
    at (N) int64 : place of each conjunction's predicates among all
    first (A + 1), place (B) : of the segment's boundaries, as ``merge_boundaries`` writes them
    code_first (A + 1) : of all boundaries
    runs : end of the intervals written so far
    out : ``pred``, ``run_lo``, ``run_hi`` of all; the first has the predicates with their old codes
    """
    pred_first, run_lo, run_hi = preds.first, preds.run_lo, preds.run_hi
    pred, out_lo, out_hi = out
    for i in range(len(conjunctions)):
        c = conjunctions[i]
        for p in range(at[i], at[i] + pred_first[c + 1] - pred_first[c]):
            # Find the attribute's boundaries before and after
            word = pred[p, 0]
            a = np.int64(word & np.uint32(ATTR_MASK))
            start, end, out_start, out_end = first[a], first[a + 1], code_first[a], code_first[a + 1]
            # Recode the intervals
            low, high = np.int64(pred[p, 1]), np.int64(pred[p, 2])
            if word & np.uint32(FLAG_RUN):
                pred[p, 1] = runs
                for j in range(low, high):
                    out_lo[runs] = _lowest(np.int64(run_lo[j]), start, out_start, place)
                    out_hi[runs] = _highest(np.int64(run_hi[j]), start, end, out_start, out_end, place)
                    runs += 1
                pred[p, 2] = runs
            elif low <= high:
                pred[p, 1] = _lowest(low, start, out_start, place)
                pred[p, 2] = _highest(high, start, end, out_start, out_end, place)
    return runs
