"""Forms of trees with values in them, each distinct structure once.

The normaliser keeps results by ``id()``, so ``SharedNodes`` makes equal predicates one object.
"""

from __future__ import annotations

from typing import Any

from colmatch.expr.ast import AtLeast, Constant, Expr, Predicate, Subject, Truth, Verb, rebuild, walk
from colmatch.expr.bind_casts import value_literals
from colmatch.expr.normalise import Normaliser
from colmatch.lowering.forms import Form, Kind, Operand


class SharedNodes:
    """Predicates with slots for operands: equal ones are one object."""

    def __init__(self) -> None:
        self._operands: dict[Operand, Operand] = {}
        self._predicates: dict[Predicate, Predicate] = {}

    def operand(
        self, kind: Kind, slot: int = -1, many: bool = False, negative: bool = False, value: Any = None
    ) -> Operand:
        """Returns an operand, one object for equal ones."""
        operand = Operand(kind, slot, many, negative, value)
        return self._operands.setdefault(operand, operand)

    def predicate(
        self,
        verb: Verb,
        subject: Subject,
        operands: tuple[Operand | None, ...],
        weighs: Operand | None = None,
        negated: bool = False,
    ) -> Predicate:
        """Returns a predicate, one object for equal ones."""
        predicate = Predicate(verb, subject, operands, weighs, negated)
        return self._predicates.setdefault(predicate, predicate)


class TreeForms:
    """The forms of trees with values in them.

    Parameters
    ----------
    nodes : predicates, shared with other texts of the same normaliser
    max_depth : deepest nesting that is accepted
    """

    def __init__(self, normaliser: Normaliser, nodes: SharedNodes, max_depth: int) -> None:
        self._normaliser = normaliser
        self._nodes = nodes
        self._max_depth = max_depth
        self._forms: dict[Any, Form] = {}  # by structure

    def form(self, tree: Expr) -> tuple[Form, list[Any]]:
        """Makes the form of a tree, and returns it with the tree's literals by slot.

        Raises Refusal: the tree nests too deep, or does not fit the schema.
        """
        tree = self._normaliser.casts.bind(tree, value_literals)
        key, literals = self._structure(tree)
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = self._normaliser.form(self._insert_slots(tree), len(literals))
        return form, literals

    def _structure(self, tree: Expr) -> tuple[tuple[Any, ...], list[Any]]:
        """Returns a key that is equal for trees that differ in literals alone, and the literals."""
        key: list[Any] = []
        literals: list[Any] = []
        for node, children in walk(tree, self._max_depth):
            if isinstance(node, Predicate):
                key.append(node.verb)
                key.append(node.subject)
                for operand in node.operands:
                    if operand is None:
                        key.append(None)
                    elif operand.kind is Kind.BOOL:
                        key.append((operand.many, operand.value))
                    else:
                        key.append(-operand.kind - 1 if operand.many else operand.kind)
                        literals.append(list(operand.value) if operand.many else operand.value)
                key.append(node.negated)
                key.append("" if node.weighs is None else "weight")
                if node.weighs is not None:
                    literals.append(node.weighs.value)
            elif isinstance(node, (Truth, Constant)):
                key.append((type(node), node.value))
            elif isinstance(node, AtLeast):
                key.append((AtLeast, children, node.least))
            else:
                key.append((type(node), children))
        return tuple(key), literals

    def _insert_slots(self, tree: Expr) -> Expr:
        """Copies ``tree`` with slots, numbered in reading order, for values."""
        nodes, slot = self._nodes, 0

        def place(operand: Operand | None) -> Operand | None:
            nonlocal slot
            if operand is None:
                return None
            if operand.kind is Kind.BOOL:
                return operand if operand.many else nodes.operand(operand.kind, value=bool(operand.value))
            slot += 1
            return nodes.operand(operand.kind, slot - 1, operand.many)

        return rebuild(
            tree,
            lambda p: nodes.predicate(
                p.verb, p.subject, tuple([place(operand) for operand in p.operands]), place(p.weighs), p.negated
            ),
        )
