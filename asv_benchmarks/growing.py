"""The growing segment: ``scan`` beside the kinds' own inserts (``construction="dynamic"``).

    python asv_benchmarks/growing.py --subscriptions 64 256 512

Subscriptions of ``dense`` come one by one, as texts. Figures are processor time of one thread in
microseconds: the median insert of the second half, and an event of a batch of 4,096.
"""

from __future__ import annotations

import argparse
import random
import time
from statistics import median

import pyarrow as pa
from benchmarks.measure import machine, one_thread, versions
from workload import named

import colmatch as cm
from colmatch.kinds.settings import Settings

KINDS = ("betree", "bestar", "pstbloom", "psthash", "opindex")


def main() -> None:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subscriptions", type=int, nargs="+", default=[64, 256, 512], metavar="N")
    parser.add_argument("--repeat", type=int, default=3, metavar="R")
    arguments = parser.parse_args()
    print(f"{machine()}; {versions()}")
    print(f"{'index':28} {'subscriptions':>13} {'insert, us':>10} {'event, us':>10}")
    workload = named("dense", subscriptions=1)
    events, schema = workload.events(4096), workload.schema()
    indexes = [cm.index("scan"), *(cm.index(kind, construction="dynamic") for kind in KINDS)]
    for index in indexes:
        grown(index, schema, events, 20)  # compiles
    for count in arguments.subscriptions:
        found: dict[Settings, list[tuple[float, float]]] = {index: [] for index in indexes}
        for _ in range(arguments.repeat):
            for index in indexes:
                found[index].append(grown(index, schema, events, count))
        for index, figures in found.items():
            insert, event = (median(figure) for figure in zip(*figures, strict=True))
            print(f"{index!r:28.28} {count:13,} {insert:10.0f} {event:10.2f}")


def grown(index: Settings, schema: pa.Schema, events: pa.Table, count: int) -> tuple[float, float]:
    """Returns microseconds of an insert and of an event."""
    rng = random.Random(7)
    matcher = cm.Matcher.build({}, schema, index=index, options=cm.Options(threads=1))
    inserts = []
    for id in range(count):
        lows = {name: rng.randrange(90) for name in rng.sample(schema.names, 5)}
        text = " AND ".join(f"{name} BETWEEN {low} AND {low + rng.randrange(1, 10)}" for name, low in lows.items())
        began = time.process_time()
        matcher.insert({id: text})
        inserts.append(time.process_time() - began)
    batches = []
    for _ in range(8):
        began = time.process_time()
        matcher.match(events)
        batches.append(time.process_time() - began)
    return median(inserts[count // 2 :]) * 1e6, min(batches) / len(events) * 1e6


if __name__ == "__main__":
    main()
