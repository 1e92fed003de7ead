"""Programs: the trees that are written in ``Predicates.tree``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from colmatch.kernels.layout import Predicates

T = TypeVar("T")


def fold_program(preds: Predicates, c: int, leaf: Callable[[int], T], join: Callable[[list[T], bool], T]) -> T:
    """Returns the result of the root of a program.

    c : number of a conjunction that is a program
    leaf : makes the result of a predicate from its number
    join : makes the result of an AND or OR from those of its parts; the flag is true for an OR
    """
    stack: list[T] = []
    for token in preds.tree[preds.tree_first[c] : preds.tree_first[c + 1]].tolist():
        if token >= 0:
            stack.append(leaf(int(preds.first[c]) + token))
        else:
            size, is_or = -token // 2, token % 2 == 1
            stack[-size:] = [join(stack[-size:], is_or)]
    return stack[0]
