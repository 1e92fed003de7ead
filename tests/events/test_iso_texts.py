"""Dates and times of single events as texts of ISO 8601."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

import colmatch as cm

SCHEMA = pa.schema(
    {
        "ts": pa.timestamp("ms", "UTC"),
        "loc": pa.timestamp("us"),
        "day": pa.date32(),
        "days": pa.list_(pa.date32()),
        "seen": pa.map_(pa.string(), pa.timestamp("us", "UTC")),
        "st": pa.struct({"d": pa.date32()}),
    }
)
RULES = {
    1: "ts = TIMESTAMP '2024-01-31 12:30:00.123Z'",
    2: "loc = TIMESTAMP_NTZ '2024-01-31 12:30:00'",
    3: "day = DATE '2024-01-31'",
    4: "array_contains(days, DATE '2024-01-31')",
    5: "seen['k'] = TIMESTAMP '2024-01-31 11:30:00Z'",
    6: "st.d = DATE '2024-01-31'",
}


@pytest.mark.parametrize(
    ("event", "ids"),
    [
        ({"ts": "2024-01-31T12:30:00.123Z"}, [1]),
        ({"ts": "2024-01-31 13:30:00.123000+01:00"}, [1]),
        ({"ts": "2024-01-31T12:30:00.123000000Z"}, [1]),
        ({"loc": "2024-01-31T12:30"}, [2]),
        ({"day": "2024-01-31"}, [3]),
        ({"day": "2024-01-31T00:00:00"}, [3]),
        ({"days": ["2024-01-31", dt.date(2024, 2, 1), None]}, [4]),
        ({"seen": {"k": "2024-01-31T12:30:00+01:00"}}, [5]),
        ({"st": {"d": "2024-01-31"}}, [6]),
    ],
)
def test_texts_are_read_exactly(event: dict[str, object], ids: list[int]) -> None:
    assert cm.Matcher.build(RULES, SCHEMA).match_one(event) == ids


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"ts": "2024-01-31T12:30:00"}, "'ts' .* has no time zone"),
        ({"loc": "2024-01-31T12:30:00Z"}, "'loc' .* has a time zone"),
        ({"ts": "2024-01-31T12:30:00.1234Z"}, "'ts' .* would lose a part"),
        ({"loc": "2024-01-31T12:30:00.1234567"}, "'loc' .* microseconds at most"),
        ({"day": "2024-01-31T12:30"}, "'day' .* would lose a part"),
        ({"day": "2024-02-31"}, "'day' .* is no such date"),
        ({"day": "soon"}, "'day' .* ISO 8601 is needed"),
        ({"day": ""}, "'day' .* ISO 8601 is needed"),
        ({"days": ["31.1.2024"]}, "'days' .* ISO 8601 is needed"),
    ],
)
def test_other_texts_are_errors(event: dict[str, object], said: str) -> None:
    with pytest.raises(cm.EventError, match=said):
        cm.Matcher.build(RULES, SCHEMA).match_one(event)
