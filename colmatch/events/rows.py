"""Lists of Python mappings as events: each row is a mapping, typed by the schema of the matcher.

A column is made as a whole. Arrow converts it if the classes of its values say that nothing is
lost. Otherwise each value is converted and checked, as a single event is: texts as times, numbers
of NumPy, decimals as floats.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time
from decimal import Decimal
from itertools import chain
from operator import attrgetter
from types import NoneType
from typing import Any

import numpy as np
import pyarrow as pa

from colmatch.errors import EventError, show_value
from colmatch.events.gather import Source, match_names
from colmatch.events.single.mapping import as_mapping, is_object
from colmatch.events.single.row import array_of, decode_type, fit, weights_type, widen_type
from colmatch.given.incoming import column_of, is_list, nulls_of, table_of
from colmatch.given.schema import UNITS, Schema
from colmatch.given.variants import is_variant

# Classes of which Arrow takes each value as it is, or refuses it.
_TAKEN: tuple[tuple[Any, frozenset[type]], ...] = (
    (pa.types.is_string, frozenset({str})), (pa.types.is_large_string, frozenset({str})),
    (pa.types.is_integer, frozenset({int})), (pa.types.is_boolean, frozenset({bool})),
    (pa.types.is_floating, frozenset({float, int})), (pa.types.is_decimal, frozenset({Decimal, int})),
    (pa.types.is_binary, frozenset({bytes})), (pa.types.is_large_binary, frozenset({bytes})),
    (pa.types.is_date, frozenset({date})), (pa.types.is_timestamp, frozenset({datetime})),
    (pa.types.is_time, frozenset({time})),
)  # fmt: skip
_NARROW = {pa.float16(): 65520.0, pa.float32(): 3.4028235677973366e38}  # the first numbers that become infinite
_type_of = type  # for functions with a ``type`` of Arrow


def events_of(events: Any, schema: Schema) -> Any:
    """Returns events as ``gather`` takes them: a list of mappings or objects becomes a source.

    Raises EventError: an element of such a list is no event.
    """
    if not isinstance(events, (list, tuple)) or hasattr(events, "_asdict"):
        return events
    rows: Sequence[Any] = events
    if not set(map(type, rows)) <= {dict}:
        if not any(isinstance(row, Mapping) or is_object(row) for row in rows):
            return events
        rows = [_as_mapping(row, number) for number, row in enumerate(rows)]
    columns = _Columns(rows, schema)
    return Source(columns.schema, (), True, columns.read)


def _as_mapping(event: object, number: int) -> Mapping[Any, Any]:
    try:
        return as_mapping(event)
    except EventError as error:
        error.event = number
        raise


class _Columns:
    """The columns of a list of mappings, each converted when it is first needed."""

    def __init__(self, rows: Sequence[Mapping[Any, Any]], schema: Schema) -> None:
        self._rows = rows
        self._types = schema.arrow
        self._keys = self._keys_by_column(dict.fromkeys(chain.from_iterable(rows)))
        self._known: dict[str, pa.Array] = {}

    def _keys_by_column(self, keys: Iterable[Any]) -> dict[str, list[str]]:
        """Returns the keys of each column: several if they differ in case alone."""
        folded: dict[str, list[str]] = defaultdict(list)
        for name in self._types.names:
            folded[name.lower()].append(name)
        by_meaning: dict[str, list[str]] = {}
        for key in keys:
            if not isinstance(key, str):
                number = next(i for i, row in enumerate(self._rows) if key in row)
                raise EventError(f"it has a key {show_value(key)}: keys are names of columns", event=number)
            meant = folded.get(key.lower(), ())
            by_meaning.setdefault(meant[0] if len(meant) == 1 else key, []).append(key)
        return {name if len(same) > 1 else same[0]: same for name, same in by_meaning.items()}

    def schema(self, kept: list[str]) -> pa.Schema:
        """Returns a schema of all columns, with the types of those that are kept."""
        chosen = self._found(kept)
        known = {name: self._column(name, True).type for name in chosen}
        return pa.schema([(name, known.get(name, pa.null())) for name in dict.fromkeys([*self._keys, *chosen])])

    def read(self, columns: list[str] | None) -> Iterable[pa.RecordBatch]:
        """Yields the rows, with NULL where a key is missing.

        columns : names of columns, of which unknown ones are left out. None for those of the schema
            and those that are kept
        """
        names = self._found([*self._types.names, *self._known] if columns is None else columns)
        if not names:  # a batch without columns has no rows
            yield pa.RecordBatch.from_arrays([pa.nulls(len(self._rows))], ["event"])
        else:
            yield pa.RecordBatch.from_arrays([self._column(name, False) for name in names], names)

    def _found(self, columns: Iterable[str]) -> list[str]:
        """Returns the columns that may be meant; those of the schema need no key."""
        keys, types = list(self._keys), self._types.names
        return list(
            dict.fromkeys(chain.from_iterable(match_names(keys, [c]) or match_names(types, [c]) for c in columns))
        )

    def _column(self, name: str, is_kept: bool) -> pa.Array:
        if name not in self._known:
            self._known[name] = self._convert(name, is_kept)
        return self._known[name]

    def _convert(self, name: str, is_kept: bool) -> pa.Array:
        """Returns a column; of its type in the schema, else of the one that Arrow finds.

        A column that is neither in the schema nor kept has weights of events.
        """
        keys = self._keys.get(name, ())
        meant = match_names(self._types.names, [name])
        type = decode_type(self._types.field(meant[0]).type) if len(meant) == 1 else None
        if type is not None and not keys:
            return nulls_of(len(self._rows), type)
        values = [row.get(name) for row in self._rows] if len(keys) < 2 else self._merged(name, keys)
        if type is not None:
            return convert(values, type, name)
        if is_kept:
            where = f"column {name!r}, which keep= names,"
            return column_of(table_of({name: values}, EventError, where), name, EventError, where)
        return convert(values, weights_type(next((value for value in values if value is not None), None)), name)

    def _merged(self, name: str, keys: Sequence[str]) -> list[Any]:
        """Returns the values of keys that differ in case alone, of which a row has one at most."""
        for number, row in enumerate(self._rows):
            if sum(key in row for key in keys) > 1:
                raise EventError(f"it has {name!r} twice, in different cases", event=number)
        return [next((row[key] for key in keys if key in row), None) for row in self._rows]


def convert(values: list[Any], type: pa.DataType, name: str) -> pa.Array:
    """Returns a column, with wider numbers than the type's if its values need them.

    Raises EventError: a value does not fit. The error has its row.
    """
    with suppress(pa.ArrowException, ValueError, OverflowError):  # else the error below says why
        if _is_plain(values, type):
            return pa.array(values, type)
    try:
        return _convert_each(values, type, lambda value: array_of(value, type, name, True))
    except EventError:
        wide = widen_type(type)
        if wide != type:
            # A value that fits is made of the narrow type first, so that no other event changes it
            with suppress(EventError):
                return _convert_each(values, wide, lambda value: fit(value, type, name, True))
        raise


def _convert_each(values: list[Any], type: pa.DataType, make: Callable[[Any], pa.Array]) -> pa.Array:
    arrays = [pa.array([], type)]
    for number, value in enumerate(values):
        try:
            array = make(value)
        except EventError as error:
            error.event = number
            raise
        arrays.append(array if array.type == type else array.cast(type))
    return pa.concat_arrays(arrays)


def _is_plain(values: list[Any], type: pa.DataType) -> bool:
    """Returns whether Arrow takes values for a type without loss, or refuses them.

    Arrow itself cuts off fractions and parts of times, drops unknown fields, and takes bytes for
    texts.
    """
    types, classes = pa.types, set(map(_type_of, values))
    present = [value for value in values if value is not None] if NoneType in classes else values
    classes.discard(NoneType)
    if not classes or is_variant(type):
        return not classes
    if is_list(type):
        return classes <= {list, tuple} and _is_plain(list(chain.from_iterable(present)), type.value_type)
    if types.is_struct(type):
        names = {field.name for field in type}
        return (
            classes == {dict}
            and len(names) == type.num_fields > 0
            and names.issuperset(chain.from_iterable(present))
            and all(_is_plain([value.get(field.name) for value in present], field.type) for field in type)
        )
    if types.is_map(type):
        return (
            classes == {dict}
            and _is_plain(list(chain.from_iterable(present)), type.key_type)
            and _is_plain(list(chain.from_iterable(value.values() for value in present)), type.item_type)
        )
    if not any(is_one(type) and classes <= taken for is_one, taken in _TAKEN):
        return False
    if types.is_timestamp(type) or types.is_time(type):
        least = max(1, 10**6 // UNITS[type.unit])  # microseconds
        zoned = types.is_timestamp(type) and type.tz is not None
        parts, zones = set(map(attrgetter("microsecond"), present)), set(map(attrgetter("tzinfo"), present))
        return not any(part % least for part in parts) and (None not in zones if zoned else zones == {None})
    if type not in _NARROW:
        return True
    sizes = np.abs(np.array(present, np.float64))
    return not np.any((sizes >= _NARROW[type]) & np.isfinite(sizes))
