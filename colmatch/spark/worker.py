"""Tasks in Spark's Python workers, each over the record batches of one partition.

A task is pickled as a reference to this module with a few names in it. Only in a stream of a
Connect session does each task carry the index (``shipping.py``), and each worker hold a copy.
Otherwise the workers of a machine map the same file into memory, and share its pages. A million
subscriptions, a file of 92 MB, took 52 MB of a worker's private memory. Numba takes most of that
even without subscriptions.

Nothing here starts threads: Spark runs a worker for each core already (and sets OMP_NUM_THREADS for
libraries that use it).
"""

from __future__ import annotations

import gc
import os
import pickle
import socket
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from colmatch.errors import EventError, StoreError, suggest_names
from colmatch.events.computed.clock import MOMENT
from colmatch.events.gather import batches as gathered
from colmatch.events.gather import match_names
from colmatch.events.special.clock import Clock
from colmatch.given.incoming import refusing
from colmatch.matcher import Matcher
from colmatch.matching.range_worker import RangeNames
from colmatch.matching.request import Among
from colmatch.matching.subset import Subset
from colmatch.spark.manifest import hash_in, read_manifest
from colmatch.spark.sharded import ShardedMatcher
from colmatch.spark.storage import Folder
from colmatch.spark.tally import OBSERVED, Tally, matches_of, no_numbers, show_log
from colmatch.store.file import content_hash
from colmatch.tables.columns import Best, EventMode, match_structs

PAIRS_MOST = 1 << 20  # pairs in one batch for Spark: an event may match every subscription

MATCHERS_MOST = 4

VERSION_DIGITS = 12  # of a content hash, as users see it

Mode = Literal["pairs", "lists", "count", "exists", "totals"]

# Content hash and folder -> (the caller's name for the index, the matcher), the least recently used
# first. A worker process outlives its tasks.
_opened: OrderedDict[str, tuple[str, Matcher | ShardedMatcher]] = OrderedDict()
_verified: set[str] = set()  # content hashes of files, with checksums that this process has verified


@dataclass(frozen=True)
class IndexFile:
    """The place where a worker finds the index.

    Attributes
    ----------
    hash : content hash, which names one version of the index
    origin : the caller's name for the index; a new version replaces the old one in a worker's cache
    path : the file
    artifact : True if ``path`` names an artifact that was sent to the workers, False if they see it
    packed : the index itself, if no file reaches the workers: the size of its pickle in bytes, and
        the compressed pickle
    folder : address of the folder of shards with the manifest ``path``; "" for a single file
    """

    hash: str
    origin: str
    path: str
    artifact: bool
    packed: tuple[int, bytes] | None = None
    folder: str = ""


@dataclass(frozen=True)
class PartitionTask:
    """A task that matches a partition; ``mapInArrow`` calls it.

    Attributes
    ----------
    index : the file of the index
    kept : number of leading columns of the partition that go into the result
    used : columns that the expressions or event weights use: position in the partition, and name
        in the matcher's schema or in the event weights
    mode : rows of the result: pairs, or events with a list of ids, a count or a Boolean. With
        ``"totals"``, subscriptions with the number of their events in this partition
    names : column names of the result
    best : if set, the result has only the best matches, with their scores
    ranges : attributes that are ranges, as for ``Matcher.match``
    among : the subscriptions to match; None for all
    now : the time of all events, as for ``Matcher.match``
    clock : place of a column with the time of the query, which ``now()`` is; None without one
    observed : True if the result ends with a row of numbers (``tally.py``)
    log : True if the worker writes its log
    """

    index: IndexFile
    kept: int
    used: tuple[tuple[int, str], ...]
    mode: Mode
    names: tuple[str, ...]
    best: Best | None = None
    ranges: RangeNames | None = None
    among: Subset | None = None
    now: Any = None
    clock: int | None = None
    observed: bool = False
    log: bool = False

    def __call__(self, partition: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tally = Tally()
        taken = tally.count_rows(partition)
        first = next((batch for batch in taken if len(batch)), None)
        if first is None:
            return
        show_log(self.log)
        ended = ""
        try:
            matcher = open_index(self.index)
            reader = pa.RecordBatchReader.from_batches(first.schema, chain([first], taken))
            timed = self if self.clock is None else replace(self, now=query_clock(first.column(self.clock), matcher))
            for batch in tally.count_matches(timed._results(matcher, reader), matches_of(self.mode)):
                yield batch.append_column(OBSERVED, no_numbers(len(batch))) if self.observed else batch
            if self.observed:
                yield self._last_row(matcher, first, tally.row())
        except GeneratorExit:
            ended = ", and Spark wanted no more"
            raise
        except BaseException as error:
            ended = f", ended by {type(error).__name__}: {error}"
            raise
        finally:
            tally.tell(self.index.origin, self.index.hash[:VERSION_DIGITS], ended)

    def _last_row(self, matcher: Matcher | ShardedMatcher, first: pa.RecordBatch, numbers: pa.Array) -> pa.RecordBatch:
        """Returns the row with the numbers. Other values have the right types, but no meaning."""
        id = pa.array([0] if pa.types.is_integer(matcher.ids.type) else [""])
        plain = {
            "subscription": id, "subscriptions": pa.ListArray.from_arrays([0, 0], id), "score": pa.array([0.0]),
            "count": pa.array([0]), "exists": pa.array([False]), "rows": pa.array([0]),
        }  # fmt: skip
        kept = [column.take(pa.array([0])) for column in first.columns[: self.kept]]
        results = [plain[name] for name in self.names[self.kept :]]
        return pa.RecordBatch.from_arrays([*kept, *results, numbers], names=[*self.names, OBSERVED])

    def _results(self, matcher: Matcher | ShardedMatcher, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        if self.mode == "totals":
            yield from self._total_rows(matcher, reader)
            return
        rows = (
            self._pair_rows if self.mode == "pairs" else self._list_rows if self.mode == "lists" else self._event_rows
        )
        start = 0
        for batch in gathered(reader, _rows_at_once(matcher, self.mode, self.best)):
            for piece in matcher.pieces(batch, self.mode) if isinstance(matcher, ShardedMatcher) else [batch]:
                try:
                    for columns in rows(matcher, self._events(piece), piece.columns[: self.kept]):
                        yield pa.RecordBatch.from_arrays(columns, names=list(self.names))
                except EventError as error:
                    error.count_from(start)
                    raise
                start += piece.num_rows

    def _events(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns the columns that the matcher uses, under the matcher's names."""
        return batch.select([i for i, _ in self.used]).rename_columns([name for _, name in self.used])

    def _total_rows(
        self, matcher: Matcher | ShardedMatcher, partition: pa.RecordBatchReader
    ) -> Iterator[pa.RecordBatch]:
        schema = self._events(pa.RecordBatch.from_pylist([], partition.schema)).schema
        events = pa.RecordBatchReader.from_batches(schema, map(self._events, partition))
        hits = matcher.hits(events, self.ranges, ids=self.among, now=self.now)
        for part in hits.to_batches(max_chunksize=PAIRS_MOST):
            yield pa.RecordBatch.from_arrays([_spark_ids(part.column(0)), part.column(1)], names=list(self.names))

    def _event_rows(
        self, matcher: Matcher | ShardedMatcher, events: pa.RecordBatch, kept: list[pa.Array]
    ) -> Iterator[list[pa.Array]]:
        ask = matcher.count if self.mode == "count" else matcher.exists
        yield [*kept, pa.array(ask(events, self.ranges, ids=self.among, now=self.now))]

    def _pair_rows(
        self, matcher: Matcher | ShardedMatcher, events: pa.RecordBatch, kept: list[pa.Array]
    ) -> Iterator[list[pa.Array]]:
        # Kept columns get names that no expression has, to differ from columns in expressions.
        names = [f"\0{i}" for i in range(self.kept)]
        if names:
            events = pa.RecordBatch.from_arrays([*kept, *events.columns], [*names, *events.schema.names])
        best, ranges, among = self.best, self.ranges, Among(ids=self.among, now=self.now)
        if best is None:
            batches = matcher.match_batches(events, ranges, keep=names, **among)
        else:
            arguments = best.k, best.score, best.event_weights
            batches = matcher.match_topk_batches(events, *arguments, ranges=ranges, keep=names, **among)
        for pairs in batches:
            for start in range(0, len(pairs), PAIRS_MOST):
                _, ids, *others = pairs.slice(start, PAIRS_MOST).columns
                scores = others[: len(others) - self.kept]
                yield [*others[len(scores) :], _spark_ids(ids), *scores]

    def _list_rows(
        self, matcher: Matcher | ShardedMatcher, events: pa.RecordBatch, kept: list[pa.Array]
    ) -> Iterator[list[pa.Array]]:
        lists = matcher.match_lists(events, self.ranges, ids=self.among, now=self.now)
        row = 0
        for chunk in lists.chunks if isinstance(lists, pa.ChunkedArray) else [lists]:
            ends = np.cumsum(pc.list_value_length(chunk).to_numpy(zero_copy_only=False), dtype=np.int64)
            start = 0
            while start < len(chunk):
                # Take as many lists as fit a batch, but at least one.
                before = ends[start - 1] if start else 0
                stop = max(start + 1, int(np.searchsorted(ends, before + PAIRS_MOST, side="right")))
                # Build the lists of this part, with offsets from 0.
                part = chunk.slice(start, stop - start)
                ids = part.flatten()
                offsets = np.concatenate([[0], ends[start:stop] - before]).astype(np.int32)
                yield [
                    *(column.slice(row, len(part)) for column in kept),
                    pa.ListArray.from_arrays(pa.array(offsets), _spark_ids(ids)),
                ]
                row += len(part)
                start = stop


@dataclass(frozen=True)
class ColumnTask:
    """The task of a function of a column, for the rows of a batch.

    Attributes
    ----------
    index : the file of the index
    mode : list, count or exists
    among, now : as for ``PartitionTask``
    """

    index: IndexFile
    mode: EventMode
    among: Subset | None = None
    now: Any = None

    def __call__(self, rows: pa.StructArray, clock: pa.Array) -> pa.Array:
        matcher = open_index(self.index)
        now = query_clock(clock, matcher) if self.now is None and len(clock) else self.now
        among = Among(ids=self.among, now=now)
        matches = match_structs(rows, matcher, self.mode, among, "F.struct('*')")
        if self.mode != "lists":
            return matches.combine_chunks()
        lists = pa.concat_arrays([pa.array([], matches.type), *matches.chunks])
        return pa.ListArray.from_arrays(lists.offsets, _spark_ids(lists.values))


@dataclass(frozen=True)
class TableTask:
    """The task of a table function, for a batch of a table.

    Attributes
    ----------
    index : the file of the index
    keep : columns that go into the result
    used : columns that the expressions use, as the matcher names them
    required : used columns that the table must have
    schema : schema of the result
    among, now : as for ``PartitionTask``
    """

    index: IndexFile
    keep: tuple[str, ...]
    used: tuple[str, ...]
    required: tuple[str, ...]
    schema: pa.Schema
    among: Subset | None = None
    now: Any = None

    def __call__(self, batch: pa.RecordBatch) -> Iterator[pa.Table]:
        if not isinstance(batch, pa.RecordBatch):
            raise EventError(f"a table function got {batch.type}, a table is needed: TABLE(SELECT ...)")
        names = batch.schema.names
        absent = [name for name in self.keep if name not in names]
        if absent:
            raise EventError(f"keep has {absent[0]!r}: {suggest_names(absent[0], names, 'the table')}")
        absent = [name for name in self.required if not match_names(names, [name])]
        if absent:
            why = suggest_names(absent[0], names, "it")
            raise EventError(f"the table has no column {absent[0]!r}, which an expression names: {why}")
        used = match_names(names, self.used)
        events = batch.select([*self.keep, *(name for name in used if name not in self.keep)])
        places = tuple((events.schema.get_field_index(name), name) for name in used)
        kept = len(self.keep)
        task = PartitionTask(
            self.index, kept, places, "pairs", tuple(self.schema.names), None, None, self.among, self.now
        )
        for pairs in task(iter([events])):
            with refusing(EventError, f"the columns that are kept, {', '.join(self.keep)}, are not of the types said"):
                result = pa.Table.from_batches([pairs]).cast(self.schema)
            yield result


def query_clock(column: pa.Array, matcher: Matcher | ShardedMatcher) -> Clock:
    """Returns a clock that shows the time of a query, which a column has in each row."""
    return Clock.at(column[0].cast(MOMENT).value, matcher.schema)


def _spark_ids(ids: pa.Array) -> pa.Array:
    """Returns ids as int64 or string: Spark refuses dictionaries, views and unsigned integers."""
    return ids.cast(pa.int64() if pa.types.is_integer(ids.type) else pa.string())


def open_index(index: IndexFile) -> Matcher | ShardedMatcher:
    """Returns the matcher, from this process's cache or memory-mapped.

    Raises
    ------
    StoreError : the file is absent, or another version of the index
    """
    known = index.hash + index.folder in _opened
    matcher = _open(index)
    if not known:
        _hide_objects()
    return matcher


def _hide_objects() -> None:
    """Hides all present objects from the garbage collector, and frees what older indexes left.

    PySpark collects garbage after each task of a worker. It would look at every object of numba and
    colmatch, which live as long as the worker: 70 ms a task, and 3 ms if they are hidden.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def _open(index: IndexFile) -> Matcher | ShardedMatcher:
    key = index.hash + index.folder
    if key in _opened:
        _opened.move_to_end(key)
        return _opened[key][1]
    matcher: Matcher | ShardedMatcher
    if index.folder:
        matcher = _open_shards(index)
    else:
        matcher = _open_file(index) if index.packed is None else unpack_matcher(index.packed)
        matcher.options = replace(matcher.options, threads=1)
    for old in [old for old, (origin, _) in _opened.items() if origin == index.origin]:
        del _opened[old]
    _opened[key] = (index.origin, matcher)
    while len(_opened) > MATCHERS_MOST:
        _opened.popitem(last=False)
    return matcher


def _rows_at_once(matcher: Matcher | ShardedMatcher, mode: Mode, best: Best | None) -> int:
    if isinstance(matcher, ShardedMatcher):
        return matcher.piece_rows(mode, best is not None)
    return matcher.options.batch_rows


def in_folder(folder: Folder, name: str) -> IndexFile:
    """Locates a file of a folder of shards on this machine, as a copy if the folder is remote.

    Raises StoreError: the file is gone.
    """
    try:
        path = folder.local(name)
    except FileNotFoundError:
        raise StoreError(
            f"{folder.address}/{name} is gone: the version of the shards that was planned with is none of the eight newest, "
            "or the folder is not visible on this worker. Plan the query again"
        ) from None
    return IndexFile(hash_in(name), f"{folder.address}/{name}", path, artifact=False)


def _open_shards(index: IndexFile) -> ShardedMatcher:
    folder = Folder(index.folder)

    def opened(name: str) -> Matcher:
        matcher = _open(in_folder(folder, name))
        if index.hash + index.folder in _opened:  # stays in the cache longer than any shard
            _opened.move_to_end(index.hash + index.folder)
        assert isinstance(matcher, Matcher)
        return matcher

    return ShardedMatcher(folder, read_manifest(folder, os.path.basename(index.path)), opened)


def pack_matcher(matcher: Matcher) -> tuple[int, bytes]:
    """Packs a matcher for ``IndexFile.packed``."""
    pickled = pickle.dumps(matcher)
    return len(pickled), pa.compress(pickled, codec="zstd", asbytes=True)


def unpack_matcher(packed: tuple[int, bytes]) -> Matcher:
    size, data = packed
    matcher: Matcher = pickle.loads(pa.decompress(data, decompressed_size=size, codec="zstd", asbytes=True))
    return matcher


def _open_file(index: IndexFile) -> Matcher:
    path = index.path
    if index.artifact:
        from pyspark.core.files import SparkFiles

        path = SparkFiles.get(path)
    if not os.path.exists(path):
        raise StoreError(
            f"the index {path} is not visible on the worker {socket.gethostname()}: put it on storage that all workers see, or "
            "leave out shared=True so that it is sent to them"
        )
    version = content_hash(path)
    if version != index.hash:
        raise StoreError(
            f"the index {path} was replaced (version {version}, planned with {index.hash}): make the DataFrame or view "
            "again, and give versions names of their own while queries run"
        )
    matcher = Matcher.open(path, mmap=True, trusted=True, verify=version not in _verified)
    _verified.add(version)
    return matcher
