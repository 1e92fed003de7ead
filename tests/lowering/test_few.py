"""A few expressions are lowered as many are: to the same arrays, with the same errors."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import to_sql
from strategies import COLUMNS, an_expression, terms

import colmatch as cm
from colmatch.given.options import Options
from colmatch.given.schema import Attributes, Family, Schema, Type
from colmatch.given.session import Session
from colmatch.kernels.layout import KEY_MAX, KEY_MIN
from colmatch.kinds.settings import Budget
from colmatch.lowering.few import FEW_EXPRESSIONS, MOST_INTERVALS, FewExpressions
from colmatch.lowering.floors import converter, literal_floors
from colmatch.lowering.forms import Kind
from colmatch.subscriptions import intake
from colmatch.subscriptions.intake import NewSubscriptions, SubscriptionReader

SCHEMA = Schema(COLUMNS)


class Lowered:
    """Counts how often ``FewExpressions`` has lowered what it was given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.times = 0
        lower = FewExpressions.lower

        def counted(few: FewExpressions, expressions: Any) -> Any:
            found = lower(few, expressions)
            self.times += found is not None
            return found

        monkeypatch.setattr(FewExpressions, "lower", counted)


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> Lowered:
    return Lowered(monkeypatch)


def source(attributes: Attributes | None = None, budget: Budget = Budget(64, 64)) -> SubscriptionReader:  # noqa: B008
    return SubscriptionReader(SCHEMA, Options(timezone="Europe/Berlin"), attributes or Attributes(), budget)


def by_columns(source: SubscriptionReader, subscriptions: Any) -> NewSubscriptions:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intake, "FEW_EXPRESSIONS", 0)
        return source.take_in(subscriptions, "collect")


def assert_same(few: NewSubscriptions, many: NewSubscriptions) -> None:
    assert few.ids.array.equals(many.ids.array) and few.rejected == many.rejected
    for one, other in zip(few.lowered[:3], many.lowered[:3], strict=True):
        for name, found, wanted in zip(other._fields, one, other, strict=True):
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), name
            assert np.array_equal(found, wanted), name


def texts(seed: int, number: int) -> list[str]:
    rng, leaves = Random(seed), terms(SCHEMA.arrow)
    return [to_sql(an_expression(rng, leaves, depth=rng.choice([0, 1, 1, 2, 3]))) for _ in range(number)]


@pytest.mark.parametrize("seed", range(3))
def test_one_by_one(seed: int, lowered: Lowered) -> None:
    """From sources that live on: scratch and plans are used again."""
    one, other = source(), source()
    some = texts(seed, 60)
    for i, text in enumerate(some + some[:20]):
        few, many = one.take_in({i: text}, "collect"), by_columns(other, {i: text})
        assert few.attributes.members == many.attributes.members
        assert few.session_parts == many.session_parts
        assert_same(few, many)
    assert lowered.times > 60


@pytest.mark.parametrize("seed", range(3))
def test_a_handful(seed: int, lowered: Lowered) -> None:
    rng, some = Random(seed), texts(seed + 100, 60)
    for _ in range(25):
        subscriptions = {
            f"s{i}": text for i, text in enumerate(rng.choices(some, k=rng.randrange(1, FEW_EXPRESSIONS + 1)))
        }
        many = by_columns(source(), subscriptions)
        few = source(Attributes(list(many.attributes))).take_in(subscriptions, "collect")
        assert (few.session_parts.zone is None) == (many.session_parts.zone is None)
        assert_same(few, many)
    assert lowered.times > 5


ODD = [
    "i32 IN (1, 2, 2, 3) AND i32 NOT IN (2)",
    "i32 = 1 AND i32 = 2",  # never
    "(i32 = 1 AND i64 > 5) OR (i64 > 5 AND i32 = 1) OR i8 = 3",  # a repeated conjunction
    "i64 > 9223372036854775807 OR i64 < 99999999999999999999",
    "u64 >= 18446744073709551615 OR dec IN (1, 2.5, 3.125)",
    "s IN ('b', 'a', 'b') AND words['x'] < 'a' AND s NOT LIKE 'a%'",
    "s LIKE 'x%' AND s LIKE 'y' AND s LIKE '%' AND s LIKE '%z' AND s RLIKE 'a+'",
    "s RLIKE 'a' AND select LIKE '%b' AND s RLIKE 'c'",
    "day = '2024-02-30' AND i32 = 1",  # no such day
    "utc > '2024-01-01' AND zoned < TIMESTAMP '2024-01-01 00:00:00Z'",
    "f64 = CAST('NaN' AS DOUBLE) OR f64 < -0.0",
    "TRUE",
    "FALSE",
    "i32 >",
    "nothing = 1",
    "s RLIKE '('",
]


@pytest.mark.parametrize("text", ODD)
def test_odd_ones(text: str) -> None:
    few, many = source().take_in({1: text}, "collect"), by_columns(source(), {1: text})
    assert few.attributes.members == many.attributes.members
    assert_same(few, many)
    beside = {1: "i8 = 1 AND s < 'q'", 2: text, 3: "s = 'a'"}
    many = by_columns(source(), beside)
    assert_same(source(Attributes(list(many.attributes))).take_in(beside, "collect"), many)


def test_patterns_of_one_form() -> None:
    """What a pattern becomes depends on its text."""
    subscriptions = {i: f"s LIKE '{like}' AND i32 = {i}" for i, like in enumerate(("a%", "b", "%c", "%", "a_c", "d%"))}
    many = by_columns(source(), subscriptions)
    assert_same(source(Attributes(list(many.attributes))).take_in(subscriptions, "raise"), many)


def test_what_was_lowered_stays_as_it_is() -> None:
    one = source()
    subscriptions = [{i: f"i32 IN ({i}, {5 * i + 9}) AND s = 'a{i}' AND f64 > {i}"} for i in range(5)]
    few = [one.take_in(subscription, "raise") for subscription in subscriptions]
    for found, subscription in zip(few, subscriptions, strict=True):
        assert_same(found, by_columns(source(), subscription))


def test_what_is_too_much_is_lowered_by_columns(lowered: Lowered) -> None:
    long = ", ".join(map(str, range(0, 2 * MOST_INTERVALS + 4, 2)))
    wide = " AND ".join(f"(i32 = {i} OR i64 = {i})" for i in range(9))
    for text, budget in ((f"i32 IN ({long})", Budget(64, 64)), (wide, Budget(4, 4)), (wide, Budget(512, 512))):
        few, many = source(budget=budget).take_in({1: text}, "raise"), by_columns(source(budget=budget), {1: text})
        assert_same(few, many)
    assert lowered.times == 0


def test_room_grows_and_stays(lowered: Lowered) -> None:
    one, other = source(), source()
    for size in (1, 400, 2, 1000, 3):
        text = f"i32 IN ({', '.join(map(str, range(0, 3 * size, 3)))}) AND i64 = {size}"
        assert_same(one.take_in({1: text}, "raise"), by_columns(other, {1: text}))
    assert lowered.times == 5


def test_an_error_says_where() -> None:
    with pytest.raises(cm.ExpressionError) as error:
        source().take_in({7: "i32 = 1 AND day = '2024-02-30'"}, "raise")
    assert (error.value.id, error.value.line, error.value.column) == (7, 1, 19)


NUMBERS = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from([KEY_MIN - 1, KEY_MIN, KEY_MAX, KEY_MAX + 1, 2**64 - 1, 2**64]).map(str),
)
DECIMALS = st.decimals(-(10**6), 10**6, places=3).map(str)
TYPES = [
    Type(Family.INT),
    Type(Family.UINT64),
    Type(Family.FLOAT),
    Type(Family.DECIMAL),
    Type(Family.DECIMAL, scale=2),
]


@given(st.sampled_from(TYPES), st.booleans(), st.data())
def test_a_literal_by_itself(type: Type, negative: bool, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([Kind.INT, Kind.DECIMAL, Kind.DOUBLE]))
    doubles = st.floats().map(repr)
    text = data.draw({Kind.INT: NUMBERS, Kind.DECIMAL: DECIMALS, Kind.DOUBLE: doubles}[kind])
    floor, place = literal_floors(type, kind, [text], negative, Session("UTC"))
    assert converter(type, kind, negative, Session("UTC"))(text) == (floor[0], place[0])
