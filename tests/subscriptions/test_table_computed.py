"""Predicate tables whose attributes are computed, beside the same in SQL."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest
from contract import pairs

import colmatch as cm
from colmatch.given.session import ZONE

SCHEMA = pa.schema(
    {"s": pa.string(), "p": pa.float64(), "q": pa.int64(), "ts": pa.timestamp("us", "UTC"), "user-agent": pa.string()}
)
EVENTS = pa.table(
    {
        "s": ["Nice", "LYON", None, "nice"],
        "p": [1.5, 20.0, 3.0, None],
        "q": [10, 20, None, 7],
        "ts": pa.array([0, 9 * 3600 * 10**6, None, 1], SCHEMA.field("ts").type),
        "user-agent": ["a", "b", None, "a"],
    }
)


def predicates(rows: list[tuple[Any, str, str, list[Any]]]) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table(dict(zip(("id", "attribute", "op", "operands"), map(list, columns), strict=True)))


ROWS = [
    (1, "lower(s)", "=", ["nice"], "lower(s) = 'nice'"),
    (2, "lower( s )", "not like", ["l%"], "lower(s) NOT LIKE 'l%'"),
    (3, "upper(`user-agent`)", "in", ["A", "C"], "upper(`user-agent`) IN ('A', 'C')"),
    (4, "p * q", ">", [100.0], "p * q > 100.0"),
    (5, "p+q", "not between", [2.0, 14.0], "p + q NOT BETWEEN 2.0 AND 14.0"),
    (6, "hour(ts)", "=", [9], "hour(ts) = 9"),
    (7, "q % 7", "in", [6, 3], "q % 7 IN (6, 3)"),
    (8, "coalesce(q, 0)", "<", [10], "coalesce(q, 0) < 10"),
    (9, "abs(p-q)", "is null", [], "abs(p - q) IS NULL"),
    (10, "user-agent", "=", ["b"], "`user-agent` = 'b'"),
]


def tables(rows: Any) -> list[pa.Table]:
    """One table for each type of operands."""
    kinds: dict[Any, list[Any]] = {}
    for row in rows:
        kinds.setdefault(type(row[3][0]) if row[3] else int, []).append(row[:4])
    return [predicates(some) for some in kinds.values()]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.usefixtures("kept_predicates")
def test_what_sql_says(zone: str) -> None:
    options = cm.Options(timezone=zone)
    of = cm.Matcher.build(cm.PredicateTable(*tables(ROWS)), SCHEMA, options=options)
    same = cm.Matcher.build({row[0]: row[4] for row in ROWS}, SCHEMA, options=options)
    assert pairs(of.match(EVENTS)) == pairs(same.match(EVENTS))
    assert of.spark_settings.get(ZONE) == same.spark_settings.get(ZONE) == "hour(ts)"
    assert {str(of.explain(EVENTS.slice(1, 1), row[0])) for row in ROWS} == {
        str(same.explain(EVENTS.slice(1, 1), row[0])) for row in ROWS
    }
    grown = cm.Matcher.build({}, SCHEMA, options=options)
    grown.insert(cm.PredicateTable(*tables(ROWS[:5])))
    grown.insert(cm.PredicateTable(*tables(ROWS[5:])))
    assert pairs(grown.match(EVENTS)) == pairs(same.match(EVENTS))


def test_values_that_sql_solves_for_their_column_match_the_same() -> None:
    rows = [
        (1, "p+1", "not between", [2.0, 4.0], "p + 1 NOT BETWEEN 2.0 AND 4.0"),
        (2, "abs(q)", "is null", [], "abs(q) IS NULL"),
        (3, "3-q", "<", [-4], "3 - q < -4"),
        (4, "left(s, 2)", "=", ["ni"], "left(s, 2) = 'ni'"),
    ]
    of = cm.Matcher.build(cm.PredicateTable(*tables(rows)), SCHEMA)
    same = cm.Matcher.build({row[0]: row[4] for row in rows}, SCHEMA)
    assert pairs(of.match(EVENTS)) == pairs(same.match(EVENTS)) != []


def test_ansi_is_that_of_the_options() -> None:
    of = cm.Matcher.build(
        cm.PredicateTable(predicates([(1, "CAST(s AS INT)", "=", [1])])), SCHEMA, options=cm.Options(ansi=True)
    )
    with pytest.raises(cm.EventError, match="does not fit int32"):
        of.match(EVENTS)


@pytest.mark.parametrize(
    ("name", "operands", "message"),
    [
        ("p <= q", [True], "attribute 'p <= q' is a comparison: write it as an expression"),
        ("lower(x)", ["a"], "attribute 'lower(x)': unknown attribute 'x'"),
        ("lower(s", ["a"], "attribute 'lower(s': a ')' is missing"),
        ("lower(s)", [5], "attribute 'lower(s)' is string, the operands are int: give a string"),
        ("p * upper(s)", [1], "attribute 'p * upper(s)': '*' needs numbers, not string"),
        ("referer-host", ["a"], "unknown attribute 'referer-host': the schema has"),
        ("(s) IS NULL OR (p", ["a"], "attribute '(s) IS NULL OR (p': a ')' is missing"),
        ("lower(s) -- x", ["a"], "attribute 'lower(s) -- x'"),
        ("now_and_then(s)", ["a"], "function 'now_and_then' is not supported"),
    ],
)
def test_what_is_refused(name: str, operands: list[Any], message: str) -> None:
    with pytest.raises(cm.ExpressionError, match=re.escape(message)) as raised:
        cm.Matcher.build(cm.PredicateTable(predicates([(1, name, "=", operands)])), SCHEMA)
    assert "(row 0 of the predicate table)" in str(raised.value)


def test_operators_of_lists() -> None:
    with pytest.raises(
        cm.ExpressionError, match="attribute 'lower\\(s\\)' is string, array_contains and arrays_overlap"
    ):
        cm.Matcher.build(cm.PredicateTable(predicates([(1, "lower(s)", "array_contains", ["a"])])), SCHEMA)
