"""Predicates with more behind them: those that were returned before stay as they are."""

from __future__ import annotations

from itertools import pairwise

import inside
import numpy as np

import colmatch as cm
from colmatch.kernels.layout import Codes, Predicates
from colmatch.predicates.columns import concat
from colmatch.predicates.store import PredicateStore
from colmatch.updates import labels


def lowered(*texts: str) -> tuple[Predicates, Codes]:
    matcher = cm.Matcher.build(dict(enumerate(texts)), {"a": "int64", "b": "int64"}, index="scan")
    found = inside.segment(matcher)
    return found.predicates, labels.with_labels(found.predicates, found.codes)[1]


def labelled(part: tuple[Predicates, Codes], base: int = 0) -> Predicates:
    preds, codes = part
    return labels.relabelled(preds._replace(owner=preds.owner + np.uint32(base)), codes, codes.label)


def extended(store: PredicateStore, known: Predicates, part: tuple[Predicates, Codes], base: int) -> Predicates:
    preds, codes = part
    return store.extended(known, preds, codes, codes.label, base)


def equal(some: Predicates, others: Predicates) -> bool:
    return all(np.array_equal(one, other) for one, other in zip(some, others, strict=True))


def test_what_comes_goes_behind() -> None:
    known = labelled(lowered("a = 1", "a IN (1, 3) AND b > 2"))
    store, parts, returned = PredicateStore(), [known], [known]
    for i in range(300):
        new = lowered(f"a IN ({i}, {i + 2}) OR b = {i}")
        parts.append(labelled(new, 2 + i))
        returned.append(extended(store, returned[-1], new, 2 + i))
        assert equal(returned[-1], concat(parts))
    assert all(not column.flags.writeable for column in returned[-1][:5])
    for i in (1, 7, 100):
        assert equal(returned[i], concat(parts[: i + 1]))


def test_what_was_not_used_is_written_over() -> None:
    known, lost, kept = labelled(lowered("a = 1")), lowered("a = 2 OR b = 9"), lowered("b IN (5, 7)")
    store = PredicateStore()
    extended(store, known, lost, 1)
    assert equal(extended(store, known, kept, 1), concat([known, labelled(kept, 1)]))


def test_inserts_one_by_one_share_memory() -> None:
    """It is copied when it is full, which takes as many more each time."""
    matcher = cm.Matcher.build({-1: "a = 0"}, {"a": "int64"})
    memory = []
    for i in range(400):
        matcher.insert({i: f"a = {i} OR a > {i + 500}"})
        memory.append(inside.predicates(matcher).pred.__array_interface__["data"][0])
    assert sum(one != other for one, other in pairwise(memory)) < 10
