"""What every index kind must do, against the oracle. A new kind is tested by being registered."""

from __future__ import annotations

import os
import pickle
import tempfile
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import Expr, Row, lit, matches, to_sql
from strategies import (
    COLUMNS,
    NAN,
    UTC,
    a_schema,
    an_expression,
    condition,
    plain_table,
    predicate_tables,
    some_events,
    some_rows,
    table_rows,
    terms,
    to_builder,
)

import colmatch as cm
import colmatch.matcher

every_kind = pytest.mark.parametrize("kind", [*cm.kinds(), "auto"])
randoms = st.randoms(use_true_random=False)
seeds = st.integers(0, 2**32 - 1)

NO_JIT = os.environ.get("NUMBA_DISABLE_JIT") == "1"
Ids = list[int] | list[str]
SUBS: list[tuple[int, str]] = [(7, "age >= 18"), (3, "age < 18 OR city = 'Nice'"), (5, "city LIKE 'N%' AND age BETWEEN 20 AND 40")]
SCHEMA = pa.schema([("age", pa.int32()), ("city", pa.string())])
EVENTS = pa.table({"age": pa.array([36, 17, None, 18], pa.int32()), "city": ["Nice", "Paris", "Nice", None]})
PAIRS = [(0, 7), (0, 3), (0, 5), (1, 3), (2, 3), (3, 7)]


def pairs(result: pa.Table) -> list[tuple[int, Any]]:
    assert result.schema.names == ["event", "subscription"]
    assert result.schema.types[0] == pa.int64()
    return list(zip(*result.to_pydict().values()))


def expected_pairs(expressions: list[Expr], ids: Ids, rows: list[Row]) -> list[tuple[int, Any]]:
    return [(i, id) for i, row in enumerate(rows) for e, id in zip(expressions, ids) if matches(e, row)]


def check(matcher: cm.Matcher, expressions: list[Expr], ids: Ids, rows: list[Row], events: Any, wanted: list[tuple[int, Any]]) -> None:
    """All ways to ask agree with the oracle."""
    found = pairs(matcher.match(events))
    if found != wanted:
        text = {id: to_sql(e) for id, e in zip(ids, expressions)}
        wrong = [
            f"{text[id]}\n    row {i}: { {name: x for name, x in rows[i].items() if name in text[id]} }: {(i, id) in wanted}"
            for i, id in sorted(set(found) ^ set(wanted), key=lambda pair: len(text[pair[1]]))
        ]
        assert not wrong, f"{len(wrong)} differences, the oracle says\n" + "\n".join(wrong[:5])
        assert found == wanted, "the order"
    lists: list[list[Any]] = [[] for _ in rows]
    for i, id in wanted:
        lists[i].append(id)
    got = matcher.match_lists(events)
    assert got.type == pa.list_(matcher.ids.type)
    assert got.to_pylist() == lists
    count = matcher.count(events)
    assert count.dtype == np.int64
    assert count.tolist() == [len(some) for some in lists]
    batches = list(matcher.match_batches(events))
    assert [pair for batch in batches for pair in zip(*batch.to_pydict().values())] == wanted


@every_kind
@given(
    seed=seeds,
    rng=randoms,
    n=st.integers(0, 6),
    m=st.integers(0, 12),
    options=st.builds(cm.Options, batch_rows=st.sampled_from([1, 2, 3, 7, 8192]), dnf_budget=st.sampled_from([1, 2, 64])),
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
    with patch.object(colmatch.matcher, "FIRST_CAPACITY", 1 if seed % 3 else 1 << 16):
        matcher = cm.Matcher.build(texts, schema, index=kind, options=options)
        assert len(matcher) == n
        assert matcher.kind in cm.kinds()
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


@every_kind
@pytest.mark.parametrize("seed", range(4 if NO_JIT else 24))
def test_hundreds_of_expressions(kind: str, seed: int) -> None:
    """All columns, deep expressions and odd layouts, in numbers that hypothesis does not reach."""
    rng = Random(seed)
    schema = pa.schema(rng.sample(list(COLUMNS.items()), rng.choice([3, 10, len(COLUMNS)])))
    leaves = terms(schema)
    expressions = [an_expression(rng, leaves, depth=rng.choice([0, 1, 2, 3])) for _ in range(20 if NO_JIT else 150)]
    events, rows = some_events(rng, schema, some_rows(rng, schema, rng.choice([1, 20, 70])))
    options = cm.Options(batch_rows=rng.choice([1, 7, 64, 8192]), dnf_budget=rng.choice([1, 3, 64, 4096]))
    two_valued = to_builder(("is null", leaves[0][0]), None)
    ids: Ids = list(range(len(expressions)))
    some = [(id, to_sql(e) if rng.random() < 0.8 else condition(e, two_valued)) for id, e in zip(ids, expressions)]
    matcher = cm.Matcher.build(some, schema, index=kind, options=options)
    if isinstance(events, pa.RecordBatchReader):
        events = events.read_all()
    check(matcher, expressions, ids, rows, events, expected_pairs(expressions, ids, rows))


@every_kind
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
        wrong = [f"{to_sql(expressions[id])}\n    {as_rows[id]}\n    row {i}: {rows[i]}" for i, id in set(found) ^ set(wanted)]
        assert not wrong, "\n".join(wrong[:5])
        assert found == wanted, "the order"


# ---- named cases ----


@every_kind
def test_the_example(kind: str) -> None:
    matcher = cm.Matcher.build(SUBS, SCHEMA, index=kind)
    assert pairs(matcher.match(EVENTS)) == PAIRS
    assert matcher.ids.to_pylist() == [7, 3, 5]


@every_kind
@pytest.mark.parametrize("batch_rows", range(1, 8))
def test_results_do_not_depend_on_how_the_input_is_cut(kind: str, batch_rows: int) -> None:
    matcher = cm.Matcher.build(SUBS, SCHEMA, index=kind, options=cm.Options(batch_rows=batch_rows))
    many = pa.concat_tables([EVENTS.slice(0, 3), EVENTS.slice(3), EVENTS.slice(0, 0), EVENTS, EVENTS.slice(1, 2)])
    wanted = [*PAIRS, *((i + 4, id) for i, id in PAIRS), *((i + 7, id) for i, id in PAIRS if i in (1, 2))]
    assert pairs(matcher.match(many)) == wanted
    assert pairs(matcher.match(pa.RecordBatchReader.from_batches(many.schema, many.to_batches()))) == wanted
    assert [len(some) for some in matcher.match_lists(many).to_pylist()] == matcher.count(many).tolist()


@every_kind
def test_nothing_to_match(kind: str) -> None:
    for none in ({}, [], pa.table({"id": pa.array([], pa.string()), "expression": pa.array([], pa.string())})):
        empty = cm.Matcher.build(none, SCHEMA, index=kind)
        assert len(empty) == 0
        assert empty.match(EVENTS).num_rows == 0
        assert empty.count(EVENTS).tolist() == [0, 0, 0, 0]
        assert empty.match_lists(EVENTS).to_pylist() == [[], [], [], []]
    matcher = cm.Matcher.build(SUBS, SCHEMA, index=kind)
    for events in (EVENTS.slice(0, 0), EVENTS.schema.empty_table(), EVENTS.to_batches()[0].slice(4)):
        assert matcher.match(events).num_rows == 0
        assert matcher.match(events).schema == matcher.match(EVENTS).schema
        assert matcher.count(events).tolist() == []
        assert matcher.match_lists(events).to_pylist() == []


@every_kind
def test_all_null_and_missing_columns(kind: str) -> None:
    texts = ["age IS NULL", "age IS NOT NULL", "NOT age = 1", "age = 1 OR city IS NULL", "TRUE", "FALSE", "age = NULL", "age <=> NULL"]
    matcher = cm.Matcher.build(enumerate(texts), SCHEMA, index=kind)
    for events in (
        pa.table({"age": pa.nulls(2, pa.int32()), "city": pa.nulls(2, pa.string())}),
        pa.table({"age": pa.nulls(2), "city": pa.nulls(2)}),
        pa.table({"other": [1, 2]}),
        pa.table({"city": pa.nulls(2)}),
    ):
        assert matcher.match_lists(events).to_pylist() == [[0, 3, 4, 7]] * 2


@every_kind
def test_constants(kind: str) -> None:
    texts = ["TRUE", "FALSE", "NULL", "age = 1 OR TRUE", "age = 1 AND FALSE", "NULL OR age = 1", "NOT FALSE"]
    matcher = cm.Matcher.build({text: text for text in texts}, SCHEMA, index=kind)
    assert matcher.ids.type == pa.string()
    always = ["TRUE", "age = 1 OR TRUE", "NOT FALSE"]
    found = matcher.match_lists(pa.table({"age": pa.array([1, None], pa.int32())})).to_pylist()
    assert found == [[*always[:2], "NULL OR age = 1", always[2]], always]


@every_kind
def test_several_true_conjunctions_are_one_match(kind: str) -> None:
    matcher = cm.Matcher.build({1: "age > 1 OR age > 2 OR city > 'A' OR age < 100"}, SCHEMA, index=kind)
    assert pairs(matcher.match(EVENTS)) == [(0, 1), (1, 1), (2, 1), (3, 1)]
    assert matcher.count(EVENTS).tolist() == [1, 1, 1, 1]


@every_kind
@pytest.mark.parametrize("budget", [1, 2, 64, 4096])
def test_programs_beyond_the_budget(kind: str, budget: int) -> None:
    """An AND of ORs, whose DNF has 2**12 conjunctions."""
    columns = [f"c{i}" for i in range(24)]
    ors = [("or", ("=", ("col", a), lit(1)), ("not", ("<", ("col", b), lit(3)))) for a, b in zip(columns[::2], columns[1::2])]
    e: Expr = ("and", *ors)
    rng = Random(3)
    rows = [{name: rng.choice([1, 1, 2, 5, None]) for name in columns} for _ in range(300)] + [dict.fromkeys(columns, 1)]
    schema = pa.schema([(name, pa.int8()) for name in columns])
    every: list[Expr] = [e, ("is not true", e), ("not", e)]
    matcher = cm.Matcher.build(enumerate(map(to_sql, every), 1), schema, index=kind, options=cm.Options(dnf_budget=budget))
    wanted = expected_pairs(every, [1, 2, 3], rows)
    assert {id for _, id in wanted} == {1, 2, 3}
    assert pairs(matcher.match(plain_table(schema, rows))) == wanted


@every_kind
def test_a_sink_that_is_too_small(kind: str) -> None:
    with patch.object(colmatch.matcher, "FIRST_CAPACITY", 1):
        matcher = cm.Matcher.build(dict.fromkeys(range(100), "age > 0"), SCHEMA, index=kind)
        events = pa.table({"age": pa.array([1, None, 2, 0] * 50, pa.int32())})
        assert pairs(matcher.match(events)) == [(i, id) for i in range(0, 200, 2) for id in range(100)]
        assert matcher.count(events).tolist() == [100, 0, 100, 0] * 50


@every_kind
def test_collected_errors_leave_the_rest(kind: str) -> None:
    bad = [(1, "age >"), (2, "agee = 1"), (4, "age = 'x'"), (6, ""), (8, "city LIKE '\\\\'")]
    matcher = cm.Matcher.build([*bad[:2], SUBS[0], bad[2], SUBS[1], *bad[3:]], SCHEMA, index=kind, errors="collect")
    assert matcher.ids.to_pylist() == [7, 3]
    assert [entry.id for entry in matcher.rejected] == [1, 2, 4, 6, 8]
    assert pairs(matcher.match(EVENTS)) == [pair for pair in PAIRS if pair[1] != 5]
    assert all(entry.message for entry in matcher.rejected)
    assert "'age'" in matcher.rejected[1].message  # the nearest name
    for entry in matcher.rejected:
        line, column = entry.position
        assert line == 1
        assert column >= 1
    for one in bad:
        with pytest.raises(cm.ExpressionError) as caught:
            cm.Matcher.build([one], SCHEMA, index=kind)
        assert caught.value.id == one[0]


@every_kind
def test_exact_numbers(kind: str) -> None:
    schema = pa.schema([("i", pa.int64()), ("u", pa.uint64()), ("f", pa.float32()), ("d", pa.decimal128(18, 2))])
    texts = {
        0: "i = 9007199254740993",
        1: "i = 9007199254740992",
        2: "i = 9007199254740992.0e0",
        3: "i > 9007199254740992.5",
        4: "u > 18446744073709551614",
        5: "u < 18446744073709551616",
        6: "f = 0.1",
        7: "f = CAST('NaN' AS DOUBLE)",
        8: "f > CAST('Infinity' AS DOUBLE)",
        9: "f = -0.0",
        10: "f <> CAST('NaN' AS DOUBLE)",
        11: "d = 1.1e0",
        12: "d > 1.099",
        13: "d = 1.101",
        14: "i < 9223372036854775808",
        15: "i > 9223372036854775807",
    }
    rows: list[Row] = [
        {"i": 2**53 + 1, "u": 2**64 - 1, "f": float(np.float32(0.1)), "d": Decimal("1.10")},
        {"i": 2**53, "u": 0, "f": NAN, "d": Decimal("1.11")},
        {"i": 2**63 - 1, "u": 2**63, "f": 0.0, "d": Decimal("-1.10")},
        {"i": None, "u": None, "f": None, "d": None},
    ]
    events = plain_table(schema, rows)
    matcher = cm.Matcher.build(texts, schema, index=kind)
    assert matcher.match_lists(events).to_pylist() == [[0, 3, 4, 5, 10, 11, 12, 14], [1, 2, 5, 7, 8, 12, 14], [3, 5, 9, 10, 14], []]


@every_kind
def test_nanoseconds(kind: str) -> None:
    at = np.datetime64("2013-01-31T10:00:00.000000001", "ns")
    events = pa.table({"t": pa.array([at - 1, at, at + 1, None], pa.timestamp("ns"))})
    texts = [f"t {sign} TIMESTAMP '2013-01-31 10:00:00{rest}'" for sign, rest in (("=", ""), (">", ""), (">=", ".000001"))]
    matcher = cm.Matcher.build(enumerate(texts), events.schema, index=kind)
    assert matcher.match_lists(events).to_pylist() == [[0], [1], [1], []]


@every_kind
def test_session_time_zone(kind: str) -> None:
    schema = pa.schema([("local", pa.timestamp("us")), ("instant", pa.timestamp("us", "Asia/Tokyo"))])
    noon = datetime(2013, 7, 1, 12)
    events = pa.table({"local": [noon], "instant": pa.array([noon.replace(tzinfo=UTC)], schema.field(1).type)})
    for zone, wanted in (("UTC", [1, 2, 3, 4]), ("America/New_York", [1, 2, 5])):
        texts = {
            1: "local = TIMESTAMP_NTZ '2013-07-01 12:00:00'",
            2: "instant = TIMESTAMP '2013-07-01 12:00:00Z'",
            3: "instant = TIMESTAMP '2013-07-01 12:00:00'",
            4: "local = TIMESTAMP '2013-07-01 14:00:00+02:00'",
            5: "instant = '2013-07-01 08:00:00'",
        }
        matcher = cm.Matcher.build(texts, schema, index=kind, options=cm.Options(timezone=zone))
        assert matcher.match_lists(events).to_pylist() == [wanted]


@every_kind
def test_any_arrow_producer(kind: str) -> None:
    matcher = cm.Matcher.build(SUBS, SCHEMA, index=kind)
    polars, duckdb, pandas = pytest.importorskip("polars"), pytest.importorskip("duckdb"), pytest.importorskip("pandas")
    frame = polars.from_arrow(EVENTS)
    assert pairs(matcher.match(frame)) == PAIRS
    assert pairs(matcher.match(duckdb.sql("SELECT * FROM EVENTS"))) == PAIRS
    assert pairs(matcher.match(EVENTS.to_batches()[0])) == PAIRS
    nullable = pandas.DataFrame({"age": pandas.array([36, 17, None, 18], "Int32"), "city": ["Nice", "Paris", "Nice", None]})
    assert pairs(matcher.match(nullable)) == PAIRS
    assert polars.from_arrow(matcher.match(frame)).height == len(PAIRS)  # and results are offered to others alike


@every_kind
def test_wrong_types_are_refused(kind: str) -> None:
    matcher = cm.Matcher.build(SUBS, SCHEMA, index=kind)
    for events in (pa.table({"age": ["36"], "city": ["Nice"]}), pa.table({"age": [1.5]}), pa.table({"city": [1]})):
        for ask in (matcher.match, matcher.count, matcher.match_lists, lambda x: matcher.explain(x, 7)):
            with pytest.raises(cm.EventError, match="age|city"):
                ask(events)
    for nonsense in ([1, 2], {"age": [1]}, "x", None, 5):
        with pytest.raises((cm.EventError, TypeError)):
            matcher.match(nonsense)
    assert pairs(matcher.match(EVENTS)) == PAIRS  # an error leaves no trace


@every_kind
def test_names(kind: str) -> None:
    """Names differ in case alone, need quotes, have dots, or are keywords."""
    fields = {"Age": pa.int8(), "a b": pa.int8(), "select": pa.int8(), "x.y": pa.int8(), "back`tick": pa.int8(), "ünï": pa.int8()}
    texts = ["age = 1", "AGE = 1", "`a b` = 1", "`select` = 1", "`x.y` = 1", "`back``tick` = 1", "`ünï` = 1"]
    matcher = cm.Matcher.build(enumerate(texts), fields, index=kind)
    events = pa.table({name: pa.array([1], pa.int8()) for name in fields})
    assert matcher.match_lists(events).to_pylist() == [list(range(len(texts)))]


@every_kind
def test_threads_share_a_matcher(kind: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    matcher = cm.Matcher.build(SUBS, SCHEMA, index=kind, options=cm.Options(batch_rows=2))
    with ThreadPoolExecutor(4) as pool:
        assert all(pairs(result) == PAIRS for result in pool.map(matcher.match, [EVENTS] * 40))


@every_kind
def test_results_that_are_half_read(kind: str) -> None:
    matcher = cm.Matcher.build(SUBS, SCHEMA, index=kind, options=cm.Options(batch_rows=1))
    stream = matcher.match_batches(EVENTS)
    next(stream)
    assert pairs(matcher.match(EVENTS)) == PAIRS
    stream.close()
    first, second = matcher.match_batches(EVENTS), matcher.match_batches(EVENTS)
    both = list(zip(first, second))
    assert [a.to_pydict() for a, _ in both] == [b.to_pydict() for _, b in both]
    assert pairs(matcher.match(EVENTS)) == PAIRS


@every_kind
@pytest.mark.skipif(NO_JIT, reason="too slow without the JIT")
def test_many_rows_and_subscriptions(kind: str) -> None:
    """Enough for every block size, buffer growth and word boundary; the oracle is numpy here."""
    rng = np.random.default_rng(5)
    low, width, other = rng.integers(0, 1000, 700), rng.integers(0, 60, 700), rng.integers(0, 20, 700)
    a, b = rng.integers(0, 1000, 5000), rng.integers(0, 20, 5000)
    texts = {i: f"a BETWEEN {low[i]} AND {low[i] + width[i]} AND b <> {other[i]}" for i in range(700)}
    matcher = cm.Matcher.build(texts, {"a": "int64", "b": "int64"}, index=kind, options=cm.Options(batch_rows=1000))
    found = matcher.match(pa.table({"a": a, "b": b}))
    event, sub = np.nonzero((a[:, None] >= low) & (a[:, None] <= low + width) & (b[:, None] != other))
    assert np.array_equal(found["event"], event)
    assert np.array_equal(found["subscription"], sub)


def test_every_column_of_the_strategies_is_usable() -> None:
    schema = pa.schema(list(COLUMNS.items()))
    assert set(COLUMNS) == {term[1] if term[0] == "col" else term[1][1] for term, _ in terms(schema)}
