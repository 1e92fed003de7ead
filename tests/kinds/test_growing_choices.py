"""Kinds that go by estimates use a sample while a segment grows, and estimate anew as it grows."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import inside
import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.kinds.registry import KINDS
from colmatch.updates.growing import GrowingSegment

OPTIONS = cm.Options(missing_columns="null")
SETTINGS: dict[str, dict[str, Any]] = {
    "psthash": {"dimensions": 1},
    "opindex": {},
    "pstbloom": {},
}
EACH = pytest.mark.parametrize("kind", SETTINGS)
NAMES = [*(f"a{i}" for i in range(10)), "b"]
SCHEMA = pa.schema([(name, pa.int64()) for name in NAMES])
COUNT = 200


def test_every_kind_that_goes_by_a_sample_is_here() -> None:
    """Only the trees are not: they do so when asked to, and have tests of their own."""
    assert set(SETTINGS) == {kind.name for kind in KINDS.values() if kind.grows_by_sample(cm.index(kind.name))}


def events(**values: int) -> pa.Table:
    return pa.table({name: pa.array([value] * 64, pa.int64()) for name, value in values.items()})


def grown(kind: str, texts: list[str], step: int, sample: pa.Table | None) -> cm.Matcher:
    index = cm.index(kind, construction="dynamic", **SETTINGS[kind])
    matcher = cm.Matcher.build({}, SCHEMA, index=index, options=OPTIONS, sample=sample)
    for begin in range(0, len(texts), step):
        matcher.insert(dict(enumerate(texts[begin : begin + step], begin)))
    assert isinstance(inside.segment(matcher), GrowingSegment)
    return matcher


@EACH
@pytest.mark.parametrize("step", [1, COUNT])
def test_a_sample_counts_while_a_segment_grows(kind: str, step: int) -> None:
    """By predicates alone, half of the events would meet one on ``b``; here, none does."""
    texts = [f"a{i % 10} = {i % 3} AND b = {1 + i % 2}" for i in range(COUNT)]
    seen = events(**{f"a{i}": 1 for i in range(10)})
    read = [grown(kind, texts, step, sample).counters(seen.slice(0, 1))["conjunctions"] for sample in (seen, None)]
    assert read[0] <= 0.1 * COUNT < 0.25 * COUNT < read[1], read


@EACH
@pytest.mark.parametrize("way", ["built", "compacted"])
def test_a_sample_counts_when_a_segment_is_frozen(kind: str, way: str) -> None:
    texts = [f"a{i % 10} = {i % 3} AND b = {1 + i % 2}" for i in range(COUNT)]
    seen, read = events(**{f"a{i}": 1 for i in range(10)}), []
    for sample in (seen, None):
        if way == "built":
            index = cm.index(kind, construction="dynamic", **SETTINGS[kind])
            matcher = cm.Matcher.build(dict(enumerate(texts)), SCHEMA, index=index, options=OPTIONS, sample=sample)
        else:
            matcher = grown(kind, texts, COUNT, sample)
            matcher.compact()
        assert not isinstance(inside.segment(matcher), GrowingSegment)
        read.append(matcher.counters(seen.slice(0, 1))["conjunctions"])
    assert read[0] <= 0.1 * COUNT < 0.25 * COUNT < read[1], read


@EACH
def test_what_comes_later_counts_too(kind: str) -> None:
    """The first subscriptions do not use ``b``; all others do, and all events have it."""
    texts = ["a9 = 7"] + [f"a{i % 5} = {i} AND b BETWEEN 1 AND 99" for i in range(COUNT)]
    matcher = grown(kind, texts, 1, None)
    found = matcher.counters(events(b=50).slice(0, 1))
    assert found["conjunctions"] <= 0.2 * COUNT


def test_a_segment_is_begun_anew_whenever_it_has_grown_by_half() -> None:
    index = cm.index("opindex", construction="dynamic")
    matcher = cm.Matcher.build({}, {"a": "int64"}, index=index)
    with patch.object(GrowingSegment, "begin", wraps=GrowingSegment.begin) as begun:
        for i in range(60):
            matcher.insert({i: f"a = {i}"})
    assert 1 < begun.call_count <= 7
