"""The time of the call in Spark: one moment for all tasks of a query, which is Spark's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import colmatch as cm
from colmatch.spark.frames import match, match_topk
from colmatch.spark.functions import hits
from colmatch.spark.shards import build_shards

if TYPE_CHECKING:
    from pathlib import Path

RULES = {
    1: "ts = now()",
    2: "ts > now()",
    3: "ts > now() - INTERVAL 1 HOUR AND id < 50",
    4: "exists(l, x -> x = now())",
}
ROWS = 100
EXPECTED = sorted([(id, rule) for id in range(ROWS) for rule in (1, 3, 4) if rule != 3 or id < 50])


@pytest.fixture
def events(spark: Any) -> Any:
    frame = spark.range(ROWS).repartition(4)
    return frame.selectExpr("id", "current_timestamp() AS ts", "array(current_timestamp()) AS l")


def pairs(found: Any) -> list[tuple[int, int]]:
    return sorted((row["id"], row["subscription"]) for row in found.collect())


def test_all_tasks_have_the_moment_of_the_query(events: Any) -> None:
    matcher = cm.Matcher.build(RULES, {"ts": "timestamp", "id": "bigint", "l": "array<timestamp>"})
    found = match(events, matcher, keep=["id"])
    assert found.columns == ["id", "subscription"]
    assert pairs(found) == EXPECTED
    assert pairs(found) == EXPECTED  # another query, and another moment
    assert pairs(match_topk(events, matcher, 9, keep=["id"])) == EXPECTED
    assert {row["count"] for row in match(events, matcher, mode="count").collect()} == {2, 3}
    later = match(events, matcher, keep=["id"], now=4_000_000_000)
    assert pairs(later) == []


def test_a_function_of_a_column(spark: Any, events: Any) -> None:
    from pyspark.sql import functions as F

    matcher = cm.Matcher.build(RULES, {"ts": "timestamp", "id": "bigint", "l": "array<timestamp>"})
    rows = events.select("id", hits(matcher)(F.struct("*")).alias("found")).collect()
    assert sorted((row["id"], rule) for row in rows for rule in row["found"]) == EXPECTED


@pytest.mark.parametrize("plan", ["in_turn", "routed"])
def test_shards(spark: Any, events: Any, tmp_path: Path, plan: Any) -> None:
    table = spark.createDataFrame([*RULES.items()], "id long, expression string")
    build_shards(table, events, tmp_path / "shards", 3)
    assert pairs(match(events, tmp_path / "shards", keep=["id"], plan=plan)) == EXPECTED
