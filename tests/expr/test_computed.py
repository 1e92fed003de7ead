"""Computed values in expressions: how they are read, their normal form, and what is refused."""

import re

import pyarrow as pa
import pytest
from inside import attributes
from text_values import parse

import colmatch as cm
from colmatch import col, function
from colmatch.expr.ast import Expr

SCHEMA = pa.schema(
    {
        "a": pa.int32(), "b": pa.int32(), "n": pa.int64(), "f": pa.float64(), "s": pa.string(), "t": pa.string(),
        "flag": pa.bool_(), "d": pa.decimal128(10, 2), "e": pa.decimal128(18, 12), "day": pa.date32(), "u": pa.uint64(),
        "at": pa.timestamp("us", "UTC"), "ns": pa.timestamp("ns"), "l": pa.list_(pa.int32()),
        "m": pa.map_(pa.string(), pa.int32()), "user": pa.struct({"age": pa.int32()}),
    }
)  # fmt: skip


def names(*texts: str) -> list[str]:
    matcher = cm.Matcher.build(dict(enumerate(texts)), SCHEMA)
    return [attribute.name for attribute in attributes(matcher)]


@pytest.mark.parametrize(
    ("text", "built"),
    [
        ("a < b", col("a") < col("b")),
        ("a <> b", col("a") != col("b")),
        ("a >= b", col("a") >= col("b")),
        ("(a * b) > 100", col("a") * col("b") > 100),
        ("(a + (2 * b)) IN (1, 2)", (col("a") + 2 * col("b")).isin([1, 2])),
        ("lower(s) = 'x'", function("lower", col("s")) == "x"),
        ("substring(s, 1, 2) LIKE 'x%'", function("substring", col("s"), 1, 2).like("x%")),
        ("CAST(a AS BIGINT) IS NULL", col("a").cast("BIGINT").is_null()),
        ("(user.age % 7) = 1", col("user.age") % 7 == 1),
        ("-(a) = 1", -col("a") == 1),
        ("date_trunc('day', at) = at", function("date_trunc", "day", col("at")) == col("at")),
    ],
)
def test_text_and_builder_are_one(text: str, built: Expr) -> None:
    assert str(built).replace("((", "(") in (text, str(parse(text)))
    assert parse(str(built)) == built
    assert str(parse(text)) == str(built)


@pytest.mark.parametrize(
    "texts",
    [
        ("a < b", "b > a", "a >= b", "NOT (a < b)", "A < B"),
        ("a * b = 1", "b * a > 3", "(b)*a IN (4, 5)"),
        ("substr(s, 1, 2) = 'x'", "SUBSTRING(s, 1, 2) <> 'y'"),
        ("cast(a AS long) = 1", "CAST(a AS BIGINT) = 2"),
    ],
)
def test_equal_values_are_one_attribute(texts: tuple[str, ...]) -> None:
    assert len(names(*texts)) == 1


def test_literals_are_a_part_of_values() -> None:
    """Texts of one shape share their form only where literals outside of values differ."""
    texts = {i: f"n % {i // 5 + 2} = {i % 5} AND a > {i}" for i in range(60)}
    matcher = cm.Matcher.build(texts, SCHEMA)
    for n in (0, 7, 11, 12):
        events = pa.table({"n": [n], "a": pa.array([30], pa.int32())})
        assert matcher.match(events)["subscription"].to_pylist() == [
            i for i in texts if n % (i // 5 + 2) == i % 5 and i < 30
        ]
    assert names("a % 1 = 2", "a % 1L = 2", "a % 1.0D = 2") == ["a % 1", "a % 1L", "a % 1.0D"]


@pytest.mark.parametrize(
    ("text", "says", "column"),
    [
        ("flag AND a + s > 1", "'+' needs numbers, not string", 10),
        ("flag AND s < a", "a comparison takes values of one type, not", 10),
        ("d / 2 > 1", "'/' of decimals is not computed as Spark rounds it", 1),
        ("d / 2 > 1", "'/' of decimals", 1),
        ("d * d * d * d > 1", "'*' makes decimals of 43 digits", 1),
        ("lower(a) = 'x'", "lower needs a string, not int: cast it, as in lower(name)", 7),
        ("a || s = 'x'", "concat needs a string, not int: cast it; between conditions, write OR for ||", 1),
        (
            "a > 1 AND lower(s, t) = 'x'",
            "lower has too few or too many arguments here: it is written lower(string), as in",
            11,
        ),
        ("year(a) = 1", "year needs a date or timestamp, not int", 6),
        ("hour(day) = 1", "hour needs a timestamp, not date", 6),
        ("date_trunc('eon', at) = at", "date_trunc takes a unit", 19),
        ("cidr_contains('10.0.0.0/99', s)", "'10.0.0.0/99' is not a network", 30),
        ("cidr_contains(s, '10.0.0.0/8')", "cidr_contains takes a network", 15),
        ("substring(s, a) = 'x'", "substring takes a literal whole number here, as in substring(", 11),
        ("CAST(a AS blob) = 1", "CAST knows no type 'blob'", 6),
        ("CAST(f AS STRING) = 'x'", "CAST of double to string", 6),
        ("year(ns) = 1", "column 'ns' is timestamp[ns]", 6),
        ("l + 1 > 2", "column 'l' is list", 1),
        ("length(l) = 2", "an element, as in l[0], or write size(l) for their number", 8),
        ("a > > 3", "something is missing after '>'", 3),
        ("a < < 3", "something is missing after '<'", 3),
        ("s = '>>' AND a > /* > > */ > 3", "something is missing after '>'", 16),
        ("s = '2024-01-01' AND day > a", "a comparison takes values of one type, not", 28),
        ("a > 2024-01-01 AND day = a", "a comparison takes values of one type, not", 20),
        ("a = 1 AND at > 2024-01-01", "write TIMESTAMP '2024-01-01 00:00:00'", 16),
        ("flag AND day > a AND a = 2024-01-01", "a comparison takes values of one type, not", 16),
        ("flag AND 2026-01-05 < day", "2026-01-05 is a subtraction: write DATE '2026-01-05'", 10),
        ("day > 2024-13-77", "a comparison takes values of one type, not", 1),
        ("+s = 'x'", "positive needs a number, not string", 2),
        ("+(a > 3)", "positive needs a number, not boolean", 3),
        ("a & 1 << 3 = 1", "put parentheses around one of them", 1),
        ("day > 2026-01-05", "2026-01-05 is a subtraction: write DATE '2026-01-05'", 7),
        ("flag AND day BETWEEN 2026-01-05 AND 2026-02-01", "is a subtraction: write DATE '2026-01-05'", 22),
        ("s = XYZ", "unknown attribute 'XYZ': the schema has", 5),
        ("s = XYZ", "; if it is a text, write 'XYZ'", 5),
        ("s IN ('DE', FR)", "did you mean 'f'? If it is a text, write 'FR'", 13),
        ("m[5] + 1 > 2", "the keys of 'm' are string: write a string", 1),
        ("size(s) > a", "size needs a list or map column; 's' is string", 6),
        ("size(a + 1) = 3", "size(...) takes the name of one list or map column", 6),
        ("size(upper(s)) LIKE 'X%'", "size(...) takes the name of one list or map column", 12),
        ("flag AND cardinality(a * 2) BETWEEN 3 AND 5", "size(...) takes the name of one list or map column", 22),
        ("nothing + 1 > 2", "unknown attribute 'nothing'", 1),
        ("a + X'1F' > 2", "'+' needs numbers, not binary", 1),
        ("flag AND (a = 1) = array_contains(l, 1)", "this condition cannot be a part of a value", 35),
        ("a" + " + 1" * 80 + "= 1", "nests deeper than 64", 1),
        ("a + DATE '2024-02-30' > 1", "'2024-02-30' is not a day", 1),
    ],
)
def test_refused(text: str, says: str, column: int) -> None:
    with pytest.raises(cm.ExpressionError, match=re.escape(says)) as found:
        cm.Matcher.build({1: text}, SCHEMA)
    assert found.value.line == 1 and found.value.column == column


@pytest.mark.parametrize("text", ["s = `XYZ`", "XYZ > 3", "a < XYZ", "lower(XYZ) = 'x'", "s = 'IN (' || XYZ"])
def test_a_name_that_is_no_value_gets_no_hint_about_texts(text: str) -> None:
    with pytest.raises(cm.ExpressionError, match="unknown attribute 'XYZ'") as found:
        cm.Matcher.build({1: text}, SCHEMA)
    assert "if it is a text" not in str(found.value)


def test_the_builder_refuses() -> None:
    for make, says in [
        (lambda: col("a") + None, "NULL and bytes"),
        (lambda: function("if", col("a") > 1, 1, 2), "a condition cannot be an argument of function.'if'.: write"),
        (lambda: function("randstr", col("s")), "there is no function 'randstr'"),
        (lambda: col("a").cast(int), "cast takes the name of a type"),
        (lambda: col("a").isin([col("b")]), "a value is needed here"),
    ]:
        with pytest.raises(cm.ExpressionError, match=says):
            make()


def test_an_empty_text_is_at_the_first_place() -> None:
    rules = {1: "instr(s, '', 11, 10) = 1", 2: "instr(s, '', -1, 1) = 1", 3: "locate('', s, 5) = 1"}
    assert cm.Matcher.build(rules, {"s": "string"}).match_one({"s": "ab"}) == [1, 2, 3]
