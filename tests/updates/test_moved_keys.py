"""Labels of string literals are spaced anew, and so the keys of segments change: while nothing else
happens, and while they are merged.
"""

from __future__ import annotations

from typing import Any

import inside
import pyarrow as pa
import pytest
from contract import every_kind

import colmatch as cm
from colmatch.updates import literals
from colmatch.updates.merger import Merger

BEFORE = {i: f"s >= 'a' AND s < 'b{i}'" for i in range(40)}


def word(number: int) -> str:
    """Each lies close before the one before it, so that labels run out."""
    return "a" + "\0" * number + "z"


def check(matcher: cm.Matcher, expressions: dict[int, str]) -> None:
    events = pa.table({"s": [*map(word, range(900)), "a", "a5", "b1", "b", "c7", "az", "", "aa"]})
    fresh = cm.Matcher.build(expressions, {"s": "string"}, index="scan")
    assert [sorted(ids) for ids in matcher.match_lists(events).to_pylist()] == [
        sorted(ids) for ids in fresh.match_lists(events).to_pylist()
    ]


@every_kind
def test_segments_follow_the_labels(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    moves: list[Any] = []
    move = literals.move_keys
    monkeypatch.setattr(literals, "move_keys", lambda *given: moves.append(given) or move(*given))
    matcher, expressions = cm.Matcher.build(BEFORE, {"s": "string"}, index=kind), dict(BEFORE)
    for k in range(100):
        expressions[1000 + k] = f"s >= '{word(k)}'" if k % 2 else f"s = '{word(k)}'"
        matcher.insert({1000 + k: expressions[1000 + k]})
    assert moves
    check(matcher, expressions)


def test_a_merge_of_what_has_other_keys_now_is_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher, expressions = cm.Matcher.build(BEFORE, {"s": "string"}, index="bitslice"), dict(BEFORE)
    merge, switch, switched = Merger._merge, Merger._publish, []

    def merged(self: Merger, *given: Any) -> Any:
        """Merges, and labels run out before the result is there."""
        made, first = merge(self, *given), inside.version(matcher).segments[0]
        for k in range(0 if switched else 900):
            if inside.version(matcher).segments[0] is first:
                expressions[3000 + k] = f"s = '{word(k)}'"
                matcher.insert({3000 + k: expressions[3000 + k]})
        return made

    def switching(self: Merger, *given: Any) -> bool:
        switched.append(switch(self, *given))
        return switched[-1]

    monkeypatch.setattr(Merger, "_merge", merged)
    monkeypatch.setattr(Merger, "_publish", switching)
    matcher.insert({2000: "s = 'c7'"})
    expressions[2000] = "s = 'c7'"
    matcher.compact()
    assert switched == [False, True] and len(matcher.stats()["segments"]) <= 2
    check(matcher, expressions)
