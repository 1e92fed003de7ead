"""The meaning of expressions, checked against DuckDB where it agrees with Spark.

COLMATCH_DIFFERENTIAL=3000 asks for the full count.

Where DuckDB differs from Spark, and what is done about it:

- a float literal beside a FLOAT column becomes a FLOAT, where Spark makes both doubles: DuckDB is
  given doubles;
- its list functions pass over NULL elements, where Spark's become Unknown: said with CASE
  (``oracle.DUCKDB``);
- doubles and exact numbers in one IN list are compared as doubles, as in Spark: not mixed;
- BETWEEN gives its three operands one type, which may be double: written as two comparisons;
- a string beside a timestamp is rounded to the unit of the column: written as a timestamp;
- LIKE has no escape character unless one is named: ESCAPE is always written;
- it has no ``<=>`` and other names for functions: translated.
"""

from __future__ import annotations

import datetime as dt
import os
import re
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from layouts import plain_table
from oracle import Expr, lit, to_sql, value
from strategies import COLUMNS, an_expression, some_rows, tame, terms

import colmatch as cm

duckdb = pytest.importorskip("duckdb")

COUNT = int(os.environ.get("COLMATCH_DIFFERENTIAL", "400"))
SCHEMA = pa.schema(list(COLUMNS.items()))
ROWS = some_rows(Random(1969), SCHEMA, 100)


def typed(e: Any) -> Any:
    """The expression with timestamps that were written as strings written as timestamps."""
    if not isinstance(e, tuple):
        return e
    if e[:2] == ("lit", "string") and e[2] and re.match(r"\d+-\d+-\d+ \d+:", e[2]):
        return lit(dt.datetime.fromisoformat(e[2]))
    return tuple(map(typed, e))


def duckdb_truths(texts: list[str]) -> list[list[bool | None]]:
    """DuckDB's truth value of each expression in each row, 100 expressions a query."""
    table = plain_table(SCHEMA, ROWS)
    table = table.set_column(table.column_names.index("f32"), "f32", table["f32"].cast(pa.float64()))
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("arrow", table)
    connection.execute("CREATE TABLE events AS SELECT *, row_number() OVER () AS nr FROM arrow")
    answers: list[list[bool | None]] = []
    for at in range(0, len(texts), 100):
        some = ", ".join(f"({text})" for text in texts[at : at + 100])
        answers += zip(*connection.execute(f"SELECT {some} FROM events ORDER BY nr").fetchall())
    connection.close()
    return answers


@pytest.fixture(scope="module")
def expressions() -> list[Expr]:
    rng = Random(19700101)
    return [typed(tame(an_expression(rng, terms(SCHEMA)), beyond=10**37)) for _ in range(COUNT)]


@pytest.fixture(scope="module")
def answers(expressions: list[Expr]) -> list[list[bool | None]]:
    return duckdb_truths([to_sql(e, "duckdb") for e in expressions])


def test_the_oracle_agrees_with_duckdb(expressions: list[Expr], answers: list[list[bool | None]]) -> None:
    wrong = [
        f"{to_sql(e)}\n  row {i}: DuckDB {duck}, oracle {value(e, row)}"
        for e, truth in zip(expressions, answers)
        for i, (row, duck) in enumerate(zip(ROWS, truth))
        if value(e, row) is not duck
    ]
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:10])


def test_colmatch_agrees_with_duckdb(expressions: list[Expr], answers: list[list[bool | None]]) -> None:
    matcher = cm.Matcher.build({i: to_sql(e) for i, e in enumerate(expressions)}, SCHEMA)
    found = set(zip(*matcher.match(plain_table(SCHEMA, ROWS)).to_pydict().values()))
    expected = {(row, i) for i, truth in enumerate(answers) for row, duck in enumerate(truth) if duck}
    wrong = [
        f"{to_sql(expressions[i])}\n  row {row}: DuckDB {(row, i) in expected}" for row, i in sorted(found ^ expected)
    ]
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:10])


def test_what_the_guide_says_of_duckdb() -> None:
    """``docs/where-clauses.md`` has a table of clauses that mean something else in DuckDB."""
    has_version_2 = int(duckdb.__version__.split(".")[0]) >= 2
    for text, wanted in {
        "CAST(2.7 AS INT)": 3,
        "2 ^ 3": 8,
        "'xab' ~ 'a'": has_version_2,
        "extract(dow FROM DATE '2024-01-07')": 0,
        "list_contains([NULL]::VARCHAR[], 'x')": False,
        "concat('a', NULL)": "a",
        "isnan(NULL)": None,
        "left('abc', -1)": "ab",
        "(['a', 'b'])[1]": "a",
        "1 / 0": float("inf"),
        "isnan(floor('nan'::DOUBLE))": True,
    }.items():
        assert duckdb.sql(f"SELECT {text}").fetchall() == [(wanted,)], text
