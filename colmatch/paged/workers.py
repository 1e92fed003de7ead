"""The workers of a matcher that lives in pages. They match one batch at a time, with its cache.

The best matches, events that are ranges, reasons and reports come from an index of all
subscriptions in memory. It is built on the first such request after an update.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous
from colmatch.arrays.recycled import RecycledArrays
from colmatch.errors import EventError
from colmatch.events.gather import gather_with_state
from colmatch.events.rows import events_of
from colmatch.given.options import Options
from colmatch.kernels import _forks
from colmatch.kernels.sink import PAIRS
from colmatch.matching.pieces import Piece
from colmatch.matching.reasons import By
from colmatch.matching.report import Report
from colmatch.matching.request import MatchRequest
from colmatch.matching.subset import Subset
from colmatch.matching.threads import Result
from colmatch.matching.topk.arguments import TopK
from colmatch.matching.workers import COUNTED, MatchTask, Workers, hits_table
from colmatch.paged.paged_set import PagedSet
from colmatch.paged.search import PageMatches, Searcher, piece_of
from colmatch.paged.store import places_of
from colmatch.updates.versions import Version


class _Whole:
    """A matcher in memory with all subscriptions, as ``Workers`` needs it."""

    observed = None

    def __init__(self, paged: PagedSet) -> None:
        self.schema = paged.schema
        self._paged = paged

    @property
    def options(self) -> Options:
        return self._paged.options

    @property
    def now(self) -> Version:
        return self._paged.whole()


class PagedWorkers(Workers):
    """Workers that match batches against the pages of a file."""

    finds_single = False

    def __init__(self, paged: PagedSet) -> None:
        super().__init__(paged)
        self._paged = paged
        self._whole = Workers(_Whole(paged))
        self._searcher = Searcher(paged.store)
        _forks.renew_in_child(self)

    def in_child(self) -> None:
        if not _forks.is_held(self._paged.lock):
            self._searcher = Searcher(self._paged.store)

    def best(self, events: Any, topk: TopK, request: MatchRequest, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        return self._whole.best(events, topk, request, schema)

    def reasons(self, events: Any, request: MatchRequest, by: By) -> pa.Table:
        return self._whole.reasons(events, request, by)

    def report(self, events: Any, request: MatchRequest, share: float) -> Report:
        return self._whole.report(events, request, share)

    def hits(self, events: Any, request: MatchRequest) -> pa.Table:
        if request.ranges:
            return self._whole.hits(events, request)
        type = self._paged.run_on_state(lambda: self._paged.id_type)
        empty = pa.RecordBatch.from_arrays([pa.array([], type), pa.array([], pa.int64())], ["values", "counts"])
        task = MatchTask(self, request, PAIRS, lambda piece: pc.value_counts(piece.ids(type)))
        counts = pa.Table.from_batches([empty, *map(pa.RecordBatch.from_struct_array, self.run(events, task))])
        totals = counts.group_by("values").aggregate([("counts", "sum")]).sort_by("values")
        return hits_table(totals["values"], totals["counts_sum"])

    def run(self, events: Any, task: MatchTask[Result]) -> Iterator[Result]:
        if task.request.ranges:
            yield from self._whole.run(events, replace(task, workers=self._whole))
            return
        offset, rows = 0, self._paged.options.batch_rows
        events = events_of(events, self._paged.schema)
        # all columns, since the needed ones are known only when the pages are read
        for batch, _ in gather_with_state(events, rows, lambda: None, lambda seen: None):
            yield from task.form_results(
                self._paged.run_on_state(partial(self._piece, batch, offset, task.request)), batch, offset
            )
            offset += batch.num_rows

    def _piece(self, batch: pa.RecordBatch, offset: int, request: MatchRequest) -> Piece:
        """Returns the matches of a batch."""
        version, clock = self._paged.version, request.now
        if clock is not None:
            batch = clock.add_to(batch, clock.names(version.attributes))
        lacks = self.required(()).lacks(batch, self.is_lenient)
        matches = self._find(batch, offset, version)
        if any(self._searcher.failed):  # the index in memory says whether a subscription needs such a value
            whole = self._paged.whole() if request.among is None else request.among.of(self._paged.whole())
            worker = self._whole.idle_worker(())
            worker.read(whole, self.is_lenient, batch, PAIRS, offset)
            self._whole.give_back(worker)
        if request.among is not None:
            matches = self._filter(matches, request.among)
        return piece_of(matches, batch.num_rows, offset, self._paged.store, RecycledArrays()).without(lacks, offset)

    def _find(self, batch: pa.RecordBatch, offset: int, version: Version) -> PageMatches:
        try:
            entries = self._searcher.read_entries(version.attributes, version.literals, self.is_lenient, batch)
        except EventError as error:
            error.count_from(offset)
            raise
        multi = contiguous(np.array(version.attributes.multi, np.uint8))
        return self._searcher.find_matches(entries, batch.num_rows, multi)

    def _filter(self, found: PageMatches, among: Subset) -> PageMatches:
        """Keeps the matches of some ids and tags."""
        places = places_of(found.entry)
        kept = np.ones(len(places), bool)
        ids, tags = among.criteria
        if ids is not None:
            same = ids.type == self._paged.id_type
            kept &= np.isin(places, self._paged.places(ids) if same else np.empty(0, np.int64))
        for tag_set in tags:
            kept &= np.isin(places, self._paged.places_tagged(tag_set))
        return PageMatches(found.row[kept], found.slot[kept], found.entry[kept])

    def counters(self, events: Any, topk: TopK | None, request: MatchRequest, wanted: int) -> dict[str, int]:
        if topk is not None or request.ranges:
            return self._whole.counters(events, topk, request, wanted)
        before, reads = self._searcher.counters.copy(), self._paged.file.cache.reads
        matches = sum(int(counts.sum()) for counts in self.run(events, MatchTask(self, request, wanted, Piece.counts)))
        more: NDArray[np.int64] = self._searcher.counters - before
        figures = {name: int(more[place]) for name, place in COUNTED.items()}
        return figures | {"matches": matches, "pages": self._paged.file.cache.reads - reads}
