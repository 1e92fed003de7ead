"""What the tests of every index kind share: the kinds, and what a matcher must find according to
the oracle.
"""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa
import pytest
from oracle import Expr, Row, matches

import colmatch as cm

every_kind = pytest.mark.parametrize("kind", [*cm.kinds(), "auto"])
NO_JIT = os.environ.get("NUMBA_DISABLE_JIT") == "1"
Ids = list[int] | list[str]


def pairs(result: pa.Table) -> list[tuple[int, Any]]:
    assert result.schema.names == ["event", "subscription"]
    assert result.schema.types[0] == pa.int64()
    events = result["event"].to_pylist()
    assert events == sorted(events)
    return sorted(zip(*result.to_pydict().values()))  # no order is promised within an event


def lists(result: pa.ChunkedArray) -> list[list[Any]]:
    return [sorted(some) for some in result.to_pylist()]


def expected_pairs(expressions: list[Expr], ids: Ids, rows: list[Row]) -> list[tuple[int, Any]]:
    return sorted((i, id) for i, row in enumerate(rows) for e, id in zip(expressions, ids) if matches(e, row))
