"""ANDs, ORs and counts over leaves: flat, without constants, without repeated parts.

A part with a weight counts as often as it occurs, as does each part of a count.

All functions walk with an explicit stack: an expression may nest, or go on, for longer than Python
recurses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from colmatch.expr.ast import Refusal
from colmatch.lowering.forms import NO_WEIGHT, PATTERNS, KeyTest, Leaf, Op

COUNTLESS = 1 << 40
MOST_STEPS = 1 << 16  # predicates of a count as a program, which has some of them several times
TOO_LARGE = "at_least of so many conditions is too large: ask for fewer of them, for nearly all of them, or split the expression"
_NOTHING = (KeyTest(Op.PRESENT, outside=True),)


class All:
    """An AND (``All``) or OR (``Any_``) of two or more leaves and groups of the other kind."""

    __slots__ = ("conjunctions", "parts", "scored", "size")

    def __init__(self, parts: list[Any], conjunctions: int, size: int, scored: Leaf | None) -> None:
        self.parts = parts
        self.conjunctions = conjunctions  # that it would be multiplied out into; COUNTLESS for more
        self.size = size  # leaves in it, repeated ones each time
        self.scored = scored  # one of them that has a weight


class Any_(All):
    __slots__ = ()


class Least(All):
    """A count: at least ``least`` of the parts are true, more than one but not all of them.

    A program asks a part once for each number of true parts before it (``expr/assemble.py``).
    """

    __slots__ = ("least",)

    def __init__(self, parts: list[Any], least: int, scored: Leaf | None) -> None:
        self.parts, self.least, self.scored, self.size = parts, least, scored, 0
        ways = [1] + [0] * least  # number of true parts so far -> conjunctions
        for i, part in enumerate(parts):
            count = 1 if type(part) is Leaf else part.conjunctions
            for n in reversed(self.states(i)):
                ways[n + 1] = min(ways[n + 1] + ways[n] * count, COUNTLESS)
            self.size += len(self.states(i)) * size_of(part)
            if self.size > MOST_STEPS:
                raise Refusal(TOO_LARGE)
        self.conjunctions = ways[least]

    def states(self, i: int) -> range:
        """Returns the numbers of true parts before part ``i`` that leave the count undecided."""
        return range(max(0, self.least - len(self.parts) + i), min(i, self.least - 1) + 1)


def size_of(part: Leaf | All) -> int:
    """Returns the leaves of a part, repeated ones each time."""
    return 1 if type(part) is Leaf else part.size  # type: ignore[union-attr]


Formula = Leaf | All | bool
Modes = tuple[Formula, Formula, Formula, Formula]


def conjoin(parts: list[Formula]) -> Formula:
    """Joins parts by AND, without constants and repeated leaves."""
    return _group(All, parts, False)


def disjoin(parts: list[Formula]) -> Formula:
    """Makes the OR of parts."""
    return _group(Any_, parts, True)


def at_least(parts: list[Formula], least: int) -> Formula:
    """Makes the formula of "at least ``least`` of the parts are true".

    TRUE scores 0, so it stays among parts with weights, as a leaf.
    """
    some: list[Any] = [part for part in parts if type(part) is not bool]
    scored = next((leaf for part in some if (leaf := _scored(part)) is not None), None)
    true = parts.count(True)
    if scored is not None:
        some += [make_true(scored.attr)] * true
    else:
        least -= true
    if least <= 0 or least > len(some):
        return least <= 0
    if least == 1:
        return disjoin(some)
    return conjoin(some) if least == len(some) else Least(some, least, scored)


def _scored(part: Leaf | All) -> Leaf | None:
    if type(part) is Leaf:
        return part if part.scores else None
    return part.scored  # type: ignore[union-attr]


def make_true(attr: int, weight: int = NO_WEIGHT) -> Leaf:
    """Makes a leaf that every event meets: no event has an entry in the empty set."""
    return Leaf(attr, _NOTHING, True, weight)


def _group(kind: type[All], parts: list[Formula], decides: bool) -> Formula:
    """Makes an AND or OR: flat, without constants and repeated leaves.

    Leaves of one attribute are merged into one leaf where possible. ``a = 1 OR a = 2`` becomes one
    set, as does "no entry in this set" AND "no entry in that".

    With weights, an AND keeps repeated leaves, and an OR scores its best part. TRUE scores 0, so it
    becomes a leaf. Leaves are then merged only where the score stays the same.
    """
    flat: list[Any] = []
    seen: set[int] = set()
    merged: dict[Any, int] = {}  # attribute and weight -> place in ``flat``
    unions: dict[int, list[KeyTest]] = {}  # place in ``flat`` -> tests
    stack = parts[::-1] if any(type(part) is kind for part in parts) else None
    either = kind is Any_
    true, scored = False, None
    # Collect parts, without repeated leaves and constants
    for part in _flatten(kind, stack) if stack is not None else parts:
        if type(part) is Leaf:
            weight = part.weight
            counts = weight != NO_WEIGHT and part.scores
            if counts:
                scored = part
            if id(part) in seen and not (counts and kind is All):
                continue
            seen.add(id(part))
            mergeable = not counts or (weight < 0 and either)
            if mergeable and part.none is not decides and part.tests[0].op not in PATTERNS:
                place = merged.setdefault(part.attr if weight == NO_WEIGHT else (part.attr, weight), len(flat))
                if place < len(flat):
                    unions.setdefault(place, list(flat[place].tests)).extend(part.tests)
                    continue
        elif part is True or part is False:
            if part is False and not either:
                return False
            true |= part
            continue
        else:
            scored = scored or part.scored  # type: ignore[union-attr]
        flat.append(part)
    # Unite the tests of merged leaves
    for place, tests in unions.items():
        flat[place] = Leaf(flat[place].attr, _distinct(tests), not decides, flat[place].weight)
    if true and scored is not None:
        flat.append(make_true(scored.attr))
    elif true and either:
        return True
    if not flat:
        return not decides
    if len(flat) == 1:
        node: Formula = flat[0]
        return node
    # Count conjunctions and leaves
    conjunctions, size = (0 if either else 1), 0
    for part in flat:
        leaf = type(part) is Leaf
        count = 1 if leaf else part.conjunctions
        conjunctions = min(conjunctions + count if either else conjunctions * count, COUNTLESS)
        size += 1 if leaf else part.size
    return kind(flat, conjunctions, size, scored)


def _flatten(kind: type[All], stack: list[Any]) -> list[Any]:
    """Returns parts in order, with nested groups of the same kind replaced by their parts.

    ``stack`` has the parts backwards.
    """
    flat: list[Any] = []
    while stack:
        part = stack.pop()
        if type(part) is kind:
            stack.extend(reversed(part.parts))
        else:
            flat.append(part)
    return flat


def _distinct(tests: list[KeyTest]) -> tuple[KeyTest, ...]:
    return tuple({id(test): test for test in tests}.values())


# Forms
# --------------------------------------------------------------------------


def fold(root: Any, leaf: Callable[[Leaf], Any], group: Callable[[All, list[Any]], Any]) -> Any:
    """Calls ``leaf`` on each leaf in order, and ``group`` on each group and its parts' results."""
    done: list[Any] = []
    stack: list[tuple[Any, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if type(node) is Leaf:
            done.append(leaf(node))
        elif ready:
            count = len(node.parts)
            results = done[-count:]
            del done[-count:]
            done.append(group(node, results))
        else:
            stack.append((node, True))
            stack.extend([(part, False) for part in reversed(node.parts)])
    return done[0]
