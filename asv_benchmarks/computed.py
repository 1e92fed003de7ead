"""What computed attributes cost, beside what their columns cost to compute in pyarrow.

    python asv_benchmarks/computed.py --attributes 1000 --subscriptions 100000

Processor times in turns, medians, on one thread: matching with computed attributes; matching the
same conditions on columns that are there already; computing these columns as matching does; and
computing them by plain calls of pyarrow, which are compared with the third, and with what the first
takes more than the second.
"""

from __future__ import annotations

import argparse
import random
import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from benchmarks.measure import machine, medians, one_thread, versions

import colmatch as cm
from colmatch.events.computed.derived import DerivedColumns

ROWS = 8192
COLUMNS = 40


def events() -> pa.Table:
    rng = np.random.default_rng(7)
    whole = {f"a{i}": pa.array(rng.integers(0, 1000, ROWS), pa.int64()) for i in range(COLUMNS)}
    return pa.table(whole | {f"f{i}": pa.array(rng.random(ROWS) * 100) for i in range(COLUMNS)})


def _rest(values: pa.ChunkedArray, divisor: int) -> pa.ChunkedArray:
    """Returns remainders: pyarrow has no function for them."""
    return pc.subtract(values, pc.multiply(pc.divide(values, divisor), divisor))


def values(count: int) -> list[tuple[str, object]]:
    """Expressions, and what computes each with pyarrow."""
    rng = random.Random(7)
    found: dict[str, object] = {}
    while len(found) < count:
        i, j, k = rng.randrange(COLUMNS), rng.randrange(COLUMNS), rng.randrange(1000)
        kind = len(found) % 4
        if kind == 0:
            found[f"a{i} * a{j} + {k}"] = lambda t, i=i, j=j, k=k: pc.add(
                pc.multiply(t[f"a{i}"], t[f"a{j}"]), pa.scalar(k)
            )
        elif kind == 1:
            found[f"f{i} * f{j} - f{k % COLUMNS}"] = lambda t, i=i, j=j, k=k: pc.subtract(
                pc.multiply(t[f"f{i}"], t[f"f{j}"]), t[f"f{k % COLUMNS}"]
            )
        elif kind == 2:
            found[f"abs(a{i} - a{j}) % {k + 1}"] = lambda t, i=i, j=j, k=k: _rest(
                pc.abs(pc.subtract(t[f"a{i}"], t[f"a{j}"])), k + 1
            )
        else:
            found[f"coalesce(f{i}, 0D) + {k}.5D"] = lambda t, i=i, k=k: pc.add(pc.coalesce(t[f"f{i}"], 0.0), k + 0.5)
    return list(found.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attributes", type=int, default=1000)
    parser.add_argument("--subscriptions", type=int, default=100_000)
    given = parser.parse_args()
    one_thread()
    print(machine(), versions("colmatch", "pyarrow"), sep="\n")
    table = events()
    chosen = values(given.attributes)
    batch = table.combine_chunks().to_batches()[0]
    computed = {f"v{n}": run(batch) for n, (_, run) in enumerate(chosen)}
    ready = pa.table({name: batch[name] for name in table.column_names} | computed)
    rng = random.Random(8)
    texts, plain = {}, {}
    for id in range(given.subscriptions):
        n, low = rng.randrange(len(chosen)), rng.randrange(1000)
        rest = f"a{rng.randrange(COLUMNS)} = {low} AND a{rng.randrange(COLUMNS)} < {rng.randrange(1000)}"
        texts[id] = f"{chosen[n][0]} > {low} AND {rest}"
        plain[id] = f"v{n} > {low} AND {rest}"
    options = cm.Options(threads=1)
    ours = cm.Matcher.build(texts, table.schema, options=options)
    theirs = cm.Matcher.build(plain, ready.schema, options=options)
    order = [("event", "ascending"), ("subscription", "ascending")]
    assert ours.match(table).sort_by(order).equals(theirs.match(ready).sort_by(order))
    columns = DerivedColumns(ours._set.now.attributes, True)
    times = medians(
        {
            "computed": lambda: ours.match(table),
            "there already": lambda: theirs.match(ready),
            "computing alone": lambda: columns.add_to(batch),
            "pyarrow": lambda: [run(batch) for _, run in chosen],
        },
        repeat=15,
        clock=time.process_time,
    )
    for name, seconds in times.items():
        print(f"{name:14} {seconds / ROWS * 1e6:8.2f} us an event")
    more = times["computed"] - times["there already"]
    print(f"computing alone costs {times['computing alone'] / times['pyarrow']:.2f} x what it costs in pyarrow")
    print(f"within a match, {more / times['pyarrow']:.2f} x, the small difference of two large times")


if __name__ == "__main__":
    main()
