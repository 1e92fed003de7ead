"""Random expressions for every way that Spark has to a matcher, each against ``df.where``.

``differences`` runs in a session of its caller, classic or Connect. An expression that fails is
compared, too: what is an error in Spark must be an error of each way.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import clauses
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import test_differential_computed as computed
from oracle import to_sql
from pyspark.sql import functions as F
from strategies import COLUMNS, a_value_or_null, an_expression, tame, terms
from test_differential_spark import SCHEMA, for_spark

import colmatch as cm
from colmatch.spark import build, hits, match, register, register_source

# What fails in ANSI mode, as errors of Spark and of colmatch call it.
FAILURES = (
    "cannot be computed",
    "none at the place",
    "ARITHMETIC",
    "OVERFLOW",
    "ZERO",
    "CAST_INVALID",
    "NUMERIC_VALUE",
    "INVALID_ARRAY_INDEX",
    "CANNOT_PARSE",
)
QUOTES_DOUBLED = not pyspark.__version__.startswith("4.0")  # which reads 'it''s' as its
TABLES = {
    **dict(zip(SCHEMA.names, map(for_spark, SCHEMA.types))),
    **{"truth" if name == "b" else name: type for name, (type, _) in computed.VALUES.items()},
    **dict(zip(clauses.SCHEMA.names, clauses.SCHEMA.types)),
}
TABLES["e"] = pa.decimal128(18, 6)
TABLES.pop("items")  # of which no clause asks
FAILING = 4  # expressions that fail, each of which is asked alone in every way


class Asked(NamedTuple):
    """An expression, as colmatch and as Spark has it."""

    text: str
    spark: str


def some_events(rows: int, small: bool) -> pa.Table:
    """Events of all columns; ``small``: without numbers whose sums and products overflow."""
    rng = Random(rows)
    columns: dict[str, pa.Array] = {"nr": pa.array(range(rows), pa.int64())}
    for name, type in TABLES.items():
        values = list(computed.VALUES.get({"truth": "b", "b": ""}.get(name, name), (type, []))[1])
        if name in clauses.SCHEMA.names:
            values += [value for value in clauses._COLUMNS[name] if value is not None]
        if name in SCHEMA.names and not (small and name in computed.TAME):
            values += [a_value_or_null(rng, COLUMNS[name], 0.0) for _ in range(20)]
        if small and (pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type)):
            values = [value for value in values if abs(value) <= 100]
        columns[name] = pa.array([None if rng.random() < 0.15 else rng.choice(values) for _ in range(rows)], type)
    return pa.table(columns)


def some_expressions(seed: int, count: int, schema: pa.Schema, options: cm.Options) -> list[Asked]:
    """Expressions that colmatch takes: predicates, computed values, and clauses of the manuals."""
    rng = Random(seed)
    leaves, writer = terms(SCHEMA), computed.Writer(rng)
    known = [clause for clause in clauses.TAKEN if clause.spark is not None]

    def one() -> Asked:
        some = rng.randrange(10)
        if some < 4:
            found = tame(an_expression(rng, leaves))
            return Asked(to_sql(found), to_sql(found, "spark"))
        if some < 8:
            text = re.sub(r"\bb\b", "truth", writer.condition())
            return Asked(text, text)
        clause = rng.choice(known)
        return Asked(clause.text, clause.spark or clause.text)

    found: list[Asked] = []
    while len(found) < count:
        tried = [one() for _ in range(count)]
        texts = {i: asked.text for i, asked in enumerate(tried)}
        refused = {
            row.id
            for row in cm.Matcher.build(texts, schema, errors="collect", max_rejected=1.0, options=options).rejected
        }
        found += [
            asked
            for i, asked in enumerate(tried)
            if i not in refused and asked.text[0] != "'" and (QUOTES_DOUBLED or "''" not in asked.spark)
        ]
    return found[:count]


def differences(spark: Any, folder: Path, zone: str, ansi: bool, count: int, seed: int = 2026) -> list[str]:
    """Says where a way differs from ``df.where``: which expression, and in how many rows."""
    spark.conf.set("spark.sql.session.timeZone", zone)
    spark.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    spark.conf.set("spark.sql.legacy.sizeOfNull", "false")  # match refuses sizes in a session with -1
    register_source(spark)
    folder.mkdir(parents=True)
    events = some_events(60, small=ansi)
    pq.write_table(events, folder / "events.parquet", row_group_size=25)
    df = spark.read.parquet(str(folder / "events.parquet"))
    options = cm.Options(timezone=zone, ansi=ansi)
    asked = some_expressions(seed, count, events.schema, options)
    good, bad = [], []
    for one in asked:
        (
            bad
            if ansi
            and _fails(lambda one=one: cm.Matcher.build({0: one.text}, events.schema, options=options).match(events))
            else good
        ).append(one)
    wrong = [f"fails in colmatch alone: {one}" for one in bad if not _fails(lambda one=one: _truths(df, [one]))]
    wanted = _truths(df, good)
    for way, pairs in _ways(spark, df, build(dict(enumerate(one.text for one in good)), df), folder).items():
        found = pairs()
        if len(set(found)) < len(found):
            wrong.append(f"{way} has a pair twice")
        for number in sorted({number for _, number in set(found) ^ wanted}):
            rows = [nr for nr, other in sorted(set(found) ^ wanted) if other == number]
            wrong.append(f"{way}: {good[number]}: rows {rows[:5]}, Spark {(rows[0], number) in wanted}")
    for one in bad[:FAILING]:
        ways = _ways(spark, df, build({0: one.text}, df), folder)
        wrong += [f"{way} does not fail: {one}" for way, pairs in ways.items() if not _fails(pairs)]
    return wrong


def _truths(df: Any, asked: list[Asked]) -> set[tuple[int, int]]:
    """Returns which row (by its ``nr``) is TRUE for which expression, as Spark says."""
    found = df.selectExpr("nr", *(f"({one.spark}) AS `c{i}`" for i, one in enumerate(asked))).toArrow()
    return {
        (nr, i)
        for i, column in enumerate(found.columns[1:])
        for nr, truth in zip(found["nr"].to_pylist(), column.to_pylist())
        if truth
    }


def _ways(spark: Any, df: Any, matcher: cm.Matcher, folder: Path) -> dict[str, Callable[[], list[tuple[int, int]]]]:
    """Returns what finds pairs of row and subscription, by name."""

    def pairs(some: Any) -> list[tuple[int, int]]:
        return [(row[0], row[1]) for row in some.collect()]

    def in_a_column() -> list[tuple[int, int]]:
        return pairs(df.select("nr", F.explode(hits(matcher)(F.struct(*df.columns)))))

    def in_sql() -> list[tuple[int, int]]:
        df.createOrReplaceTempView("every_way")
        register(spark, "found_in_every_way", matcher, keep={"nr": "bigint"})
        return pairs(spark.sql("SELECT * FROM found_in_every_way(TABLE(every_way))"))

    def in_files() -> list[tuple[int, int]]:
        matcher.save(folder / "index.cm")
        source = spark.read.format("colmatch").option("index", str(folder / "index.cm")).option("keep", "nr")
        return pairs(source.option("rows", 30).load(str(folder / "events.parquet")))

    def in_lists() -> list[tuple[int, int]]:
        lists = match(df, matcher, keep=["nr"], mode="lists")
        return [(nr, id) for nr, ids in lists.collect() for id in ids]

    ways = {"match": lambda: pairs(match(df, matcher, keep=["nr"])), "lists of match": in_lists, "source": in_files}
    return ways | ({"column": in_a_column, "SQL": in_sql} if hasattr(F, "arrow_udtf") else {})


def _fails(run: Callable[[], Any]) -> bool:
    """Says whether a computed value fails; any other error is raised."""
    try:
        run()
    except Exception as error:
        if any(word in str(error) for word in FAILURES):
            return True
        raise
    return False
