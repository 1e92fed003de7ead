"""Matching where tables live, beside ``match_lists`` on the same data.

    python asv_benchmarks/tables.py --subscriptions 10000 --rows 262144

Each engine matches all rows of a table of its own by the function that colmatch registers there,
and hands out the lists of ids as Arrow. Figures are microseconds an event on one thread, medians of
rounds in which all take turns, and their ratios to ``match_lists``. It takes batches of the rows
that the last column says, as the engine does.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
from benchmarks.measure import machine, medians, one_thread, versions
from benchmarks.workloads import flights

import colmatch as cm
from colmatch.tables.columns import match_column

BATCHES = {"duckdb": 2048, "ibis": 2048, "datafusion": 8192, "polars": 8192}


def main() -> None:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subscriptions", type=int, default=10_000, metavar="N")
    parser.add_argument("--rows", type=int, default=1 << 18, metavar="ROWS")
    parser.add_argument("--repeat", type=int, default=7, metavar="R")
    given = parser.parse_args()
    print(machine())
    print(versions("colmatch", "numba", "numpy", "pyarrow", "duckdb", "datafusion", "polars", "ibis-framework"))
    workload = flights(given.subscriptions, given.rows)
    matcher = cm.Matcher.build(workload.subscriptions, workload.schema, options=cm.Options(threads=1))
    events = workload.events.select(matcher.columns)
    ways: dict[str, Callable[[], int]] = {}
    for rows in sorted({*BATCHES.values()}):
        ways[f"match_lists {rows}"] = partial(in_batches, matcher, events, rows)
    ways |= {engine: MAKERS[engine](matcher, events) for engine in BATCHES}
    found = {name: way() for name, way in ways.items()}
    assert len(set(found.values())) == 1, found
    times = medians(ways, given.repeat, budget=120)
    print(
        f"\n{given.subscriptions:,} subscriptions, kind {matcher.kind}, {given.rows:,} events, {events.num_columns} columns,"
    )
    print(
        f"{found['duckdb'] / given.rows:.2f} matches an event\n\n| engine | us an event | ratio | rows |\n|---|---|---|---|"
    )
    for engine, rows in BATCHES.items():
        own = times[f"match_lists {rows}"]
        print(f"| {engine} | {times[engine] * 1e6 / given.rows:.3f} | {times[engine] / own:.2f} | {rows:,} |")
    for rows in sorted({*BATCHES.values()}):
        own = times[f"match_lists {rows}"]
        print(f"| `match_lists` | {own * 1e6 / given.rows:.3f} | 1 | {rows:,} |")


def in_batches(matcher: cm.Matcher, events: pa.Table, rows: int) -> int:
    """Matches batches of some rows, and returns how many matches there are."""
    return sum(ids(matcher.match_lists(batch)) for batch in events.to_batches(rows))


def ids(lists: Any) -> int:
    """Returns how many ids there are in lists."""
    return sum(len(chunk.flatten()) for chunk in pa.chunked_array(lists).chunks)


def with_duckdb(matcher: cm.Matcher, events: pa.Table) -> Callable[[], int]:
    import duckdb

    import colmatch.tables.duckdb

    con = duckdb.connect(config={"threads": 1})
    con.register("given", events)
    con.execute("CREATE TABLE events AS SELECT * FROM given")
    colmatch.tables.duckdb.register(con, "alerts", matcher)
    return lambda: ids(con.sql("SELECT alerts(events) AS found FROM events").to_arrow_table()["found"])


def with_ibis(matcher: cm.Matcher, events: pa.Table) -> Callable[[], int]:
    import ibis

    con = ibis.duckdb.connect(threads=1)
    con.con.register("given", events)
    con.con.execute("CREATE TABLE events AS SELECT * FROM given")
    table = con.table("events")
    found = match_column(matcher)
    event = ibis.struct({name: table[name] for name in found.events_of(events.schema)})

    @ibis.udf.scalar.pyarrow(signature=((event.type(),), ibis.dtype(found.type)), null_handling="special")
    def alerts(rows: Any) -> Any:
        return found.array(rows)

    query = table.select(found=alerts(event))
    return lambda: ids(con.to_pyarrow(query)["found"])


def with_datafusion(matcher: cm.Matcher, events: pa.Table) -> Callable[[], int]:
    from datafusion import SessionConfig, SessionContext, udf

    ctx = SessionContext(SessionConfig().with_target_partitions(1))
    ctx.register_record_batches("events", [events.to_batches(BATCHES["datafusion"])])
    found = match_column(matcher)
    event = pa.struct([events.schema.field(name) for name in found.events_of(events.schema)])
    ctx.register_udf(udf(found.array, [event], found.type, "stable", "alerts"))
    fields = ", ".join(f"{name}: {name}" for name in events.schema.names)
    query = f"SELECT alerts({{{fields}}}) AS found FROM events"
    return lambda: ids(ctx.sql(query).to_arrow_table()["found"])


def with_polars(matcher: cm.Matcher, events: pa.Table) -> Callable[[], int]:
    import polars as pl

    import colmatch.tables.polars

    assert colmatch.tables.polars.LazyFrameMatches is not None
    frame: Any = pl.DataFrame(events).lazy()
    query = frame.colmatch.match_lists(matcher).select("subscriptions")
    return lambda: int(query.collect(engine="streaming")["subscriptions"].list.len().sum())


MAKERS = {"duckdb": with_duckdb, "ibis": with_ibis, "datafusion": with_datafusion, "polars": with_polars}


if __name__ == "__main__":
    main()
