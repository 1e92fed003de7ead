"""Spark: among some subscriptions, by ids or tags."""

import pyarrow as pa
import pytest

from colmatch.errors import EventError, OptionError, SubscriptionError
from colmatch.given.options import Options
from colmatch.matcher import Matcher
from colmatch.spark.frames import match, match_topk

SCHEMA = pa.schema({"age": pa.int64()})


def test_ids_and_tags(spark):
    matcher = Matcher.build(
        {i: f"age >= {i}" for i in range(6)},
        SCHEMA,
        options=Options(threads=1),
        tags={1: ["red"], 3: ["red", "blue"], 4: ["blue"]},
    )
    events = spark.sql("SELECT id AS age FROM range(5)")

    def pairs(found):
        return sorted((row["age"], row["subscription"]) for row in found.collect())

    wanted = [(age, id) for age in range(5) for id in (1, 3) if age >= id]
    for ids in ([1, 3, 77], pa.array([3, 1]), matcher.subset([1, 3])):
        assert pairs(match(events, matcher, keep=["age"], ids=ids)) == wanted
    assert pairs(match(events, matcher, keep=["age"], tags=["red"])) == wanted
    assert pairs(match(events, matcher, keep=["age"], ids=[3, 4, 5], tags=["red"])) == [(3, 3), (4, 3)]
    assert pairs(match_topk(events, matcher, 1, keep=["age"], tags=["blue"])) == [(3, 3), (4, 3)]
    listed = match(events, matcher, keep=["age"], mode="lists", tags=["blue"]).collect()
    assert {row["age"]: sorted(row["subscriptions"]) for row in listed} == {0: [], 1: [], 2: [], 3: [3], 4: [3, 4]}
    with pytest.raises(SubscriptionError, match="no id of this matcher"):
        match(events, matcher, ids=["x"])
    with pytest.raises(OptionError, match="a list of strings is needed"):
        match(events, matcher, tags="red")


def test_the_time_that_it_is(spark):
    fields = pa.struct({"id": pa.int64(), "timestamp": pa.int64()})
    schema = pa.schema({"seen": pa.list_(fields), "now": pa.int64()})
    matcher = Matcher.build({1: "segment_within(seen, now, 3, 10)"}, schema, options=Options(threads=1))
    events = spark.sql("SELECT id, array(named_struct('id', 3L, 'timestamp', id * 1000000)) AS seen FROM range(30)")
    found = match(events, matcher, keep=["id"], now=20).collect()
    assert sorted(row["id"] for row in found) == list(range(10, 30))
    best = match_topk(events, matcher, 1, keep=["id"], now=25).collect()
    assert sorted(row["id"] for row in best) == list(range(15, 30))
    with pytest.raises(EventError, match="no column 'now'"):
        match(events, matcher)
    with pytest.raises(OptionError, match="a datetime is needed"):
        match(events, matcher, now="soon")
