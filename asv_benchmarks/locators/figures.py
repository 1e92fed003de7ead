"""Every locator beside the others: to find spaces and intervals, to build, to change, in bytes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from benchmarks.measure import medians, seconds
from numpy.typing import NDArray

from locators.kernels.counting import LINES, NODES
from locators.locator import Locator
from locators.registry import LOCATORS

Keys = NDArray[np.int64]

COVER = 5  # intervals that contain a point, about
SPAN = 2**40
SCANNED = 2 * 10**9  # comparisons of a scan that are made; the rest of its time is reckoned
CHANGES = 200  # intervals that come and go, one by one; fewer where all arrays are made anew for each
BUILDS = 0.5  # seconds of building that these may take as long as
COUNTED = 20_000  # points whose nodes and lines are counted


def uniform(rng: np.random.Generator, n: int) -> Keys:
    return rng.integers(0, SPAN, n)


def clusters(rng: np.random.Generator, n: int) -> Keys:
    """Keys in a hundred clusters, each a hundred-thousandth of the span wide."""
    centre = np.random.default_rng(7).integers(0, SPAN, 100)
    return (rng.choice(centre, n) + rng.normal(0, SPAN / 1e5, n)).astype(np.int64)


def skewed(rng: np.random.Generator, n: int) -> Keys:
    """Keys like amounts of money in cents: log-normal, most of them far below the largest."""
    return (np.exp(rng.normal(0, 3, n)) * 2**20).astype(np.int64)


def doubles(rng: np.random.Generator, n: int) -> Keys:
    """Keys of ``skewed`` amounts that are float64: their bits."""
    return np.exp(rng.normal(0, 3, n)).view(np.int64)


DRAWS: dict[str, Callable[[np.random.Generator, int], Keys]] = {
    "uniform": uniform,
    "clusters": clusters,
    "skewed": skewed,
    "doubles": doubles,
}


def intervals(boundaries: int, draw: str, seed: int = 1) -> Keys:
    """Intervals with so many different ends, of which ``COVER`` contain a key: (n, 2)."""
    rng = np.random.default_rng(seed)
    ends = np.unique(DRAWS[draw](rng, boundaries + boundaries // 10))
    while len(ends) < boundaries:
        ends = np.unique(np.append(ends, DRAWS[draw](rng, boundaries)))
    ends = np.sort(rng.permutation(ends)[:boundaries])
    # Even places are lower ends, odd ones upper ends: as many places away as makes COVER overlap.
    far = min(2 * COVER + 1, boundaries - 1)
    low, above = ends[0::2], ends[np.minimum(np.arange(0, boundaries, 2) + far, boundaries - 1)]
    return rng.permutation(np.stack([low, above - 1], 1)[low < above])


def points(m: int, draw: str, order: str, seed: int = 2) -> Keys:
    drawn = DRAWS[draw](np.random.default_rng(seed), m)
    return np.sort(drawn) if order == "sorted" else drawn


def figures(
    boundaries: int, draw: str, order: str, m: int, names: Iterable[str] = tuple(LOCATORS), repeat: int = 5
) -> dict[str, dict[str, float]]:
    """Figures by locator.

    They are nanoseconds a point to locate, count and stab, nodes and lines of a point, seconds to
    build, seconds to insert one interval and to delete one, and bytes of an interval.
    """
    pairs, at = intervals(boundaries, draw), points(m, draw, order)
    made = {name: Locator(pairs, name) for name in names}
    found: dict[str, dict[str, float]] = {}
    few = {name: at[:: max(1, len(pairs) * m // SCANNED)] if name == "scan" else at for name in made}
    for name, locator in made.items():
        nodes = locator.touched(few[name][:COUNTED]) / len(few[name][:COUNTED])
        found[name] = {"nodes": nodes[NODES], "lines": nodes[LINES], "bytes": locator.nbytes / len(pairs)}
    sums = {name: int(locator.count(at).sum()) for name, locator in made.items() if name != "scan"}
    if len(set(sums.values())) > 1:
        raise SystemExit(f"locators find different numbers of intervals, {sums}")
    for what in ("locate", "count", "stab"):
        actions = {
            name: lambda locator=locator, name=name: getattr(locator, what)(few[name])  # noqa: B023
            for name, locator in made.items()
            if what != "locate" or locator.kind.locate
        }
        for action in actions.values():
            action()
        for name, taken in medians(actions, repeat, 60.0, time.process_time).items():
            found[name][what] = taken / len(few[name]) * 1e9
    built = {name: lambda name=name: Locator(pairs, name) for name in made}
    for name, taken in medians(built, repeat, 60.0, time.process_time).items():
        found[name]["build"] = taken
    for name, (came, went) in changes(made, {name: of["build"] for name, of in found.items()}, draw, repeat).items():
        found[name] |= {"insert": came, "delete": went}
    return found


def changes(
    made: dict[str, Locator], built: dict[str, float], draw: str, repeat: int
) -> dict[str, tuple[float, float]]:
    """Median seconds to insert an interval and to delete one, of locators that can, in turns."""
    some = intervals(2 * CHANGES, draw, seed=3)
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name, of in made.items() if of.kind.insert}
    for _ in range(repeat):
        for name in taken:
            n = min(CHANGES, max(1, int(BUILDS / built[name]))) if made[name].kind.locate else CHANGES
            new = [(low, high, 2**31 + i) for i, (low, high) in enumerate(some[:n].tolist())]
            came = seconds(lambda: change(made[name].insert, new), time.process_time)  # noqa: B023
            went = seconds(lambda: change(made[name].delete, new), time.process_time)  # noqa: B023
            taken[name].append((came / n, went / n))
    return {
        name: (statistics.median(came for came, _ in times), statistics.median(went for _, went in times))
        for name, times in taken.items()
    }


def change(one: Callable[..., Any], some: list[tuple[int, int, int]]) -> None:
    for interval in some:
        one(*interval)
