"""The *modes* of a condition: the four questions that can be asked about it.

The questions are: is it True, is it False, is it not True, is it not False. With NULLs, the third
differs from the second. A matcher asks the first. NOT turns True into False and not-True into
not-False. AND is True when all of its parts are, and not True when some part is not True. So every
mode of every node is an AND or OR of modes of its parts, down to *leaves*. Leaves are two-valued:
"the event has a value of ``a`` in this set", "it has none".

With two values, a predicate on an absent value is False instead of Unknown. Then False is the same
as not-True for each predicate, and so for every condition made of predicates.

Kernels know these leaves alone. So ``IS NULL``, ``NOT array_contains`` and ``IS NOT TRUE`` need no
extra code there.

``Predicate.negated`` is a NOT that belongs to a predicate (``NOT IN``, be-tree's ``none of``). With
two values it differs from a NOT before the predicate. With three values both mean the same, and
SQL's parser does not tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from colmatch.expr.ast import Constant, Expr, Not, Predicate, Truth, Verb
from colmatch.expr.tree import All, Formula, Modes, conjoin, disjoin, make_true
from colmatch.lowering.forms import PART, KeyTest, Leaf, Op

TRUE, FALSE, NOT_TRUE, NOT_FALSE = range(4)  # NOT swaps two that differ in the lowest bit
UNSCORED = 4  # added to a mode: the same without weights

POSITIVE = (TRUE, NOT_FALSE, TRUE | UNSCORED, NOT_FALSE | UNSCORED)
PRESENT = (KeyTest(Op.PRESENT),)
UNKNOWN: Modes = (False, False, True, True)


def negate_modes(modes: Modes, negated: bool, two_valued: bool) -> Modes:
    """Returns the modes of a predicate; ``modes`` are its modes without its NOT."""
    if negated:
        modes = (modes[FALSE], modes[TRUE], modes[NOT_FALSE], modes[NOT_TRUE])
    if two_valued:
        modes = (modes[TRUE], modes[NOT_TRUE], modes[NOT_TRUE], modes[TRUE])
    return modes


def ask_truth(node: Truth, mode: int, stack: list[Any], by_attribute: bool, two_valued: bool) -> None:
    """Puts the part's modes that answer a mode of IS TRUE, FALSE or UNKNOWN on ``stack``.

    The node itself is never Unknown: not-True is False, not-False is True.

    IS UNKNOWN asks its part twice. The part's own weights count once, and those by attribute not at
    all.
    """
    yes, unscored = mode in POSITIVE, mode & UNSCORED
    if node.value is not None:
        part_mode = (TRUE if yes else NOT_TRUE) if node.value else (FALSE if yes else NOT_FALSE)
        stack.append((node.part, part_mode | unscored))
    elif two_valued or _never_unknown(node.part):
        stack.append((Constant(False), mode))
    else:
        stack.append((conjoin if yes else disjoin, 2))
        if yes:
            first = unscored | (UNSCORED if by_attribute else 0)
            stack.extend([(node.part, NOT_TRUE | first), (node.part, NOT_FALSE | UNSCORED)])
        else:
            stack.extend([(node.part, TRUE | unscored), (node.part, FALSE | unscored)])


def _never_unknown(node: Expr) -> bool:
    while isinstance(node, Not):
        node = node.part
    return isinstance(node, Truth) or (isinstance(node, Predicate) and node.verb in (Verb.NULL, Verb.SAME))


def make_absence(attr: int) -> Modes:
    """Returns the modes of "the event has no value of this attribute"."""
    null, present = Leaf(attr, PRESENT, True), Leaf(attr, PRESENT)
    return null, present, present, null


def make_membership(attr: int, test: KeyTest) -> Modes:
    """Returns the modes of "the value is in this set" of an attribute with at most one value."""
    inside, outside = (test,), (KeyTest(test.op, test.operands, not test.outside),)
    return Leaf(attr, inside), Leaf(attr, outside), Leaf(attr, inside, True), Leaf(attr, outside, True)


def modes_with_weight(modes: Modes, weight: int, which: Iterable[int], attr: int) -> tuple[Formula, ...]:
    """Returns the modes of a predicate with its weight, and then those without.

    The weight counts once: it is on the first part of an AND and on every part of an OR.

    weight : in the encoding of ``Leaf.weight``
    which : modes that have the weight
    attr : an attribute of the predicate, for a mode that is always true
    """
    formulas: list[Formula] = list(modes)
    for mode in which:
        formulas[mode] = _with_weight(formulas[mode], weight, attr)
    bare = modes if weight < 0 else tuple(_with_weight(mode, PART, attr) for mode in modes)
    return (*formulas, *bare)


def _with_weight(formula: Formula, weight: int, attr: int) -> Formula:
    if isinstance(formula, bool):
        return make_true(attr, weight) if formula and weight != PART else formula
    if isinstance(formula, Leaf):
        return formula._replace(weight=weight)
    if type(formula) is All:
        first, *others = formula.parts
        return conjoin([_with_weight(first, weight, attr), *[_with_weight(part, PART, attr) for part in others]])
    return disjoin([_with_weight(part, weight, attr) for part in formula.parts])
