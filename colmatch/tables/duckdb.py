"""A matcher as a function of DuckDB: ``register`` makes it, and SQL calls it for each row.

>>> colmatch.tables.duckdb.register(con, "alerts", matcher)  # doctest: +SKIP
>>> con.sql("SELECT *, alerts({price: price, dest: dest}) AS found FROM offers")  # doctest: +SKIP
>>> con.sql("SELECT * FROM offers WHERE len(alerts(offers)) > 0")  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pyarrow as pa

from colmatch.errors import DependencyError, OptionError
from colmatch.matcher import Matcher
from colmatch.matching.range_worker import RangeNames
from colmatch.matching.request import SomeIds, SomeTags, Time
from colmatch.matching.topk.arguments import Score
from colmatch.show.names import listed_names
from colmatch.tables.columns import ColumnMode, MatchColumn, function_name, match_column

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

if __name__ == "duckdb":
    raise ImportError(
        "this is colmatch.tables.duckdb: Python looks for duckdb in the folder of colmatch, so start it elsewhere"
    )

__all__ = ["register"]


def __dir__() -> list[str]:
    return listed_names(__all__, globals())


HINT = "{price: price, dest: dest}, or the name of a table"


class _ScalarFunction:
    """A function for DuckDB, which raises an error once another has taken over its name."""

    def __init__(self, name: str, column: MatchColumn) -> None:
        self.name = name
        self.column: MatchColumn | None = column

    def __call__(self, rows: pa.ChunkedArray) -> pa.Array:
        if self.column is None:
            raise OptionError(f"{self.name} was registered anew, and a rollback brought it back: register it again")
        return self.column.array(rows)  # DuckDB 1.4 reads only the first of several chunks


# Functions made here, by connection and name, including replaced ones. DuckDB drops its reference
# to a function that it removes, but a rollback brings the name back.
MADE: WeakKeyDictionary[Any, dict[str, list[_ScalarFunction]]] = WeakKeyDictionary()


def register(
    con: DuckDBPyConnection,
    name: str,
    matcher: Matcher,
    mode: ColumnMode = "lists",
    *,
    k: int | None = None,
    score: Score = "dot",
    event_weights: str | Mapping[str, str | float] | None = None,
    ranges: RangeNames | None = None,
    ids: SomeIds | None = None,
    tags: SomeTags | None = None,
    now: Time | None = None,
) -> None:
    """Registers a matcher as a SQL function that returns the matches of each row.

    The function takes a struct of an event's columns. A table's name is a struct of all its
    columns, and DuckDB then reads all of them. A struct of some columns avoids reading the others.
    A NULL struct is an event with NULL in all columns. DuckDB calls the function for up to 2,048
    rows at a time, from several threads. Each call sees the subscriptions of that moment.

    A query raises ``duckdb.InvalidInputException`` if the struct lacks a column that the
    expressions use, or has a column of another type. Its message is the message of an
    ``EventError``, and counts rows within a batch.

    Parameters
    ----------
    con : a connection; or ``duckdb``, for the default one
    name : name of the function. It replaces an earlier function of this name that was registered
        here with the same connection
    mode : result for each row. ``"lists"`` is a list of ids, ``"count"`` their number, and
        ``"exists"`` True if any subscription matches. ``"topk"`` is a list of the k best, the best
        first: structs of subscription and score
    k, score, event_weights : with ``"topk"``, as for ``Matcher.match_topk``
    ranges, ids, tags, now : as for ``Matcher.match``

    Raises
    ------
    DependencyError : DuckDB is not installed
    OptionError, SubscriptionError : an argument cannot be used, or DuckDB already has a function of
        this name
    """
    try:
        import duckdb
    except ImportError as error:
        raise DependencyError('colmatch.tables.duckdb needs DuckDB: pip install "colmatch[duckdb]"') from error
    is_default: bool = con is duckdb  # type: ignore[comparison-overlap]
    if not is_default and not isinstance(con, duckdb.DuckDBPyConnection):
        raise OptionError(
            f"con is a {type(con).__name__}: a connection of DuckDB is needed, or the module duckdb for the default one"
        )
    column = match_column(
        matcher, mode, hint=HINT, k=k, score=score, event_weights=event_weights, ranges=ranges, ids=ids, tags=tags,
        now=now,
    )  # fmt: skip
    called = function_name(name)
    ours = MADE.setdefault(con, {})
    functions = con.cursor().execute("SELECT DISTINCT function_name FROM duckdb_functions()").fetchall()
    function_name(called, {existing for (existing,) in functions} - ours.keys())
    before = ours.setdefault(called, [])
    for earlier in before:
        earlier.column = None
    if before:
        with suppress(duckdb.InvalidInputException, duckdb.CatalogException):  # it was removed since, or rolled back
            con.remove_function(called)
    function = _ScalarFunction(called, column)
    # With declared parameters, DuckDB would cast the structs, and fill absent fields with NULL.
    make: Any = con.create_function
    try:
        make(called, function, None, _sql_type(column.type), type="arrow", null_handling="special")
    except duckdb.NotImplementedException as error:
        raise OptionError(
            f"name={called!r}: a function of that name was made on this connection, and a rollback took it back: "
            "choose another name"
        ) from error
    before.append(function)


def _sql_type(type: pa.DataType) -> str:
    if pa.types.is_list(type):
        return f"{_sql_type(type.value_type)}[]"
    if pa.types.is_struct(type):
        return f"STRUCT({', '.join(f'{field.name} {_sql_type(field.type)}' for field in type)})"
    return {pa.int64(): "BIGINT", pa.bool_(): "BOOLEAN", pa.float64(): "DOUBLE", pa.string(): "VARCHAR"}[type]
