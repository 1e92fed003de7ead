"""Floors of literals and the intervals of operators, against exact arithmetic in Python."""

from __future__ import annotations

import datetime as dt
import math
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import colmatch as cm
from colmatch.given.schema import Family, Type
from colmatch.given.session import Session
from colmatch.kernels.layout import KEY_MAX, KEY_MIN
from colmatch.lowering.floors import LiteralErrors, Side, intervals, literal_floors, numbers_of_double
from colmatch.lowering.forms import Kind, Op

INT = Type(Family.INT)
OPS = {
    Op.EQ: lambda value, literal: value == literal,
    Op.LT: lambda value, literal: value < literal,
    Op.LE: lambda value, literal: value <= literal,
    Op.GT: lambda value, literal: value > literal,
    Op.GE: lambda value, literal: value >= literal,
}

numbers = st.one_of(
    st.integers(-5, 5).map(str),
    st.sampled_from(
        [
            str(KEY_MAX),
            str(KEY_MIN),
            str(KEY_MAX + 1),
            str(KEY_MIN - 1),
            "1e40",
            "-1e40",
            "1e-60",
            "-1e-60",
            "1e999999999",
        ]
    ),
    st.decimals(-5, 5, places=3).map(str),
)
edges = st.one_of(st.integers(-6, 6), st.sampled_from([KEY_MIN, KEY_MIN + 1, KEY_MAX - 1, KEY_MAX, 2**53 + 1]))


def holds(op: Op, type: Type, kind: Kind, text: str, key: int, zone: str = "UTC") -> bool:
    lo, hi = intervals(op, [literal_floors(type, kind, [text], False, Session(zone))])
    return bool(lo[0] <= key <= hi[0])


def exact(text: str) -> Fraction | float:
    number = Decimal(text)
    return math.inf if number.adjusted() > 100 else Fraction(number)


@given(st.sampled_from(sorted(OPS)), numbers, edges)
def test_whole_numbers_compare_exactly(op: Op, text: str, value: int) -> None:
    assert holds(op, INT, Kind.DECIMAL, text, value) == OPS[op](value, exact(text))


@given(st.sampled_from(sorted(OPS)), numbers, st.integers(0, 2**64 - 1) | st.integers(0, 6))
def test_uint64_compares_exactly(op: Op, text: str, value: int) -> None:
    assert holds(op, Type(Family.UINT64), Kind.DECIMAL, text, value - 2**63) == OPS[op](value, exact(text))


@given(st.sampled_from(sorted(OPS)), numbers, st.integers(-6000, 6000), st.integers(0, 3))
def test_decimals_compare_exactly(op: Op, text: str, unscaled: int, scale: int) -> None:
    value = Fraction(unscaled, 10**scale)
    assert holds(op, Type(Family.DECIMAL, scale=scale), Kind.DECIMAL, text, unscaled) == OPS[op](value, exact(text))


def test_literals_of_one_conversion_keep_their_places() -> None:
    floor, _ = literal_floors(INT, Kind.INT, ["3", str(2**63), "-1"], False, Session("UTC"))
    assert floor.tolist() == [3, KEY_MAX, -1]
    assert literal_floors(INT, Kind.INT, ["9223372036854775808"], True, Session("UTC"))[0].tolist() == [KEY_MIN]


def test_bad_literals_are_named_by_position() -> None:
    with pytest.raises(LiteralErrors) as caught:
        literal_floors(Type(Family.DATE), Kind.STRING, ["2013-01-31", "2013-02-30", "soon"], False, Session("UTC"))
    assert set(caught.value.reasons) == {1, 2}
    assert "calendar" in caught.value.reasons[1]


@pytest.mark.parametrize(
    ("text", "zone", "session", "expected"),
    [
        ("2013-07-01 10:00:00", "UTC", "UTC", "2013-07-01T10:00:00"),
        ("2013-07-01 10:00:00", "UTC", "America/New_York", "2013-07-01T14:00:00"),
        ("2013-07-01 10:00:00+02:00", "UTC", "America/New_York", "2013-07-01T08:00:00"),
        ("2013-07-01T10:00:00Z", "Europe/Paris", "America/New_York", "2013-07-01T10:00:00"),
        ("2013-07-01 10:00:00 Europe/Paris", "UTC", "UTC", "2013-07-01T08:00:00"),
        ("2013-07-01", "UTC", "UTC", "2013-07-01T00:00:00"),
        ("2013-07-01 10:00:00", None, "America/New_York", "2013-07-01T10:00:00"),
        ("2013-07-01 10:00:00Z", None, "America/New_York", "2013-07-01T06:00:00"),
    ],
)
def test_timestamps_and_zones(text: str, zone: str | None, session: str, expected: str) -> None:
    floor, place = literal_floors(
        Type(Family.TIMESTAMP, unit="us", zone=zone), Kind.TIMESTAMP, [text], False, Session(session)
    )
    assert floor[0] == int(np.datetime64(expected, "us").astype(np.int64))
    assert place[0] == 0


@given(st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)), st.sampled_from(["s", "ms", "us", "ns"]))
def test_timestamps_finer_than_the_column_lie_between_its_keys(moment: dt.datetime, unit: str) -> None:
    type = Type(Family.TIMESTAMP, unit=unit)
    floor, place = literal_floors(type, Kind.TIMESTAMP, [moment], False, Session("UTC"))
    there = np.datetime64(moment, "us").astype(f"datetime64[{unit}]")
    assert floor[0] == there.astype(np.int64)
    assert (place[0] == 0) == (there.astype("datetime64[us]") == np.datetime64(moment, "us"))


doubles = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**70), 2**70).map(float),
    st.integers(-(10**20), 10**20).map(lambda n: n / 1000),
    st.sampled_from(
        [sign * (2.0**bits + more) for bits in (52, 53, 54, 63, 64) for more in (-2, -1, 0, 1, 2) for sign in (1, -1)]
    ),
)


@given(doubles, st.integers(0, 6))
@example(sys.float_info.max, 0)
@example(-sys.float_info.max, 2)
def test_numbers_that_meet_a_double_are_those_that_python_rounds_to_it(double: float, scale: int) -> None:
    least, most = numbers_of_double(double, scale)

    def cast(unscaled: int) -> float:
        try:
            return float(Fraction(unscaled, 10**scale))
        except OverflowError:  # Fraction raises where IEEE 754 rounds to infinity
            return math.inf if unscaled > 0 else -math.inf

    assert all(cast(number) == double for number in (least, most) if least <= most)
    assert cast(least - 1) < double < cast(most + 1) and cast(most) <= double <= cast(least)


@given(doubles, st.integers(KEY_MIN, KEY_MAX), st.integers(-3, 3))
def test_whole_numbers_are_compared_with_doubles_as_doubles(double: float, value: int, near: int) -> None:
    if abs(double) < 2**63:
        value = int(double) + near
    value = min(max(value, KEY_MIN), KEY_MAX)
    for op, holds in OPS.items():
        asked = {Op.EQ: list(Side), Op.LT: [Side.LEAST], Op.GE: [Side.LEAST]}.get(op, [Side.MOST])
        for given_as in ([repr(double)], np.array([double])):
            floors = [literal_floors(INT, Kind.DOUBLE, given_as, False, Session("UTC"), side) for side in asked]
            (lo,), (hi,) = intervals(Op.BETWEEN if op is Op.EQ else op, floors)
            assert bool(lo <= value <= hi) is holds(float(value), double), (op, given_as)


def test_both_ends_of_a_range_meet_doubles() -> None:
    values = [2**53 + more for more in range(-2, 9)]
    low, high = 2.0**53, 2.0**53 + 4
    for count in (0, 2000):
        rules = {0: f"i BETWEEN {low!r}D AND {high!r}D", -1: f"i NOT BETWEEN {low!r}D AND {high!r}D"}
        rules |= {n: f"i BETWEEN {low + 2 * n!r}D AND {high + 4 * n!r}D" for n in range(1, count)}
        matcher = cm.Matcher.build(rules, {"i": "int64"})
        found = matcher.match_lists(pa.table({"i": values})).to_pylist()
        assert [0 in ids for ids in found] == [low <= float(value) <= high for value in values]
        assert [-1 in ids for ids in found] == [not low <= float(value) <= high for value in values]
        assert not count or [1 in ids for ids in found] == [low + 2 <= float(value) <= high + 4 for value in values]
