"""The meaning of expressions, checked against Spark SQL itself: the oracle's three truth values,
and colmatch's matches.

COLMATCH_DIFFERENTIAL=3000 asks for the full count, a tenth of which goes to Spark.

Left out here, and why:

- uint64 and nanoseconds: Spark has neither (DuckDB checks uint64);
- a number beyond int64 beside an integer column: Spark folds ``i < 9223372036854775808`` to TRUE,
  also where i is NULL (DuckDB does not, and checks these).
"""

from __future__ import annotations

import os
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from layouts import plain_table
from oracle import Expr, Row, to_sql, value
from strategies import COLUMNS, an_expression, some_rows, tame, terms

import colmatch as cm

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COUNT = max(100, int(os.environ.get("COLMATCH_DIFFERENTIAL", "400")) // 10)
SCHEMA = pa.schema([(name, type) for name, type in COLUMNS.items() if name not in ("u64", "at_ns")])
ROWS = some_rows(Random(2013), SCHEMA, 150)


def for_spark(type: pa.DataType) -> pa.DataType:
    """The type that Spark has for it: no unsigned integers, one timestamp unit, one date."""
    wider = {
        pa.uint8(): pa.int16(),
        pa.uint16(): pa.int32(),
        pa.uint32(): pa.int64(),
        pa.date64(): pa.date32(),
        pa.binary(2): pa.binary(),
    }
    return pa.timestamp("us", type.tz) if pa.types.is_timestamp(type) else wider.get(type, type)


def spark_table(spark: SparkSession, schema: pa.Schema, rows: list[Row]) -> DataFrame:
    table = plain_table(schema, rows).cast(pa.schema([(f.name, for_spark(f.type)) for f in schema]))
    return (
        spark.createDataFrame(table.append_column("row number", pa.array(range(len(rows)), pa.int32())))
        .coalesce(1)
        .cache()
    )


def truths(frame: DataFrame, texts: list[str]) -> list[list[bool | None]]:
    """Spark's truth value of each expression in each row, 50 expressions a query."""
    answers: list[list[bool | None]] = []
    for at in range(0, len(texts), 50):
        some = texts[at : at + 50]
        found = (
            frame.selectExpr("`row number`", *(f"({text}) AS c{i}" for i, text in enumerate(some)))
            .toArrow()
            .sort_by("row number")
        )
        answers += [found[f"c{i}"].to_pylist() for i in range(len(some))]
    return answers


@pytest.fixture(scope="module")
def expressions() -> list[Expr]:
    rng = Random(20130131)
    return [tame(an_expression(rng, terms(SCHEMA))) for _ in range(COUNT)]


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    return spark_table(spark, SCHEMA, ROWS)


@pytest.fixture(scope="module")
def answers(frame: DataFrame, expressions: list[Expr]) -> list[list[bool | None]]:
    return truths(frame, [to_sql(e, "spark") for e in expressions])


def test_the_oracle_agrees_with_spark(expressions: list[Expr], answers: list[list[bool | None]]) -> None:
    wrong = [
        f"{to_sql(e)}\n  row {i}: Spark {spark}, oracle {value(e, row)}"
        for e, truth in zip(expressions, answers)
        for i, (row, spark) in enumerate(zip(ROWS, truth))
        if value(e, row) is not spark
    ]
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:10])


def test_colmatch_agrees_with_spark(expressions: list[Expr], answers: list[list[bool | None]]) -> None:
    matcher = cm.Matcher.build({i: to_sql(e) for i, e in enumerate(expressions)}, SCHEMA)
    found = set(zip(*matcher.match(plain_table(SCHEMA, ROWS)).to_pydict().values()))
    expected = {(row, i) for i, truth in enumerate(answers) for row, spark in enumerate(truth) if spark is True}
    wrong = [
        f"{to_sql(expressions[i])}\n  row {row}: Spark {(row, i) in expected}" for row, i in sorted(found ^ expected)
    ]
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:10])
