"""What was left out: one entry for each id, as long as nothing else has been said about that id."""

from __future__ import annotations

import pickle
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

import colmatch as cm
from colmatch.subscriptions import rejected
from colmatch.updates import memory_set

SCHEMA = {"a": "int64"}


def ids(matcher: cm.Matcher) -> list[Any]:
    assert matcher.stats()["rejected"] == len(matcher.rejected)
    return [entry.id for entry in matcher.rejected]


def test_an_entry_goes_when_its_id_is_taken_or_deleted() -> None:
    matcher = cm.Matcher.build({1: "a =", 2: "b = 1", 3: "a = 1", 4: "a >"}, SCHEMA, errors="collect")
    assert ids(matcher) == [1, 2, 4]
    matcher.insert({1: "a = 5"})
    assert ids(matcher) == [2, 4]
    matcher.upsert({3: "a <", 5: "a = 3"}, errors="collect")
    assert ids(matcher) == [2, 4, 3] and matcher.ids.to_pylist() == [3, 1, 5]
    matcher.insert({2: "c = 1"}, errors="collect")  # again, for another reason
    assert ids(matcher) == [4, 3, 2] and "'c'" in matcher.rejected[-1].message
    matcher.delete([3, 5])
    assert ids(matcher) == [4, 2] == ids(pickle.loads(pickle.dumps(matcher)))
    matcher.insert(dict.fromkeys(range(4, 100), "a = 1"))
    assert ids(matcher) == [2]


def test_ids_of_both_types() -> None:
    """An empty matcher takes either; what was said about the others stays."""
    matcher = cm.Matcher.build({1: "a =", 2: "a ="}, SCHEMA, errors="collect", max_rejected=1.0)
    matcher.insert({f"id {i}": "a = 1" for i in range(50)} | {"1": "a ="}, errors="collect")
    assert ids(matcher) == [1, 2, "1"]
    matcher.insert({"1": "a = 1"})
    assert ids(matcher) == [1, 2]


def test_the_list_is_bounded() -> None:
    """For days of updates, each of which may leave some out."""
    with patch.object(rejected, "KEPT_MOST", 5):
        matcher = cm.Matcher.build({-i: "a =" for i in range(1, 9)}, SCHEMA, errors="collect", max_rejected=1.0)
        assert len(ids(matcher)) == 8  # a build tells all
        for i in range(20):
            matcher.insert({i: "a ="}, errors="collect")
        assert ids(matcher) == [15, 16, 17, 18, 19]
        matcher.insert({100 + i: "a =" for i in range(9)}, errors="collect")  # and so does an update
        assert ids(matcher) == list(range(100, 109))
        matcher.insert({100: "a = 1"})
        assert ids(matcher) == list(range(101, 109))


@pytest.mark.parametrize("most", [0, 2**22])
def test_a_journal_tells_the_same(most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether its records are taken one by one or together."""
    monkeypatch.setattr(rejected, "KEPT_MOST", 5)
    monkeypatch.setattr(memory_set, "REPLAYED_MOST", most)
    path = tmp_path / "index"
    cm.Matcher.build({1: "a =", 2: "a =", 3: "a = 1"}, SCHEMA, errors="collect").save(path)
    with cm.Matcher.open(path, journal=True) as matcher:
        matcher.insert({1: "a = 1", 4: "a <", 5: "a <", 7: "a <"}, errors="collect")
        matcher.insert({4: "a = 2", 7: "a = 2"})
        matcher.upsert({4: "c = 2", 3: "c = 1", 6: "c = 1"}, errors="collect")
        matcher.upsert({6: "d = 2"}, errors="collect")
        matcher.delete([3])
        before = matcher.rejected
        assert [entry.id for entry in before] == [2, 5, 4, 6] and "'d'" in before[-1].message
    with cm.Matcher.open(path, journal=True) as matcher:
        assert matcher.rejected == before
        for i in range(10, 14):
            matcher.insert({i: "a ="}, errors="collect")
        before = matcher.rejected
    with cm.Matcher.open(path, journal=True) as matcher:
        assert matcher.rejected == before and len(before) == 5
        matcher.insert({20: "a =", 21: "a ="}, errors="collect")  # what this drops does not come back
        matcher.insert({20: "a = 1"})
        matcher.delete([20])
        before = matcher.rejected
        assert len(before) == 4
    with cm.Matcher.open(path, journal=True) as matcher:
        assert matcher.rejected == before


@pytest.mark.parametrize("type", [int, str])
@pytest.mark.parametrize("seed", range(20))
def test_many_updates_of_a_journal_tell_the_same(
    seed: int, type: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = Random(seed)
    monkeypatch.setattr(rejected, "KEPT_MOST", rng.randint(1, 8))
    path = tmp_path / "index"
    first = {type(i): rng.choice(["a =", "a = 1"]) for i in range(9)}
    cm.Matcher.build(first, SCHEMA, errors="collect", max_rejected=1.0).save(path)
    with cm.Matcher.open(path, journal=True) as matcher:
        for _ in range(30):
            some = [type(i) for i in rng.sample(range(20), rng.randint(1, 6))]
            there = [id for id in some if id in matcher.ids.to_pylist()]
            if rng.random() < 0.3:
                matcher.delete(there)
            else:
                matcher.upsert({id: rng.choice(["a =", "a = 1"]) for id in some}, errors="collect")
        before = matcher.rejected
    with cm.Matcher.open(path, journal=True) as matcher:
        assert matcher.rejected == before
