"""What the texts of subscriptions cost that a matcher keeps, and what releases cost beside them.

    python -m benchmarks.bench_read_back 200000

Builds with and without texts alternate, and each figure is a median. Ratios compare two things of
one run. ``texts_raw`` is the size of the texts before they are compressed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter, process_time
from typing import Any

import colmatch as cm
from benchmarks import workloads

REPEAT = 5
SIZE = 200_000


def figures(n: int = SIZE, repeat: int = REPEAT) -> dict[str, float]:
    """Figures of a matcher of ``n`` texts: ratios, bytes a subscription, and seconds."""
    texts = workloads.shaped_texts(n)
    kept, bare = cm.Options(threads=1), cm.Options(threads=1, keep_texts=False)
    builds: dict[bool, list[float]] = {True: [], False: []}
    for i in range(2 * repeat + 2):
        options = bare if i % 2 else kept
        seconds = _seconds(
            lambda options=options: cm.Matcher.build(texts, workloads.SHOP, options=options), process_time
        )  # type: ignore[misc]
        builds[options.keep_texts] += [seconds] if i > 1 else []
    matcher = cm.Matcher.build(texts, workloads.SHOP, options=kept)
    stats, ids = matcher.stats(), [id for id, _ in texts[:: n // 100]]
    table = matcher.to_table()
    snapshots = [_seconds(matcher.snapshot) for _ in range(repeat)]
    snapshot = matcher.snapshot()
    return {
        "build_ratio": median(builds[True]) / median(builds[False]),
        "texts_bytes": stats["arrays"]["texts"] / n,
        "texts_raw": sum(len(text.encode()) for _, text in texts) / n,
        "all_bytes": stats["bytes_per_subscription"],
        "expression": median(_seconds(lambda id=id: matcher.expression(id)) for id in ids),  # type: ignore[misc]
        "to_table": median(_seconds(matcher.to_table) for _ in range(repeat)),
        "sync_without_changes": median(_seconds(lambda: matcher.sync(table)) for _ in range(repeat)),
        "build": median(builds[True]),
        "snapshot": median(snapshots),
        "restore": median(_seconds(lambda: matcher.restore(snapshot)) for _ in range(repeat)),
    }


def _seconds(call: Callable[[], Any], clock: Callable[[], float] = perf_counter) -> float:
    began = clock()
    call()
    return clock() - began


class ReadBack:
    """The figures, for asv."""

    timeout = 600
    params = (20_000, SIZE)
    param_names = ("subscriptions",)

    def setup_cache(self) -> dict[int, dict[str, float]]:
        return {n: figures(n) for n in self.params}

    def track_build_ratio(self, cache: dict[int, dict[str, float]], n: int) -> float:
        return cache[n]["build_ratio"]

    def track_texts_bytes(self, cache: dict[int, dict[str, float]], n: int) -> float:
        return cache[n]["texts_bytes"]

    def track_expression_seconds(self, cache: dict[int, dict[str, float]], n: int) -> float:
        return cache[n]["expression"]

    def track_sync_of_build(self, cache: dict[int, dict[str, float]], n: int) -> float:
        """Returns the time of a sync that changes nothing, as a part of that of a build."""
        return cache[n]["sync_without_changes"] / cache[n]["build"]

    def track_snapshot_seconds(self, cache: dict[int, dict[str, float]], n: int) -> float:
        return cache[n]["snapshot"]


if __name__ == "__main__":
    for name, value in figures(*map(int, sys.argv[1:])).items():
        print(f"{name:22} {value:.6g}")
