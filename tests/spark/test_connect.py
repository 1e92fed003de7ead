"""Sessions of Spark Connect: matches, what they refuse, and workers that cannot run colmatch."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_spark import EVENTS, SCHEMA, TEXTS, expected

from colmatch.matcher import Matcher
from colmatch.spark import frames

SESSION = """
import json, sys
from pyspark.sql import SparkSession
from colmatch.errors import DependencyError, OptionError
from colmatch.matcher import Matcher
from colmatch.spark import match
arguments = json.loads(sys.argv[1])
spark = SparkSession.builder.remote("local[2]").getOrCreate()
"""


@pytest.fixture
def connect():
    """Runs code with a session, ``spark``, and ``arguments``; returns what it prints last."""
    for package in ("grpc", "grpc_status", "google.rpc", "zstandard"):
        pytest.importorskip(package, reason="pyspark[connect] is not installed")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    # The workers of a Connect session run in a folder of their own, where a colmatch that is not
    # installed is not found.
    path = str(Path(frames.__file__).parents[2])

    def run(code, arguments, python=sys.executable):
        ran = subprocess.run(
            [sys.executable, "-c", f"{SESSION}{code}\nspark.stop()", json.dumps(arguments)],
            capture_output=True,
            text=True,
            timeout=300,
            # With SPARK_TESTING the server takes a port that is free: tests may run side by side.
            env={**kept, "SPARK_TESTING": "1", "PYSPARK_PYTHON": str(python), "TZ": "UTC", "PYTHONPATH": path},
        )
        assert ran.returncode == 0, ran.stderr[-3000:]
        return json.loads(ran.stdout.splitlines()[-1])

    return run


MATCHES = """
events = spark.sql(arguments["events"])
path, found = arguments["path"], []
for matcher, shared in ((path, None), (path, None), (path, True), (Matcher.open(path), None)):
    found.append(sorted((row.id, row.subscription) for row in match(events, matcher, keep=["id"], shared=shared).collect()))
lists = match(events, path, keep=["id"], mode="list").collect()
found.append(sorted((row.id, sub) for row in lists for sub in row.subscriptions))
try:
    match(events, Matcher.build({1: "id + 1 > 0"}, {"id": "int64"}))
except OptionError as refused:
    assert "spark.sql.ansi.enabled=true" in str(refused)
else:
    raise AssertionError("the mode of the session is another")
print(json.dumps(found))
"""


def test_matches(spark, connect, tmp_path):
    events = EVENTS.format(rows=300, parts=3)
    matcher = Matcher.build(dict(enumerate(TEXTS)), SCHEMA)
    matcher.save(tmp_path / "alerts")
    want = [list(pair) for pair in expected(matcher, spark.sql(events))]
    assert connect(MATCHES, {"events": events, "path": str(tmp_path / "alerts")}) == [want] * 5


LACKS = """
try:
    match(spark.range(3), Matcher.build({1: "id = 1"}, {"id": "int64"}))
except DependencyError as refused:
    print(json.dumps(str(refused)))
"""


def test_workers_without_colmatch(connect, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['colmatch'] = None")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    said = connect(LACKS, {}, python)
    assert said.startswith(f"Spark's workers cannot run colmatch: the Python {sys.executable} on ")
    assert "cannot import colmatch" in said and "set PYSPARK_PYTHON, where the Connect server is started, to" in said


STREAM = """
from pathlib import Path
from colmatch.spark import shipping
folder = Path(arguments)
spark.sql("SELECT id, id AS age FROM range(0, 100, 1, 4)").write.parquet(f"{folder}/in")
source = spark.readStream.schema("id long, age long").option("maxFilesPerTrigger", 2).parquet(f"{folder}/in")
matcher = Matcher.build({1: "age > 50", 2: "age > 97"}, {"age": "bigint"})
matched = match(source, matcher, keep=["id"])
query = matched.writeStream.format("parquet").option("checkpointLocation", f"{folder}/checkpoint")
assert query.trigger(availableNow=True).start(f"{folder}/out").awaitTermination(120)
rows = spark.read.parquet(f"{folder}/out").collect()
shipping.PACKED_MOST = 10
try:
    match(source, matcher)
except OptionError as refused:
    print(json.dumps([sorted((row.id, row.subscription) for row in rows), str(refused)]))
"""


def test_a_stream_takes_the_index_along(connect, tmp_path):
    pairs, refused = connect(STREAM, str(tmp_path))
    assert pairs == [[id, 1] for id in range(51, 98)] + [[id, sub] for id in (98, 99) for sub in (1, 2)]
    assert "more than 10: save it where all workers see it and pass its path with shared=True, or" in refused


MATCH_STREAM = """
import logging
from pathlib import Path
from pyspark.sql import Observation
from colmatch.spark import match_stream
folder = Path(arguments)
spark.sql("SELECT id, id AS age FROM range(0, 100, 1, 2)").write.parquet(f"{folder}/in")
source = spark.readStream.schema("id long, age long").option("maxFilesPerTrigger", 1).parquet(f"{folder}/in")

def run(sink):
    stream = match_stream(source, f"{folder}/alerts", sink, f"{folder}/checkpoint", keep=["id"])
    query = stream.trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    return [one["observedMetrics"]["colmatch"]["values"] for one in query.recentProgress if one["observedMetrics"]]

def sink(matched, number):  # runs on the server
    from colmatch.matcher import Matcher
    matched.write.mode("overwrite").parquet(f"{folder}/out/batch={number}")
    Matcher.build({2: "age >= 0"}, {"age": "bigint"}).save(f"{folder}/alerts")

Matcher.build({1: "age >= 0"}, {"age": "bigint"}).save(f"{folder}/alerts")
logging.getLogger("colmatch.spark").setLevel("INFO")
progress = run(sink)
for name in ("1", ".1.crc"):
    Path(f"{folder}/checkpoint/commits/{name}").unlink(missing_ok=True)
Matcher.build({3: "age >= 0"}, {"age": "bigint"}).save(f"{folder}/alerts")
run(f"{folder}/out")  # does the last batch again
rows = spark.read.parquet(f"{folder}/out").select("batch", "subscription", "index_version").distinct().collect()
records = [json.loads(Path(f"{folder}/checkpoint/colmatch/batches/{number}.json").read_text()) for number in (0, 1)]
refused = []
for pointer in ("alerts", f"{folder}/nothing"):
    try:
        match_stream(source, pointer, sink, f"{folder}/checkpoint/other").trigger(availableNow=True).start().awaitTermination()
    except Exception as error:
        refused.append(str(error))
numbers = Observation()
match(spark.range(10).toDF("age"), f"{folder}/alerts", observe=numbers).collect()
print(json.dumps({
    "progress": progress,
    "rows": sorted(map(list, rows)),
    "records": records,
    "refused": refused,
    "observed": [numbers.get["rows"], numbers.get["matches"], numbers.get["tasks"]],
}))
"""


def test_match_stream(connect, tmp_path):
    """The function of each batch runs on the server, which has the paths."""
    found = connect(MATCH_STREAM, str(tmp_path))
    first, second = found["records"]
    assert found["rows"] == [[0, 1, first["index_version"]], [1, 2, second["index_version"]]]
    assert [one["replayed"] for one in found["records"]] == [False, True]
    assert [(one["rows"], one["matches"], one["tasks"]) for one in found["records"]] == [(50, 50, 1)] * 2
    assert found["progress"] == [[50]] * 2
    assert "pointer='alerts': with Connect a path is one of the server: give it from the root" in found["refused"][0]
    assert "there is no saved matcher" in found["refused"][1]
    assert found["observed"] == [10, 10, 2]
