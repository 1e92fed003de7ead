"""Tables of subscriptions whose columns have other names."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import colmatch as cm

TABLE = pa.table(
    {"id": ["x", "y"], "rule_id": [1, 2], "where_clause": ["a < 5", "a > 5"], "tags": ["low", "high"], "note": ["", ""]}
)
NAMES: dict[str, Any] = {"id": "rule_id", "expression": "where_clause"}


def build(rules: Any = {}) -> cm.Matcher:  # noqa: B006
    return cm.Matcher.build(rules, "a bigint", **({} if rules == {} else NAMES))


@pytest.mark.parametrize(
    "table", [TABLE, ds.dataset(TABLE), TABLE.select([1, 2, 3])], ids=["table", "dataset", "alone"]
)
def test_ways_in(table: Any) -> None:
    matcher = build(table)
    plain = [
        {"id": 1, "expression": "a < 5", "tags": ["low"]},
        {"id": 2, "expression": "a > 5", "tags": ["high"]},
    ]
    assert matcher.to_table().to_pylist() == plain
    assert matcher.sync(table, **NAMES) == cm.Matcher.build({}, "a bigint").sync({})
    for call in ("insert", "upsert"):
        other = build()
        getattr(other, call)(table, **NAMES)
        assert other.to_table().to_pylist() == plain
        other.replace(table, **NAMES)
        other.update(upsert=table, delete=[7] if 7 in other else None, **NAMES)
        assert other.to_table().to_pylist() == plain
    assert cm.Matcher.build(TABLE, "a bigint", expression="where_clause").ids.to_pylist() == ["x", "y"]


def test_definitions_of_such_a_table() -> None:
    table = pa.table({"key": [1, None], "text": ["low AND a > 1", "a < 5"], "define": [None, "low"]})
    matcher = cm.Matcher.build(table, "a bigint", id="key", expression="text")
    assert matcher.definitions == {"low": "a < 5"} and matcher.ids.to_pylist() == [1]


def test_errors_name_the_remedy() -> None:
    other = TABLE.select(["rule_id", "where_clause"])
    with pytest.raises(
        cm.SubscriptionError, match=r"no column 'id'; its columns are 'rule_id', 'where_clause'; id='rule_id' names"
    ):
        cm.Matcher.build(other, "a bigint")
    with pytest.raises(
        cm.SubscriptionError, match="no column 'expression'; .*; expression='where_clause' names another column"
    ):
        build().insert(other, id="rule_id")
    with pytest.raises(cm.SubscriptionError, match="no column 'rulid'; its columns are 'rule_id', 'where_clause'$"):
        build().insert(other, id="rulid")
    with pytest.raises(
        cm.OptionError, match="^id='rule_id': these are names of columns of a table, and the subscriptions are none"
    ):
        build().insert({1: "a < 5"}, id="rule_id")
    with pytest.raises(cm.OptionError, match="expression=5: the name of a column is needed"):
        build().insert(other, expression=5)  # type: ignore[arg-type]


def test_tags_are_in_a_named_column() -> None:
    table = TABLE.rename_columns(["id", "rule_id", "where_clause", "teams", "tags"])
    matcher = cm.Matcher.build(table, "a bigint", tags="teams", **NAMES)
    assert matcher.tags.to_pylist() == [["low"], ["high"]]
    lists = table.set_column(3, "teams", pa.array([["low", "x"], None]))
    matcher.upsert(lists, tags="teams", **NAMES)
    matcher.replace(lists, tags="teams", **NAMES)
    assert matcher.tags.to_pylist() == [["low", "x"], []]
    matcher.update(replace=table, tags="teams", **NAMES)
    assert matcher.sync(lists, tags="teams", **NAMES).changed.to_pylist() == [1, 2]
    assert cm.Matcher.build(TABLE, "a bigint", tags="tags", **NAMES).tags.to_pylist() == [["low"], ["high"]]
    with pytest.raises(cm.SubscriptionError, match="no column 'team'; its columns are 'id', 'rule_id'"):
        cm.Matcher.build(table, "a bigint", tags="team", **NAMES)
    for subscriptions in ({1: "a < 5"}, [(1, "a < 5")]):
        with pytest.raises(cm.OptionError, match="^tags='team': these are names of columns of a table"):
            cm.Matcher.build(subscriptions, "a bigint", tags="team")


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("rule_id", [1, None], "column 'rule_id' is NULL in row 1"),
        ("rule_id", [1.5, 2.5], "column 'rule_id' is double, int64 or string is needed"),
        ("where_clause", [1, 2], "column 'where_clause' is int64, a string is needed"),
        ("team", [1, 2], "column 'team' is int64: lists of strings are needed"),
    ],
)
def test_errors_have_the_names_of_the_caller(column: str, values: list[Any], message: str) -> None:
    names = ["rule_id", "where_clause", "team"]
    table = TABLE.select([1, 2, 3]).rename_columns(names).set_column(names.index(column), column, pa.array(values))
    with pytest.raises(cm.SubscriptionError, match=message):
        cm.Matcher.build(table, "a bigint", tags="team", **NAMES)
