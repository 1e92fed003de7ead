"""Statistics of a set of subscriptions, for the choice of a kind; and of a sample of events."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous
from colmatch.arrays.ranges import ranges_of
from colmatch.kernels.layout import FLAG_RUN, Codes, Predicates


class Sample(NamedTuple):
    """Counts of a sample of events, as estimates for all events.

    hits : values with each code of each attribute, code 1 of attribute 0 first; or with each key
    present : (A) events that have each attribute
    events : number of events
    first, key : attribute -> its keys (A + 1), ascending (K); None where hits are by code
    """

    hits: NDArray[np.int64]
    present: NDArray[np.int64]
    events: int
    first: NDArray[np.int64] | None = None
    key: NDArray[np.int64] | None = None

    def values(self, codes: Codes) -> NDArray[np.int64]:
        """Counts the values of each attribute (A)."""
        first = ranges_of(np.diff(codes.first) + 1) if self.first is None else self.first
        count, attributes = np.zeros(len(codes.multi), np.int64), min(len(first) - 1, len(codes.multi))
        count[:attributes] = np.diff(ranges_of(self.hits)[first])[:attributes]
        return count


WINDOW = ("window", "window_first", "window_key")  # arrays that inserts read and never write


def window_of(sample: Sample | None, codes: Codes) -> dict[str, Any]:
    """Returns the arrays ``WINDOW`` of an index, as ``kernels/window.py`` reads them.

    The arrays are (0) without a sample.
    """
    none = contiguous(np.empty(0, np.int64))
    if sample is None:
        return dict.fromkeys(WINDOW, none)
    first, key = sample.first, sample.key
    if first is None or key is None:
        first, key = ranges_of(np.diff(codes.first) + 1), none
    return dict(zip(WINDOW, map(contiguous, (ranges_of(sample.hits), first, key)), strict=True))


class Statistics(NamedTuple):
    """Counts of a segment, or their sums over all segments, for the estimated costs of kinds."""

    subscriptions: int
    conjunctions: int
    predicates: int
    intervals: int  # of all predicates
    attributes: int
    boundaries: int
    programs: int

    @staticmethod
    def of(subscriptions: int, preds: Predicates, codes: Codes, deleted: NDArray[np.int64] | None = None) -> Statistics:
        """Counts the parts of a set that the cost of a kind depends on.

        subscriptions : number of all
        deleted : numbers of subscriptions that do not count
        """
        conjunctions, predicates, programs = len(preds.owner), len(preds.pred), int((preds.jump_first >= 0).sum())
        intervals = predicates - int(np.count_nonzero(preds.pred[:, 0] & FLAG_RUN)) + len(preds.run_lo)
        if deleted is not None and len(deleted):
            gone = np.zeros(subscriptions, bool)
            gone[deleted] = True
            without = np.flatnonzero(gone[preds.owner])
            conjunctions -= len(without)
            lost = int((preds.first[without + 1] - preds.first[without]).sum())
            predicates, intervals = predicates - lost, intervals - lost  # a list of values counts only as one
            programs -= int((preds.jump_first[without] >= 0).sum()) if len(preds.jump_first) else 0
            subscriptions -= len(deleted)
        return Statistics(
            subscriptions, conjunctions, predicates, intervals, len(codes.multi), len(codes.bound), programs
        )
