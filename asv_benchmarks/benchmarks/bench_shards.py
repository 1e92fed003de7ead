"""Shards of subscriptions: what routing sends, how even shards are, and how much memory they take.

``routing`` simulates a cluster of any size in one process: subscriptions are placed as
``build_shards(by="pivot")`` places them, and rows routed as its router does, by counting alone.

    python -m benchmarks.bench_shards routing [SUBSCRIPTIONS]
    python -m benchmarks.bench_shards memory [SUBSCRIPTIONS] [SHARDS]

The second builds shards of ``dense`` with ``local[2]``, matches 100,000 rows, and says how much
memory all processes of the session took together at most (proportional set sizes, Linux).
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from workload import named

import colmatch as cm
from colmatch.given.language import SQL
from colmatch.given.schema import Schema
from colmatch.spark.manifest import Route
from colmatch.spark.pivots import Layout, PivotReader, condition, homes
from colmatch.spark.shard_tasks import number_rows

SHAPES = ("dense", "opindex", "ads")
SHARDS = (8, 64, 1000)
SUBSCRIPTIONS, ROWS = 1_000_000, 2_000


def routing(shape: str, shards: int, subscriptions: int = SUBSCRIPTIONS, rows: int = ROWS) -> dict[str, float]:
    """What routing by pivots does for a workload.

    Returns
    -------
    shards_a_row : shards that a row is sent to, on average; without routing, all
    bytes_a_row : what is shuffled for it, where a row is 8 bytes for each value that it has
    largest : subscriptions of the largest shard, by those of the average one
    busiest : rows that the busiest shard gets, by those of the average one
    """
    placed = _placed(shape, subscriptions)
    counts, homes_of, hashes, pivots_of, found = placed
    known = found.known
    frequent = sorted((one for one in counts if one is not None), key=lambda route: (-counts[route], repr(route)))
    lengths = [*(counts[route] for route in frequent), counts[None]]
    layout = Layout(frequent, lengths, shards)
    shard = layout.shard_of(found, homes_of, hashes)
    needs = [set[int]() for _ in range(shards)]
    for home, pivot in zip(shard.tolist(), pivots_of):
        needs[home].update(pivot)
    workload = named(shape, subscriptions=subscriptions)
    texts = {i: condition(known[n] for n in need if n >= 0) for i, need in enumerate(needs) if -1 not in need and need}
    router = cm.Matcher.build(texts, workload.schema(), options=cm.Options(threads=1))
    events = workload.events(rows)
    sent = np.bincount(router.match(events)["subscription"].to_numpy(), minlength=shards)
    sent[[i for i, need in enumerate(needs) if -1 in need]] = rows
    values = workload.pairs(rows).num_rows / rows
    sizes = np.bincount(shard, minlength=shards)
    return {
        "shards_a_row": float(sent.sum() / rows),
        "bytes_a_row": float(sent.sum() / rows * 8 * values),
        "largest": float(sizes.max() / sizes.mean()),
        "busiest": float(sent.max() / max(sent.mean(), 1)),
    }


@cache
def _placed(shape: str, subscriptions: int) -> Any:
    """Pivots of a workload's subscriptions, as the tasks of a build find them."""
    workload = named(shape, subscriptions=subscriptions)
    schema, options = Schema(workload.schema()), cm.Options(threads=1)
    texts = workload.texts().to_batches(max_chunksize=10_000)
    reader, uses = PivotReader(schema, options, SQL, {}), Counter[Route]()
    for batch in texts:
        uses += reader.needs(number_rows(batch))
    reader, counts = PivotReader(schema, options, SQL, dict(uses)), Counter[Route | None]()
    home, pivots = [], []
    for batch in texts:
        found, rows = reader.pivots(number_rows(batch))
        own = homes(found, len(rows))
        home.append(own)
        each: list[set[int]] = [set() for _ in rows]
        for owner, pivot in zip(found.owner.tolist(), found.pivot.tolist()):
            each[owner].add(pivot)
        pivots += each
        names = [*found.known, None]
        tally = np.bincount(own % len(names), minlength=len(names))
        counts += Counter({names[i]: int(tally[i]) for i in np.flatnonzero(tally)})
    hashes = np.random.default_rng(0).integers(-(2**63), 2**63, subscriptions)
    return counts, np.concatenate(home), hashes, pivots, found


class Memory(threading.Thread):
    """Looks at the memory of this process and all below it, again and again.

    Attributes
    ----------
    most : bytes that they had together at most, a page that several share counted once
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = 0
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(0.2):
            self.most = max(self.most, sum(map(_proportional_bytes, _family(os.getpid()))))

    def __enter__(self) -> Memory:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self.join()


def _family(pid: int) -> list[int]:
    found, below = [pid], [pid]
    while below:
        of = below.pop()
        for task in Path(f"/proc/{of}/task").glob("*/children"):
            with suppress(OSError):
                more = [int(child) for child in task.read_text().split()]
                found += more
                below += more
    return found


def _proportional_bytes(pid: int) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    return 0


def memory(subscriptions: int = 1_000_000, shards: int = 8, rows: int = 100_000, by: str = "hash") -> dict[str, Any]:
    """Builds, matches and updates shards of ``dense`` with ``local[2]``.

    Returns
    -------
    seconds and GiB of memory of each step; and whether the counts are those of the shards as
    matchers of this process, one after the other
    """
    from colmatch.spark import build_shards, local_session, match, update_shards

    workload, found = named("dense", subscriptions=subscriptions), dict[str, Any]()
    with tempfile.TemporaryDirectory() as place:
        texts, events, folder = (str(Path(place, name)) for name in ("texts", "events.parquet", "shards"))
        os.mkdir(texts)
        schema = workload.texts(0, 1).schema
        for i, start in enumerate(range(0, subscriptions, 1_000_000)):
            count = min(1_000_000, subscriptions - start)
            with pq.ParquetWriter(f"{texts}/{i:03}.parquet", schema) as file:
                for batch in workload.text_batches(start, count):
                    file.write_batch(batch)
        pq.write_table(workload.events(rows), events, row_group_size=rows // 4)
        spark = local_session(2, spark__ui__enabled=False, spark__log__level="ERROR")
        df, table = spark.read.parquet(events), spark.read.parquet(texts)

        def step(name: str, ask: Callable[[], Any]) -> Any:
            began = time.perf_counter()
            with Memory() as seen:
                answer = ask()
            found[f"{name}_seconds"] = round(time.perf_counter() - began, 1)
            found[f"{name}_most_gib"] = round(seen.most / 2**30, 2)
            print(name, found[f"{name}_seconds"], "s", found[f"{name}_most_gib"], "GiB", flush=True)
            return answer

        made = step("build", lambda: build_shards(table, df, folder, shards, by=by))
        found["sizes"], found["bytes"] = made.sizes, sum(made.bytes)
        keyed = df.selectExpr("*", "monotonically_increasing_id() AS row")
        counts = step("count", lambda: match(keyed, folder, keep=["row"], mode="count").toArrow().sort_by("row"))
        step("list", lambda: match(df, folder, mode="list").write.format("noop").mode("overwrite").save())
        changes = spark.range(1000).selectExpr(f"id * {subscriptions // 1000} AS id", "'a1 = 1' AS expression")
        changed = step("update", lambda: update_shards(changes, df, folder))
        found["rewritten"] = len(changed.written)
        spark.stop()
        own = np.zeros(rows, np.int64)
        for file in sorted(Path(folder).glob("shard-*.cm"), key=os.path.getmtime)[:shards]:
            own += cm.Matcher.open(file).count(ds.dataset(events))
        found["same_counts"] = bool((own == counts["count"].to_numpy()).all())
        found["matches_a_row"] = float(own.mean())
    return found


class Routing:
    """What routing by pivots sends, for each workload and number of shards."""

    params = (list(SHAPES), list(SHARDS))
    param_names = ("shape", "shards")

    def setup_cache(self) -> dict[tuple[str, int], dict[str, float]]:
        return {(shape, shards): routing(shape, shards, 100_000) for shape in SHAPES for shards in SHARDS}

    setup_cache.timeout = 1800  # type: ignore[attr-defined]

    def track_shards_a_row(self, found: dict[tuple[str, int], dict[str, float]], shape: str, shards: int) -> float:
        return found[shape, shards]["shards_a_row"]

    def track_largest_of_average(
        self, found: dict[tuple[str, int], dict[str, float]], shape: str, shards: int
    ) -> float:
        return found[shape, shards]["largest"]


if __name__ == "__main__":
    what, numbers = sys.argv[1], [int(text.replace("_", "")) for text in sys.argv[2:]]
    if what == "routing":
        for shape in SHAPES:
            for shards in SHARDS:
                print(shape, shards, {k: round(v, 2) for k, v in routing(shape, shards, *numbers).items()}, flush=True)
    else:
        print(memory(*numbers))
