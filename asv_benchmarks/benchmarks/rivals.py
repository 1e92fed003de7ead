"""What one would do without colmatch, as well as it can be done in a few lines.

Each rival is prepared with a workload, which is not timed, and then finds all pairs of event and matching subscription, which is. It is
given the events as Arrow, as colmatch is, and gives back two integer arrays, in any order. Those that do not understand a workload raise
NotImplementedError.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from benchmarks.workloads import Workload


class Pairs(NamedTuple):
    event: NDArray[np.int64]
    subscription: NDArray[np.int64]


Match = Callable[[], Pairs]
Rule = list[tuple[str, int, int]]  # attribute, lowest and highest value


def colmatch(workload: Workload, index: str = "scan") -> Match:
    """colmatch itself; named as the index kind."""
    import colmatch as cm

    subscriptions = workload.subscriptions
    matcher = cm.Matcher.build(
        cm.PredicateTable(subscriptions) if isinstance(subscriptions, pa.Table) else subscriptions, workload.schema, index=index
    )

    def run() -> Pairs:
        table = matcher.match(workload.events)
        return Pairs(table["event"].to_numpy(), table["subscription"].to_numpy())

    return run


def pyarrow_filters(workload: Workload) -> Match:
    """A loop over the subscriptions: one pyarrow.compute expression each, which filters the columns that it uses.

    A filter over all columns takes several times as long, for their copies; calling the compute functions one by one, about as long.
    """
    numbered = workload.events.append_column("event", pa.array(np.arange(workload.events.num_rows)))
    filters = []
    for sub, columns, condition in expressions(workload):
        filters.append((sub, numbered.select(["event", *columns]), condition))

    def run() -> Pairs:
        return joined([(sub, table.filter(condition)["event"].to_numpy()) for sub, table, condition in filters])

    return run


def expressions(workload: Workload) -> list[tuple[int, list[str], pc.Expression]]:
    """Subscription, columns, condition."""
    if isinstance(workload.subscriptions, pa.Table):
        made = []
        for sub, rule in enumerate(rules(workload)):
            tests = [(pc.field(a) >= low) & (pc.field(a) <= high) if low < high else pc.field(a) == low for a, low, high in rule]
            made.append((sub, [a for a, _, _ in rule], functools.reduce(operator.and_, tests)))
        return made
    from colmatch.demo import naive

    names = set(workload.events.column_names)
    return [(sub, sorted(names & set(re.findall(r"[a-z_]+", text))), naive(text)) for sub, text in workload.subscriptions]


def numpy_rules(workload: Workload) -> Match:
    """A loop over the subscriptions: predicates rarest first, each over the rows that are left. NULL is -1."""
    ordered = [sorted(rule, key=lambda predicate: predicate[2] - predicate[1]) for rule in rules(workload)]

    def run() -> Pairs:
        columns = {name: workload.events[name].fill_null(-1).to_numpy() for name in workload.events.column_names}
        found = []
        for sub, ((name, low, high), *rest) in enumerate(ordered):
            rows = np.flatnonzero((columns[name] >= low) & (columns[name] <= high))
            for name, low, high in rest:
                if not len(rows):
                    break
                values = columns[name][rows]
                rows = rows[(values >= low) & (values <= high)]
            found.append((sub, rows))
        return joined(found)

    return run


def duckdb_join(workload: Workload) -> Match:
    """Counting, in SQL: unpivoted events joined with the table of predicates, kept where all predicates of a subscription are met.

    The natural way for conjunctions, and about ten times as fast as a query for each subscription. One query with a Boolean column for
    each subscription was worse: with 1,000 columns planning it took over a minute, and with 250 at a time it was as slow as single queries.
    """
    connection = _duckdb()
    flat = [(sub, *predicate) for sub, rule in enumerate(rules(workload)) for predicate in rule]
    predicates = pa.table([pa.array(column) for column in zip(*flat)], ["subscription", "attribute", "low", "high"])
    needed = {len(rule) for rule in rules(workload)}
    if len(needed) > 1:
        raise NotImplementedError("subscriptions have different numbers of predicates")
    connection.register("given", predicates)
    connection.execute("CREATE TABLE predicates AS FROM given")
    connection.register("events", workload.events.append_column("event", pa.array(np.arange(workload.events.num_rows))))
    query = f"""
        SELECT event, subscription
        FROM (UNPIVOT events ON COLUMNS(* EXCLUDE event) INTO NAME attribute VALUE value) JOIN predicates USING (attribute)
        WHERE value BETWEEN low AND high
        GROUP BY event, subscription
        HAVING count(*) = {needed.pop()}
    """

    def run() -> Pairs:
        found = connection.execute(query).fetchnumpy()
        return Pairs(found["event"], found["subscription"])

    return run


def duckdb_queries(workload: Workload) -> Match:
    """Texts as they are, each the WHERE of a query; a hundred queries at a time by UNION ALL, which is a little faster than singly."""
    if isinstance(workload.subscriptions, pa.Table):
        raise NotImplementedError("there are no texts")
    connection = _duckdb()
    connection.register("given", workload.events.append_column("event", pa.array(np.arange(workload.events.num_rows))))
    queries = [f"SELECT event, {sub}::BIGINT AS subscription FROM events WHERE {text}" for sub, text in workload.subscriptions]

    def run() -> Pairs:
        connection.execute("CREATE OR REPLACE TABLE events AS FROM given")
        found = [connection.execute(" UNION ALL ".join(queries[i : i + 100])).fetchnumpy() for i in range(0, len(queries), 100)]
        return Pairs(*(np.concatenate([part[name] for part in found]) for name in ("event", "subscription")))

    return run


RIVALS: dict[str, Callable[[Workload], Match]] = {
    "scan": colmatch,
    "pyarrow filter loop": pyarrow_filters,
    "NumPy loop": numpy_rules,
    "DuckDB join": duckdb_join,
    "DuckDB queries": duckdb_queries,
}


def contest(workload: Workload) -> dict[str, Match]:
    """Those that can, prepared, run once to warm up, and found to agree.

    Raises
    ------
    AssertionError : one finds other pairs than colmatch
    """
    ready: dict[str, Match] = {}
    truth: NDArray[np.int64] | None = None
    for name, prepare in RIVALS.items():
        try:
            match = prepare(workload)
        except (NotImplementedError, ImportError):
            continue
        found = match()
        pairs = np.sort(found.event.astype(np.int64) << 32 | found.subscription.astype(np.int64))
        truth = pairs if truth is None else truth
        assert np.array_equal(pairs, truth), f"{name} finds {len(pairs):,} pairs in {workload.name}, colmatch {len(truth):,}"
        ready[name] = match
    return ready


def rules(workload: Workload) -> list[Rule]:
    """The conjunctions of a uniform workload, by subscription."""
    table = workload.subscriptions
    if not isinstance(table, pa.Table):
        raise NotImplementedError("the subscriptions are texts")
    made: list[Rule] = [[] for _ in range(table["id"][-1].as_py() + 1)]
    for sub, name, operands in zip(*(table[column].to_pylist() for column in ("id", "attribute", "operands"))):
        made[sub].append((name, operands[0], operands[-1]))
    return made


def joined(found: list[tuple[int, NDArray[np.int64]]]) -> Pairs:
    """(subscription, its events) for each subscription -> pairs."""
    sizes = [len(events) for _, events in found]
    return Pairs(np.concatenate([events for _, events in found]), np.repeat([sub for sub, _ in found], sizes))


def _duckdb() -> Any:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute("SET TimeZone = 'UTC'")
    return connection
