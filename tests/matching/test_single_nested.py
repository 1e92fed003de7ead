"""Lists, maps and structs of single events: read without Arrow, and matched as in batches."""

from __future__ import annotations

import datetime as dt
import math
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from contract import every_kind
from inside import version
from sizes import SMALL
from test_single import WORDS, agree

import colmatch as cm
from colmatch.events.single.mapping import EventReader

NESTED_VALUES: dict[str, list[Any]] = {
    "words": WORDS,
    "small": [-128, 127, 0, 3],
    "x": [math.nan, math.inf, -0.0, 1.5, 2],
    "days": [dt.date(1, 1, 1), dt.date(2013, 5, 6)],
    "flags": [True, False],
}
NESTED_SCHEMA = pa.schema(
    {
        "words": pa.list_(pa.string()),
        "small": pa.large_list(pa.int8()),
        "x": pa.list_(pa.float64()),
        "days": pa.list_(pa.date32()),
        "flags": pa.list_(pa.bool_()),
        "by_word": pa.map_(pa.string(), pa.int8()),
        "by_small": pa.map_(pa.int8(), pa.string()),
        "s": pa.string(),
        "st": pa.struct(
            {
                "i": pa.int64(),
                "s": pa.string(),
                "in": pa.struct({"words": pa.list_(pa.string()), "by_word": pa.map_(pa.string(), pa.float64())}),
            }
        ),
    }
)
NESTED_PREDICATES = [
    "array_contains(words, 'ab')", "NOT array_contains(words, 'b')", "words IS NULL", "size(words) = 2", "size(words) > 2",
    "arrays_overlap(words, array('a', 'zz'))", "array_contains(small, 3)", "NOT array_contains(small, -128)",
    "array_contains(x, 1.5D)", "NOT array_contains(x, 2.0D)", "array_contains(days, DATE '2013-05-06')",
    "array_contains(flags, true)", "size(flags) <> 1", "by_word['ab'] > 0", "by_word['é'] IS NULL", "size(by_word) > 1",
    "by_small[3] = 'b'", "by_small[-128] IN ('a', 'zz')", "NOT by_small[0] = 'ab'", "st.i > 0", "st.i + 1 = 4", "st.s = 'b'",
    "st.s LIKE '%b%'", "lower(st.s) = 'ab'", "array_contains(st.in.words, 'b')", "size(st.in.words) = 1",
    "st.in.by_word['a'] < 2.0D", "st.i IS NULL", "s LIKE '%b%'", "NOT s ILIKE '%A%'", "s = 'ab'",
]  # fmt: skip


def nested_events(rng: Random, count: int) -> list[dict[str, Any]]:
    def some(values: list[Any]) -> Any:
        return rng.choice([*values, None])

    def listed(name: str) -> Any:
        return rng.choice([None, [some(NESTED_VALUES[name]) for _ in range(rng.choice([0, 1, 2, 5]))]])

    def mapped(keys: list[Any], values: list[Any]) -> Any:
        return rng.choice([None, {key: some(values) for key in rng.sample(keys, rng.randint(0, len(keys)))}])

    def event() -> dict[str, Any]:
        inner = {"words": listed("words"), "by_word": mapped(WORDS, NESTED_VALUES["x"])}
        struct = {"i": some([0, 3, -1]), "s": some(WORDS), "in": rng.choice([None, {}, inner])}
        values = {name: listed(name) for name in NESTED_VALUES} | {
            "by_word": mapped(WORDS, NESTED_VALUES["small"]),
            "by_small": mapped(NESTED_VALUES["small"], WORDS),
            "s": some(WORDS),
            "st": rng.choice([None, {}, struct, struct]),
        }
        return {name: value for name, value in values.items() if rng.random() < 0.8}

    return [event() for _ in range(count)]


@every_kind
def test_lists_maps_and_structs_match_as_in_batches(kind: str, direct: list[bool]) -> None:
    rng = Random(9)
    rules = dict(enumerate(NESTED_PREDICATES)) | {
        100 + i: f" {rng.choice(['AND', 'OR'])} ".join(rng.sample(NESTED_PREDICATES, 3)) for i in range(60)
    }
    matcher = cm.Matcher.build(rules, NESTED_SCHEMA, index=kind)
    agree(matcher, nested_events(rng, 12 if SMALL else 150))
    matcher.insert({1000 + i: text for i, text in rules.items()})
    agree(matcher, nested_events(rng, 5 if SMALL else 50))
    assert all(direct)


def test_a_few_of_many_columns_and_values_computed_of_them(direct: list[bool]) -> None:
    names = [f"c{i}" for i in range(40)]
    schema = pa.schema([(name, pa.int64()) for name in names] + [("st", pa.struct({"f": pa.int64()}))])
    rules = {i: f"{name} = {i}" for i, name in enumerate(names)}
    rules |= {100: "c7 % 5 = 2", 101: "st.f = 3", 102: "c1 + c2 = 3", 103: "coalesce(c39, 1) = 1"}
    matcher = cm.Matcher.build(rules, schema)
    agree(matcher, [{"c7": 7}, {"st": {"f": 3}}, {"c2": 2, "c1": 1}, {}, {"c39": 39}, dict.fromkeys(names, 7)])
    assert matcher.match_one({"c7": 7}) == [7, 100, 103] and all(direct)


def test_values_have_the_order_of_their_attributes() -> None:
    matcher = cm.Matcher.build({1: "m['b'] = 1 OR array_contains(l, 2) OR i = 3 OR size(l) = 2 OR m['a'] = 1"}, {
        "i": "bigint", "l": "array<bigint>", "m": "map<string, bigint>"
    })  # fmt: skip
    now = version(matcher)
    reader = EventReader(matcher.schema, now.attributes, now.literals, lambda: now.reach)
    count = reader.read({"m": {"b": 1, "a": 5}, "l": [2, 4], "i": 3})
    attrs = reader.values.attr[:count].tolist()
    assert count == 6 and attrs == sorted(attrs) and len(set(attrs)) == 5


def test_patterns_of_thousands_of_attributes(direct: list[bool]) -> None:
    count = 200 if SMALL else 9_000
    matcher = cm.Matcher.build({i: f"s LIKE '%w{i:04}%'" for i in range(count)}, {"s": "string"})
    for number in (0, 63, 64, count // 2, count - 1):
        assert matcher.match_one({"s": f"a w{number:04} b"}) == [number]
    assert matcher.match_one({"s": f"w{count - 1:04} w0001"}) == [1, count - 1] and all(direct)


def test_names_with_dots_are_no_paths(direct: list[bool]) -> None:
    schema = pa.schema(
        {"a": pa.struct({"b.c": pa.string()}), "a.b": pa.struct({"c": pa.string()}), "a.b.c": pa.string()}
    )
    rules = {
        0: "`a`.`b.c` LIKE '%x%'",
        1: "`a.b`.`c` LIKE '%y%'",
        2: "`a.b.c` LIKE '%z%'",
        3: "lower(`a.b`.`c`) LIKE '%y%'",
    }
    matcher = cm.Matcher.build(rules, schema)
    agree(matcher, [{"a": {"b.c": x}, "a.b": {"c": y}, "a.b.c": z} for x in "xyz" for y in "xyY" for z in "xyz"])
    assert matcher.match_one({"a": {"b.c": "x"}, "a.b": {"c": "y"}, "a.b.c": "z"}) == [0, 1, 2, 3] and all(direct)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_field_that_a_struct_has_twice_is_an_error() -> None:
    schema = pa.schema([("st", pa.struct([("f", pa.int64()), ("f", pa.int64())]))])
    with pytest.raises(cm.EventError, match="'st"):
        cm.Matcher.build({0: "st.f = 1"}, schema).match_one({"st": {"f": 1}})


def test_lists_of_many_elements_become_batches(direct: list[bool]) -> None:
    matcher = cm.Matcher.build({1: "array_contains(words, 'b') AND size(by_word) > 1"}, NESTED_SCHEMA)
    maps = {"by_word": {"a": 1, "b": 2}}
    for size, is_direct in ((255, True), (256, False), (100_000, False)):
        assert matcher.match_one({"words": ["a"] * (size - 1) + ["b"], **maps}) == [1]
        assert direct[-1] is is_direct


@pytest.mark.parametrize(
    ("event", "fault"),
    [
        ({"words": "ab"}, "column 'words' is list<"),
        ({"words": [1]}, "column 'words'"),
        ({"words": ["\ud800"]}, "column 'words'"),
        ({"small": [True]}, "column 'small'"),
        ({"x": [2**53 + 1]}, "column 'x'"),
        ({"by_small": {1: "\ud800"}}, "column 'by_small'"),
        ({"by_word": {"ab": "x"}}, "column 'by_word'"),
        ({"by_word": {"other": "x"}}, "column 'by_word'"),
        ({"by_word": {1: 1}}, "column 'by_word'"),
        ({"by_word": {"\ud800": 1}}, "column 'by_word'"),
        ({"by_small": {300: "a"}}, "column 'by_small'"),
        ({"st": {"nope": 1}}, "column 'st' has not"),
        ({"st": 5}, "column 'st'"),
        ({"st": {"i": "x"}}, "column 'st.i'"),
    ],
)
def test_wrong_values_within_others_are_errors(event: dict[str, Any], fault: str) -> None:
    matcher = cm.Matcher.build(dict(enumerate(NESTED_PREDICATES)), NESTED_SCHEMA)
    with pytest.raises(cm.EventError, match=fault):
        matcher.match_one(event)
