"""The clauses that people write (``jobs.py``), matched by Spark's workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as parquet
from jobs import EVENTS, SCHEMA, TAKEN

import colmatch as cm
from colmatch.spark.frames import match

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_clauses_match_in_spark(spark: SparkSession, tmp_path: Path) -> None:
    matcher = cm.Matcher.build({i: taken.clause for i, taken in enumerate(TAKEN)}, SCHEMA)
    parquet.write_table(EVENTS, tmp_path / "events.parquet")
    conf = {"spark.sql.ansi.enabled": "false", "spark.sql.legacy.sizeOfNull": "false"}
    before = {name: spark.conf.get(name) for name in conf}
    for name, value in conf.items():
        spark.conf.set(name, value)
    try:
        frame = spark.read.parquet(str(tmp_path / "events.parquet"))
        found = match(frame, matcher, keep=["id"]).toArrow().select(["id", "subscription"])
    finally:
        for name, old in before.items():
            spark.conf.set(name, str(old))
    wanted = {(id, i) for id in range(1, 9) for i, taken in enumerate(TAKEN) if taken.rows[id - 1] == "T"}
    assert set(zip(*found.to_pydict().values(), strict=True)) == wanted
    assert found.num_rows == len(wanted)
