"""A query of polars that is never held in memory as a whole: five million events from Parquet.

pip install colmatch polars
python examples/polars_lazy.py [ROWS]
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

import colmatch as cm

rows = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000
rng = np.random.default_rng(1)
folder = tempfile.TemporaryDirectory()
for part in range(4):
    few = rows // 4
    visits = {
        "user": rng.integers(0, 100_000, few),
        "country": rng.choice(["DE", "FR", "IT", "PT"], few),
        "age": rng.integers(14, 90, few),
        "spent": rng.gamma(2.0, 30.0, few).round(2),
        "visits": rng.integers(1, 50, few),
    }
    pl.DataFrame(visits).write_parquet(Path(folder.name, f"visits-{part}.parquet"))

# The query is written, not run: only its schema is asked for.
visits_of_adults = (
    pl.scan_parquet(Path(folder.name, "*.parquet"))
    .filter(pl.col("age") >= 18)
    .with_columns(a_visit=pl.col("spent") / pl.col("visits"))
)
countries = ["DE", "FR", "IT", "PT"]
segments = {
    f"{country}, {low} to {low + 9}, {word}": f"country = '{country}' AND age BETWEEN {low} AND {low + 9} AND {what}"
    for country in countries
    for low in range(18, 88, 10)
    for word, what in {
        "spenders": "spent > 150",
        "regulars": "visits >= 40 AND a_visit > 1",
        "new": "visits = 1 AND NOT spent < 20",
    }.items()
}
matcher = cm.Matcher.build(segments, visits_of_adults)
print(matcher)

# polars computes the columns that the segments use, piece by piece, and users are carried along.
start = time.perf_counter()
members = 0
users: set[int] = set()
for pairs in matcher.match_batches(visits_of_adults, keep="user"):
    members += pairs.num_rows
    users.update(pl.from_arrow(pairs)["user"].unique())
print(f"{members:,} memberships of {len(users):,} users in {time.perf_counter() - start:.1f} s")

# How large each segment is, without a table of pairs.
sizes = pl.from_arrow(matcher.hits(visits_of_adults)).sort("events", descending=True)
print(sizes.head(5))
assert sizes["events"].sum() == members
folder.cleanup()
