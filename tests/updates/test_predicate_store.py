"""Predicates with more behind them: those that were returned before stay as they are."""

from __future__ import annotations

from itertools import pairwise, permutations

import inside
import numpy as np

import colmatch as cm
from colmatch.kernels.layout import Codes, Predicates
from colmatch.predicates.columns import PlacedConjunctions, concat, gather
from colmatch.predicates.store import PredicateStore
from colmatch.updates import labels


def lowered(*texts: str) -> tuple[Predicates, Codes]:
    matcher = cm.Matcher.build(dict(enumerate(texts)), {"a": "int64", "b": "int64"}, index="scan")
    found = inside.segment(matcher)
    return found.predicates, labels.with_labels(found.predicates, found.codes)[1]


def labelled(part: tuple[Predicates, Codes], base: int = 0) -> Predicates:
    preds, codes = part
    return labels.relabel_predicates(preds._replace(owner=preds.owner + np.uint32(base)), codes, codes.label)


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


PROGRAM = "(a = 1 OR b = 2) AND (a = 3 OR b = 4)"


def whole(*texts: str) -> Predicates:
    """Predicates of expressions that are not multiplied out."""
    index = cm.index("scan", dnf_budget=1)
    return inside.predicates(cm.Matcher.build(dict(enumerate(texts)), {"a": "int64", "b": "int64"}, index=index))


def rows(columns: Predicates, conjunction: int) -> list[list[float]]:
    """Returns predicates, weights, priority, jumps and tokens of a conjunction."""
    begin, end = columns.first[conjunction : conjunction + 2].tolist()
    jump = columns.jump_first[conjunction] if len(columns.jump_first) else -1
    tree = columns.tree_first[conjunction : conjunction + 2].tolist() if len(columns.tree_first) else [0, 0]
    return [
        columns.pred[begin:end].ravel().tolist(),
        columns.weight[begin:end].ravel().tolist() if len(columns.weight) else [0.0] * 2 * (end - begin),
        columns.priority[conjunction : conjunction + 1].tolist() or [0.0],
        columns.jump[jump : jump + end - begin].ravel().tolist() if jump >= 0 else [],
        columns.tree[slice(*tree)].tolist(),
    ]


def test_what_one_part_has_and_another_lacks_is_filled_up() -> None:
    """Programs, weights and priorities, each of which one part has; parts come in any order."""
    plain = whole("a = 1 AND b = 2", "a = 7")
    programs = whole(PROGRAM, "a = 5", f"{PROGRAM} AND (a = 6 OR b = 7 OR b = 9)")
    others = whole("(a = 1 OR b = 2 OR a = 8) AND (a = 3 OR b = 4)", "a = 5")
    weights = others._replace(weight=np.arange(2.0 * len(others.pred)).reshape(-1, 2) + 1)
    priorities = plain._replace(priority=np.array([3.0, 4.0]))
    for parts in permutations([plain, programs, weights, priorities]):
        numbers = np.random.default_rng(1).permutation(sum(len(part.owner) for part in parts))
        placed, wanted, begin = [], {}, 0
        for part in parts:
            own = np.arange(len(part.owner))[::-1]
            place = numbers[begin : begin + len(own)]
            placed.append(PlacedConjunctions(part, own, place))
            wanted |= {int(to): rows(part, int(conjunction)) for conjunction, to in zip(own, place, strict=True)}
            begin += len(own)
        made = gather(placed)
        assert [rows(made, i) for i in range(begin)] == [wanted[i] for i in range(begin)]
        assert made.jump_first.min() == -1 and len(made.tree_first) == begin + 1
        assert len(made.jump) == len(programs.jump) + len(others.jump)
    nothing = np.empty(0, np.int64)
    for made in (
        concat([plain, plain]),
        gather([PlacedConjunctions(part, nothing, nothing) for part in (programs, weights)]),
    ):
        assert not any(len(getattr(made, name)) for name in ("weight", "priority", "jump_first", "tree_first", "tree"))


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
