"""The pages that `pbtree` reads from a file and the time that it takes, as tables.

    python asv_benchmarks/pages.py --subscriptions 1000000 --plot asv_benchmarks/pictures/pages.svg

The tables show, in this order:

- pages read an event, time and memory by the size of the cache, each in a process of its own, and
beside kinds in memory, in turns; - single updates; - table 1 of the PB+tree paper: nodes visited,
and pages changed by updates, as keys become more; - the worst insert, and files with many
attributes.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
from benchmarks.measure import machine, medians, versions
from workload import Workload, named

import colmatch as cm
from colmatch.kernels.kinds.pbtree.arrays import KIND, LIST, SIDS, WORDS

SHARES = (0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)  # of the file, in the cache
EVENTS = 256
SPARE = 2000  # subscriptions that are inserted
KEYS = (1000, 10_000, 100_000, 1_000_000)
FIRST = 1000  # predicates of a new list, beside as many other keys as ``KEYS`` has in third place
ATTRIBUTES = (30, 300, 3000, 30_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subscriptions", type=int, default=100_000, metavar="N")
    parser.add_argument("--workload", default="dense")
    parser.add_argument("--kinds", nargs="*", default=["opindex", "bitslice"], help="in memory, beside it")
    parser.add_argument("--plot", metavar="FILE", help="draw time and pages against the cache to a .svg or .png")
    parser.add_argument("--child", nargs=2, metavar=("FILE", "BYTES"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    workload = named(given.workload, subscriptions=given.subscriptions + SPARE)
    if given.child:
        child(workload, Path(given.child[0]), int(given.child[1]))
        return
    print(machine())
    print(versions("colmatch", "numba", "numpy", "pyarrow"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "pages")
        table = built(workload, given.subscriptions, path)
        predicted(workload, path)
        rows = caches(given, path)
        times = kinds(given, workload, table, path)
        if given.plot:
            draw(given.plot, rows, times)
        del table
        updates(workload, given.subscriptions, path)
        visits(Path(folder, "visits"))
        worst(Path(folder, "worst"))
        many_attributes(Path(folder, "many"))


def built(workload: Workload, count: int, path: Path) -> cm.PredicateTable:
    """Builds the file, with what was compiled before."""
    schema, index = workload.schema(), cm.index("pbtree", path=str(path))
    cm.Matcher.build(workload.predicate_table(0, 100), schema, index=index).close()
    table = workload.predicate_table(0, count)
    began = time.perf_counter()
    cm.Matcher.build(table, schema, index=index).close()
    print(f"{count:,} subscriptions: built in {time.perf_counter() - began:.1f} s, {path.stat().st_size / 1e6:.0f} MB")
    return table


def predicted(workload: Workload, path: Path) -> None:
    """Compares nodes with O(log n + L) for each value of an event (PB+tree paper, table 1)."""
    pages = np.fromfile(path, np.uint32).reshape(-1, WORDS)
    sizes = pages[pages[:, KIND] == LIST, SIDS].astype(np.float64)
    slots = (sizes**2).sum() / sizes.sum()  # of the node that a slot is in: long lists have fuller nodes
    events = workload.events(EVENTS)
    values = sum(len(column) - column.null_count for column in events.columns) / EVENTS
    with cm.Matcher.open(path, cache_bytes=1 << 39) as matcher:
        told = matcher.counters(events)
    nodes, read = told["nodes"] / EVENTS, told["predicates"] / EVENTS
    print(
        f"{values:.0f} values an event, L {read:,.0f} in nodes of {slots:.0f} slots: {read / slots:.0f} nodes;"
        f" measured {nodes:.0f}, so {(nodes - read / slots) / values:.1f} for log n and the ends of lists, a value"
    )


def caches(given: argparse.Namespace, path: Path) -> list[dict[str, float]]:
    """Matches with caches of several sizes."""
    print("\n| cache, MB | of the file | ms an event | pages read an event | opened in, ms | resident above, MB |")
    print("|---|---|---|---|---|---|")
    rows = []
    for share in SHARES:
        budget = max(int(share * path.stat().st_size), 1 << 15)
        command = [sys.executable, __file__, "--workload", given.workload, "--subscriptions", str(given.subscriptions)]
        told = subprocess.run([*command, "--child", path, str(budget)], check=True, capture_output=True).stdout
        row = json.loads(told) | {"share": share}
        print(
            f"| {budget / 1e6:.1f} | {share:.0%} | {row['ms']:.3f} | {row['pages']:.1f} | {row['open']:.1f}"
            f" | {row['memory'] / 1e6:.1f} |",
            flush=True,
        )
        rows.append(row)
    return rows


def resident() -> int:
    """Returns the bytes that this process has in memory, with file mappings."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def child(workload: Workload, path: Path, budget: int) -> None:
    """Matches in a process of its own, and says what it took."""
    events = workload.events(EVENTS)
    with tempfile.TemporaryDirectory() as folder:
        index = cm.index("pbtree", path=f"{folder}/small")
        small = cm.Matcher.build(workload.predicate_table(0, 2000), workload.schema(), index=index)
        small.match(events)  # compiles, and makes what does not follow the index
        small.close()
    del small
    gc.collect()
    before, began = resident(), time.perf_counter()
    matcher = cm.Matcher.open(path, cache_bytes=budget)
    opened = time.perf_counter() - began
    matcher.match(events)
    taken = medians({"": lambda: matcher.match(events)}, 5)[""]
    pages = matcher.counters(events)["pages"] / EVENTS
    memory = resident() - before
    print(json.dumps({"ms": 1e3 * taken / EVENTS, "pages": pages, "open": 1e3 * opened, "memory": memory}))


def kinds(given: argparse.Namespace, workload: Workload, table: cm.PredicateTable, path: Path) -> dict[str, float]:
    """Times kinds in memory beside `pbtree` with all of its pages in the cache, in turns."""
    events, options = workload.events(EVENTS), cm.Options(threads=1)
    matchers = {"pbtree, all cached": cm.Matcher.open(path, cache_bytes=1 << 39)}
    for kind in ("pbtree", *given.kinds):
        matchers[kind] = cm.Matcher.build(table, workload.schema(), index=kind, options=options)
    actions = {name: lambda matcher=matcher: matcher.match(events) for name, matcher in matchers.items()}
    for action in actions.values():
        action()
    times = {name: 1e3 * taken / EVENTS for name, taken in medians(actions, 9).items()}
    print("\n| | ms an event |\n|---|---|")
    for name, taken in times.items():
        print(f"| `{name}` | {taken:.3f} |")
    return times


def updates(workload: Workload, count: int, path: Path) -> None:
    """Times single updates without fsync."""
    texts = workload.texts(count, None)
    ids, some = texts["id"].to_pylist(), texts["expression"].to_pylist()
    gc.collect()
    gc.freeze()
    print("\n| one by one | median, us | mean, us | pages changed |\n|---|---|---|---|")
    with cm.Matcher.open(path) as matcher:
        for what, change in (
            ("insert", lambda i: matcher.insert([(ids[i], some[i])])),
            ("delete", lambda i: matcher.delete([ids[i]])),
        ):
            before, taken = written(matcher), [timed(change, i) for i in range(1000)]
            pages = (written(matcher) - before) / len(taken)
            print(f"| {what} | {statistics.median(taken):.0f} | {statistics.mean(taken):.0f} | {pages:.1f} |")


def timed(change: Any, i: int) -> float:
    began = time.perf_counter()
    change(i)
    return 1e6 * (time.perf_counter() - began)


def written(matcher: cm.Matcher) -> int:
    count: int = matcher.stats()["cache"]["writes"]
    return count


def visits(path: Path) -> None:
    """Counts nodes as the keys of one attribute become more (PB+tree paper, table 1)."""
    print("\n| keys | nodes an event | L | pages an insert | pages a delete |\n|---|---|---|---|---|")
    for count in KEYS:
        rng, keys = Random(0), np.arange(count) * 1000
        columns = {
            "id": np.arange(2 * count),
            "attribute": ["a"] * (2 * count),
            "op": ["="] * count + [">"] * count,
            "operands": pa.ListArray.from_arrays(np.arange(2 * count + 1, dtype=np.int32), np.append(keys, keys + 500)),
        }
        index = cm.index("pbtree", path=str(path))
        with cm.Matcher.build(cm.PredicateTable(pa.table(columns)), {"a": "int64"}, index=index) as matcher:
            events = pa.table({"a": rng.sample(range(0, 1_000_000, 1000), 64)})
            told, changed = matcher.counters(events), []
            new = {10**8 + i: f"a > {rng.randrange(1000 * count)}" for i in range(200)}
            for is_insert in (True, False):
                before = written(matcher)
                for id, text in new.items():
                    if is_insert:
                        matcher.insert({id: text})
                    else:
                        matcher.delete([id])
                changed.append((written(matcher) - before) / len(new))
        nodes, read = told["nodes"] / 64, told["predicates"] / 64
        print(f"| {count:,} | {nodes:.1f} | {read:.0f} | {changed[0]:.1f} | {changed[1]:.1f} |", flush=True)


def worst(path: Path) -> None:
    """Counts the pages that the first predicates of a list change, beside 100,000 other keys.

    Leaves point to each node of a list except the first. So the split of a node changes many: all
    leaves whose keys are above those of the new node.
    """
    count, index = KEYS[2], cm.index("pbtree", path=str(path))
    table = pa.table({"id": range(count), "expression": [f"a = {1000 * i}" for i in range(count)]})
    with cm.Matcher.build(table, {"a": "int64"}, index=index) as matcher:
        changed = []
        for i in range(FIRST):
            before = written(matcher)
            matcher.insert({count + i: f"a > {-i}"})  # below all keys, so that a split changes all leaves
            changed.append(written(matcher) - before)
    print(
        f"\n{FIRST} predicates beside {count:,} keys: the first changes {changed[0]} pages, the median"
        f" {statistics.median(changed):.0f}, the mean {statistics.mean(changed):.1f}, the worst {max(changed)}"
        f" ({4096e-6 * max(changed):.1f} MB of log, at predicate {changed.index(max(changed)) + 1})"
    )


def many_attributes(path: Path) -> None:
    """Measures files of 20,000 subscriptions with 5 predicates each, by number of attributes."""
    print(
        "\n| attributes | B a subscription, file | B a subscription, pages in memory | nodes an event | ms an event |"
    )
    print("|---|---|---|---|---|")
    count, options = 20_000, cm.Options(threads=1, missing_columns="null")
    for attributes in ATTRIBUTES:
        rng = np.random.default_rng(0)
        low = rng.integers(0, 1000, 5 * count)
        ops = np.array(["=", ">", "<", "<>", "between"])[rng.integers(0, 5, 5 * count)]
        columns = {
            "id": np.repeat(np.arange(count), 5),
            "attribute": [f"a{i}" for i in rng.integers(0, attributes, 5 * count)],
            "op": ops,
            "operands": [[a, a + 50] if op == "between" else [a] for a, op in zip(low.tolist(), ops, strict=True)],
        }
        table, schema = cm.PredicateTable(pa.table(columns)), {f"a{i}": "int64" for i in range(attributes)}
        cm.Matcher.build(table, schema, index=cm.index("pbtree", path=str(path))).close()
        matcher = cm.Matcher.build(table, schema, index="pbtree", options=options)
        names = [f"a{i}" for i in rng.choice(attributes, 30, replace=False)]
        events = pa.table({name: rng.integers(0, 1000, EVENTS) for name in names})
        told = matcher.counters(events)
        taken = 1e3 * medians({"": lambda m=matcher, e=events: m.match(e)}, 9)[""] / EVENTS
        print(
            f"| {attributes:,} | {path.stat().st_size / count:.0f} | {matcher.stats()['bytes'] / count:.0f}"
            f" | {told['nodes'] / EVENTS:.1f} | {taken:.3f} |",
            flush=True,
        )


def draw(file: str, rows: list[dict[str, float]], times: dict[str, float]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    shares = [100 * row["share"] for row in rows]
    for axis, name, title in zip(
        figure.subplots(1, 2), ("ms", "pages"), ("time an event, ms", "pages read an event"), strict=True
    ):
        axis.plot(shares, [row[name] for row in rows], marker="o", markersize=3, label="pbtree")
        axis.set_xscale("log")
        axis.set_xlabel("cache, % of the file")
        axis.set_ylabel(title)
        axis.grid(True, alpha=0.25)
        if name == "ms":
            axis.set_yscale("log")
            for number, (kind, taken) in enumerate(list(times.items())[1:], 1):
                axis.axhline(taken, color=f"C{number}", linestyle="--", label=f"{kind}, in memory")
            axis.legend(fontsize=8)
    figure.savefig(file)
    print(f"\n{file} written")


if __name__ == "__main__":
    main()
