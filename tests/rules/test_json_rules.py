"""Rules of json-rules-engine: what they match, against the engine's own answers and a naive one."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import engine
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import colmatch as cm
from colmatch.rules import joined

SCHEMA = pa.schema(
    {
        "n": pa.float64(),
        "m": pa.float64(),
        "s": pa.string(),
        "a.b": pa.string(),
        "b": pa.bool_(),
        "ls": pa.list_(pa.string()),
        "ln": pa.list_(pa.float64()),
        "u": pa.struct(
            {
                "n": pa.float64(),
                "s t": pa.string(),
                "ln": pa.list_(pa.float64()),
                "v": pa.struct({"n": pa.float64()}),
            }
        ),
    }
)


def matched(conditions: Any, events: list[dict[str, Any]], missing: str = "unknown") -> list[list[Any]]:
    """The ids of what matches each event."""
    matcher = cm.Matcher.build(conditions, SCHEMA, missing=missing)
    return [sorted(ids) for ids in matcher.match_lists(pa.Table.from_pylist(events, SCHEMA)).to_pylist()]


# What the engine did
# --------------------------------------------------------------------------

LINES = (Path(__file__).parent / "engine_cases.jsonl").read_text().splitlines()
NAMED = json.loads(LINES[0])["named"]
CASES = [json.loads(line) for line in LINES[1:]]


@pytest.mark.parametrize("missing", ["unknown", "false"])
def test_what_the_engine_did(missing: str) -> None:
    """Answers of json-rules-engine 7.3.1 with ``allowUndefinedFacts``, one rule a line."""
    events = [event for case in CASES for event in [*case["fires"], *case["does not"]]]
    found = iter(matched(cm.rules.from_json_rules(CASES, NAMED), events, missing))
    for number, case in enumerate(CASES):
        for fires, some in ((True, case["fires"]), (False, case["does not"])):
            for event in some:
                assert (number in next(found)) == fires, (case["conditions"], event)


def test_what_the_engine_did_is_what_the_naive_one_does() -> None:
    for case in CASES:
        if "path" not in json.dumps(case):  # of which it knows two forms
            assert all(engine.fires(case, facts, NAMED) for facts in case["fires"])
            assert not any(engine.fires(case, facts, NAMED) for facts in case["does not"])


def test_where_it_differs_from_the_engine() -> None:
    """As ``from_json`` says: no event tells what is absent from what is null."""
    rules = [
        {"conditions": {"all": [{"fact": "n", "operator": "equal", "value": None}]}},
        {"conditions": {"all": [{"fact": "n", "operator": "lessThan", "value": {"fact": "m"}}]}},
    ]
    assert matched(cm.rules.from_json_rules(rules), [{}, {"n": -1.0, "m": None}]) == [[0], []]


# Random rules
# --------------------------------------------------------------------------

NUMBERS = st.sampled_from([-1, 0, 1, 2, 2.5, 2**40])
TEXTS = st.sampled_from(["", "x", "y", "é"])
NUMERIC: list[dict[str, Any]] = [
    {"fact": "n"},
    {"fact": "m"},
    {"fact": "u", "path": "$.n"},
    {"fact": "u", "path": "$.v.n"},
]
TEXTUAL: list[dict[str, Any]] = [{"fact": "s"}, {"fact": "a.b"}, {"fact": "u", "path": "$['s t']"}]
ORDERS = ["lessThan", "lessThanInclusive", "greaterThan", "greaterThanInclusive"]


def compares(facts: Any, operators: list[str], values: Any) -> Any:
    return st.builds(
        lambda fact, operator, value: {**fact, "operator": operator, "value": value},
        st.sampled_from(facts),
        st.sampled_from(operators),
        values,
    )


LEAVES = st.one_of(
    compares(NUMERIC, ORDERS, NUMBERS | st.sampled_from(NUMERIC)),
    compares(NUMERIC, ["equal", "notEqual"], NUMBERS | st.none() | st.sampled_from(NUMERIC)),
    compares(NUMERIC, ["in", "notIn"], st.lists(NUMBERS | st.none(), max_size=3)),
    compares(TEXTUAL, ["equal", "notEqual"], TEXTS | st.none() | st.sampled_from(TEXTUAL)),
    compares(TEXTUAL, ["in", "notIn"], st.lists(TEXTS | st.none(), max_size=3)),
    compares([{"fact": "b"}], ["equal", "notEqual"], st.booleans() | st.none()),
    compares([{"fact": "ls"}], ["contains", "doesNotContain"], TEXTS),
    compares([{"fact": "ln"}, {"fact": "u", "path": "$.ln"}], ["contains", "doesNotContain"], NUMBERS),
)


def around(parts: Any) -> Any:
    return st.one_of(
        st.builds(lambda some: {"all": some}, st.lists(parts, max_size=3)),
        st.builds(lambda some: {"any": some}, st.lists(parts, max_size=3)),
        st.builds(lambda part: {"not": part}, parts),
    )


NAMES = st.sampled_from(["p", "q"]).map(lambda name: {"condition": name})
ROOTS = around(st.recursive(LEAVES, around, max_leaves=6))
RULES = around(st.recursive(LEAVES | NAMES, around, max_leaves=6)) | NAMES
MAYBE_NUMBER, MAYBE_TEXT = NUMBERS | st.none(), TEXTS | st.none()
NUMBER_LISTS = st.lists(NUMBERS, max_size=2) | st.none()
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "n": MAYBE_NUMBER,
        "m": MAYBE_NUMBER,
        "s": MAYBE_TEXT,
        "a.b": MAYBE_TEXT,
        "b": st.booleans() | st.none(),
        "ls": st.lists(MAYBE_TEXT, max_size=2) | st.none(),
        "ln": NUMBER_LISTS,
        "u": st.none()
        | st.fixed_dictionaries(
            {},
            optional={
                "n": MAYBE_NUMBER,
                "s t": MAYBE_TEXT,
                "ln": NUMBER_LISTS,
                "v": st.none() | st.fixed_dictionaries({}, optional={"n": MAYBE_NUMBER}),
            },
        ),
    },
)


@given(
    st.lists(RULES, min_size=1, max_size=12),
    st.fixed_dictionaries({"p": ROOTS, "q": ROOTS}),
    st.lists(EVENTS, min_size=1, max_size=12),
)
def test_random_rules(roots: list[Any], named: dict[str, Any], events: list[dict[str, Any]]) -> None:
    rules = [{"conditions": root, "event": {"type": "x"}} for root in roots]
    conditions = cm.rules.from_json_rules(json.dumps(rules), json.dumps(named))
    expected = [[i for i, rule in enumerate(rules) if engine.fires(rule, event, named)] for event in events]
    assert matched(conditions, events) == expected
    assert matched(conditions, events, missing="false") == expected
    assert matched({id: str(condition) for id, condition in conditions.items()}, events) == expected


# Ways to hand rules over, and their ids
# --------------------------------------------------------------------------


def rule(value: Any, **more: Any) -> dict[str, Any]:
    return {"conditions": {"all": [{"fact": "n", "operator": "equal", "value": value}]}, **more}


def texts(*arguments: Any) -> dict[Any, str]:
    return {id: str(condition) for id, condition in cm.rules.from_json_rules(*arguments).items()}


BOTH = [rule(5), rule("x")]
LIST = json.dumps(BOTH)
FORMS: dict[str, Any] = {
    "list": BOTH,
    "tuple": tuple(BOTH),
    "iterator": iter(BOTH),
    "text": LIST,
    "bytes over many lines": json.dumps(BOTH, indent=2).encode(),
    "byte order mark": b"\xef\xbb\xbf" + LIST.encode(),
    "open file of text": io.StringIO(LIST),
    "open file of bytes": io.BytesIO(LIST.encode()),
    "lines": "\n\n".join(map(json.dumps, BOTH)) + "\n",
    "open file of lines": io.StringIO("\n".join(map(json.dumps, BOTH))),
    "texts": [*map(json.dumps, BOTH), "\n"],
    "list of texts": json.dumps(list(map(json.dumps, BOTH))),  # each as the engine's toJSON makes it
    "object from id": dict(enumerate(BOTH)),
}


@pytest.mark.parametrize("form", FORMS)
def test_ways_to_hand_rules_over(form: str) -> None:
    assert texts(FORMS[form]) == {0: "n = 5", 1: "n = 'x'"}


def test_ids_are_names_if_all_have_one() -> None:
    assert texts([rule(1, name="a"), rule(2, name=7)]) == {"a": "n = 1", 7: "n = 2"}
    assert texts([rule(1, name="a"), rule(2, name="")]) == {0: "n = 1", 1: "n = 2"}
    assert texts(rule(1, name="a")) == texts(json.dumps(rule(1, name="a"))) == {"a": "n = 1"}
    assert texts({"x": rule(1, name="a"), 4: json.dumps(rule(2))}) == {"x": "n = 1", 4: "n = 2"}
    assert texts([]) == texts("[]") == {}


def test_what_has_no_meaning_for_matching_is_left_out() -> None:
    given = rule(1, priority=9, event={"type": "x", "params": {"a": 1}}, onSuccess="f", note="mine")
    given["conditions"]["all"][0] |= {"priority": 2, "params": {}, "path": "", "name": "first", "factResult": 4}
    assert texts(given) == {0: "n = 1"}


def test_a_named_condition_is_converted_once() -> None:
    """Each refers to the one before it twice: 2**60 conditions would be too many, 2**10 are not."""
    named = {"c0": rule(1)["conditions"]}
    for i in range(60):
        named[f"c{i + 1}"] = {"any": [{"not": {"condition": f"c{i}"}}, {"condition": f"c{i}"}]}
    few = dict(list(named.items())[:11])
    assert len(texts([{"conditions": {"condition": "c10"}}], few)) == 1
    with pytest.raises(cm.ExpressionError, match="condition 'c20': with the named conditions there are more than"):
        cm.rules.from_json_rules([], named)


def test_groups_without_facts_count_as_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined, "MOST_CONDITIONS", 3)
    assert len(texts([{"conditions": {"any": [{"all": []}] * 3}}])) == 1
    with pytest.raises(cm.ExpressionError, match="there are more than 3 conditions"):
        texts([{"conditions": {"any": [{"all": []}] * 4}}])
