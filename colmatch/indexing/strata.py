"""Strata: the conjunctions of a set by how high they can score, for whoever wants the best alone.

Who has found enough in the first strata need not look at the others. Where they are cut depends on
how many matches events are thought to have: the first strata are to be enough for few.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from colmatch.indexing.base import bounds_of
from colmatch.kernels.layout import DOT, F64, PRIORITY, U8, Predicates

LEAST = 4096  # conjunctions of a stratum
MOST = 4  # strata
FACTOR = 8.0  # by which the strata up to one have more matches than those up to the one before
ENOUGH = 4.0  # matches that the first of more than two strata has


class Cut(NamedTuple):
    """C conjunctions cut to S strata, the best first."""

    stratum: U8  # (C)
    best: F64  # (S, 4) highest score by ``layout.DOT`` and so on, if no event gives weights
    expected: F64  # (S) matches that an event is thought to have


def is_ranked(preds: Predicates) -> bool:
    """Returns whether some conjunctions may be better than others."""
    return len(preds.weight) > 0 or len(preds.priority) > 0


def cut_strata(preds: Predicates, expected: F64) -> Cut:
    """Cuts conjunctions to strata: by their weights, or by priority where there are no weights.

    expected (C) : share of events that each is thought to match
    """
    most = bounds_of(preds)
    falling = -most[:, DOT if len(preds.weight) else PRIORITY]
    order = np.argsort(falling)
    falling, found = falling[order], np.cumsum(expected[order])
    ends = [len(order)]
    for k in range(1, MOST):
        target = found[-1] / FACTOR**k
        if k > 1 and target < ENOUGH:
            break
        last = falling[np.searchsorted(found, target)]
        end = int(np.searchsorted(falling, last, "right"))  # equals stay together
        if LEAST <= end <= ends[0] - LEAST:
            ends.insert(0, end)
    stratum = np.empty(len(order), np.uint8)
    stratum[order] = np.searchsorted(ends, np.arange(len(order)), "right")
    inside = [stratum == s for s in range(len(ends))]
    best = np.array([most[which].max(axis=0) for which in inside])
    return Cut(stratum, best, np.array([expected[which].sum() for which in inside]))


def whole(count: int) -> Cut:
    """Returns the stratum of so many conjunctions that nothing is known of."""
    return Cut(np.zeros(count, np.uint8), np.full((1, 4), np.inf), np.full(1, np.inf))
