"""BE-Tree and BE*-Tree: what their tables must be after any changes."""

from __future__ import annotations

from random import Random
from typing import Any

import inside
import numpy as np
import pyarrow as pa
import pytest
from contract import pairs
from sizes import SMALL
from tree_walk import Walker, empty_tree
from workload import named

import colmatch as cm
from colmatch.kernels.kinds.trees import arrays as bt
from colmatch.kinds import trees

TREES = pytest.mark.parametrize("kind", ["betree", "bestar"])
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "betree": [{}, {"ranking": "popularity"}, {"halves": "codes"}, {"ranking": "feedback"}],
    "bestar": [
        {},
        {"ranking": "popularity"},
        {"split": "approximate", "alpha": 30},
        {"ranking": "feedback", "beta": 1},
    ],
}


@TREES
@pytest.mark.parametrize("seed", range(2 if SMALL else 8))
def test_conjunctions_come_and_go(kind: str, seed: int) -> None:
    """The tables are whole after each step; in the end they are empty, and used again."""
    rng = Random(seed)
    count = 60 if SMALL else 400
    attributes = rng.choice([4, 10])
    workload = named(
        "dense", subscriptions=count, attributes=attributes, cardinality=rng.choice([5, 1000]),
        subscription_size=(1, 4), event_size=(2, attributes),
    )  # fmt: skip
    scan, events = cm.Matcher.build(workload.predicate_table(), workload.schema(), index="scan"), workload.events(30)
    preds, codes, wanted = inside.predicates(scan), inside.codes(scan), pairs(scan.match(events))
    settings = rng.choice(SETTINGS[kind]) | {"capacity": rng.choice([1, 3, 8])}
    tree = trees.insert_conjunctions(empty_tree(scan, kind, **settings), preds, codes, 0, count)
    Walker(tree, preds, codes).check(set(range(count)))
    there = set(range(count))
    for _ in range(6 if SMALL else 25):
        some = rng.sample(sorted(there), rng.randint(0, len(there)) // rng.choice([1, 5, 30]))
        tree = trees.remove_conjunctions(tree, preds, codes, np.array(some, np.int64))
        there -= set(some)
        Walker(tree, preds, codes).check(there)
        for c in rng.sample(sorted(set(range(count)) - there), (count - len(there)) // rng.choice([1, 5, 30])):
            tree = trees.insert_conjunctions(tree, preds, codes, c, c + 1)
            there.add(c)
        Walker(tree, preds, codes).check(there)
        found = pairs(inside.with_index(scan, kind, tree).match(events))
        assert found == [pair for pair in wanted if pair[1] in there]
    sizes = [len(array) for array in tree]
    for _ in range(2):
        tree = trees.remove_conjunctions(tree, preds, codes, np.array(sorted(there), np.int64))
        Walker(tree, preds, codes).check(set())
        assert tree.node[bt.ROOT, bt.PARTS] == 0
        tree = trees.insert_conjunctions(tree, preds, codes, 0, count)
        there = set(range(count))
        Walker(tree, preds, codes).check(there)
    assert len(tree.node) <= 2 * sizes[0] and len(tree.entry) <= 3 * sizes[5]


@TREES
@pytest.mark.parametrize("construction", ["bulk", "dynamic"])
@pytest.mark.parametrize("number", range(4))
def test_a_tree_of_all_is_whole(kind: str, construction: str, number: int) -> None:
    workload = named("dense", subscriptions=200 if SMALL else 5000, attributes=20, event_size=(5, 20))
    settings = SETTINGS[kind][number]
    index = cm.index(kind, capacity=5, construction=construction, **settings)
    matcher = cm.Matcher.build(workload.predicate_table(), workload.schema(), index=index, sample=workload.events(50))
    tree, preds, codes = inside.arrays(matcher), inside.predicates(matcher), inside.codes(matcher)
    everything = set(range(len(preds.owner)))
    Walker(tree, preds, codes).check(everything, packed=len(everything))


@TREES
def test_an_attribute_that_all_its_conjunctions_leave_for_another_gets_no_part(kind: str) -> None:
    """By popularity, ``b`` comes second, and each conjunction on it goes to ``a``."""
    texts = {i: f"a = {i} AND b = {i}" for i in range(4)} | {i: f"c{i} = 1" for i in range(4, 10)}
    columns = ["a", "b", *(f"c{i}" for i in range(4, 10))]
    index = cm.index(kind, capacity=2, ranking="popularity")
    matcher = cm.Matcher.build(texts, dict.fromkeys(columns, "int64"), index=index)
    assert matcher.match_one({"a": 1, "b": 1, "c4": 1, **dict.fromkeys(columns[3:], 0)}) == [1, 4]


def test_halves_at_the_middle_boundary() -> None:
    """Of keys from 0 to a million, all boundaries but one are below 40."""
    texts = {i: f"a BETWEEN {i} AND {i + 2}" for i in range(30)} | {99: "a = 1000000"}
    matcher = cm.Matcher.build(texts, {"a": "int64"}, index=cm.index("betree", capacity=3, halves="codes"))
    assert [matcher.match_one({"a": a}) for a in (0, 20, 40, 10**6)] == [[0], [18, 19, 20], [], [99]]
    wide = cm.Matcher.build(texts, {"a": "int64"}, index=cm.index("betree", capacity=3, halves="keys"))
    event = pa.table({"a": [20]})
    assert matcher.counters(event)["nodes"] < wide.counters(event)["nodes"]
