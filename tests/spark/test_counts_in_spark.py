"""Spark: counts and existence for each event, and how many events each subscription matches."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.spark import match, totals
from colmatch.spark import worker as spark_worker
from colmatch.spark.worker import IndexFile, PartitionTask
from colmatch.store.file import content_hash

TEXTS = {"a": "age >= 3", "b": "age >= 4", "c": "age = 100", "d": "age < 1"}


@pytest.fixture
def events(spark: Any) -> Any:
    return spark.sql("SELECT id, NULLIF(id, 5) AS age FROM range(0, 8, 1, 3)")


def test_counts_and_existence(events: Any) -> None:
    matcher = cm.Matcher.build(TEXTS, {"age": "bigint"}, options=cm.Options(threads=1, batch_rows=2))
    table = events.toArrow()
    counted = match(events, matcher, keep=["id"], mode="count")
    assert counted.schema.simpleString() == "struct<id:bigint,count:bigint>"
    assert {row.id: row["count"] for row in counted.collect()} == dict(enumerate(matcher.count(table).tolist()))
    found = match(events, matcher, keep=["id"], mode="exists", ids=["b", "c"])
    assert found.schema.simpleString() == "struct<id:bigint,exists:boolean>"
    wanted = dict(enumerate(matcher.exists(table, ids=["b", "c"]).tolist()))
    assert {row.id: row.exists for row in found.collect()} == wanted
    with pytest.raises(cm.OptionError, match="'Count', which is a name of the result"):
        match(events.withColumnRenamed("id", "Count"), matcher, keep="Count", mode="count")


@pytest.mark.parametrize("long", [True, False])
def test_totals(events: Any, long: bool) -> None:
    texts = {i if long else id: text for i, (id, text) in enumerate(TEXTS.items())}
    matcher = cm.Matcher.build(texts, {"age": "bigint"}, options=cm.Options(threads=1), tags={next(iter(texts)): ["x"]})
    counted = totals(events, matcher)
    assert counted.schema.simpleString() == f"struct<subscription:{'bigint' if long else 'string'},rows:bigint>"
    pairs = matcher.match(events.toArrow()).group_by("subscription").aggregate([("event", "count")])
    wanted = dict(zip(pairs["subscription"].to_pylist(), pairs["event_count"].to_pylist()))
    assert wanted and {row.subscription: row.rows for row in counted.collect()} == wanted
    assert [tuple(row) for row in totals(events, matcher, tags=["x"]).collect()] == [(next(iter(texts)), 4)]
    assert totals(events, matcher, ids=[]).count() == totals(events.limit(0), matcher).count() == 0


def test_a_task_counts_before_anything_is_shuffled(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_worker, "PAIRS_MOST", 40)
    monkeypatch.setattr(spark_worker, "_opened", type(spark_worker._opened)())
    path = tmp_path / "alerts"
    texts = {i: f"age >= {i}" for i in range(50)}
    cm.Matcher.build(texts, {"age": "bigint"}, options=cm.Options(batch_rows=4)).save(path)
    index = IndexFile(content_hash(path), str(path), str(path), artifact=False)
    task = PartitionTask(index, 0, ((0, "age"),), "totals", ("subscription", "rows"))
    rows = pa.table({"c0": list(range(100))}).to_batches(max_chunksize=7)
    found = pa.Table.from_batches(list(task(iter(rows))))
    assert len(found) == 50
    assert dict(zip(found["subscription"].to_pylist(), found["rows"].to_pylist())) == {i: 100 - i for i in range(50)}
    assert max(map(len, task(iter(rows)))) == 40
