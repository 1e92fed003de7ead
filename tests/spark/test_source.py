"""The data source ``colmatch``: files that Spark's workers match where they read them."""

from __future__ import annotations

import datetime as dt
import random
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from colmatch.errors import ColmatchError, EventError, OptionError
from colmatch.given.options import Options
from colmatch.matcher import Matcher
from colmatch.spark import build, match, match_topk, register_source, source
from colmatch.spark.source import MatchedReader, query_of

DAYS = [dt.date(2026, 1, 30), dt.date(2026, 1, 31)]
ROWS = 4_000
RULES = {
    "cheap": "price < 100",
    "south": "dest = 'LIS' AND price < 300",
    "never": "price < 0",
    "long": "nights > 10 OR nights IS NULL",
    "last of January": "day = DATE '2026-01-31' AND dest <> 'OPO'",
}
TYPES = {"price": "double", "dest": "string", "nights": "int", "day": "date"}


def some_events(count: int) -> pa.Table:
    rng = random.Random(7)
    return pa.table(
        {
            "user": [rng.randrange(500) for _ in range(count)],
            "price": [rng.choice([rng.uniform(0, 500), None]) for _ in range(count)],
            "dest": [rng.choice(["LIS", "NCE", "OPO", None]) for _ in range(count)],
            "nights": pa.array([rng.choice([2, 5, 14, None]) for _ in range(count)], pa.int32()),
            "unused": [rng.random() for _ in range(count)],
            "day": [rng.choice(DAYS) for _ in range(count)],
        }
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    parts = ds.partitioning(pa.schema([("day", pa.date32())]), flavor="hive")
    ds.write_dataset(some_events(ROWS), folder / "events", format="parquet", partitioning=parts, max_rows_per_group=500)
    priority = pa.array(range(len(RULES)))
    rules = pa.table({"id": list(RULES), "expression": list(RULES.values()), "priority": priority})
    Matcher.build(rules, TYPES, tags={"cheap": ["mine"], "long": ["mine"]}).save(folder / "alerts.cm")
    return folder


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    register_source(spark)
    return spark


def loaded(spark: SparkSession, files: Path, **options: Any) -> Any:
    reader = spark.read.format("colmatch").option("index", str(files / "alerts.cm")).options(**options)
    return reader.load(str(files / "events"))


def rows(df: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in df.collect()), key=repr)


@pytest.mark.parametrize("size", [300, 1 << 20])
def test_files_give_what_their_rows_give(session: SparkSession, files: Path, size: int) -> None:
    events = session.read.parquet(str(files / "events"))
    found = loaded(session, files, keep="user, day", rows=size)
    assert found.schema.simpleString() == "struct<user:bigint,day:date,subscription:string>"
    wanted = match(events, str(files / "alerts.cm"), keep=["user", "day"])
    assert rows(found) == rows(wanted)
    for mode in ("lists", "count", "exists"):
        told = loaded(session, files, keep="user", mode=mode, rows=size)
        assert rows(told) == rows(match(events, str(files / "alerts.cm"), keep=["user"], mode=mode))
    best = loaded(session, files, keep="user", k=1, score="priority", rows=size)
    assert rows(best) == rows(match_topk(events, str(files / "alerts.cm"), 1, score="priority", keep=["user"]))
    mine = loaded(session, files, keep="user", tags="mine")
    assert {row.subscription for row in mine.collect()} == {"cheap", "long"}
    assert rows(loaded(session, files, ids="south,never")) == rows(
        wanted.select("subscription").where("subscription = 'south'")
    )


FILTERS = [
    "subscription = 'south'",
    "subscription IN ('south', 'cheap') AND subscription <> 'cheap'",
    "subscription = 'south' AND subscription = 'cheap'",
    "user < 20",
    "user IN (1, 2, 3) AND user >= 2",
    "day = DATE '2026-01-31' AND subscription = 'cheap'",
    "day > DATE '2026-01-31'",
    "dest IS NULL",
    "dest LIKE 'L%' OR user = 5",
    "price > 400",
    "NOT user > 3",
    "subscription IN ('cheap', NULL)",
]


@pytest.mark.parametrize("where", FILTERS)
def test_filters_mean_what_spark_means(session: SparkSession, files: Path, where: str) -> None:
    keep = ["user", "day", "dest", "price"]
    events = session.read.parquet(str(files / "events"))
    found = loaded(session, files, keep=",".join(keep), rows=600).where(where)
    assert rows(found) == rows(match(events, str(files / "alerts.cm"), keep=keep).where(where))


def test_filters_of_the_best_leave_them_the_best(session: SparkSession, files: Path) -> None:
    """They choose among the best: another subscription is not the best of those that are left."""
    best = loaded(session, files, keep="user", k=1, score="priority")
    for where in ("subscription = 'cheap'", "subscription IN ('south', 'cheap')"):
        assert rows(best.where(where)) == [row for row in rows(best) if row[1] in where]


def test_columns_of_events_that_are_called_as_the_result(session: SparkSession, tmp_path: Path) -> None:
    Matcher.build({"cheap": "price < 100"}, TYPES).save(tmp_path / "alerts.cm")
    events = pa.table({"subscription": ["gold", "none"], "price": [5.0, 500.0]})
    ds.write_dataset(events, tmp_path / "events", format="parquet")
    reader = session.read.format("colmatch").option("index", str(tmp_path / "alerts.cm"))
    for mode, wanted in (("count", 1), ("exists", True), ("lists", ["cheap"])):
        found = reader.option("mode", mode).option("keep", "subscription").load(str(tmp_path / "events"))
        assert rows(found.where("subscription = 'gold'")) == [("gold", wanted)]


def test_sql(session: SparkSession, files: Path) -> None:
    session.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW fired USING colmatch "
        f"OPTIONS (index '{files}/alerts.cm', path '{files}/events', keep 'user')"
    )
    counted = session.sql("SELECT subscription, count(*) FROM fired GROUP BY subscription")
    parts = ds.partitioning(pa.schema([("day", pa.date32())]), flavor="hive")
    hits = Matcher.open(files / "alerts.cm").hits(ds.dataset(files / "events", partitioning=parts))
    assert {tuple(row) for row in counted.collect()} == set(zip(*hits.to_pydict().values()))


def reader_of(files: Path, **options: str) -> MatchedReader:
    query = query_of({"index": str(files / "alerts.cm"), "path": str(files / "events"), **options})
    return MatchedReader(query, query.result)


def test_only_what_is_needed_is_read(files: Path) -> None:
    reader = reader_of(files, keep="user", rows="500")
    assert reader.query.columns == ("user", "price", "dest", "nights", "day")
    parts = [part.value for part in reader.partitions()]
    assert all(sum(group.num_rows for one in part for group in one.row_groups) <= 500 for part in parts)
    groups = sum(len(part) for part in parts)
    assert groups > 8
    few = reader_of(files, keep="user,day", rows="100000")
    assert len(few.partitions()) == 1
    (part,) = few.partitions()
    assert len(part.value) == groups


def test_batches_are_made_ahead_in_a_thread_that_ends(files: Path) -> None:
    made: list[int] = []

    def numbers(last: int, fails: bool) -> Any:
        for i in range(last):
            made.append(i)
            yield i
        if fails:
            raise EventError("the end")

    def threads() -> list[str]:
        return [one.name for one in threading.enumerate() if one.name.startswith("colmatch-source")]

    assert list(source._make_ahead(numbers(5, False))) == list(range(5))
    found: list[int] = []
    with pytest.raises(EventError, match="the end"):
        found.extend(source._make_ahead(numbers(3, True)))
    assert found == [0, 1, 2]
    made.clear()
    few = source._make_ahead(numbers(100, False))
    assert next(few) == 0
    few.close()
    assert len(made) <= 1 + source.AHEAD and not threads()
    reader = reader_of(files, keep="user", mode="lists", rows="100000")
    (part,) = reader.partitions()
    some = reader.read(part)
    assert next(some).num_rows and threads()
    some.close()
    assert not threads()


def test_other_formats_and_several_paths(session: SparkSession, files: Path, tmp_path: Path) -> None:
    events = some_events(100).drop_columns(["unused"])
    for name in ("one", "number two"):
        pa.csv.write_csv(events, tmp_path / f"{name}.csv")
    schema = dict(zip(events.schema.names, events.schema.types))
    schema["nights"] = pa.int64()  # as pyarrow reads a CSV
    Matcher.build(RULES, schema).save(tmp_path / "csv.cm")
    reader = session.read.format("colmatch").option("index", str(tmp_path / "csv.cm")).option("format", "csv")
    found = reader.load([str(tmp_path / "one.csv"), f"file://{tmp_path}/number%20two.csv"])
    assert found.count() == 2 * reader.load(str(tmp_path / "one.csv")).count() > 0


BAD: list[tuple[dict[str, str], type[ColmatchError] | type[OSError], str]] = [
    ({"inde": "x"}, OptionError, "did you mean 'index'"),
    ({"index": "/nowhere.cm"}, FileNotFoundError, "nowhere"),
    ({"keep": "usr"}, EventError, "did you mean 'user'"),
    ({"keep": "subscription"}, EventError, "subscription"),
    ({"mode": "pears"}, OptionError, "mode='pears'"),
    ({"k": "many"}, OptionError, "k='many'"),
    ({"score": "dot"}, OptionError, "give k"),
    ({"k": "2", "mode": "lists"}, OptionError, "no place for scores"),
    ({"format": "xls"}, OptionError, "format='xls'"),
    ({"path": "/nowhere"}, FileNotFoundError, "nowhere"),
    ({"rows": "0"}, OptionError, "rows"),
]


@pytest.mark.parametrize(
    ("options", "error", "said"), BAD, ids=[" ".join(f"{k}={v}" for k, v in one[0].items()) for one in BAD]
)
def test_wrong_options(files: Path, options: dict[str, str], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        reader_of(files, **options)


def test_columns_of_a_wrong_type_are_found_before_a_job(session: SparkSession, files: Path, tmp_path: Path) -> None:
    wrong = some_events(10).drop_columns(["price"]).append_column("price", pa.array(["cheap"] * 10))
    ds.write_dataset(wrong, tmp_path / "wrong", format="parquet")
    with pytest.raises(AnalysisException, match="price"):
        session.read.format("colmatch").option("index", str(files / "alerts.cm")).load(str(tmp_path / "wrong"))


def test_patterns_and_folders_leave_out_what_spark_leaves_out(
    session: SparkSession, files: Path, tmp_path: Path
) -> None:
    for day in DAYS:
        folder = tmp_path / "events" / f"day={day}"
        folder.mkdir(parents=True)
        for i, name in enumerate(("a.parquet", "b.parquet", "_SUCCESS", ".a.parquet.crc")):
            table = some_events(30 * (i + 1)).drop_columns(["day"])
            pq.write_table(table, folder / name) if i < 2 else (folder / name).write_bytes(b"crc")
    reader = session.read.format("colmatch").option("index", str(files / "alerts.cm")).option("keep", "user,day")
    everything = rows(reader.load(str(tmp_path / "events")))
    assert everything and rows(reader.load(str(tmp_path / "events" / "*" / "*.parquet"))) == everything
    assert rows(reader.load(f"file://{tmp_path}/events/day=*")) == everything
    first = rows(reader.load(str(tmp_path / "events" / "day=2026-01-30" / "..") + "/day=*30"))
    assert first == [row for row in everything if row[1] == DAYS[0]] != everything
    with pytest.raises(EventError, match="no file of rows is in this pattern"):
        reader_of(files, path=str(tmp_path / "events" / "*.csv"))
    with pytest.raises(FileNotFoundError, match="nowhere"):
        reader_of(files, path=str(tmp_path / "nowhere"))


def test_names_with_commas(session: SparkSession, tmp_path: Path) -> None:
    Matcher.build({"a,b": "price < 100", "c": "price > 0"}, TYPES, tags={"c": ["x, y"]}).save(tmp_path / "alerts.cm")
    pq.write_table(pa.table({"x,y": [1, 2], " z": [3, 4], "price": [5.0, 500.0]}), tmp_path / "events.parquet")
    reader = session.read.format("colmatch").option("index", str(tmp_path / "alerts.cm"))
    both = reader.option("keep", '["x,y", " z"]')
    assert rows(both.option("ids", '["a,b"]').load(str(tmp_path / "events.parquet"))) == [(1, 3, "a,b")]
    tagged = session.read.format("colmatch").options(index=str(tmp_path / "alerts.cm"), tags='["x, y"]')
    assert rows(tagged.load(str(tmp_path / "events.parquet"))) == [("c",), ("c",)]
    for keep, said in [("[1", "list as JSON"), ("[[1]]", "texts here"), ("[null]", "not None")]:
        with pytest.raises(OptionError, match=said):
            query_of({"index": str(tmp_path / "alerts.cm"), "path": str(tmp_path / "events.parquet"), "keep": keep})


def test_kept_columns_of_types_that_spark_has_not(tmp_path: Path) -> None:
    Matcher.build({1: "price < 100"}, TYPES).save(tmp_path / "alerts.cm")
    table = pa.table({"price": [5.0], "many": pa.array([1], pa.uint64()), "at": pa.array([1], pa.time32("s"))})
    pq.write_table(table, tmp_path / "events.parquet")
    for name, type in (("many", "uint64"), ("at", "time32")):
        with pytest.raises(EventError, match=f"keep has '{name}' of the type {type}.*, which Spark has not"):
            query_of({"index": str(tmp_path / "alerts.cm"), "path": str(tmp_path / "events.parquet"), "keep": name})


def test_a_session_of_another_zone_is_refused(session: SparkSession, files: Path, tmp_path: Path) -> None:
    rules = {1: "at > TIMESTAMP '2026-01-31 10:00:00'"}
    schema = {"at": pa.timestamp("us", "UTC")}
    Matcher.build(rules, schema, options=Options(timezone="Asia/Tokyo")).save(tmp_path / "zoned.cm")
    ds.write_dataset(pa.table({"at": pa.array([0], schema["at"])}), tmp_path / "times", format="parquet")
    reader = session.read.format("colmatch").option("index", str(tmp_path / "zoned.cm"))
    with pytest.raises(AnalysisException, match="the zone of this session"):
        reader.load(str(tmp_path / "times"))


def test_no_files_at_all(session: SparkSession, files: Path) -> None:
    with pytest.raises(AnalysisException, match="events are missing"):
        session.read.format("colmatch").option("index", str(files / "alerts.cm")).load()


def test_timestamps_as_spark_writes_them(session: SparkSession, tmp_path: Path, conf: Any) -> None:
    """By default Spark writes them as INT96, of which Parquet does not say that it has instants."""
    conf("spark.sql.session.timeZone", "America/New_York")
    register_source(session)
    events = session.sql(
        "SELECT id, timestamp_seconds(id * 7000000000) AS at, array(timestamp_seconds(id)) AS `all`, "
        "map('x', named_struct('first', timestamp_seconds(id), 'id', id)) AS parts FROM range(-3, 4, 1, 2)"
    )
    build({1: "at > TIMESTAMP '1970-01-01 00:00:00'", 2: "hour(at) >= 12"}, events).save(tmp_path / "alerts.cm")
    for kind in ("INT96", "TIMESTAMP_MICROS"):
        conf("spark.sql.parquet.outputTimestampType", kind)
        events.write.parquet(str(tmp_path / kind))
        reader = session.read.format("colmatch").option("index", str(tmp_path / "alerts.cm"))
        found = reader.option("keep", "id,at,all,parts").load(str(tmp_path / kind))
        wanted = match(events, str(tmp_path / "alerts.cm"), keep=["id", "at", "all", "parts"])
        assert found.dtypes == wanted.dtypes
        assert rows(found) == rows(wanted) and found.count() > 3
    conf("spark.sql.session.timeZone", "UTC")
    register_source(session)


def test_a_filter_of_one_query_is_not_one_of_the_next(session: SparkSession, files: Path) -> None:
    found = loaded(session, files, keep="user")
    all_rows = rows(match(session.read.parquet(str(files / "events")), str(files / "alerts.cm"), keep=["user"]))
    cheap, south = (found.where(f"subscription = '{name}'") for name in ("cheap", "south"))
    assert rows(cheap) == [row for row in all_rows if row[1] == "cheap"]
    assert rows(found.where("user < 20")) == [row for row in all_rows if row[0] < 20]
    assert rows(cheap.union(south)) == [row for row in all_rows if row[1] in ("cheap", "south")]
    assert rows(found) == all_rows


def test_rows_of_json_that_would_end_the_process(session: SparkSession, tmp_path: Path) -> None:
    matcher = Matcher.build({1: "a = 1"}, {"a": "int64"})
    matcher.save(tmp_path / "m.cm")
    reader = session.read.format("colmatch").option("index", str(tmp_path / "m.cm")).option("format", "json")
    (tmp_path / "fine.json").write_text('{"a": 1}\n{"a": null}\n')
    assert reader.load(str(tmp_path / "fine.json")).count() == 1
    late = '{"a": 1}\n' * 1_200_000 + "null\n"  # behind the part that is read for its columns
    for name, text, place in (("first.json", "null\n", 1), ("late.json", late, 1_200_001)):
        (tmp_path / name).write_text(text)
        with pytest.raises(Exception, match=f"line {place}: a JSON object is needed, not null"):
            reader.load(str(tmp_path / name)).count()
