"""Domains and JSON lines: what they may be, and what is said of all else."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import DOMAINS
from sizes import share

import colmatch as cm
from colmatch.betree.domains import domains_of


def test_ways_to_declare() -> None:
    text = cm.betree.Domains("\ufeffAge|integer|false|0|150\n# a remark\n\n Tags | string  list | TRUE # another\n")
    assert text.arrow.names == ["age", "tags"]
    assert [field.nullable for field in text.arrow] == [False, True]
    assert {name: domain.type for name, domain in domains_of(text.arrow).items()} == {
        "age": "integer",
        "tags": "string list",
    }
    for same in (
        ["age|integer|false|0|150", "tags|string list|true||"[:-2]],
        {"Age": "integer|false|0|150", "tags": "string list|true"},
        {"age": ("integer", False, 0, 150), "tags": ("string list", True)},
        {"age": {"type": "integer", "allow_undefined": False, "min": 0, "max": 150}, "tags": ["string list", True]},
        [{"name": "age", "type": "integer", "allow_undefined": False, "min": 0, "max": 150},
         {"name": "tags", "type": "string list", "allow_undefined": True, "max_values": 5}],
        io.StringIO("age|integer|false|0|150\ntags|string list|true\n"),
    ):  # fmt: skip
        assert cm.betree.Domains(same).arrow.equals(text.arrow, check_metadata=True)
    assert repr(text) == "Domains(age: integer, tags: string list)"
    assert cm.Schema(text).arrow.equals(text.arrow, check_metadata=True)


WRONG = {  # domains: what is said
    "age|integer": "line 1 of the domains has 2 parts",
    "\nage|int|true": "line 2 of the domains: no type is called 'int': did you mean 'integer'",
    "age|integer|maybe": "allow_undefined is 'maybe': true or false is needed",
    "age|integer|true|0": "has 4 parts",
    "age|integer|true|x|1": "'x' is no number",
    "age|integer|true|5|1": "min is 5 and max 1: exchange them",
    "age|boolean|true|0|1": "a domain of type boolean has neither min nor max",
    "1age|integer|true": "'1age' is no name",
    "a b|integer|true": "'a b' is no name",
    "age|integer|true\nAGE|integer|true": "line 2 of the domains: 'age' is declared twice",
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_domains(text: str) -> None:
    with pytest.raises(cm.SchemaError, match=WRONG[text].replace("(", r"\(")):
        cm.betree.Domains(text)


@pytest.mark.parametrize(
    "domains",
    [None, 7, b"a|integer|true", [7], [("a", "integer", True)], {"a": 7}, {7: "integer|true"}, {"a": {"type": "integer"}},
     {"a": {"type": "integer", "allow_undefined": True, "mim": 1}}, {"a": ("integer", 1)}, {"a": ("float", True, float("nan"), 1)},
     {"a": ("integer", True, "1" * 5000, 1)}, {"a": ("integer", True, 10**400, 1)}, {"a": (None, True)}, [{"type": "integer"}]],
)  # fmt: skip
def test_what_are_no_domains(domains: Any) -> None:
    with pytest.raises(cm.SchemaError):
        cm.betree.Domains(domains)


ODD = st.recursive(
    st.none() | st.text("a|", max_size=3) | st.booleans() | st.floats() | st.integers(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("aname", max_size=4), inner),
    max_leaves=6,
)


@given(st.text(alphabet="ab|#-1 .tfrueinglso\n\ud800", max_size=40) | ODD)
@settings(max_examples=share(500), deadline=None)
def test_malformed_domains_give_our_errors_alone(domains: Any) -> None:
    with suppress(cm.SchemaError):
        cm.betree.Domains(domains)


def test_events() -> None:
    lines = [
        '{"i": 1, "f": 2, "s": "x", "il": [1], "sl": [], "b": true, "must": 5}',
        "",
        b'{"I": null, "i": 2, "Seen": [[1, 5], [2, 6]]}\r\n',
        {"frequency_caps": [[["flight", 7, "ns"], 1, 2]], "s": 'say "x"\n'},
        '{"i": 1, "i": 3}',
    ]
    table = cm.betree.events(lines, DOMAINS)
    assert table.num_rows == 4
    assert table["i"].to_pylist() == [1, 2, None, 3]
    assert table["f"].to_pylist() == [2.0, None, None, None]
    assert table["must"].to_pylist() == [5, None, None, None]
    assert table["seen"].to_pylist()[1] == [{"id": 1, "timestamp": 5}, {"id": 2, "timestamp": 6}]
    assert table["frequency_caps"].to_pylist()[2] == [
        {"type": "flight", "id": 7, "ns": "ns", "value": 1, "timestamp": 2}
    ]
    assert table["s"].to_pylist()[2] == 'say "x"\n'
    assert cm.betree.events("", DOMAINS).schema == table.schema
    assert cm.betree.events(io.StringIO('{"i": 1}\n'), DOMAINS)["i"].to_pylist() == [1]
    assert cm.betree.events(b'\xef\xbb\xbf{"i": 1}', cm.betree.Domains(DOMAINS))["i"].to_pylist() == [1]
    table.validate(full=True)


WRONG_LINES = {
    "{": "line 1: this is not JSON",
    "[1]": r"line 1: a JSON object is needed, not \[1\]",
    '{"i": 1}\n{"j": 1.5}': "line 2: 'j' is 1.5: a whole number of 64 bits is needed",
    '{"i": true}': "'i' is True",
    '{"i": 9223372036854775808}': "a whole number of 64 bits",
    '{"i": %s}' % ("9" * 5000): "line 1",
    '{"f": NaN}': "NaN is no number of JSON",
    '{"f": 1e999}': "a number is needed",
    '{"f": "1"}': "a number is needed",
    '{"b": 1}': "true or false is needed",
    '{"s": "\\ud800"}': "a string is needed",
    '{"il": [1, null]}': "a list of whole numbers of 64 bits is needed",
    '{"sl": "x"}': "a list of strings is needed",
    '{"seen": [[1]]}': r"a list of \[id, microseconds\] is needed",
    '{"frequency_caps": [["flight", 7, "ns"], 1, 2]}': r'a list of \[\["type", id, "ns"\], value, microseconds\] is needed',
    '{"ss": "x"}': "unknown attribute 'ss': did you mean 's'",
    "[" * 100_000: "line 1",
    '{"e": "x"}\n{"e": 1}\n7': "line 1: 'e' is 'x'.*; line 3: a JSON object is needed, not 7",
}


@pytest.mark.parametrize("lines", WRONG_LINES, ids=lambda lines: lines[:30])
def test_wrong_lines(lines: str) -> None:
    with pytest.raises(cm.EventError, match=WRONG_LINES[lines]) as raised:
        cm.betree.events(lines, DOMAINS)
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize("lines", [None, 7, {"i": 1}, [7], [None], [["i", 1]]])
def test_what_are_no_lines(lines: Any) -> None:
    with pytest.raises(cm.EventError):
        cm.betree.events(lines, DOMAINS)


NAMES = st.sampled_from(["i", "f", "s", "b", "il", "sl", "seen", "frequency_caps", "must", "nope", ""])
VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=8,
)


@given(st.dictionaries(NAMES, VALUES, max_size=3).map(json.dumps) | st.text(max_size=20) | st.binary(max_size=20))
@settings(max_examples=share(800), deadline=None)
def test_malformed_lines_give_our_errors_alone(line: str | bytes) -> None:
    with suppress(cm.EventError):
        cm.betree.events([line], DOMAINS)


def test_values_that_a_narrower_column_cannot_hold() -> None:
    with pytest.raises(cm.EventError, match="the values of 'age' do not fit its column"):
        cm.betree.events('{"age": 300}', pa.schema([("age", pa.int8())]))


def test_a_mark_before_the_first_line_is_none_of_its_text() -> None:
    domains = cm.betree.Domains("age|integer|false|0|150")
    for lines in ('\ufeff{"age": 3}', b'\xef\xbb\xbf{"age": 3}', ['\ufeff{"age": 3}'], [b'\xef\xbb\xbf{"age": 3}']):
        assert cm.betree.events(lines, domains)["age"].to_pylist() == [3]
