"""Batches with ranges as attributes: the arguments of callers, and the matching.

Source: the stabbing subscriptions of Sadoghi and Jacobsen, "Relevance Matters", turned round. There
an event is a point in the ranges of subscriptions; here it is a range that meets them.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous, freeze_view
from colmatch.errors import EventError, OptionError, SchemaError, show_value
from colmatch.events.range_reader import Range, RangeReader, Ranges, used_ranges
from colmatch.given.arguments import text
from colmatch.given.schema import DERIVED, Schema, Shape
from colmatch.kernels import layout
from colmatch.kernels._jit import entry
from colmatch.kernels.meets import MOST_RANGES, Meeting, find_hardest, meet_all
from colmatch.matching.undecided import Failing
from colmatch.matching.worker import BatchJob, SegmentJob, Worker
from colmatch.subscriptions.operators import column_named
from colmatch.updates.segments import Segment
from colmatch.updates.versions import Version

RangeNames = Mapping[str, tuple[str, str]]  # attribute -> columns of its ends


def check_ranges(ranges: object, schema: Schema) -> Ranges:
    """Checks the ranges of a caller, ``{attribute: (column, column)}``, and returns them.

    Raises OptionError: they are no such mapping, or an attribute is unknown, no scalar or there
    twice.
    """
    if ranges is None:
        return ()
    if not isinstance(ranges, Mapping):
        raise OptionError(f"ranges are {{attribute: (lowest, highest)}}, names of columns, not {type(ranges).__name__}")
    by_path: dict[tuple[str, ...], Range] = {}
    for named, ends in ranges.items():
        name = text(named)
        if name is None:
            raise OptionError(f"ranges: the name of an attribute is a string, not {show_value(named)}")
        names = [text(end) for end in ends] if isinstance(ends, tuple | list) and len(ends) == 2 else [None]
        if None in names:
            raise OptionError(
                f"ranges: {show_value(name)} goes from one column to another, two names, not {show_value(ends)}"
            )
        try:
            column = column_named(schema, name)
        except SchemaError as error:
            raise OptionError(f"ranges: {error}") from None
        if column.shape is not Shape.SCALAR:
            raise OptionError(f"ranges: column {column.name!r} is {column.arrow}, only one value can be a range")
        if column.path in by_path:
            raise OptionError(f"ranges: {column.name!r} is there twice")
        by_path[column.path] = Range(column.path, column.arrow, *names)
    return tuple(by_path.values())


class RangeWorker(Worker):
    """A worker for batches with ranges as attributes.

    Attributes
    ----------
    ranges : ranges of the next batch; may change between batches
    """

    is_ranged = True

    def __init__(self, ranges: Ranges) -> None:
        super().__init__()
        self.ranges = ranges
        self._range_reader: RangeReader | None = None
        self._ranges_read: tuple[object, ...] = ()  # arguments of the reader
        self._high_key = np.empty(0, np.int64)  # upper ends in the batch, or in some of its rows
        self._whole_key = self._high_key  # upper ends in all rows, while some rows are checked
        self._high_code = np.empty(0, np.uint32)  # codes of the upper ends, as in ``_rows``
        self._meeting: weakref.WeakKeyDictionary[Segment, Meeting] = weakref.WeakKeyDictionary()
        self._several: weakref.WeakKeyDictionary[Segment, bool] = weakref.WeakKeyDictionary()
        self._checked: weakref.WeakKeyDictionary[Segment, Ranges] = weakref.WeakKeyDictionary()

    def _entries(self, version: Version, lenient: bool, rows: pa.RecordBatch) -> layout.Batch:
        reader, read_for = self._range_reader, (version.attributes, version.literals, lenient, self.ranges)
        previous = self._ranges_read
        if reader is None or previous[2:] != read_for[2:] or any(previous[i] is not read_for[i] for i in range(2)):
            self._range_reader = reader = RangeReader(*read_for)
            self._ranges_read = read_for
        for segment, base, alive in zip(version.segments, version.bases, version.alive, strict=True):
            if alive and self._checked.get(segment) != self.ranges:
                self._check(version, segment, base, reader.is_range)
        entries, self._high_key = reader.read(rows)
        self._failed = reader.failed
        return entries

    def _check_decided(self, version: Version, entries: layout.Batch, rows: int, offset: int) -> None:
        self._whole_key = self._high_key
        super()._check_decided(version, entries, rows, offset)
        self._high_key = self._whole_key

    def _mark_failing(self, entries: layout.Batch, failing: Failing, rows: NDArray[np.int64]) -> layout.Batch:
        batch, source = failing.mark_entries(entries, rows)
        self._high_key = freeze_view(np.where(source < 0, layout.KEY_MAX, self._whole_key[source]))
        return batch

    def _check(self, version: Version, segment: Segment, base: int, is_range: layout.U8) -> None:
        """Checks that the expressions of a segment support the ranges.

        Raises EventError: one has a text pattern on a range, a value computed from it, or too many
        conditions.
        """
        for id, range in used_ranges(version.attributes, self.ranges, patterns=True).items():
            if id < len(segment.used) and segment.used[id]:
                op, operand = version.attributes[id].pattern or ("", "")
                raise EventError(
                    f"{range.name!r} cannot be a range: expressions compare it with a text pattern, {op} "
                    f"{show_value(operand)} for one, and the ends of a range do not tell whether a string between "
                    "them is like it"
                )
        range_paths = {range.path for range in self.ranges}
        for id, attr in enumerate(version.attributes):
            read = range_paths.intersection(attr.paths) if attr.role in DERIVED else ()
            for path in read:
                if id < len(segment.used) and segment.used[id]:
                    raise EventError(f"{'.'.join(path)!r} cannot be a range: {attr.name} needs one value of it")
        attribute = np.zeros(1, np.int64)
        points = np.zeros(len(version.attributes), np.int64)
        hardest = find_hardest(segment.predicates, is_range, version.deleted.bits, base, points, attribute)
        if hardest >= 0:
            id = version.ids.array[base + int(segment.predicates.owner[hardest])].as_py()
            raise EventError(
                f"subscription {show_value(id)} asks too much of the range {version.attributes[int(attribute[0])].name!r}: "
                "it is an AND of many ORs, whose conditions on ranges are met by too many combinations of values; "
                "give fewer attributes as ranges, build with a larger dnf_budget, or write it as an OR of ANDs"
            )
        if not version.narrowed:  # in a narrowed version, not all subscriptions were checked
            self._checked[segment] = self.ranges

    def _deleted_bits(self, version: Version, stale: int) -> layout.U64:
        return version.deleted.bits  # predicates keep subscriptions that an index has removed

    def repeats(self, segment: Segment) -> bool:
        if segment.index.kind.match_ranges is not None:
            return segment.repeats
        several = self._several.get(segment)
        if several is None:
            owner = segment.predicates.owner
            several = self._several[segment] = bool(len(owner)) and bool(np.bincount(owner).max() > 1)
        return several

    def code(self, job: BatchJob, part: SegmentJob) -> None:
        """Writes the codes of a part for both ends."""
        segment, events = part.segment, job.events
        if self._coded is segment:
            return
        super().code(job, part)
        if len(self._high_code) < len(events.code):
            self._high_code = np.empty(len(events.code), np.uint32)
        upper = job.entries._replace(key=self._high_key)
        self._write_codes(upper, segment, events._replace(code=self._high_code))

    def upper_ends(self, segment: Segment) -> tuple[layout.U32, Meeting]:
        meeting = self._meeting.get(segment)
        if meeting is None:
            low, high, seen = np.zeros((3, max(len(segment.codes.multi), 1)), np.uint32)
            meeting = self._meeting[segment] = Meeting(low, high, seen, np.zeros((MOST_RANGES, 3), np.uint32))
        return self._high_code, meeting

    def _call(self, job: BatchJob, part: SegmentJob, row: int, limit: int, into: layout.Sink) -> int:
        segment = part.segment
        upper, meeting = self.upper_ends(segment)
        arguments = segment.predicates, job.events, job.events._replace(code=upper), row, limit
        kernel = segment.index.kind.match_ranges
        stop: int
        if kernel is None:
            stop = entry(meet_all)(contiguous(segment.codes.multi), *arguments, meeting, into, self.counters)
        else:
            stop = entry(kernel)(segment.index.arrays, *arguments, part.scratch, meeting, into, self.counters)
        return stop
