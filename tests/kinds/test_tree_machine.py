"""BE-Tree and BE*-Tree under any order of changes: whole after each, and right."""

from __future__ import annotations

from functools import lru_cache
from random import Random
from typing import Any, NamedTuple

import inside
import numpy as np
import pyarrow as pa
import pytest
from contract import expected_pairs, pairs
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from layouts import plain_table
from oracle import Expr, lit, to_sql
from sizes import SMALL
from strategies import an_expression, some_rows, terms
from tree_walk import Walker, empty_tree

import colmatch as cm
from colmatch.events.sample import count_keys
from colmatch.kernels.kinds.trees import arrays as bt
from colmatch.kinds import trees

SEEDS = st.integers(0, 2**32)
PHASES = [phase for phase in Phase if phase is not Phase.shrink]  # which would take minutes
SUBSCRIPTIONS = 40 if SMALL else 150
SCHEMA = pa.schema([*((name, pa.int64()) for name in "abcd"), ("s", pa.string()), ("l", pa.list_(pa.int64()))])
SETTINGS: dict[str, dict[str, list[Any]]] = {
    "betree": {"halves": ["keys", "codes"]},
    "bestar": {"split": ["exhaustive", "approximate"], "alpha": [1, 10, 50], "beta": [1, 2, 4]},
}
COMMON: dict[str, list[Any]] = {
    "capacity": [1, 2, 5], "ranking": ["selectivity", "popularity", "feedback"], "short_circuit": [True, False],
}  # fmt: skip


class Pool(NamedTuple):
    """Subscriptions that may be in a tree, and the events that each of them matches."""

    scan: cm.Matcher
    events: pa.Table
    wanted: list[tuple[int, Any]]
    own: list[list[int]]  # conjunctions of each subscription


def a_box(rng: Random) -> Expr:
    """Ranges of a few attributes, narrow and wide, so that there is much to divide."""
    ranges = []
    for name in rng.sample("abcd", rng.randint(1, 4)):
        low = rng.randrange(-50, 50)
        ranges.append(("between", ("col", name), lit(low), lit(low + rng.choice([0, 0, 1, 5, 40, 1000]))))
    return ("and", *ranges)


@lru_cache(None)
def pool(number: int) -> Pool:
    rng = Random(number)
    leaves = terms(SCHEMA)
    some = [
        an_expression(rng, leaves, rng.choice([0, 1, 2])) if rng.random() < 0.2 else a_box(rng)
        for _ in range(SUBSCRIPTIONS)
    ]
    rows = some_rows(rng, SCHEMA, 12)
    for row in rows:
        row |= {name: rng.randrange(-60, 60) for name in "abcd" if rng.random() < 0.7}
    scan = cm.Matcher.build({id: to_sql(e) for id, e in enumerate(some)}, SCHEMA, index="scan")
    owner = inside.predicates(scan).owner
    own = [np.flatnonzero(owner == id).tolist() for id in range(SUBSCRIPTIONS)]
    return Pool(scan, plain_table(SCHEMA, rows), expected_pairs(some, list(range(SUBSCRIPTIONS)), rows), own)


class Changes(RuleBasedStateMachine):
    """A tree, and the subscriptions that it should have."""

    kind = "betree"

    @initialize(seed=SEEDS, number=st.integers(0, 2))
    def build(self, seed: int, number: int) -> None:
        rng = Random(seed)
        given = {name: rng.choice(values) for name, values in (COMMON | SETTINGS[self.kind]).items()}
        self.pool = pool(number)
        self.preds, self.codes = inside.predicates(self.pool.scan), inside.codes(self.pool.scan)
        attributes, literals = inside.attributes(self.pool.scan), inside.version(self.pool.scan).literals
        sample = count_keys(iter(self.pool.events.to_batches()), attributes, literals)
        self.tree = empty_tree(self.pool.scan, self.kind, sample, **given)
        self.there: set[int] = set()

    def enter(self, some: list[int]) -> None:
        for id in some:
            own = self.pool.own[id]
            if own:
                self.tree = trees.insert_conjunctions(self.tree, self.preds, self.codes, own[0], own[-1] + 1)
        self.there |= set(some)

    def take_out(self, some: list[int]) -> None:
        gone = np.array([c for id in some for c in self.pool.own[id]], np.int64)
        self.tree = trees.remove_conjunctions(self.tree, self.preds, self.codes, gone)
        self.there -= set(some)

    @rule(seed=SEEDS, part=st.sampled_from([0.02, 0.2, 1]))
    def insert(self, seed: int, part: float) -> None:
        rng = Random(seed)
        free = [id for id in range(SUBSCRIPTIONS) if id not in self.there]
        rng.shuffle(free)
        self.enter(free[: int(len(free) * part + 1)])

    @rule()
    @precondition(lambda self: not self.there)
    def insert_all_at_once(self) -> None:
        self.tree = trees.insert_conjunctions(self.tree, self.preds, self.codes, 0, len(self.preds.owner))
        self.there = set(range(SUBSCRIPTIONS))

    @rule(seed=SEEDS, part=st.sampled_from([0.02, 0.2, 0.8]))
    def delete(self, seed: int, part: float) -> None:
        self.take_out(Random(seed).sample(sorted(self.there), int(len(self.there) * part)))

    @rule(attribute=st.integers(0, 5), share=st.sampled_from([0.3, 0.6]), above=st.booleans())
    def delete_a_region(self, attribute: int, share: float, above: bool) -> None:
        """Of one attribute's range, all that begins on one side: whole buckets become empty."""
        low = {c: ranges[attribute][0] for c, ranges in enumerate(self.walker.placing) if attribute in ranges}
        cut = sorted(low.values())[int(share * len(low))] if low else 0
        gone = {c for c, at in low.items() if (at > cut) == above}
        self.take_out([id for id in self.there if gone & set(self.pool.own[id])])

    @rule()
    def delete_all_and_again(self) -> None:
        """What all need is there after they have been there once, so no table grows again."""
        used = []
        for _ in range(3):
            self.take_out(sorted(self.there))
            self.is_whole()
            assert self.tree.node[bt.ROOT, bt.PARTS] == self.tree.node[bt.ROOT, bt.COUNT] == 0
            assert len(self.walker.nodes) == 2 and not self.walker.parts
            self.enter(list(range(SUBSCRIPTIONS)))
            used.append(self.tree.state[[bt.NODES, bt.N_PARTS, bt.ENTRIES, bt.BOXES]].tolist())
        assert used[1] == used[2]

    @invariant()
    def is_whole(self) -> None:
        self.walker = Walker(self.tree, self.preds, self.codes)
        self.walker.check({c for id in self.there for c in self.pool.own[id]})

    @invariant()
    def finds_what_the_oracle_says(self) -> None:
        matcher = inside.with_index(self.pool.scan, self.kind, self.tree)
        assert pairs(matcher.match(self.pool.events)) == [pair for pair in self.pool.wanted if pair[1] in self.there]


@pytest.mark.parametrize("kind", ["betree", "bestar"])
def test_any_changes(kind: str) -> None:
    case = type(f"Changes of {kind}", (Changes,), {"kind": kind}).TestCase
    case.settings = settings(
        case.settings, max_examples=3 if SMALL else 25, stateful_step_count=8 if SMALL else 20, phases=PHASES
    )
    case("runTest").debug()
