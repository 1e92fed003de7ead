"""Shards that a worker matches one after the other, instead of a single matcher.

Each shard matches a piece of events in turn, and the matches of all shards are combined. So memory
holds a piece of events, its matches, and one shard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Unpack

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
        return LISTED_ROWS if best or mode == "lists" else PIECE_ROWS

    def pieces(self, events: pa.RecordBatch, mode: str) -> Iterator[pa.RecordBatch]:
        """Yields pieces of events for all shards.

        With mode ``"lists"``, a piece has some millions of matches, estimated from earlier pieces.
        """
        start = 0
        while start < len(events):
            rows = len(events)
            if mode == "lists":
                rows = LISTED_FIRST if not self._rows else max(1, LISTED_MOST * self._rows // max(self._listed, 1))
            yield events.slice(start, rows)
            start += rows

    def match_batches(
        self, events: pa.RecordBatch, ranges: RangeNames | None = None, *, keep: Keep = None, **among: Unpack[Among]
    ) -> Iterator[pa.RecordBatch]:
        """Yields pairs, shard by shard."""
        for _, shard in self._shards():
            yield from shard.match_batches(events, ranges, keep=keep, **among)

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
        best: list[pa.Table] = []
        for _, shard in self._shards():
            found = shard.match_topk(events, k, score, event_weights, ranges=ranges, **among)
            best = [best_of(pa.concat_tables([*best, found]), k)]
        for rows in (best[0] if best else pa.table({})).to_batches(max_chunksize=KEPT_ROWS):
            kept = {name: events.column(name).take(rows.column(0)) for name in keep or ()}
            yield pa.RecordBatch.from_arrays([*rows.columns, *kept.values()], [*rows.schema.names, *kept])

    def match_lists(
        self, events: pa.RecordBatch, ranges: RangeNames | None = None, **among: Unpack[Among]
    ) -> pa.ChunkedArray:
        """Returns the ids that match each event, ordered by shard."""
        parts = [shard.match_lists(events, ranges, **among) for _, shard in self._shards()]
        lists = join_lists(parts, len(events), self.manifest.id_type)
        self._rows += len(events)
        self._listed += sum(len(chunk.values) for chunk in lists.chunks)
        return lists

    def count(
        self, events: pa.RecordBatch, ranges: RangeNames | None = None, **among: Unpack[Among]
    ) -> NDArray[np.int64]:
        """Returns the number of subscriptions that match each event."""
        counts = np.zeros(len(events), np.int64)
        for _, shard in self._shards():
            counts += shard.count(events, ranges, **among)
        return counts

    def exists(
        self, events: pa.RecordBatch, ranges: RangeNames | None = None, **among: Unpack[Among]
    ) -> NDArray[np.bool_]:
        """Returns for each event whether any subscription matches."""
        flags = np.zeros(len(events), np.bool_)
        for _, shard in self._shards():
            flags |= shard.exists(events, ranges, **among)
        return flags

    def hits(self, events: Any, ranges: RangeNames | None = None, **among: Unpack[Among]) -> pa.Table:
        """Counts the events that each subscription matches."""
        tables: dict[int, pa.Table] = {}
        start = 0
        for piece in batches(events, PIECE_ROWS):
            for number, shard in self._shards():
                try:
                    hits = shard.hits(piece, ranges, **among)
                except EventError as error:
                    error.count_from(start)
                    raise
                before = tables.get(number)
                tables[number] = hits if before is None else _sum_hits(pa.concat_tables([before, hits]))
            start += len(piece)
        schema = pa.schema([("subscription", self.manifest.id_type), ("events", pa.int64())])
        return pa.concat_tables([schema.empty_table(), *(table.cast(schema) for table in tables.values())])

    def _shards(self) -> Iterator[tuple[int, Matcher]]:
        """Yields number and matcher of each shard that has subscriptions."""
        for number, shard in enumerate(self.manifest.shards):
            if shard is not None:
                yield number, self._opened(shard.file)


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


def join_lists(found: list[pa.ChunkedArray], rows: int, type: pa.DataType) -> pa.ChunkedArray:
    """Concatenates the lists of several parts, row by row."""
    # Add up the lengths of the lists of each row.
    sizes, parts = np.zeros(rows, np.int64), []
    for lists in found:
        size = pc.list_value_length(lists).to_numpy().astype(np.int64)
        sizes += size
        parts.append((size, pc.list_flatten(lists)))
    # Copy the ids, or numbers of strings, behind the earlier ones of their row.
    first = ranges_of(sizes)
    to, numbers, before = first[:-1].copy(), np.empty(first[-1], np.int64), 0
    for size, values in parts:
        own = values.to_numpy() if type == pa.int64() else np.arange(before, before + len(values))
        put_rows(contiguous(own), ranges_of(size)[:-1], size, to, numbers)
        to += size
        before += len(values)
    ids = None if type == pa.int64() else pa.chunked_array([c for _, values in parts for c in values.chunks], type)
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
