"""Arrow in: record batches to ``kernels.layout.Batch``. The only reader of Arrow buffers.

``Reader.read`` exports a batch through the Arrow C data interface and has kernels walk the exported
structs: no Python runs for a column, let alone a row. The distinct strings that text patterns are
about are read first, with a plan of their own (``patterns.py``). Where batches come from is the
matter of ``gather.py``.
"""

from __future__ import annotations

import ctypes
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.frozen import frozen
from colmatch.errors import EventError
from colmatch.events.binding import Binding, bind
from colmatch.events.gather import batches
from colmatch.events.needs import Wanted
from colmatch.events.patterns import PatternRows, patterns_of
from colmatch.incoming import without_runs
from colmatch.kernels.arrow import read, select
from colmatch.kernels.arrow import structs as physical
from colmatch.kernels.arrow.maps import BLOCK
from colmatch.kernels.arrow.words import Distinct
from colmatch.kernels.layout import Batch, Literals
from colmatch.schema import Attributes

__all__ = ["Reader", "batches"]

SCHEMAS_KEPT = 8  # plans of a Reader: sources that alternate between more schemas than this bind again


class Reader:
    """Reads record batches for the attributes of one matcher.

    Owns the memory that batches are read into: what ``read`` returns is valid until the next call.
    One thread at a time.

    Parameters
    ----------
    lenient : a column that is not there is NULL in every row; else it is an error

    Attributes
    ----------
    columns : top-level columns that the attributes need, in the order in which attributes name them
        first
    """

    def __init__(self, attributes: Attributes, literals: Literals, lenient: bool = True) -> None:
        self._lenient = lenient
        members = list(attributes)
        self.columns = list(dict.fromkeys(attribute.path[0] for attribute in members))
        self._wanted = Wanted(members, literals)
        self._work = _Work(self._wanted, 0)
        self._patterns = _Patterns(attributes) if self._wanted.pattern_runs else None
        self._bindings: list[tuple[pa.Schema, _Bound, _Bound | None]] = []
        self._struct = _ArrowArray()
        self._address = ctypes.addressof(self._struct)

    def read(self, batch: pa.RecordBatch) -> Batch:
        """The entries of every attribute, in arrays that are read-only views of this Reader's
        memory: the next call overwrites them.

        Raises
        ------
        EventError : a column does not fit the schema that the matcher was built with
        """
        bound, pattern_bound = self._bind(batch.schema)
        if bound.binding.decode:
            batch = _decoded(batch, bound.binding.decode)
        rows = batch.num_rows
        work = self._work
        # Not ``__arrow_c_array__``, which exports the schema as well: 12 of 30 us for 100 columns.
        batch._export_to_c(self._address)
        try:
            if self._patterns is not None and pattern_bound is not None:
                work.set_patterns(*self._patterns.read(pattern_bound, self._address, rows))
            work.read(bound, self._address, rows)
        finally:
            self._struct.release(self._address)  # what the kernels read lives until now
        return work.batch(rows)

    def _bind(self, schema: pa.Schema) -> tuple[_Bound, _Bound | None]:
        for i, (known, bound, pattern_bound) in enumerate(self._bindings):
            if known is schema or known.equals(schema):
                if i:
                    self._bindings.insert(0, self._bindings.pop(i))
                return bound, pattern_bound
        binding = bind(self._wanted, schema, self._lenient)
        patterns = bind(self._patterns.wanted, schema, self._lenient) if self._patterns is not None else None
        if patterns is not None and patterns.decode:
            binding = replace(binding, decode=tuple(sorted({*binding.decode, *patterns.decode})))
        bound = _Bound(binding)
        pattern_bound = None if patterns is None else _Bound(patterns)
        self._bindings.insert(0, (schema, bound, pattern_bound))
        del self._bindings[SCHEMAS_KEPT:]
        return bound, pattern_bound


class _Patterns:
    """Reads the distinct strings that text patterns are about, and has the patterns looked for
    in them.
    """

    def __init__(self, attributes: Attributes) -> None:
        patterns = patterns_of(attributes)
        self.wanted = patterns.wanted
        self._rows = PatternRows(patterns)
        self._work = _Work(self.wanted, len(patterns.indexes))

    def read(self, bound: _Bound, address: int, rows: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Rows where each pattern is true, as ranges: first, row. Overwritten by the next call."""
        self._work.read(bound, address, rows)
        return self._rows.rows(*self._work.arrays)


class _ArrowArray(ctypes.Structure):
    """An exported record batch.

    ``release`` gives back all that the export holds; nobody else will.
    """

    _fields_ = [
        ("counts", ctypes.c_int64 * 5),
        ("pointers", ctypes.c_void_p * 3),
        ("release", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("private_data", ctypes.c_void_p),
    ]


class _Bound:
    """A binding with what the kernels get of it, and which of them are to run."""

    __slots__ = ("binding", "columns", "entry_set", "keys", "literals", "maps", "texts")

    def __init__(self, binding: Binding) -> None:
        plan = binding.plan
        self.binding = binding
        self.columns = read.Columns(plan.struct, plan.leaf, plan.item)
        self.entry_set, self.keys, self.literals = plan.entry_set, plan.keys, plan.literals
        kind = plan.item[:, select.KIND]
        valued = np.isin(kind, (select.VALUE, select.ELEMENT, select.MAP))
        self.maps = bool((kind == select.MAP).any())
        self.texts = bool((plan.leaf[plan.item[valued, select.LEAF], physical.FORM] >= physical.TEXTS).any())


class _Work:
    """The arrays that ``kernels.read`` writes, made larger when a batch needs it."""

    def __init__(self, wanted: Wanted, groups: int) -> None:
        entries = len(wanted.entry_set)
        patterns = sum(end - attr for attr, end, _ in wanted.pattern_runs)
        self._width = len(wanted.plain)
        self._rows = np.zeros(1, np.int64)
        self._frozen_rows = frozen(self._rows)
        self._work = read.Work(
            state=np.zeros(8, np.int64),
            struct=np.zeros(3, np.int64),
            valid=np.zeros(0, np.uint8),
            col=np.zeros(wanted.total + 1, np.int64),
            row=np.zeros(0, np.int32),
            key=np.zeros(0, np.int64),
            slot=np.zeros(0, np.int64),
            entry_first=np.zeros(entries + 1, np.int64),
            entry_row=np.zeros(0, np.int32),
            entry_key=np.zeros(0, np.int64),
            pattern_first=np.zeros(patterns + 1, np.int64),
            pattern_row=np.zeros(0, np.int32),
        )
        known = np.zeros(0, np.int64)
        self._maps = read.MapWork(known, np.zeros(2 * entries, np.int32), np.zeros(entries // BLOCK, np.uint8))
        distinct = Distinct(
            table=np.zeros(16, np.int32),
            offset=np.zeros(1, np.int64),
            data=np.zeros(0, np.uint8),
            range=np.zeros((groups, 2), np.int64),
            total=np.zeros(4, np.int64),
        )
        self._texts = read.TextWork(known, np.zeros(int(wanted.literals.hint[-1]), np.int32), distinct)
        self._col = frozen(self._work.col)

    @property
    def arrays(self) -> tuple[read.Work, Distinct]:
        return self._work, self._texts.distinct

    def read(self, bound: _Bound, address: int, rows: int) -> None:
        """Run the kernels until everything has room."""
        structs = len(bound.columns.struct)
        work = self._work
        if len(work.struct) < 3 * structs or len(work.valid) < structs * rows:
            valid = np.empty(structs * rows, np.uint8)
            work.state[select.VALID] = valid.ctypes.data
            self._work = work._replace(struct=np.zeros(3 * structs, np.int64), valid=valid)
        if len(work.slot) < rows:
            self._grow(select.FULL_STREAM, rows)
            self._grow(select.FULL_OUT, rows * self._width)
        while True:
            code = self._run(bound, address, rows)
            if code == select.OK:
                return
            if code in (select.OVERFLOW, select.BAD_INDEX, select.NULL_KEY):
                raise self._error(bound.binding, code)
            self._grow(code, int(self._work.state[select.NEEDED]))

    def _run(self, bound: _Bound, address: int, rows: int) -> int:
        work, texts = self._work, self._texts
        code = select.OK
        if bound.maps:
            read.read_maps(bound.columns, bound.keys, work, self._maps, address, rows)
            code = int(work.state[select.CODE])
        if code == select.OK:
            read.read(bound.columns, work, address, rows)
            code = int(work.state[select.CODE])
        if bound.texts and code == select.OK:
            distinct = texts.distinct
            distinct.range[:] = 0
            distinct.total[0] = distinct.offset[0] = 0
            read.read_texts(bound.columns, bound.literals, bound.entry_set, work, texts)
            code = int(work.state[select.CODE])
        return code

    def batch(self, rows: int) -> Batch:
        work = self._work
        self._rows[0] = rows
        entries = work.col[-1]
        return Batch(self._frozen_rows, self._col, frozen(work.row[:entries]), frozen(work.key[:entries]))

    def set_patterns(self, first: NDArray[np.int64], row: NDArray[np.int32]) -> None:
        self._work = self._work._replace(pattern_first=first, pattern_row=row)

    def _grow(self, code: int, needed: int) -> None:
        work, distinct = self._work, self._texts.distinct
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
            known = np.empty(n, np.int64)
            self._work = work._replace(slot=np.empty(n, np.int64))
            self._maps = self._maps._replace(known=known)
            self._texts = self._texts._replace(known=known, distinct=distinct)
        elif code == select.FULL_STRINGS:
            n = max(n, len(distinct.offset) * 3 // 2)
            self._texts = self._texts._replace(distinct=distinct._replace(offset=np.empty(n, np.int64)))
        else:
            data = np.empty(max(n, len(distinct.data) * 3 // 2), np.uint8)
            distinct.total[3] = data.ctypes.data
            self._texts = self._texts._replace(distinct=distinct._replace(data=data))

    def _error(self, binding: Binding, code: int) -> EventError:
        state = self._work.state
        name = binding.items[int(state[select.WHERE])]
        row = int(state[select.ROW])
        if code == select.OVERFLOW:
            return EventError(
                f"column {name!r}, row {row} of the batch: the value is too large for the schema's unit or scale: cast it"
            )
        if code == select.NULL_KEY:
            return EventError(f"column {name!r}, row {row} of the batch: a key of the map is NULL: mend the source")
        return EventError(f"column {name!r}, row {row} of the batch: its dictionary has no such value: mend the source")


def _decoded(batch: pa.RecordBatch, columns: tuple[int, ...]) -> pa.RecordBatch:
    arrays = list(batch.columns)
    for i in columns:
        arrays[i] = without_runs(arrays[i])
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)
