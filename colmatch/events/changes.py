"""Changes of event columns to the types of the schema, before kernels read them.

Kernels read most types directly. Other columns are changed here as a whole, if each value has an
equal in the type of the schema (``exact.py``). Examples are whole numbers for doubles, floats
without fractions for whole numbers, decimals of more digits, timestamps of a finer unit, and runs.
Only the leaves that expressions use are changed; the structs, lists and maps around them are built
again. If the types agree, nothing is done or inspected.

A decimal of more than 18 digits becomes 17 bytes that have its order, see ``lowering/wide.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from colmatch.arrays.ranges import ranges_of
from colmatch.errors import EventError
from colmatch.events.exact import UnfitError, cast_exactly, ordered_bytes
from colmatch.given.incoming import decode_runs, nulls_of
from colmatch.given.schema import UNITS, Family, Type, time_type
from colmatch.kernels.layout import I64

_NUMBERS = frozenset({Family.INT, Family.UINT64, Family.FLOAT, Family.DECIMAL, Family.WIDE_DECIMAL})
_DAYS = frozenset({Family.DATE, Family.TIMESTAMP})
ENTRY_KEYS, ENTRY_VALUES = 0, 1  # parts of a map


def can_change(have: Type, wanted: Type) -> bool:
    """Returns whether values of one type may have equals in another."""
    if have.family in _NUMBERS and wanted.family in _NUMBERS:
        return True
    if have.family in _DAYS and wanted.family in _DAYS:
        return (have.zone is None) == (wanted.zone is None)
    return have.family is wanted.family


def is_read_as_is(have: Type, wanted: Type, arrow: pa.DataType) -> bool:
    """Returns whether kernels read values of one type directly as another.

    arrow : storage type of the values, not a dictionary
    """
    if have.family is not wanted.family:
        return have.family is Family.INT and wanted.family is Family.FLOAT and arrow.bit_width <= 32
    if wanted.family is Family.WIDE_DECIMAL or pa.types.is_date64(arrow):  # milliseconds, of whole days if all is well
        return False
    if wanted.family is Family.DECIMAL:
        return 0 <= wanted.scale - have.scale <= 18
    return wanted.family not in (Family.TIMESTAMP, Family.TIME) or UNITS[have.unit] <= UNITS[wanted.unit]


def changed_type(wanted: Type) -> pa.DataType:
    """Returns the Arrow type that columns are changed to."""
    if wanted.family is Family.DECIMAL:
        return pa.decimal128(18, wanted.scale)
    if wanted.family is Family.WIDE_DECIMAL:
        return pa.decimal128(38, wanted.scale)
    if wanted.family is Family.TIMESTAMP:
        return pa.timestamp(wanted.unit, wanted.zone)
    if wanted.family is Family.TIME:
        return time_type(wanted.unit)
    return _CHANGED[wanted.family]


_CHANGED = {
    Family.BOOL: pa.bool_(), Family.INT: pa.int64(), Family.UINT64: pa.uint64(), Family.FLOAT: pa.float64(),
    Family.STRING: pa.large_string(), Family.BINARY: pa.large_binary(), Family.DATE: pa.date32(),
}  # fmt: skip


@dataclass(slots=True)
class _ColumnChange:
    """The change of a column, or of a part of one. Runs are decoded in any case.

    Attributes
    ----------
    name : of the column, in errors
    wanted : new type of the values; None if only parts are changed
    parts : changes by the number of the field of a struct, 0 for the elements of a list,
        ``ENTRY_KEYS`` or ``ENTRY_VALUES`` of a map
    """

    name: str = ""
    wanted: Type | None = None
    parts: dict[int, _ColumnChange] = field(default_factory=dict)


class Changes:
    """All changes that batches of one schema need before kernels read them."""

    def __init__(self) -> None:
        self._all = _ColumnChange()

    def __bool__(self) -> bool:
        return bool(self._all.parts)

    def note(self, steps: Sequence[int], name: str, wanted: Type | None) -> None:
        """Adds a column, or a part of one, that batches must convert first.

        steps : numbers of the column and of the changed part, see ``_ColumnChange.parts``
        wanted : the new type; None if only runs are decoded
        """
        here = self._all
        for step in steps:
            here = here.parts.setdefault(step, _ColumnChange())
        here.name = name
        here.wanted = wanted or here.wanted

    def apply_to(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns a batch with all changes.

        Raises EventError, with column and event: a value has no equal in the type of the schema.
        """
        arrays = list(batch.columns)
        for i, change in self._all.parts.items():
            try:
                arrays[i] = _apply_change(arrays[i], change)
            except _Unfit as unfit:
                raise EventError(unfit.said, column=f"column {unfit.name!r}", event=unfit.row) from None
        return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)

    def schema_of(self, schema: pa.Schema) -> pa.Schema:
        """Returns the schema of batches after the changes."""
        types = schema.types
        for i, change in self._all.parts.items():
            types[i] = _apply_change(nulls_of(0, types[i]), change).type
        return pa.schema([pa.field(name, type) for name, type in zip(schema.names, types, strict=True)])


class _Unfit(Exception):
    """A value without an equal, and its place."""

    def __init__(self, row: int, value: str, have: pa.DataType, change: _ColumnChange) -> None:
        super().__init__(row)
        self.row, self.name = row, change.name
        if change.wanted is not None and change.wanted.name == str(have):  # of more digits than any other type
            self.said = f"{value} is {have}, and decimals of more than 38 digits cannot be compared: round and cast it"
        else:
            self.said = f"{value} is {have}, the schema says {change.wanted}, which has no such value: cast it"


def _apply_change(array: pa.Array, change: _ColumnChange) -> pa.Array:
    types = pa.types
    if change.wanted is not None:
        return _leaf(array, change, change.wanted)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if types.is_run_end_encoded(array.type):
        array = decode_runs(array)
    if not change.parts or types.is_null(array.type):
        return array
    if types.is_struct(array.type):
        return _struct(array, change)
    return _map(array, change) if types.is_map(array.type) else _list(array, change.parts[0])


def _leaf(array: pa.Array, change: _ColumnChange, wanted: Type) -> pa.Array:
    try:
        values = cast_exactly(array, changed_type(wanted))
    except UnfitError as error:
        raise _Unfit(error.index, error.value, array.type, change) from None
    return ordered_bytes(values) if wanted.family is Family.WIDE_DECIMAL else values


def _struct(array: pa.StructArray, change: _ColumnChange) -> pa.StructArray:
    fields = [array.field(i) for i in range(array.type.num_fields)]
    for i, part in change.parts.items():
        # a value within a NULL struct does not count, and may be anything
        one = decode_runs(fields[i]) if pa.types.is_run_end_encoded(fields[i].type) else fields[i]
        if array.null_count:
            one = one.take(_places(array))
        fields[i] = _apply_change(one, part)
    mask = array.is_null() if array.null_count else None
    names = [field.name for field in array.type]
    return pa.StructArray.from_arrays(fields, names, mask=mask)


def _places(array: pa.Array) -> pa.Array:
    """Returns the number of each row, NULL where the array is NULL."""
    return pc.if_else(array.is_valid(), pa.array(np.arange(len(array))), pa.scalar(None, pa.int64()))


def _list(array: pa.Array, part: _ColumnChange) -> pa.LargeListArray:
    first = ranges_of(pc.fill_null(pc.list_value_length(array), 0).to_numpy())
    values = _within(array.flatten(), part, first)
    mask = array.is_null() if array.null_count else None
    return pa.LargeListArray.from_arrays(pa.array(first), values, mask=mask)


def _map(array: pa.MapArray, change: _ColumnChange) -> pa.MapArray:
    entry = pa.struct([pa.field("key", array.type.key_type, nullable=False), pa.field("value", array.type.item_type)])
    lists = array.cast(pa.list_(entry))
    first = ranges_of(pc.fill_null(pc.list_value_length(lists), 0).to_numpy())
    entries = lists.flatten()
    columns = [entries.field(ENTRY_KEYS), entries.field(ENTRY_VALUES)]
    for i, part in change.parts.items():
        columns[i] = _within(columns[i], part, first)
    missing = np.append(np.asarray(array.is_null().to_numpy(zero_copy_only=False), np.bool_), False)
    offsets = pa.array(first.astype(np.int32), mask=missing if array.null_count else None)
    return pa.MapArray.from_arrays(offsets, *columns)


def _within(values: pa.Array, part: _ColumnChange, first: I64) -> pa.Array:
    """Changes the values of lists. Errors have the row of the list with the value."""
    try:
        return _apply_change(values, part)
    except _Unfit as unfit:
        unfit.row = int(np.searchsorted(first, unfit.row, side="right")) - 1
        raise
