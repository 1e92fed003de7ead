"""What `pbtree` reads and how long it takes with its pages in a file, as tables.

    python asv_benchmarks/pages.py --subscriptions 1000000

Pages read an event and time against the size of the cache, beside kinds in memory; the memory of a
process that has the index open; single updates; and document 004's table 1: nodes visited as the
number of keys grows. Each size of cache has a process of its own.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
from benchmarks.measure import machine, versions

import colmatch as cm
from colmatch.workload import named

SHARES = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0)  # of the file, in the cache
EVENTS = 256


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subscriptions", type=int, default=100_000, metavar="N")
    parser.add_argument("--workload", default="dense")
    parser.add_argument("--kinds", nargs="*", default=["opindex", "bitslice"], help="in memory, beside it")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.workload, given.subscriptions, Path(given.child))
        return
    print(machine())
    print(versions("colmatch", "numba", "numpy", "pyarrow"))
    with tempfile.TemporaryDirectory() as folder:
        caches(given, Path(folder, "pages"))
        updates(given, Path(folder, "pages"))
        visits(Path(folder, "visits"))


def caches(given: argparse.Namespace, path: Path) -> None:
    workload = named(given.workload, subscriptions=given.subscriptions + 2000)
    table, events = workload.predicate_table(0, given.subscriptions), workload.events(EVENTS)
    cm.Matcher.build(workload.predicate_table(0, 100), workload.schema(), index=cm.index("pbtree", path=str(path)))
    began = time.perf_counter()
    cm.Matcher.build(table, workload.schema(), index=cm.index("pbtree", path=str(path))).close()
    took, size = time.perf_counter() - began, path.stat().st_size
    print(f"{given.subscriptions:,} subscriptions: built in {took:.1f} s, {size / 1e6:.0f} MB")
    print(f"{'cache MB':>9} {'ms an event':>12} {'pages read':>11} {'nodes':>8} {'open ms':>8} {'memory above MB':>16}")
    for share in SHARES:
        budget = max(int(share * size), 1 << 15)
        with cm.Matcher.open(path) as matcher:
            settings = matcher.index
        told = json.loads(
            subprocess.run(
                [
                    sys.executable,
                    __file__,
                    "--child",
                    path,
                    "--workload",
                    given.workload,
                    "--subscriptions",
                    str(given.subscriptions),
                ],
                check=True,
                capture_output=True,
                env=os.environ | {"CACHE": str(budget)},
            ).stdout
        )
        print(
            f"{budget / 1e6:9.1f} {told['ms']:12.3f} {told['pages']:11.1f} {told['nodes']:8.1f} {told['open']:8.2f}"
            f" {told['memory'] / 1e6:16.1f}"
        )
        assert settings.kind == "pbtree"
    for kind in given.kinds:
        matcher = cm.Matcher.build(table, workload.schema(), index=kind, options=cm.Options(threads=1))
        print(f"{kind:>9} {timed(matcher, events):12.3f}")


def timed(matcher: cm.Matcher, events: pa.Table) -> float:
    """Returns milliseconds an event, the best of three."""
    matcher.match(events)
    times = []
    for _ in range(3):
        began = time.perf_counter()
        matcher.match(events)
        times.append(time.perf_counter() - began)
    return 1e3 * min(times) / events.num_rows


def resident() -> int:
    """Returns the bytes that this process has in memory, with file mappings."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def child(name: str, count: int, path: Path) -> None:
    """Matches in a process of its own, with a cache of ``$CACHE`` bytes, and says what it took."""
    workload = named(name, subscriptions=count + 2000)
    events = workload.events(EVENTS)
    with tempfile.TemporaryDirectory() as folder:
        small = cm.Matcher.build(
            workload.predicate_table(0, 2000), workload.schema(), index=cm.index("pbtree", path=f"{folder}/small")
        )
        small.match(events)  # compiles, and makes what does not follow the index
    del small
    gc.collect()
    before = resident()
    began = time.perf_counter()
    matcher = cm.Matcher.open(path)
    opened = 1e3 * (time.perf_counter() - began)
    matcher._live.file.cache.budget(int(os.environ["CACHE"]))
    took = timed(matcher, events)
    told = matcher.counters(events)
    memory = resident() - before
    print(
        json.dumps(
            {
                "ms": took,
                "pages": told["pages"] / EVENTS,
                "nodes": told["nodes"] / EVENTS,
                "open": opened,
                "memory": memory,
            }
        )
    )


def updates(given: argparse.Namespace, path: Path) -> None:
    """Times single updates without fsync."""
    workload = named(given.workload, subscriptions=given.subscriptions + 2000)
    texts = workload.texts(given.subscriptions, None)
    ids, some = texts["id"].to_pylist(), texts["expression"].to_pylist()
    gc.collect()
    gc.freeze()
    with cm.Matcher.open(path) as matcher:
        for what, change in (
            ("insert", lambda i: matcher.insert([(ids[i], some[i])])),
            ("delete", lambda i: matcher.delete([ids[i]])),
        ):
            times, before = [], matcher.stats()["cache"]["writes"]
            for i in range(1000):
                began = time.perf_counter()
                change(i)
                times.append(1e6 * (time.perf_counter() - began))
            pages = (matcher.stats()["cache"]["writes"] - before) / 1000
            median, mean = np.median(times), np.mean(times)
            print(f"{what}: median {median:.0f} us, mean {mean:.0f} us, {pages:.1f} pages changed")


def visits(path: Path) -> None:
    """Counts nodes as the number of keys of one attribute grows: document 004, table 1."""
    print(f"{'keys':>9} {'search':>8} {'L':>8} {'insert':>8} {'delete':>8}  nodes visited, pages changed")
    for count in (1000, 10_000, 100_000, 1_000_000):
        rng = Random(0)
        keys = np.arange(count) * 1000
        table = cm.PredicateTable(
            pa.table(
                {
                    "id": pa.array(np.arange(2 * count)),
                    "attribute": pa.array(["a"] * (2 * count)),
                    "op": pa.array(["="] * count + [">"] * count),
                    "operands": pa.array(
                        np.concatenate([keys, keys + 500]).reshape(-1, 1).tolist(), pa.list_(pa.int64())
                    ),
                }
            )
        )
        matcher = cm.Matcher.build(table, {"a": "int64"}, index=cm.index("pbtree", path=str(path)))
        events = pa.table({"a": [int(key) for key in rng.sample(range(0, 1_000_000, 1000), 64)]})
        told = matcher.counters(events)
        changed = []
        new = [(10**8 + i, f"a > {rng.randrange(1000 * count)}") for i in range(200)]
        for insert in (True, False):
            before = matcher.stats()["cache"]["writes"]
            for one in new:
                if insert:
                    matcher.insert([one])
                else:
                    matcher.delete([one[0]])
            changed.append((matcher.stats()["cache"]["writes"] - before) / len(new))
        matcher.close()
        print(
            f"{count:9,} {told['nodes'] / 64:8.1f} {told['predicates'] / 64:8.0f} {changed[0]:8.1f} {changed[1]:8.1f}"
        )


if __name__ == "__main__":
    main()
