"""A matcher as a function of DataFusion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engines import COLUMNS, EVENTS, best_of, matcher_of, repeated

import colmatch as cm
from colmatch.tables.columns import match_column

datafusion: Any = pytest.importorskip("datafusion", reason="DataFusion is not installed")

STRUCT = "{" + ", ".join(f"{name}: {name}" for name in EVENTS.schema.names if name in COLUMNS) + "}"


def register(ctx: Any, name: str, matcher: cm.Matcher, schema: Any = None, mode: Any = "lists", **more: Any) -> Any:
    """The recipe of docs/tables.md."""
    found, events = match_column(matcher, mode, **more), matcher.schema.arrow if schema is None else schema
    event = pa.struct([events.field(field) for field in found.events_of(events)])
    made = datafusion.udf(found.array, [event], found.type, "stable", name)
    ctx.register_udf(made)
    return made


@pytest.fixture(scope="module", params=["string", "number"])
def matcher(request: pytest.FixtureRequest) -> cm.Matcher:
    return matcher_of(request.param)


@pytest.fixture
def ctx() -> Any:
    ctx = datafusion.SessionContext()
    ctx.register_record_batches("events", [repeated(20).to_batches(7), repeated(10).to_batches(1000)])
    return ctx


def column(ctx: Any, query: str) -> list[Any]:
    return list(ctx.sql(f"SELECT {query}").to_pydict()["found"])


@pytest.mark.parametrize("of_table", [True, False], ids=["schema of the table", "schema of the matcher"])
def test_results(ctx: Any, matcher: cm.Matcher, of_table: bool) -> None:
    schema = ctx.table("events").schema() if of_table else None
    register(ctx, "alerts", matcher, schema)
    register(ctx, "how_many", matcher, schema, "count")
    register(ctx, "any_of_mine", matcher, schema, "exists", tags=["mine"])
    register(ctx, "best", matcher, schema, "topk", k=2)
    events = repeated(30)
    for name, wanted in (
        ("alerts", matcher.match_lists(events).to_pylist()),
        ("how_many", matcher.count(events).tolist()),
        ("any_of_mine", matcher.exists(events, tags=["mine"]).tolist()),
        ("best", best_of(matcher, events, 2)),
    ):
        assert sorted(column(ctx, f"{name}({STRUCT}) AS found FROM events"), key=str) == sorted(wanted, key=str)


def test_files_and_expressions(ctx: Any, matcher: cm.Matcher, tmp_path: Path) -> None:
    """Strings of files are views here."""
    pq.write_table(EVENTS, tmp_path / "events.parquet")
    ctx.register_parquet("files", str(tmp_path / "events.parquet"))
    register(ctx, "alerts", matcher, ctx.table("files").schema())
    assert column(ctx, f"alerts({STRUCT}) AS found FROM files") == matcher.match_lists(EVENTS).to_pylist()
    small = cm.Matcher.build({1: "price < 100"}, EVENTS.schema)
    alerts = register(ctx, "cheap", small)
    struct = datafusion.functions.named_struct([("price", datafusion.col("price"))])
    found = ctx.table("files").select(alerts(struct).alias("found")).to_pydict()["found"]
    assert found == small.match_lists(EVENTS).to_pylist()


def test_structs_that_are_null_and_no_rows(ctx: Any, matcher: cm.Matcher) -> None:
    register(ctx, "how_many", matcher, mode="count")
    assert set(column(ctx, f"how_many(CASE WHEN price < 0 THEN {STRUCT} END) AS found FROM events")) == {1}
    assert ctx.sql(f"SELECT how_many({STRUCT}) AS found FROM events WHERE price < 0").to_pylist() == []


def test_errors(ctx: Any, matcher: cm.Matcher) -> None:
    register(ctx, "alerts", matcher)
    with pytest.raises(Exception, match="coercion from .*prize"):
        ctx.sql(f"SELECT alerts({STRUCT.replace('{price:', '{prize:')}) FROM events").to_pylist()
    misspelt = pa.table({"prize": [1.0]}).schema
    with pytest.raises(cm.EventError, match="no column '(price|dest)', .*'prize'"):
        register(ctx, "alerts", matcher, misspelt)
    whole = cm.Matcher.build({1: "n = 1"}, {"n": "int64"})
    register(ctx, "whole", whole, pa.schema({"n": pa.float64()}))
    with pytest.raises(Exception, match=r"column 'n': 1.5 is double, .* \(row 0 of a batch of 1\)"):
        ctx.sql("SELECT whole({n: 1.5})").to_pylist()


def test_updates_are_seen_by_the_next_query(ctx: Any) -> None:
    matcher = matcher_of("string")
    register(ctx, "alerts", matcher)
    query = f"alerts({STRUCT}) AS found FROM events WHERE price > 900"
    before = column(ctx, query)
    matcher.insert({"dear": "price > 900"})
    assert column(ctx, query) == [[*found, "dear"] for found in before] != []
    register(ctx, "alerts", matcher, mode="count")  # in the place of the other
    assert column(ctx, query) == [len(found) + 1 for found in before]
