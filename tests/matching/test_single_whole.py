"""Single events that have a value for each column are read at once."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.events.single.mapping import EventReader

SCHEMA = pa.schema(
    {"i": pa.int64(), "t": pa.int8(), "x": pa.float64(), "o": pa.bool_(), "s": pa.string(), "r": pa.string()}
)
RULES = {
    1: "i > 5", 2: "t = -3", 3: "x < 0.5", 4: "o", 5: "s = 'é'", 6: "r >= 'b'", 7: "i % 7 = 3 AND s <> ''", 8: "length(s) = 1 AND NOT o",
    9: "r IN ('a', 'bb') OR x > 1e300",
}  # fmt: skip
WHOLE = {"i": 10, "t": -3, "x": 0.25, "o": True, "s": "é", "r": "bb"}


@pytest.fixture
def loops(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Returns the events that were read column by column; more are added."""
    seen: list[Any] = []
    read = EventReader._read
    monkeypatch.setattr(EventReader, "_read", lambda reader, event: seen.append(event) or read(reader, event))
    return seen


def test_whole_events_match_as_in_batches(direct: list[bool], loops: list[Any]) -> None:
    rng = Random(7)
    values: dict[str, list[Any]] = {
        "i": [3, 10, -(2**63), 2**63 - 1], "t": [-3, 0, 127], "x": [0.0, -0.0, float("nan"), 1e301, 0.25], "o": [True, False],
        "s": ["", "é", "ab" * 2000], "r": ["a", "bb", "b"],
    }  # fmt: skip
    events = [{name: rng.choice(some) for name, some in values.items()} for _ in range(200)]
    matcher = cm.Matcher.build(RULES, SCHEMA)
    matcher.insert({10: "i = 3 AND r = 'a'"})
    batch = matcher.match_lists(pa.Table.from_pylist(events, schema=SCHEMA)).to_pylist()
    assert [matcher.match_one(event) for event in events] == batch
    assert [matcher.match_one(dict(reversed(event.items()))) for event in events] == batch
    assert not loops and all(direct)


@pytest.mark.parametrize(
    ("change", "is_direct"),
    [
        ({"r": None}, True),
        ({"i": True}, False),
        ({"x": 3}, True),
        ({"t": 128}, False),
        ({"o": 1}, False),
        ({"i": 2**63}, False),
    ],
)
def test_other_events_are_read_column_by_column(
    change: dict[str, Any], is_direct: bool, direct: list[bool], loops: list[Any]
) -> None:
    matcher, event = cm.Matcher.build(RULES, SCHEMA), WHOLE | change
    assert matcher.match_one(WHOLE) == [1, 2, 3, 4, 5, 6, 7, 9] and not loops
    if is_direct:
        assert matcher.match_one(event) == [id for id in RULES if matcher.explain(event, id).matched]
    else:
        with suppress(cm.EventError):  # a batch of one row says whether it is one
            matcher.match_one(event)
    assert direct[-1] is is_direct and (loops or not is_direct)
    loops.clear()
    assert matcher.match_one(WHOLE) == [1, 2, 3, 4, 5, 6, 7, 9] and not loops
    less = {name: value for name, value in WHOLE.items() if name != "i"}
    assert matcher.match_one(less) == [2, 3, 4, 5, 6, 9] and len(loops) == 1


def test_mappings_that_make_up_values_are_left_as_they_are() -> None:
    matcher = cm.Matcher.build({1: "a = 0", 2: "a IS NULL", 4: "b > 0.5"}, {"a": "int32", "b": "float64"})
    event = defaultdict(int, {"b": 1.0})
    assert matcher.match_one(event) == matcher.match_one({"b": 1.0}) == [2, 4]
    assert list(event) == ["b"]


def test_half_a_character_is_an_error(loops: list[Any]) -> None:
    matcher = cm.Matcher.build(RULES, SCHEMA)
    with pytest.raises(cm.EventError, match="column 's'"):
        matcher.match_one(WHOLE | {"s": "\ud800"})
