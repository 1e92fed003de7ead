"""What every index kind must do, against the oracle. A new kind is tested by being registered."""

from __future__ import annotations

import pickle
import tempfile
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from contract import (
    Ids,
    built,
    every_kind,
    expected_pairs,
    pairs,
    share_of_cases,
    share_of_examples,
    some_settings,
)
from hypothesis import given
from hypothesis import strategies as st
from layouts import plain_table, some_events
from oracle import Expr, Row, matches, to_sql
from sizes import SMALL
from strategies import COLUMNS, a_schema, an_expression, some_rows, terms
from ways_in import condition, predicate_tables, table_rows, to_builder

import colmatch as cm
import colmatch.matching.worker
from colmatch.kinds.registry import is_in_pages

randoms = st.randoms(use_true_random=False)
seeds = st.integers(0, 2**32 - 1)


def check(
    matcher: cm.Matcher, expressions: list[Expr], ids: Ids, rows: list[Row], events: Any, wanted: list[tuple[int, Any]]
) -> None:
    """All ways to ask agree with the oracle."""
    found = pairs(matcher.match(events))
    if found != wanted:
        text = {id: to_sql(e) for id, e in zip(ids, expressions)}
        wrong = [
            f"{text[id]}\n    row {i}: { {name: x for name, x in rows[i].items() if name in text[id]} }: {(i, id) in wanted}"
            for i, id in sorted(set(found) ^ set(wanted), key=lambda pair: len(text[pair[1]]))
        ]
        assert not wrong, f"{len(wrong)} differences, the oracle says\n" + "\n".join(wrong[:5])
    lists: list[list[Any]] = [[] for _ in rows]
    for i, id in wanted:
        lists[i].append(id)
    got = matcher.match_lists(events)
    assert got.type == pa.list_(matcher.ids.type)
    assert [sorted(some) for some in got.to_pylist()] == lists
    count = matcher.count(events)
    assert count.dtype == np.int64
    assert count.tolist() == [len(some) for some in lists]
    exists = matcher.exists(events)
    assert exists.dtype == bool and exists.tolist() == [bool(some) for some in lists]
    for i, row in enumerate(rows):
        assert sorted(matcher.match_one(row)) == lists[i]
        assert matcher.count_one(row) == len(lists[i]) and matcher.exists_one(row) == bool(lists[i])
    half = matcher.subset(list(ids)[::2])
    of_half = [(i, id) for i, id in wanted if id in set(list(ids)[::2])]
    assert pairs(matcher.match(events, ids=half)) == of_half
    assert matcher.exists(events, ids=half).tolist() == [any(i == j for j, _ in of_half) for i in range(len(rows))]
    hits = matcher.hits(events)
    assert hits.schema.names == ["subscription", "events"] and hits["subscription"].type == matcher.ids.type
    of_each = Counter(id for _, id in wanted)
    assert dict(zip(*hits.to_pydict().values())) == of_each
    order = matcher.ids.to_pylist() if hits.num_rows and not is_in_pages(matcher.index) else []
    assert not order or [order.index(id) for id in hits["subscription"].to_pylist()] == sorted(
        map(order.index, of_each)
    )
    batches = list(matcher.match_batches(events))
    assert pairs(pa.Table.from_batches(batches, matcher.match(events).schema)) == wanted


@every_kind
@share_of_examples
@given(
    seed=seeds,
    rng=randoms,
    n=st.integers(0, 6),
    m=st.integers(0, 12),
    options=st.builds(
        cm.Options,
        missing_columns=st.just("null"),
        batch_rows=st.sampled_from([1, 2, 3, 7, 8192]),
    ),
)
def test_every_way_in_and_out(kind: str, seed: int, rng: Random, n: int, m: int, options: cm.Options) -> None:
    schema = a_schema(rng)
    rows = some_rows(Random(seed), schema, m)
    events, rows = some_events(Random(seed + 1), schema, rows)
    if isinstance(events, pa.RecordBatchReader):
        events = events.read_all()
    expressions = [an_expression(rng, terms(schema), depth=2) for _ in range(n)]
    ids: Ids = Random(seed).sample(range(-100, 100), n)
    if seed % 2:
        ids = [f"id {id}" for id in ids]
    wanted = expected_pairs(expressions, ids, rows)
    texts = [(id, to_sql(e)) for id, e in zip(ids, expressions)]
    with patch.object(colmatch.matching.worker, "FIRST_CAPACITY", 1 if seed % 3 else 1 << 16):
        matcher = built(texts, schema, some_settings(rng, kind), options)
        assert len(matcher) == n
        assert matcher.kind in cm.index_kinds()
        check(matcher, expressions, ids, rows, events, wanted)
        check(pickle.loads(pickle.dumps(matcher)), expressions, ids, rows, events, wanted)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "index")
            matcher.save(path)
            for mmap in (True, False):
                check(cm.Matcher.open(path, mmap=mmap), expressions, ids, rows, events, wanted)
    for i in range(min(m, 3)):
        for e, id in zip(expressions, ids):
            explanation = matcher.explain(rows[i], id)
            assert explanation.matched == matches(e, rows[i]), f"{to_sql(e)}\n{rows[i]}\n{explanation}"
            assert matcher.explain(events.slice(i, 1), id).matched == explanation.matched
            assert str(explanation)


@share_of_cases(36 if SMALL else 120)
def test_hundreds_of_expressions(kind: str, seed: int) -> None:
    """All columns, deep expressions and odd layouts, in numbers that hypothesis does not reach."""
    rng = Random(seed)
    schema = pa.schema(rng.sample(list(COLUMNS.items()), rng.choice([3, 10, len(COLUMNS)])))
    leaves = terms(schema)
    expressions = [an_expression(rng, leaves, depth=rng.choice([0, 1, 2, 3])) for _ in range(20 if SMALL else 150)]
    events, rows = some_events(rng, schema, some_rows(rng, schema, rng.choice([1, 20, 70])))
    options = cm.Options(missing_columns="null", batch_rows=rng.choice([1, 7, 64, 8192]))
    two_valued = to_builder(("is null", leaves[0][0]), None)
    ids: Ids = list(range(len(expressions)))
    some = [(id, to_sql(e) if rng.random() < 0.8 else condition(e, two_valued)) for id, e in zip(ids, expressions)]
    matcher = built(some, schema, some_settings(rng, kind), options)
    if isinstance(events, pa.RecordBatchReader):
        events = events.read_all()
    check(matcher, expressions, ids, rows, events, expected_pairs(expressions, ids, rows))


@every_kind
@share_of_examples
@given(seed=seeds, rng=randoms, n=st.integers(1, 6))
def test_expressions_from_the_builder(kind: str, seed: int, rng: Random, n: int) -> None:
    schema = a_schema(rng)
    rows = some_rows(Random(seed), schema, 8)
    leaves = terms(schema)
    expressions = [an_expression(rng, leaves, depth=2) for _ in range(n)]
    two_valued = to_builder(("is null", leaves[0][0]), None)
    ids = list(range(n))
    matcher = cm.Matcher.build([(id, condition(e, two_valued)) for id, e in zip(ids, expressions)], schema, index=kind)
    check(matcher, expressions, ids, rows, plain_table(schema, rows), expected_pairs(expressions, ids, rows))


@every_kind
@share_of_examples
@given(seed=seeds, rng=randoms, n=st.integers(1, 12))
def test_predicate_tables(kind: str, seed: int, rng: Random, n: int) -> None:
    schema = a_schema(rng)
    rows = some_rows(Random(seed), schema, 8)
    leaves = terms(schema)
    expressions = []
    for _ in range(n):
        sizes = [rng.choice([1, 1, 2, 3]) for _ in range(rng.choice([1, 1, 2]))]
        e = ("or", *(("and", *(an_expression(rng, leaves, 0, nulls=0) for _ in range(size))) for size in sizes))
        if table_rows(e) is not None:
            expressions.append(e)
    ids = list(range(len(expressions)))
    as_rows = {id: table_rows(e) or [] for id, e in zip(ids, expressions)}
    tables = predicate_tables(Random(seed), as_rows, pa.int64())
    if not tables:
        return
    matcher = cm.Matcher.build(cm.PredicateTable(*tables), schema, index=kind)
    found, wanted = pairs(matcher.match(plain_table(schema, rows))), expected_pairs(expressions, ids, rows)
    # The order of the subscriptions is that of their first rows in the tables.
    place = {id: i for i, id in enumerate(matcher.ids.to_pylist())}
    assert sorted(place) == ids
    wanted.sort(key=lambda pair: (pair[0], place[pair[1]]))
    if found != wanted:
        wrong = [
            f"{to_sql(expressions[id])}\n    {as_rows[id]}\n    row {i}: {rows[i]}"
            for i, id in set(found) ^ set(wanted)
        ]
        assert not wrong, "\n".join(wrong[:5])


def test_every_column_of_the_strategies_is_usable() -> None:
    schema = pa.schema(list(COLUMNS.items()))
    assert set(COLUMNS) == {term[1] if term[0] == "col" else term[1][1] for term, _ in terms(schema)}
