"""Boxes: conjunctions as sets of states by attribute, and what is left of one without others.

These are for few subscriptions: each step is Python. A box that is empty is never true. One that is
not empty may still be, since attributes depend on one another.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from colmatch.arrays.ranges import members, ranges_of, sizes_of
from colmatch.given.schema import Role
from colmatch.kernels.layout import I64, Bools
from colmatch.matching.checks.states import States
from colmatch.predicates.programs import fold_program

Intervals = tuple[tuple[int, int], ...]  # of states, ascending, none empty
MOST_BOXES = 256  # boxes that a subscription, or what is left of a box, may have


class Several(NamedTuple):
    """Conditions on the values of an attribute that may have several."""

    some: tuple[Intervals, ...] = ()  # a value lies in each
    none: Intervals = ()  # no value lies in these


Box = dict[int, Any]  # attribute -> Intervals, or Several


class TooManyError(Exception):
    """There are more boxes than are looked at."""


class Boxes:
    """A maker and comparer of boxes.

    Parameters
    ----------
    states : of the version
    """

    def __init__(self, states: States) -> None:
        self._states = states
        preds = states.predicates
        self._begin = np.searchsorted(preds.owner, np.arange(len(states.version.ids) + 1))
        self._possible = np.append(0, np.cumsum(states.possible))
        self._base = states.base.tolist()
        self._multi = states.codes.multi.tolist()
        at = {(a.path, a.role): i for i, a in enumerate(states.attributes) if not a.is_free and not a.pattern}
        self._follows: list[tuple[int, Intervals] | None] = []  # what a value of each attribute brings about
        for attribute in states.attributes:
            role = Role.VALUE if attribute.pattern else Role.SIZE
            other = at.get((attribute.path, role)) if attribute.pattern or attribute.role in _PARTS else None
            self._follows.append(None if other is None else (other, self._sized(other, role)))
        self._known: dict[int, list[Box]] = {}

    def _sized(self, a: int, role: Role) -> Intervals:
        """Returns the states of a text that is there, or of a list that is not empty."""
        base, end = self._base[a], self._base[a + 1]
        if role is Role.VALUE:
            return ((base + 1, end - 1),)
        _, _, high, _ = self._states.limits
        first = base + 1 + int(np.searchsorted(high[base + 1 : end], 1))
        return ((first, end - 1),) if first < end else ()

    def of(self, number: int) -> list[Box]:
        """Returns the boxes of a subscription that are not empty.

        Raises TooManyError: a program has more.
        """
        boxes = self._known.get(number)
        if boxes is None:
            if len(self._known) > 100_000:
                self._known.clear()
            conjunctions = range(self._begin[number], self._begin[number + 1])
            boxes = self._known[number] = [box for c in conjunctions for box in self.of_conjunction(c)]
        return boxes

    def of_conjunction(self, c: int) -> list[Box]:
        """Returns the boxes of a conjunction, more than one for a program.

        Raises TooManyError: as ``of`` does.
        """
        preds = self._states.predicates
        if not self._states.programs[c]:
            return self._all([[self._leaf(p)] for p in range(int(preds.first[c]), int(preds.first[c + 1]))])
        return fold_program(preds, c, lambda p: [self._leaf(p)], self._join)

    def _join(self, parts: list[list[Box]], either: bool) -> list[Box]:
        boxes = [box for part in parts for box in part] if either else self._all(parts)
        if len(boxes) > MOST_BOXES:
            raise TooManyError
        return boxes

    def _leaf(self, p: int) -> Box:
        states = self._states
        a, runs = int(states.attr[p]), tuple(states.runs.of(p))
        if not self._multi[a]:
            return {a: runs}
        return {a: Several((), runs) if states.none[p] else Several((runs,))}

    def _all(self, parts: list[list[Box]]) -> list[Box]:
        """Returns the boxes of an AND that are not empty."""
        boxes: list[Box] = [{}]
        for part in parts:
            boxes = [both for box in boxes for other in part if (both := self.both(box, other)) is not None]
            if len(boxes) > MOST_BOXES:
                raise TooManyError
        return boxes

    def both(self, box: Box, other: Box) -> Box | None:
        """Returns the box of events in two boxes; None if it is empty."""
        out: Box | None = dict(box)
        for a, asked in other.items():
            out = None if out is None else self._narrow(out, a, asked)
        return out

    def _narrow(self, box: Box, a: int, asked: Any) -> Box | None:
        """Returns a box with one more condition; None if it is empty."""
        out = dict(box)
        if self._multi[a]:
            had = out.get(a, Several())
            some = had.some + tuple(runs for runs in asked.some if runs not in had.some)
            none = _union(had.none, asked.none)
            if any(not self._has(_without(runs, none)) for runs in some):
                return None
            out[a] = Several(some, none)
            is_there = bool(some)
        else:
            runs = _meet(out[a], asked) if a in out else asked
            if not self._has(runs):
                return None
            out[a] = runs
            is_there = runs[0][0] > self._base[a]
        follows = self._follows[a]
        if is_there and follows is not None:
            other, states = follows
            if other not in out or _meet(out[other], states) != out[other]:
                return self._narrow(out, other, states)
        return out

    def _has(self, runs: Intervals) -> bool:
        """Returns whether some state of these is possible."""
        return any(self._possible[high + 1] > self._possible[low] for low, high in runs)

    def left(self, box: Box, others: list[Box]) -> list[Box]:
        """Returns boxes of the events that are in a box and in none of the others.

        Raises TooManyError: they are too many.
        """
        pieces = [box]
        for other in others:
            pieces = [piece for one in pieces for piece in self._minus(one, other)]
            if len(pieces) > MOST_BOXES:
                raise TooManyError
        return pieces

    def _minus(self, box: Box, other: Box) -> Iterator[Box]:
        if self.both(box, other) is None:
            yield box
            return
        rest: Box | None = box
        for a, asked in other.items():
            for one in self._conditions(a, asked):
                if rest is None:
                    return
                outside = self._narrow(rest, a, self._negate(a, one))
                if outside is not None:
                    yield outside
                rest = self._narrow(rest, a, one)

    def _conditions(self, a: int, asked: Any) -> list[Any]:
        """Returns the single conditions on an attribute."""
        if not self._multi[a]:
            return [asked]
        return [Several((runs,)) for runs in asked.some] + ([Several((), asked.none)] if asked.none else [])

    def _negate(self, a: int, asked: Any) -> Any:
        if self._multi[a]:
            return Several((), asked.some[0]) if asked.some else Several((asked.none,))
        return _without(((self._base[a], self._base[a + 1] - 1),), asked)

    def pick(self, box: Box, rng: np.random.Generator) -> list[int]:
        """Returns states of an event in a box, as far as values can be made for them."""
        states = []
        for a, asked in box.items():
            wanted = [_without(runs, asked.none) for runs in asked.some] if self._multi[a] else [asked]
            for runs in wanted:
                made = np.concatenate([np.flatnonzero(self._states.made[lo : hi + 1]) + lo for lo, hi in runs])
                if len(made):
                    states.append(int(rng.choice(made)))
        return states


_PARTS = (Role.ELEMENT, Role.HAS_NULL, Role.ENTRY)


def _meet(some: Intervals, others: Intervals) -> Intervals:
    """Returns the states in both."""
    out, i, j = [], 0, 0
    while i < len(some) and j < len(others):
        low, high = max(some[i][0], others[j][0]), min(some[i][1], others[j][1])
        if low <= high:
            out.append((low, high))
        if some[i][1] < others[j][1]:
            i += 1
        else:
            j += 1
    return tuple(out)


def _without(some: Intervals, others: Intervals) -> Intervals:
    """Returns the states of the first that the others do not have."""
    out = []
    for low, high in some:
        for a, b in others:
            if b >= low and a <= high:
                if a > low:
                    out.append((low, a - 1))
                low = b + 1
        if low <= high:
            out.append((low, high))
    return tuple(out)


def _union(some: Intervals, others: Intervals) -> Intervals:
    out: list[tuple[int, int]] = []
    for low, high in sorted((*some, *others)):
        if out and low <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], high))
        else:
            out.append((low, high))
    return tuple(out)


class Chances:
    """Allowed states of predicates, to choose from.

    Parameters
    ----------
    allowed : (S) which states may be chosen
    """

    def __init__(self, states: States, allowed: Bools) -> None:
        self._states = states
        self._members = np.flatnonzero(allowed)
        self._before = np.append(0, np.cumsum(allowed))
        self._each = np.append(0, np.cumsum(self._before[states.runs.high + 1] - self._before[states.runs.low]))

    def choose(self, conjunctions: I64, event: I64, rng: np.random.Generator) -> tuple[I64, I64]:
        """Chooses states for plain conjunctions, each in a separate event.

        Returns events and states. A predicate without an allowed state has none.
        """
        preds, runs = self._states.predicates, self._states.runs
        first = ranges_of(preds.first[conjunctions + 1] - preds.first[conjunctions])
        p, events = members(preds.first[conjunctions], first), np.repeat(event, sizes_of(first))
        begin, end = self._each[runs.first[p]], self._each[runs.first[p + 1]]
        kept = (end > begin) & ~(self._states.multi & self._states.none)[p]
        target = (begin + (rng.random(len(p)) * (end - begin)).astype(np.int64))[kept]
        run = np.searchsorted(self._each, target, "right") - 1
        return events[kept], self._members[self._before[runs.low[run]] + target - self._each[run]]
