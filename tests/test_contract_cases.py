"""What every index kind must do, in named cases: constants, edges of types, odd input, threads."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from unittest.mock import patch

import inside
import numpy as np
import pyarrow as pa
import pytest
from contract import NO_JIT, every_kind, expected_pairs, lists, pairs
from installed import needs
from layouts import plain_table
from oracle import Expr, Row, lit, to_sql
from sizes import SMALL
from strategies import NAN, UTC

import colmatch as cm
import colmatch.matching.worker
from colmatch.kernels.layout import MATCHES

SUBS: list[tuple[int, str]] = [
    (7, "age >= 18"),
    (3, "age < 18 OR city = 'Nice'"),
    (5, "city LIKE 'N%' AND age BETWEEN 20 AND 40"),
]
SCHEMA = pa.schema([("age", pa.int32()), ("city", pa.string())])
EVENTS = pa.table({"age": pa.array([36, 17, None, 18], pa.int32()), "city": ["Nice", "Paris", "Nice", None]})
PAIRS = sorted([(0, 7), (0, 3), (0, 5), (1, 3), (2, 3), (3, 7)])


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
    assert [len(some) for some in lists(matcher.match_lists(many))] == matcher.count(many).tolist()


@every_kind
def test_nothing_to_match(kind: str) -> None:
    for none in ({}, [], pa.table({"id": pa.array([], pa.string()), "expression": pa.array([], pa.string())})):
        empty = cm.Matcher.build(none, SCHEMA, index=kind)
        assert len(empty) == 0
        assert empty.match(EVENTS).num_rows == 0
        assert empty.count(EVENTS).tolist() == [0, 0, 0, 0]
        assert lists(empty.match_lists(EVENTS)) == [[], [], [], []]
    matcher = cm.Matcher.build(SUBS, SCHEMA, index=kind)
    for events in (EVENTS.slice(0, 0), EVENTS.schema.empty_table(), EVENTS.to_batches()[0].slice(4)):
        assert matcher.match(events).num_rows == 0
        assert matcher.match(events).schema == matcher.match(EVENTS).schema
        assert matcher.count(events).tolist() == []
        assert lists(matcher.match_lists(events)) == []


@every_kind
def test_all_null_and_missing_columns(kind: str) -> None:
    texts = [
        "age IS NULL",
        "age IS NOT NULL",
        "NOT age = 1",
        "age = 1 OR city IS NULL",
        "TRUE",
        "FALSE",
        "age = NULL",
        "age <=> NULL",
    ]
    matcher = cm.Matcher.build(enumerate(texts), SCHEMA, index=kind, options=cm.Options(missing_columns="null"))
    for events in (
        pa.table({"age": pa.nulls(2, pa.int32()), "city": pa.nulls(2, pa.string())}),
        pa.table({"age": pa.nulls(2), "city": pa.nulls(2)}),
        pa.table({"other": [1, 2]}),
        pa.table({"city": pa.nulls(2)}),
    ):
        assert lists(matcher.match_lists(events)) == [[0, 3, 4, 7]] * 2


@every_kind
def test_constants(kind: str) -> None:
    texts = ["TRUE", "FALSE", "NULL", "age = 1 OR TRUE", "age = 1 AND FALSE", "NULL OR age = 1", "NOT FALSE"]
    matcher = cm.Matcher.build({text: text for text in texts}, SCHEMA, index=kind)
    assert matcher.ids.type == pa.string()
    always = ["TRUE", "age = 1 OR TRUE", "NOT FALSE"]
    found = lists(matcher.match_lists(pa.table({"age": pa.array([1, None], pa.int32())})))
    assert found == [sorted([*always, "NULL OR age = 1"]), sorted(always)]


@every_kind
def test_several_true_conjunctions_are_one_match(kind: str) -> None:
    matcher = cm.Matcher.build({1: "age > 1 OR age > 2 OR city > 'A' OR age < 100"}, SCHEMA, index=kind)
    assert pairs(matcher.match(EVENTS)) == [(0, 1), (1, 1), (2, 1), (3, 1)]
    assert matcher.count(EVENTS).tolist() == [1, 1, 1, 1]


@every_kind
@pytest.mark.parametrize("budget", [2, 64] if SMALL else [1, 2, 64, 4096])
def test_programs_beyond_the_budget(kind: str, budget: int) -> None:
    """An AND of ORs, whose DNF has 2**12 conjunctions."""
    columns = [f"c{i}" for i in range(24)]
    ors = [
        ("or", ("=", ("col", a), lit(1)), ("not", ("<", ("col", b), lit(3))))
        for a, b in zip(columns[::2], columns[1::2])
    ]
    e: Expr = ("and", *ors)
    rng = Random(3)
    rows = [{name: rng.choice([1, 1, 2, 5, None]) for name in columns} for _ in range(50 if SMALL else 300)] + [
        dict.fromkeys(columns, 1)
    ]
    schema = pa.schema([(name, pa.int8()) for name in columns])
    every: list[Expr] = [e, ("is not true", e), ("not", e)]
    matcher = cm.Matcher.build(enumerate(map(to_sql, every), 1), schema, index=cm.index(kind, dnf_budget=budget))
    wanted = expected_pairs(every, [1, 2, 3], rows)
    assert {id for _, id in wanted} == {1, 2, 3}
    assert pairs(matcher.match(plain_table(schema, rows))) == wanted


@every_kind
def test_a_sink_that_is_too_small(kind: str) -> None:
    with patch.object(colmatch.matching.worker, "FIRST_CAPACITY", 1):
        matcher = cm.Matcher.build(dict.fromkeys(range(100), "age > 0"), SCHEMA, index=kind)
        events = pa.table({"age": pa.array([1, None, 2, 0] * 50, pa.int32())})
        assert pairs(matcher.match(events)) == [(i, id) for i in range(0, 200, 2) for id in range(100)]
        assert matcher.count(events).tolist() == [100, 0, 100, 0] * 50


@every_kind
@pytest.mark.parametrize(("first", "large"), [(1, 60), (1, 1 << 25), (1 << 16, 1 << 25)])
def test_each_match_is_counted_once(kind: str, first: int, large: int) -> None:
    """Pairs that are found twice, deleted ones, several segments, and blocks that find no room."""
    matcher = cm.Matcher.build(dict.fromkeys(range(100), "age > 0 OR age > 1 OR city > 'A'"), SCHEMA, index=kind)
    matcher.delete(range(0, 40, 2))
    matcher.insert({100: "age > 1 OR age < 3 OR city IS NULL"})
    events = pa.record_batch({"age": pa.array([1, None, 2, 0] * 50, pa.int32()), "city": ["A", None] * 100})
    with patch.multiple(colmatch.matching.worker, FIRST_CAPACITY=first, LARGE_CAPACITY=large):
        found = len(pairs(matcher.match(events)))
        worker = colmatch.matching.worker.Worker()
        inside.run(worker, matcher, events)
        assert found == 81 * 100 + 100 == worker.counters[MATCHES]
        assert found == matcher.count(events).sum() == matcher.counters(events)["matches"]


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
@pytest.mark.parametrize("dynamic", [False, True])
def test_an_error_of_a_value_belongs_to_the_subscriptions_that_depend_on_it(kind: str, dynamic: bool) -> None:
    """With ANSI; built at once, or inserted into segments that grow."""
    schema = pa.schema([("i", pa.int32()), ("j", pa.int32())])
    texts = {
        1: "j <> 0 AND i / j > 1",
        2: "i / j > 1 AND j <> 0",
        3: "j = 0 OR i / j > 1",
        4: "NOT (j = 0 OR (i / j > 1 AND i < 100))",
        5: "CASE WHEN j <> 0 THEN i / j ELSE 9 END > 1",
        6: "i > 3",
    }
    events = pa.table({"i": [4, 1, None, 9, 2], "j": [0, 1, 0, 2, 0]}, schema)
    options = cm.Options(ansi=True)
    matcher = cm.Matcher.build({} if dynamic else texts, schema, index=kind, options=options)
    if dynamic:
        matcher.insert(texts)
    wanted = [[3, 5, 6], [4], [3, 5], [1, 2, 3, 5, 6], [3, 5]]
    assert lists(matcher.match_lists(events)) == wanted
    assert matcher.count(events).tolist() == [len(some) for some in wanted]
    assert matcher.hits(events).to_pydict() == {"subscription": [1, 2, 3, 4, 5, 6], "events": [1, 1, 4, 1, 4, 2]}
    rules = matcher.report(events).rules
    told = dict(zip(rules["subscription"].to_pylist(), rules["matches"].to_pylist(), strict=True))
    assert {id: count for id, count in told.items() if count} == {1: 1, 2: 1, 3: 4, 4: 1, 5: 4, 6: 2}
    assert len(matcher.match_topk(events, 9)) == sum(map(len, wanted))
    assert [matcher.match_one(row) for row in events.to_pylist()] == wanted
    matcher.insert({8: "i / j > 1 AND i < 4"})
    said = r"^event 4: i / j cannot be computed: division by zero \(subscription 8\)"
    asked = (
        matcher.match,
        matcher.count,
        matcher.hits,
        matcher.exists,
        matcher.reasons,
        matcher.report,
        matcher.counters,
    )
    for find in asked:
        with pytest.raises(cm.EventError, match=said):
            find(events)
    with pytest.raises(cm.EventError, match=said):
        matcher.match_topk(events, 1)
    with pytest.raises(cm.EventError, match="cannot be computed"):
        matcher.match_one({"i": 2, "j": 0})
    assert lists(matcher.match_lists(events, ids=[1, 6])) == [[6], [], [], [1, 6], []]
    matcher.delete([8])
    assert lists(matcher.match_lists(events)) == wanted


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
    assert lists(matcher.match_lists(events)) == [
        [0, 2, 3, 4, 5, 10, 11, 12, 14],  # 2: both are the same double
        [1, 2, 5, 7, 8, 12, 14],
        [3, 5, 9, 10, 14],
        [],
    ]


@every_kind
def test_nanoseconds(kind: str) -> None:
    at, one = np.datetime64("2013-01-31T10:00:00.000000001", "ns"), np.timedelta64(1, "ns")
    events = pa.table({"t": pa.array([at - one, at, at + one, None], pa.timestamp("ns"))})
    texts = [
        f"t {sign} TIMESTAMP '2013-01-31 10:00:00{rest}'" for sign, rest in (("=", ""), (">", ""), (">=", ".000001"))
    ]
    matcher = cm.Matcher.build(enumerate(texts), events.schema, index=kind)
    assert lists(matcher.match_lists(events)) == [[0], [1], [1], []]


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
        assert lists(matcher.match_lists(events)) == [wanted]


@needs("polars", "duckdb", "pandas")
@every_kind
def test_any_arrow_producer(kind: str) -> None:
    matcher = cm.Matcher.build(SUBS, SCHEMA, index=kind)
    import duckdb
    import pandas
    import polars

    frame = polars.from_arrow(EVENTS)
    assert pairs(matcher.match(frame)) == PAIRS
    assert pairs(matcher.match(duckdb.sql("SELECT * FROM EVENTS"))) == PAIRS
    assert pairs(matcher.match(EVENTS.to_batches()[0])) == PAIRS
    nullable = pandas.DataFrame(
        {"age": pandas.array([36, 17, None, 18], "Int32"), "city": ["Nice", "Paris", "Nice", None]}
    )
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
    fields = {
        "Age": pa.int8(),
        "a b": pa.int8(),
        "select": pa.int8(),
        "x.y": pa.int8(),
        "back`tick": pa.int8(),
        "ünï": pa.int8(),
    }
    texts = ["age = 1", "AGE = 1", "`a b` = 1", "`select` = 1", "`x.y` = 1", "`back``tick` = 1", "`ünï` = 1"]
    matcher = cm.Matcher.build(enumerate(texts), fields, index=kind)
    events = pa.table({name: pa.array([1], pa.int8()) for name in fields})
    assert lists(matcher.match_lists(events)) == [list(range(len(texts)))]


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
    found = matcher.match(pa.table({"a": a, "b": b})).sort_by([("event", "ascending"), ("subscription", "ascending")])
    event, sub = np.nonzero((a[:, None] >= low) & (a[:, None] <= low + width) & (b[:, None] != other))
    assert np.array_equal(found["event"], event)
    assert np.array_equal(found["subscription"], sub)


CAST_EVENTS = pa.table(
    {
        "s": ["5", "05", " 7 ", "x", None, "5000000000"],
        "n": pa.array([5, 6, 7, None, 5, 0], pa.int32()),
        "b": [True, False, None, True, True, False],
        "f": [1.5, 2.0, None, -1.0, 5.0, 0.0],
        "t": ["2024-01-31", "2024-1-31", "2024-02-01", None, "2024-01-31", "x"],
    }
)
CASTS = {  # with Spark's results
    "s = 5": "TTfNNN", "NOT (s = 5)": "ffTNNN", "s <> 5000000000": "TTTNNf", "s IN (5, 7)": "TfffNf", "NOT (s IN (5, 7))": "fTTTNT",
    "n IN ('5', '06')": "TffNTf", "n = ' 5 '": "TffNTf", "n > '5.5'": "fTTNff", "f < '2'": "TfNTfT", "s BETWEEN 1 AND 7.5": "TTTNNf",
    "s = n": "TfTNNN", "s <=> n": "TfTTff", "s + 1 = 6": "TTfNNf", "length(n) = 1": "TTTNTT", "n LIKE '5%'": "TffNTf",
    "coalesce(n, s) = 5": "TffNTf", "CASE WHEN b THEN s ELSE n END = '5'": "TfffNf", "s IS TRUE": "ffffff", "b = n": "ffNNfT",
    "DATE '2024-01-31' = t": "TTfNTN", "upper(n) = '7'": "ffTNff",
}  # fmt: skip


@every_kind
def test_casts_of_spark(kind: str, tmp_path: Path) -> None:
    """Built, inserted, saved; a batch and single events."""
    expected = [[e for e, rows in CASTS.items() if rows[row] == "T"] for row in range(CAST_EVENTS.num_rows)]
    expected = [
        sorted([*ids, *[f"unknown {e}" for e, rows in CASTS.items() if rows[i] == "N"]])
        for i, ids in enumerate(expected)
    ]
    rules = {e: e for e in CASTS} | {f"unknown {e}": f"({e}) IS UNKNOWN" for e in CASTS}
    some = [*rules][::5]
    built = cm.Matcher.build(
        {e: rules[e] for e in rules if e not in some}, CAST_EVENTS.schema, index=kind, options={"casts": "spark"}
    )
    built.insert({e: rules[e] for e in some})
    assert lists(built.match_lists(CAST_EVENTS)) == expected
    assert [sorted(built.match_one(row)) for row in CAST_EVENTS.to_pylist()] == expected
    built.save(tmp_path / "rules.cm")
    opened = cm.Matcher.open(tmp_path / "rules.cm")
    opened.upsert({e: rules[e] for e in some})
    assert opened.options.casts == "spark"
    assert lists(opened.match_lists(CAST_EVENTS)) == expected
