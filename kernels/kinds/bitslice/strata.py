"""bitslice: how often a conjunction is thought to match, by which sets with weights are cut.

The conjunctions of a *stratum* can score higher than those of the next.
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import ATTR_MASK, F64, FLAG_NONE, FLAG_RUN, I64, REJECT, Predicates, Written


@kernel
def expect_matches(
    preds: Predicates, code_first: Written[I64], present: Written[F64], below: Written[I64], expected: Written[F64]
) -> None:
    """Writes for each conjunction the share of events that are thought to match it.

    Its predicates are taken to be independent; of a program those count that must hold in any
    case.

    code_first, below : as ``choose_access`` has them; present (A) float64 : share of events that
    have a value of each attribute; expected (C) float64 is written
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
    """Returns the share of an attribute's values that a range of codes has."""
    if low > high:
        return 0.0
    base, end = code_first[a] - 1, code_first[a + 1]
    if len(below) > 0 and below[end] > below[base + 1]:
        return (below[base + high + 1] - below[base + low]) / (below[end] - below[base + 1])
    return (high - low + 1) / (end - base - 1)
