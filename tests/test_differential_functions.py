"""Values of the functions of ``expr/functions.py``, checked against Spark SQL.

COLMATCH_DIFFERENTIAL=5000 asks for that many expressions.
"""

from __future__ import annotations

import math
import os
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from inside import attributes
from test_differential_computed import SCHEMA, numbered, some_events

import colmatch as cm
from colmatch.events.computed.derived import DerivedColumns
from colmatch.expr.functions import NUMBER, TABLE, TEXT, Function

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNT = int(os.environ.get("COLMATCH_DIFFERENTIAL", "300"))
ZONES = ("Europe/Berlin", "UTC", "Asia/Kathmandu")
VALUES = {
    "string": ["s", "t", "lower(s)", "concat(s, t)", "NULL", "CAST(i32 AS STRING)"],
    "double": ["f64", "f32", "i32", "i64", "d", "f64 / 7", "i8"],
    "int": ["i8", "i16", "length(s)", "day(day)", "month(day)", "year(day)", "3", "-1", "0"],
    "whole": ["i8", "i16", "i32", "i64"],
    "date": ["day", "at", "loc", "DATE '2024-01-31'"],
    "date!": ["day", "DATE '2024-01-31'", "last_day(at)"],
    "timestamp!": ["at", "CAST(loc AS TIMESTAMP)"],
}
TEXTS = ["a", "b", "", " ", "abc", "x", "ÄÖ", "1", "-", "e", "ss", "a,abc,x"]
REGEXES = [
    "a",
    "[a-c]+",
    "(.)(.)",
    "^a",
    "b$",
    "x|A",
    "(a)?b",
    "\\\\\\\\d+",
    "s{2}",
    "(z)|(a)",
    "a*",
    "^",
    "x?",
    "(?i)A",
]
NEW = {
    "regexp_replace": ["", "-", "$0", "[$0]"],
    "next_day": ["Mon", "TU", "sunday", "fri"],
    "translate": ["", "xy", "123"],
}


def expression(rng: Random, function: Function) -> str:
    def argument(place: int, kind: str) -> str:
        if kind == NUMBER:
            if function.name == "sha2":
                return rng.choice(["0", "224", "256", "384", "512", "7"])
            least = -3 if function.name not in ("regexp_extract",) else 0
            return str(
                rng.choice([n for n in range(least, 3 if least == 0 else 12) if n or function.name != "split_part"])
            )
        if kind == TEXT:
            if "regexp" in function.name and place == 1:
                return f"'{rng.choice(REGEXES)}'"
            return f"'{rng.choice(NEW.get(function.name, TEXTS) if place else TEXTS)}'"
        return rng.choice(VALUES[kind])

    kinds = function.arguments[: len(function.arguments) - rng.randint(0, function.optional)]
    return f"{function.name}({', '.join(argument(i, kind) for i, kind in enumerate(kinds))})"


def computed(text: str, events: pa.Table, zone: str) -> list[Any] | None:
    """What colmatch computes; None where it refuses the expression."""
    try:
        matcher = cm.Matcher.build({0: f"{text} IS NULL"}, SCHEMA, options=cm.Options(timezone=zone))
    except cm.ExpressionError:
        return None
    (batch,) = events.combine_chunks().to_batches()
    members = attributes(matcher)
    if not len(members):  # it is constant
        return None
    with_values, failed = DerivedColumns(members, True).add_to(batch)
    assert not failed
    return plain(with_values.column(len(SCHEMA)))


def plain(values: Any) -> list[Any]:
    """Values of Python, with days as numbers: some are beyond the year 9999."""
    found: list[Any] = (values.cast(pa.int32()) if pa.types.is_date(values.type) else values).to_pylist()
    return found


def is_same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (one != one and other != other) or math.isclose(one, other, rel_tol=1e-14)
    return type(one) is type(other) and bool(one == other)


@pytest.mark.parametrize("zone", ZONES)
def test_spark_computes_the_same(spark: SparkSession, conf: Any, zone: str) -> None:
    conf("spark.sql.session.timeZone", zone)
    conf("spark.sql.ansi.enabled", "false")
    rng, events = Random(zone), some_events(60)
    functions = list(TABLE.values())
    texts = [expression(rng, functions[i % len(functions)]) for i in range(COUNT)]
    texts += [
        "concat_ws('-', s, t)",
        "concat_ws('', s, lower(t), NULL)",
        "length(concat_ws('é!', t, s, t))",
        "concat_ws('-', s)",
    ]
    ours = {text: values for text in dict.fromkeys(texts) if (values := computed(text, events, zone)) is not None}
    assert len(ours) > 0.6 * len(dict.fromkeys(texts))
    frame, wrong = numbered(spark, events), []
    asked = list(ours)
    for at in range(0, len(asked), 60):
        some = asked[at : at + 60]
        answer = frame.selectExpr("nr", *(f"{text} AS c{i}" for i, text in enumerate(some))).toArrow().sort_by("nr")
        for i, text in enumerate(some):
            theirs = plain(answer[f"c{i}"])
            rows = [row for row, pair in enumerate(zip(ours[text], theirs, strict=True)) if not is_same(*pair)]
            wrong += [
                f"{text}: {events.slice(row, 1).to_pylist()} {ours[text][row]!r}, Spark {theirs[row]!r}"
                for row in rows[:1]
            ]
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:30])
