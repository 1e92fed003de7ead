"""Events whose attributes are ranges, for every kind: as if each value between were tried."""

from __future__ import annotations

import math
import pickle
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from contract import built, every_kind, lists, pairs, share_of_cases, share_of_examples, some_settings
from hypothesis import given
from hypothesis import strategies as st
from oracle import Expr, Row, best_score, lit, meets, to_sql
from sizes import SMALL
from strategies import weighed
from ways_in import attribute_name, condition, to_builder

import colmatch as cm
import colmatch.matching.worker
from colmatch.updates import policy

INF, NAN = math.inf, math.nan
# Of each column: the literals that expressions may have, and values such that between two literals,
# and before and behind all, there is one. The first three are ranges, as far as a test says so.
LITERALS: dict[str, list[Any]] = {
    "i": [0, 1, 3, 4, 7, 8],
    "f": [0.0, 1.0, 2.0, 4.0, NAN],
    "s": ["a", "b", "ba", "c"],
    "flag": [True, False],
    "j": [0, 1, 2, 5],
    "x": [1, 2],
    "tags": ["a", "b"],
}
VALUES: dict[str, list[Any]] = {
    "i": list(range(-2, 11)),
    "f": [-INF, -1.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, INF, NAN],
    "s": ["", "a", "aa", "b", "b!", "ba", "ba!", "bb", "c", "cc", "d", "dd"],
    "flag": [False, True],
    "j": list(range(-1, 7)),
}
SCHEMA = pa.schema(
    {
        "i": pa.int64(),
        "f": pa.float64(),
        "s": pa.string(),
        "flag": pa.bool_(),
        "j": pa.int16(),
        "x": pa.int32(),
        "tags": pa.list_(pa.string()),
    }
)


def a_predicate(rng: Random, columns: list[str]) -> Expr:
    name = rng.choice(columns)
    column, some = ("col", name), LITERALS[name]
    if name == "tags":
        return ("array_contains", column, lit(rng.choice(some)))
    drawn = rng.random()
    if drawn < 0.1:
        return (rng.choice(["is null", "is not null"]), column)
    if drawn < 0.25:
        return (
            rng.choice(["in", "not in"]),
            column,
            tuple(lit(x) for x in rng.sample(some, rng.randint(1, len(some)))),
        )
    if drawn < 0.4:
        low, high = (rng.choice(some) for _ in range(2))
        return (rng.choice(["between", "between", "not between"]), column, lit(low), lit(high))
    if name == "s" and drawn < 0.6:
        return (rng.choice(["startswith", "not startswith"]), column, lit(rng.choice(some)))
    if name == "flag" and drawn < 0.7:
        return column
    return (rng.choice(["=", "<>", "<", "<=", ">", ">=", "<=>"]), column, lit(rng.choice(some)))


def an_expression(rng: Random, columns: list[str], depth: int) -> Expr:
    if not depth or rng.random() < 0.15:
        e = a_predicate(rng, columns)
    else:
        parts = [an_expression(rng, columns, depth - 1) for _ in range(rng.randint(2, 4))]
        e = (rng.choice(["and", "or"]), *parts)
        own = Random(repr(parts))  # so that all other expressions stay as they are
        if own.random() < 0.08:
            e = ("at_least", own.randint(1, len(parts)), *parts)
    return ("not", e) if rng.random() < 0.15 else e


def place(x: Any) -> Any:
    """Where a value stands among others of its type: NaN is above all."""
    return (x != x, x)


def some_events(rng: Random, ranged: list[str], count: int) -> tuple[pa.Table, list[tuple[Row, dict[str, list[Any]]]]]:
    """Events with columns for the ends of ranges, and what the oracle is to try for each."""
    columns: dict[str, list[Any]] = {name: [] for name in SCHEMA.names if name not in ranged}
    columns |= {f"{name} {end}": [] for name in ranged for end in ("low", "high")}
    tried: list[tuple[Row, dict[str, list[Any]]]] = []
    for _ in range(count):
        row: Row = {}
        among: dict[str, list[Any]] = {}
        for name in SCHEMA.names:
            if name in ranged:
                low, high = sorted((rng.choice(VALUES[name]) for _ in range(2)), key=place)
                if rng.random() < 0.3:
                    high = low
                low, high = (None if rng.random() < 0.15 else end for end in (low, high))
                columns[f"{name} low"].append(low)
                columns[f"{name} high"].append(high)
                among[name] = [
                    x
                    for x in VALUES[name]
                    if (low is None or place(low) <= place(x)) and (high is None or place(x) <= place(high))
                ]
                among[name] = [None] if low is None and high is None else among[name]
                continue
            if name == "tags":
                found: Any = None if rng.random() < 0.1 else rng.sample(LITERALS["tags"], rng.randint(0, 2))
            else:
                found = None if rng.random() < 0.15 else rng.choice(VALUES.get(name, LITERALS[name]))
            row[name] = found
            columns[name].append(found)
        tried.append((row, among))
    types = {name: SCHEMA.field(name.split(" ")[0]).type for name in columns}
    order = rng.sample(sorted(columns), len(columns))
    return pa.table([pa.array(columns[name], types[name]) for name in order], names=order), tried


Known = dict[tuple[int, int], bool]


def check(
    matcher: cm.Matcher,
    there: dict[int, Expr],
    events: pa.Table,
    ranged: list[str],
    tried: list[tuple[Row, dict[str, list[Any]]]],
    known: Known,
) -> None:
    """All ways to ask agree with the oracle.

    known : what it said of rows and ids before, and takes long to say
    """
    ranges = {name: (f"{name} low", f"{name} high") for name in ranged}
    for i, (row, among) in enumerate(tried):
        known |= {(i, id): meets(e, row, among) for id, e in there.items() if (i, id) not in known}
    wanted = sorted((i, id) for i in range(len(tried)) for id in there if known[i, id])
    found = pairs(matcher.match(events, ranges=ranges))
    wrong = [
        f"{to_sql(there[id]) if id in there else id}\n    {events.slice(i, 1).to_pylist()}: {(i, id) in wanted}"
        for i, id in set(found) ^ set(wanted)
    ]
    assert not wrong, f"{len(wrong)} differences, the oracle says\n" + "\n".join(wrong[:5])
    assert found == wanted
    each = [[id for i, id in wanted if i == row] for row in range(len(tried))]
    assert lists(matcher.match_lists(events, ranges)) == each
    assert matcher.count(events, ranges).tolist() == list(map(len, each))
    batches = matcher.match_batches(events, ranges)
    assert pairs(pa.Table.from_batches(batches, matcher.match(events, ranges).schema)) == wanted
    assert matcher.counters(events, ranges=ranges)["matches"] == len(wanted)


@every_kind
@share_of_examples
@given(seed=st.integers(0, 2**32 - 1), rng=st.randoms(use_true_random=False), n=st.integers(1, 5))
def test_what_some_value_of_each_range_would_match(kind: str, seed: int, rng: Random, n: int) -> None:
    ranged = Random(seed).sample(["i", "f", "s", "flag", "j"], Random(seed).choice([1, 1, 2, 3]))
    events, tried = some_events(Random(seed), ranged, 6)
    there = {id: an_expression(rng, list(LITERALS), rng.choice([0, 1, 2, 3])) for id in range(n)}
    options = cm.Options(batch_rows=Random(seed).choice([1, 2, 8192]))
    texts = {id: to_sql(e) for id, e in there.items()}
    known: Known = {}
    with patch.object(colmatch.matching.worker, "FIRST_CAPACITY", 1 if seed % 3 else 1 << 16):
        matcher = built(texts, SCHEMA, some_settings(Random(seed), kind), options)
        check(matcher, there, events, ranged, tried, known)
        check(pickle.loads(pickle.dumps(matcher)), there, events, ranged, tried, known)


@share_of_cases(18 if SMALL else 54)
def test_hundreds_of_expressions_and_updates(kind: str, seed: int) -> None:
    """Deep expressions, programs of every budget, segments that grow and those that were merged."""
    rng = Random(seed)
    ranged = rng.sample(["i", "f", "s", "flag", "j"], rng.choice([1, 2]))
    events, tried = some_events(rng, ranged, 20 if SMALL else 70)
    columns = rng.sample(list(LITERALS), 4)

    def some(first: int, count: int) -> dict[int, Expr]:
        return {id: an_expression(rng, columns, rng.choice([0, 1, 2, 3])) for id in range(first, first + count)}

    there = some(0, 20 if SMALL else 100)
    known: Known = {}
    options = cm.Options(batch_rows=rng.choice([7, 8192]), threads=rng.choice([1, 2]))
    with patch.multiple(policy, GROWING_MOST=rng.choice([2, 1024]), SEGMENTS_MOST=rng.choice([1, 16])):
        matcher = built({id: to_sql(e) for id, e in there.items()}, SCHEMA, some_settings(rng, kind), options)
        check(matcher, there, events, ranged, tried, known)
        for step in range(4):
            new = some(1000 * (step + 1), 10)
            matcher.insert({id: to_sql(e) for id, e in new.items()})
            there |= new
            gone = rng.sample(sorted(there), 12)
            matcher.delete(gone)
            there = {id: e for id, e in there.items() if id not in gone}
            check(matcher, there, events, ranged, tried, known)
        matcher.compact()
        check(matcher, there, events, ranged, tried, known)
        matcher.close()


@share_of_cases(36 if SMALL else 108)
def test_the_best_score_that_values_of_the_ranges_give(kind: str, seed: int) -> None:
    """Conjunctions and programs with weights, of one segment and of several."""
    rng = Random(seed)
    ranged = rng.sample(["i", "f", "s", "flag", "j"], rng.choice([1, 1, 2]))
    events, tried = some_events(rng, ranged, 12)
    two_valued = to_builder(("is null", ("col", "i")), None)
    columns = rng.sample(list(LITERALS), 4)

    def some(first: int, count: int) -> dict[int, Expr]:
        drawn = [an_expression(rng, columns, rng.choice([0, 1, 2, 3])) for _ in range(count)]
        return dict(enumerate([weighed(rng, e) for e in drawn], first))

    there, new = some(0, 30), some(100, 20)
    written = [[(id, condition(e, two_valued)) for id, e in each.items()] for each in (there, new)]
    options = cm.Options(batch_rows=rng.choice([5, 8192]), threads=rng.choice([1, 2]))
    index = cm.index(kind) if kind == "kindex" else some_settings(rng, kind)
    columns_of_weights = {attribute_name(("col", name)): rng.choice([0.0, 0.5, 2.0]) for name in ranged}
    given: dict[Expr, float] = {("col", name): weight for name, weight in columns_of_weights.items()}
    with patch.multiple(policy, GROWING_MOST=rng.choice([2, 1024]), SEGMENTS_MOST=rng.choice([1, 16])):
        matcher = built(written[0], SCHEMA, index, options)
        matcher.insert(written[1])
        for how in ("dot", "sum", "max"):
            k = rng.choice([1, 3, 1000])
            weights = None if how == "sum" or rng.random() < 0.3 else columns_of_weights
            ends = {name: (f"{name} low", f"{name} high") for name in ranged}
            found = matcher.match_topk(events, k, how, weights, ranges=ends)
            wanted = []
            for i, (row, among) in enumerate(tried):
                of_row = {} if weights is None else given
                scores = [(best_score(e, row, among, of_row, how), id) for id, e in (there | new).items()]
                best = sorted(((-s, id) for s, id in scores if s is not None))[:k]
                wanted += [(i, id, -s) for s, id in best]
            assert list(zip(*found.to_pydict().values(), strict=True)) == wanted, (how, k, weights)
            assert matcher.counters(events, k, ends, how, weights)["matches"] >= len(wanted)
        matcher.close()


@every_kind
def test_points_are_as_in_match(kind: str) -> None:
    rng = Random(5)
    there = {id: to_sql(an_expression(rng, list(LITERALS), 2)) for id in range(60)}
    matcher = cm.Matcher.build(there, SCHEMA, index=kind)
    events, _ = some_events(rng, [], 50)
    points = {name: (f"{name} low", name) for name in ("i", "s", "f", "flag")}
    twice = events
    for name in points:
        twice = twice.append_column(f"{name} low", events[name])
    assert pairs(matcher.match(twice, ranges=points)) == pairs(matcher.match(events))
    assert matcher.match_topk(twice, 3, ranges=points) == matcher.match_topk(events, 3)
