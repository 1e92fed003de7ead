"""Matching among some subscriptions alone, and whether there is any match, beside all matches.

    python asv_benchmarks/among.py dense ads --subscriptions 300000 --share 0.01

Processor time of one thread, microseconds an event, medians of rounds in which all ways follow one
another; in brackets the ratio to ``match``.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pyarrow as pa
from benchmarks.measure import machine, medians, one_thread, versions
from workload import NAMES, named

import colmatch as cm


def main() -> None:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", default=["dense"], metavar="WORKLOAD", help=", ".join(NAMES))
    parser.add_argument("--subscriptions", type=int, default=300_000, metavar="N")
    parser.add_argument("--share", type=float, default=0.01, metavar="S", help="of the subscriptions")
    parser.add_argument("--batch", type=int, default=1024, metavar="ROWS")
    parser.add_argument("--repeat", type=int, default=7, metavar="R")
    parser.add_argument(
        "--kinds", nargs="+", default=["bitslice", "scan", "bestar", "psthash"], choices=cm.index_kinds()
    )
    given = parser.parse_args()
    print(machine())
    print(versions("colmatch", "numba", "numpy", "pyarrow"))
    for name in given.workloads:
        print(f"\n{name}, {given.subscriptions:,} subscriptions, {given.share:.1%} of them")
        print(f"| kind | match | match(ids=subset) | match(ids=array) | match(tags=) | exists | count |\n|{'---|' * 7}")
        workload = named(name, subscriptions=given.subscriptions)
        events = workload.events(given.batch)
        for kind in given.kinds:
            some = drawn(given)
            tags = pa.table({"id": some, "tags": ["vip"] * len(some)})
            matcher = cm.Matcher.build(workload.predicate_table(), workload.schema(), index=kind, tags=tags)
            print(f"| `{kind}` | {' | '.join(line(matcher, events, some, given))} |", flush=True)


def drawn(given: argparse.Namespace) -> pa.Array:
    """The ids of some subscriptions, which are numbers from 0 on."""
    rng = np.random.default_rng(1)
    return pa.array(rng.choice(given.subscriptions, int(given.subscriptions * given.share), replace=False))


def line(matcher: cm.Matcher, events: object, ids: pa.Array, given: argparse.Namespace) -> list[str]:
    subset = matcher.subset(ids)
    ways = {
        "match": lambda: matcher.match(events),
        "subset": lambda: matcher.match(events, ids=subset),
        "array": lambda: matcher.match(events, ids=ids),
        "tags": lambda: matcher.match(events, tags=["vip"]),
        "exists": lambda: matcher.exists(events),
        "count": lambda: matcher.count(events),
    }
    for way in ways.values():
        way()  # kernels are loaded, and working memory has grown
    times = medians(ways, given.repeat, clock=time.process_time)
    return [f"{times[way] * 1e6 / given.batch:.3g} ({times[way] / times['match']:.2f})" for way in ways]


if __name__ == "__main__":
    main()
