"""Spark: rules of be-tree's language, columns that functions read, and what must be defined."""

import colmatch as cm
from colmatch.spark.frames import match

DOMAINS = "age|integer|false\ncity|string|true\nnow|integer|true\nseen|segments|true\nmust|string|false"


def test_rules_of_betree(spark):
    rules = {1: "segment_within(seen, 12, 60)", 2: "not (city = 'Rome')", 3: "age > 20"}
    matcher = cm.Matcher.build(rules, cm.betree.Domains(DOMAINS), options=cm.Options(threads=1), language="betree")
    events = spark.sql(
        """
        SELECT id, IF(id = 2, NULL, id * 10) AS age, IF(id = 1, 'Rome', NULL) AS city, 100L AS now, 'x' AS must,
        array(named_struct('id', id + 9, 'timestamp', 50000000L)) AS Seen FROM range(5)
        """
    )
    found = match(events, matcher, keep=["id"]).collect()
    assert sorted((row["id"], row["subscription"]) for row in found) == [(0, 2), (3, 1), (3, 2), (3, 3), (4, 2), (4, 3)]
    listed = match(events, matcher, keep=["id"], mode="lists").collect()
    assert {row["id"]: sorted(row["subscriptions"]) for row in listed}[2] == []
