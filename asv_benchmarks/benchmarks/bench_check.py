"""The time that checks of rules take: some of all rules, others of a few.

    python -m benchmarks.bench_check 1000000

Seconds are CPU time of one thread, so that other processes matter little.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import process_time

import colmatch as cm
from benchmarks import workloads

SIZE = 1_000_000
ASKED = 256  # subscriptions that are checked beside others


def figures(n: int = SIZE) -> dict[str, float]:
    """Figures of a matcher of ``n`` texts: seconds, and numbers of findings."""
    texts = workloads.shaped_texts(n)
    matcher = cm.Matcher.build(texts, workloads.SHOP, options=cm.Options(threads=1))
    matcher.check(["never", "always", "duplicate"], ids=[texts[0][0]])  # compiles kernels
    asked = [id for id, _ in texts[:: max(n // ASKED, 1)]][:ASKED]
    found = matcher.check(["never", "duplicate"])
    return {
        "never_and_duplicate": _seconds(lambda: matcher.check(["never", "duplicate"])),
        "always": _seconds(lambda: matcher.check("always")),
        "contained_each": _seconds(lambda: matcher.check("contained", ids=asked)) / len(asked),
        "overlaps_one": _seconds(lambda: matcher.check("overlaps", ids=asked[:1])),
        "duplicates": float(found["finding"].to_pylist().count("duplicate")),
        "undecided": float(found["status"].to_pylist().count("undecided")),
    }


def _seconds(call: Callable[[], object]) -> float:
    began = process_time()
    call()
    return process_time() - began


class Check:
    """The figures, for asv."""

    timeout = 900
    params = (20_000, 200_000)
    param_names = ("subscriptions",)

    def setup_cache(self) -> dict[int, dict[str, float]]:
        return {n: figures(n) for n in self.params}

    def track_never_and_duplicate_seconds(self, cache: dict[int, dict[str, float]], n: int) -> float:
        return cache[n]["never_and_duplicate"]

    def track_contained_seconds(self, cache: dict[int, dict[str, float]], n: int) -> float:
        return cache[n]["contained_each"]


if __name__ == "__main__":
    for name, value in figures(*map(int, sys.argv[1:])).items():
        print(f"{name:22} {value:.6g}")
