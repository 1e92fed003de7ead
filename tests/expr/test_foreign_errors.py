"""Malformed calls, each of which once ended in an exception of Arrow's, NumPy's, sqlglot's or
Python's.

More are drawn by chance in ``test_fuzz_calls.py``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from workload import named

import colmatch as cm
from colmatch.given.declared import parse_schema

SCHEMA = {
    "a": "int64", "s": "string", "day": "date32", "local": pa.timestamp("us"), "utc": pa.timestamp("us", "UTC"),
    "seconds": pa.timestamp("s"), "coded": pa.dictionary(pa.int32(), pa.string()), "m": pa.map_(pa.string(), pa.int64()),
}  # fmt: skip
NOT_TEXT = pa.Array.from_buffers(
    pa.string(), 1, [None, pa.array([0, 2], pa.int32()).buffers()[1], pa.py_buffer(b"\xff\xc0")]
)
NO_PAIRS: dict[str, list[Any]] = {"event": [], "attribute": [], "value": []}
NULL_WORD = pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int32()), pa.array(["a", None]))
RUNS = pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), pa.array(["a"]).dictionary_encode())


def rows(**columns: Any) -> pa.Table:
    """A predicate table whose rows say ``a = 1`` where ``columns`` do not say otherwise."""
    n = len(next(iter(columns.values()))) if columns else 1
    return pa.table({"id": list(range(n)), "attribute": ["a"] * n, "op": ["="] * n, "operands": [[1]] * n, **columns})


def build(subscriptions: Any, **arguments: Any) -> cm.Matcher:
    return cm.Matcher.build(subscriptions, SCHEMA, index="scan", **arguments)


def tabled(**columns: Any) -> cm.Matcher:
    return build(cm.PredicateTable(rows(**columns)))


def deep(levels: int) -> pa.DataType:
    made = pa.int64()
    for _ in range(levels):
        made = pa.struct([("x", made)])
    return made


def matcher() -> cm.Matcher:
    return build({1: "a = 1"})


REFUSED: dict[str, tuple[type[cm.ColmatchError], str, Callable[[], Any]]] = {
    # predicate tables
    "NULL in a dictionary of attributes": (cm.SubscriptionError, "'attribute' is NULL in row 0", lambda: tabled(attribute=NULL_WORD)),
    "NULL in a dictionary of operators": (cm.SubscriptionError, "'op' is NULL in row 0", lambda: tabled(op=NULL_WORD)),
    "NULL in a dictionary of ids": (cm.SubscriptionError, "'id' is NULL in row 0", lambda: tabled(id=NULL_WORD)),
    "two columns of one name": (
        cm.SubscriptionError, "2 columns 'op'",
        lambda: cm.PredicateTable(pa.table([[1], ["a"], ["="], ["="], [[1]]], names=["id", "attribute", "op", "op", "operands"])),
    ),
    "date64 that is no whole day": (
        cm.SubscriptionError, "whole number of days",
        lambda: tabled(attribute=["day"], operands=pa.ListArray.from_arrays([0, 1], pa.array([1]).view(pa.date64()))),
    ),
    "date beyond Python's on a column with a zone": (
        cm.ExpressionError, "years 1 to 9999",
        lambda: tabled(attribute=["utc"], operands=pa.ListArray.from_arrays([0, 1], pa.array([2**31 - 1], pa.int32()).view(pa.date32()))),
    ),
    "conjunction beyond int32": (cm.SubscriptionError, "does not fit int32", lambda: tabled(conjunction=[2**31])),
    "ids that are not UTF-8": (cm.SubscriptionError, "'id' is string and cannot be read.*UTF8", lambda: tabled(id=NOT_TEXT)),
    "attributes that are not UTF-8": (cm.SubscriptionError, "'attribute' is string and cannot be read", lambda: tabled(attribute=NOT_TEXT)),
    "operands that are not UTF-8": (
        cm.SubscriptionError, "'operands' is list.* and cannot be read",
        lambda: tabled(attribute=["s"], operands=pa.ListArray.from_arrays([0, 1], NOT_TEXT)),
    ),
    # tables of expressions, and other ids
    "expressions that are not UTF-8": (
        cm.SubscriptionError, "'expression' is string and cannot be read", lambda: build(pa.table({"id": [1], "expression": NOT_TEXT})),
    ),
    "ids of expressions that are not UTF-8": (
        cm.SubscriptionError, "'id' is string and cannot be read", lambda: build(pa.table({"id": NOT_TEXT, "expression": ["TRUE"]})),
    ),
    "ids to delete that are not UTF-8": (cm.SubscriptionError, "cannot be read", lambda: matcher().delete(NOT_TEXT)),
    "surrogates in an id": (cm.SubscriptionError, "not valid Unicode", lambda: build({"\ud800": "TRUE"})),
    "surrogates in a name": (cm.SchemaError, "surrogates", lambda: cm.Schema({"\ud800": "int64"})),
    "surrogates in a name of a schema as text": (cm.SchemaError, "surrogate", lambda: parse_schema("\ud800: int64")),
    "an object that only says it is a table": (cm.SubscriptionError, "cannot be read", lambda: build(Promise())),
    # other arguments of build
    "index=[]": (cm.OptionError, r"index=\[\]", lambda: cm.Matcher.build({}, SCHEMA, index=[])),  # type: ignore[arg-type]
    "options=[]": (cm.OptionError, r"options=\[\]", lambda: build({}, options=[])),
    "errors=[]": (cm.OptionError, r"errors=\[\]", lambda: build({}, errors=[])),
    "errors of two": (cm.OptionError, "errors=", lambda: build({}, errors=np.array(["raise", "collect"]))),
    "deep structs": (cm.SchemaError, "deeper than 50", lambda: cm.Schema({"x": deep(3000)})),
    "deep lists in a schema as text": (cm.SchemaError, "deeper", lambda: parse_schema("a: " + "list<" * 5000 + "int" + ">" * 5000)),
    "deep objects in a schema as text": (cm.SchemaError, "deeper", lambda: parse_schema('{"a":' * 5000)),
    "a schema that is none": (cm.SchemaError, "cannot be read", lambda: cm.Schema(Promise())),  # type: ignore[arg-type]
    # events
    "events that are none": (cm.EventError, "cannot be read", lambda: matcher().match(Promise())),
    "explain(id=True)": (cm.SubscriptionError, "no subscription True", lambda: matcher().explain({}, True)),
    "explain with an id of many": (cm.SubscriptionError, "no subscription", lambda: matcher().explain({}, np.array([1, 2]))),  # type: ignore[arg-type]
    "explain with surrogates": (cm.SubscriptionError, "no subscription", lambda: build({"x": "TRUE"}).explain({}, "\ud800")),
    "explain with a map that is none": (cm.EventError, "pairs of a key", lambda: build({1: "m['k'] = 1"}).explain({"m": [None]}, 1)),
    "one event with a map that is none": (cm.EventError, "pairs of a key", lambda: build({1: "m['k'] = 1"}).match_one({"m": [None]})),
    "one event with a number for a map": (cm.EventError, "pairs of a key", lambda: build({1: "m['k'] = 1"}).match_one({"m": 5})),
    "explain with another type": (cm.EventError, "a whole number is needed", lambda: matcher().explain({"a": dt.date(2013, 1, 31)}, 1)),
    # pairs
    "pairs of unequal columns": (cm.EventError, "cannot be read", lambda: cm.from_pairs({"event": [0], "attribute": [], "value": [1]})),
    "pairs of odd columns": (cm.EventError, "cannot be read", lambda: cm.from_pairs({"event": 5, "attribute": int, "value": [1]})),
    "pairs with odd rows": (cm.EventError, "rows is", lambda: cm.from_pairs(NO_PAIRS, rows="x")),  # type: ignore[arg-type]
    "pairs with an odd column": (cm.EventError, "column is", lambda: cm.from_pairs(NO_PAIRS, column="\ud800")),
    # files
    "open(None)": (cm.StoreError, "None is not the name of a file", lambda: cm.Matcher.open(None)),  # type: ignore[arg-type]
    "open(3)": (cm.StoreError, "3 is not the name of a file", lambda: cm.Matcher.open(3)),  # type: ignore[arg-type]
    "save(3)": (cm.StoreError, "3 is not the name of a file", lambda: matcher().save(3)),  # type: ignore[arg-type]
    "NUL in a path to open": (cm.StoreError, "NUL", lambda: cm.Matcher.open("a\0b")),
    "NUL in a path to save": (cm.StoreError, "NUL", lambda: matcher().save("a\0b")),
    "surrogates in a path": (cm.StoreError, "not the name of a file", lambda: cm.Matcher.open("\ud800")),
    # conditions in Python, workloads
    "a condition and a number": (cm.ExpressionError, "parentheses", lambda: (cm.col("a") == 1) & 5),  # type: ignore[operator]
    "a condition as a truth value": (cm.ExpressionError, "neither true nor false", lambda: bool(cm.col("a") == 1)),
    "a type for a key": (cm.ExpressionError, "key of a map's entry", lambda: cm.col("m")[int]),  # type: ignore[index]
    "a workload called []": (cm.OptionError, "no workload", lambda: named([])),  # type: ignore[arg-type]
}  # fmt: skip


class Promise:
    """Says that it is Arrow data, and is not."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> int:
        return 5

    def __arrow_c_schema__(self) -> int:
        return 5


@pytest.mark.parametrize(("kind", "said", "malformed"), REFUSED.values(), ids=REFUSED)
def test_refused_in_words_of_our_own(kind: type[cm.ColmatchError], said: str, malformed: Callable[[], Any]) -> None:
    with pytest.raises(kind, match=said):
        malformed()


# What is odd but has a meaning


@pytest.mark.parametrize("name", ["attribute", "op", "id", "operands"])
@pytest.mark.parametrize("make", [
    lambda words: pa.array(words, pa.string_view()),
    lambda words: pa.DictionaryArray.from_arrays(pa.array(range(len(words)), pa.int32()), pa.array(words, pa.string_view())),
    lambda words: pa.RunEndEncodedArray.from_arrays(pa.array(range(1, len(words) + 1), pa.int32()), pa.array(words)),
    lambda words: pa.RunEndEncodedArray.from_arrays(pa.array(range(1, len(words) + 1), pa.int32()), pa.array(words).dictionary_encode()),
], ids=["view", "dictionary of views", "runs", "runs of a dictionary"])  # fmt: skip
def test_texts_in_every_layout(name: str, make: Callable[[list[str]], pa.Array]) -> None:
    words = {"attribute": ["s", "s"], "op": ["=", "<>"], "id": ["x", "y"], "operands": ["p", "p"]}
    columns = {key: make(value) if key == name else pa.array(value) for key, value in words.items()}
    columns["operands"] = pa.ListArray.from_arrays([0, 1, 2], columns["operands"])
    found = build(cm.PredicateTable(pa.table(columns))).match_lists(pa.table({"s": ["p", "q"]}))
    assert found.to_pylist() == [["x"], ["y"]]


def test_expressions_in_runs() -> None:
    texts = pa.RunEndEncodedArray.from_arrays(
        pa.array([2, 3], pa.int32()), pa.array(["a = 1", "a = 2"]).dictionary_encode()
    )
    found = build(pa.table({"id": [1, 2, 3], "expression": texts}))
    assert found.match_lists(pa.table({"a": [1, 2]})).to_pylist() == [[1, 2], [3]]


def test_events_in_runs_of_a_dictionary() -> None:
    found = build({1: "coded = 'a'", 2: "s = 'a'"}).match_lists(pa.table({"coded": RUNS, "s": RUNS}))
    assert found.to_pylist() == [[1, 2]]


def test_pairs_in_runs() -> None:
    pairs = {
        "event": pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), pa.array([0])),
        "attribute": RUNS,
        "value": [3],
    }
    assert cm.from_pairs(pairs).to_pylist() == [{"attrs": [("a", 3)]}]


FAR = [-(2**63), -(2**62), 0, 2**62, 2**63 - 1]  # microseconds; Python has 9999 years


@pytest.mark.parametrize("op", ["<", "="])
@pytest.mark.parametrize(
    ("column", "given"),
    [("local", pa.timestamp("us")), ("utc", pa.timestamp("us", "UTC")), ("local", pa.timestamp("s"))],
)
def test_timestamps_beyond_pythons(column: str, given: pa.DataType, op: str) -> None:
    operands = pa.ListArray.from_arrays(range(len(FAR) + 1), pa.array(FAR).view(given))
    found = tabled(id=list(range(len(FAR))), attribute=[column] * len(FAR), op=[op] * len(FAR), operands=operands)
    events = pa.table({column: pa.array(FAR[1:4]).view(SCHEMA[column])})
    unit = 10**6 if given == pa.timestamp("s") else 1
    expected = [
        [i for i, far in enumerate(FAR) if (event == far * unit if op == "=" else event < far * unit)]
        for event in FAR[1:4]
    ]
    assert [sorted(ids) for ids in found.match_lists(events).to_pylist()] == expected


def test_dates_beyond_pythons() -> None:
    far = [-(2**31), 0, 2**31 - 1]
    operands = pa.ListArray.from_arrays([0, 1, 2, 3], pa.array(far, pa.int32()).view(pa.date32()))
    events = pa.table({"day": pa.array(far, pa.int32()).view(pa.date32())})
    found = tabled(id=[0, 1, 2], attribute=["day"] * 3, operands=operands)
    assert found.match_lists(events).to_pylist() == [[0], [1], [2]]
    assert "day" in str(found.explain(events.slice(2, 1), 2))


def test_a_zone_that_nobody_knows_is_explained() -> None:
    events = pa.table({"utc": pa.array([0]).view(pa.timestamp("us", "Nowhere/City"))})
    assert build({1: "utc > TIMESTAMP '1969-01-01 00:00:00'"}).explain(events, 1).matched


def test_an_expression_that_is_null_is_collected() -> None:
    table = pa.table({"id": [1, 2, 3], "expression": ["a = 1", None, "a = "]})
    found = build(table, errors="collect", max_rejected=1.0)
    assert [(entry.id, entry.position) for entry in found.rejected] == [(2, None), (3, (1, 3))]
    assert "NULL" in found.rejected[0].message
    assert found.ids.to_pylist() == [1]
    with pytest.raises(cm.ExpressionError, match=r"the expression is NULL.*\(subscription 2\)"):
        build(table)


def test_a_deep_schema_can_be_saved(tmp_path: Path) -> None:
    schema = cm.Schema({"a": "int64", "x": deep(49)})
    cm.Matcher.build({1: "a = 1"}, schema, index="scan").save(tmp_path / "deep.cm")
    assert cm.Matcher.open(tmp_path / "deep.cm").schema == schema


class OwnError(Exception):
    """The caller's."""


def failing(items: list[Any]) -> Iterator[Any]:
    yield from items
    raise OwnError


def test_what_the_callers_own_code_raises_comes_through() -> None:
    with pytest.raises(OwnError):
        build(failing([(1, "a = 1")]))
    with pytest.raises(OwnError):
        matcher().delete(failing([1]))
    batch = pa.record_batch({"a": [1]})
    with pytest.raises(OwnError):
        matcher().match(pa.RecordBatchReader.from_batches(batch.schema, failing([batch])))
    table = rows().to_batches()[0]
    with pytest.raises(OwnError):
        cm.PredicateTable(pa.RecordBatchReader.from_batches(table.schema, failing([table])))


def test_an_error_of_two_parts_is_told_as_a_sentence() -> None:
    """Arrow says of a mixed column of pandas what is wrong, and where, as two arguments."""

    class Mixed:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            raise pa.ArrowTypeError("Expected bytes, got a 'int' object", "Conversion failed for column s")

    said = r"cannot be read.*: Expected bytes, got a 'int' object: Conversion failed for column s$"
    with pytest.raises(cm.EventError, match=said):
        matcher().match(Mixed())  # type: ignore[arg-type]


def test_a_name_with_a_dot_is_told_to_stand_in_backquotes() -> None:
    schema = {"destination.port": "int", "user": "struct<age:int>"}
    with pytest.raises(cm.ExpressionError, match="has a dot in its name, so write `destination.port`"):
        cm.Matcher.build({1: "destination.port = 1"}, schema)
    assert cm.Matcher.build({1: "`destination.port` = 1 AND user.age > 3"}, schema)
