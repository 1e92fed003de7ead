"""The matcher: subscriptions in, and for batches of events, who matches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch import plan, running, saved
from colmatch.batch import batches
from colmatch.errors import OptionError
from colmatch.explain import Explanation, explain
from colmatch.growth import spaced
from colmatch.index import KINDS, Built, find, freeze
from colmatch.kernels import layout
from colmatch.options import Options
from colmatch.running import Piece, Result, Worker
from colmatch.schema import Schema
from colmatch.stats import Statistics
from colmatch.subscriptions import Errors, Rejected, read

__all__ = ["Matcher", "Rejected", "kinds"]


def kinds() -> list[str]:
    """Names of the index kinds."""
    return list(KINDS)


class Matcher:
    """A set of subscriptions, indexed. Made by ``Matcher.build`` or ``Matcher.open``.

    A matcher does not change and may be used by several threads at once; each gets working memory of its own.

    Attributes
    ----------
    schema : the events' columns
    options : how it was built
    ids : int64 or string array, the id of each subscription
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
        self._numbers = _frozen(self.ids.to_numpy()) if pa.types.is_int64(self.ids.type) else None
        self._columns = list(dict.fromkeys(attribute.path[0] for attribute in parts.attributes if attribute.path))
        self._result_schema = pa.schema([("event", pa.int64()), ("subscription", self.ids.type)])
        self._idle: list[Worker] = []

    # Making

    @classmethod
    def build(
        cls,
        subscriptions: Any,
        schema: Any,
        index: str = "auto",
        options: Options | None = None,
        errors: Errors = "raise",
        sample: Any = None,
    ) -> Matcher:
        """Index subscriptions for events of a schema.

        Parameters
        ----------
        subscriptions : ``{id: text}``, an iterable of ``(id, text or expression)``, an Arrow table with columns ``id`` and ``expression``
            (any object with the Arrow C stream or array protocol), or a ``PredicateTable``. Ids are int64 or strings, and unique
        schema : ``pyarrow.Schema``, ``{name: type}`` or ``Schema``
        index : kind of index, or ``"auto"``
        sample : some events, as ``match`` takes them, that are like those to come: they tell which values are frequent. A few thousand
            are enough
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
        seen = None if sample is None else running.sample(batches(sample, options.batch_rows), attributes, codes, freeze(lowered.literals))
        literals = lowered.literals
        if kind.insert is not None:
            predicates, codes, literals = spaced(lowered.predicates, codes, literals)
        arrays, predicates = kind.build(predicates, codes, seen, options)
        built = Built(kind, arrays)
        return cls(saved.Parts(columns, options, ids, rejected, chosen, attributes, predicates, codes, literals, built))

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
        return list(self._columns)

    def match(self, events: Any) -> pa.Table:
        """Which subscriptions are true for which events.

        Parameters
        ----------
        events : anything with ``__arrow_c_stream__`` or ``__arrow_c_array__``. A column of the schema that is missing is all NULL

        Returns
        -------
        table (event: int64 number of the row, subscription: type of the ids), ordered by event. The subscriptions of one event are in no
        particular order, but for the same matcher and events in the same

        Raises
        ------
        EventError : a column does not fit the schema
        """
        return pa.Table.from_batches(self.match_batches(events), self._result_schema)

    def match_batches(self, events: Any) -> Iterator[pa.RecordBatch]:
        """``match``, piece by piece as results come; memory does not follow the size of the input."""

        def batch(piece: Piece) -> pa.RecordBatch:
            return pa.RecordBatch.from_arrays([pa.array(piece.events()), self._ids_of(piece)], schema=self._result_schema)

        return self._run(events, True, batch)

    def match_lists(self, events: Any) -> pa.ChunkedArray:
        """The ids that match each event: list<id> array, one list a row, in row order. Ids within a list are in no particular order."""
        lists = self._run(events, True, lambda piece: pa.ListArray.from_arrays(pa.array(piece.place, pa.int32()), self._ids_of(piece)))
        return pa.chunked_array(list(lists), pa.list_(self.ids.type))

    def count(self, events: Any) -> NDArray[np.int64]:
        """Number of subscriptions that match each event: (rows) int64."""
        counts = list(self._run(events, False, lambda piece: np.diff(piece.place)))
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

    def _ids_of(self, piece: Piece) -> pa.Array:
        return pa.array(piece.id) if self._numbers is not None else self.ids.take(pa.array(piece.id))

    def _run(self, events: Any, wanted: bool, finish: Callable[[Piece], Result]) -> Iterator[Result]:
        def task(batch: pa.RecordBatch, offset: int) -> Iterator[Result]:
            try:
                worker = self._idle.pop()
            except IndexError:  # asking first would not do: another thread may be quicker
                worker = self._worker()
            for piece in worker.run(batch, wanted, offset):
                yield finish(piece)
            self._idle.append(worker)  # not after an error, nor when the caller stops early: what it holds may be half done

        return running.in_order(batches(events, self.options.batch_rows, self._columns), running.cores(self.options.threads), task)

    def _worker(self) -> Worker:
        return Worker(self._attributes, self._predicates, self._codes, self._literals, self._index, self._numbers)

    def counters(self, events: Any) -> dict[str, int]:
        """The matching cost of the source documents: what the kernels looked at for these events, the same on every machine."""
        worker = self._worker()
        for batch in batches(events, self.options.batch_rows, self._columns):
            for _ in worker.run(batch, False, 0):
                pass
        names = {"conjunctions": layout.CONJUNCTIONS, "candidates": layout.CANDIDATES, "predicates": layout.PREDICATES,
                 "nodes": layout.NODES, "matches": layout.MATCHES}  # fmt: skip
        return {name: int(worker.counters[place]) for name, place in names.items()}


def _frozen(array: NDArray[np.int64]) -> NDArray[np.int64]:
    view = np.ascontiguousarray(array).view()
    view.setflags(write=False)
    return view


def _unpickle(data: bytes) -> Matcher:
    return Matcher(saved.loads(data))
