"""Decimals of 19 to 38 digits: at the limits of 64 bits and of the type, with literals near them.

Python's decimals judge, and DuckDB.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Context, Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from installed import needs

import colmatch as cm
from colmatch.events.exact import ordered_bytes
from colmatch.lowering.wide import wide_bytes, wide_text

EXACT = Context(prec=200)
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
TYPES = [(19, 0), (20, 4), (38, 0), (38, 10), (38, 18), (38, 30)]
Truth = Callable[[Decimal], bool]


def limits(precision: int, scale: int) -> list[Decimal]:
    top = 10**precision - 1
    around = [0, 5, 100, 2**63, 2**64, 10**18, 10**19, 2**56, 2**120, top, top - 1]
    numbers = {sign * (number + delta) for sign in (1, -1) for number in around for delta in (-1, 0, 1)}
    return [EXACT.scaleb(Decimal(number), -scale) for number in sorted(numbers) if abs(number) <= top]


def texts_of_literals(values: list[Decimal], scale: int) -> list[str]:
    """Writes literals on the values, just above and just below; the language has 38 digits."""
    unit = EXACT.scaleb(Decimal(1), -scale)
    near = [
        EXACT.add(value, EXACT.multiply(unit, Decimal(part))) for value in values for part in ("0", "0.5", "-0.001")
    ]
    texts = [f"{number:f}" for number in near]
    return [text for text in texts if sum(map(str.isdigit, text)) <= 38]


def rules_of(texts: list[str], rng: Random) -> list[tuple[str, Truth]]:
    rules: list[tuple[str, Truth]] = []
    for text in texts:
        for op, holds in OPERATORS.items():
            rules.append((f"x {op} {text}", lambda x, holds=holds, text=text: holds(x, Decimal(text))))
    for _ in range(40):
        low, high = sorted(rng.sample(texts, 2), key=Decimal)
        few = rng.sample(texts, 4)
        inside: Truth = lambda x, low=low, high=high: Decimal(low) <= x <= Decimal(high)  # noqa: E731
        rules.append((f"x BETWEEN {low} AND {high}", inside))
        rules.append((f"NOT (x BETWEEN {low} AND {high})", lambda x, inside=inside: not inside(x)))
        rules.append((f"x IN ({', '.join(few)})", lambda x, few=few: x in map(Decimal, few)))
        rules.append((f"x NOT IN ({', '.join(few)})", lambda x, few=few: x not in map(Decimal, few)))
    return rules


def found(matcher: cm.Matcher, events: Any) -> Any:
    return matcher.match_lists(events).to_pylist()


@pytest.mark.parametrize(("precision", "scale"), TYPES)
def test_every_value_is_compared_exactly(precision: int, scale: int, tmp_path: Path) -> None:
    rng = Random(precision + scale)
    values = limits(precision, scale)
    rules = rules_of(texts_of_literals(values, scale), rng)
    type = pa.decimal128(precision, scale)
    events = pa.table({"x": pa.array([*values, None], type)})
    expected = [[i for i, (_, truth) in enumerate(rules) if truth(value)] for value in values] + [[]]
    texts = [(i, text) for i, (text, _) in enumerate(rules)]
    matcher = cm.Matcher.build(texts, events.schema, "bitslice")
    assert found(matcher, events) == expected
    matcher.save(tmp_path / "saved")
    assert found(cm.Matcher.open(tmp_path / "saved"), events) == expected
    pages = cm.index("pbtree", path=str(tmp_path / "pages"))
    with cm.Matcher.build(texts[::7], events.schema, pages) as paged:
        assert found(paged, events) == [[i for i in some if i % 7 == 0] for some in expected]


def test_literals_that_come_with_updates() -> None:
    values = limits(38, 2)
    rules = rules_of(texts_of_literals(values, 2), Random(3))[::9]
    matcher = cm.Matcher.build([], {"x": "decimal(38,2)"}, "scan")
    for i, (text, _) in enumerate(rules):
        matcher.insert({i: text})
    events = pa.table({"x": pa.array(values, pa.decimal128(38, 2))})
    expected = [[i for i, (_, truth) in enumerate(rules) if truth(value)] for value in values]
    assert found(matcher, events) == expected
    assert [matcher.match_one({"x": value}) for value in values] == expected
    matcher.compact()
    assert found(matcher, events) == expected


@needs("duckdb")
def test_duckdb_agrees() -> None:
    import duckdb

    for precision, scale in TYPES[1:4]:
        values = limits(precision, scale)
        texts = [f"{value:f}" for value in values]
        rules = [f"x {op} {text}" for text in texts for op in OPERATORS]
        events = pa.table({"nr": range(len(values)), "x": pa.array(values, pa.decimal128(precision, scale))})
        told = duckdb.sql(f"SELECT {', '.join(f'({rule})' for rule in rules)} FROM events ORDER BY nr").fetchall()
        matcher = cm.Matcher.build(list(enumerate(rules)), events.schema)
        assert found(matcher, events) == [[i for i, truth in enumerate(row) if truth] for row in told]
    sums = duckdb.sql("SELECT sum(i) AS total FROM (VALUES (1), (5), (NULL)) AS t(i) GROUP BY i ORDER BY i")
    assert found(cm.Matcher.build({1: "total > 1"}, sums), sums) == [[], [1], []]


def test_bytes_have_the_order_of_numbers_and_tell_them() -> None:
    rng = Random(7)
    near = [sign * (256**size + delta) for size in range(16) for delta in (-1, 0, 1) for sign in (1, -1)]
    some = [rng.randrange(-(10**size), 10**size) for size in range(1, 38) for _ in range(50)]
    numbers = [*near, *some, 0, 10**38 - 1, 1 - 10**38]
    numbers = [number for number in numbers if abs(number) < 10**38]
    column = pa.array([*map(Decimal, numbers), None], pa.decimal128(38, 0))
    made = ordered_bytes(column).to_pylist()
    assert made.pop() is None and made == [wide_bytes(Decimal(number), 0) for number in numbers]
    assert [number for _, number in sorted(zip(made, numbers, strict=True))] == sorted(numbers)
    assert [wide_text(data, 0) for data in made] == list(map(str, numbers))
    assert ordered_bytes(column.slice(9, 20)).to_pylist() == made[9:29]
    assert ordered_bytes(column.slice(0, 0)).to_pylist() == []


@pytest.mark.parametrize(
    ("literal", "said"),
    [
        ("1.005", "1.005"), ("-1.005", "-1.005"), ("0.1", "0.10"), ("-0.0057", "-0.0057"), ("0", "0.00"), ("1e60", "1E+60"),
        ("-1e60", "-1E+60"), ("NaN", "CAST('NaN' AS DOUBLE)"), ("-Infinity", "CAST('-Infinity' AS DOUBLE)"), ("1e-5000", "0.00"),
    ],
)  # fmt: skip
def test_literals_are_told_as_they_were(literal: str, said: str) -> None:
    assert wide_text(wide_bytes(Decimal(literal), 2), 2) == said


@pytest.mark.usefixtures("kept_predicates")
def test_explanations_have_the_literal() -> None:
    matcher = cm.Matcher.build({1: "x > 1.005 AND x < 100000000000000000000"}, {"x": "decimal(38,2)"})
    said = str(matcher.explain({"x": Decimal("1.01")}, 1))
    assert "1.005" in said and "100000000000000000000.00" in said and "[1.01]" in said


def test_literals_of_every_kind() -> None:
    rules = {
        1: "x > 2",
        2: "x > 2.5",
        3: "x > 2.5e0",
        4: "x < CAST('NaN' AS DOUBLE)",
        5: "x > 1e300",
        6: "x > -1e300",
        7: "x > 1e-300",
    }
    matcher = cm.Matcher.build(rules, {"x": "decimal(38,1)"})
    values = [Decimal("2.5"), Decimal("2.6"), Decimal("0.0"), Decimal("0.1"), Decimal("-0.1")]
    events = pa.table({"x": pa.array(values, pa.decimal128(38, 1))})
    assert found(matcher, events) == [[1, 4, 6, 7], [1, 2, 3, 4, 6, 7], [4, 6], [4, 6, 7], [4, 6]]
    built = cm.Matcher.build(
        [(1, cm.col("x") >= Decimal("2.55")), (2, cm.col("x").isin([2, 2.5]))], {"x": "decimal(38,2)"}
    )
    assert [built.match_one({"x": Decimal(text)}) for text in ("2.54", "2.55", "2.50")] == [[], [1], [2]]
    with pytest.raises(cm.ExpressionError, match="column 'x' is decimal128.*a string: write a number"):
        cm.Matcher.build({1: "x = 'a'"}, {"x": "decimal(38,1)"})


def test_tables_of_predicates() -> None:
    ten = Decimal(10) ** 30
    rows = {
        "id": [1, 2, 3],
        "attribute": ["x"] * 3,
        "op": [">", "=", "<="],
        "operands": pa.array([[ten], [-ten], [Decimal("0.5")]], pa.list_(pa.decimal128(38, 1))),
    }
    matcher = cm.Matcher.build(cm.PredicateTable(rows), {"x": "decimal(38,0)"})
    values = pa.array([ten, Decimal(10**30 + 1), -ten, Decimal(0), Decimal(1)], pa.decimal128(38, 0))
    assert found(matcher, pa.table({"x": values})) == [[], [1], [2, 3], [3], []]


def test_computed_decimals() -> None:
    rules = {1: "CAST(x AS DOUBLE) > 9007199254740992", 2: "x * 3 > 30000000000000000000", 3: "x + y = 0.1", 4: "x = y"}
    matcher = cm.Matcher.build(rules, {"x": "decimal(20,4)", "y": "decimal(25,4)"})
    rows = [
        ("9007199254740993.0001", "0"),
        ("10000000000000.0001", "0"),
        ("9999999999999999.9999", "1"),
        ("0.1", "0"),
        ("5", "5"),
    ]
    x, y = zip(*rows, strict=True)
    columns = {
        "x": pa.array(map(Decimal, x), pa.decimal128(20, 4)),
        "y": pa.array(map(Decimal, y), pa.decimal128(25, 4)),
    }
    assert found(matcher, pa.table(columns)) == [[1], [], [1], [3], [4]]
    assert float(Decimal(x[0])) == 9007199254740994.0  # what 2**53 + 1 and a bit is rounded to


def test_ranges_in_events() -> None:
    matcher = cm.Matcher.build({1: "x = 10000000000000000000000", 2: "x < 0"}, {"x": "decimal(38,0)"})
    ends = {"low": ["0", "-5", None], "high": ["99999999999999999999999", "-1", "-1"]}
    events = {name: pa.array([v and Decimal(v) for v in some], pa.decimal128(38, 0)) for name, some in ends.items()}
    assert matcher.match_lists(pa.table(events), ranges={"x": ("low", "high")}).to_pylist() == [[1], [2], [2]]


def test_spark_hands_over_long_decimals(spark: Any) -> None:
    from colmatch.spark import match

    matcher = cm.Matcher.build({1: "amount >= 12345678901234567.8901"}, {"amount": "decimal(21,4)"})
    frame = spark.sql(
        "SELECT amount FROM VALUES (12345678901234567.8901BD), (12345678901234567.8900BD), (NULL) AS t(amount)"
    )
    assert [str(row.amount) for row in match(frame, matcher, keep=["amount"]).collect()] == ["12345678901234567.8901"]
