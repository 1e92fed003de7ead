"""Records of subscriptions in pages: each says the same whatever others are written with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import inside
import numpy as np
import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.paged.build import part_of, to_keys
from colmatch.paged.check import check
from colmatch.paged.paged_set import PagedSet
from colmatch.paged.records import KeyedSubscriptions, pack, unpack
from colmatch.predicates.columns import COLUMNS
from colmatch.subscriptions.ids import Ids

SCHEMA = {"x": "int64", "s": "string", "y": "int64"}
EVENT = pa.table({"x": pa.nulls(1, pa.int64()), "s": ["a"], "y": pa.nulls(1, pa.int64())})
# What one subscription may have that others lack
ADDED: dict[str, dict[str, Any]] = {
    "nothing": {"subscriptions": {100: "y = 3"}},
    "several intervals": {"subscriptions": {100: "y IN (1, 5, 9)"}},
    "a tag": {"subscriptions": {100: "y = 3"}, "tags": {100: ["t"]}},
    "a weight": {"subscriptions": {100: (cm.col("y") == 3).weight(2.0)}},
    "a program": {"subscriptions": {100: "(x = 1 OR y = 2) AND (x = 3 OR s = 'q')"}},
    "a priority": {
        "subscriptions": pa.table({"id": [100], "expression": ["y = 3"], "priority": [4.0]}),
    },
    "several conjunctions": {"subscriptions": {100: "(x = 1 AND y = 2) OR s = 'b'"}},
    "none": {"subscriptions": {100: "x = 1 AND x = 2"}},
}
EACH = pytest.mark.parametrize("what", ADDED)


def some(what: str) -> KeyedSubscriptions:
    """Twenty subscriptions, and one that has something else."""
    index = cm.index("scan", dnf_budget=1 if what == "a program" else 64)
    matcher = cm.Matcher.build({i: f"x = {i} AND s < 'm{i}'" for i in range(20)}, SCHEMA, index=index)
    matcher.insert(**ADDED[what])
    matcher.compact()
    version = inside.version(matcher)
    return to_keys(
        inside.predicates(matcher), inside.codes(matcher), Ids(version.ids.array), version.tags, version.all_texts()
    )


@EACH
def test_a_record_says_the_same_with_others_and_alone(what: str) -> None:
    known = some(what)
    words, first = pack(known)
    assert len(first) == 22
    for i in range(21):
        alone, _ = pack(part_of(known, i, i + 1))
        np.testing.assert_array_equal(alone, words[first[i] : first[i + 1]])


@EACH
def test_what_is_read_is_what_was_written(what: str) -> None:
    """A column that nobody has a value for stays away."""
    known = some(what)
    read = unpack(*pack(known))
    for name in set(COLUMNS) - {"pred", "run_lo", "run_hi"}:
        np.testing.assert_array_equal(getattr(read.predicates, name), getattr(known.predicates, name), name)
    np.testing.assert_array_equal(read.predicates.pred[:, 0], known.predicates.pred[:, 0])
    for one, other in zip(read.keys, known.keys, strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(read.predicates.weight) == len(read.predicates.pred) * (what == "a weight")
    assert len(read.predicates.priority) == len(read.predicates.owner) * (what == "a priority")
    assert read.ids.array.equals(known.ids.array) and (read.sizes == known.sizes).all()
    assert read.texts is not None and read.texts.equals(known.texts)


@EACH
def test_labels_that_are_spaced_anew_leave_every_record_whole(what: str, tmp_path: Path) -> None:
    path, rebuilt = tmp_path / "pages", PagedSet._rebuild_with
    index = cm.index("pbtree", path=str(path), dnf_budget=1 if what == "a program" else 64)
    texts = {i: f"s >= 'a' AND s < 'b{i}'" for i in range(20)}
    with cm.Matcher.build(texts, SCHEMA, index=index) as matcher:
        matcher.insert(**ADDED[what])
        with patch.object(PagedSet, "_rebuild_with", autospec=True, side_effect=rebuilt) as anew:
            for k in range(60):
                matcher.insert({1000 + k: f"s = '{'a' + chr(0) * k + 'z'}'"})  # each close before the one before it
        assert anew.call_count
        check(str(path))
        assert "matches" in str(matcher.explain(EVENT, 5)).splitlines()[0]
        assert matcher.count(EVENT)[0] >= 20
        matcher.delete([*range(10), 100, *range(1000, 1030)])
        matcher.compact()
        check(str(path))
        assert len(matcher) == 10 + 30


def test_a_journal_makes_no_weights_or_priorities(tmp_path: Path) -> None:
    cm.Matcher.build({1: "x = 1"}, SCHEMA).save(tmp_path / "i")
    with cm.Matcher.open(tmp_path / "i", journal=True) as matcher:
        matcher.insert({2: "x = 2", 3: "y IN (1, 5)"})
    with cm.Matcher.open(tmp_path / "i", journal=True) as matcher:
        for segment in inside.version(matcher).segments:
            assert len(segment.predicates.weight) == len(segment.predicates.priority) == 0
        assert matcher.match_lists(pa.table({"x": [2], "y": [5]})).to_pylist() == [[2, 3]]
