"""The run of an experiment, which draws, builds, checks and times each of its points."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
from benchmarks.expressions import Made
from benchmarks.measure import medians

import colmatch as cm
from colmatch.kinds.registry import KINDS
from experiments import checks
from experiments.entry import SCAN, VARIANTS, Experiment
from experiments.facts import Row, facts

FEW = 100  # subscriptions of the matchers that only load kernels
COUNTED = ("nodes", "conjunctions", "candidates", "predicates")
ALONE = 64  # events of a batch that are also matched one by one
SLOW = 60.0  # seconds: when a point has taken so long, no new round begins


class How(NamedTuple):
    """The amount of measuring, and the clock."""

    subscriptions: int
    repeat: int
    clock: Callable[[], float]
    kinds: Sequence[str] | None = None  # kinds to measure; None for all of the experiment
    alone: bool = False  # measure one kind after the other, since all together do not fit into memory


def measured(experiment: Experiment, how: How) -> list[Row]:
    """Returns the table: a row for each point and kind.

    Raises
    ------
    NotVariedError : events repeat, kinds disagree, or a parameter has not had its effect
    """
    kinds = [kind for kind in experiment.kinds if how.kinds is None or kind in how.kinds]
    if not kinds:
        return []
    _warm(experiment, kinds)
    rows: list[Row] = []
    for values, some in experiment.points(how.subscriptions):
        made = experiment.draw(values, how.subscriptions)
        told = facts(made)
        checks.distinct(told)
        matchings: dict[str, int] = {}
        for asked in some:
            settings = experiment.settings | asked
            found = list(_point(made, kinds, settings, how, matchings))
            checks.agreeing(matchings)
            each = next(iter(matchings.values())) / told["events"]
            told |= {"matches": each, "probability_found": each / told["subscriptions_made"]}
            rows += [values | asked | row | told for row in found]
    checks.varied(rows, experiment.axes)
    return rows


def _warm(experiment: Experiment, kinds: Sequence[str]) -> None:
    """Loads kernels, or compiles them on first use, before anything is measured."""
    values, some = next(experiment.points(FEW))
    made = experiment.draw(values, FEW)
    for kind in kinds:
        matcher = build(made, kind, experiment.settings | some[-1])
        matcher.count(made.events)
        matcher.match(made.events)


def build(made: Made, name: str, settings: Row) -> cm.Matcher:
    """Builds a kind, with those of the settings that it knows."""
    kind, own = VARIANTS.get(name, (name, {}))
    able = {key for key in settings if key in KINDS[kind].settings.__dataclass_fields__}
    given = made.settings | own | {key: settings[key] for key in able}
    options = cm.Options(threads=1, batch_rows=made.events.num_rows)
    return cm.Matcher.build(made.subscriptions, made.schema, index=cm.index(kind, **given), options=options)


def _point(made: Made, kinds: Sequence[str], settings: Row, how: How, matchings: dict[str, int]) -> Iterator[Row]:
    """Measures kinds in turns, and yields a row for each; ``matchings`` is added to."""
    reference = SCAN if SCAN in kinds else kinds[0]
    base = 0.0
    for together in [[kind] for kind in kinds] if how.alone else [kinds]:
        built, rows = {}, {}
        for kind in together:
            gc.collect()
            began = how.clock()
            try:
                built[kind] = build(made, kind, settings)
            except cm.OptionError as reason:
                rows[kind] = {"kind": kind, "refused": str(reason)}
                continue
            rows[kind] = {"kind": kind, "build_s": how.clock() - began} | _counted(built[kind], made.events)
            matchings[kind] = int(built[kind].count(made.events).sum())
        single = one_by_one(made.events)
        taken, alone = (
            medians({kind: each(matcher.match, some) for kind, matcher in built.items()}, how.repeat, SLOW, how.clock)
            for some in ([made.events], single)
        )
        base = taken.get(reference, base)
        for kind, row in rows.items():
            timed = {}
            if kind in taken:
                timed = {"us": taken[kind] / made.events.num_rows * 1e6, "ratio": taken[kind] / base}
                timed |= {"us_alone": alone[kind] / len(single) * 1e6}
            yield {"kind": kind, **timed, "ratio_to": reference, **row, "refused": row.get("refused", "")}


def _counted(matcher: cm.Matcher, events: pa.Table) -> Row:
    """Returns bytes of a subscription, and counters of an event, which do not depend on load."""
    return {"bytes": matcher.stats()["bytes_per_subscription"], **counters_of(events, matcher.counters)}


def counters_of(events: pa.Table, count: Callable[[pa.Table], Mapping[str, int]]) -> Row:
    """Returns counters of an event, among all events and by itself.

    Trees and OpIndex look at the events of a batch in tiles of 64, so alike events share work.
    ``nodes_alone`` and ``conjunctions_alone`` are of events that are matched one by one.
    """
    together = count(events)
    found: Row = {name: together.get(name, 0) / events.num_rows for name in COUNTED}
    single = [count(one) for one in one_by_one(events)]
    return found | {f"{name}_alone": sum(one.get(name, 0) for one in single) / len(single) for name in COUNTED[:2]}


def one_by_one(events: pa.Table) -> list[pa.Table]:
    """Returns tables of one event each, drawn evenly from a batch."""
    step = max(events.num_rows // ALONE, 1)
    return [events.slice(row, 1) for row in range(0, events.num_rows, step)]


def each(call: Callable[[pa.Table], object], events: Sequence[pa.Table]) -> Callable[[], None]:
    """Returns a function that calls another with one table after the other."""

    def run() -> None:
        for some in events:
            call(some)

    return run
