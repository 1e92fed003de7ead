"""Named parameters of texts."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import colmatch as cm

SCHEMA = {
    "a": "bigint", "x": "double", "d": "decimal(10, 2)", "s": "string", "b": "boolean", "day": "date", "ts": "timestamp", "raw": "binary",
    "l": "array<string>",
}  # fmt: skip
EVENT = {
    "a": -5, "x": 1.5, "d": Decimal("2.50"), "s": "it's :a", "b": True, "day": dt.date(2024, 1, 31),
    "ts": dt.datetime(2024, 1, 31, 12, tzinfo=dt.UTC), "raw": b"\x00\xff",
    "l": ["q"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "value", "written"),
    [
        ("a = :v", -5, "a = -5"),
        ("a+ 10-:v = 10", -5, "a + 10 - -5 = 10"),
        ("x = :v", 1.5, "x = 1.5D"),
        ("x < :v", float("inf"), "x < CAST('Infinity' AS DOUBLE)"),
        ("d = :v", Decimal("2.5"), "d = 2.5"),
        ("s = :v", "it's :a", "s = 'it\\'s :a'"),
        ("b = :v", True, "b = TRUE"),
        ("day = :v", dt.date(2024, 1, 31), "day = DATE '2024-01-31'"),
        ("ts = :v", dt.datetime(2024, 1, 31, 12, tzinfo=dt.UTC), "ts = TIMESTAMP '2024-01-31 12:00:00Z'"),
        ("raw = :v", b"\x00\xff", "raw = X'00FF'"),
        ("a IN (:v)", [1, -5], "a IN (1, -5)"),
        ("s IN (:v)", ("x", "it's :a"), "s IN ('x', 'it\\'s :a')"),
        ("a IN :v", [1, -5], "a IN (1, -5)"),
        ("a NOT IN :v", [1, 5], "a NOT IN (1, 5)"),
        ("a + 1 IN :v", [1, -4], "a IN (1, -5)"),
        ("a = ANY(:v)", [1, -5], "a IN (1, -5)"),
        ("a <> ALL(:v) AND a > ANY(:v)", [1, -6], "a NOT IN (1, -6)"),
        ("array_contains(:v, a)", [1, -5], "a IN (1, -5)"),
        ("array_contains(:v, a) IS NOT TRUE", [1, 5], "a NOT IN (1, 5)"),
        ("a IN UNNEST(:v)", [1, -5], "a IN (1, -5)"),
        ("s LIKE ANY (:v)", ["x%", "it%"], "s LIKE 'it%'"),
        ("day IN :v", [dt.date(2024, 1, 31)], "day = DATE '2024-01-31'"),
        ("b IN :v", {True}, "b"),
        ("(a NOT IN :v) IS UNKNOWN AND a IN (:v, -5)", [1, None], "TRUE"),
        ("exists(l, x -> x IN :v) AND arrays_overlap(l, :v) AND l && :v", ["p", "q"], "l && array('q', 'p')"),
        ("arrays_overlap(l, array(:v)) AND l @> array(:v)", ["q"], "array_contains(l, 'q')"),
        ("NOT (a = :v) IS TRUE", None, "TRUE"),
        ("a BETWEEN :v AND :v", -5, "a = -5"),
        ("lower(s) = lower(:v)", "IT'S :A", "TRUE"),
        ("s = 'it\\'s :a' /* :w */ AND a = :v", -5, "a = -5"),
    ],
)
def test_values_of_all_types(text: str, value: Any, written: str) -> None:
    matcher = cm.Matcher.build({1: text}, SCHEMA, parameters={"v": value})
    assert matcher.match_one(EVENT) == cm.Matcher.build({1: written}, SCHEMA).match_one(EVENT) == [1]
    many = pa.table({"id": range(200), "expression": [text] * 200})
    assert len(cm.Matcher.build(many, SCHEMA, parameters={"v": value}).match_one(EVENT)) == 200


def test_updates_have_values_of_their_own() -> None:
    matcher = cm.Matcher.build({1: "a > :least"}, SCHEMA, parameters={"least": 0})
    matcher.insert({2: "a > :least", 3: cm.col("a") < 0}, parameters={"least": -9})
    assert matcher.match_one(EVENT) == [2, 3]
    matcher.upsert({1: "a > :least"}, parameters={"least": -6})
    assert sorted(matcher.match_one(EVENT)) == [1, 2, 3]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({}, r"parameter :least has no value"),
        ({"last": 5}, r"parameter :least has no value: did you mean 'last'\? \(subscription 7, line 2, column 7\)"),
        ({"least": 5, "other": 6}, "parameters= has 'other', and no expression has :other"),
        ({"least": object()}, "parameters= has <object object at .*for 'least': no column can be compared"),
        ({"least": []}, "empty list"),
        ({"least": "\ud800"}, "surrogate"),
        ({"least": {"a": 1}}, "no column can be compared"),
        ({"a b": 5}, "letters, digits and _ are needed"),
        ({5: 5}, "letters, digits and _ are needed"),
        (5, "a mapping"),
        ([("least", 5)], "a mapping"),
        ({"least": [5]}, r"array\(\.\.\.\) is compared with a list.*line 2, column 3"),
        ({"least": "x"}, r"column 'a' is int64, the expression compares it with a string"),
    ],
)
def test_wrong_parameters(parameters: Any, said: str) -> None:
    with pytest.raises((cm.ExpressionError, cm.OptionError), match=said):
        cm.Matcher.build({7: "TRUE AND\n  a > :least"}, SCHEMA, parameters=parameters)


def test_a_text_without_its_value_is_left_out() -> None:
    rules = {1: "a < :most", 2: "a < :moste", 3: "a < 0"}
    matcher = cm.Matcher.build(rules, SCHEMA, errors="collect", parameters={"most": 0})
    assert matcher.match_one(EVENT) == [1, 3]
    assert [(one.id, one.position) for one in matcher.rejected] == [(2, (1, 5))]


@pytest.mark.parametrize("text", ["a > :v", "a > ?", "a > $1", "a > @v", "a > {v}", "a > {{v}}"])
def test_a_text_with_parameters_says_how_to_give_them(text: str) -> None:
    with pytest.raises(cm.ExpressionError, match=r"parameters=\{'\w+': 5\}"):
        cm.Matcher.build({1: text}, SCHEMA)


def test_what_has_no_parameters() -> None:
    with pytest.raises(cm.OptionError, match="be-tree has constants="):
        cm.Matcher.build({1: "a > 5"}, SCHEMA, language="betree", parameters={"v": 1})
    table = cm.PredicateTable(pa.table({"id": [1], "attribute": ["a"], "op": [">"], "operands": [["5"]]}))
    with pytest.raises(cm.OptionError, match="not with a PredicateTable"):
        cm.Matcher.build(table, SCHEMA, parameters={"v": 1})
