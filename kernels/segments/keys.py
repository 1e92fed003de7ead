"""Intervals of keys that the codes of predicates stand for."""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import ATTR_MASK, FLAG_RUN, I64, KEY_MAX, KEY_MIN, Predicates, Written


@kernel
def write_intervals(
    first: I64, bound: I64, is_code: bool, preds: Predicates, begin: I64, low: Written[I64], high: Written[I64]
) -> None:
    """Writes the closed intervals of predicates, one predicate after the other.

    first (A + 1), bound (B) : boundaries of the codes, as in ``layout.Codes``
    is_code : write codes instead of keys; an open end is KEY_MIN or KEY_MAX all the same
    preds : ``layout.Predicates``
    begin (P + 1) int64 : place of the first interval of each predicate
    low, high (R) int64 : written
    """
    pred, run_lo, run_hi = preds.pred, preds.run_lo, preds.run_hi
    for p in range(len(pred)):
        a, n = np.int64(pred[p, 0] & ATTR_MASK), begin[p]
        if pred[p, 0] & FLAG_RUN:
            for r in range(pred[p, 1], pred[p, 2]):
                low[n], high[n] = _interval(first, bound, is_code, a, run_lo[r], run_hi[r])
                n += 1
        else:
            low[n], high[n] = _interval(first, bound, is_code, a, pred[p, 1], pred[p, 2])


@device
def _interval(first, bound, is_code, a, lowest, highest):
    lo, hi = np.int64(lowest), np.int64(highest)
    if lo > hi:
        return np.int64(0), np.int64(-1)
    begin, top = first[a], first[a + 1] - first[a] + 1
    least = KEY_MIN if lo <= 1 else (lo if is_code else bound[begin + lo - 2])
    most = KEY_MAX if hi >= top else (hi if is_code else bound[begin + hi - 1] - 1)
    return np.int64(least), np.int64(most)
