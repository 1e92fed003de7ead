"""BE-Tree and BE*-Tree where attributes are ranges in the events: how little they look at."""

from __future__ import annotations

import pyarrow as pa
import pytest
from contract import pairs
from sizes import SMALL

import colmatch as cm

TREES = pytest.mark.parametrize("kind", ["betree", "bestar"])
COUNT = 200 if SMALL else 2000
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
    assert counted["nodes"] <= 3 * len(wanted) + 30, "halves that the range does not meet are passed over"


def test_what_stays_between_halves_is_read_only_where_its_own_range_is_met() -> None:
    rules = {i: f"price = {value}" for i, value in enumerate([*range(10), *range(20, 30)])}
    rules |= {100 + i: "price BETWEEN 9 AND 20" for i in range(20)}
    matcher = cm.Matcher.build(rules, {"price": "int64"}, index=cm.index("bestar", capacity=5, alpha=25))
    assert matcher.counters(pa.table({"low": [14], "high": [15]}), ranges=PRICE)["conjunctions"] == 20
    assert matcher.counters(pa.table({"low": [3], "high": [3]}), ranges=PRICE)["conjunctions"] <= 5


@pytest.mark.parametrize("given", [20, 15], ids=["read", "requested"])
def test_parts_that_no_range_meets_are_not_entered(given: int) -> None:
    """Those of BE*-Tree: one of BE-Tree is as wide as the attribute's domain.

    given : attributes that the event has; with fewer than the directory has, it is asked for them
    """
    names = [f"a{i}" for i in range(20)]
    rules = {i: f"{names[i % 20]} BETWEEN {10 + i // 20 % 7} AND 20" for i in range(COUNT)}
    options = cm.Options(missing_columns="null")
    index = cm.index("bestar", capacity=3)
    matcher = cm.Matcher.build(rules, dict.fromkeys(names, "int64"), index=index, options=options)
    ends = {name: (30, 40) if name.startswith("a1") else (0, 5) for name in names[:given]}
    ranges = {name: (f"{name} low", f"{name} high") for name in ends}
    events = pa.table({f"{name} {end}": [ends[name][i]] for name in ends for i, end in enumerate(("low", "high"))})
    counted = matcher.counters(events, ranges=ranges)
    assert counted["matches"] == counted["conjunctions"] == counted["candidates"] == 0
    assert counted["nodes"] <= 2 + given  # the two topmost buckets, and the parts of the root


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
