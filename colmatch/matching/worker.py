"""Batches of events through the kernels: working memory, threads, and results in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.recycled import Recycled
from colmatch.events.reader import Reader
from colmatch.kernels import layout, sink
from colmatch.kernels import transpose as rows
from colmatch.kernels._compiling import NotCompiledError, compiled_only
from colmatch.updates.versions import Reading, Version

if TYPE_CHECKING:
    from colmatch.updates.live import Live

FIRST_CAPACITY = 1 << 16  # pairs that a sink holds at first
LARGE_CAPACITY = 1 << 25  # pairs beyond which it grows for a single row only
SHARE_ROWS = 1024  # a single batch is shared out among threads in parts of at least so many rows

Result = TypeVar("Result")


class Piece(NamedTuple):
    """Matches of some consecutive rows of a batch, ordered by row."""

    first: int  # number of the first row within the whole input
    place: NDArray[np.int64]  # (rows + 1) row -> its pairs
    id: NDArray[Any]  # (pairs) int64 ids, or uint32 numbers of subscriptions where ids are strings
    names: pa.Array | None  # the ids by number, where they are strings
    memory: Recycled

    def ids(self) -> pa.Array:
        """Id of each pair."""
        return pa.array(self.id) if self.names is None else self.names.take(pa.array(self.id))

    def events(self) -> NDArray[np.int64]:
        """Number of the event of each pair."""
        event = self.memory.array(len(self.id), np.int64)
        sink.number_events(self.place, self.first, event)
        return event


class Worker:
    """Working memory for one thread: reads batches, runs the kernel, drains its sink."""

    def __init__(self, live: Live) -> None:
        self.live = live
        self.version: Version | None = None
        self.reading: Reading | None = None
        self.lenient: bool | None = None  # what the reader was made with
        self.scratch: Any = None
        self.capacity = (0, 0)  # rows and entries that the scratch is for
        self.stamp = np.zeros(0, np.int64)
        self.counters = np.zeros(layout.N_COUNTERS, np.int64)
        self.stamped = 0
        self.pairs_a_row = 0.0
        self.rows = layout.Rows(np.empty(1, np.int64), np.empty(0, np.uint32), np.empty(0, np.uint32))
        self.sink = _sink(FIRST_CAPACITY, 0)
        self.memory = Recycled()
        with live.gate.batch():
            self._adopt(live.now)

    def _adopt(self, version: Version) -> None:
        lenient = self.live.options.missing_columns == "null"
        if version is self.version and lenient is self.lenient:
            return
        reading, index = version.reading, version.index
        before = self.reading if lenient is self.lenient else None
        if before is None or reading.attributes is not before.attributes or reading.literals is not before.literals:
            self.reader, self.lenient = Reader(reading.attributes, reading.literals, lenient), lenient
        if reading is not before:
            self.reading = reading
            self.codes, self.hints = reading.codes, reading.hints
            self.next = np.empty(len(reading.codes.multi), np.int64)
        self.version, self.index, self.predicates, self.ids = version, index, version.predicates, version.numbers
        self.names = version.ids if version.numbers is None else None
        self.scratch = None
        self.repeats = index.kind.repeats(index.arrays)
        if self.repeats and len(self.stamp) < len(version.ids):
            self.stamp = np.zeros(len(version.ids) * 5 // 4 if len(self.stamp) else len(version.ids), np.int64)

    def run(self, batch: pa.RecordBatch, wanted: bool, offset: int) -> Iterator[Piece]:
        """Matches of one batch, in pieces that the sink can hold."""
        gate = self.live.gate
        pinned: Version | None = None
        inside = True
        gate.enter()
        try:
            version = self.live.now
            self._adopt(version)
            for piece, last in self._pieces(batch, wanted, offset):
                if not last:
                    gate.pin(version)
                    pinned = version
                gate.leave()
                inside = False
                yield piece
                if last:
                    return
                gate.enter()
                inside, pinned = True, None
                gate.unpin(version)
        finally:  # the caller may have stopped
            if inside:
                gate.leave()
            if pinned is not None:
                gate.unpin(pinned)

    def _pieces(self, batch: pa.RecordBatch, wanted: bool, offset: int) -> Iterator[tuple[Piece, bool]]:
        """The pieces, and whether it is the last one."""
        count = batch.num_rows
        entries = self.reader.read(batch)
        size = int(entries.col[-1])
        if self.capacity < (count, size) or self.capacity[1] < size:
            self._make_room(count, size)
        if self.scratch is None:
            self.scratch = self.index.kind.scratch(self.index.arrays, self.codes, *self.capacity)
        events = self.rows._replace(first=self.rows.first[: count + 1])
        rows.transpose(entries, self.codes, self.hints, self.next, *events)
        if len(self.codes.label):
            rows.to_labels(self.codes, *events)
        hits = np.zeros(count, np.int64)
        self.sink = self.sink._replace(hits=hits)
        pairs = wanted or self.repeats  # what is found twice must be written down to be told
        self.sink.state[:] = 0, pairs, 0
        # Rows for which the sink may grow, going by the batch before: finding out anew would cost
        # the work of the whole batch.
        parts = -(-count * 1.1 * self.pairs_a_row // LARGE_CAPACITY)
        # alike, since a few rows cost almost as much as many
        start, span = 0, -(-count // max(min(int(parts), count), 1))
        while start < count:
            limit = min(start + span, count)
            stop = self.index.kind.match(
                self.index.arrays, self.predicates, events, start, limit, self.scratch, self.sink, self.counters
            )
            if stop > start:
                if pairs:
                    self.pairs_a_row = self.sink.state[sink.FILL] / (stop - start)
                yield self._drain(start, stop, offset), stop == count
                self.sink.state[sink.FILL] = 0
                start = stop
                continue
            needed = max(int(self.sink.state[sink.NEEDED]), 2 * len(self.sink.sub))
            if limit - start > 1 and needed > LARGE_CAPACITY:
                # fewer rows at a time, rather than a sink without bounds
                span = max((limit - start) * LARGE_CAPACITY // (2 * needed), 1)
                needed = LARGE_CAPACITY
            elif limit - start > 1:
                needed += needed // 4  # the next batch may have a few more
            if needed > len(self.sink.sub):
                self.sink = _sink(needed, pairs)._replace(hits=hits)

    def _make_room(self, count: int, size: int) -> None:
        count, size = max(count, self.capacity[0], 1), max(size * 5 // 4, self.capacity[1], 64)
        self.capacity = count, size
        self.rows = layout.Rows(np.empty(count + 1, np.int64), np.empty(size, np.uint32), np.empty(size, np.uint32))
        self.scratch = None

    def _drain(self, start: int, stop: int, offset: int) -> Piece:
        pairs = int(self.sink.state[sink.FILL])
        place = np.zeros(stop - start + 1, np.int64)
        np.cumsum(self.sink.hits[start:stop], out=place[1:])
        if self.repeats and pairs:
            sub = self.memory.array(pairs, np.uint32)
            sink.order_by_row(self.sink, start, place[:-1].copy(), sub)
            left = sink.drop_repeats(place, sub, self.stamped, self.stamp)
            self.stamped += stop - start
            if self.ids is not None:
                sub, of = self.memory.array(left, np.int64), sub
                np.take(self.ids, of[:left], out=sub)
            return Piece(start + offset, place, sub[:left], self.names, self.memory)
        id = self.memory.array(pairs, np.uint32 if self.ids is None else np.int64)
        if pairs and self.ids is None:
            sink.order_by_row(self.sink, start, place[:-1].copy(), id)
        elif pairs:
            sink.order_ids(self.sink, start, place[:-1].copy(), self.ids, id)
        return Piece(start + offset, place, id, self.names, self.memory)


def _sink(capacity: int, wanted: bool | int) -> layout.Sink:
    state = np.array([0, wanted, 0], np.int64)
    return layout.Sink(np.empty(capacity, np.uint32), np.empty(capacity, np.uint32), np.empty(0, np.int64), state)


def cores(threads: int) -> int:
    """Threads to run: as many as asked for, or for 0 one for each core that this process may
    use.
    """
    if threads:
        return threads
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(
    batches: Iterator[pa.RecordBatch], threads: int, task: Callable[[pa.RecordBatch, int], Iterator[Result]]
) -> Iterator[Result]:
    """What ``task(batch, number of its first row)`` gives for each batch, in the order of the
    batches.

    Kernels let go of the interpreter's lock, so threads run at once. Not more than one batch a
    thread is held back, waiting for its turn. A task is called in one thread and must share no
    working memory with another. The threads run compiled kernels only: a task that comes to one
    that is not is given up, and done again in the caller's thread.
    """
    first = next(batches, None)
    if first is None:
        return
    second = next(batches, None) if threads > 1 else None
    if second is None and (threads == 1 or first.num_rows < 2 * SHARE_ROWS):
        offset = 0
        for batch in chain((first,), batches):
            yield from task(batch, offset)
            offset += batch.num_rows
        return
    if second is None:
        size = max(-(-first.num_rows // threads), SHARE_ROWS)
        batches = (first.slice(start, size) for start in range(0, first.num_rows, size))
    else:
        batches = chain((first, second), batches)
    pending: deque[tuple[pa.RecordBatch, int, Future[list[Result]]]] = deque()

    def there(batch: pa.RecordBatch, offset: int) -> list[Result]:
        with compiled_only():
            return list(task(batch, offset))

    def oldest() -> list[Result]:
        batch, offset, future = pending.popleft()
        try:
            return future.result()
        except NotCompiledError:
            return list(task(batch, offset))

    with ThreadPoolExecutor(threads, "colmatch") as pool:
        try:
            offset = 0
            for batch in batches:
                pending.append((batch, offset, pool.submit(there, batch, offset)))
                offset += batch.num_rows
                if len(pending) > threads:
                    yield from oldest()
            while pending:
                yield from oldest()
        finally:
            for _, _, future in pending:
                future.cancel()
