"""What k-index is about, seen in its counters: sizes passed over, lists skipped through, entries
that reject, clauses that count once.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import fields
from itertools import combinations, product
from random import Random
from typing import Any
from unittest.mock import patch

import inside
import numpy as np
import pyarrow as pa
import pytest
from contract import NO_JIT, pairs
from sizes import SMALL
from workload import named

import colmatch as cm
import colmatch.kinds.kindex
from colmatch.kernels.kinds.kindex import clauses
from colmatch.kernels.kinds.kindex.arrays import KIndex
from colmatch.updates import policy

MODULE = colmatch.kinds.kindex
SIZE, ROWS = (300, 40) if SMALL else (20_000, 300)


def built(
    kind: str = "kindex", name: str = "dense", subscriptions: int = SIZE, **settings: Any
) -> tuple[cm.Matcher, pa.Table]:
    workload = named(name, subscriptions=subscriptions)
    matcher = cm.Matcher.build(workload.predicate_table(), workload.schema(), index=cm.index(kind, **settings))
    return matcher, workload.events(ROWS)


def of(texts: dict[int, str], kind: str = "kindex", **settings: Any) -> cm.Matcher:
    return cm.Matcher.build(texts, SCHEMA, index=cm.index(kind, **settings), options=cm.Options(missing_columns="null"))


SCHEMA = {**dict.fromkeys("abcd", "int64"), "t": pa.list_(pa.int64())}


def arrays(matcher: cm.Matcher) -> KIndex:
    index: KIndex = inside.arrays(matcher)
    return index


def sizes(matcher: cm.Matcher) -> list[int]:
    """K of every conjunction, those without clauses first."""
    index = arrays(matcher)
    found = []
    for number in range(len(index.conj)):
        entries = np.flatnonzero(index.entry >> 1 == number)
        segments = np.searchsorted(index.segment_first, entries, side="right") - 1
        (k,) = {int(index.part_size[index.segment_part[s]]) for s in segments}
        found.append(k)
    return found


@pytest.mark.parametrize(
    "name", ["dense", "dense-planted", "dense-equal", "bestar", "pstree-sparse", "ads", "querylog"]
)
def test_workloads_find_what_scan_finds(name: str) -> None:
    matcher, events = built(name=name, subscriptions=SIZE // 4)
    scan, _ = built("scan", name, SIZE // 4)
    assert pairs(matcher.match(events)) == pairs(scan.match(events))


def some_texts(rng: Random, count: int) -> dict[int, str]:
    leaves = [
        lambda: f"a = {rng.randrange(6)}",
        lambda: f"b BETWEEN {rng.randrange(9)} AND {rng.randrange(9, 20)}",
        lambda: f"c IN ({rng.randrange(5)}, {rng.randrange(5, 9)})",
        lambda: f"(d = {rng.randrange(4)}) IS NOT TRUE",
        lambda: f"b NOT IN ({rng.randrange(5)}, {rng.randrange(5, 9)}) AND b < {rng.randrange(9, 20)}",
        lambda: f"array_contains(t, {rng.randrange(4)})",
        lambda: f"(a = {rng.randrange(6)} OR (b = {rng.randrange(9)} AND c < 4))",
        lambda: (
            f"(a <> {rng.randrange(6)} OR d <> {rng.randrange(4)} OR NOT arrays_overlap(t, array({rng.randrange(4)}, 1)))"
        ),
    ]
    return {i: " AND ".join(leaf() for leaf in rng.sample(leaves, rng.choice([1, 2, 3]))) for i in range(count)}


@pytest.mark.parametrize("enumerate", ["boundaries", "raw"])
@pytest.mark.parametrize("flat", [0, 10**9])
@pytest.mark.parametrize("budget", [1, 64])
def test_all_forms_of_conjunctions_stand_in_one_index(budget: int, flat: int, enumerate: str) -> None:
    """Some subscriptions have several conjunctions, some conjunctions clauses, some are unsure."""
    rng = Random(budget)
    texts = some_texts(rng, 60 if SMALL else 300)
    with patch.object(MODULE, "FLAT", flat):
        matcher = of(texts, dnf_budget=budget, enumerate=enumerate)
    index = arrays(matcher)
    assert 0 < index.with_clauses[1] < len(index.conj) == len(inside.predicates(matcher).owner)
    assert len(index.conj) > len(texts) and index.unsure.any() == (budget == 1)
    events = pa.table(
        {name: [rng.choice([None, *range(10)]) for _ in range(50)] for name in "abcd"}
        | {"t": [[1, 2], [3], [], None, [1, 1]] * 10}
    )
    assert pairs(matcher.match(events)) == pairs(of(texts, "scan").match(events)) != []


def test_skipping_reads_fewer_entries() -> None:
    """Lists of rare values and of a value, or a range, that all conjunctions have."""
    texts = {i: f"a = {i % 1000} AND b " + ("= 1" if i < 1000 else "BETWEEN 0 AND 50") for i in range(2000)}
    events = pa.table({"a": [3, 700], "b": [1, 1]})
    skipping = of(texts)
    with patch.object(MODULE, "SKIPPING", False):
        reading = of(texts)
    assert pairs(skipping.match(events)) == pairs(reading.match(events)) == [(0, 3), (0, 1003), (1, 700), (1, 1700)]
    assert reading.counters(events)["nodes"] > 2500
    assert skipping.counters(events)["nodes"] < 150


def test_conjunctions_larger_than_the_event_are_not_looked_at() -> None:
    matcher = of({i: "a = 1 AND b = 1 AND c = 1" if i < 90 else "a = 1 AND b = 1" for i in range(100)})
    few = matcher.counters(pa.table({"a": [1], "b": [1]}))
    assert few["matches"] == few["conjunctions"] == 10
    assert few["nodes"] == 20  # nothing of the 90
    assert matcher.counters(pa.table({"a": [1]}))["nodes"] == 0
    assert matcher.counters(pa.table({"a": [1], "b": [1], "c": [1]}))["matches"] == 100


def few_pairs(names: str, pairs_each: int) -> pa.Table:
    """An event for each choice of so many attributes, with the value 50."""
    rows = list(combinations(names, pairs_each))
    return pa.table({name: pa.array([50 if name in row else None for row in rows], pa.int64()) for name in f"{names}z"})


@pytest.mark.parametrize("clauses", [False, True])
def test_ranges_on_more_attributes_than_the_event_has_are_not_looked_at(clauses: bool) -> None:
    """A value has a list for each level of a tree, but it meets one predicate of a conjunction,
    and two where clauses are counted.
    """
    rng, names = Random(7), "abcdefgh"
    texts = {}
    for i in range(300):
        ranges = [f"{name} BETWEEN {rng.randrange(50)} AND {rng.randrange(50, 100)}" for name in rng.sample(names, 5)]
        texts[i] = " AND ".join(f"({each} OR z = {j})" if clauses else each for j, each in enumerate(ranges))
    whole = cm.index("kindex", dnf_budget=1)
    matcher = cm.Matcher.build(texts, dict.fromkeys(f"{names}z", "int64"), index=whole)
    index = arrays(matcher)
    assert np.count_nonzero(np.diff(index.level_first) > 3) == 8 and set(sizes(matcher)) == {5}
    assert (index.with_clauses[1] == 0) == clauses
    for pairs_each in (1, 2, 3, 4):
        counted = matcher.counters(few_pairs(names, pairs_each))
        assert counted["matches"] == counted["conjunctions"] == 0
        assert (counted["nodes"] == 0) == (pairs_each < (3 if clauses else 5))
    counted = matcher.counters(few_pairs(names, 5))
    assert counted["matches"] == 300 and counted["nodes"] >= 1500


def test_a_negated_predicate_is_an_entry_that_rejects() -> None:
    texts = {
        1: "a = 1 AND (b IN (2, 3, 7)) IS NOT TRUE",
        2: "a = 1",
        3: "(b = 2) IS NOT TRUE",
        4: "a = 1 AND b IS NULL AND c IS NULL",
    }
    matcher = of(texts)
    events = pa.table({"a": [1, 1, 1, 1, 0], "b": [2, 4, None, 7, None], "c": [None, 1, None, 1, 1]})
    assert pairs(matcher.match(events)) == [
        (0, 2),
        (1, 1),
        (1, 2),
        (1, 3),
        (2, 1),
        (2, 2),
        (2, 3),
        (2, 4),
        (3, 2),
        (3, 3),
        (4, 3),
    ]
    assert (arrays(matcher).entry % 2 == 0).any()
    assert max(sizes(matcher)) == 1  # of positive predicates
    counted = matcher.counters(events)
    assert counted["candidates"] == counted["predicates"] == 0
    assert counted["conjunctions"] > counted["matches"]


def test_conjunctions_without_positive_predicates_stand_in_list_z() -> None:
    matcher = of({i: f"a IS NULL AND (b = {i % 3}) IS NOT TRUE" for i in range(30)} | {30: "TRUE", 31: "a = 1"})
    index = arrays(matcher)
    z = index.planes[1] - 1
    (segment,) = range(index.list_first[z], index.list_first[z + 1])
    assert index.part_size[index.segment_part[segment]] == 0
    members = index.entry[index.segment_first[segment] : index.segment_first[segment + 1]]
    assert members.tolist() == [2 * number + 1 for number in range(len(members))] and len(members) == 31
    events = pa.table({"a": [None, 1, None], "b": [0, 0, None]})
    assert matcher.count(events).tolist() == [21, 2, 31]


CLAUSES = [
    "a = 1 OR b IN (2, 3)",
    "(b = 2) IS NOT TRUE OR c > 4",
    "a = 1 OR c < 2 OR d = 1",
    "d IS NULL OR (b = 3) IS NOT TRUE OR a BETWEEN 1 AND 2",
]


def every_event(least: int = 0, most: int = 3) -> pa.Table:
    values = [None, *range(least, most + 1)]
    return pa.table(
        dict(zip("abcd", (pa.array(column, pa.int64()) for column in zip(*product(values, repeat=4))), strict=True))
    )


def test_an_and_of_ors_is_decided_by_counters() -> None:
    texts = {i: " AND ".join(f"({CLAUSES[j]})" for j in range(4) if i >> j & 1) for i in range(1, 16)}
    matcher = of(texts, dnf_budget=1)
    assert len(arrays(matcher).conj) - arrays(matcher).with_clauses[1] > 5
    events = every_event()
    assert pairs(matcher.match(events)) == pairs(of(texts, "scan").match(events))
    counted = matcher.counters(events)
    assert counted["candidates"] == counted["predicates"] == 0
    assert set(sizes(matcher)) == {0, 1, 2}  # clauses without a negated predicate


@pytest.mark.parametrize("ors", [1, 2, 3, 5])
def test_a_key_that_stands_several_times_in_one_expression(ors: int) -> None:
    """Its list has the conjunction once, an extra list again; a third time K cannot count."""
    text = " AND ".join(f"(a = 1 OR b = {i} OR c = {i})" for i in range(ors))
    matcher = of({1: f"({text}) AND (d = 1 OR c = 9)"}, dnf_budget=1)
    assert sizes(matcher) == [min(ors, 2) + 1]
    events = pa.table({"a": [1, 0, 1], "d": [1, 1, 0]})
    assert pairs(matcher.match(events)) == [(0, 1)]
    assert matcher.counters(events)["candidates"] == 0


def test_other_programs_are_found_by_what_they_imply() -> None:
    texts = {
        i: f"(a = {i % 4} AND (b = 1 OR c = 1)) OR (d = {i % 3} AND (b = 2 OR c = 2) AND (a <> 3 OR c IS NULL))"
        if i % 2
        else f"(a = {i % 4} OR b = 1) AND (c = {i % 3} OR (d = 1 AND (a = 1 OR b = 2)))"
        for i in range(24)
    }
    matcher = of(texts, dnf_budget=1)
    events = every_event()
    assert pairs(matcher.match(events)) == pairs(of(texts, "scan").match(events))
    counted = matcher.counters(events)
    assert 0 < counted["candidates"] < 0.3 * events.num_rows * len(inside.predicates(matcher).owner)


def test_two_values_that_meet_one_predicate_count_once() -> None:
    """K lists have the conjunction, but two of them for the same predicate."""
    texts = {
        1: "arrays_overlap(t, array(1, 2, 5)) AND a = 1",
        2: "array_contains(t, 1) AND array_contains(t, 2)",
        3: "contains_all(t, 1, 2, 3)",
        4: "NOT arrays_overlap(t, array(1, 2)) AND a = 1",
        5: "array_contains(t, 1) AND NOT array_contains(t, 3) AND size(t) > 2",
        6: "(NOT arrays_overlap(t, array(1, 2)) OR NOT array_contains(t, 9) OR a = 2) AND (b = 1 OR c = 1)",
        7: "(arrays_overlap(t, array(1, 5)) IS NOT TRUE OR (a = 0) IS NOT TRUE) AND (b = 1 OR c = 1)",
    }
    t = [[1, 2], [1, 2, 5], [2, 2, 2], [3, 2, 1, 1], [], [4], [1, 9], [9]]
    for budget, a in product((1, 64), (0, 1, None)):
        matcher = of(texts, dnf_budget=budget)
        events = pa.table({"t": pa.array(t), "a": pa.array([a] * len(t), pa.int64()), "b": [1] * len(t)})
        assert pairs(matcher.match(events)) == pairs(of(texts, "scan", dnf_budget=budget).match(events))
    rejected = pa.table({"t": pa.array(t[:3]), "a": [0] * 3})
    assert of({1: texts[1]}).counters(rejected)["conjunctions"] == 1  # two lists did have it
    assert of({1: texts[1]}).count(rejected).tolist() == [0, 0, 0]


@pytest.mark.parametrize("top", [1, 2, 4, 5, 16, 17, 37])
def test_a_range_is_cut_into_pieces_of_which_a_value_meets_one(top: int) -> None:
    ranges = [(low, high) for low in range(top) for high in range(low, top)]
    texts = {i: f"a BETWEEN {low} AND {high}" for i, (low, high) in enumerate(ranges)}
    with patch.object(MODULE, "FLAT", 0):
        matcher = of(texts)
    with patch.object(MODULE, "FLAT", 10**9):
        flat = of(texts)
    values = np.arange(-1, top + 1)
    events = pa.table({"a": values})
    wanted = [
        (row, i) for row, x in enumerate(values.tolist()) for i, (low, high) in enumerate(ranges) if low <= x <= high
    ]
    assert pairs(matcher.match(events)) == pairs(flat.match(events)) == wanted
    # K = 1: every entry is read once
    assert matcher.counters(events)["nodes"] == flat.counters(events)["nodes"] == len(wanted)
    assert len(arrays(flat).entry) == len(wanted)
    if top > 30:
        assert len(arrays(matcher).entry) < 0.5 * len(arrays(flat).entry)
    else:
        assert len(arrays(matcher).entry) <= len(arrays(flat).entry)


def test_raw_enumeration_has_an_entry_for_each_value() -> None:
    low = np.arange(200) * 37 % 1000
    texts = {i: f"a BETWEEN {low[i]} AND {low[i] + 500} AND b = {i % 5}" for i in range(200)}
    raw, matcher = of(texts, enumerate="raw"), of(texts)
    events = pa.table({"a": np.arange(-10, 1600, 10), "b": np.arange(161) % 6})
    assert pairs(raw.match(events)) == pairs(matcher.match(events)) != []
    assert len(arrays(raw).entry) == 200 * (501 + 1)
    assert len(arrays(matcher).entry) < 200 * 12


def test_raw_enumeration_of_several_attributes_and_open_ends() -> None:
    texts = {
        1: "a > 5 AND c < -3",
        2: "b IN (7, 9, 20) AND a <> 8",
        3: "c IS NOT NULL OR b >= 20",
        4: "c BETWEEN -20 AND 2",
        5: "a IS NULL",
    }
    events = pa.table({"a": [6, 8, None, 100, 5], "b": [9, 20, 21, 7, 8], "c": pa.array([-4, None, 2, -20, -21])})
    assert pairs(of(texts, enumerate="raw").match(events)) == pairs(of(texts, "scan").match(events)) != []


@pytest.mark.parametrize(
    "texts",
    [{1: "x BETWEEN 1.5 AND 1.75"}, {1: "a BETWEEN 0 AND 9000000000000000000 AND a <> -5"}, {1: "a > 0 AND a < 5e8"}],
)
def test_raw_enumeration_of_large_domains_is_refused(texts: dict[int, str]) -> None:
    with pytest.raises(cm.OptionError, match=r"enumerate='raw'.* values, .*discrete.*enumerate='boundaries'"):
        cm.Matcher.build(texts, {"x": "float64", "a": "int64"}, index=cm.index("kindex", enumerate="raw"))


@pytest.mark.parametrize("more", [0, 1])
def test_raw_enumeration_refuses_what_is_indexed_and_says_so(more: int) -> None:
    """What comes a few at a time is not indexed by it before a merge."""
    index = cm.index("kindex", enumerate="raw")
    matcher = cm.Matcher.build({-1: "a = 1"}, {"a": "int64"}, index=index)
    texts = {i: f"a = {i * 10**16}" for i in range(policy.GROWING_MOST + more)}
    with pytest.raises(cm.OptionError, match="raw") if more else nullcontext():
        matcher.insert(texts)
    assert [one["index"] for one in matcher.stats()["segments"]] == ["kindex", "scan"][: 2 - more]
    (meaning,) = [field.metadata["meaning"] for field in fields(index) if field.name == "enumerate"]
    assert f"inserts of up to {policy.GROWING_MOST} at once" in meaning


def test_what_does_not_fit_is_refused() -> None:
    texts = {i: f"a BETWEEN {i} AND {i + 50}" for i in range(100)}
    with (
        patch.object(MODULE, "MOST_LISTS", 20),
        pytest.raises(cm.OptionError, match="lists and entries, more than the 20"),
    ):
        of({1: "a = 1 OR a = 9", 2: "(a = 3 OR b = 2) AND (a = 5 OR b = 4)"}, dnf_budget=1)
    with patch.object(MODULE, "MOST_ENTRIES", 700):
        with pytest.raises(cm.OptionError, match=r"raw.* would take 5,100 lists and entries, more than the 700"):
            of(texts, enumerate="raw")
        with pytest.raises(
            cm.OptionError, match=r"boundaries.* would take [1-9],?\d\d\d lists and entries, more than the 700"
        ):
            of(texts)


def test_more_clauses_than_are_posted() -> None:
    texts = {1: " AND ".join(f"(a = {i} OR b <> {i})" for i in range(20)), 2: "a = 3 OR b = 25"}
    events = every_event(0, 4)
    with patch.object(clauses, "MOST_CLAUSES", 4), patch.object(clauses, "COUNTED", 3):
        if NO_JIT:  # compiled kernels have the constants in them
            assert pairs(of(texts, dnf_budget=1).match(events)) == pairs(of(texts, "scan").match(events))
    many = " AND ".join(
        f"(a = {i % 7} OR b = {i} OR c <> {i})" for i in range(0 if SMALL else clauses.MOST_CLAUSES + 9)
    )
    if many:
        matcher = of({1: many}, dnf_budget=1)
        few = pa.table({"a": [1, 1, None], "b": [1, 2, 3], "c": [5000, 6, 1]})
        assert pairs(matcher.match(few)) == pairs(of({1: many}, "scan", dnf_budget=1).match(few))


def test_auto_does_not_take_it() -> None:
    for name in ("dense", "pstree-sparse", "opindex"):
        for size in (1, 50, SIZE):
            assert built("auto", name, size)[0].kind != "kindex"
