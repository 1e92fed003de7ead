"""Predicates behind others in one memory."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import frozen
from colmatch.arrays.growing import longer
from colmatch.kernels.labels.boundaries import append_predicates
from colmatch.kernels.layout import Codes, Predicates
from colmatch.predicates.columns import COLUMNS, GIVEN


def can_follow(preds: Predicates, more: Predicates) -> bool:
    """Returns whether a ``PredicateStore`` takes more predicates behind others.

    There are no programs, and no weights and priorities that are the first.
    """
    first = any(len(getattr(more, name)) > len(getattr(preds, name)) == 0 for name in GIVEN)
    return not (first or len(preds.jump_first) or len(more.jump_first))


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
        given = [(name, per) for name, per in GIVEN.items() if len(getattr(preds, name))]
        sizes = [total[0] + 1, total[1], total[2], total[2], total[0], *[total[per] for _, per in given]]
        memory, shown = self._memory
        if not memory or any(map(operator.lt, map(len, memory), sizes)):
            columns = [*preds[:5], *[getattr(preds, name) for name, _ in given]]
            memory = [longer(column, len(column), size) for column, size in zip(columns, sizes, strict=True)]
            shown = [frozen(array) for array in memory]
            self._memory = memory, shown
        append_predicates(*more[:5], codes.first, label, *known, base, *memory[:5])
        for array, (name, per) in zip(memory[5:], given, strict=True):
            rows = getattr(more, name)
            array[known[per] : total[per]] = rows if len(rows) else COLUMNS[name].fill
        names = [*preds._fields[:5], *[name for name, _ in given]]
        return preds._replace(**{name: array[:size] for name, array, size in zip(names, shown, sizes)})
