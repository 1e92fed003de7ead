"""The cost of checking a saved matcher on opening: ``open`` beside ``open(..., trusted=True)``.

    python asv_benchmarks/opening.py dense --subscriptions 1000000 --kinds bitslice scan betree

Figures are milliseconds of processor time until one event is matched: medians of rounds in which
both take turns. Checksums are verified both times.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from functools import partial
from pathlib import Path

import pyarrow as pa
from benchmarks.measure import machine, medians, one_thread, versions
from workload import NAMES, named

import colmatch as cm


def main() -> None:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", default=["dense"], metavar="WORKLOAD", help=", ".join(NAMES))
    parser.add_argument("--subscriptions", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--repeat", type=int, default=7, metavar="R")
    parser.add_argument("--kinds", nargs="+", default=["bitslice"], choices=cm.index_kinds())
    given = parser.parse_args()
    print(machine())
    print(versions("colmatch", "numba", "numpy", "pyarrow"))
    print(f"\n| workload | kind | MB | trusted | checked | ratio |\n|{'---|' * 6}")
    for name in given.workloads:
        workload = named(name, subscriptions=given.subscriptions)
        table = workload.predicate_table()
        for kind in given.kinds:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "index.cm"
                cm.Matcher.build(table, workload.schema(), index=kind).save(path)
                print(f"| `{name}` | `{kind}` {line(path, workload.events(1), given.repeat)}", flush=True)


def line(path: Path, event: pa.RecordBatch, repeat: int) -> str:
    def opened(trusted: bool) -> pa.Array:
        return cm.Matcher.open(path, trusted=trusted).count(event)

    ways = {"trusted": partial(opened, True), "checked": partial(opened, False)}
    times = medians(ways, repeat, clock=time.process_time)
    own, other = times["trusted"] * 1e3, times["checked"] * 1e3
    return f"| {path.stat().st_size / 1e6:.0f} | {own:.0f} | {other:.0f} | {other / own:.2f} |"


if __name__ == "__main__":
    main()
