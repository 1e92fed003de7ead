"""Inserts into the tail of a k-index, deletes, and when all is built anew."""

from __future__ import annotations

from random import Random
from unittest.mock import patch

import inside
import numpy as np
import pyarrow as pa
import pytest
from contract import NO_JIT, pairs
from numpy.typing import NDArray
from test_kindex import of

import colmatch as cm
import colmatch.indexing.kindex
from colmatch.kernels import layout

MODULE = colmatch.indexing.kindex


def some_texts(rng: Random, count: int) -> dict[int, str]:
    leaves = [
        lambda: f"a = {rng.randrange(6)}",
        lambda: f"b BETWEEN {rng.randrange(9)} AND {rng.randrange(9, 20)}",
        lambda: f"c IN ({rng.randrange(5)}, {rng.randrange(5, 9)})",
        lambda: f"(d = {rng.randrange(4)}) IS NOT TRUE",
        lambda: f"b NOT IN ({rng.randrange(5)}, {rng.randrange(5, 9)}) AND b < {rng.randrange(9, 20)}",
        lambda: f"array_contains(t, {rng.randrange(4)})",
        lambda: f"(a = {rng.randrange(6)} OR (b = {rng.randrange(9)} AND c < 4))",
        lambda: (
            f"(a <> {rng.randrange(6)} OR d <> {rng.randrange(4)} OR NOT arrays_overlap(t, array({rng.randrange(4)}, 1)))"
        ),
    ]
    return {i: " AND ".join(leaf() for leaf in rng.sample(leaves, rng.choice([1, 2, 3]))) for i in range(count)}


def prefix(preds: layout.Predicates, count: int) -> layout.Predicates:
    """The first ``count`` conjunctions."""
    first = preds.first[: count + 1]
    cut = preds._replace(first=first, pred=preds.pred[: first[-1]], owner=preds.owner[:count])
    return (
        cut._replace(jump_first=cut.jump_first[:count], tree_first=cut.tree_first[: count + 1])
        if len(cut.jump_first)
        else cut
    )


@pytest.mark.parametrize("least", [0, 20, 10**6])
@pytest.mark.parametrize("budget", [1, 64])
def test_inserted_and_deleted(least: int, budget: int) -> None:
    """Some conjunctions are built, the others come one by one and in bulk, some of both go;
    ``least`` decides how often all is rebuilt.
    """
    rng = Random(least + budget)
    size = 60 if NO_JIT else 300
    texts = some_texts(rng, size)
    everything = of(texts, "scan", dnf_budget=budget)
    preds, codes = inside.predicates(everything), inside.codes(everything)
    events = pa.table(
        {name: [rng.choice([None, *range(10)]) for _ in range(50)] for name in "abcd"}
        | {"t": [[1, 2], [3], [], None, [1, 1]] * 10}
    )
    wanted = pairs(everything.match(events))
    count = len(preds.owner)
    entered = size // 3
    gone: set[int] = set()
    rebuilds = 0
    with patch.object(MODULE, "TAIL_LEAST", least), patch.object(MODULE, "TAIL_SHARE", 10):
        index, _ = MODULE.build(prefix(preds, entered), codes, None, cm.index("kindex"))
        while True:
            matcher = inside.with_arrays(everything, "kindex", index, predicates=prefix(preds, entered))
            alive = {int(preds.owner[c]) for c in range(entered)}
            whole = {sub for sub in alive if all(c < entered for c in np.flatnonzero(preds.owner == sub))} - gone
            found = pairs(matcher.match(events))
            assert [pair for pair in found if pair[1] in whole] == [pair for pair in wanted if pair[1] in whole]
            assert not {sub for _, sub in found} & gone and {sub for _, sub in found} <= alive
            if entered == count:
                break
            step = min(rng.choice([1, 1, 2, 30]), count - entered)
            lists = len(index.order)
            index = MODULE.insert(
                inside.arrays(matcher) if rng.random() < 0.3 else index, preds, entered, entered + step
            )
            rebuilds += len(index.order) != lists
            entered += step
            out = rng.sample(sorted(whole), min(len(whole), rng.choice([0, 1, 3])))
            gone |= set(out)
            conjunctions: NDArray[np.int64] = np.flatnonzero(np.isin(preds.owner[:entered], out)).astype(np.int64)
            index = MODULE.delete(index, preds, conjunctions)
    assert (rebuilds > 0) == (least < 10**6)
    assert index.tail[1] == count
    tail = count - int(index.tail[0])
    assert tail <= max(least, len(index.order) // 10)
    assert matcher.counters(events)["candidates"] >= events.num_rows * tail  # each is verified


def test_inserts_do_not_build_anew_each_time() -> None:
    texts = {i: f"a = {i % 9} AND b = {i % 11}" for i in range(3000)}
    everything = of(texts, "scan")
    preds = inside.predicates(everything)
    index, _ = MODULE.build(prefix(preds, 100), inside.codes(everything), None, cm.index("kindex"))
    with patch.object(MODULE, "_lists", side_effect=MODULE._lists) as builds:
        for c in range(100, 3000):
            index = MODULE.insert(index, preds, c, c + 1)
    assert builds.call_count == 2  # whenever the tail has MODULE.TAIL_LEAST
