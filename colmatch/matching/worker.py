"""The way of one batch of events through the kernels, with the working memory of one thread.

Segments that use the same attributes share the places of entries in the rows. So only codes are
made for each segment (``kernels/transpose.py``). This takes 0.05 and 0.08 us an event of 30 values,
while a transpose for each segment took 0.33 us. ``entry`` of ``kernels/_jit.py`` calls compiled
kernels, since numba's dispatcher looks at the types of some 60 arrays. For one event, a growing
segment then takes 9 us instead of 30 us.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.frozen import NO_I64, NO_U64
from colmatch.arrays.recycled import RecycledArrays
from colmatch.errors import EventError
from colmatch.events.computed.failed import Doubts, Failures
from colmatch.events.reader import Reader
from colmatch.kernels import layout, sink
from colmatch.kernels._jit import entry
from colmatch.kernels.hints import TILE
from colmatch.kernels.meets import Meeting
from colmatch.kernels.transpose import code_rows, to_labels, transpose
from colmatch.matching.pieces import Piece
from colmatch.matching.undecided import Failing, bounds
from colmatch.subscriptions.ids import Ids
from colmatch.updates.segments import Segment
from colmatch.updates.versions import Version

DOUBTS_MOST = 1 << 21  # of conditions on elements, in all elements of a batch
FIRST_CAPACITY = 1 << 16  # pairs that a sink holds at first
LARGE_CAPACITY = 1 << 25  # pairs; beyond, a sink grows for a single row only
GROUP_PAIRS = 1 << 13  # approximate number of pairs that are ordered together
DIGIT_LEAST, DIGIT_MOST = 4, 12  # bits of a digit, when pairs are ordered
# Arguments of kernels for upper ends, and for their working memory, if no attribute is a range.
NO_CODES: layout.U32 = np.empty(0, np.uint32)
NO_IDS: layout.I64 = np.empty(0, np.int64)  # for kernels that write numbers instead
NO_MEETING = Meeting(NO_CODES, NO_CODES, NO_CODES, np.empty((0, 3), np.uint32))


class SegmentJob(NamedTuple):
    """A segment that a batch is matched with."""

    place: int  # among the version's segments; an empty segment has the base of the next one
    segment: Segment
    base: int  # number of its first subscription
    deleted_bits: layout.U64  # bits of deleted subscriptions; empty if the index finds none
    scratch: Any
    arrays: Any  # arrays of the index, or of some of its strata


class Plan(NamedTuple):
    """What a worker knows of a version."""

    parts: list[SegmentJob]
    repeats: bool  # whether pairs may be found twice
    bits: int  # bits of the highest subscription number


class BatchJob(NamedTuple):
    """A batch that was read, and the segments to match it with."""

    entries: layout.Batch
    rows: int
    events: layout.Rows  # the entries by row, with the codes of a part
    parts: list[SegmentJob]
    hits: NDArray[np.int64]  # (rows) pairs of each row
    wanted: int  # requested result (``kernels/sink.py``); PAIRS also to count distinct pairs
    repeats: bool  # whether pairs may be found twice
    # bits of the highest subscription number if the pairs of a row are ordered by number; 0 if
    # their order does not matter
    bits: int


class Worker:
    """The working memory of one thread for reading and matching batches.

    Between two batches, a worker holds no segment of a replaced version, so that it can be freed.

    Attributes
    ----------
    is_ranged : whether attributes of its events are ranges
    counters : counters of all kernels that the worker has called
    in_order : whether the subscriptions of an event are ordered by number; may change between
        batches
    by_row : whether the pairs of pieces are ordered by event; may change between batches
    memory : memory of results
    rates : segment -> matches in the last batch for each match that the strata expected
    doubts : receives the matches that depend on what fails; None where these are errors
    """

    is_ranged = False

    def __init__(self) -> None:
        self.counters = np.zeros(layout.N_COUNTERS, np.int64)
        self.in_order = True
        self.by_row = True
        self._reader: Reader | None = None
        self._read_for: tuple[Any, ...] = (None, None, None)  # attributes, literals and leniency of the reader
        self._failed = Failures()  # in the last batch
        self.doubts: list[Doubts] | None = None
        self._scratch: weakref.WeakKeyDictionary[Segment, tuple[Any, tuple[int, int]]] = weakref.WeakKeyDictionary()
        self._known: tuple[weakref.ref[Version], list[Any]] | None = None  # the last version, and its plan
        self._capacity = (0, 0)  # rows and entries that have room
        self._rows = layout.Rows(np.empty(1, np.int64), np.empty(0, np.uint32), np.empty(0, np.uint32))
        self._found = np.empty(TILE, np.uint32)  # codes of keys that are searched for together
        self._place = np.empty(0, np.int32)  # place of each entry in ``_rows``
        self._placed: bytes | None = None  # the attributes with entries in ``_place``
        self._coded: Segment | None = None  # the segment with codes in ``_rows``
        self._next = np.zeros(0, np.int64)
        self._sink = _sink(FIRST_CAPACITY)
        self._pairs_a_row = 0.0
        self._key = np.empty(0, np.uint32)  # keys of the pairs to order
        none = np.empty(0, np.uint32)
        self._digit = none, none, np.empty(1 << DIGIT_MOST, np.uint32)
        self.memory = RecycledArrays()
        self.rates: weakref.WeakKeyDictionary[Segment, float] = weakref.WeakKeyDictionary()

    def run(
        self, version: Version, lenient: bool, rows: pa.RecordBatch, wanted: int, offset: int, numbers: bool = False
    ) -> Iterator[Piece]:
        """Yields the matches of one batch, in pieces that the sink can hold.

        lenient : an absent column is NULL
        wanted : requested result for each row (``kernels/sink.py``)
        numbers : pieces have the numbers of subscriptions instead of ids
        """
        job = self.read(version, lenient, rows, wanted, offset)
        for start, stop in self.match_blocks(job):
            if stop == job.rows:
                self.forget_codes()  # the caller asks no further
            yield self._drain(version, job, start, stop, offset, numbers)

    def match_blocks(self, job: BatchJob) -> Iterator[tuple[int, int]]:
        """Matches all rows of a job, in blocks with as many rows as the sink has room for.

        Yields the first row of each block and the row after its end, while the sink has its pairs.
        """
        count = job.rows
        # Estimate the number of blocks from the last batch. To find out by trial would cost the
        # work of the whole batch.
        parts = -(-count * 1.1 * self._pairs_a_row // LARGE_CAPACITY)
        # Blocks are equally large, since a few rows cost almost as much as many. With 10 million
        # ``dense`` subscriptions, a large and a small one took 134 us an event instead of 77.
        start, span = 0, -(-count // max(min(int(parts), count), 1))
        while start < count:
            stop, span = self._match(job, start, span)
            if job.wanted == sink.PAIRS:
                self._pairs_a_row = int(self._sink.state[sink.FILL]) / (stop - start)
            yield start, stop
            start = stop

    def take_pairs(
        self, job: BatchJob, start: int, stop: int, ids: Ids | None = None, by_row: bool = True
    ) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Returns the pairs of the rows ``start:stop`` from the sink, ordered, each once.

        The first array (rows + 1) maps a row to its pairs. The second array (pairs) has the numbers
        of subscriptions, or their ids if ``ids`` are given, which are int64. Within a row, numbers
        ascend if the job requires that.

        by_row : False if numbers may have any order across rows, too
        """
        place = _places(job, start, stop)
        total = int(place[-1])
        if ids is None and not by_row and not job.bits:
            return place, self._sink.sub[:total].copy()
        if ids is None:
            found, (table, first) = self.memory.array(total, np.uint32), (NO_I64, 0)
            id, sub = NO_IDS, found
        else:
            found, (table, first) = self.memory.array(total, np.int64), ids.table
            id, sub = found, NO_CODES
        if job.bits:
            left = self._order(job, start, place, table, first, id, sub)
            if left < total:
                self.counters[layout.MATCHES] -= total - left
            return place, found[:left]
        if ids is None:
            entry(sink.order_by_row)(self._sink, start, place[:-1].copy(), sub)
        else:
            entry(sink.order_ids)(self._sink, start, place[:-1].copy(), table, first, id)
        return place, found

    def _order(
        self,
        job: BatchJob,
        start: int,
        place: NDArray[np.int64],
        ids: NDArray[np.int64],
        first: int,
        id: NDArray[np.int64],
        sub: NDArray[np.uint32],
    ) -> int:
        """Orders pairs by row and number, and writes their ids or numbers, each pair once.

        ``place`` is overwritten. Returns the number of pairs.
        """
        rows, total, bits = len(place) - 1, int(place[-1]), job.bits
        size, digits, width = _digits(rows, total, bits, GROUP_PAIRS, DIGIT_MOST)
        # Make room for the largest group
        begin = place[: -1 : 1 << size].copy()
        largest = total if len(begin) == 1 else int(np.diff(begin, append=total).max())
        if len(self._key) < total:
            self._key = np.empty(len(self._sink.sub), np.uint32)
        if len(self._digit[0]) < largest:
            room = largest * 5 // 4
            self._digit = np.empty(room, np.uint32), np.empty(room, np.uint32), self._digit[2]
        # Group the pairs, then order each group
        one, two, places = self._digit
        entry(sink.group_keys)(self._sink, start, size, bits, begin, self._key)
        scratch = one, two, places[: 1 << width]
        ordered = entry(sink.order_groups)
        left: int = ordered(self._key, size, bits, digits, scratch, job.repeats, place, ids, first, id, sub)
        return left

    def read(
        self, version: Version, lenient: bool, rows: pa.RecordBatch, wanted: int, offset: int, best: bool = False
    ) -> BatchJob:
        """Reads a batch that is to be matched with all segments of a version.

        wanted : requested result for each row (``kernels/sink.py``)
        offset : number of the first event, for errors
        best : only the best matches are wanted
        """
        try:
            entries = self._entries(version, lenient, rows)
            if any(self._failed):
                self._check_decided(version, entries, rows.num_rows, offset)
        except EventError as error:
            error.count_from(offset)
            raise
        return self._job(version, entries, rows.num_rows, wanted, best)

    def _check_decided(self, version: Version, entries: layout.Batch, rows: int, offset: int) -> None:
        """Checks that no match depends on a value that fails, or notes those that do.

        Raises EventError: a match depends on one.
        """
        failing = Failing(self._failed, version.attributes, rows)
        versions = bounds(version, failing.attributes)
        if versions is None:
            return
        before = self.counters.copy()
        marked = self._mark_failing(entries, failing, failing.rows)
        least, most = (self._counts(each, marked, len(failing.rows)) for each in versions)
        differs = least != most
        if self.doubts is not None:
            self._check_room(failing, version, int((most - least).sum()), failing.rows[differs][:1])
        if differs.any():
            wanted = failing.rows[differs] if self.doubts is not None else failing.rows[differs.argmax() :][:1]
            marked = self._mark_failing(entries, failing, wanted)
            place, number = self._difference(*versions, marked, len(wanted))
            row = wanted[place]
            if self.doubts is None:
                raise failing.error(int(row[0]), version, int(number[0]))
            reason = lambda i: failing.reason(int(row[i]), version, int(number[i]))  # noqa: E731
            self.doubts.append(Doubts(row + offset, number, reason))
        self.counters[:] = before

    def _check_room(self, failing: Failing, version: Version, more: int, first: NDArray[np.int64]) -> None:
        """Checks that there is room for more doubts.

        first : the first row of theirs

        Raises EventError: there is none.
        """
        assert self.doubts is not None
        if more + sum(len(doubts.row) for doubts in self.doubts) > DOUBTS_MOST:
            raise EventError(
                f"{failing.reason(int(first[0]), version)}; more than {DOUBTS_MOST:,} conditions on elements of a batch depend "
                "on such values: add a guard, as in b <> 0 AND a / b > 1, or match smaller batches",
                event=int(first[0]),
            )

    def _mark_failing(self, entries: layout.Batch, failing: Failing, rows: NDArray[np.int64]) -> layout.Batch:
        """Returns the entries of some rows, and one more for all that fails."""
        return failing.mark_entries(entries, rows)[0]

    def _counts(self, version: Version, entries: layout.Batch, rows: int) -> NDArray[np.int64]:
        """Returns the number of subscriptions that match each row: (rows)."""
        job, counts = self._job(version, entries, rows, sink.COUNTS, False), np.zeros(rows, np.int64)
        for start, stop in self.match_blocks(job):
            is_counted = job.wanted == sink.COUNTS
            counts[start:stop] = job.hits[start:stop] if is_counted else np.diff(self.take_pairs(job, start, stop)[0])
        self.forget_codes()
        return counts

    def _difference(self, lower: Version, upper: Version, entries: layout.Batch, rows: int) -> tuple[layout.I64, ...]:
        """Returns pairs of a row and the number of a subscription that only ``upper`` matches."""
        every: list[layout.I64] = []
        for version in (lower, upper):
            job, pairs = self._job(version, entries, rows, sink.PAIRS, False), [np.empty(0, np.int64)]
            for start, stop in self.match_blocks(job):
                place, number = self.take_pairs(job, start, stop)
                pairs.append((np.repeat(np.arange(start, stop), np.diff(place)) << 32) + number)
            self.forget_codes()
            every.append(np.concatenate(pairs))
        return tuple(np.divmod(np.sort(np.setdiff1d(every[1], every[0], assume_unique=True)), 1 << 32))

    def _job(self, version: Version, entries: layout.Batch, count: int, wanted: int, best: bool) -> BatchJob:
        """Returns the job of matching entries with all segments of a version."""
        size = int(entries.col[-1])
        if self._capacity[0] < count or self._capacity[1] < size:
            self._make_room(count, size)
        if len(self._next) < len(version.attributes):
            self._next = np.empty(len(version.attributes), np.int64)
        parts, repeats, bits = self._plan_of(version)
        self.forget_codes()
        # Repeated pairs can be recognised only in a list of pairs
        wanted = sink.PAIRS if repeats and wanted == sink.COUNTS else wanted
        first, attr, code = self._rows
        events = layout.Rows(first[: count + 1], attr, code)
        bits = bits if repeats or (self.in_order and not best) else 0
        return BatchJob(entries, count, events, parts, np.zeros(count, np.int64), wanted, repeats, bits)

    def _plan_of(self, version: Version) -> Any:
        """Returns the plan for a version, made once while the version stays."""
        known = self._known
        if known is None or known[0]() is not version:
            plan = [self._plan(version)]
            # Drop the plan, and so its segments, when the version is no longer in use
            self._known = known = weakref.ref(version, lambda _: plan.clear()), plan
        return known[1][0]

    def _plan(self, version: Version) -> Any:
        parts: list[SegmentJob] = []
        each = zip(version.segments, version.bases, version.alive, version.stale, strict=True)
        for place, (segment, base, alive, stale) in enumerate(each):
            if alive:
                deleted, scratch = self._deleted_bits(version, stale), self.scratch_of(segment)
                parts.append(SegmentJob(place, segment, base, deleted, scratch, segment.index.arrays))
        repeats = any(self.repeats(part.segment) for part in parts)
        return Plan(parts, repeats, max(len(version.ids) - 1, 1).bit_length())

    def _entries(self, version: Version, lenient: bool, rows: pa.RecordBatch) -> layout.Batch:
        reader, attributes, literals = self._reader, version.attributes, version.literals
        read_for = self._read_for
        if reader is None or attributes is not read_for[0] or literals is not read_for[1] or lenient is not read_for[2]:
            self._reader = reader = Reader(attributes, literals, lenient)
            self._read_for = attributes, literals, lenient
        entries = reader.read(rows, version.reach if reader.has_members else None)
        self._failed = reader.failed
        return entries

    def _deleted_bits(self, version: Version, stale: int) -> layout.U64:
        """Returns the bits of deleted subscriptions that a segment's kernel must leave out."""
        return version.deleted.bits if stale else NO_U64

    def repeats(self, segment: Segment) -> bool:
        """Returns whether the kernel of a segment may write a pair more than once."""
        return segment.repeats

    def upper_ends(self, segment: Segment) -> tuple[layout.U32, Meeting]:
        """Returns the codes of the upper ends of ranges, and the working memory for them."""
        return NO_CODES, NO_MEETING

    def _make_room(self, count: int, size: int) -> None:
        count, size = max(count, self._capacity[0], 1), max(size * 5 // 4, self._capacity[1], 64)
        self._capacity, self._known = (count, size), None
        self._rows = layout.Rows(np.empty(count + 1, np.int64), np.empty(size, np.uint32), np.empty(size, np.uint32))
        self._place = np.empty(size, np.int32)

    def scratch_of(self, segment: Segment) -> Any:
        """Returns the working memory of a segment's kernels."""
        scratch, capacity = self._scratch.get(segment, (None, None))
        if capacity != self._capacity:
            scratch = segment.index.kind.scratch(segment.index.arrays, segment.codes, *self._capacity)
            self._scratch[segment] = scratch, self._capacity
        return scratch

    def _match(self, job: BatchJob, start: int, span: int) -> tuple[int, int]:
        """Matches some rows from ``start`` on with all parts.

        Returns the first row that is left, and an estimate of the number of rows that have room.
        """
        while True:
            limit = min(start + span, job.rows)
            state = self._sink.state
            state[sink.FILL], state[sink.WANTED], state[sink.NEEDED] = 0, job.wanted, 0
            for part in job.parts:
                first = part is job.parts[0]
                stop = self._match_part(job, part, start, limit, first)
                if stop < limit and first and stop > start:
                    limit = stop
                elif stop < limit:  # start again with fewer rows
                    span = stop - start if stop > start else self._estimate_rows(limit - start)
                    self._undo_hits(job, start, limit)
                    break
            else:
                return limit, span

    def code(self, job: BatchJob, part: SegmentJob) -> None:
        """Writes the codes of a part to the events of a job."""
        segment, events = part.segment, job.events
        if self._coded is segment:
            return
        if self._placed != segment.use:
            entry(transpose)(job.entries, segment.used, self._next, events.first, events.attr, self._place)
            self._placed = segment.use
        self._write_codes(job.entries, segment, events)
        self._coded = segment

    def _write_codes(self, entries: layout.Batch, segment: Segment, events: layout.Rows) -> None:
        """Writes to ``events`` a segment's codes for the keys of the entries."""
        codes = segment.codes
        entry(code_rows)(
            entries, codes, segment.hints, segment.used, self._next, events.first, self._place, self._found, events.code
        )
        if len(codes.label):
            entry(to_labels)(codes, *events)

    def forget_codes(self) -> None:
        """Releases the segment that rows were coded for last."""
        self._coded = self._placed = None

    def _call(self, job: BatchJob, part: SegmentJob, row: int, limit: int, into: layout.Sink) -> int:
        """Runs the kernel of a part. Returns the first row that it has not finished."""
        segment = part.segment
        match, arrays, predicates = entry(segment.index.kind.match), part.arrays, segment.predicates
        stop: int = match(arrays, predicates, job.events, row, limit, part.scratch, into, self.counters)
        return stop

    def _match_part(self, job: BatchJob, part: SegmentJob, start: int, limit: int, first: bool) -> int:
        """Matches rows ``start:limit`` with one part. Returns the first row without room.

        first : the sink has the pairs of no other part
        """
        self.code(job, part)
        self._sink.state[sink.BASE] = part.base
        row = start
        while row < limit:
            rows, sub, _, _, state = self._sink
            into = layout.Sink(rows, sub, job.hits, part.deleted_bits, state)
            stop = self._call(job, part, row, limit, into)
            if stop > row:
                row = stop
                if first and stop < limit:
                    return row
                continue
            fill = int(into.state[sink.FILL])
            needed = max(fill + int(into.state[sink.NEEDED]), 2 * len(into.sub))
            if limit - start > 1:
                if needed > LARGE_CAPACITY:
                    return row
                needed += needed // 4  # the next batch may have a few more
            self._sink = _enlarge_sink(into, needed, fill)
        return row

    def _estimate_rows(self, rows: int) -> int:
        """Returns the number of rows to try if there is no room for any of some rows.

        Fewer rows are tried at a time, so that the sink stays bounded.
        """
        needed = max(int(self._sink.state[sink.NEEDED]), 2 * len(self._sink.sub))
        if len(self._sink.sub) < LARGE_CAPACITY:
            self._sink = _enlarge_sink(self._sink, LARGE_CAPACITY, 0)
        return max(min(rows * LARGE_CAPACITY // (2 * needed), rows - 1), 1)

    def _undo_hits(self, job: BatchJob, start: int, limit: int) -> None:
        self.counters[layout.MATCHES] -= job.hits[start:limit].sum()
        job.hits[start:limit] = 0

    def _drain(self, version: Version, job: BatchJob, start: int, stop: int, offset: int, numbers: bool) -> Piece:
        ids = None if numbers or version.ids.numbers is None else version.ids
        names = version.ids if ids is None and not numbers else None
        if job.wanted == sink.PAIRS:
            place, pairs = self.take_pairs(job, start, stop, ids, self.by_row)
            return Piece(start + offset, place, pairs, names, self.memory)
        place = _places(job, start, stop)
        return Piece(start + offset, place, np.empty(0, np.uint32 if ids is None else np.int64), names, self.memory)


def _places(job: BatchJob, start: int, stop: int) -> NDArray[np.int64]:
    """Returns the place of the first pair of each row ``start:stop``, and the end of all."""
    place = np.zeros(stop - start + 1, np.int64)
    np.add.accumulate(job.hits[start:stop], out=place[1:])  # ``np.cumsum`` takes 1 us longer
    return place


@lru_cache(1024)  # small batches have few different sizes
def _digits(rows: int, pairs: int, bits: int, group: int, widest: int) -> tuple[int, int, int]:
    """Returns the sizes for ordering pairs: log2 of a group's rows, digits, and bits of a digit.

    A group fits into the cache next to the processor. A digit has no more values than a group has
    pairs.

    group : approximate number of pairs of a group; widest : most bits of a digit
    """
    size = min(32 - bits, (rows - 1).bit_length(), max(group * rows // max(pairs, 1), 1).bit_length() - 1)
    most = min(max((pairs * (1 << size) // rows).bit_length(), DIGIT_LEAST), widest)
    digits = -(-(bits + size) // most)
    return size, digits, -(-(bits + size) // digits)


def _sink(capacity: int) -> layout.Sink:
    none = np.empty(0, np.int64)
    pairs = np.empty(capacity, np.uint32), np.empty(capacity, np.uint32)
    return layout.Sink(*pairs, none, NO_U64, np.zeros(4, np.int64))


def _enlarge_sink(full: layout.Sink, capacity: int, fill: int) -> layout.Sink:
    """Returns a sink with more room, and the first ``fill`` pairs of the full one."""
    if capacity <= len(full.sub):
        return full
    larger = _sink(capacity)._replace(state=full.state)
    larger.row[:fill], larger.sub[:fill] = full.row[:fill], full.sub[:fill]
    return larger
