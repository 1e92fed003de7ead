"""colmatch beside what one would do without it, as a table: ``python asv_benchmarks/compare.py``.

All systems find the same pairs, on one thread, in turns; times are medians.
"""

from __future__ import annotations

import argparse
import time

from benchmarks.measure import machine, medians, one_thread, versions
from benchmarks.rivals import contest
from benchmarks.workloads import flights, uniform


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subscriptions", type=int, nargs="+", default=[1_000, 10_000], metavar="N")
    parser.add_argument("--events", type=int, default=4096, metavar="M")
    parser.add_argument("--repeat", type=int, default=5, metavar="R", help="rounds, each of which runs every system once")
    parser.add_argument("--workload", choices=("uniform", "flights", "both"), default="both")
    parser.add_argument("--cpu", action="store_true", help="processor time instead of elapsed time: for a machine that is busy")
    given = parser.parse_args()
    one_thread()
    print(machine())
    print(versions("colmatch", "numba", "numpy", "pyarrow", "duckdb"))
    clock = time.process_time if given.cpu else time.perf_counter
    makers = {"uniform": uniform, "flights": flights}
    for name, make in makers.items():
        if given.workload not in (name, "both"):
            continue
        for n in given.subscriptions:
            try:
                workload = make(n, given.events)
            except NotImplementedError as reason:
                print(f"\n{name}: {reason}")
                break
            systems = contest(workload)
            pairs = len(systems["scan"]().event)
            print(f"\n{name}, {n:,} subscriptions, {given.events:,} events, {pairs:,} matches")
            print(f"one thread, {given.repeat} rounds, {'processor' if given.cpu else 'elapsed'} time")
            print(f"{'system':<20} {'ms an event':>12} {'ns an evaluation':>17} {'times scan':>11}")
            taken = medians(systems, given.repeat, budget=float("inf"), clock=clock)
            for system, each in taken.items():
                event = each / given.events
                print(f"{system:<20} {event * 1e3:>12.4f} {event / n * 1e9:>17.2f} {each / taken['scan']:>11.1f}", flush=True)


if __name__ == "__main__":
    main()
