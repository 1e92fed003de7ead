"""What the tests of journals share: a saved matcher, and what it has after updates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from contract import pairs

import colmatch as cm

EVENTS = pa.table({"a": [1, 5, 9, 30], "s": ["x", "yy", None, "zz"]})
SCHEMA = {"a": "int64", "s": "string"}


def saved_in(folder: Path) -> Path:
    path = folder / "index"
    cm.Matcher.build({1: "a = 1", 2: "s = 'x'", 3: "a > 5"}, SCHEMA, index="scan").save(path)
    return path


def log_of(path: Path) -> Path:
    return Path(f"{path}.journal")


def opened(path: Path, **options: Any) -> cm.Matcher:
    return cm.Matcher.open(path, journal=True, **options)


def state(matcher: cm.Matcher) -> Any:
    return pairs(matcher.match(EVENTS)), sorted(matcher.ids.to_pylist()), matcher.rejected, matcher.version


def update(matcher: cm.Matcher) -> Iterator[Any]:
    """Makes some updates, and yields the state before each of them and at the end."""
    yield state(matcher)
    matcher.insert({10: "a = 5 AND s LIKE '%y'"})
    yield state(matcher)
    matcher.delete([2])
    yield state(matcher)
    matcher.upsert({3: "a IN (1, 30) OR s = 'zz'", 4: "a <"}, errors="collect")
    yield state(matcher)


def closed_state(path: Path) -> Any:
    """What a matcher has that is opened with the journal, which is closed again."""
    with opened(path) as matcher:
        return state(matcher)
