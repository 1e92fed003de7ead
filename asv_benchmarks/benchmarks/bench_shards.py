"""Shards of subscriptions: the seconds and the memory that they take.

    python -m benchmarks.bench_shards [SUBSCRIPTIONS] [SHARDS]

It builds shards of ``dense`` with ``local[2]``, matches 100,000 rows, and says how much memory all
processes of the session took together at most (proportional set sizes, Linux).
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from workload import named

import colmatch as cm


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


def memory(subscriptions: int = 1_000_000, shards: int = 8, rows: int = 100_000) -> dict[str, Any]:
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

        made = step("build", lambda: build_shards(table, df, folder, shards))
        found["sizes"], found["bytes"] = made.sizes, sum(made.bytes)
        keyed = df.selectExpr("*", "monotonically_increasing_id() AS row")
        counts = step("count", lambda: match(keyed, folder, keep=["row"], mode="count").toArrow().sort_by("row"))
        step("lists", lambda: match(df, folder, mode="lists").write.format("noop").mode("overwrite").save())
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


if __name__ == "__main__":
    print(memory(*(int(text.replace("_", "")) for text in sys.argv[1:])))
