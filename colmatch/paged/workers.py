"""The workers of a matcher that lives in pages: one batch at a time, with the cache that it has.

The best matches, events that are ranges, and reasons are found by an index in memory that is made
of all subscriptions when one of them is asked for first after an update.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous
from colmatch.arrays.recycled import Recycled
from colmatch.errors import EventError
from colmatch.events.gather import seen_batches
from colmatch.events.required import Lacks
from colmatch.kernels import layout
from colmatch.kernels.pbtree.arrays import TAGS
from colmatch.matching.asked import Asked
from colmatch.matching.pieces import Piece
from colmatch.matching.subset import Subset
from colmatch.matching.threads import Result
from colmatch.matching.topk import TopK
from colmatch.matching.workers import Workers
from colmatch.paged.build import hash_of
from colmatch.paged.live import PagedSet
from colmatch.paged.search import Found, Searcher, piece_of
from colmatch.updates.versions import Version


class _Whole:
    """A matcher in memory with all subscriptions, as ``Workers`` wants one."""

    def __init__(self, paged: PagedSet) -> None:
        self._paged = paged

    @property
    def schema(self) -> Any:
        return self._paged.schema

    @property
    def options(self) -> Any:
        return self._paged.options

    @property
    def now(self) -> Version:
        return self._paged.whole()


class PagedWorkers(Workers):
    """Matches batches with the pages of a file."""

    def __init__(self, paged: PagedSet) -> None:
        super().__init__(_Whole(paged))  # type: ignore[arg-type]
        self._paged = paged
        self._searcher = Searcher(paged.store)

    def _results(
        self, events: Any, wanted: int, form: Callable[[Piece, Lacks | None, int], Result], asked: Asked
    ) -> Iterator[Result]:
        if asked.ranges:
            yield from super()._results(events, wanted, form, asked)
            return
        required, offset = self.required(()), 0
        for batch in self._cut(events, ()):
            lacks = required.lacks(batch, self._is_lenient())
            piece = self._piece(batch, offset, asked.among)
            if lacks is not None:
                piece, _ = piece.without(lacks.row)
            yield form(piece, lacks, offset)
            offset += batch.num_rows

    def _cut(self, events: Any, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        rows = self._paged.options.batch_rows
        for batch, _ in seen_batches(events, rows, lambda: None, lambda seen: None):
            yield batch

    def _piece(self, batch: pa.RecordBatch, offset: int, among: Subset | None) -> Piece:
        def search() -> Piece:
            found = self._found(batch, offset)
            if among is not None:
                found = self._among(found, among)
            return piece_of(found, batch.num_rows, offset, self._paged.store, Recycled())

        return self._paged.reading(search)

    def _found(self, batch: pa.RecordBatch, offset: int) -> Found:
        version = self._paged.base.version
        try:
            entries = self._searcher.entries(version.attributes, version.literals, self._is_lenient(), batch)
        except EventError as error:
            error.count_from(offset)
            raise
        multi = contiguous(np.array(version.attributes.multi, np.uint8))
        return self._searcher.found(entries, batch.num_rows, multi)

    def _among(self, found: Found, among: Subset) -> Found:
        """Leaves those of some ids and tags."""
        places = found.entry[:, 2].astype(np.int64) << 16 | found.entry[:, 3].astype(np.int64)
        kept = np.ones(len(places), bool)
        ids, tags = among.said
        if ids is not None:
            same = ids.type == self._paged.now.id_type
            kept &= np.isin(places, self._paged.places(ids) if same else np.empty(0, np.int64))
        for some in tags:
            pages = self._paged.store
            slots = np.concatenate([pages.slots_of(TAGS, hash_of(tag)) for tag in some] or [np.empty(0, np.int64)])
            entry = pages.slots(slots).astype(np.int64)
            kept &= np.isin(places, entry[:, 2] << 16 | entry[:, 3])
        return Found(found.row[kept], found.slot[kept], found.entry[kept])

    def counters(self, events: Any, topk: TopK | None, asked: Asked, wanted: int) -> dict[str, int]:
        if topk is not None or asked.ranges:
            return super().counters(events, topk, asked, wanted)
        before, reads = self._searcher.counters.copy(), self._paged.file.cache.reads
        matches = 0
        for counts in self._results(events, wanted, lambda piece, lacks, offset: piece.counts(), asked):
            matches += int(np.sum(counts))
        more: NDArray[np.int64] = self._searcher.counters - before
        places = {
            "conjunctions": layout.CONJUNCTIONS,
            "candidates": layout.CANDIDATES,
            "predicates": layout.PREDICATES,
            "nodes": layout.NODES,
        }
        told = {name: int(more[place]) for name, place in places.items()}
        return told | {"matches": matches, "pages": self._paged.file.cache.reads - reads}
