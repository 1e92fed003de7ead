"""Travellers' alerts on real flights in Spark, checked against a run without Spark.

    pip install "colmatch[examples,spark]"       and a Java, 17 or later
    python examples/spark_flights.py [ALERTS]

On a session of your own, set PYSPARK_PYTHON to a Python that has colmatch before the session starts; ``local_session`` does.
"""

import sys
import time

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

import colmatch as cm
from colmatch.demo import alerts, flights
from colmatch.spark import local_session, match

n = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
table = flights()
matcher = cm.Matcher.build(alerts(n), table.schema)
events = table.append_column("event", pa.array(np.arange(table.num_rows)))
print(f"{table.num_rows:,} flights, {n:,} alerts")

spark = local_session(2, spark__ui__enabled=False, spark__sql__session__timeZone="UTC", spark__log__level="ERROR")
df = spark.createDataFrame(events).cache()
df.count()

# What one would write to a table or a topic: a row for each alert that fires. Here, three sums for each flight stand for it.
start = time.perf_counter()
fired = match(df, matcher, keep=["event"]).groupBy("event")
sums = fired.agg(F.count("*").alias("alerts"), F.sum("subscription").alias("ids"), F.expr("sum(subscription * subscription)").alias("squares"))
in_spark = sums.sort("event").toArrow()
seconds = time.perf_counter() - start
total = sum(in_spark["alerts"].to_numpy())
print(f"Spark     {total:>12,} pairs in {seconds:6.1f} s, {table.num_rows / seconds:>9,.0f} flights/s, Spark's start and sums included")

start = time.perf_counter()
found = []
for pairs in matcher.match_batches(table):
    ids = pairs["subscription"]
    squares = pa.array(ids.to_numpy() ** 2)
    found.append(pa.table({"event": pairs["event"], "ids": ids, "squares": squares}).group_by("event").aggregate([("ids", "count"), ("ids", "sum"), ("squares", "sum")]))
seconds = time.perf_counter() - start
here = pa.concat_tables(found).sort_by("event").rename_columns(["event", "alerts", "ids", "squares"])
print(f"one thread {sum(here['alerts'].to_numpy()):>11,} pairs in {seconds:6.1f} s, {table.num_rows / seconds:>9,.0f} flights/s")

assert here.equals(in_spark.cast(here.schema)), "Spark and the local run disagree"
print(f"the same alerts fired for each of {here.num_rows:,} flights")
spark.stop()
