"""The matcher: subscriptions in, and for batches of events, who matches."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch import plan, saved
from colmatch.batch import Reader, batches
from colmatch.errors import OptionError
from colmatch.explain import Explanation, explain
from colmatch.index import KINDS, Built, find, freeze
from colmatch.kernels import layout, rows, sink
from colmatch.options import Options
from colmatch.schema import Attributes, Schema
from colmatch.stats import Statistics
from colmatch.subscriptions import Errors, Rejected, read

FIRST_CAPACITY = 1 << 16  # pairs that a sink holds at first
LARGE_CAPACITY = 1 << 22  # pairs beyond which it grows for a single row only

__all__ = ["Matcher", "Rejected", "kinds"]


def kinds() -> list[str]:
    """Names of the index kinds."""
    return list(KINDS)


class Piece(NamedTuple):
    """Matches of some consecutive rows of a batch, ordered by row."""

    start: int  # first row, within the batch
    stop: int
    place: NDArray[np.int64]  # (stop - start + 1) row -> its pairs
    event: NDArray[np.int64]  # (pairs) number of the event within the whole input
    sub: NDArray[np.uint32]  # (pairs)


class Matcher:
    """A set of subscriptions, indexed. Made by ``Matcher.build`` or ``Matcher.open``.

    A matcher does not change and may be used by several threads at once; each gets working memory of its own.

    Attributes
    ----------
    schema : the events' columns
    options : how it was built
    ids : int64 or string array, the id of each subscription; results are ordered as these are
    rejected : subscriptions left out with ``errors="collect"``
    """

    def __init__(self, parts: saved.Parts) -> None:
        self.schema = parts.schema
        self.options = parts.options
        self.ids = parts.ids
        self.rejected = parts.rejected
        self.plan = parts.plan
        self._attributes = parts.attributes
        self._predicates = freeze(parts.predicates)
        self._codes = freeze(parts.codes)
        self._literals = freeze(parts.literals)
        self._index = Built(parts.index.kind, freeze(parts.index.arrays))
        self._numbers = self.ids.to_numpy() if pa.types.is_int64(self.ids.type) else None
        self._idle: list[Worker] = []

    # Making

    @classmethod
    def build(
        cls, subscriptions: Any, schema: Any, index: str = "auto", options: Options | None = None, errors: Errors = "raise"
    ) -> Matcher:
        """Index subscriptions for events of a schema.

        Parameters
        ----------
        subscriptions : ``{id: text}``, an iterable of ``(id, text or expression)``, an Arrow table with columns ``id`` and ``expression``
            (any object with the Arrow C stream or array protocol), or a ``PredicateTable``. Ids are int64 or strings, and unique
        schema : ``pyarrow.Schema``, ``{name: type}`` or ``Schema``
        index : kind of index, or ``"auto"``
        errors : ``"raise"`` the first error, or ``"collect"``: leave bad expressions out and list them in ``rejected``

        Raises
        ------
        ExpressionError : an expression cannot be understood; says which, where and why
        SubscriptionError, SchemaError, OptionError : the arguments cannot be used
        """
        if errors not in ("raise", "collect"):
            raise OptionError(f"errors={errors!r}: 'raise' or 'collect' is needed")
        options = options or Options()
        columns = schema if isinstance(schema, Schema) else Schema(schema)
        if index != "auto":
            find(index)
        lowered, attributes, ids, rejected = read(subscriptions, columns, options, errors)
        predicates, codes = freeze(lowered.predicates), freeze(lowered.codes)
        chosen = plan.choose(index, Statistics.of(len(ids), predicates, codes))
        kind = find(chosen.kind)
        built = Built(kind, kind.build(predicates, codes))
        return cls(saved.Parts(columns, options, ids, rejected, chosen, attributes, predicates, codes, lowered.literals, built))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the matcher to one file, atomically: readers of an older file under that name are not disturbed."""
        saved.write(path, self._parts())

    @classmethod
    def open(cls, path: str | os.PathLike[str], mmap: bool = True, verify: bool = True) -> Matcher:
        """A matcher from a file.

        Parameters
        ----------
        mmap : map the arrays instead of reading them, so that processes share one copy
        verify : check all checksums, which reads the file once

        Raises
        ------
        StoreError : the file is damaged, truncated, foreign, or of another format version
        """
        return cls(saved.read(path, mmap, verify))

    def _parts(self) -> saved.Parts:
        return saved.Parts(
            self.schema, self.options, self.ids, self.rejected, self.plan, self._attributes, self._predicates, self._codes, self._literals,
            self._index,
        )  # fmt: skip

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (saved.dumps(self._parts()),)

    # Asking

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Matcher({len(self):,} subscriptions, {len(self._attributes)} attributes, index={self.kind!r})"

    @property
    def kind(self) -> str:
        """Name of the index kind."""
        return self._index.kind.name

    @property
    def columns(self) -> list[str]:
        """Top-level columns that the expressions use; all others may be left out of the events."""
        return list(dict.fromkeys(attribute.path[0] for attribute in self._attributes if attribute.path))

    def match(self, events: Any) -> pa.Table:
        """Which subscriptions are true for which events.

        Parameters
        ----------
        events : anything with ``__arrow_c_stream__`` or ``__arrow_c_array__``. A column of the schema that is missing is all NULL

        Returns
        -------
        table (event: int64 number of the row, subscription: type of the ids), ordered by event, then as ``ids`` is

        Raises
        ------
        EventError : a column does not fit the schema
        """
        return pa.Table.from_batches(self.match_batches(events), self._result_schema)

    def match_batches(self, events: Any) -> Iterator[pa.RecordBatch]:
        """``match``, piece by piece as results come; memory does not follow the size of the input."""
        for _, piece in self._pieces(events, wanted=True):
            yield pa.record_batch([pa.array(piece.event), self._ids_of(piece.sub)], schema=self._result_schema)

    def match_lists(self, events: Any) -> pa.ChunkedArray:
        """The ids that match each event: list<id> array, one list a row, in row order."""
        lists = [
            pa.ListArray.from_arrays(pa.array(piece.place, pa.int32()), self._ids_of(piece.sub))
            for _, piece in self._pieces(events, wanted=True)
        ]
        return pa.chunked_array(lists, pa.list_(self.ids.type))

    def count(self, events: Any) -> NDArray[np.int64]:
        """Number of subscriptions that match each event: (rows) int64."""
        counts = [np.diff(piece.place) for _, piece in self._pieces(events, wanted=False)]
        return np.concatenate(counts) if counts else np.empty(0, np.int64)

    def explain(self, event: Any, id: int | str) -> Explanation:
        """Why a subscription is true, or not, for one event.

        Parameters
        ----------
        event : a mapping from column to value, or anything Arrow-capable with one row
        id : of the subscription

        Raises
        ------
        SubscriptionError : there is no such subscription; EventError : not one row, or it does not fit the schema
        """
        return explain(self._parts(), event, id)

    def stats(self) -> dict[str, Any]:
        """Sizes, bytes of each array, the plan and its reason."""
        parts = {"predicates": self._predicates, "codes": self._codes, "literals": self._literals, "index": self._index.arrays}
        shared = {id(array.base if array.base is not None else array) for array in self._codes}
        sizes = {}
        for part, arrays in parts.items():
            for name, array in zip(arrays._fields, arrays, strict=True):
                again = part == "index" and id(array.base if array.base is not None else array) in shared
                sizes[f"{part}.{name}"] = 0 if again else int(array.nbytes)
        sizes["ids"] = self.ids.nbytes
        total = sum(sizes.values())
        return {
            **Statistics.of(len(self), self._predicates, self._codes)._asdict(),
            "rejected": len(self.rejected),
            "index": self.kind,
            "reason": self.plan.reason,
            "bytes": total,
            "bytes_per_subscription": total / max(len(self), 1),
            "arrays": sizes,
        }

    # Running

    @property
    def _result_schema(self) -> pa.Schema:
        return pa.schema([("event", pa.int64()), ("subscription", self.ids.type)])

    def _ids_of(self, sub: NDArray[np.uint32]) -> pa.Array:
        return pa.array(self._numbers[sub]) if self._numbers is not None else self.ids.take(pa.array(sub))

    def _pieces(self, events: Any, wanted: bool) -> Iterator[tuple[pa.RecordBatch, Piece]]:
        worker = self._idle.pop() if self._idle else Worker(self._attributes, self._predicates, self._codes, self._literals, self._index)
        offset = 0
        for batch in batches(events, self.options.batch_rows, self.columns):
            for piece in worker.run(batch, wanted, offset):
                yield batch, piece
            offset += batch.num_rows
        self._idle.append(worker)  # not after an error, nor when the caller stops early: what it holds may be half done

    def counters(self, events: Any) -> dict[str, int]:
        """The matching cost of the source documents: what the kernels looked at for these events, the same on every machine."""
        worker = Worker(self._attributes, self._predicates, self._codes, self._literals, self._index)
        for batch in batches(events, self.options.batch_rows, self.columns):
            for _ in worker.run(batch, False, 0):
                pass
        names = {"conjunctions": layout.CONJUNCTIONS, "candidates": layout.CANDIDATES, "predicates": layout.PREDICATES,
                 "nodes": layout.NODES, "matches": layout.MATCHES}  # fmt: skip
        return {name: int(worker.counters[place]) for name, place in names.items()}


class Worker:
    """Working memory for one thread: reads batches, runs the kernel, drains its sink."""

    def __init__(
        self, attributes: Attributes, predicates: layout.Predicates, codes: layout.Codes, literals: layout.Literals, index: Built
    ) -> None:
        self.reader = Reader(attributes, literals)
        self.predicates = predicates
        self.codes = codes
        self.index = index
        self.scratch = index.kind.scratch(index.arrays, codes)
        self.counters = np.zeros(layout.N_COUNTERS, np.int64)
        self.rows = layout.Rows(np.empty(1, np.int64), np.empty(0, np.uint32), np.empty(0, np.uint32))
        self.sink = _sink(FIRST_CAPACITY, 0)

    def run(self, batch: pa.RecordBatch, wanted: bool, offset: int) -> Iterator[Piece]:
        """Matches of one batch, in pieces that the sink can hold."""
        count = batch.num_rows
        entries = self.reader.read(batch)
        if len(self.rows.attr) < entries.col[-1] or len(self.rows.first) <= count:
            size = max(int(entries.col[-1]) * 5 // 4, 64)
            self.rows = layout.Rows(np.empty(count + 1, np.int64), np.empty(size, np.uint32), np.empty(size, np.uint32))
        events = self.rows._replace(first=self.rows.first[: count + 1])
        rows.transpose(entries, self.codes, *events)
        hits = np.zeros(count, np.int64)
        self.sink = self.sink._replace(hits=hits)
        self.sink.state[:] = 0, wanted
        start, span = 0, count
        while start < count:
            limit = min(start + span, count)
            stop = self.index.kind.match(self.index.arrays, self.predicates, events, start, limit, self.scratch, self.sink, self.counters)
            if stop > start:
                yield self._drain(start, stop, offset)
                start = stop
            elif span > 1 and len(self.sink.sub) >= LARGE_CAPACITY:
                span = (limit - start + 1) // 2  # fewer rows at a time, rather than a sink without bounds
            else:
                self.sink = _sink(2 * len(self.sink.sub), wanted)._replace(hits=hits)

    def _drain(self, start: int, stop: int, offset: int) -> Piece:
        pairs = int(self.sink.state[sink.FILL])
        place = np.zeros(stop - start + 1, np.int64)
        np.cumsum(self.sink.hits[start:stop], out=place[1:])
        event, sub = np.empty(pairs, np.int64), np.empty(pairs, np.uint32)
        if pairs:
            sink.order_by_row(self.sink, start, offset, place[:-1].copy(), event, sub)
        self.sink.state[sink.FILL] = 0
        return Piece(start, stop, place, event, sub)


def _sink(capacity: int, wanted: bool | int) -> layout.Sink:
    state = np.array([0, wanted], np.int64)
    return layout.Sink(np.empty(capacity, np.int32), np.empty(capacity, np.uint32), np.empty(0, np.int64), state)


def _unpickle(data: bytes) -> Matcher:
    return Matcher(saved.loads(data))
