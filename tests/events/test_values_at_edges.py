"""Values at which a rule of computed values, or a change of type, is decided."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import colmatch as cm


def holds(rule: str, **columns: pa.Array) -> list[bool]:
    events = pa.table(columns)
    found: list[bool] = cm.Matcher.build({1: rule}, events.schema).exists(events).tolist()
    return found


def test_nan_is_the_greatest() -> None:
    x, y = pa.array([1.0, math.nan, math.nan]), pa.array([math.nan, 2.0, None])
    assert holds("isnan(greatest(x, y))", x=x, y=y) == [True, True, True]
    assert holds("least(x, y) < 3", x=x, y=y) == [True, True, False]


def test_nothing_is_replaced_by_an_empty_text() -> None:
    s = pa.array(["abc", ""])
    assert holds("replace(s, '', 'z') = s", s=s) == [True, True]
    assert holds("replace(s, 'b', '') = 'ac'", s=s) == [True, False]


@pytest.mark.parametrize("type", [pa.float64(), pa.float32()], ids=str)
def test_halves_are_those_of_the_shortest_text(type: pa.DataType) -> None:
    """As in Spark: 1.005 is a little less than that as a double, and rounds up all the same."""
    x = pa.array([1.005, 0.285, -1.005, 2.675, 1.0049], type)
    wanted = [1.01, 0.29, -1.01, 2.68, 1.0]
    for row, value in enumerate(wanted):
        assert holds(f"abs(round(x, 2) - {value}) < 0.0001", x=x[row : row + 1]) == [True]
    assert holds("round(x) = 3", x=pa.array([2.5, 3.49, 2.4999], type)) == [True, True, False]


def refused(events: pa.Array, schema: Any) -> None:
    matcher = cm.Matcher.build({1: "x IS NOT NULL"}, {"x": schema})
    assert matcher.count(pa.table({"x": events[:1]})).tolist() == [1]
    with pytest.raises(cm.EventError, match="column 'x', event 1"):
        matcher.match(pa.table({"x": events}))


def test_days_beyond_32_bits() -> None:
    refused(pa.array([0, 2**31 * 86_400], pa.timestamp("s")), pa.date32())


def test_decimals_that_are_multiples_of_a_hundred() -> None:
    """They have a scale below 0, so that more than 18 digits are between them and the schema's."""
    refused(pa.array([Decimal(0), Decimal("5E+2")], pa.decimal128(3, -2)), pa.decimal128(18, 17))
