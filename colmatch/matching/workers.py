"""The workers of a matcher: batches of events in, results in order out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.events.gather import seen_batches
from colmatch.events.observed import Observed
from colmatch.events.range_reader import Ranges, columns_of
from colmatch.events.required import Lacks, Required, lacks_table
from colmatch.kernels import layout
from colmatch.kernels.sink import ANY, COUNTS, PAIRS
from colmatch.matching.asked import Asked
from colmatch.matching.pieces import Piece
from colmatch.matching.range_worker import RangeWorker
from colmatch.matching.ranking import best_pieces
from colmatch.matching.reasons import By, Reasons
from colmatch.matching.threads import Result, cores, in_order
from colmatch.matching.topk import TopK
from colmatch.matching.worker import Worker
from colmatch.options import Options
from colmatch.schema import Schema
from colmatch.updates.versions import Version


class Live(Protocol):
    """What a matcher has now, as workers ask for it: a ``LiveSet``, or the pages of a file."""

    @property
    def schema(self) -> Schema: ...

    @property
    def options(self) -> Options: ...

    @property
    def now(self) -> Version: ...


class Workers:
    """A pool of workers: each batch goes to an idle one, or to a new one where none is idle."""

    def __init__(self, live: Live, observed: Observed | None = None) -> None:
        self._live = live
        self._observed = observed
        self._required = Required(live.schema)
        self._idle: list[Worker] = []
        self._idle_for_ranges: list[RangeWorker] = []

    def pairs(self, events: Any, schema: pa.Schema, asked: Asked) -> Iterator[pa.RecordBatch]:
        """Yields the pairs of event and subscription, as ``Matcher.match_batches`` does."""
        return self._results(events, PAIRS, lambda piece, lacks, offset: piece.pairs(schema), asked)

    def pairs_and_lacks(
        self, events: Any, schema: pa.Schema, asked: Asked
    ) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        """Yields pairs, and what events lack that must be defined, as ``Matcher.match`` does."""

        def both(piece: Piece, lacks: Lacks | None, offset: int) -> tuple[pa.RecordBatch, pa.RecordBatch]:
            told = lacks if piece.first == offset else None  # once for each batch
            return piece.pairs(schema), lacks_table(told, offset)

        return self._results(events, PAIRS, both, asked)

    def lists(self, events: Any, type: pa.DataType, asked: Asked) -> Iterator[pa.ListArray]:
        """Yields the ids that match each event, one list a row, of the type that they have."""
        return self._results(events, PAIRS, lambda piece, lacks, offset: piece.lists(type), asked)

    def best(self, events: Any, topk: TopK, schema: pa.Schema, asked: Asked) -> Iterator[pa.RecordBatch]:
        """Yields the best matches of each event, as ``Matcher.match_topk_batches`` does."""

        required = self.required(())

        def found(worker: Worker, version: Version, batch: pa.RecordBatch, offset: int) -> Iterator[pa.RecordBatch]:
            lacks = required.lacks(batch, self._is_lenient())
            for best in best_pieces(worker, version, self._is_lenient(), batch, offset, topk):
                if lacks is not None:
                    start = best.piece.first - offset
                    best = best.without(lacks.row[start : start + len(best.piece.place) - 1])
                yield best.table(schema)

        return self._run(events, found, asked, topk.columns)

    def counts(self, events: Any, asked: Asked) -> Iterator[NDArray[np.int64]]:
        """Yields how many subscriptions match each event: (rows)."""
        return self._results(events, COUNTS, lambda piece, lacks, offset: piece.counts(), asked)

    def exists(self, events: Any, asked: Asked) -> Iterator[NDArray[np.bool_]]:
        """Yields whether any subscription matches each event: (rows)."""
        return self._results(events, ANY, lambda piece, lacks, offset: piece.counts() > 0, asked)

    def counters(self, events: Any, topk: TopK | None, asked: Asked, wanted: int) -> dict[str, int]:
        """Returns what the kernels looked at for these events, as ``Matcher.counters`` does."""
        worker, offset = self._new_worker(asked.ranges), 0
        for batch, version in self._batches(events, asked, () if topk is None else topk.columns):
            found: Iterator[object] = (
                worker.run(version, self._is_lenient(), batch, wanted, offset)
                if topk is None
                else best_pieces(worker, version, self._is_lenient(), batch, offset, topk)
            )
            for _ in found:
                pass
            offset += batch.num_rows
        places = {
            "conjunctions": layout.CONJUNCTIONS,
            "candidates": layout.CANDIDATES,
            "predicates": layout.PREDICATES,
            "nodes": layout.NODES,
            "matches": layout.MATCHES,
        }
        return {name: int(worker.counters[place]) for name, place in places.items()}

    def reasons(self, events: Any, asked: Asked, by: By) -> pa.Table:
        """Returns why subscriptions match none of the events, as ``Matcher.reasons`` does."""
        worker, offset, required = self._new_worker(()), 0, self.required(())
        version = self._live.now if asked.among is None else asked.among.of(self._live.now)
        told = Reasons(version, by)
        for batch, _ in self._batches(events, asked, (), version):
            lacks = required.lacks(batch, self._is_lenient())
            valid = np.ones(batch.num_rows, np.uint8) if lacks is None else (~lacks.row).astype(np.uint8)
            job = worker.read(version, self._is_lenient(), batch, COUNTS, offset)
            for part in job.parts:
                worker.code(job, part)
                told.look(job, part, valid)
            worker.forget_codes()
            offset += batch.num_rows
        return told.table()

    def required(self, ranges: Ranges) -> Required:
        """Returns what no event may lack."""
        return Required(self._live.schema, ranges) if ranges else self._required

    def _results(
        self, events: Any, wanted: int, form: Callable[[Piece, Lacks | None, int], Result], asked: Asked
    ) -> Iterator[Result]:
        """Yields each piece in a form, in the order of the events.

        Parameters
        ----------
        wanted : what the form needs of each row, as ``kernels/sink.py`` says
        form : of a piece, what the rows of its batch lack, and the number of the first of these
        """
        required = self.required(asked.ranges)

        def found(worker: Worker, version: Version, batch: pa.RecordBatch, offset: int) -> Iterator[Result]:
            lacks = required.lacks(batch, self._is_lenient())
            for piece in worker.run(version, self._is_lenient(), batch, wanted, offset):
                if lacks is not None:
                    start = piece.first - offset
                    piece, _ = piece.without(lacks.row[start : start + len(piece.place) - 1])
                yield form(piece, lacks, offset)

        return self._run(events, found, asked)

    def _run(
        self,
        events: Any,
        found: Callable[[Worker, Version, pa.RecordBatch, int], Iterator[Result]],
        asked: Asked,
        columns: Sequence[str] = (),
    ) -> Iterator[Result]:
        """Yields what is found in each batch, in the order of the events.

        columns : that are needed beside those of the expressions
        """

        def task(batch: pa.RecordBatch, version: Version, offset: int) -> Iterator[Result]:
            worker = self._idle_worker(asked.ranges)
            yield from found(worker, version, batch, offset)
            if self._observed is not None and not asked.ranges:
                self._observed.note(batch, self._live.options.observe)
            # not after an error, nor when the caller stops early: what it holds may be half done
            self._give_back(worker)

        return in_order(self._batches(events, asked, columns), cores(self._live.options.threads), task)

    def _idle_worker(self, ranges: Ranges) -> Worker:
        """Returns a worker that nobody else has."""
        worker: Worker
        try:  # asking first would not do: another thread may be quicker
            if ranges:
                worker = for_ranges = self._idle_for_ranges.pop()
                for_ranges.ranges = ranges
            else:
                worker = self._idle.pop()
        except IndexError:
            worker = self._new_worker(ranges)
        worker.in_order = self._live.options.order == "subscription"
        return worker

    def _new_worker(self, ranges: Ranges) -> Worker:
        return RangeWorker(ranges) if ranges else Worker()

    def _give_back(self, worker: Worker) -> None:
        if isinstance(worker, RangeWorker):
            self._idle_for_ranges.append(worker)
        else:
            self._idle.append(worker)

    def _is_lenient(self) -> bool:
        return self._live.options.missing_columns == "null"

    def _batches(
        self, events: Any, asked: Asked, columns: Sequence[str], version: Version | None = None
    ) -> Iterator[tuple[pa.RecordBatch, Version]]:
        """Cuts events to batches, each with the version that there was when it began.

        columns : that are needed beside those of the expressions
        version : the same for all, instead
        """
        live, ranges, among, clock = self._live, asked.ranges, asked.among, asked.now
        others = [*columns, *self.required(ranges).columns]

        def needed(version: Version) -> list[str]:
            own = columns_of(version.attributes, ranges) if ranges else version.columns
            own = [*own, *others] if others else own
            return own if clock is None else clock.without(own, version.attributes)

        known: tuple[Version, Version] | None = None  # and what is left of it: one object, as long as it stays

        def now() -> Version:
            nonlocal known
            if version is not None or among is None:
                return live.now if version is None else version
            current = live.now
            if known is None or known[0] is not current:
                known = current, among.of(current)
            return known[1]

        found = seen_batches(events, live.options.batch_rows, now, needed)
        return found if clock is None else clock.shown_to(found)
