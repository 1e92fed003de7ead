"""Expressions of be-tree's language: what is refused, where and why, and what is saved of it."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from contract import pairs
from hypothesis import example, given, settings
from hypothesis import strategies as st
from naive import CONSTANTS, DOMAINS
from sizes import share

import colmatch as cm
from colmatch.betree.parse import EPSILON, find_equal_floats

MATCHER = cm.Matcher.build({}, cm.betree.Domains(DOMAINS), language="betree")


def rejected(text: Any, constants: Any = CONSTANTS) -> cm.Rejected | None:
    """What a text is refused with, None where it is one of the language."""
    matcher = cm.Matcher.build(
        {1: text},
        cm.betree.Domains(DOMAINS),
        "scan",
        errors="collect",
        max_rejected=1.0,
        language="betree",
        constants={1: constants},
    )
    return next(iter(matcher.rejected), None)


REFUSED = {  # text: column, and what is said
    "": (1, "a condition is expected here, where the text ends"),
    "i": (1, "'i' is of type integer, not a condition by itself"),
    "i = ": (5, "a literal is expected here, where the text ends"),
    "i == 1": (4, "a literal is expected here, where there is '='"),
    "i != 1": (3, "'!' means nothing here: write <> or not"),
    "i = 1 & i = 2": (7, "'&' means nothing here: write and, or &&"),
    "i = 1 i = 2": (7, "and, or or the end is expected here, where there is 'i'"),
    "(i = 1": (1, "this ( is not closed"),
    "i = 1)": (6, "this ) closes nothing"),
    "(b i)": (4, "and, or or ) is expected here, where there is 'i'"),
    "b AND c": (3, "is expected here, where there is 'AND'"),
    "NOT b": (1, "unknown attribute 'NOT': words of the language are in lower case"),
    "TRUE": (1, "unknown attribute 'TRUE': words of the language are in lower case"),
    "shop = 1": (1, "unknown attribute 'shop': the list of domains has"),
    "muzt = 1": (1, "unknown attribute 'muzt': did you mean 'must'?"),
    "i = 1.0": (5, "'i' is of type integer: an integer is needed here, not a float"),
    "i = 'x'": (5, "an integer is needed here, not a string"),
    "s > 'a'": (1, "> is for attributes of type integer or float; 's' is of type string"),
    "e > 1": (1, "'e' is of type integer enum"),
    "b = true": (5, "a literal is expected here, where there is 'true'"),
    "b = 1": (1, "= is for attributes of type integer, float, string or integer enum; 'b' is of type boolean"),
    "i = j": (5, "a literal is expected here, where there is 'j'"),
    "i in il": (6, "two attributes are not compared"),
    "i in ()": (7, "an integer or a string is expected here, where there is ')'"),
    "i in (1 2)": (9, "a comma or ) is expected here, where there is 2"),
    "i in (1, 'x')": (10, "integers and strings are not mixed in a list"),
    "i in (1.5)": (7, "an integer or a string is expected here, where there is 1.5"),
    "f in (1)": (1, "in is for attributes of type integer or string"),
    "i not 1": (7, "in is expected here, where there is 1"),
    "1.5 in il": (1, "lists have no floats"),
    "1 in s": (6, "in behind a literal is for attributes of type integer list or string list"),
    "1 in (1)": (6, "the name of an attribute is expected here, where there is '('"),
    "1": (2, "a comparison or in is expected here, where the text ends"),
    "il one of (1) or": (17, "a condition is expected here, where the text ends"),
    "i one of (1)": (1, "one of is for attributes of type integer list or string list"),
    "il all of 1": (11, "a list of literals in parentheses is expected here"),
    "must is null": (1, "'must' is never undefined"),
    "i is empty": (1, "is empty is for attributes of type integer list or string list"),
    "il is not empty": (11, "null is expected here, where there is 'empty'"),
    "i is": (5, "null, not null or empty is expected here, where the text ends"),
    "i between 1": (3, "a comparison or another operator is expected here, where there is 'between'"),
    "i = 1e5": (5, "'1e5' is no number here: write it without an exponent"),
    "f = .5": (5, "'.' means nothing here: names have no dots, and numbers begin with a digit"),
    "i = +1": (5, "'+' means nothing here: numbers have no plus before them"),
    "a.b = 1": (2, "'.' means nothing here"),
    "i = 9223372036854775808": (5, "the number is larger than 64 bits can hold"),
    "f = " + "9" * 400 + ".0": (5, "the number is too large"),
    "s = 'abc": (5, "the string that begins here has no end"),
    "s = 'a\ud800'": (1, "half a surrogate pair"),
    "like(s, 'x')": (1, "there is no function 'like'"),
    "contains(s)": (1, "contains takes an attribute and a string"),
    "contains('x', s)": (1, "contains takes an attribute and a string"),
    "contains(i, 'x')": (10, "contains is for attributes of type string; 'i' is of type integer"),
    "contains(s, )": (13, "an argument is expected here, where there is ')'"),
    "geo_within_radius(1.0, 2.0)": (1, "geo_within_radius takes other arguments"),
    "segment_within(12.5, 1)": (1, "segment_within takes other arguments"),
    "segment_within(il, 12, 1)": (1, "segment_within reads 'il', which must be declared as a domain of type segments"),
    'within_frequency_cap("club", "ns", 1, 1)': (22, "there is no type of cap 'club'"),
    'within_frequency_cap("product", "ns", 1, 1)': (1, "within_frequency_cap needs the constant 'product_id'"),
    "b\nand\n  i = s": (7, "a literal is expected here, where there is 's'"),
    "(" * 201 + "b" + ")" * 201: (201, "the expression nests deeper than 200 levels"),
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: repr(text[:30]))
def test_what_is_refused_and_where(text: str) -> None:
    column, said = REFUSED[text]
    bad = rejected(text)
    assert bad is not None and bad.position is not None
    assert (bad.position, said in bad.message) == ((text.count("\n") + 1, column), True), bad


@pytest.mark.parametrize("text", [None, 7, b"b", ["b"]])
def test_what_is_no_text_is_refused(text: Any) -> None:
    bad = rejected(text)
    assert bad is not None and bad.position is None


ACCEPTED = [
    "not not not b", "(((b)))", "b&&c||not(b)", "i=-1", "-1=i", "i>-5", "f = 5.", "f > -1", "x-1 = 'x'", "X-1='x'",
    "s = \"a\\\"b\\\\\"", "s in ('x',\"y\")", "i not\tin\n(1,2,)"[:-2] + ")", "true and false", "il none of (1,1)",
    "i is  not\nnull", "seen is null", "frequency_caps is not null", "SEGMENT-x = 1 or b"[16:], "0 < f",
    "(" * 200 + "b" + ")" * 200, "not " * 5000 + "b", " or ".join(["i = 1"] * 5000), "j = 9223372036854775807",
]  # fmt: skip


@pytest.mark.parametrize("text", ACCEPTED, ids=lambda text: repr(text[:30]))
def test_what_is_accepted(text: str) -> None:
    assert rejected(text) is None


PIECES = (
    "and or not in one none all of is null empty true false ( ) , < <= = <> >= > && || & | ! - 1 -1 1.5 1. 'x' \"x\" ' \" \\ i f s b e il "
    "sl seen now must x-1 contains starts_with within_frequency_cap segment_within geo_within_radius 99999999999999999999 \ud800 é \n \0 "
    "1e5 ++ #"
)
WORDS = st.sampled_from(PIECES.split(" "))


@given(st.lists(WORDS, max_size=14).map(" ".join) | st.text(max_size=20) | st.lists(WORDS, max_size=9).map("".join))
@settings(max_examples=share(1500), deadline=None)
def test_malformed_texts_give_our_errors_alone(text: str) -> None:
    compiler = MATCHER  # a matcher without subscriptions, which takes in one text after the other
    compiler.upsert({1: text}, errors="collect", constants={1: CONSTANTS})
    assert all(one.position is not None and one.message for one in compiler.rejected)


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(2.0**-52)  # 0 is just too far away, and very many floats beside it are not
def test_floats_that_are_equal(value: float) -> None:
    low, high = find_equal_floats(value)
    assert abs(low - value) < EPSILON and abs(high - value) < EPSILON
    assert not abs(math.nextafter(low, -math.inf) - value) < EPSILON
    assert not abs(math.nextafter(high, math.inf) - value) < EPSILON


def test_an_absent_value_can_be_unknown_here_too() -> None:
    texts = {
        "not": "not (i = 1)",
        "other": "i <> 1",
        "out": "i not in (1, 2)",
        "none": "il none of (1)",
        "null": "i is null",
    }
    events = cm.betree.events('{"must": 1}\n{"must": 1, "i": 5, "il": []}', DOMAINS)
    found = [
        [sorted(ids) for ids in cm.Matcher.build(texts, cm.betree.Domains(DOMAINS), language="betree", **mode)
         .match_lists(events).to_pylist()]
        for mode in ({}, {"missing": "unknown"})
    ]  # fmt: skip
    defined = ["none", "not", "other", "out"]
    assert found == [[["not", "null"], defined], [["null"], defined]]


def test_it_is_saved_with_its_domains(tmp_path: Path) -> None:
    matcher = cm.Matcher.build({1: "i = 1", 2: "segment_within(1, 20)"}, cm.betree.Domains(DOMAINS), language="betree")
    matcher.save(tmp_path / "m.cm")
    events = cm.betree.events(['{"must": 1, "now": 40, "segments_with_timestamp": [[1, 30000000]]}'], matcher.schema)
    with cm.Matcher.open(tmp_path / "m.cm", journal=True) as opened:
        assert (opened.language, opened.missing) == ("betree", "false")
        assert opened.stats()["language"] == "betree" and opened.stats()["missing"] == "false"
        opened.insert(
            {3: "segment_before(1, 5) and e is null", 4: "within_frequency_cap('flight', 'n', 1, 0)"},
            constants={4: {"flight_id": 1}},
        )
        opened.delete([1])
        opened.compact()
    for again in (cm.Matcher.open(tmp_path / "m.cm", journal=True), pickle.loads(pickle.dumps(opened))):
        assert pairs(again.match(events)) == [(0, 2), (0, 3)]
        again.insert({5: "not (must = 2)"})
        with pytest.raises(cm.ExpressionError, match="must be declared|never undefined"):
            again.insert({6: "must is null"})
        assert pairs(again.match(events)) == [(0, 2), (0, 3), (0, 5)]
        again.close()


def test_an_arrow_schema_is_domains_too() -> None:
    schema = pa.schema(
        [
            pa.field("age", pa.int32(), nullable=False),
            ("Tags", pa.list_(pa.string())),
            ("day", pa.date32()),
            ("x", pa.float32()),
        ]
    )
    matcher = cm.Matcher.build({1: "age >= 18 and tags one of ('a')", 2: "not (x > 1)"}, schema, language="betree")
    events = pa.table(
        {"age": pa.array([20, None], pa.int32()), "Tags": [["b", "a"], ["a"]], "x": pa.array([2.0, None], pa.float32())}
    )
    assert pairs(matcher.match(events)) == [(0, 1)]
    with pytest.raises(cm.ExpressionError, match="unknown attribute 'day'"):
        matcher.insert({3: "day is null"})


def test_explain_shows_functions_with_what_they_read() -> None:
    matcher = cm.Matcher.build(
        {1: "not segment_within(seen, 12, 60) and i is null"}, cm.betree.Domains(DOMAINS), language="betree"
    )
    told = str(matcher.explain({"must": 1, "now": 100, "SEEN": [[12, 1_000_000]]}, 1))
    assert told == (
        "subscription 1: matches (what is missing is false)\n"
        "└─ True    all of\n"
        "   ├─ True    i IS NULL   [NULL]\n"
        "   └─ True    NOT segment_within(seen, 12, 60)   [{'seen': [{'id': 12, 'timestamp': 1000000}], 'now': 100}]"
    )
    assert "the event lacks 'must', which must be defined" in str(matcher.explain({"i": 1}, 1))
    with pytest.raises(cm.EventError, match="'i' is 'x': a whole number of 64 bits is needed"):
        matcher.explain({"i": "x"}, 1)


def test_ranges_beside_functions() -> None:
    texts = {
        1: "i > 5 and segment_within(1, 20)",
        2: "must = 1 and segment_within(1, 20)",
        3: "not segment_within(1, 20)",
    }
    matcher = cm.Matcher.build(texts, cm.betree.Domains(DOMAINS), language="betree")
    events = cm.betree.events(['{"must": 1, "now": 40, "segments_with_timestamp": [[1, 30000000]]}'] * 2, DOMAINS)
    events = events.append_column("low", pa.array([1, 1])).append_column("high", pa.array([9, 5]))
    assert pairs(matcher.match(events, ranges={"i": ("low", "high")})) == [(0, 1), (0, 2), (1, 2)]
    with pytest.raises(
        cm.EventError, match=r"'now' cannot be a range: segment_within\(segments_with_timestamp, …\) needs"
    ):
        matcher.match(events, ranges={"now": ("low", "high")})


def test_columns_that_functions_read() -> None:
    """They are named, looked at and refused as those of conditions are."""
    matcher = cm.Matcher.build({1: "segment_within(seen, 1, 20)"}, cm.betree.Domains(DOMAINS), language="betree")
    assert matcher.columns == ["seen", "now", "must"] and matcher.paths == [("seen",), ("now",)]
    whole = {"SEEN": [[{"id": 1, "timestamp": 30_000_000}]], "now": pa.array([40], pa.int32()), "must": [1]}
    type = pa.large_list(pa.struct({"id": pa.uint8(), "timestamp": pa.int32()}))
    events = pa.table({name: pa.array(values, type) if name == "SEEN" else values for name, values in whole.items()})
    assert matcher.match(events).num_rows == 1
    assert matcher.match(pa.concat_tables([events, events, events]).slice(1)).num_rows == 2
    wrong = {
        "there is|have no column 'seen'": events.drop_columns(["SEEN"]),
        "there are 2 columns 'now'": events.rename_columns(["seen", "NOW", "must"]).append_column("Now", events["now"]),
        "column 'seen' is int64": events.set_column(0, "seen", pa.array([1])),
        "column 'seen', event 0: it has NULL within a list": events.set_column(0, "seen", pa.array([[None]], type)),
        "column 'now', which a function reads, is string": events.set_column(1, "now", pa.array(["x"])),
    }
    for said, table in wrong.items():
        with pytest.raises(cm.EventError, match=said):
            matcher.match(table)
    odd = pa.StringArray.from_buffers(1, pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(b"\xff"))
    fields = {"type": odd, "id": pa.array([1]), "ns": odd, "value": pa.array([1]), "timestamp": pa.array([1])}
    caps = pa.ListArray.from_arrays([0, 1], pa.StructArray.from_arrays(list(fields.values()), list(fields)))
    capped = cm.Matcher.build(
        {1: "within_frequency_cap('flight', 'n', 1, 0)"},
        cm.betree.Domains(DOMAINS),
        language="betree",
        constants={1: CONSTANTS},
    )
    with pytest.raises(cm.EventError, match="'frequency_caps' has text that is not UTF-8"):
        capped.match(pa.table({"frequency_caps": caps, "now": [1], "must": [1]}))
    matcher.options = cm.Options(missing_columns="null")
    assert matcher.match(events.drop_columns(["now"])).num_rows == 0


def test_unsorted_segments_are_found() -> None:
    matcher = cm.Matcher.build(
        {id: f"segment_within({id}, 20)" for id in range(5)}, cm.betree.Domains(DOMAINS), language="betree"
    )
    lines = ['{"must": 1, "now": 40, "segments_with_timestamp": [[3, 30000000], [1, 30000000], [2, 1000000]]}', '{"must": 1}',
             '{"must": 1, "now": 40, "segments_with_timestamp": [[0, 30000000], [4, 20000000]]}']  # fmt: skip
    assert [sorted(ids) for ids in matcher.match_lists(cm.betree.events(lines, DOMAINS)).to_pylist()] == [
        [1, 3],
        [],
        [0, 4],
    ]


def test_constants_are_checked() -> None:
    domains, cap = cm.betree.Domains(DOMAINS), "within_frequency_cap('flight', 'n', 1, 0)"
    for constants, said in (
        ({2: CONSTANTS}, "constants are given for 2, which is none of the subscriptions"),
        ({1: {"flight_id": "7"}}, "the constant 'flight_id' of 1 is '7'"),
        ({1: [7]}, r"the constants of 1 are \[7\]"),
        ([7], r"constants=\[7\]: a mapping"),
    ):
        with pytest.raises(cm.ColmatchError, match=said):
            cm.Matcher.build({1: cap}, domains, language="betree", constants=constants)
    with pytest.raises(cm.OptionError, match="SQL has no constants"):
        cm.Matcher.build({1: "i = 1"}, {"i": "int64"}, constants={1: CONSTANTS})
    table = pa.table({"id": [1, 2], "expression": [cap, "b"], "constants": ['{"flight_id": 7}', ""]})
    assert len(cm.Matcher.build(table, domains, language="betree")) == 2
    with pytest.raises(cm.OptionError, match="the subscriptions have constants, too"):
        cm.Matcher.build(table, domains, language="betree", constants={1: CONSTANTS})
    maps = table.set_column(2, "constants", pa.array([{"flight_id": 7}, None], pa.map_(pa.string(), pa.int64())))
    assert len(cm.Matcher.build(maps, domains, language="betree")) == 2
    with pytest.raises(cm.SubscriptionError, match="the constants of 2 are not JSON"):
        cm.Matcher.build(table.set_column(2, "constants", pa.array(["", "{"])), domains, language="betree")


def test_lists_and_numbers_of_other_forms_are_the_same() -> None:
    """List views, dictionaries and runs. Arrow's own cast of views loses the last list."""
    type = pa.struct({"id": pa.int64(), "timestamp": pa.int64()})
    rows = [[{"id": 1, "timestamp": 0}], [], [{"id": 2, "timestamp": 0}, {"id": 1, "timestamp": 10**12}], None]
    texts = {1: "segment_within(seen, 1, 3600)", 2: "not segment_within(seen, 1, 3600)"}
    schema = cm.betree.Domains("seen|segments|true\nnow|integer|false")
    matcher = cm.Matcher.build(texts, schema, language="betree")
    now = pa.array([5] * 4)
    expected = matcher.match_lists(pa.table({"seen": pa.array(rows, pa.list_(type)), "now": now})).to_pylist()
    assert expected[0] == [1] and expected[1] == [2]
    for lists in (pa.list_view(type), pa.large_list_view(type), pa.large_list(type)):
        for column in (now, now.dictionary_encode(), pc.run_end_encode(now)):
            events = pa.record_batch({"seen": pa.array(rows, lists), "now": column})
            assert matcher.match_lists(events).to_pylist() == expected, (lists, column.type)


@pytest.mark.parametrize("wrong", ["[1]", "5", '[["a", 1]]'])
def test_a_column_of_constants_that_are_none(wrong: str) -> None:
    table = pa.table({"id": [7], "expression": ["x > 1"], "constants": [wrong]})
    with pytest.raises(cm.SubscriptionError, match="the constants of 7 are .*: {name: number} is needed"):
        cm.Matcher.build(table, cm.betree.Domains("x|integer|true"), language="betree")


def test_structs_that_lack_a_field_are_said_so() -> None:
    matcher = cm.Matcher.build({1: "segment_within(seen, 1, 20)"}, cm.betree.Domains(DOMAINS), language="betree")
    odd = pa.table({"seen": [[], [{"id": 1}]], "now": [40, 40], "must": [1, 1]})
    with pytest.raises(cm.EventError, match="column 'seen', event 1: .*its structs lack 'timestamp'"):
        matcher.match(odd)
