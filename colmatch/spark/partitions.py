"""Rows in partitions of a caller's choice.

Spark puts a row where a hash of a column says. Each partition gets a whole number that its hash
puts there, and rows have that number in a column. Since Spark 4.1, ``repartitionById`` does so.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_keys: dict[int, tuple[int, ...]] = {}  # number of partitions -> a number for each


def keys_of(df: DataFrame, count: int) -> tuple[int, ...]:
    """Returns a number for each of ``count`` partitions; a job of its own finds them, once."""
    if count not in _keys:
        found: dict[int, int] = {}
        tried = df.sparkSession.range(0, 40 * count + 100).select("id", F.expr(f"pmod(hash(id), {count})").alias("p"))
        for row in tried.collect():
            found.setdefault(row.p, row.id)
        _keys[count] = tuple(found[i] for i in range(count))
    return _keys[count]


def spread(df: DataFrame, partition: Column, count: int) -> DataFrame:
    """Returns rows in ``count`` partitions, where a column of whole numbers says."""
    keys = F.array(*[F.lit(key).cast("long") for key in keys_of(df, count)])
    return df.withColumn("key", F.element_at(keys, partition + 1)).repartition(count, "key").drop("key")
