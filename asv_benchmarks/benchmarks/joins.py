"""Rivals in two engines for tables: matching as a join of the events' values with the predicates.

Events are handed over in long form, a row for each value. *Counting* joins them with all predicates
and keeps what was met as often as a subscription has predicates. *Access* joins them with the
rarest predicate of each subscription, spread out to the values that it allows, and counts only
among the candidates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.conjunctions import Conjunctions, Events, conjunctions
from benchmarks.systems import Match, Pairs
from benchmarks.workloads import Workload

SPREAD = 2**27  # values of all access predicates, at most


class Tables(NamedTuple):
    predicates: pa.Table  # subscription, attr, low, high: all of them
    needed: pa.Table  # subscription, needed: how many it has
    access: (
        pa.Table
        # attr, value, subscription, needed: of the rarest one of each, a row for each value;
        # needed: how many others there are
    )
    others: pa.Table  # subscription, attr, low, high


def tables(workload: Workload) -> Tables:
    given = conjunctions(workload)
    size = np.diff(given.first)
    rarest = np.zeros(len(given.attr), bool)
    rarest[given.first[:-1]] = True
    return Tables(
        _predicates(given, np.ones(len(given.attr), bool)),
        pa.table({"subscription": given.id, "needed": size}),
        _access(given, rarest, size - 1),
        _predicates(given, ~rarest),
    )


def _predicates(given: Conjunctions, which: Any) -> pa.Table:
    return pa.table(
        {
            "subscription": given.id[given.owner[which]],
            "attr": given.attr[which],
            "low": given.lo[which],
            "high": given.hi[which],
        }
    )


def _access(given: Conjunctions, rarest: Any, needed: Any) -> pa.Table:
    lo, hi = given.lo[rarest], given.hi[rarest]
    width = np.maximum(hi - lo + 1, 0)
    if width.sum() > SPREAD:
        raise NotImplementedError("rarest predicates that allow too many values")
    start = np.cumsum(width) - width
    value = np.arange(width.sum()) + np.repeat(lo - start, width)
    columns = {"attr": given.attr[rarest], "subscription": given.id, "needed": needed}
    return pa.table({"value": value, **{name: np.repeat(column, width) for name, column in columns.items()}})


def duckdb_connection() -> Any:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


COUNTING = """
    SELECT event, subscription
    FROM events JOIN predicates USING (attr) JOIN needed USING (subscription)
    WHERE value BETWEEN low AND high
    GROUP BY event, subscription, needed
    HAVING count(*) = needed
"""

# MATERIALIZED keeps the order of the joins, without which DuckDB 2.0 takes ten times as long on 100
# attributes: it joins the predicates that are left with all events before it looks at the
# candidates.
ACCESS = """
    WITH candidates AS MATERIALIZED (SELECT event, subscription, needed FROM events JOIN access USING (attr, value)),
    asked AS MATERIALIZED (SELECT event, subscription, needed, attr, low, high FROM candidates JOIN others USING (subscription))
    SELECT event, subscription FROM candidates WHERE needed = 0
    UNION ALL
    SELECT event, subscription
    FROM asked JOIN events USING (event, attr)
    WHERE value BETWEEN low AND high
    GROUP BY event, subscription, needed
    HAVING count(*) = needed
"""


def _duckdb(workload: Workload, query: str) -> Callable[[Events], Match]:
    connection = duckdb_connection()
    for name, table in tables(workload)._asdict().items():
        if name in query:
            connection.register("given", table)
            connection.execute(f"CREATE TABLE {name} AS FROM given")

    def ready(events: Events) -> Match:
        long = events.long

        def run() -> Pairs:
            connection.register("events", long)
            found = connection.execute(query).fetchnumpy()
            return Pairs(found["event"], found["subscription"])

        return run

    return ready


def duckdb_counting(workload: Workload) -> Callable[[Events], Match]:
    """The natural way for conjunctions, and about ten times as fast as a query for each
    subscription.

    One query with a Boolean column for each subscription was worse: with 1,000 columns planning it
    took over a minute, and with 250 at a time it was as slow as single queries.
    """
    return _duckdb(workload, COUNTING)


def duckdb_access(workload: Workload) -> Callable[[Events], Match]:
    return _duckdb(workload, ACCESS)


def polars_access(workload: Workload) -> Callable[[Events], Match]:
    """On one thread where POLARS_MAX_THREADS=1 is set before polars is imported, as
    ``measure.one_thread`` does.
    """
    import polars as pl

    given = tables(workload)
    access, others = (pl.from_arrow(table).lazy() for table in (given.access, given.others))

    def ready(events: Events) -> Match:
        long = pl.from_arrow(events.long).lazy()

        def run() -> Pairs:
            candidates = long.join(access, on=["attr", "value"]).select("event", "subscription", "needed")
            met = (
                candidates.join(others, on="subscription")
                .join(long, on=["event", "attr"])
                .filter(pl.col("value").is_between("low", "high"))
                .group_by("event", "subscription")
                .agg(pl.len().alias("met"), pl.col("needed").first())
                .filter(pl.col("met") == pl.col("needed"))
            )
            columns = ["event", "subscription"]
            found = pl.concat([candidates.filter(pl.col("needed") == 0).select(columns), met.select(columns)]).collect()
            return Pairs(found["event"].to_numpy(), found["subscription"].to_numpy())

        return run

    return ready
