"""What a condition scores: of the tree as it was written, and of what a matcher has of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import inside
import numpy as np
import pyarrow as pa
from trees import meaning

import colmatch as cm
from colmatch.events.reader import Reader
from colmatch.expr.ast import And, Constant, Expr, Not, Or, Predicate, Truth, Verb
from colmatch.kernels.layout import ADDED, ATTR_MASK, FLAG_NONE, LARGEST
from colmatch.lowering.written import key_runs

TRUE, FALSE, NOT_TRUE, NOT_FALSE = range(4)
Score = tuple[float, float]  # the sum of weights, the largest


def best(scores: list[Score]) -> Score | None:
    return (max(added for added, _ in scores), max(largest for _, largest in scores)) if scores else None


def together(scores: list[Score]) -> Score:
    return sum(added for added, _ in scores), max([largest for _, largest in scores], default=0.0)


def answers(truth: bool | None, mode: int) -> bool:
    return {TRUE: truth is True, FALSE: truth is False, NOT_TRUE: truth is not True, NOT_FALSE: truth is not False}[
        mode
    ]


class Written(NamedTuple):
    """What trees score, as they were written.

    weigh : says what a predicate weighs, None for nothing; it is told whether it is negated
    by_attribute : weights are those of attributes, which do not count in IS UNKNOWN. A predicate's
        own weight counts there once, though its part is asked twice
    """

    weigh: Callable[[Predicate, bool], float | None]
    by_attribute: bool = False

    def score(self, e: Expr, event: dict[str, Any], mode: int = TRUE, counted: bool = False) -> Score | None:
        """The sum and the largest of weights, None where the answer to ``mode`` is no."""
        if not answers(meaning(e, event), mode):
            return None

        def of(part: Expr, mode: int, again: bool = counted) -> list[Score]:
            one = self.score(part, event, mode, again)
            return [] if one is None else [one]

        yes = mode in (TRUE, NOT_FALSE)
        if isinstance(e, (And, Or)):
            scores = [one for part in e.parts for one in of(part, mode)]
            return together(scores) if isinstance(e, And) == yes else best(scores)
        if isinstance(e, Not):
            return best(of(e.part, mode ^ 1))
        if isinstance(e, Truth) and e.value is not None:
            return best(of(e.part, (TRUE if yes else NOT_TRUE) if e.value else (FALSE if yes else NOT_FALSE)))
        if isinstance(e, Truth) and yes:
            return together(of(e.part, NOT_TRUE, counted or self.by_attribute) + of(e.part, NOT_FALSE, True))
        if isinstance(e, Truth):
            return best(of(e.part, TRUE) + of(e.part, FALSE)) or (0.0, 0.0)
        if isinstance(e, Constant):
            return 0.0, 0.0
        assert isinstance(e, Predicate)
        is_null = e.verb is Verb.NULL or (e.verb is Verb.SAME and e.operands == (None,))
        weight = self.weigh(e, yes == (is_null or e.verb is Verb.NE))
        if weight is None or (counted and self.by_attribute):
            return 0.0, 0.0
        return (0.0, -np.inf) if counted else (weight, weight)


class Held:
    """What a matcher has of its subscriptions, for one event."""

    def __init__(self, matcher: cm.Matcher, row: pa.RecordBatch) -> None:
        self.version = inside.version(matcher)
        entries = Reader(self.version.attributes, self.version.literals).read(row)
        self.keys = [
            entries.key[entries.col[a] : entries.col[a + 1]].tolist() for a in range(len(self.version.attributes))
        ]

    def scores(self) -> dict[Any, Score]:
        """The best score of each subscription that matches."""
        found: dict[Any, list[Score]] = {}
        for segment, base in zip(self.version.segments, self.version.bases, strict=True):
            for c, owner in enumerate(segment.predicates.owner.tolist()):
                one = self._conjunction(segment, c)
                if one is not None:
                    found.setdefault(self.version.ids[base + owner], []).append(one)
        return {id: best(some) or (0.0, 0.0) for id, some in found.items()}

    def _conjunction(self, segment: Any, c: int) -> Score | None:
        preds = segment.predicates
        scores = [self._predicate(segment, p) for p in range(preds.first[c], preds.first[c + 1])]
        if not (len(preds.jump_first) and preds.jump_first[c] >= 0):
            true = [one for one in scores if one is not None]
            return together(true) if len(true) == len(scores) else None
        stack: list[Score | None] = []
        for token in preds.tree[preds.tree_first[c] : preds.tree_first[c + 1]].tolist():
            if token >= 0:
                stack.append(scores[token])
                continue
            size = -token // 2
            some = stack[-size:]
            del stack[-size:]
            true = [one for one in some if one is not None]
            stack.append(best(true) if token % 2 else together(true) if len(true) == size else None)
        return stack[0]

    def _predicate(self, segment: Any, p: int) -> Score | None:
        preds = segment.predicates
        word = int(preds.pred[p, 0])
        runs = key_runs(preds, segment.codes, p)
        found = any(lo <= key <= hi for key in self.keys[word & ATTR_MASK] for lo, hi in runs)
        if found is bool(word & FLAG_NONE):
            return None
        return (preds.weight[p, ADDED], preds.weight[p, LARGEST]) if len(preds.weight) else (0.0, 0.0)
