"""Events for subscriptions, confirmed by a match."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from colmatch.arrays.ranges import members, ranges_of, sizes_of
from colmatch.errors import EventError
from colmatch.events.computed.modes import may_fail
from colmatch.given.schema import DERIVED, Role
from colmatch.kernels._forks import cached_property
from colmatch.kernels.layout import I64, Bools
from colmatch.matching.checks.boxes import Box, Boxes, Chances, TooManyError
from colmatch.matching.checks.examples import Choice, EventMaker
from colmatch.matching.checks.states import States
from colmatch.matching.workers import Workers
from colmatch.subscriptions.ids import Ids
from colmatch.updates.memory_set import MemorySet
from colmatch.updates.versions import Parts

PIECE = 256  # subscriptions whose events are matched together: each event is matched with all of them
TRIES = 4  # events for each conjunction
MOST_CONJUNCTIONS = 16  # conjunctions of a subscription that events are made for
FILLED = 8  # attributes with a value in events that no condition asks for
LONGEST_REASON = 200  # characters of the names in a reason
_FAILING = 64  # events that are taken out of a batch, one by one, since a value fails there


class Pairs(NamedTuple):
    """Matches of a batch.

    Attributes
    ----------
    matched : events that were matched, since no value fails there
    """

    event: I64
    number: I64
    matched: I64


class Examples:
    """A maker of events for subscriptions, and of their matches.

    Parameters
    ----------
    parts : of the matcher

    Attributes
    ----------
    states, boxes, maker : of its version
    """

    def __init__(self, parts: Parts) -> None:
        self.version = parts.version
        self._ansi = parts.options.ansi
        self.states = States(parts.version, parts.schema)
        self.boxes = Boxes(self.states)
        self.maker = EventMaker(self.states)
        self.chances = Chances(self.states, self.states.made)
        self._workers = Workers(MemorySet(parts))
        preds = self.states.predicates
        self._begin = np.searchsorted(preds.owner, np.arange(len(parts.version.ids) + 1))
        self._rng = np.random.default_rng(0)
        roles = [a.role in (Role.VALUE, Role.ENTRY) and not a.pattern and not a.is_free for a in self.states.attributes]
        self._fillable = np.flatnonzero(np.array(roles, bool)) if roles else np.empty(0, np.int64)

    def match(self, events: pa.RecordBatch, numbers: I64 | None = None, is_sample: bool = False) -> Pairs:
        """Matches events, maybe with some subscriptions alone. Events that fail match nothing.

        Raises EventError: events of a sample do not fit the schema.
        """
        ids = self.version.ids.array
        request = self._workers.request(ids=None if numbers is None else ids.take(pa.array(numbers)))
        left = np.arange(events.num_rows)
        for _ in range(_FAILING):
            try:
                source = events.take(pa.array(left)) if len(left) < events.num_rows else events
                pieces = list(self._workers.pairs(source, request, self.version.result_schema))
                break
            except EventError as error:  # a computed value fails: this event says nothing
                if is_sample and error.event is None:
                    raise
                left = left[:0] if error.event is None else np.delete(left, error.event)
                pieces = []
                if error.event is None:
                    break
        else:
            left = left[:0]
        found = pa.Table.from_batches(pieces, self.version.result_schema)
        event = left[found["event"].to_numpy()]
        if not len(event):
            return Pairs(event, event, left)
        return Pairs(event, self.version.ids.find(Ids(found["subscription"].combine_chunks())), left)

    def make(self, events: I64, states: I64, count: int) -> pa.RecordBatch:
        """Makes events of states."""
        return self.maker.make(Choice(events, states, count), int(self._rng.integers(2**31)))

    def of_boxes(self, boxes: Sequence[Box]) -> pa.RecordBatch:
        """Makes an event in each box, as far as values can be made."""
        picked = [self.boxes.pick(box, self._rng) for box in boxes]
        event = np.repeat(np.arange(len(boxes)), [len(one) for one in picked])
        return self.make(event, np.array([state for one in picked for state in one], np.int64), len(boxes))

    def conjunctions_of(self, numbers: I64) -> tuple[I64, I64]:
        """Returns the first conjunctions of subscriptions, and the place of each in ``numbers``."""
        begin = self._begin[numbers]
        size = np.minimum(self._begin[numbers + 1] - begin, MOST_CONJUNCTIONS)
        return members(begin, ranges_of(size)), np.repeat(np.arange(len(numbers)), size)

    def for_subscriptions(self, numbers: I64, fill: bool = False) -> tuple[pa.RecordBatch, I64]:
        """Makes events that subscriptions may match.

        fill : one of the events for each conjunction has other attributes, too

        Returns the events, and for each the place of its subscription in ``numbers``.
        """
        conjunction, place = self.conjunctions_of(numbers)
        plain = ~self.needs_boxes[conjunction]
        of_boxes = np.unique(place[~plain]).tolist()
        conjunction, of = np.tile(conjunction[plain], TRIES), np.tile(place[plain], TRIES)
        event = np.arange(len(conjunction))
        events, chosen = self.chances.choose(conjunction, event, self._rng)
        boxes: list[Box] = []
        more: list[int] = []
        for i in of_boxes:
            for box in self._boxes_of(int(numbers[i])):
                boxes += [box] * TRIES
                more += [i] * TRIES
        picked = [self.boxes.pick(box, self._rng) for box in boxes]
        later = np.repeat(np.arange(len(boxes)), [len(one) for one in picked]) + len(event)
        events = np.concatenate([events, later])
        chosen = np.concatenate([chosen, np.array([state for one in picked for state in one], np.int64)])
        of = np.concatenate([of, np.array(more, np.int64)])
        if fill and len(self._fillable):
            events, chosen = self._filled(events, chosen, np.flatnonzero(np.arange(len(of)) % TRIES == 0))
        return self.make(events, chosen, len(of)), of

    @cached_property
    def may_fail(self) -> Bools:
        """Returns which subscriptions have a value that can fail, as in ANSI mode: (N)."""
        out = np.zeros(len(self.version.ids), bool)
        if self._ansi:
            preds = self.states.predicates
            fails = np.array([may_fail(attribute) for attribute in self.states.attributes], bool)
            out[np.repeat(preds.owner, sizes_of(preds.first))[fails[self.states.attr]]] = True
        return out

    @cached_property
    def needs_boxes(self) -> Bools:
        """Returns which conjunctions have no states that could be chosen one by one: (C).

        They are programs, or forbid values of lists.
        """
        first = self.states.predicates.first
        forbids = np.append(0, np.cumsum(self.states.multi & self.states.none))
        found: Bools = self.states.programs | (forbids[first[1:]] > forbids[first[:-1]])
        return found

    def _boxes_of(self, number: int) -> list[Box]:
        try:
            return self.boxes.of(number)[:MOST_CONJUNCTIONS]
        except TooManyError:
            return []

    def _filled(self, events: I64, states: I64, which: I64) -> tuple[I64, I64]:
        """Adds values of other attributes to some events."""
        base = self.states.base
        attr = self._rng.choice(self._fillable, (len(which), min(FILLED, len(self._fillable)))).ravel()
        event = np.repeat(which, len(attr) // max(len(which), 1))
        state = base[attr] + 1 + (self._rng.random(len(attr)) * self.states.top[attr]).astype(np.int64)
        width = len(base)
        has = np.isin(event * width + attr, events * width + np.searchsorted(base, states, "right") - 1)
        kept = ~has & self.states.made[state]
        _, once = np.unique((event * width + attr)[kept], return_index=True)
        return np.append(events, event[kept][once]), np.append(states, state[kept][once])

    def confirmed(self, numbers: I64) -> Iterator[tuple[I64, pa.RecordBatch, I64, Pairs]]:
        """Yields pieces of subscriptions, with events, the place of each event's subscription, and
        the matches among the piece.
        """
        for begin in range(0, len(numbers), PIECE):
            piece = numbers[begin : begin + PIECE]
            events, of = self.for_subscriptions(piece)
            yield piece, events, of, self.match(events, piece)

    def why(self, *numbers: int) -> str:
        """Returns why no event was found that decides something about subscriptions."""
        conjunction, _ = self.conjunctions_of(np.array(numbers))
        first = self.states.predicates.first
        names: dict[str, Any] = {}
        for c in conjunction.tolist():
            for a in self.states.attr[first[c] : first[c + 1]].tolist():
                attribute = self.states.attributes[a]
                if attribute.pattern:
                    names[f"{attribute.name} {attribute.pattern[0].upper()} '{attribute.pattern[1]}'"] = None
                elif attribute.role in DERIVED:
                    names[attribute.path[0] if attribute.role is Role.COMPUTED else attribute.name] = None
        if self.may_fail[list(numbers)].any():
            return "a value in it can fail in ANSI mode, and no deciding event was found"
        if names:
            listed = ", ".join(list(names)[:5])
            listed = listed if len(listed) <= LONGEST_REASON else listed[: LONGEST_REASON - 3] + "..."
            return f"it depends on {listed}, for which no deciding event was found"
        return "no deciding event was found"
