"""Travellers' alerts on real flights in Spark, checked against a run without Spark.

    pip install "colmatch[examples,spark]"       and a Java, 17 or later
    python examples/spark_flights.py [ALERTS]

On a session of your own, set PYSPARK_PYTHON to a Python that has colmatch before the session
starts; ``local_session`` does.
"""

import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

import colmatch as cm
from colmatch.bench.demo import alerts, flights
from colmatch.spark import local_session, match

n = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
table = flights()
matcher = cm.Matcher.build(alerts(n), table.schema)
events = table.append_column("event", pa.array(np.arange(table.num_rows)))
print(f"{table.num_rows:,} flights, {n:,} alerts")

spark = local_session(2, spark__ui__enabled=False, spark__sql__session__timeZone="UTC", spark__log__level="ERROR")
df = spark.createDataFrame(events).cache()
df.count()

# What one would write to a table or a topic: a row for each alert that fires. Here, three sums for
# each flight stand for it.
start = time.perf_counter()
fired = match(df, matcher, keep=["event"]).withColumn("square", F.expr("subscription * subscription"))
in_spark = fired.groupBy("event").agg(F.count("*"), F.sum("subscription"), F.sum("square")).sort("event").toArrow()
seconds = time.perf_counter() - start
print(
    f"in Spark   {pc.sum(in_spark[1]).as_py():>12,} pairs, {seconds:6.1f} s, {table.num_rows / seconds:>9,.0f} flights/s, sums included"
)

start = time.perf_counter()
sums = []
for pairs in matcher.match_batches(table):  # all pairs of an event are in one of these
    pairs = pairs.append_column("square", pc.power(pairs["subscription"], 2))
    groups = pa.Table.from_batches([pairs]).group_by("event")
    sums.append(groups.aggregate([("event", "count"), ("subscription", "sum"), ("square", "sum")]))
here = pa.concat_tables(sums).sort_by("event")
seconds = time.perf_counter() - start
print(
    f"one process {pc.sum(here[1]).as_py():>12,} pairs, {seconds:6.1f} s, {table.num_rows / seconds:>9,.0f} flights/s, sums included"
)

if in_spark.columns != here.columns:
    sys.exit("Spark and the run without it disagree")
print(f"the same alerts fired in both for each of {here.num_rows:,} flights")
spark.stop()
