"""A matcher as a function of DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from engines import COLUMNS, EVENTS, best_of, matcher_of, repeated

import colmatch as cm
from colmatch.tables.duckdb import register

duckdb: Any = pytest.importorskip("duckdb", reason="DuckDB is not installed")

STRUCT = "{" + ", ".join(f'"{name}": "{name}"' for name in COLUMNS) + "}"
TIMES = 1500  # more rows than a batch of DuckDB has


@pytest.fixture(scope="module", params=["string", "number"])
def matcher(request: pytest.FixtureRequest) -> cm.Matcher:
    return matcher_of(request.param)


@pytest.fixture
def con() -> Iterator[Any]:
    with duckdb.connect(config={"threads": 4}) as con:
        con.register("given", repeated(TIMES))
        con.execute("CREATE TABLE events AS SELECT * FROM given")
        yield con


def column(con: Any, query: str) -> list[Any]:
    return [value for (value,) in con.sql(query).fetchall()]


@pytest.mark.parametrize("said", [STRUCT, "events"], ids=["struct", "table"])
def test_lists(con: Any, matcher: cm.Matcher, said: str) -> None:
    register(con, "alerts", matcher)
    assert column(con, f"SELECT alerts({said}) FROM events") == matcher.match_lists(repeated(TIMES)).to_pylist()


def test_types_of_results(con: Any, matcher: cm.Matcher) -> None:
    register(con, "alerts", matcher)
    register(con, "how_many", matcher, "count")
    register(con, "any_of_mine", matcher, "exists", tags=["mine"])
    register(con, "best", matcher, "topk", k=2)
    found = con.sql("SELECT alerts(given), how_many(given), any_of_mine(given), best(given) FROM given LIMIT 5")
    id = "VARCHAR" if pa.types.is_string(matcher.ids.type) else "BIGINT"
    assert [str(kind) for kind in found.types[:3]] == [f"{id}[]", "BIGINT", "BOOLEAN"]
    assert [list(column) for column in zip(*found.fetchall())] == [
        matcher.match_lists(EVENTS).to_pylist(),
        matcher.count(EVENTS).tolist(),
        matcher.exists(EVENTS, tags=["mine"]).tolist(),
        best_of(matcher, EVENTS, 2),
    ]


def test_where_and_unnest(con: Any, matcher: cm.Matcher) -> None:
    register(con, "alerts", matcher)
    wanted = matcher.match(repeated(TIMES), keep="unused")
    rows = con.sql("SELECT unused, unnest(alerts(events)) AS subscription FROM events").fetchall()
    assert rows == list(zip(wanted["unused"].to_pylist(), wanted["subscription"].to_pylist()))
    some = column(con, "SELECT count(*) FROM events WHERE len(alerts(events)) > 1")
    assert some == [int((matcher.count(repeated(TIMES)) > 1).sum())]


def test_structs_that_are_null_and_no_rows(con: Any, matcher: cm.Matcher) -> None:
    register(con, "how_many", matcher, "count")
    structs = f"CASE WHEN price < 0 THEN {STRUCT} END"
    assert column(con, f"SELECT DISTINCT how_many({structs}) FROM events") == [1]
    assert column(con, "SELECT how_many(events) FROM events WHERE price < 0") == []


def test_errors_of_queries(con: Any, matcher: cm.Matcher) -> None:
    register(con, "alerts", matcher)
    for said, why in (
        ("{prize: price}", "EventError: the events have no column 'dest', .* the batch has 'prize'"),
        ("{}", "no column|Parser Error"),
        ("price", "a column is double, a struct of the events' columns is needed: {price: price"),
        ("NULL", "a column is null, a struct of the events' columns is needed"),
        ("events, events", "No function matches"),
    ):
        with pytest.raises(duckdb.Error, match=why):
            con.sql(f"SELECT alerts({said}) FROM events").fetchall()
    register(con, "whole", cm.Matcher.build({1: "n = 1"}, {"n": "int64"}))
    with pytest.raises(duckdb.Error, match=r"column 'n': 1.5 is double, .* \(row 1 of a batch of 2\)"):
        con.sql("SELECT whole({n: n}) FROM (VALUES (1::DOUBLE), (1.5::DOUBLE)) AS t(n)").fetchall()
    assert len(column(con, "SELECT alerts(events) FROM events LIMIT 3")) == 3  # the connection lives


def test_names(con: Any, matcher: cm.Matcher) -> None:
    for name, why in (("abs", "already"), ("SUM", "already"), ("struct_pack", "already"), ("a b", "the name of")):
        with pytest.raises(cm.OptionError, match=why):
            register(con, name, matcher)
    con.execute("CREATE MACRO mine(x) AS x + 1")
    with pytest.raises(cm.OptionError, match="already"):
        register(con, "mine", matcher)
    con.create_function("one_more", lambda n: n + 1, ["BIGINT"], "BIGINT")
    with pytest.raises(cm.OptionError, match="already"):
        register(con, "One_More", matcher)
    assert column(con, "SELECT one_more(1)") == [2]
    con.create_function("Übrig", lambda n: n, ["BIGINT"], "BIGINT")
    with pytest.raises(cm.OptionError, match="already"):
        register(con, "ÜBRIG", matcher)
    register(con, "Ärger", matcher)
    assert column(con, "SELECT Ärger(given) FROM given LIMIT 5") == matcher.match_lists(EVENTS).to_pylist()
    register(con, "Alerts", matcher)
    register(con, "alerts", matcher, "count")  # in the place of the other
    assert column(con, "SELECT aLERTS(given) FROM given LIMIT 5") == matcher.count(EVENTS).tolist()


@pytest.mark.parametrize("con", [None, "alerts.duckdb", 3])
def test_a_connection_is_needed(con: Any, matcher: cm.Matcher) -> None:
    with pytest.raises(cm.OptionError, match="con is a .*: a connection of DuckDB is needed"):
        register(con, "alerts", matcher)


def test_a_name_that_a_rollback_took_back(con: Any, matcher: cm.Matcher) -> None:
    con.begin()
    register(con, "alerts", matcher)
    con.rollback()
    with pytest.raises(cm.OptionError, match="name='alerts': .* a rollback took it back: choose another"):
        register(con, "alerts", matcher)
    register(con, "mine", matcher)  # as the error says
    assert column(con, "SELECT mine(given) FROM given LIMIT 5") == matcher.match_lists(EVENTS).to_pylist()


def test_a_relation_is_no_connection(con: Any, matcher: cm.Matcher) -> None:
    with pytest.raises(cm.OptionError, match="con is a DuckDBPyRelation: a connection"):
        register(con.sql("SELECT error('it was run')"), "alerts", matcher)


def test_a_rollback_brings_back_a_function_that_was_replaced(con: Any, matcher: cm.Matcher) -> None:
    register(con, "alerts", matcher)
    con.begin()
    register(con, "alerts", matcher, "count")
    assert column(con, "SELECT alerts(given) FROM given LIMIT 5") == matcher.count(EVENTS).tolist()
    con.rollback()
    with pytest.raises(
        duckdb.InvalidInputException, match="alerts was registered anew, and a rollback brought it back"
    ):
        column(con, "SELECT alerts(given) FROM given LIMIT 5")
    register(con, "alerts", matcher, "count")
    assert column(con, "SELECT alerts(given) FROM given LIMIT 5") == matcher.count(EVENTS).tolist()


def test_the_default_connection(matcher: cm.Matcher) -> None:
    register(duckdb, "colmatch_alerts", matcher, "count")
    try:
        rows = duckdb.sql("SELECT colmatch_alerts(t) FROM (SELECT * FROM EVENTS) AS t").fetchall()
        assert [value for (value,) in rows] == matcher.count(EVENTS).tolist()
    finally:
        duckdb.remove_function("colmatch_alerts")


def test_updates_are_seen_by_the_next_query(con: Any) -> None:
    matcher = matcher_of("string")
    register(con, "alerts", matcher)
    con.execute("PREPARE q AS SELECT list_contains(alerts({" + STRUCT[1:] + "), 'dear') FROM events LIMIT 5")
    constant = """{price: 1000, dest: '', tags: [''], 'user': {age: 1}, 'at': now(), amount: 1.0}"""
    con.execute(f"PREPARE c AS SELECT list_contains(alerts({constant}), 'dear')")
    assert con.execute("EXECUTE q").fetchall() == [(False,)] * 5
    assert con.execute("EXECUTE c").fetchall() == [(False,)]
    matcher.insert({"dear": "price > 900"})
    assert con.execute("EXECUTE q").fetchall() == [(False,)] * 4 + [(True,)]
    assert con.execute("EXECUTE c").fetchall() == [(True,)]


def test_queries_while_updates_come(con: Any) -> None:
    """Each batch sees an update whole or not at all."""
    matcher = cm.Matcher.build({}, EVENTS.schema)
    matcher.insert({1: "TRUE", 2: "TRUE"})
    register(con, "how_many", matcher, "count")

    def asked(_: int) -> set[int]:
        return set(column(con.cursor(), f"SELECT how_many({STRUCT}) FROM events"))

    with ThreadPoolExecutor(2) as pool:
        found = pool.map(asked, range(6))
        for start in range(10, 400, 10):
            matcher.insert({start: "TRUE", start + 1: "TRUE"})
        counts = set().union(*found)
    assert counts and all(count % 2 == 0 for count in counts)
