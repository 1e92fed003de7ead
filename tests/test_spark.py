"""Spark: the same matches as without it, the index as a shared file, and everything that can be wrong said before a job runs."""

import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import functions as F

from colmatch import spark as colmatch_spark
from colmatch import spark_worker
from colmatch.errors import DependencyError, EventError, OptionError, StoreError
from colmatch.matcher import Matcher
from colmatch.options import Options
from colmatch.spark import match
from colmatch.spark_worker import Index, Task, open_index
from colmatch.store import content_hash

SCHEMA = pa.schema(
    {
        "age": pa.int64(),
        "city": pa.string(),
        "vip": pa.bool_(),
        "paid": pa.decimal128(10, 2),
        "seen": pa.timestamp("us", tz="UTC"),
        "local": pa.timestamp("us"),
        "day": pa.date32(),
        "tags": pa.list_(pa.string()),
        "user": pa.struct({"level": pa.int32()}),
        "attrs": pa.map_(pa.string(), pa.int64()),
        "unused": pa.string(),
    }
)
TEXTS = [
    "age BETWEEN 22 AND 36 AND city IN ('Rome', 'Oslo')",
    "age IS NULL",
    "NOT vip OR city LIKE 'R%'",
    "paid >= 2.50 AND paid < 10",
    "seen >= TIMESTAMP '2026-01-01 10:00:00'",
    "local < TIMESTAMP '2026-01-01 12:00:00'",
    "day = DATE '2026-01-03'",
    "array_contains(tags, 'new')",
    "user.level > 2",
    "attrs['colour'] = 3",
    "age = 1000000",
]
EVENTS = """
    SELECT id, nullif(id % 50, 7) AS age, element_at(array('Rome', 'Oslo', 'Łódź', NULL), int(id % 4) + 1) AS city, id % 3 = 0 AS vip,
        cast(id / 4 AS decimal(10, 2)) AS paid, TIMESTAMP '2026-01-01 00:00:00' + make_interval(0, 0, 0, 0, id % 24) AS seen,
        TIMESTAMP_NTZ '2026-01-01 00:00:00' + make_interval(0, 0, 0, 0, id % 24) AS local, date_add(DATE '2026-01-01', int(id % 5)) AS day,
        if(id % 6 = 0, NULL, array('new', NULL, string(id))) AS tags, if(id % 7 = 0, NULL, named_struct('level', int(id % 5))) AS user,
        if(id % 8 = 0, NULL, map('colour', id % 6, 'size', id)) AS attrs, raise_error('an unused column was read') AS unused
    FROM range(0, {rows}, 1, {parts})
"""


@pytest.fixture(scope="module", params=["long", "string"])
def matcher(request):
    return Matcher.build({i if request.param == "long" else f"№ {i}": text for i, text in enumerate(TEXTS)}, SCHEMA)


@pytest.fixture(scope="module")
def events(spark):
    return spark.sql(EVENTS.format(rows=300, parts=3))


@pytest.fixture
def conf(spark):
    """Sets session settings and puts them back."""
    before = {}

    def set(name, value):
        before.setdefault(name, spark.conf.get(name))
        spark.conf.set(name, value)

    yield set
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.fixture
def cache():
    """This process's cache of opened indexes, which is a worker's when a test runs a task here."""
    spark_worker._opened.clear()
    yield spark_worker._opened
    spark_worker._opened.clear()


def expected(matcher, events):
    """The pairs (id of the event, id of the subscription) of a run without Spark."""
    table = events.drop("unused").toArrow()
    pairs = matcher.match(table)
    return sorted(zip(table["id"].take(pairs["event"]).to_pylist(), pairs["subscription"].to_pylist(), strict=True))


def found(result):
    return sorted((row.id, row.subscription) for row in result.collect())


def saved_index(matcher, path):
    matcher.save(path)
    return Index(content_hash(path), str(path), str(path), artifact=False)


# ---------------------------------------------------------------------------------------------------------------- results


def test_pairs(matcher, events):
    result = match(events, matcher, keep=["id"])
    id = "bigint" if matcher.ids.type == pa.int64() else "string"
    assert result.schema.simpleString() == f"struct<id:bigint,subscription:{id}>"
    pairs = expected(matcher, events)
    assert found(result) == pairs
    assert len({sub for _, sub in pairs}) == len(TEXTS) - 1


def test_lists_have_a_row_for_each_event(matcher, events):
    result = match(events, matcher, keep=["id"], mode="list")
    id = "bigint" if matcher.ids.type == pa.int64() else "string"
    assert result.schema.simpleString() == f"struct<id:bigint,subscriptions:array<{id}>>"
    rows = {row.id: row.subscriptions for row in result.collect()}
    assert sorted(rows) == list(range(300))
    assert sorted((id, sub) for id, subs in rows.items() for sub in subs) == expected(matcher, events)


def test_lists_are_empty_where_nothing_matches(spark):
    matcher = Matcher.build({1: "age = 3"}, {"age": "int64"})
    rows = match(spark.sql("SELECT id AS age FROM range(5)"), matcher, keep="age", mode="list").collect()
    assert {row.age: row.subscriptions for row in rows} == {0: [], 1: [], 2: [], 3: [1], 4: []}


def test_kept_columns_of_every_shape(spark, events):
    keep = ["seen", "local", "day", "paid", "tags", "user", "attrs", "vip", "city", "id"]
    matcher = Matcher.build({1: "age < 40", 2: "city = 'Oslo'"}, SCHEMA)
    result = match(events, matcher, keep=keep)
    assert result.columns == [*keep, "subscription"]
    assert [f.dataType for f in result.schema.fields[:-1]] == [events.schema[name].dataType for name in keep]
    want = {row.id: row[:-1] for row in events.select(*keep, F.lit(0)).collect()}
    rows = result.collect()
    assert len(rows) > 200
    assert all(row[:-1] == want[row.id] for row in rows)


def test_nothing_kept(spark, events):
    matcher = Matcher.build({1: "age < 10", 2: "vip"}, SCHEMA)
    result = match(events, matcher)
    assert result.columns == ["subscription"]
    assert {row.subscription: row["count"] for row in result.groupBy("subscription").count().collect()} == {1: 54, 2: 100}


def test_expressions_without_columns(spark):
    matcher = Matcher.build({1: "TRUE", 2: "FALSE"}, {"age": "int64"})
    events = spark.range(0, 100, 1, 2)
    assert [row.subscription for row in match(events, matcher).collect()] == [1] * 100
    assert found(match(events, matcher, keep="id")) == [(i, 1) for i in range(100)]


def test_no_rows(spark, events, matcher):
    for mode in ("pairs", "list"):
        assert match(events.limit(0), matcher, keep=["id"], mode=mode).collect() == []
        assert match(events.where("age < 0"), matcher, keep=["id"], mode=mode).collect() == []


def test_names_as_spark_resolves_them(spark, conf):
    matcher = Matcher.build({1: "Age = 3 AND `a.b` = 3"}, {"Age": "int64", "a.b": "int64"})
    events = spark.sql("SELECT id AS AGE, id AS `a.b`, id AS `c``d`, id AS `e.f` FROM range(5)")
    result = match(events, matcher, keep=["age", "a.b", "C`D", "e.f"])
    assert result.columns == ["AGE", "a.b", "c`d", "e.f", "subscription"]
    assert [tuple(row) for row in result.collect()] == [(3, 3, 3, 3, 1)]
    conf("spark.sql.caseSensitive", "true")
    with pytest.raises(EventError, match="no column 'Age', which an expression names: did you mean"):
        match(events, matcher)


def test_large_types(matcher, events, conf):
    conf("spark.sql.execution.arrow.useLargeVarTypes", "true")
    rows = match(events, matcher, keep=["id", "city", "tags", "attrs"]).collect()
    assert sorted((row.id, row.subscription) for row in rows) == expected(matcher, events)


def test_session_zone_does_not_move_instants(spark, conf):
    matcher = Matcher.build({1: "seen >= TIMESTAMP '2026-01-01 10:00:00'"}, SCHEMA)
    conf("spark.sql.session.timeZone", "America/New_York")
    events = spark.sql("SELECT id, timestamp_seconds(unix_seconds(TIMESTAMP '2026-01-01 00:00:00Z') + 3600 * id) AS seen FROM range(8, 12)")
    assert found(match(events, matcher, keep="id")) == [(10, 1), (11, 1)]


# -------------------------------------------------------------------------------------------------------------- streaming


def test_stream(spark, events, matcher, tmp_path):
    events.drop("unused").write.parquet(str(tmp_path / "in"))
    source = spark.readStream.schema(events.drop("unused").schema).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    got = []
    query = (
        match(source, matcher, keep=["id"])
        .writeStream.foreachBatch(lambda batch, _: got.extend(found(batch)))
        .trigger(availableNow=True)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    assert query.awaitTermination(120)
    assert sorted(got) == expected(matcher, events)


def test_stream_keeps_its_watermark(spark, tmp_path):
    table = spark.sql("SELECT id, TIMESTAMP '2026-01-01 00:00:00' + make_interval(0, 0, 0, 0, id) AS seen FROM range(48)")
    table.repartition(3).write.parquet(str(tmp_path / "in"))
    source = spark.readStream.schema(table.schema).parquet(str(tmp_path / "in")).withWatermark("seen", "1 hour")
    matcher = Matcher.build({1: "id < 40"}, {"id": "int64"})
    counts = match(source, matcher, keep=["seen"]).groupBy(F.window("seen", "12 hours"), "subscription").count()
    query = counts.writeStream.format("memory").queryName("watermarked").outputMode("append").trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    assert spark.table("watermarked").agg(F.sum("count")).first()[0] >= 24


# ------------------------------------------------------------------------------------------------- how the index gets there


@pytest.mark.parametrize("shared", [None, True, False])
def test_path(events, matcher, tmp_path, shared, monkeypatch):
    matcher.save(tmp_path / "alerts")
    monkeypatch.chdir(tmp_path)
    result = match(events, "alerts", keep=["id"], shared=shared)
    assert found(result) == found(match(events, tmp_path / "alerts", keep=["id"], shared=shared)) == expected(matcher, events)


def test_the_index_is_sent_once_and_only_where_it_must_be(spark, tmp_path, monkeypatch):
    events = spark.sql("SELECT id, id AS age FROM range(5)")
    matcher = Matcher.build({101: "age = 1"}, {"age": "int64"})
    matcher.save(tmp_path / "alerts")
    sent = []
    send = spark.addArtifact
    monkeypatch.setattr(type(spark), "addArtifact", lambda self, path, file: (sent.append(path), send(path, file=file)))
    assert found(match(events, tmp_path / "alerts", keep="id")) == found(match(events, matcher, keep="id")) == [(1, 101)]
    assert sent == []
    for index in (tmp_path / "alerts", matcher, tmp_path / "alerts"):  # the same content
        assert found(match(events, index, keep="id", shared=False)) == [(1, 101)]
    assert len(sent) == 1


def test_where_files_cannot_be_linked(spark, tmp_path, monkeypatch):
    def refuse(source, target):
        raise OSError("another file system")

    monkeypatch.setattr(os, "link", refuse)
    events = spark.sql("SELECT id, id AS age FROM range(5)")
    matcher = Matcher.build({102: "age = 2"}, {"age": "int64"})
    matcher.save(tmp_path / "alerts")
    for index, shared in ((tmp_path / "alerts", None), (matcher, None), (tmp_path / "alerts", False), (matcher, False)):
        assert found(match(events, index, keep="id", shared=shared)) == [(2, 102)]


def test_few_versions_are_held(tmp_path):
    path = tmp_path / "alerts"
    links = []
    for id in range(colmatch_spark.VERSIONS_KEPT + 2):
        Matcher.build({id: "age = 103"}, {"age": "int64"}).save(path)
        links.append(colmatch_spark._pinned(path)[0])
        assert colmatch_spark._pinned(path)[0] == links[-1]
    assert [link.exists() for link in links] == [False] * 2 + [True] * colmatch_spark.VERSIONS_KEPT


def test_a_query_keeps_its_version_of_a_replaced_index(spark, tmp_path):
    events = spark.sql("SELECT id, id AS age FROM range(5)")
    Matcher.build({1: "age = 1"}, {"age": "int64"}).save(tmp_path / "alerts")
    old = match(events, tmp_path / "alerts", keep="id")
    assert found(old) == [(1, 1)]
    Matcher.build({2: "age = 2"}, {"age": "int64"}).save(tmp_path / "alerts")
    new = match(events, tmp_path / "alerts", keep="id")
    assert found(new) == [(2, 2)]
    assert found(old) == [(1, 1)]


def test_a_replaced_or_missing_shared_index_is_an_error(spark, tmp_path):
    events = spark.sql("SELECT id, id AS age FROM range(5)")
    path = tmp_path / "alerts"
    Matcher.build({77: "age = 1"}, {"age": "int64"}).save(path)  # content that no worker has in its cache
    planned = match(events, path, keep="id", shared=True)
    Matcher.build({78: "age = 2"}, {"age": "int64"}).save(path)
    with pytest.raises(Exception, match="was replaced"):
        planned.collect()
    path.rename(tmp_path / "elsewhere")
    with pytest.raises(Exception, match="is not visible on the worker"):
        planned.collect()


def test_the_task_is_small(tmp_path):
    index = saved_index(Matcher.build({i: f"age = {i}" for i in range(20_000)}, SCHEMA), tmp_path / "alerts")
    assert (tmp_path / "alerts").stat().st_size > 400_000
    task = Task(index, 1, ((0, "age"),), False, ("id", "subscription"))
    assert len(CloudPickleSerializer().dumps(task)) < 1_000


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_workers_share_the_mapped_file(spark, tmp_path):
    rng = np.random.default_rng(5)
    texts = {i: f"age BETWEEN {a} AND {a + 9} AND city = 'c{i}'" for i, a in enumerate(rng.integers(0, 1000, 20_000).tolist())}
    path = tmp_path / "alerts"
    index = saved_index(Matcher.build(texts, SCHEMA), path)
    name = str(path)

    def report(partition):
        import os
        import time

        import pyarrow as pa

        from colmatch.spark_worker import open_index

        matcher = open_index(index)
        for _ in partition:
            events = pa.record_batch({"age": pa.array(range(1000)), "city": pa.array(["c1"] * 1000)})
            sum(len(pairs) for pairs in matcher.match_batches(events))
            time.sleep(3)  # so that both partitions are at work, each in a process of its own
            sums = {"Rss": 0, "Shared_Clean": 0, "Private_Dirty": 0}
            inode, mine = "", False
            with open("/proc/self/smaps") as lines:
                for line in lines:
                    words = line.split()
                    if "-" in words[0] and ":" not in words[0]:
                        mine = len(words) > 5 and words[5].startswith(name)
                        inode = words[4] if mine else inode
                    elif mine and words[0][:-1] in sums:
                        sums[words[0][:-1]] += int(words[1])
            yield pa.record_batch({"pid": [os.getpid()], "inode": [inode], **{key: [value] for key, value in sums.items()}})

    spark.range(2).repartition(2).count()
    result = "pid long, inode string, Rss long, Shared_Clean long, Private_Dirty long"
    workers = spark.range(0, 2, 1, 2).mapInArrow(report, result).collect()
    assert len({worker.pid for worker in workers}) == 2
    assert len({worker.inode for worker in workers}) == 1 and workers[0].inode
    for worker in workers:
        assert worker.Rss > 0 and worker.Private_Dirty == 0
        assert worker.Shared_Clean > worker.Rss // 2


# ---------------------------------------------------------------------------------------------------------- a task by itself


def small_task(tmp_path, texts, names=("id", "subscription"), lists=False, **options):
    index = saved_index(Matcher.build(texts, {"age": "int64"}, options=Options(**options)), tmp_path / "alerts")
    return Task(index, 1, ((1, "age"),), lists, names)


def partition(rows, size, text="x"):
    for start in range(0, rows, size):
        ids = list(range(start, min(rows, start + size)))
        yield pa.record_batch({"c0": pa.array([f"{text}{i}" for i in ids]), "c1": pa.array(ids, pa.int64())})


def test_small_batches_are_gathered(tmp_path, cache):
    task = small_task(tmp_path, {1: "age >= 0"}, batch_rows=256)
    sizes = [len(batch) for batch in task(partition(1000, 10))]
    assert sum(sizes) == 1000 and len(sizes) <= 5


def test_small_batches_in_spark(events, matcher, conf):
    conf("spark.sql.execution.arrow.maxRecordsPerBatch", "10")
    assert found(match(events, matcher, keep=["id"])) == expected(matcher, events)


@pytest.mark.parametrize("lists", [False, True])
def test_output_batches_are_bounded(tmp_path, cache, monkeypatch, lists):
    monkeypatch.setattr(spark_worker, "PAIRS_MOST", 100)
    texts = {i: f"age >= {i * 10}" for i in range(150)}
    task = small_task(tmp_path, texts, ("id", "subscriptions" if lists else "subscription"), lists)
    batches = list(task(partition(2000, 500)))
    table = pa.Table.from_batches(batches)
    if lists:
        assert all(len(batch.column(1).flatten()) <= 100 or len(batch) == 1 for batch in batches)
        assert table["id"].to_pylist() == [f"x{i}" for i in range(2000)]
        assert table["subscriptions"].type == pa.list_(pa.int64())
        assert all(subs == list(range(min(150, i // 10 + 1))) for i, subs in enumerate(table["subscriptions"].to_pylist()))
    else:
        assert max(map(len, batches)) <= 100
        assert table.to_pylist() == [{"id": f"x{i}", "subscription": s} for i in range(2000) for s in range(min(150, i // 10 + 1))]


def test_output_batches_are_bounded_in_bytes(tmp_path, cache, monkeypatch):
    monkeypatch.setattr(spark_worker, "BYTES_MOST", 1 << 20)
    task = small_task(tmp_path, dict.fromkeys(range(50), "age >= 0"))
    batches = list(task(partition(40, 40, text="y" * 100_000)))
    assert sum(map(len, batches)) == 2000
    assert max(len(batch) for batch in batches) <= 11


def test_a_worker_opens_a_version_once(tmp_path, cache):
    index = saved_index(Matcher.build({1: "age = 1"}, {"age": "int64"}), tmp_path / "alerts")
    first = open_index(index)
    assert open_index(index) is first
    newer = saved_index(Matcher.build({2: "age = 2"}, {"age": "int64"}), tmp_path / "alerts")
    assert newer.hash != index.hash
    assert open_index(newer) is not first
    assert list(cache) == [newer.hash]


def test_a_worker_keeps_few_indexes(tmp_path, cache):
    matchers = [Matcher.build({i: "age = 1"}, {"age": "int64"}) for i in range(spark_worker.MATCHERS_MOST + 2)]
    indexes = [saved_index(matcher, tmp_path / f"alerts{i}") for i, matcher in enumerate(matchers)]
    for index in indexes[:-1]:
        open_index(index)
    open_index(indexes[1])
    open_index(indexes[-1])
    assert list(cache) == [index.hash for index in [*indexes[3:-1], indexes[1], indexes[-1]]]


# ----------------------------------------------------------------------------------------------------------------- errors

WRONG = {
    "missing": (lambda df: df.drop("age"), {}, EventError, "no column 'age', which an expression names"),
    "renamed": (lambda df: df.withColumnRenamed("age", "Agee"), {}, EventError, "did you mean 'Agee'"),
    "scalar type": (lambda df: df.withColumn("age", F.col("city")), {}, EventError, "age"),
    "list type": (lambda df: df.withColumn("tags", F.lit(1)), {}, EventError, "tags"),
    "twice": (lambda df: df.selectExpr("*", "1 AS Age"), {}, EventError, "2 columns called 'age'"),
    "collation": (lambda df: df.withColumn("city", F.expr("city COLLATE UTF8_LCASE")), {}, EventError, "COLLATE UTF8_BINARY"),
    "keep result": (lambda df: df.withColumn("subscription", F.lit(1)), {"keep": ["subscription"]}, OptionError, "name of the result"),
    "keep results": (
        lambda df: df.withColumn("subscriptions", F.lit(1)),
        {"keep": ["Subscriptions"], "mode": "list"},
        OptionError,
        "name of the result",
    ),
    "keep missing": (lambda df: df, {"keep": ["idd"]}, EventError, "no column 'idd', which keep names: did you mean 'id'"),
    "keep twice": (lambda df: df, {"keep": ["id", "ID"]}, OptionError, "keep has 'id' 2 times"),
    "mode": (lambda df: df, {"mode": "lists"}, OptionError, "'pairs' or 'list'"),
    "shared": (lambda df: df, {"shared": True}, OptionError, "matcher.save"),
}


@pytest.mark.parametrize(("change", "arguments", "error", "message"), WRONG.values(), ids=list(WRONG))
def test_wrong_input_is_said_before_a_job_runs(events, matcher, change, arguments, error, message):
    changed = change(events)
    with pytest.raises(error, match=message):
        match(changed, matcher, **arguments)


def test_a_path_without_a_matcher(events, tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing"):
        match(events, tmp_path / "nothing")
    (tmp_path / "foreign").write_bytes(b"PAR1")
    with pytest.raises(StoreError):
        match(events, tmp_path / "foreign")
    with pytest.raises(StoreError, match="folder"):
        match(events, tmp_path)


def python(code, **environment):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env={**os.environ, **environment})


def test_without_pyspark():
    ran = python("import sys; sys.modules['pyspark'] = None\nimport colmatch.spark")
    assert "colmatch.errors.DependencyError" in ran.stderr and 'pip install "colmatch[spark]"' in ran.stderr


def test_the_worker_side_does_not_import_pyspark():
    ran = python("import sys, colmatch.spark_worker; print('pyspark' in sys.modules, 'pandas' in sys.modules)")
    assert ran.stdout.split() == ["False", "False"], ran.stderr


def test_java(monkeypatch, tmp_path):
    colmatch_spark.check_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(DependencyError, match="there is none at JAVA_HOME=.*install Java 17"):
        colmatch_spark.check_java()
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    for version, name in (("11.0.2", "11"), ("1.8.0_292", "8")):
        java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        java.chmod(0o755)
        with pytest.raises(DependencyError, match=f"Spark needs Java 17, and .* is {name}: install"):
            colmatch_spark.check_java()


# ---------------------------------------------------------------------------------------------------------------- Connect

CONNECT = """
import json, sys, time
from pyspark.sql import SparkSession
from colmatch.matcher import Matcher
from colmatch.spark import match
texts, events, path = json.loads(sys.argv[1])
spark = SparkSession.builder.remote("local[2]").getOrCreate()
events = spark.sql(events)
found = []
for matcher, shared in ((path, None), (path, None), (path, True), (Matcher.open(path), None)):
    found.append(sorted((row.id, row.subscription) for row in match(events, matcher, keep=["id"], shared=shared).collect()))
lists = match(events, path, keep=["id"], mode="list").collect()
found.append(sorted((row.id, sub) for row in lists for sub in row.subscriptions))
print(json.dumps(found))
spark.stop()
"""


def test_connect(events, tmp_path):
    for package in ("grpc", "grpc_status", "google.rpc", "zstandard"):
        pytest.importorskip(package, reason="pyspark[connect] is not installed")
    matcher = Matcher.build(dict(enumerate(TEXTS)), SCHEMA)
    matcher.save(tmp_path / "alerts")
    arguments = json.dumps([TEXTS, EVENTS.format(rows=300, parts=3), str(tmp_path / "alerts")])
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    ran = subprocess.run(
        [sys.executable, "-c", CONNECT, arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env={**environment, "PYSPARK_PYTHON": sys.executable, "TZ": "UTC"},
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    want = [list(pair) for pair in expected(matcher, events)]
    assert json.loads(ran.stdout.splitlines()[-1]) == [want] * 5
