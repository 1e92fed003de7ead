"""Matching: every index kind beside what one would do without colmatch, on every named workload.

All on one thread.

What belongs together is measured together, in turns and in one process, and asv's single benchmarks
only read the figures.
"""

from __future__ import annotations

import os
from typing import Any

from workload import NAMES

import colmatch as cm
from benchmarks.figures import BATCHES, figures
from benchmarks.measure import medians, one_thread
from benchmarks.rivals import RIVALS, contest
from benchmarks.workloads import Workload, flights, shape, uniform

FULL = os.environ.get("COLMATCH_BENCHMARKS") == "full"
KINDS = tuple(cm.index_kinds())
SYSTEMS = (*KINDS, *RIVALS)
WORKLOADS = (*NAMES, "flights")
Taken = dict[str, dict[str, dict[Any, float]]]  # workload, system, name of a figure


def all_figures(subscriptions: int) -> Taken:
    one_thread()
    taken: Taken = {}
    for name in WORKLOADS:
        try:
            taken[name] = figures(make(name, subscriptions, BATCHES[-1]), subscriptions, SYSTEMS)
        except NotImplementedError:  # flights that are not installed
            continue
    return taken


def make(name: str, subscriptions: int, rows: int) -> Workload:
    return flights(subscriptions, rows) if name == "flights" else shape(name, subscriptions, rows)


def read(taken: Taken, workload: str, system: str, figure: Any) -> float:
    """Called by ``setup``: asv then skips what is not there."""
    try:
        return float(f"{taken[workload][system][figure]:.5g}")
    except KeyError:
        raise NotImplementedError(f"{system} cannot do {workload}, takes too long, or is not installed") from None


class _Small:
    """100,000 subscriptions."""

    timeout = 60

    def setup_cache(self) -> Taken:
        return all_figures(100_000)

    setup_cache.timeout = 2 * 3600  # type: ignore[attr-defined]


class _Large:
    """A million; nothing unless the environment variable COLMATCH_BENCHMARKS is ``full``."""

    timeout = 60

    def setup_cache(self) -> Taken:
        return all_figures(1_000_000) if FULL else {}

    setup_cache.timeout = 8 * 3600  # type: ignore[attr-defined]


class _Timed:
    """Time an event when they come ``batch`` at a time, results included."""

    params = (WORKLOADS, SYSTEMS, BATCHES)
    param_names = ("workload", "system", "batch")

    def setup(self, taken: Taken, workload: str, system: str, batch: int) -> None:
        self.figure = read(taken, workload, system, batch)

    def track_ns_an_event(self, taken: Taken, workload: str, system: str, batch: int) -> float:
        return self.figure

    track_ns_an_event.unit = "ns"  # type: ignore[attr-defined]


class _Counted:
    """Build, size, and what the kernels do for one event on average.

    Counters are the same on every machine.
    """

    params = (WORKLOADS, KINDS)
    param_names = ("workload", "kind")

    def setup(self, taken: Taken, workload: str, kind: str) -> None:
        read(taken, workload, kind, "build")

    def track_build(self, taken: Taken, workload: str, kind: str) -> float:
        return read(taken, workload, kind, "build")

    def track_bytes_a_subscription(self, taken: Taken, workload: str, kind: str) -> float:
        return read(taken, workload, kind, "bytes")

    def track_candidates(self, taken: Taken, workload: str, kind: str) -> float:
        return read(taken, workload, kind, "candidates")

    def track_predicates(self, taken: Taken, workload: str, kind: str) -> float:
        return read(taken, workload, kind, "predicates")

    def track_matches(self, taken: Taken, workload: str, kind: str) -> float:
        return read(taken, workload, kind, "matches")

    track_build.unit = "seconds"  # type: ignore[attr-defined]
    track_bytes_a_subscription.unit = "bytes"  # type: ignore[attr-defined]
    track_candidates.unit = track_predicates.unit = track_matches.unit = "an event"  # type: ignore[attr-defined]


class Match100K(_Timed, _Small):
    pass


class Match1M(_Timed, _Large):
    pass


class Cost100K(_Counted, _Small):
    pass


class Cost1M(_Counted, _Large):
    pass


class Rivals:
    """Few subscriptions, which every rival survives.

    All are measured in turns, in one process, on one thread, with 1,024 events.
    """

    params = (("uniform 1,000", "uniform 10,000", "flights 1,000"), SYSTEMS)
    param_names = ("workload", "system")
    timeout = 600

    def setup_cache(self) -> dict[tuple[str, str], tuple[float, float]]:
        """By workload and system: seconds an evaluation, and how many times those of colmatch's
        fastest kind.
        """
        one_thread()
        taken = {}
        for make, n in ((uniform, 1_000), (uniform, 10_000), (flights, 1_000)):
            try:
                workload = make(n, 1024)
            except NotImplementedError:
                continue
            times = medians(contest(workload), repeat=5, budget=4.0)
            best = min(times[kind] for kind in KINDS if kind in times)
            taken |= {(workload.name, system): (time / n / 1024, time / best) for system, time in times.items()}
        return taken

    setup_cache.timeout = 600  # type: ignore[attr-defined]

    def setup(self, taken: Any, workload: str, system: str) -> None:
        if (workload, system) not in taken:
            raise NotImplementedError(f"{system} cannot do {workload}, or is not installed")

    def track_an_evaluation(self, taken: Any, workload: str, system: str) -> float:
        """Time for one event with one subscription."""
        return taken[workload, system][0]

    def track_ratio_colmatch_to_system(self, taken: Any, workload: str, system: str) -> float:
        """Time of colmatch's fastest kind as a part of the system's: lower is better for
        colmatch.
        """
        return round(1 / taken[workload, system][1], 4)

    track_an_evaluation.unit = "seconds"  # type: ignore[attr-defined]
    track_ratio_colmatch_to_system.unit = "times"  # type: ignore[attr-defined]


class _Quick:
    """1,000 subscriptions and 256 events, for CI: columns and a map."""

    timeout = 60

    def setup_cache(self) -> Taken:
        one_thread()
        return {name: figures(make(name, 1_000, 256), 1_000, SYSTEMS, (256,)) for name in ("dense", "pstree-sparse")}

    setup_cache.timeout = 900  # type: ignore[attr-defined]  # seconds: kernels of all kinds may have to be compiled


class QuickMatch(_Quick):
    params = (("dense", "pstree-sparse"), KINDS)
    param_names = ("workload", "kind")

    def track_ns_an_event(self, taken: Taken, workload: str, kind: str) -> float:
        return read(taken, workload, kind, 256)

    track_ns_an_event.unit = "ns"  # type: ignore[attr-defined]


class QuickRivals(_Quick):
    params = tuple(RIVALS)
    param_names = ("rival",)

    def setup(self, taken: Taken, rival: str) -> None:
        self.figure = read(taken, "dense", rival, 256)

    def track_ns_an_event(self, taken: Taken, rival: str) -> float:
        return self.figure

    track_ns_an_event.unit = "ns"  # type: ignore[attr-defined]
