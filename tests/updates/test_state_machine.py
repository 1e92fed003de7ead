"""Any order of updates, merges, saves and batches finds what the oracle says."""

from __future__ import annotations

import itertools
import pickle
import tempfile
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import inside
import pytest
from contract import expected_pairs, pairs, some_settings
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from layouts import plain_table
from oracle import Expr, to_sql
from sizes import SMALL
from strategies import a_schema, an_expression, some_rows, terms

import colmatch as cm
from colmatch.updates import labels, policy
from colmatch.updates.vacuum import Use, in_segments

SEEDS = st.integers(0, 2**32)
STEPS = 15 if SMALL else 30
PHASES = [phase for phase in Phase if phase is not Phase.shrink]  # which would take minutes


class Updates(RuleBasedStateMachine):
    """A matcher, and the expressions that it should have by id."""

    kind = "auto"

    def __init__(self) -> None:
        super().__init__()
        few = {"GROWING_MOST": 4, "DELETED_LEAST": 3, "UNUSED_LEAST": 2, "RECENT_KEPT": 2, "RECENT_MOST": 5}
        self.patches = [patch.object(policy, name, value) for name, value in few.items()]
        for one in self.patches:
            one.start()
        self.folder, self.names = tempfile.TemporaryDirectory(), itertools.count()
        self.snapshots: list[tuple[cm.Matcher, dict[int, Expr]]] = []

    def teardown(self) -> None:
        self.folder.cleanup()
        for one in self.patches:
            one.stop()

    @initialize(seed=SEEDS, count=st.integers(0, 12), tier=st.sampled_from([0, 1, 4]))
    def build(self, seed: int, count: int, tier: int) -> None:
        self.patches.append(patch.object(policy, "TIER", tier))
        self.patches[-1].start()
        rng = Random(seed)
        self.schema = schema = a_schema(rng)
        self.leaves, self.rows = terms(schema), some_rows(rng, schema, 6)
        self.events = plain_table(schema, self.rows)
        self.there: dict[int, Expr] = {}
        self.more(rng, range(count))
        texts = {id: to_sql(e) for id, e in self.there.items()}
        index = cm.index(self.kind) if self.kind == "kindex" else some_settings(rng, self.kind)
        self.matcher = cm.Matcher.build(texts, schema, index=index, options=cm.Options(missing_columns="null"))

    def more(self, rng: Random, ids: Any) -> dict[int, str]:
        new = {id: an_expression(rng, self.leaves, rng.choice([0, 1, 2])) for id in ids}
        self.there |= new
        return {id: to_sql(e) for id, e in new.items()}

    @rule(seed=SEEDS, count=st.integers(1, 7))
    def insert(self, seed: int, count: int) -> None:
        self.enter(seed, count)

    def enter(self, seed: int, count: int) -> None:
        rng = Random(seed)
        free = [id for id in range(40) if id not in self.there]
        self.matcher.insert(self.more(rng, rng.sample(free, min(count, len(free)))))

    @rule(seed=SEEDS)
    def insert_without_room_for_labels(self, seed: int) -> None:
        with patch.object(labels, "join", side_effect=labels.NoRoomError):
            self.enter(seed, 1)

    @rule(seed=SEEDS, count=st.integers(1, 7))
    def replace(self, seed: int, count: int) -> None:
        rng = Random(seed)
        self.matcher.upsert(self.more(rng, rng.sample(range(40), count)))

    @rule(seed=SEEDS, count=st.integers(1, 9))
    def delete(self, seed: int, count: int) -> None:
        gone = Random(seed).sample(sorted(self.there), min(count, len(self.there)))
        self.matcher.delete(gone)
        for id in gone:
            del self.there[id]

    @rule(seed=SEEDS, count=st.integers(1, 7))
    def release(self, seed: int, count: int) -> None:
        rng = Random(seed)
        gone = rng.sample(sorted(self.there), min(count, len(self.there)))
        for id in gone:
            del self.there[id]
        old = rng.sample(sorted(self.there), min(count, len(self.there)))
        replaced = self.more(rng, old)
        other = self.more(rng, rng.sample(sorted(set(range(40)).difference(old)), count))
        self.matcher.update(delete=gone, replace=replaced, upsert=other)

    @rule()
    def snapshot(self) -> None:
        self.snapshots = [*self.snapshots[-3:], (self.matcher.snapshot(), dict(self.there))]

    @rule(seed=SEEDS, change=st.booleans(), merge=st.booleans())
    def restore(self, seed: int, change: bool, merge: bool) -> None:
        if not self.snapshots:
            return
        rng = Random(seed)
        snapshot, there = rng.choice(self.snapshots)
        assert pairs(snapshot.match(self.events)) == expected_pairs(list(there.values()), list(there), self.rows)
        if change:  # snapshots are matchers
            matcher, self.matcher, self.there = self.matcher, snapshot, there
            self.release(seed, 3)
            inside.merge_some(snapshot, rng) if merge else None
            self.matcher = matcher
        self.matcher.restore(snapshot)
        self.there = dict(there)

    @rule()
    def delete_all(self) -> None:
        self.matcher.delete(self.there)
        self.there.clear()

    @rule(seed=SEEDS)
    def merge(self, seed: int) -> None:
        inside.merge_some(self.matcher, Random(seed))

    @rule()
    def compact(self) -> None:
        self.matcher.compact()
        stats = self.matcher.stats()
        assert stats["gaps"] == 0 and len(stats["segments"]) == 1
        version = inside.version(self.matcher)
        use = Use.of(version.segments, version)
        assert version.attributes.used == in_segments(version).sum() == stats["attributes"]
        assert not policy.is_much(int((use.old == 0).sum() + (use.recent == 0).sum()), len(version.literals))
        texts = {id: to_sql(e) for id, e in self.there.items()}
        assert set(self.matcher.paths) <= set(cm.Matcher.build(texts, self.schema).paths)

    @rule()
    def pickle(self) -> None:
        self.matcher = pickle.loads(pickle.dumps(self.matcher))
        self.snapshots = []

    @rule(mmap=st.booleans(), journal=st.booleans())
    def save_and_open(self, mmap: bool, journal: bool) -> None:
        path = Path(self.folder.name, str(next(self.names)))
        self.matcher.save(path)
        self.matcher = cm.Matcher.open(path, mmap=mmap, journal=journal)

    @rule(save=st.booleans())
    def open_again(self, save: bool) -> None:
        journal = self.matcher.stats()["journal"]
        if journal is not None:
            path, version = journal["path"].removesuffix(".journal"), self.matcher.version
            self.matcher.save(path) if save else None
            self.matcher.close()
            self.matcher = cm.Matcher.open(path, journal=True)
            assert self.matcher.version == version

    @invariant()
    def finds_what_the_oracle_says(self) -> None:
        ids = list(self.there)
        wanted = expected_pairs(list(self.there.values()), ids, self.rows)
        assert pairs(self.matcher.match(self.events)) == wanted
        assert self.matcher.count(self.events).sum() == len(wanted)
        assert sorted(self.matcher.ids.to_pylist()) == sorted(ids)
        stats = self.matcher.stats()
        assert (
            stats["subscriptions"]
            == len(self.matcher)
            == len(ids)
            == sum(s["subscriptions"] for s in stats["segments"])
        )
        assert stats["merge_error"] is None


@pytest.mark.parametrize("kind", [*cm.index_kinds(), "auto"])
def test_updates_merges_saves(kind: str) -> None:
    machine = type(f"Updates of {kind}", (Updates,), {"kind": kind})
    case = machine.TestCase
    case.settings = settings(
        case.settings, max_examples=2 if SMALL else 8, stateful_step_count=STEPS, deadline=None, phases=PHASES
    )
    case("runTest").debug()
