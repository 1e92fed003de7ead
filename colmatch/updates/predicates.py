"""Predicates of a matcher that grow at their end, or of which some are selected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.growing import Growing
from colmatch.arrays.ranges import members, ranges_of
from colmatch.kernels.layout import ATTR_MASK, FLAG_RUN, Predicates


class GrowingPredicates:
    """``layout.Predicates`` to which conjunctions can be appended."""

    def __init__(self, predicates: Predicates) -> None:
        self._columns = [Growing(array) for array in predicates]

    def view(self) -> Predicates:
        """Returns what is there, read-only."""
        return Predicates(*(column.view() for column in self._columns))

    def cut(self, like: Predicates) -> None:
        """Forgets what was appended behind what ``like``, an earlier view, has."""
        arrays: Sequence[Any] = like
        for column, array in zip(self._columns, arrays, strict=True):
            column.size = len(array)

    def append(self, more: Predicates, subscriptions: int) -> None:
        """Appends conjunctions.

        more : subscriptions in it count from 0, and its ``pred`` is rewritten
        subscriptions : so many are there before
        """
        old, count = self.view(), len(more.owner)
        pred = more.pred
        several = (pred[:, 0] & np.uint32(FLAG_RUN)) != 0
        pred[several, 1:] += np.uint32(len(old.run_lo))
        added: dict[str, Any] = {
            "first": more.first[1:] + len(old.pred),
            "pred": pred,
            "run_lo": more.run_lo,
            "run_hi": more.run_hi,
            "owner": more.owner + np.uint32(subscriptions),
        }
        if len(old.weight) or len(more.weight):
            self._fill("weight", np.zeros(len(old.pred)))
            added["weight"] = more.weight if len(more.weight) else np.zeros(len(pred))
        if len(old.jump_first) or len(more.jump_first):
            self._fill("jump_first", np.full(len(old.owner), -1))
            self._fill("tree_first", np.zeros(len(old.owner) + 1, np.int64))
            if len(more.jump_first):
                start = more.jump_first + len(old.jump)
                added |= {"jump_first": np.where(more.jump_first >= 0, start, -1), "jump": more.jump, "tree": more.tree}
                added["tree_first"] = more.tree_first[1:] + len(old.tree)
            else:
                added |= {"jump_first": np.full(count, -1), "tree_first": np.full(count, len(old.tree))}
        for name, array in added.items():
            self._columns[Predicates._fields.index(name)].append(array)

    def _fill(self, name: str, values: NDArray[Any]) -> None:
        """Fills a column for all that is there, where it has nothing because there was no need."""
        column = self._columns[Predicates._fields.index(name)]
        if not column.size:
            column.append(values)


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
