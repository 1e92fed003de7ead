"""Some conjunctions of many predicates, more of them behind others, and the attributes that they
name.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.growing import Growing
from colmatch.arrays.ranges import members, ranges_of
from colmatch.kernels.layout import ATTR_MASK, FLAG_RUN, Predicates


def selected(preds: Predicates, conjunctions: NDArray[np.int64]) -> Predicates:
    """Selects conjunctions, in this order, and nothing that belongs to others."""
    first = ranges_of(np.diff(preds.first)[conjunctions])
    place = members(preds.first[:-1][conjunctions], first)
    pred = preds.pred[place]
    several = np.flatnonzero(pred[:, 0] & np.uint32(FLAG_RUN))
    begin = pred[several, 1].astype(np.int64)
    runs = ranges_of(pred[several, 2] - begin)
    run = members(begin, runs)
    pred[several, 1], pred[several, 2] = runs[:-1], runs[1:]
    jump_first, jump, tree_first, tree = preds.jump_first, preds.jump, preds.tree_first, preds.tree
    start = jump_first[conjunctions] if len(jump_first) else np.empty(0, np.int64)
    program = start >= 0
    if program.any():
        jumps = ranges_of(np.diff(first)[program])
        jump_first, jump = np.full(len(conjunctions), -1), jump[members(start[program], jumps)]
        jump_first[program] = jumps[:-1]
        tree_start, tree_first = tree_first[:-1][conjunctions], ranges_of(np.diff(tree_first)[conjunctions])
        tree = tree[members(tree_start, tree_first)]
    else:
        jump_first, jump, tree_first, tree = jump_first[:0], jump[:0], tree_first[:0], tree[:0]
    weight = preds.weight[place] if len(preds.weight) else preds.weight
    owner = preds.owner[conjunctions]
    return Predicates(
        first, pred, preds.run_lo[run], preds.run_hi[run], owner, weight, jump_first, jump, tree_first, tree
    )


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
