"""Orders with decimals and structs in Spark, classic and through Spark Connect.

    pip install "colmatch[spark]"       and a Java, 17 or later
    python examples/spark_orders.py [connect]

Spark Connect needs ``pip install "pyspark[connect]"``, too.
"""

import os
import sys

import colmatch as cm
from colmatch.spark import local_session, match

if "connect" in sys.argv:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers need colmatch, too
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
else:
    spark = local_session(2)

orders = spark.sql("""
    SELECT * FROM VALUES
        (1, 99.9900BD, named_struct('name', 'ada', 'country', 'FR'), array('gift'), TIMESTAMP '2026-11-20 08:30:00'),
        (2, 1234567890123456.7800BD, named_struct('name', 'ben', 'country', 'BE'), array(), TIMESTAMP '2026-11-21 23:59:00'),
        (3, NULL, named_struct('name', 'cleo', 'country', NULL), NULL, NULL)
    AS orders(id, amount, customer, tags, ordered)
""").selectExpr("id", "CAST(amount AS DECIMAL(20, 4)) AS amount", "customer", "tags", "ordered")
orders.printSchema()

# Rules are a table, too, as they would be in a warehouse.
rules = spark.createDataFrame(
    [
        ("small", "amount < 100"),
        ("to the cent", "amount = 1234567890123456.78"),
        ("gifts to France", "customer.country = 'FR' AND array_contains(tags, 'gift')"),
        ("incomplete", "amount IS NULL OR customer.country IS NULL"),
        ("weekend", "dayofweek(ordered) IN (1, 7)"),
    ],
    ["id", "expression"],
)
matcher = cm.spark.build(rules, orders)

match(orders, matcher, keep=["id", "amount"]).sort("id", "subscription").show(truncate=False)
match(orders, matcher, keep=["id"], mode="lists").sort("id").show(truncate=False)
spark.stop()
