"""Columns of the events that are copied to the result, next to the matching subscriptions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.arrays.ranges import ranges_of
from colmatch.errors import EventError, OptionError, show_value, suggest_names
from colmatch.events.gather import match_names
from colmatch.given.arguments import members, text
from colmatch.given.incoming import decode_runs, values_of


def read_keep(keep: object) -> list[str]:
    """Returns the column names of ``keep=``, which may be one name or several.

    Raises OptionError: a value is no name.
    """
    listed = values_of(keep, OptionError, "keep") if isinstance(keep, pa.Array | pa.ChunkedArray) else members(keep)
    names = [name for name in map(text, [keep] if listed is None else listed) if name is not None]
    if len(names) < (1 if listed is None else len(listed)):
        raise OptionError(f"keep={show_value(keep)}: names of columns are needed")
    return names


def convert_column(column: pa.Array, type: pa.DataType) -> pa.Array:
    """Converts a column to its type of ``find_kept_fields``, from which Arrow can take rows."""
    if pa.types.is_run_end_encoded(column.type):
        column = decode_runs(column)
    return column if column.type == type else column.cast(type)


def _find_result_type(field: pa.Field) -> pa.DataType:
    """Returns the type of a kept column in the result; Arrow takes no rows from views and runs.

    Raises EventError: Arrow takes no rows from the type in the result either.
    """
    type = _replace_views(field.type)
    try:
        convert_column(pa.nulls(1, field.type), type).take(pa.array([0]))
    except (pa.ArrowException, NotImplementedError):
        raise EventError(
            f"keep has {field.name!r}: rows cannot be taken from {field.type}: cast the column before"
        ) from None
    return type


def _replace_views(type: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_run_end_encoded(type):
        return _replace_views(type.value_type)
    if types.is_string_view(type):
        return pa.large_string()
    if types.is_binary_view(type):
        return pa.large_binary()
    if types.is_list(type) or types.is_large_list(type):
        lists = pa.list_ if types.is_list(type) else pa.large_list
        return lists(type.value_field.with_type(_replace_views(type.value_type)))
    if types.is_struct(type):
        return pa.struct([field.with_type(_replace_views(field.type)) for field in type])
    return type


def find_kept_fields(keep: object, events: pa.Schema, result: Sequence[str], given: Sequence[str]) -> list[pa.Field]:
    """Returns the fields of the kept columns in the result.

    result : names of the result's own columns
    given : columns that the time of the call replaces

    Raises
    ------
    OptionError : ``keep`` has no names of columns, one name twice, or a name that the result cannot
        have
    EventError : the events have no such column, or several. Or Arrow cannot take rows from it
    """
    fields = []
    for name in read_keep(keep):
        matches = match_names(events.names, [name])
        if len(matches) != 1:
            why = (
                f"the events have {len(matches)} columns of that name"
                if matches
                else suggest_names(name, events.names, "an event")
            )
            raise EventError(f"keep has {name!r}: {why}")
        if name in result:
            raise OptionError(f"keep has {name!r}, which is a column of the result: rename that of the events")
        if matches[0] in given:
            raise OptionError(
                f"keep has {name!r}, whose place the time takes that is given: leave out now=, or leave it out of keep"
            )
        field = events.field(matches[0])
        fields.append(field.with_type(_find_result_type(field)))
    for name, times in Counter(field.name for field in fields).items():
        if times > 1:
            raise OptionError(f"keep has {name!r} {times} times")
    return fields


def bytes_of(column: pa.Array) -> NDArray[np.int64]:
    """Returns the approximate bytes of each row of a kept column: (rows)."""
    types, type, count = pa.types, column.type, len(column)
    if types.is_string(type) or types.is_binary(type) or types.is_large_string(type) or types.is_large_binary(type):
        length: NDArray[np.int64] = pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False)
        return length.astype(np.int64)
    if types.is_struct(type):
        return sum((bytes_of(column.field(i)) for i in range(type.num_fields)), np.zeros(count, np.int64))
    if types.is_map(type) or types.is_list(type) or types.is_large_list(type):
        # Sum the bytes of each list's elements
        inner = [column.keys, column.items] if types.is_map(type) else [column.values]
        before = ranges_of(sum(map(bytes_of, inner), np.zeros(len(inner[0]), np.int64)))
        offset = column.offsets.to_numpy().astype(np.int64)
        size: NDArray[np.int64] = before[offset[1:]] - before[offset[:-1]]
        return size
    if types.is_fixed_size_list(type):
        flat = bytes_of(column.values.slice(column.offset * type.list_size, count * type.list_size))
        in_rows: NDArray[np.int64] = flat.reshape(count, type.list_size).sum(axis=1)
        return in_rows
    return np.full(count, column.nbytes // max(count, 1) + 1, np.int64)
