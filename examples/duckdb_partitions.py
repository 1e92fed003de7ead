"""Sales in a partitioned folder that DuckDB writes, matched, and the matches joined by DuckDB.

    pip install colmatch duckdb
    python examples/duckdb_partitions.py

The folder is never in memory as a whole: colmatch reads it as a dataset of pyarrow, only the
columns that rules use, and DuckDB reads the matches as they come.
"""

import tempfile

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

import colmatch as cm

rules = pa.table(
    {
        "id": [1, 2, 3],
        "name": ["large abroad", "Christmas", "cheap and many"],
        "expression": [
            "amount > 900 AND country <> 'FR'",
            "day = DATE '2026-12-24' AND country IN ('DE', 'PL')",
            "amount / items < 2",
        ],
    }
)

with tempfile.TemporaryDirectory() as folder, duckdb.connect() as db:
    db.sql(
        """
        SELECT DATE '2026-12-20' + (i % 7)::INT AS day, ['FR', 'DE', 'PL', 'PT'][i % 4 + 1] AS country,
               (i * 7919 % 100000 / 100)::DOUBLE AS amount, i % 9 + 1 AS items
        FROM range(200_000) AS sales(i)
        """
    ).write_parquet(folder, partition_by=["day"], overwrite=True)

    sales = ds.dataset(folder, partitioning=ds.partitioning(pa.schema({"day": pa.date32()}), flavor="hive"))
    matcher = cm.Matcher.build(rules, sales)
    matches = matcher.match_batches(sales)  # a reader of (event, subscription), which DuckDB takes for a table
    db.sql(
        """
        SELECT name, count(*) AS sales, min(event) AS first_row
        FROM matches JOIN rules ON subscription = id
        GROUP BY name ORDER BY name
        """
    ).show()
