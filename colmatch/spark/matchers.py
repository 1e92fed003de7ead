"""Matchers for a DataFrame, with the same meaning of expressions as in its session."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from colmatch.errors import DependencyError, OptionError, SchemaError, SubscriptionError
from colmatch.given.declared import schema_of

try:
    from pyspark.sql import DataFrame
except ImportError as error:
    raise DependencyError(f'colmatch.spark needs PySpark 4: pip install "colmatch[spark]" ({error})') from error

from colmatch.events.sample import MOST_EVENTS
from colmatch.given.language import Missing
from colmatch.given.options import Options, check_options
from colmatch.given.schema import Schema
from colmatch.given.session import ANSI, ZONE, same_zone
from colmatch.kinds.registry import IndexName
from colmatch.kinds.settings import Settings
from colmatch.matcher import Matcher
from colmatch.spark.settings import double_quotes_of, is_on, zone_of
from colmatch.subscriptions.intake import Errors


def build(
    subscriptions: Any,
    df: DataFrame,
    index: IndexName | Settings = "auto",
    options: Options | None = None,
    errors: Errors = "raise",
    sample: Any = None,
    missing: Missing | None = None,
    tags: Any = None,
    max_rejected: int | float | None = None,
) -> Matcher:
    """Indexes subscriptions for the rows of a DataFrame.

    An expression has the same meaning as in ``df.where(...)``. The time zone, the ANSI mode, the
    meaning of double quotes and ``spark.sql.caseSensitive`` are those of the session.

    Parameters
    ----------
    subscriptions : a DataFrame with columns ``id`` and ``expression``, and optionally ``weights``,
        ``priority`` and ``tags``, which is collected as Arrow data. Or as for ``Matcher.build``
    df : a DataFrame with the columns that expressions name; may be streaming. No job reads it. All
        columns may be NULL
    options : as for ``Matcher.build``; default values become those of the session
    sample : as for ``Matcher.build``, or a DataFrame; its first 4,096 rows are collected
    index, errors, missing, tags, max_rejected : as for ``Matcher.build``

    Raises
    ------
    SchemaError : ``df`` is not a DataFrame, or Arrow has no type for one of its columns
    OptionError : ``options`` has another time zone than the session, or ``Options(ansi=True)`` is
        used in a session without ANSI mode
    ExpressionError, SubscriptionError : as from ``Matcher.build``
    """
    schema = schema_for(df)
    if isinstance(subscriptions, DataFrame):
        if subscriptions.isStreaming:
            raise SubscriptionError("the subscriptions are a stream: give a DataFrame that is none")
        subscriptions = subscriptions.toArrow()
    options = options_for(df, options)
    sample = sample_of(sample)
    more: dict[str, Any] = {"missing": missing, "tags": tags, "max_rejected": max_rejected}
    return Matcher.build(subscriptions, schema, index, options, errors, sample, **more)


def schema_for(df: Any) -> Schema:
    """Returns the schema of a DataFrame, with all columns nullable.

    Raises SchemaError: as from ``build``.
    """
    if not isinstance(df, DataFrame):
        raise SchemaError(f"a Spark DataFrame is needed, not {type(df).__name__}: Matcher.build takes other schemas")
    columns = pa.schema([field.with_nullable(True) for field in schema_of(df)])
    return Schema(columns, case_sensitive=is_on(df.sparkSession, "spark.sql.caseSensitive"))


def sample_of(given: Any) -> Any:
    """Returns a sample for ``Matcher.build``: of a DataFrame, the first rows."""
    return given.limit(MOST_EVENTS).toArrow() if isinstance(given, DataFrame) else given


def options_for(df: DataFrame, given: Options | None) -> Options:
    """Replaces default options by the zone, the ANSI mode and the quotes of a session.

    Raises OptionError: the zone or the mode is neither the default nor as in the session.
    """
    default, spark = Options(), df.sparkSession
    options = default if given is None else check_options(given)
    zone, ansi, quotes = zone_of(spark), is_on(spark, ANSI), double_quotes_of(spark)
    for name, mine, session, setting in (
        ("timezone", options.timezone, zone, ZONE),
        ("ansi", options.ansi, ansi, ANSI),
    ):
        same = same_zone(options.timezone, zone) if name == "timezone" else mine == session
        if mine != getattr(default, name) and not same:
            raise OptionError(f"{name}={mine!r}: {setting} of the session is {session!r}; leave it out, or set that")
    return replace(
        options, timezone=zone, ansi=ansi, double_quotes=quotes if options.double_quotes == "texts" else "names"
    )
