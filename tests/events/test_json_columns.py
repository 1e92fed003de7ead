"""Columns that Arrow marks as JSON, which are texts to expressions."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from contract import every_kind

import colmatch as cm

RULES = {
    1: "j = '7'",
    2: "j IS NULL",
    3: "j:a::int > 5",
    4: "get_json_object(s.j, '$.b') = 'x'",
    5: "s.j LIKE '%b%'",
    6: "j = t",
}
JSON = ["7", None, '{"a": 6}']
INNER = ['{"b": "x"}', "[]", None]
EXPECTED = [[1, 4, 5], [2], [3, 6]]


def some_events(type: pa.DataType, json: pa.DataType) -> pa.Table:
    """Events with columns of ``type``, which are marked as ``json`` if that is another one."""
    outer, inner = (pa.array(texts, type).cast(json) for texts in (JSON, INNER))
    return pa.table({"j": outer, "s": pa.StructArray.from_arrays([inner], ["j"]), "t": pa.array(["x", "y", JSON[2]])})


@every_kind
def test_json_is_text(kind: str) -> None:
    events = some_events(pa.string(), pa.json_())
    matcher = cm.Matcher.build(RULES, events.schema, index=kind)
    assert matcher.schema == cm.Schema(some_events(pa.string(), pa.string()).schema)
    assert matcher.match_lists(events).to_pylist() == EXPECTED
    assert [matcher.match_one(row) for row in events.to_pylist()] == EXPECTED
    assert matcher.match_lists(events.to_pylist()).to_pylist() == EXPECTED
    with pytest.raises(cm.EventError, match="column 'j' is string, and 7 is not"):
        matcher.match_one({**events.to_pylist()[0], "j": 7})


@pytest.mark.parametrize("storage", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_each_side_may_be_marked(storage: pa.DataType) -> None:
    plain, marked = some_events(storage, storage), some_events(storage, pa.json_(storage))
    for schema in (plain.schema, marked.schema):
        matcher = cm.Matcher.build(RULES, schema)
        for events in (plain, marked):
            assert matcher.match_lists(events).to_pylist() == EXPECTED


def test_json_of_parquet(tmp_path: Path) -> None:
    events = some_events(pa.string(), pa.json_())
    pq.write_table(events, tmp_path / "e.parquet")
    schema = pq.read_schema(tmp_path / "e.parquet")
    assert schema.field("j").type == pa.json_()
    found = cm.Matcher.build(RULES, schema).match_lists(pq.read_table(tmp_path / "e.parquet"))
    assert found.to_pylist() == EXPECTED
