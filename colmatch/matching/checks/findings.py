"""The findings of ``Matcher.check``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa

from colmatch.arrays.ranges import distinct, ranges_of, sizes_of
from colmatch.arrays.ranges import members as spread
from colmatch.errors import OptionError, show_value
from colmatch.events.gather import batches
from colmatch.given.arguments import check_choice, members
from colmatch.given.schema import Role
from colmatch.kernels._forks import cached_property
from colmatch.kernels.layout import I64, Bools
from colmatch.matching.checks.boxes import Box, Chances, Several, TooManyError
from colmatch.matching.checks.confirm import PIECE, Examples
from colmatch.matching.checks.normal import Forms, duplicates, normal_forms
from colmatch.matching.checks.sampled import SampledStates
from colmatch.subscriptions.ids import check_known, ids_among
from colmatch.updates.versions import Parts

Check = Literal["never", "always", "duplicate", "contained", "overlaps", "dead column", "odd literal"]
Checks = Check | Sequence[Check] | None
OF_SAMPLE = ("dead column", "odd literal")
MOST_TRIED = 10_000  # subscriptions for which events are made, if none are asked for
PROVEN, DISPROVEN, UNDECIDED = "proven", "disproven", "undecided"
_ROUNDS = 3  # events for what is left of a subscription without another


class _Rows:
    """The rows of the table, column by column."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._parts: list[tuple[str, I64, I64, str, pa.Array, I64]] = []
        self._events: list[pa.RecordBatch] = []
        self._count = 0

    def keep(self, events: pa.RecordBatch, which: I64) -> I64:
        """Keeps some events as examples. Returns their places."""
        if len(which):
            self._events.append(events.take(pa.array(which)))
        self._count += len(which)
        return np.arange(self._count - len(which), self._count)

    def add(
        self, finding: str, id: I64, other: I64 | None = None, status: str = PROVEN,
        reason: pa.Array | list[str] | str | None = None, example: I64 | None = None,
    ) -> None:  # fmt: skip
        """Adds rows of a finding; -1 is no other subscription, and no example."""
        none = np.full(len(id), -1)
        if isinstance(reason, list):
            reason = pa.array(reason, pa.string())
        elif not isinstance(reason, pa.Array):
            reason = pa.array([reason], pa.string()).take(pa.array(np.zeros(len(id), np.int64)))
        other, example = (none if column is None else column for column in (other, example))
        self._parts.append((finding, id, other, status, reason, example))

    def table(self, ids: pa.Array) -> pa.Table:
        """Returns the table, ordered by finding and id."""
        none = np.empty(0, np.int64)
        id, other, example = (np.concatenate([none, *(part[i] for part in self._parts)]) for i in (1, 2, 5))
        size = [len(part[1]) for part in self._parts]
        reasons = pa.chunked_array([part[4] for part in self._parts], pa.string())
        rank = np.repeat(np.array([get_args(Check).index(part[0]) for part in self._parts], np.int64), size)
        order = np.lexsort((other, id, rank))
        words = [pa.array([part[i] for part in self._parts], pa.string()) for i in (0, 3)]
        of = pa.array(np.repeat(np.arange(len(size)), size)[order])
        shape = pa.struct(list(self._schema))
        events = pa.concat_arrays([pa.nulls(0, shape), *(events.to_struct_array() for events in self._events)])
        return pa.table(
            {
                "id": ids.take(pa.array(id[order])),
                "finding": words[0].take(of),
                "other": ids.take(pa.array(other[order], mask=other[order] < 0)),
                "status": words[1].take(of),
                "reason": reasons.take(pa.array(order)),
                "example": events.take(pa.array(example[order], mask=example[order] < 0)),
            }
        )


def find(parts: Parts, checks: Any, ids: Any, sample: Any) -> pa.Table:
    """Returns the table of ``Matcher.check``."""
    version = parts.version
    chosen = _read_checks(checks, ids, sample)
    numbers = np.flatnonzero(version.live())
    if ids is not None:
        given = ids_among(ids, version.id_type)
        asked, _ = version.numbers_of(given)
        check_known(given, asked, "nothing was checked")
        numbers = distinct(asked)
    rows = [] if sample is None else [b for b in batches(sample, parts.options.batch_rows) if b.num_rows]
    if sample is not None and not rows and not set(OF_SAMPLE).isdisjoint(chosen):
        raise OptionError("sample: it has no event, and would say that no rule has a value: give some events")
    checker = _Checker(parts, numbers, ids is not None, rows)
    for check in chosen:
        checker.run(check)
    return checker.rows.table(version.ids.array)


def _read_checks(checks: Any, ids: Any, sample: Any) -> list[str]:
    names = get_args(Check)
    if checks is None:
        return [
            name for name in ("never", "always", "duplicate", *OF_SAMPLE) if sample is not None or name not in OF_SAMPLE
        ]
    listed = [checks] if isinstance(checks, str) else members(checks)
    if listed is None:
        raise OptionError(f"checks={show_value(checks)}: give names of checks: {', '.join(names)}")
    chosen = [check_choice("checks: {}", name, names) for name in listed]
    for name in chosen:
        if name == "overlaps" and ids is None:
            raise OptionError("checks: overlaps is for some subscriptions: give ids, too")
        if name in OF_SAMPLE and sample is None:
            raise OptionError(f"checks: {name} compares with events: give a sample, too")
    return [name for name in names if name in chosen]


class _Checker:
    """The checks of some subscriptions.

    Parameters
    ----------
    numbers : of the subscriptions, ascending
    is_asked : whether the caller has named them, so that each gets an answer
    sample : events
    """

    def __init__(self, parts: Parts, numbers: I64, is_asked: bool, sample: list[pa.RecordBatch]) -> None:
        self.version = parts.version
        self.examples = Examples(parts)
        self.states = self.examples.states
        self.numbers = numbers
        self.is_asked = is_asked
        self.sample = sample
        self.rows = _Rows(self.examples.maker.schema)
        self._lenient = parts.options.missing_columns == "null"

    def run(self, check: str) -> None:
        getattr(self, f"_{check.replace(' ', '_')}")()

    # One subscription

    def _never(self) -> None:
        impossible, simple = self._judge()
        of = self.states.predicates.owner
        alive, easy = np.zeros(len(self.version.ids), bool), np.zeros(len(self.version.ids), bool)
        alive[of[~impossible]] = True
        easy[of[simple]] = True
        self._add_never(self.numbers[~alive[self.numbers]])
        open = self.numbers[alive[self.numbers] & (self.is_asked | ~easy[self.numbers])]
        tried, rest = (open, open[:0]) if self.is_asked else (open[:MOST_TRIED], open[MOST_TRIED:])
        left: list[int] = []
        for piece, events, place, pairs in self.examples.confirmed(tried):
            own = piece[place[pairs.event]] == pairs.number
            number, first = np.unique(pairs.number[own], return_index=True)
            if self.is_asked:
                example = self.rows.keep(events, pairs.event[own][first])
                self.rows.add("never", number, status=DISPROVEN, example=example)
            left += np.setdiff1d(piece, number).tolist()
        left = self._without_sampled(np.array(left, np.int64))
        empty = [number for number in left if self._boxes(number) == []]
        self._add_never(np.array(empty, np.int64))
        others = np.setdiff1d(np.array(left, np.int64), np.array(empty, np.int64))
        self.rows.add(
            "never", others, status=UNDECIDED, reason=[self.examples.why(number) for number in others.tolist()]
        )
        self.rows.add(
            "never", rest, status=UNDECIDED, reason=f"more than {MOST_TRIED:,} rules need an event to decide: give ids"
        )

    def _without_sampled(self, numbers: I64) -> list[int]:
        """Returns the subscriptions that match no event of the sample.

        If they are asked for, the others get a row with an event that they match.
        """
        for batch in self.sample:
            if not len(numbers):
                break
            pairs = self.examples.match(batch, numbers, True)
            matched, first = np.unique(pairs.number, return_index=True)
            if self.is_asked:
                taken = self.examples.maker.conform(batch.take(pa.array(pairs.event[first])))
                example = None if taken is None else self.rows.keep(taken, np.arange(len(matched)))
                self.rows.add("never", matched, status=DISPROVEN, example=example)
            numbers = np.setdiff1d(numbers, matched)
        left: list[int] = numbers.tolist()
        return left

    def _boxes(self, number: int) -> list[Box] | None:
        try:
            return self.examples.boxes.of(number)
        except TooManyError:
            return None

    def _add_never(self, numbers: I64) -> None:
        self.rows.add("never", numbers, reason="its conditions contradict each other, or ask for what no value can be")

    def _judge(self) -> tuple[Bools, Bools]:
        """Returns which conjunctions are never true, and which are surely true of some event: (C).

        The second needs conditions on columns that do not depend on one another.
        """
        states, preds = self.states, self.states.predicates
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
        states, runs, attr = self.states, self.states.runs, self.states.attr[p]
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
        states, runs = self.states, self.states.runs
        base = states.base[states.attr[p]]
        out: Bools = runs.first[p + 1] - runs.first[p] == 1
        begin = runs.first[p[out]]
        out[out] = (runs.low[begin] == base[out] + 1) & (runs.high[begin] == (base + states.top[states.attr[p]])[out])
        return out

    @cached_property
    def _found_always(self) -> tuple[I64, I64]:
        """Returns the subscriptions that always match, and those that may."""
        return self._decide_always(self._likely_always(np.flatnonzero(self.version.live())), False)

    def _likely_always(self, numbers: I64) -> I64:
        """Returns the subscriptions that match each of some events made at random."""
        examples, rng = self.examples, np.random.default_rng(1)
        if not len(self.states.predicates.owner):
            return numbers[:0]
        plain = np.flatnonzero(~self.states.programs)
        chosen = rng.choice(plain, min(64, len(plain)), replace=False) if len(plain) else plain
        event, state = examples.chances.choose(chosen, np.arange(len(chosen)) + 1, rng)
        events = examples.make(event, state, len(chosen) + 1)  # the first has nothing
        seen = np.zeros(len(self.version.ids), np.int64)
        count = 0  # events where no value fails
        for batch in [events, *self.sample[:1]]:
            pairs = examples.match(batch, is_sample=batch is not events)
            np.add.at(seen, pairs.number, 1)
            count += len(pairs.matched)
        found: I64 = numbers[seen[numbers] == count]
        return found if count else found[:MOST_TRIED]

    def _decide_always(self, numbers: I64, tell: bool) -> tuple[I64, I64]:
        """Proves or disproves that subscriptions match each event; with ``tell``, adds what is
        disproven.
        """
        proven, open = [], {}
        for number in numbers.tolist():
            boxes = self._boxes(number)
            left = None if boxes is None else self._left({}, boxes)
            if left == [] and not self.examples.may_fail[number]:
                proven.append(number)
            else:
                open[number] = left or [{}]
        for _ in range(_ROUNDS):
            for piece in _pieces(list(open)):
                asked = [box for number in piece for box in open[number][:PIECE]]
                of = np.repeat(piece, [len(open[number][:PIECE]) for number in piece])
                events = self.examples.of_boxes(asked)
                pairs = self.examples.match(events, np.array(piece, np.int64))
                meets = np.zeros(len(of), bool)
                meets[pairs.event[of[pairs.event] == pairs.number]] = True
                unmet = pairs.matched[~meets[pairs.matched]]
                number, first = np.unique(of[unmet], return_index=True)
                if tell:
                    example = self.rows.keep(events, unmet[first])
                    self.rows.add("always", number, status=DISPROVEN, example=example)
                for one in number.tolist():
                    del open[one]
        return np.array(proven, np.int64), np.array(list(open), np.int64)

    def _left(self, box: Box, boxes: list[Box]) -> list[Box] | None:
        try:
            return self.examples.boxes.left(box, boxes)
        except TooManyError:
            return None

    def _always(self) -> None:
        proven, open = self._decide_always(self.numbers, True) if self.is_asked else self._found_always
        self.rows.add("always", proven, reason="it matches every event")
        self.rows.add("always", open, status=UNDECIDED, reason=[self.examples.why(one) for one in open.tolist()])

    # Several subscriptions

    @cached_property
    def _repeats(self) -> tuple[Forms, I64, I64]:
        """Returns all normal forms, repeated subscriptions, and the first one with each form."""
        forms = normal_forms(self.states)
        return forms, *duplicates(self.states, forms)

    def _duplicate(self) -> None:
        _, id, other = self._repeats
        if self.is_asked:
            kept = np.isin(id, self.numbers) | np.isin(other, self.numbers)
            id, other = id[kept], other[kept]
        self.rows.add("duplicate", id, other)

    def _groups(self) -> I64:
        """Returns a number that subscriptions with equal normal forms share, -1 without any."""
        out = np.full(len(self.version.ids), -1)
        forms, id, other = self._repeats
        out[forms.owner] = forms.owner
        out[id] = other
        return out

    def _contained(self) -> None:
        groups, (always, _) = self._groups(), self._found_always
        plain = np.ones(len(self.version.ids), bool)
        plain[always] = False
        numbers = self.numbers[(groups[self.numbers] >= 0) & plain[self.numbers]]
        for some in _pieces(numbers.tolist()):
            piece = np.array(some, np.int64)
            events, of = self.examples.for_subscriptions(piece, fill=True)
            pairs = self.examples.match(events)
            met = np.zeros(len(of), bool)
            met[pairs.event[piece[of[pairs.event]] == pairs.number]] = True
            number = np.bincount(of[met], minlength=len(piece))  # events of each subscription
            first = np.full(len(piece), -1)
            first[of[met][::-1]] = np.flatnonzero(met)[::-1]
            # Others that match all of them
            kept = met[pairs.event] & plain[pairs.number]
            width = len(self.version.ids)
            key, count = np.unique(of[pairs.event[kept]] * width + pairs.number[kept], return_counts=True)
            place, other = key // width, key % width
            alike = groups[piece[place]] == groups[other]
            likely = (count == number[place]) & ~alike
            self._decide_contained(piece, place[likely], other[likely], events, first)
            unmet = piece[(number == 0)]
            unmet = np.array([n for n in unmet.tolist() if self._boxes(n) != []], np.int64)
            self.rows.add("contained", unmet, status=UNDECIDED, reason=[self.examples.why(n) for n in unmet.tolist()])

    def _decide_contained(self, piece: I64, place: I64, other: I64, events: pa.RecordBatch, first: I64) -> None:
        proven: list[int] = []
        open: dict[int, list[Box]] = {}
        for i, (id, outer) in enumerate(zip(piece[place].tolist(), other.tolist(), strict=True)):
            boxes, others = self._boxes(id), self._boxes(outer)
            left: list[Box] | None = None
            if boxes is not None and others is not None:
                parts = [self._left(box, others) for box in boxes]
                left = None if any(part is None for part in parts) else [box for part in parts for box in part or ()]
            if left == [] and not self.examples.may_fail[outer]:
                proven.append(i)
            else:
                open[i] = left or boxes or [{}]
        for _ in range(_ROUNDS):
            for some in _pieces(list(open), PIECE):
                asked = [(i, box) for i in some for box in open[i][: 2 * _ROUNDS]]
                made = self.examples.of_boxes([box for _, box in asked])
                of = np.array([i for i, _ in asked], np.int64)
                id, outer = piece[place[of]], other[of]
                pairs = self.examples.match(made, distinct(np.concatenate([id, outer])))
                meets, leaves = np.zeros(len(of), bool), np.ones(len(of), bool)
                meets[pairs.event[id[pairs.event] == pairs.number]] = True
                leaves[pairs.event[outer[pairs.event] == pairs.number]] = False
                for i in set(of[meets & leaves].tolist()):
                    del open[i]
        at = np.array(proven, np.int64)
        self.rows.add("contained", piece[place[at]], other[at], example=self.rows.keep(events, first[place[at]]))
        at = np.array(list(open), np.int64)
        reasons = [self.examples.why(*pair) for pair in zip(piece[place[at]].tolist(), other[at].tolist(), strict=True)]
        self.rows.add(
            "contained", piece[place[at]], other[at], UNDECIDED, reasons, self.rows.keep(events, first[place[at]])
        )

    def _overlaps(self) -> None:
        for number in self.numbers.tolist():
            found: dict[int, int] = {}
            maybe: set[int] = set()
            boxes = self._boxes(number)
            for box in [{}] if boxes is None else boxes:
                self._overlap(number, box, found, maybe)
            id, other = np.full(len(found), number), np.array(list(found), np.int64)
            self.rows.add("overlaps", id, other, example=np.array(list(found.values()), np.int64))
            open = [one for one in sorted(maybe - found.keys()) if self._may_overlap(boxes, self._boxes(one))]
            reasons = [self.examples.why(number, one) for one in open]
            self.rows.add("overlaps", np.full(len(open), number), np.array(open, np.int64), UNDECIDED, reasons)

    def _may_overlap(self, some: list[Box] | None, others: list[Box] | None) -> bool:
        if some is None or others is None:
            return True
        both = self.examples.boxes.both
        return any(both(box, other) is not None for box in some for other in others)

    def _overlap(self, number: int, box: Box, found: dict[int, int], maybe: set[int]) -> None:
        """Finds subscriptions that match an event in a box, with places of such events."""
        states = self.states
        inside = self._inside(box)
        fails = states.fails(~states.allow(inside & states.possible) & ~(states.multi & states.none))
        conjunction = np.flatnonzero(~fails & (states.predicates.owner != number))
        owner = states.predicates.owner[conjunction].astype(np.int64)
        maybe.update(owner.tolist())
        chances = Chances(states, inside & states.made)
        for _ in range(_ROUNDS):
            open = ~np.isin(owner, list(found)) if found else np.ones(len(owner), bool)
            for some in _pieces(np.flatnonzero(open).tolist(), PIECE):
                self._try_overlaps(number, box, conjunction[some], chances, found)

    def _inside(self, box: Box) -> Bools:
        """Returns which states an event in a box may have, but for attributes of several values."""
        out = np.ones(len(self.states.possible), bool)
        for a, asked in box.items():
            if not isinstance(asked, Several):
                out[self.states.base[a] : self.states.base[a + 1]] = False
                for low, high in asked:
                    out[low : high + 1] = True
        return out

    def _try_overlaps(self, number: int, box: Box, conjunction: I64, chances: Chances, found: dict[int, int]) -> None:
        states, examples = self.states, self.examples
        rng = np.random.default_rng(len(found))
        alone = examples.needs_boxes[conjunction]
        event, state = chances.choose(conjunction[~alone], np.flatnonzero(~alone), rng)
        own = [examples.boxes.pick(box, rng) for _ in range(len(conjunction))]
        for i in np.flatnonzero(alone).tolist():
            own[i] = self._pick_both(box, int(conjunction[i]), rng)
        more = np.repeat(np.arange(len(own)), [len(one) for one in own])
        asked = np.array([one for part in own for one in part], np.int64)
        base, width = states.base, len(states.base)
        attr, known = np.searchsorted(base, asked, "right") - 1, np.searchsorted(base, state, "right") - 1
        several = states.codes.multi[attr] > 0 if len(attr) else np.zeros(0, bool)
        kept = several | ~np.isin(more * width + attr, event * width + known)
        events = examples.make(np.append(event, more[kept]), np.append(state, asked[kept]), len(conjunction))
        other = states.predicates.owner[conjunction].astype(np.int64)
        pairs = examples.match(events, distinct(np.append(other, number)))
        meets, both = np.zeros(len(other), bool), np.zeros(len(other), bool)
        meets[pairs.event[pairs.number == number]] = True
        both[pairs.event[pairs.number == other[pairs.event]]] = True
        ids, first = np.unique(other[meets & both], return_index=True)
        new = ~np.isin(ids, list(found)) if found else np.ones(len(ids), bool)
        places = self.rows.keep(events, np.flatnonzero(meets & both)[first[new]])
        found.update(zip(ids[new].tolist(), places.tolist(), strict=True))

    def _pick_both(self, box: Box, conjunction: int, rng: np.random.Generator) -> list[int]:
        """Returns states of an event in a box that a conjunction may match."""
        boxes = self.examples.boxes
        try:
            both = [one for other in boxes.of_conjunction(conjunction) if (one := boxes.both(box, other)) is not None]
        except TooManyError:
            both = []
        return boxes.pick(both[rng.integers(len(both))], rng) if both else []

    # With a sample

    @cached_property
    def _sampled(self) -> SampledStates:
        return SampledStates(self.states, self.sample, self._lenient)

    def _dead_column(self) -> None:
        self._add_sampled("dead column", *self._sampled.dead_columns())

    def _odd_literal(self) -> None:
        self._add_sampled("odd literal", *self._sampled.odd_literals())

    def _add_sampled(self, check: str, number: I64, reasons: pa.Array) -> None:
        asked = np.isin(number, self.numbers)
        self.rows.add(check, number[asked], reason=reasons.filter(pa.array(asked)))


def _pieces(values: list[int], size: int = PIECE) -> Iterator[list[int]]:
    for begin in range(0, len(values), size):
        yield values[begin : begin + size]
