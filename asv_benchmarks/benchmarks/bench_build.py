"""Building: from predicate tables and from texts, time and memory.

Sizes that take more than some seconds are skipped unless the environment variable
COLMATCH_BENCHMARKS is ``full``.

    python -m benchmarks.bench_build 10000000

prints what a build from a table takes at its peak.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks import workloads

FULL = os.environ.get("COLMATCH_BENCHMARKS") == "full"


def build(subscriptions: Any, schema: Any) -> Any:
    import colmatch as cm

    return cm.Matcher.build(
        cm.PredicateTable(subscriptions) if isinstance(subscriptions, pa.Table) else subscriptions, schema
    )


def parser() -> str:
    """Which build of sqlglot is installed."""
    import sqlglot.parser

    return "pure" if sqlglot.parser.__file__.endswith(".py") else "compiled"


class Once:
    """A build takes long enough to be timed by one call, and few of them."""

    number = 1
    repeat = (1, 3, 20.0)
    rounds = 1
    warmup_time = 0
    timeout = 600


class BuildTable(Once):
    """From a PredicateTable: 100 attributes, five predicates each."""

    params = (100_000, 1_000_000)
    param_names = ("subscriptions",)

    def setup(self, n: int) -> None:
        self.workload = workloads.uniform(n, rows=1)
        small = workloads.uniform(10, rows=1)
        build(small.subscriptions, small.schema)  # compiles

    def time_build(self, n: int) -> None:
        build(self.workload.subscriptions, self.workload.schema)

    def peakmem_build(self, n: int) -> None:
        """Of the process: Python, the libraries, the table and what building adds to them."""
        build(self.workload.subscriptions, self.workload.schema)

    def track_bytes_a_subscription(self, n: int) -> float:
        return build(self.workload.subscriptions, self.workload.schema).stats()["bytes_per_subscription"]

    track_bytes_a_subscription.unit = "bytes"  # type: ignore[attr-defined]


def peak(n: int) -> dict[str, float]:
    """The memory of a process that builds ``bitslice`` of ``n`` ``dense`` subscriptions, in bytes
    for each: at the peak above the table, and afterwards. The table is in chunks, as it is drawn.
    """
    if sys.platform != "linux":
        raise NotImplementedError("only Linux says how much memory a process has had")
    import colmatch as cm

    small = workloads.shape("dense", 1000, 1)
    cm.Matcher.build(cm.PredicateTable(small.subscriptions), small.schema, "bitslice")  # compiles
    workload = workloads.shape("dense", n, 1)
    # Give back what drawing has freed, or the build would use it again unseen
    gc.collect()
    pa.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = _memory("VmRSS")
    made = cm.Matcher.build(cm.PredicateTable(workload.subscriptions), workload.schema, "bitslice")
    return {
        "peak": (_memory("VmHWM") - before) / n,
        "after": (_memory("VmRSS") - before) / n,
        "matcher": made.stats()["bytes_per_subscription"],
    }


def _memory(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:"))


class PeakOfTable(Once):
    """From a PredicateTable of ``dense``, in chunks."""

    params = (1_000_000, 10_000_000)
    param_names = ("subscriptions",)

    def track_bytes_a_subscription_at_the_peak(self, n: int) -> float:
        if n > 1_000_000 and not FULL:
            raise NotImplementedError("only with COLMATCH_BENCHMARKS=full")
        return peak(n)["peak"]

    track_bytes_a_subscription_at_the_peak.unit = "bytes"  # type: ignore[attr-defined]


class Texts(Once):
    """Texts; ``parser`` is the build of sqlglot that has to be installed, the others are
    skipped.
    """

    param_names = ("subscriptions", "parser")
    largest = 0  # size that is not skipped

    def setup(self, n: int, wanted: str) -> None:
        if wanted != parser():
            raise NotImplementedError(f"the {parser()} build of sqlglot is installed")
        if n > self.largest and not FULL:
            raise NotImplementedError("only with COLMATCH_BENCHMARKS=full")
        self.texts, self.schema = self.make(n)
        build(self.make(40)[0], self.schema)  # compiles

    def make(self, n: int) -> tuple[Any, Any]:
        raise NotImplementedError


class BuildShapes(Texts):
    """From texts of 20 shapes."""

    params = ((100_000, 1_000_000), ("compiled", "pure"))
    largest = 100_000

    def make(self, n: int) -> tuple[Any, Any]:
        return workloads.shaped_texts(n), workloads.SHOP

    def time_build(self, n: int, wanted: str) -> None:
        build(self.texts, self.schema)


class BuildDistinct(Texts):
    """From texts no two of which have one shape: every one is put together anew."""

    params = ((10_000, 100_000), ("compiled", "pure"))
    largest = 10_000

    def make(self, n: int) -> tuple[Any, Any]:
        return workloads.distinct_texts(n), workloads.WIDE

    def time_build(self, n: int, wanted: str) -> None:
        build(self.texts, self.schema)


class QuickBuild(Once):
    """Small ones, for CI."""

    params = ("table", "shapes", "distinct")
    param_names = ("source",)

    def setup(self, source: str) -> None:
        uniform = workloads.uniform(10_000, rows=1)
        self.subscriptions, self.schema = {
            "table": (uniform.subscriptions, uniform.schema),
            "shapes": (workloads.shaped_texts(2_000), workloads.SHOP),
            "distinct": (workloads.distinct_texts(500), workloads.WIDE),
        }[source]
        build(self.subscriptions, self.schema)

    def time_build(self, source: str) -> None:
        build(self.subscriptions, self.schema)


def main(sizes: list[str]) -> None:
    n = int(sizes[0]) if sizes else 1_000_000
    for name, value in peak(n).items():
        print(f"{name:8s}{value:8.1f} bytes a subscription, {n * value / 2**30:6.2f} GiB")


if __name__ == "__main__":
    main(sys.argv[1:])
