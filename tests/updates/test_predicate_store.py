"""Predicates with more behind them: those that were returned before stay as they are."""

from __future__ import annotations

import inside
import numpy as np

import colmatch as cm
from colmatch.kernels.layout import Predicates
from colmatch.updates.combined import concatenated
from colmatch.updates.predicates import PredicateStore


def predicates(*texts: str, base: int = 0) -> Predicates:
    matcher = cm.Matcher.build(dict(enumerate(texts)), {"a": "int64", "b": "int64"}, index="scan")
    found = inside.segment(matcher).predicates
    return found._replace(owner=found.owner + np.uint32(base))


def equal(some: Predicates, others: Predicates) -> bool:
    return all(np.array_equal(one, other) for one, other in zip(some, others, strict=True))


def test_what_comes_goes_behind() -> None:
    known = predicates("a = 1", "a IN (1, 3) AND b > 2")
    store, parts, returned = PredicateStore(known), [known], [known]
    for i in range(300):
        parts.append(predicates(f"a IN ({i}, {i + 2}) OR b = {i}", base=2 + i))
        returned.append(store.extended(returned[-1], parts[-1]))
        assert equal(returned[-1], concatenated(parts))
    assert all(not column.flags.writeable for column in returned[-1][:5])
    for i in (1, 7, 100):
        assert equal(returned[i], concatenated(parts[: i + 1]))


def test_what_was_not_used_is_written_over() -> None:
    known, lost, kept = predicates("a = 1"), predicates("a = 2 OR b = 9", base=1), predicates("b IN (5, 7)", base=1)
    store = PredicateStore(known)
    store.extended(known, lost)
    assert equal(store.extended(known, kept), concatenated([known, kept]))
