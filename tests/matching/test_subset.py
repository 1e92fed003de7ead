"""Events that are matched among some subscriptions alone, and whether there is any match."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from contract import every_kind, lists, pairs
from sizes import SMALL

import colmatch as cm

SCHEMA = {"a": pa.int64(), "s": pa.string()}
EVENTS = pa.table({"a": [1, 2, 3, None, 5], "s": ["x", "y", "x", "z", None]})
TEXTS = {i: f"a >= {i}" if i % 3 else f"a < {i} OR s = 'x'" for i in range(9)}


def matcher(kind: str = "auto", texts: Any = TEXTS) -> cm.Matcher:
    return cm.Matcher.build(texts, SCHEMA, index=kind)


def found(of: cm.Matcher, ids: Any) -> list[tuple[int, Any]]:
    return pairs(of.match(EVENTS, ids=ids))


def those(of: cm.Matcher, ids: Any) -> list[tuple[int, Any]]:
    return [(event, id) for event, id in pairs(of.match(EVENTS)) if id in ids]


@every_kind
def test_each_way_to_ask(kind: str) -> None:
    of = matcher(kind)
    for ids in ([], [0], [3, 1, 3], list(range(9)), [4, 77, -5]):
        some, wanted = of.subset(ids), those(of, ids)
        assert found(of, ids) == found(of, some) == wanted
        counts = [sum(event == i for event, _ in wanted) for i in range(5)]
        assert of.count(EVENTS, ids=some).tolist() == counts
        assert of.exists(EVENTS, ids=some).tolist() == [n > 0 for n in counts]
        assert lists(of.match_lists(EVENTS, ids=ids)) == [[id for i, id in wanted if i == event] for event in range(5)]
        assert pairs(pa.Table.from_batches(of.match_batches(EVENTS, ids=ids), of.match(EVENTS).schema)) == wanted
        best = of.match_topk(EVENTS, 100, ids=ids)
        assert pairs(best.drop_columns("score")) == wanted
        assert of.counters(EVENTS, ids=ids)["matches"] == len(wanted)
        ranges = {"a": ("a", "a")}
        assert pairs(of.match(EVENTS, ranges, ids=ids)) == wanted
    assert pairs(of.match(EVENTS)) == those(of, range(9))


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([1, 3], pa.int64()),
        pa.array([1, 3], pa.uint8()),
        pa.chunked_array([[1], [3]]),
        pa.array([1, 3, 1]).dictionary_encode(),
        np.array([1, 3], np.int16),
        (id for id in (1, 3)),
        {1, 3},
        [np.int64(1), 3],
    ],
)
def test_what_lists_ids(ids: Any) -> None:
    of = matcher()
    assert found(of, ids) == those(of, [1, 3])


def test_ids_that_are_strings() -> None:
    of = matcher(texts={f"n{id}": text for id, text in TEXTS.items()})
    wanted = those(of, ["n1", "n4"])
    for ids in (["n1", "n4", "nowhere"], pa.array(["n1", "n4"], pa.large_string()), np.array(["n1", "n4"])):
        assert found(of, ids) == wanted
    with pytest.raises(cm.SubscriptionError, match=r"ids: 1 is no id of this matcher, whose ids are string"):
        of.match(EVENTS, ids=[1])
    with pytest.raises(cm.SubscriptionError, match=r"the ids of this matcher are string, those given are int64"):
        of.match(EVENTS, ids=pa.array([1]))


@pytest.mark.parametrize("ids", [["x"], [1], pa.array(["x"]), np.array(["x"]), pa.array([1])], ids=range(5))
def test_an_empty_matcher_takes_ids_of_either_type(ids: Any) -> None:
    of = matcher(texts={})
    assert found(of, ids) == [] and list(of.match_one({"a": 5, "s": "z"}, ids=ids)) == []
    some = of.subset(ids)
    of.insert({"x": "TRUE"})
    assert bool(found(of, some)) is ("x" in np.array(ids).tolist())
    of.delete(["x"])
    assert found(of, ids) == [] and found(of, [3]) == []
    for wrong in ([None], [1.5], "x"):
        with pytest.raises(cm.SubscriptionError):
            of.subset(wrong)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ("abc", "'abc' is not a list of ids: put a single one into a list"),
        (5, "5 is not a list of ids"),
        (["x"], "ids: 'x' is no id of this matcher, whose ids are int64"),
        ([True], "ids: True is no id"),
        ([2**70], "is no id"),
        ([None], "ids: None is no id"),
        (pa.array([1, None]), "ids: number 1 is NULL"),
        (pa.array([1.5]), "ids: column 'id' is double"),
        (pa.array([2**63], pa.uint64()), "ids: an id does not fit int64"),
        (np.array([[1, 2]]), "ids cannot be read"),
    ],
)
def test_what_does_not(ids: Any, message: str) -> None:
    with pytest.raises(cm.SubscriptionError, match=re.escape(message)):
        matcher().exists(EVENTS, ids=ids)


@every_kind
def test_a_subset_follows_its_matcher(kind: str) -> None:
    of = matcher(kind)
    some = of.subset([1, 3, 20])
    assert found(of, some) == those(of, [1, 3])
    of.insert({20: "a = 5", 21: "a = 5"})
    assert found(of, some) == those(of, [1, 3, 20]) and (4, 20) in found(of, some)
    of.upsert({1: "s = 'z'"})
    assert found(of, some) == those(of, [1, 3, 20]) and (3, 1) in found(of, some)
    of.delete([3])
    assert found(of, some) == those(of, [1, 20])
    of.compact()
    assert found(of, some) == those(of, [1, 20])
    of.delete([1, 20])
    assert found(of, some) == []
    of.delete(of.ids)
    of.insert({"n": "a = 5"})
    assert found(of, some) == [] and pairs(of.match(EVENTS)) == [(4, "n")]


def test_a_matcher_without_subscriptions() -> None:
    of = matcher(texts={})
    assert found(of, [1]) == [] and found(of, []) == [] and not of.exists(EVENTS).any()


@pytest.mark.parametrize("kind", cm.index_kinds())
def test_a_range_that_one_of_all_refuses_is_no_matter_to_others(kind: str) -> None:
    columns = ["a", "b", "c", "d"]
    parts = ([*(f"{name} = {10 * i}" for name in columns), f"x = {i}"] for i in range(8))
    hard = " AND ".join(f"({' OR '.join(some)})" for some in parts)
    ranges = dict.fromkeys(columns, ("low", "high"))
    of = cm.Matcher.build(
        {1: hard, 2: "a = 50", 3: "a = 500"},
        dict.fromkeys([*columns, "x"], "int64"),
        index=cm.index(kind, dnf_budget=1),
        options=cm.Options(threads=1),
    )
    events = pa.table({"low": [0], "high": [100], "x": [1]})
    for _ in range(2):
        assert pairs(of.match(events, ranges, ids=[2, 3])) == [(0, 2)]
        with pytest.raises(cm.EventError, match="subscription 1 asks too much of the range"):
            of.match(events, ranges)


@every_kind
@pytest.mark.parametrize("batch", [1, 64])
def test_an_event_is_left_at_its_first_match(kind: str, batch: int) -> None:
    """Events that all meet hundreds, of which one is enough."""
    texts = {i: f"a >= {i % 50}" + (f" AND a <= {1000 + i}" if i % 2 else "") for i in range(1200)}
    of = cm.Matcher.build(texts, SCHEMA, index=kind, options=cm.Options(batch_rows=batch))
    rows = 8 if SMALL else 64
    events = pa.table({"a": [60] * rows, "s": ["x"] * rows})
    some, all_ = of.counters(events, exists=True), of.counters(events)
    assert of.exists(events).all()
    if of.kind != "bitslice":
        assert some["matches"] < all_["matches"] / 2
    if of.kind not in ("bitslice", "opindex", "pbtree", "scan"):  # which look at many conjunctions together
        assert sum(some.values()) < sum(all_.values()) / 2


def test_bitslice_verifies_only_what_is_asked_for() -> None:
    texts = {i: f"a >= 1 AND s LIKE '%x%' AND (a = {i} OR s = 'x' OR a < 100)" for i in range(500)}
    of = cm.Matcher.build(texts, SCHEMA, index=cm.index("bitslice", dnf_budget=1))
    some, all_ = of.counters(EVENTS, ids=[200]), of.counters(EVENTS)
    assert some["matches"] * 100 <= all_["matches"]
    assert 0 < some["candidates"] * 100 <= all_["candidates"]
