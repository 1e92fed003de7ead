"""Rules of json-rules-engine that are refused, and what is said: the rule, the path and why."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import colmatch as cm

LEAF = {"fact": "a", "operator": "equal", "value": 1}


def said(rules: Any, conditions: Any = None) -> str:
    with pytest.raises(cm.ExpressionError) as error:
        cm.rules.from_json_rules(rules, conditions)
    return str(error.value)


def of_rule(conditions: Any, named: Any = None) -> str:
    """What is said of a rule whose name is x."""
    text = said([{"name": "x", "conditions": conditions}], named)
    assert text.startswith("rule 'x': "), text
    return text.removeprefix("rule 'x': ")


def of_leaf(**more: Any) -> str:
    """What is said of a condition within a rule."""
    text = of_rule({"all": [LEAF, LEAF, {"any": [{**LEAF, **more}]}]})
    assert text.startswith("conditions.all[2].any[0]"), text
    return text.removeprefix("conditions.all[2].any[0]")


TREES: list[tuple[Any, str]] = [
    ({}, "conditions: a condition has one of all, any, not, condition, fact, not []"),
    ([], "conditions: a condition is an object, not []"),
    (LEAF, "conditions: all, any, not or condition is needed around the facts of a rule"),
    ({"all": {}}, "conditions.all: a list is needed, not {}"),
    ({"any": [None]}, "conditions.any[0]: a condition is an object, not None"),
    ({"not": [LEAF]}, "conditions.not: an object is needed, not a list"),
    ({"all": [], "any": []}, "conditions: a condition has all and any: one of them is needed"),
    ({"all": [{"not": {"all": [{**LEAF, "any": []}]}}]}, "conditions.all[0].not.all[0]: a condition has any and fact"),
    ({"all": [{"fact": "a", "value": 1}]}, "conditions.all[0]: a condition with a fact needs 'operator', too"),
    ({"all": [{"fact": "a", "operator": "equal"}]}, "conditions.all[0]: a condition with a fact needs 'value', too"),
    ({"condition": 5}, "conditions.condition: the name of a condition is needed, not 5"),
]


@pytest.mark.parametrize(("conditions", "text"), TREES, ids=lambda value: str(value)[:40])
def test_refused_trees(conditions: Any, text: str) -> None:
    assert of_rule(conditions).startswith(text)


LEAVES: list[tuple[dict[str, Any], str]] = [
    ({"operator": "equals"}, ".operator: there is no operator 'equals', custom ones cannot be had: did you mean 'equal'"),
    ({"operator": "someFact:equal"}, ".operator: the decorators of operators cannot be had ('someFact:equal')"),
    ({"operator": None}, ".operator: there is no operator None"),
    ({"fact": 5}, ".fact: the name of a fact is needed, not 5"),
    ({"fact": ""}, ".fact: the name of a fact is needed, not ''"),
    ({"fact": "\ud800"}, ".fact: the name of a fact is needed"),
    ({"params": {"a": 1}}, ".params: params go to functions"),
    ({"value": {"a": 1}}, ".value: an object is equal to nothing"),
    ({"value": {"fact": "b", "params": {"c": 1}}}, ".value.params: params go to functions"),
    ({"value": {"fact": "b", "path": "$..c"}}, ".value.path: '$..c': only names can be had"),
    ({"value": [1]}, ".value: a text, a number, true, false or null is needed, not [1]"),
    ({"value": "\ud800"}, ".value: a text, a number, true, false or null is needed"),
    ({"value": float("nan")}, ".value: a text, a number, true, false or null is needed, not nan"),
    ({"operator": "in", "value": "abc"}, ".value: a list is needed, not 'abc'"),
    ({"operator": "notIn", "value": {"fact": "b"}}, ".value: a list is needed: facts that are lists"),
    ({"operator": "in", "value": [1, [2]]}, ".value[1]: a text, a number, true, false or null is needed, not [2]"),
    ({"operator": "contains", "value": None}, ".value: lists cannot be searched for null"),
    ({"operator": "contains", "value": [1]}, ".value: a text, a number, true, false or null is needed, not [1]"),
    ({"operator": "doesNotContain", "value": {"fact": "b"}}, ".value: a value is needed: facts cannot be searched for"),
    ({"operator": "lessThan", "value": "2026-01-01"}, ".value: a number is needed, or a fact, not '2026-01-01'"),
    ({"operator": "greaterThan", "value": True}, ".value: a number is needed, or a fact, not True"),
    ({"operator": "lessThanInclusive", "value": None}, ".value: a number is needed, or a fact, not None"),
]  # fmt: skip


@pytest.mark.parametrize(("more", "text"), LEAVES, ids=lambda value: str(value)[:40])
def test_refused_comparisons(more: dict[str, Any], text: str) -> None:
    assert of_leaf(**more).startswith(text)


PATHS = ["$.", ".a", "$a", "$..a", "$.a.", "$.a..b", "$.*", "$[0]", "$.a[0]", "$.a[*]", "$[?(@.a>1)]", "$.a,b", "$.a^"]


@pytest.mark.parametrize("path", [*PATHS, "$.a~", "$['a,b']", "$['a]", "$['a\"]", "$[a]", "$['']", "$.@string()", 5])
def test_refused_paths(path: Any) -> None:
    assert of_leaf(path=path).startswith(f".path: {path!r}: only names can be had, as in $.address.city")


def test_a_path_is_read_in_linear_time() -> None:
    assert "only names" in of_leaf(path="$." + "a" * 100_000 + "!")


def test_references() -> None:
    assert of_rule({"condition": "y"}) == (
        "conditions.condition: there is no named condition 'y': conditions= takes them"
    )
    adult = {"all": [LEAF]}
    assert "did you mean 'adult'?" in of_rule({"all": [{"condition": "adlut"}]}, {"adult": adult})
    circle = {"p": {"not": {"condition": "q"}}, "q": {"all": [LEAF, {"condition": "p"}]}}
    assert said([], circle).startswith(
        "condition 'q': all[1].condition: conditions refer to one another in a circle: 'p' -> 'q' -> 'p'"
    )
    assert said([], {"p": {"condition": "p"}}).startswith("condition 'p': condition: conditions refer to one another")
    assert said([], {"p": {"any": [{"condition": "q"}]}, "q": LEAF}).startswith("condition 'q': all, any, not or condi")
    assert said([], {5: adult}).startswith("condition 5: condition: the name of a condition is needed, not 5")


def test_rules_are_told_by_name_or_place() -> None:
    good, bad = {"conditions": {"all": []}}, {"conditions": {"any": 1}}
    assert said([good, bad]) == "rule 1: conditions.any: a list is needed, not 1"
    assert said({"k": bad}) == "rule 'k': conditions.any: a list is needed, not 1"
    assert said([good, 5]) == "rule 1: an object with conditions is needed, not 5"
    assert said([{}]) == "rule 0: it has no conditions"
    assert said([bad, good, bad]).count("a list is needed") == 2
    assert said([bad] * 12).endswith("rule 9: conditions.any: a list is needed, not 1; and 2 more")


NOT_RULES: list[tuple[Any, str]] = [
    (None, "these are no rules: a list of rules, one rule, or an object from id to rule is needed, not None"),
    (5, "these are no rules"),
    ("[]5", "the rules: this is not JSON: Extra data"),
    ('"x"', "these are no rules"),
    ("", "the rules: this is not JSON: "),
    ("[{]", "the rules: this is not JSON: "),
    ("[NaN]", "the rules: this is not JSON: NaN is no number of JSON"),
    ("[" * 100_000, "the rules: conditions within conditions, too deep"),
    ("1" * 5_000, "the rules: this is not JSON"),
    (b"\xff", "the rules: this is not UTF-8"),
    ('{"conditions": {"all": []}}\n{"conditions": ', "the rules, line 2: this is not JSON"),
    (['{"conditions"'], "rule 0: this is not JSON"),
    ([b"\xff"], "rule 0: this is not UTF-8"),
    ([{"conditions": {}, "name": "a"}] * 2, "rules 0 and 1 are both named 'a': give them other names, or none"),
    ([{"conditions": {}, "name": 1.5}], "rule 0: name is 1.5: a text or a whole number is needed"),
    ([{"conditions": {}, "name": "\ud800"}], "rule 0: name is "),
]


@pytest.mark.parametrize(("rules", "text"), NOT_RULES, ids=lambda value: str(value)[:40])
def test_what_is_no_list_of_rules(rules: Any, text: str) -> None:
    with pytest.raises(cm.SubscriptionError) as error:
        cm.rules.from_json_rules(rules)
    assert str(error.value).startswith(text)


def test_named_conditions_are_an_object() -> None:
    for named, text in (([], "named conditions are an object"), ("{", "the named conditions: this is not JSON")):
        with pytest.raises(cm.SubscriptionError, match=text):
            cm.rules.from_json_rules([], named)


def test_deep_nesting() -> None:
    deep: Any = {"all": []}
    for _ in range(100_000):
        deep = {"not": deep}
    assert of_rule(deep) == "conditions nest deeper than 400 levels"
    flat: Any = {"all": [LEAF]}
    for _ in range(150):
        flat = {"all": [flat, {"any": [LEAF]}]}
    assert len(cm.Matcher.build(cm.rules.from_json_rules({"conditions": flat}), {"a": "int64"})) == 1


def test_columns_and_types_are_checked_when_built() -> None:
    rules = cm.rules.from_json_rules([{"name": "x", "conditions": {"all": [LEAF]}}])
    for schema in ({"b": "int64"}, {"a": "string"}):
        with pytest.raises(cm.ExpressionError, match="subscription 'x'"):
            cm.Matcher.build(rules, schema)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=()), max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["all", "any", "not", "condition", "conditions", "fact", "operator", "value", "path", "name"]
            ),
            inner | st.sampled_from(["equal", "in", "lessThan", "contains", "$.a", "a"]),
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON, JSON)
@example([{"conditions": {"all": [{**LEAF, "path": ["$"]}]}}], None)
@example([{"conditions": {"all": [{**LEAF, "operator": []}]}}], None)
def test_only_our_errors(rules: Any, named: Any) -> None:
    for given_rules, given_named in ((rules, named), ([{"conditions": rules}], named), (json.dumps(rules), None)):
        try:
            made = cm.rules.from_json_rules(given_rules, given_named)
        except cm.ColmatchError:
            continue
        cm.Matcher.build(made, {"a": "int64"}, errors="collect")


def test_bad_rules_are_collected() -> None:
    good = {"conditions": {"all": [{"fact": "a", "operator": "equal", "value": 1}]}}
    bad = {"conditions": {"any": 1}}
    refers = {"conditions": {"all": [{"condition": "circle"}]}}
    named = {"circle": {"any": [{"condition": "circle"}]}, "unused": 5}
    found = cm.rules.from_json_rules([bad, good, 5, refers], named, errors="collect")
    assert list(found) == [1] and str(found[1]) == "a = 1"
    assert [(one.id, one.position) for one in found.rejected] == [(0, None), (2, None), (3, None)]
    assert found.rejected[0].message == "conditions.any: a list is needed, not 1"
    assert found.rejected[2].message.startswith("condition 'circle': any[0].condition: conditions refer to one another")
    text = json.dumps([bad, good], indent=1)
    assert cm.rules.from_json_rules(text, errors="collect").rejected[0].position == (2, 2)
    assert cm.rules.from_json_rules(json.dumps(bad), errors="collect").rejected[0].position == (1, 1)
    assert (
        not cm.rules.from_json_rules([good], errors="collect").rejected
        and not cm.rules.from_json_rules([good]).rejected
    )
    with pytest.raises(cm.OptionError, match="errors='ignore'"):
        cm.rules.from_json_rules([good], errors="ignore")
