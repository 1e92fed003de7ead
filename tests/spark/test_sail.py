"""Sail, a server of Spark Connect without Java: what does without files sent and streams."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from connecting import SAIL, run_connected

from colmatch.matcher import Matcher

MATCHES = """
from pyspark.sql import functions as F
from colmatch.errors import OptionError
from colmatch.spark import hits, match, match_topk, register_source, totals
folder = arguments
events, index, how = spark.read.parquet(f"{folder}/events.parquet"), f"{folder}/alerts.cm", {"shared": True}
rows = lambda some: sorted([*row] for row in some.collect())
found = {
    "match": rows(match(events, index, keep=["user"], **how)),
    "lists": [[user, id] for user, ids in match(events, index, keep=["user"], mode="lists", **how).collect() for id in ids],
    "totals": rows(totals(events, index, **how)),
    "topk": rows(match_topk(events, index, 1, "priority", keep=["user"], **how).select("user", "subscription")),
}
register_source(spark)
source = spark.read.format("colmatch").option("index", index).option("keep", "user")
found["source"] = rows(source.load(f"{folder}/events.parquet"))
if hasattr(F, "arrow_udf"):
    lists = events.select("user", hits(index, **how)(F.struct("price", "dest"))).collect()
    found["column"] = [[user, id] for user, ids in lists for id in ids]
try:
    match(events, index)
except OptionError as refused:
    found["sent"] = str(refused)
print(json.dumps(found))
"""


def test_what_sail_can(tmp_path: Path) -> None:
    pytest.importorskip("pysail", reason="pysail is not installed")
    table = pa.table(
        {"user": range(300), "price": [float(i % 150) for i in range(300)], "dest": ["LIS", "NCE", None] * 100}
    )
    pq.write_table(table, tmp_path / "events.parquet")
    rules = pa.table({"id": [1, 2], "expression": ["price < 50", "dest = 'LIS'"], "priority": [1, 2]})
    matcher = Matcher.build(rules, {"price": "double", "dest": "string"})
    matcher.save(tmp_path / "alerts.cm")
    pairs = [
        list(pair)
        for pair in zip(*matcher.match(table, keep="user").select(["user", "subscription"]).to_pydict().values())
    ]
    best = [
        list(pair)
        for pair in zip(
            *matcher.match_topk(table, 1, "priority", keep="user").select(["user", "subscription"]).to_pydict().values()
        )
    ]
    found = run_connected(MATCHES, str(tmp_path), session=SAIL)
    assert "pass the path with shared=True" in found.pop("sent")
    assert found.pop("totals") == [[id, sum(other == id for _, other in pairs)] for id in (1, 2)]
    assert sorted(found.pop("topk")) == sorted(best)
    assert {way: sorted(some) == sorted(pairs) for way, some in found.items()} == dict.fromkeys(found, True)
