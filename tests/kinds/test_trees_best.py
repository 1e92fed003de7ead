"""The best subscriptions by BE-Tree and BE*-Tree: what is left unread, told by counters."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from sizes import SMALL
from workload import named

import colmatch as cm

TREES = pytest.mark.parametrize("kind", ["betree", "bestar"])
ROWS = pytest.mark.parametrize("rows", [1, 30], ids=["one", "tile"])  # one by one, and together


def built(kind: str, table: dict[str, list[Any]], attributes: int, **settings: Any) -> cm.Matcher:
    schema = pa.schema([(f"a{i}", pa.int64()) for i in range(attributes)])
    types = {"weight": pa.float64(), "priority": pa.float64()}
    columns = {name: pa.array(values, types.get(name)) for name, values in table.items()}
    index, options = cm.index(kind, **settings), cm.Options(missing_columns="null")
    return cm.Matcher.build(cm.PredicateTable(pa.table(columns)), schema, index=index, options=options)


def equalities(found: list[tuple[int, int]]) -> dict[str, list[Any]]:
    """One subscription for each attribute and value."""
    ids = list(range(len(found)))
    return {
        "id": ids, "conjunction": [0] * len(ids), "attribute": [f"a{a}" for a, _ in found],
        "op": ["="] * len(ids), "operands": [[v] for _, v in found],
    }  # fmt: skip


def looked_at(matcher: cm.Matcher, event: dict[str, int], rows: int, **asked: Any) -> dict[str, float]:
    fields = {name: pa.array([value] * rows, pa.int64()) for name, value in event.items()}
    events = pa.table(fields)
    return {name: count / rows for name, count in matcher.counters(events, **asked).items()}


@TREES
@ROWS
def test_a_leaf_is_left_at_the_first_that_is_too_low(kind: str, rows: int) -> None:
    matcher = built(kind, equalities([(0, 1)] * 100) | {"weight": [i * 37 % 100 / 8 for i in range(100)]}, 1)
    assert matcher.match_topk(pa.table({"a0": [1]}), 2).to_pydict() == {
        "event": [0, 0], "subscription": [27, 54], "score": [99 / 8, 98 / 8]
    }  # fmt: skip
    assert looked_at(matcher, {"a0": 1}, rows)["conjunctions"] == 100
    for k in (1, 2, 10):
        counted = looked_at(matcher, {"a0": 1}, rows, k=k)
        assert counted["conjunctions"] == counted["matches"] == k
    assert looked_at(matcher, {"a0": 1}, rows, k=200)["conjunctions"] == 100


@TREES
def test_weights_above_all_bounds(kind: str) -> None:
    """Bounds have 32 bits. Higher weights share one, and stay in order; nothing warns of them."""
    weights = [1.0, 3.4e38, 1e39, 1e80, 1e100, 0.0]
    matcher = built(kind, equalities([(0, 1)] * len(weights)) | {"weight": weights}, 1)
    for k in range(1, len(weights) + 1):
        found = matcher.match_topk(pa.table({"a0": [1]}), k)
        assert found["subscription"].to_pylist() == [4, 3, 2, 1, 0, 5][:k]
        assert found["score"].to_pylist() == sorted(weights, reverse=True)[:k]


@TREES
@ROWS
@pytest.mark.parametrize("step", [1, -1])
def test_parts_are_visited_in_the_order_of_their_bounds(kind: str, rows: int, step: int) -> None:
    """The best part comes first, wherever it stands in the directory, and is the only one."""
    parts, each = 40, 10
    table = equalities([(a, v) for a in range(parts) for v in range(each)])
    table["weight"] = [(a if step > 0 else parts - a) / 8 for a in range(parts) for _ in range(each)]
    matcher = built(kind, table, parts, capacity=1)
    event = dict.fromkeys(matcher.schema.arrow.names, 3)
    assert looked_at(matcher, event, rows)["conjunctions"] >= parts
    all, best = looked_at(matcher, event, rows), looked_at(matcher, event, rows, k=1)
    assert best["candidates"] == 1
    assert best["nodes"] < all["nodes"] / 2
    assert parts < best["nodes"] * rows < 1.5 * parts, "after the best one, no other part is tried"


@TREES
@ROWS
@pytest.mark.parametrize("asked", [{}, {"k": 1}], ids=["all", "best"])
def test_a_long_directory_is_asked_for_what_an_event_has(kind: str, rows: int, asked: dict[str, int]) -> None:
    """The matcher has too many attributes for rows to go down together."""
    parts = 1100
    table = equalities([(i % parts, i) for i in range(2 * parts)]) | {"weight": [1.0 + i % 7 for i in range(2 * parts)]}
    matcher = built(kind, table, parts, capacity=2)
    counted = looked_at(matcher, {"a5": 5, "a7": -1}, rows, **asked)
    assert counted["matches"] == 1 and counted["nodes"] <= 2 + 2 * 2 + 2


@TREES
@pytest.mark.parametrize("asked", [{}, {"k": 1}], ids=["all", "best"])
def test_a_directory_without_what_an_event_has_is_passed_over(kind: str, asked: dict[str, int]) -> None:
    table = equalities([(i % 3, i) for i in range(60)]) | {"weight": [1.0] * 60}
    matcher = built(kind, table, 8, capacity=5)
    assert looked_at(matcher, {f"a{i}": 1 for i in range(3, 8)}, 1, **asked)["nodes"] == 2


@TREES
@ROWS
def test_a_half_is_not_visited_whose_bound_is_too_low(kind: str, rows: int) -> None:
    """Of intervals that all have the event's value, one is the best, and stands high up."""
    count = 64
    table = {
        "id": [i for i in range(count) for _ in range(2)], "conjunction": [0] * (2 * count),
        "attribute": ["a0"] * (2 * count), "op": [">=", "<="] * count,
        "operands": [
            [v] for i in range(count) for v in ((32 - (64 >> i % 6), 33 + (64 >> i % 6)) if i % 6 else (0, 1000))
        ],
        "weight": [v for i in range(count) for v in ((8.0, 0.0) if i == 0 else (0.125, 0.0))],
    }  # fmt: skip
    matcher = built(kind, table, 1, capacity=2)
    all, best = looked_at(matcher, {"a0": 32}, rows), looked_at(matcher, {"a0": 32}, rows, k=1)
    assert all["conjunctions"] > 20
    assert best["conjunctions"] < all["conjunctions"] / 2 and best["nodes"] < all["nodes"]


@TREES
def test_events_of_a_tile_have_bounds_of_their_own(kind: str) -> None:
    """What is too low for one event is not verified for it, though it is for another."""
    rows = [("a1", 7.0), ("a1", 5.0), ("a0", 6.0), ("a1", 4.75), *[("a0", 4.0 - i / 8) for i in range(10)]]
    table = equalities([(int(name[1]), 1) for name, _ in rows]) | {"weight": [weight for _, weight in rows]}
    for i in (0, 2):  # these are false
        for name, value in ("id", i), ("conjunction", 0), ("attribute", "a2"), ("op", "not ="), ("operands", [1]):
            table[name].append(value)
        table["weight"].append(0.0)
    matcher = built(kind, table, 3, capacity=2)
    columns = {"a0": [1] * 30, "a1": [1, None] * 15, "a2": [1] * 30}
    events = pa.table(columns, matcher.schema.arrow)
    assert matcher.match_topk(events, 1)["score"].to_pylist() == [5.0, 4.0] * 15
    assert matcher.counters(events, k=1)["candidates"] == 15 + 15 + 30 + 15
    assert matcher.counters(events, k=2)["conjunctions"] == 15 + 15 + 15 + 30 + 15 + 15


@TREES
@ROWS
def test_priorities_bound_what_has_no_weights(kind: str, rows: int) -> None:
    table = equalities([(0, 1)] * 50) | {"priority": [i * 7 % 50 / 8 for i in range(50)]}
    matcher = built(kind, table, 1)
    assert looked_at(matcher, {"a0": 1}, rows, k=1, score="priority")["conjunctions"] == 1


@TREES
@ROWS
def test_bounds_of_weights_say_nothing_of_priorities(kind: str, rows: int) -> None:
    table = equalities([(0, 1)] * 20) | {
        "weight": list(map(float, range(20))),
        "priority": [20.0 - i for i in range(20)],
    }
    matcher = built(kind, table, 1)
    found = matcher.match_topk(pa.table({"a0": [1] * rows}), 2, score="priority")
    assert found["subscription"].to_pylist() == [0, 1] * rows
    assert looked_at(matcher, {"a0": 1}, rows, k=1, score="priority")["conjunctions"] == 20


@TREES
@ROWS
def test_what_an_event_gives_raises_bounds(kind: str, rows: int) -> None:
    """The lower weight wins where the event gives more to its attribute."""
    table = equalities([(0, 1)] * 10 + [(1, 1)] * 10) | {"weight": [2.0] * 10 + [1.0] * 10}
    matcher = built(kind, table, 2, capacity=1)
    events = pa.table({"a0": [1] * rows, "a1": [1] * rows})
    for given, best in (({"a1": 3.0}, 10), ({"a1": 2.0}, 0), ({"a1": 0.5}, 0), ({"a0": 0.0}, 10)):
        assert matcher.match_topk(events, 1, event_weights=given)["subscription"].to_pylist() == [best] * rows, given
    plain, raised = (looked_at(matcher, {"a0": 1, "a1": 1}, rows, k=1, event_weights=g) for g in ({}, {"a1": 3.0}))
    assert plain["candidates"] < raised["candidates"]


@TREES
@ROWS
@pytest.mark.parametrize("score", ["sum", "priority"])
def test_what_an_event_gives_is_nothing_to_scores_without_it(kind: str, rows: int, score: str) -> None:
    """Neither to the bounds: a weight below 1 would leave out the best, one above 1 nothing."""
    table = equalities([(0, 1)] * 20 + [(1, 1)] * 20)
    table |= {"weight" if score == "sum" else "priority": [1.0 + i % 7 for i in range(40)]}
    matcher, event = built(kind, table, 2, capacity=5), {"a0": 1, "a1": 1}
    asked: dict[str, Any] = {"k": 3, "score": score}
    plain, best = (
        looked_at(matcher, event, rows, **asked),
        matcher.match_topk(pa.table({"a0": [1], "a1": [1]}), **asked),
    )
    assert plain["conjunctions"] < 20 and best["subscription"].to_pylist() == [6, 13, 20]
    for given in ({"a0": 0.1}, {"a0": 10.0}, {"a0": 0.0, "a1": 1e-9}):
        assert looked_at(matcher, event, rows, **asked, event_weights=given) == plain
        assert matcher.match_topk(pa.table({"a0": [1], "a1": [1]}), **asked, event_weights=given).equals(best)


def heavy(kind: str, step: float) -> cm.Matcher:
    """Makes a hundred subscriptions on one attribute, and a light one on another."""
    table = equalities([(0, 1)] * 100 + [(1, 1)]) | {"weight": [*(i * step for i in range(1, 101)), 0.5]}
    return built(kind, table, 2, capacity=50)


@TREES
@ROWS
@pytest.mark.parametrize("score", ["dot", "max"])
def test_what_is_light_raises_no_bound_of_others(kind: str, rows: int, score: str) -> None:
    """An event gives 10 to an attribute on which no subscription has more than a half."""
    matcher, event = heavy(kind, 1 / 8), {"a0": 1, "a1": 1}
    assert looked_at(matcher, event, rows)["conjunctions"] == 101
    found = looked_at(matcher, event, rows, k=1, event_weights={"a1": 10.0}, score=score)
    assert found["conjunctions"] <= (2 if rows == 1 else 40)


@TREES
def test_few_of_a_tile_go_by_what_a_leaf_has(kind: str) -> None:
    """In a leaf that many events reach, they go by the caps of the whole tree."""
    matcher = heavy(kind, 1 / 25)
    for few, least, most in ((4, 0, 0), (5, 50, 100)):
        events = pa.table({"a0": pa.array([1] * few + [None] * (60 - few), pa.int64()), "a1": [1] * 60})
        counted = matcher.counters(events, k=1, event_weights={"a1": 10.0})
        assert least * few <= counted["conjunctions"] - 60 <= most * few


@TREES
def test_caps_of_leaves_are_asked_for_as_long_as_that_pays(kind: str) -> None:
    """Nothing can be left out in the leaf of a2, and all but the first in that of a0."""
    found = [(0, 1)] * 100 + [(1, 1)] + [(2, 1)] * 60 + [(3, 1)]
    table = equalities(found) | {"weight": [*(i / 25 for i in range(1, 101)), 0.5, *[0.9] * 60, 1.0]}
    matcher = built(kind, table, 4, capacity=50)
    given = {"a1": 10.0, "a2": 2.0}

    def tiles(count: int, a: str, *rest: str) -> pa.Table:
        """In each tile, four events have an attribute ``a``, all others have only the rest."""
        rows = count * 64
        own = pa.array([1 if i % 64 < 4 else None for i in range(rows)], pa.int64())
        return pa.table({a: own, **{name: pa.array([1] * rows, pa.int64()) for name in rest}})

    def looked_at(events: list[pa.Table]) -> int:
        together = pa.concat_tables(events, promote_options="default")
        counters = matcher.counters(together, k=1, event_weights=given)
        return int(counters["conjunctions"])

    vain, useful = tiles(20, "a2", "a3"), tiles(4, "a0", "a1")
    each = looked_at([useful])
    assert each < 4 * (4 * 50 + 64)
    assert looked_at([useful] * 6) == 6 * each  # more searches than the budget has without renewal
    one, many = (
        looked_at([vain.slice(0, 64 * count), useful]) - looked_at([vain.slice(0, 64 * count)]) for count in (1, 20)
    )
    assert one == each and many > 2 * each


@TREES
@ROWS
def test_the_heaviest_of_many_attributes_count_alone(kind: str, rows: int) -> None:
    """The others count together, as the heaviest of them; those of weight 0 do not count."""
    table = equalities([(i % 40, 1) for i in range(2000)]) | {"weight": [1.0 + i // 40 for i in range(2000)]}
    matcher = built(kind, table, 40)
    event = {f"a{i}": 1 for i in range(40)}
    given = {f"a{i}": 1.0 + i for i in range(40)}
    found = looked_at(matcher, event, rows, k=1, event_weights=given)
    assert found["matches"] < 100
    events = pa.table({name: [value] * rows for name, value in event.items()})
    scan = cm.Matcher.build(cm.PredicateTable(pa.table(table)), matcher.schema.arrow, index="scan")
    for some in (given, {**given, "a39": 0.0}, dict.fromkeys(event, 0.0), {"a3": 1e100}, {"a3": 1e-300}):
        for k in (1, 3, 60):
            wanted = scan.match_topk(events, k, event_weights=some)
            assert matcher.match_topk(events, k, event_weights=some).equals(wanted)


@TREES
@ROWS
def test_a_negation_counts_for_an_event_that_lacks_its_attribute(kind: str, rows: int) -> None:
    """An event may give a weight to an attribute that it lacks: NOT a = 5 is true then."""
    texts = {i: (cm.col("a") == 1).weight(1.0 + i / 100) for i in range(100)}
    texts |= {100: (cm.col("a") == 1).weight(0.5) & (~(cm.col("b") == 5)).weight(0.2)}
    schema = pa.schema([(name, pa.int64()) for name in "abc"])
    matcher = cm.Matcher.build(texts, schema, index=kind, missing="false")
    events = pa.table({"a": [1] * rows, "b": pa.nulls(rows, pa.int64()), "c": [1] * rows})
    found = matcher.match_topk(events, 1, event_weights={"b": 100.0, "c": 3.0})
    assert found["subscription"].to_pylist() == [100] * rows and found["score"][0].as_py() == 20.5


@TREES
def test_the_smallest_of_weights_have_caps(kind: str) -> None:
    """Weights too small for a float of 32 bits do not count as zeros."""
    table = equalities([(0, 1)] * 5 + [(1, 1)] * 5) | {"weight": [(i + 1) * 1e-60 for i in range(10)]}
    matcher = built(kind, table, 2, capacity=1)
    events = pa.table({"a0": [1], "a1": [1]})
    for given, best in (({"a0": 3.0}, 4), ({"a1": 3.0}, 9), ({"a0": 1e30}, 4)):
        assert matcher.match_topk(events, 1, event_weights=given)["subscription"].to_pylist() == [best]


@TREES
def test_the_best_one_costs_half(kind: str) -> None:
    """On the workload of the document, k = 1 reads at most half of what all matches need."""
    count = 3_000 if SMALL else 100_000
    workload = named("bestar", subscriptions=count, weights=True)
    matcher = cm.Matcher.build(workload.predicate_table(), workload.schema(), index=kind)
    events = workload.events(16 if SMALL else 200)
    all, best = matcher.counters(events), matcher.counters(events, k=1)
    assert best["conjunctions"] <= (0.9 if SMALL else 0.6) * all["conjunctions"]
    assert best["candidates"] <= (0.6 if SMALL else 0.1) * all["candidates"]


@TREES
@ROWS
def test_a_tree_that_grows_has_no_bounds(kind: str, rows: int) -> None:
    """Also one that was built with weights on what has no boundaries."""
    schema = pa.schema([(f"a{i}", pa.int64()) for i in range(8)])
    matcher = cm.Matcher.build({}, schema, index=cm.index(kind, capacity=1))
    matcher.insert({0: cm.col("a0").is_null().weight(1.0)})
    for i in range(1, 8):
        matcher.insert({i: (cm.col(f"a{i}") == 1).weight(1.0 + i)})
    events = pa.table({f"a{i}": pa.array([None if i == 0 else 1] * rows, pa.int64()) for i in range(8)})
    assert matcher.match_topk(events, 8)["subscription"].to_pylist() == [7, 6, 5, 4, 3, 2, 1, 0] * rows
    assert matcher.match_topk(events, 1)["subscription"].to_pylist() == [7] * rows


@TREES
@ROWS
def test_caps_know_the_largest_weight_of_conditions_that_became_one(kind: str, rows: int) -> None:
    """Weights 4 and -3 of one attribute add 1 to a sum, and 4 to the largest product."""
    schema = pa.schema([(name, pa.int64()) for name in "ab"])
    texts = {0: (cm.col("a") >= 1).weight(4.0) & (cm.col("a") <= 9).weight(-3.0) & (cm.col("b") == 1).weight(0.0)}
    texts |= {i: (cm.col("b") == 1).weight(30.0 - i / 100) for i in range(1, 200)}
    events = pa.table({"a": [5] * rows, "b": [1] * rows})
    asked = {"score": "max", "event_weights": {"a": 10.0}}
    for index in ("scan", kind):
        found = cm.Matcher.build(texts, schema, index=index).match_topk(events, 1, **asked)
        assert found.slice(0, 1).to_pylist() == [{"event": 0, "subscription": 0, "score": 40.0}]


@TREES
@ROWS
@pytest.mark.parametrize("given", [None, {"a0": 2.0, "a7": 0.5}])
def test_buckets_without_a_large_weight_are_left_where_the_largest_counts(
    kind: str, rows: int, given: dict[str, float] | None
) -> None:
    """Conjunctions have several small weights, and one has a single large one."""
    table: dict[str, list[Any]] = {"id": [], "conjunction": [], "attribute": [], "op": [], "operands": [], "weight": []}
    for i in range(1000):
        for part, weight in ((i % 20, 1.0), ((i + 1) % 20, 1.0), ((i + 2) % 20, 1.0 + i / 10_000)):
            for name, value in zip(table, (i, 0, f"a{part}", "=", [1], weight)):
                table[name].append(value)
    for name, value in zip(table, (1000, 0, "a3", "=", [1], 2.5)):
        table[name].append(value)
    matcher = built(kind, table, 20)
    event = {f"a{i}": 1 for i in range(20)}
    events = pa.table({name: [value] * rows for name, value in event.items()})
    scan = cm.Matcher.build(cm.PredicateTable(pa.table(table)), matcher.schema.arrow, index="scan")
    for k in (1, 3, 40):
        assert matcher.match_topk(events, k, "max", given).equals(scan.match_topk(events, k, "max", given))
    asked = {"k": 1, "score": "max", **({} if given is None else {"event_weights": given})}
    assert (
        looked_at(matcher, event, rows, **asked)["conjunctions"] < 300 < looked_at(matcher, event, rows)["conjunctions"]
    )
