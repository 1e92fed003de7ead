"""Decimals in a column of floats: the nearest float, as Spark and Arrow cast them."""

from __future__ import annotations

from decimal import Decimal
from random import Random

import pyarrow as pa
import pytest

import colmatch as cm

D = Decimal


@pytest.mark.parametrize("name", ["double", "float"])
def test_the_nearest_float_is_matched(name: str) -> None:
    rng = Random(7)
    for precision, scale in ((3, 2), (38, 30), (38, 0), (9, 4)):
        values = [D(rng.randrange(-(10**precision) + 1, 10**precision)).scaleb(-scale) for _ in range(40)]
        column = pa.array(values, pa.decimal128(precision, scale))
        rules = {n: f"x = CAST('{float(value)!r}' AS DOUBLE)" for n, value in enumerate(values)}
        matcher = cm.Matcher.build(rules, {"x": name})
        for events in (pa.table({"x": column}), pa.table({"x": column.cast(pa.decimal256(precision, scale))})):
            found = matcher.match_lists(events).to_pylist()
            assert all(n in ids for n, ids in enumerate(found))
        assert all(n in matcher.match_one({"x": value}) for n, value in enumerate(values))


@pytest.mark.parametrize("name", ["double", "float"])
def test_decimals_of_every_shape(name: str) -> None:
    matcher = cm.Matcher.build({1: "x > 1", 2: "x IS NULL"}, {"x": name})
    column = pa.array([D("100"), D("-2300"), None], pa.decimal128(5, -2))
    assert matcher.match_lists(pa.table({"x": column})).to_pylist() == [[1], [], [2]]
    narrow = pa.array([D("1.10"), None], pa.decimal32(3, 2))
    assert matcher.match_lists(pa.table({"x": narrow})).to_pylist() == [[1], [2]]
    for value, wanted in ((D("1.10"), [1]), (D("1E-400"), []), (D("NaN"), [1]), (D("Infinity"), [1])):
        assert list(matcher.match_one({"x": value})) == wanted


def test_decimals_in_lists_maps_and_structs() -> None:
    types = {"l": "array<double>", "m": "map<string,double>", "s": "struct<x:double>"}
    matcher = cm.Matcher.build({1: "array_contains(l, 1.1)", 2: "m['k'] = 1.1", 3: "s.x = 1.1"}, types)
    row = {"l": [D("1.1"), None], "m": {"k": D("1.1")}, "s": {"x": D("1.1")}}
    assert list(matcher.match_one(row)) == [1, 2, 3]
    number = pa.decimal128(3, 2)
    schema = pa.schema(
        [("l", pa.list_(number)), ("m", pa.map_(pa.string(), number)), ("s", pa.struct([("x", number)]))]
    )
    batch = pa.Table.from_pylist([row | {"m": [("k", D("1.1"))]}], schema)
    assert matcher.match_lists(batch).to_pylist() == [[1, 2, 3]]


def test_what_loses_more_is_an_error() -> None:
    for type in ("float", "double"):
        matcher = cm.Matcher.build({1: "x > 1"}, {"x": type})
        large = pa.table({"x": pa.array([D(1), D("1e50")], pa.decimal256(60, 0))})
        assert matcher.match_lists(large).to_pylist() == [[], [1]]
        assert list(matcher.match_one({"x": D("1e50")})) == [1]
        with pytest.raises(cm.EventError, match=f"column 'x' is {type}, and .* is not: it is too large"):
            matcher.match_one({"x": D("1e400")})
    whole = cm.Matcher.build({1: "x > 1"}, {"x": "int64"})
    for value in (D("1.10"), 1.1):
        with pytest.raises(cm.EventError, match="lose a part"):
            whole.match_one({"x": value})
        with pytest.raises(cm.EventError, match="no such value"):
            whole.match(pa.table({"x": [value]}))
