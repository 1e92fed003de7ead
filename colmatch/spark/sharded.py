"""Shards that a worker matches one after the other, instead of a single matcher.

Each shard matches a piece of events in turn, and the matches of all shards are combined. So memory
holds a piece of events, its matches, and one shard. A shard with pivots gets only the rows that it
needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous
from colmatch.arrays.ranges import put_rows, ranges_of
from colmatch.errors import EventError
from colmatch.events.gather import batches
from colmatch.matcher import Matcher
from colmatch.matching.range_worker import RangeNames
from colmatch.matching.request import Among, Keep
from colmatch.spark.manifest import Manifest
from colmatch.spark.storage import Folder

PIECE_ROWS = 1 << 18  # events that all shards match before the next ones
LISTED_ROWS = 1 << 16  # events, if their matches are held until all shards are done
LISTED_FIRST = 1 << 10  # events with lists, before the number of matches is known
LISTED_MOST = 1 << 23  # matches in lists that are held, about
VALUES_MOST = 1 << 22  # ids in a chunk of lists
KEPT_ROWS = 1 << 16  # rows in a batch of the best matches


class ShardEvents(NamedTuple):
    """Events of a piece that a shard needs.

    number : number of the shard
    rows : (n) places of the events in the piece; None if all are needed
    """

    number: int
    matcher: Matcher
    events: pa.RecordBatch
    rows: pa.Array | None

    @property
    def places(self) -> Any:
        """The places of the events as an index for numpy."""
        return slice(None) if self.rows is None else self.rows.to_numpy()

    def in_piece(self, events: pa.Array) -> pa.Array:
        """Converts places among these events to places in the piece."""
        return events if self.rows is None else self.rows.take(events)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Makes errors count events within the piece."""
        try:
            yield
        except EventError as error:
            if self.rows is not None and error.event is not None:
                error.event = self.rows[error.event].as_py()
            raise


class ShardedMatcher:
    """The shards of a folder, with the methods of ``Matcher`` that a task calls.

    The attribute ``model`` knows the columns and options that all shards share.

    Parameters
    ----------
    opened : opens a file of the folder
    """

    def __init__(self, folder: Folder, manifest: Manifest, opened: Callable[[str], Matcher]) -> None:
        self.folder = folder
        self.manifest = manifest
        self._opened = opened
        self.model = opened(manifest.model)
        self._router = None if manifest.router is None else opened(manifest.router)
        self.options, self.schema = self.model.options, self.model.schema
        self._rows = self._listed = 0  # events that have lists so far, and ids in the lists

    @property
    def ids(self) -> pa.Array:
        """An empty array, of the type of the ids in all shards."""
        return self.model.ids

    def subset(self, ids: Any = None, tags: Any = None) -> Any:
        """Prepares ids and tags, as ``Matcher.subset`` does."""
        return self.model.subset(ids, tags)

    def piece_rows(self, mode: str, best: bool) -> int:
        """Returns the largest number of events in a piece."""
        return LISTED_ROWS if best or mode == "list" else PIECE_ROWS

    def pieces(self, events: pa.RecordBatch, mode: str) -> Iterator[pa.RecordBatch]:
        """Yields pieces of events for all shards.

        With mode ``"list"``, a piece has some millions of matches, estimated from earlier pieces.
        """
        start = 0
        while start < len(events):
            rows = len(events)
            if mode == "list":
                rows = LISTED_FIRST if not self._rows else max(1, LISTED_MOST * self._rows // max(self._listed, 1))
            yield events.slice(start, rows)
            start += rows

    def routes(
        self, events: pa.RecordBatch, ranges: RangeNames | None = None, now: Any = None
    ) -> dict[int, pa.Array | None]:
        """Returns the shards that any event needs, with the places of those events; None for all.

        With ``ranges``, all events need all shards.
        """
        there = [number for number, shard in enumerate(self.manifest.shards) if shard is not None]
        if self._router is None or ranges:
            return dict.fromkeys(there)
        pairs = self._router.match(events, now=now)
        number, row = (pairs.column(name).to_numpy() for name in ("subscription", "event"))
        order = np.argsort(number, kind="stable")
        begins = np.searchsorted(number[order], there)
        ends = np.searchsorted(number[order], there, side="right")
        needs: dict[int, pa.Array | None] = {}
        for shard, begin, end in zip(there, begins.tolist(), ends.tolist()):
            if end - begin == len(events):
                needs[shard] = None
            elif end > begin:
                needs[shard] = pa.array(row[order[begin:end]])
        return needs

    def match_batches(
        self, events: pa.RecordBatch, ranges: RangeNames | None = None, *, keep: Keep = None, **among: Unpack[Among]
    ) -> Iterator[pa.RecordBatch]:
        """Yields pairs, shard by shard."""
        for part in self._parts(events, ranges, among):
            with part.errors():
                for pairs in part.matcher.match_batches(part.events, ranges, keep=keep, **among):
                    yield pairs.set_column(0, "event", part.in_piece(pairs.column(0)))

    def match_topk_batches(
        self,
        events: pa.RecordBatch,
        k: int,
        score: Any,
        event_weights: Any,
        *,
        ranges: RangeNames | None = None,
        keep: Keep = None,
        **among: Unpack[Among],
    ) -> Iterator[pa.RecordBatch]:
        """Yields the best matches of all shards."""
        merged: list[pa.Table] = []
        for part in self._parts(events, ranges, among):
            with part.errors():
                best = part.matcher.match_topk(part.events, k, score, event_weights, ranges=ranges, **among)
            best = best.combine_chunks()
            placed = best.set_column(0, "event", part.in_piece(best.column(0).combine_chunks()))
            merged = [best_of(pa.concat_tables([*merged, placed]), k)]
        best = merged[0] if merged else pa.table({})
        for rows in best.to_batches(max_chunksize=KEPT_ROWS):
            kept = {name: events.column(name).take(rows.column(0)) for name in keep or ()}
            yield pa.RecordBatch.from_arrays([*rows.columns, *kept.values()], [*rows.schema.names, *kept])

    def match_lists(
        self, events: pa.RecordBatch, ranges: RangeNames | None = None, **among: Unpack[Among]
    ) -> pa.ChunkedArray:
        """Returns the ids that match each event, ordered by shard."""
        parts = []
        for part in self._parts(events, ranges, among):
            with part.errors():
                parts.append((part.places, part.matcher.match_lists(part.events, ranges, **among)))
        lists = join_lists(parts, len(events), self.manifest.id_type)
        self._rows += len(events)
        self._listed += sum(len(chunk.values) for chunk in lists.chunks)
        return lists

    def count(
        self, events: pa.RecordBatch, ranges: RangeNames | None = None, **among: Unpack[Among]
    ) -> NDArray[np.int64]:
        """Returns the number of subscriptions that match each event."""
        counts = np.zeros(len(events), np.int64)
        for part in self._parts(events, ranges, among):
            with part.errors():
                counts[part.places] += part.matcher.count(part.events, ranges, **among)
        return counts

    def exists(
        self, events: pa.RecordBatch, ranges: RangeNames | None = None, **among: Unpack[Among]
    ) -> NDArray[np.bool_]:
        """Returns for each event whether any subscription matches."""
        flags = np.zeros(len(events), np.bool_)
        for part in self._parts(events, ranges, among):
            with part.errors():
                flags[part.places] |= part.matcher.exists(part.events, ranges, **among)
        return flags

    def hits(self, events: Any, ranges: RangeNames | None = None, **among: Unpack[Among]) -> pa.Table:
        """Counts the events that each subscription matches."""
        tables: dict[int, pa.Table] = {}
        start = 0
        for piece in batches(events, PIECE_ROWS):
            for part in self._parts(piece, ranges, among):
                try:
                    with part.errors():
                        hits = part.matcher.hits(part.events, ranges, **among)
                except EventError as error:
                    error.count_from(start)
                    raise
                before = tables.get(part.number)
                tables[part.number] = hits if before is None else _sum_hits(pa.concat_tables([before, hits]))
            start += len(piece)
        schema = pa.schema([("subscription", self.manifest.id_type), ("events", pa.int64())])
        return pa.concat_tables([schema.empty_table(), *(table.cast(schema) for table in tables.values())])

    def _parts(self, events: pa.RecordBatch, ranges: RangeNames | None, among: Among) -> Iterator[ShardEvents]:
        """Yields the shards that any event needs, with those events."""
        for number, rows in self.routes(events, ranges, among.get("now")).items():
            shard = self.manifest.shards[number]
            if shard is not None:
                needed = events if rows is None else events.take(rows)
                yield ShardEvents(number, self._opened(shard.file), needed, rows)


def _sum_hits(hits: pa.Table) -> pa.Table:
    return hits.group_by("subscription").aggregate([("events", "sum")]).rename_columns(["subscription", "events"])


def best_of(scored: pa.Table, k: int) -> pa.Table:
    """Returns the k best rows of each event (event, subscription, score), by event.

    Among equal scores, the lower id is better.
    """
    order = [("event", "ascending"), ("score", "descending"), ("subscription", "ascending")]
    scored = scored.sort_by(order).combine_chunks()
    event = scored.column("event").to_numpy()
    begins = np.searchsorted(event, event)
    return scored.filter(pa.array(np.arange(len(event)) - begins < k))


def join_lists(found: list[tuple[Any, pa.ChunkedArray]], rows: int, type: pa.DataType) -> pa.ChunkedArray:
    """Concatenates the lists of several parts, row by row.

    found : for each part, the places of its rows, and a list for each row
    """
    # Add up the lengths of the lists of each row.
    sizes, parts = np.zeros(rows, np.int64), []
    for at, lists in found:
        size = pc.list_value_length(lists).to_numpy().astype(np.int64)
        sizes[at] += size
        parts.append((at, size, pc.list_flatten(lists)))
    # Copy the ids, or numbers of strings, behind the earlier ones of their row.
    first = ranges_of(sizes)
    to, numbers, before = first[:-1].copy(), np.empty(first[-1], np.int64), 0
    for at, size, values in parts:
        own = values.to_numpy() if type == pa.int64() else np.arange(before, before + len(values))
        put_rows(contiguous(own), ranges_of(size)[:-1], size, to[at], numbers)
        to[at] += size
        before += len(values)
    ids = None if type == pa.int64() else pa.chunked_array([c for _, _, values in parts for c in values.chunks], type)
    # Cut the lists into chunks.
    chunks, start = [], 0
    while start < rows:
        most = int(np.searchsorted(first, first[start] + VALUES_MOST, side="right")) - 1
        stop = min(max(start + 1, most), rows)
        own = pa.array(numbers[first[start] : first[stop]])
        offsets = pa.array((first[start : stop + 1] - first[start]).astype(np.int32))
        chunks.append(pa.ListArray.from_arrays(offsets, own if ids is None else ids.take(own).combine_chunks()))
        start = stop
    return pa.chunked_array(chunks, pa.list_(type))
