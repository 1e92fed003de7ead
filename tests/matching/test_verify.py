"""A fault of an index is found by a scan of the same subscriptions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import inside
import numpy as np
import pyarrow as pa
import pytest
from contract import every_kind

import colmatch as cm
from colmatch.kinds.registry import KINDS
from colmatch.updates.memory_set import MemorySet

SCHEMA = {"a": "int64", "s": "string"}
EVENTS = pa.table({"a": list(range(40)), "s": [f"x{i % 7}" for i in range(40)]})


def rules(rng: Random, count: int) -> dict[int, str]:
    return {
        i: f"a BETWEEN {rng.randrange(20)} AND {rng.randrange(20, 40)} AND s IN ('x{rng.randrange(9)}', 'x{i % 7}') OR a = {i % 50}"
        for i in range(count)
    }


def flipped(matcher: cm.Matcher, rng: Random) -> cm.Matcher:
    """Returns a matcher with one bit changed in the index of its first segment."""
    version = inside.version(matcher)
    segment = version.segments[0]
    arrays = segment.index.arrays
    name = rng.choice([name for name in arrays._fields if getattr(arrays, name).nbytes])
    changed = getattr(arrays, name).copy()
    data = changed.view(np.uint8).reshape(-1)
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    changed.setflags(write=False)
    index = segment.index._replace(arrays=arrays._replace(**{name: changed}))
    other = type(segment)(segment.codes, segment.predicates, index, segment.size)
    parts = replace(inside.parts(matcher), version=version.with_changes(segments=(other, *version.segments[1:])))
    return cm.Matcher(MemorySet(parts))


@every_kind
def test_a_sound_index_has_no_differences(kind: str) -> None:
    rng = Random(kind)
    matcher = cm.Matcher.build(rules(rng, 600), SCHEMA, index=kind)
    matcher.delete(range(0, 600, 7))
    matcher.insert({1000 + i: text for i, text in rules(rng, 30).items()})
    found = matcher.verify(EVENTS)
    assert found.num_rows == 0 and found.schema.names == ["event", "subscription", "found"]
    reader = pa.RecordBatchReader.from_batches(EVENTS.schema, EVENTS.to_batches(7))
    assert matcher.verify(reader).num_rows == 0


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if kind.sound is not None])
def test_a_flipped_bit_is_found(kind: str) -> None:
    """Whatever a changed bit does to matches: the difference is found, or the index is refused."""
    rng = Random(kind)
    matcher = cm.Matcher.build(rules(rng, 200), SCHEMA, index=kind)
    right = matcher.match_lists(EVENTS).to_pylist()
    outcomes = {"refused": 0, "found": 0, "harmless": 0}
    for _ in range(80):
        damaged = flipped(matcher, rng)
        try:
            found = damaged.verify(EVENTS)
        except cm.StoreError:
            outcomes["refused"] += 1
            continue
        wrong = damaged.match_lists(EVENTS).to_pylist()
        outcomes["found" if found.num_rows else "harmless"] += 1
        assert told(found) == differences(wrong, right)
    print(kind, outcomes)
    if kind == "bitslice":  # scan has no arrays that decide
        assert outcomes["refused"] and outcomes["found"]


def told(found: pa.Table) -> dict[tuple[int, int], bool]:
    return {(row["event"], row["subscription"]): row["found"] for row in found.to_pylist()}


def differences(wrong: list[list[int]], right: list[list[int]]) -> dict[tuple[int, int], bool]:
    return {(event, id): id in ids for event, ids in enumerate(wrong) for id in set(ids) ^ set(right[event])}


@every_kind
def test_an_index_of_other_subscriptions_is_found(kind: str) -> None:
    """As if it were built wrongly: two subscriptions have changed places in the index alone."""
    texts = rules(Random(kind), 200)
    matcher = cm.Matcher.build(texts, SCHEMA, index=kind)
    right = matcher.match_lists(EVENTS).to_pylist()
    swapped = cm.Matcher.build(texts | {3: texts[150], 150: texts[3]}, SCHEMA, index=kind)
    version, other = inside.version(matcher), inside.version(swapped)
    segment = version.segments[0]
    mixed = type(segment)(segment.codes, segment.predicates, other.segments[0].index, segment.size)
    damaged = cm.Matcher(MemorySet(replace(inside.parts(matcher), version=version.with_changes(segments=(mixed,)))))
    wrong = damaged.match_lists(EVENTS).to_pylist()
    found = damaged.verify(EVENTS)
    assert told(found) == differences(wrong, right)
    assert found.num_rows or matcher.kind == "scan"


def test_pages_are_verified(tmp_path: Path) -> None:
    index = cm.index("pbtree", path=str(tmp_path / "pages"))
    matcher = cm.Matcher.build(rules(Random(3), 300), SCHEMA, index=index)
    assert matcher.verify(EVENTS).num_rows == 0
    matcher.delete(range(100))
    assert matcher.verify(EVENTS).num_rows == 0


def test_an_event_that_does_not_fit_is_an_error() -> None:
    matcher = cm.Matcher.build({1: "a = 1"}, SCHEMA)
    for wrong in (pa.table({"b": [1]}), pa.table({"a": ["x"]})):
        with pytest.raises(cm.EventError):
            matcher.verify(wrong)
