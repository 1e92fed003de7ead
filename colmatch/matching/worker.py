"""One batch of events through the kernels, with the working memory of one thread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from colmatch.arrays.recycled import Recycled
from colmatch.events.reader import Reader
from colmatch.kernels import layout, sink
from colmatch.kernels.transpose import to_labels, transpose
from colmatch.matching.pieces import Piece
from colmatch.updates.live import LiveSet
from colmatch.updates.versions import Coding, Version

FIRST_CAPACITY = 1 << 16  # pairs that a sink holds at first
LARGE_CAPACITY = 1 << 25  # pairs beyond which it grows for a single row only


class Worker:
    """Working memory of one thread, in which batches are read and matched."""

    def __init__(self, live: LiveSet) -> None:
        self.live = live
        self.version: Version | None = None
        self.coding: Coding | None = None
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
        coding, index = version.coding, version.index
        before = self.coding if lenient is self.lenient else None
        if before is None or coding.attributes is not before.attributes or coding.literals is not before.literals:
            self.reader, self.lenient = Reader(coding.attributes, coding.literals, lenient), lenient
        if coding is not before:
            self.coding = coding
            self.codes, self.hints = coding.codes, coding.hints
            self.next = np.empty(len(coding.codes.multi), np.int64)
        self.version, self.index, self.predicates, self.ids = version, index, version.predicates, version.numbers
        self.names = version.ids if version.numbers is None else None
        self.scratch = None
        self.repeats = index.kind.repeats(index.arrays)
        if self.repeats and len(self.stamp) < len(version.ids):
            self.stamp = np.zeros(len(version.ids) * 5 // 4 if len(self.stamp) else len(version.ids), np.int64)

    def run(self, batch: pa.RecordBatch, wanted: bool, offset: int) -> Iterator[Piece]:
        """Yields the matches of one batch, in pieces that the sink can hold.

        wanted : whether pairs are wanted, or counts alone
        """
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
        """Yields the pieces, and whether it is the last one."""
        count = batch.num_rows
        entries = self.reader.read(batch)
        size = int(entries.col[-1])
        if self.capacity < (count, size) or self.capacity[1] < size:
            self._make_room(count, size)
        if self.scratch is None:
            self.scratch = self.index.kind.scratch(self.index.arrays, self.codes, *self.capacity)
        events = self.rows._replace(first=self.rows.first[: count + 1])
        transpose(entries, self.codes, self.hints, self.next, *events)
        if len(self.codes.label):
            to_labels(self.codes, *events)
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
