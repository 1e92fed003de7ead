"""BE-Tree and BE*-Tree where attributes are ranges in the events: how little they look at."""

from __future__ import annotations

import pyarrow as pa
import pytest
from contract import NO_JIT, pairs

import colmatch as cm

TREES = pytest.mark.parametrize("kind", ["betree", "bestar"])
COUNT = 200 if NO_JIT else 2000
PRICE = {"price": ("low", "high")}


@TREES
@pytest.mark.parametrize(("low", "high"), [(500, 540), (10 * COUNT - 40, None), (None, 15), (777, 777)])
def test_only_buckets_that_a_range_meets_are_looked_at(kind: str, low: int | None, high: int | None) -> None:
    rules = {i: f"price BETWEEN {10 * i} AND {10 * i + 5}" for i in range(COUNT)}
    matcher = cm.Matcher.build(rules, {"price": "int64"}, index=cm.index(kind, capacity=4))
    events = pa.table({"low": pa.array([low], pa.int64()), "high": pa.array([high], pa.int64())})
    wanted = [i for i in rules if (high is None or 10 * i <= high) and (low is None or low <= 10 * i + 5)]
    assert pairs(matcher.match(events, PRICE)) == [(0, i) for i in wanted]
    counted = matcher.counters(events, ranges=PRICE)
    assert counted["conjunctions"] <= len(wanted) + 12
    assert counted["candidates"] == counted["matches"] == len(wanted)


def test_parts_that_no_range_meets_are_not_entered() -> None:
    """Those of BE*-Tree: one of BE-Tree is as wide as the attribute's domain."""
    names = [f"a{i}" for i in range(20)]
    rules = {i: f"{names[i % 20]} BETWEEN {10 + i // 20 % 7} AND 20" for i in range(COUNT)}
    matcher = cm.Matcher.build(rules, dict.fromkeys(names, "int64"), index=cm.index("bestar", capacity=3))
    ranges = {name: (f"{name} low", f"{name} high") for name in names}
    ends = {end: (30, 40) if end.startswith("a1") else (0, 5) for end in names}
    events = pa.table({f"{name} {end}": [ends[name][i]] for name in names for i, end in enumerate(("low", "high"))})
    counted = matcher.counters(events, ranges=ranges)
    assert counted["matches"] == counted["conjunctions"] == counted["candidates"] == 0
    assert counted["nodes"] <= 2 + len(names)  # the two topmost buckets, and the parts of the root


@TREES
@pytest.mark.parametrize("short", [True, False])
def test_what_needs_an_attribute_that_is_not_there_is_left_out(kind: str, short: bool) -> None:
    rules = {i: f"price = {i} AND size = 1" for i in range(COUNT)}
    index = cm.index(kind, short_circuit=short, capacity=4 * COUNT)
    matcher = cm.Matcher.build(rules, {"price": "int64", "size": "int64"}, index=index)
    none = pa.array([None], pa.int64())
    events = pa.table({"low": pa.array([0]), "high": pa.array([COUNT]), "size": none})
    assert matcher.counters(events, ranges=PRICE)["candidates"] == (0 if short else COUNT)


@TREES
def test_inserts_and_deletes_between(kind: str) -> None:
    rules = {i: f"price BETWEEN {10 * i} AND {10 * i + 5}" for i in range(COUNT)}
    matcher = cm.Matcher.build(rules, {"price": "int64"}, index=kind)
    events = pa.table({"low": [101, 150], "high": [119, 153]})
    assert pairs(matcher.match(events, PRICE)) == [(0, 10), (0, 11), (1, 15)]
    matcher.delete([10, 15])
    matcher.insert({-1: "price BETWEEN 119 AND 400", -2: "price > 152", -3: "price IS NULL"})
    assert pairs(matcher.match(events, PRICE)) == [(0, -1), (0, 11), (1, -2), (1, -1)]
    matcher.close()
