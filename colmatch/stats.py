"""What a plan needs to know about a set of subscriptions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colmatch.kernels.layout import Codes, Predicates


class Sample(NamedTuple):
    """What some events said about all of them."""

    hits: NDArray[np.int64]  # (codes) values with each code of each attribute, code 1 of attribute 0 first


class Statistics(NamedTuple):
    subscriptions: int
    conjunctions: int
    predicates: int
    attributes: int
    boundaries: int
    programs: int

    @staticmethod
    def of(subscriptions: int, preds: Predicates, codes: Codes) -> Statistics:
        return Statistics(
            subscriptions, len(preds.owner), len(preds.pred), len(codes.multi), len(codes.bound), int((preds.jump_first >= 0).sum())
        )
