"""Weights: what stands in ``layout.Predicates`` scores what the tree as written does."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from typing import Any

import inside
import pyarrow as pa
import pytest
from scored import Held, Score, Written
from sizes import SMALL
from trees import random_event, random_tree

import colmatch as cm
from colmatch.expr.ast import Expr, Predicate, rebuild
from colmatch.lowering.forms import Kind, Operand

SCHEMA = pa.schema(
    {
        "a": pa.int64(),
        "b": pa.int64(),
        "v": pa.bool_(),
        "s": pa.string(),
        "t": pa.list_(pa.int64()),
        "m": pa.map_(pa.string(), pa.int64()),
    }
)
NAMES = ["a", "b", "v", "s", "t", "m", "size(t)", "m['k']"]


def row_of(event: dict[str, Any]) -> pa.RecordBatch:
    event = event | {"m": None if event["m"] is None else list(event["m"].items())}
    return pa.record_batch([pa.array([event[f.name]], f.type) for f in SCHEMA], schema=SCHEMA)


def a_weight(rng: random.Random) -> float:
    return rng.choice([0.0, rng.randrange(-16, 32) / 8])


def weighed(rng: random.Random, tree: Expr, share: float) -> Expr:
    """The tree with weights for some predicates.

    An IS UNKNOWN asks its part twice, so weights below 0 are not the largest once more.
    """
    unknown = "UNKNOWN" in str(tree)

    def change(p: Predicate) -> Predicate:
        weight = abs(a_weight(rng)) if unknown else a_weight(rng)
        return replace(p, weighs=Operand(Kind.DOUBLE, value=weight)) if rng.random() < share else p

    return rebuild(tree, change)


def trees(rng: random.Random, number: int) -> list[Expr]:
    found = []
    for _ in range(number):
        tree = weighed(rng, random_tree(rng, rng.choice([1, 2, 3, 4])), rng.choice([0, 0.5, 1]))
        if rng.random() < 0.3:  # what is there twice
            tree = tree | tree if rng.random() < 0.3 else tree & tree
        found.append(tree)
    return found


def check(matcher: cm.Matcher, wanted: Any, rng: random.Random, events: int) -> int:
    pairs = 0
    for _ in range(events):
        event = random_event(rng)
        held = Held(matcher, row_of(event)).scores()
        expected = wanted(event)
        assert held.keys() == expected.keys()
        for id, found in held.items():
            assert found == expected[id], (id, event)
        pairs += len(held)
    return pairs


@pytest.mark.parametrize("budget", [1, 4, 64])
@pytest.mark.parametrize("seed", range(1 if SMALL else 4))
def test_a_score_is_that_of_the_tree_as_written(seed: int, budget: int) -> None:
    rng = random.Random(f"{seed} {budget}")
    some = dict(enumerate(trees(rng, 60)))
    matcher = cm.Matcher.build(some, SCHEMA, index=cm.index("scan", dnf_budget=budget))
    assert budget > 4 or len(inside.predicates(matcher).jump_first)

    def wanted(event: dict[str, Any]) -> dict[int, Score]:
        written = Written(lambda p, _: p.weighs.value if p.weighs else None)
        return {id: one for id, tree in some.items() if (one := written.score(tree, event)) is not None}

    assert check(matcher, wanted, rng, 15) > 100


@pytest.mark.parametrize("budget", [1, 64])
@pytest.mark.parametrize("seed", range(1 if SMALL else 4))
def test_weights_of_attributes_are_those_of_positive_predicates(seed: int, budget: int) -> None:
    rng = random.Random(f"by attribute {seed} {budget}")
    some = dict(enumerate(random_tree(rng, rng.choice([1, 2, 3, 4])) for _ in range(60)))
    weights = {id: {name: a_weight(rng) for name in rng.sample(NAMES, rng.randrange(6))} for id in some}
    table = pa.table(
        {
            "id": list(some),
            "expression": [str(tree) for tree in some.values()],
            "weights": pa.array([list(each.items()) for each in weights.values()], pa.map_(pa.string(), pa.float64())),
        }
    )
    matcher = cm.Matcher.build(table, SCHEMA, index=cm.index("scan", dnf_budget=budget))

    def weigh(id: int, p: Predicate, negated: bool) -> float:
        name = p.subject.path[0]
        own = "size(t)" if p.subject.size else f"{name}['k']" if p.subject.key else name
        return 0.0 if negated else weights[id].get(own, weights[id].get(name, 0.0))

    def wanted(event: dict[str, Any]) -> dict[int, Score]:
        found = {}
        for id, tree in some.items():
            one = Written(partial(weigh, id), by_attribute=True).score(tree, event)
            if one is not None:
                found[id] = one
        return found

    assert check(matcher, wanted, rng, 15) > 100
