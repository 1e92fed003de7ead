"""Predicates behind others in one memory, and the attributes that they name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.growing import Growing
from colmatch.kernels.layout import ATTR_MASK, FLAG_RUN, Predicates


def attributes_of(preds: Predicates) -> int:
    """Returns one more than the highest attribute that is used."""
    return int((preds.pred[:, 0] & np.uint32(ATTR_MASK)).max(initial=0)) + 1 if len(preds.pred) else 0


def are_plain(preds: Predicates) -> bool:
    """Returns whether there are no weights and no programs."""
    return not (len(preds.weight) or len(preds.jump_first))


def _plain_columns(preds: Predicates) -> list[NDArray[Any]]:
    return [preds.first, preds.pred, preds.run_lo, preds.run_hi, preds.owner]


class PredicateStore:
    """Memory of plain predicates with room behind them, where more are put in the time that these
    take.

    What was returned before stays as it is. One thread at a time extends.
    """

    __slots__ = ("_columns",)

    def __init__(self, preds: Predicates) -> None:
        self._columns = [Growing(column) for column in _plain_columns(preds)]

    def extended(self, preds: Predicates, more: Predicates) -> Predicates:
        """Returns predicates and others behind them, whose owners come after all others.

        preds : what was returned last, or before that: then what came after it is forgotten
        """
        first, pred, run_lo, run_hi, owner = self._columns
        for column, known in zip(self._columns, _plain_columns(preds), strict=True):
            column.size = len(known)
        predicates, runs = len(preds.pred), len(preds.run_lo)
        moved = more.pred
        if runs and len(more.run_lo):
            moved = moved.copy()
            moved[moved[:, 0] & np.uint32(FLAG_RUN) != 0, 1:] += np.uint32(runs)
        first.append(more.first[1:] + predicates)
        pred.append(moved)
        run_lo.append(more.run_lo)
        run_hi.append(more.run_hi)
        owner.append(more.owner)
        return Predicates(first.view(), pred.view(), run_lo.view(), run_hi.view(), owner.view(), *preds[5:])
