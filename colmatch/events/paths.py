"""Columns of a batch and fields of structs, by the names that lead to them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from colmatch.errors import EventError, suggest_names
from colmatch.events.gather import match_names


def column_at(batch: pa.RecordBatch, path: tuple[str, ...], lenient: bool, used: str) -> pa.Array | None:
    """Returns a column, or a field of a struct; None if it is NULL in every row.

    lenient : a missing column is NULL in every row; otherwise it is an error
    used : purpose of the column, for errors

    Raises EventError: the column is missing or ambiguous, or its parent is no struct.
    """
    name = ".".join(path)
    column: pa.Array | None = None
    fields: pa.Schema | pa.StructType = batch.schema
    for depth, part in enumerate(path):
        same = [part]
        if len(fields.get_all_field_indices(part)) != 1:  # most often there is one, found without the others
            names = fields.names
            same = match_names(names, same)
        if not same and lenient:
            return None
        if len(same) != 1:
            message = f"there are {len(same)} columns" if same else "the events have no column"
            raise EventError(f"{message} {name!r}, {used}: {suggest_names(part, names, 'the batch')}")
        column = batch.column(same[0]) if depth == 0 else pc.struct_field(column, same[0])
        if depth + 1 < len(path):
            if pa.types.is_null(column.type):
                return None
            if not pa.types.is_struct(column.type):
                raise EventError(f"column {'.'.join(path[: depth + 1])!r} is {column.type}, no struct: cast it")
            fields = column.type
    return column
