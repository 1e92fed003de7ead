"""The weight of a predicate on the leaves that it became, so that it counts once.

It stands on the first part of an AND and on every part of an OR.
"""

from __future__ import annotations

from collections.abc import Iterable

from colmatch.expr.tree import All, Formula, Modes, always, conjoin, disjoin
from colmatch.lowering.forms import PART, Leaf


def modes_with_weight(modes: Modes, weight: int, which: Iterable[int], attr: int) -> tuple[Formula, ...]:
    """Returns the modes of a predicate with a weight, and those without.

    Parameters
    ----------
    weight : as a leaf has it
    which : modes that have the weight
    attr : an attribute of the predicate, for a mode that is always true
    """
    found: list[Formula] = list(modes)
    for mode in which:
        found[mode] = _with_weight(found[mode], weight, attr)
    bare = modes if weight < 0 else tuple(_with_weight(mode, PART, attr) for mode in modes)
    return (*found, *bare)


def _with_weight(formula: Formula, weight: int, attr: int) -> Formula:
    if isinstance(formula, bool):
        return always(attr, weight) if formula and weight != PART else formula
    if isinstance(formula, Leaf):
        return formula._replace(weight=weight)
    if type(formula) is All:
        first, *others = formula.parts
        return conjoin([_with_weight(first, weight, attr), *[_with_weight(part, PART, attr) for part in others]])
    return disjoin([_with_weight(part, weight, attr) for part in formula.parts])
