"""Strata: the best matches are found in the first of them, and full matching does not notice."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random
from typing import Any
from unittest.mock import patch

import inside
import numpy as np
import pyarrow as pa
import pytest
from contract import pairs
from sizes import SMALL
from workload import named

import colmatch as cm
import colmatch.kinds.strata
from colmatch.kernels.layout import DOT, MAX

SIZE, ROWS = (300, 60) if SMALL else (20_000, 1024)
SCHEMA = pa.schema(
    {"a": pa.int64(), "b": pa.int64(), "c": pa.int64(), "tags": pa.list_(pa.string()), "w": pa.map_("string", "double")}
)


@pytest.fixture(autouse=True)
def _few_are_enough_for_strata() -> Iterator[None]:
    with (
        patch.object(colmatch.kinds.strata, "LEAST_CONJUNCTIONS", 1),
        patch.object(colmatch.kinds.strata, "ENOUGH", 0.5),
    ):
        yield


def texts(rng: Random, ids: range) -> pa.Table:
    """Conjunctions, ORs of them, ANDs of many ORs, lists; weights of both signs, and priorities."""

    def of(attribute: str) -> str:
        low = rng.randrange(20)
        return rng.choice(
            [f"{attribute} >= {low}", f"{attribute} BETWEEN {low // 2} AND {low + 3}", f"{attribute} <> {low}"]
        )

    def one() -> str:
        plain = " AND ".join(of(name) for name in rng.sample("abc", rng.randint(1, 3)))
        if rng.random() < 0.6:
            return plain
        if rng.random() < 0.4:
            return f"({plain}) OR ({of('a')} AND array_contains(tags, '{rng.choice('xyz')}'))"
        return " AND ".join(f"({of(rng.choice('abc'))} OR {of('b')} OR {of('c')})" for _ in range(6))

    def eighths(low: int, high: int) -> float:
        return rng.randint(low, high) / 8

    weights = [[(name, eighths(-4, 12)) for name in rng.sample(["a", "b", "c", "tags"], 2)] for _ in ids]
    return pa.table(
        {
            "id": list(ids),
            "expression": [one() for _ in ids],
            "weights": pa.array(weights, SCHEMA.field("w").type),
            "priority": [eighths(-20, 20) for _ in ids],
        }
    )


def some_events(rng: Random, rows: int) -> pa.Table:
    def of(low: int) -> list[int | None]:
        return [None if rng.random() < 0.2 else rng.randrange(low, 25) for _ in range(rows)]

    tags = [rng.sample("xyz", rng.randrange(3)) for _ in range(rows)]
    weights = [[(name, rng.randrange(17) / 8) for name in rng.sample("abc", rng.randrange(3))] for _ in range(rows)]
    return pa.table({"a": of(0), "b": of(5), "c": of(0), "tags": tags, "w": weights}, schema=SCHEMA)


def strata(matcher: cm.Matcher) -> Any:
    return inside.version(matcher).segments[0].strata


@pytest.mark.parametrize("seed", range(2 if SMALL else 6))
def test_the_best_are_those_that_scan_finds(seed: int) -> None:
    """Also of what was inserted later, and without what was deleted."""
    rng = Random(seed)
    given, more = texts(rng, range(150)), texts(rng, range(150, 180))
    events = some_events(rng, 20 if SMALL else 150)
    made = {}
    for kind in ("bitslice", "scan"):
        matcher = cm.Matcher.build(given, SCHEMA, index=kind, options=cm.Options(batch_rows=rng.choice([1, 40, 4096])))
        matcher.insert(more)
        matcher.delete(list(range(0, 180, 7)))
        made[kind] = matcher
    assert len(strata(made["bitslice"]).best) > 1
    for score, k, weights in product(("dot", "sum", "max", "priority"), (1, 4, 1000), (None, "w", {"a": 0.25})):
        if weights is not None and score in ("sum", "priority"):
            continue
        found, wanted = (made[kind].match_topk(events, k, score, weights) for kind in ("bitslice", "scan"))
        assert found.equals(wanted), (score, k, weights)


@pytest.mark.parametrize("batch_rows", [1, 50, 8192])
def test_full_matching_finds_all_of_all_strata(batch_rows: int) -> None:
    workload = named("dense", subscriptions=SIZE // 5, weights=True)
    events, options = workload.events(ROWS // 4), cm.Options(batch_rows=batch_rows)
    made = [
        cm.Matcher.build(workload.predicate_table(), workload.schema(), index=kind, options=options)
        for kind in (cm.index("bitslice", close_columns=False), "scan")
    ]
    assert len(strata(made[0]).best) > 1
    assert pairs(made[0].match(events)) == pairs(made[1].match(events))


def ranked(size: int = SIZE) -> tuple[cm.Matcher, pa.Table]:
    """Some 100 matches an event, of subscriptions with one weight each, and any priority."""
    workload = named("dense", subscriptions=size, subscription_size=(2, 4) if not SMALL else (1, 2))
    rng = np.random.default_rng(5)
    table = workload.predicates()
    id = table["id"].to_numpy()
    table = table.append_column("weight", pa.array(rng.integers(0, 100, size)[id] * (np.diff(id, prepend=-1) > 0) / 8))
    table = table.append_column("priority", pa.array(rng.random(size)[id]))
    return cm.Matcher.build(cm.PredicateTable(table), workload.schema(), index="bitslice"), workload.events(ROWS)


@pytest.mark.parametrize("score", ["dot", "sum"])
def test_the_best_one_is_found_by_looking_at_few(score: str) -> None:
    matcher, events = ranked()
    looked, all = matcher.counters(events, k=1, score=score), matcher.counters(events)
    assert SMALL or looked["conjunctions"] < 0.7 * all["conjunctions"]
    assert looked["matches"] < 0.5 * all["matches"]


def test_rows_that_have_enough_are_not_looked_at_again() -> None:
    matcher, events = ranked()
    rows = events.slice(0, 60)
    few, many = (matcher.counters(rows, k=k)["matches"] for k in (1, 60))
    assert few < many <= matcher.counters(rows)["matches"]


def test_what_is_known_of_one_batch_is_good_for_the_next() -> None:
    """All attributes have the same value: there are far more matches than of independent ones."""
    size = 4000
    rng = np.random.default_rng(3)
    value = rng.integers(0, 50, size)
    names = [f"a{i}" for i in range(12)]
    table = pa.table(
        {
            "id": np.repeat(np.arange(size), len(names)),
            "attribute": names * size,
            "op": ["="] * (len(names) * size),
            "operands": pa.array([[int(v)] for v in np.repeat(value, len(names))], pa.list_(pa.int64())),
            "weight": np.repeat(rng.integers(0, 64, size) / 8, len(names)),
        }
    )
    schema = dict.fromkeys(names, "int64")
    matcher = cm.Matcher.build(
        cm.PredicateTable(table), schema, index="bitslice", options=cm.Options(batch_rows=50, threads=1)
    )
    assert len(strata(matcher).best) > 1
    row = np.arange(100) % 50
    events = pa.table(dict.fromkeys(names, row))
    first = matcher.counters(events.slice(0, 50), k=1)["matches"]
    assert matcher.counters(events, k=1)["matches"] < 1.8 * first


def test_equals_stay_together_and_strata_fall() -> None:
    workload = named("dense", subscriptions=SIZE // 5)
    table = workload.predicates()
    id = table["id"].to_numpy()
    alike = table.append_column("weight", pa.array(id % 5 * (np.diff(id, prepend=-1) > 0.0)))  # five scores
    matcher = cm.Matcher.build(cm.PredicateTable(alike), workload.schema(), index="bitslice")
    best = strata(matcher).best[:, DOT]
    assert 1 < len(best) <= 4
    assert np.all(np.diff(best) <= -1) and np.all(best == np.round(best))
    nothing = table.append_column("weight", pa.array(np.full(len(table), 0.0)))
    matcher = cm.Matcher.build(cm.PredicateTable(nothing), workload.schema(), index="bitslice")
    assert len(strata(matcher).best) == 1


def test_a_set_without_weights_has_one_stratum() -> None:
    workload = named("dense", subscriptions=SIZE // 5)
    matcher = cm.Matcher.build(workload.predicate_table(), workload.schema(), index="bitslice")
    assert len(strata(matcher).best) == 1


def test_scores_below_zero_rise_where_the_event_gives_little_weight() -> None:
    """What is best of a stratum without weights of events is not always the highest of it."""
    low, high = [f"l{i}" for i in range(12)], [f"h{i}" for i in range(12)]  # too many for a DNF
    either = " AND ".join(f"({a} >= 0 OR {b} >= 0)" for a, b in zip(low, high, strict=True))
    map, count = pa.map_(pa.string(), pa.float64()), 200
    mixed = [*((name, -0.5) for name in low), *((name, 1.0) for name in high)]
    weights = pa.array([mixed] * count + [[("b", -1.0)]] * 20, map)
    table = pa.table({"id": range(count + 20), "expression": [either] * count + ["b = 0"] * 20, "weights": weights})
    matcher = cm.Matcher.build(table, dict.fromkeys([*low, *high, "b"], "int64"), index="bitslice")
    assert strata(matcher).best[:, MAX].tolist() == [1.0, -1.0]
    events = pa.table(dict.fromkeys([*low, "b"], [0] * 4) | dict.fromkeys(high, [-1] * 4))
    assert matcher.match_topk(events, 1, "max", {"b": 0.25})["score"].to_pylist() == [-0.25] * 4


def test_the_first_step_takes_more_than_are_wanted() -> None:
    """Else every other event would have too few in it, and need another step."""
    size = 1000
    columns = {"id": range(size), "attribute": ["a"] * size, "op": [">="] * size}
    limits = pa.array([[i] for i in range(size)], pa.list_(pa.int64()))
    columns |= {"operands": limits, "weight": [8.0 if i % 10 == 0 else 1.0 for i in range(size)]}
    matcher = cm.Matcher.build(cm.PredicateTable(pa.table(columns)), {"a": "int64"}, index="bitslice")
    assert 50 < strata(matcher).expected[0] < 51
    event = pa.table({"a": [size]})
    assert matcher.counters(event, k=40)["matches"] == 100, "the first stratum's"
    assert matcher.counters(event, k=47)["matches"] == size, "of both, at once"


def test_the_rate_of_matches_is_known_after_all_strata_were_taken_as_one() -> None:
    """Where so many are wanted, all strata are one of which nothing is known."""
    rng = Random(7)
    matcher = cm.Matcher.build(texts(rng, range(300)), SCHEMA, index="bitslice", options=cm.Options(threads=1))
    events = some_events(rng, 50)
    for k in (3, 300, 3):
        matcher.match_topk(events, k)
        (worker,) = inside.idle(matcher)
        assert [bool(0 < rate < np.inf) for rate in worker.rates.values()] == [True]
