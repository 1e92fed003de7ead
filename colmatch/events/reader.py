"""From record batches to ``kernels.layout.Batch``.

``Reader.read`` exports a batch through the Arrow C data interface, and kernels walk the exported
structs. No Python runs for a column, let alone a row. The distinct strings for text patterns are
read first, with a separate plan (``patterns.py``). ``work.py`` has the memory that kernels write,
and ``gather.py`` gives the batches. ``texts_of`` is for strings that are no events. Elsewhere, only
``exact.py`` reads buffers of Arrow.

A loop of Python over 100 columns costs milliseconds a batch, the kernels cost tens of microseconds.
The result never points into Arrow's memory.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from colmatch.arrays.frozen import freeze_view
from colmatch.arrays.ranges import members, ranges_of
from colmatch.events.binding import Binding, bind
from colmatch.events.changes import Changes
from colmatch.events.computed.derived import DerivedColumns
from colmatch.events.computed.failed import FailedRows, Failures
from colmatch.events.computed.templates import MemberRows, Reach, templates_of
from colmatch.events.needs import Needs
from colmatch.events.patterns import PatternRows
from colmatch.events.special.lists import CallRows
from colmatch.events.vocabulary import Vocabulary
from colmatch.events.work import WorkingMemory
from colmatch.given.schema import Attributes
from colmatch.kernels import _forks
from colmatch.kernels.layout import I32, I64, U8, Batch, Literals

SCHEMAS_KEPT = 8  # bindings of a Reader: sources that alternate between more schemas than this bind again
_NO_OFFSET, _NO_DATA = freeze_view(np.zeros(1, np.int32)), freeze_view(np.empty(0, np.uint8))


class Reader:
    """A reader of record batches for the attributes of one matcher.

    It owns the memory that batches are read into, so the next ``read`` overwrites the last result.
    One thread at a time.

    Parameters
    ----------
    lenient : a missing column is NULL in every row; otherwise it is an error

    Attributes
    ----------
    columns : top-level columns that the attributes need, in the order of their first use
    failed : what failed in the last batch, instead of being NULL
    has_members : whether a ``reach`` makes ``read`` faster
    """

    def __init__(self, attributes: Attributes, literals: Vocabulary | Literals, lenient: bool = True) -> None:
        self._lenient = lenient
        self.columns = attributes.columns
        self.failed = Failures()
        templates = templates_of(attributes)
        self._calls = CallRows(attributes, literals, lenient)
        self._given = np.array([*templates.attributes, *self._calls.attributes], np.int64)  # attributes read before
        self._needs = Needs(attributes.items(), len(attributes), literals, np.sort(self._given).tolist())
        self._memory = WorkingMemory(self._needs, 0)
        self._patterns = PatternRows(attributes) if self._needs.pattern_runs else None
        self._members = MemberRows(templates) if templates.groups else None
        self.has_members = self._members is not None
        self._derived = DerivedColumns(templates.others(attributes), lenient, templates.parts)
        self._computes = bool(self._calls.attributes or self._derived or self._members)
        self._bindings: list[tuple[pa.Schema, Binding, Binding | None, Changes | None]] = []  # the last one first
        self._struct = _ExportedBatch()
        self._address = ctypes.addressof(self._struct)

    def read(self, batch: pa.RecordBatch, reach: Reach | None = None) -> Batch:
        """Reads the entries of every attribute.

        They are read-only views of this Reader's memory: the next call overwrites them.

        reach : the keys that predicates can reach, as of ``Version.reach``. Some entries that none
            can reach are left out

        Raises EventError: a column does not fit the matcher's schema.
        """
        if self._computes:
            batch = self._compute(batch, reach)
        schema = batch.schema
        if not self._bindings or not self._bindings[0][0].equals(schema):
            self._bind(schema)
        _, binding, pattern_binding, changes = self._bindings[0]
        if changes is not None:
            batch = changes.apply_to(batch)
        rows = batch.num_rows
        memory = self._memory
        # Not ``__arrow_c_array__``, which exports the schema as well: 12 of 30 us for 100 columns.
        with _forks.hold_off_forks():  # a forked child would find the lock of the batch held
            batch._export_to_c(self._address)
        try:
            if self._patterns is not None and pattern_binding is not None:
                memory.take_patterns(*self._patterns.read(pattern_binding, self._address, rows))
            memory.read(binding, self._address, rows)
        finally:
            self._struct.release(self._address)  # the exported memory lives until now
        return memory.batch(rows)

    def _compute(self, batch: pa.RecordBatch, reach: Reach | None) -> pa.RecordBatch:
        """Returns a batch with computed values, and keeps the entries that no column has."""
        calls = self._calls.read(batch) if self._calls.attributes else None
        values: Mapping[str, FailedRows] = {}
        if self._derived:
            batch, values = self._derived.add_to(batch)
        self.failed = Failures(values, self._calls.doubts)
        given = None
        if self._members is not None:
            given = self._members.read(self._derived.parts, batch.num_rows, reach)
        if given is not None and calls is not None:
            given = _merge(self._given, given, calls)
        given = calls if given is None else given
        if given is not None:
            self._memory.take_members(*given)
        return batch

    def _bind(self, schema: pa.Schema) -> None:
        """Puts the bindings for a schema to the front."""
        for i, (bound_schema, *_) in enumerate(self._bindings):
            if bound_schema.equals(schema):
                self._bindings.insert(0, self._bindings.pop(i))
                return
        needs = [self._needs] if self._patterns is None else [self._needs, self._patterns.needs]
        (binding, *others), changes = bind(needs, schema, self._lenient)
        self._bindings.insert(0, (schema, binding, others[0] if others else None, changes or None))
        del self._bindings[SCHEMAS_KEPT:]


def _merge(attributes: I64, *each: tuple[I64, I32, I64]) -> tuple[I64, I32, I64]:
    """Joins the entries of several lists of attributes, in the order of their ids.

    attributes : of all, one list after the other
    each : for each list, the range of each attribute, then rows and keys
    """
    size = np.concatenate([np.diff(first) for first, _, _ in each])
    begin = np.concatenate([[0], np.cumsum(size)[:-1]])
    order = np.argsort(attributes)
    first = ranges_of(size[order])
    taken = members(begin[order], first)
    row, key = (np.concatenate([one[i] for one in each])[taken] for i in (1, 2))
    return first, row, key


def texts_of(strings: pa.Array) -> tuple[I32, U8]:
    """Returns the offsets and the bytes of strings, without a copy.

    String i is ``data[offset[i]:offset[i + 1]]``; no string is NULL. Both arrays are read-only.
    """
    assert not strings.null_count
    if not len(strings):  # its buffers may be empty, or missing
        return _NO_OFFSET, _NO_DATA
    _, offset, data = strings.buffers()
    offset = np.frombuffer(offset, np.int32, len(strings) + 1, 4 * strings.offset)
    return freeze_view(offset), freeze_view(np.frombuffer(data, np.uint8))


def long_texts_of(strings: pa.LargeStringArray) -> tuple[I64, U8]:
    """Returns the offsets and the bytes of large strings, as ``texts_of`` does."""
    assert not strings.null_count
    if not len(strings):
        return freeze_view(np.zeros(1, np.int64)), _NO_DATA
    _, offset, data = strings.buffers()
    offset = np.frombuffer(offset, np.int64, len(strings) + 1, 8 * strings.offset)
    return freeze_view(offset), freeze_view(np.frombuffer(data, np.uint8))


class _ExportedBatch(ctypes.Structure):
    """An exported record batch.

    ``release`` frees all that the export holds; nobody else does.
    """

    _fields_ = [
        ("counts", ctypes.c_int64 * 5),
        ("pointers", ctypes.c_void_p * 3),
        ("release", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("private_data", ctypes.c_void_p),
    ]
