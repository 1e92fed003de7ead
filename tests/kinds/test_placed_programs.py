"""An expression that is kept whole is found by predicates that it needs, in every kind that can.

The kinds come from the registry. ``scan`` and ``bitslice`` look at all conjunctions, and ``kindex``
and ``opindex`` count clauses.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from sizes import SMALL

import colmatch as cm
from colmatch.kinds.registry import KINDS

BY_PREDICATE = [kind for kind in KINDS if kind not in ("scan", "bitslice", "kindex", "opindex")]
EACH = pytest.mark.parametrize("kind", BY_PREDICATE)
COUNT, EVENTS, VALUES = (1000, 3, 100) if SMALL else (2000, 50, 100)
NAMES = [f"a{i}" for i in range(14)]
SCHEMA = pa.schema([(name, pa.int64()) for name in NAMES])
ORDERS = [Random(seed).sample(NAMES, 14) for seed in range(20)]  # few, so that there are few forms
Texts = dict[int, str]


def clauses(rng: Random, sizes: list[int], test: Callable[[Random], str]) -> str:
    """Makes an AND of ORs of so many predicates, on attributes that are all different."""
    names = iter(rng.choice(ORDERS))
    return " AND ".join(f"({' OR '.join(f'{next(names)} {test(rng)}' for _ in range(size))})" for size in sizes)


def equal(rng: Random) -> str:
    return f"= {rng.randrange(VALUES)}"


def seven_ors() -> Texts:
    rng = Random(1)
    return {i: clauses(rng, [2] * 7, equal) for i in range(COUNT)}


def with_one_that_is_needed() -> Texts:
    rng = Random(2)
    texts = {}
    for i in range(COUNT):
        names = rng.choice(ORDERS)[:13]
        ors = " AND ".join(f"({a} < 90 OR {b} > 10)" for a, b in zip(names[1::2], names[2::2], strict=True))
        texts[i] = f"{ors} AND ({names[1]} > 1 OR {names[2]} > 1) AND {names[0]} = {rng.randrange(VALUES)}"
    return texts


def with_one_selective_or() -> Texts:
    """Makes ORs of equalities among others as short of ranges, which most values meet."""
    rng = Random(3)
    texts = {}
    for i in range(COUNT):
        names = rng.choice(ORDERS)
        pairs = list(zip(names[::2], names[1::2], strict=True))
        ors = [f"({a} > {rng.randrange(9)} OR {b} < {rng.randrange(90, 99)})" for a, b in pairs]
        a, b = pairs[3]
        ors[3] = f"({a} = {rng.randrange(VALUES)} OR {b} = {rng.randrange(VALUES)})"
        texts[i] = " AND ".join(ors)
    return texts


def nested() -> Texts:
    """Makes expressions that are no AND of ORs: each OR has ANDs in it."""
    rng = Random(4)
    texts = {}
    for i in range(COUNT):
        names = rng.choice(ORDERS)
        pairs = zip(names[::2], names[1::2], strict=True)
        texts[i] = " AND ".join([f"({a} {equal(rng)} AND {b} >= 1 OR {b} {equal(rng)} AND {a} <> 3)" for a, b in pairs])
    return texts


def events(rng: Random, count: int = EVENTS) -> pa.Table:
    return pa.table({name: pa.array([rng.randrange(VALUES) for _ in range(count)], pa.int64()) for name in NAMES})


def built(texts: Texts, kind: str) -> cm.Matcher:
    return cm.Matcher.build(texts, SCHEMA, index=kind)


def grown(texts: Texts, kind: str) -> cm.Matcher:
    matcher = built({}, kind)
    for begin in range(0, COUNT, 250):
        matcher.insert({i: texts[i] for i in range(begin, begin + 250)})
    return matcher


def pairs(matcher: cm.Matcher, batch: pa.Table, **more: Any) -> list[tuple[int, int]]:
    found = matcher.match(batch, **more)
    return sorted(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True))


def verified(matcher: cm.Matcher, batch: pa.Table) -> float:
    """Counts the conjunctions that are verified for an event, on average."""
    return matcher.counters(batch)["candidates"] / batch.num_rows


@EACH
@pytest.mark.parametrize("how", [built, grown], ids=["built", "grown"])
@pytest.mark.parametrize(
    "texts", [seven_ors, with_one_that_is_needed, with_one_selective_or, nested], ids=lambda texts: texts.__name__
)
def test_few_are_verified(kind: str, how: Callable[[Texts, str], cm.Matcher], texts: Callable[[], Texts]) -> None:
    """Each value is met by one in a hundred, so an OR of two by one in fifty."""
    made, batch = texts(), events(Random(5))
    matcher, scan = how(made, kind), built(made, "scan")
    assert verified(matcher, batch) <= 0.3 * COUNT
    assert pairs(matcher, batch) == pairs(scan, batch)


@EACH
def test_each_match_comes_once(kind: str) -> None:
    """Most events here meet several predicates of the OR by which an expression is found."""
    rng = Random(6)
    texts = {
        i: clauses(rng, [2] * 7, lambda rng: f"BETWEEN {rng.randrange(30)} AND {rng.randrange(60, 99)}")
        for i in range(60)
    }
    matcher, scan, batch = built(texts, kind), built(texts, "scan"), events(Random(7), 20)
    found = pairs(matcher, batch)
    assert found == pairs(scan, batch) and len(found) == len(set(found)) > 100
    assert list(matcher.count(batch)) == list(scan.count(batch))
    assert list(matcher.exists(batch)) == list(scan.exists(batch))
    wide = batch.append_column("high", pa.array([value + 9 for value in batch["a3"].to_pylist()], pa.int64()))
    over = {"a3": ("a3", "high")}
    assert pairs(matcher, wide, ranges=over) == pairs(scan, wide, ranges=over)
    matcher.delete(list(range(0, 60, 2)))
    assert pairs(matcher, batch) == [(row, id) for row, id in found if id % 2]


@EACH
def test_scores_stay_the_same(kind: str) -> None:
    rng = Random(8)
    rows = [
        {
            "id": i,
            "expression": clauses(rng, [2] * 7, lambda rng: f"> {rng.randrange(60)}"),
            "weights": [(name, 1.0 + rng.randrange(9)) for name in NAMES],
        }
        for i in range(60)
    ]
    types = pa.schema(
        [("id", pa.int64()), ("expression", pa.string()), ("weights", pa.map_(pa.string(), pa.float64()))]
    )
    table, batch = pa.Table.from_pylist(rows, types), events(Random(9), 20)
    best, wanted = (
        cm.Matcher.build(table, SCHEMA, index=index).match_topk(batch, 5).to_pylist() for index in (kind, "scan")
    )
    assert best == wanted and len(best) > 20


@EACH
def test_what_has_no_such_or_is_verified_for_every_event(kind: str) -> None:
    text = " AND ".join(f"(NOT ({a} <=> 1) OR {b} = 1)" for a, b in zip(NAMES[::2], NAMES[1::2], strict=True))
    matcher, batch = built({7: text}, kind), events(Random(10), 20)
    assert verified(matcher, batch) == 1
    assert pairs(matcher, batch) == pairs(built({7: text}, "scan"), batch)


@EACH
def test_an_expression_is_not_divided_without_end(kind: str) -> None:
    """Each program has the other ORs whole: of three ORs of 20, 20 programs have 41 predicates."""
    names = [f"b{i}" for i in range(70)]
    schema = pa.schema([(name, pa.int64()) for name in names])

    def ors(count: int, size: int) -> str:
        return " AND ".join(f"({' OR '.join(f'{name} = {value}' for name in names[:size])})" for value in range(count))

    matchers = [cm.Matcher.build({1: ors(*shape)}, schema, index=kind) for shape in ((3, 20), (3, 25), (2, 40))]
    assert [matcher.stats()["conjunctions"] for matcher in matchers] == [20, 1, 1]


@EACH
def test_an_explanation_shows_the_expression_undivided(kind: str) -> None:
    text = clauses(Random(11), [2, 3, 3, 3, 3], equal)
    matcher = built({7: text, 8: f"({text}) OR a0 > 5"}, kind)
    assert matcher.stats()["conjunctions"] == 5
    event = dict.fromkeys(NAMES, 5)
    tree = matcher.explain(event, 7).tree
    assert [{leaf.text for leaf in clause.children} for clause in tree.children] == [
        set(part.strip("() ").split(" OR ")) for part in text.split(" AND ")
    ]
    assert tree.text == "all of" and {clause.text for clause in tree.children} == {"any of"}
    either = matcher.explain(event, 8).tree
    assert sorted(child.text for child in either.children) == ["a0 > 5", "all of"]


@EACH
def test_parts_of_an_or_are_divided_into_a_thousand_at_most(kind: str) -> None:
    """They share 16 times 64 programs; what comes later stays whole."""
    names = [f"b{i}" for i in range(20)]
    parts = [
        " AND ".join(f"({' OR '.join(f'{name} = {3 * part + value}' for name in names)})" for value in range(3))
        for part in range(60)
    ]
    matcher = cm.Matcher.build({1: " OR ".join(parts)}, dict.fromkeys(names, "int64"), index=kind)
    assert matcher.stats()["conjunctions"] == 51 * 20 + 9
    rows = [{name: 3 * part + i % 3 for i, name in enumerate(names)} for part in (0, 50, 51, 59, 60)]
    assert matcher.exists(pa.Table.from_pylist(rows)).tolist() == [True, True, True, True, False]
