"""Matches of some rows of a batch, and the forms that callers get."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.ranges import ranges_of
from colmatch.arrays.recycled import RecycledArrays
from colmatch.arrays.shared import shared
from colmatch.errors import SubscriptionError
from colmatch.events.reader import texts_of
from colmatch.events.required import Lacks, lacks_table
from colmatch.kernels import sink
from colmatch.kernels._jit import entry
from colmatch.matching.kept import bytes_of, convert_column
from colmatch.subscriptions.ids import Ids

BYTES_MOST = 64 << 20  # bytes of a batch of results with kept columns
IDS_MOST = 1 << 30  # bytes of ids in a batch without kept columns: Arrow's strings have 2 GB at most


class Piece(NamedTuple):
    """Matches of some consecutive rows of a batch, ordered by row."""

    first: int  # number of the first row within the whole input
    place: NDArray[np.int64]  # (rows + 1) row -> its pairs
    id: NDArray[Any]  # (pairs) int64 ids, or uint32 numbers of subscriptions where ids are strings
    names: Ids | None  # the ids by number, where they are strings
    memory: RecycledArrays
    score: NDArray[np.float64] | None = None  # (pairs) scores, only of the best matches
    lacks: Lacks | None = None  # lacking rows of the batch, only in its first piece
    beside: tuple[pa.Array, ...] = ()  # (rows) kept columns

    def pairs(self, schema: pa.Schema) -> pa.RecordBatch:
        """Returns the event number and the id of each pair, under the names of ``schema``.

        Scores, if there are any, and kept columns follow.
        """
        event = self.memory.array(len(self.id), np.int64)
        entry(sink.number_events)(self.place, self.first, event)
        columns = [shared(event), self.ids(schema.field(1).type)]
        if self.score is not None:
            columns.append(pa.array(self.score))
        if self.beside:
            rows = pa.array(event - self.first)
            columns += [column.take(rows) for column in self.beside]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    @property
    def is_small(self) -> bool:
        """Returns whether the ids of all pairs have a bounded size."""
        count, names = len(self.id), self.names
        if names is None or count * names.array.get_total_buffer_size() <= IDS_MOST:
            return True
        return count * names.longest <= IDS_MOST

    def parts(self, rows: pa.RecordBatch, keep: tuple[pa.Field, ...], whole_rows: bool) -> Iterator[Piece]:
        """Yields parts of bounded size, with the kept columns.

        Each pair repeats the kept values of its event, and its id if ids are strings.

        rows : rows of the piece
        keep : fields of the kept columns
        whole_rows : keep all pairs of a row in one part
        """
        columns = [convert_column(rows.column(field.name), field.type) for field in keep]
        size = self._sizes(columns)
        most = BYTES_MOST if keep else IDS_MOST
        if int(size.sum()) <= most:
            yield self._replace(beside=tuple(columns))
            return
        # Cut between pairs, or between rows
        before = ranges_of(size)  # bytes of the pairs before each one
        cut = _cut(before[self.place] if whole_rows else before, most)
        for start, stop in pairwise(cut):
            # Find the rows ``low:high`` of the pairs ``start:stop``
            if whole_rows:
                low, high, start, stop = start, stop, int(self.place[start]), int(self.place[stop])
            else:
                low = max(int(np.searchsorted(self.place, start, "right")) - 1, 0) if start else 0
                high = int(np.searchsorted(self.place, stop, "left")) if stop < len(size) else rows.num_rows
            yield self._replace(
                first=self.first + low,
                place=np.clip(self.place[low : high + 1], start, stop) - start,
                id=self.id[start:stop],
                score=None if self.score is None else self.score[start:stop],
                lacks=None if low else self.lacks,
                beside=tuple(column.slice(low, high - low) for column in columns),
            )

    def _sizes(self, columns: list[pa.Array]) -> NDArray[np.int64]:
        """Returns the bytes of each pair: of its id and of its event's kept values."""
        size = np.full(len(self.id), 8, np.int64)
        if self.names is not None and len(self.id):
            offset, _ = texts_of(self.names.array)
            size = offset[self.id + 1].astype(np.int64) - offset[self.id]
        for column in columns:
            size += np.repeat(bytes_of(column), np.diff(self.place))
        return size

    def pairs_and_lacks(self, schema: pa.Schema) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Returns the pairs, and the events that lack a required column."""
        return self.pairs(schema), lacks_table(self.lacks, self.first)

    def lists(self, type: pa.DataType) -> pa.ListArray:
        """Returns the ids that match each row, one list a row, with ids of type ``type``."""
        # A list array has no more. Several rows have fewer (``LARGE_CAPACITY``), as has any matcher
        assert len(self.id) < 1 << 31
        places = [None, pa.py_buffer(self.place.astype(np.int32))]
        return pa.Array.from_buffers(pa.list_(type), len(self.place) - 1, places, children=[self.ids(type)])

    def counts(self) -> NDArray[np.int64]:
        """Returns the number of subscriptions that match each row: (rows)."""
        return self.place[1:] - self.place[:-1]

    def without(self, lacks: Lacks | None, offset: int) -> Piece:
        """Returns the piece without the pairs of rows that lack a required column.

        offset : number of the first row of the batch. The first piece of a batch keeps ``lacks``
        """
        if lacks is None:
            return self
        counts, start = np.diff(self.place), self.first - offset
        dropped = lacks.row[start : start + len(counts)]
        left = np.repeat(~dropped, counts)
        place = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(np.where(dropped, 0, counts), out=place[1:])
        return self._replace(
            place=place,
            id=self.id[left] if len(self.id) else self.id,  # there are no pairs if only counts are wanted
            score=None if self.score is None else self.score[left],
            lacks=None if start else lacks,
        )

    def ids(self, type: pa.DataType) -> pa.Array:
        """Returns the id of each pair, with the type ``type``.

        Raises SubscriptionError: the ids have another type.
        """
        ids = shared(self.id) if self.names is None else self.names.take(self.id)
        if ids.type == type:
            return ids
        if not len(ids):
            return ids.cast(type)
        raise SubscriptionError(
            f"the matcher was empty when matching began, with {type} ids, and got {ids.type} ids since: match again"
        )


def _cut(before: NDArray[np.int64], most: int) -> list[int]:
    """Returns the boundaries of parts with at most ``most`` bytes, or with one pair or row each.

    before : bytes before each pair or row, and of all
    """
    cut = [0]
    while cut[-1] < len(before) - 1:
        last = int(np.searchsorted(before, before[cut[-1]] + most, "right")) - 1
        cut.append(max(last, cut[-1] + 1))
    return cut
