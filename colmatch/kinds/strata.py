"""A cut divides the conjunctions of an index into strata, by their highest possible score.

``match_topk`` reads the strata from the highest scores to the lowest. It is done with an event as
soon as no further stratum can have anything better. Strata are cut by the number of matches that an
event is expected to have, so that the first ones suffice for few matches.

Groups of postings are by attribute, then by stratum, so that full matching sweeps all of an
attribute at once. A set without weights and priorities has one stratum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from colmatch.kernels.layout import DOT, F64, PRIORITY, U8, Predicates
from colmatch.kinds.base import bounds_of

LEAST_CONJUNCTIONS = 4096  # conjunctions of a stratum
MOST_STRATA = 4  # strata
FACTOR = 8.0  # ratio of the matches in all strata up to one, and up to the one before
ENOUGH = 4.0  # fewest matches in the first of more than two strata


class ScoreStrata(NamedTuple):
    """C conjunctions, divided into S strata, the highest scores first."""

    stratum: U8  # (C)
    best: F64  # (S, 4) highest score by ``layout.DOT`` and so on, if no event gives weights
    expected: F64  # (S) matches that an event is expected to have


def is_ranked(preds: Predicates) -> bool:
    """Returns whether conjunctions can differ in their scores."""
    return len(preds.weight) > 0 or len(preds.priority) > 0


def cut_strata(preds: Predicates, expected: F64) -> ScoreStrata:
    """Divides conjunctions into strata by weights, or by priorities if nothing has weights.

    expected (C) : expected share of events that each matches
    """
    # Order the conjunctions by falling score, and add up their expected matches.
    most = bounds_of(preds)
    falling = -most[:, DOT if len(preds.weight) else PRIORITY]
    order = np.argsort(falling)
    falling, matches = falling[order], np.cumsum(expected[order])
    # End each stratum where the matches reach its target.
    ends = [len(order)]
    for k in range(1, MOST_STRATA):
        target = matches[-1] / FACTOR**k
        if k > 1 and target < ENOUGH:
            break
        last = falling[np.searchsorted(matches, target)]
        end = int(np.searchsorted(falling, last, "right"))  # equals stay together
        if LEAST_CONJUNCTIONS <= end <= ends[0] - LEAST_CONJUNCTIONS:
            ends.insert(0, end)
    # Describe the strata.
    stratum = np.empty(len(order), np.uint8)
    stratum[order] = np.searchsorted(ends, np.arange(len(order)), "right")
    inside = [stratum == s for s in range(len(ends))]
    best = np.array([most[members].max(axis=0) for members in inside])
    return ScoreStrata(stratum, best, np.array([expected[members].sum() for members in inside]))


def whole(count: int) -> ScoreStrata:
    """Returns a single stratum of so many conjunctions, with unknown scores and matches."""
    return ScoreStrata(np.zeros(count, np.uint8), np.full((1, 4), np.inf), np.full(1, np.inf))
