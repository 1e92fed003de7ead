"""Memory for appending predicates to others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import freeze_view
from colmatch.arrays.growing import lengthen_array
from colmatch.kernels._jit import entry
from colmatch.kernels.labels.boundaries import append_predicates
from colmatch.kernels.layout import Codes, Predicates
from colmatch.predicates.columns import COLUMNS, GIVEN


def can_follow(preds: Predicates, more: Predicates) -> bool:
    """Returns whether a ``PredicateStore`` can append predicates to others.

    Neither set may have programs. ``more`` may have weights or priorities only if ``preds`` does.
    """
    if len(preds.jump_first) or len(more.jump_first):
        return False
    return all(len(getattr(preds, name)) or not len(getattr(more, name)) for name in GIVEN)


class PredicateStore:
    """Memory of predicates without programs, with spare room behind them.

    Appending takes time for the new predicates alone. Predicates that were returned before do not
    change. One thread at a time extends.
    """

    __slots__ = ("_memory",)

    def __init__(self) -> None:
        self._memory: tuple[list[NDArray[Any]], list[NDArray[Any]]] = [], []  # arrays, and read-only views of them

    def extended(
        self, preds: Predicates, more: Predicates, codes: Codes, label: NDArray[np.uint32], base: int
    ) -> Predicates:
        """Returns predicates with more behind them; the owners of ``more`` come after all others.

        preds : the last result, or an earlier one: then later results are forgotten
        more : predicates that ``can_follow``, with dense codes of the boundaries in ``codes``
        label : labels of these boundaries
        base : is added to each owner of ``more``
        """
        used = len(preds.owner), len(preds.pred), len(preds.run_lo)
        total = used[0] + len(more.owner), used[1] + len(more.pred), used[2] + len(more.run_lo)
        conjunctions, predicates, runs = total
        optional = [name for name in GIVEN if len(getattr(preds, name))]
        # Move all predicates to longer memory if there is no room
        memory, shown = self._memory
        if not memory or len(memory[4]) < conjunctions or len(memory[1]) < predicates or len(memory[2]) < runs:
            sizes = [conjunctions + 1, predicates, runs, runs, conjunctions, *[total[GIVEN[name]] for name in optional]]
            columns = [*preds[:5], *[getattr(preds, name) for name in optional]]
            memory = [lengthen_array(column, len(column), size) for column, size in zip(columns, sizes, strict=True)]
            shown = [freeze_view(array) for array in memory]
            self._memory = memory, shown
        # Append the columns that all predicates have
        entry(append_predicates)(*more[:5], codes.first, label, *used, base, *memory[:5])
        first, pred, run_lo, run_hi, owner = shown[:5]
        extended = preds._replace(
            first=first[: conjunctions + 1],
            pred=pred[:predicates],
            run_lo=run_lo[:runs],
            run_hi=run_hi[:runs],
            owner=owner[:conjunctions],
        )
        if not optional:
            return extended
        # Append weights and priorities
        for array, name in zip(memory[5:], optional, strict=True):
            begin, end, rows = used[GIVEN[name]], total[GIVEN[name]], getattr(more, name)
            array[begin:end] = rows if len(rows) else COLUMNS[name].fill
        there = zip(optional, shown[5:], strict=True)
        return extended._replace(**{name: array[: total[GIVEN[name]]] for name, array in there})
