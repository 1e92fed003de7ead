"""Computed values of rare operands, each as Spark has it."""

from __future__ import annotations

import datetime as dt

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


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63)])
def test_parts_of_years_that_arrow_has_no_number_for(value: int) -> None:
    events = pa.table({"at": pa.array([value], pa.timestamp("us"))})
    with pytest.raises(cm.EventError, match="32,000 years from 1970"):
        of({1: "year(at) > 2000"}, events)


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
