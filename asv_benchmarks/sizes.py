"""How fast will mine be: build, memory and match time by number of rules and of columns.

    python asv_benchmarks/sizes.py

Rules have three to seven conditions, half of them equalities, over columns of 100 whole numbers;
ranges have up to half of these. Each event has a value in every column, and all events differ.
Matching has one thread, in batches of 4,096 events, and one event at a time with ``match_one``.
Times are medians of rounds in which all sizes take turns; a build is done once.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

from benchmarks.measure import machine, medians, one_thread, versions
from workload import named

import colmatch as cm

BATCH = 4096


def main() -> None:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rules", type=int, nargs="+", default=[1000, 10_000, 100_000, 1_000_000], metavar="N")
    parser.add_argument("--columns", type=int, nargs="+", default=[10, 30, 100], metavar="C")
    parser.add_argument("--repeat", type=int, default=7, metavar="R")
    given = parser.parse_args()
    print(machine())
    print(versions("colmatch", "numba", "numpy", "pyarrow"))
    prepare(100, 10)  # loads kernels
    made = {(count, columns): prepare(count, columns) for count in given.rules for columns in given.columns}
    times = medians({place: run for place, (_, run) in made.items()}, given.repeat, budget=600)
    head = (
        "| rules | columns | index | build, s | memory, MB | matches an event | batch, us an event | `match_one`, us |"
    )
    print(f"\n{head}\n|{'---|' * 8}")
    for (count, columns), (facts, _) in made.items():
        cells = [f"{count:,}", f"{columns}", *facts[:-1], f"{times[count, columns] / BATCH * 1e6:.2f}", facts[-1]]
        print(f"| {' | '.join(cells)} |")


def prepare(count: int, columns: int) -> tuple[list[str], Callable[[], Any]]:
    """Builds a matcher; returns the facts of its row in the table, and a match of a batch."""
    values = {"attributes": columns, "event_size": (columns, columns), "equality": 0.5, "width": (0.0, 0.5)}
    workload = named("dense", subscriptions=count, **values)
    table, events = workload.predicate_table(), workload.events(BATCH)
    began = time.perf_counter()
    matcher = cm.Matcher.build(table, workload.schema(), options=cm.Options(threads=1))
    build = time.perf_counter() - began
    matches = matcher.match(events).num_rows / BATCH
    singles = events.slice(0, 200).to_pylist()

    def alone() -> None:
        for event in singles:
            matcher.match_one(event)

    alone()
    single = medians({"one": alone}, 5, budget=60)["one"] / len(singles) * 1e6
    memory = matcher.stats()["bytes"] / 1e6
    facts = [f"`{matcher.kind}`", f"{build:.2f}", f"{memory:.1f}", f"{matches:.1f}", f"{single:.0f}"]
    return facts, lambda: matcher.match(events)


if __name__ == "__main__":
    main()
