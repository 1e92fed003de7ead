"""Columns of UUIDs with their texts, and comparisons of columns of uint64."""

from __future__ import annotations

import uuid
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from contract import every_kind

import colmatch as cm

ONE, TWO = uuid.UUID("550e8400-e29b-41d4-a716-446655440000"), uuid.UUID(int=5)
RULES = {
    1: f"id = '{ONE}'",
    2: f"id IN ('{str(ONE).upper()}', '{{{TWO}}}')",
    3: f"id <> '{ONE}'",
    4: "id IS NULL",
    5: f"id = X'{ONE.hex}'",
    6: f"'{ONE}' > id",
    7: f"id IS DISTINCT FROM '{TWO}'",
    8: f"array_contains(ids, '{TWO}')",
}
SCHEMA = pa.schema({"id": pa.uuid(), "ids": pa.list_(pa.uuid())})
IDS = [ONE, TWO, None]
EXPECTED = [[1, 2, 5, 7], [2, 3, 6, 8], [4, 7]]


@every_kind
def test_texts_of_uuids(kind: str, tmp_path: Path) -> None:
    storage = pa.array([None if one is None else one.bytes for one in IDS], pa.binary(16))
    lists = pa.array([None, [TWO.bytes, ONE.bytes], []], pa.list_(pa.binary(16)))
    events = pa.table({"id": pa.ExtensionArray.from_storage(pa.uuid(), storage), "ids": lists})
    matcher = cm.Matcher.build(RULES, SCHEMA, index=kind)
    assert matcher.match_lists(events).to_pylist() == EXPECTED
    assert matcher.match_lists(events.set_column(0, "id", storage)).to_pylist() == EXPECTED
    assert matcher.match_lists(events.slice(1)).to_pylist() == EXPECTED[1:]
    matcher.insert({9: f"id = '{TWO}'"})
    assert matcher.match_one({"id": TWO}) == matcher.match_one({"id": str(TWO)}) == [2, 3, 6, 9]
    if kind != "paged":
        matcher.save(tmp_path / "m")
        assert cm.Matcher.open(tmp_path / "m").match_one({"id": TWO.bytes}) == [2, 3, 6, 9]


@pytest.mark.parametrize("times", [1, 200])
def test_what_is_no_uuid(times: int) -> None:
    with pytest.raises(cm.ExpressionError, match=r"'x' is no UUID, as '550e8400.* line 1, column 6"):
        cm.Matcher.build(dict.fromkeys(range(times), "id = 'x'"), {"id": "uuid"})
    matcher = cm.Matcher.build({1: f"id = '{ONE}'"}, {"id": "uuid"})
    for value in ("x", 5, b"x", []):
        with pytest.raises(cm.EventError, match="column 'id' is uuid, and .* a uuid.UUID or its text is needed"):
            matcher.match_one({"id": value})


def test_columns_of_uint64_are_compared_by_value() -> None:
    numbers: list[Any] = [0, 1, 2**63 - 1, 2**63, 2**64 - 1, None]
    pairs = list(product(numbers, numbers))
    columns = {name: pa.array([pair[i] for pair in pairs], pa.uint64()) for i, name in enumerate("ab")}
    events = pa.table({**columns, "c": pa.array([5] * len(pairs), pa.int64())})
    rules = {
        1: "a = b",
        2: "a < b",
        3: "a <=> b",
        4: "a BETWEEN b AND 18446744073709551615",
        5: "a > c",
        6: "a - b = 1",
    }
    matcher = cm.Matcher.build(rules, events.schema)

    def expected(a: int | None, b: int | None) -> list[int]:
        found = [3] if a == b else []
        if a is not None and b is not None:
            found += [rule for rule, is_true in ((1, a == b), (2, a < b), (4, a >= b), (6, a - b == 1)) if is_true]
        return sorted([*found, *([5] if a is not None and a > 5 else [])])

    assert matcher.match_lists(events).to_pylist() == [expected(*pair) for pair in pairs]
    assert [matcher.match_one({"a": a, "b": b, "c": 5}) for a, b in pairs] == [expected(*pair) for pair in pairs]
