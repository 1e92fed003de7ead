"""Inserts and deletes of each kind: in turns with matching, and by the kind's own algorithm."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
from benchmarks.expressions import Made
from numpy.typing import NDArray
from workload import named

import colmatch as cm
from colmatch.arrays.frozen import contiguous
from colmatch.kernels.kinds.trees.arrays import NONE
from colmatch.kinds.registry import KINDS
from colmatch.updates import labels
from colmatch.updates.combined import combine
from experiments import checks
from experiments.entry import KINDS as NAMES
from experiments.facts import Row, of_events
from experiments.measuring import FEW, How, build

TURNS = "003-figure-5b-turns"
OWN = "003-own-deletes"
ABOUT = {
    TURNS: "document 003, figure 5b: subscriptions and events in turns, and deletes of what came",
    OWN: "inserts and deletes one by one by the algorithms of the documents, without the version around them",
}
SIZES = (1, 10, 100, 1000)  # subscriptions, and events, of a turn
COMING = 1000  # subscriptions, and events, of all turns
DYNAMIC: dict[str, Any] = {"construction": "dynamic"}
SHARE = 5  # one of so many subscriptions is deleted


def measured(name: str, how: How) -> list[Row]:
    """Returns the table with a name."""
    able = [kind for kind in how.kinds or NAMES if kind in KINDS and KINDS[kind].insert is not None]
    return list((in_turns if name == TURNS else alone)(able, how))


def in_turns(kinds: Sequence[str], how: How) -> Iterator[Row]:
    """Times 1,000 inserts in turns with as many events, then the deletes of what was inserted."""
    count = how.subscriptions
    workload = named("pstree-dense", subscriptions=count + COMING + 1)
    events = workload.events(COMING)
    told = of_events(events)
    checks.distinct(told)
    first = Made(workload.predicate_table(0, count), workload.schema(), events, {})
    for size in SIZES:
        tables = [workload.predicate_table(i, size) for i in range(count, count + COMING, size)]
        batches = [events.slice(i, size) for i in range(0, COMING, size)]
        for kind in kinds:
            matcher = build(first, kind, {})
            before = int(matcher.count(events).sum())
            # the first update compiles, and copies read-only arrays
            matcher.insert(workload.predicate_table(count + COMING))
            matcher.delete([count + COMING])
            row = {"turn": size, "kind": kind} | timed(matcher, tables, batches, count, how.clock)
            after = int(matcher.count(events).sum())
            checks.agreeing({f"{kind} before": before, f"{kind} after": after})
            checks.agreeing({"before": count, "after": len(matcher)})
            yield row | {"subscriptions_before": count, "subscriptions_after": len(matcher)} | told


def timed(
    matcher: cm.Matcher,
    tables: list[cm.PredicateTable],
    batches: list[pa.Table],
    first: int,
    clock: Callable[[], float],
) -> Row:
    """Returns microseconds of an inserted or deleted subscription, and of an event."""
    taken = dict.fromkeys(("match_alone_us", "insert_us", "match_us", "delete_us"), 0.0)

    def add(what: str, action: Callable[[], object]) -> None:
        began = clock()
        action()
        taken[what] += (clock() - began) / COMING * 1e6

    matcher.count(batches[0])
    for batch in batches:
        add("match_alone_us", lambda batch=batch: matcher.count(batch))
    for table, batch in zip(tables, batches, strict=True):
        add("insert_us", lambda table=table: matcher.insert(table))
        add("match_us", lambda batch=batch: matcher.count(batch))
    came = len(matcher) - first
    for i in range(len(tables)):
        size = COMING // len(tables)
        ids = list(range(first + i * size, first + (i + 1) * size))
        add("delete_us", lambda ids=ids: matcher.delete(ids))
    return {**taken, "inserted": came, "deleted": first + came - len(matcher)}


def alone(kinds: Sequence[str], how: How) -> Iterator[Row]:
    """Times inserts of conjunctions one by one, and deletes in no order, by the kinds' own code."""
    for _ in _alone(kinds, how._replace(subscriptions=FEW)):  # only to load kernels
        pass
    yield from _alone(kinds, how)


def _alone(kinds: Sequence[str], how: How) -> Iterator[Row]:
    workload = named("pstree-dense", subscriptions=how.subscriptions)
    made = Made(workload.predicate_table(), workload.schema(), workload.events(1), {})
    for name in kinds:
        kind = KINDS[name]
        if "construction" not in kind.settings.__dataclass_fields__ or not hasattr(kind.arrays, "at"):
            continue  # it has no inserts of its own, or does not say where conjunctions are
        settings = kind.settings(**DYNAMIC)
        segment = build(made, name, {})._set.now.segments[0]
        dense = combine([segment], [0], np.ones(segment.size, bool))
        predicates, codes = labels.with_labels(dense.by_subscription(), dense.codes)
        began = how.clock()
        arrays, predicates = kind.build(predicates, codes, None, settings)
        built = how.clock() - began
        count = len(predicates.owner)
        gone = contiguous(np.array(Random(0).sample(range(count), count // SHARE), np.int64))
        before = indexed(arrays.at)
        began = how.clock()
        arrays = kind.delete(arrays, predicates, codes, gone)
        taken = how.clock() - began
        after = indexed(arrays.at)
        if before != count or before - after != len(gone):
            raise checks.NotVariedError(f"{name}: {count:,} entered, {before:,} there, {after:,} left")
        yield {
            "kind": name,
            "subscriptions": how.subscriptions,
            "insert_us": built / count * 1e6,
            "delete_us": taken / len(gone) * 1e6,
            "deleted": len(gone),
            "entries_before": before,
            "entries_after": after,
        }


def indexed(at: NDArray[np.uint8] | NDArray[np.uint32]) -> int:
    """Counts the conjunctions in an index: those with a mark, or with a bucket of a tree."""
    return int((at != (NONE if at.dtype == np.uint32 else 0)).sum())
