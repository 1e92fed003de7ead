"""The best matches, settings of the trees, and what trees learn from events (BE*-Tree paper).

    python asv_benchmarks/relevance.py
    python asv_benchmarks/relevance.py settings --subscriptions 1000000
    python asv_benchmarks/relevance.py top-subscriptions top-probability
    python asv_benchmarks/relevance.py event-weights observed

Source: Sadoghi and Jacobsen, "Relevance Matters: Capitalizing on Less Top-k Matching in
Publish/Subscribe" (VII, tables II and III, figures 8 and 9). ``documents.py`` runs the paper's
other experiments. Each sweep is a CSV table, ``000-top-probability`` for instance, with the same
columns: microseconds an event, counters of an event, and measurements of what was drawn.
``attribute_zipf`` is the exponent of Zipf's law by which attributes are drawn.

Other parameters are those of the paper's table III (``workload.named("bestar")``), with fewer
subscriptions. All events of a batch differ (``experiments/cores.py``). Trees have the leaf capacity
that table II names for the probability of a match: 5, 20 or 160. A name like ``bestar-top5`` finds
the five best matches, with the weights of the paper. In ``event-weights`` events give weights, too,
as in the paper's score. ``observed`` has no parallel in the paper: it shows what it costs to
observe events, and how the index is when events have changed.

Matching is measured on one thread, in batches of 1,024, with kinds in turns: medians of processor
time. Building is measured once.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from benchmarks.expressions import Made
from benchmarks.measure import machine, medians, one_thread, versions
from experiments import checks, giving
from experiments.cores import likely
from experiments.entry import of_workload
from experiments.facts import Row, facts
from experiments.measuring import counters_of, each, one_by_one
from experiments.tables import RESULTS, write
from workload import Workload, named

import colmatch as cm

ROWS = 1024  # events, all in one batch
TOP = tuple(f"{kind}{top}" for kind in ("kindex", "bestar", "bitslice") for top in ("", "-top1", "-top5"))
PROBABLE = ((0.01, 5), (0.1, 20), (1.0, 160))  # probability of a match, below which this capacity is best
SLOW = 60.0  # seconds: when a point has taken so long, no new round begins


class Sweep(NamedTuple):
    """One parameter and its values; ``change`` takes one and returns fields of ``Workload``."""

    axis: str
    values: tuple[Any, ...]
    change: Callable[[Any], dict[str, Any]]


SWEEPS = {
    "top-subscriptions": Sweep("subscriptions", (1, 3, 10), lambda n: {"subscriptions": n}),
    "top-probability": Sweep("probability", (0.0001, 0.001, 0.01, 0.09), lambda p: likely(p, ROWS)),
}
# Settings of BE*-Tree, one changed at a time, and of BE-Tree: halves of codes adapt to the data.
SETTINGS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("bestar", {}),
    *(("bestar", {"capacity": n}) for n in (20, 160)),
    *(("bestar", {"alpha": n}) for n in (1, 30, 50)),
    # beta matters only where buckets are enlarged, so only in a tree that grows
    *(("bestar", {"construction": "dynamic", "beta": n}) for n in (1, 2, 16)),
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
# The best matches where events give weights to their attributes (``giving.LAWS``).
WEIGHED = "event-weights"
GIVEN = "given"  # the column of these weights
BEST = ("bestar", "bestar-top1", "bestar-top5", "betree-top5", "kindex-top5", "bitslice-top5")
KINDS = tuple(dict.fromkeys(TOP + BEST))
# Matching with a window of events and without, and counters after events have changed.
OBSERVED = "observed"
OFTEN = 96  # times that events are matched, which fill the window
BUILT, CHANGED, COMPACTED = STAGES = ("as built", "changed", "compacted")
ABOUT = {
    "top-subscriptions": "document 000, figure 8: the k best by workload size",
    "top-probability": "document 000, figure 9: the k best by matching probability",
    MICRO: "document 000, VII.B: settings of the trees, one changed at a time; capacity 5",
    FEEDBACK: "conjunctions of `dense` ranked by the domain, and by a window of other events; capacity 160",
    WEIGHED: "the best matches where events give weights to their attributes; capacity 160",
    OBSERVED: "`dense` with and without observed events: as built, after these have changed, compacted; capacity 160",
}


def main() -> None:
    one_thread()
    given = arguments()
    print(machine())
    print(versions("colmatch", "numba", "numpy", "pyarrow"))
    few = workload({}, 0.0, 100)
    for name in given.kinds or KINDS:  # load kernels before anything is measured
        matcher = build(name, few, few.predicate_table(), 5)
        finder(name, matcher)(few.events(2))
    for name in given.sweeps:
        began = time.perf_counter()
        if name in ONCE:
            rows = ONCE[name](given)
        else:
            laws = (micro(zipf, given) if name == MICRO else sweep(SWEEPS[name], zipf, given) for zipf in (0.0, 1.0))
            rows = [row for law in laws for row in law]
        if name in SWEEPS:
            checks.varied(rows, ["attribute_zipf", SWEEPS[name].axis])
        path = write(given.results, f"000-{name}", rows, time.perf_counter() - began, ABOUT[name])
        print(f"{path}: {ABOUT[name]}, {len(rows)} rows", flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*SWEEPS, MICRO, *ONCE]
    parser.add_argument("sweeps", nargs="*", metavar="PARAMETER", help=f"all, or of {', '.join(names)}")
    parser.add_argument("--kinds", nargs="+", metavar="KIND", help=f"of {', '.join(KINDS)}")
    parser.add_argument(
        "--subscriptions", type=int, default=100_000, metavar="N", help="or a multiple, where they vary"
    )
    parser.add_argument("--repeat", type=int, default=5, metavar="R", help="rounds")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER", help="where the tables go")
    given = parser.parse_args()
    given.sweeps = given.sweeps if given.sweeps and given.sweeps != ["all"] else names
    for named_, known in ((given.sweeps, names), (given.kinds or [], KINDS)):
        for name in named_:
            if name not in known:
                parser.error(f"{name!r} is none of {', '.join(known)}")
    return given


def workload(change: dict[str, Any], zipf: float, subscriptions: int) -> Workload:
    return named("bestar", **{"subscriptions": subscriptions, "attribute_zipf": zipf, "weights": True, **change})


def build(
    name: str, of: Workload, table: cm.PredicateTable, capacity: int, change: Any = None, observe: int = 0
) -> cm.Matcher:
    kind, _, rest = name.partition("-")
    settings = {"capacity": capacity} if kind in ("betree", "bestar") else {}
    settings |= change or {}
    if rest == "dynamic":
        settings["construction"] = "dynamic"
    sample = None
    if rest == FEEDBACK:
        settings["ranking"], sample = rest, of.events(SEEN, start=ROWS)
    options = cm.Options(threads=1, batch_rows=ROWS, observe=observe)
    return cm.Matcher.build(table, of.schema(), index=cm.index(kind, **settings), options=options, sample=sample)


def finder(name: str, matcher: cm.Matcher) -> Callable[[pa.Table], object]:
    _, top, k = name.partition("-top")
    return (lambda some: matcher.match_topk(some, int(k), "dot", weights_of(some))) if top else matcher.match


def weights_of(events: pa.Table) -> str | None:
    return GIVEN if GIVEN in events.schema.names else None


def read(name: str, matcher: cm.Matcher, events: pa.Table) -> Row:
    """Returns counters of an event; for k-index, nodes are entries of lists."""
    _, _, k = name.partition("-top")
    best = {"k": int(k), "event_weights": weights_of(events)} if k else {}
    return counters_of(events, lambda some: matcher.counters(some, **best))


def capacity_for(change: dict[str, Any]) -> int:
    probability = change["planted"] / change["around"] if "planted" in change else 0.001
    return next((capacity for most, capacity in PROBABLE if probability < most), PROBABLE[-1][1])


def sweep(of: Sweep, zipf: float, given: argparse.Namespace) -> Iterator[Row]:
    kinds = [kind for kind in given.kinds or TOP if kind in TOP]
    for value in of.values:
        asked = round(value * given.subscriptions) if of.axis == "subscriptions" else value
        change = of.change(asked)
        made, work = drawn(workload(change, zipf, given.subscriptions))
        matchers = {kind: build(kind, work, made.subscriptions, capacity_for(change)) for kind in kinds}
        for row in figures(matchers, made, given):
            yield {"attribute_zipf": zipf, of.axis: asked, **row}


def drawn(work: Workload) -> tuple[Made, Workload]:
    return of_workload(work, ROWS), work


def figures(
    matchers: dict[str, cm.Matcher], made: Made, given: argparse.Namespace, weights: pa.Array | None = None
) -> Iterator[Row]:
    """Yields a row for each matcher, measured in turns; all must find the same number of matches.

    weights : weights that events give, where the best matches are looked for
    """
    told, events = facts(made), made.events
    checks.distinct(told)
    if weights is not None:
        told, events = told | giving.of_weights(weights), events.append_column(GIVEN, weights)
    found = {kind: int(matcher.count(events).sum()) for kind, matcher in matchers.items()}
    checks.agreeing(found)
    matches = next(iter(found.values())) / ROWS
    told |= {"matches": matches, "probability_found": matches / told["subscriptions_made"]}
    single = one_by_one(events)
    taken, alone = (in_turns(matchers, some, given.repeat) for some in ([events], single))
    first = next(iter(taken))
    for name, matcher in matchers.items():
        timed = {"us": taken[name] / ROWS * 1e6, "ratio": taken[name] / taken[first], "ratio_to": first}
        timed["us_alone"] = alone[name] / len(single) * 1e6
        size = {"bytes": matcher.stats()["bytes_per_subscription"]}
        yield {"kind": name, **timed, **size, **read(name, matcher, events), **told}


def in_turns(matchers: dict[str, cm.Matcher], some: list[pa.Table], repeat: int) -> dict[str, float]:
    """Returns the seconds of the processor that each matcher needs for some tables of events."""
    actions = {name: each(finder(name, matcher), some) for name, matcher in matchers.items()}
    return medians(actions, repeat, SLOW, time.process_time)


def micro(zipf: float, given: argparse.Namespace) -> Iterator[Row]:
    """Measures other settings of the trees, with the time to build."""
    made, work = drawn(workload({}, zipf, given.subscriptions))
    matchers, built, asked = {}, {}, {}
    for kind, settings in SETTINGS:
        name = f"{kind} {settings}" if settings else kind
        began = time.process_time()
        matchers[name] = build(kind, work, made.subscriptions, 5, settings)
        built[name], asked[name] = time.process_time() - began, (kind, settings)
    rows = list(figures(matchers, made, given))
    driven([(*asked[row["kind"]], row) for row in rows])
    for row in rows:
        yield {"attribute_zipf": zipf, **row, "build_s": built[row["kind"]]}


def driven(rows: list[tuple[str, dict[str, Any], Row]]) -> None:
    """Refuses a setting that changes neither a counter nor the memory of the index.

    The setting is the last one of its row. It is compared with rows whose other settings are the
    same.
    """
    for kind, settings, _ in rows:
        name = next(reversed(settings), None)
        rest = {key: value for key, value in settings.items() if key != name}
        beside = [
            row
            for other, given, row in rows
            if other == kind and {key: value for key, value in given.items() if key != name} == rest
        ]
        seen = {tuple(row[what] for what in ("bytes", "nodes", "conjunctions", "candidates")) for row in beside}
        if name and len(seen) < 2:
            raise checks.NotVariedError(f"{kind} {settings}: {name} changes no counter, nor what the index takes")


def feedback(given: argparse.Namespace) -> list[Row]:
    """Measures ``dense`` with ranking by the domain, and by a window of events."""
    rows = []
    for change in DRAWN:
        made, work = drawn(named("dense", subscriptions=given.subscriptions, **change))
        matchers = {name: build(name, work, made.subscriptions, 160) for name in RANKED}
        laws = {law: change.get(law, 0.0) for law in ("attribute_zipf", "value_zipf")}
        rows += [laws | row for row in figures(matchers, made, given)]
    checks.varied(rows, ["attribute_zipf", "value_zipf"])
    return rows


def event_weights(given: argparse.Namespace) -> list[Row]:
    """Measures the best matches for several laws of the weights that events give."""
    kinds = [kind for kind in given.kinds or BEST if kind in BEST]
    rows = []
    for name in ("bestar", "dense"):
        made, work = drawn(named(name, subscriptions=given.subscriptions, weights=True))
        matchers = {kind: build(kind, work, made.subscriptions, 160) for kind in kinds}
        for law in giving.LAWS:
            point = {"workload": name, "events_give": law}
            rows += [point | row for row in figures(matchers, made, given, giving.weights(law, made.events))]
    checks.varied(rows, ["workload", "events_give"])
    return rows


def observed(given: argparse.Namespace) -> list[Row]:
    """Measures trees with a window of events and without, before and after events have changed.

    The values that are frequent after the change were rare before. The changed events are matched
    until the window has no others, and ``compact`` goes by them.
    """
    made, work = drawn(named("dense", subscriptions=given.subscriptions, value_zipf=1.0))
    later = giving.mirrored(work.events(2 * SEEN, start=ROWS), work.cardinality)
    rows = []
    for name in RANKED:
        asked = {f"{name}, observe={most}": most for most in (0, SEEN)}
        matchers = {called: build(name, work, made.subscriptions, 160, observe=most) for called, most in asked.items()}
        for stage in STAGES:
            for matcher in matchers.values():
                for _ in range(OFTEN if stage != CHANGED else 0):  # until the window has no other events
                    matcher.count(made.events if stage == BUILT else later)
                if stage == COMPACTED:
                    matcher.compact()
            now = made if stage == BUILT else made._replace(events=later.slice(0, ROWS))
            for row in figures(matchers, now, given):
                point = {"stage": stage, "observe": asked[row["kind"]]}
                seen = {"observed": matchers[row["kind"]].stats()["observed"]}
                rows.append({**point, **row, "kind": name, **seen, **giving.of_values(now.events, work.cardinality)})
    checks.varied(rows, ["stage", "observe"])
    followed(rows)
    return rows


def followed(rows: list[Row]) -> None:
    """Refuses an index that goes by observed events, but has not changed with them.

    An index that does not go by them must not have changed.
    """
    for name in dict.fromkeys(row["kind"] for row in rows):
        for most in (0, SEEN):
            looked = {
                row["stage"]: (row["nodes"], row["conjunctions"], row["candidates"])
                for row in rows
                if (row["kind"], row["observe"]) == (name, most)
            }
            moved, goes = looked[COMPACTED] != looked[CHANGED], most > 0 and name.endswith(FEEDBACK)
            if moved != goes:
                raise checks.NotVariedError(
                    f"{name}, observe={most}: compact() must{'' if goes else ' not'} change counters, {looked}"
                )


ONCE: dict[str, Callable[[argparse.Namespace], list[Row]]] = {
    FEEDBACK: feedback,
    WEIGHED: event_weights,
    OBSERVED: observed,
}


if __name__ == "__main__":
    main()
