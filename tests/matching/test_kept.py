"""Columns of the events that stand beside the pairs, and events counted by subscription."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from contract import every_kind
from installed import needs

import colmatch as cm
import colmatch.matching.pieces

SCHEMA = {"a": "int64", "b": "string"}
RULES = {1: "a > 1", 2: "b = 'x'", 3: "a = 0"}
EVENTS = pa.table(
    {
        "a": [1, 2, 3, None],
        "b": ["x", "x", "y", None],
        "User": ["u0", "u1", None, "u3"],
        "tags": [["p"], [], None, ["q", "r"]],
        "kind": pa.array(["one", "two", "one", "two"]).dictionary_encode(),
    }
)
KEPT = [
    {"event": 0, "subscription": 2, "User": "u0", "tags": ["p"], "kind": "one"},
    {"event": 1, "subscription": 1, "User": "u1", "tags": [], "kind": "two"},
    {"event": 1, "subscription": 2, "User": "u1", "tags": [], "kind": "two"},
    {"event": 2, "subscription": 1, "User": None, "tags": None, "kind": "one"},
]
NAMES = ["User", "tags", "kind"]


@pytest.fixture(scope="module")
def matcher() -> cm.Matcher:
    return cm.Matcher.build(RULES, SCHEMA)


@every_kind
@pytest.mark.parametrize("rows", [1, 3, 8192])
def test_columns_stand_beside_the_pairs(kind: str, rows: int) -> None:
    matcher = cm.Matcher.build(RULES, SCHEMA, index=kind, options=cm.Options(batch_rows=rows))
    found = matcher.match(EVENTS, keep=NAMES)
    assert found.schema.types[2:] == [EVENTS.schema.field(name).type for name in NAMES]
    assert found.to_pylist() == KEPT
    assert matcher.match_batches(EVENTS.to_reader(1), keep=NAMES).read_all().to_pylist() == KEPT
    matches, lacks = matcher.match(EVENTS, keep=NAMES, invalid="collect")
    assert matches.to_pylist() == KEPT and lacks.num_rows == 0


def test_columns_stand_beside_the_best(matcher: cm.Matcher) -> None:
    found = matcher.match_topk(EVENTS, 1, keep="user")
    assert found.schema.names == ["event", "subscription", "score", "User"]
    assert found["User"].to_pylist() == ["u0", "u1", None]


def test_pieces_are_bounded(matcher: cm.Matcher, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept of an event is repeated by each of its pairs: batches of results stay small."""
    rng = Random(0)
    rules = {i: f"a >= {rng.randint(0, 40)}" for i in range(50)}
    many = cm.Matcher.build(rules, SCHEMA)
    text = [str(i) * 40 for i in range(30)]
    events = pa.table({"a": range(30), "b": ["x"] * 30, "text": text})
    whole = many.match(events, keep="text").to_pylist()
    assert [row["text"] for row in whole] == [text[row["event"]] for row in whole]
    monkeypatch.setattr(colmatch.matching.pieces, "BYTES_MOST", 400)
    parts = list(many.match_batches(events, keep="text"))
    assert max(part.num_rows for part in parts) <= 12
    assert pa.Table.from_batches(parts).to_pylist() == whole
    best = list(many.match_topk_batches(events, 7, keep="text"))
    assert max(part.num_rows for part in best) <= 12
    monkeypatch.undo()
    assert pa.Table.from_batches(best) == many.match_topk(events, 7, keep="text")


def test_events_that_lack_a_column_keep_nothing() -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), ("b", pa.string())])
    matcher = cm.Matcher.build({1: "a > 0 OR b = 'x'"}, schema)
    events = pa.table({"a": [1, None, 3], "b": ["x"] * 3, "user": ["u", "v", "w"]})
    matches, lacks = matcher.match(events, keep="user", invalid="collect")
    assert matches["user"].to_pylist() == ["u", "w"] and lacks["event"].to_pylist() == [1]


def test_columns_of_data_sets(matcher: cm.Matcher, tmp_path: Path) -> None:
    parts = ds.partitioning(pa.schema([("User", pa.string())]), flavor="hive")
    ds.write_dataset(EVENTS.drop_columns(["kind"]).slice(0, 2), tmp_path, format="parquet", partitioning=parts)
    found = matcher.match(ds.dataset(tmp_path, partitioning=parts), keep="User")
    assert sorted(found["User"].to_pylist()) == ["u0", "u1", "u1"]


@needs("pandas")
def test_columns_of_frames(matcher: cm.Matcher) -> None:
    import pandas as pd

    frame = pd.DataFrame({"a": [5, 0], "b": ["x", "y"]}, index=pd.Index(["first", "second"], name="order"))
    frame["odd"] = [{1}, 2]
    assert matcher.match(frame, keep="order")["order"].to_pylist() == ["first", "first", "second"]
    assert matcher.match(frame, keep=["B", "order"]).schema.names[2:] == ["b", "order"]
    with pytest.raises(cm.EventError, match="odd"):
        matcher.match(frame, keep="odd")


BAD: list[tuple[Any, type[cm.ColmatchError], str]] = [
    ("usr", cm.EventError, "did you mean 'User'"),
    ("absent", cm.EventError, "an event has"),
    (3, cm.OptionError, "names of columns"),
    (["User", 3], cm.OptionError, "names of columns"),
    (["User", "user"], cm.OptionError, "2 times"),
    ("event", cm.OptionError, "is a column of the result"),
]


@pytest.mark.parametrize(("keep", "error", "said"), BAD, ids=[str(i) for i in range(len(BAD))])
def test_columns_that_cannot_be_kept(matcher: cm.Matcher, keep: Any, error: type[cm.ColmatchError], said: str) -> None:
    events = EVENTS.append_column("event", pa.array(range(4)))
    with pytest.raises(error, match=said):
        matcher.match(events, keep=keep)


def test_columns_of_the_same_name(matcher: cm.Matcher) -> None:
    twice = pa.Table.from_arrays([*EVENTS.columns, EVENTS["a"]], [*EVENTS.schema.names, "User"])
    with pytest.raises(cm.EventError, match="2 columns of that name"):
        matcher.match(twice, keep="User")


def test_a_column_that_the_time_replaces() -> None:
    matcher = cm.Matcher.build({1: "now > 5"}, {"now": "int64"})
    events = pa.table({"now": [1, 9]})
    assert matcher.match(events, keep="now")["now"].to_pylist() == [9]
    with pytest.raises(cm.OptionError, match="whose place the time takes"):
        matcher.match(events, keep="now", now=7)


TYPES = [
    pa.string_view(), pa.binary_view(), pa.run_end_encoded(pa.int32(), pa.string()), pa.run_end_encoded(pa.int32(), pa.string_view()),
    pa.large_list(pa.string_view()), pa.struct([("x", pa.string_view())]), pa.list_view(pa.int64()), pa.null(), pa.decimal256(50, 2),
    pa.dictionary(pa.int32(), pa.string()), pa.list_(pa.int64(), 2), pa.timestamp("ns", "Europe/Paris"), pa.month_day_nano_interval(),
]  # fmt: skip


@pytest.mark.parametrize("type", TYPES, ids=str)
def test_columns_of_any_type_are_kept(matcher: cm.Matcher, type: pa.DataType) -> None:
    """Arrow takes no rows from views and runs, so these are other columns in the result."""
    word = pa.array(["x", "something longer than twelve bytes", None, "x"])
    if pa.types.is_run_end_encoded(type):
        odd: pa.Array = pc.run_end_encode(word)
    elif type == pa.string_view() or pa.types.is_dictionary(type) or type == pa.binary_view():
        odd = word.cast(type)
    elif type == pa.large_list(pa.string_view()):
        odd = pa.array([["x"], None, [], ["something longer than twelve bytes", None]], type)
    else:
        odd = pa.nulls(4, type)
    kept = matcher.match(EVENTS.append_column("odd", odd), keep="odd")["odd"]
    assert kept.to_pylist() == [odd[i].as_py() for i in (0, 1, 1, 2)]


def test_columns_of_which_no_rows_can_be_taken(matcher: cm.Matcher) -> None:
    events = EVENTS.append_column("odd", pa.nulls(4, pa.map_(pa.string(), pa.string_view())))
    with pytest.raises(cm.EventError, match="cast the column"):
        matcher.match(events, keep="odd")


@needs("polars")
def test_columns_of_lazy_frames(matcher: cm.Matcher, tmp_path: Path) -> None:
    """Only what is needed is computed, and a LazyFrame gives what its data frame gives."""
    import polars as pl

    pl.DataFrame(EVENTS.select(["a", "b", "User"])).write_parquet(tmp_path / "events.parquet")
    lazy = pl.scan_parquet(tmp_path / "events.parquet")
    unused = lazy.with_columns(fails=pl.col("b").str.to_date(strict=True))
    assert matcher.match(lazy) == matcher.match(EVENTS) == matcher.match(unused)
    assert matcher.match(unused, keep="user") == matcher.match(lazy.collect(), keep="User")
    assert matcher.match(lazy, keep="user")["User"].to_pylist() == [row["User"] for row in KEPT]
    assert matcher.count(lazy.filter(pl.col("a") > 2)).tolist() == [1]
    assert matcher.match(lazy.filter(pl.col("a") > 9), keep="a").num_rows == 0
    with pytest.raises(cm.EventError, match="'b'"):
        matcher.match(lazy.select("a"))


def test_nothing_kept(matcher: cm.Matcher) -> None:
    assert matcher.match(EVENTS, keep=[]) == matcher.match(EVENTS)


def test_hits_of_one_version(matcher: cm.Matcher) -> None:
    """A stream is counted with the subscriptions that there were when it began."""
    changing = cm.Matcher.build(RULES, SCHEMA, options=cm.Options(batch_rows=1))

    def batches() -> Any:
        for i, batch in enumerate(EVENTS.to_batches(1)):
            if i == 1:
                changing.insert({9: "a > 0"})
                changing.delete([2])
            yield batch

    stream = pa.RecordBatchReader.from_batches(EVENTS.schema, batches())
    assert changing.hits(stream).to_pydict() == {"subscription": [1, 2], "events": [2, 2]}
    assert changing.hits(EVENTS).to_pydict() == {"subscription": [1, 9], "events": [2, 3]}


def test_hits_add_up_to_the_counts() -> None:
    rng = np.random.default_rng(5)
    rules = {f"r{i}": f"a >= {low} AND a < {low + 9}" for i, low in enumerate(rng.integers(0, 100, 300))}
    matcher = cm.Matcher.build(rules, SCHEMA, options=cm.Options(threads=2, batch_rows=64))
    events = pa.table({"a": rng.integers(0, 110, 1000), "b": ["x"] * 1000})
    hits = matcher.hits(events)
    pairs = matcher.match(events)["subscription"].value_counts().to_pylist()
    assert dict(zip(*hits.to_pydict().values())) == {pair["values"]: pair["counts"] for pair in pairs}
    some = list(rules)[::3]
    assert matcher.hits(events, ids=some)["events"].to_pylist() == [
        n for id, n in zip(*hits.to_pydict().values()) if id in set(some)
    ]
    low = events.append_column("high", pa.array(events["a"].to_numpy() + 5))
    of_ranges = matcher.match(low, {"a": ("a", "high")})["subscription"].value_counts().to_pylist()
    ranged = matcher.hits(low, {"a": ("a", "high")})
    assert dict(zip(*ranged.to_pydict().values())) == {pair["values"]: pair["counts"] for pair in of_ranges}
