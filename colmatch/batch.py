"""Arrow in: events as the caller has them, to ``kernels.layout.Batch``. The only reader of Arrow buffers.

``batches`` cuts and gathers what arrives into record batches of a useful size. ``Reader.read`` exports one through the Arrow C data
interface and has a kernel walk the exported structs: no Python runs for a column, let alone a row. Only text patterns come back
to Python, for the distinct strings of the batch, once for each pattern.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.binding import Binding, bind
from colmatch.errors import EventError
from colmatch.kernels import read, select
from colmatch.kernels.expand import expand
from colmatch.kernels.layout import Batch, Literals
from colmatch.kernels.maps import BLOCK
from colmatch.kernels.text import Distinct
from colmatch.patterns import Truth, check_pattern, pattern_truth
from colmatch.schema import Attribute, Attributes, Family
from colmatch.wanted import Wanted

__all__ = ["Reader", "batches", "check_pattern"]

SCHEMAS_KEPT = 8  # plans of a Reader: sources that alternate between more schemas than this bind again

_pointer: Callable[[object, bytes], int] = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p  # type: ignore[attr-defined]
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]  # type: ignore[attr-defined]


class Reader:
    """Reads record batches for the attributes of one matcher.

    Owns the memory that batches are read into: what ``read`` returns is valid until the next call. One thread at a time.

    Attributes
    ----------
    columns : top-level columns that the attributes need, in the order in which attributes name them first
    """

    def __init__(self, attributes: Attributes, literals: Literals) -> None:
        members = list(attributes)
        self.columns = list(dict.fromkeys(attribute.path[0] for attribute in members))
        self._wanted = Wanted(members, literals)
        self._patterns = _Patterns(members) if self._wanted.pattern_runs else None
        self._work = _Work(self._wanted, 0)
        self._bindings: list[tuple[pa.Schema, Binding, Binding | None]] = []

    def read(self, batch: pa.RecordBatch) -> Batch:
        """The entries of every attribute, in arrays that are read-only views of this Reader's memory: the next call overwrites them.

        Raises
        ------
        EventError : a column does not fit the schema that the matcher was built with
        """
        binding, pattern_binding = self._bind(batch.schema)
        if binding.decode:
            batch = _decoded(batch, binding.decode)
        rows = batch.num_rows
        # The capsules own the structs and buffers, so they live until the last kernel has returned.
        capsules = batch.__arrow_c_array__()
        address = _pointer(capsules[1], b"arrow_array")
        work = self._work
        if self._patterns is not None and pattern_binding is not None:
            work.set_patterns(*self._patterns.rows(pattern_binding, address, rows))
        work.read(binding, address, rows)
        del capsules
        return work.batch(rows)

    def _bind(self, schema: pa.Schema) -> tuple[Binding, Binding | None]:
        for i, (known, binding, patterns) in enumerate(self._bindings):
            if known is schema or known.equals(schema):
                if i:
                    self._bindings.insert(0, self._bindings.pop(i))
                return binding, patterns
        binding = bind(self._wanted, schema)
        patterns = bind(self._patterns.wanted, schema) if self._patterns is not None else None
        if patterns is not None and patterns.decode:
            binding = replace(binding, decode=tuple(sorted({*binding.decode, *patterns.decode})))
        self._bindings.insert(0, (schema, binding, patterns))
        del self._bindings[SCHEMAS_KEPT:]
        return binding, patterns


class _Work:
    """The arrays of ``kernels.read.Work``, made larger when a batch needs it."""

    def __init__(self, wanted: Wanted, groups: int) -> None:
        entries = len(wanted.entry_set)
        patterns = sum(end - attr for attr, end, _ in wanted.pattern_runs)
        self._width = len(wanted.plain)
        self._rows = np.zeros(1, np.int64)
        self._frozen_rows = _view(self._rows)
        self._work = read.Work(
            state=np.zeros(8, np.int64),
            struct=np.zeros((1, 3), np.int64),
            valid=np.zeros(0, np.uint8),
            col=np.zeros(wanted.total + 1, np.int64),
            row=np.zeros(0, np.int32),
            key=np.zeros(0, np.int64),
            slot=np.zeros(0, np.int64),
            known=np.zeros(0, np.int64),
            tally=np.zeros(2 * entries, np.int32),
            touched=np.zeros(entries // BLOCK, np.uint8),
            entry_first=np.zeros(entries + 1, np.int64),
            entry_row=np.zeros(0, np.int32),
            entry_key=np.zeros(0, np.int64),
            hints=np.zeros(int(wanted.literals.hint[-1]), np.int32),
            distinct=Distinct(
                table=np.zeros(16, np.int32),
                offset=np.zeros(1, np.int64),
                data=np.zeros(0, np.uint8),
                range=np.zeros((groups, 2), np.int64),
                total=np.zeros(4, np.int64),
            ),
            pattern_first=np.zeros(patterns + 1, np.int64),
            pattern_row=np.zeros(0, np.int32),
        )
        self._col = _view(self._work.col)

    @property
    def arrays(self) -> read.Work:
        return self._work

    def read(self, binding: Binding, address: int, rows: int) -> None:
        """Run the kernel until everything has room."""
        structs = len(binding.plan.struct)
        work = self._work
        if len(work.struct) < structs or len(work.valid) < structs * rows:
            valid = np.empty(structs * rows, np.uint8)
            self._work = work = work._replace(struct=np.zeros((structs, 3), np.int64), valid=valid)
        if len(work.slot) < rows:
            self._grow(select.FULL_STREAM, rows)
            self._grow(select.FULL_OUT, rows * self._width)
        while True:
            read.read(binding.plan, self._work, address, rows)
            code = int(self._work.state[select.CODE])
            if code == select.OK:
                return
            if code in (select.OVERFLOW, select.BAD_INDEX, select.NULL_KEY):
                raise self._error(binding, code)
            self._grow(code, int(self._work.state[select.NEEDED]))

    def batch(self, rows: int) -> Batch:
        work = self._work
        self._rows[0] = rows
        entries = work.col[-1]
        return Batch(self._frozen_rows, self._col, _view(work.row[:entries]), _view(work.key[:entries]))

    def set_patterns(self, first: NDArray[np.int64], row: NDArray[np.int32]) -> None:
        self._work = self._work._replace(pattern_first=first, pattern_row=row)

    def _grow(self, code: int, needed: int) -> None:
        work = self._work
        distinct = work.distinct
        n = max(needed, 64)
        if code == select.FULL_OUT:
            n = max(n, len(work.row) * 3 // 2)
            self._work = work._replace(row=np.empty(n, np.int32), key=np.empty(n, np.int64))
        elif code == select.FULL_ENTRIES:
            n = max(n, len(work.entry_row) * 3 // 2)
            self._work = work._replace(entry_row=np.empty(n, np.int32), entry_key=np.empty(n, np.int64))
        elif code == select.FULL_STREAM:
            n = max(n, len(work.slot) * 3 // 2)
            if len(distinct.range):  # at most half full, and a power of two
                distinct = distinct._replace(table=np.empty(4 * 2 ** (n - 1).bit_length(), np.int32))
            self._work = work._replace(slot=np.empty(n, np.int64), known=np.empty(n, np.int64), distinct=distinct)
        elif code == select.FULL_STRINGS:
            n = max(n, len(distinct.offset) * 3 // 2)
            self._work = work._replace(distinct=distinct._replace(offset=np.empty(n, np.int64)))
        else:
            data = np.empty(max(n, len(distinct.data) * 3 // 2), np.uint8)
            distinct.total[3] = data.ctypes.data
            self._work = work._replace(distinct=distinct._replace(data=data))

    def _error(self, binding: Binding, code: int) -> EventError:
        state = self._work.state
        name = binding.items[int(state[select.WHERE])]
        row = int(state[select.ROW])
        if code == select.OVERFLOW:
            return EventError(f"column {name!r}, row {row} of the batch: the value is too large for the schema's unit or scale: cast it")
        if code == select.NULL_KEY:
            return EventError(f"column {name!r}, row {row} of the batch: a key of the map is NULL: mend the source")
        return EventError(f"column {name!r}, row {row} of the batch: its dictionary has no such value: mend the source")


@dataclass(frozen=True, slots=True)
class _Pattern:
    number: int
    truth: Truth


class _Patterns:
    """Text patterns: each is evaluated once on every distinct string that its base has in a batch."""

    def __init__(self, members: list[Attribute]) -> None:
        bases: dict[Attribute, list[_Pattern]] = {}
        number = 0
        for attribute in members:
            if attribute.pattern is not None:
                bases.setdefault(replace(attribute, pattern=None), []).append(_Pattern(number, pattern_truth(*attribute.pattern)))
                number += 1
        self.wanted = Wanted(list(bases), None)
        self._of = list(bases.values())
        self._types = [pa.large_string() if base.type.family is Family.STRING else pa.large_binary() for base in bases]
        self._first = np.zeros(number + 1, np.int64)
        self._row = np.zeros(64, np.int32)
        self._work = _Work(self.wanted, len(bases))

    def rows(self, binding: Binding, address: int, rows: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Rows where each pattern is true, as ranges: first, row. Overwritten by the next call."""
        self._work.read(binding, address, rows)
        work = self._work.arrays
        distinct = work.distinct
        total = int(distinct.total[0])
        groups = distinct.range
        values, patterns = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for group in np.flatnonzero(groups[:, 1] > groups[:, 0]).tolist():
            begin, end = groups[group].tolist()
            buffers = [None, pa.py_buffer(distinct.offset[begin : end + 1]), pa.py_buffer(distinct.data)]
            strings = pa.Array.from_buffers(self._types[group], end - begin, buffers)
            for pattern in self._of[group]:
                true = np.flatnonzero(pattern.truth(strings).to_numpy(zero_copy_only=False))
                values.append(true + begin)
                patterns.append(np.full(len(true), pattern.number, np.int64))
        value, pattern_of = np.concatenate(values), np.concatenate(patterns)
        value_first = np.zeros(total + 1, np.int64)
        np.cumsum(np.bincount(value, minlength=total), out=value_first[1:])
        value_pattern = pattern_of[np.argsort(value, kind="stable")]
        base = np.stack([work.col[:-1], work.col[1:], groups[:, 0]], axis=1)
        while True:
            expand(base, work.row, work.key, value_first, value_pattern, self._first, self._row)
            if self._first[-1] <= len(self._row):
                return self._first, self._row
            self._row = np.zeros(max(int(self._first[-1]), 2 * len(self._row)), np.int32)


def _view(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.setflags(write=False)
    return view


def _decoded(batch: pa.RecordBatch, columns: tuple[int, ...]) -> pa.RecordBatch:
    arrays = list(batch.columns)
    for i in columns:
        arrays[i] = pc.run_end_decode(arrays[i])
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def batches(events: object, rows: int, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Events as record batches of ``rows`` rows, the last one of what is left.

    Larger batches are cut without copying; smaller ones that follow each other are gathered. Takes from the source only what the
    next batch needs. Batches without rows are left out.

    Parameters
    ----------
    events : anything with ``__arrow_c_stream__`` or ``__arrow_c_array__`` whose rows are structs: a table, data frame, record batch,
        reader, struct array
    rows : at least 1
    columns : those that are kept, by name or else by a name that differs in case alone; all when None

    Raises
    ------
    EventError : ``events`` is something else. Errors of the source come through as they are.
    """
    return _gather(_source(events), rows, columns)


def _source(events: object) -> Iterable[pa.RecordBatch]:
    if isinstance(events, pa.RecordBatch):
        return (events,)
    if isinstance(events, pa.RecordBatchReader):
        return events  # type: ignore[no-any-return]  # exported, its errors would lose their type
    if isinstance(events, pa.Table):
        return events.to_reader()  # type: ignore[no-any-return]
    if isinstance(events, pa.ChunkedArray) and pa.types.is_struct(events.type):
        return map(pa.RecordBatch.from_struct_array, events.iterchunks())  # unlike the stream, takes NULL structs
    try:
        if hasattr(events, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(events)  # type: ignore[no-any-return]
        if hasattr(events, "__arrow_c_array__"):
            array = pa.array(events)
            if pa.types.is_struct(array.type):
                return (pa.RecordBatch.from_struct_array(array),)
            raise EventError(f"events are rows of named columns, this is an array of {array.type}: put it into a table")
    except pa.ArrowInvalid as error:
        if "non-struct type" in str(error):
            raise EventError("events are rows of named columns, this is a stream of one unnamed column: put it into a table") from error
        raise
    raise EventError(
        f"events cannot be read from {type(events).__name__}: pass a table, data frame, record batch or reader that offers "
        "__arrow_c_stream__ or __arrow_c_array__ (pyarrow, polars, duckdb, pandas)"
    )


def _gather(source: Iterable[pa.RecordBatch], rows: int, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
    pending: list[pa.RecordBatch] = []
    held = 0
    kept: tuple[pa.Schema, list[int]] | None = None
    for batch in source:
        if columns is not None and batch.schema.names != columns:
            if kept is None or not kept[0].equals(batch.schema):
                kept = (batch.schema, _kept(batch.schema.names, columns))
            batch = batch.select(kept[1])
        start = 0
        while start < batch.num_rows:
            piece = batch.slice(start, rows - held)
            start += piece.num_rows
            held += piece.num_rows
            pending.append(piece)
            if held == rows:
                yield from _joined(pending)
                pending, held = [], 0
    if pending:
        yield from _joined(pending)


def _joined(pieces: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    if len(pieces) == 1:
        return pieces
    try:
        return [pa.concat_batches(pieces)]
    except pa.ArrowException:  # of different schemas, or of a type that cannot be joined: small batches are only slower
        return pieces


def _kept(names: list[str], columns: list[str]) -> list[int]:
    """Numbers of the columns that may be meant; which of several is meant is for the Reader to say."""
    exact = set(columns) & set(names)
    folded = {column.lower() for column in columns if column not in exact}
    return [i for i, name in enumerate(names) if name in exact or name.lower() in folded]
