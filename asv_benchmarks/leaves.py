"""Leaves of a random forest as rules, on real flights: colmatch beside ``apply`` of scikit-learn.

    python asv_benchmarks/leaves.py --trees 100 --leaves 100

A rule is the way to a leaf: bounds of some of seven columns. Each event meets a leaf of each tree.
The forest learns from every third flight whether it arrives a quarter of an hour late.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from benchmarks.conjunctions import Events
from benchmarks.measure import machine, medians, one_thread, versions
from benchmarks.rivals import colmatch, contest
from benchmarks.systems import Match, Pairs
from benchmarks.workloads import Workload

from colmatch.bench.flights import flights

COLUMNS = ("month", "day", "hour", "sched_dep_time", "dep_delay", "distance", "flight")


def ways(tree: Any, node: int = 0, bounds: tuple[tuple[str, float], ...] = ()) -> Iterator[tuple[int, str]]:
    """Yields each leaf of a tree and its condition; of several bounds of a side, the last."""
    if tree.children_left[node] < 0:
        yield node, " AND ".join(f"{start} {bound}" for start, bound in dict(bounds).items()) or "TRUE"
        return
    name, bound = COLUMNS[tree.feature[node]], float(tree.threshold[node])
    yield from ways(tree, tree.children_left[node], (*bounds, (f"{name} <=", bound)))
    yield from ways(tree, tree.children_right[node], (*bounds, (f"{name} >", bound)))


def grown(trees: int, leaves: int, rows: int) -> tuple[Workload, Any]:
    """Leaves as rules with flights as events, and the forest."""
    from sklearn.ensemble import RandomForestClassifier

    year = flights().select([*COLUMNS, "arr_delay"]).drop_null()
    table = pa.table({name: year[name].cast("double") for name in COLUMNS})
    features, late = np.column_stack(table.columns), year["arr_delay"].to_numpy() > 15
    forest = RandomForestClassifier(trees, max_leaf_nodes=leaves, random_state=1, n_jobs=1)
    forest.fit(features[::3], late[::3])
    texts = [
        (number << 16 | leaf, text) for number, tree in enumerate(forest.estimators_) for leaf, text in ways(tree.tree_)
    ]
    some = table.take(np.linspace(1, len(table) - 2, rows).astype(np.int64)).combine_chunks()
    return Workload(f"leaves {len(texts):,}", texts, some.schema, some), forest


def applied(forest: Any) -> Callable[[Workload], Callable[[Events], Match]]:
    """``forest.apply`` of an array of float32, which has a leaf of each tree for each row."""

    def ready(events: Events) -> Match:
        given = np.column_stack(events.table.columns).astype(np.float32)

        def run() -> Pairs:
            leaves = forest.apply(given)
            rows, trees = leaves.shape
            return Pairs(np.repeat(np.arange(rows), trees), (np.arange(trees) << 16 | leaves).ravel())

        return run

    return lambda workload: ready


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--leaves", type=int, default=100, help="of a tree, at most")
    parser.add_argument("--rows", type=int, default=4096, help="events of a batch")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--cpu", action="store_true", help="processor time, for a machine that is busy")
    known = parser.parse_args(given)
    one_thread()
    print(f"{machine()}\n{versions('colmatch', 'numpy', 'scikit-learn')}")
    workload, forest = grown(known.trees, known.leaves, known.rows)
    ready = contest(workload, {"apply": applied(forest), "colmatch": colmatch})
    clock = time.process_time if known.cpu else time.perf_counter
    for name, taken in medians(ready, known.repeat, clock=clock).items():
        print(f"{workload.name}, {name}: {taken / known.rows * 1e6:.2f} us an event")


if __name__ == "__main__":
    main()
