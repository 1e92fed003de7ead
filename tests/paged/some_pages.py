"""Files of pages that tests spoil, and what must be in them."""

from __future__ import annotations

from pathlib import Path

import inside
import pyarrow as pa
from contract import pairs
from writer import text

import colmatch as cm

SCHEMA = {"a": "int64", "b": "int64", "c": "string"}
EVENTS = pa.table({"a": [1, 9, 20, 39], "b": [0, 7, 30, 39], "c": ["x1", "x7", None, "x3"]})


def built(path: Path, count: int = 60, cache: int = 1 << 15) -> cm.Matcher:
    there = {id: text(id) for id in range(count)}
    return cm.Matcher.build(there, SCHEMA, index=cm.index("pbtree", path=str(path), cache_bytes=cache))


def as_said(matcher: cm.Matcher, ids: set[int]) -> None:
    """The matcher has these subscriptions, and finds what they say."""
    assert set(matcher.ids.to_pylist()) == ids
    other = cm.Matcher.build({id: text(id) for id in ids}, SCHEMA, index="scan")
    assert pairs(matcher.match(EVENTS)) == pairs(other.match(EVENTS))


def reopened(matcher: cm.Matcher, path: Path) -> cm.Matcher:
    """The file as another process finds it, when that of a matcher has ended."""
    inside.page_file(matcher).close()
    return cm.Matcher.open(path)
