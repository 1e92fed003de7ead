"""BE-Tree and BE*-Tree: what their tables must be after any changes."""

from __future__ import annotations

from random import Random
from typing import Any

import inside
import numpy as np
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
