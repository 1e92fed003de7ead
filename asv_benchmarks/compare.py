"""colmatch's kinds of index beside each other and beside what one would do without them, as tables.

    python asv_benchmarks/compare.py dense --subscriptions 1000000 --batch 4096 --against prototype
    roofline python asv_benchmarks/compare.py dense --subscriptions 1000000 --kinds all --one-event

Prepared once, checked to find the same pairs, then measured on one thread in turns; times are
medians, ratios are to the first kind. ``--kinds auto`` is the kind that colmatch chooses by itself.
Names for --against: rivals, kinds of index, or ``all`` of the rivals.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from benchmarks.conjunctions import Events
from benchmarks.figures import System, nanoseconds, one_event, systems
from benchmarks.measure import machine, one_thread, versions
from benchmarks.rivals import LARGEST, RIVALS, ordered
from benchmarks.workloads import Workload, flights, shape, uniform
from workload import NAMES

import colmatch as cm

CHECKED = 256  # events on which all have to agree before anything is measured
WORKLOADS = (*NAMES, "uniform", "flights")


def main() -> None:
    one_thread()
    given = arguments()
    print(machine())
    print(versions("colmatch", "numba", "numpy", "pyarrow", "duckdb", "polars"))
    for name in given.workloads:
        for subscriptions in given.subscriptions:
            rows = max(64, given.rows if given.one_event else max(given.batch))
            try:
                workload = make(name, subscriptions, rows)
            except NotImplementedError as reason:
                print(f"\n{name}: {reason}")
                break
            table(workload, subscriptions, given)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", default=["dense"], metavar="WORKLOAD", help=", ".join(WORKLOADS))
    parser.add_argument("--subscriptions", type=int, nargs="+", default=[100_000], metavar="N")
    parser.add_argument(
        "--batch", type=int, nargs="+", default=[4096], metavar="ROWS", help="events that are matched at a time"
    )
    parser.add_argument("--kinds", nargs="+", default=["auto"], metavar="KIND", help="auto, all, or kinds of index")
    parser.add_argument(
        "--against", nargs="+", default=[], metavar="SYSTEM", help=f"all, kinds of index, or of {', '.join(RIVALS)}"
    )
    parser.add_argument(
        "--repeat", type=int, default=7, metavar="R", help="rounds, each of which runs every system once"
    )
    parser.add_argument("--seconds", type=float, default=120.0, metavar="S", help="no new round after so long")
    parser.add_argument(
        "--one-event", action="store_true", help="median time of match() with one event, Python included; kinds only"
    )
    parser.add_argument("--rows", type=int, default=1000, metavar="ROWS", help="events for --one-event")
    parser.add_argument(
        "--cpu", action="store_true", help="processor time instead of elapsed time: for a machine that is busy"
    )
    given = parser.parse_args()
    kinds = cm.index_kinds()
    given.kinds = kinds if given.kinds == ["all"] else given.kinds
    given.against = list(RIVALS) if given.against == ["all"] else given.against
    for names, known in (
        (given.workloads, WORKLOADS),
        (given.kinds, ["auto", *kinds]),
        (given.against, [*RIVALS, *kinds]),
    ):
        for name in names:
            if name not in known:
                parser.error(f"{name!r} is none of {', '.join(known)}")
    if min(*given.batch, *given.subscriptions, given.repeat, given.rows) < 1:
        parser.error("numbers start from 1")
    return given


def make(name: str, subscriptions: int, rows: int) -> Workload:
    return (
        {"uniform": uniform, "flights": flights}[name](subscriptions, rows)
        if name in ("uniform", "flights")
        else shape(name, subscriptions, rows)
    )


def table(workload: Workload, subscriptions: int, given: argparse.Namespace) -> None:
    names = list(dict.fromkeys([*given.kinds, *given.against]))
    # auto may be one of the others
    made = list({system.name: system for system in systems(workload, names, subscriptions)}.values())
    left_out = [name for name in names if name != "auto" and name not in {system.name for system in made}]
    if left_out:
        print(
            f"\n{workload.name}: without {', '.join(left_out)}, which cannot do it, are not installed, or need less than their most:"
        )
        print("  " + ", ".join(f"{name} {most:,}" for name, most in LARGEST.items() if name in left_out))
    made = agreeing(workload, made)
    if given.one_event:
        print(f"\n{workload.name} subscriptions, one event a call, Python included, {given.rows:,} calls")
        show(made, one_event(made, workload.events.slice(0, given.rows)), subscriptions)
        return
    for batch in given.batch:
        each = nanoseconds(
            made,
            workload.events,
            batch,
            given.repeat,
            given.seconds,
            time.process_time if given.cpu else time.perf_counter,
        )
        matches = np.mean(made[0].matcher.count(workload.events.slice(0, CHECKED)))
        print(
            f"\n{workload.name} subscriptions, batches of {batch:,}, {matches:,.1f} matches an event, medians of {given.repeat} rounds"
        )
        show(made, each, subscriptions)


def agreeing(workload: Workload, made: list[System]) -> list[System]:
    """Those that can match these events, all of which find the same pairs of the first ones."""
    events, truth, able = Events(workload.events.slice(0, CHECKED)), None, []
    for system in made:
        try:
            found = ordered(system.ready(events)())
        except NotImplementedError as reason:
            print(f"\n{workload.name}: without {system.name}: {reason}")
            continue
        truth = found if truth is None else truth
        if not np.array_equal(found, truth):
            raise SystemExit(
                f"{system.name} finds {len(found):,} pairs in {workload.name}, {made[0].name} {len(truth):,}"
            )
        able.append(system)
    return able


def show(made: list[System], each: dict[str, float], subscriptions: int) -> None:
    print(
        f"{'system':<18}{'us an event':>14}{'ratio':>9}{'events/s':>14}{'ns/subscription':>17}{'build s':>10}{'bytes/sub':>11}"
    )
    first = next(iter(each.values()))
    for system in made:
        if system.name in each:
            one = each[system.name]
            size = f"{system.matcher.stats()['bytes_per_subscription']:.1f}" if system.matcher is not None else ""
            figures = f"{one / 1e3:>14.3f}{one / first:>9.3g}{1e9 / one:>14,.0f}{one / subscriptions:>17.4g}{system.build:>10.2f}{size:>11}"
            print(f"{system.name:<18}{figures}", flush=True)


if __name__ == "__main__":
    main()
