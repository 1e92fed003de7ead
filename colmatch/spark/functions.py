"""A matcher as a function of Spark: ``hits`` in a column, ``register`` in SQL.

Both need the Arrow functions of Spark 4.1, which get whole batches. ``worker.py`` does their work.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import ArrayType, BooleanType, DataType, LongType, StringType, StructField, StructType

from colmatch.errors import DependencyError, OptionError, SchemaError, suggest_names
from colmatch.given.arguments import check_choice
from colmatch.given.declared import schema_of
from colmatch.matcher import Matcher
from colmatch.matching.kept import read_keep
from colmatch.matching.request import SomeIds, SomeTags, Time
from colmatch.spark.probe import check_workers, refuse_pipelines, task_name
from colmatch.spark.settings import SessionSettings, arrow_schema, check_settings, is_on, zone_of
from colmatch.spark.shipping import pin_index, ship_index
from colmatch.spark.worker import ColumnTask, IndexFile, TableTask
from colmatch.tables.columns import EventMode, function_name


@refuse_pipelines()
def hits(
    matcher: Matcher | str | os.PathLike[str],
    mode: EventMode = "lists",
    shared: bool | None = None,
    ids: SomeIds | None = None,
    tags: SomeTags | None = None,
    now: Time | None = None,
) -> Callable[[Column], Column]:
    """Makes a function of a struct column that returns the matches of each row.

    >>> df.withColumn("alerts", hits("alerts.cm")(F.struct("*")))  # doctest: +SKIP

    All columns of the struct go to Python. For a wide table, name only the columns that expressions
    use.

    Parameters
    ----------
    mode : result for each row. ``"lists"`` is an array of ids, ``"count"`` their number, and
        ``"exists"`` True if any subscription matches
    matcher, shared, ids, tags, now : as for ``match``

    Returns
    -------
    function : takes a struct column, with the columns of the events as fields, and returns a column

    Raises
    ------
    DependencyError : Spark is older than 4.1, or its workers cannot run colmatch
    OptionError : no session is active, ``mode`` has another value, or as from ``match``. Or this
        is a query function of a declarative pipeline: call ``hits`` before it
    StoreError, OSError : as from ``match``
    """
    check_choice("mode={}", mode, ("lists", "count", "exists"))
    opened, index = _open_for_workers(_active_session(), matcher, shared)
    among = None if ids is None and tags is None else opened.subset(ids, tags)
    id = _id_type(opened)
    types: dict[str, DataType] = {
        "lists": ArrayType(id, containsNull=False), "count": LongType(), "exists": BooleanType(),
    }  # fmt: skip
    task = ColumnTask(index, mode, among, now)

    def found(events: pa.Array, clock: pa.Array) -> pa.Array:
        return task(events, clock)

    found.__name__ = task_name("hits of", index.origin, index.hash, opened.columns_with(now=now))
    found.__annotations__ = {"events": pa.Array, "clock": pa.Array, "return": pa.Array}  # Spark reads these
    column: Callable[..., Column] = _arrow_functions().arrow_udf(found, returnType=types[mode])
    return lambda events: column(_refuse_collation(events), F.current_timestamp())


@refuse_pipelines()
def register(
    spark: SparkSession,
    name: str,
    matcher: Matcher | str | os.PathLike[str],
    keep: str | Sequence[str] | Mapping[str, Any] = (),
    shared: bool | None = None,
    ids: SomeIds | None = None,
    tags: SomeTags | None = None,
    now: Time | None = None,
) -> None:
    """Registers a matcher as a SQL table function with a row for each match.

    >>> register(spark, "alerts", "alerts.cm", keep={"user": "bigint"})  # doctest: +SKIP
    >>> spark.sql("SELECT * FROM alerts(TABLE(SELECT user, price FROM events))")  # doctest: +SKIP

    Parameters
    ----------
    name : name of the function; it replaces an older function of this name
    keep : columns of the table to add to the result, before ``subscription``. A column that is not
        in the matcher's schema needs its type: ``{"user": "bigint"}``
    matcher, shared, ids, tags, now : as for ``match``. The function keeps the present state of a
        matcher

    Raises
    ------
    SchemaError : ``keep`` lacks the type of a column
    DependencyError, OptionError, StoreError, OSError : as from ``hits``
    """
    called = function_name(name)
    functions = _arrow_functions()
    opened, index = _open_for_workers(spark, matcher, shared)
    among = None if ids is None and tags is None else opened.subset(ids, tags)
    fields = _resolve_keep(keep, opened, is_on(spark, "spark.sql.caseSensitive"))
    result = StructType([*fields, StructField("subscription", _id_type(opened), nullable=False)])
    needed = tuple(opened.columns_with(now=now))
    task = TableTask(
        index,
        tuple(field.name for field in fields),
        needed,
        () if opened.options.missing_columns == "null" else needed,
        arrow_schema(result, zone_of(spark)),
        among,
        now,
    )

    class Matched:
        def eval(self, batch: pa.RecordBatch) -> Iterator[pa.Table]:
            yield from task(batch)

    Matched.eval.__annotations__ = {"batch": pa.RecordBatch, "return": Iterator[pa.Table]}
    spark.udtf.register(called, functions.arrow_udtf(Matched, returnType=result))


def _refuse_collation(events: Column | str) -> Column:
    """Returns a column that raises an error in the job if its type has a collation.

    events : a column, or its name
    """
    events = F.col(events) if isinstance(events, str) else events
    type = F.typeof(events)
    message = F.concat(type, F.lit(": expressions compare strings by bytes: cast them to STRING COLLATE UTF8_BINARY"))
    return F.when(F.regexp_like(type, F.lit(r"collate (?!UTF8_BINARY\b)")), F.raise_error(message)).otherwise(events)


def _arrow_functions() -> Any:
    from pyspark.sql import functions

    if not hasattr(functions, "arrow_udtf"):
        raise DependencyError("functions of SQL and of columns need Spark 4.1 or later: use colmatch.spark.match")
    return functions


def _active_session() -> SparkSession:
    session = SparkSession.getActiveSession()
    connect = sys.modules.get("pyspark.sql.connect.session")
    if session is None and connect is not None:
        session = connect.SparkSession.getActiveSession()
    if session is None:
        raise OptionError("no session of Spark is active: make one first")
    return session


def _open_for_workers(
    spark: SparkSession, matcher: Matcher | str | os.PathLike[str], shared: bool | None
) -> tuple[Matcher, IndexFile]:
    """Makes an index readable for the workers of a session; returns the matcher and its file."""
    origin, file, hash, opened = pin_index(matcher)
    check_settings(SessionSettings.of(spark), opened)
    check_workers(spark, not type(spark).__module__.startswith("pyspark.sql.connect"))
    return opened, ship_index(spark.range(0), origin, file, hash, shared, opened)


def _id_type(opened: Matcher) -> DataType:
    return LongType() if pa.types.is_integer(opened.ids.type) else StringType()


def _resolve_keep(keep: Any, opened: Matcher, case_sensitive: bool) -> list[StructField]:
    """Returns the kept columns, with the types from ``keep`` or from the matcher's schema."""
    if isinstance(keep, Mapping):
        columns = schema_of(keep)
    else:
        schema = opened.schema.arrow
        names = read_keep(keep)
        for name in names:
            if name not in schema.names:
                raise SchemaError(
                    f"keep has {name!r}, which the matcher does not know ({suggest_names(name, schema.names, 'its schema')}): "
                    f"say its type, keep={{{name!r}: 'string'}}"
                )
        columns = pa.schema([schema.field(name) for name in names])
    folded = columns.names if case_sensitive else [name.lower() for name in columns.names]
    for name, seen in zip(columns.names, folded):
        if seen == "subscription":
            raise OptionError(f"keep has {name!r}, which is a column of the result: rename that of the table")
        if folded.count(seen) > 1:
            raise OptionError(f"keep has {name!r} {folded.count(seen)} times")
    return [StructField(field.name, from_arrow_type(field.type)) for field in columns]
