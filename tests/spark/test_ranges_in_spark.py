"""Spark: attributes that are ranges in the events."""

import pyarrow as pa
import pytest

from colmatch.errors import EventError, OptionError
from colmatch.given.options import Options
from colmatch.matcher import Matcher
from colmatch.spark.frames import match, match_topk

SCHEMA = pa.schema({"age": pa.int64(), "city": pa.string()})


def test_attributes_that_are_ranges(spark):
    rules = {1: "age BETWEEN 22 AND 36", 2: "age > 40 AND city = 'Rome'", 3: "age IS NULL"}
    matcher = Matcher.build(rules, SCHEMA, options=Options(threads=1))
    events = spark.sql(
        "SELECT id, id * 10 AS least, named_struct('to', if(id = 5, NULL, id * 10 + 5)) AS most, 'Rome' AS city FROM range(6)"
    )
    ranges = {"age": ("least", "most.to")}
    found = match(events, matcher, keep=["id"], ranges=ranges).collect()
    assert sorted((row["id"], row["subscription"]) for row in found) == [(2, 1), (3, 1), (4, 2), (5, 2)]
    listed = match(events, matcher, keep=["id"], mode="lists", ranges=ranges).collect()
    assert {row["id"]: row["subscriptions"] for row in listed}[4] == [2]
    best = match_topk(events, matcher, 1, keep=["id"], ranges=ranges).collect()
    assert sorted((row["id"], row["subscription"], row["score"]) for row in best) == [
        (2, 1, 0.0), (3, 1, 0.0), (4, 2, 0.0), (5, 2, 0.0),
    ]  # fmt: skip
    with pytest.raises(EventError, match="no column 'age'"):
        match(events, matcher)
    with pytest.raises(EventError, match="no column 'lowest', which an expression or a range names"):
        match(events, matcher, ranges={"age": ("lowest", "most.to")})
    with pytest.raises(OptionError, match="ranges"):
        match(events, matcher, ranges="age")


def test_an_end_that_no_column_has_is_no_bound(spark):
    rules = {1: "age BETWEEN 22 AND 36", 2: "age > 40", 3: "age IS NULL"}
    matcher = Matcher.build(rules, SCHEMA, options=Options(threads=1, missing_columns="null"))
    events = spark.sql("SELECT id, if(id = 5, NULL, id * 10 + 5) AS most FROM range(6)")
    found = match(events, matcher, keep=["id"], ranges={"age": ("lowest", "most")}).collect()
    wanted = {(2, 1), (3, 1), (4, 1), (4, 2)}  # an age up to 25, 35 and 45
    assert {(row["id"], row["subscription"]) for row in found if row["id"] < 5} == wanted
    local = matcher.match(pa.table({"most": pa.array([None], pa.int64())}), ranges={"age": ("lowest", "most")})
    assert {row["subscription"] for row in found if row["id"] == 5} == set(local["subscription"].to_pylist())
