"""Spark: the same matches as without it, and everything that can be wrong said before a job
runs.
"""

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import colmatch as cm
from colmatch.errors import EventError, OptionError, StoreError
from colmatch.given.options import Options
from colmatch.matcher import Matcher
from colmatch.spark import match_topk
from colmatch.spark.frames import match

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


def expected(matcher, events):
    """The pairs (id of the event, id of the subscription) of a run without Spark."""
    table = events.drop("unused").toArrow()
    pairs = matcher.match(table)
    return sorted(zip(table["id"].take(pairs["event"]).to_pylist(), pairs["subscription"].to_pylist(), strict=True))


def found(result):
    return sorted((row.id, row.subscription) for row in result.collect())


# --------------------------------------------------------------------------
# results


def test_pairs(matcher, events):
    result = match(events, matcher, keep=["id"])
    id = "bigint" if matcher.ids.type == pa.int64() else "string"
    assert result.schema.simpleString() == f"struct<id:bigint,subscription:{id}>"
    pairs = expected(matcher, events)
    assert found(result) == pairs
    assert len({sub for _, sub in pairs}) == len(TEXTS) - 1


def test_a_matcher_in_a_file_of_pages(events, tmp_path):
    index = cm.index("pbtree", path=str(tmp_path / "pages"))
    with Matcher.build(dict(enumerate(TEXTS)), SCHEMA, index=index) as matcher:
        pairs = expected(matcher, events)
        for given in (matcher, tmp_path / "pages"):
            assert found(match(events, given, keep="id")) == pairs
        matcher.delete([pairs[0][1]])
        for given in (matcher, tmp_path / "pages"):
            assert found(match(events, given, keep="id")) == [pair for pair in pairs if pair[1] != pairs[0][1]]


def test_lists_have_a_row_for_each_event(matcher, events):
    result = match(events, matcher, keep=["id"], mode="lists")
    id = "bigint" if matcher.ids.type == pa.int64() else "string"
    assert result.schema.simpleString() == f"struct<id:bigint,subscriptions:array<{id}>>"
    rows = {row.id: row.subscriptions for row in result.collect()}
    assert sorted(rows) == list(range(300))
    assert sorted((id, sub) for id, subs in rows.items() for sub in subs) == expected(matcher, events)


def test_lists_are_empty_where_nothing_matches(spark):
    matcher = Matcher.build({1: "age = 3"}, {"age": "int64"})
    rows = match(spark.sql("SELECT id AS age FROM range(5)"), matcher, keep="age", mode="lists").collect()
    assert {row.age: row.subscriptions for row in rows} == {0: [], 1: [], 2: [], 3: [1], 4: []}


WEIGHTS = pa.map_(pa.string(), pa.float64())
SCORED = pa.table(
    {
        "id": [10, 20, 30],
        "expression": ["age > 1", "age > 2 AND city = 'Rome'", "user.level > 2 OR age > 40"],
        "weights": pa.array(
            [[("age", 1.0)], [("age", 0.5), ("city", 0.25)], [("user.level", 3.0), ("age", 1.0)]], WEIGHTS
        ),
    }
)


def best(result):
    return sorted((row.id, row.subscription, row.score) for row in result.collect())


@pytest.mark.parametrize("mapped", [True, False])
def test_the_best_of_each_event(events, mapped):
    matcher = Matcher.build(SCORED, SCHEMA)
    if mapped:
        events = events.withColumn("Gives", F.expr("map('age', double(id % 3), 'no such', 1.0D)"))
        weights = "gives"
    else:
        events = events.withColumn("Gives", F.expr("nullif(id % 3, 1)"))
        weights = {"age": "Gives", "city": 4}
    result = match_topk(events, matcher, 2, "dot", weights, keep="id")
    assert result.schema.simpleString() == "struct<id:bigint,subscription:bigint,score:double>"
    table = events.drop("unused").toArrow()
    here = matcher.match_topk(table, 2, "dot", weights)
    ids = table["id"].take(here["event"]).to_pylist()
    wanted = sorted(zip(ids, here["subscription"].to_pylist(), here["score"].to_pylist(), strict=True))
    assert best(result) == wanted and len({score for _, _, score in wanted}) > 4


def test_what_cannot_be_asked_of_the_best_is_said_before_a_job_runs(events):
    matcher = Matcher.build(SCORED, SCHEMA)
    for error, message, arguments in [
        (OptionError, "k=0", (0,)),
        (OptionError, "score='best'", (1, "best")),
        (OptionError, "unknown attribute 'agee'", (1, "dot", {"agee": "id"})),
        (EventError, "no column 'urgency', which event_weights names", (1, "dot", {"age": "urgency"})),
        (EventError, "column 'city' is string: numbers are needed", (1, "dot", {"age": "city"})),
        (EventError, "a map from name to weight", (1, "dot", "id")),
    ]:
        with pytest.raises(error, match=message):
            match_topk(events, matcher, *arguments)
    with pytest.raises(OptionError, match="'Score', which is a name of the result"):
        match_topk(events.withColumn("Score", F.lit(1)), matcher, 1, keep="Score")
    with pytest.raises(Exception, match=r"column 'id', event \d+: the weight is -"):
        match_topk(events.withColumn("id", -F.col("id")), matcher, 1, "dot", {"age": "id"}).collect()


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
    assert {row.subscription: row["count"] for row in result.groupBy("subscription").count().collect()} == {
        1: 54,
        2: 100,
    }


def test_expressions_without_columns(spark):
    matcher = Matcher.build({1: "TRUE", 2: "FALSE"}, {"age": "int64"})
    events = spark.range(0, 100, 1, 2)
    assert [row.subscription for row in match(events, matcher).collect()] == [1] * 100
    assert found(match(events, matcher, keep="id")) == [(i, 1) for i in range(100)]


def test_no_rows(spark, events, matcher):
    for mode in ("pairs", "lists"):
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


def test_small_batches_in_spark(events, matcher, conf):
    conf("spark.sql.execution.arrow.maxRecordsPerBatch", "10")
    assert found(match(events, matcher, keep=["id"])) == expected(matcher, events)


def test_columns_that_are_null_where_that_was_asked_for(events):
    lenient = Matcher.build(dict(enumerate(TEXTS)), SCHEMA, options=Options(missing_columns="null"))
    rows = found(match(events.drop("age", "attrs"), lenient, keep=["id"]))
    assert (5, 1) in rows and (6, 1) in rows  # age IS NULL
    assert not {0, 9, 10} & {id for _, id in rows}


# --------------------------------------------------------------------------
# streaming


def test_stream(spark, events, matcher, tmp_path):
    events.drop("unused").write.parquet(str(tmp_path / "in"))
    source = (
        spark.readStream.schema(events.drop("unused").schema)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(tmp_path / "in"))
    )
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
    table = spark.sql(
        "SELECT id, TIMESTAMP '2026-01-01 00:00:00' + make_interval(0, 0, 0, 0, id) AS seen FROM range(48)"
    )
    table.repartition(3).write.parquet(str(tmp_path / "in"))
    source = spark.readStream.schema(table.schema).parquet(str(tmp_path / "in")).withWatermark("seen", "1 hour")
    matcher = Matcher.build({1: "id < 40"}, {"id": "int64"})
    counts = match(source, matcher, keep=["seen"]).groupBy(F.window("seen", "12 hours"), "subscription").count()
    query = (
        counts.writeStream.format("memory")
        .queryName("watermarked")
        .outputMode("append")
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    assert spark.table("watermarked").agg(F.sum("count")).first()[0] >= 24


# --------------------------------------------------------------------------
# errors

WRONG = {
    "missing": (lambda df: df.drop("age"), {}, EventError, "no column 'age', which an expression names"),
    "renamed": (lambda df: df.withColumnRenamed("age", "Agee"), {}, EventError, "did you mean 'Agee'"),
    "scalar type": (lambda df: df.withColumn("age", F.col("city")), {}, EventError, "age"),
    "list type": (lambda df: df.withColumn("tags", F.lit(1)), {}, EventError, "tags"),
    "twice": (lambda df: df.selectExpr("*", "1 AS Age"), {}, EventError, "2 columns called 'age'"),
    "collation": (
        lambda df: df.withColumn("city", F.expr("city COLLATE UTF8_LCASE")),
        {},
        EventError,
        "COLLATE UTF8_BINARY",
    ),
    "keep result": (
        lambda df: df.withColumn("subscription", F.lit(1)),
        {"keep": ["subscription"]},
        OptionError,
        "name of the result",
    ),
    "keep results": (
        lambda df: df.withColumn("subscriptions", F.lit(1)),
        {"keep": ["Subscriptions"], "mode": "lists"},
        OptionError,
        "name of the result",
    ),
    "keep of numbers": (lambda df: df, {"keep": [3]}, OptionError, "keep=\\[3\\]: names of columns"),
    "keep of nothing": (lambda df: df, {"keep": None}, OptionError, "keep=None: names of columns"),
    "no DataFrame": (lambda df: [1], {}, EventError, "a Spark DataFrame here, not list"),
    "keep missing": (
        lambda df: df,
        {"keep": ["idd"]},
        EventError,
        "no column 'idd', which keep names: did you mean 'id'",
    ),
    "keep twice": (lambda df: df, {"keep": ["id", "ID"]}, OptionError, "keep has 'id' 2 times"),
    "mode": (lambda df: df, {"mode": "listed"}, OptionError, "'pairs', 'lists', 'count' or 'exists'"),
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


@pytest.mark.parametrize("odd", [None, 3, "", "nul\0", object()])
def test_odd_paths_of_a_matcher(events, odd):
    with pytest.raises((StoreError, FileNotFoundError, IsADirectoryError)):
        match(events, odd)
