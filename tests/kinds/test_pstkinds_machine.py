"""PSTBloom and PSTHash under any order of changes: whole after each, and right."""

from __future__ import annotations

from random import Random
from typing import Any

import inside
import numpy as np
import pytest
from contract import pairs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from pstree_walk import KindWalker, check_pstbloom, check_psthash, rows_used
from sizes import SMALL
from test_tree_machine import PHASES, SEEDS, SUBSCRIPTIONS, pool
from tree_walk import empty_tree
from workload import named

import colmatch as cm
from colmatch.kernels.kinds.pstree import arrays as ps
from colmatch.kinds import pstbloom
from colmatch.kinds.registry import find

CHECKS = {"pstbloom": check_pstbloom, "psthash": check_psthash}
SETTINGS: dict[str, dict[str, list[Any]]] = {
    "pstbloom": {"leaves": [1, 3, 128], "ranking": ["share", "operators"], "signatures": [True, True, False]},
    "psthash": {"leaves": [1, 3, 128], "dimensions": [1, 2, 3, 4], "spaces": [1, 4, 64]},
}
KINDS = pytest.mark.parametrize("kind", list(CHECKS))


@pytest.fixture(autouse=True)
def some_attributes_have_signatures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a machine have few predicates, so that a tenth of them makes some of each sort."""
    monkeypatch.setattr(pstbloom, "COMMON", 6)


class Changes(RuleBasedStateMachine):
    """An index, and the subscriptions that it should have."""

    kind = "pstbloom"

    @initialize(seed=SEEDS, number=st.integers(0, 2))
    def build(self, seed: int, number: int) -> None:
        rng = Random(seed)
        given = {name: rng.choice(values) for name, values in SETTINGS[self.kind].items()}
        self.pool = pool(number)
        self.preds, self.codes = inside.predicates(self.pool.scan), inside.codes(self.pool.scan)
        self.index: Any = empty_tree(self.pool.scan, self.kind, **given)
        self.there: set[int] = set()

    def enter(self, some: list[int]) -> None:
        insert = find(self.kind).insert
        for id in some:
            own = self.pool.own[id]
            if own:
                self.index = insert(self.index, self.preds, self.codes, own[0], own[-1] + 1)
        self.there |= set(some)

    def take_out(self, some: list[int]) -> None:
        gone = np.array([c for id in some for c in self.pool.own[id]], np.int64)
        self.index = find(self.kind).delete(self.index, self.preds, self.codes, gone)
        self.there -= set(some)

    @rule(seed=SEEDS, part=st.sampled_from([0.02, 0.2, 1]))
    def insert(self, seed: int, part: float) -> None:
        free = [id for id in range(SUBSCRIPTIONS) if id not in self.there]
        Random(seed).shuffle(free)
        self.enter(free[: int(len(free) * part + 1)])

    @rule()
    @precondition(lambda self: not self.there)
    def insert_all_at_once(self) -> None:
        self.index = find(self.kind).insert(self.index, self.preds, self.codes, 0, len(self.preds.owner))
        self.there = set(range(SUBSCRIPTIONS))

    @rule(seed=SEEDS, part=st.sampled_from([0.02, 0.2, 0.8]))
    def delete(self, seed: int, part: float) -> None:
        self.take_out(Random(seed).sample(sorted(self.there), int(len(self.there) * part)))

    @rule()
    def delete_all_and_again(self) -> None:
        """What all need is there after they have been there once, so no table grows again."""
        used = []
        for _ in range(3):
            self.take_out(sorted(self.there))
            assert self.walked().is_empty()
            self.enter(list(range(SUBSCRIPTIONS)))
            used.append([*rows_used(self.index), int(self.index.state[ps.ENTRIES])])
        assert used[1] == used[2]

    def walked(self) -> KindWalker:
        return CHECKS[self.kind](self.index, self.preds, {c for id in self.there for c in self.pool.own[id]})

    @invariant()
    def is_whole_and_finds_what_the_oracle_says(self) -> None:
        self.walked()
        matcher = inside.with_index(self.pool.scan, self.kind, self.index)
        assert pairs(matcher.match(self.pool.events)) == [pair for pair in self.pool.wanted if pair[1] in self.there]


@KINDS
def test_any_changes(kind: str) -> None:
    case = type(f"Changes of {kind}", (Changes,), {"kind": kind}).TestCase
    case.settings = settings(
        case.settings, max_examples=3 if SMALL else 20, stateful_step_count=8 if SMALL else 15, phases=PHASES
    )
    case("runTest").debug()


@KINDS
@pytest.mark.parametrize("construction", ["bulk", "dynamic"])
@pytest.mark.parametrize("number", range(3))
def test_an_index_of_all_is_whole(kind: str, construction: str, number: int) -> None:
    workload = named("dense", subscriptions=100 if SMALL else 1500, attributes=20, event_size=(5, 20))
    given = {name: values[number % len(values)] for name, values in SETTINGS[kind].items()}
    matcher = cm.Matcher.build(
        workload.predicate_table(), workload.schema(), index=cm.index(kind, construction=construction, **given)
    )
    index, preds = inside.arrays(matcher), inside.predicates(matcher)
    packed = int(index.state[ps.ENTRIES]) if construction == "bulk" else 0
    CHECKS[kind](index, preds, set(range(len(preds.owner))), packed)
