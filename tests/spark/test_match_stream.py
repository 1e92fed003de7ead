"""Streams that take up new versions of their index, and do a batch again with the old one."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import colmatch as cm
from colmatch.spark import build_shards, match_stream, update_shards
from colmatch.spark.records import StreamRecords, current_file
from colmatch.store.file import content_hash

ROWS = 4  # of a batch


def saved(path: Path, version: int, text: str = "id >= 0", **options: Any) -> str:
    """Saves a version that matches each row; returns what rows call it."""
    cm.Matcher.build({version: text}, {"id": "bigint"}, **options).save(path)
    return content_hash(path)[:12]


def add(folder: Path, batches: int = 1) -> None:
    """Adds files, each of which is a batch."""
    start = ROWS * len(list((folder / "in").glob("*.parquet")))
    for first in range(start, start + batches * ROWS, ROWS):
        new = folder / f".new-{first}"
        pq.write_table(pa.table({"id": range(first, first + ROWS)}), new)
        (folder / "in").mkdir(exist_ok=True)
        os.utime(new, (1e9 + first, 1e9 + first))  # Spark takes the oldest first
        new.rename(folder / "in" / f"{first}.parquet")


def stream(spark: Any, folder: Path) -> Any:
    source = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1)
    return source.parquet(str(folder / "in"))


def run(writer: Any) -> Any:
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    return query


def written(spark: Any, folder: Path) -> list[tuple[Any, ...]]:
    rows = spark.read.parquet(str(folder / "out")).select("batch", "id", "subscription", "index_version").collect()
    return sorted(map(tuple, rows))


def expected(batches: dict[int, tuple[int, str]]) -> list[tuple[Any, ...]]:
    return [(n, n * ROWS + i, sub, version) for n, (sub, version) in sorted(batches.items()) for i in range(ROWS)]


def uncommit(folder: Path, number: int) -> None:
    """Leaves a checkpoint as a kill leaves it that comes before the last batch is committed."""
    for name in (f"{number}", f".{number}.crc"):
        (folder / "checkpoint" / "commits" / name).unlink(missing_ok=True)


def to_files(spark: Any, folder: Path, **more: Any) -> Any:
    return match_stream(
        stream(spark, folder), folder / "alerts", folder / "out", folder / "checkpoint", keep=["id"], **more
    )


def records(folder: Path) -> list[dict[str, Any]]:
    paths = sorted((folder / "checkpoint/colmatch/batches").iterdir(), key=lambda path: int(path.stem))
    return [json.loads(path.read_text()) for path in paths]


def versions(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "checkpoint/colmatch/versions").iterdir())


def test_iterators_are_read_once(spark: Any, tmp_path: Path) -> None:
    add(tmp_path, 3)
    cm.Matcher.build({1: "id >= 0", 2: "id >= 0"}, {"id": "bigint"}).save(tmp_path / "alerts")
    out = (tmp_path / "out", tmp_path / "checkpoint")
    run(match_stream(stream(spark, tmp_path), tmp_path / "alerts", *out, keep=(c for c in ["id"]), ids=map(int, ["1"])))
    rows = spark.read.parquet(str(out[0])).select("id", "subscription").collect()
    assert sorted(map(tuple, rows)) == [(i, 1) for i in range(3 * ROWS)]


def test_a_folder_belongs_to_one_stream(spark: Any, tmp_path: Path) -> None:
    add(tmp_path, 1)
    saved(tmp_path / "alerts", 0)
    run(to_files(spark, tmp_path))
    other = match_stream(
        stream(spark, tmp_path), tmp_path / "alerts", tmp_path / "out", tmp_path / "other", keep=["id"]
    )
    with pytest.raises(Exception, match="has the batches of another stream"):
        run(other)
    add(tmp_path, 1)
    run(to_files(spark, tmp_path))
    assert len(written(spark, tmp_path)) == 2 * ROWS


def test_one_driver_at_a_time(spark: Any, tmp_path: Path) -> None:
    add(tmp_path, 1)
    saved(tmp_path / "alerts", 0)
    writer = to_files(spark, tmp_path)
    with (
        StreamRecords(tmp_path / "checkpoint/colmatch", None).turn(),
        pytest.raises(Exception, match="another driver runs this stream now"),
    ):
        run(writer)
    run(to_files(spark, tmp_path))
    assert len(written(spark, tmp_path)) == ROWS


def test_ids_of_another_type_in_the_same_files(spark: Any, tmp_path: Path) -> None:
    add(tmp_path, 1)
    saved(tmp_path / "alerts", 0)
    run(to_files(spark, tmp_path))
    cm.Matcher.build({"x": "id >= 0"}, {"id": "bigint"}).save(tmp_path / "alerts")
    add(tmp_path, 1)
    with pytest.raises(Exception, match="ids of version [0-9a-f]{12} are string"):
        run(to_files(spark, tmp_path))
    saved(tmp_path / "alerts", 1)
    run(to_files(spark, tmp_path))
    assert len(written(spark, tmp_path)) == 2 * ROWS


def test_files_of_others_stay(spark: Any, tmp_path: Path) -> None:
    add(tmp_path, 1)
    (tmp_path / "kept" / "versions").mkdir(parents=True)
    saved(tmp_path / "kept" / "versions" / "v1.cm", 0)
    writer = match_stream(
        stream(spark, tmp_path), tmp_path / "kept" / "versions", tmp_path / "out", tmp_path / "checkpoint", keep=["id"],
        records=tmp_path / "kept",
    )  # fmt: skip
    run(writer)
    assert (tmp_path / "kept" / "versions" / "v1.cm").exists() and len(written(spark, tmp_path)) == ROWS


def test_a_time_that_python_has_not(spark: Any, tmp_path: Path) -> None:
    add(tmp_path, 1)
    saved(tmp_path / "alerts", 0)
    late = stream(spark, tmp_path).selectExpr("id", "timestamp_seconds(1700000000000 + id) AS at")
    writer = match_stream(
        late, tmp_path / "alerts", tmp_path / "out", tmp_path / "checkpoint", keep=["id"], event_time="at"
    )
    run(writer)
    assert records(tmp_path)[0]["lag"] < 0 and "event_time" not in records(tmp_path)[0]


def test_shards(spark: Any, tmp_path: Path) -> None:
    add(tmp_path, 2)
    events = spark.sql("SELECT 1L AS id")
    rules = "SELECT {}L AS id, 'id >= 0' AS expression"
    build_shards(spark.sql(rules.format(0)), events, tmp_path / "alerts", 2)
    run(to_files(spark, tmp_path))
    first = records(tmp_path)[0]["index_version"]
    changes = spark.sql("SELECT 0L AS id, CAST(NULL AS STRING) AS expression UNION ALL " + rules.format(1))
    update_shards(changes, events, tmp_path / "alerts")
    uncommit(tmp_path, 1)
    add(tmp_path)
    run(to_files(spark, tmp_path, plan="routed"))
    second = records(tmp_path)[-1]["index_version"]
    assert first != second and [one["replayed"] for one in records(tmp_path)] == [False, True, False]
    assert written(spark, tmp_path) == expected({0: (0, first), 1: (0, first), 2: (1, second)})


def test_a_new_version_is_taken_up_between_batches(spark: Any, tmp_path: Path) -> None:
    add(tmp_path, 3)
    there = [saved(tmp_path / "alerts", 0)]

    def sink(matched: Any, number: int) -> None:
        there.append(saved(tmp_path / "alerts", number + 1))  # the job runs afterwards, and must not see it
        found.extend(sorted((number, row.id, row.subscription, row.index_version) for row in matched.collect()))

    found: list[tuple[Any, ...]] = []
    run(match_stream(stream(spark, tmp_path), tmp_path / "alerts", sink, tmp_path / "checkpoint", keep="id"))
    assert found == expected({n: (n, there[n]) for n in range(3)})
    assert [record["index_version"] for record in records(tmp_path)] == there[:3]


def test_a_batch_that_comes_again_is_matched_with_its_version(spark: Any, tmp_path: Path) -> None:
    """The files of its first time are overwritten, and all others stay."""
    add(tmp_path, 2)
    old = saved(tmp_path / "alerts", 1)
    run(to_files(spark, tmp_path))
    new = saved(tmp_path / "alerts", 2)
    uncommit(tmp_path, 1)
    add(tmp_path)
    run(to_files(spark, tmp_path))
    assert written(spark, tmp_path) == expected({0: (1, old), 1: (1, old), 2: (2, new)})
    assert [record["replayed"] for record in records(tmp_path)] == [False, True, False]


def test_a_kill_before_the_sink_is_done(spark: Any, tmp_path: Path) -> None:
    """Half of the files are there, and a file that no job wrote."""
    add(tmp_path)
    old = saved(tmp_path / "alerts", 1)

    def killed(matched: Any, number: int) -> None:
        matched.write.parquet(str(tmp_path / "out" / f"batch={number}"))
        (tmp_path / "out" / f"batch={number}" / "part-of-a-task.parquet").write_bytes(b"half")
        raise OSError("killed")

    with pytest.raises(Exception, match=r"when batch 0 comes again, it is matched with the version in .*0\.json"):
        run(match_stream(stream(spark, tmp_path), tmp_path / "alerts", killed, tmp_path / "checkpoint", keep="id"))
    saved(tmp_path / "alerts", 2)
    run(to_files(spark, tmp_path))
    assert written(spark, tmp_path) == expected({0: (1, old)})


def test_a_function_that_writes_a_batch_once(spark: Any, tmp_path: Path) -> None:
    """It keeps the numbers of its batches beside the rows, as Delta keeps ``txnVersion``."""
    add(tmp_path, 2)
    old = saved(tmp_path / "alerts", 1)
    database = sqlite3.connect(tmp_path / "fired.db", check_same_thread=False)
    database.execute("CREATE TABLE fired (batch, id, subscription, version)")
    skipped = []

    def sink(matched: Any, number: int) -> None:
        rows = [(number, row.id, row.subscription, row.index_version) for row in matched.collect()]
        with database:
            if database.execute("SELECT 1 FROM fired WHERE batch = ?", [number]).fetchone():
                skipped.append(number)
            else:
                database.executemany("INSERT INTO fired VALUES (?, ?, ?, ?)", rows)

    for _ in range(2):
        run(match_stream(stream(spark, tmp_path), tmp_path / "alerts", sink, tmp_path / "checkpoint", keep="id"))
        saved(tmp_path / "alerts", 2)
        uncommit(tmp_path, 1)
    assert skipped == [1]
    assert sorted(database.execute("SELECT * FROM fired")) == expected({0: (1, old), 1: (1, old)})


def test_versions_go_when_no_batch_can_need_them(spark: Any, tmp_path: Path) -> None:
    add(tmp_path, 4)
    saved(tmp_path / "alerts", 0)
    leftover = tmp_path / "checkpoint/colmatch/versions/link-of-a-killed-driver"
    leftover.parent.mkdir(parents=True)
    leftover.touch()

    def sink(matched: Any, number: int) -> None:
        assert matched.count() == ROWS
        saved(tmp_path / "alerts", number + 1)

    run(match_stream(stream(spark, tmp_path), tmp_path / "alerts", sink, tmp_path / "checkpoint"))
    there = records(tmp_path)
    assert len({record["index"] for record in there}) == 4
    assert versions(tmp_path) == sorted(f"colmatch-{record['index']}" for record in there[-2:])


def test_old_records_go(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("colmatch.spark.records.RECORDS_KEPT", 2)
    add(tmp_path, 4)
    saved(tmp_path / "alerts", 0)
    run(to_files(spark, tmp_path))
    assert [record["batch"] for record in records(tmp_path)] == [2, 3]


def test_what_a_batch_came_to(spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    add(tmp_path, 2)
    version = saved(tmp_path / "alerts", 0, "id > 1")
    source = stream(spark, tmp_path).selectExpr("id", "timestamp_seconds(id) AS At")
    writer = match_stream(
        source, tmp_path / "alerts", tmp_path / "out", tmp_path / "checkpoint", keep="id", event_time="at"
    )
    with caplog.at_level(logging.INFO, "colmatch.spark"):
        query = run(writer)
    progress = [found for found in query.recentProgress if found.numInputRows]
    assert [found.observedMetrics["colmatch"].rows for found in progress] == [ROWS, ROWS]
    assert [found.observedMetrics["colmatch"].event_time for found in progress] == [3_000_000, 7_000_000]
    told = records(tmp_path)
    assert [(one["rows"], one["matches"], one["tasks"], one["index_version"]) for one in told] == [
        (4, 2, 1, version),
        (4, 4, 1, version),
    ]
    assert [one["event_time"] for one in told] == ["1970-01-01T00:00:03.000+00:00", "1970-01-01T00:00:07.000+00:00"]
    assert all(0 < one["matcher_seconds"] < one["seconds"] and one["lag"] > 50 * 365 * 86400 for one in told)
    lines = [record.getMessage() for record in caplog.records if "batch" in record.getMessage()]
    assert len(lines) == 2 and f"{tmp_path / 'alerts'}, batch 1: " in lines[1] and "'matches': 4" in lines[1]
    read = spark.read.json(str(tmp_path / "checkpoint/colmatch/batches")).sort("batch")
    assert [(row.batch, row.matches) for row in read.collect()] == [(0, 2), (1, 4)]


def test_a_sink_that_runs_no_job(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then there are no numbers, and nobody waits for them for long."""
    monkeypatch.setattr("colmatch.spark.streams.OBSERVED_SECONDS", 0.1)
    add(tmp_path)
    saved(tmp_path / "alerts", 0)
    run(match_stream(stream(spark, tmp_path), tmp_path / "alerts", lambda *_: None, tmp_path / "checkpoint"))
    assert [(one["batch"], "rows" in one, "seconds" in one) for one in records(tmp_path)] == [(0, False, True)]


@pytest.mark.parametrize(
    ("matching", "columns"),
    [
        ({"mode": "lists"}, ["id", "subscriptions"]),
        ({"k": 1}, ["id", "subscription", "score"]),
        ({"ids": [7], "shared": True}, ["id", "subscription"]),
        ({"shared": False}, ["id", "subscription"]),
    ],
    ids=["lists", "topk", "shared", "sent"],
)
def test_arguments_of_match_go_through(spark: Any, tmp_path: Path, matching: Any, columns: list[str]) -> None:
    add(tmp_path, 2)
    saved(tmp_path / "alerts", 7)
    run(to_files(spark, tmp_path, format="json", **matching))
    found = spark.read.json(str(tmp_path / "out"))
    assert set(found.columns) == {*columns, "index_version", "batch"} and found.count() == 2 * ROWS
    assert [record["matches"] for record in records(tmp_path)] == [ROWS, ROWS]


def test_an_index_in_pages(spark: Any, tmp_path: Path) -> None:
    """Updates to its file are new versions, too."""
    add(tmp_path, 2)
    pages = cm.index("pbtree", path=str(tmp_path / "alerts"))
    with cm.Matcher.build({1: "id >= 0"}, {"id": "bigint"}, index=pages) as opened:

        def sink(matched: Any, number: int) -> None:
            found.append(sorted({row.subscription for row in matched.collect()}))
            opened.insert({number + 2: "id >= 0"})

        found: list[Any] = []
        run(match_stream(stream(spark, tmp_path), tmp_path / "alerts", sink, tmp_path / "checkpoint"))
    assert found == [[1], [1, 2]]


# --------------------------------------------------------------------------
# pointers


def test_pointers(tmp_path: Path) -> None:
    (tmp_path / "versions").mkdir()
    for name in ("v9.cm", "v10.cm"):
        saved(tmp_path / "versions" / name, 1)
    for name in ("v11.txt", ".v12.cm", "_v13.cm"):
        (tmp_path / "versions" / name).write_bytes(b"colmatch" if name != "v11.txt" else b"notes")
    last = tmp_path / "versions" / "v10.cm"
    assert current_file(tmp_path / "versions") == last
    for text in ("versions/v9.cm\n", f"{tmp_path}/versions/v9.cm"):
        (tmp_path / "current").write_text(text)
        assert current_file(tmp_path / "current") == tmp_path / "versions" / "v9.cm"
    (tmp_path / "current").write_text("versions")
    assert current_file(tmp_path / "current") == last
    assert current_file(last) == last


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "there is no saved matcher .*alerts: call matcher.save"),
        (b"", "is neither a saved matcher, nor a folder of them, nor a text file"),
        (b"\xff\x00", "is neither a saved matcher"),
        (b"a\nb", "is neither a saved matcher"),
        (b"x" * 5000, "is neither a saved matcher"),
        (b"nowhere.cm", "names 'nowhere.cm', which is no saved matcher: write the path of one into it"),
        (b"s3://bucket/1.cm", "is an address"),
        ("folder", "has no saved matcher: save one into it"),
    ],
    ids=["nothing", "empty", "binary", "lines", "long", "lost", "address", "folder"],
)
def test_pointers_without_a_matcher(tmp_path: Path, content: Any, said: str) -> None:
    if content == "folder":
        (tmp_path / "alerts").mkdir()
    elif content is not None:
        (tmp_path / "alerts").write_bytes(content)
    with pytest.raises(cm.StoreError, match=said):
        current_file(tmp_path / "alerts")


def test_a_stream_follows_a_file_that_names_the_version(spark: Any, tmp_path: Path) -> None:
    add(tmp_path, 2)
    there = [saved(tmp_path / f"{number}.cm", number) for number in range(2)]
    (tmp_path / "alerts").write_text("0.cm")
    run(to_files(spark, tmp_path))
    (tmp_path / "alerts").write_text("1.cm")
    uncommit(tmp_path, 1)
    (tmp_path / "0.cm").unlink()
    add(tmp_path)
    run(to_files(spark, tmp_path))
    assert written(spark, tmp_path) == expected({0: (0, there[0]), 1: (0, there[0]), 2: (1, there[1])})


# --------------------------------------------------------------------------
# what is refused


def test_what_is_refused_before_the_stream_begins(spark: Any, tmp_path: Path) -> None:
    add(tmp_path)
    saved(tmp_path / "alerts", 1)
    source, path = stream(spark, tmp_path), tmp_path / "alerts"
    good = {"df": source, "pointer": path, "sink": tmp_path / "out", "checkpoint": tmp_path / "checkpoint"}
    (tmp_path / "file").touch()
    for error, said, given in [
        (cm.EventError, "not NoneType", {"df": None}),
        (cm.EventError, "df is no stream: use colmatch.spark.match", {"df": spark.range(3)}),
        (cm.EventError, "no column 'user', which keep names", {"keep": ["user"]}),
        (cm.EventError, "no column 'id', which an expression names", {"df": source.withColumnRenamed("id", "x")}),
        (cm.EventError, "no column 'at', which event_time names", {"event_time": "at"}),
        (cm.OptionError, "event_time='id': the column is bigint, and a timestamp is needed", {"event_time": "id"}),
        (cm.OptionError, "event_time=3: the name of a column is needed", {"event_time": 3}),
        (cm.OptionError, "pointer=.*a path is needed", {"pointer": cm.Matcher.open(path)}),
        (cm.OptionError, "pointer='s3://b/a': a path of this machine is needed", {"pointer": "s3://b/a"}),
        (cm.StoreError, "there is no saved matcher", {"pointer": tmp_path / "nothing"}),
        (cm.OptionError, "checkpoint is missing: name the folder", {"checkpoint": None}),
        (cm.OptionError, "checkpoint is elsewhere.*records=", {"checkpoint": "hdfs://host/checkpoint"}),
        (cm.OptionError, "sink=3: a path or a function is needed", {"sink": 3}),
        (cm.OptionError, "sink='': a path or a function is needed", {"sink": ""}),
        (cm.StoreError, "records of a stream cannot be written.*records=", {"records": tmp_path / "file"}),
        (cm.OptionError, "format=None: the name of a format is needed", {"format": None}),
        (cm.OptionError, "mode='all'", {"mode": "all"}),
        (cm.OptionError, "match_stream has no score= without k=", {"score": "dot"}),
        (cm.OptionError, "match_stream has no mode= with k=", {"mode": "lists", "k": 2}),
        (cm.OptionError, "match_stream has no kepe= without k=: did you mean 'keep'", {"kepe": "id"}),
        (cm.OptionError, "keep has 'x y' 2 times", {"df": source.selectExpr("id", "1 AS `x y`"), "keep": ["x y"] * 2}),
        (
            cm.OptionError,
            "'Batch', which is a name of the result",
            {"df": source.selectExpr("id", "1 AS Batch"), "keep": ["Batch"]},
        ),
        (
            cm.OptionError,
            "'index_version', which is a name",
            {"df": source.selectExpr("id", "1 AS index_version"), "keep": "index_version", "sink": print},
        ),
    ]:
        with pytest.raises(error, match=said):
            match_stream(**(good | given))


def test_a_version_that_does_not_fit_is_not_recorded(spark: Any, tmp_path: Path) -> None:
    """The stream ends, and goes on when the version is put right."""
    add(tmp_path)
    saved(tmp_path / "alerts", 1)
    writer = to_files(spark, tmp_path)
    cm.Matcher.build({2: "age > 3"}, {"age": "bigint"}).save(tmp_path / "alerts")
    with pytest.raises(Exception, match="no column 'age'"):
        run(writer)
    assert records(tmp_path) == []
    good = saved(tmp_path / "alerts", 3)
    run(to_files(spark, tmp_path))
    assert written(spark, tmp_path) == expected({0: (3, good)})


def test_records_of_another_stream_are_refused(spark: Any, tmp_path: Path) -> None:
    add(tmp_path, 2)
    saved(tmp_path / "alerts", 1)
    run(to_files(spark, tmp_path, records=tmp_path / "records"))
    (tmp_path / "checkpoint").rename(tmp_path / "old")
    with pytest.raises(Exception, match="has records of batches up to 1, and batch 0 begins"):
        run(to_files(spark, tmp_path, records=tmp_path / "records"))
    (tmp_path / "records/batches/1.json").unlink()
    with pytest.raises(Exception, match="has the records of another stream"):
        run(to_files(spark, tmp_path, records=tmp_path / "records"))


def test_a_recorded_version_that_is_gone_or_damaged(spark: Any, tmp_path: Path) -> None:
    add(tmp_path)
    saved(tmp_path / "alerts", 1)
    run(to_files(spark, tmp_path))
    new = saved(tmp_path / "alerts", 2)
    for damage, said in [
        (
            lambda: (tmp_path / "checkpoint/colmatch/versions" / versions(tmp_path)[0]).unlink(),
            "put it back, or remove",
        ),
        (lambda: (tmp_path / "checkpoint/colmatch/batches/0.json").write_text("{"), "0.json is damaged: remove it"),
    ]:
        uncommit(tmp_path, 0)
        damage()
        # A matcher that is still open would serve as well; a driver that starts anew has none.
        with pytest.raises(Exception, match=said):
            run(to_files(spark, tmp_path))
    (tmp_path / "checkpoint/colmatch/batches/0.json").unlink()
    run(to_files(spark, tmp_path))
    assert written(spark, tmp_path) == expected({0: (2, new)})
