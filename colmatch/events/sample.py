"""Events that show which values are frequent. They are counted whenever an index is built.

The sample keeps events, not counts. Updates bring attributes and literals that were unknown when
the matcher was built, and earlier counts would say nothing of them.

OpIndex chooses pivots by the estimated frequencies of attributes and values. Propagation, PSTBloom
and PSTHash choose access predicates by them. Each merge estimates them again. A growing segment of
these kinds gets the sample, too. It is built again when it has grown by half, since its first
subscriptions say little about the others. ``compact(sample=...)`` replaces the sample. Such an
update has a separate record in the journal, which is written before the new index is there.
Replaying the journal gives the new events at once, and the index at the next merge.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous, freeze
from colmatch.arrays.hints import hints_of
from colmatch.errors import EventError
from colmatch.events.gather import batches
from colmatch.events.reader import Reader
from colmatch.events.rows import events_of
from colmatch.events.vocabulary import Vocabulary
from colmatch.given.incoming import sentence
from colmatch.given.schema import Attributes, Schema
from colmatch.kernels import layout
from colmatch.kernels.transpose import count_codes
from colmatch.kinds.sound import UnsoundError
from colmatch.kinds.statistics import Sample

PART = 64  # events that are kept or left out together
MOST_EVENTS = 4096  # events that are kept
MOST_BYTES = 1 << 24  # bytes that are kept
NOTHING: NDArray[np.uint8] = contiguous(np.empty(0, np.uint8))

_log = logging.getLogger("colmatch")


def count_values(
    events: Iterator[pa.RecordBatch],
    attributes: Attributes,
    codes: layout.Codes,
    literals: Vocabulary,
    lenient: bool = True,
) -> Sample:
    """Counts how frequent each value is in the events.

    Codes and literals are frozen; ``lenient`` as for a Reader.
    """
    reader, hints = Reader(attributes, literals, lenient), freeze(hints_of(codes.first, codes.bound))
    hits, present = np.zeros(len(codes.bound) + len(codes.multi), np.int64), np.zeros(len(codes.multi), np.int64)
    rows = 0
    for entries, count in _entries(events, reader):
        count_codes(entries, codes, hints, hits, present)
        rows += count
    return Sample(hits, present, rows)


def count_keys(events: Iterator[pa.RecordBatch], attributes: Attributes, literals: Vocabulary) -> Sample:
    """Counts how frequent each key is in the events, as ``count_values`` does by code.

    A string that is no literal keeps its present key.
    """
    # Read attribute and key of all entries
    reader = Reader(attributes, literals)
    attr, key, present, rows = [], [], np.zeros(len(attributes), np.int64), 0
    for read, count in _entries(events, reader):
        attr.append(np.repeat(np.arange(len(attributes)), np.diff(read.col)))
        key.append(read.key[: read.col[-1]].copy())
        new = np.append(True, (np.diff(read.row[: read.col[-1]]) != 0) | (np.diff(attr[-1]) != 0))
        present += np.bincount(attr[-1][new[: len(attr[-1])]], minlength=len(attributes))
        rows += count
    # Sort the keys of each attribute
    every, keys = np.concatenate([np.empty(0, np.int64), *attr]), np.concatenate([np.empty(0, np.int64), *key])
    order = np.lexsort((keys, every))
    every, keys = every[order], keys[order]
    # Count equal keys
    begins = np.flatnonzero(np.append(True, (np.diff(every) != 0) | (np.diff(keys) != 0))[: len(keys)])
    first = np.searchsorted(every[begins], np.arange(len(attributes) + 1))
    return Sample(np.diff(np.append(begins, len(keys))), present, rows, first, keys[begins])


def _entries(events: Iterable[pa.RecordBatch], reader: Reader) -> Iterator[tuple[layout.Batch, int]]:
    """Yields the entries and the number of events of each batch; an error names the event."""
    before = 0
    for batch in events:
        try:
            entries = reader.read(batch)
        except EventError as error:
            error.count_from(before)
            raise
        yield entries, batch.num_rows
        before += batch.num_rows


def recount_values(
    kept: NDArray[np.uint8], attributes: Attributes, codes: layout.Codes | None, literals: Vocabulary
) -> Sample | None:
    """Counts kept events by code, or by key without codes. Returns None without events.

    The result is also None if the column of a later attribute does not fit.
    """
    if not len(kept):
        return None
    try:
        events = pa.ipc.open_stream(pa.py_buffer(kept))
        if codes is None:
            return count_keys(events, attributes, literals)
        return count_values(events, attributes, codes, literals)
    except (EventError, pa.ArrowException) as error:
        _log.warning("the sample of events that the matcher was built with is ignored: %s", error)
        return None


def check_sample(kept: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Checks kept events that come from elsewhere, and returns them.

    Raises UnsoundError: the data are no events, or kernels would be led out of their arrays.
    """
    try:
        for batch in pa.ipc.open_stream(pa.py_buffer(kept)) if len(kept) else ():
            batch.validate(full=True)
    except (pa.ArrowException, OSError) as error:  # OSError if the stream ends too soon
        raise UnsoundError(f"the sample of events: {sentence(error)}") from error
    return kept


def keep_events(
    events: object, size: int, schema: Schema, attributes: Attributes, literals: Vocabulary, lenient: bool
) -> NDArray[np.uint8]:
    """Returns the kept events of a sample. All its events must fit the attributes.

    size, schema : as for a ``SampleKeeper``
    lenient : as for a Reader

    Raises EventError: an event does not fit.
    """
    keeper, reader = SampleKeeper(events, size, schema), Reader(attributes, literals, lenient)
    for _ in _entries(keeper, reader):
        pass
    return keeper.kept()


class SampleKeeper:
    """An iterator over a sample's events in record batches; it keeps some events, evenly spread.

    ``schema`` has the columns that expressions may use; no others are kept.
    """

    def __init__(self, events: object, size: int, schema: Schema) -> None:
        self._batches = batches(events_of(events, schema), size)
        self._columns = {name.lower() for name in schema.arrow.names}
        self._parts: list[pa.RecordBatch] = []
        self._every = 1
        self._seen = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            yield batch
            numbers = [i for i, name in enumerate(batch.schema.names) if name.lower() in self._columns]
            if not numbers:
                continue
            for start in range(0, batch.num_rows, PART):
                if self._seen % self._every == 0:
                    self._parts.append(batch.slice(start, PART).select(numbers))
                    self._thin()
                self._seen += 1

    def _thin(self) -> None:
        while len(self._parts) * PART > MOST_EVENTS:
            self._parts = self._parts[::2]
            self._every *= 2

    def kept(self) -> NDArray[np.uint8]:
        """Returns the kept events as an Arrow stream.

        It is a copy: no memory of the caller is held.
        """
        parts = self._parts
        while len(parts) > 1 and sum(part.nbytes for part in parts) > MOST_BYTES:
            parts = parts[::2]
        return stream_of(parts)


def stream_of(parts: list[pa.RecordBatch]) -> NDArray[np.uint8]:
    """Returns events of one schema as an Arrow stream, empty if too large or not writable."""
    if not parts or parts[0].nbytes > MOST_BYTES:
        return NOTHING
    out = pa.BufferOutputStream()
    try:
        with pa.ipc.new_stream(out, parts[0].schema) as stream:
            for part in parts:
                stream.write_batch(part)
    except pa.ArrowException as error:  # a type that Arrow can hold but not write
        _log.warning("the sample of events cannot be kept for later, only used now: %s", error)
        return NOTHING
    return contiguous(np.frombuffer(out.getvalue(), np.uint8))
