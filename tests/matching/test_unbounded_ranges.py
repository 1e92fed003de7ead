"""Ranges without a bound reach the first and the last value of the attribute's type, no farther."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from contract import lists
from oracle import Expr, lit, meets, to_sql

import colmatch as cm

INF, NAN = math.inf, math.nan
D = Decimal
WIDTHS = [(pa.int8(), 8, True), (pa.int16(), 16, True), (pa.int32(), 32, True), (pa.int64(), 64, True)]
WIDTHS += [(pa.uint8(), 8, False), (pa.uint16(), 16, False), (pa.uint32(), 32, False), (pa.uint64(), 64, False)]


def of_width(type: pa.DataType, bits: int, signed: bool) -> Any:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    beside = [low + 1, 7, high - 1]
    return pytest.param(
        type, [low, *beside, high], [low - 1, low, *beside, high, high + 1, 2**70, D("7.5")], id=str(type)
    )


DAYS = [dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(9999, 12, 31)]
TIMES = [dt.datetime(1, 1, 1), dt.datetime(1970, 1, 1), dt.datetime(9999, 12, 31)]
BEYOND = [dt.datetime(1600, 1, 1), dt.datetime(1970, 1, 1), dt.datetime(2300, 1, 1)]  # of nanoseconds
TEXTS = ["", "!", "a", "aa", "b", "b!"]
# type, values that there are (the first and the last of them, where there is a last), literals
TYPES = [
    *(of_width(*width) for width in WIDTHS),
    pytest.param(
        pa.decimal128(4, 2),
        [D("-99.99"), D("-99.98"), D("0"), D("99.98"), D("99.99")],
        [D("-100"), D("-99.99"), D("0"), D("99.99"), D("99.995"), D("100"), 10**30],
        id="decimal",
    ),
    pytest.param(pa.float64(), [-INF, -1e308, 0.0, 1e308, INF, NAN], [-INF, -1e308, 1e308, INF, NAN], id="double"),
    pytest.param(pa.float32(), [-INF, 0.0, 0.5, 2.0**127, INF, NAN], [-INF, 0.5, 2.0**127, INF, NAN], id="float"),
    pytest.param(pa.date32(), DAYS, DAYS[1:2], id="date32"),
    pytest.param(pa.date64(), DAYS, DAYS[1:2], id="date64"),
    pytest.param(pa.timestamp("us"), TIMES, TIMES[1:2], id="timestamp[us]"),
    pytest.param(pa.timestamp("ns"), [dt.datetime(1678, 1, 1), BEYOND[1], dt.datetime(2262, 1, 1)], BEYOND, id="timestamp[ns]"),
    pytest.param(pa.string(), TEXTS, ["", "a", "b"], id="string"),
    pytest.param(pa.large_string(), TEXTS, ["", "a", "b"], id="large_string"),
    pytest.param(pa.dictionary(pa.int8(), pa.string()), TEXTS, ["", "a", "b"], id="dictionary"),
    pytest.param(pa.binary(), [x.encode() for x in TEXTS], [b"", b"a", b"b"], id="binary"),
    pytest.param(
        pa.binary(2), [b"\0\0", b"\0\1", b"ab", b"\xff\xff"],
        [b"", b"\0", b"\0\0", b"ab", b"\xff\xff", b"\xff\xff\0"], id="fixed_size_binary",
    ),
    pytest.param(pa.bool_(), [False, True], [False, True], id="bool"),
    pytest.param(pa.dictionary(pa.int8(), pa.int16()), [-(2**15), 7, 2**15 - 1], [-(2**15) - 1, 7, 2**15], id="of int16"),
]  # fmt: skip


def written(values: list[Any], type: pa.DataType) -> pa.Array:
    dictionary = pa.types.is_dictionary(type)
    return pa.array(values, type.value_type).dictionary_encode() if dictionary else pa.array(values, type)


@pytest.mark.parametrize("kind", ["scan", "betree", "bestar", "opindex"])
@pytest.mark.parametrize(("type", "values", "literals"), TYPES)
def test_the_values_of_a_type_are_all_that_an_unbounded_range_has(
    kind: str, type: pa.DataType, values: list[Any], literals: list[Any]
) -> None:
    column: Expr = ("col", "x")
    rules: list[Expr] = [(op, column, lit(x)) for op in ("=", "<>", "<", "<=", ">", ">=") for x in literals]
    rules += [("not", rule) for rule in rules]
    rules += [("and", (">", column, lit(a)), ("<", column, lit(b))) for a in literals[:2] for b in literals[-2:]]
    rules += [("is null", column), ("is not null", column)]
    matcher = cm.Matcher.build({i: to_sql(rule) for i, rule in enumerate(rules)}, {"x": type}, index=kind)
    middle = values[len(values) // 2]
    ends = [(None, middle), (middle, None), (None, values[0]), (values[-1], None), (None, None)]
    rows = pa.table({"low": written([low for low, _ in ends], type), "high": written([high for _, high in ends], type)})
    found = lists(matcher.match_lists(rows, ranges={"x": ("low", "high")}))
    for (low, high), ids in zip(ends, found, strict=True):
        begin = 0 if low is None else values.index(low)
        end = len(values) if high is None else values.index(high) + 1
        some = [None] if low is None and high is None else values[begin:end]
        wanted = [i for i, rule in enumerate(rules) if meets(rule, {}, {"x": some})]
        assert sorted(ids) == wanted, [(low, high, to_sql(rules[i]), i in wanted) for i in sorted({*ids} ^ {*wanted})]


@pytest.mark.parametrize("kind", ["scan", "bestar"])
def test_an_end_beyond_the_type_is_a_range_of_one_value(kind: str) -> None:
    """Columns of wider types fit, and their values are seen as in any column."""
    rules = {"four": "x = 4000000000", "more": "x > 4000000000", "less": "x < -4000000000", "some": "x IS NOT NULL"}
    matcher = cm.Matcher.build(rules, {"x": "int32"}, index=kind)
    rows = pa.table({"low": [4_000_000_000, 5_000_000_000, None, 0], "high": [None, None, -5_000_000_000, None]})
    found = lists(matcher.match_lists(rows, ranges={"x": ("low", "high")}))
    assert found == [["four", "some"], ["more", "some"], ["less", "some"], ["some"]]
