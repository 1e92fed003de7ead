"""What one would do without colmatch, as well as it can be done in a few lines.

A *system* is prepared with a workload, then with events, neither of which is timed; what it gives
back finds all pairs of event and matching subscription, and is. The events are there in the form
that it likes best, see ``conjunctions.Events``; only colmatch reads Arrow each time. Pairs are two
integer arrays, in any order. What does not understand a workload, or the events, raises
NotImplementedError.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from benchmarks import joins
from benchmarks.conjunctions import Events, conjunctions
from benchmarks.measure import within
from benchmarks.systems import Match, Pairs, Part, System
from benchmarks.workloads import Workload


def matcher(workload: Workload, index: str = "auto") -> Any:
    """colmatch itself, on one thread."""
    import colmatch as cm

    given = workload.subscriptions
    threads = {"threads": 1} if "threads" in {field.name for field in dataclasses.fields(cm.Options)} else {}
    options = cm.Options(**threads)
    return cm.Matcher.build(
        cm.PredicateTable(given) if isinstance(given, pa.Table) else given,
        workload.schema,
        index=index,
        options=options,
    )


def colmatch(workload: Workload, index: str = "auto") -> Callable[[Events], Match]:
    """``Matcher.match`` of a table."""
    return matching(matcher(workload, index))


def matching(made: Any) -> Callable[[Events], Match]:
    """A matcher as a system."""

    def ready(events: Events) -> Match:
        def run() -> Pairs:
            table = made.match(events.table)
            return Pairs(table["event"].to_numpy(), table["subscription"].to_numpy())

        return run

    return ready


def prototype(workload: Workload) -> Callable[[Events], Match]:
    """``prototype.py``: bit masks over the rows of a batch, and nothing else."""
    from benchmarks import prototype

    attributes = len(workload.events.column_names)
    given = conjunctions(workload)
    if workload.events.column_names == ["attrs"] or attributes * (given.top + 2) > 1 << 18:
        raise NotImplementedError("tables of every attribute and value are too large")
    index = prototype.build(given.first, given.attr, given.lo, given.hi, attributes, given.top + 1)
    find = prototype.matcher(index, attributes, given.top + 1)

    def ready(events: Events) -> Match:
        grid = events.grid

        def run() -> Pairs:
            row, sub = find(grid)
            return Pairs(row, sub)

        return run

    return ready


def roofline(workload: Workload) -> Callable[[Events], Match]:
    """What no matcher can beat.

    It writes as many pairs as there are, 16 bytes each, and reads the index once.
    """
    made = matcher(workload)
    index = np.ones(int(made.stats()["bytes"]) // 8, np.uint64)

    def ready(events: Events) -> Match:
        known = matching(made)(events)()
        event, subscription = np.empty(len(known.event), np.int64), np.empty(len(known.event), np.int64)

        def run() -> Pairs:
            index.sum()
            event.fill(1)
            subscription.fill(1)
            return known

        return run

    return ready


def pyarrow_filters(workload: Workload) -> Callable[[Events], Match]:
    """A loop over the subscriptions: one pyarrow.compute expression each, which filters the columns
    that it uses.

    A filter over all columns takes several times as long, for their copies; calling the compute
    functions one by one, about as long.
    """
    wanted = expressions(workload)

    def ready(events: Events) -> Match:
        numbered = events.table.append_column("event", pa.array(np.arange(len(events))))
        filters = [(sub, numbered.select(["event", *columns]), condition) for sub, columns, condition in wanted]

        def run() -> Pairs:
            return joined([(sub, table.filter(condition)["event"].to_numpy()) for sub, table, condition in filters])

        return run

    return ready


def expressions(workload: Workload) -> list[tuple[int, list[str], pc.Expression]]:
    """Subscription, columns, condition."""
    if isinstance(workload.subscriptions, pa.Table):
        if workload.events.column_names == ["attrs"]:
            raise NotImplementedError("attributes are no columns")
        made = []
        for sub, rule in rules(workload):
            tests = [
                (pc.field(f"a{a}") >= lo) & (pc.field(f"a{a}") <= hi) if lo != hi else pc.field(f"a{a}") == lo
                for a, lo, hi in rule
            ]
            made.append((sub, [f"a{a}" for a, _, _ in rule], functools.reduce(operator.and_, tests)))
        return made
    from colmatch.bench.demo import naive

    names = set(workload.events.column_names)
    return [
        (sub, sorted(names & set(re.findall(r"[a-z_]+", text))), naive(text)) for sub, text in workload.subscriptions
    ]


def numpy_rules(workload: Workload) -> Callable[[Events], Match]:
    """A loop over the subscriptions: predicates rarest first, each over the rows that are left.

    NULL is -1.
    """
    ordered = list(rules(workload))

    def ready(events: Events) -> Match:
        columns = np.ascontiguousarray(events.grid.T)

        def run() -> Pairs:
            found = []
            for sub, ((attr, low, high), *rest) in ordered:
                rows = np.flatnonzero((columns[attr] >= low) & (columns[attr] <= high))
                for attr, low, high in rest:
                    if not len(rows):
                        break
                    values = columns[attr][rows]
                    rows = rows[(values >= low) & (values <= high)]
                found.append((sub, rows))
            return joined(found)

        return run

    return ready


def duckdb_queries(workload: Workload) -> Callable[[Events], Match]:
    """Texts as they are: prepared queries with a hundred ``CASE WHEN text THEN number END`` each.

    Not prepared, they take half as long again. A query for each text, a hundred of them by UNION
    ALL, takes three times as long, and a Boolean column for each twice as long.
    """
    if isinstance(workload.subscriptions, pa.Table):
        raise NotImplementedError("there are no texts")
    connection = joins.duckdb_connection()

    def take(events: Events) -> None:
        connection.register("given", events.table.append_column("event", pa.array(np.arange(len(events)))))

    take(Events(workload.events.slice(0, 0)))
    connection.execute("CREATE TABLE events AS FROM given")
    queries = range(0, len(workload.subscriptions), 100)
    for first in queries:
        cases = [
            f"CASE WHEN {text} THEN {sub}::BIGINT END" for sub, text in workload.subscriptions[first : first + 100]
        ]
        true = f"unnest(list_filter([{', '.join(cases)}], lambda sub: sub IS NOT NULL)) AS subscription"
        connection.execute(f"PREPARE q{first} AS SELECT event, {true} FROM events")

    def ready(events: Events) -> Match:
        def run() -> Pairs:
            take(events)
            connection.execute("TRUNCATE events")
            connection.execute("INSERT INTO events FROM given")
            found = [connection.execute(f"EXECUTE q{first}").fetchnumpy() for first in queries]
            return Pairs(*(np.concatenate([part[name] for part in found]) for name in ("event", "subscription")))

        return run

    return ready


RIVALS: dict[str, System] = {
    "prototype": prototype,
    "roofline": roofline,
    "numpy": numpy_rules,
    "pyarrow": pyarrow_filters,
    "duckdb-access": joins.duckdb_access,
    "duckdb-counting": joins.duckdb_counting,
    "duckdb-queries": duckdb_queries,
    "polars-access": joins.polars_access,
}
# subscriptions that they survive
LARGEST = {"numpy": 100_000, "pyarrow": 10_000, "duckdb-counting": 100_000, "duckdb-queries": 10_000}


def kinds() -> dict[str, System]:
    """colmatch with each kind of index, by its name."""
    import colmatch as cm

    return {kind: functools.partial(colmatch, index=kind) for kind in cm.index_kinds()}


def contest(
    workload: Workload,
    systems: Iterable[str] | Mapping[str, System] | None = None,
    refused: dict[str, str] | None = None,
    limit: float | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Match]:
    """Those of ``systems``, all of them if None, that can, prepared, run once to warm up, and found
    to agree.

    ``refused`` is given the others and their reasons. ``limit`` : seconds of the clock that each
    but the first may take to be prepared and run once

    Raises
    ------
    AssertionError : one finds other pairs than the first one
    """
    known = systems if isinstance(systems, Mapping) else kinds() | RIVALS
    events = Events(workload.events)
    ready: dict[str, Match] = {}
    truth: NDArray[np.int64] | None = None
    least = len(events)  # of which the truth is known
    for name in known if systems is None else systems:
        try:
            with within(limit, clock) if limit and truth is not None else nullcontext():
                match = known[name](workload)(events)
                found = match()
        except (NotImplementedError, ImportError, TimeoutError) as reason:
            if refused is not None:
                refused[name] = str(reason)
            continue
        pairs = ordered(found)
        truth = pairs if truth is None else truth
        rows = match.rows if isinstance(match, Part) else len(events)
        least = least if ready else rows
        pairs, wanted = (some[some >> 32 < min(rows, least)] for some in (pairs, truth))
        assert np.array_equal(pairs, wanted), (
            f"{name} finds {len(pairs):,} pairs in {workload.name}, the others {len(wanted):,}"
        )
        ready[name] = match
    return ready


def ordered(found: Pairs) -> NDArray[np.int64]:
    """The pairs as sorted numbers, to be compared."""
    return np.sort(found.event.astype(np.int64) << 32 | found.subscription.astype(np.int64))


def rules(workload: Workload) -> Iterable[tuple[int, list[tuple[int, int, int]]]]:
    """Each subscription and its predicates as attribute, least and greatest value, rarest first."""
    given = conjunctions(workload)
    predicates = list(zip(given.attr.tolist(), given.lo.tolist(), given.hi.tolist()))
    first = given.first.tolist()
    return [(sub, predicates[first[i] : first[i + 1]]) for i, sub in enumerate(given.id.tolist())]


def joined(found: list[tuple[int, NDArray[np.int64]]]) -> Pairs:
    """(subscription, its events) for each subscription -> pairs."""
    sizes = [len(events) for _, events in found]
    return Pairs(np.concatenate([events for _, events in found]), np.repeat([sub for sub, _ in found], sizes))
