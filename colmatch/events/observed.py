"""Some of the events that were matched last: what they say is counted when segments are merged.

Each event is taken with the same probability, 1 / ``EVERY``, and copied, so that nothing of the
caller's memory is held. To copy one event takes nearly as long as to copy many, so most batches are
not looked at, and up to ``PART`` events of the others are taken at once. A batch of 64 events or
fewer is taken whole, or not at all. Of a larger one, which is looked at the more often the larger
it is, 64 at even distances are taken. Only the events of batches above ``EVERY * PART`` are rarer
than others, since each of these batches gives 64. Neighbours come together, so the window says less
of what small batches differ in than as many events drawn one by one.

What there is stands in one tuple, which is replaced in one step: threads need no lock for it. Of
two that take events at once, one may lose what it took.
"""

from __future__ import annotations

import logging
from random import Random

import numpy as np
import pyarrow as pa

from colmatch.events.sample import MOST_BYTES, PART, stream_of
from colmatch.kernels.layout import U8

EVERY = 128  # events, of which one is taken on average
LEAST = 256  # events that a window needs to take the place of an older sample

_log = logging.getLogger("colmatch")


class Observed:
    """The window of a matcher; ``columns`` are those that expressions may use."""

    def __init__(self, columns: list[str]) -> None:
        self._columns = {name.lower() for name in columns}
        # of its own, or what a caller draws would differ with what is matched; in one thread, the
        # same calls take the same events
        self._random = Random(1)
        self._kept: tuple[tuple[pa.RecordBatch, ...], tuple[pa.RecordBatch, ...]] = (), ()  # of PART and more, others

    def __len__(self) -> int:
        return sum(part.num_rows for parts in self._kept for part in parts)

    def note(self, events: pa.RecordBatch, most: int) -> None:
        """Takes some of the events that were matched into the window of ``most``, or none."""
        if most and events.num_rows and self._random.random() * (EVERY * PART) < max(events.num_rows, PART):
            self._take(events, most)

    def _take(self, events: pa.RecordBatch, most: int) -> None:
        wanted = [i for i, name in enumerate(events.schema.names) if name.lower() in self._columns]
        if not wanted:
            return
        events, count = events.select(wanted), events.num_rows
        try:
            if count > PART:
                rows = (np.arange(PART) * count + self._random.randrange(count)) // PART
                taken = events.take(pa.array(rows))
            else:
                taken = pa.concat_batches([events])  # copies a single one, too
        except pa.ArrowException as error:  # of a type that Arrow can hold but not copy
            _log.warning("events are not observed: %s", error)
            return
        whole, few = self._kept
        few = (*few, taken)
        if sum(part.num_rows for part in few) >= PART:
            together = joined(few).combine_chunks().to_batches()
            whole, few = (*whole, *together)[-max(most // PART, 1) :], ()
        self._kept = whole, few

    def sample(self, most: int) -> U8 | None:
        """Returns the last ``most`` events of the window as ``Version.sample`` has them.

        None where there are too few to go by.
        """
        whole, few = self._kept
        if not most or len(self) < min(LEAST, most):
            return None
        events = joined((*whole, *few))
        parts = events.slice(max(events.num_rows - most, 0)).to_batches()
        while len(parts) > 1 and sum(part.nbytes for part in parts) > MOST_BYTES:
            parts = parts[1:]
        kept = stream_of(parts)
        return kept if len(kept) else None


def joined(parts: tuple[pa.RecordBatch, ...]) -> pa.Table:
    """Returns events with one schema: a column that some lack is NULL in these.

    Where a column has several types, only those events count that are as the last one.
    """
    last = parts[-1].schema
    if all(part.schema.equals(last) for part in parts):
        return pa.Table.from_batches(parts)
    try:
        return pa.concat_tables([pa.Table.from_batches([part]) for part in parts], promote_options="default")
    except pa.ArrowException:
        return pa.Table.from_batches([part for part in parts if part.schema.equals(last)])
