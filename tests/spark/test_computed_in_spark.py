"""Spark: what is computed of columns, in its workers, and the zone that it depends on."""

import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.spark.frames import match


def test_computed_attributes(spark):
    schema = {"a": "int32", "b": "int64", "s": "string", "at": "timestamp[us]"}
    rules = {1: "a * 2 < b", 2: "lower(s) LIKE 'x%'", 3: "coalesce(a, 7) % 2 = 1", 4: "year(at) = 2024"}
    matcher = cm.Matcher.build(rules, schema, options=cm.Options(threads=1, ansi=True))
    events = spark.sql(
        """
        SELECT id, CAST(IF(id = 2, NULL, id) AS INT) AS a, 5L AS b, IF(id = 1, 'Xy', 'y') AS s, 'not needed' AS other,
        TIMESTAMP_NTZ '2024-01-01 00:00:00' - MAKE_INTERVAL(0, 0, 0, CAST(id AS INT)) AS at FROM range(4)
        """
    )
    found = match(events, matcher, keep=["id"]).collect()
    assert sorted((row["id"], row["subscription"]) for row in found) == [
        (0, 1), (0, 4), (1, 1), (1, 2), (1, 3), (2, 3), (3, 3),
    ]  # fmt: skip


def test_the_zone_is_checked(spark):
    matcher = cm.Matcher.build(
        {1: "hour(at) = 3"}, pa.schema({"at": pa.timestamp("us", "UTC")}), options=cm.Options(timezone="Asia/Tokyo")
    )
    with pytest.raises(cm.OptionError, match="'hour\\(at\\)' for one"):
        match(spark.sql("SELECT TIMESTAMP '2024-01-01 00:00:00' AS at"), matcher)
