"""The workers of a matcher: they take batches of events, and return results in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.shared import shared
from colmatch.events.gather import gather_with_state, source_of
from colmatch.events.range_reader import Ranges, columns_of
from colmatch.events.required import RequiredColumns
from colmatch.events.rows import events_of
from colmatch.events.special.clock import clock_of
from colmatch.given.schema import Attribute
from colmatch.kernels import layout
from colmatch.kernels._interpret import WorkEstimate
from colmatch.kernels._jit import entry
from colmatch.kernels.sink import ANY, COUNTS, PAIRS, add_hits
from colmatch.matching.kept import find_kept_fields, read_keep
from colmatch.matching.pieces import Piece
from colmatch.matching.range_worker import RangeNames, RangeWorker, check_ranges
from colmatch.matching.reasons import By, Reasons
from colmatch.matching.report import Counts, Report
from colmatch.matching.request import MatchRequest, SomeIds, SomeTags, Time
from colmatch.matching.subset import Subset, subset_of
from colmatch.matching.threads import Result, cores, run_in_order
from colmatch.matching.topk.arguments import TopK
from colmatch.matching.topk.rank import best_pieces
from colmatch.matching.worker import Worker
from colmatch.subscriptions.tags import tags_asked
from colmatch.updates.set import MatchableSet
from colmatch.updates.versions import Version
from colmatch.updates.written_out import names_of_values

SUBSETS_KEPT = 64  # subsets by the last tags; each has a bit for each subscription
COUNTED = {
    "conjunctions": layout.CONJUNCTIONS, "candidates": layout.CANDIDATES, "predicates": layout.PREDICATES,
    "nodes": layout.NODES, "matches": layout.MATCHES,
}  # fmt: skip


@dataclass(slots=True)  # each attribute of a frozen one takes 0.1 us to set
class MatchTask(Generic[Result]):
    """The work of one call. Threads call the task once for each batch."""

    workers: Workers
    request: MatchRequest
    wanted: int  # requested result for each row (``kernels/sink.py``)
    form: Callable[[Piece], Result]  # makes the result of each piece
    topk: TopK | None = None  # None for all matches
    whole_rows: bool = False  # keep all pairs of a row together
    numbers: bool = False  # pieces have numbers of subscriptions instead of ids, in any order

    @property
    def columns(self) -> Sequence[str]:
        """Columns that the weights of events need."""
        return () if self.topk is None else self.topk.columns

    def __call__(self, batch: pa.RecordBatch, version: Version, offset: int) -> Iterator[Result]:
        """Yields the results for a batch; its first row is event ``offset``."""
        workers, request = self.workers, self.request
        worker = workers.idle_worker(request.ranges, not self.numbers)
        worker.doubts = request.doubts
        lacks = workers.required(request.ranges).lacks(batch, workers.is_lenient)
        worker.by_row = not self.numbers or lacks is not None
        for piece in self.pieces(worker, batch, version, offset):
            yield from self.form_results(piece.without(lacks, offset), batch, offset)
        if not request.ranges:
            workers.observe(batch)
        # not after an error or an early stop of the caller: the memory may be half written
        workers.give_back(worker)

    def form_results(self, piece: Piece, batch: pa.RecordBatch, offset: int) -> Iterable[Result]:
        """Returns the results for a piece of a batch."""
        keep = self.request.keep
        if not keep and piece.is_small:
            return (self.form(piece),)
        rows = batch.slice(piece.first - offset, len(piece.place) - 1)
        return map(self.form, piece.parts(rows, keep, self.whole_rows))

    def pieces(self, worker: Worker, batch: pa.RecordBatch, version: Version, offset: int) -> Iterator[Piece]:
        """Yields the matches of a batch, piece by piece."""
        lenient, rows = self.workers.is_lenient, batch.num_rows
        if self.topk is not None:
            matches = best_pieces(worker, version, lenient, batch, offset, self.topk)
        else:
            matches = worker.run(version, lenient, batch, self.wanted, offset, self.numbers)
        work = WorkEstimate(batch, len(version.ids))
        while rows:
            with work:
                piece = next(matches)
            rows -= len(piece.place) - 1
            yield piece


def hits_table(ids: pa.Array, events: pa.Array) -> pa.Table:
    """Returns the table of ``Matcher.hits``."""
    return pa.Table.from_arrays([ids, events], ["subscription", "events"])


class Workers:
    """A pool of workers: each batch gets an idle worker, or a new one if none is idle.

    Attributes
    ----------
    finds_single : whether single events can be matched without a batch
    """

    finds_single = True

    def __init__(self, subscriptions: MatchableSet) -> None:
        self._set = subscriptions
        self._required = RequiredColumns(subscriptions.schema)
        self._tagged = lru_cache(SUBSETS_KEPT)(lambda tags: Subset(None, (tags,)))
        self._idle: list[Worker] = []
        self._idle_for_ranges: list[RangeWorker] = []

    def request(
        self,
        ranges: RangeNames | None = None,
        ids: SomeIds | None = None,
        tags: SomeTags | None = None,
        now: Time | None = None,
    ) -> MatchRequest:
        """Checks the arguments of a call other than the events.

        Raises
        ------
        OptionError, SubscriptionError : as from ``Matcher.match``
        """
        among: Subset | None = None
        if ids is not None:
            among = subset_of(ids, tags, self._set.now)
        elif tags is not None:
            among = self._tagged(tags_asked(tags))
        clock = clock_of(now, self._set.schema, self._set.options.timezone)
        return MatchRequest(check_ranges(ranges, self._set.schema), among, clock)

    def keep_columns(
        self, events: Any, keep: Any, request: MatchRequest, schema: pa.Schema
    ) -> tuple[Any, MatchRequest, pa.Schema]:
        """Returns the events, a request that keeps some of their columns, and the result's schema.

        schema : schema of the result without the kept columns

        Raises
        ------
        OptionError, EventError : ``keep`` has no names of columns, or a column cannot be kept
        """
        if keep is None:
            return events, request, schema
        source, clock = source_of(events_of(events, self._set.schema)), request.now  # a reader is looked at once
        clock_names = () if clock is None else clock.names(self._set.now.attributes)
        fields = find_kept_fields(keep, source.schema(read_keep(keep)), schema.names, clock_names)
        return source, request._replace(keep=tuple(fields)), pa.schema([*schema, *fields])

    def pairs(self, events: Any, request: MatchRequest, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yields the pairs of event and subscription, as ``Matcher.match_batches`` does."""
        return self.run(events, MatchTask(self, request, PAIRS, lambda piece: piece.pairs(schema)))

    def pairs_and_lacks(
        self, events: Any, request: MatchRequest, schema: pa.Schema
    ) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        """Yields pairs, and the events that lack a required column, as ``Matcher.match`` does."""
        return self.run(events, MatchTask(self, request, PAIRS, lambda piece: piece.pairs_and_lacks(schema)))

    def lists(self, events: Any, type: pa.DataType, request: MatchRequest) -> Iterator[pa.ListArray]:
        """Yields the ids that match each event, one list a row, with ids of type ``type``."""
        return self.run(events, MatchTask(self, request, PAIRS, lambda piece: piece.lists(type), whole_rows=True))

    def best(self, events: Any, topk: TopK, request: MatchRequest, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yields the best matches of each event, as ``Matcher.match_topk_batches`` does."""
        return self.run(events, MatchTask(self, request, PAIRS, lambda piece: piece.pairs(schema), topk))

    def counts(self, events: Any, request: MatchRequest) -> Iterator[NDArray[np.int64]]:
        """Yields the number of subscriptions that match each event: (rows)."""
        return self.run(events, MatchTask(self, request, COUNTS, Piece.counts))

    def exists(self, events: Any, request: MatchRequest) -> Iterator[NDArray[np.bool_]]:
        """Yields whether any subscription matches each event: (rows)."""
        return self.run(events, MatchTask(self, request, ANY, lambda piece: piece.counts() > 0))

    def hits(self, events: Any, request: MatchRequest) -> pa.Table:
        """Returns the number of events that each subscription matches, as ``Matcher.hits`` does."""
        version = self._set.now if request.among is None else request.among.of(self._set.now)
        total = np.zeros(len(version.ids), np.int64)
        task = MatchTask(self, request, PAIRS, lambda piece: piece.id, numbers=True)
        batches = self._batches(events, request, (), version)
        for numbers in run_in_order(batches, cores(self._set.options.threads), task):
            entry(add_hits)(numbers, total)
        places = np.flatnonzero(total > 0)  # of numbers, it takes seven times as long
        return hits_table(version.ids.take(places), shared(total[places]))

    def counters(self, events: Any, topk: TopK | None, request: MatchRequest, wanted: int) -> dict[str, int]:
        """Returns the work of the kernels for these events, as ``Matcher.counters`` does."""
        task = MatchTask(self, request, wanted, Piece.counts, topk)
        worker, offset = self._new_worker(request.ranges), 0
        for batch, version in self._batches(events, request, task.columns):
            for _ in task.pieces(worker, batch, version, offset):
                pass
            offset += batch.num_rows
        return {name: int(worker.counters[place]) for name, place in COUNTED.items()}

    def reasons(self, events: Any, request: MatchRequest, by: By) -> pa.Table:
        """Returns the reasons why subscriptions match nothing, as ``Matcher.reasons`` does."""
        worker, offset, required = self._new_worker(()), 0, self.required(())
        version = self._set.now if request.among is None else request.among.of(self._set.now)
        collected = Reasons(version, by, self._names_of(version))
        for batch, _ in self._batches(events, request, (), version):
            lacks = required.lacks(batch, self.is_lenient)
            valid = np.ones(batch.num_rows, np.uint8) if lacks is None else (~lacks.row).astype(np.uint8)
            with WorkEstimate(batch, len(version.ids)):
                job = worker.read(version, self.is_lenient, batch, COUNTS, offset)
                for part in job.parts:
                    worker.code(job, part)
                    collected.look(job, part, valid)
                worker.forget_codes()
            offset += batch.num_rows
        return collected.table()

    def report(self, events: Any, request: MatchRequest, share: float) -> Report:
        """Returns a report about rules, as ``Matcher.report`` does."""
        worker, offset, required = self._new_worker(()), 0, self.required(())
        worker.in_order = False
        whole = self._set.now
        version = whole if request.among is None else request.among.of(whole)
        counts = Counts(version, whole)
        for batch, _ in self._batches(events, request, (), version):
            lacks = required.lacks(batch, True)
            with WorkEstimate(batch, len(version.ids)):
                job = worker.read(version, True, batch, PAIRS, offset)
                counts.look(batch, job.entries)
                for start, stop in worker.match_blocks(job):
                    place, numbers = worker.take_pairs(job, start, stop, by_row=lacks is not None)
                    if lacks is not None:
                        numbers = numbers[np.repeat(~lacks.row[start:stop], np.diff(place))]
                    counts.add(numbers)
                worker.forget_codes()
            offset += batch.num_rows
        return counts.report(share, self._set.schema.arrow.names, required.columns, self._names_of(whole))

    def _names_of(self, version: Version) -> dict[Attribute, str]:
        return names_of_values(version, self._set.schema, self._set.options)

    def columns(self, request: MatchRequest) -> list[str]:
        """Returns the columns that events need for a request, as ``Matcher.columns_with`` does."""
        attributes = self._set.now.attributes
        needed = columns_of(attributes, request.ranges) if request.ranges else attributes.columns
        own = [*needed, *self.required(request.ranges).columns]
        return list(dict.fromkeys(own if request.now is None else request.now.without(own, attributes)))

    def required(self, ranges: Ranges) -> RequiredColumns:
        """Returns the columns that no event may lack."""
        return RequiredColumns(self._set.schema, ranges) if ranges else self._required

    @property
    def is_lenient(self) -> bool:
        """Returns whether an absent column is NULL."""
        return self._set.options.missing_columns == "null"

    def run(self, events: Any, task: MatchTask[Result]) -> Iterator[Result]:
        """Yields the results of a task for each batch, in the order of the events."""
        return run_in_order(self._batches(events, task.request, task.columns), cores(self._set.options.threads), task)

    # For tasks

    def idle_worker(self, ranges: Ranges, in_order: bool = True) -> Worker:
        """Returns a worker that nobody else has until ``give_back``.

        in_order : the order of an event's subscriptions matters
        """
        worker: Worker
        try:  # a check before would not help: another thread may be quicker
            if ranges:
                worker = for_ranges = self._idle_for_ranges.pop()
                for_ranges.ranges = ranges
            else:
                worker = self._idle.pop()
        except IndexError:
            worker = self._new_worker(ranges)
        worker.in_order = in_order and self._set.options.order == "subscription"
        return worker

    def give_back(self, worker: Worker) -> None:
        """Makes a worker available to others again."""
        if isinstance(worker, RangeWorker):
            self._idle_for_ranges.append(worker)
        else:
            self._idle.append(worker)

    def observe(self, batch: pa.RecordBatch) -> None:
        """Offers a batch to the window of observed events."""
        if self._set.observed is not None:
            self._set.observed.note(batch, self._set.options.observe)

    def _new_worker(self, ranges: Ranges) -> Worker:
        return RangeWorker(ranges) if ranges else Worker()

    def _batches(
        self, events: Any, request: MatchRequest, columns: Sequence[str], version: Version | None = None
    ) -> Iterator[tuple[pa.RecordBatch, Version]]:
        """Cuts events into batches, each with the version that was current when the batch began.

        columns : needed columns in addition to the columns of expressions
        version : the version for all batches, instead
        """
        subscriptions, clock = self._set, request.now
        ranges, among, keep = request.ranges, request.among, request.keep
        others = [*columns, *self.required(ranges).columns]

        def needed(version: Version) -> list[str]:
            own = columns_of(version.attributes, ranges) if ranges else version.attributes.columns
            own = [*own, *others] if others else own
            own = own if clock is None else clock.without(own, version.attributes)
            return [*own, *(field.name for field in keep)] if keep else own

        # a version and its subset: one object each, while the version stays
        narrowed: tuple[Version, Version] | None = None

        def now() -> Version:
            nonlocal narrowed
            if version is not None or among is None:
                return subscriptions.now if version is None else version
            current = subscriptions.now
            if narrowed is None or narrowed[0] is not current:
                narrowed = current, among.of(current)
            return narrowed[1]

        batches = gather_with_state(
            events_of(events, subscriptions.schema), subscriptions.options.batch_rows, now, needed
        )
        return batches if clock is None else clock.show_to(batches)
