"""A window over the events that were matched last, which is counted when segments are merged.

Each event is taken with the same probability, 1 / ``EVERY``, and copied, so that no memory of the
caller is held. Copying one event takes nearly as long as copying many. So most batches are not
looked at, and up to ``PART`` events of the others are taken at once. A batch of 64 events or fewer
is taken whole, or not at all. A larger batch is looked at the more often the larger it is, and 64
events at even distances are taken. Only the events of batches above ``EVERY * PART`` are rarer than
others, since each of these batches gives 64. Neighbours come together, so the window shows
differences between small batches less well than single events drawn at random.

The window holds ``MOST_BYTES`` at most. So if events take more than 64 KB each, there are never
enough of them, and the sample of the build stays.

The window is one tuple, which is replaced in one step: threads need no lock for it. If two threads
take events at once, one may lose its events.

The paper on BE*-Tree counts matches over a window of events, and takes nodes apart when their rank
has fallen. Here the window is a sample of the events, and ``compact`` and each merge rebuild whole
segments. So one mechanism adjusts every kind that uses a sample. Counters in nodes would be written
by all threads that match, into arrays that must not change. They would say that a node is bad, but
not which attribute would be better. For that, its conjunctions must be placed again, with present
events. Between two merges no single node is taken apart: the growing segment has 512 subscriptions
at most, and other segments never change.

Copying one event of 100 columns takes some 200 us, and copying 64 events hardly more. Dictionaries
and views are made plain, since 64 values would hold all words of their column. If columns have
several types, the type of most events counts. The events that a merge has counted become the sample
of the version, so they are saved. The journal does not record them: after a crash, the sample of
the last save counts until enough events have been observed. A file of pages has no estimates that
could age, so it refuses to observe.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from colmatch.events.sample import MOST_BYTES, PART, stream_of
from colmatch.given.incoming import is_list, plain
from colmatch.kernels.layout import U8

EVERY = 128  # one event in so many is taken on average
LEAST_EVENTS = 256  # events that a window needs to take the place of an older sample
# Types with values that hold all words of the column, or that Arrow cannot take values from.
_HOLDING = {
    type.id
    for type in (
        pa.dictionary(pa.int32(), pa.string()),
        pa.run_end_encoded(pa.int32(), pa.string()),
        pa.string_view(),
        pa.binary_view(),
        pa.list_view(pa.int32()),
        pa.large_list_view(pa.int32()),
    )
}

_log = logging.getLogger("colmatch")


class _SampledBatch(NamedTuple):
    """Events that were taken together."""

    events: pa.RecordBatch
    bytes: int  # that they hold


class _Read(NamedTuple):
    """The columns to take from events of one schema."""

    schema: pa.Schema
    wanted: list[int]  # numbers of columns that expressions may use
    holding: list[int]  # places in ``wanted`` of columns that are made plain first


class EventWindow:
    """The window of a matcher, with the ``columns`` that expressions may use."""

    def __init__(self, columns: list[str]) -> None:
        self._columns = {name.lower() for name in columns}
        # A separate generator, so that matching does not change a caller's draws. In one thread,
        # the same calls take the same events.
        self._random = Random(1)
        self._read = _Read(pa.schema([]), [], [])  # of the last events; replaced as a whole, for threads
        # parts of PART events and more; others
        self._kept: tuple[tuple[_SampledBatch, ...], tuple[_SampledBatch, ...]] = ((), ())

    def __len__(self) -> int:
        return sum(part.events.num_rows for parts in self._kept for part in parts)

    def note(self, events: pa.RecordBatch, most: int) -> None:
        """Takes some of the matched events, or none, into the window of ``most`` events."""
        if most and events.num_rows and self._random.random() * (EVERY * PART) < max(events.num_rows, PART):
            try:
                self._take(events, most)
            except pa.ArrowException as error:  # of a type that Arrow can hold but not copy
                _log.warning("events are not observed: %s", error)

    def _take(self, events: pa.RecordBatch, most: int) -> None:
        taken = self._copy_events(events)
        if taken is None or taken.bytes > MOST_BYTES:
            return
        whole, few = self._kept
        few = (*few, taken)
        if sum(part.events.num_rows for part in few) >= PART:
            together = join_parts([part.events for part in few]).combine_chunks().to_batches()
            whole, few = (*whole, *map(_part, together))[-max(most // PART, 1) :], ()
        held = sum(part.bytes for part in (*whole, *few))
        while held > MOST_BYTES:
            (oldest, *_), (whole, few) = whole or few, (whole[1:], few if whole else few[1:])
            held -= oldest.bytes
        self._kept = whole, few

    def _copy_events(self, events: pa.RecordBatch) -> _SampledBatch | None:
        """Returns a copy of up to ``PART`` events that holds nothing else; None without columns."""
        read, count = self._read, events.num_rows
        if not read.schema.equals(events.schema):
            self._read = read = self._read_of(events.schema)
        if not read.wanted:
            return None
        events = events.select(read.wanted).replace_schema_metadata()
        for i in read.holding:
            events = events.set_column(i, events.schema.names[i], plain(events.column(i)))
        if count > PART:
            rows = (np.arange(PART) * count + self._random.randrange(count)) // PART
            events = events.take(pa.array(rows))
        else:
            events = pa.concat_batches([events])  # copies a single one, too
        for i in read.holding:
            if pa.types.is_dictionary(events.column(i).type):
                events = events.set_column(i, events.schema.names[i], events.column(i).dictionary_decode())
        return _part(events)

    def _read_of(self, schema: pa.Schema) -> _Read:
        numbers = [i for i, name in enumerate(schema.names) if name.lower() in self._columns]
        return _Read(schema, numbers, [place for place, i in enumerate(numbers) if _is_holding(schema.types[i])])

    def sample(self, most: int) -> U8 | None:
        """Returns the last ``most`` events of the window in the form of ``Version.sample``.

        The result is None if there are too few.
        """
        whole, few = self._kept
        if not most or not len(self):
            return None
        events = join_parts([part.events for part in (*whole, *few)])
        parts = events.slice(max(events.num_rows - most, 0)).to_batches()
        # a column of few events may take more than these, now that it is NULL in all others
        while parts and sum(part.nbytes for part in parts) > MOST_BYTES:
            parts = parts[1:]
        if sum(part.num_rows for part in parts) < min(LEAST_EVENTS, most):
            return None
        kept = stream_of(parts)
        return kept if len(kept) else None


def _part(events: pa.RecordBatch) -> _SampledBatch:
    return _SampledBatch(events, events.get_total_buffer_size())


def _is_holding(type: pa.DataType) -> bool:
    while is_list(type):
        type = type.value_type
    return type.id in _HOLDING


def join_parts(parts: Sequence[pa.RecordBatch]) -> pa.Table:
    """Returns events with one schema; a column is NULL in events that lack it.

    If a column has several types, only events of the most frequent schema and of fitting schemas
    count.
    """
    if all(part.schema.equals(parts[0].schema) for part in parts):  # a quick test
        return pa.Table.from_batches(parts)
    rows: Counter[pa.Schema] = Counter()
    for part in reversed(parts):  # among equal counts, the latest comes first
        rows[part.schema] += part.num_rows
    (together, _), *others = rows.most_common()
    fitting = {together}
    for schema, _ in others:
        try:
            together = pa.unify_schemas([together, schema])
        except pa.ArrowException:
            continue
        fitting.add(schema)
    tables = [pa.Table.from_batches([part]) for part in parts if part.schema in fitting]
    return pa.concat_tables(tables, promote_options="default" if len(fitting) > 1 else "none")
