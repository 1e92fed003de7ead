"""What conditions on elements of lists cost, beside the same conditions on flat columns.

    python asv_benchmarks/elements.py --subscriptions 100000

Each subscription is ``exists(items, x -> x.sku = '…' AND x.price > …)``. Its twin is an OR of the
same two tests over one pair of columns for each place in the list. Every list has as many elements
as there are places, so both find the same. They are built and timed in turns on one thread.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pyarrow as pa
from benchmarks.measure import machine, medians, one_thread, versions

import colmatch as cm


def _events(rows: int, places: int, skus: int, rng: np.random.Generator) -> tuple[pa.Table, pa.Table]:
    """Returns events with lists, and the same with a column for each place and field."""
    total = rows * places
    sku = pa.array(np.char.add("sku-", rng.integers(0, skus, total).astype(str)))
    price = pa.array(np.round(rng.random(total) * 100, 2))
    offset = pa.array(np.arange(0, total + 1, places, dtype=np.int32))
    items = pa.ListArray.from_arrays(offset, pa.StructArray.from_arrays([sku, price], ["sku", "price"]))
    flat = {
        f"{name}{place}": values.take(pa.array(np.arange(place, total, places)))
        for place in range(places)
        for name, values in (("sku", sku), ("price", price))
    }
    return pa.table({"items": items}), pa.table(flat)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subscriptions", type=int, default=100_000)
    parser.add_argument("--places", type=int, default=5, help="elements of each list")
    parser.add_argument("--rows", type=int, default=8192)
    parser.add_argument("--repeat", type=int, default=7)
    given = parser.parse_args()
    one_thread()
    print(machine(), versions("colmatch", "pyarrow"), sep="\n")
    rng = np.random.default_rng(3)
    skus = max(given.subscriptions // 4, 1)
    lists, flat = _events(given.rows, given.places, skus, rng)
    tests = [
        (f"sku-{sku}", round(price, 2))
        for sku, price in zip(
            rng.integers(0, skus, given.subscriptions).tolist(), (50 + 50 * rng.random(given.subscriptions)).tolist()
        )
    ]
    texts = {
        "lists": [f"exists(items, x -> x.sku = '{sku}' AND x.price > {price})" for sku, price in tests],
        "columns": [
            " OR ".join(f"(sku{i} = '{sku}' AND price{i} > {price})" for i in range(given.places))
            for sku, price in tests
        ],
    }
    events, matchers, options = {"lists": lists, "columns": flat}, {}, cm.Options(threads=1)
    for name, some in texts.items():
        rules = pa.table({"id": np.arange(len(some)), "expression": some})
        start = time.perf_counter()
        matchers[name] = cm.Matcher.build(rules, events[name].schema, options=options)
        built = time.perf_counter() - start
        start = time.perf_counter()
        matchers[name].match(events[name])
        print(f"{name}: built in {built:.1f} s, first match {time.perf_counter() - start:.2f} s")
    found = [matchers[name].match(events[name]) for name in texts]
    assert found[0].equals(found[1])
    took = medians({name: lambda n=name: matchers[n].match(events[n]) for name in texts}, repeat=given.repeat)
    one = {name: events[name].slice(0, 1).to_pylist()[0] for name in texts}
    single = medians({name: lambda n=name: matchers[n].match_one(one[n]) for name in texts}, repeat=50)
    for name in texts:
        print(
            f"{name:8} {took[name] / given.rows * 1e6:8.2f} us an event in a batch ({took[name] / took['columns']:.2f}), "
            f"{single[name] * 1e6:8.1f} us one event ({single[name] / single['columns']:.1f})"
        )
    print(f"{found[0].num_rows / given.rows:.2f} matches an event")


if __name__ == "__main__":
    main()
