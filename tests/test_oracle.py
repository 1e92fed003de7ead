"""The oracle on cases whose answer is known by hand, and what Spark says of the traps in the
language.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from oracle import Expr, lit, to_sql, value

import colmatch as cm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

A, NULL = ("col", "a"), lit(None)
CASES: list[tuple[Expr, Any, bool | None]] = [
    (("=", A, lit(1)), None, None),
    (("not", ("=", A, lit(1))), None, None),
    (("and", ("=", A, lit(1)), lit(False)), None, False),
    (("or", ("=", A, lit(1)), lit(True)), None, True),
    (("at_least", 2, ("=", A, lit(1)), NULL, lit(True)), 1, True),
    (("at_least", 2, ("=", A, lit(1)), NULL, lit(True)), 2, None),
    (("at_least", 2, ("=", A, lit(1)), NULL, lit(False)), 2, False),
    (("at_least", 1, ("=", A, lit(1)), NULL, lit(False)), 2, None),
    (("<=>", A, NULL), None, True),
    (("<=>", A, NULL), 1, False),
    (("in", A, (lit(1), NULL)), 1, True),
    (("in", A, (lit(1), NULL)), 2, None),
    (("not in", A, (lit(1), NULL)), 2, None),
    (("not in", A, (lit(1), NULL)), 1, False),
    (("between", A, NULL, lit(0)), 1, False),
    (("between", A, NULL, lit(2)), 1, None),
    (("not between", A, NULL, lit(0)), 1, True),
    (("is unknown", ("=", A, lit(1))), None, True),
    (("is not true", ("=", A, lit(1))), None, True),
    (("=", A, lit(2**53)), 2**53 + 1, False),
    (("=", A, lit(float("nan"))), float("nan"), True),
    ((">", A, lit(float("inf"))), float("nan"), True),
    (("=", A, lit(0.0)), -0.0, True),
    (("=", A, lit(Decimal("0.1"))), 0.1, True),
    (("=", A, lit(Decimal("0.1"))), 0.10000000149011612, False),
    (("=", A, lit(1.1)), Decimal("1.10"), True),
    (("<", A, lit("\U0001f600")), "\uff5e", True),  # by code points, not by UTF-16 units
    (("<", A, lit(b"\xff")), b"\x7f", True),
    (("like", A, lit("a\\_b")), "a_b", True),
    (("like", A, lit("a\\_b")), "axb", False),
    (("like", A, lit("_")), "\U0001f600", True),
    (("like", A, lit("a%b")), "a\n\nb", True),
    (("array_contains", A, lit("x")), ["y", None], None),
    (("array_contains", A, lit("x")), ["x", None], True),
    (("array_contains", A, lit("x")), [], False),
    (("arrays_overlap", A, (lit("x"),)), [None], None),
    (("arrays_overlap", A, (lit("x"),)), [], False),
    (("contains_all", A, (lit("x"), lit("y"))), ["x", None], None),
    (("=", ("size", A), lit(0)), [], True),
    (("=", ("size", A), lit(0)), None, None),
    (("is null", ("entry", A, "k")), [("k", None)], True),
    (("=", A, lit(dt.date(2013, 1, 31))), dt.datetime(2013, 1, 31), True),
    (("=", A, lit("2013-01-31 10:00:00")), dt.datetime(2013, 1, 31, 10), True),
]


@pytest.mark.parametrize(("e", "x", "truth"), CASES)
def test_by_hand(e: Expr, x: Any, truth: bool | None) -> None:
    assert value(e, {"a": x}) is truth, to_sql(e)


# (condition on s, value of s, what Spark says): how texts are written, and what patterns mean.
TEXTS: list[tuple[str, str, bool]] = [
    (r"s = 'it''s'", "it's", True),
    (r"s = 'it\'s'", "it's", True),
    (r's = "it\'s"', "it's", True),
    (r"s = 'a' 'b'", "ab", True),
    (r"s = 'a\nb'", "a\nb", True),
    (r"s = r'a\nb'", r"a\nb", True),
    (r"s = '\q'", "q", True),
    (r"s = '\u00e9'", "é", True),
    (r"s = '\101'", "A", True),
    (r"s = 'a\%b'", r"a\%b", True),  # the escapes of LIKE pass through string literals
    (r"s LIKE 'a\_b'", "axb", False),
    (r"s LIKE 'a\\_b'", "a_b", True),
    (r"s LIKE 'a!_b' ESCAPE '!'", "axb", False),
    (r"s LIKE ANY ('x', 'a%')", "ab", True),
    (r"s NOT LIKE ALL ('x', 'a%')", "ab", False),
    (r"s NOT LIKE 'a%'", "ab", False),
    (r"s RLIKE 'a.b'", "a\nb", False),
    (r"s RLIKE '\\d'", "٣", False),
    (r"s RLIKE '\\w'", "é", False),
    (r"s ILIKE 'É%'", "éa", True),
    (r"s REGEXP '^a'", "ab", True),
    (r"NOT s = 'a' AND s == 'b'", "b", True),
    (r"s != 'a' OR s <> 'a'", "a", False),
    (r"! (s = 'a')", "b", True),
    (r"'a' = s /* why */ -- because", "a", True),
    (r"s IS DISTINCT FROM 'a'", "a", False),
    (r"s IS NOT DISTINCT FROM NULL", "a", False),
]


@pytest.mark.parametrize(("text", "x", "truth"), TEXTS)
def test_how_texts_are_read(text: str, x: str, truth: bool) -> None:
    events = pa.table({"s": [x]})
    assert cm.Matcher.build({1: text}, events.schema).count(events).tolist() == [truth]


def test_spark_reads_them_alike(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(i, x) for i, (_, x, _) in enumerate(TEXTS)], "i int, s string").coalesce(1)
    found = (
        frame.selectExpr("i", *(f"({text}\n) AS c{i}" for i, (text, _, _) in enumerate(TEXTS))).toArrow().sort_by("i")
    )
    wrong = [text for i, (text, _, truth) in enumerate(TEXTS) if found[f"c{i}"][i].as_py() is not truth]
    assert not wrong


def test_where_colmatch_is_not_spark() -> None:
    """Deliberate: a change here is a change of the language."""
    events = pa.table({"i": pa.array([2**53 + 1, None], pa.int64())})
    matcher = cm.Matcher.build({1: "i < 9223372036854775808"}, events.schema)
    # Spark folds it to TRUE, whatever i is.
    assert matcher.match_lists(events).to_pylist() == [[1], []]
