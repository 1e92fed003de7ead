"""Priorities have an exact order: a number that a double cannot tell from others is refused."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import colmatch as cm

REFUSED: list[Any] = [
    pa.array([1, 2**53 + 1]),
    pa.array([0, 2**63 - 1]),
    pa.array([None, -(2**53) - 1]),
    pa.array([0, 2**64 - 1], pa.uint64()),
    pa.array([0, Decimal("0.12345678901234567890")], pa.decimal128(38, 20)),
    pa.array([0, Decimal("90071992547409.93001")], pa.decimal128(38, 5)),
    pa.array([0, Decimal(10**38 - 1)], pa.decimal128(38, 0)),
]
TAKEN: list[Any] = [
    pa.array([2**53, -(2**53)]),
    pa.array([2**62, -(2**63)]),
    pa.array([2**63, 2**63 + 2**20], pa.uint64()),
    pa.array([Decimal("0.1"), Decimal("123456789.12345")], pa.decimal128(20, 5)),
    pa.array([Decimal("12.34"), Decimal("0.1")], pa.decimal128(38, 18)),
    pa.array([Decimal(7), Decimal("7.5")], pa.decimal128(18, 15)),
    pa.array([None, 3], pa.int8()),
    pa.array([0.1, 1e99]),
]


def texts(priority: Any) -> cm.Matcher:
    table = pa.table({"id": [1, 2], "expression": ["a > 0", "a > 0"], "priority": priority})
    return cm.Matcher.build(table, {"a": "int64"}, "scan")


def rows(priority: Any) -> cm.Matcher:
    of_rows = {"id": [1, 2], "attribute": ["a", "a"], "op": [">", ">"], "operands": [[0], [0]], "priority": priority}
    return cm.Matcher.build(cm.PredicateTable(pa.table(of_rows)), {"a": "int64"}, "scan")


@pytest.mark.parametrize("way", [texts, rows])
@pytest.mark.parametrize("priority", REFUSED, ids=str)
def test_a_priority_that_no_double_can_tell_from_others_is_refused(way: Any, priority: Any) -> None:
    with pytest.raises(cm.SubscriptionError, match=r"column 'priority' is \S+ in row 1, .*-2\*\*53 to 2\*\*53"):
        way(priority)


@pytest.mark.parametrize("way", [texts, rows])
@pytest.mark.parametrize("priority", TAKEN, ids=str)
def test_all_others_come_in_their_order(way: Any, priority: Any) -> None:
    best = way(priority).match_topk(pa.table({"a": [1]}), 2, "priority")
    given = [value or 0 for value in priority.to_pylist()]
    assert best["subscription"].to_pylist() == ([1, 2] if given[0] >= given[1] else [2, 1])
