"""The source documents' comparisons, done again: one parameter after the other is changed, for
every kind of index.

    python asv_benchmarks/documents.py --plot asv_benchmarks/pictures/documents.svg python
    asv_benchmarks/documents.py attributes equality --kinds scan opindex --subscriptions 1000000
    python asv_benchmarks/documents.py subscriptions --large

For each value a table row and a point in the picture: milliseconds an event, what is read for it,
seconds to build, bytes a subscription. What is read is the sum of ``nodes`` and ``predicates`` of
``Matcher.counters``: entries of lists, segments searched, predicates evaluated. ``scan`` and
``bitslice`` have ``conjunctions`` instead of nodes. It is the same on every machine. Parameters
that are not changed are those of the PS-Tree document's table 1, but for fewer subscriptions. All
kinds must find as many matches. Matching is measured on one thread, kinds in turns, medians;
building once.

``arrival`` is a table of another kind: subscriptions and events come in turns, so many of each, and
it has the microseconds of a subscription that is inserted and of an event.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from benchmarks.expressions import Made, clauses, prefixes
from benchmarks.measure import machine, medians, one_thread, versions

import colmatch as cm
from colmatch.indexing.registry import KINDS
from colmatch.workload import Workload

# Kinds with other settings: those of the documents' scan, and what is measured besides the kinds.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "scan": ("scan", {"tiles": False}),
    "kindex-raw": ("kindex", {"enumerate": "raw"}),
    "opindex-bs": ("opindex", {"signatures": False}),
}
NAMES = list(dict.fromkeys([*cm.kinds(), *VARIANTS]))
ONE_BY_ONE = ("scan", "bitslice")  # kinds that look at conjunctions, not at entries of predicates
ROWS = 256  # events, all in one batch
COLUMNS = 100  # attributes that are columns; more are keys of a map
SLOW = 60.0  # seconds that measuring one point may take before no new round begins
LARGE = (3_000_000, 10_000_000)  # subscriptions, of which one kind after the other is in memory
COMING = 1000  # subscriptions, and events, that come in turns


class Sweep(NamedTuple):
    """One parameter and its values; ``make`` takes one and the number of subscriptions."""

    title: str
    values: tuple[Any, ...]
    make: Callable[[Any, int], Made]


def drawn(change: Callable[[Any], dict[str, Any]]) -> Callable[[Any, int], Made]:
    """Make points of ``Workload`` with some fields changed."""

    def make(value: Any, subscriptions: int) -> Made:
        workload = Workload(**{"subscriptions": subscriptions, **change(value)})
        return Made(workload.predicate_table(), workload.schema(), workload.events(ROWS), {})

    return make


def likely(probability: float) -> dict[str, Any]:
    """Five ranges on attributes that all events have, each wide enough that all hold with this
    probability.
    """
    width = probability**0.2
    return {"attributes": 30, "subscription_size": (5, 5), "equality": 0.0, "width": (width, width)}


def layout(attributes: int) -> str:
    return "map" if attributes > COLUMNS else "columns"


SWEEPS = {
    "subscriptions": Sweep(
        "subscriptions", (10_000, 30_000, 100_000, 300_000, 1_000_000), drawn(lambda n: {"subscriptions": n})
    ),
    "attributes": Sweep(
        "attributes", (100, 1000, 10_000, 30_000), drawn(lambda d: {"attributes": d, "layout": layout(d)})
    ),
    "size": Sweep("predicates of a subscription", (2, 5, 10, 20), drawn(lambda n: {"subscription_size": (n, n)})),
    "event": Sweep("pairs of an event", (10, 20, 30, 60, 90), drawn(lambda n: {"event_size": (n, n)})),
    "equality": Sweep("share of equalities", (0.0, 0.2, 0.5, 0.8, 1.0), drawn(lambda share: {"equality": share})),
    "cardinality": Sweep("cardinality", (10, 100, 10_000, 1_000_000), drawn(lambda n: {"cardinality": n})),
    "zipf": Sweep(
        "exponent of Zipf's law, attributes", (0.0, 1.0, 2.0, 3.0, 4.0, 5.0), drawn(lambda z: {"attribute_zipf": z})
    ),
    "zipf-values": Sweep(
        "exponent of Zipf's law, attributes and values",
        (0.5, 1.0, 2.0),
        drawn(lambda z: {"attribute_zipf": z, "value_zipf": z}),
    ),
    "probability": Sweep("matching probability", (0.001, 0.005, 0.01, 0.05, 0.1, 0.5), drawn(likely)),
    "dnf": Sweep("conjunctions of a DNF, at most", (1, 3, 5, 10), lambda most, n: clauses(n, most, "dnf", ROWS)),
    "cnf": Sweep("clauses of a CNF, at most", (1, 3, 5, 10), lambda most, n: clauses(n, most, "cnf", ROWS)),
    "prefix": Sweep(
        "share of prefixes, of 3 letters", (0.0, 0.25, 0.5, 0.75, 1.0), lambda share, n: prefixes(n, share, 3, ROWS)
    ),
    "prefix-length": Sweep("letters of a prefix", (2, 3, 4, 6), lambda length, n: prefixes(n, 1.0, length, ROWS)),
}
ARRIVAL = "arrival"
TURNS = (1, 10, 100, 1000)


class Figures(NamedTuple):
    """Of one kind at one value."""

    event: float  # milliseconds
    read: float  # entries an event
    build: float  # seconds
    bytes: float  # a subscription


Measured = dict[str, Figures]  # by kind


def main() -> None:
    one_thread()
    given = arguments()
    print(machine())
    print(versions("colmatch", "numba", "numpy", "pyarrow"))
    # kernels are loaded, or compiled where that was never done, before anything is measured
    for attributes in (COLUMNS, COLUMNS + 1):
        few = Workload(subscriptions=100, attributes=attributes, layout=layout(attributes))
        for kind in given.kinds:
            build(Made(few.predicate_table(), few.schema(), few.events(2), {}), kind).match(few.events(2))
    if given.large:
        of = SWEEPS["subscriptions"]
        SWEEPS["subscriptions"] = of._replace(values=of.values + LARGE)
    found = {name: sweep(SWEEPS[name], given) for name in given.sweeps if name != ARRIVAL}
    if ARRIVAL in given.sweeps:
        arrival(given)
    if given.plot:
        draw(found, given)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweeps", nargs="*", metavar="PARAMETER", help=f"all, or of {', '.join([*SWEEPS, ARRIVAL])}")
    parser.add_argument(
        "--kinds", nargs="+", default=NAMES, metavar="KIND", help=f"of {', '.join(NAMES)}; all by default"
    )
    parser.add_argument(
        "--subscriptions", type=int, default=100_000, metavar="N", help="where they are not what is changed"
    )
    parser.add_argument("--repeat", type=int, default=5, metavar="R", help="rounds")
    parser.add_argument(
        "--cpu", action="store_true", help="processor time instead of elapsed time: for a machine that is busy"
    )
    parser.add_argument(
        "--large", action="store_true", help=f"also {' and '.join(f'{n:,}' for n in LARGE)} subscriptions"
    )
    parser.add_argument("--plot", metavar="FILE", help="draw all to a .svg or .png")
    given = parser.parse_args()
    given.clock = time.process_time if given.cpu else time.perf_counter
    given.sweeps = given.sweeps if given.sweeps and given.sweeps != ["all"] else [*SWEEPS, ARRIVAL]
    for names, known in ((given.sweeps, [*SWEEPS, ARRIVAL]), (given.kinds, NAMES)):
        for name in names:
            if name not in known:
                parser.error(f"{name!r} is none of {', '.join(known)}")
    return given


def sweep(of: Sweep, given: argparse.Namespace) -> dict[Any, Measured]:
    print(f"\n| {of.title} | matches an event | {' | '.join(given.kinds)} |\n|{'---|' * (2 + len(given.kinds))}")
    return {value: point(of, value, given) for value in of.values}


def build(made: Made, name: str) -> cm.Matcher:
    kind, settings = VARIANTS.get(name, (name, {}))
    index, options = cm.index(kind, **made.settings, **settings), cm.Options(threads=1, batch_rows=ROWS)
    return cm.Matcher.build(made.subscriptions, made.schema, index=index, options=options)


def point(of: Sweep, value: Any, given: argparse.Namespace) -> Measured:
    """Measure each kind at one value and print a row of the table.

    Many subscriptions are in memory once, not once for each kind.
    """
    made = of.make(value, given.subscriptions)
    apart = isinstance(value, int) and value in LARGE
    measured: Measured = {}
    pairs: dict[str, int] = {}
    for kinds in [[kind] for kind in given.kinds] if apart else [given.kinds]:
        measured |= measure(made, kinds, given, pairs)
    if len(set(pairs.values())) > 1:
        raise SystemExit(f"{of.title} {value}: kinds find different numbers of pairs, {pairs}")
    cells = [
        "{:.3g} ms, {:,.0f} read, {:.2g} s, {:.0f} B".format(*measured[kind]) if kind in measured else "refused"
        for kind in given.kinds
    ]
    print(f"| {value:,} | {next(iter(pairs.values())) / ROWS:,.1f} | {' | '.join(cells)} |", flush=True)
    return measured


def measure(made: Made, kinds: list[str], given: argparse.Namespace, pairs: dict[str, int]) -> Measured:
    """Measures kinds in turns, without those that say that they would take too much.

    ``pairs`` is added to.
    """
    matchers, seconds, read = {}, {}, {}
    for kind in kinds:
        began = given.clock()
        try:
            matchers[kind] = build(made, kind)
        except cm.OptionError:
            continue
        seconds[kind] = given.clock() - began
        counted = matchers[kind].counters(made.events)
        pairs[kind] = int(matchers[kind].count(made.events).sum())
        read[kind] = (counted["conjunctions" if kind in ONE_BY_ONE else "nodes"] + counted["predicates"]) / ROWS
    actions = {kind: lambda matcher=matcher: matcher.match(made.events) for kind, matcher in matchers.items()}
    taken = medians(actions, given.repeat, SLOW, given.clock)
    return {
        kind: Figures(taken[kind] / ROWS * 1e3, read[kind], seconds[kind], matcher.stats()["bytes_per_subscription"])
        for kind, matcher in matchers.items()
    }


def arrival(given: argparse.Namespace) -> None:
    """Time subscriptions and events that come in turns, with a matcher that has others already,
    and the events alone before.
    """
    workload = Workload(subscriptions=given.subscriptions + COMING + 1)
    events = workload.events(COMING)
    first = Made(workload.predicate_table(0, given.subscriptions), workload.schema(), events, {})
    kinds = [kind for kind in given.kinds if kind in KINDS and KINDS[kind].insert is not None]
    print(f"\n| of each in turn | {' | '.join(kinds)} |\n|{'---|' * (1 + len(kinds))}")
    for turn in TURNS:
        tables = [
            workload.predicate_table(i, turn) for i in range(given.subscriptions, given.subscriptions + COMING, turn)
        ]
        batches = [events.slice(i, turn) for i in range(0, COMING, turn)]
        cells = []
        for kind in kinds:
            matcher = build(first, kind)
            # compiles, and copies what was read-only
            matcher.insert(workload.predicate_table(given.subscriptions + COMING))
            cells.append(in_turns(matcher, tables, batches, given.clock))
        print(f"| {turn:,} | {' | '.join(cells)} |", flush=True)


def in_turns(
    matcher: cm.Matcher, tables: list[cm.PredicateTable], batches: list[pa.Table], clock: Callable[[], float]
) -> str:
    matcher.count(batches[0])
    insert = match = alone = 0.0
    for batch in batches:
        began = clock()
        matcher.count(batch)
        alone += clock() - began
    for table, batch in zip(tables, batches, strict=True):
        began = clock()
        matcher.insert(table)
        inserted = clock()
        matcher.count(batch)
        insert += inserted - began
        match += clock() - inserted
    return (
        f"insert {insert / COMING * 1e6:,.0f}, match {match / COMING * 1e6:,.0f}, alone {alone / COMING * 1e6:,.0f} us"
    )


def draw(found: dict[str, dict[Any, Measured]], given: argparse.Namespace) -> None:
    """A row of pictures for each parameter."""
    from matplotlib.figure import Figure

    titles = ("time an event, ms", "read for an event", "building, s", "bytes a subscription")
    figure = Figure(figsize=(17, 3.2 * len(found)), layout="constrained")
    axes = figure.subplots(len(found), 4, squeeze=False)
    for row, (name, points) in zip(axes, found.items(), strict=True):
        for column, axis in enumerate(row):
            for number, kind in enumerate(given.kinds):
                own = [(value, measured[kind][column]) for value, measured in points.items() if kind in measured]
                axis.plot(*curve(own), color=f"C{number}", marker="o", markersize=3, label=kind)
            if min(points) > 0 and max(points) > 20 * min(points):
                axis.set_xscale("log")
            axis.set_yscale("log")
            axis.set_xlabel(SWEEPS[name].title)
            axis.set_ylabel(titles[column])
            axis.grid(True, alpha=0.25)
    axes[0][0].legend()
    figure.savefig(given.plot)
    print(f"\n{given.plot} written")


def curve(points: Sequence[tuple[Any, float]]) -> tuple[list[Any], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


if __name__ == "__main__":
    main()
