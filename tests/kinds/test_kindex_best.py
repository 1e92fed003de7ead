"""What bounds of scores save k-index, seen in its counters, one bound at a time."""

from __future__ import annotations

from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from sizes import SMALL
from workload import named

import colmatch as cm

SCHEMA = pa.schema(dict.fromkeys("abcdz", pa.int64()))
EVENT = pa.table({name: [0] for name in "abcdz"})
HIDDEN = {"z": 1000.0}  # weighs so much that a conjunction's own bound says nothing
MANY = 50


def of(conjunctions: list[dict[str, float]]) -> cm.Matcher:
    """Conjunctions of ``attribute = 0``, which weigh something, for each attribute."""
    rows = [(i, name, weight) for i, one in enumerate(conjunctions) for name, weight in one.items()]
    id, name, weight = zip(*rows, strict=True)
    zero = pa.array([[0]] * len(rows), pa.list_(pa.int64()))
    table = pa.table({"id": id, "attribute": name, "op": ["="] * len(rows), "operands": zero, "weight": weight})
    return cm.Matcher.build(cm.PredicateTable(table), SCHEMA, index="kindex")


def best(matcher: cm.Matcher, k: int, score: str = "dot", weights: Any = None) -> list[tuple[int, float]]:
    found = matcher.match_topk(EVENT, k, score, weights)
    return list(zip(found["subscription"].to_pylist(), found["score"].to_pylist(), strict=True))


def test_a_part_that_cannot_score_enough_is_passed_over() -> None:
    """By the sum of the largest weights of as many lists as its conjunctions have predicates."""
    three, two = {"a": 5.0, "b": 5.0, "z": 0.0}, {"a": 2.0, "b": 2.0}
    alone, both = of([three]), of([three] + [two] * MANY)
    assert best(both, 1, "dot", HIDDEN) == [(0, 10.0)]
    assert both.counters(EVENT, 1, event_weights=HIDDEN)["nodes"] == alone.counters(EVENT)["nodes"]
    read = both.counters(EVENT, 2, event_weights=HIDDEN)["nodes"]
    assert read > MANY  # there are too few without it


def test_lists_that_together_weigh_too_little_are_skipped_through() -> None:
    """The first K lists have no conjunction that is good enough by themselves."""
    matcher = of([{"a": 10.0, "b": 10.0}, *[{"c": 1.0, "d": 1.0}] * MANY, {"a": 10.0, "d": 0.5}, {"z": 0.0, "b": 0.0}])
    assert best(matcher, 1, "dot", HIDDEN) == [(0, 20.0)]
    assert matcher.counters(EVENT)["conjunctions"] == MANY + 3
    assert matcher.counters(EVENT, 1, event_weights=HIDDEN)["conjunctions"] <= 3
    assert matcher.counters(EVENT, 100, event_weights=HIDDEN)["conjunctions"] == MANY + 3


def test_a_part_begins_with_bounds_of_what_was_found_before() -> None:
    """Its lists alone could score enough, and none of its conjunctions."""
    two = [{"a": 5.0, "b": 0.0}, {"a": 0.0, "b": 5.0}, *[{"a": 0.0, "b": 0.0}] * MANY]
    matcher = of([{"c": 3.0, "d": 3.0, "z": 2.0}, *two])
    assert best(matcher, 1) == [(0, 8.0)]
    assert matcher.counters(EVENT, 1)["conjunctions"] == 1
    assert matcher.counters(EVENT)["conjunctions"] == MANY + 3


REST = [("a", "=", 1.0), ("b", "is null", 5.0)]


@pytest.mark.parametrize(
    ("other", "weights", "wanted"),
    [
        pytest.param([("a", "=", 4.0), ("c", "=", 1.5)], None, 6.0, id="part"),
        pytest.param([("d", "=", 7.0)], {"d": 0.75}, 6.0, id="lists"),
        pytest.param([("a", "=", 10.0)], {"b": 100.0}, 501.0, id="given"),
        pytest.param([("a", "=", 10.0)], dict.fromkeys("acdz", 0.25), 5.25, id="not given"),
    ],
)
def test_bounds_have_what_is_true_without_an_attribute(other: Any, weights: Any, wanted: float) -> None:
    """What has no list counts for parts and lists, and by the weight of what the event has not."""
    rows = [(i, *row) for i, one in enumerate([other, REST]) for row in one]
    id, name, op, weight = zip(*rows, strict=True)
    operands = pa.array([[0] if o == "=" else [] for o in op], pa.list_(pa.int64()))
    table = pa.table({"id": id, "attribute": name, "op": op, "operands": operands, "weight": weight})
    matcher = cm.Matcher.build(cm.PredicateTable(table), SCHEMA, index="kindex")
    event = EVENT.set_column(1, "b", pa.nulls(1, pa.int64()))
    assert matcher.match_topk(event, 1, event_weights=weights)["score"].to_pylist() == [wanted]


@pytest.mark.parametrize("score", ["dot", "sum", "max"])
@pytest.mark.parametrize("k", [1, 3])
def test_conjunctions_of_lower_bounds_are_not_looked_at(score: str, k: int) -> None:
    """All are in one list, the highest first."""
    matcher = of([{"a": float(i * 7 % MANY)} for i in range(MANY)])
    assert [s for _, s in best(matcher, k, score)] == [float(MANY - 1 - i) for i in range(k)]
    assert matcher.counters(EVENT, k, score=score)["conjunctions"] == k
    assert matcher.counters(EVENT)["conjunctions"] == MANY


def test_priorities_without_weights_are_bounds() -> None:
    texts = {"id": list(range(MANY)), "expression": ["a = 0"] * MANY, "priority": [i * 7.0 % MANY for i in range(MANY)]}
    matcher = cm.Matcher.build(pa.table(texts), SCHEMA, index="kindex")
    assert [s for _, s in best(matcher, 2, "priority")] == [MANY - 1.0, MANY - 2.0]
    assert matcher.counters(EVENT, 2, score="priority")["conjunctions"] == 2


def test_equal_scores_are_all_looked_at() -> None:
    """The lowest ids are the best of them, wherever they stand."""
    matcher = of([{"a": 1.0, "b": 1.0}, {"a": 2.0}, {"c": 2.0}, {"c": 1.0, "d": 1.0}])
    assert best(matcher, 1) == [(0, 2.0)]
    assert best(matcher, 9) == [(0, 2.0), (1, 2.0), (2, 2.0), (3, 2.0)]
    matcher.delete([0])
    assert best(matcher, 1) == [(1, 2.0)]


def test_a_weight_too_large_for_an_entry() -> None:
    matcher = of([{"a": 1e100, "b": 1.0}, {"a": 1e-300}, {"b": 2.0}])
    assert best(matcher, 1) == [(0, 1e100)]
    assert best(matcher, 3, "dot", {"a": 0.0}) == [(2, 2.0), (0, 1.0), (1, 0.0)]
    assert best(matcher, 1, "dot", {"b": 0.0}) == [(0, 1e100)]


def test_the_best_of_a_workload_are_those_that_scan_finds() -> None:
    """With fewer entries read."""
    workload = named("dense", subscriptions=300 if SMALL else 20_000, weights=True)
    events = workload.events(10 if SMALL else 100)
    found, wanted = (
        cm.Matcher.build(workload.predicate_table(), workload.schema(), index=kind) for kind in ("kindex", "scan")
    )
    few = {name: 0.25 * (i % 5) for i, name in enumerate(events.column_names)}
    for k, score, weights in product((1, 5, 10**6), ("dot", "sum", "max"), (None, few)):
        one, other = (
            matcher.match_topk(events, k, score, weights if score != "sum" else None) for matcher in (found, wanted)
        )
        assert one["event"].equals(other["event"])
        assert all(abs(a - b) < 1e-9 for a, b in zip(one["score"].to_pylist(), other["score"].to_pylist(), strict=True))
    if not SMALL:
        assert found.counters(events, 1)["nodes"] < 0.9 * found.counters(events)["nodes"]
