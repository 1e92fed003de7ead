"""A matcher as a function of ibis: ``hits`` gives a column for a table or a struct.

>>> alerts = colmatch.ibis.hits(matcher)  # doctest: +SKIP
>>> offers.mutate(found=alerts(offers))  # doctest: +SKIP

DuckDB runs it; other backends of ibis do where they have functions of pyarrow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from colmatch.columns import ColumnMode, match_column
from colmatch.declared import schema_of
from colmatch.errors import DependencyError, EventError, shown
from colmatch.matcher import Matcher
from colmatch.matching.range_worker import RangeNames
from colmatch.matching.topk.arguments import Score

if __name__ == "ibis":
    raise ImportError("this is colmatch.ibis: Python looks for ibis in the folder of colmatch, so start it elsewhere")
try:
    import ibis
    import ibis.expr.types as ir
except ImportError as error:
    raise DependencyError('colmatch.ibis needs ibis: pip install "colmatch[ibis]"') from error

__all__ = ["hits"]

HINT = 'a table, or ibis.struct({"price": t.price})'


def hits(
    matcher: Matcher,
    mode: ColumnMode = "list",
    *,
    k: int | None = None,
    score: Score = "dot",
    event_weights: str | Mapping[str, str | float] | None = None,
    ranges: RangeNames | None = None,
    ids: Any = None,
    tags: Any = None,
    now: Any = None,
) -> Callable[[ir.Table | ir.StructValue], ir.Value]:
    """Makes a function of a table or a struct column that returns the matches of each row.

    A table needs the columns that expressions now use. A struct has the columns of an event as its
    fields; a NULL struct is an event with NULL in all columns. Each batch sees the subscriptions of
    the moment when it is matched.

    Parameters
    ----------
    mode : result for each row. ``"list"`` is a list of ids, ``"count"`` their number, and
        ``"exists"`` True if any subscription matches. ``"topk"`` is a list of the k best, the best
        first: structs of subscription and score
    k, score, event_weights : with ``"topk"``, as for ``Matcher.match_topk``
    ranges, ids, tags, now : as for ``Matcher.match``

    Returns
    -------
    Callable : takes a table or a struct column, and returns a column. It raises EventError if the
        argument lacks a column that expressions use

    Raises
    ------
    OptionError, SubscriptionError : an argument cannot be used
    """
    column = match_column(
        matcher, mode, hint=HINT, k=k, score=score, event_weights=event_weights, ranges=ranges, ids=ids, tags=tags,
        now=now,
    )  # fmt: skip
    result = ibis.dtype(column.type)

    functions: dict[Any, Callable[[ir.StructValue], ir.Value]] = {}  # by the type of the struct

    def matched(rows: pa.ChunkedArray) -> pa.Array:
        return column.array(rows)

    def found(events: ir.Table | ir.StructValue) -> ir.Value:
        if isinstance(events, ir.Table):
            names = column.events_of(schema_of(events))
            events = ibis.struct({name: events[name] for name in names})
        elif isinstance(events, ir.StructValue):
            column.events_of(pa.schema(list(events.type().to_pyarrow())))
        else:
            raise EventError(f"{shown(events)}: {HINT} is needed")
        type = events.type()
        if type not in functions:
            functions[type] = ibis.udf.scalar.pyarrow(
                matched, name="colmatch_hits", signature=((type,), result), null_handling="special"
            )
        return functions[type](events)

    return found
