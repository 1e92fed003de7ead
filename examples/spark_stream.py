"""Travellers' alerts on a stream of offers in Spark; the alerts change while the stream runs.

    pip install "colmatch[spark]"                a Java, 17 or later, is needed as well
    python examples/spark_stream.py [ALERTS]

Offers come as files, and each file is a batch. ``match_stream`` matches a batch with the alerts
that were saved last. Here a thousand new alerts are saved after each batch, as another process
would save them; each batch is checked against a run without Spark.
"""

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from colmatch.spark import build, local_session, match_stream

BATCHES, ROWS, NEW = 4, 20_000, 1_000
n = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
rng = np.random.default_rng(7)
airports = np.array([f"{a}{b}X" for a in "ABCDEFGHIJ" for b in "ABCDEFGHIJ"])


def alerts(first: int, count: int) -> dict[int, str]:
    most, dest = rng.integers(20, 200, count).tolist(), rng.choice(airports, count).tolist()
    return {first + i: f"price < {price} AND dest = '{to}'" for i, (price, to) in enumerate(zip(most, dest))}


def offers() -> pa.Table:
    return pa.table({"price": rng.integers(20, 2000, ROWS).astype(float), "dest": rng.choice(airports, ROWS)})


with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    (folder / "offers").mkdir()
    for number in range(BATCHES):
        pq.write_table(offers(), folder / "offers" / f"{number}.parquet")
        os.utime(folder / "offers" / f"{number}.parquet", (number, number))  # Spark takes the oldest first

    spark = local_session(2, spark__ui__enabled=False, spark__log__level="ERROR")
    schema = spark.read.parquet(str(folder / "offers")).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "offers"))
    matcher = build(alerts(0, n), stream)
    matcher.save(folder / "alerts.cm")

    def fire(fired, number):
        fired.write.mode("overwrite").parquet(str(folder / "fired" / f"batch={number}"))
        pairs = spark.read.parquet(str(folder / "fired" / f"batch={number}")).count()
        if pairs != matcher.count(pq.read_table(folder / "offers" / f"{number}.parquet")).sum():
            raise RuntimeError("Spark and the run without it disagree")
        print(f"batch {number}: {len(matcher):>7,} alerts, {ROWS:,} offers, {pairs:>9,} matches")
        matcher.insert(alerts(len(matcher), NEW))
        matcher.save(folder / "alerts.cm")

    query = match_stream(stream, folder / "alerts.cm", fire, folder / "checkpoint", keep=["price", "dest"])
    query.trigger(availableNow=True).start().awaitTermination()
    spark.read.json(str(folder / "checkpoint/colmatch/batches")).select(
        "batch", "index_version", "rows", "matches", "seconds", "matcher_seconds"
    ).sort("batch").show()
    spark.stop()
