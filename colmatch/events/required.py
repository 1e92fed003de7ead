"""Columns that no event may lack: the schema declares them not nullable.

An event that lacks one matches nothing, whatever the expressions say. It is read and matched like
any other, and its matches are dropped: such events are few.

A test ``IS NOT NULL`` would cost each expression a predicate. Taking such rows out beforehand would
give all other rows new numbers. Instead, the validity of the columns is inspected. Arrow counts
their NULLs anyway.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.errors import EventError
from colmatch.events.paths import column_at
from colmatch.events.range_reader import Ranges
from colmatch.given.incoming import decode_runs, refusing
from colmatch.given.schema import Schema

LACKS = pa.schema([("event", pa.int64()), ("column", pa.string()), ("reason", pa.string())])
REASON = "it is missing, and must be defined"
_NOTHING = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in LACKS], schema=LACKS)


class Lacks(NamedTuple):
    """The rows of a batch that lack a required column.

    ``row`` (rows) is whether a row lacks any column; ``columns`` has the same for each column.
    """

    row: NDArray[np.bool_]
    columns: dict[str, NDArray[np.bool_]]

    def table(self, offset: int) -> pa.RecordBatch:
        """Returns events and missing columns by event; the first row is event ``offset``."""
        names = list(self.columns)
        event, column = np.nonzero(np.stack(list(self.columns.values()), axis=1))
        reasons = pa.array([REASON] * len(event), pa.string())
        return pa.RecordBatch.from_arrays(
            [pa.array(event + offset, pa.int64()), pa.array(names, pa.string()).take(pa.array(column)), reasons],
            schema=LACKS,
        )


def lacks_table(lacks: Lacks | None, offset: int) -> pa.RecordBatch:
    """Returns ``Lacks.table``; it has no rows if no event lacks anything."""
    return _NOTHING if lacks is None else lacks.table(offset)


class RequiredColumns:
    """The columns that no event may lack.

    Parameters
    ----------
    ranges : attributes with two columns instead; one of the two must be defined

    Attributes
    ----------
    columns : columns of events that the check needs
    """

    def __init__(self, schema: Schema, ranges: Ranges = ()) -> None:
        ends = {range.path[0]: [range.low, range.high] for range in ranges if len(range.path) == 1}
        floating = pa.types.is_floating
        self._nan_is_missing = {field.name: not floating(field.type) for field in schema.arrow}  # as in reading
        self._ends = {field.name: ends.get(field.name, [field.name]) for field in schema.arrow if not field.nullable}
        self.columns = list(dict.fromkeys(end.split(".")[0] for names in self._ends.values() for end in names))

    def lacks(self, rows: pa.RecordBatch, lenient: bool) -> Lacks | None:
        """Returns the rows that lack something; None if there are none.

        lenient : a missing column is NULL in every row

        Raises EventError: a column is missing, or there twice.
        """
        missing: dict[str, NDArray[np.bool_]] = {}
        for name, ends in self._ends.items():
            nulls = [self._nulls(rows, end, lenient, self._nan_is_missing[name]) for end in ends]
            if all(mask is not None for mask in nulls):
                both = reduce(np.logical_and, [mask for mask in nulls if mask is not None])
                if both.any():
                    missing[name] = both
        return Lacks(reduce(np.logical_or, missing.values()), missing) if missing else None

    def _nulls(self, rows: pa.RecordBatch, name: str, lenient: bool, nan: bool) -> NDArray[np.bool_] | None:
        """Returns whether each row has no value of a column; None if all rows have one."""
        path = (name,) if name in rows.schema.names else tuple(name.split("."))
        column = column_at(rows, path, lenient, "which must be defined in each event")
        if column is None:
            return np.ones(rows.num_rows, np.bool_)
        with refusing(EventError, f"column {name!r} cannot be searched for missing values"):
            if pa.types.is_run_end_encoded(column.type):
                column = decode_runs(column)
            if pa.types.is_dictionary(column.type):
                column = column.dictionary_decode()
            nan = nan and pa.types.is_floating(column.type)
            if not column.null_count and not nan:
                return None
            return np.asarray(pc.is_null(column, nan_is_null=nan).to_numpy(zero_copy_only=False), np.bool_)
