"""The four questions that a condition can be asked, its *modes*.

They are: is it True, is it False, is it not True, is it not False. With NULLs about, the third is
not the second. A matcher asks the first; NOT turns True into False and not-True into not-False; AND
is True when all of its parts are, and not True when some part is not True. So every mode of every
node is an AND or OR of modes of its parts, down to *leaves*, which are two-valued: "the event has a
value of ``a`` in this set", "it has none".

Where a predicate on an absent value is to be False instead of Unknown, False is not-True for each
predicate, and so for all that is made of them.

Kernels know these leaves alone. So ``IS NULL``, ``NOT array_contains`` and ``IS NOT TRUE`` need no
code of their own there.

A NOT that belongs to a predicate (``NOT IN``, be-tree's ``none of``) is said by
``Predicate.negated``. With two values it differs from a NOT before the predicate. With three values
both mean the same, and SQL's parser does not tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from colmatch.expr.ast import Constant, Expr, Not, Predicate, Truth, Verb
from colmatch.expr.tree import All, Formula, Modes, always, conjoin, disjoin
from colmatch.lowering.forms import PART, Leaf, Op, Test

TRUE, FALSE, NOT_TRUE, NOT_FALSE = range(4)  # two that differ in the lowest bit are swapped by NOT
UNSCORED = 4  # is added to a mode: without weights

POSITIVE = (TRUE, NOT_FALSE, TRUE | UNSCORED, NOT_FALSE | UNSCORED)
PRESENT = (Test(Op.PRESENT),)
UNKNOWN: Modes = (False, False, True, True)


def of_predicate(modes: Modes, negated: bool, two_valued: bool) -> Modes:
    """Returns the modes of a predicate, of which ``modes`` are those without its own NOT."""
    if negated:
        modes = (modes[FALSE], modes[TRUE], modes[NOT_FALSE], modes[NOT_TRUE])
    if two_valued:
        modes = (modes[TRUE], modes[NOT_TRUE], modes[NOT_TRUE], modes[TRUE])
    return modes


def ask_truth(node: Truth, mode: int, stack: list[Any], by_attribute: bool, two_valued: bool) -> None:
    """Asks the part of IS TRUE / FALSE / UNKNOWN what the mode comes to, by ``stack``.

    It is never Unknown itself: not-True is False, not-False is True.

    IS UNKNOWN asks its part twice, whose own weights count once, and those by attribute not at all.
    """
    yes, unscored = mode in POSITIVE, mode & UNSCORED
    if node.value is not None:
        asked = (TRUE if yes else NOT_TRUE) if node.value else (FALSE if yes else NOT_FALSE)
        stack.append((node.part, asked | unscored))
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


def absent(attr: int) -> Modes:
    """Returns the modes of "the event has no value of this attribute"."""
    null, present = Leaf(attr, PRESENT, True), Leaf(attr, PRESENT)
    return null, present, present, null


def in_set(attr: int, test: Test) -> Modes:
    """Returns the modes of "the value is in this set" of an attribute with at most one value."""
    inside, outside = (test,), (Test(test.op, test.operands, not test.outside),)
    return Leaf(attr, inside), Leaf(attr, outside), Leaf(attr, inside, True), Leaf(attr, outside, True)


def modes_with_weight(modes: Modes, weight: int, which: Iterable[int], attr: int) -> tuple[Formula, ...]:
    """Returns the modes of a predicate with a weight, and those without.

    The weight counts once: it stands on the first part of an AND and on every part of an OR.

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
