"""Columns of other types than in the schema: taken value for value, or refused by name and event.

What is right is said by Python's fractions.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from installed import needs
from sizes import THOROUGH

import colmatch as cm

NUMBERS = [
    pa.int8(), pa.int32(), pa.int64(), pa.uint32(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.decimal32(7, 2),
    pa.decimal64(15, 1), pa.decimal128(9, 2), pa.decimal128(18, 0), pa.decimal128(20, 4), pa.decimal128(38, 0), pa.decimal128(38, 10),
    pa.decimal256(50, 3),
]  # fmt: skip
LIMITS = [
    Fraction(sign * (base + delta))
    for sign in (1, -1)
    for base in (0, 1, 2**7, 2**24, 2**31, 2**53, 2**60, 2**63, 2**64, 10**15, 10**18, 10**28 - 1, 10**38 - 1)
    for delta in (0, 1, -1, Fraction(1, 2), Fraction(-1, 4), Fraction(1, 10), Fraction(-1, 10**4))
]


def low_high(type: pa.DataType) -> tuple[int, int]:
    bits = 64  # all whole numbers have keys of 64 bits
    return (0, 2**bits - 1) if type == pa.uint64() else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def holds(type: pa.DataType, value: Fraction) -> bool:
    """Says whether an attribute of a type has a value."""
    if pa.types.is_integer(type):
        low, high = low_high(type)
        return value.denominator == 1 and low <= value <= high
    if pa.types.is_floating(type):
        return math.isfinite(float(value)) and Fraction(float(value)) == value
    unscaled = value * 10**type.scale
    return unscaled.denominator == 1 and abs(unscaled) < 10 ** (18 if type.precision <= 18 else 38)


def given(type: pa.DataType, value: Fraction) -> pa.Array | None:
    """Returns an array of one value, None where the type has it not."""
    if pa.types.is_integer(type):
        info = np.iinfo(type.to_pandas_dtype())
        return pa.array([int(value)], type) if value.denominator == 1 and info.min <= value <= info.max else None
    if pa.types.is_floating(type):
        with np.errstate(over="ignore"):
            made = type.to_pandas_dtype()(float(value))
        return pa.array([made], type) if np.isfinite(made) and Fraction(float(made)) == value else None
    unscaled = value * 10**type.scale
    if unscaled.denominator != 1 or abs(unscaled) >= 10**type.precision:
        return None
    return pa.array([Decimal(f"{int(unscaled)}E-{type.scale}")], type)


def literal(value: Fraction) -> str:
    whole = value * 10**4
    return f"{Decimal(f'{int(whole)}E-4'):f}" if whole.denominator == 1 else str(int(value))


@pytest.mark.parametrize("declared", [pytest.param(type, id=f"declared-{i}") for i, type in enumerate(NUMBERS)])
def test_numbers_of_any_type_are_what_they_are_or_refused(declared: pa.DataType) -> None:
    rng = Random(str(declared))
    rules = {f"x {op} {literal(value)}": (op, value) for value in LIMITS[::3] for op in ("=", "<", ">=")
             if len(literal(value)) < 39}  # fmt: skip
    if pa.types.is_floating(declared):  # a literal that is no double means the nearest one
        rules = {text: (op, Fraction(float(value))) for text, (op, value) in rules.items()}
    matcher = cm.Matcher.build(list(enumerate(rules)), {"x": declared})
    truths = {"=": Fraction.__eq__, "<": Fraction.__lt__, ">=": Fraction.__ge__}
    tried = 0
    for type in NUMBERS:
        for value in LIMITS if THOROUGH else rng.sample(LIMITS, 40):
            array = given(type, value)
            if array is None:
                continue
            tried += 1
            events = pa.table({"x": pa.concat_arrays([pa.nulls(2, type), array])})
            if pa.types.is_floating(declared) and pa.types.is_decimal(type):
                value = Fraction(float(value))  # the nearest double
            if holds(declared, value):
                found = [i for i, (op, other) in enumerate(rules.values()) if truths[op](value, other)]
                assert matcher.match_lists(events).to_pylist() == [[], [], found], (type, value)
            else:
                with pytest.raises(cm.EventError, match="column 'x', event 2: "):
                    matcher.match_lists(events)
    assert tried > 100


def build(rule: str, type: Any) -> cm.Matcher:
    return cm.Matcher.build({1: rule}, {"x": type})


def counts(matcher: cm.Matcher, column: Any) -> list[int]:
    found: list[int] = matcher.count(pa.table({"x": column})).tolist()
    return found


@needs("pandas")
def test_what_pandas_makes_of_whole_numbers_with_holes() -> None:
    import pandas as pd

    matcher = build("x >= 2", "int64")
    assert matcher.count(pd.DataFrame({"x": [1, None, 3]})).tolist() == [0, 0, 1]
    assert counts(matcher, np.array([1.0, math.nan, 3.0])) == [0, 0, 1]
    assert counts(build("x IS NULL", "decimal(20,4)"), np.array([1.0, math.nan])) == [0, 1]
    required = cm.Matcher.build({1: "TRUE"}, pa.schema([pa.field("x", pa.int64(), nullable=False)]))
    assert required.count(pa.table({"x": np.array([1.0, math.nan])})).tolist() == [1, 0]
    kept = cm.Matcher.build({1: "TRUE"}, pa.schema([pa.field("x", pa.float64(), nullable=False)]))
    assert kept.count(pa.table({"x": np.array([1.0, math.nan])})).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("type", "column", "said"),
    [
        (
            "int64",
            pa.array([2.0, 1.5]),
            r"column 'x', event 1: 1.5 is double, the schema says int64, which has no such",
        ),
        ("int64", pa.array([0, 2**63], pa.uint64()), "event 1: 9223372036854775808 is uint64, the schema says int64"),
        ("double", pa.array([0, 2**53 + 1]), "event 1: 9007199254740993 is int64, the schema says double"),
        ("decimal(9,1)", pa.array([Decimal("1.20"), Decimal("1.25")]), "event 1: 1.25 is decimal128"),
        ("decimal(9,1)", pa.array([0.5, 0.1]), "event 1: 0.1 is double, the schema says decimal128"),
        ("decimal(38,0)", pa.array([1.0, math.inf]), "event 1: inf is double"),
        (
            "decimal256(60,1)",
            pa.array([Decimal(1), Decimal("1e40")], pa.decimal256(60, 1)),
            "event 1: 1.*, and decimals of more than 38 digits",
        ),
        (
            "date",
            pa.array([0, 2**62], pa.int64()).view(pa.timestamp("s")),
            "event 1: a value beyond the years 1 to 9999 is timestamp",
        ),
        ("timestamp[ms]", pa.array([1000, 1001], pa.timestamp("us")), "event 1: .* is timestamp"),
        ("date", pa.array([0, 1], pa.timestamp("s")), "event 1: .* is timestamp"),
    ],
)
def test_what_would_lose_a_bit_is_named(type: str, column: pa.Array, said: str) -> None:
    matcher = build("x IS NOT NULL", type)
    with pytest.raises(cm.EventError, match=said):
        counts(matcher, column)
    reader = pa.table({"x": pa.concat_arrays([column.slice(0, 1)] * 9)}).to_batches()
    stream = pa.RecordBatchReader.from_batches(reader[0].schema, [*reader, pa.record_batch({"x": column})])
    with pytest.raises(cm.EventError, match=r"event 10: "):
        list(matcher.match_batches(stream))


def test_moments_of_other_units() -> None:
    assert counts(
        build("x = TIMESTAMP_NTZ '1970-01-01 00:00:01'", "timestamp[s]"), pa.array([10**9, 0], pa.timestamp("ns"))
    ) == [1, 0]
    midnights = pa.array([86_400_000, 0, None], pa.timestamp("ms"))
    assert counts(build("x = DATE '1970-01-02'", "date"), midnights) == [1, 0, 0]
    assert counts(build("x = DATE '1970-01-02'", "date64"), pa.array([1, 0], pa.date32())) == [1, 0]
    assert counts(build("x = TIMESTAMP_NTZ '1970-01-02'", "timestamp[us]"), pa.array([1, 0], pa.date32())) == [1, 0]
    with pytest.raises(cm.EventError, match="column 'x' is date32.*cast it"):
        counts(build("x = TIMESTAMP '1970-01-02'", "timestamp[us, tz=UTC]"), pa.array([1], pa.date32()))


RUNS = pa.RunEndEncodedArray.from_arrays(pa.array([1, 3], pa.int32()), pa.array([1.0, 2.0]))
NESTED: list[tuple[Any, str, Any, list[int]]] = [
    (pa.list_(pa.int64()), "array_contains(x, 2)", pa.array([[1.0, 2.0], None, [], [2.0]]), [1, 0, 0, 1]),
    (pa.list_(pa.int64()), "array_contains(x, 2)", pa.array([[1.0, 2.0], None, [3.0, 2.0]], pa.list_(pa.float32(), 2)), [1, 0, 1]),
    (pa.list_(pa.float64()), "size(x) = 2 AND NOT array_contains(x, 5)", pa.array([[1, 2], [5, 1], [None, 1]]), [1, 0, 0]),
    (pa.list_(pa.int64()), "array_contains(x, 2)", pa.array([[1.0], None, [2.0]], pa.list_view(pa.float64())), [0, 0, 1]),
    (pa.list_(pa.decimal128(38, 1)), "array_contains(x, 0.5)", pa.array([[0.5], None, [2.0]]), [1, 0, 0]),
    (pa.map_(pa.string(), pa.int64()), "x['a'] = 2", pa.array([[("b", 1.0), ("a", 2.0)], None, [("a", None)]],
                                                              pa.map_(pa.string(), pa.float64())), [1, 0, 0]),
    (pa.map_(pa.int64(), pa.decimal128(20, 1)), "x[2] = 2", pa.array([[(2, 2)], None, [(1, 2)]], pa.map_(pa.int8(), pa.int8())), [1, 0, 0]),
    (pa.struct({"y": pa.int64()}), "x.y = 2", pa.array([{"y": 2.0}, None, {"y": 3.0}]), [1, 0, 0]),
    (pa.struct({"y": pa.list_(pa.int64())}), "array_contains(x.y, 2)", pa.array([{"y": [2.0]}, None, {"y": None}]), [1, 0, 0]),
    (pa.struct({"y": pa.int64()}), "x.y = 2", pa.StructArray.from_arrays([RUNS], ["y"]), [0, 1, 1]),
    (pa.int64(), "x = 2", RUNS, [0, 1, 1]),
    (pa.int64(), "x = 2", pa.array([1.0, 2.0, None]).dictionary_encode(), [0, 1, 0]),
    (pa.decimal128(38, 2), "x = 2", pa.array([Decimal(1), Decimal(2), None]).dictionary_encode(), [0, 1, 0]),
    (pa.string(), "x LIKE 'a%'", pa.array(["ab", "b", None], pa.string_view()), [1, 0, 0]),
    (pa.string(), "x LIKE 'a%b'", pa.array(["ab", "b", None], pa.large_string()).dictionary_encode(), [1, 0, 0]),
    (pa.dictionary(pa.int8(), pa.string()), "x = 'ab'", pa.array(["ab", "b", None], pa.large_string()), [1, 0, 0]),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(NESTED)))
def test_what_is_nested_encoded_or_cut(number: int) -> None:
    type, rule, column, found = NESTED[number]
    matcher = build(rule, type)
    assert counts(matcher, column) == found
    assert counts(matcher, column.slice(1)) == found[1:] and counts(matcher, column.slice(1, 0)) == []
    if not pa.types.is_struct(column.type):  # Arrow joins no structs that have runs
        assert counts(matcher, pa.concat_arrays([column, column]).slice(1)) == (found + found)[1:]


def test_nested_values_that_do_not_fit_are_named_by_event() -> None:
    column = pa.array([[1.0], None, [], [2.0, 2.5]])
    with pytest.raises(cm.EventError, match=r"column 'x\[\]', event 3: 2.5 is double"):
        counts(build("array_contains(x, 1)", pa.list_(pa.int64())), column)
    entries = pa.array([[("a", 1.0)], None, [("b", 1.0), ("a", 0.5)]], pa.map_(pa.string(), pa.float64()))
    with pytest.raises(cm.EventError, match=r"column 'x \(its values\)', event 2: 0.5 is double"):
        counts(build("x['a'] = 1", pa.map_(pa.string(), pa.int64())), entries)
    hidden = pa.StructArray.from_arrays([pa.array([1.0, 0.5])], ["y"], mask=pa.array([False, True]))
    assert counts(build("x.y = 1", pa.struct({"y": pa.int64()})), hidden) == [1, 0]


def test_computed_values_take_the_same() -> None:
    matcher = cm.Matcher.build({1: "x * x = 4", 2: "x / x + x = 3.0"}, {"x": "int32"})
    for column in ([2, 1], [2.0, 1.0], [Decimal(2), Decimal(1)], pa.array([2, 1], pa.uint64())):
        assert matcher.match_lists(pa.table({"x": column})).to_pylist() == [[1, 2], []]
    for column, said in (([1, 2**31], "event 1: 2147483648 is int64"), ([1, 1.5], "event 1: 1.5 is double")):
        with pytest.raises(cm.EventError, match=f"column 'x', {said}, the expressions compute with int32"):
            matcher.match(pa.table({"x": column}))


def test_single_events_take_the_same() -> None:
    for type, value, same in (
        ("int64", 2.0, True), ("int64", Decimal("2.0"), True), ("int64", np.float32(2), True), ("int64", 2.5, False),
        ("double", 2**53 + 1, False), ("double", 2**60, True), ("double", Decimal("1.1"), True), ("float", Decimal("1e50"), True),
        ("decimal(9,2)", 2, True),
        ("decimal(9,2)", 2.5, True), ("decimal(9,2)", 0.1, False), ("decimal(38,0)", 10**30, True), ("int32", 2**31, True),
        ("int32", 2**63, False),
        ("decimal(38,0)", 10**38, False),
    ):  # fmt: skip
        matcher = build("x > 1", type)
        if same:
            assert matcher.match_one({"x": value}) == [1], (type, value)
        else:
            with pytest.raises(cm.EventError, match="column 'x' is"):
                matcher.match_one({"x": value})
    assert build("x IS NULL", "int64").match_one({"x": math.nan}) == [1]
    assert build("x = DATE '2013-01-31'", "date").match_one({"x": dt.date(2013, 1, 31)}) == [1]


def test_spark_hands_over_other_types(spark: Any) -> None:
    from colmatch.spark import match

    matcher = cm.Matcher.build({1: "n >= 2 AND price < 10.5"}, {"n": "int64", "price": "decimal(20,4)"})
    good = spark.sql("SELECT * FROM VALUES (2.0D, 10), (1.0D, 1), (3.0D, 11) AS t(n, price)").coalesce(1)
    assert [row.n for row in match(good, matcher, keep=["n"]).collect()] == [2.0]
    with pytest.raises(Exception, match="column 'n', event 1: 2.5 is double, the schema says int64"):
        match(spark.sql("SELECT * FROM VALUES (2.0D, 1), (2.5D, 1) AS t(n, price)").coalesce(1), matcher).collect()
