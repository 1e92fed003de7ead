"""The run of an experiment, which draws, builds, checks and times each of its points."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from benchmarks.expressions import Made
from benchmarks.measure import medians

import colmatch as cm
from colmatch.indexing.registry import KINDS
from experiments import checks
from experiments.entry import SCAN, VARIANTS, Experiment
from experiments.facts import Row, facts

FEW = 100  # subscriptions of the matchers that only load kernels
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
        actions: dict[str, Callable[[], Any]] = {
            kind: lambda matcher=matcher: matcher.match(made.events) for kind, matcher in built.items()
        }
        taken = medians(actions, how.repeat, SLOW, how.clock)
        base = taken.get(reference, base)
        for kind, row in rows.items():
            timed = {}
            if kind in taken:
                timed = {"us": taken[kind] / made.events.num_rows * 1e6, "ratio": taken[kind] / base}
            yield {"kind": kind, **timed, "ratio_to": reference, **row, "refused": row.get("refused", "")}


def _counted(matcher: cm.Matcher, events: pa.Table) -> Row:
    """Returns bytes of a subscription, and counters of an event, which do not depend on load."""
    counted = matcher.counters(events)
    read = {
        name: counted.get(name, 0) / events.num_rows for name in ("nodes", "conjunctions", "candidates", "predicates")
    }
    return {"bytes": matcher.stats()["bytes_per_subscription"], **read}
