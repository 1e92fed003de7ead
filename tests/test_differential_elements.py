"""Conditions on elements of lists, checked against Spark SQL.

COLMATCH_DIFFERENTIAL=5000 asks for that many expressions.
"""

from __future__ import annotations

import os
import re
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from element_rules import SCHEMA, Drawer, drawn_events

import colmatch as cm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNT = int(os.environ.get("COLMATCH_DIFFERENTIAL", "300"))
# Spark says -1 for the size of NULL without this
CONF = {"spark.sql.ansi.enabled": "false", "spark.sql.legacy.sizeOfNull": "false"}


def spark_text(text: str) -> str:
    """Spark has no SYMMETRIC; the higher end is written first."""
    return re.sub(r"BETWEEN SYMMETRIC (\d+) AND (\d+)", r"BETWEEN \2 AND \1", text)


def test_spark_finds_the_same(spark: SparkSession, conf: Any) -> None:
    for name, value in CONF.items():
        conf(name, value)
    drawer = Drawer(Random("spark"))
    texts = list(dict.fromkeys(drawer.rule(3)[0] for _ in range(COUNT)))
    events = pa.Table.from_pylist(drawn_events(drawer.rng, 60), SCHEMA)
    matcher = cm.Matcher.build(dict(enumerate(texts)), SCHEMA)
    ours = [set(ids) for ids in matcher.match_lists(events).to_pylist()]
    rows = [(nr, *event.values()) for nr, event in enumerate(events.to_pylist(maps_as_pydicts="strict"))]
    kinds = (
        "l array<struct<a: int, s: string, p: double, n: array<bigint>>>, w struct<m: array<string>>, o int, t string"
    )
    frame = spark.createDataFrame(rows, f"nr bigint, {kinds}, d map<string, bigint>")
    wrong = []
    for at in range(0, len(texts), 50):
        some = texts[at : at + 50]
        answer = frame.selectExpr(
            "nr", *(f"coalesce({spark_text(text)}, false) AS c{i}" for i, text in enumerate(some))
        ).collect()
        for row in answer:
            wrong += [
                f"{text}: {events.slice(row.nr, 1).to_pylist()}, Spark {row[f'c{i}']}"
                for i, text in enumerate(some)
                if row[f"c{i}"] is not (at + i in ours[row.nr])
            ][:1]
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:20])
