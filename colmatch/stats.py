"""What a plan needs to know about a set of subscriptions."""

from __future__ import annotations

from typing import NamedTuple

from colmatch.kernels.layout import Codes, Predicates


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
