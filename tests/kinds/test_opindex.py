"""What OpIndex is about, seen in its counters: pivots, signatures, clauses."""

from __future__ import annotations

from random import Random
from typing import Any
from unittest.mock import patch

import inside
import numpy as np
import pyarrow as pa
import pytest
from contract import pairs
from sizes import SMALL
from workload import Workload, named

import colmatch as cm
import colmatch.kinds.opindex
from colmatch.arrays.frozen import freeze
from colmatch.kernels.kinds.opindex.arrays import ALWAYS, CHUNK, NO_STAMP, SLOTS, STAMP_BITS, VERIFY, OpIndex
from colmatch.kernels.layout import ATTR_MASK
from colmatch.matching.worker import Worker

MODULE = colmatch.kinds.opindex

SIZE, ROWS = (300, 60) if SMALL else (20_000, 600)
ATTRIBUTES = 100 if SMALL else 400

LEMMAS = Workload(  # section 4.4: sizes uniform, attributes and operands uniform, three operators alike
    subscriptions=SIZE,
    attributes=ATTRIBUTES,
    cardinality=50,
    subscription_size=(1, 8),
    event_size=(20, 20),
    equality=1 / 3,
    operators=(("<=", 0.5), (">=", 0.5)),
)


def built(workload: Workload, index: str = "opindex", sample: Any = None, **settings: Any) -> cm.Matcher:
    table = workload.predicate_table()
    return cm.Matcher.build(table, workload.schema(), index=cm.index(index, **settings), sample=sample)


def with_arrays(matcher: cm.Matcher, arrays: OpIndex) -> cm.Matcher:
    """The subscriptions of a matcher with another index."""
    return inside.with_index(matcher, "opindex", arrays)


# Pivots


def test_pivots_leave_the_candidates_of_lemma_1() -> None:
    """One of ``attributes / event_size`` conjunctions; without pivots, all conjunctions have
    counters that may be touched.
    """
    matcher, events = built(LEMMAS), LEMMAS.events(ROWS)
    counters = matcher.counters(events)
    assert counters["conjunctions"] == pytest.approx(SIZE * ROWS * 20 / ATTRIBUTES, rel=0.2)
    # Lemma 7: in the partition of one of m attributes, all pivot predicates and (m - 1) / d of the
    # others can be met, kappa of them are.
    kappa = (1 + 2 / 50) / 3
    met = SIZE * 20 / ATTRIBUTES * kappa * (1 + 19 * (4.5 - 1) / ATTRIBUTES)
    assert counters["predicates"] == pytest.approx(met * ROWS, rel=0.2)
    # Off: every event has z, which is made the pivot of all, so all counters are in one partition.
    rows = LEMMAS.predicates()
    count = pa.chunked_array([np.arange(SIZE)])
    z = {
        "id": count,
        "attribute": ["z"] * SIZE,
        "op": [">="] * SIZE,
        "operands": pa.array([[0]] * SIZE, rows.schema.field("operands").type),
    }
    plain = pa.table([rows[0], rows[1].cast(pa.string()), rows[2].cast(pa.string()), rows[3]], rows.schema.names)
    table = pa.concat_tables([plain, pa.table(z)]).sort_by("id")
    schema = LEMMAS.schema().append(pa.field("z", pa.int64()))
    with patch.object(
        MODULE, "_frequency", lambda preds, codes, sample: -np.bincount(preds.pred[:, 0] & ATTR_MASK).astype(np.int64)
    ):
        one = cm.Matcher.build(cm.PredicateTable(table), schema, index="opindex")
    with_z = events.append_column("z", pa.array(np.ones(ROWS, np.int64)))
    assert pairs(one.match(with_z)) == pairs(matcher.match(events))
    off = one.counters(with_z)
    assert counters["conjunctions"] / off["conjunctions"] == pytest.approx(20 / ATTRIBUTES, rel=0.2)
    assert counters["predicates"] / (off["predicates"] - SIZE * ROWS) == pytest.approx(
        (1 + 19 * 3.5 / ATTRIBUTES) / 4.5, rel=0.2
    )


def test_the_rarest_attribute_is_the_pivot() -> None:
    workload = Workload(
        subscriptions=SIZE,
        attributes=ATTRIBUTES,
        subscription_size=(3, 7),
        event_size=(15, 15),
        attribute_zipf=1.0,
        layout="columns",
    )
    rare, events = built(workload), workload.events(ROWS)
    with patch.object(MODULE, "_frequency", lambda *of, real=MODULE._frequency: -real(*of)):
        frequent = built(workload)
    any_one = ROWS * SIZE * 15 / ATTRIBUTES  # of a random attribute, if all were alike
    looked, worst = rare.counters(events), frequent.counters(events)
    assert looked["conjunctions"] < 0.5 * worst["conjunctions"]
    assert looked["conjunctions"] < any_one < worst["conjunctions"]
    assert pairs(rare.match(events)) == pairs(frequent.match(events))


def test_a_sample_of_events_finds_better_pivots() -> None:
    """``often`` is rare among the subscriptions, but every event has it."""
    texts = {i: f"often = {i % 5} AND seldom{i % 3} = {i % 7}" for i in range(200)}
    texts |= {1000 + i: f"seldom{i % 3} = 1" for i in range(600)}
    schema = dict.fromkeys(["often", "seldom0", "seldom1", "seldom2"], "int64")
    values = {
        name: pa.array([i % 7 if i % 30 == j else None for i in range(120)]) for j, name in enumerate(list(schema)[1:])
    }
    events = pa.table({"often": [i % 5 for i in range(120)], **values})
    blind = cm.Matcher.build(texts, schema, index="opindex")
    seeing = cm.Matcher.build(texts, schema, index="opindex", sample=events)
    assert pairs(blind.match(events)) == pairs(seeing.match(events)) != []
    assert seeing.counters(events)["conjunctions"] < 0.2 * blind.counters(events)["conjunctions"]


def test_memory_follows_the_predicates_and_not_the_square_of_the_attributes() -> None:
    attributes = 3000 if SMALL else 30_000
    texts = {i: f"attrs['a{i}'] = 1 AND attrs['a{(i * 7 + 1) % attributes}'] >= 2" for i in range(attributes)}
    matcher = cm.Matcher.build(texts, {"attrs": pa.map_(pa.string(), pa.int64())}, index="opindex")
    own = sum(size for name, size in matcher.stats()["arrays"].items() if name.startswith("index."))
    assert own < 250 * attributes


# Signatures


@pytest.mark.parametrize("equality", [1.0, 0.4])
def test_signatures_keep_segments_from_being_searched(equality: float) -> None:
    workload = named("opindex", subscriptions=SIZE, attributes=ATTRIBUTES, equality=equality)
    signed, plain, events = built(workload), built(workload, signatures=False), workload.events(ROWS)
    less, more = signed.counters(events), plain.counters(events)
    assert less["nodes"] < (0.2 if equality == 1 else 0.4) * more["nodes"]
    assert {**less, "nodes": 0} == {**more, "nodes": 0}
    assert pairs(signed.match(events)) == pairs(plain.match(events))
    lists = len(inside.arrays(plain).list)
    assert len(inside.arrays(plain).segment) == lists < len(inside.arrays(signed).segment)


def test_every_predicate_is_in_a_signature_that_admits_it() -> None:
    """What a value meets does not depend on signatures, whatever the number of segments."""
    workload = named("ads", subscriptions=SIZE // 10)
    events = workload.events(ROWS)
    wanted = pairs(built(workload, "scan").match(events))
    for runs in (1, 2, 1000):
        with inside.with_constants(MODULE, "oi", RUNS_A_SEGMENT=runs):
            assert pairs(built(workload).match(events)) == wanted


# Counters


def test_counters_start_again_when_the_stamp_is_used_up() -> None:
    texts = {i: f"a = {i % 3} AND b >= {i % 5} AND a{i % 2} = 1" for i in range(30)}
    matcher = cm.Matcher.build(texts, dict.fromkeys(["a", "b", "a0", "a1"], "int64"), index="opindex")
    events = pa.table({"a": [0, 1, 2] * 20, "b": [2, 9, 0] * 20, "a0": [1, None] * 30, "a1": [None, 1] * 30})
    wanted = pairs(matcher.match(events))
    assert wanted
    worker = inside.idle(matcher)[-1]
    stamp = inside.scratch(worker, matcher).stamp
    stamp[0] = before = NO_STAMP - 1 - 2 * len(events) // 3
    assert pairs(matcher.match(events)) == wanted
    assert worker is inside.idle(matcher)[-1] and stamp is inside.scratch(worker, matcher).stamp
    assert 0 < stamp[0] < before


def test_what_an_event_counted_is_nothing_to_the_next() -> None:
    """Each event meets a part of what a subscription needs, or what it must not meet, in one of
    the modes of counting.
    """
    texts = {
        1: "p = 1 AND a = 1 AND b = 1", 2: "p = 1 AND a >= 1 AND NOT c = 1",
        3: "array_contains(t, 1) AND array_contains(t, 2)", 4: "array_contains(t, 1) AND NOT array_contains(t, 3)",
    }  # fmt: skip
    schema = {**dict.fromkeys("pabc", "int64"), "t": pa.list_(pa.int64())}
    rows = [
        {"p": 1, "a": 1, "b": 0, "c": 1, "t": [1, 3]},  # 1 lacks b, 2 is stopped, 3 lacks a clause, 4 is stopped
        {"p": 1, "a": 0, "b": 1, "c": 0, "t": [2]},  # 1 lacks a, 2 too, 3 lacks the other clause
        {"p": 1, "a": 1, "b": 1, "c": 0, "t": [1, 2]},
        {"p": 1, "a": 1, "b": 0, "c": 0, "t": [1]},
    ]
    matcher = cm.Matcher.build(texts, schema, index="opindex")
    events = pa.Table.from_pylist(rows * 3, pa.schema(list(schema.items())))
    assert [sorted(row) for row in matcher.match_lists(events).to_pylist()] == [[], [], [1, 2, 3, 4], [2, 4]] * 3


def test_counters_are_stamped_and_not_cleared() -> None:
    """What an event does not meet keeps the stamp of an earlier one, with what that counted."""
    matcher = cm.Matcher.build({i: f"a = {i}" for i in range(100)}, {"a": "int64"}, index="opindex")
    worker = Worker()
    (batch,) = pa.table({"a": [7, 8, 7, 500, 9]}).to_batches()  # a block's rows are counted from the last to the first
    assert [piece.id.tolist() for piece in inside.run(worker, matcher, batch)] == [[7, 8, 7, 9]]
    counter = inside.scratch(worker, matcher).counter
    there = counter[counter > 0].astype(np.int64)
    assert sorted((there >> STAMP_BITS).tolist()) == [1, 4, 5] and (there % NO_STAMP == 1).all()


def test_no_more_room_is_needed_than_the_largest_partition_has_slots() -> None:
    matcher = built(LEMMAS)
    matcher.match(LEMMAS.events(5))
    (worker,) = inside.idle(matcher)
    counter = inside.scratch(worker, matcher).counter
    assert len(counter) == inside.arrays(matcher).partition[:, 1].max() < SIZE / 10


def test_many_values_of_one_attribute_and_long_runs() -> None:
    """A run longer than what is gathered at a time."""
    count = 200 if SMALL else 3 * CHUNK
    low = np.arange(count) % 90
    texts = {i: f"a BETWEEN {low[i]} AND {low[i] + 30}" for i in range(count)}
    matcher = cm.Matcher.build(texts, {"a": "int64"}, index="opindex")
    a = np.arange(0, 130, 3)
    wanted = (low <= a[:, None]) & (a[:, None] <= low + 30)
    assert pairs(matcher.match(pa.table({"a": a}))) == [tuple(pair) for pair in np.argwhere(wanted).tolist()]


# Clauses, and what is neither conjunction nor CNF


def cnf(clauses: int, leaves: int, rng: Random) -> str:
    """An AND of ORs over the attributes a0 to a9, b0 to b9."""
    return " AND ".join(
        "(" + " OR ".join(f"{rng.choice('ab')}{j} = {rng.randrange(4)}" for j in rng.sample(range(10), leaves)) + ")"
        for _ in range(clauses)
    )


SCHEMA = {f"{x}{i}": "int64" for x in "ab" for i in range(10)}


def some_values(rows: int, seed: int, absent: float = 0.3) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({name: pa.array(rng.integers(0, 4, rows), mask=rng.random(rows) < absent) for name in SCHEMA})


def test_clauses_are_counted_and_nothing_is_verified() -> None:
    rng = Random(5)
    texts = {i: cnf(rng.randrange(3, 5), rng.randrange(2, 5), rng) for i in range(60)}
    events = some_values(150, 1, 0.7)
    matcher = cm.Matcher.build(texts, SCHEMA, index=cm.index("opindex", dnf_budget=1))
    arrays = inside.arrays(matcher)
    assert (inside.predicates(matcher).jump_first >= 0).all()
    assert arrays.state[ALWAYS] == 0 and not (arrays.needed & VERIFY).any()
    assert len(arrays.conj) > 60  # several pivots
    wanted = pairs(cm.Matcher.build(texts, SCHEMA, index="scan").match(events))
    assert wanted and pairs(matcher.match(events)) == wanted
    # Off: nothing is known of the programs' clauses, and they are verified for each event.
    preds = inside.predicates(matcher)
    tree = preds.tree.copy()
    tree[preds.tree_first[1:] - 1] -= 1  # an OR
    opaque = with_arrays(
        matcher, MODULE.build(freeze(preds._replace(tree=tree)), inside.codes(matcher), None, cm.index("opindex"))[0]
    )
    assert inside.arrays(opaque).state[ALWAYS] == 60
    assert pairs(opaque.match(events)) == wanted
    less, more = matcher.counters(events), opaque.counters(events)
    assert less["predicates"] < 0.7 * more["predicates"]


def test_more_clauses_than_a_bitmap_has_bits_are_verified() -> None:
    rng = Random(6)
    texts = {
        i: " AND ".join(f"(a{j % 10} >= {rng.randrange(-60, 3)} OR b{j % 7} = {j})" for j in range(70 + i))
        for i in range(4)
    }
    texts |= {
        9: "(a1 = 1 OR a2 = 2) AND (a3 = 3 OR (a4 = 1 AND (a5 = 2 OR a6 = 1)))",
        10: "(a1 IS NULL OR a2 = 2) AND (a3 = 3 OR (b1 = 1) IS NOT TRUE)",
    }
    events = some_values(300, 2)
    matcher = cm.Matcher.build(texts, SCHEMA, index=cm.index("opindex", dnf_budget=1))
    arrays = inside.arrays(matcher)
    assert (arrays.needed & VERIFY).all() and set(arrays.conj.tolist()) == {0, 1, 2, 3, 4}
    assert arrays.always.tolist() == [5]
    wanted = pairs(cm.Matcher.build(texts, SCHEMA, index=cm.index("scan", dnf_budget=1)).match(events))
    assert {id for _, id in wanted} >= {9, 10} and pairs(matcher.match(events)) == wanted


def test_what_must_not_be_met_and_what_is_met_twice() -> None:
    texts = {
        1: "a = 1 AND NOT b BETWEEN 2 AND 5", 2: "a = 1 AND b IS NULL", 3: "a IS NULL AND (b = 2) IS NOT TRUE",
        10: "a = 1 AND (b IN (1, 3)) IS NOT TRUE",
        4: "a IN (1, 3, 5) AND b NOT IN (2, 4)",
        5: "array_contains(t, 1) AND array_contains(t, 2)", 6: "arrays_overlap(t, array(1, 2)) AND a = 1", 7: "size(t) = 0",
        8: "NOT array_contains(t, 1) AND a >= 0", 9: "TRUE",
    }  # fmt: skip
    schema = {"a": "int64", "b": "int64", "t": pa.list_(pa.int64())}
    events = pa.table({
        "a": pa.array([1, 1, 1, 3, 2, None], pa.int64()), "b": pa.array([1, 3, None, 4, 1, 2], pa.int64()),
        "t": pa.array([[1, 1, 2], [1, 1], [], None, [2, 3, 2], [1, 2]], pa.list_(pa.int64())),
    })  # fmt: skip
    matcher = cm.Matcher.build(texts, schema, index="opindex")
    assert pairs(matcher.match(events)) == pairs(cm.Matcher.build(texts, schema, index="scan").match(events))


def test_the_clause_with_the_fewest_leaves_has_the_pivots() -> None:
    texts = {0: "(a = 1 OR b = 1 OR c = 1) AND (d = 1 OR e = 1)"} | {i: f"{'de'[i % 2]} = {i}" for i in range(1, 50)}
    matcher = cm.Matcher.build(texts, dict.fromkeys("abcde", "int64"), index=cm.index("opindex", dnf_budget=1))
    assert inside.arrays(matcher).state[SLOTS] == 49 + 2


def test_a_program_whose_predicate_on_the_pivot_no_key_meets() -> None:
    text = "a < -9223372036854775808 AND (c = 1 OR b = 2) AND (b = 3 OR c = 4)"
    texts = {1: text, 2: "a = 1 AND b = 2"}
    matcher = cm.Matcher.build(texts, dict.fromkeys("abc", "int64"), index=cm.index("opindex", dnf_budget=1))
    assert matcher.match_one({"a": 1, "b": 2, "c": 4}) == [2]
    assert matcher.match_one({"a": -(2**63), "b": 3, "c": 1}) == []
