"""Every index kind beside every rival on one workload.

Figures are time an event by size of batch, time to build, size, and what kernels count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks import rivals
from benchmarks.conjunctions import Events
from benchmarks.measure import medians
from benchmarks.rivals import LARGEST, RIVALS
from benchmarks.systems import Match
from benchmarks.workloads import Workload

BATCHES = (1, 64, 512, 4096, 65_536)
COUNTED = 256  # events whose cost is counted
LONGEST = 30.0  # seconds that one run may take; what would take more is left out


class System(NamedTuple):
    """A kind of index or a rival, prepared with the subscriptions of a workload."""

    name: str
    matcher: Any  # of colmatch, None for a rival
    ready: Callable[[Events], Match]
    build: float  # seconds


def systems(workload: Workload, names: Iterable[str], subscriptions: int) -> list[System]:
    """Those of ``names`` that understand the workload, are installed, and survive so many
    subscriptions; ``auto`` is colmatch's choice.
    """
    made = []
    for name in names:
        if subscriptions > LARGEST.get(name, subscriptions):
            continue
        began = time.perf_counter()
        try:
            matcher = None if name in RIVALS else rivals.matcher(workload, name)
            ready = rivals.matching(matcher) if matcher is not None else RIVALS[name](workload)
        except (NotImplementedError, ImportError):
            continue
        taken = time.perf_counter() - began
        made.append(System(name if matcher is None else matcher.kind, matcher, ready, taken))
    return made


def prepared(system: System, events: pa.Table, batch: int) -> tuple[Match, int] | None:
    """A function that matches some events, ``batch`` at a time, and how many they are.

    Run once, to warm up; None if it cannot be done.
    """
    rows = min(max(batch, 64), events.num_rows)
    try:
        pieces = [system.ready(Events(events.slice(start, batch))) for start in range(0, rows, batch)]
        pieces[0]()
    except NotImplementedError:
        return None

    def run() -> None:
        for piece in pieces:
            piece()

    return run, rows  # type: ignore[return-value]


def nanoseconds(
    made: Sequence[System],
    events: pa.Table,
    batch: int,
    repeat: int = 5,
    budget: float = 6.0,
    clock: Callable[[], float] = time.perf_counter,
    longest: Callable[[System, int], bool] = lambda system, rows: False,
) -> dict[str, float]:
    """Median time an event of each system that can, one after the other in turns, by name.

    ``longest`` tells of a system and a number of rows whether that would take too long.
    """
    rows = min(max(batch, 64), events.num_rows)
    ready = {system.name: prepared(system, events, batch) for system in made if not longest(system, rows)}
    taken = medians({name: run[0] for name, run in ready.items() if run}, repeat, budget, clock)
    return {name: seconds / rows * 1e9 for name, seconds in taken.items()}


def figures(
    workload: Workload, subscriptions: int, names: Iterable[str], batches: Sequence[int] = BATCHES
) -> dict[str, dict[Any, float]]:
    """Figures by system.

    They are nanoseconds an event under each size of batch, and under their names build, bytes and
    the counters of an event.
    """
    made = systems(workload, names, subscriptions)
    events = workload.events
    found: dict[str, dict[Any, float]] = {}
    for system in made:
        found[system.name] = {"build": system.build}
        if system.matcher is not None:
            few = events.slice(0, COUNTED)
            counted = system.matcher.counters(few)
            size = system.matcher.stats()["bytes_per_subscription"]
            found[system.name] |= {"bytes": size} | {name: value / len(few) for name, value in counted.items()}

    def longest(system: System, rows: int) -> bool:
        known = [value for key, value in found[system.name].items() if isinstance(key, int)]
        return bool(known) and known[-1] * 1e-9 * rows > LONGEST

    for batch in batches:
        for name, time_of_one in nanoseconds(made, events, batch, longest=longest).items():
            found[name][batch] = time_of_one
    return found


def one_event(made: Sequence[System], events: pa.Table) -> dict[str, float]:
    """Median nanoseconds of one call of ``match`` with one event, Python included, each kind in
    turn for each event.
    """
    taken: dict[str, list[float]] = {system.name: [] for system in made if system.matcher is not None}
    rows = [events.slice(row, 1) for row in range(events.num_rows)]
    for system in made:
        if system.matcher is not None:
            system.matcher.match(rows[0])
    for row in rows:
        for system in made:
            if system.matcher is not None:
                began = time.perf_counter()
                system.matcher.match(row)
                taken[system.name].append(time.perf_counter() - began)
    return {name: float(np.median(times)) * 1e9 for name, times in taken.items()}
