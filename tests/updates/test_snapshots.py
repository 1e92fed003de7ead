"""A matcher and its snapshot share memory, and their updates do not."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Any
from unittest.mock import patch

import inside
import pyarrow as pa
import pytest
from contract import every_kind, own_inserts

import colmatch as cm
from colmatch.updates.merger import Merger

SCHEMA = {"a": "int64", "s": "string"}
EVENTS = pa.table({"a": list(range(40)), "s": [f"x{i}" for i in range(40)]})


def told(matcher: cm.Matcher) -> Any:
    tags = dict(zip(matcher, matcher.tags.to_pylist(), strict=True))
    return (
        [sorted(ids) for ids in matcher.match_lists(EVENTS).to_pylist()],
        tags,
        {id: matcher.expression(id) for id in matcher},
    )


def fresh(rules: dict[int, tuple[str, str]]) -> Any:
    texts, tags = {id: text for id, (text, _) in rules.items()}, {id: [tag] for id, (_, tag) in rules.items()}
    return told(cm.Matcher.build(texts, SCHEMA, tags=tags))


def insert(matcher: cm.Matcher, rules: dict[int, tuple[str, str]], more: dict[int, tuple[str, str]]) -> None:
    matcher.insert({id: text for id, (text, _) in more.items()}, tags={id: [tag] for id, (_, tag) in more.items()})
    rules |= more


@every_kind
def test_both_are_updated_and_neither_sees_it(kind: str) -> None:
    matcher, rules = cm.Matcher.build({}, SCHEMA, index=own_inserts(kind)), dict[int, tuple[str, str]]()
    insert(matcher, rules, {10: ("a = 10", "t"), 11: ("s = 'x11'", "u")})
    snapshot, then = matcher.snapshot(), dict(rules)
    for step in range(4):  # the same numbers, with other ids, texts and tags
        insert(matcher, rules, {20 + step: (f"a = {20 + step} OR s = 'x{step}'", "v")})
        insert(snapshot, then, {30 + step: (f"a = {30 + step} AND s <> 'y'", f"w{step}")})
        assert told(matcher) == fresh(rules)
        assert told(snapshot) == fresh(then)
    matcher.restore(snapshot)
    rules = dict(then)
    insert(snapshot, then, {1: ("a = 1", "v")})
    insert(matcher, rules, {2: ("a = 2", "z"), 3: ("s = 'x3'", "v")})
    assert told(matcher) == fresh(rules)
    assert told(snapshot) == fresh(then)


def test_a_merge_of_the_version_before_is_given_up() -> None:
    """It has left out what was deleted then."""
    matcher = cm.Matcher.build({i: f"a = {i}" for i in range(10)}, SCHEMA)
    before, publish, restored = matcher.snapshot(), Merger._publish, []

    def late(merger: Merger, live: Any, result: Any, sample: Any = None) -> bool:
        if not restored:
            restored.append(True)
            matcher.restore(before)
        return publish(merger, live, result, sample)

    matcher.delete([1, 2])
    with patch.object(Merger, "_publish", late):
        matcher.compact()
    assert restored and list(matcher) == list(range(10))
    assert matcher.match_one({"a": 1}) == [1]


def test_a_restored_version_stands_alone_in_the_journal(tmp_path: Path) -> None:
    cm.Matcher.build({1: "a = 1"}, SCHEMA).save(tmp_path / "i")
    with cm.Matcher.open(tmp_path / "i", journal=True) as matcher:
        snapshot = matcher.snapshot()
        matcher.insert({2: "a = 2"})
        matcher.restore(snapshot)
        matcher.insert({3: "a = 3"})
        version = matcher.version
    with cm.Matcher.open(tmp_path / "i", journal=True) as matcher:
        assert list(matcher) == [1, 3] and matcher.version == version == 3


def test_an_interrupted_restore_leaves_no_reader_of_other_attributes() -> None:
    schema = {f"c{i}": "int64" for i in range(6)}
    matcher = cm.Matcher.build({1: "c1 = 1", 2: "c2 = 2"}, schema)
    matcher.insert({3: "c1 = 2"})
    other = cm.Matcher.build({5: "c5 = 1", 6: "c4 = 1", 7: "c3 = 1"}, schema)
    live = inside.live(matcher)
    with patch.object(live, "_publish", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        matcher.restore(other)
    matcher.restore(other)
    matcher.insert({4: "c1 = 1"})
    assert matcher.match_one({"c1": 1}) == [4] and matcher.match_one({"c4": 1}) == [6]


def test_matchers_of_another_schema_or_language_are_no_snapshots() -> None:
    matcher = cm.Matcher.build({1: "a = 1"}, SCHEMA)
    for other in (
        cm.Matcher.build({1: "a = 1"}, {"a": "int64"}), cm.Matcher.build({1: "a = 1"}, SCHEMA, missing="false"),
        cm.Matcher.build({1: "a = 1"}, SCHEMA, options={"ansi": True}),
    ):  # fmt: skip
        with pytest.raises(cm.OptionError):
            matcher.restore(other)
    assert matcher.version == 0


def test_a_sync_with_bad_rules_is_as_an_upsert() -> None:
    matcher = cm.Matcher.build({"x": "a = 1", "y": "a = 2"}, SCHEMA)
    for bad in (None, "s = '\ud800'", 5):
        with pytest.raises(cm.ExpressionError):
            matcher.sync({"x": "a = 1", "y": bad})
        changes = matcher.sync({"x": "a = 1", "y": bad}, errors="collect")
        assert not any(map(len, changes)) and [entry.id for entry in matcher.rejected] == ["y"]
    table = pa.table({"id": ["x", "y"], "expression": ["a = 1", None]})
    assert not any(map(len, matcher.sync(table, errors="collect")))
    assert [len(ids) for ids in matcher.sync({})] == [0, 0, 2]
    matcher.update(insert={"z": "a = 3"}, replace={}, upsert={})
    assert list(matcher) == ["z"]


def test_texts_of_subclasses_are_their_values() -> None:
    class Rule(str, enum.Enum):  # noqa: UP042
        CHEAP = "a < 100"

    matcher = cm.Matcher.build({1: Rule.CHEAP}, SCHEMA)
    assert matcher.expression(1) == "a < 100"


def test_weights_in_another_order_are_no_change() -> None:
    def table(weights: list[tuple[str, float]]) -> pa.Table:
        type = pa.map_(pa.string(), pa.float64())
        return pa.table({"id": [1], "expression": ["a = 1 AND s = 'x'"], "weights": pa.array([weights], type)})

    matcher = cm.Matcher.build(table([("s", 1.0), ("a", 2.0)]), SCHEMA)
    assert not any(map(len, matcher.sync(table([("a", 2.0), ("s", 1.0)]))))
    assert matcher[1].weights == {"a": 2.0, "s": 1.0}
