"""The experiments of the BE*-Tree document, done again beside all kinds of index.

    python asv_benchmarks/relevance.py
    python asv_benchmarks/relevance.py cardinality --kinds betree bestar --subscriptions 1000000
    python asv_benchmarks/relevance.py top-subscriptions top-probability

Source: Sadoghi and Jacobsen, "Relevance Matters: Capitalizing on Less Top-k Matching in
Publish/Subscribe" (VII, tables II and III, figures 6 to 9). For each value of a parameter a row of
a table: microseconds an event, and, where conjunctions are looked at one by one, how many of them
and of nodes. These are the same on every machine. ``uniform`` and ``zipf`` say how attributes are
drawn.

Parameters that are not changed are those of the document's table III
(``workload.named("bestar")``), but for fewer subscriptions. Trees have the leaf capacity that table
II names for the probability of a match: 5, 20 or 160. ``bestar`` is built at once (BE*-B),
``bestar-dynamic`` one by one (BE*). A name like ``bestar-top5`` finds the five best matches, with
the document's weights. Matching is measured on one thread, in batches of 1,024, kinds in turns,
medians of the processor's time; building once.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from benchmarks.measure import machine, medians, one_thread, versions

import colmatch as cm
from colmatch.workload import Workload, named

ROWS = 1024  # events, all in one batch
MATCHING = ("scan", "kindex", "propagation", "opindex", "betree", "bestar", "bestar-dynamic", "bitslice")
TOP = tuple(f"{kind}{top}" for kind in ("kindex", "bestar", "bitslice") for top in ("", "-top1", "-top5"))
LISTED = ("kindex", "propagation", "opindex")  # kinds that look at entries of lists, not at conjunctions
PROBABLE = ((0.01, 5), (0.1, 20), (1.0, 160))  # probability of a match, below which this capacity is best
SLOW = 60.0  # seconds that measuring one point may take before no new round begins


class Sweep(NamedTuple):
    """One parameter and its values; ``change`` takes one and returns fields of ``Workload``."""

    title: str
    values: tuple[Any, ...]
    change: Callable[[Any], dict[str, Any]]
    kinds: tuple[str, ...] = MATCHING


def likely(probability: float) -> dict[str, Any]:
    """Subscriptions planted so that each event matches this share of all."""
    around = max(1, min(ROWS, int(1 / probability)))
    return {"planted": probability * around, "around": around}


def large(n: int) -> dict[str, Any]:
    return {"subscriptions": n}


SIZES = (100_000, 300_000, 1_000_000)
SWEEPS = {
    "subscriptions": Sweep("subscriptions", SIZES, large),
    "attributes": Sweep("attributes", (50, 400, 1400), lambda n: {"attributes": n}),
    "cardinality": Sweep(
        "cardinality", (2_500, 250_000, 250_000_000), lambda n: {"cardinality": n, "width": (0.0, 10 / n)}
    ),
    "clusters": Sweep("clusters of values, 0 for none", (2, 4, 10, 26, 0), lambda n: {"clusters": n}),
    "cluster-size": Sweep("size of a cluster", (25, 100, 400, 800), lambda n: {"cluster_size": n}),
    "size": Sweep(
        "predicates of a subscription, pairs of an event",
        ((5, 13), (16, 26), (66, 81)),
        lambda sizes: {"subscription_size": (sizes[0],) * 2, "event_size": (sizes[1],) * 2},
    ),
    "probability": Sweep("probability of a match", (0.0001, 0.001, 0.01, 0.09), likely),
    "top-subscriptions": Sweep("subscriptions", SIZES, large, TOP),
    "top-probability": Sweep("probability of a match", (0.0001, 0.001, 0.01, 0.09), likely, TOP),
}
# Settings of BE*-Tree, one changed at a time, and of BE-Tree: halves of codes adapt to the data.
SETTINGS: tuple[tuple[str, dict[str, Any]], ...] = (
    *(("bestar", {"capacity": n}) for n in (5, 20, 160)),
    *(("bestar", {"alpha": n}) for n in (1, 30, 50)),
    *(("bestar", {"beta": n}) for n in (1, 2, 16)),
    ("bestar", {"split": "approximate"}),
    ("bestar", {"ranking": "popularity"}),
    ("bestar", {"short_circuit": False}),
    ("bestar", {"construction": "dynamic"}),
    ("betree", {}),
    ("betree", {"ranking": "popularity"}),
    ("betree", {"halves": "codes"}),
)
MICRO = "settings"
# The ranking by feedback, where it goes by what other events of the workload have.
FEEDBACK = "feedback"
DRAWN: tuple[dict[str, Any], ...] = ({}, {"attribute_zipf": 1.0}, {"value_zipf": 1.0}, {"value_zipf": 2.0})
RANKED = ("betree", "betree-feedback", "bestar", "bestar-feedback")
SEEN = 4096  # events of the window


def main() -> None:
    one_thread()
    given = arguments()
    print(machine())
    print(versions("colmatch", "numba", "numpy", "pyarrow"))
    few = workload({}, 0.0, 100)
    for name in given.kinds or dict.fromkeys(MATCHING + TOP):  # kernels are loaded before anything is measured
        matcher = build(name, few, few.predicate_table(), 5)
        action(name, matcher, few.events(2))()
    if FEEDBACK in given.sweeps:
        feedback(given)
    for name in given.sweeps:
        if name == FEEDBACK:
            continue
        for zipf in (0.0, 1.0):
            micro(zipf, given) if name == MICRO else sweep(SWEEPS[name], zipf, given)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*SWEEPS, MICRO, FEEDBACK]
    parser.add_argument("sweeps", nargs="*", metavar="PARAMETER", help=f"all, or of {', '.join(names)}")
    parser.add_argument("--kinds", nargs="+", metavar="KIND", help=f"of {', '.join(dict.fromkeys(MATCHING + TOP))}")
    parser.add_argument(
        "--subscriptions", type=int, default=100_000, metavar="N", help="where they are not what is changed"
    )
    parser.add_argument("--repeat", type=int, default=5, metavar="R", help="rounds")
    given = parser.parse_args()
    given.sweeps = given.sweeps if given.sweeps and given.sweeps != ["all"] else names
    for named_, known in ((given.sweeps, names), (given.kinds or [], MATCHING + TOP)):
        for name in named_:
            if name not in known:
                parser.error(f"{name!r} is none of {', '.join(known)}")
    return given


def workload(change: dict[str, Any], zipf: float, subscriptions: int) -> Workload:
    return named("bestar", **{"subscriptions": subscriptions, "attribute_zipf": zipf, "weights": True, **change})


def some_events(of: Workload) -> pa.Table:
    """Returns the events that subscriptions are planted around, again and again."""
    events = of.events(min(of.around, ROWS))
    return pa.concat_tables([events] * -(-ROWS // events.num_rows)).slice(0, ROWS).combine_chunks()


def build(name: str, of: Workload, table: cm.PredicateTable, capacity: int, change: Any = None) -> cm.Matcher:
    kind, _, rest = name.partition("-")
    settings = {"capacity": capacity} if kind in ("betree", "bestar") else {}
    settings |= change or {}
    if rest == "dynamic":
        settings["construction"] = "dynamic"
    sample = None
    if rest == FEEDBACK:
        settings["ranking"], sample = rest, of.events(SEEN, start=ROWS)
    options = cm.Options(threads=1, batch_rows=ROWS)
    return cm.Matcher.build(table, of.schema(), index=cm.index(kind, **settings), options=options, sample=sample)


def action(name: str, matcher: cm.Matcher, events: pa.Table) -> Callable[[], Any]:
    _, top, k = name.partition("-top")
    return (lambda: matcher.match_topk(events, int(k))) if top else (lambda: matcher.match(events))


def read(name: str, matcher: cm.Matcher, events: pa.Table) -> str:
    kind, _, k = name.partition("-top")
    counted = matcher.counters(events, k=int(k) if k else None)
    if kind in LISTED:
        return f"{counted['nodes'] / ROWS:,.0f} entries"
    nodes = f", {counted['nodes'] / ROWS:,.0f} nodes" if kind.startswith("be") else ""
    return f"{counted['conjunctions'] / ROWS:,.0f} conjunctions{nodes}"


def capacity_for(change: dict[str, Any]) -> int:
    probability = change["planted"] / change["around"] if "planted" in change else 0.001
    return next((capacity for most, capacity in PROBABLE if probability < most), PROBABLE[-1][1])


def sweep(of: Sweep, zipf: float, given: argparse.Namespace) -> None:
    kinds = [kind for kind in given.kinds or of.kinds if kind in of.kinds]
    law = "zipf" if zipf else "uniform"
    print(f"\n| {of.title}, {law} | matches an event | {' | '.join(kinds)} |\n|{'---|' * (2 + len(kinds))}")
    for value in of.values:
        change = of.change(value)
        work = workload(change, zipf, given.subscriptions)
        table, events = work.predicate_table(), some_events(work)
        matchers = {kind: build(kind, work, table, capacity_for(change)) for kind in kinds}
        cells = list(row(matchers, events, given))
        print(f"| {value} | {matches(matchers, events):,.1f} | {' | '.join(cells)} |", flush=True)


def matches(matchers: dict[str, cm.Matcher], events: pa.Table) -> float:
    """Returns how many matches an event has, on which all kinds must agree."""
    found = {kind: int(matcher.count(events).sum()) for kind, matcher in matchers.items()}
    if len(set(found.values())) > 1:
        raise SystemExit(f"kinds find different numbers of pairs, {found}")
    return next(iter(found.values())) / ROWS


def row(matchers: dict[str, cm.Matcher], events: pa.Table, given: argparse.Namespace) -> Iterator[str]:
    actions = {name: action(name, matcher, events) for name, matcher in matchers.items()}
    taken = medians(actions, given.repeat, SLOW, time.process_time)
    for name, matcher in matchers.items():
        yield f"{taken[name] / ROWS * 1e6:,.1f} us, {read(name, matcher, events)}"


def micro(zipf: float, given: argparse.Namespace) -> None:
    """The micro experiments: other settings of the trees, with the time to build."""
    work = workload({}, zipf, given.subscriptions)
    table, events = work.predicate_table(), some_events(work)
    law = "zipf" if zipf else "uniform"
    print(f"\n| settings, {law} | building, s | bytes a subscription | matching |\n|---|---|---|---|")
    named_, built = {}, {}
    for kind, settings in SETTINGS:
        name = f"{kind} {settings}" if settings else kind
        began = time.process_time()
        named_[name] = build(kind, work, table, 5, settings)
        built[name] = time.process_time() - began
    for name, cell in zip(named_, row(named_, events, given), strict=True):
        size = named_[name].stats()["bytes_per_subscription"]
        print(f"| `{name}` | {built[name]:.2f} | {size:.0f} | {cell} |", flush=True)
    matches(named_, events)


def feedback(given: argparse.Namespace) -> None:
    """Conjunctions of ``dense`` by the domain, and by a window of events; the default capacity."""
    print(f"\n| `dense` | matches an event | {' | '.join(RANKED)} |\n|{'---|' * (2 + len(RANKED))}")
    for change in DRAWN:
        work = named("dense", subscriptions=given.subscriptions, **change)
        table, events = work.predicate_table(), work.events(ROWS)
        matchers = {name: build(name, work, table, 160) for name in RANKED}
        cells = [
            f"{cell}, {matchers[name].counters(events)['candidates'] / ROWS:,.0f} verified"
            for name, cell in zip(RANKED, row(matchers, events, given), strict=True)
        ]
        print(f"| {change or ''} | {matches(matchers, events):,.1f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
