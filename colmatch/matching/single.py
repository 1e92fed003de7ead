"""Matching of single events, as a service needs it for each request.

A batch of one row passes through Arrow, four kernels that read and code it, and one that orders the
matches. An event with values that need no Arrow (``events/single/mapping.py``) passes through two
kernels. Their machine code is called with arguments that stay the same. This takes 10 us an event
with 10 attributes and 10,000 subscriptions, instead of 57 us.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.events.gather import match_names
from colmatch.events.single.computed import Event
from colmatch.events.single.mapping import EventReader, as_mapping, rename_fields
from colmatch.events.single.row import RowMaker
from colmatch.given.arguments import check_choice
from colmatch.given.schema import Schema
from colmatch.kernels import sink
from colmatch.kernels._interpret import WorkEstimate
from colmatch.kernels._jit import entry
from colmatch.kernels.event import code_event
from colmatch.matching.request import Among, MatchRequest, Unknown
from colmatch.matching.topk.arguments import TopK
from colmatch.matching.worker import Worker
from colmatch.matching.workers import Workers
from colmatch.updates.set import MatchableSet
from colmatch.updates.versions import Version

FEW = 8  # ids that are taken one by one: 1.6 us each, and 17 us for all as an array (2026-11-28)


class _Row(NamedTuple):
    """The attributes of a batch that ``WorkEstimate`` reads, for one row."""

    num_rows: int = 1
    nbytes: int = 0


class _SegmentCall(NamedTuple):
    """A segment as arguments of the two kernels."""

    base: int
    code: tuple[Any, ...]  # arguments after the values and their count
    match: Any
    given: tuple[Any, ...]


class _SinglePlan(NamedTuple):
    """The reader and the kernel calls for events that are matched with one version."""

    reader: EventReader
    parts: list[_SegmentCall]
    repeats: bool  # whether a subscription may be found twice
    work: WorkEstimate


class EventWorker(Worker):
    """The working memory of one thread for matching single events."""

    def __init__(self, schema: Schema) -> None:
        super().__init__()
        self._schema = schema
        self._row_hits = np.zeros(1, np.int64)

    def find(self, version: Version, event: Event, wanted: int) -> list[Any] | int | None:
        """Returns the ids of matching subscriptions in the order of numbers, or else their count.

        Ids are returned if pairs are wanted. The result is None if the event needs Arrow, or more
        room.
        """
        reader, parts, repeats, work = self._plan_of(version)
        count = reader.read(event) if reader.is_direct else None
        if count is None:
            return None
        is_listed = wanted == sink.PAIRS or (repeats and wanted == sink.COUNTS)
        state, hits, values = self._sink.state, self._row_hits, reader.values
        state[sink.FILL] = hits[0] = 0
        state[sink.WANTED] = sink.PAIRS if is_listed else wanted
        with work:
            for part in parts:
                state[sink.BASE] = part.base
                entry(code_event)(values, count, *part.code)
                if entry(part.match)(*part.given) != 1:
                    return None
        if not is_listed:
            return int(hits[0])
        numbers = self._sink.sub[: state[sink.FILL]]
        if repeats and len(numbers) > 1:
            numbers = np.unique(numbers)
        else:
            numbers.sort()
        return _ids(version, numbers) if wanted == sink.PAIRS else len(numbers)

    def _plan(self, version: Version) -> _SinglePlan:
        reader = EventReader(self._schema, version.attributes, version.literals, lambda: version.reach)
        if self._capacity[1] < reader.entries_most + 1:
            self._make_room(1, reader.entries_most + 1)
        parts = []
        each = zip(version.segments, version.bases, version.alive, version.stale, strict=True)
        for segment, base, alive, stale in each:
            if not alive or not reader.is_direct:
                continue
            deleted, arrays = self._deleted_bits(version, stale), segment.index.arrays
            into = self._sink._replace(hits=self._row_hits, deleted_bits=deleted)
            rows = self._rows._replace(first=self._rows.first[:2])
            arguments = arrays, segment.predicates, rows, 0, 1, self.scratch_of(segment), into, self.counters
            code = reader.words, segment.codes, segment.hints, segment.used, rows
            parts.append(_SegmentCall(base, code, segment.index.kind.match, arguments))
        repeats = any(self.repeats(segment) for segment in version.segments)
        return _SinglePlan(reader, parts, repeats, WorkEstimate(_Row(), len(version.ids)))


class SingleEvents:
    """The single events of a matcher, matched directly if possible, else as batches."""

    def __init__(self, subscriptions: MatchableSet, workers: Workers) -> None:
        self._set = subscriptions
        self._workers = workers
        self._names = frozenset(subscriptions.schema.arrow.names)
        self._required = [field.name for field in subscriptions.schema.arrow if not field.nullable]
        self._idle: list[EventWorker] = []
        self._rows = RowMaker(subscriptions.schema)

    def ids(self, event: object, unknown: str, among: Among) -> list[Any]:
        """Returns the ids of the matching subscriptions, for ``Matcher.match_one``."""
        checked_event = self._check_event(event, unknown)
        if not among:
            version = self._set.now
            matches = self._find_directly(version, checked_event, sink.PAIRS)
            if matches is not None:
                assert not isinstance(matches, int), "pairs are wanted"
                return matches
        request = self._workers.request(None, **among)
        (matches,) = self._workers.lists(self._row(checked_event, request, unknown), self._set.now.id_type, request)
        ids: list[Any] = matches.values.to_pylist()
        return ids

    def count(self, event: object, unknown: str, among: Among) -> int:
        """Returns the number of matching subscriptions, for ``Matcher.count_one``."""
        return self._number(event, unknown, among, sink.COUNTS, self._workers.counts)

    def exists(self, event: object, unknown: str, among: Among) -> bool:
        """Returns whether any subscription matches, for ``Matcher.exists_one``."""
        return self._number(event, unknown, among, sink.ANY, self._workers.exists) > 0

    def _number(
        self,
        event: object,
        unknown: str,
        among: Among,
        wanted: int,
        of_rows: Callable[[pa.RecordBatch, MatchRequest], Iterator[NDArray[Any]]],
    ) -> int:
        """Returns the number of matching subscriptions.

        wanted : ``sink.COUNTS``; with ``sink.ANY``, the number is above 0 if any subscription
            matches
        of_rows : counts the matches of a batch, for an event that needs one
        """
        checked_event = self._check_event(event, unknown)
        matches = None if among else self._find_directly(self._set.now, checked_event, wanted)
        if matches is None:
            request = self._workers.request(None, **among)
            ((number,),) = of_rows(self._row(checked_event, request, unknown), request)
            return int(number)
        return matches if isinstance(matches, int) else len(matches)

    def best(self, event: object, unknown: str, topk: TopK, among: Among) -> list[tuple[Any, float]]:
        """Returns the best matches and their scores, for ``Matcher.match_topk_one``."""
        checked_event, request = self._check_event(event, unknown, topk.columns), self._workers.request(None, **among)
        batches = list(
            self._workers.best(
                self._row(checked_event, request, unknown, topk.columns), topk, request, self._set.now.scored_schema
            )
        )
        return [pair for rows in batches for pair in zip(rows.column(1).to_pylist(), rows.column(2).to_pylist())]

    def _check_event(self, event: object, unknown: str, weights: Sequence[str] = ()) -> Event:
        values: Event = event if type(event) is dict else as_mapping(event)
        if unknown != "raise":
            check_choice("unknown={}", unknown, get_args(Unknown))
        if self._names.issuperset(values):
            return values
        names = list(dict.fromkeys([*self._set.schema.arrow.names, *weights]))
        return rename_fields(values, names, "the schema", unknown == "ignore")

    def _find_directly(self, version: Version, event: Event, wanted: int) -> list[Any] | int | None:
        """Returns the result of ``EventWorker.find``, or None if the event must be a batch."""
        if self._set.options.observe or not self._workers.finds_single:
            return None
        if self._required and any(event.get(name) is None for name in self._required):
            return 0 if wanted != sink.PAIRS else []
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = EventWorker(self._set.schema)
        matches = worker.find(version, event, wanted)
        self._idle.append(worker)  # not after an error: its arrays may be half written
        return matches

    def _row(self, event: Event, request: MatchRequest, unknown: str, columns: Sequence[str] = ()) -> pa.RecordBatch:
        names = self._set.schema.arrow.names
        meant_columns = [matches[0] if (matches := match_names(names, [name])) else name for name in columns]
        needed = list(dict.fromkeys([*self._workers.columns(request), *meant_columns]))
        return self._rows.row_of(event, needed, unknown == "ignore")


def _ids(version: Version, found: NDArray[np.uint32]) -> list[Any]:
    """Returns the ids of subscriptions by their numbers."""
    if version.ids.numbers is None:
        few = len(found) < FEW
        texts: list[Any] = (
            [version.ids[number] for number in found.tolist()] if few else version.ids.take(found).to_pylist()
        )
        return texts
    table, first = version.ids.table
    ids: list[Any] = table[found].tolist() if len(table) else found.tolist()
    return [first + number for number in ids] if first else ids
