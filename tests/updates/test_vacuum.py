"""What no subscription uses any more is left out: attributes, columns, patterns and literals."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from random import Random
from unittest.mock import patch

import inside
import numpy as np
import pyarrow as pa
import pytest
from contract import every_kind, pairs
from numpy.typing import NDArray
from sizes import SMALL

import colmatch as cm
from colmatch.arrays.frozen import contiguous, freeze
from colmatch.events.patterns import patterns_of
from colmatch.kernels.labels.literals import mark_literals
from colmatch.kernels.layout import Literals
from colmatch.updates import merger, policy
from colmatch.updates.literals import select_literals
from colmatch.updates.vacuum import GatheredLiterals, drop_unused, gather_literals
from colmatch.updates.versions import Version

SCHEMA = {
    "a": "int64",
    "s": "string",
    "t": pa.list_(pa.string()),
    "m": pa.map_(pa.string(), pa.int64()),
    "x": "int64",
}
LIVE = 20


def text(i: int) -> str:
    """A text with a string literal, and sometimes a map's key or a pattern, that no other has."""
    more = ("", f" AND m['k{i}'] > {i % 3}", f" AND s LIKE '%{i}_b%'", f" AND array_contains(t, 't{i}')")[i % 4]
    return f"a <= {i % 7} AND s <> 'v{i}'{more}"


def events(rng: Random, upto: int) -> pa.Table:
    """Events with values of which the youngest subscriptions have some."""
    some = [rng.randrange(max(upto - LIVE, 0), upto + 3) for _ in range(30)]
    return pa.table(
        {
            "a": pa.array([i % 7 for i in some], pa.int64()),
            "s": [f"v{i}" if i % 3 else f"x {i}.b" for i in some],
            "t": [[f"t{i}", "u"] for i in some],
            "m": pa.array([[(f"k{i}", i % 5)] for i in some], SCHEMA["m"]),
        }
    )


@every_kind
def test_what_is_kept_follows_what_is_there(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Literals, map keys, elements and patterns that are always new come, and the old ones go."""
    for name, value in {
        "GROWING_MOST": 6,
        "DELETED_LEAST": 5,
        "UNUSED_LEAST": 8,
        "RECENT_KEPT": 9,
        "RECENT_MOST": 20,
    }.items():
        monkeypatch.setattr(policy, name, value)
    rng, rounds = Random(5), 60 if SMALL else 400
    matcher = cm.Matcher.build({i: text(i) for i in range(LIVE)}, SCHEMA, index=kind)
    most = 0
    for i in range(LIVE, LIVE + rounds):
        if i % 5:
            matcher.insert({i: text(i)})
            matcher.delete([i - LIVE])
        else:
            matcher.upsert({i: text(i), i - LIVE: text(i)})
            matcher.delete([i - LIVE])
        if i % 50 == 49:
            matcher = pickle.loads(pickle.dumps(matcher))
        elif i % 50 == 24:
            matcher.save(tmp_path / "index")
            matcher = cm.Matcher.open(tmp_path / "index", mmap=i % 2 > 0)
        version = inside.settled(matcher)
        attributes = version.attributes
        assert len(attributes) <= 8 * LIVE
        assert len(inside.source_attributes(matcher)) <= 8 * LIVE
        known = version.literals
        assert len(known.old.literals.label) + len(known.recent.literals.label) == len(known) <= 8 * LIVE
        assert len(known.old.literals.first) == len(known.recent.literals.first) == len(attributes) + 1
        assert patterns_of(attributes).total <= 4 * LIVE
        assert sum(len(segment.codes.bound) for segment in version.segments) <= 12 * LIVE
        most = max(most, len(attributes))
        if i % 10 == 0:
            fresh = cm.Matcher.build({j: text(j) for j in range(i - LIVE + 1, i + 1)}, SCHEMA, index=kind)
            some = events(rng, i)
            assert pairs(matcher.match(some)) == pairs(fresh.match(some))
    matcher.compact()
    fresh = cm.Matcher.build({j: text(j) for j in range(i - LIVE + 1, i + 1)}, SCHEMA, index=kind)
    assert matcher.stats()["attributes"] <= fresh.stats()["attributes"] < most
    assert set(matcher.paths) == set(fresh.paths)
    assert inside.version(matcher).attributes.used < len(inside.version(matcher).attributes)  # some are free


@every_kind
def test_a_column_is_needed_until_a_merge_after_its_last_subscription(kind: str) -> None:
    matcher = cm.Matcher.build({1: "a = 1"}, SCHEMA, index=kind)
    table = pa.table({"a": [1, 2]})
    matcher.insert({2: "x = 1", 3: "s LIKE '%b%c'"})
    matcher.delete([2, 3])
    assert matcher.columns == ["a", "x", "s"]
    with pytest.raises(cm.EventError, match="no column 'x'"):
        matcher.match(table)
    matcher.compact()
    assert matcher.columns == ["a"] and matcher.paths == [("a",)]
    assert repr(matcher).startswith("Matcher(1 subscriptions, 1 attributes")
    assert pairs(matcher.match(table)) == [(0, 1)]
    assert pairs(pickle.loads(pickle.dumps(matcher)).match(table)) == [(0, 1)]
    assert matcher.explain({"a": 1}, 1).matched
    matcher.insert({4: "array_contains(t, 'b')"})  # of another kind than what was there before
    assert matcher.columns == ["a", "t"]
    assert pairs(matcher.match(pa.table({"a": [1, 2], "t": [["b", "c"], ["c", "b"]]}))) == [(0, 1), (0, 4), (1, 4)]


def test_a_refused_expression_needs_no_column() -> None:
    matcher = cm.Matcher.build({1: "a = 1"}, SCHEMA)
    matcher.insert({2: "x = 1 AND s = 5", 3: "array_contains(t, 'b')"}, errors="collect")
    assert [rejected.id for rejected in matcher.rejected] == [2]
    assert matcher.columns == ["a", "t"]
    matcher.insert({4: "x = 1"})
    assert sorted(matcher.columns) == ["a", "t", "x"]
    found = matcher.match(pa.table({"a": [1], "t": [["b"]], "x": [1]}))
    assert pairs(found) == [(0, 1), (0, 3), (0, 4)]


COUNT = 401  # so many texts are read by way of phrases, such as ``i | 7``


@every_kind
@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        ("(a | {0}) ^ 5 = 1", COUNT),
        ("(a % {0}) & 5 = 1", COUNT),
        ("a % {0} = 5 AND FALSE OR x > 3", 1),
        ("a % {0} = 'x{0}'", 0),  # refused
        ("s LIKE 'x{0}%' AND m['k{0}'] = 1 AND nope = {0}", 0),
    ],
)
def test_a_build_keeps_no_attribute_without_a_predicate(kind: str, rule: str, kept: int) -> None:
    rules = {i: rule.format(i) for i in range(COUNT)} | {1000: "x = 3"}
    matcher = cm.Matcher.build(rules, SCHEMA, index=kind, errors="collect")
    assert len(matcher.rejected) == (0 if kept else COUNT)
    assert inside.attributes(matcher).used == (kept if kept == 1 else kept + 1)
    assert matcher.match_one({"x": 3}) == [1000]


@pytest.mark.parametrize("when", ["before", "behind"])
def test_updates_while_it_is_swept(when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes before literals are gathered, or after, keeps its attributes and literals."""
    monkeypatch.setattr(policy, "UNUSED_LEAST", 0)
    matcher = cm.Matcher.build({i: text(i) for i in range(LIVE)}, SCHEMA, index="scan")
    matcher.insert({50: text(50), 51: text(51)})
    matcher.delete([*range(LIVE - 1), 50, 51])

    def gathered(version: Version) -> GatheredLiterals | None:
        new = {100: text(2), 101: text(3), 102: "x = 1", 103: text(50), 104: text(104)}
        if when == "before":
            matcher.insert(new)
            version = inside.version(matcher)
        found = gather_literals(version)
        assert found is not None and len(found.literals) < len(version.literals)
        if when == "behind":
            matcher.insert(new)
        return found

    with patch.object(merger, "gather_literals", gathered):
        matcher.compact()
    left = {19: text(19), 100: text(2), 101: text(3), 102: "x = 1", 103: text(50), 104: text(104)}
    fresh = cm.Matcher.build(left, SCHEMA, index="scan")
    assert sorted(matcher.paths) == sorted(fresh.paths)
    for upto in (20, 52, 105):
        some = events(Random(upto), upto).append_column("x", pa.array([1] * 30, pa.int64()))
        assert pairs(matcher.match(some)) == pairs(fresh.match(some))
    matcher.compact()
    assert pairs(matcher.match(some)) == pairs(fresh.match(some))
    assert len(inside.version(matcher).literals) == len(inside.version(fresh).literals)


@pytest.mark.parametrize("back", ["old", "recent", "none"])
def test_a_literal_that_comes_back_while_others_are_gathered_stays(back: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody had it when they were gathered, whichever part it was in."""
    monkeypatch.setattr(policy, "UNUSED_LEAST", 0)
    matcher = cm.Matcher.build({i: f"s = 'old{i}'" for i in range(LIVE)}, SCHEMA, index="scan")
    matcher.insert({50: "s = 'recent1'", 51: "s = 'recent2'"})
    matcher.delete([*range(1, LIVE), 50])
    before = len(inside.version(matcher).literals)

    def gathered(version: Version) -> GatheredLiterals | None:
        found = gather_literals(version)
        matcher.insert({100: f"s = '{back}1'"})
        return found

    with patch.object(merger, "gather_literals", gathered):
        matcher.compact()
    literals = inside.version(matcher).literals
    if back == "none":
        assert len(literals) == 3 and "prefix" in literals.old.__dict__  # made before a batch needs it
    else:
        assert len(literals) == before
    events = pa.table({"s": ["old0", "old1", "recent1", "recent2", "none1"]})
    there = {"old": 1, "recent": 2, "none": 4}[back]
    assert pairs(matcher.match(events)) == sorted([(0, 0), (3, 51), (there, 100)])


def test_literals_are_of_as_many_attributes_as_there_are() -> None:
    """The last attributes go with the subscriptions that had them. Nothing is left to sweep."""
    matcher = cm.Matcher.build({0: "s = 'x'"}, SCHEMA, index="scan")
    matcher.insert({i: f"m['k{i}'] = 1" for i in range(1, 5)})
    matcher.delete([1, 2, 3, 4])
    matcher.compact()
    version = inside.version(matcher)
    assert len(version.attributes) == 1
    assert len(version.literals.old.literals.first) == len(version.literals.recent.literals.first) == 2
    assert drop_unused(version, None) is version


@pytest.mark.parametrize("seed", range(20))
def test_literals_marked_and_taken(seed: int) -> None:
    rng = Random(seed)
    words = [sorted({b"%d" % rng.randrange(50) for _ in range(rng.choice([0, 1, 30]))}) for _ in range(4)]
    wanted = [sorted(rng.sample(range(len(group)), rng.randrange(len(group) + 1))) for group in words]
    keys = [[10 * r + 10 + after for r in group for after in rng.choice([(0,), (1,), (0, 1)])] for group in wanted]
    known = _literals(words)
    used = np.zeros(len(known.label), np.uint8)
    bound = contiguous(np.array(list(chain.from_iterable(keys)), np.int64))
    mark_literals(_first(keys), bound, known.first, known.label, used)
    assert used.tolist() == [r in some for group, some in zip(words, wanted, strict=True) for r in range(len(group))]
    left = [[group[r] for r in some] for group, some in zip(words, wanted, strict=True)]
    place = np.flatnonzero(used)
    some = select_literals(known, np.searchsorted(place, known.first), place)
    expected = _literals(left)._replace(label=known.label[used > 0])
    assert [array.tolist() for array in some] == [array.tolist() for array in expected]


def _literals(words: list[list[bytes]]) -> Literals:
    """The words of each attribute, with labels that are ten apart."""
    flat = list(chain.from_iterable(words))
    label = np.array([10 * r + 10 for group in words for r in range(len(group))], np.int64)
    data = np.frombuffer(b"".join(flat), np.uint8)
    return freeze(Literals(_first(words), np.cumsum([0, *map(len, flat)]), data, label))


def _first(groups: Sequence[Sequence[object]]) -> NDArray[np.int64]:
    return contiguous(np.cumsum([0, *map(len, groups)]))
