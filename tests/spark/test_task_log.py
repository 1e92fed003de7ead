"""The numbers of tasks: a line in the log of each, and what ``observe`` tells."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.spark import match, match_topk, tally, totals
from colmatch.spark import worker as spark_worker
from colmatch.spark.worker import IndexFile, PartitionTask
from colmatch.store.file import content_hash
from colmatch.tables.columns import Best

LINE = re.compile(
    r"(\S+) \(version (\w{12})\), partition (\S+): (\d+) rows, (\d+) matches, "
    r"([\d.]+) s in the matcher, ([\d.]+) s in all(.*)",
    re.DOTALL,
)
NAMES = {
    "pairs": ("id", "subscription"),
    "lists": ("id", "subscriptions"),
    "count": ("id", "count"),
    "exists": ("id", "exists"),
}


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Any]:
    """Makes tasks over a matcher in which 20 of 100 rows have two matches, and 30 have one."""
    path = tmp_path / "alerts"
    cm.Matcher.build({1: "age < 50", 2: "age BETWEEN 20 AND 39"}, {"age": "int64"}).save(path)
    index = IndexFile(content_hash(path), str(path), str(path), artifact=False)
    spark_worker._opened.clear()

    def task(mode: Any, names: tuple[str, ...], **more: Any) -> PartitionTask:
        return PartitionTask(index, 0 if mode == "totals" else 1, ((0, "age"),), mode, names, log=True, **more)

    yield task
    spark_worker._opened.clear()


def batches() -> Iterator[pa.RecordBatch]:
    """Yields 100 rows, with batches of none among them."""
    for start, stop in ((0, 0), (0, 30), (30, 30), (30, 100)):
        yield pa.record_batch({"c0": pa.array(range(start, stop), pa.int64())})


def told(caplog: pytest.LogCaptureFixture) -> tuple[Any, ...]:
    """Returns the one line: partition, rows, matches, and how it ended."""
    (record,) = caplog.records
    found = LINE.fullmatch(record.getMessage())
    assert found and record.name == "colmatch.spark" and record.levelno == logging.INFO
    assert 0 <= float(found[6]) <= float(found[7])
    return found[3], int(found[4]), int(found[5]), found[8]


@pytest.fixture(autouse=True)
def logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "colmatch.spark")


@pytest.mark.parametrize(("mode", "matches"), [("pairs", 70), ("lists", 70), ("count", 70), ("exists", 50)])
@pytest.mark.parametrize("observed", [False, True])
def test_the_line_of_a_task(
    made: Any, caplog: pytest.LogCaptureFixture, mode: str, matches: int, observed: bool
) -> None:
    found = pa.Table.from_batches(made(mode, NAMES[mode], observed=observed)(batches()))
    assert told(caplog) == ("-", 100, matches, "")
    if observed:
        last = found.column(tally.OBSERVED).to_pylist()
        assert last[:-1] == [None] * (len(found) - 1) and (last[-1]["rows"], last[-1]["matches"]) == (100, matches)
        assert last[-1]["nanoseconds"] > 0


def test_the_line_of_totals(made: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert len(pa.Table.from_batches(made("totals", ("subscription", "rows"))(batches()))) == 2
    assert told(caplog) == ("-", 100, 70, "")


def test_the_line_of_the_best(made: Any, caplog: pytest.LogCaptureFixture) -> None:
    best = Best(1, "dot", None)
    assert len(pa.Table.from_batches(made("pairs", ("id", "subscription", "score"), best=best)(batches()))) == 50
    assert told(caplog) == ("-", 100, 50, "")


def test_the_line_of_several_outputs(
    made: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_worker, "PAIRS_MOST", 7)
    assert len(list(made("pairs", NAMES["pairs"])(batches()))) > 8
    assert told(caplog) == ("-", 100, 70, "")


def test_a_task_without_rows_has_none(made: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert list(made("pairs", NAMES["pairs"], observed=True)(iter([next(batches())]))) == []
    assert caplog.records == []


def test_a_task_that_fails_says_so(made: Any, caplog: pytest.LogCaptureFixture) -> None:
    def partition() -> Iterator[pa.RecordBatch]:
        yield next(batches())
        yield pa.record_batch({"c0": [1, 2]})
        raise cm.EventError("no more")

    with pytest.raises(cm.EventError):
        list(made("pairs", NAMES["pairs"])(partition()))
    assert told(caplog)[1:] == (2, 0, ", ended by EventError: no more")


def test_a_task_that_is_not_read_to_its_end_says_so(made: Any, caplog: pytest.LogCaptureFixture) -> None:
    results = made("pairs", NAMES["pairs"])(batches())
    next(results)
    results.close()
    assert told(caplog)[3] == ", and Spark wanted no more"


WORKER = """
import sys
from colmatch.spark import tally
for wanted in (*map(int, sys.argv[1]), 0):
    tally.show_log(bool(wanted))
    tally.Tally().tell("alerts", "0123", "")
print(len(tally.log.handlers))
"""


@pytest.mark.parametrize(
    ("wanted", "collected", "lines"), [("00", "", 0), ("11", "", 2), ("1", "yes", 2), ("010", "", 1)]
)
def test_workers_log_where_it_is_wanted(wanted: str, collected: str, lines: int) -> None:
    """A worker has no handlers and no levels but those of Spark, and outlives its tasks."""
    environment = os.environ | ({"PYSPARK_SPARK_SESSION_UUID": collected} if collected else {})
    ran = subprocess.run(
        [sys.executable, "-c", WORKER, wanted], env=environment, capture_output=True, text=True, timeout=120
    )
    assert ran.stderr.count(" colmatch.spark INFO: alerts (version 0123), partition -: 0 rows") == lines
    assert ran.stderr.count("\n") == lines and int(ran.stdout) == ("1" in wanted)


# --------------------------------------------------------------------------
# in Spark


@pytest.fixture(scope="module")
def events(spark: Any) -> Any:
    return spark.sql("SELECT id, id AS age, CAST(id AS string) AS name FROM range(0, 100, 1, 4)")


@pytest.fixture(scope="module")
def matcher() -> cm.Matcher:
    return cm.Matcher.build({"a": "age < 50", "b": "age BETWEEN 20 AND 39"}, {"age": "int64"})


@pytest.mark.parametrize(("mode", "matches"), [("pairs", 70), ("lists", 70), ("count", 70), ("exists", 50)])
def test_observed_numbers(events: Any, matcher: cm.Matcher, mode: Any, matches: int) -> None:
    from pyspark.sql import Observation

    numbers = Observation()
    plain = match(events, matcher, keep=["id", "name"], mode=mode)
    seen = match(events, matcher, keep=["id", "name"], mode=mode, observe=numbers)
    assert seen.schema == plain.schema
    assert sorted(seen.collect()) == sorted(plain.collect())
    got = numbers.get
    assert (got["rows"], got["matches"], got["tasks"]) == (100, matches, 4)
    assert 0 < got["matcher_seconds"] < 100 and re.fullmatch(r"\w{12}", got["index_version"])


def test_observed_numbers_of_totals_and_the_best(events: Any, matcher: cm.Matcher) -> None:
    from pyspark.sql import Observation

    numbers = [Observation() for _ in range(3)]
    assert sorted(map(tuple, totals(events, matcher, observe=numbers[0]).collect())) == [("a", 50), ("b", 20)]
    assert match_topk(events, matcher, 1, observe=numbers[1]).count() == 50
    assert match(events.where("id < 0"), matcher, observe=numbers[2]).count() == 0
    assert [(one.get["rows"], one.get["matches"]) for one in numbers] == [(100, 70), (100, 50), (0, 0)]


def test_a_stream_tells_them_in_its_progress(spark: Any, matcher: cm.Matcher, tmp_path: Path) -> None:
    spark.range(0, 100, 1, 1).selectExpr("id AS age").write.parquet(str(tmp_path / "in"))
    found = match(spark.readStream.schema("age long").parquet(str(tmp_path / "in")), matcher, observe="alerts")
    query = found.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = query.trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    (metrics,) = [one.observedMetrics["alerts"] for one in query.recentProgress if one.numInputRows]
    assert (metrics.rows, metrics.matches, metrics.tasks) == (100, 70, 1)


def test_observe_is_a_name_or_an_observation(events: Any, matcher: cm.Matcher) -> None:
    for given in ("", 3, ["a"]):
        with pytest.raises(cm.OptionError, match="^observe=.*: a name or an Observation is needed"):
            match(events, matcher, observe=given)  # type: ignore[arg-type]
    named = events.withColumnRenamed("name", tally.OBSERVED)
    with pytest.raises(cm.OptionError, match="'colmatch task', which is a name of the result"):
        match(named, matcher, keep=[tally.OBSERVED])


def test_spark_collects_the_lines_of_workers(spark: Any, conf: Any, events: Any, matcher: cm.Matcher) -> None:
    if not hasattr(spark.tvf, "python_worker_logs"):
        pytest.skip("Spark 4.0 collects no logs of workers")
    conf("spark.sql.pyspark.worker.logging.enabled", "true")
    match(events, matcher).count()
    rows = spark.tvf.python_worker_logs().where("logger = 'colmatch.spark'").collect()
    found = sorted(LINE.fullmatch(row.msg).groups()[2:5] for row in rows)
    assert found == [("0", "25", "30"), ("1", "25", "40"), ("2", "25", "0"), ("3", "25", "0")]
