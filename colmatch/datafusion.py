"""A matcher as a function of DataFusion: ``register`` makes it, and SQL calls it for each row.

>>> colmatch.datafusion.register(ctx, "alerts", matcher, ctx.table("offers"))  # doctest: +SKIP
>>> ctx.sql("SELECT *, alerts({price: price, dest: dest}) AS found FROM offers")  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pyarrow as pa

from colmatch.columns import ColumnMode, function_name, match_column
from colmatch.declared import schema_of
from colmatch.errors import DependencyError, OptionError, shown
from colmatch.matcher import Matcher
from colmatch.matching.range_worker import RangeNames
from colmatch.matching.topk.arguments import Score

if TYPE_CHECKING:
    from datafusion import ScalarUDF, SessionContext

if __name__ == "datafusion":
    raise ImportError(
        "this is colmatch.datafusion: Python looks for datafusion in the folder of colmatch, so start it elsewhere"
    )

__all__ = ["register"]

MADE: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()  # names of functions made here, by session


def register(
    ctx: SessionContext,
    name: str,
    matcher: Matcher,
    schema: Any = None,
    mode: ColumnMode = "list",
    *,
    k: int | None = None,
    score: Score = "dot",
    event_weights: str | Mapping[str, str | float] | None = None,
    ranges: RangeNames | None = None,
    ids: Any = None,
    tags: Any = None,
    now: Any = None,
) -> ScalarUDF:
    """Registers a matcher as a SQL function that returns the matches of each row.

    The function takes a struct of the columns that expressions now use, in the order and with the
    types of ``schema``. DataFusion refuses any other struct when it plans a query. A NULL struct is
    an event with NULL in all columns. Each batch sees the subscriptions of the moment when it is
    matched.

    Parameters
    ----------
    name : name of the function. It replaces an earlier function of this name that was registered
        here
    schema : schema of the table, as ``Schema`` takes it, or ``ctx.table("offers")``; by default the
        matcher's. Tables read from files have ``string_view`` for strings
    mode : result for each row. ``"list"`` is a list of ids, ``"count"`` their number, and
        ``"exists"`` True if any subscription matches. ``"topk"`` is a list of the k best, the best
        first: structs of subscription and score
    k, score, event_weights : with ``"topk"``, as for ``Matcher.match_topk``
    ranges, ids, tags, now : as for ``Matcher.match``

    Returns
    -------
    ScalarUDF : the function, for expressions of data frames

    Raises
    ------
    DependencyError : DataFusion is not installed
    EventError : the schema lacks a column that expressions use
    OptionError, SchemaError, SubscriptionError : an argument cannot be used, or DataFusion already
        has a function of this name
    """
    try:
        from datafusion import SessionContext, udf
    except ImportError as error:
        raise DependencyError('colmatch.datafusion needs DataFusion: pip install "colmatch[datafusion]"') from error
    if not isinstance(ctx, SessionContext):
        raise OptionError(f"ctx={shown(ctx)}: a SessionContext of DataFusion is needed")
    column = match_column(
        matcher, mode, hint="{price: price, dest: dest}", k=k, score=score, event_weights=event_weights, ranges=ranges,
        ids=ids, tags=tags, now=now,
    )  # fmt: skip
    ours = MADE.setdefault(ctx, set())
    there = set(ctx.udfs()) if hasattr(ctx, "udfs") else set()  # an older DataFusion lists none
    called = function_name(name, _own_functions() | (there - ours))
    events = matcher.schema.arrow if schema is None else schema_of(schema)
    fields = [pa.field(field, events.field(field).type) for field in column.events_of(events)]
    made = udf(column.array, [pa.struct(fields)], column.type, "stable", called)
    ctx.register_udf(made)
    ours.add(called)
    return made


@cache
def _own_functions() -> frozenset[str]:
    """Returns the names of all functions that a new session has."""
    from datafusion import SessionConfig, SessionContext

    ctx = SessionContext(SessionConfig().with_information_schema(True))
    found = ctx.sql("SELECT DISTINCT routine_name FROM information_schema.routines").to_pydict()
    return frozenset(found["routine_name"])
