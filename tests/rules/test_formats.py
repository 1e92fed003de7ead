"""The mechanism that all formats of rules share: input, ids, places, faults, limits; all kinds."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from contract import every_kind
from hypothesis import given
from hypothesis import strategies as st
from logic import OPERATIONS

import colmatch as cm

SCHEMA = pa.schema(
    {"n": pa.float64(), "s": pa.string(), "ls": pa.list_(pa.string()), "lls": pa.list_(pa.list_(pa.bool_()))}
)
FLAG: dict[str, Any] = {"state": "ENABLED", "variants": {"on": 1, "off": 0}, "defaultVariant": "off"}
LOGIC, GROWTHBOOK, FLAGD = cm.rules.from_jsonlogic, cm.rules.from_growthbook, cm.rules.from_flagd


def flag(targeting: Any, **more: Any) -> dict[str, Any]:
    return {**FLAG, "targeting": targeting, **more}


# The contract, one rule for each format
# --------------------------------------------------------------------------

SHARE = flag({"if": [{"fractional": [{"var": "s"}, [True, 1], [False, 1]]}, "on"]})
FORMATS: dict[str, Any] = {
    "json-rules": cm.rules.from_json_rules(
        {"x": {"conditions": {"not": {"fact": "n", "operator": "greaterThan", "value": 1}}}}
    ),
    "jsonlogic": cm.rules.from_jsonlogic({"x": {"<": [{"var": "n"}, "2"]}}, SCHEMA),
    "growthbook": cm.rules.from_growthbook({"x": {"ls": {"$in": ["a"]}, "n": {"$not": {"$gt": 1}}}}, schema=SCHEMA),
    "flagd": cm.rules.from_flagd({"flags": {"x": SHARE}}, SCHEMA),
}
ROWS: list[dict[str, Any]] = [{"n": 1.0, "ls": ["b", "a"], "s": "a"}, {"n": 5.0, "ls": ["a"], "s": "b"}, {}]
ANSWERS: dict[str, list[list[str]]] = {
    "json-rules": [["x"], [], ["x"]],
    "jsonlogic": [["x"], [], ["x"]],
    "growthbook": [["x"], [], []],
    "flagd": [["x/on"], ["x/off"], ["x/off"]],
}


@every_kind
@pytest.mark.parametrize("language", FORMATS)
def test_every_kind_matches_every_format(kind: str, language: str) -> None:
    matcher = cm.Matcher.build(FORMATS[language], SCHEMA, index=kind)
    assert matcher.match_lists(pa.Table.from_pylist(ROWS, SCHEMA)).to_pylist() == ANSWERS[language]
    assert [matcher.match_one(row) for row in ROWS] == ANSWERS[language]


# Input and ids
# --------------------------------------------------------------------------

BOTH: dict[str, list[Any]] = {
    "jsonlogic": [{"==": [{"var": "n"}, 1]}, {"==": [{"var": "s"}, "a"]}],
    "growthbook": [{"n": 1}, {"s": "a"}],
}
TEXTS = {0: "n = 1", 1: "s = 'a'"}
READ: dict[str, Callable[..., Any]] = {"jsonlogic": LOGIC, "growthbook": GROWTHBOOK}


def texts(converted: Any) -> dict[Any, str]:
    return {id: str(condition) for id, condition in converted.items()}


@pytest.mark.parametrize("language", READ)
def test_ways_to_hand_rules_over(language: str) -> None:
    rules, read = BOTH[language], READ[language]
    whole = json.dumps(rules)
    for form in (
        rules,
        tuple(rules),
        iter(rules),
        whole,
        whole.encode(),
        io.StringIO(whole),
        io.BytesIO(whole.encode()),
    ):
        assert texts(read(form)) == TEXTS
    assert texts(read("\n".join(map(json.dumps, rules)))) == texts(read(list(map(json.dumps, rules)))) == TEXTS
    assert texts(read(dict(zip("ab", rules, strict=True)))) == {"a": TEXTS[0], "b": TEXTS[1]}


def test_one_rule() -> None:
    assert texts(LOGIC(BOTH["jsonlogic"][0])) == {0: "n = 1"}
    assert texts(LOGIC({"!": {"var": "b"}})) == {0: "NOT ((b) IS TRUE)"}
    assert texts(GROWTHBOOK({"$or": BOTH["growthbook"]})) == {0: "n = 1 OR s = 'a'"}
    assert texts(LOGIC([True, False])) == {0: "TRUE", 1: "FALSE"} and not LOGIC([]) and not GROWTHBOOK({})


def test_a_flag_has_a_rule_for_each_variant() -> None:
    on = flag({"if": [{"==": [{"var": "s"}, "a"]}, "on"]})
    expected = {"x/on": "s = 'a'", "x/off": "NOT ((s = 'a') IS TRUE)"}
    assert texts(FLAGD({"flags": {"x": on}})) == texts(FLAGD({"flags": [{"key": "x", **on}]})) == expected
    assert texts(FLAGD(json.dumps({"flags": {"x": FLAG}}))) == {"x/on": "FALSE", "x/off": "TRUE"}
    none = FLAGD({"flags": {"x": {**FLAG, "state": "DISABLED"}, "y": {**FLAG, "defaultVariant": None}}})
    assert texts(none) == {"y/on": "FALSE", "y/off": "FALSE"} and none.disabled == ["x"]
    ref = flag({"if": [{"$ref": "a"}, "on"]})
    assert texts(FLAGD({"flags": {"x": ref}, "$evaluators": {"a": {"==": [{"var": "s"}, "a"]}}})) == expected
    twice = {"a/b": {**FLAG, "variants": {"c": 1, "off": 1}}, "a": {**FLAG, "variants": {"b/c": 1, "off": 1}}}
    with pytest.raises(cm.ExpressionError, match="rule 'a': two rules have the id 'a/b/c'"):
        FLAGD({"flags": twice})


# Faults
# --------------------------------------------------------------------------

NEST: Any = {"var": "s"}
for _ in range(1000):
    NEST = {"!": NEST}
CIRCLE: dict[str, Any] = {}
CIRCLE["!"] = CIRCLE
FAULTS: list[tuple[Callable[..., Any], Any, str]] = [
    (LOGIC, {"and": [True, {"<": [1]}]}, "and[1].<: '<' takes 2 or more values, not 1"),
    (LOGIC, {"or": [{"==": [{"plus": [1]}, 1]}]}, "or[0].==[0]: the operation 'plus' has no equal: the list of"),
    (LOGIC, {"!": {"map": [{"var": "ls"}, 1]}}, "![0]: the operation 'map' has no equal: write the condition on elem"),
    (LOGIC, {"==": [{"var": "ls"}, 1]}, "==: a list or an object cannot be compared"),
    (LOGIC, {"in": ["a", {"var": "x"}]}, "in[1].var: unknown attribute 'x'"),
    (LOGIC, {"var": "s.t"}, "var: 't' is no field: s is string"),
    (LOGIC, {"cat": [{"var": "n"}, "a"]}, "cat: a number with a fraction has no text here"),
    (LOGIC, {"var": ""}, "var: the name of a column is needed"),
    (LOGIC, {"<": [1, 2], ">": [1, 2]}, "an operation has one name, not ['<', '>']"),
    (LOGIC, {"==": [1, "\ud800"]}, "==[1]: a text, a number, true, false, null, a list or an operation is needed"),
    (LOGIC, {"==": [{"var": "n"}, 10**5000]}, "==[1]: a number is too large"),
    (LOGIC, {"some": [{"var": "lls.0"}, {"var": ""}]}, "conditions on elements need a whole list column"),
    (LOGIC, NEST, "conditions nest deeper than 400 levels"),
    (LOGIC, CIRCLE, "conditions nest deeper than 400 levels"),
    (LOGIC, {"<": [{"+": [{"var": "n"}] * 100}, 1]}, "a computed value nests deeper than 64 levels"),
    (GROWTHBOOK, {"n": {"$gth": 1}}, "n.$gth: there is no operator '$gth': did you mean"),
    (GROWTHBOOK, {"$or": [{"n": {"$in": 5}}]}, "$or[0].n.$in: a list is needed, not 5"),
    (GROWTHBOOK, {"$or": {}}, "$or: a list of conditions is needed, not {}"),
    (GROWTHBOOK, {"s": {"$regex": "("}}, "s.$regex: not a regular expression that RE2 can run"),
    (GROWTHBOOK, {"s": {"$vgt": "x"}}, "s.$vgt: 'x' is no version: write it as in 1.2.0"),
    (GROWTHBOOK, {"s": {"$inGroup": "g"}}, "s.$inGroup: there is no group 'g': groups= takes them"),
    (GROWTHBOOK, {"$gt": 1}, "$gt: an attribute is needed here"),
    (GROWTHBOOK, 5, "a condition is an object, not 5; a single one goes into a list"),
    (GROWTHBOOK, {"$not": CIRCLE}, "$not.!: unknown attribute '!'"),
    (FLAGD, flag({"if": [{"$ref": "a"}, "on"]}), "evaluator 'b': $ref: evaluators refer to one another in a circle"),
    (FLAGD, flag({"if": [{"$ref": "c"}, "on"]}), "targeting.if[0].$ref: there is no named evaluator 'c'"),
    (FLAGD, flag({"if": [True, "no"]}), "targeting: its result may be 'no', which is no variant"),
    (FLAGD, flag({"fractional": [{"var": "s"}, ["on", 0.5]]}), "targeting.fractional[1][1]: a weight is a whole number"),
    (FLAGD, flag({"fractional": [["on", 1]]}), "targeting.fractional: unknown attribute 'targetingKey'"),
    (FLAGD, flag({"sem_ver": [{"var": "s"}, "==", "1"]}), "targeting.sem_ver[1]: the sign of a comparison is one of"),
    (FLAGD, {**FLAG, "state": "on"}, "state: ENABLED or DISABLED is needed, not 'on'"),
    (FLAGD, {**FLAG, "defaultVariant": "x"}, "defaultVariant: 'x', which is no variant"),
    (FLAGD, {**FLAG, "variants": []}, "variants: an object from name to value is needed, not []"),
    (FLAGD, 5, "a flag is an object with variants, not 5"),
]  # fmt: skip


def wrapped(read: Callable[..., Any], *rules: Any) -> Any:
    """Returns rules in the form that a format takes, with ids from a."""
    named = dict(zip("abcd", rules, strict=False))
    evaluators = {"a": {"!": {"$ref": "b"}}, "b": {"$ref": "a"}}
    return {"flags": named, "$evaluators": evaluators} if read is FLAGD else named


@pytest.mark.parametrize(
    ("read", "rule", "message"),
    FAULTS,
    ids=[f"{number} {message[:40]}" for number, (_, _, message) in enumerate(FAULTS)],
)
def test_a_fault_has_a_place(read: Callable[..., Any], rule: Any, message: str) -> None:
    with pytest.raises(cm.ExpressionError) as error:
        read(wrapped(read, rule), schema=SCHEMA)
    assert str(error.value).removeprefix("rule 'a': ").startswith(message)
    collected = read(wrapped(read, rule, rule), schema=SCHEMA, errors="collect")
    assert not collected and [one.id for one in collected.rejected] == ["a", "b"]
    assert collected.rejected[0].message.startswith(message) and collected.rejected[0].position is None


GOOD: dict[Callable[..., Any], Any] = {LOGIC: {"==": [{"var": "n"}, 1]}, GROWTHBOOK: {"n": 1}, FLAGD: FLAG}
BAD: dict[Callable[..., Any], Any] = {LOGIC: {"foo": []}, GROWTHBOOK: {"n": {"$foo": 1}}, FLAGD: {}}


@pytest.mark.parametrize("read", GOOD)
def test_a_bad_rule_of_a_text_has_its_line(read: Callable[..., Any]) -> None:
    text = json.dumps(wrapped(read, GOOD[read], BAD[read]), indent=2)
    at = text.index('"b"') + 5
    line, column = text.count("\n", 0, at) + 1, at - text.rindex("\n", 0, at)
    collected = read(text, errors="collect")
    assert collected.rejected[0].id == "b" and collected.rejected[0].position == (line, column)
    assert len(collected) == len(read(wrapped(read, GOOD[read])))
    with pytest.raises(cm.ExpressionError, match=rf"rule 'b' \(line {line}\): "):
        read(text)
    with pytest.raises(cm.OptionError, match="errors='ignore'"):
        read(wrapped(read, GOOD[read]), errors="ignore")


@pytest.mark.parametrize("read", GOOD)
@pytest.mark.parametrize(
    "given", ["{", b"\xff", "[NaN]", 5, None, "5", '"x"', "[" * 100_000], ids=lambda given: repr(given)[:9]
)
def test_what_is_no_list_of_rules(read: Callable[..., Any], given: Any) -> None:
    with pytest.raises(cm.SubscriptionError):
        read(given)


def test_what_rules_refer_to_is_an_object() -> None:
    with pytest.raises(cm.SubscriptionError, match="saved groups are an object from name to groups, not"):
        GROWTHBOOK([], [])
    with pytest.raises(cm.SubscriptionError, match=r"\$evaluators is an object from name to rule, not 5"):
        FLAGD({"flags": {}, "$evaluators": 5})
    assert texts(GROWTHBOOK([{"n": {"$inGroup": "g"}}], '{"g": [1, 2]}')) == {0: "n IN (1, 2)"}


def test_types_decide_where_a_schema_has_them() -> None:
    rules = [{"==": [{"var": "n"}, "6"]}, {"in": ["a", {"var": "ls"}]}, {"in": ["a", {"var": "s"}]}, {"var": "s"}]
    assert list(texts(LOGIC(rules, SCHEMA)).values()) == [
        "n = 6", "array_contains(ls, 'a')", "contains(s, 'a')", "s <> ''",
    ]  # fmt: skip
    unknown = LOGIC(rules, errors="collect")
    assert texts(unknown) == {0: "n = '6'", 3: "s"}
    assert all("its type is not known: hand over schema=" in one.message for one in unknown.rejected)


def test_rules_behind_a_constant_are_not_read() -> None:
    assert texts(LOGIC([{"and": [False, {"throw": "x"}]}, {">": [2, 3, {"throw": "x"}]}])) == {0: "FALSE", 1: "FALSE"}


NAMES = [
    *OPERATIONS,
    "$or",
    "$not",
    "$gt",
    "$in",
    "$size",
    "$elemMatch",
    "flags",
    "$ref",
    "fractional",
    "n",
    "s",
    "ls",
    "variants",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=()), max_size=3)
    | st.sampled_from(["n", "s", "ls"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=2),
    max_leaves=12,
)  # fmt: skip


@given(JSON)
def test_only_our_errors(rule: Any) -> None:
    for read in GOOD:
        for rules in (rule, [rule], wrapped(read, rule), wrapped(read, flag(rule)), json.dumps(rule)):
            for schema in (None, SCHEMA):
                try:
                    made = read(rules, schema=schema, errors="collect")
                except cm.ColmatchError:
                    continue
                cm.Matcher.build(made, SCHEMA, errors="collect", max_rejected=1.0)
