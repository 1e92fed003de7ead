"""What propagation is about, seen in its counters and its arrays."""

from __future__ import annotations

from typing import Any

import inside
import numpy as np
import pyarrow as pa
import pytest
from contract import pairs
from sizes import SMALL
from workload import named

import colmatch as cm
from colmatch.kernels.kinds.propagation.arrays import (
    BLOCK,
    COLUMNS,
    NEXT,
    SIZE,
    PropagationIndex,
)
from colmatch.matching.worker import Worker

SUBSCRIPTIONS, ROWS = (300, 100) if SMALL else (20_000, 1000)
NUMBERS = dict.fromkeys("abcd", "int64")


def built(texts: Any, schema: Any = NUMBERS, sample: Any = None, **settings: Any) -> cm.Matcher:
    given, lenient = texts if isinstance(texts, dict) else dict(enumerate(texts)), cm.Options(missing_columns="null")
    return cm.Matcher.build(given, schema, index=cm.index("propagation", **settings), options=lenient, sample=sample)


def one_event(matcher: cm.Matcher, **values: int) -> dict[str, int]:
    return matcher.counters(pa.table({name: [value] for name, value in values.items()}))


def index_of(matcher: cm.Matcher) -> PropagationIndex:
    return inside.arrays(matcher)


def bits_of(matcher: cm.Matcher) -> int:
    return len(index_of(matcher).key)


def with_index(matcher: cm.Matcher, arrays: PropagationIndex) -> cm.Matcher:
    return inside.with_index(matcher, "propagation", arrays)


# Predicates


def test_equal_predicates_have_one_bit() -> None:
    texts = [f"a = 5 AND b BETWEEN 3 AND 9 AND c IN (1, {i % 2 + 3}, 7)" for i in range(50)]
    assert bits_of(built(texts)) == 1 + 1 + 2
    assert bits_of(built([*texts, "NOT a <=> 5 AND NOT c <=> 4"])) == 4 + 1  # nor has what is negated, but c = 4 is new
    assert bits_of(built([*texts, "a <= 5"])) == 4 + 1


def test_each_is_set_once_for_an_event_however_many_have_it() -> None:
    texts = [f"a > 0 AND b = {i}" for i in range(300)]
    # Two are set, and two looked at to find them, or a few more where slots of the hash table
    # follow each other.
    assert 4 <= one_event(built(texts), a=1, b=7)["nodes"] < 10
    assert one_event(built(texts[:1]), a=1, b=0)["nodes"] == 4


def test_few_ranges_are_looked_at_that_do_not_hold() -> None:
    rng = np.random.default_rng(5)
    low, width = rng.integers(0, 10_000, 1000), 2 ** rng.integers(0, 13, 1000)
    matcher = built([f"a BETWEEN {x} AND {x + w}" for x, w in zip(low.tolist(), width.tolist())], {"a": "int64"})
    values = rng.integers(0, 10_000, 100)
    hold = ((low <= values[:, None]) & (values[:, None] <= low + width)).sum()
    counters = matcher.counters(pa.table({"a": values}))
    assert counters["matches"] == counters["candidates"] == hold
    assert 1.9 * hold < counters["nodes"] < 2.6 * hold  # those that hold are set and looked at


def test_a_set_bit_costs_its_word_and_no_other_is_cleared() -> None:
    """What an event has not set keeps what is there: here, the mark of somebody else, where no
    conjunction looks.
    """
    matcher = built({i: f"a BETWEEN {i} AND {i + 5} AND b = 1" for i in range(4000)})
    worker = Worker()
    (batch,) = pa.table({"a": [7, 8], "b": [2, None]}).to_batches()
    inside.run(worker, matcher, batch)
    bits = inside.scratch(worker, matcher).bits
    assert len(bits) == (4001 + 63) // 64 and not bits.any()
    bits[40:50] = 12345
    assert [len(piece.id) for piece in inside.run(worker, matcher, batch)] == [0]
    assert (bits[40:50] == 12345).all() and not bits[:40].any() and not bits[50:].any()


# Access predicates and clusters


def test_the_rarest_equality_is_the_access_predicate() -> None:
    """a has 100 values and b has 2, so a = 7 is thought to hold less often; the range is left
    alone, narrow as it is.
    """
    texts = [f"a = {i % 100} AND b = {i % 2} AND c BETWEEN 50 AND 51" for i in range(1000)]
    texts += [f"c BETWEEN {i} AND {i + 1} AND d = 1" for i in range(100)]
    matcher = built(texts)
    assert one_event(matcher, a=7, b=1)["candidates"] == 10
    assert one_event(matcher, b=1, c=50)["candidates"] == 0
    assert one_event(matcher, d=1)["candidates"] == 100


def test_a_sample_says_what_is_rare() -> None:
    """Who has seen events knows that a = 7 holds always, b = 1 seldom."""
    texts = [f"a = {i % 100} AND b = {i % 2}" for i in range(1000)]
    events = pa.table({"a": [7] * 100, "b": [1] + [2] * 99})
    blind, seeing = built(texts), built(texts, sample=events)
    assert pairs(blind.match(events)) == pairs(seeing.match(events))
    assert blind.counters(events)["candidates"] == 100 * 10
    assert seeing.counters(events)["candidates"] == 10  # 7 is odd: a = 7 goes with b = 1


@pytest.mark.parametrize("wide", ["a BETWEEN 0 AND 1000", "a <= 1000", "a >= 0", "s BETWEEN 'a' AND 'x'"])
@pytest.mark.parametrize("as_program", [False, True])
def test_a_wide_range_that_nothing_cuts_is_no_equality(wide: str, as_program: bool) -> None:
    """It has one code, as an equality has."""
    more = " AND (c = 1 OR d = 1)" if as_program else ""
    texts = [f"{wide} AND b BETWEEN {20 * i} AND {20 * i + 25}{more}" for i in range(50)]
    schema = NUMBERS | {"s": "string"}
    event = pa.table({"a": [500], "s": ["m"], "b": [107], "c": [1]})
    for some in (texts, [*texts, "a BETWEEN 400 AND 600 AND b = 5000", "s = 'n' AND b = 5000"]):
        found = built(some, schema, dnf_budget=1).counters(event)
        assert found["candidates"] == found["matches"] == 1
    equal = [f"s = 'm' AND {text}" for text in texts]
    assert built(equal, schema, dnf_budget=1).counters(event)["candidates"] == 50
    assert built(equal, schema, event, dnf_budget=1).counters(event)["candidates"] == 1  # the sample has no other s


def test_the_best_inequality_stands_in_and_only_negations_are_always_checked() -> None:
    matcher = built(
        [
            "a > 90 AND b > 10",
            *(f"b > {i} AND NOT a <=> 1" for i in range(100)),
            "NOT a <=> 3 AND b IS NULL",
            "NOT c <=> 1",
        ]
    )
    assert one_event(matcher, b=0)["candidates"] == 2
    assert one_event(matcher, b=50)["candidates"] == 2 + 50  # not b > 10 AND a > 90: that is under a > 90
    assert one_event(matcher, a=95)["candidates"] == 3


def test_columns_are_checked_until_nobody_is_left() -> None:
    matcher = built([f"a = 1 AND b BETWEEN {10 * i} AND {999 + i} AND c <> 9 AND d <> 9" for i in range(40)])
    assert one_event(matcher, a=1)["predicates"] == 40
    found = one_event(matcher, a=1, b=70)
    assert found["candidates"] == 40 and found["matches"] == 0
    assert found["predicates"] == 40 + 8
    assert one_event(matcher, a=1, b=70, c=0, d=0)["predicates"] == 40 + 8 + 8
    assert one_event(matcher, a=1, b=70, c=0, d=0)["matches"] == 8


def test_clusters_are_by_remaining_count() -> None:
    texts = [
        " AND ".join(["a = 1", *(f"{name} BETWEEN {i} AND {99 + i}" for name in "bcd"[: i % 4])]) for i in range(40)
    ]
    index = index_of(built(texts))
    bit = next(b for b in range(len(index.key)) if index.slab[b])
    assert np.count_nonzero(index.slab) == 1
    at, columns = int(index.slab[bit]), []
    while at:
        columns.append(int(index.pool[at + COLUMNS]))
        assert index.pool[at + SIZE] == 10
        at = int(index.pool[at + NEXT])
    assert columns == [0, 1, 2, 3]


def test_slabs_of_more_conjunctions_than_a_block() -> None:
    size = 2 * BLOCK + 100
    matcher = built(
        [f"a = 1 AND b > {i % 10} AND c <> {i % 3}" for i in range(size)] + [f"c <> {i % 3}" for i in range(size)]
    )
    found = pairs(matcher.match(pa.table({"a": [1], "b": [4], "c": [2]})))
    assert [id for _, id in found] == [
        i for i in range(2 * size) if (i % size if i >= size else i) % 3 != 2 and (i >= size or i % 10 < 4)
    ]


def test_a_program_stands_under_what_it_begins_with() -> None:
    clauses = " AND ".join(f"(a = {i} OR b > {i} OR c < {i})" for i in range(5))
    texts = [f"d = {i % 20} AND {clauses}" for i in range(100)] + [clauses]
    matcher = built(texts, dnf_budget=1)
    # the last has three, one for each predicate of its first OR
    assert len(inside.predicates(matcher).owner) == 103 and (inside.predicates(matcher).jump_first >= 0).all()
    assert one_event(matcher, a=1, b=9, d=3)["candidates"] == 5 + 1
    assert one_event(matcher, a=1, b=9, d=3)["matches"] == 5 + 1
    assert one_event(matcher, a=1, b=9)["matches"] == 1


@pytest.mark.parametrize("name", ["dense", "dense-planted", "pstree-sparse", "ads", "querylog"])
def test_named_workloads_as_scan(name: str) -> None:
    workload = named(name, subscriptions=SUBSCRIPTIONS // 4)
    events = workload.events(ROWS // 4)
    found, scan = (
        cm.Matcher.build(workload.predicate_table(), workload.schema(), index=kind, options=cm.Options(batch_rows=60))
        for kind in ("propagation", "scan")
    )
    assert pairs(found.match(events)) == pairs(scan.match(events))
    assert found.counters(events)["candidates"] <= scan.counters(events)["conjunctions"] / 4


def test_lists_of_one_length_are_told_apart_in_one_table() -> None:
    texts = {i: f"a IN ({i}, {i + 2 + i % 3})" for i in range(120)}
    matcher = built(texts)
    for a in (0, 5, 60, 123):
        assert matcher.match_one({"a": a}) == [i for i in range(120) if a in (i, i + 2 + i % 3)]
