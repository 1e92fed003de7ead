"""Single events: found as batches find them, whichever way they go."""

from __future__ import annotations

import datetime as dt
import gc
import math
import threading
import weakref
from collections import namedtuple
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from random import Random
from types import MappingProxyType, SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from contract import every_kind, own_inserts
from forking import in_child
from hostile import unitless
from inside import idle_event_workers, segment
from installed import needs
from sizes import SMALL

import colmatch as cm
from colmatch.events.single import row as event_row

SCHEMA = {
    "i": pa.int64(),
    "small": pa.int8(),
    "x": pa.float64(),
    "s": pa.string(),
    "word": pa.dictionary(pa.int32(), pa.string()),
    "b": pa.bool_(),
    "d": pa.date32(),
}
WORDS = ["", "a", "ab", "b", "é", "long enough for two words", "long enough for two wordz", "z" * 40]
VALUES: dict[str, list[Any]] = {
    "i": [-(2**63), 2**63 - 1, -1, 0, 1, 5],
    "small": [-128, 127, 0, 3],
    "x": [math.nan, math.inf, -math.inf, -0.0, 0.0, 1.5, -1.5, 2, 2**53],
    "s": WORDS,
    "word": WORDS,
    "b": [True, False],
    "d": [dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(2013, 5, 6), dt.date(9999, 12, 31)],
}
PREDICATES = [
    "i = 5", "i < 0", "i BETWEEN -1 AND 1", "i IS NULL", "i <> 0", "small > 0", "small IN (-128, 3)", "x > 0", "x = 0",
    "x <= 1.5", "x IS NOT NULL", "NOT x < 0", "s = 'ab'", "s > 'a'", "s LIKE 'long%'", "s IN ('', 'é')", "s IS NULL",
    "word = 'b'", "word <> 'zz'", "b", "NOT b", "d >= DATE '1970-01-01'", "d = DATE '2013-05-06'",
]  # fmt: skip
PATTERNS = [
    "s LIKE '%a%'", "s NOT LIKE '%b'", "s LIKE '%long%t_o%'", "s ILIKE '%É%'", "s ILIKE '%WORDS'", "contains(word, 'b')",
    "endswith(word, 'z')", "word NOT ILIKE '%AB%'", "s RLIKE '^a?b'", "NOT word RLIKE 'words?|z{3}'", "s RLIKE 'é$'",
]  # fmt: skip


def some_rules(rng: Random, count: int, first: int = 0, patterns: Sequence[str] = ()) -> dict[int, str]:
    rules = {}
    for i in range(first, first + count):
        some = rng.sample([*PREDICATES, *patterns], rng.randint(1, 3))
        rules[i] = f" {rng.choice(['AND', 'OR'])} ".join(some)
    return rules


def some_events(rng: Random, count: int) -> list[dict[str, Any]]:
    return [
        {name: rng.choice([*values, None]) for name, values in VALUES.items() if rng.random() < 0.8}
        for _ in range(count)
    ]


@needs("pandas")
def test_times_that_pandas_has_not() -> None:
    import pandas as pd

    matcher = cm.Matcher.build(
        {1: "at IS NULL", 2: "d IS NULL", 3: "i > 1"}, {"at": "timestamp", "d": "date", "i": "int"}
    )
    assert matcher.match_one({"at": pd.NaT, "d": pd.NaT, "i": 2}) == [1, 2, 3]


def agree(matcher: cm.Matcher, events: list[dict[str, Any]]) -> None:
    rows = pa.Table.from_pylist(events, matcher.schema.arrow)
    found = matcher.match_lists(rows).to_pylist()
    assert [matcher.match_one(event) for event in events] == found
    assert [matcher.count_one(event) for event in events] == list(map(len, found))
    assert [matcher.exists_one(event) for event in events] == list(map(bool, found))


@every_kind
@pytest.mark.parametrize("patterns", [[], PATTERNS], ids=["plain", "patterns"])
def test_single_events_match_as_batches_do(kind: str, patterns: list[str], direct: list[bool]) -> None:
    rng = Random(1)
    matcher = cm.Matcher.build(some_rules(rng, 150, 0, patterns), SCHEMA, index=kind)
    events = some_events(rng, 12 if SMALL else 60)
    agree(matcher, events)
    assert direct and all(direct)
    matcher.insert(some_rules(rng, 40, 1000, patterns))
    matcher.delete(list(range(0, 150, 3)))
    matcher.upsert({1: "i = 5 OR s = 'new'", 1001: "x = 0"})
    agree(matcher, [*events, {"s": "new"}, {"s": "neu"}, {}])
    matcher.compact()
    agree(matcher, events)
    assert all(direct)
    matcher.delete(matcher.ids)
    agree(matcher, events[:3])


def test_patterns_are_searched_in_their_own_column(direct: list[bool]) -> None:
    """All columns share one automaton, where each has a root of its own."""
    rules = {f"{name} {i}": f"{name} LIKE '{text}'" for name in "abc" for i, text in enumerate(TEXT_PATTERNS[name])}
    rules |= {"n": "n > 3 OR b ILIKE '%Ü%'", "plain": "d = 'xy'"}
    matcher = cm.Matcher.build(rules, dict.fromkeys("abcd", "string") | {"n": "int64"})
    words = ["", "x", "xy", "yx", "xyx", "y", "ü", "Ü", "long " * 40 + "xy"]
    rng = Random(3)
    events: list[dict[str, Any]] = [
        {name: rng.choice([*words, None]) for name in "abcd"} | {"n": rng.choice([1, 5])} for _ in range(60)
    ]
    agree(matcher, [*events, {}, {"b": "xy"}])
    assert all(direct)


def test_each_column_has_its_own_limits_in_the_automaton(direct: list[bool]) -> None:
    """Its longest literal, the few that long texts are looked through for, and its room."""
    rules = {1: "a LIKE '%x%'", 2: "b LIKE '%0123456789%'", 3: "c LIKE '%yy%'", 4: "d RLIKE 'x'", 5: "d LIKE '%x%'"}
    matcher = cm.Matcher.build(rules, dict.fromkeys("abcd", "string"))
    events: list[dict[str, Any]] = [{"b": "." * k + "0123456789" + "." * (200 - k)} for k in range(40, 60)]
    agree(matcher, [*events, {"c": "." * 100 + "yy"}, {"d": "x"}, {"a": "." * 99 + "x", "d": "x"}])
    agree(matcher, [{"a": "x", "b": "0123456789", "c": "yy", "d": "x"}])  # all that there can be
    assert matcher.match_one(events[4]) == [2] and matcher.match_one({"d": "x"}) == [4, 5]
    assert all(direct)
    agree(matcher, [{"a": "." * 60_000 + "x", "d": "x"}])
    assert all(direct)
    agree(matcher, [{"a": "." * 70_000 + "x", "d": "x"}])
    assert not direct[-1], "the interpreter's lock is not held for long"
    plain = cm.Matcher.build({1: "e = 'x'", 2: "a LIKE '%x%'"}, {"a": "string", "e": "string"})
    assert plain.match_one({"a": "x", "e": "." * 70_000}) == [2] and direct[-1], "no pattern looks at the long text"


def test_columns_without_a_value_are_made_once() -> None:
    """An event that becomes a batch has few of the columns that rules need."""
    names = [f"c{i}" for i in range(20)]
    matcher = cm.Matcher.build({1: "at > '2020-01-01'", 2: " OR ".join(f"{name} = 1" for name in names)}, {
        "at": "timestamp", **dict.fromkeys(names, "int64")
    })  # fmt: skip
    at = dt.datetime(2021, 1, 1, tzinfo=dt.UTC)
    assert matcher.match_one({"at": at}) == [1]
    whole = patch.object(event_row, "_make_array", wraps=event_row._make_array)
    with whole as made, patch.object(event_row, "fit", wraps=event_row.fit) as fit:
        assert [matcher.match_one({"at": at, name: 1}) for name in names[:3]] == [[1, 2]] * 3
        assert matcher.match_one({"at": None, "c0": None}) == []
    values = [call.args[0] for call in [*made.call_args_list, *fit.call_args_list]]
    assert [value for value in values if value is not None] == [1, 1, 1, at, at, at], values
    assert values.count(None) <= 1  # of ``at``, which had a value before


TEXT_PATTERNS = {"a": ["%x%", "%xy", "%y%x%"], "b": ["%xy%", "%x", "%_y%"], "c": ["%yx%", "%", "%y", "%long%xy%"]}


@every_kind
def test_own_inserts_and_ids_that_are_strings(kind: str, direct: list[bool]) -> None:
    rng = Random(2)
    matcher = cm.Matcher.build({"first": "i > 0"}, SCHEMA, index=own_inserts(kind) if kind != "auto" else kind)
    for i, text in some_rules(rng, 30).items():
        matcher.insert({f"id {i}": text})
    matcher.delete(["id 3", "id 4"])
    agree(matcher, some_events(rng, 8 if SMALL else 30))
    assert all(direct)


def test_more_matches_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch, direct: list[bool]) -> None:
    monkeypatch.setattr("colmatch.matching.worker.FIRST_CAPACITY", 10)
    matcher = cm.Matcher.build({i: f"i > {i}" for i in range(50)}, {"i": "int64"}, index="scan")
    for event in ({"i": 5}, {"i": 100}, {"i": 7}):
        assert matcher.match_one(event) == list(range(min(event["i"], 50)))
    assert direct == [True, False, True]


def test_long_texts_and_texts_that_are_none(direct: list[bool]) -> None:
    long = "x" * 100_000
    matcher = cm.Matcher.build({1: f"s = '{long}'", 2: "s < 'b'", 3: "s >= 'x'"}, {"s": "string"})
    assert matcher.match_one({"s": long}) == [1, 3]
    assert matcher.match_one({"s": "a"}) == [2]
    assert all(direct)
    with pytest.raises(cm.EventError, match="column 's'"):
        matcher.match_one({"s": "\ud800"})
    assert matcher.match_one({"s": "a"}) == [2]


RICH = pa.schema(
    {
        "f": pa.float32(),
        "dec": pa.decimal128(9, 2),
        "at": pa.timestamp("us", "UTC"),
        "local": pa.timestamp("us"),
        "tags": pa.list_(pa.string()),
        "attrs": pa.map_(pa.string(), pa.int64()),
        "user": pa.struct({"age": pa.int32(), "home": pa.struct({"city": pa.string()})}),
        "s": pa.string(),
        "n": pa.int64(),
    }
)


@dataclass
class Home:
    age: int


@pytest.mark.parametrize(
    ("text", "event", "other"),
    [
        ("f = 0.1F", {"f": 0.1}, {"f": 0.2}),
        ("dec >= 1.25", {"dec": Decimal("1.25")}, {"dec": Decimal("1.24")}),
        (
            "at >= TIMESTAMP '2020-01-01 00:00:00+00:00'",
            {"at": dt.datetime(2020, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1)))},
            {"at": dt.datetime(2020, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1)))},
        ),
        (
            "local = TIMESTAMP '2020-01-01 00:00:00'",
            {"local": dt.datetime(2020, 1, 1)},
            {"local": dt.datetime(2020, 1, 2)},
        ),
        ("array_contains(tags, 'a')", {"tags": ("b", "a")}, {"tags": np.array(["b"])}),
        ("size(tags) > 255 OR array_contains(tags, 'b')", {"tags": ["a"] * 300}, {"tags": ("a",)}),
        ("attrs['k'] > 3", {"attrs": [("k", 4)]}, {"attrs": [("k", 3)]}),
        ("attrs['k'] > 3", {"attrs": {"k": 4, "l": np.int64(1)}}, {"attrs": {"k": 3, "l": 3.0}}),
        ("user.age = 3", {"user": MappingProxyType({"age": 3})}, {"user": Home(4)}),
        ("round(n * 0.3) = 1", {"n": 3}, {"n": 1}),
        ("n = 3", {"n": np.int64(3)}, {"n": np.int32(4)}),
        ("n = 3", {"n": 3.0}, {"n": 4.0}),
        ("geo_within_radius(f, f, 0.1, 0.1, 5.0)", {"f": 0.1}, {"f": 9.0}),
    ],
)
def test_what_needs_arrow(text: str, event: dict[str, Any], other: dict[str, Any], direct: list[bool]) -> None:
    matcher = cm.Matcher.build({7: text}, RICH)
    assert matcher.match_one(event) == [7] and matcher.match_one(other) == []
    assert matcher.count_one(event) == 1 and not matcher.exists_one(other) and matcher.exists_one(event)
    assert not any(direct)


@dataclass
class Thing:
    i: int
    S: str


class Model:
    def model_dump(self) -> dict[str, Any]:
        return {"i": 5, "s": "ab"}


class Row(tuple[Any, ...]):
    def asDict(self) -> dict[str, Any]:
        return {"i": 5, "s": "ab"}


def test_forms_of_events() -> None:
    matcher = cm.Matcher.build({1: "i = 5 AND s = 'ab'"}, SCHEMA)
    pair = namedtuple("pair", "i s")
    for event in (Thing(5, "ab"), pair(5, "ab"), Model(), Row(), MappingProxyType({"I": 5, "s": "ab"})):
        assert matcher.match_one(event) == [1]
    for wrong in (5, "i", [("i", 5)], None, Thing, pair, Model, pa.table({"i": [5]})):
        with pytest.raises(cm.EventError, match="an event is a mapping from name to value"):
            matcher.match_one(wrong)


def test_names_that_are_not_there() -> None:
    matcher = cm.Matcher.build({1: "user.age IS NULL", 2: "s IS NULL", 3: "attrs['k'] IS NULL"}, RICH)
    with pytest.raises(cm.EventError, match="key 'S1', which the schema has not: .*'s'"):
        matcher.match_one({"S1": "x"})
    with pytest.raises(cm.EventError, match="key 'agee', which column 'user' has not: did you mean 'age'"):
        matcher.match_one({"user": {"agee": 3}})
    with pytest.raises(cm.EventError, match="has a key 5: keys are names"):
        matcher.match_one({5: 1})
    with pytest.raises(cm.EventError, match="has 's' twice"):
        matcher.match_one({"s": "x", "S": "y"})
    assert matcher.match_one({"S": "x", "other": 1, "user": {"agee": 3}}, unknown="ignore") == [1, 3]
    assert matcher.match_one({}) == [1, 2, 3]
    for wrong in ("no", None, 3):
        with pytest.raises(cm.OptionError, match="unknown="):
            matcher.match_one({}, unknown=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"i": 2**63}, "column 'i' is int64"),
        ({"small": 2**63}, "column 'small' is int8"),
        ({"i": 1.5}, "column 'i' is int64, and 1.5 is not"),
        ({"i": "5"}, "column 'i'"),
        ({"x": 2**53 + 1}, "column 'x' is double"),
        ({"s": 5}, "column 's' is string, and 5 is not"),
        ({"b": "yes"}, "column 'b' is bool"),
        ({"d": 15000}, "column 'd' .* 15000 is not: a datetime.date, or a text .* is needed"),
        ({"i": "5"}, "column 'i' is int64, and '5' is not: a whole number is needed"),
        ({"i": True}, "column 'i' is int64, and True is not: a whole number is needed"),
        ({"x": True}, "column 'x' is double, and True is not: a number is needed"),
        ({"x": "5"}, "column 'x' is double, and '5' is not: a number is needed"),
        ({"b": 1}, "column 'b' is bool, and 1 is not: True or False is needed"),
        ({"s": b"x"}, "column 's' is string, and b'x' is not: a str is needed"),
        ({"x": np.complex64(1 + 1j)}, "column 'x' is double, and .* is not: a number is needed"),
    ],
    ids=str,
)
def test_values_that_do_not_fit(event: dict[str, Any], said: str) -> None:
    matcher = cm.Matcher.build(dict(enumerate(PREDICATES)), SCHEMA)
    for call in (matcher.match_one, matcher.count_one, matcher.exists_one):
        with pytest.raises(cm.EventError, match=said):
            call(event)


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ("n = 1", {"n": 1.5}),
        ("n = 1", {"n": np.float32(1.5)}),
        ("n = 1", {"n": Decimal("1.5")}),
        ("day = DATE '2020-01-01'", {"day": dt.datetime(2020, 1, 1, 5)}),
        ("at = TIMESTAMP '2020-01-01 00:00:00'", {"at": dt.datetime(2020, 1, 1, 0, 0, 0, 5)}),
        ("array_contains(nums, 1)", {"nums": [0, 1.5]}),
        ("user.age = 1", {"user": {"age": 1.5}}),
        ("attrs['k'] = 1", {"attrs": {"k": 1.5}}),
        ("attrs['k'] = 1", {"attrs": [{"key": "k", "value": 1.5}]}),
        ("array_contains(nums, 1)", {"nums": {1.5}}),
    ],
)
def test_nothing_is_cut_off(text: str, event: dict[str, Any]) -> None:
    schema = {
        "n": pa.int64(),
        "day": pa.date32(),
        "at": pa.timestamp("s"),
        "nums": pa.list_(pa.int64()),
        "user": pa.struct({"age": pa.int64()}),
        "attrs": pa.map_(pa.string(), pa.int64()),
        "f": pa.float32(),
    }
    matcher = cm.Matcher.build({1: text}, schema)
    with pytest.raises(cm.EventError, match="it would lose a part"):
        matcher.match_one(event)
    whole = {"n": 1.0, "day": dt.datetime(2020, 1, 1), "at": dt.datetime(2020, 1, 1), "nums": [0, 1.0]}
    assert matcher.match_one(whole | {"user": {"age": 1.0}, "attrs": {"k": 1.0}, "f": math.inf}) == [1]


WIDER = {
    "int8": [300, -300, 2**63 - 1, 1.0, 1.5], "uint32": [-3, 2**40], "uint64": [-3, 2**62], "float": [1e50, math.inf, 2**30],
    "decimal(4,2)": [Decimal("1234567.89"), Decimal("1.255"), 12345, 10**15], "decimal(20,2)": [Decimal(10) ** 30, Decimal(10) ** 37],
}  # fmt: skip


@pytest.mark.parametrize("type", WIDER)
def test_wider_numbers_are_taken_as_in_batches(type: str) -> None:
    matcher = cm.Matcher.build({1: "x > 1", 2: "x < 0", 3: "x = 300"}, {"x": type})
    nested = cm.Matcher.build({1: "s.x > 1", 2: "m['k'] < 0", 3: "array_contains(l, 300)"}, {
        "s": f"struct<x:{type}>", "m": f"map<string,{type}>", "l": f"array<{type}>"
    })  # fmt: skip
    for value in WIDER[type]:
        try:
            (wanted,) = matcher.match_lists(pa.table({"x": [value]})).to_pylist()
        except cm.EventError:
            with pytest.raises(cm.EventError, match="it would lose a part"):
                matcher.match_one({"x": value})
        else:
            assert list(matcher.match_one({"x": value})) == wanted
            assert list(nested.match_one({"s": {"x": value}, "m": {"k": value}, "l": [value]})) == wanted


WITHIN = pa.schema(
    {
        "clock": pa.time32("s"),
        "at": pa.timestamp("us"),
        "zoned": pa.timestamp("us", "UTC"),
        "day": pa.date32(),
        "prices": pa.list_(pa.float64()),
        "names": pa.list_(pa.string()),
        "views": pa.list_view(pa.string()),
        "days": pa.list_(pa.date32()),
        "seen": pa.map_(pa.string(), pa.timestamp("us")),
        "n": pa.int64(),
    }
)


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"prices": [2.5, True]}, "column 'prices' has double in it, and True is not: a number is needed"),
        ({"names": ["a", b"x"]}, "column 'names' has string in it, and b'x' is not: a str is needed"),
        (
            {"days": [None, 5]},
            "column 'days' has date32.day. in it, and 5 is not: a datetime.date, or a text .* is needed",
        ),
        ({"seen": {"a": 5}}, "column 'seen' has timestamp.us. in it, and 5 is not: a datetime.datetime, .* is needed"),
        ({"seen": {b"a": None}}, "column 'seen' has string in it, and b'a' is not: a str is needed"),
        ({"views": "ab"}, "column 'views' is list_view.* a list is needed"),
        ({"clock": dt.time(0, 0, 0, 500_000)}, "column 'clock' .* it would lose a part"),
        ({"clock": dt.time(1, tzinfo=dt.UTC)}, "column 'clock' .* it would lose a part"),
        (
            {"at": pa.scalar(10**15, pa.timestamp("s"))},
            "column 'at' is timestamp.us., and a timestamp.s. of Arrow is not",
        ),
        ({"at": np.datetime64("2020-01-01T00:00:00.123456789")}, "column 'at' .* it would lose a part"),
        ({"day": np.datetime64("2020-01-01T05")}, "column 'day' .* it would lose a part"),
        ({"zoned": np.datetime64("2020-01-01T05")}, "column 'zoned' .* a datetime.datetime, or a text"),
        ({"n": np.datetime64("2020-01-01")}, "column 'n' is int64, .* a whole number is needed"),
    ],
    ids=range(13),
)
def test_values_within_others_are_as_strict(event: dict[str, Any], said: str) -> None:
    matcher = cm.Matcher.build({1: "n = 1"}, WITHIN)
    with pytest.raises(cm.EventError, match=said):
        matcher.explain(event, 1)
    used = {i: f"{name} IS NULL" for i, name in enumerate(event)}
    with pytest.raises(cm.EventError, match=said):
        cm.Matcher.build(used, WITHIN).match_one(event)


@pytest.mark.parametrize("unit", ["D", "h", "m", "s", "ms", "us", "ns"])
def test_moments_of_numpy(unit: str) -> None:
    matcher = cm.Matcher.build({1: "at = TIMESTAMP '2020-01-01 00:00:00'", 2: "day = DATE '2020-01-01'"}, WITHIN)
    new_year = np.datetime64("2020-01-01", unit)
    assert matcher.match_one({"at": new_year, "day": new_year}) == [1, 2]
    assert matcher.match_one({"at": unitless(np.datetime64, "NaT"), "day": np.datetime64("NaT", unit)}) == []


def test_texts_are_no_lists_and_numbers_no_structs() -> None:
    matcher = cm.Matcher.build({1: "array_contains(tags, 'a')", 2: "user.age = 5"}, RICH)
    for wrong in ("abc", b"abc"):
        with pytest.raises(cm.EventError, match="column 'tags' is list.* a list is needed"):
            matcher.match_one({"tags": wrong})
    with pytest.raises(cm.EventError, match="column 'user' is struct.* a mapping is needed"):
        matcher.match_one({"user": 5})
    assert matcher.match_one({"tags": {"a"}, "user": {"age": 5}}) == [1, 2]


def test_times_need_the_zone_that_their_column_needs() -> None:
    matcher = cm.Matcher.build({1: "at IS NOT NULL", 2: "local IS NOT NULL"}, RICH)
    with pytest.raises(cm.EventError, match="'at' .* has one, and .* has no time zone"):
        matcher.match_one({"at": dt.datetime(2020, 1, 1)})
    with pytest.raises(cm.EventError, match="'local' .* has none, and .* has a time zone"):
        matcher.match_one({"local": dt.datetime(2020, 1, 1, tzinfo=dt.UTC)})
    with pytest.raises(cm.EventError, match=r"has no time zone: .*replace\(tzinfo=datetime.timezone.utc\)"):
        matcher.match_one({"at": dt.datetime(2020, 1, 1)})
    with pytest.raises(cm.EventError, match=r"a datetime.datetime, or a text such as 2024-01-31T12:30:00Z, is needed"):
        matcher.match_one({"at": 1577836800})
    assert matcher.match_one({"local": dt.date(2020, 1, 1)}) == [2]


@needs("pandas")
def test_what_pandas_has_for_nothing_is_null() -> None:
    import pandas as pd

    matcher = cm.Matcher.build({1: "i IS NULL", 2: "s IS NULL"}, SCHEMA)
    row = pd.DataFrame({"i": pd.array([None], "Int64"), "s": pd.array([None], "string")}).iloc[0].to_dict()
    assert matcher.match_one(row) == [1, 2]


@needs("pandas")
def test_rows_of_pandas_mean_what_they_mean_in_the_frame() -> None:
    import pandas as pd

    schema = {"p": "double", "s": "string", "i": "bigint"}
    frame = pd.DataFrame({"p": [np.nan, 2.5, np.inf], "s": ["a", None, "b"], "i": [1.0, np.nan, 3.0]})
    matcher = cm.Matcher.build({1: "p IS NULL", 2: "s IS NULL", 3: "i IS NULL", 4: "p > 2", 5: "i = 3"}, schema)
    wanted = matcher.match_lists(frame).to_pylist()
    assert wanted == [[1], [2, 3, 4], [4, 5]]
    assert [matcher.match_one(frame.iloc[i]) for i in range(3)] == wanted
    assert [matcher.match_one(row) for row in frame.itertuples(index=False)] == wanted
    assert [matcher.match_one(row) for row in frame.astype({"p": "float32"}).itertuples(index=False)] == wanted
    assert matcher.explain(frame.iloc[0], 1).matched
    assert matcher.match_one({"p": float("nan"), "s": "a"}) == [3, 4]
    with pytest.raises(cm.EventError, match="not DataFrame"):
        matcher.match_one(frame)


def test_named_tuples_within_events() -> None:
    matcher = cm.Matcher.build({1: "user.age = 5"}, RICH)
    assert matcher.match_one({"user": namedtuple("user", "age")(5)}) == [1]


@needs("pyspark")
def test_objects_within_events() -> None:
    """Rows of Spark have Rows in them, as dataclasses and named tuples have others."""
    matcher = cm.Matcher.build({1: "user.age = 5"}, RICH)
    from pyspark import sql

    for user in (namedtuple("user", "age")(5), sql.Row(age=5), sql.Row(AGE=5)):
        assert matcher.match_one({"user": user}) == [1]
        assert matcher.match_one(sql.Row(user=user)) == [1]
        assert matcher.explain({"user": user}, 1).matched
    with pytest.raises(cm.EventError, match="key 'agee', which column 'user' has not"):
        matcher.match_one({"user": sql.Row(agee=5)})
    with pytest.raises(cm.EventError, match="a mapping is needed"):
        matcher.match_one({"user": (5,)})


def test_explain_takes_events_as_match_one_does() -> None:
    matcher = cm.Matcher.build({1: "i = 5"}, SCHEMA)
    assert matcher.explain({"I": 5.0, "b": None}, 1).matched
    with pytest.raises(cm.EventError, match="key 'ii', which the schema has not: did you mean 'i'"):
        matcher.explain({"ii": 5}, 1)
    with pytest.raises(cm.EventError, match="column 'i' is int64, and '5' is not: a whole number is needed"):
        matcher.explain({"i": "5"}, 1)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("{}", r"json.loads\(event\)"),
        (b"{}", r"json.loads\(event\)"),
        ([{"i": 5}], r"one event at a time, or several to match\(events\)"),
        (pa.table({"i": [5]}), r"match\(events\) takes tables"),
        (SimpleNamespace(i=5), r"vars\(event\)"),
    ],
    ids=str,
)
def test_what_is_no_event_is_told_what_to_do(wrong: Any, said: str) -> None:
    matcher = cm.Matcher.build({1: "i = 5"}, SCHEMA)
    with pytest.raises(cm.EventError, match=f"an event is a mapping from name to value.*{said}"):
        matcher.match_one(wrong)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"i": 5}, r"match_one\(event\)"),
        (SimpleNamespace(_asdict=dict), r"match_one\(event\)"),
        ([pa.record_batch({"i": [5]})], r"pyarrow.Table.from_batches\(events\)"),
        ("events.parquet", r"pyarrow.dataset.dataset\('events.parquet'\)"),
        (Path("events.csv"), r"pyarrow.dataset.dataset\('events.csv'\)"),
        (np.zeros(3), "pass a table"),
    ],
    ids=str,
)
def test_what_are_no_events_is_told_what_to_do(wrong: Any, said: str) -> None:
    matcher = cm.Matcher.build({1: "i = 5"}, SCHEMA)
    with pytest.raises(cm.EventError, match=f"events cannot be read from .*{said}"):
        matcher.match(wrong)
    assert matcher.match(pa.array([{"i": 5}, {"s": "x", "i": 6}]))["event"].to_pylist() == [0]


def test_among_some_and_best_ones() -> None:
    matcher = cm.Matcher.build({i: f"i > {i}" for i in range(6)}, {"i": "int64"}, tags={2: ["t"], 5: ["t"]})
    assert matcher.match_one({"i": 4}, ids=[1, 5, 3]) == [1, 3]
    assert matcher.match_one({"i": 9}, tags=["t"]) == [2, 5]
    assert matcher.count_one({"i": 4}, tags=["t"]) == 1 and not matcher.exists_one({"i": 4}, ids=[5])
    table = pa.table({"id": [1, 2, 3], "expression": ["i > 0", "i > 1", "i > 9"], "priority": [0.5, 2.0, 3.0]})
    best = cm.Matcher.build(table, {"i": "int64", "w": "double"})
    assert best.match_topk_one({"i": 5}, 2, "priority") == [(2, 2.0), (1, 0.5)]
    assert best.match_topk_one({"i": 0}, 2, "priority") == []
    assert best.match_topk_one({"i": 5, "w": 2.0}, 1, event_weights={"i": "w"}) == [(1, 0.0)]
    assert best.match_topk_one({"i": 5, "w": 2.0}, 1, event_weights={"i": "W"}) == [(1, 0.0)]
    assert best.match_topk_one({"i": 5, "n": 2.0}, 1, event_weights={"i": "n"}) == [(1, 0.0)]
    assert best.match_topk_one({"i": 5, "uu": {"i": 2.0}}, 1, event_weights="uu") == [(1, 0.0)]
    with pytest.raises(cm.OptionError, match="k="):
        best.match_topk_one({"i": 5}, 0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'tag'"):
        matcher.match_one({"i": 5}, tag=["t"])  # type: ignore[call-arg]


def test_what_must_be_there(direct: list[bool]) -> None:
    schema = pa.schema([pa.field("i", pa.int64(), nullable=False), pa.field("s", pa.string())])
    matcher = cm.Matcher.build({1: "s = 'a'", 2: "i IS NULL OR i = 5"}, schema)
    assert matcher.match_one({"s": "a"}) == [] and matcher.match_one({"s": "a", "i": 5}) == [1, 2]
    assert matcher.count_one({"s": "a"}) == 0 and not matcher.exists_one({})
    assert matcher.match_one({"s": "a"}, ids=[1]) == []
    assert direct == [True]


def test_in_betrees_language() -> None:
    domains = cm.betree.Domains("age|integer|false|0|150\ncity|string|true\ntags|string list|true")
    rules = {1: 'age > 20 and city = "NYC"', 2: 'not (city = "NYC")', 3: 'tags one of ("a")'}
    matcher = cm.Matcher.build(rules, domains, language="betree")
    assert matcher.match_one({"age": 36, "city": "NYC"}) == [1]
    assert matcher.match_one({"age": 3}) == [2] and matcher.match_one({"city": "NYC"}) == []
    assert matcher.match_one({"age": 36, "tags": ["a"]}) == [2, 3]


def test_in_pages(tmp_path: Path) -> None:
    rng = Random(3)
    with cm.Matcher.build(some_rules(rng, 60), SCHEMA, index=cm.index("pbtree", path=str(tmp_path / "a"))) as matcher:
        agree(matcher, some_events(rng, 10))
        matcher.insert({1000: "i = 5"})
        assert 1000 in matcher.match_one({"i": 5})


def test_events_that_are_observed_are_batches(direct: list[bool]) -> None:
    matcher = cm.Matcher.build({1: "i = 5"}, SCHEMA, options=cm.Options(observe=64))
    for _ in range(2000):
        assert matcher.match_one({"i": 5}) == [1]
    assert matcher.stats()["observed"] > 0 and not direct


def test_options_change_between_events(direct: list[bool]) -> None:
    matcher = cm.Matcher.build({2: "i = 5", 1: "i > 0"}, SCHEMA)
    matcher.options = cm.Options(order="any", missing_columns="error")
    assert sorted(matcher.match_one({"i": 5})) == [1, 2] and matcher.match_one({}) == []


def test_old_versions_are_let_go_of() -> None:
    matcher = cm.Matcher.build({1: "i = 5"}, SCHEMA)
    assert matcher.match_one({"i": 5}) == [1]
    old, array = weakref.ref(segment(matcher)), weakref.ref(segment(matcher).predicates.pred)
    assert idle_event_workers(matcher) == 1
    matcher.insert(dict.fromkeys(range(2, 700), "i = 5"))
    matcher.compact()
    gc.collect()
    assert old() is None and array() is None
    assert len(matcher.match_one({"i": 5})) == 699


def test_threads_that_match_while_others_update() -> None:
    matcher = cm.Matcher.build({-1: "i >= 0"}, {"i": "int64", "s": "string"})
    wrong: list[Any] = []
    done = threading.Event()

    def ask(i: int) -> None:
        while not done.is_set():
            found = matcher.match_one({"i": i, "s": f"word {i}"})
            if found[:1] != [-1] or any(one >= 0 and one % 7 != i for one in found):
                wrong.append((i, found))

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for j in range(60 if SMALL else 600):
        matcher.insert({j: f"i = {j % 7} AND (s = 'word {j % 7}' OR s = 'other {j}')"})
        if j % 3 == 0:
            matcher.delete([j])
    done.set()
    for thread in threads:
        thread.join()
    assert not wrong
    assert matcher.match_one({"i": 6, "s": "other 6"}) == [-1]


def test_in_a_forked_child() -> None:
    matcher = cm.Matcher.build({1: "i = 5", 2: "s = 'a'"}, SCHEMA)
    assert matcher.match_one({"i": 5, "s": "a"}) == [1, 2]
    assert in_child(lambda: matcher.match_one({"i": 5, "s": "b"})) == "[1]"


def test_an_error_of_a_caller_leaves_nothing_behind() -> None:
    """What an event's own ``get`` raises comes through, and the next event is matched."""

    class Odd(dict[str, Any]):
        def get(self, name: str, default: Any = None) -> Any:
            raise KeyError("odd")

    matcher = cm.Matcher.build({1: "i = 5"}, SCHEMA)
    with pytest.raises(KeyError, match="odd"):
        matcher.match_one(Odd(i=5))
    assert matcher.match_one({"i": 5}) == [1]


def test_what_arrow_takes_as_it_is_becomes_what_a_check_of_each_value_makes_of_it() -> None:
    inner = pa.struct({"a": pa.int32(), "s": pa.string(), "f": pa.float64(), "b": pa.bool_()})
    types = [
        pa.int8(), pa.uint64(), pa.float64(), pa.bool_(), pa.string(), pa.large_string(), pa.list_(pa.int64()), inner,
        pa.list_(inner), pa.large_list(pa.list_(pa.string())), pa.struct({"x": inner}),
    ]  # fmt: skip
    struct: dict[str, Any] = {"a": 1, "s": "x", "f": 1.5, "b": True}
    values: list[Any] = [
        None, True, 0, 5, -1, 300, 2**63, 2**70, 1.5, math.nan, math.inf, "x", "\ud800", b"x", [], [1, None], [1.5], [True],
        ["x"], [["x", None], None], struct, {}, {"a": None}, {"A": 1}, {"zip": 1}, {"a": 1.0}, {"a": True}, {"s": 1},
        [struct, None, {}], [{"a": 2**40}], [{"f": 1}], {"x": struct}, {"x": {"a": "1"}}, (1,), (struct,), Decimal("1"),
        np.int64(1), dt.date(2020, 1, 1),
    ]  # fmt: skip
    taken = 0
    for arrow in types:
        is_plain = event_row._plain(arrow)
        assert is_plain is not None
        for value in values:
            made = event_row._make_array(value, arrow) if is_plain(value) else None
            if made is not None:
                taken += 1
                assert made.equals(event_row.array_of(value, arrow, "c", None)) or value != value, (value, arrow)
    assert taken > 30
    for of_checks in (
        pa.date32(),
        pa.float32(),
        pa.timestamp("us"),
        pa.list_(pa.decimal128(5, 2)),
        pa.map_(pa.string(), inner),
    ):
        assert event_row._plain(of_checks) is None


@pytest.mark.parametrize(("column", "kind"), [("user", dict), ("tags", list), ("name", str)])
def test_an_object_that_says_it_is_of_another_class(column: str, kind: type) -> None:
    class Liar:
        __class__ = kind  # type: ignore[assignment]

    schema = {"user": pa.struct({"age": pa.int64()}), "tags": pa.list_(pa.string()), "name": pa.string()}
    matcher = cm.Matcher.build({1: "user.age = 1", 2: "array_contains(tags, 'a')", 3: "name LIKE '%a%'"}, schema)
    with pytest.raises(cm.EventError, match=f"column '{column}' is "):
        matcher.match_one({column: Liar()})


def test_fields_of_one_name_are_looked_at_one_by_one() -> None:
    twice = pa.struct([("x", pa.list_(pa.int32())), ("x", pa.string())])
    assert event_row._plain(twice) is None and event_row._plain(pa.list_(twice)) is None
