"""How long `match` takes while subscriptions change, as tables.

    python asv_benchmarks/updates.py dense --subscriptions 1000000 --kinds bitslice --rounds 5

Percentiles of single calls, by themselves and beside updates and merges, and their ratios to the
calls by themselves. All phases are run in turns. Beside a merge, a thread that matches needs a core
of its own: --pin gives it one, and another to all that updates and merges.
"""

from __future__ import annotations

import argparse
import gc
import os

from benchmarks.latency import PHASES, QUIET, UPDATES, Churn, Percentiles, Times, measure, pinned
from benchmarks.measure import machine, versions
from workload import NAMES, Workload, named

import colmatch as cm

SPARE = 5000  # subscriptions that come and go, and one for each ten of those that stay


def main() -> None:
    given = arguments()
    print(machine())
    print(versions("colmatch", "numba", "numpy", "pyarrow"))
    for name in given.workloads:
        count = given.subscriptions
        workload = named(name, subscriptions=count + count // 10 + SPARE)
        for kind in given.kinds:
            with cm.Matcher.build(workload.predicate_table(0, count), workload.schema(), index=kind) as matcher:
                tables(name, workload, matcher, count, given)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", default=["dense"], choices=[*NAMES, "dense"], metavar="WORKLOAD")
    parser.add_argument("--subscriptions", type=int, default=100_000, metavar="N")
    parser.add_argument("--kinds", nargs="+", default=["auto"], choices=["auto", *cm.index_kinds()], metavar="KIND")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], metavar="T", help="threads of the matcher")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 4096], metavar="ROWS", help="events of a call")
    parser.add_argument("--seconds", type=float, default=2.0, metavar="S", help="of each phase in a round")
    parser.add_argument("--rounds", type=int, default=3, metavar="R", help="each has one merge of all segments")
    parser.add_argument(
        "--pin", action="store_true", help="to one core what matches in one thread, to another the rest"
    )
    return parser.parse_args()


def tables(name: str, workload: Workload, matcher: cm.Matcher, count: int, given: argparse.Namespace) -> None:
    texts = workload.texts(count, None)
    churn = Churn(matcher, zip(texts["id"].to_pylist(), texts["expression"].to_pylist(), strict=True))
    gc.collect()
    gc.freeze()  # or Python's own collector, which looks at all that is there now, would be the worst case
    for batch in given.batch:
        events = workload.events(max(256, 4 * batch))
        for threads in given.threads:
            matcher.options = cm.Options(threads=threads)
            cores = sorted(os.sched_getaffinity(0))[-2:] if given.pin and threads == 1 else []
            with pinned(cores):
                times = measure(matcher, churn, events, batch, given.seconds, given.rounds, cores)
            what = f"{name}, {count:,} subscriptions, {matcher.kind}, {batch:,} events a call, {threads} thread{'s'[: threads - 1]}"
            show(what, times)


def show(what: str, times: Times) -> None:
    columns = ("ms, median", "p99", "worst", "median / quiet", "p99 / quiet", "worst / quiet", "calls")
    print(f"\n| {what} | {' | '.join(columns)} |\n|{'---|' * (1 + len(columns))}")
    quiet = Percentiles.of(times[QUIET])
    for phase in (*PHASES, UPDATES):
        own = Percentiles.of(times[phase])
        ratios = ["" if phase == UPDATES else f"{a / b:.2f}" for a, b in zip(own[:3], quiet[:3], strict=True)]
        cells = [*(f"{1e3 * t:.3g}" for t in own[:3]), *ratios, f"{own.calls:,}"]
        print(f"| {phase} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
