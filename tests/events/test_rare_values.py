"""Computed values of rare operands, each as Spark has it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

import colmatch as cm

ANSI = cm.Options(ansi=True)


def of(texts: dict[int, str], events: pa.Table, options: cm.Options | None = None) -> list[list[int]]:
    return cm.Matcher.build(texts, events.schema, options=options).match_lists(events).to_pylist()


def test_the_least_integer_by_minus_one() -> None:
    events = pa.table(
        {
            "i": pa.array([-(2**31), 7], pa.int32()), "j": pa.array([-1, -1], pa.int32()),
            "k": [-(2**63), 7], "l": [-1, -1],
        }
    )  # fmt: skip
    assert of({1: "i % j = 0", 2: "k % l = 0"}, events) == [[1, 2], [1, 2]]
    assert of({1: "i % j = 0", 2: "k % l = 0"}, events, ANSI) == [[1, 2], [1, 2]]


def test_texts_become_decimals() -> None:
    """Spark 4.3 gives these decimals with 10 digits and 2 behind the point."""
    numbers = {
        "1.005": "1.01", "-1.005": "-1.01", "1.004999999": "1.00", " 12\t": "12", ".5": "0.5", "5.": "5", "+5": "5", "15e-1": "1.5",
        "1E+5": "100000", "1e00000000000000000005": "100000", "99999999.994": "99999999.99", "1e-1000": "0", "0e99999": "0",
        "-0": "0", "\u0661": "1", "1e-2147483647": "0",
    }  # fmt: skip
    wrong = [
        "",
        "abc",
        ".",
        "1e",
        "1d",
        "NaN",
        "0x1",
        "1_000",
        "1,5",
        "- 5",
        "1\xa0",
        "1 2",
        "1.0e-2147483647",
        "1e9999999999",
    ]
    large = ["99999999.995", "-99999999.995", "123456789", "1e1000", "9" * 39]
    texts = [*numbers, *wrong, *large]
    events = pa.table(
        {"s": [*texts, None], "wanted": pa.array([*map(Decimal, numbers.values()), *[None] * 20], pa.decimal128(10, 2))}
    )
    for cast, options in (("CAST", None), ("try_cast", None), ("try_cast", ANSI)):
        value = f"{cast}(s AS DECIMAL(10, 2))"
        rules = {1: f"{value} = wanted", 2: f"{value} IS NULL", 3: f"{value} > 1.004"}
        above = [[3] * (Decimal(number) > 1) for number in numbers.values()]
        above[2] = []
        assert of(rules, events, options) == [*([1, *more] for more in above), *[[2]] * 20]
    for text in (*wrong, *large):
        with pytest.raises(
            cm.EventError, match=r"^event 1: CAST\(s AS DECIMAL\(10,2\)\) cannot be computed: '.* does not fit dec"
        ):
            of({1: "CAST(s AS DECIMAL(10, 2)) > 5"}, pa.table({"s": ["1", text]}), ANSI)


def test_floats_become_small_integers_by_way_of_larger_ones() -> None:
    events = pa.table({"f": [300.7, -129.0, 1e10, -1e10, float("nan")]})
    texts = {
        1: "CAST(f AS TINYINT) = 44",
        2: "CAST(f AS TINYINT) = 127",
        3: "CAST(f AS TINYINT) = -1",
        4: "CAST(f AS TINYINT) = 0",
    }
    assert of(texts, events) == [[1], [2], [3], [4], [4]]


@pytest.mark.parametrize("value", [1e10, -1e10, float("nan"), float("inf")])
def test_ansi_refuses_what_does_not_fit(value: float) -> None:
    with pytest.raises(cm.EventError, match="a value does not fit int32"):
        of({1: "CAST(f AS INT) = 1"}, pa.table({"f": [1.0, value]}), ANSI)
    assert of({1: "CAST(f AS INT) = 1"}, pa.table({"f": [1.0, None]}), ANSI) == [[1], []]


def test_ansi_divides_null_by_zero() -> None:
    events = pa.table({"a": pa.array([None, 6.0]), "b": [0.0, 2.0]})
    assert of({1: "a / b = 3", 2: "a / b IS NULL"}, events, ANSI) == [[2], [1]]
    with pytest.raises(cm.EventError, match="zero"):
        of({1: "a / b = 3"}, pa.table({"a": [1.0], "b": [0.0]}), ANSI)


@pytest.mark.parametrize("ansi", [False, True])
def test_floats_and_integers_meet_as_doubles_with_ansi(ansi: bool) -> None:
    events = pa.table({"f": pa.array([2.0**24], pa.float32()), "i": pa.array([1], pa.int32())})
    assert of({1: "f + i > 1.67772165e7"}, events, cm.Options(ansi=ansi)) == [[1] if ansi else []]


def test_days_that_begin_behind_a_gap() -> None:
    """In São Paulo clocks were set forward at midnight."""
    events = pa.table({"at": pa.array([dt.datetime(2017, 10, 15, 15)], pa.timestamp("us", "UTC"))})
    texts = {
        1: "date_trunc('day', at) = TIMESTAMP '2017-10-15 01:00:00'",
        2: "date_trunc('day', at) < TIMESTAMP '2017-10-15 01:00:00'",
    }
    assert of(texts, events, cm.Options(timezone="America/Sao_Paulo")) == [[1]]


@pytest.mark.parametrize(
    "text",
    [
        "year(at) > 2000", "date_trunc('year', at) > at", "date_format(at, 'yyyy') = '1'", "add_months(day, i) > day",
        "last_day(day) > day", "month(day) = 1", "CAST(day AS TIMESTAMP) > at", "months_between(day, at) > 1",
        "timestamp_seconds(n) > at", "timestamp_millis(n) > at", "from_unixtime(n) > '2024'", "trunc(day, 'MM') > day",
        "at + INTERVAL 106751000 DAYS > at", "day + INTERVAL 5879000 YEARS > day", "year(low) < 1",
    ],
)  # fmt: skip
def test_moments_that_are_too_far_name_the_event(text: str) -> None:
    """Spark 4.3 refuses all but the parts of dates, last_day and from_unixtime, which wrap."""
    most = pa.array([0, 2**31 - 1], pa.int32())
    at, low = (pa.array([0, end], pa.timestamp("us")) for end in (2**63 - 1, -(2**63)))
    events = pa.table({"at": at, "low": low, "n": [0, 2**63 - 1], "day": most.cast(pa.date32()), "i": most})
    with pytest.raises(cm.EventError, match="^event 1: .* cannot be computed: .*(32,000 years from 1970|too large)"):
        of({1: text}, events)
    assert of({1: text}, events.slice(0, 1)) in ([[]], [[1]])


def test_values_at_the_ends_of_their_types() -> None:
    """As Spark 4.3 has them, in both modes."""
    ends = [-(2**63), 2**63 - 1]
    events = pa.table(
        {
            "n": ends, "i": pa.array([-(2**31), 2**31 - 1], pa.int32()), "s": pa.array([-(2**15), 2**15 - 1], pa.int16()),
            "day": pa.array([0, 0], pa.int32()).cast(pa.date32()), "at": pa.array(ends, pa.timestamp("us", "UTC")),
        }
    )  # fmt: skip
    texts = {
        1: "timestamp_micros(n) = at", 2: "date_sub(day, i) < day", 3: "day - i < day", 4: "date_sub(day, s) < day",
        5: "unix_millis(timestamp_micros(n)) = -9223372036854776",
        6: "date_from_unix_date(i) - day > INTERVAL 1 DAY",
    }  # fmt: skip
    for options in (None, ANSI):
        assert of(texts, events, options) == [[1, 2, 3, 5], [1, 2, 3, 4, 6]]


@pytest.mark.parametrize("text", ["- i = 0", "- - i = 0", "- - - i = 0", "- + - i = 0", "-(-i) = 0"])
def test_each_minus_fails_in_ansi_mode(text: str) -> None:
    events = pa.table({"i": pa.array([7, -(2**31)], pa.int32())})
    with pytest.raises(cm.EventError, match="^event 1: .* the result is too large"):
        of({1: text}, events, ANSI)
    assert of({1: text, 2: text.replace("= 0", f"= {-7 if text.count('-') % 2 else 7}")}, events) == [[2], []]


def test_a_subset_of_ids_that_are_gone_by_type() -> None:
    matcher = cm.Matcher.build({1: "a > 1", 2: "a > 2"}, {"a": "int64"})
    some = matcher.subset([1])
    matcher.delete([1, 2])
    matcher.insert({"1": "a > 1"})
    events = pa.table({"a": [5]})
    assert matcher.match_lists(events, ids=some).to_pylist() == [[]]
    assert matcher.match_lists(events).to_pylist() == [["1"]]


def test_constants_that_are_null_are_none() -> None:
    table = pa.table(
        {
            "id": [7], "expression": ["within_frequency_cap('flight', 'ns', 1, 0)"],
            "constants": [{"flight_id": 3, "campaign_id": None}],
        }
    )  # fmt: skip
    domains = cm.betree.Domains("frequency_caps|frequency|true\nnow|integer|false")
    assert len(cm.Matcher.build(table, domains, language="betree")) == 1


def test_a_clock_that_is_given_is_that_of_a_column_of_its_name() -> None:
    """Whole seconds are those that have begun, before 1970 too."""
    events = pa.table({"now": [5]})
    matcher = cm.Matcher.build({1: "now = -1", 2: "now = 5"}, events.schema)
    assert matcher.match_lists(events, now=-0.5).to_pylist() == [[1]]
    assert matcher.match_lists(events).to_pylist() == [[2]]


def test_caps_of_events_have_32_bits() -> None:
    """Ids and values are cut as the be-tree library cuts them."""
    texts = {1: "within_frequency_cap('flight', 'ns', 1, 0)"}
    domains = cm.betree.Domains("frequency_caps|frequency|true\nnow|integer|false")
    matcher = cm.Matcher.build(texts, domains, language="betree", constants={1: {"flight_id": 10}})
    caps = [
        [{"type": "flight", "id": id, "ns": "ns", "value": value, "timestamp": 0}]
        for id, value in ((10, 5), (2**32 + 10, 5), (11, 5), (10, 2**32), (10, 0))
    ]
    found = matcher.match_lists(pa.table({"frequency_caps": caps, "now": [1] * len(caps)}))
    assert found.to_pylist() == [[], [], [1], [1], [1]]
