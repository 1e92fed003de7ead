"""Clauses of the manuals of Spark SQL, DuckDB and PostgreSQL, judged by Spark and DuckDB."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from clauses import EVENTS, REFUSED, SCHEMA, TAKEN, Clause, Refused
from installed import needs

import colmatch as cm
from colmatch.sql.literals import ALLOWED

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

Truths = list[bool | None]


def truths_of(clauses: list[str], **options: bool) -> list[Truths]:
    """What colmatch says of each clause in each row."""
    asked = {2 * i: text for i, text in enumerate(clauses)}
    asked |= {2 * i + 1: f"({text}) IS UNKNOWN" for i, text in enumerate(clauses)}
    matcher = cm.Matcher.build(asked, SCHEMA, options=cm.Options(**options))  # type: ignore[arg-type]
    found = set(zip(*matcher.match(EVENTS).to_pydict().values()))
    rows = range(EVENTS.num_rows)
    return [[None if (row, 2 * i + 1) in found else (row, 2 * i) in found for row in rows] for i in range(len(clauses))]


def differences(clauses: list[Clause], engine: list[Truths], **options: bool) -> list[str]:
    ours = truths_of([clause.text for clause in clauses], **options)
    return [
        f"{clause.text}: row {row}: expected {theirs}, found {own}"
        for clause, one, other in zip(clauses, ours, engine, strict=True)
        for row, (own, theirs) in enumerate(zip(one, other, strict=True))
        if own is not theirs
    ]


@needs("duckdb")
def test_duckdb_agrees() -> None:
    import duckdb

    some = [clause for clause in TAKEN if clause.duckdb is not None]
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("arrow", EVENTS.drop_columns(["items"]))
    connection.execute("CREATE TABLE events AS SELECT *, row_number() OVER () AS nr FROM arrow")
    truths = []
    for clause in some:
        query = f"SELECT CAST(({clause.duckdb or clause.text}) AS BOOLEAN) FROM events ORDER BY nr"
        try:
            truths.append([row[0] for row in connection.execute(query).fetchall()])
        except duckdb.Error as error:
            raise AssertionError(f"DuckDB refuses {query}: {error}") from error
    connection.close()
    wrong = differences(some, truths)
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong)


@pytest.mark.parametrize("ansi", [False, True])
def test_spark_agrees(spark: SparkSession, tmp_path: Path, ansi: bool) -> None:
    conf = {"spark.sql.ansi.enabled": str(ansi), "spark.sql.legacy.sizeOfNull": "false"}
    before = {name: spark.conf.get(name) for name in conf}
    some = [clause for clause in TAKEN if clause.spark is not None and (clause.ansi or not ansi)]
    rows = pa.array(range(EVENTS.num_rows), pa.int32())
    parquet.write_table(EVENTS.drop_columns(["items"]).append_column("nr", rows), tmp_path / "events.parquet")
    frame = spark.read.parquet(str(tmp_path / "events.parquet")).coalesce(1).cache()
    for name, value in conf.items():
        spark.conf.set(name, value)
    try:
        truths = []
        for at in range(0, len(some), 60):
            texts = [clause.spark or clause.text for clause in some[at : at + 60]]
            cast = [f"CAST(({text}) AS BOOLEAN) AS c{i}" for i, text in enumerate(texts)]
            answer = frame.selectExpr("nr", *cast).toArrow().sort_by("nr")
            truths += [answer[f"c{i}"].to_pylist() for i in range(len(texts))]
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))
    wrong = differences(some, truths, ansi=ansi)
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong)


def _message(clause: str) -> str:
    with pytest.raises(cm.ExpressionError) as refused:
        cm.Matcher.build({1: clause}, SCHEMA)
    return str(refused.value).partition(" (subscription 1")[0]


@pytest.mark.parametrize("clause", REFUSED, ids=[clause.text for clause in REFUSED])
def test_what_is_refused_is_told_what_to_write(clause: Refused) -> None:
    message = _message(clause.text)
    assert all(part in message for part in clause.said.split(" .* ")), message
    assert ALLOWED not in message
    assert _message(f"flag AND {clause.text}") or clause.why == "where"


def test_few_clauses_are_refused_and_each_cause_has_a_message() -> None:
    assert len(TAKEN) + len(REFUSED) >= 217
    assert len(REFUSED) <= (len(TAKEN) + len(REFUSED)) / 5
    causes: dict[str, set[str]] = {}
    for clause in REFUSED:
        causes.setdefault(_message(clause.text), set()).add(clause.why)
    assert [some for some in causes.values() if len(some) > 1] == []
    texts = [clause.text for clause in [*TAKEN, *REFUSED]]
    assert len(set(texts)) == len(texts)
