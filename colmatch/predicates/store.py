"""Predicates behind others in one memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import frozen
from colmatch.arrays.growing import longer
from colmatch.kernels._jit import entry
from colmatch.kernels.labels.boundaries import append_predicates
from colmatch.kernels.layout import Codes, Predicates
from colmatch.predicates.columns import COLUMNS, GIVEN


def can_follow(preds: Predicates, more: Predicates) -> bool:
    """Returns whether a ``PredicateStore`` takes more predicates behind others.

    There are no programs, and no weights and priorities that are the first.
    """
    if len(preds.jump_first) or len(more.jump_first):
        return False
    return all(len(getattr(preds, name)) or not len(getattr(more, name)) for name in GIVEN)


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

        preds : what was returned last, or before that: then what came after it is forgotten
        more : with dense codes of the boundaries of ``codes``, which have these labels, and such
            as ``can_follow``. Owners count from ``base`` on
        """
        known = len(preds.owner), len(preds.pred), len(preds.run_lo)
        total = known[0] + len(more.owner), known[1] + len(more.pred), known[2] + len(more.run_lo)
        conjunctions, predicates, runs = total
        given = [name for name in GIVEN if len(getattr(preds, name))]
        memory, shown = self._memory
        if not memory or len(memory[4]) < conjunctions or len(memory[1]) < predicates or len(memory[2]) < runs:
            sizes = [conjunctions + 1, predicates, runs, runs, conjunctions, *[total[GIVEN[name]] for name in given]]
            columns = [*preds[:5], *[getattr(preds, name) for name in given]]
            memory = [longer(column, len(column), size) for column, size in zip(columns, sizes, strict=True)]
            shown = [frozen(array) for array in memory]
            self._memory = memory, shown
        entry(append_predicates)(*more[:5], codes.first, label, *known, base, *memory[:5])
        first, pred, run_lo, run_hi, owner = shown[:5]
        extended = preds._replace(
            first=first[: conjunctions + 1],
            pred=pred[:predicates],
            run_lo=run_lo[:runs],
            run_hi=run_hi[:runs],
            owner=owner[:conjunctions],
        )
        if not given:
            return extended
        for array, name in zip(memory[5:], given, strict=True):
            begin, end, rows = known[GIVEN[name]], total[GIVEN[name]], getattr(more, name)
            array[begin:end] = rows if len(rows) else COLUMNS[name].fill
        there = zip(given, shown[5:], strict=True)
        return extended._replace(**{name: array[: total[GIVEN[name]]] for name, array in there})
