"""Ids: what can be one, what is refused, and their arrays in a saved matcher."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st
from installed import needs

import colmatch as cm
from colmatch.errors import SubscriptionError
from colmatch.given.arguments import python_value
from colmatch.subscriptions import ids as module
from colmatch.subscriptions.ids import (
    Ids,
    can_be_id,
    check_unique,
    convert_ids,
    ids_of_arrays,
    ids_of_column,
    ids_of_values,
    ids_to_arrays,
    list_ids,
)

INT64 = st.integers(-(2**63), 2**63 - 1)


@given(st.one_of(st.lists(INT64, unique=True), st.lists(st.text(), unique=True)))
def test_ids_come_back_from_their_arrays(values: list[Any]) -> None:
    ids = ids_of_values(values)
    assert ids.array.to_pylist() == values
    again = ids_of_arrays(ids_to_arrays(ids))
    assert again.array.equals(ids.array) and again.type == again.array.type == (
        pa.string() if any(isinstance(value, str) for value in values) else pa.int64()
    )


@pytest.mark.parametrize(
    ("values", "first"),
    [
        ([7], 7),
        ([-2, -1, 0, 1], -2),
        ([2**63 - 2, 2**63 - 1], 2**63 - 2),
        ([1, 0], None),
        ([0, 2, 1, 3], None),  # the ends alone could be consecutive
        ([0, 1, 3], None),
        ([-(2**63), 2**63 - 1], None),
    ],
    ids=["one", "around zero", "highest", "turned", "mixed", "with a gap", "ends of int64"],
)
def test_consecutive_ids_need_no_table(values: list[int], first: int | None) -> None:
    table, begin = ids_of_values(values).table
    assert (table.tolist(), begin) == (([], first) if first is not None else (values, 0))
    for order in ("subscription", "any"):
        options = cm.Options(order=order)
        matcher = cm.Matcher.build(dict.fromkeys(values, "a = 1"), {"a": "int64"}, options=options)
        [found] = matcher.match_lists(pa.table({"a": [1]})).to_pylist()
        assert sorted(found) == sorted(values) and (found == values or order == "any")
        assert matcher.match_one({"a": 1}) == values


def test_ids_that_are_added_go_on_or_end_the_row() -> None:
    """Only the new ones are looked at: an insert into a million takes as long as into ten."""
    ids = ids_of_values([3, 4])
    assert len(ids.table[0]) == 0
    with patch.object(module, "_are_consecutive", wraps=module._are_consecutive) as looked:
        more = ids.extended(ids_of_values([5, 6]))
        assert more.table == (module.NO_I64, 3)
        gap = more.extended(ids_of_values([8, 9]))
        assert gap.table[0].tolist() == [3, 4, 5, 6, 8, 9]
        back = gap.extended(ids_of_values([10]))
        assert back.table[0].tolist() == [3, 4, 5, 6, 8, 9, 10]
    assert [call.args[0].tolist() for call in looked.call_args_list] == [[4, 5, 6], [6, 8, 9]]
    matcher = cm.Matcher.build({3: "a = 1", 4: "a = 1"}, {"a": "int64"})
    events = pa.table({"a": [1]})
    for id in (5, 6, 9, 10, 2):
        matcher.insert({id: "a = 1"})
        assert matcher.match(events)["subscription"].to_pylist() == matcher.ids.to_pylist()
        assert matcher.match_one({"a": 1}) == matcher.ids.to_pylist()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1, "x"], "some ids are numbers and some are strings"),
        ([np.int8(1), np.True_], "subscription number 1 is True: ids are int64 or strings"),
        ([1, np.timedelta64(3, "s")], "subscription number 1 is "),
        ([1, True], "subscription number 1 is True: ids are int64 or strings"),
        (["a", None], "subscription number 1 is None"),
        ([1, 2**63], "number 1 is 9223372036854775808, which does not fit int64"),
        (["a", "\ud800"], r"number 1 is .*, which is not valid Unicode"),
        ([3, 4, 3], "id 3 is given more than once"),
    ],
)
def test_values_that_are_no_ids(values: list[Any], said: str) -> None:
    with pytest.raises(SubscriptionError, match=said):
        ids_of_values(values)


def test_columns_of_every_type_of_ids() -> None:
    for column in (pa.array([3, 3], pa.uint8()), pa.array([3, 3], pa.int32()).dictionary_encode()):
        assert ids_of_column(column, "here").equals(pa.array([3, 3], pa.int64()))
    for column in (pa.array(["b"], pa.large_string()), pa.array(["b"]).dictionary_encode()):
        assert ids_of_column(column, "here").equals(pa.array(["b"]))
    for odd, said in (
        (pa.array([1.5]), "here: column 'id' is double"),
        (pa.array([2**63], pa.uint64()), "here: an id"),
    ):
        with pytest.raises(SubscriptionError, match=said):
            ids_of_column(odd, "here")


def test_unique_ids_are_given_back() -> None:
    ids = pa.array(["b", "a"])
    assert check_unique(ids) is ids


def test_lists_of_ids() -> None:
    for some in (pa.array([1, 2]), [1, 2], iter([1, 2]), {1: "a", 2: "b"}, pa.chunked_array([[1], [2]])):
        assert convert_ids(list_ids(some), pa.int64()).array.equals(pa.array([1, 2]))
    assert convert_ids(list_ids(np.array(["é", "b"])), pa.string()).array.equals(pa.array(["é", "b"]))
    for odd in ("ab", b"ab", 3, None):
        with pytest.raises(SubscriptionError, match="is not a list of ids"):
            list_ids(odd)
    for odd in (["a"], [1.0], [True], [None], [2**63]):
        with pytest.raises(SubscriptionError, match="there is no subscription"):
            convert_ids(odd, pa.int64())


@pytest.mark.parametrize(
    ("id", "number", "text"),
    [
        (np.uint8(3), True, False),
        (-(2**63), True, False),
        (2**63, False, False),
        (True, False, False),
        (np.True_, False, False),
        (np.str_("y"), False, True),
        (np.timedelta64(3, "s"), False, False),
        (1.0, False, False),
        ("x", False, True),
        ("\ud800", False, False),
        (None, False, False),
        ([], False, False),
    ],
)
def test_what_can_be_an_id(id: object, number: bool, text: bool) -> None:
    assert can_be_id(python_value(id), pa.int64()) is number
    assert can_be_id(python_value(id), pa.string()) is text


@pytest.mark.parametrize("values", [[3, -1, 7, 2**40], ["a", "", "Łódź", "bc"]])
def test_ids_that_grow(values: list[Any]) -> None:
    """What was extended stays as it is, and can be extended once more in another way."""
    few = ids_of_values(values[:2])
    one = few.extended(Ids(pa.array(values[2:3])))
    assert one.extended(Ids(pa.array(values[3:]))).array.to_pylist() == values
    other = one.extended(Ids(pa.array(values[:1])))  # as after an update that failed later on
    assert few.array.to_pylist() == values[:2] and one.array.to_pylist() == values[:3]
    assert other.array.to_pylist() == [*values[:3], values[0]]
    assert other.find(Ids(pa.array(values))).tolist() == [3, 1, 2, -1] and other.find_one(values[0]) == 3
    assert one.find(Ids(pa.array(values))).tolist() == [0, 1, 2, -1] and one.find_one(values[3]) == -1
    assert few.array.type == one.array.type == other.array.type


def test_no_ids_become_those_that_are_added() -> None:
    assert Ids(pa.array([], pa.int64())).extended(Ids(pa.array(["x"]))).find(Ids(pa.array(["x", "y"]))).tolist() == [
        0,
        -1,
    ]
    assert Ids(pa.array([], pa.int64())).find(Ids(pa.array(["x"]))).tolist() == [-1]
    assert Ids(pa.array([1])).find_one("x") == Ids(pa.array([1])).find_one(True) == -1


def test_ids_that_outgrow_an_array_of_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 5)
    ids = ids_of_values(["abc"]).extended(Ids(pa.array(["de"])))
    with pytest.raises(SubscriptionError, match="more than 2 GB of text"):
        ids.extended(Ids(pa.array(["f"])))
    assert ids.array.to_pylist() == ["abc", "de"]


def test_ids_stay_when_the_caller_writes_into_his_memory() -> None:
    given = np.arange(5)
    texts = ["a = 1"] * 5
    built = cm.Matcher.build(pa.table({"id": given, "expression": texts}), {"a": "int64"})
    empty = cm.Matcher.build({}, {"a": "int64"})
    empty.insert(pa.table({"id": given, "expression": texts}))
    given += 100
    for matcher in (built, empty):
        assert sorted(matcher.match_lists(pa.table({"a": [1]}))[0].as_py()) == [0, 1, 2, 3, 4]


@needs("polars", "pandas")
def test_subscriptions_of_other_libraries() -> None:
    rules = pa.table({"id": [7, 8], "expression": ["a > 5", "a > 6"]})
    import pandas as pd
    import polars as pl

    given = (pl.from_arrow(rules).lazy(), ds.dataset(rules), pd.Series({7: "a > 5", 8: "a > 6"}), rules.to_pandas())
    for some in given:
        assert cm.Matcher.build(some, {"a": "bigint"}).match_one({"a": 6}) == [7]
    with pytest.raises(cm.SubscriptionError, match=r"is \{'id': 7.*pyarrow.Table.from_pylist makes a table"):
        cm.Matcher.build(rules.to_pylist(), {"a": "bigint"})


def test_options_may_be_a_mapping() -> None:
    matcher = cm.Matcher.build({1: "a > 5"}, {"a": "bigint"}, options={"threads": 1, "timezone": "Asia/Tokyo"})
    assert matcher.options == cm.Options(threads=1, timezone="Asia/Tokyo")
    with pytest.raises(cm.OptionError, match="there is no option 'thread': did you mean 'threads'"):
        cm.Matcher.build({1: "a > 5"}, {"a": "bigint"}, options={"thread": 1})
    with pytest.raises(cm.OptionError, match="options=5"):
        cm.Matcher.build({1: "a > 5"}, {"a": "bigint"}, options=5)  # type: ignore[arg-type]
