"""``df.colmatch`` and ``lf.colmatch``: what the matcher itself gives, eager, lazy and streaming."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from engines import EVENTS, matcher_of, repeated

import colmatch as cm
from colmatch.tables.columns import MatchColumn

pl: Any = pytest.importorskip("polars", reason="polars is not installed")
pytest.importorskip("colmatch.tables.polars")

ENGINES = pytest.mark.parametrize("engine", ["in-memory", "streaming"])
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("match", (), {}),
    ("match", (), {"keep": ["Unused", "tags"], "tags": ["mine"]}),
    ("match_topk", (2,), {}),
    ("match_topk", (1, "sum"), {"keep": "user", "ids": None}),
    ("match_lists", (), {}),
    ("match_lists", (), {"name": "alerts", "tags": ["mine"]}),
    ("count", (), {"name": "n"}),
    ("exists", (), {}),
    ("filter", (), {}),
    ("filter", (), {"tags": ["mine"]}),
]


@pytest.fixture(scope="module", params=["string", "number"])
def matcher(request: pytest.FixtureRequest) -> cm.Matcher:
    return matcher_of(request.param)


@pytest.fixture(scope="module")
def frame() -> Any:
    return pl.DataFrame(repeated(50))


def test_a_frame(matcher: cm.Matcher, frame: Any) -> None:
    events = repeated(50)
    found = frame.colmatch.match(matcher, keep="unused")
    assert found.to_dicts() == matcher.match(events, keep="unused").to_pylist() != []
    best = frame.colmatch.match_topk(matcher, 1)
    assert best.to_dicts() == matcher.match_topk(events, 1).to_pylist() != []
    lists = frame.colmatch.match_lists(matcher, name="alerts")
    assert lists.columns == [*frame.columns, "alerts"]
    assert lists["alerts"].to_list() == matcher.match_lists(events).to_pylist()
    assert frame.colmatch.count(matcher)["count"].to_list() == matcher.count(events).tolist()
    assert frame.colmatch.exists(matcher)["exists"].to_list() == matcher.exists(events).tolist()
    some = frame.colmatch.filter(matcher, tags=["mine"])
    assert 0 < len(some) == matcher.exists(events, tags=["mine"]).sum() < len(frame)


@ENGINES
@pytest.mark.parametrize(("name", "said", "named"), CALLS, ids=[f"{i} {call[0]}" for i, call in enumerate(CALLS)])
def test_a_query_gives_what_a_frame_gives(
    matcher: cm.Matcher, frame: Any, engine: str, name: str, said: Any, named: Any
) -> None:
    query = getattr(frame.lazy().colmatch, name)(matcher, *said, **named)
    assert isinstance(query, pl.LazyFrame)
    wanted = getattr(frame.colmatch, name)(matcher, *said, **named)
    found = query.collect(engine=engine)
    assert found.equals(wanted) and found.schema == wanted.schema == query.collect_schema()
    assert len(wanted) or named.get("ids")
    none = getattr(frame.lazy().filter(False).colmatch, name)(matcher, *said, **named).collect(engine=engine)
    assert none.schema == wanted.schema and len(none) == 0


@ENGINES
def test_expressions(matcher: cm.Matcher, frame: Any, engine: str) -> None:
    events = pl.struct(matcher.columns).colmatch
    found = frame.lazy().select(
        lists=events.match_lists(matcher),
        count=events.count(matcher),
        exists=events.exists(matcher),
        best=events.match_topk(matcher, 1),
    )
    told = found.collect(engine=engine)
    assert told["lists"].to_list() == matcher.match_lists(repeated(50)).to_pylist()
    assert told["count"].to_list() == [len(ids) for ids in told["lists"]]
    assert told["exists"].to_list() == [len(ids) > 0 for ids in told["lists"]]
    assert [len(best) for best in told["best"]] == [min(len(ids), 1) for ids in told["lists"]]
    nulls = pl.DataFrame(EVENTS).select(pl.when(pl.col("price") > 1e9).then(pl.struct(matcher.columns)).alias("s"))
    assert nulls.select(pl.col("s").colmatch.count(matcher))["s"].to_list() == [1] * len(EVENTS)


def test_a_query_reads_the_columns_that_it_needs(tmp_path: Path) -> None:
    frame = pl.DataFrame(EVENTS)
    frame.write_parquet(tmp_path / "events.parquet")
    matcher = cm.Matcher.build({1: "price < 100"}, EVENTS.schema)
    query = pl.scan_parquet(tmp_path / "events.parquet").colmatch.match(matcher, keep="dest")
    assert "2/7 COLUMNS" in query.explain()
    assert query.collect(engine="streaming").equals(frame.colmatch.match(matcher, keep="dest"))
    query.sink_parquet(tmp_path / "out.parquet")
    assert pl.read_parquet(tmp_path / "out.parquet").equals(frame.colmatch.match(matcher, keep="dest"))


def test_what_follows_in_a_query_changes_no_numbers(matcher: cm.Matcher, frame: Any) -> None:
    wanted = frame.colmatch.match(matcher, keep="unused")
    query = frame.lazy().colmatch.match(matcher, keep="unused").filter(pl.col("unused") == 4)
    assert query.collect().equals(wanted.filter(pl.col("unused") == 4))
    assert frame.lazy().colmatch.match(matcher).head(3).collect().equals(frame.colmatch.match(matcher).head(3))


def test_expressions_may_use_a_column_called_event() -> None:
    matcher = cm.Matcher.build({7: "event > 1"}, {"event": "int64"})
    frame = pl.DataFrame({"event": [1, 2]})
    assert frame.lazy().colmatch.match(matcher).collect().to_dicts() == [{"event": 1, "subscription": 7}]
    with pytest.raises(cm.OptionError, match="column of the result"):
        frame.lazy().colmatch.match(matcher, keep="event")


def test_the_streaming_engine_matches_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = cm.Matcher.build({1: "price < 100"}, {"price": "int64"})
    parts: list[int] = []
    whole = MatchColumn.__call__
    monkeypatch.setattr(MatchColumn, "__call__", lambda self, rows: parts.append(len(rows)) or whole(self, rows))
    rows = 500_000
    found = pl.LazyFrame({"price": range(rows)}).colmatch.count(matcher).collect(engine="streaming")
    assert found["count"].sum() == 100 and max(parts) < rows == sum(parts)


def test_names_that_polars_takes_for_patterns() -> None:
    matcher = cm.Matcher.build({7: "`*` > 1 AND `^a.*$` = 2"}, {"*": "int64", "^a.*$": "int64"})
    frame = pl.DataFrame({"*": [2, 0], "^a.*$": [2, 2], "ab": [5, 6]})
    wanted = frame.colmatch.match(matcher, keep=["*", "^a.*$"])
    assert wanted.to_dicts() == [{"event": 0, "subscription": 7, "*": 2, "^a.*$": 2}]
    assert frame.lazy().colmatch.match(matcher, keep=["*", "^a.*$"]).collect().equals(wanted)
    assert frame.lazy().colmatch.count(matcher).collect()["count"].to_list() == [1, 0]


@ENGINES
def test_updates_are_seen_when_a_query_runs(engine: str) -> None:
    matcher = matcher_of("string")
    query = pl.DataFrame(EVENTS).lazy().colmatch.match_lists(matcher)
    matcher.insert({"dear": "price > 900"})
    found = query.collect(engine=engine)["subscriptions"].to_list()
    assert found == matcher.match_lists(EVENTS).to_pylist() and "dear" in found[-1]


def test_errors(matcher: cm.Matcher, frame: Any) -> None:
    misspelt = frame.rename({"price": "prize"})
    for given in (misspelt, misspelt.lazy()):
        with pytest.raises(cm.EventError, match="no column 'price', which the expressions use: did you mean 'prize'"):
            given.colmatch.match(matcher)
        with pytest.raises(cm.EventError, match="keep has 'destt'"):
            frame.lazy().colmatch.match(matcher, keep="destt")
    with pytest.raises(Exception, match="the events have no column '"):
        misspelt.select(pl.struct("prize").colmatch.count(matcher))
    with pytest.raises(Exception, match="a column is double, a struct"):
        frame.select(pl.col("price").colmatch.count(matcher))
    whole = cm.Matcher.build({1: "n = 1"}, {"n": "int64"})
    with pytest.raises(Exception, match=r"column 'n': 1.5 is double"):
        pl.LazyFrame({"n": [1.0, 1.5]}).colmatch.count(whole).collect()
    for given in (frame, frame.lazy()):
        for call in ("match", "match_lists", "count", "exists", "filter"):
            with pytest.raises(cm.OptionError, match="matcher='alerts.cm': a Matcher is needed"):
                getattr(given.colmatch, call)("alerts.cm")
        with pytest.raises(cm.OptionError, match="matcher='alerts.cm': a Matcher is needed"):
            given.colmatch.match_topk("alerts.cm", 3)


def test_the_module_hides_polars_from_nobody() -> None:
    """Python puts the folder of a script first: there, polars would be this module."""
    folder = Path(cm.__file__).parent / "tables"
    for name in ("polars", "duckdb"):
        run = [sys.executable, "-c", f"import {name}"]
        done = subprocess.run(run, cwd=folder, capture_output=True, text=True)
        assert done.returncode and f"this is colmatch.tables.{name}" in done.stderr, done.stderr
    run = [sys.executable, "-m", "colmatch.tables.polars"]
    done = subprocess.run(run, cwd=folder.parent.parent, capture_output=True, text=True)
    assert not done.returncode, done.stderr
