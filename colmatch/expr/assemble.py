"""A tree of leaves -> conjunctions: multiplied out within the budget, programs beyond it.

An AND of ORs of 2, five times over, is 32 conjunctions of 5 predicates, or one program of 10. A
kind of index that has counters for clauses takes the latter in an eighth of the memory, but would
verify other programs one by one; so a budget has a number for each.
"""

from __future__ import annotations

from typing import Any

from colmatch.expr.tree import All, Any_, fold
from colmatch.indexing.settings import Budget
from colmatch.kernels.layout import ACCEPT, REJECT
from colmatch.lowering.forms import Conjunction, Form, Leaf


class Assembly:
    """One form in the making: leaves get their numbers in the order of their first use."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.leaves: list[Leaf] = []
        self._numbers: dict[int, int] = {}

    def form(self, root: All, slots: int) -> Form:
        """Makes the form of a tree; an assembly makes one."""
        conjunctions: dict[Any, Conjunction] = {}
        parts = root.parts if isinstance(root, Any_) else [root]
        left = 16 * self.budget.dnf  # so that many parts do not each take the whole budget
        for part in parts:
            count = 1 if type(part) is Leaf else part.conjunctions
            if count == 1:
                leaves = tuple(map(self._number, [part] if type(part) is Leaf else part.parts))
                conjunctions.setdefault(self._same(leaves), Conjunction(leaves))
            elif count <= left and count <= (self.budget.cnf if self._is_cnf(part) else self.budget.dnf):
                left -= count
                scored = part.scored is not None
                for product in _multiply(part):
                    leaves = tuple(map(self._number, product))
                    if not scored:
                        leaves = tuple(dict.fromkeys(leaves))
                    conjunctions.setdefault(self._same(leaves), Conjunction(leaves))
            else:
                conjunctions[id(part)] = self._program(part)
        return Form(tuple(self.leaves), tuple(conjunctions.values()), slots)

    def _same(self, leaves: tuple[int, ...]) -> Any:
        """What is equal for conjunctions that say and score the same."""
        return frozenset(leaves), tuple(sorted(leaf for leaf in leaves if self.leaves[leaf].scores))

    def _is_cnf(self, root: All) -> bool:
        """Whether it is an AND of leaves and ORs of leaves, no more than the kind has clauses for.

        A leaf of an OR wants an entry: what is true of events without one is found by no list.
        """
        return len(root.parts) <= self.budget.clauses and all(
            type(clause) is Leaf or all(type(leaf) is Leaf and not leaf.none for leaf in clause.parts)
            for clause in root.parts
        )

    def _number(self, leaf: Leaf) -> int:
        number = self._numbers.setdefault(id(leaf), len(self.leaves))
        if number == len(self.leaves):
            self.leaves.append(leaf)
        return number

    def _program(self, root: All) -> Conjunction:
        """Jumps that go forward only: where to go on when a leaf is true, when it is false."""
        if type(root) is All:  # necessary conditions first: an index finds candidates by them
            root = All(
                sorted(root.parts, key=lambda part: type(part) is not Leaf), root.conjunctions, root.size, root.scored
            )
        leaves: list[int] = [0] * root.size
        jumps: list[tuple[int, int]] = [(0, 0)] * root.size
        stack: list[tuple[Any, int, int, int]] = [(root, 0, ACCEPT, REJECT)]
        while stack:
            node, start, on_true, on_false = stack.pop()
            if type(node) is Leaf:
                leaves[start], jumps[start] = self._number(node), (on_true, on_false)
                continue
            end = len(node.parts) - 1
            for i, part in enumerate(node.parts):
                after = start + (1 if type(part) is Leaf else part.size)
                if i == end:
                    stack.append((part, start, on_true, on_false))
                elif type(node) is All:
                    stack.append((part, start, after, on_false))
                else:
                    stack.append((part, start, on_true, after))
                start = after
        return Conjunction(tuple(leaves), tuple(jumps), tuple(_postfix(root)))


def _multiply(root: All) -> list[tuple[Leaf, ...]]:
    """The conjunctions of a group's disjunctive normal form."""

    def group(node: All, parts: list[list[tuple[Leaf, ...]]]) -> list[tuple[Leaf, ...]]:
        if type(node) is Any_:
            return [product for part in parts for product in part]
        products: list[tuple[Leaf, ...]] = [()]
        for part in parts:
            products = [one + other for one in products for other in part]
        return products

    found: list[tuple[Leaf, ...]] = fold(root, lambda leaf: [(leaf,)], group)
    return found


def _postfix(root: All) -> list[int]:
    tokens: list[int] = []
    place = iter(range(root.size))
    fold(
        root,
        lambda leaf: tokens.append(next(place)),
        lambda node, parts: tokens.append(-2 * len(parts) - (type(node) is Any_)),
    )
    return tokens
