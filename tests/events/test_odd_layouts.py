"""Lists as other libraries lay them out, and times with a zone, to compute with."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pytest
from installed import needs
from layouts import moved

import colmatch as cm

LONG = "longer than the twelve bytes of a view"
LISTS = [["x", LONG], ["y"], None, []]
LAYOUTS = [
    pa.list_(pa.string_view()),
    pa.large_list(pa.string_view()),
    pa.list_view(pa.string()),
    pa.large_list_view(pa.string()),
    pa.list_(pa.dictionary(pa.int32(), pa.string())),
]
RULES = {1: "tags[0] = 'x'", 2: f"tags[1] = '{LONG}'", 3: "element_at(tags, 1) = 'y'", 4: "size(tags) * 2 = 4"}
WANTED = [[1, 2, 4], [3], [], []]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_elements_of_lists(layout: pa.DataType) -> None:
    values: pa.Array = pa.array(LISTS, pa.list_(pa.string()))
    lists = values.cast(layout) if "view" not in str(layout).split("<")[0] else pa.array(LISTS, layout)
    matcher = cm.Matcher.build(RULES, {"tags": "array<string>"})
    events = pa.table({"tags": lists})
    assert matcher.match_lists(events).to_pylist() == WANTED
    assert matcher.match_lists(events.slice(1)).to_pylist() == WANTED[1:]


@pytest.mark.parametrize("make", [pa.list_, pa.large_list, pa.list_view, pa.large_list_view])
def test_presence_of_lists_that_expressions_cannot_use(make: Callable[[pa.DataType], pa.DataType]) -> None:
    """Their elements are structs, but whether there is a list can be asked."""
    layout = make(pa.struct({"x": pa.int64()}))
    matcher = cm.Matcher.build({1: "size(odd) IS NULL", 2: "size(odd) IS NOT NULL"}, {"odd": layout})
    events = pa.table({"odd": pa.array([[{"x": 1}], None, []], layout)})
    assert matcher.match_lists(events).to_pylist() == [[2], [1], [2]]


TEXTS = ["Lis", " lis ", None, "A%b", "", "12", "Straße", "10.0.0.1"]
TEXT_RULES = [
    "lower(s) = 'lis'", "upper(s) = 'LIS'", "trim(lower(s)) = 'lis'", "ltrim(s) = 'lis '", "rtrim(s) = ' lis'", "length(s) = 3",
    "concat(s, 'x') = 'Lisx'", "concat(s, s) = 'LisLis'", "substring(s, 2, 2) = 'is'", "reverse(s) = 'siL'", "replace(s, 'i', 'o') = 'Los'",
    "instr(s, 's') = 3", "left(s, 1) = 'L'", "right(s, 1) = 's'",
    "coalesce(s, 'none') = 'none'", "if(s = 'Lis', s, 'no') = 'Lis'", "CAST(s AS BIGINT) = 12", "greatest(s, 'M') = 'M'",
    "s LIKE 'L%'", "s ILIKE 'l%'", "s LIKE '%i%'", "s RLIKE '^L'", "startswith(s, 'L')", "endswith(s, 's')", "contains(s, 'i')",
    "s IN ('Lis', '12')", "s > 'L'", "s = 'Straße'", "cidr_contains('10.0.0.0/8', s)", "s = t", "lower(s) = lower(t)",
    "semver(s) = semver('12')", "bucket(0, s, 2) = 1", "hash(s, t) > 0", "fnv1a_32(s) % 2 = 0", "s:a IS NULL",
    "get_json_object(s, '$') = '12'",
]  # fmt: skip


@pytest.mark.parametrize("type", [pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize("count", [1, 7, 8])
def test_texts_that_begin_further_on(type: pa.DataType, count: int) -> None:
    plain = pa.array(TEXTS[:count], type)
    rules = cm.Matcher.build(dict(enumerate(TEXT_RULES)), {"s": "string", "t": "string"})
    events = pa.table({"s": moved(plain), "t": moved(plain)})
    assert rules.match_lists(events).equals(rules.match_lists(pa.table({"s": plain, "t": plain})))
    for number, row in enumerate(events.to_pylist()):
        assert list(rules.match_one(row)) == rules.match_lists(events)[number].as_py()


@pytest.mark.parametrize("layout", [*LAYOUTS[1:2], pa.list_(pa.string())], ids=str)
def test_lists_that_begin_further_on(layout: pa.DataType) -> None:
    rules = [*RULES.values(), "array_contains(tags, 'x')", "arrays_overlap(tags, array('y', 'z'))", "size(tags) = 0"]
    matcher = cm.Matcher.build(dict(enumerate(rules)), {"tags": "array<string>"})
    plain = pa.array(LISTS, layout)
    found = matcher.match_lists(pa.table({"tags": moved(plain)}))
    assert found.equals(matcher.match_lists(pa.table({"tags": plain})))


@needs("polars")
def test_lists_of_polars() -> None:
    import polars as pl

    frame = pl.DataFrame({"tags": LISTS})
    matcher = cm.Matcher.build(RULES, frame)
    assert matcher.match_lists(frame).to_pylist() == WANTED
    assert matcher.match_lists(frame.lazy()).to_pylist() == WANTED


def test_dictionaries_of_views() -> None:
    words = pa.DictionaryArray.from_arrays(pa.array([1, 0, None]), pa.array(["X", LONG], pa.string_view()))
    matcher = cm.Matcher.build({1: "lower(s) = 'x'", 2: f"s = '{LONG}'"}, {"s": "string"})
    assert matcher.match_lists(pa.table({"s": words})).to_pylist() == [[2], [1], []]


def test_the_greatest_of_times_with_a_zone() -> None:
    noon = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
    times = pa.timestamp("us", "Europe/Paris")
    events = pa.table({"a": pa.array([noon, None], times), "b": pa.array([noon - dt.timedelta(days=1), noon], times)})
    rules = {1: "greatest(a, b) = a", 2: "least(a, b) < a", 3: "greatest(a, b) = b"}
    assert cm.Matcher.build(rules, events.schema).match_lists(events).to_pylist() == [[1, 2], [3]]


def test_numbers_beyond_all_decimals() -> None:
    for type in ("decimal(10, 2)", "decimal(30, 2)"):
        matcher = cm.Matcher.build({1: "x > 5"}, {"x": type})
        for value in (1e300, 1e76, float("inf"), -1e77):
            with pytest.raises(cm.EventError, match="column 'x', event 1"):
                matcher.match(pa.table({"x": [1.0, value]}))


@pytest.mark.parametrize("type", [pa.date32(), pa.date64()], ids=str)
def test_a_time_of_day_in_a_date64(type: pa.DataType) -> None:
    days = (0, 86_400_000, 86_400_001)
    buffer = pa.py_buffer(b"".join(day.to_bytes(8, "little") for day in days))
    dates = pa.Array.from_buffers(pa.date64(), 3, [None, buffer])
    matcher = cm.Matcher.build({1: "d = DATE '1970-01-02'"}, {"d": type})
    assert matcher.match_lists(pa.table({"d": dates[:2]})).to_pylist() == [[], [1]]
    with pytest.raises(cm.EventError, match="column 'd', event 2"):
        matcher.match(pa.table({"d": dates}))


@dataclass
class Visit:
    age: int
    city: str


def test_an_object_is_explained() -> None:
    matcher = cm.Matcher.build({1: "age > 3 AND city = 'Nice'"}, {"age": "int", "city": "string"})
    assert matcher.explain(Visit(5, "Nice"), 1).matched and not matcher.explain(Visit(5, "Lyon"), 1).matched


def test_substrings_from_the_beginning() -> None:
    events = pa.table({"s": ["abc", "bcd"]})
    rules = {1: "substring(s FOR 2) = 'ab'", 2: "substring(s FROM 2 FOR 1) = 'c'", 3: "substring(s FROM 2) = 'bc'"}
    assert cm.Matcher.build(rules, events.schema).match_lists(events).to_pylist() == [[1, 3], [2]]
    with pytest.raises(cm.ExpressionError, match="FROM"):
        cm.Matcher.build({1: "substring(s FOR 2 FROM 1) = 'ab'"}, events.schema)
