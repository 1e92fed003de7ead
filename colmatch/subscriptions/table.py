"""Columnar subscriptions: tables with a row for each predicate, without text to parse."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from colmatch.errors import SubscriptionError
from colmatch.given.incoming import (
    doubles_of,
    exact_doubles_of,
    find_only,
    in_chunks,
    is_list,
    is_nested,
    joined,
    sentence,
    table_of,
)
from colmatch.subscriptions.ids import ids_of_column
from colmatch.subscriptions.tags import GivenTags

FEW_ROWS = 1 << 14  # a column with fewer rows in a chunk is joined: it would be slow to read in pieces
_COLUMNS = ("id", "attribute", "op", "operands", "conjunction", "weight", "priority")


class PredicateTable:
    """Subscriptions as Arrow tables, one row for each predicate.

    Large chunks of the tables are not copied. Their memory must not change before the last build.

    Parameters
    ----------
    tables : one or more Arrow tables, record batches or readers (anything with the Arrow C stream
        or array protocol). Each type of operands needs a separate table. The columns:

        ===========  ==============  ==================================================
        id           int64 / string  id of the subscription; its rows may be apart
        attribute    string          ``age``, ``user.age``, ``attrs['k']``, ``size(tags)``, or a
                                     computed value: ``lower(dest)``, ``price * qty``
        op           string          see below
        operands     list of a type  NULL or empty for ``is null``, two for ``between``
        conjunction  int32           optional: rows of one id and number are ANDed, rows
                                     of one id and different numbers ORed
        weight       double          optional: weight of the predicate, 0 where NULL
        priority     double          optional: priority of the subscription, the same in
                                     all its rows; 0 where NULL. Numbers that no double
                                     is equal to, such as 2**53 + 1, are errors
        ===========  ==============  ==================================================

        Strings may also be dictionaries of strings; doubles may be any integers, floats or
        decimals. A column of weights or priorities with only NULL counts as absent.

        ``op`` is one of ``= <> != < <= > >= between in like ilike rlike startswith endswith
        contains array_contains arrays_overlap``, or ``is null`` or ``is not null``. All but
        the last two, signs too, may follow ``not``. Case and blanks do not matter.

    Raises
    ------
    SubscriptionError : a column is missing, unknown, repeated, malformed or of a wrong type; or an
        id, attribute or operator is NULL

    Examples
    --------
    >>> import pyarrow as pa
    >>> ids, attributes, operators = [1, 1, 2], ["age", "city", "age"], [">=", "=", "<"]
    >>> operands = [[18], [3], [18]]
    >>> rows = pa.table({"id": ids, "attribute": attributes, "op": operators, "operands": operands})
    >>> PredicateTable(rows)
    PredicateTable(3 predicates)
    """

    def __init__(self, *tables: Any) -> None:
        if not tables:
            raise SubscriptionError("PredicateTable() needs at least one table")
        self.tags: GivenTags | None = None
        self.tables = [_check(table, f"table {i + 1} of PredicateTable") for i, table in enumerate(tables)]
        kinds = {str(table["id"].type) for table in self.tables}
        if len(kinds) > 1:
            raise SubscriptionError(f"column 'id' must have one type in all tables, not {' and '.join(sorted(kinds))}")

    def with_tags(self, tags: GivenTags) -> PredicateTable:
        """Returns a table of these predicates, with tags of their subscriptions."""
        other = object.__new__(PredicateTable)
        other.tables, other.tags = self.tables, tags
        return other

    def __len__(self) -> int:
        return sum(table.num_rows for table in self.tables)

    def __repr__(self) -> str:
        return f"PredicateTable({len(self)} predicates)"


def _check(source: Any, where: str) -> pa.Table:
    table = table_of(source, SubscriptionError, where)
    names = table.column_names
    unknown = [name for name in names if name not in _COLUMNS]
    missing = [name for name in _COLUMNS[:4] if name not in names]
    if missing or unknown:
        faults = [f"has no column {', '.join(map(repr, missing))}"] if missing else []
        faults += [f"has a column {', '.join(map(repr, unknown)):.500} that means nothing here"] if unknown else []
        raise SubscriptionError(f"{where} {' and '.join(faults)}: it takes {', '.join(_COLUMNS)}")
    columns: dict[str, pa.Array | pa.ChunkedArray] = {}
    for name in names:
        column = find_only(table, name, SubscriptionError, where)
        column = in_chunks(column, SubscriptionError, f"{where}: column {name!r}")
        if len(column) < FEW_ROWS * column.num_chunks:
            column = pa.chunked_array([joined(column)])
        if name in ("id", "attribute", "op") and column.null_count:
            row = int(pc.index(column.is_null(), True).as_py())
            raise SubscriptionError(f"{where}: column {name!r} is NULL in row {row}")
        if name in ("weight", "priority") and column.null_count == len(column):
            continue  # as if the column were absent
        columns[name] = _convert(name, column, where)
    return pa.table(columns)


def _convert(name: str, column: pa.ChunkedArray, where: str) -> pa.Array | pa.ChunkedArray:
    types, column_type = pa.types, column.type
    if name == "id":
        if types.is_int64(column_type):
            return column
        return pa.chunked_array([ids_of_column(chunk, where) for chunk in column.chunks])
    if name in ("attribute", "op"):
        value = column_type.value_type if types.is_dictionary(column_type) else column_type
        if types.is_string(value) or types.is_large_string(value):
            return _of_one_dictionary(column if types.is_dictionary(column_type) else column.dictionary_encode())
        raise SubscriptionError(
            f"{where}: column {name!r} is {column_type}, a string or a dictionary of strings is needed"
        )
    if name == "operands":
        # nothing can be compared with these
        if types.is_null(column_type) or (is_list(column_type) and is_nested(column_type.value_type)):
            return pa.nulls(len(column), pa.large_list(pa.null()))
        if not types.is_large_list(column_type):
            raise SubscriptionError(f"{where}: column 'operands' is {column_type}, a list is needed")
        return column
    if name in ("weight", "priority"):
        doubles = exact_doubles_of if name == "priority" else doubles_of
        return doubles(joined(column), SubscriptionError, f"{where}: column {name!r}").fill_null(0)
    if not types.is_integer(column_type) and not types.is_null(column_type):
        raise SubscriptionError(f"{where}: column {name!r} is {column_type}, int32 is needed")
    try:
        return pc.fill_null(column.cast(pa.int32()), 0)
    except pa.ArrowInvalid as error:
        raise SubscriptionError(f"{where}: a number in column {name!r} does not fit int32: {sentence(error)}") from None


def _of_one_dictionary(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Returns a column of dictionaries of texts with one dictionary of strings for all chunks."""
    if not column.num_chunks or any(not c.dictionary.equals(column.chunk(0).dictionary) for c in column.chunks):
        return column.cast(pa.dictionary(pa.int32(), pa.string())).unify_dictionaries()
    words = column.chunk(0).dictionary.cast(pa.string())
    return pa.chunked_array([pa.DictionaryArray.from_arrays(c.indices, words) for c in column.chunks])
