"""Building: from predicate tables and from texts, time and memory.

Sizes that take more than some seconds are skipped unless the environment variable
COLMATCH_BENCHMARKS is ``full``.
"""

from __future__ import annotations

import os
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
