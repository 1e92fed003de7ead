"""String literals of a file of pages, which several matchers read while one writes."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.store import log as logs
from colmatch.updates import policy

WORDS = [f"w{(37 * i) % 101:03}" for i in range(101)]
EVENTS = pa.table({"c": [*WORDS[:40], "other"]})


def built(path: Path, cache: int = 1 << 15) -> cm.Matcher:
    index = cm.index("pbtree", path=path, cache_bytes=cache)
    return cm.Matcher.build({0: "c = 'w000'", 1: "c < 'w050'"}, {"c": "string"}, index=index)


def expected(ids: dict[int, str]) -> list[list[int]]:
    return [
        sorted([0] * (c == "w000") + [1] * (c < "w050") + [i for i in ids if ids[i] == c])
        for c in EVENTS["c"].to_pylist()
    ]


def found(matcher: cm.Matcher) -> list[list[int]]:
    return [sorted(row) for row in matcher.match_lists(EVENTS).to_pylist()]


def test_who_reads_learns_of_literals_that_grow_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "RECENT_MOST", 3)
    path = tmp_path / "pages"
    with built(path) as writer, cm.Matcher.open(path) as reader:
        there: dict[int, str] = {}
        for i in range(20):
            there[10 + i] = WORDS[i]
            writer.insert({10 + i: f"c = '{WORDS[i]}'"})
            assert found(reader) == found(writer) == expected(there)
            if i % 5 == 4:
                with cm.Matcher.open(path) as other:
                    assert found(other) == expected(there)


@pytest.mark.parametrize("cache", [1 << 15, 1 << 20])  # smaller than what an update needs; larger
def test_what_failed_is_forgotten(cache: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "pages"
    with built(path, cache) as matcher:
        with monkeypatch.context() as context:
            context.setattr(logs, "write", full)
            with pytest.raises(cm.StoreError, match="No space left"):
                matcher.insert({10: f"c = '{WORDS[3]}'"})
        assert found(matcher) == expected({})
        matcher.insert({11: f"c = '{WORDS[3]}'"})
        assert found(matcher) == expected({11: WORDS[3]})
        with cm.Matcher.open(path) as other:
            assert found(other) == expected({11: WORDS[3]})
