"""Conjunctions of a tree of leaves: multiplied out within the budget, programs beyond it.

An AND of five ORs of 2 predicates is 32 conjunctions of 5 predicates, or one program of 10. A kind
of index with counters for clauses keeps the program in an eighth of the memory. It would verify
other programs one by one, so a budget has a number for each case.

Some kinds find a conjunction by a predicate that it needs. A program needs no single predicate, so
such a kind would look at it for each event. For these kinds, an AND of ORs is multiplied out by its
shortest OR alone (``divide``). Each predicate of that OR begins a separate program, which needs
the predicate. Scores stay the same: an AND adds up its parts, and an OR has the best of them.

The parts of an OR at the top are counted one by one, and take 16 budgets together at most. Between
ORs of the same length, operators decide. A program stays whole where it would become more programs
than the budget allows, or have more than ``MOST_PREDICATES`` predicates together. It also stays
whole where each OR has a predicate that an absent attribute meets. A kind that finds conjunctions
by a needed predicate verifies such a program for each event. Inserts, deletes, ranges and the best
matches need no extra code, since any OR gives a subscription several conjunctions. ``explain`` puts
the programs of an expression together again.

A count, "at least k of n", is a program of k(n - k + 1) predicates: after part i, with j true ones
before it, comes part i + 1 with j or j + 1. Of any n - k + 1 parts one is true, so ``divide`` takes
the best of them. Scores need a tree of ANDs and ORs, which is longer: 10 of 20 have 110 steps and
1,176 leaves in the tree. A count with more than ``MOST_TOKENS`` is refused.

The price of ``divide`` is memory: an OR of two doubles the predicates of a program. Several
entries in the posting lists for one program would avoid this. But each kind would then need them in
its build, its inserts and its deletes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

from colmatch.expr.ast import Refusal
from colmatch.expr.tree import COUNTLESS, TOO_LARGE, All, Any_, Least, at_least, fold, size_of
from colmatch.kernels.layout import ACCEPT, REJECT
from colmatch.kinds.settings import Budget
from colmatch.lowering.forms import Conjunction, Form, Leaf, Op

MOST_TOKENS = 1 << 16  # of a count that is written with AND and OR
MOST_PREDICATES = 1024  # of all programs that a part is divided into: each repeats the other ORs


class Assembly:
    """A form in the making. Leaves are numbered in the order of their first use."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.leaves: list[Leaf] = []
        self._numbers: dict[int, int] = {}

    def form(self, root: All, slots: int) -> Form:
        """Makes the form of a tree. It is called once for each assembly."""
        conjunctions: dict[Any, Conjunction] = {}
        parts = root.parts if type(root) is Any_ else [root]
        left = 16 * self.budget.dnf  # so that many parts do not each take the whole budget
        programs = 16 * self.budget.programs
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
                whole = divide(part, min(self.budget.programs, programs))
                programs -= len(whole)
                for one in whole:
                    conjunctions[id(one)] = self._program(one)
        return Form(tuple(self.leaves), tuple(conjunctions.values()), slots)

    def _same(self, leaves: tuple[int, ...]) -> Any:
        """Returns a key that is equal for conjunctions with the same meaning and score."""
        return frozenset(leaves), tuple(sorted(leaf for leaf in leaves if self.leaves[leaf].scores))

    def _is_cnf(self, root: All) -> bool:
        """Returns whether ``root`` is an AND of leaves and ORs of leaves within the clauses of the
        kind.

        A leaf of an OR must need an entry, since no posting list leads to events without one.
        """
        return (
            type(root) is All
            and len(root.parts) <= self.budget.clauses
            and all(
                type(clause) is Leaf
                or (type(clause) is Any_ and all(type(leaf) is Leaf and not leaf.none for leaf in clause.parts))
                for clause in root.parts
            )
        )

    def _number(self, leaf: Leaf) -> int:
        number = self._numbers.setdefault(id(leaf), len(self.leaves))
        if number == len(self.leaves):
            self.leaves.append(leaf)
        return number

    def _program(self, root: All) -> Conjunction:
        """Makes a program: each leaf has two forward jumps, for true and for false."""
        if type(root) is All:  # necessary conditions first: an index finds candidates by them
            root = All(
                sorted(root.parts, key=lambda part: type(part) is not Leaf), root.conjunctions, root.size, root.scored
            )
        # Place the leaves in reading order; each jump skips to the next part or leaves the group
        leaves: list[int] = [0] * root.size
        jumps: list[tuple[int, int]] = [(0, 0)] * root.size
        stack: list[tuple[Any, int, int, int]] = [(root, 0, ACCEPT, REJECT)]
        while stack:
            node, start, on_true, on_false = stack.pop()
            if type(node) is Leaf:
                leaves[start], jumps[start] = self._number(node), (on_true, on_false)
                continue
            if type(node) is Least:
                stack.extend(_count(node, start, on_true, on_false))
                continue
            end = len(node.parts) - 1
            for i, part in enumerate(node.parts):
                after = start + size_of(part)
                if i == end:
                    stack.append((part, start, on_true, on_false))
                elif type(node) is All:
                    stack.append((part, start, after, on_false))
                else:
                    stack.append((part, start, on_true, after))
                start = after
        return Conjunction(tuple(leaves), tuple(jumps), tuple(_postfix(root)))


def _count(node: Least, start: int, on_true: int, on_false: int) -> Iterator[tuple[Any, int, int, int]]:
    """Yields each part of a count, once for each number of true parts before it, with its jumps."""
    places: dict[tuple[int, int], int] = {}
    for i, part in enumerate(node.parts):
        for true in node.states(i):
            places[i, true] = start
            start += size_of(part)
    for (i, true), place in places.items():
        yield node.parts[i], place, places.get((i + 1, true + 1), on_true), places.get((i + 1, true), on_false)


class Ways(NamedTuple):
    """A division of a part into ANDs; the part is their OR.

    Each AND begins with a leaf that it needs.
    """

    cost: tuple[int, int]  # number of ANDs, and the sum of ``_breadth`` of their first leaves
    products: list[tuple[Any, ...]]  # leaves and groups of each AND


def divide(root: All, most: int) -> list[All]:
    """Divides a part into up to ``most`` groups; the part is true when one of them is.

    Each group is an AND that begins with a leaf by which an index can find it. There are as few
    groups as possible. Between divisions into equally many groups, the operators of the first
    leaves decide: leaves that few values meet are preferred. A part stays undivided where no such
    division exists or none is needed. It also stays undivided where its groups would have more than
    ``MOST_PREDICATES`` predicates together.
    """
    if most < 1:
        return [root]

    def leaf(one: Leaf) -> Ways | None:
        return None if one.none else Ways((1, _breadth(one)), [(one,)])

    def group(node: All, parts: list[Ways | None]) -> Ways | None:
        divisions = [ways for ways in parts if ways is not None]
        if type(node) is not All:
            needed = sorted([i for i, ways in enumerate(parts) if ways], key=lambda i: parts[i].cost)  # type: ignore[union-attr]
            least = node.least if type(node) is Least else 1
            needed = sorted(needed[: len(parts) - least + 1])
            divisions = [parts[i] for i in needed]  # type: ignore[misc]
            count = sum(ways.cost[0] for ways in divisions)
            if len(needed) <= len(parts) - least or count > most:
                return None
            return Ways(
                (count, sum(ways.cost[1] for ways in divisions)), list(_products(node, least, needed, divisions))
            )
        if not divisions:
            return None
        best = min(range(len(parts)), key=lambda i: parts[i].cost if parts[i] else (COUNTLESS, 0))  # type: ignore[union-attr]
        others = (*node.parts[:best], *node.parts[best + 1 :])
        ways = parts[best]
        assert ways is not None
        return Ways(ways.cost, [(*product, *others) for product in ways.products])

    ways: Ways | None = fold(root, leaf, group)
    if ways is None or len(ways.products) == 1:
        return [root]
    pieces = [_every(product) for product in ways.products]
    return pieces if sum(piece.size for piece in pieces) <= MOST_PREDICATES else [root]


def _products(node: All, least: int, needed: list[int], divisions: list[Ways]) -> Iterator[tuple[Any, ...]]:
    """Yields the ANDs of an OR or a count, each for the first true part among those needed.

    needed : places of parts, one of which is true wherever the node is
    divisions : the division of each of them
    """
    others = list(range(len(node.parts)))
    for i, ways in zip(needed, divisions, strict=True):
        others.remove(i)
        rest = at_least([node.parts[j] for j in others], least - 1)
        for product in ways.products:
            yield product if rest is True else (*product, rest)


def _every(parts: tuple[Any, ...]) -> All:
    """Makes the AND of leaves and groups, unchanged."""
    size = sum(map(size_of, parts))
    scored = [part if type(part) is Leaf else part.scored for part in parts]
    return All(list(parts), COUNTLESS, size, next((leaf for leaf in scored if leaf is not None and leaf.scores), None))


_BREADTH = {Op.EQ: 1, Op.IN: 2, Op.BETWEEN: 8, Op.LT: 32, Op.LE: 32, Op.GT: 32, Op.GE: 32, Op.PRESENT: 64}


def _breadth(leaf: Leaf) -> int:
    """Estimates the share of values that meet a leaf, in an arbitrary unit.

    Few values meet a pattern.
    """
    return sum(64 if test.outside else _BREADTH.get(test.op, 4) for test in leaf.tests)


def _multiply(root: All) -> list[tuple[Leaf, ...]]:
    """Returns the conjunctions of a group's disjunctive normal form."""

    def group(node: All, parts: list[list[tuple[Leaf, ...]]]) -> list[tuple[Leaf, ...]]:
        if type(node) is Any_:
            return [product for part in parts for product in part]
        if type(node) is Least:
            ways: list[list[tuple[Leaf, ...]]] = [[()], *([] for _ in range(node.least))]  # by number of true parts
            for i, part in enumerate(parts):
                for true in reversed(node.states(i)):
                    ways[true + 1] += [one + other for one in ways[true] for other in part]
            return ways[node.least]
        products: list[tuple[Leaf, ...]] = [()]
        for part in parts:
            products = [one + other for one in products for other in part]
        return products

    conjunctions: list[tuple[Leaf, ...]] = fold(root, lambda leaf: [(leaf,)], group)
    return conjunctions


def _postfix(root: All) -> list[int]:
    """Returns a program as a postfix expression. A count becomes ANDs and ORs."""
    done: list[list[int]] = []
    stack: list[tuple[Any, int, bool]] = [(root, 0, False)]
    while stack:
        node, start, ready = stack.pop()
        if type(node) is Leaf:
            done.append([start])
        elif ready:
            count = len(node.parts)
            parts = done[-count:]
            del done[-count:]
            done.append(_write_count(parts, node.least) if type(node) is Least else _write(parts, type(node) is Any_))
        else:
            stack.append((node, 0, True))
            parts_at: list[tuple[Any, int, bool]] = []
            for i, part in enumerate(node.parts):
                parts_at.append((part, start, False))
                start += size_of(part) * (len(node.states(i)) if type(node) is Least else 1)
            stack.extend(reversed(parts_at))
    return done[0]


def _write(parts: list[list[int]], either: bool) -> list[int]:
    if len(parts) == 1:
        return parts[0]
    tokens = list(chain.from_iterable(parts))
    tokens.append(-2 * len(parts) - either)
    return tokens


def _write_count(parts: list[list[int]], least: int) -> list[int]:
    """Writes a count with AND and OR: some parts are true in one half, and the others in the other.

    Raises Refusal: it is too large.
    """

    @cache
    def count(begin: int, end: int, least: int) -> list[int]:
        if least == 1 or least == end - begin:
            return _write(parts[begin:end], least == 1)
        middle = (begin + end) // 2
        ways = []
        for first in range(max(0, least - end + middle), min(least, middle - begin) + 1):
            halves = [(begin, middle, first), (middle, end, least - first)]
            ways.append(_write([count(*half) for half in halves if half[2]], False))
            if sum(map(len, ways)) > MOST_TOKENS:
                raise Refusal(TOO_LARGE)
        return _write(ways, True)

    return count(0, len(parts), least)
