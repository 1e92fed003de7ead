"""PS-Trees under any order of changes: whole after each, and right."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from locators.kernels import ps_tree
from pstree_walk import Range, Walker, rows_used
from sizes import SMALL

from colmatch.kernels._jit import kernel
from colmatch.kernels.kinds.pstree import arrays as ps
from colmatch.kernels.kinds.pstree.arrays import NONE, PREDS, USES, PSTree
from colmatch.kernels.kinds.pstree.change import (
    count_spaces,
    end_attribute,
    needs_cut_above,
    needs_cut_below,
    run_of,
    uncut_at,
)
from colmatch.kernels.kinds.pstree.tables import MOST_DIGITS, free_space
from colmatch.kernels.layout import LABEL_TOP
from colmatch.kinds.pstrees import add_rows, empty_tables

SEEDS = st.integers(0, 2**32)
PHASES = [phase for phase in Phase if phase is not Phase.shrink]
SIGN = 2**63
# Lowest key, and the highest of each attribute: int64 keys, labels, codes.
DOMAINS = [(0, [2**64 - 1] * 3), (1, [LABEL_TOP, LABEL_TOP, LABEL_TOP]), (1, [100, 5, 1]), (1, [16, 17, 300])]


@kernel
def leave_ranges(tree: Any, attr: Any, lo: Any, hi: Any) -> None:
    """Takes predicates out that are there, which ``ps_tree.enter_ranges`` entered."""
    for i in range(len(attr)):
        a = np.int64(attr[i])
        s, last = run_of(tree, a, lo[i], hi[i])
        count_spaces(tree.space, s, last, PREDS, -1)
        if needs_cut_below(tree, lo[i]):
            s = uncut_at(tree, a, lo[i])
            if s != NONE:
                free_space(tree, s)
        if needs_cut_above(tree, a, hi[i]):
            s = uncut_at(tree, a, hi[i] + np.uint64(1))
            if s != NONE:
                free_space(tree, s)
        tree.tree[a, USES] -= 1
        end_attribute(tree, a)


def flipped(key: int) -> int:
    """A ``layout`` key as trees have it."""
    return key + SIGN


def given(ranges: list[tuple[int, int, int]]) -> list[Range]:
    return [(attribute, [(lo, hi)]) for attribute, lo, hi in ranges]


def columns(ranges: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    attr = np.array([attribute for attribute, _, _ in ranges], np.uint32)
    return attr, *(np.array([r[i] for r in ranges], np.uint64) for i in (1, 2))  # type: ignore[return-value]


def entered(tree: PSTree, ranges: list[tuple[int, int, int]]) -> PSTree:
    done, some = 0, columns(ranges)
    while done < len(ranges):
        done = ps_tree.enter_ranges(tree, *some, done)
        if done < len(ranges):
            tree = add_rows(tree, 2 * MOST_DIGITS, 2, 3)
    return tree


def found(tree: PSTree, attribute: int, keys: list[int]) -> list[int]:
    space = np.empty(len(keys), np.uint32)
    ps_tree.find_spaces(tree, np.full(len(keys), attribute, np.uint32), np.array(keys, np.uint64), space)
    return space.tolist()


def some_keys(rng: Random, lowest: int, highest: int) -> Callable[[], int]:
    """Keys that share digits, the ends of the domain, and anything between."""
    middle = rng.randint(lowest, highest)

    def key() -> int:
        near = middle + rng.choice([1, 16, 1 << 20, 1 << 40]) * rng.randint(-9, 9)
        return min(max(rng.choice([lowest, highest, near, near, near, rng.randint(lowest, highest)]), lowest), highest)

    return key


class Changes(RuleBasedStateMachine):
    """PS-Trees, and the predicates that they should have."""

    @initialize(seed=SEEDS, domain=st.sampled_from(DOMAINS))
    def build(self, seed: int, domain: tuple[int, list[int]]) -> None:
        self.lowest, self.highest = domain
        self.tree = empty_tables(np.array(self.highest, np.uint64), self.lowest)
        self.there: list[tuple[int, int, int]] = []
        rng = Random(seed)
        self.key = [some_keys(rng, self.lowest, highest) for highest in self.highest]

    def some(self, rng: Random, count: int) -> list[tuple[int, int, int]]:
        ranges = []
        for _ in range(count):
            attribute = rng.randrange(3)
            one, other = self.key[attribute](), self.key[attribute]()
            if rng.random() < 0.4:
                other = one
            ranges.append((attribute, min(one, other), max(one, other)))
        return ranges

    @rule(seed=SEEDS, count=st.sampled_from([1, 3, 20]))
    def insert(self, seed: int, count: int) -> None:
        new = self.some(Random(seed), count)
        self.tree = entered(self.tree, new)
        self.there += new

    @rule(seed=SEEDS, part=st.sampled_from([0.05, 0.3, 0.9]))
    def delete(self, seed: int, part: float) -> None:
        Random(seed).shuffle(self.there)
        count = int(len(self.there) * part + 1)
        gone, self.there = self.there[:count], self.there[count:]
        leave_ranges(self.tree, *columns(gone))

    @rule()
    def delete_all_and_again(self) -> None:
        """What all need is there after they have been there once, so no table grows again."""
        used = []
        for _ in range(3):
            leave_ranges(self.tree, *columns(self.there))
            walker = Walker(self.tree)
            walker.check([])
            assert walker.is_empty()
            self.tree = entered(self.tree, self.there)
            used.append(rows_used(self.tree))
        assert used[1] == used[2]

    @invariant()
    def is_whole_and_finds_the_space_of_a_key(self) -> None:
        walker = Walker(self.tree)
        walker.check(given(self.there))
        for attribute, spaces in walker.spaces.items():
            edges = [key + step for key, _ in walker.cuts[attribute] for step in (-1, 0, 1)]
            keys = [*edges, *(self.key[attribute]() for _ in range(5))]
            keys = [key for key in keys if self.lowest <= key <= self.highest[attribute]]
            expected = [walker.find(attribute, key) if spaces else NONE for key in keys]
            assert found(self.tree, attribute, keys) == expected


def test_any_changes() -> None:
    case = Changes.TestCase
    case.settings = settings(
        case.settings, max_examples=10 if SMALL else 60, stateful_step_count=10 if SMALL else 25, phases=PHASES
    )
    case("runTest").debug()


def made(ranges: list[tuple[int, int]]) -> PSTree:
    highest = np.array([2**64 - 1], np.uint64)
    return entered(empty_tables(highest, 0), [(0, flipped(lo), flipped(hi)) for lo, hi in ranges])


def spaces_of(tree: PSTree) -> list[tuple[int, int]]:
    """The lowest key of each space, and its predicates."""
    spaces, s = [], int(tree.tree[0, ps.FIRST])
    while s != NONE:
        start = tree.space[s, ps.START]
        spaces.append((int(tree.key[start]) - SIGN if start != NONE else -SIGN, int(tree.space[s, ps.PREDS])))
        s = int(tree.space[s, ps.NEXT])
    return spaces


def test_the_example_of_the_document() -> None:
    """Section 4.4: two ranges of ages, of which the second goes again."""
    tree = made([(20, 60), (30, 80)])
    assert spaces_of(tree) == [(-SIGN, 0), (20, 1), (30, 2), (61, 1), (81, 0)]
    leave_ranges(tree, *columns([(0, flipped(30), flipped(80))]))
    assert spaces_of(tree) == [(-SIGN, 0), (20, 1), (61, 0)]
    assert tree.state[ps.MERGED] == 2


def test_an_end_that_another_predicate_has_stays() -> None:
    tree = made([(20, 60), (20, 40), (61, 70)])
    leave_ranges(tree, *columns([(0, flipped(20), flipped(60))]))
    assert spaces_of(tree) == [(-SIGN, 0), (20, 1), (41, 0), (61, 1), (71, 0)]


def test_neighbours_share_a_cut() -> None:
    """There is no space without keys between 5 and 6."""
    assert spaces_of(made([(1, 5), (6, 9)])) == [(-SIGN, 0), (1, 1), (6, 1), (10, 0)]


@pytest.mark.parametrize("key", [-SIGN, -1, 0, SIGN - 1])
def test_a_predicate_of_the_outermost_keys(key: int) -> None:
    tree = made([(key, key)])
    assert dict(spaces_of(tree))[key] == 1
    assert [int(tree.space[s, ps.PREDS]) for s in found(tree, 0, [flipped(key)])] == [1]
