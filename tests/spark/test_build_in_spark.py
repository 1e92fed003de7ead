"""Matchers that are built for a DataFrame: subscriptions, schema and settings of its session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import colmatch as cm
from colmatch.spark import build, match, match_topk


@pytest.fixture
def events(spark: Any) -> Any:
    return spark.sql(
        "SELECT id, CAST(2147483640 + id AS INT) AS age, IF(id % 2 = 0, 'Rome', NULL) AS city, "
        "timestamp_seconds(1704060000 + id * 3600) AS seen FROM range(6)"
    )


def pairs(found: Any) -> list[tuple[int, Any]]:
    return sorted((row.id, row.subscription) for row in found.collect())


def wanted(events: Any, texts: dict[Any, str]) -> list[tuple[int, Any]]:
    """What Spark itself finds, one expression after the other."""
    return sorted((row.id, id) for id, text in texts.items() for row in events.where(text).collect())


TEXTS = {1: "AGE >= 2147483644 AND city = 'Rome'", 2: "seen >= '2024-01-01 01:00:00'", 3: "hour(seen) < 2"}


def test_subscriptions_of_a_data_frame(spark: Any, events: Any) -> None:
    rows = [(id, text, [f"tag-{id % 2}"], {"age": float(id)}, id / 2) for id, text in TEXTS.items()]
    types = "id long, expression string, tags array<string>, weights map<string, double>, priority double"
    table = spark.createDataFrame(rows, types)
    matcher = build(table.drop("weights", "priority"), events)
    assert matcher.schema.arrow.names == events.columns
    assert pairs(match(events, matcher, keep="id")) == wanted(events, TEXTS)
    assert pairs(match(events, matcher, keep="id", tags=["tag-0"])) == wanted(events, {2: TEXTS[2]})
    best = match_topk(events, build(table, events), 1, "priority", keep="id").collect()
    highest = {event: (id, id / 2) for event, id in wanted(events, TEXTS)}  # ids are in their order
    assert {row.id: (row.subscription, row.score) for row in best} == highest


def test_whatever_a_matcher_is_built_of(events: Any) -> None:
    table = pa.table({"id": ["a"], "expression": ["city IS NULL"]})
    assert pairs(match(events, build(table, events), keep="id")) == [(1, "a"), (3, "a"), (5, "a")]
    sampled = build({1: "age > 0"}, events.where("id < 0"), sample=events, index=cm.index("bitslice"))
    assert sampled.kind == "bitslice" and sampled.match_lists(events.toArrow()).to_pylist() == [[1]] * 6
    assert not any(not field.nullable for field in build({}, events).schema.arrow)


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("zone", ["America/New_York", "+03:00"])
def test_zone_and_mode_are_those_of_the_session(conf: Any, events: Any, zone: str, ansi: str) -> None:
    conf("spark.sql.session.timeZone", zone)
    conf("spark.sql.ansi.enabled", ansi)
    texts = dict(TEXTS)
    if ansi == "false":
        texts[4] = "age + 4 < 0"
    matcher = build(texts, events, options=cm.Options(threads=1, timezone="UTC"))
    assert (matcher.options.timezone, matcher.options.ansi, matcher.options.threads) == (zone, ansi == "true", 1)
    assert pairs(match(events, matcher, keep="id")) == wanted(events, texts)


def test_options_that_are_not_those_of_the_session(conf: Any, events: Any) -> None:
    with pytest.raises(cm.OptionError, match="timezone='Asia/Tokyo': spark.sql.session.timeZone .* is 'UTC'; leave"):
        build(TEXTS, events, options=cm.Options(timezone="Asia/Tokyo"))
    conf("spark.sql.ansi.enabled", "false")
    with pytest.raises(cm.OptionError, match="ansi=True: spark.sql.ansi.enabled of the session is False"):
        build(TEXTS, events, options=cm.Options(ansi=True))
    with pytest.raises(cm.SchemaError, match="a Spark DataFrame is needed, not Schema"):
        build(TEXTS, cm.Schema("age int"))  # type: ignore[arg-type]


def test_case_of_names(conf: Any, events: Any, tmp_path: Path) -> None:
    conf("spark.sql.caseSensitive", "true")
    with pytest.raises(cm.ExpressionError, match="unknown attribute 'AGE': did you mean 'age'"):
        build(TEXTS, events)
    both = events.selectExpr("id", "age", "-age AS AGE")
    matcher = build({1: "AGE < -2147483643", 2: "age < 2147483642"}, both)
    matcher.save(tmp_path / "alerts")
    opened = cm.Matcher.open(tmp_path / "alerts")
    assert opened.schema == matcher.schema and opened.schema.case_sensitive
    assert pairs(match(both, tmp_path / "alerts", keep="id")) == [(0, 2), (1, 2), (4, 1), (5, 1)]
    with pytest.raises(cm.ExpressionError, match="unknown attribute 'Age'"):
        opened.insert({3: "Age > 1"})


def test_subscriptions_that_are_a_stream(spark: SparkSession) -> None:
    with pytest.raises(cm.SubscriptionError, match="the subscriptions are a stream"):
        build(spark.readStream.format("rate").load(), spark.range(3))
