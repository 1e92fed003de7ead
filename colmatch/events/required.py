"""What no event may lack: columns that the schema declares not nullable.

An event that lacks one matches nothing, whatever the expressions say. It is read and matched like
any other, and what was found for it is dropped: such events are few.

A test ``IS NOT NULL`` in each expression would cost each of them a predicate. Taking such rows out
beforehand would give all other rows new numbers. The validity of the columns is looked at instead,
whose NULLs Arrow counts anyway.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.errors import EventError, near
from colmatch.events.gather import meant
from colmatch.events.range_reader import Ranges
from colmatch.given.incoming import refusing, without_runs
from colmatch.given.schema import Schema

LACKS = pa.schema([("event", pa.int64()), ("column", pa.string()), ("reason", pa.string())])
REASON = "it is missing, and must be defined"
_NOTHING = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in LACKS], schema=LACKS)


class Lacks(NamedTuple):
    """Which rows of a batch lack something.

    ``row`` (rows) is whether each does; ``columns`` has the rows that lack each.
    """

    row: NDArray[np.bool_]
    columns: dict[str, NDArray[np.bool_]]

    def table(self, offset: int) -> pa.RecordBatch:
        """Returns events and columns, ordered by event; the first row is event ``offset``."""
        names = list(self.columns)
        event, column = np.nonzero(np.stack(list(self.columns.values()), axis=1))
        said = pa.array([REASON] * len(event), pa.string())
        return pa.RecordBatch.from_arrays(
            [pa.array(event + offset, pa.int64()), pa.array(names, pa.string()).take(pa.array(column)), said],
            schema=LACKS,
        )


def lacks_table(lacks: Lacks | None, offset: int) -> pa.RecordBatch:
    """Returns what ``Lacks.table`` does, without rows where nothing lacks anything."""
    return _NOTHING if lacks is None else lacks.table(offset)


class Required:
    """The columns that no event may lack.

    Parameters
    ----------
    ranges : attributes that have two columns instead, of which one must be defined

    Attributes
    ----------
    columns : that events need so that it can be told
    """

    def __init__(self, schema: Schema, ranges: Ranges = ()) -> None:
        ends = {range.path[0]: [range.low, range.high] for range in ranges if len(range.path) == 1}
        floating = pa.types.is_floating
        self._nan_is_missing = {field.name: not floating(field.type) for field in schema.arrow}  # as when it is read
        self._ends = {field.name: ends.get(field.name, [field.name]) for field in schema.arrow if not field.nullable}
        self.columns = list(dict.fromkeys(end.split(".")[0] for some in self._ends.values() for end in some))

    def lacks(self, rows: pa.RecordBatch, lenient: bool) -> Lacks | None:
        """Returns which rows lack something; None if none does.

        lenient : a column that is not there is NULL in every row

        Raises EventError: a column is not there, or there twice.
        """
        found: dict[str, NDArray[np.bool_]] = {}
        for name, ends in self._ends.items():
            nulls = [self._nulls(rows, end, lenient, self._nan_is_missing[name]) for end in ends]
            if all(some is not None for some in nulls):
                both = reduce(np.logical_and, [some for some in nulls if some is not None])
                if both.any():
                    found[name] = both
        return Lacks(reduce(np.logical_or, found.values()), found) if found else None

    def _nulls(self, rows: pa.RecordBatch, name: str, lenient: bool, nan: bool) -> NDArray[np.bool_] | None:
        """Returns which rows have no value of a column; None if all have one."""
        top, *fields = name.split(".") if name not in rows.schema.names else [name]
        same = meant(rows.schema.names, [top])
        if not same and lenient:
            return np.ones(rows.num_rows, np.bool_)
        if len(same) != 1:
            said = f"there are {len(same)} columns" if same else "the events have no column"
            some = near(top, rows.schema.names, "the batch")
            raise EventError(f"{said} {top!r}, which must be defined in each event: {some}")
        column = rows.column(same[0])
        with refusing(EventError, f"column {name!r} cannot be looked through for what is missing"):
            for field in fields:
                column = pc.struct_field(column, field)
            if pa.types.is_run_end_encoded(column.type):
                column = without_runs(column)
            if pa.types.is_dictionary(column.type):
                column = column.dictionary_decode()
            nan = nan and pa.types.is_floating(column.type)
            if not column.null_count and not nan:
                return None
            return np.asarray(pc.is_null(column, nan_is_null=nan).to_numpy(zero_copy_only=False), np.bool_)
