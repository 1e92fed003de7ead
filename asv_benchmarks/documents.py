"""The source documents' comparisons, done again: one parameter after the other is changed, for every kind of index.

    python asv_benchmarks/documents.py --plot asv_benchmarks/pictures/documents.svg
    python asv_benchmarks/documents.py attributes equality --kinds scan opindex --subscriptions 1000000

For each value a table row and a point in the picture: milliseconds an event, seconds to build, bytes a subscription. Parameters that are
not changed are those of the PS-Tree document's table 1, but for fewer subscriptions. All kinds must find as many matches. Matching is
measured on one thread, kinds in turns, medians; building once.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from benchmarks.measure import machine, medians, one_thread, versions

import colmatch as cm
from colmatch.workload import Workload

# What is measured besides the kinds: a kind with other options.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "kindex-raw": ("kindex", {"enumerate": "raw"}),
    "opindex-bs": ("opindex", {"signatures": False}),
}
NAMES = [*cm.kinds(), *VARIANTS]
ROWS = 256  # events, all in one batch
COLUMNS = 100  # attributes that are columns; more are keys of a map
SLOW = 60.0  # seconds that measuring one point may take before no new round begins


class Sweep(NamedTuple):
    """One parameter and its values; ``change`` makes fields of ``Workload`` of one."""

    title: str
    values: tuple[Any, ...]
    change: Callable[[Any], dict[str, Any]]


def layout(attributes: int) -> str:
    return "map" if attributes > COLUMNS else "columns"


SWEEPS = {
    "subscriptions": Sweep("subscriptions", (10_000, 30_000, 100_000, 300_000, 1_000_000), lambda n: {"subscriptions": n}),
    "attributes": Sweep(
        "attributes", (100, 1000, 10_000, 30_000), lambda d: {"attributes": d, "layout": "map" if d > COLUMNS else "columns"}
    ),
    "size": Sweep("predicates of a subscription", (2, 5, 10, 20), lambda n: {"subscription_size": (n, n)}),
    "event": Sweep("pairs of an event", (10, 20, 30, 60, 90), lambda n: {"event_size": (n, n)}),
    "equality": Sweep("share of equalities", (0.0, 0.2, 0.5, 0.8, 1.0), lambda share: {"equality": share}),
    "cardinality": Sweep("cardinality", (10, 100, 10_000, 1_000_000), lambda n: {"cardinality": n}),
    "zipf": Sweep("exponent of Zipf's law, attributes and values", (0.0, 0.5, 1.0), lambda z: {"attribute_zipf": z, "value_zipf": z}),
}


class Figures(NamedTuple):
    """Of one kind at one value."""

    event: float  # milliseconds
    build: float  # seconds
    bytes: float  # a subscription


Measured = dict[str, Figures]  # by kind


def main() -> None:
    one_thread()
    given = arguments()
    print(machine())
    print(versions("colmatch", "numba", "numpy", "pyarrow"))
    for attributes in (COLUMNS, COLUMNS + 1):  # kernels are loaded, or compiled where that was never done, before anything is measured
        few = Workload(subscriptions=100, attributes=attributes, layout=layout(attributes))
        for kind in given.kinds:
            build(few, few.predicate_table(), kind).match(few.events(2))
    found = {name: sweep(SWEEPS[name], given) for name in given.sweeps}
    if given.plot:
        draw(found, given)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweeps", nargs="*", metavar="PARAMETER", help=f"all, or of {', '.join(SWEEPS)}")
    parser.add_argument("--kinds", nargs="+", default=NAMES, metavar="KIND", help=f"of {', '.join(NAMES)}; all by default")
    parser.add_argument("--subscriptions", type=int, default=100_000, metavar="N", help="where they are not what is changed")
    parser.add_argument("--repeat", type=int, default=5, metavar="R", help="rounds")
    parser.add_argument("--plot", metavar="FILE", help="draw all to a .svg or .png")
    given = parser.parse_args()
    given.sweeps = given.sweeps if given.sweeps and given.sweeps != ["all"] else list(SWEEPS)
    for names, known in ((given.sweeps, SWEEPS), (given.kinds, NAMES)):
        for name in names:
            if name not in known:
                parser.error(f"{name!r} is none of {', '.join(known)}")
    return given


def sweep(of: Sweep, given: argparse.Namespace) -> dict[Any, Measured]:
    print(f"\n| {of.title} | matches an event | {' | '.join(given.kinds)} |\n|{'---|' * (2 + len(given.kinds))}")
    return {value: point(of, value, given) for value in of.values}


def build(workload: Workload, table: cm.PredicateTable, name: str) -> cm.Matcher:
    kind, options = VARIANTS.get(name, (name, {}))
    return cm.Matcher.build(table, workload.schema(), index=kind, options=cm.Options(threads=1, batch_rows=ROWS, **options))


def point(of: Sweep, value: Any, given: argparse.Namespace) -> Measured:
    """Milliseconds, seconds and bytes of each kind, printed as a row of a table."""
    workload = Workload(**{"subscriptions": given.subscriptions, **of.change(value)})
    table, events = workload.predicate_table(), workload.events(ROWS)
    matchers, seconds, refused = {}, {}, {}
    for kind in given.kinds:
        began = time.perf_counter()
        try:
            matchers[kind] = build(workload, table, kind)
        except cm.OptionError:  # a kind that says that it would take too much
            refused[kind] = "refused"
        seconds[kind] = time.perf_counter() - began
    pairs = {kind: int(matcher.count(events).sum()) for kind, matcher in matchers.items()}
    if len(set(pairs.values())) > 1:
        raise SystemExit(f"{of.title} {value}: kinds find different numbers of pairs, {pairs}")
    taken = medians({kind: lambda matcher=matcher: matcher.match(events) for kind, matcher in matchers.items()}, given.repeat, SLOW)
    measured = {}
    for kind, matcher in matchers.items():
        measured[kind] = Figures(taken[kind] / ROWS * 1e3, seconds[kind], matcher.stats()["bytes_per_subscription"])
    cells = [
        f"{measured[kind].event:.3g} ms, {measured[kind].build:.2g} s, {measured[kind].bytes:.0f} B" if kind in measured else refused[kind]
        for kind in given.kinds
    ]
    print(f"| {value:,} | {next(iter(pairs.values())) / ROWS:,.1f} | {' | '.join(cells)} |", flush=True)
    return measured


def draw(found: dict[str, dict[Any, Measured]], given: argparse.Namespace) -> None:
    """A row of pictures for each parameter."""
    from matplotlib.figure import Figure

    titles = ("time an event, ms", "building, s", "bytes a subscription")
    figure = Figure(figsize=(13, 3.2 * len(found)), layout="constrained")
    axes = figure.subplots(len(found), 3, squeeze=False)
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
