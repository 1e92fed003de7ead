"""Rows in partitions of a caller's choice.

Spark chooses the partition of a row by the hash of a column. So each partition gets a key, a whole
number with a hash that leads there, and rows have the key in a column. Since Spark 4.1,
``repartitionById`` does the same.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_keys: dict[int, tuple[int, ...]] = {}  # number of partitions -> a key for each


def keys_of(df: DataFrame, count: int) -> tuple[int, ...]:
    """Returns a key for each of ``count`` partitions. The first call for a count runs a job."""
    if count not in _keys:
        keys: dict[int, int] = {}
        tried = df.sparkSession.range(0, 40 * count + 100).select("id", F.expr(f"pmod(hash(id), {count})").alias("p"))
        for row in tried.collect():
            keys.setdefault(row.p, row.id)
        _keys[count] = tuple(keys[i] for i in range(count))
    return _keys[count]


def spread(df: DataFrame, partition: Column, count: int) -> DataFrame:
    """Moves rows to ``count`` partitions, by a column with the number of the partition."""
    keys = F.array(*[F.lit(key).cast("long") for key in keys_of(df, count)])
    return df.withColumn("key", F.element_at(keys, partition + 1)).repartition(count, "key").drop("key")
