"""Matching: every index kind on every workload, and colmatch beside its rivals."""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa

import colmatch as cm
from benchmarks.bench_build import build
from benchmarks.measure import medians, one_thread
from benchmarks.rivals import RIVALS, contest
from benchmarks.workloads import WORKLOADS, flights, uniform

KINDS = tuple(cm.kinds())
COUNTED = 256  # events whose cost is counted


def seconds_an_event(matcher: Any, events: pa.Table, batch: int) -> float:
    """Median when they come ``batch`` at a time, results included, on one thread."""
    rows = min(max(batch, 64), events.num_rows)
    pieces = [events.slice(start, batch) for start in range(0, rows, batch)]
    matcher.match(pieces[0].slice(0, 1))

    def run() -> None:
        for piece in pieces:
            matcher.match(piece)

    return medians({"run": run}, repeat=5, budget=2.0)["run"] / rows


class Indexed:
    """Every workload indexed by every kind, once for all benchmarks that read it."""

    timeout = 900
    workloads = ("uniform 100K", "uniform 1M", "flights 100K")

    def setup_cache(self) -> dict[tuple[str, str], dict[str, float]]:
        """Leaves matchers and events as files in the current folder, and returns what one event costs, by workload and kind."""
        cost: dict[tuple[str, str], dict[str, float]] = {}
        for number, name in enumerate(self.workloads):
            try:
                workload = WORKLOADS[name]()
            except NotImplementedError:
                continue
            events = workload.events.combine_chunks()
            with pa.OSFile(f"{number}.arrow", "wb") as file, pa.ipc.new_file(file, events.schema) as writer:
                writer.write_table(events)
            subscriptions = workload.subscriptions
            for kind in KINDS:
                table = cm.PredicateTable(subscriptions) if isinstance(subscriptions, pa.Table) else subscriptions
                matcher = cm.Matcher.build(table, workload.schema, index=kind)
                matcher.save(f"{number}.{kind}")
                counters = matcher.counters(events.slice(0, COUNTED))
                cost[name, kind] = {counter: value / COUNTED for counter, value in counters.items()}
        return cost

    setup_cache.timeout = 900  # type: ignore[attr-defined]

    def read(self, workload: str, kind: str) -> tuple[Any, pa.Table]:
        number = self.workloads.index(workload)
        if not os.path.exists(f"{number}.{kind}"):
            raise NotImplementedError(f"{workload} is not there")
        with pa.OSFile(f"{number}.arrow") as file:
            events = pa.ipc.open_file(file).read_all()
        return cm.Matcher.open(f"{number}.{kind}", mmap=False, verify=False), events


class Match(Indexed):
    """Time an event. 4,096 uniform events of 30 present attributes of 100, or as many flights."""

    params = (Indexed.workloads, KINDS, (1, 64, 4096))
    param_names = ("workload", "kind", "batch")

    def setup(self, cost: Any, workload: str, kind: str, batch: int) -> None:
        one_thread()
        self.matcher, self.events = self.read(workload, kind)

    def track_an_event(self, cost: Any, workload: str, kind: str, batch: int) -> float:
        return seconds_an_event(self.matcher, self.events, batch)

    track_an_event.unit = "seconds"  # type: ignore[attr-defined]


class Cost(Indexed):
    """What the kernels do for one event, on average: the same on every machine, and nothing to do with time."""

    params = (Indexed.workloads, KINDS)
    param_names = ("workload", "kind")

    def counted(self, cost: Any, workload: str, kind: str, counter: str) -> float:
        if (workload, kind) not in cost:
            raise NotImplementedError(f"{workload} is not there")
        return round(cost[workload, kind][counter], 2)

    def track_candidates(self, cost: Any, workload: str, kind: str) -> float:
        return self.counted(cost, workload, kind, "candidates")

    def track_predicates(self, cost: Any, workload: str, kind: str) -> float:
        return self.counted(cost, workload, kind, "predicates")

    def track_matches(self, cost: Any, workload: str, kind: str) -> float:
        return self.counted(cost, workload, kind, "matches")

    track_candidates.unit = track_predicates.unit = track_matches.unit = "an event"  # type: ignore[attr-defined]


class Rivals:
    """scan beside what one would do without colmatch. All are measured in turns, in one process, on one thread, with 1,024 events."""

    params = (("uniform 1,000", "uniform 10,000", "flights 1,000"), tuple(RIVALS))
    param_names = ("workload", "system")
    timeout = 600

    def setup_cache(self) -> dict[tuple[str, str], tuple[float, float]]:
        """By workload and system: seconds an evaluation, and how many times those of scan."""
        one_thread()
        taken = {}
        for make, n in ((uniform, 1_000), (uniform, 10_000), (flights, 1_000)):
            try:
                workload = make(n, 1024)
            except NotImplementedError:
                continue
            times = medians(contest(workload), repeat=5, budget=4.0)
            taken |= {(workload.name, system): (time / n / 1024, time / times["scan"]) for system, time in times.items()}
        return taken

    setup_cache.timeout = 600  # type: ignore[attr-defined]

    def setup(self, taken: Any, workload: str, system: str) -> None:
        if (workload, system) not in taken:
            raise NotImplementedError(f"{system} cannot do {workload}, or is not installed")

    def track_an_evaluation(self, taken: Any, workload: str, system: str) -> float:
        """Time for one event with one subscription."""
        return taken[workload, system][0]

    def track_ratio_scan_to_rival(self, taken: Any, workload: str, system: str) -> float:
        """Time of scan as a part of the rival's: lower is better for colmatch."""
        return round(1 / taken[workload, system][1], 4)

    track_an_evaluation.unit = "seconds"  # type: ignore[attr-defined]
    track_ratio_scan_to_rival.unit = "times"  # type: ignore[attr-defined]


class QuickMatch:
    """10,000 uniform subscriptions, for CI."""

    params = (KINDS, (1, 4096))
    param_names = ("kind", "batch")

    def setup(self, kind: str, batch: int) -> None:
        one_thread()
        workload = uniform(10_000)
        self.events = workload.events
        self.matcher = build(workload.subscriptions, workload.schema)

    def track_an_event(self, kind: str, batch: int) -> float:
        return seconds_an_event(self.matcher, self.events, batch)

    track_an_event.unit = "seconds"  # type: ignore[attr-defined]
