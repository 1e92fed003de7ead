"""A matcher as a function of ibis, which DuckDB runs."""

from __future__ import annotations

from typing import Any

import pytest
from engines import COLUMNS, EVENTS, best_of, matcher_of, repeated

import colmatch as cm
from colmatch.tables.columns import match_column

ibis: Any = pytest.importorskip("ibis", reason="ibis is not installed")
pytest.importorskip("duckdb", reason="DuckDB is not installed")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # of ibis itself


@pytest.fixture(scope="module", params=["string", "number"])
def matcher(request: pytest.FixtureRequest) -> cm.Matcher:
    return matcher_of(request.param)


@pytest.fixture(scope="module")
def table() -> Any:
    con = ibis.duckdb.connect()
    con.con.register("given", repeated(900))
    con.con.execute("CREATE TABLE events AS SELECT * FROM given")
    return con.table("events")


def column(value: Any, table: Any) -> list[Any]:
    return list(table.select(found=value).to_pyarrow()["found"].to_pylist())


def hits(matcher: cm.Matcher, mode: Any = "lists", **more: Any) -> Any:
    """The recipe of docs/tables.md, for a table or a struct."""
    found = match_column(matcher, mode, **more)

    def of(events: Any) -> Any:
        if isinstance(events, ibis.Table):
            events = ibis.struct({name: events[name] for name in found.events_of(events.schema().to_pyarrow())})

        @ibis.udf.scalar.pyarrow(signature=((events.type(),), ibis.dtype(found.type)), null_handling="special")
        def alerts(rows: Any) -> Any:
            return found.array(rows)

        return alerts(events)

    return of


def test_results(matcher: cm.Matcher, table: Any) -> None:
    events = repeated(900)
    for found, wanted in (
        (hits(matcher), matcher.match_lists(events).to_pylist()),
        (hits(matcher, "count"), matcher.count(events).tolist()),
        (hits(matcher, "exists", tags=["mine"]), matcher.exists(events, tags=["mine"]).tolist()),
        (hits(matcher, "topk", k=2), best_of(matcher, events, 2)),
    ):
        assert column(found(table), table) == wanted
        struct = ibis.struct({name: table[name] for name in reversed(COLUMNS)})
        assert column(found(struct), table) == wanted


def test_filters_and_nulls(matcher: cm.Matcher, table: Any) -> None:
    alerts, count = hits(matcher), hits(matcher, "count")
    some = table.filter(alerts(table).length() > 1).count().execute()
    assert some == (matcher.count(repeated(900)) > 1).sum() > 0
    struct = ibis.struct({name: table[name] for name in COLUMNS})
    null = ibis.ifelse(table.price < 0, struct, ibis.null(struct.type()))
    assert set(column(count(null), table)) == {1}
    assert column(count(table), table.filter(table.price < 0)) == []


def test_a_table_gives_the_columns_that_are_needed(table: Any) -> None:
    small = cm.Matcher.build({1: "price < 100"}, EVENTS.schema)
    value = hits(small)(table)
    assert "dest" not in str(ibis.to_sql(table.select(found=value)))
    assert column(value, table) == small.match_lists(repeated(900)).to_pylist()


def test_errors(matcher: cm.Matcher, table: Any) -> None:
    alerts = hits(matcher)
    misspelt = table.rename(prize="price")
    with pytest.raises(cm.EventError, match="no column '(price|dest)', .*'prize'"):
        alerts(misspelt)
    with pytest.raises(Exception, match="no column '(price|dest)', .*'prize'"):
        column(alerts(ibis.struct({"prize": table.price})), table)
    with pytest.raises(Exception, match="a struct of the events' columns is needed: a struct column"):
        column(alerts(table.price), table)
    whole = hits(cm.Matcher.build({1: "n = 1"}, {"n": "int64"}))
    wrong = table.select(n=table.price)
    with pytest.raises(Exception, match="column 'n': 89.5 is double"):
        column(whole(wrong), wrong)


def test_updates_are_seen_by_the_next_query(table: Any) -> None:
    matcher = matcher_of("string")
    value = hits(matcher)(table)
    before = column(value, table)
    matcher.insert({"dear": "price > 900"})
    after = column(value, table)
    assert [[id for id in ids if id != "dear"] for ids in after] == before != after
