"""Predicates behind others in one memory, and the attributes that they name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import frozen
from colmatch.arrays.growing import longer
from colmatch.kernels.labels.boundaries import append_predicates
from colmatch.kernels.layout import ATTR_MASK, Codes, Predicates


def attributes_of(preds: Predicates) -> int:
    """Returns one more than the highest attribute that is used."""
    return int((preds.pred[:, 0] & np.uint32(ATTR_MASK)).max(initial=0)) + 1 if len(preds.pred) else 0


def can_follow(preds: Predicates, more: Predicates) -> bool:
    """Returns whether a ``PredicateStore`` takes more predicates behind others.

    There are no programs, and no weights and priorities that are the first.
    """
    first = len(more.weight) > len(preds.weight) == 0 or len(more.priority) > len(preds.priority) == 0
    return not (first or len(preds.jump_first) or len(more.jump_first))


def _columns(preds: Predicates) -> list[NDArray[Any]]:
    return [preds.first, preds.pred, preds.run_lo, preds.run_hi, preds.owner, preds.weight, preds.priority]


class PredicateStore:
    """Memory of predicates without programs, with room behind them, where more are put in the time
    that these take.

    What was returned before stays as it is. One thread at a time extends.
    """

    __slots__ = ("_memory",)

    def __init__(self) -> None:
        self._memory: tuple[list[NDArray[Any]], list[NDArray[Any]]] = [], []  # arrays, and these read-only

    def extended(
        self, preds: Predicates, more: Predicates, codes: Codes, label: NDArray[np.uint32], base: int
    ) -> Predicates:
        """Returns predicates and others behind them, whose owners come after all others.

        Parameters
        ----------
        preds : what was returned last, or before that: then what came after it is forgotten
        more : with dense codes of the boundaries of ``codes``, which have these labels, and such
            as ``can_follow``. Owners count from ``base`` on
        """
        known = len(preds.owner), len(preds.pred), len(preds.run_lo)
        conjunctions, predicates, runs = (
            known[0] + len(more.owner),
            known[1] + len(more.pred),
            known[2] + len(more.run_lo),
        )
        memory, shown = self._memory
        weights, priorities = predicates if len(preds.weight) else 0, conjunctions if len(preds.priority) else 0
        if not memory or (len(memory[1]) < predicates or len(memory[2]) < runs or len(memory[4]) < conjunctions):
            columns = _columns(preds)
            sizes = conjunctions + 1, predicates, runs, runs, conjunctions, weights, priorities
            memory = [longer(column, len(column), size) for column, size in zip(columns, sizes, strict=True)]
            shown = [frozen(array) for array in memory]
            self._memory = memory, shown
        append_predicates(
            more.first, more.pred, more.run_lo, more.run_hi, more.owner, codes.first, label, *known, base, *memory[:5]
        )
        if weights:
            memory[5][known[1] : weights] = more.weight if len(more.weight) else 0
        if priorities:
            memory[6][known[0] : priorities] = more.priority if len(more.priority) else 0
        first, pred, run_lo, run_hi, owner, weight, priority = shown
        return preds._replace(
            first=first[: conjunctions + 1],
            pred=pred[:predicates],
            run_lo=run_lo[:runs],
            run_hi=run_hi[:runs],
            owner=owner[:conjunctions],
            weight=weight[:weights],
            priority=priority[:priorities],
        )
