"""76 inputs of public bug reports, each with what is right."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from typing import Any

import pyarrow as pa
from saying import SUITES, needs_suites

import colmatch as cm

FILE = SUITES / "inputs/given.json"
PARAMETERS = {"A-G12": {"limit": 3}}
# Inputs for which an error is right, with its words
ERRORS = {
    "A-G10": "the column has a dot in its name, so write `destination.port`",
    "A-G14": "'127.invalid' is not a network",
    "A-G17": "subqueries are not supported",
    "A-G21": "startswith needs a string column; 'num' is int64",
    "B-F7": "column 'segments' is a list: write array_contains",
    "B-P5": "column 'meta.color' is a list: write array_contains",  # of the second rule; the first is right
}
# Results by hand where the file has none
BY_HAND = {
    "A-G20": [["v4"], ["v6", "not"], [], ["not"]],  # an address of version 6 is in no network of version 4
    "B-D6": [[1, 2], []],
}
# Inputs that colmatch does not do, with the reason
NOT_RIGHT = {
    "A-H1": "% of a text, which Spark casts to a number",
    "A-N5": "a text beside a number, which Spark casts",
    "A-G1": "polygons",
    "B-F3b": "versions compared as texts: the result is Spark's, and a warning tells of it",
    "B-F6": "a rule that names another rule",
    "B-F9": "an absent property beside one that is NULL: both are NULL in a column",
    "B-B6": "rules that overlap or can never be true",
}
_TYPES = {"$ts": dt.datetime.fromisoformat, "$date": dt.date.fromisoformat, "$dec": decimal.Decimal}


def _value(value: Any, type: pa.DataType) -> Any:
    """Returns a value of JSON as one of a type."""
    if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in _TYPES:
        ((name, text),) = value.items()
        return _TYPES[name](text)
    if value is None:
        return None
    if pa.types.is_map(type):
        entries = value.items() if isinstance(value, dict) else value
        return [(key, _value(one, type.item_type)) for key, one in entries]
    if pa.types.is_struct(type):
        return {field.name: _value(value.get(field.name), field.type) for field in type}
    return [_value(one, type.value_type) for one in value] if pa.types.is_list(type) else value


def _is_right(case: dict[str, Any]) -> bool:
    schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(case["schema_ipc"])))
    rules = {int(id) if id.isdigit() else id: text for id, text in case["rules"].items()}
    parameters = PARAMETERS.get(case["id"])
    matcher = cm.Matcher.build(
        rules, schema, missing=case["missing"], errors="collect", max_rejected=1.0, parameters=parameters
    )
    error = ERRORS.get(case["id"], "")
    if [bool(error) and error in one.message for one in matcher.rejected] != [True] * bool(error):
        return False
    expected = BY_HAND.get(case["id"], case["right"])
    if expected is None or case["events"] is None:
        return bool(error)
    rows = [{field.name: _value(event.get(field.name), field.type) for field in schema} for event in case["events"]]
    return bool(matcher.match_lists(pa.Table.from_pylist(rows, schema)).to_pylist() == expected)


@needs_suites
def test_given() -> None:
    cases = json.loads(FILE.read_text())
    assert len(cases) == 76
    assert [case["id"] for case in cases if not _is_right(case)] == sorted(
        NOT_RIGHT, key=[case["id"] for case in cases].index
    )
