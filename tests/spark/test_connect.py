"""Sessions of Spark Connect: matches, what they refuse, and workers that cannot run colmatch."""

import sys

from connecting import run_connected
from test_spark import EVENTS, SCHEMA, TEXTS, expected

from colmatch.matcher import Matcher

IMPORTS = """
from colmatch.errors import DependencyError, OptionError
from colmatch.matcher import Matcher
from colmatch.spark import match
"""


MATCHES = """
events = spark.sql(arguments["events"])
path, found = arguments["path"], []
for matcher, shared in ((path, None), (path, None), (path, True), (Matcher.open(path), None)):
    found.append(sorted((row.id, row.subscription) for row in match(events, matcher, keep=["id"], shared=shared).collect()))
lists = match(events, path, keep=["id"], mode="lists").collect()
found.append(sorted((row.id, sub) for row in lists for sub in row.subscriptions))
try:
    match(events, Matcher.build({1: "id + 1 > 0"}, {"id": "int64"}))
except OptionError as refused:
    assert "spark.sql.ansi.enabled=true" in str(refused)
else:
    raise AssertionError("the mode of the session is another")
print(json.dumps(found))
"""


def test_matches(spark, tmp_path):
    events = EVENTS.format(rows=300, parts=3)
    matcher = Matcher.build(dict(enumerate(TEXTS)), SCHEMA)
    matcher.save(tmp_path / "alerts")
    want = [list(pair) for pair in expected(matcher, spark.sql(events))]
    assert run_connected(IMPORTS + MATCHES, {"events": events, "path": str(tmp_path / "alerts")}) == [want] * 5


LACKS = """
try:
    match(spark.range(3), Matcher.build({1: "id = 1"}, {"id": "int64"}))
except DependencyError as refused:
    print(json.dumps(str(refused)))
"""


def test_workers_without_colmatch(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['colmatch'] = None")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    said = run_connected(IMPORTS + LACKS, {}, python)
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


def test_a_stream_takes_the_index_along(tmp_path):
    pairs, refused = run_connected(IMPORTS + STREAM, str(tmp_path))
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


def test_match_stream(tmp_path):
    """The function of each batch runs on the server, which has the paths."""
    found = run_connected(IMPORTS + MATCH_STREAM, str(tmp_path))
    first, second = found["records"]
    assert found["rows"] == [[0, 1, first["index_version"]], [1, 2, second["index_version"]]]
    assert [one["replayed"] for one in found["records"]] == [False, True]
    assert [(one["rows"], one["matches"], one["tasks"]) for one in found["records"]] == [(50, 50, 1)] * 2
    assert found["progress"] == [[50]] * 2
    assert "pointer='alerts': with Connect a path is one of the server: give it from the root" in found["refused"][0]
    assert "there is no saved matcher" in found["refused"][1]
    assert found["observed"] == [10, 10, 2]
