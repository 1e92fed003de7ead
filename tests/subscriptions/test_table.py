"""Predicate tables: what they accept, what they refuse, and that they mean what the same text
means.
"""

from __future__ import annotations

import datetime as dt
import tracemalloc
from decimal import Decimal
from typing import Any

import inside
import numpy as np
import pyarrow as pa
import pytest

import colmatch as cm

SCHEMA = {
    "age": "int64",
    "city": "string",
    "score": "double",
    "vip": "bool",
    "day": "date32[day]",
    "price": pa.decimal128(9, 2),
    "seen": pa.timestamp("us", "UTC"),
    "tags": pa.list_(pa.string()),
    "attrs": pa.map_(pa.string(), pa.int64()),
    "user": pa.struct([("age", pa.int64())]),
    "raw": pa.binary(),
}
EVENTS = pa.Table.from_pylist(
    [
        {"age": 30, "city": "Nice", "score": 0.5, "vip": True, "day": dt.date(2013, 1, 1), "price": Decimal("1.50"), "tags": ["a", "b"],
         "attrs": [("k", 3)], "user": {"age": 5}, "seen": dt.datetime(2013, 1, 1, 10, tzinfo=dt.UTC), "raw": b"\x1f"},
        {"age": 18, "city": "Paris", "score": float("nan"), "vip": False, "day": dt.date(2014, 1, 1), "price": Decimal("9.99"), "tags": [],
         "attrs": [], "user": {"age": None}, "seen": dt.datetime(2015, 1, 1, tzinfo=dt.UTC), "raw": b""},
        dict.fromkeys(SCHEMA),
        {**dict.fromkeys(SCHEMA), "tags": ["a", None]},
    ],
    schema=cm.Schema(SCHEMA).arrow,
)  # fmt: skip


def matches(attribute: str, op: str, operands: Any) -> list[int]:
    table = pa.table({"id": [1], "attribute": [attribute], "op": [op], "operands": [operands]})
    matcher = cm.Matcher.build(cm.PredicateTable(table), SCHEMA)
    return matcher.match(EVENTS)["event"].to_pylist()


def text(expression: str) -> list[int]:
    return cm.Matcher.build({1: expression}, SCHEMA).match(EVENTS)["event"].to_pylist()


@pytest.mark.parametrize(
    ("attribute", "op", "operands", "expression"),
    [
        ("age", "=", [30], "age = 30"),
        ("age", "NOT  =", [30], "age <> 30"),
        ("age", "!=", [30], "age <> 30"),
        ("age", "<", [29.5], "age < 29.5"),
        ("age", "not <=", [18], "age > 18"),
        ("age", "between", [10, 20], "age BETWEEN 10 AND 20"),
        ("age", "not between", [10, 20], "age NOT BETWEEN 10 AND 20"),
        ("age", "in", [18, 30, 31], "age IN (18, 30, 31)"),
        ("age", "not in", [18, 31], "age NOT IN (18, 31)"),
        ("age", "is null", None, "age IS NULL"),
        ("age", "is not null", [], "age IS NOT NULL"),
        ("city", "=", ["Nice"], "city = 'Nice'"),
        ("city", ">=", ["O"], "city >= 'O'"),
        ("city", "not in", ["Nice", "x"], "city NOT IN ('Nice', 'x')"),
        ("city", "like", ["%ic%"], "city LIKE '%ic%'"),
        ("city", "not like", ["%ic%"], "city NOT LIKE '%ic%'"),
        ("city", "not like", ["N%"], "city NOT LIKE 'N%'"),
        ("city", "startswith", ["P"], "startswith(city, 'P')"),
        ("city", "not endswith", ["e"], "NOT endswith(city, 'e')"),
        ("city", "ilike", ["n_ce"], "city ILIKE 'n_ce'"),
        ("city", "rlike", ["^P.*s$"], "city RLIKE '^P.*s$'"),
        ("score", ">", [0.5], "score > 0.5"),
        ("score", "=", [float("nan")], "score = CAST('NaN' AS DOUBLE)"),
        ("vip", "=", [True], "vip"),
        ("day", ">=", [dt.date(2013, 6, 1)], "day >= DATE '2013-06-01'"),
        ("price", "<=", [Decimal("1.5")], "price <= 1.5"),
        ("seen", "<", [dt.datetime(2014, 1, 1, tzinfo=dt.UTC)], "seen < TIMESTAMP '2014-01-01 00:00:00Z'"),
        ("raw", "=", [b"\x1f"], "raw = X'1F'"),
        ("tags", "array_contains", ["a"], "array_contains(tags, 'a')"),
        ("tags", "not array_contains", ["z"], "NOT array_contains(tags, 'z')"),
        ("tags", "arrays_overlap", ["z", "b"], "arrays_overlap(tags, array('z', 'b'))"),
        ("tags", "is null", None, "tags IS NULL"),
        ("size(tags)", "=", [0], "size(tags) = 0"),
        ("attrs['k']", ">", [2], "attrs['k'] > 2"),
        ("user.age", "=", [5], "user.age = 5"),
    ],
)
def test_a_row_means_what_its_text_means(attribute: str, op: str, operands: Any, expression: str) -> None:
    found = matches(attribute, op, operands)
    assert found == text(expression)
    if op not in ("!=", "NOT  ="):
        assert found != [], "a case that never matches shows nothing"


def test_conjunctions_of_one_id_in_any_row_order() -> None:
    rows = pa.table(
        {
            "id": ["b", "a", "b", "a", "b"],
            "attribute": ["age", "age", "age", "city", "city"],
            "op": [">", "=", "<", "in", "is null"],
            "operands": [[20], [18], [40], None, None],
            "conjunction": pa.array([7, 0, 7, None, -1], pa.int32()),
        }
    )
    texts = pa.table(
        {
            "id": ["a"],
            "attribute": ["city"],
            "op": ["="],
            "operands": [["Paris"]],
            "conjunction": pa.array([0], pa.int32()),
        }
    )
    rows = rows.filter(pa.array([True, True, True, False, True]))
    matcher = cm.Matcher.build(cm.PredicateTable(rows, texts), SCHEMA)
    assert matcher.match_lists(EVENTS).to_pylist() == [["b"], ["a"], ["b"], ["b"]]
    assert matcher.ids.to_pylist() == ["b", "a"]


def test_weights_of_merged_predicates_add_up() -> None:
    rows = pa.table(
        {
            "id": [1, 1, 1],
            "attribute": ["age", "age", "score"],
            "op": [">", "<", "="],
            "operands": [[1], [9], [0]],
            "weight": [0.5, 2.0, 4.0],
        }
    )
    matcher = cm.Matcher.build(cm.PredicateTable(rows), SCHEMA)
    assert sorted(inside.predicates(matcher).weight.tolist()) == [[2.5, 2.0], [4.0, 4.0]]


@pytest.mark.parametrize(
    ("attribute", "op", "operands", "said"),
    [
        ("agee", "=", [1], "did you mean 'age'"),
        ("age", "~", [1], "unknown operator '~'"),
        ("age", "=", ["x"], "give a number"),
        ("age", "=", [1, 2], "takes one operand, not 2"),
        ("age", "between", [1], "takes two operands, not 1"),
        ("age", "in", [1, None], "operand is NULL"),
        ("age", "like", ["x"], "needs a string"),
        ("city", "rlike", ["("], "regular expression"),
        ("city", "array_contains", ["x"], "need a list"),
        ("tags", "=", ["x"], "array_contains"),
        ("user", "=", [1], "no predicate can use it"),
        ("user", "is null", None, "name a field"),
        ("attrs[3]", "=", [1], "keys of column"),
        ("age['k']", "=", [1], "not a map"),
        ("size(age)", "=", [1], "a list or a map is needed"),
    ],
)
def test_bad_rows_are_refused_with_the_reason(attribute: str, op: str, operands: Any, said: str) -> None:
    table = pa.table({"id": [7], "attribute": [attribute], "op": [op], "operands": [operands]})
    with pytest.raises(cm.ExpressionError, match=said.replace("(", r"\(")) as caught:
        cm.Matcher.build(cm.PredicateTable(table), SCHEMA)
    assert caught.value.id == 7
    good = pa.table({"id": [8], "attribute": ["vip"], "op": ["="], "operands": [[True]]})
    matcher = cm.Matcher.build(cm.PredicateTable(table, good), SCHEMA, errors="collect")
    assert [entry.id for entry in matcher.rejected] == [7]
    assert matcher.match_lists(EVENTS).to_pylist() == [[8], [], [], []]


BLANKS = " " * 100_000
NAMES = [
    *(" " * 20, BLANKS, f"{BLANKS}x", f"age{BLANKS}[", f"attrs{BLANKS}['k{BLANKS}", f"size({BLANKS}x"),
    *("[" * 100_000, "['" * 100_000, "attrs['" + "\\'" * 100_000),
]


@pytest.mark.parametrize("attribute", NAMES, ids=range(len(NAMES)))
def test_names_of_blanks_and_brackets(attribute: str) -> None:
    table = pa.table({"id": [7], "attribute": [attribute], "op": ["="], "operands": [[1]]})
    with pytest.raises(cm.ExpressionError, match="unknown attribute|a '\\)' is missing") as raised:
        cm.Matcher.build(cm.PredicateTable(table), SCHEMA)
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("attribute", ["attrs['k']", " attrs [ 'k' ] ", 'attrs["k"]', "ATTRS['k']", "attrs['\\k']"])
def test_ways_to_write_an_entry(attribute: str) -> None:
    assert matches(attribute, ">", [2]) == [0]
    assert matches(" SIZE ( tags ) ", "=", [2]) == [0, 3]


def test_a_bad_literal_among_good_ones_is_collected() -> None:
    days = ["2013-01-01", "2013-02-30", "soon", "2013-06-01"]
    table = pa.table(
        {"id": [1, 2, 3, 4], "attribute": ["day"] * 4, "op": [">="] * 4, "operands": [[day] for day in days]}
    )
    with pytest.raises(cm.ExpressionError, match="calendar"):
        cm.Matcher.build(cm.PredicateTable(table), SCHEMA)
    matcher = cm.Matcher.build(cm.PredicateTable(table), SCHEMA, errors="collect")
    assert [entry.id for entry in matcher.rejected] == [2, 3]
    assert matcher.match_lists(EVENTS).to_pylist() == [[1], [1, 4], [], []]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"id": [1], "attribute": ["age"], "op": ["="]}, "no column 'operands'"),
        ({"id": [1], "attribute": ["age"], "op": ["="], "operands": [[1]], "extra": [1]}, "'extra' that means nothing"),
        ({"id": [None], "attribute": ["age"], "op": ["="], "operands": [[1]]}, "'id' is NULL in row 0"),
        ({"id": [1.5], "attribute": ["age"], "op": ["="], "operands": [[1]]}, "int64 or string is needed"),
        (
            {"id": [1], "attribute": [3], "op": ["="], "operands": [[1]]},
            "a string or a dictionary of strings is needed",
        ),
        ({"id": [1], "attribute": ["age"], "op": ["="], "operands": [1]}, "a list is needed"),
    ],
)
def test_tables_of_the_wrong_shape_are_refused(columns: dict[str, Any], said: str) -> None:
    with pytest.raises(cm.SubscriptionError, match=said):
        cm.PredicateTable(pa.table(columns))


def test_lists_that_are_null_over_operands_of_another_layout() -> None:
    """A list that is NULL stays one when its values are made plain."""
    values, nulls = pa.array(["x", "hidden", "y"]).dictionary_encode(), pa.array([False, True, False])
    operands = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), values, mask=nulls)
    table = pa.table(
        {"id": [1, 2, 3], "attribute": ["s", "s", "s"], "op": ["=", "is not null", "="], "operands": operands}
    )
    for part, wanted in ((table, [[1, 2], [2, 3], [2]]), (table.slice(1), [[2], [2, 3], [2]])):
        matcher = cm.Matcher.build(cm.PredicateTable(part), {"s": "string"})
        assert [sorted(some) for some in matcher.match_lists(pa.table({"s": ["x", "y", "z"]})).to_pylist()] == wanted


def table_in_chunks(subscriptions: int, chunk: int) -> pa.Table:
    """Subscriptions of five ranges, as a table in chunks."""
    count = 5 * subscriptions
    low = np.random.default_rng(0).integers(0, 90, count)
    words = pa.array([f"a{i}" for i in range(10)])
    table = pa.table(
        {
            "id": np.arange(count) // 5,
            "attribute": pa.DictionaryArray.from_arrays((np.arange(count) * 3 % 10).astype(np.int32), words),
            "op": pa.DictionaryArray.from_arrays(np.zeros(count, np.int8), pa.array(["between"])),
            "operands": pa.LargeListArray.from_arrays(
                np.arange(0, 2 * count + 1, 2), np.stack([low, low + 9], axis=1).ravel()
            ),
        }
    )
    return pa.concat_tables([table.slice(begin, chunk) for begin in range(0, count, chunk)])


def test_a_table_in_chunks_is_not_copied() -> None:
    table = table_in_chunks(50_000, 20_011)
    before = pa.total_allocated_bytes()
    given = cm.PredicateTable(table)
    assert pa.total_allocated_bytes() - before < 100_000
    schema = {f"a{i}": "int64" for i in range(10)}
    matchers = [cm.Matcher.build(some, schema) for some in (given, cm.PredicateTable(table.combine_chunks()))]
    events = pa.table({name: np.arange(200) * (i + 3) % 100 for i, name in enumerate(schema)})
    found, wanted = (matcher.match(events) for matcher in matchers)
    assert found.equals(wanted)
    assert len(found) > 100


def test_the_peak_of_a_build() -> None:
    """It is counted with the room for more that arrays have, which takes no memory."""
    given, schema = cm.PredicateTable(table_in_chunks(200_000, 1 << 17)), {f"a{i}": "int64" for i in range(10)}
    tracemalloc.start()
    try:
        matcher = cm.Matcher.build(given, schema, "bitslice")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * matcher.stats()["bytes_per_subscription"] * len(matcher)
