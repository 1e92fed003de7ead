"""Clauses of ads, audiences, alerts and fraud rules, as users of five dialects write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as parquet
import pytest
from installed import needs
from jobs import EVENTS, LATER, REFUSED, SCHEMA, TAKEN, Refused

import colmatch as cm
from colmatch.sql.literals import ALLOWED

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

MANY = 130  # texts, which kernels read


def results(clauses: list[str]) -> list[str]:
    """The results of clauses in all rows, as ``TAKEN`` writes them."""
    whole = [clause.removeprefix("WHERE ").rstrip("; ") for clause in clauses]
    rules = {3 * i: clause for i, clause in enumerate(clauses)}
    rules |= {3 * i + 1: f"({clause}) IS UNKNOWN" for i, clause in enumerate(whole)}
    rules |= {3 * i + 2: f"({clause}) OR id < 0" for i, clause in enumerate(whole)}
    found = set(zip(*cm.Matcher.build(rules, SCHEMA).match(EVENTS).to_pydict().values()))

    def one(row: int, i: int) -> str:
        assert ((row, 3 * i) in found) is ((row, 3 * i + 2) in found), clauses[i]
        return "N" if (row, 3 * i + 1) in found else "T" if (row, 3 * i) in found else "f"

    return ["".join([one(row, i) for row in range(EVENTS.num_rows)]) for i in range(len(clauses))]


def compare(clauses: list[str], expected: list[str], found: list[str]) -> None:
    wrong = [(c, f"expected {e}", f"found {f}") for c, e, f in zip(clauses, expected, found, strict=True) if e != f]
    assert not wrong


def test_clauses_are_taken_as_written() -> None:
    """Many texts are read by kernels, and one or a few one by one."""
    clauses = [taken.clause for taken in TAKEN]
    assert len(clauses) > MANY
    compare(clauses, [taken.rows for taken in TAKEN], results(clauses))


def test_one_text_means_the_same_as_among_many() -> None:
    for at in range(0, len(TAKEN), 5):
        some = TAKEN[at : at + 5]
        rules = dict(enumerate([taken.clause for taken in some]))
        found = cm.Matcher.build(rules, SCHEMA).match_lists(EVENTS).to_pylist()
        rows = ["".join(["T" if i in one else "-" for one in found]) for i in rules]
        expected = [taken.rows.replace("f", "-").replace("N", "-") for taken in some]
        compare(list(rules.values()), expected, rows)


@pytest.mark.parametrize("refused", REFUSED, ids=[refused.clause for refused in REFUSED])
def test_an_error_says_what_to_write(refused: Refused) -> None:
    _, clause, said, cured, rows = refused
    with pytest.raises(cm.ExpressionError) as error:
        cm.Matcher.build({1: clause}, SCHEMA)
    assert said in str(error.value) and ALLOWED not in str(error.value)
    assert results([cured]) == [rows]


def test_few_clauses_are_refused() -> None:
    refused = len(REFUSED) + len(LATER)
    assert len(TAKEN) > 370 and refused < 0.15 * (len(TAKEN) + refused)
    assert len({dialect for dialect, *_ in TAKEN}) == 5


def test_spark_agrees(spark: SparkSession, tmp_path: Path) -> None:
    some = [taken for taken in TAKEN if taken.judge == "s"]
    conf = {"spark.sql.ansi.enabled": "false", "spark.sql.legacy.sizeOfNull": "false"}
    before = {name: spark.conf.get(name) for name in conf}
    parquet.write_table(EVENTS, tmp_path / "events.parquet")
    frame = spark.read.parquet(str(tmp_path / "events.parquet")).coalesce(1).cache()
    for name, value in conf.items():
        spark.conf.set(name, value)
    try:
        found = []
        for at in range(0, len(some), 60):
            texts = [f"CAST(({t.clause.rstrip(';')}) AS BOOLEAN) AS c{i}" for i, t in enumerate(some[at : at + 60])]
            answer = frame.selectExpr("id", *texts).toArrow().sort_by("id")
            found += [written(answer[f"c{i}"].to_pylist()) for i in range(len(texts))]
    finally:
        frame.unpersist()
        for name, old in before.items():
            spark.conf.set(name, str(old))
    compare([taken.clause for taken in some], [taken.rows for taken in some], found)


@needs("duckdb")
def test_duckdb_agrees() -> None:
    import duckdb

    some = [taken for taken in TAKEN if taken.judge == "d"]
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("arrow", EVENTS)
        connection.execute("CREATE TABLE events AS SELECT * FROM arrow")
        query = "SELECT CAST(({}) AS BOOLEAN) FROM events ORDER BY id"
        rows = [connection.execute(query.format(taken.clause.rstrip(";"))).fetchall() for taken in some]
    found = [written([value for (value,) in values]) for values in rows]
    compare([taken.clause for taken in some], [taken.rows for taken in some], found)


def written(values: list[bool | None]) -> str:
    return "".join(["N" if value is None else "T" if value else "f" for value in values])
