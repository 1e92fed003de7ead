"""The checks ``never`` and ``always``: a subscription beside no other."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from colmatch.arrays.ranges import distinct, ranges_of, sizes_of
from colmatch.arrays.ranges import members as spread
from colmatch.given.schema import Role
from colmatch.kernels._forks import cached_property
from colmatch.kernels.layout import I64, Bools
from colmatch.matching.checks.scope import DISPROVEN, MOST_TRIED, UNDECIDED, Scope


class Never:
    """The check of which subscriptions no event matches."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def add_rows(self) -> None:
        """Adds the rows of the check."""
        impossible, simple = self._judge()
        of = self._scope.states.predicates.owner
        alive, easy = np.zeros(len(self._scope.version.ids), bool), np.zeros(len(self._scope.version.ids), bool)
        alive[of[~impossible]] = True
        easy[of[simple]] = True
        self._add_never(self._scope.numbers[~alive[self._scope.numbers]])
        unsure = self._scope.numbers[alive[self._scope.numbers] & (self._scope.is_asked | ~easy[self._scope.numbers])]
        tried, rest = (unsure, unsure[:0]) if self._scope.is_asked else (unsure[:MOST_TRIED], unsure[MOST_TRIED:])
        left: list[int] = []
        for piece, events, place, pairs in self._scope.examples.confirmed(tried):
            own = piece[place[pairs.event]] == pairs.number
            number, first = np.unique(pairs.number[own], return_index=True)
            if self._scope.is_asked:
                example = self._scope.rows.keep(events, pairs.event[own][first])
                self._scope.rows.add("never", number, status=DISPROVEN, example=example)
            left += np.setdiff1d(piece, number).tolist()
        left = self._without_sampled(np.array(left, np.int64))
        empty = [number for number in left if self._scope.boxes(number) == []]
        self._add_never(np.array(empty, np.int64))
        others = np.setdiff1d(np.array(left, np.int64), np.array(empty, np.int64))
        self._scope.rows.add(
            "never", others, status=UNDECIDED, reason=[self._scope.examples.why(number) for number in others.tolist()]
        )
        self._scope.rows.add(
            "never", rest, status=UNDECIDED, reason=f"more than {MOST_TRIED:,} rules need an event to decide: give ids"
        )

    def _without_sampled(self, numbers: I64) -> list[int]:
        """Returns the subscriptions that match no event of the sample.

        If they are asked for, the others get a row with an event that they match.
        """
        for batch in self._scope.sample:
            if not len(numbers):
                break
            pairs = self._scope.examples.match(batch, numbers, True)
            matched, first = np.unique(pairs.number, return_index=True)
            if self._scope.is_asked:
                taken = self._scope.examples.maker.conform(batch.take(pa.array(pairs.event[first])))
                example = None if taken is None else self._scope.rows.keep(taken, np.arange(len(matched)))
                self._scope.rows.add("never", matched, status=DISPROVEN, example=example)
            numbers = np.setdiff1d(numbers, matched)
        left: list[int] = numbers.tolist()
        return left

    def _add_never(self, numbers: I64) -> None:
        self._scope.rows.add(
            "never", numbers, reason="its conditions contradict each other, or ask for what no value can be"
        )

    def _judge(self) -> tuple[Bools, Bools]:
        """Returns which conjunctions are never true, and which are surely true of some event: (C).

        The second needs conditions on columns that do not depend on one another.
        """
        states, preds = self._scope.states, self._scope.states.predicates
        free, made = states.multi & states.none, states.allow(states.made)
        impossible = states.fails(~(made | free | states.allow(states.possible)))
        plain_roles = (Role.VALUE, Role.ENTRY, Role.ELEMENT)
        plain = np.array([a.role in plain_roles and not a.pattern and not a.is_free for a in states.attributes], bool)
        fits: Bools = plain[states.attr] & (made | free)
        odd = np.flatnonzero(~plain[states.attr])
        fits[odd] = self._fit(odd)
        simple = ~states.fails(~fits) & ~states.programs
        # A list must not be asked for values and for the lack of values
        element, first = states.multi & plain[states.attr], preds.first
        if element.any():
            asks, forbids = (ranges_of(part) for part in (element & ~states.none, element & states.none))
            simple &= (asks[first[1:]] == asks[first[:-1]]) | (forbids[first[1:]] == forbids[first[:-1]])
        return impossible, simple

    def _fit(self, p: I64) -> Bools:
        """Returns which predicates on parts of lists, or on patterns, surely can be met, together
        with simple ones.

        Some text meets a pattern, and some does not. The conjunction must ask no more of the text
        than that it is there.
        """
        states, runs, attr = self._scope.states, self._scope.states.runs, self._scope.states.attr[p]
        roles = np.array([-1 if a.pattern else a.role for a in states.attributes], np.int64)[attr]
        present = self._any_value(p)
        lacking = np.zeros(len(p), bool)
        some = np.flatnonzero(runs.first[p + 1] > runs.first[p])
        lacking[some] = runs.low[runs.first[p[some]]] == states.base[attr[some]]
        fits: Bools = ((roles == Role.SIZE) & present) | ((roles == Role.HAS_NULL) & lacking)
        patterns = [a.pattern for a in states.attributes]
        meets = [one is not None and one[0] != "rlike" and one[1].strip("%") != "" for one in patterns]
        lone = np.flatnonzero(np.array(meets, bool)[attr])
        if not len(lone):
            return fits
        # Count what conjunctions with patterns ask of each text
        paths: dict[tuple[str, ...], int] = {}
        path = np.array([paths.setdefault(a.path, len(paths)) for a in states.attributes], np.int64)
        first = states.predicates.first
        conjunctions = distinct(np.searchsorted(first, p[lone], "right") - 1)
        within = ranges_of(first[conjunctions + 1] - first[conjunctions])
        asked, of = spread(first[conjunctions], within), np.repeat(conjunctions, sizes_of(within))
        is_pattern = np.array([one is not None for one in patterns], bool)[states.attr[asked]]
        kept = is_pattern | ~self._any_value(asked)
        asked, of = asked[kept], of[kept]
        _, place, count = np.unique(of * len(paths) + path[states.attr[asked]], return_inverse=True, return_counts=True)
        alone = np.isin(p[lone], asked[count[place.ravel()] == 1])
        fits[lone[alone]] = True
        return fits

    def _any_value(self, p: I64) -> Bools:
        """Returns which predicates ask for a value, whatever it is."""
        states, runs = self._scope.states, self._scope.states.runs
        base = states.base[states.attr[p]]
        out: Bools = runs.first[p + 1] - runs.first[p] == 1
        begin = runs.first[p[out]]
        out[out] = (runs.low[begin] == base[out] + 1) & (runs.high[begin] == (base + states.top[states.attr[p]])[out])
        return out


class Always:
    """The check of which subscriptions each event matches."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    @cached_property
    def found(self) -> tuple[I64, I64]:
        """Returns the subscriptions that always match, and those that may."""
        return self._decide(self._likely(np.flatnonzero(self._scope.version.live())), False)

    def _likely(self, numbers: I64) -> I64:
        """Returns the subscriptions that match each of some events made at random."""
        examples, rng = self._scope.examples, np.random.default_rng(1)
        if not len(self._scope.states.predicates.owner):
            return numbers[:0]
        plain = np.flatnonzero(~self._scope.states.programs)
        chosen = rng.choice(plain, min(64, len(plain)), replace=False) if len(plain) else plain
        event, state = examples.chances.choose(chosen, np.arange(len(chosen)) + 1, rng)
        events = examples.make(event, state, len(chosen) + 1)  # the first has nothing
        seen = np.zeros(len(self._scope.version.ids), np.int64)
        count = 0  # events where no value fails
        for batch in [events, *self._scope.sample[:1]]:
            pairs = examples.match(batch, is_sample=batch is not events)
            np.add.at(seen, pairs.number, 1)
            count += len(pairs.matched)
        found: I64 = numbers[seen[numbers] == count]
        return found if count else found[:MOST_TRIED]

    def _decide(self, numbers: I64, tell: bool) -> tuple[I64, I64]:
        """Returns which subscriptions always match, and which may; with ``tell``, adds rows of the
        others.
        """
        scope = self._scope
        every = np.full(len(numbers), -1)
        verdicts = [scope.contains(-1, number) for number in numbers.tolist()]
        is_proven = np.array([proven for proven, _ in verdicts], bool)
        unsure = np.flatnonzero(~is_proven)
        shown, example = scope.disprove(every[unsure], numbers[unsure], [verdicts[i][1] for i in unsure.tolist()], tell)
        if tell:
            scope.rows.add("always", numbers[unsure[shown]], status=DISPROVEN, example=example)
        return numbers[is_proven], np.delete(numbers[unsure], shown)

    def add_rows(self) -> None:
        """Adds the rows of the check."""
        scope = self._scope
        proven, unsure = self._decide(scope.numbers, True) if scope.is_asked else self.found
        scope.rows.add("always", proven, reason="it matches every event")
        scope.rows.add("always", unsure, status=UNDECIDED, reason=[scope.examples.why(one) for one in unsure.tolist()])
