"""The best matches of every index kind, against all matches and the oracle's scores."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import inside
import pyarrow as pa
from contract import built, expected_best, share_of_cases, some_settings
from layouts import plain_table, some_events
from oracle import Expr, Row
from sizes import SMALL
from strategies import COLUMNS, WEIGHTS, Leaf, a_predicate, an_expression, some_rows, terms, weighed
from ways_in import attribute_name, condition, predicate_tables, table_rows, to_builder

import colmatch as cm
import colmatch.matching.topk.rank
import colmatch.matching.worker
from colmatch.updates import policy

GIVEN = [None, 0.0, 0.5, 1.0, 2.0]
SCORES = ("dot", "sum", "max")

Given = list[dict[Expr, float]]


def some_given(rng: Random, leaves: list[Leaf], rows: list[Row]) -> tuple[Given, Any, dict[str, pa.Array]]:
    """What events give to terms, as the oracle and ``match_topk`` take it, and columns with it."""
    of = [term for term, _ in leaves if term[0] == "entry" or term[0] == "col"]
    named = rng.sample(of, min(len(of), rng.choice([1, 2, 5])))
    way = rng.choice(["none", "map", "columns"])
    if way == "none":
        return [{} for _ in rows], None, {}
    given = [{term: rng.choice(GIVEN) for term in named if way == "columns" or rng.random() < 0.7} for _ in rows]
    columns: dict[str, pa.Array] = {}
    by_name: dict[str, Any] = {}
    if way == "map":
        maps = [[("no.such name", 7.0), *((attribute_name(t), w) for t, w in one.items())] for one in given]
        columns["gives"] = pa.array(maps, pa.map_(pa.string(), pa.float64()))
    else:
        for i, term in enumerate(named):
            if rng.random() < 0.2:  # a number for all events
                for one in given:
                    one[term] = 0.5
                by_name[attribute_name(term)] = 0.5
                continue
            type = rng.choice([pa.float64(), pa.float32(), pa.decimal128(9, 3)])
            columns[f"w{i}"] = pa.array([one[term] for one in given], pa.float64()).cast(type)
            by_name[attribute_name(term)] = f"w{i}"
    seen = [{term: 1.0 if w is None else w for term, w in one.items()} for one in given]
    return seen, by_name or "gives", columns


def check(
    matcher: cm.Matcher, there: dict[Any, Expr], rows: list[Row], events: pa.Table, rng: Random, priority: Any = None
) -> None:
    leaves = terms(matcher.schema.arrow)
    given, event_weights, columns = some_given(rng, leaves, rows)
    for name, column in columns.items():
        events = events.append_column(name, column)
    k = rng.choice([1, 2, 3, 5, 100, 10**12])
    for how in [*SCORES, *(["priority"] if priority else [])]:
        found = matcher.match_topk(events, k, how, event_weights)
        assert found.schema.types == [pa.int64(), matcher.ids.type, pa.float64()]
        assert found.schema.names == ["event", "subscription", "score"]
        wanted = expected_best(there, rows, k, how, given, priority or {})
        got = list(zip(*found.to_pydict().values(), strict=True))
        assert got == wanted, (how, k, event_weights, given)


def tables_of(seed: int, there: dict[Any, Expr], type: pa.DataType, priority: dict[Any, float]) -> cm.PredicateTable:
    return cm.PredicateTable(
        *predicate_tables(Random(seed), {i: table_rows(e) for i, e in there.items()}, type, priority)
    )  # type: ignore[misc]


def some_conjunctions(rng: Random, leaves: list[Leaf]) -> Expr:
    """An OR of ANDs that a table can have."""
    while True:
        sizes = [rng.choice([1, 2, 3]) for _ in range(rng.choice([1, 1, 2, 3]))]
        e = (
            "or",
            *(("and", *(weighed(rng, a_predicate(rng, rng.choice(leaves), 0)) for _ in range(n))) for n in sizes),
        )
        if table_rows(e) is not None:
            return e


@share_of_cases(36 if SMALL else 90)
def test_best_of_tables(kind: str, seed: int) -> None:
    """Weights and priorities of tables, whatever is inserted, deleted, merged and saved."""
    rng = Random(seed)
    schema = pa.schema(rng.sample(list(COLUMNS.items()), rng.choice([2, 4, 8])))
    leaves, rows = terms(schema), some_rows(rng, schema, rng.choice([1, 7, 30]))
    events = plain_table(schema, rows)
    some: Any = (lambda i: i * 7 % 61) if seed % 2 else (lambda i: f"id {'é' * (i % 3)}{i}")
    type = pa.int64() if seed % 2 else pa.string()
    fresh = iter(range(1000))

    def more(n: int) -> dict[Any, Expr]:
        return {some(next(fresh)): some_conjunctions(rng, leaves) for _ in range(n)}

    there, priority = more(12), {}
    priority = {id: rng.choice(WEIGHTS) for id in there}
    options = cm.Options(missing_columns="null", batch_rows=rng.choice([1, 3, 8192]), threads=rng.choice([1, 2]))
    index = cm.index(kind) if kind == "kindex" else some_settings(rng, kind)
    limits = {"FIRST_CAPACITY": 1, "LARGE_CAPACITY": rng.choice([1, 60, 1 << 25])}
    with (
        patch.multiple(colmatch.matching.worker, **limits),
        patch.object(colmatch.matching.topk.rank, "PLACES", rng.choice([1, 9, 1 << 22])),
        patch.multiple(policy, GROWING_MOST=rng.choice([0, 2, 1024]), SEGMENTS_MOST=rng.choice([1, 3, 16])),
    ):
        matcher = built(tables_of(seed, there, type, priority), schema, index, options)
        check(matcher, there, rows, events, rng, priority)
        for _ in range(4):
            step = rng.randrange(4)
            if step < 2:
                new = more(rng.choice([1, 4]))
                priority |= {id: rng.choice(WEIGHTS) for id in new}
                matcher.insert(tables_of(seed, new, type, priority))
                there |= new
            elif step == 2 and there:
                gone = rng.sample(sorted(there), rng.randint(1, len(there) // 2 + 1))
                matcher.delete(gone)
                there = {id: e for id, e in there.items() if id not in gone}
            else:
                inside.merge_some(matcher, rng)
            check(matcher, there, rows, events, rng, priority)
        with tempfile.TemporaryDirectory() as folder:
            matcher.save(Path(folder, "index"))
            check(cm.Matcher.open(Path(folder, "index")), there, rows, events, rng, priority)
        check(pickle.loads(pickle.dumps(matcher)), there, rows, events, rng, priority)


@share_of_cases(36 if SMALL else 108)
def test_best_of_expressions(kind: str, seed: int) -> None:
    """Trees with weights anywhere: conjunctions, and programs where these would be too many."""
    rng = Random(seed)
    schema = pa.schema(rng.sample(list(COLUMNS.items()), rng.choice([2, 4, 8])))
    leaves = terms(schema)
    events, rows = some_events(rng, schema, some_rows(rng, schema, rng.choice([1, 7, 30])))
    events = events.read_all() if isinstance(events, pa.RecordBatchReader) else events
    two_valued = to_builder(("is null", leaves[0][0]), None)
    there = {i: weighed(rng, an_expression(rng, leaves, rng.choice([1, 2, 3]), nulls=0)) for i in range(30)}
    there[100] = ("weight", 0.5, ("is not null", leaves[0][0]))
    options = cm.Options(missing_columns="null", threads=1, batch_rows=rng.choice([5, 8192]))
    budget = rng.choice([1, 3, 64])
    subscriptions = [(id, condition(e, two_valued)) for id, e in there.items()]
    matcher = built(subscriptions, schema, cm.index(kind, dnf_budget=budget), options)
    for _ in range(3):
        check(matcher, there, rows, pa.table(events), rng)
