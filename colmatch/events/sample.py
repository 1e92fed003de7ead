"""Events that tell which values are frequent. They are counted whenever an index is built.

The events themselves are kept, not what was counted. Updates bring attributes and literals that
nobody had asked for when the matcher was built, and counts by the values of that time would say
nothing of them.

OpIndex chooses pivots, and Propagation, PSTBloom and PSTHash choose access predicates, by how
frequent attributes and values are estimated to be. Each merge estimates anew. A growing segment of
these kinds is given the sample, too. It is begun anew when it has grown by half, since its first
subscriptions say little about the others. ``compact(sample=...)`` replaces the sample. Such an
update has a record of its own in the journal, which is written before the new index is there.
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
from colmatch.events.vocabulary import Vocabulary
from colmatch.given.incoming import sentence
from colmatch.given.schema import Attributes
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
    """Returns what the events say about which values are frequent.

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
    """Returns what the events say about which keys are frequent, as ``count_values`` does by code.

    A string that no literal is keeps the key that it has now.
    """
    reader = Reader(attributes, literals)
    attr, key, present, rows = [], [], np.zeros(len(attributes), np.int64), 0
    for read, count in _entries(events, reader):
        attr.append(np.repeat(np.arange(len(attributes)), np.diff(read.col)))
        key.append(read.key[: read.col[-1]].copy())
        new = np.append(True, (np.diff(read.row[: read.col[-1]]) != 0) | (np.diff(attr[-1]) != 0))
        present += np.bincount(attr[-1][new[: len(attr[-1])]], minlength=len(attributes))
        rows += count
    every, keys = np.concatenate([np.empty(0, np.int64), *attr]), np.concatenate([np.empty(0, np.int64), *key])
    order = np.lexsort((keys, every))
    every, keys = every[order], keys[order]
    begins = np.flatnonzero(np.append(True, (np.diff(every) != 0) | (np.diff(keys) != 0))[: len(keys)])
    first = np.searchsorted(every[begins], np.arange(len(attributes) + 1))
    return Sample(np.diff(np.append(begins, len(keys))), present, rows, first, keys[begins])


def _entries(events: Iterable[pa.RecordBatch], reader: Reader) -> Iterator[tuple[layout.Batch, int]]:
    """Reads events, batch by batch. Says also how many a batch has; an error names the event."""
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
    """Returns what kept events say by code, or by key where there are no codes; or None.

    An attribute that came later may have a column that does not fit: then they say nothing.
    """
    if not len(kept):
        return None
    try:
        events = pa.ipc.open_stream(pa.py_buffer(kept))
        if codes is None:
            return count_keys(events, attributes, literals)
        return count_values(events, attributes, codes, literals)
    except (EventError, pa.ArrowException) as error:
        _log.warning("the sample of events that the matcher was built with is left out of account: %s", error)
        return None


def checked_sample(kept: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Returns kept events that come from elsewhere, checked.

    Raises UnsoundError: they are none, or kernels would be led out of their arrays.
    """
    try:
        for batch in pa.ipc.open_stream(pa.py_buffer(kept)) if len(kept) else ():
            batch.validate(full=True)
    except (pa.ArrowException, OSError) as error:  # of what ends too soon, Arrow says OSError
        raise UnsoundError(f"the sample of events: {sentence(error)}") from error
    return kept


def kept_events(
    events: object, size: int, columns: list[str], attributes: Attributes, literals: Vocabulary, lenient: bool
) -> NDArray[np.uint8]:
    """Those of a sample's events that are kept, all of which fit the attributes.

    size, columns : as for a ``SampleKeeper``; ``lenient`` as for a Reader

    Raises EventError: an event does not fit.
    """
    keeper, reader = SampleKeeper(events, size, columns), Reader(attributes, literals, lenient)
    for _ in _entries(keeper, reader):
        pass
    return keeper.kept()


class SampleKeeper:
    """Hands on a sample's events as record batches, and keeps some of them, evenly spread.

    ``columns`` are those that expressions may use; no others are kept.
    """

    def __init__(self, events: object, size: int, columns: list[str]) -> None:
        self._batches = batches(events, size)
        self._columns = {name.lower() for name in columns}
        self._parts: list[pa.RecordBatch] = []
        self._every = 1
        self._seen = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            yield batch
            wanted = [i for i, name in enumerate(batch.schema.names) if name.lower() in self._columns]
            if not wanted:
                continue
            for start in range(0, batch.num_rows, PART):
                if self._seen % self._every == 0:
                    self._parts.append(batch.slice(start, PART).select(wanted))
                    self._thin()
                self._seen += 1

    def _thin(self) -> None:
        while len(self._parts) * PART > MOST_EVENTS:
            self._parts = self._parts[::2]
            self._every *= 2

    def kept(self) -> NDArray[np.uint8]:
        """Returns the events that were kept, as an Arrow stream.

        It is a copy: none of the caller's memory is held.
        """
        parts = self._parts
        while len(parts) > 1 and sum(part.nbytes for part in parts) > MOST_BYTES:
            parts = parts[::2]
        return stream_of(parts)


def stream_of(parts: list[pa.RecordBatch]) -> NDArray[np.uint8]:
    """Returns events of one schema as an Arrow stream, empty where they are too large for it."""
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
