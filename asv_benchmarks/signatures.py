"""The conjunctions that signatures of ``pstbloom`` turn away, by the cardinality of attributes.

    python asv_benchmarks/signatures.py --subscriptions 10000 --attributes 100

There is a row for each cardinality. Its columns are:

- conjunctions that are verified for an event and do not match, with signatures and without; - the
share of bits that is set in signatures of spaces, and of cells; "none" without signatures; - bytes
of a subscription; - the time of an event with signatures, divided by that without, measured in
turns.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from benchmarks.measure import machine, medians, one_thread, versions
from workload import Workload

import colmatch as cm
from colmatch.kernels.kinds.pstbloom import arrays as psb
from colmatch.kernels.kinds.pstree.arrays import CELLS, FANOUT, NONE, SPACES

CARDINALITIES = (3, 10, 100, 1000, 10_000)
ROWS = 256  # events of a row, all in one batch
SLOW = 60.0  # seconds: when a row has taken so long, no new round begins


def bits_set(index: Any) -> list[str]:
    """Returns the share of bits that is set in signatures of spaces, and of cells."""
    state, first = index.state, int(index.state[psb.FIRST_CELL])
    cells = FANOUT * int((index.tree[:, CELLS] != NONE).sum())
    parts = (
        (index.sign[psb.SPACES_FROM : first], int(state[SPACES]) - cells, int(state[psb.WORDS])),
        (index.sign[first:], cells, int(state[psb.CELL_WORDS])),
    )
    return [
        f"{np.unpackbits(sign.view(np.uint8)).sum() / (64 * rows * words):.1%}" if rows and words else "none"
        for sign, rows, words in parts
    ]


def main() -> None:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subscriptions", type=int, default=10_000, metavar="N")
    parser.add_argument("--attributes", type=int, default=100, metavar="N")
    parser.add_argument("--cardinalities", type=int, nargs="+", default=CARDINALITIES, metavar="N")
    parser.add_argument("--repeat", type=int, default=5, metavar="R", help="rounds")
    given = parser.parse_args()
    print(machine())
    print(versions("colmatch", "numba", "numpy", "pyarrow"))
    print("| cardinality | matches | wrong | without | bits, spaces | cells | bytes | without | time |\n|" + "---|" * 9)
    for cardinality in given.cardinalities:
        row(cardinality, given)


def row(cardinality: int, given: argparse.Namespace) -> None:
    layout = "map" if given.attributes > 100 else "columns"
    workload = Workload(
        subscriptions=given.subscriptions, attributes=given.attributes, cardinality=cardinality, layout=layout
    )
    events, options = workload.events(ROWS), cm.Options(threads=1, batch_rows=ROWS)
    matchers = {
        signatures: cm.Matcher.build(
            workload.predicate_table(),
            workload.schema(),
            index=cm.index("pstbloom", signatures=signatures),
            options=options,
        )
        for signatures in (True, False)
    }
    found = {signatures: matcher.counters(events) for signatures, matcher in matchers.items()}
    wrong = [f"{(counts['candidates'] - counts['matches']) / ROWS:.3g}" for counts in found.values()]
    index = matchers[True]._set.now.segments[0].index.arrays
    actions = {signatures: lambda matcher=matcher: matcher.match(events) for signatures, matcher in matchers.items()}
    taken = medians(actions, given.repeat, SLOW, time.process_time)
    size = [f"{matcher.stats()['bytes_per_subscription']:,.0f}" for matcher in matchers.values()]
    cells = [f"{cardinality:,}", f"{found[True]['matches'] / ROWS:.3g}", *wrong, *bits_set(index), *size]
    print(f"| {' | '.join(cells)} | {taken[True] / taken[False]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
