"""The cost of the order of ids within an event: ``Options(order="subscription")`` beside ``"any"``.

    python asv_benchmarks/order.py dense dense-equal ads --subscriptions 1000000 --batch 4096 64 1

Figures are microseconds an event of one thread's processor time: medians of rounds in which both
take turns.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from functools import partial

import pyarrow as pa
from benchmarks.measure import machine, medians, one_thread, versions
from workload import NAMES, named

import colmatch as cm


def main() -> None:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", default=["dense"], metavar="WORKLOAD", help=", ".join(NAMES))
    parser.add_argument("--subscriptions", type=int, nargs="+", default=[1_000_000], metavar="N")
    parser.add_argument("--batch", type=int, nargs="+", default=[4096], metavar="ROWS")
    parser.add_argument("--repeat", type=int, default=15, metavar="R")
    parser.add_argument("--kinds", nargs="+", default=["bitslice"], choices=cm.index_kinds())
    given = parser.parse_args()
    print(machine())
    print(versions("colmatch", "numba", "numpy", "pyarrow"))
    print(f"\n| workload | subscriptions | kind | batch | matches | any | subscription | ratio |\n|{'---|' * 8}")
    for name in given.workloads:
        for count in given.subscriptions:
            workload = named(name, subscriptions=count)
            table = workload.predicate_table()
            for kind in given.kinds:
                matcher = cm.Matcher.build(table, workload.schema(), index=kind, options=cm.Options(threads=1))
                for rows in given.batch:
                    print(
                        f"| `{name}` | {count:,} | `{kind}` {line(matcher, workload.events(rows), given)}", flush=True
                    )


def line(matcher: cm.Matcher, events: pa.RecordBatch, given: argparse.Namespace) -> str:
    def ordered(order: str) -> pa.Table:
        matcher.options = replace(matcher.options, order=order)
        return matcher.match(events)

    ways = {order: partial(ordered, order) for order in ("any", "subscription")}
    found = [way() for way in ways.values()]
    assert len(found[0]) == len(found[1])
    times = medians(ways, given.repeat, clock=time.process_time)
    one, other = (times[way] * 1e6 / len(events) for way in ways)
    return f"| {len(events):,} | {len(found[0]) / len(events):,.1f} | {one:.3g} | {other:.3g} | {other / one:.3f} |"


if __name__ == "__main__":
    main()
