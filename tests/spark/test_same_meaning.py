"""Columns and settings with which Spark means something else: as Spark, or refused before a job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import colmatch as cm
from colmatch.spark import build, build_shards, hits, match


@contextmanager
def setting(spark: SparkSession, name: str, value: str = "true") -> Iterator[None]:
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.unset(name)


@pytest.fixture(scope="module")
def padded(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("padded")
    spark.sql(f"CREATE TABLE padded (c CHAR(5), v VARCHAR(5)) USING parquet LOCATION '{folder}'")
    spark.sql("INSERT OVERWRITE padded VALUES ('ab', 'ab'), ('abcde', 'abcde'), (NULL, NULL)")
    yield spark.table("padded")
    spark.sql("DROP TABLE padded")


def test_texts_that_spark_pads(padded: Any) -> None:
    rules = cm.Matcher.build({1: "c = 'ab'"}, {"c": "string"})
    with pytest.raises(cm.EventError, match=r"column 'c' is CHAR\(5\).*F.rtrim\('c'\)"):
        match(padded, rules)
    assert match(padded.withColumn("c", F.rtrim("c")), rules).count() == padded.where("c = 'ab'").count() == 1
    others = cm.Matcher.build({1: "v = 'ab'"}, {"v": "string"})
    assert match(padded, others).count() == padded.where("v = 'ab'").count() == 1


@pytest.mark.skipif(not hasattr(F, "arrow_udtf"), reason="Arrow functions came with Spark 4.1")
def test_a_column_of_another_collation(spark: SparkSession) -> None:
    rules = cm.Matcher.build({1: "city = 'nice'"}, {"city": "string"})
    events = spark.sql("SELECT 'Nice' COLLATE UTF8_LCASE AS city")
    for mode in ("lists", "count", "exists"):
        with pytest.raises(Exception, match="COLLATE UTF8_BINARY"):
            events.select(hits(rules, mode=mode)(F.struct("*"))).collect()  # type: ignore[arg-type]
    plain = events.select(F.col("city").cast("string collate UTF8_BINARY").alias("city"))
    assert plain.select(hits(rules)(F.struct("*")).alias("ids")).collect()[0].ids == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("spark.sql.parser.escapedStringLiterals", "a backslash stands for itself"),
        ("spark.sql.legacy.consecutiveStringLiterals.enabled", "two quotes in a text are none"),
        ("spark.sql.ansi.doubleQuotedIdentifiers", "around names in this session"),
    ],
)
def test_settings_with_which_texts_are_read_otherwise(spark: SparkSession, name: str, said: str) -> None:
    events = spark.sql("SELECT 1L AS a, 'x' AS name")
    rules = cm.Matcher.build({1: "a = 1"}, {"a": "int64"}, options=cm.Options(ansi=True))
    assert match(events, rules).count() == 1
    with setting(spark, name), pytest.raises(cm.OptionError, match=said):
        match(events, rules)
    built = cm.Matcher.build({1: "a = 1"}, ["a|integer|true"], language="betree", options=cm.Options(ansi=True))
    with setting(spark, name):
        assert match(events, built).count() == 1


def test_double_quotes_as_in_the_session(spark: SparkSession) -> None:
    events = spark.sql("SELECT 1L AS a, 'x' AS name")
    rules = [(1, "\"name\" = 'x'")]
    with setting(spark, "spark.sql.ansi.doubleQuotedIdentifiers"):
        built = build(rules, events)
        assert built.options.double_quotes == "names"
        assert match(events, built).count() == events.where(rules[0][1]).count() == 1
    assert match(events, built).count() == 1  # names that the matcher was built with are still names
    with pytest.raises(cm.ExpressionError, match="for the column"):
        build(rules, events)
    assert build(rules, events, options=cm.Options(double_quotes="names")).options.double_quotes == "names"


@pytest.mark.parametrize("ansi", ["false", "true"])
def test_casts_as_in_the_session(spark: SparkSession, ansi: str, tmp_path: Any) -> None:
    """Texts beside numbers are cast as Spark casts them, in a DataFrame and in shards."""
    clauses = {1: "s = 5", 2: "s IN (5, 6)", 3: "n >= '2'", 4: "s < n", 5: "coalesce(s, n) = '05'"}
    with setting(spark, "spark.sql.ansi.enabled", ansi):
        events = spark.sql("SELECT * FROM VALUES ('5', 1), ('05', 7), (' 6', 2), (NULL, 5) AS v(s, n)").coalesce(1)
        expected = sorted((str(row.s), id) for id, clause in clauses.items() for row in events.where(clause).collect())
        built = build([*clauses.items()], events, options=cm.Options(casts="spark"))
        assert sorted((str(row.s), row.subscription) for row in match(events, built, keep=["s"]).collect()) == expected
        rules = spark.createDataFrame([*clauses.items()], "id long, expression string")
        sharded = build_shards(rules, events, str(tmp_path / "shards"), 2, options=cm.Options(casts="spark"))
        assert (
            sorted((str(row.s), row.subscription) for row in match(events, sharded.path, keep=["s"]).collect())
            == expected
        )
    other = "true" if ansi == "false" else "false"
    with setting(spark, "spark.sql.ansi.enabled", other), pytest.raises(cm.OptionError, match="was built with"):
        match(events, built)
