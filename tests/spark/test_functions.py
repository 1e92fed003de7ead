"""A matcher in a column and in SQL: the same rows as ``match``."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F

import colmatch as cm
from colmatch.spark import hits, match, register

pytestmark = pytest.mark.skipif(not hasattr(F, "arrow_udtf"), reason="Arrow functions came with Spark 4.1")

RULES = {
    "young": "age < 30",
    "nice": "city = 'Nice' AND age >= 7",
    "nobody": "city IS NULL",
    "odd": "age IN (1, 3, 35)",
}
SCHEMA = {"age": "bigint", "city": "string"}
EVENTS = """
    SELECT id AS user, id % 50 AS age, CASE id % 3 WHEN 0 THEN 'Nice' WHEN 1 THEN 'Lyon' END AS city,
        named_struct('x', id) AS odd, CAST(id AS decimal(20, 4)) AS amount, TIMESTAMP '2026-11-26 10:00:00' AS at
    FROM range(0, 200, 1, 3)
"""


@pytest.fixture(scope="module", params=["string", "long"])
def matcher(request: pytest.FixtureRequest) -> cm.Matcher:
    rules = RULES if request.param == "string" else dict(enumerate(RULES.values()))
    return cm.Matcher.build(rules, SCHEMA, tags={next(iter(rules)): ["mine"]})


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> Any:
    return spark.sql(EVENTS)


def pairs(rows: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in rows.collect())


def test_a_column_of_lists(events: Any, matcher: cm.Matcher) -> None:
    told = events.withColumn("found", hits(matcher)(F.struct("*")))
    assert told.columns == [*events.columns, "found"]
    exploded = told.select("user", F.explode("found"))
    assert pairs(exploded) == pairs(match(events, matcher, keep=["user"]))
    empty = told.where("size(found) = 0").count()
    assert empty == match(events, matcher, mode="count").where("count = 0").count() > 0
    assert told.where("found IS NULL").count() == 0


def test_a_filter_of_lists_matches_each_row_once(events: Any, matcher: cm.Matcher) -> None:
    """Spark repeats ``hits`` in a filter of its column. The guide shows ``match`` for this."""

    def operators(df: Any) -> int:
        plan = df._jdf.queryExecution().executedPlan().toString()
        return len(re.findall("ArrowEvalPython|MapInArrow", plan))

    numbers = Observation()
    once = match(events, matcher, keep=["user"], mode="lists", observe=numbers).where("size(subscriptions) > 0")
    rows = once.collect()
    assert operators(once) == 1 and numbers.get["rows"] == events.count()
    told = events.select("user", hits(matcher)(F.struct("*")).alias("found")).where("size(found) > 0")
    assert operators(told) == 2, "the guide says that Spark does it twice"
    assert (
        pairs(told.select("user", F.explode("found"))) == pairs(once.select("user", F.explode("subscriptions")))
        and len(rows) == told.count()
    )


def test_columns_of_counts_and_truths(events: Any, matcher: cm.Matcher) -> None:
    used = F.struct("city", "age")
    told = events.select("user", hits(matcher, "count")(used), hits(matcher, "exists")(used))
    counts = dict(match(events, matcher, keep=["user"], mode="count").collect())
    assert {user: (count, exists) for user, count, exists in told.collect()} == {
        user: (count, count > 0) for user, count in counts.items()
    }
    mine = events.select("user", hits(matcher, "count", tags=["mine"])(used).alias("n")).where("n > 0")
    assert mine.count() == match(events, matcher, tags=["mine"]).count() > 0


def test_a_table_function(spark: SparkSession, events: Any, matcher: cm.Matcher) -> None:
    events.createOrReplaceTempView("visits")
    register(
        spark,
        "found_in",
        matcher,
        keep={"user": "bigint", "odd": "struct<x: bigint>", "amount": "decimal(20,4)", "at": "timestamp"},
    )
    found = spark.sql("SELECT * FROM found_in(TABLE(SELECT * FROM visits))")
    wanted = match(events, matcher, keep=["user", "odd", "amount", "at"])
    assert found.columns == wanted.columns
    assert pairs(found.drop("odd")) == pairs(wanted.drop("odd"))
    assert pairs(found.select("odd.x", "subscription")) == pairs(wanted.select("odd.x", "subscription"))
    register(spark, "found_in", matcher, keep="age", tags=["mine"])
    mine = spark.sql("SELECT * FROM found_in(TABLE(visits))")
    assert pairs(mine) == pairs(match(events, matcher, keep=["age"], tags=["mine"]))
    nothing = spark.sql("SELECT * FROM found_in(TABLE(SELECT * FROM visits WHERE user < 0))")
    assert nothing.count() == 0


def test_many_batches(spark: SparkSession, events: Any, matcher: cm.Matcher) -> None:
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "7")
    try:
        told = events.select("user", F.explode(hits(matcher)(F.struct("age", "city"))))
        assert pairs(told) == pairs(match(events, matcher, keep=["user"]))
        events.createOrReplaceTempView("visits")
        register(spark, "found_in", matcher, keep={"user": "long"})
        found = spark.sql("SELECT * FROM found_in(TABLE(visits))")
        assert pairs(found) == pairs(match(events, matcher, keep=["user"]))
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


def test_what_cannot_be_done(spark: SparkSession, events: Any, matcher: cm.Matcher) -> None:
    with pytest.raises(cm.OptionError, match="mode='pairs'"):
        hits(matcher, "pairs")  # type: ignore[arg-type]
    with pytest.raises(cm.SchemaError, match="say its type"):
        register(spark, "found_in", matcher, keep="user")
    with pytest.raises(cm.OptionError, match="column of the result"):
        register(spark, "found_in", matcher, keep={"subscription": "long"})
    with pytest.raises(cm.OptionError, match="name of a function"):
        register(spark, "found in", matcher)
    zoned = cm.Matcher.build(
        {1: "at > TIMESTAMP '2026-01-01 00:00:00'"},
        {"at": pa.timestamp("us", "UTC")},
        options=cm.Options(timezone="Asia/Tokyo"),
    )
    with pytest.raises(cm.OptionError, match="zone of this session"):
        hits(zoned)
    with pytest.raises(Exception, match="no column 'city'"):
        events.select(hits(matcher)(F.struct("age"))).collect()
    register(spark, "found_in", matcher, keep={"usr": "long"})
    events.createOrReplaceTempView("visits")
    with pytest.raises(Exception, match="did you mean 'user'"):
        spark.sql("SELECT * FROM found_in(TABLE(visits))").collect()


def test_a_column_may_be_named(events: Any, matcher: cm.Matcher) -> None:
    found = events.select(F.struct("*").alias("visit")).select(hits(matcher)("visit").alias("found")).collect()
    assert [row.found for row in found] == [
        row.found for row in events.select(hits(matcher)(F.struct("*")).alias("found")).collect()
    ]
    assert any(row.found for row in found)


def test_what_a_worker_is_given_is_told_in_words(spark: SparkSession, events: Any, matcher: cm.Matcher) -> None:
    events.createOrReplaceTempView("visits")
    with pytest.raises(Exception, match="a column is int64, a struct of the events' columns is needed"):
        events.select(hits(matcher)("age")).collect()
    register(spark, "found_in", matcher, keep={"user": "long"})
    for table, said in [
        ("1", r"a table function got int32, a table is needed: TABLE\(SELECT ...\)"),
        (
            "TABLE(SELECT user, age FROM visits)",
            "the table has no column 'city', which an expression names: it has 'user', 'age'",
        ),
        (
            "TABLE(SELECT 'ann' AS user, age, city FROM visits)",
            "the columns that are kept, user, are not of the types said: .*'ann'",
        ),
    ]:
        with pytest.raises(Exception, match=said):
            spark.sql(f"SELECT * FROM found_in({table})").collect()


@pytest.mark.parametrize(
    ("keep", "said"),
    [
        (["age", "age"], "keep has 'age' 2 times"),
        ({"user": "long", "USER": "long"}, "keep has 'user' 2 times"),
        ({"Subscription": "long"}, "keep has 'Subscription', which is a column of the result"),
    ],
    ids=["twice", "in two cases", "of the result"],
)
def test_names_of_kept_columns_are_apart(spark: SparkSession, matcher: cm.Matcher, keep: Any, said: str) -> None:
    with pytest.raises(cm.OptionError, match=said):
        register(spark, "found_in", matcher, keep=keep)
