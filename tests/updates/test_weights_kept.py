"""Weights and priorities stay with predicates and subscriptions, whatever becomes of these."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import inside
import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.kernels.layout import ATTR_MASK
from colmatch.lowering.written import key_runs
from colmatch.updates import policy

SCHEMA = {"a": "int64", "b": "int64", "c": "int64", "t": pa.list_(pa.int64())}
WEIGHTS = pa.map_(pa.string(), pa.float64())
Held = dict[int, list[Any]]


def a_condition(rng: Random) -> str:
    return rng.choice(
        [
            f"{rng.choice('abc')} {rng.choice(['=', '<', '>=', '<>'])} {rng.randrange(9)}",
            f"{rng.choice('abc')} IN ({rng.randrange(5)}, {rng.randrange(5, 9)})",
            f"NOT array_contains(t, {rng.randrange(5)})",
            f"contains_all(t, {rng.randrange(3)}, {rng.randrange(3, 5)})",
            f"({rng.choice('abc')} = {rng.randrange(5)} OR b > {rng.randrange(5)} OR a < 3)",
        ]
    )


def some(rng: Random, ids: Any) -> pa.Table:
    """Subscriptions, some of which have weights, and a table some of which have priorities."""
    ids = list(ids)
    texts = [
        f" {rng.choice(['AND', 'AND', 'OR'])} ".join(a_condition(rng) for _ in range(rng.randrange(1, 5))) for _ in ids
    ]
    columns: dict[str, Any] = {"id": pa.array(ids, pa.int64()), "expression": pa.array(texts, pa.string())}
    if rng.random() < 0.6:
        weights = [
            [(name, rng.randrange(-8, 9) / 8) for name in rng.sample(["a", "b", "t", "size(t)"], rng.randrange(4))]
            for _ in ids
        ]
        columns["weights"] = pa.array([rng.choice([each, None]) for each in weights], WEIGHTS)
    if rng.random() < 0.6:
        columns["priority"] = pa.array([rng.choice([None, rng.randrange(-8, 9) / 8]) for _ in ids], pa.float64())
    return pa.table(columns)


def held(matcher: cm.Matcher) -> Held:
    """Conjunctions of each subscription, in what does not depend on numbers."""
    found: Held = {}
    version = inside.version(matcher)
    for segment, base in zip(version.segments, version.bases, strict=True):
        preds = segment.predicates
        assert len(preds.weight) in (0, len(preds.pred)) and len(preds.priority) in (0, len(preds.owner))
        for c, owner in enumerate(preds.owner.tolist()):
            id = version.ids[base + owner]
            if version.find(id) != base + owner:
                continue
            predicates = []
            for p in range(preds.first[c], preds.first[c + 1]):
                word = int(preds.pred[p, 0])
                attribute = version.attributes[word & ATTR_MASK]
                weight = preds.weight[p].tolist() if len(preds.weight) else [0.0, 0.0]
                predicates.append((attribute.name, word >> 29, key_runs(preds, segment.codes, p), weight))
            program = len(preds.jump_first) > 0 and preds.jump_first[c] >= 0
            priority = float(preds.priority[c]) if len(preds.priority) else 0.0
            found.setdefault(int(id), []).append((priority, predicates if program else sorted(predicates, key=repr)))
    return {id: sorted(conjunctions, key=repr) for id, conjunctions in found.items()}


def expected(table: pa.Table, index: Any) -> Held:
    return held(cm.Matcher.build(table, SCHEMA, index=index))


@pytest.mark.parametrize("kind", [*cm.index_kinds(), "auto"])
@pytest.mark.parametrize("seed", range(3))
def test_updates_keep_weights_and_priorities(kind: str, seed: int, tmp_path: Path) -> None:
    rng, path = Random(f"{kind} {seed}"), tmp_path / "index"
    index = cm.index(kind, dnf_budget=rng.choice([1, 64])) if kind != "auto" else "auto"
    table = some(rng, range(20))
    wanted = expected(table, index)
    matcher = cm.Matcher.build(table, SCHEMA, index=index)
    matcher.save(path)
    matcher = cm.Matcher.open(path, journal=True)
    new = 20

    def check() -> None:
        assert held(matcher) == {id: wanted[id] for id in matcher.ids.to_pylist() if id in wanted}
        assert set(held(matcher)) == wanted.keys()

    def insert() -> None:
        nonlocal new
        table = some(rng, range(new, new + rng.choice([1, 1, 7])))
        new += len(table)
        with patch.object(policy, "GROWING_MOST", rng.choice([0, 1024])):
            matcher.insert(table)
        wanted.update(expected(table, index))

    def replace() -> None:
        ids = rng.sample(matcher.ids.to_pylist(), 3)
        table = some(rng, ids)
        matcher.upsert(table)
        for id in ids:
            wanted.pop(id, None)
        wanted.update(expected(table, index))

    def delete() -> None:
        ids = rng.sample(matcher.ids.to_pylist(), 2)
        matcher.delete(ids)
        for id in ids:
            wanted.pop(id, None)

    def compact() -> None:
        matcher.compact()

    def save() -> None:
        matcher.save(path)

    def again() -> None:
        nonlocal matcher
        matcher.close()
        matcher = cm.Matcher.open(path, journal=True, mmap=rng.random() < 0.5)

    steps: list[Callable[[], None]] = [insert, insert, replace, delete, compact, save, again]
    check()
    for _ in range(14):
        rng.choice(steps)()
        inside.settled(matcher)
        check()
    again()
    check()
    assert held(pickle.loads(pickle.dumps(matcher))) == held(matcher)


def test_single_inserts_with_priorities_go_the_quick_way() -> None:
    """They share the memory of predicates, which those before do not see."""
    matcher = cm.Matcher.build(pa.table({"id": [0], "expression": ["a = 0"], "priority": [0.5]}), SCHEMA, index="scan")
    seen = []
    for i in range(1, 40):
        matcher.insert(pa.table({"id": [i], "expression": [f"a = {i}"], "priority": [i / 8]}))
        matcher.insert([(i + 100, (cm.col("a") == i).weight(i))])
        seen.append((inside.segment(matcher).predicates, inside.predicates(matcher).priority.tolist()))
    assert all(predicates.priority.tolist() == priority for predicates, priority in seen)
    assert sorted(one[0][0] for one in held(matcher).values()) == sorted(
        [0.5, *[i / 8 for i in range(1, 40)], *[0.0] * 39]
    )
    assert held(matcher)[139][0][1][0][3] == [39.0, 39.0]
