"""bitslice: expected matches of conjunctions, by which sets with weights are cut into strata.

The conjunctions of a *stratum* can score higher than the conjunctions of the next.
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import ATTR_MASK, F64, FLAG_NONE, FLAG_RUN, I64, REJECT, Predicates, Written


@kernel
def expect_matches(
    preds: Predicates, code_first: Written[I64], present: Written[F64], below: Written[I64], expected: Written[F64]
) -> None:
    """Writes for each conjunction the share of events that are expected to match it.

    Predicates are taken to be independent. Of a program, only predicates count that must hold in
    any case.

    code_first, below : see ``choose_access``; present (A) float64 : share of events with a value of
    each attribute; expected (C) float64 : written
    """
    programs = len(preds.jump_first) > 0
    for c in range(len(expected)):
        program = programs and preds.jump_first[c] >= 0
        share = 1.0
        for p in range(preds.first[c], preds.first[c + 1]):
            if program and preds.jump[preds.jump_first[c] + p - preds.first[c], 1] != REJECT:
                break
            word = np.int64(preds.pred[p, 0])
            a = word & ATTR_MASK
            low, high = np.int64(preds.pred[p, 1]), np.int64(preds.pred[p, 2])
            # Sum up the shares of the predicate's intervals
            inside = 0.0
            if word & FLAG_RUN:
                for j in range(low, high):
                    lo, hi = np.int64(preds.run_lo[j]), np.int64(preds.run_hi[j])
                    inside += _share(code_first, below, a, lo, hi)
            else:
                inside = _share(code_first, below, a, low, high)
            inside = present[a] * min(inside, 1.0)
            share *= 1.0 - inside if word & FLAG_NONE else inside
        expected[c] = share


@device
def _share(code_first, below, a, low, high):
    """Returns the share of an attribute's values that lie in a range of codes."""
    if low > high:
        return 0.0
    base, end = code_first[a] - 1, code_first[a + 1]
    if len(below) > 0 and below[end] > below[base + 1]:
        return (below[base + high + 1] - below[base + low]) / (below[end] - below[base + 1])
    return (high - low + 1) / (end - base - 1)
