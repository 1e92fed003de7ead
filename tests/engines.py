"""What the functions of all engines are tested with: rules, events, matchers."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

import colmatch as cm

SCHEMA = pa.schema(
    {
        "price": pa.float64(), "dest": pa.string(), "tags": pa.list_(pa.string()),
        "user": pa.struct({"age": pa.int64()}), "at": pa.timestamp("us", "UTC"), "amount": pa.decimal128(12, 2),
        "unused": pa.int32(),
    }
)  # fmt: skip
RULES = {
    "cheap": "price < 100 AND dest IN ('LIS', 'OPO')",
    "null": "dest IS NULL",
    "beach": "array_contains(tags, 'beach')",
    "grown": "user.age >= 18",
    "late": "at > TIMESTAMP '2026-11-26 12:00:00'",
    "exact": "amount = 10.25",
}
ROWS = [
    (89.5, "LIS", ["beach", "city"], {"age": 36}, datetime(2026, 11, 26, 13, tzinfo=UTC), Decimal("10.25"), 1),
    (310.0, "NCE", [], {"age": 7}, datetime(2026, 11, 26, 11, tzinfo=UTC), Decimal("1.00"), 2),
    (None, None, None, None, None, None, None),
    (5.0, "OPO", ["beach"], {"age": None}, None, Decimal("10.25"), 4),
    (1000.0, "OPO", [None], {"age": 2}, None, None, 5),
]
EVENTS = pa.table([pa.array(column, kind) for column, kind in zip(zip(*ROWS), SCHEMA.types)], schema=SCHEMA)
COLUMNS = SCHEMA.names[:-1]


def matcher_of(ids: str, **settings: Any) -> cm.Matcher:
    """A matcher of ``RULES`` whose ids are strings or numbers."""
    rules = RULES if ids == "string" else {2**40 + i: rule for i, rule in enumerate(RULES.values())}
    tags = {next(iter(rules)): ["mine"], list(rules)[1]: ["mine"]}
    return cm.Matcher.build(rules, SCHEMA, tags=tags, **settings)


def repeated(times: int) -> pa.Table:
    """The events, many times."""
    return pa.concat_tables([EVENTS] * times).combine_chunks()


def best_of(matcher: cm.Matcher, events: pa.Table, k: int) -> list[list[dict[str, Any]]]:
    """The best matches of each event, as a column has them."""
    found: list[list[dict[str, Any]]] = [[] for _ in range(events.num_rows)]
    for row in matcher.match_topk(events, k).to_pylist():
        found[row.pop("event")].append(row)
    return found
