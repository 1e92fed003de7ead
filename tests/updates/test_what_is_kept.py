"""What updates and merges make ahead, keep, put aside and use again: each mechanism by itself."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any
from unittest.mock import patch

import inside
import pyarrow as pa
import pytest
from contract import every_kind, pairs

import colmatch as cm
from colmatch.given.schema import BOOL, Attribute, Attributes, Role
from colmatch.subscriptions import ids
from colmatch.updates import literals, merger, policy
from colmatch.updates.literals import join_literals
from colmatch.updates.merger import Merger
from colmatch.updates.vacuum import GatheredLiterals, gather_literals
from colmatch.updates.versions import Version

SCHEMA = {"a": "int64", "s": "string", "u": "string", "t": pa.list_(pa.string())}


def word(number: int) -> str:
    """Each lies close before the one before it, so that labels run out."""
    return "a" + "\0" * number + "z"


def text_of(i: int) -> str:
    return f"a < 100 AND s = 'v{i}'"


def test_no_update_makes_the_look_up_of_ids_after_a_merge() -> None:
    """It took a third of a second for a million, in the first update's turn."""
    matcher = cm.Matcher.build({i: text_of(i) for i in range(9)}, SCHEMA)
    matcher.insert({9: text_of(9)})
    matcher.delete([3])
    matcher.compact()
    with patch.object(ids, "IdLookup", side_effect=AssertionError("it is made by the merge")):
        matcher.delete([5])
    assert matcher.ids.to_pylist() == [0, 1, 2, 4, 6, 7, 8, 9]


# String literals


def test_known_literals_are_looked_up_and_no_more() -> None:
    """Old ones and young ones: no room is looked for, and nothing is put together."""
    matcher = cm.Matcher.build({i: text_of(i) for i in range(5)}, SCHEMA)
    matcher.insert({5: text_of(5)})
    known = inside.version(matcher).literals
    with patch.object(literals, "find_neighbours", side_effect=AssertionError("a literal is new")):
        matcher.insert({6: "a < 100 AND s IN ('v2', 'v5')", 7: text_of(4)})
        assert inside.version(matcher).literals is known
        with pytest.raises(AssertionError, match="a literal is new"):
            matcher.insert({8: text_of(8)})
    assert matcher.match_lists(pa.table({"a": [1, 1], "s": ["v5", "v4"]})).to_pylist() == [[5, 6], [4, 7]]


def test_young_literals_become_old_when_they_are_many() -> None:
    """Each update merges what it brings with all young ones, so these must stay few."""
    matcher = cm.Matcher.build({-1: "s = 'first'"}, SCHEMA)
    with patch.object(policy, "RECENT_MOST", 5):
        for i in range(20):
            matcher.insert({i: text_of(i)})
            known = inside.version(matcher).literals
            assert len(known) == i + 2 and len(known.recent) == (i + 1) % 6
    assert matcher.match_lists(pa.table({"a": [1, 1], "s": ["v7", "first"]})).to_pylist() == [[7], [-1]]


@pytest.mark.parametrize(("new", "left"), [(3, 3), (4, 0)])
def test_a_merge_makes_young_literals_old_unless_they_are_few(new: int, left: int) -> None:
    matcher = cm.Matcher.build({-1: "s = 'first'"}, SCHEMA)
    matcher.insert({i: text_of(i) for i in range(new)})
    assert len(inside.version(matcher).literals.recent) == new
    with patch.object(policy, "RECENT_KEPT", 3):
        matcher.compact()
    known = inside.version(matcher).literals
    assert len(known) == new + 1 and len(known.recent) == left
    assert matcher.match_lists(pa.table({"a": [1], "s": ["v2"]})).to_pylist() == [[2]]


@pytest.mark.parametrize("gone", [3, 4])
def test_unused_literals_go_when_they_are_much(gone: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """To gather those that are left takes time for all of them."""
    monkeypatch.setattr(policy, "UNUSED_LEAST", 3)
    matcher = cm.Matcher.build({i: text_of(i) for i in range(12)}, SCHEMA)
    before = inside.version(matcher).literals
    matcher.delete(range(gone))
    matcher.compact()
    after = inside.version(matcher).literals
    assert len(after) == (12 if gone == 3 else 8) and (after is before) == (gone == 3)
    assert matcher.match_lists(pa.table({"a": [1, 1], "s": ["v0", "v9"]})).to_pylist() == [[], [9]]


@pytest.mark.parametrize(
    ("unused", "there", "much"), [(256, 300, False), (257, 300, True), (257, 1028, False), (258, 1028, True)]
)
def test_what_is_much(unused: int, there: int, much: bool) -> None:
    assert policy.is_much(unused, there) is much


def test_literals_that_got_other_labels_while_others_were_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was gathered before that has labels that no segment has any more."""
    monkeypatch.setattr(policy, "UNUSED_LEAST", 0)
    monkeypatch.setattr(policy, "UNUSED_SHARE", 1000)
    texts = {i: f"s >= 'a' AND s < 'b{i}'" for i in range(40)}
    matcher = cm.Matcher.build(texts | {40: "u = 'gone'"}, SCHEMA, index="scan")
    matcher.delete([40])
    spaced: list[bool] = []

    def noticed(*given: Any) -> Any:
        found = join_literals(*given)
        spaced.append(found[2] is not None)
        return found

    def gathered(version: Version) -> GatheredLiterals | None:
        found = gather_literals(version)
        assert found is not None
        with patch("colmatch.updates.literals.join_literals", noticed):
            for k in range(900):
                if not any(spaced):
                    texts[1000 + k] = f"s = '{word(k)}'"
                    matcher.insert({1000 + k: texts[1000 + k]})
        return found

    with patch.object(merger, "gather_literals", gathered):
        matcher.compact()
    assert any(spaced)
    events = pa.table({"s": [*map(word, range(len(spaced) + 1)), "a", "b1", "b25", "b3", "az", ""]})
    assert pairs(matcher.match(events)) == pairs(cm.Matcher.build(texts, SCHEMA, index="scan").match(events))


# Attributes


def test_a_free_id_is_for_an_attribute_of_its_own_kind() -> None:
    """An index holds by id whether an event may have several entries of an attribute."""
    one, several = Attribute(("a",), Role.VALUE, BOOL), Attribute(("t",), Role.ELEMENT, BOOL)
    attributes = Attributes([several.freed(), one.freed(), several.freed()])
    assert [attributes.intern(Attribute((name,), Role.VALUE, BOOL)) for name in "xyz"] == [1, 3, 4]
    assert [attributes.intern(Attribute((name,), Role.ELEMENT, BOOL)) for name in "xyz"] == [0, 2, 5]
    assert list(attributes.multi) == [attribute.multi for attribute in attributes] == [1, 0, 1, 0, 0, 1]


@every_kind
def test_new_attributes_take_free_ids(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "UNUSED_LEAST", 0)
    matcher = cm.Matcher.build({1: "u = 'x'", 2: "array_contains(t, 'b')", 3: "a = 1 AND s = 'x'"}, SCHEMA, index=kind)
    matcher.delete([1, 2])
    matcher.compact()
    assert sorted(matcher.columns) == ["a", "s"] and inside.version(matcher).attributes.used == 2
    matcher.insert({4: "array_contains(t, 'c') AND u < 'b'", 5: "size(t) = 2"})
    assert sorted(matcher.columns) == ["a", "s", "t", "u"]
    assert len(inside.version(matcher).attributes) == 6  # as before: all of them had free ids
    events = pa.table({"a": [1, 1], "s": ["x", "y"], "u": ["a", "b"], "t": [["b", "c", "d"], ["c", "b"]]})
    assert pairs(matcher.match(events)) == [(0, 3), (0, 4), (1, 5)]


def test_what_takes_in_subscriptions_begins_anew_when_much_that_it_knows_is_unused() -> None:
    """Until then it goes on with the forms that it has read."""
    schema = {f"c{i}": "int64" for i in range(40)}
    matcher = cm.Matcher.build({0: "c0 = 1"}, schema)
    matcher.insert({i: f"c{i} = 1" for i in range(1, 40)})
    first = inside.source(matcher)
    with patch.object(policy, "UNUSED_LEAST", 10):
        matcher.delete(range(1, 11))
        matcher.compact()
        assert inside.version(matcher).attributes.used == 30
        assert inside.source(matcher) is first and len(first.attributes) == 40
        matcher.delete([20])
        matcher.compact()
        assert inside.source(matcher) is not first and inside.source_attributes(matcher).used == 29


# Merges


@every_kind
@pytest.mark.parametrize("whole", [True, False])
def test_what_is_deleted_while_it_is_merged_stays_deleted(
    kind: str, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The merge began with the subscriptions that were there; its switch leaves out those gone."""
    monkeypatch.setattr(policy, "GROWING_MOST", 0)
    with patch.object(policy, "choose_segments", return_value=None):
        matcher = cm.Matcher.build(dict.fromkeys(range(5), "a >= 0"), SCHEMA, index=kind)
        for i in range(5, 20, 5):
            matcher.insert(dict.fromkeys(range(i, i + 5), "a >= 0"))
        matcher.delete([7])
        merge = Merger._merge

        def merged(self: Merger, *given: Any) -> Any:
            made = merge(self, *given)
            matcher.delete([6, 11, 18])
            matcher.insert({20: "a = 1", 21: "a = 1"})
            matcher.delete([21])
            return made

        with patch.object(Merger, "_merge", merged):
            assert inside.merge(matcher, inside.version(matcher), 0 if whole else 1, 4 if whole else 3)
        left = [i for i in range(21) if i not in (6, 7, 11, 18)]
        for _ in range(2):
            assert sorted(matcher.ids.to_pylist()) == left and len(matcher) == len(left)
            assert sorted(matcher.match_lists(pa.table({"a": [1]}))[0].as_py()) == left
            assert matcher.count(pa.table({"a": [0, 1]})).tolist() == [len(left) - 1, len(left)]
            deleted = [one["deleted"] for one in matcher.stats()["segments"]]
            assert deleted == ([3, 1] if whole else [0, 2, 1, 1])
            matcher = pickle.loads(pickle.dumps(matcher))


def test_merges_are_counted_on_where_a_matcher_was_saved(tmp_path: Path) -> None:
    """As updates are."""
    matcher = cm.Matcher.build({1: "a = 1"}, SCHEMA)
    matcher.insert({2: "a = 2"})
    matcher.compact()
    matcher.save(tmp_path / "index")
    for other in (cm.Matcher.open(tmp_path / "index"), pickle.loads(pickle.dumps(matcher))):
        assert (other.stats()["updates"], other.stats()["merges"]) == (1, 1)
        other.insert({3: "a = 3"})
        other.compact()
        assert (other.stats()["updates"], other.stats()["merges"]) == (2, 2)
