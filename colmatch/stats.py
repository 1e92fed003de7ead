"""What a plan needs to know about a set of subscriptions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colmatch.kernels.layout import FLAG_RUN, Codes, Predicates


class Sample(NamedTuple):
    """What some events said about all of them."""

    hits: NDArray[np.int64]  # (codes) values with each code of each attribute, code 1 of attribute 0 first


class Statistics(NamedTuple):
    subscriptions: int
    conjunctions: int
    predicates: int
    intervals: int  # of all predicates
    attributes: int
    boundaries: int
    programs: int

    @staticmethod
    def of(subscriptions: int, preds: Predicates, codes: Codes) -> Statistics:
        predicates = len(preds.pred)
        intervals = predicates - int(np.count_nonzero(preds.pred[:, 0] & FLAG_RUN)) + len(preds.run_lo)
        return Statistics(
            subscriptions, len(preds.owner), predicates, intervals, len(codes.multi), len(codes.bound), int((preds.jump_first >= 0).sum())
        )
