"""``missing="false"``: a predicate on an absent value is false, and NOT is plain negation."""

from __future__ import annotations

import pickle
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from contract import every_kind
from hypothesis import given, settings
from hypothesis import strategies as st
from test_normalise import SCHEMA, matches
from trees import EVENTS, TREES, plain_meaning, random_event, random_tree

import colmatch as cm
from colmatch.expr.ast import Expr, Not, Predicate, Verb, rebuild
from colmatch.given.options import Options
from colmatch.given.schema import Attributes
from colmatch.kinds.settings import Budget
from colmatch.sql.compile import FormCompiler

INNER = (Verb.IN, Verb.BETWEEN, Verb.STARTSWITH, Verb.ARRAYS_OVERLAP, Verb.ARRAY_CONTAINS, Verb.CONTAINS_ALL)


def two_valued(attributes: Attributes, budget: int = 64) -> FormCompiler:
    return FormCompiler(SCHEMA, attributes, Options(), Budget(budget, min(budget, 4), 4), two_valued=True)


@given(TREES, st.lists(EVENTS, min_size=1, max_size=6), st.sampled_from([1, 64]), st.booleans())
@settings(deadline=None)
def test_form_means_what_the_tree_means(tree: Expr, events: list[dict[str, Any]], budget: int, negated: bool) -> None:
    attributes = Attributes()
    tree = rebuild(tree, lambda p: replace(p, negated=negated and p.verb in INNER))
    form, literals = two_valued(attributes, budget).form(tree)
    for event in events:
        assert matches(form, attributes, event, literals) is plain_meaning(tree, event), (str(tree), event, form)


def test_nothing_is_unknown() -> None:
    c = two_valued(Attributes())
    assert c.form("(a = 1 OR b = 1) IS NULL")[0].conjunctions == ()
    assert c.form("(a = 1 OR b = 1) IS NOT NULL")[0].leaves == ()


@pytest.mark.parametrize("budget", [1, 64])
def test_larger_trees_mean_what_they_say(budget: int) -> None:
    rng = random.Random(budget)
    attributes = Attributes()
    c = two_valued(attributes, budget)
    for _ in range(200):
        tree = random_tree(rng, 4)
        tree = rebuild(tree, lambda p: replace(p, negated=True) if p.verb in INNER and rng.random() < 0.5 else p)
        form, literals = c.form(tree)
        for _ in range(20):
            event = random_event(rng)
            assert matches(form, attributes, event, literals) is plain_meaning(tree, event), (str(tree), event, form)


MEANS = {  # text: what it is of a = NULL, a = 1 and a = 2
    "a = 1": "010",
    "a <> 1": "001",
    "NOT a = 1": "101",
    "NOT a <> 1": "110",
    "a IN (1, 3)": "010",
    "a NOT IN (1, 3)": "001",
    "NOT a IN (1, 3)": "101",
    "NOT (a) NOT IN (1, 3)": "110",
    "a NOT BETWEEN 1 AND 1": "001",
    "NOT a BETWEEN 1 AND 1": "101",
    "s NOT LIKE 'x%'": "001",
    "NOT s LIKE 'x%'": "101",
    "NOT s NOT LIKE 'x%'": "110",
    "NOT (s NOT LIKE 'x%')": "110",
    "NOT NOT s NOT ILIKE 'X%'": "001",
    "NOT s NOT RLIKE '^x'": "110",
    "s NOT LIKE ALL ('x%', 'z%')": "001",
    "NOT s NOT LIKE ALL ('x%', 'z%')": "110",
    "NOT s LIKE ANY ('x%', 'z%')": "101",
    "NOT s NOT LIKE 'x|%' ESCAPE '|'": "100",
    "if(s IN ('y'), s, s) NOT IN ('xy')": "001",
    "NOT if(s IS NOT NULL, s, s) IN ('xy')": "101",
    "if(s NOT IN ('y'), 1, 2) = 2": "101",
    "if(s NOT LIKE 'y', 1, 2) = 1": "010",
    "if(NOT s NOT IN ('y'), 1, 2) = 1": "101",
    "a IS NULL": "100",
    "NOT a IS NULL": "011",
    "a <=> NULL": "100",
    "a = NULL": "000",
    "NOT a = NULL": "111",
    "NULL": "000",
    "NOT NULL": "111",
    "(a = 1) IS NULL": "000",
    "(a = 1) IS FALSE": "101",
    "a IN (1, NULL)": "010",
    "NOT (a = 1 OR a = 2)": "100",
    "NOT (a = 1 AND a = 2)": "111",
}
EVENTS_OF_MEANS = pa.table({"a": [None, 1, 2], "s": [None, "xy", "y"]})


@every_kind
def test_what_absent_values_are(kind: str) -> None:
    matcher = cm.Matcher.build({text: text for text in MEANS}, {"a": "int64", "s": "string"}, kind, missing="false")
    found = [set(ids) for ids in matcher.match_lists(EVENTS_OF_MEANS).to_pylist()]
    assert {text: "".join(str(int(text in ids)) for ids in found) for text in MEANS} == MEANS


def test_it_is_saved_and_counts_for_updates(tmp_path: Path) -> None:
    matcher = cm.Matcher.build({"one": "NOT a = 1"}, {"a": "int64", "s": "string"}, missing="false")
    matcher.save(tmp_path / "m.cm")
    with cm.Matcher.open(tmp_path / "m.cm", journal=True) as opened:
        opened.insert({"two": "NOT a = 2"})
    for again in (cm.Matcher.open(tmp_path / "m.cm", journal=True), pickle.loads(pickle.dumps(opened))):
        again.insert({"three": "NOT s = 'y'"})
        assert [sorted(ids) for ids in again.match_lists(EVENTS_OF_MEANS).to_pylist()] == [
            ["one", "three", "two"],
            ["three", "two"],
            ["one"],
        ]
        again.close()


@pytest.mark.usefixtures("kept_predicates")
def test_explain_says_so() -> None:
    expressions = {"and": "NOT a = 1 AND s <> 'x'"}
    schema = {"a": "int64", "s": "string"}
    told = cm.Matcher.build(expressions, schema, missing="false").explain({"a": None, "s": None}, "and")
    assert str(told) == (
        "subscription 'and': does not match (what is missing is false)\n"
        "└─ False   all of\n"
        "   ├─ False   s <> 'x'   [NULL]\n"
        "   └─ True    (a = 1) IS NOT TRUE   [NULL]"
    )
    assert "missing" not in str(cm.Matcher.build(expressions, schema).explain({"a": None, "s": None}, "and"))


def test_weights_count_under_it() -> None:
    wishes = pa.table({"id": [1, 2], "expression": ["a NOT IN (1, 3)", "a = 2"], "weights": [{"a": 2.0}, {"a": 3.0}]})
    matcher = cm.Matcher.build(wishes, {"a": "int64", "s": "string"}, missing="false")
    best = matcher.match_topk(EVENTS_OF_MEANS, 2).to_pylist()
    assert [(row["event"], row["subscription"], row["score"]) for row in best] == [(2, 2, 3.0), (2, 1, 0.0)]


@pytest.mark.parametrize("wrong", ["true", "", 1, ["false"]])
def test_other_meanings_are_refused(wrong: Any) -> None:
    with pytest.raises(cm.OptionError, match="'unknown' or 'false' is needed"):
        cm.Matcher.build({1: "a = 1"}, {"a": "int64"}, missing=wrong)
    with pytest.raises(cm.OptionError, match="'sql' or 'betree' is needed"):
        cm.Matcher.build({1: "a = 1"}, {"a": "int64"}, language=wrong)


def test_text_and_builder_differ_only_in_what_has_a_not_of_its_own() -> None:
    c = two_valued(Attributes())
    tree = c.parser.parse(c.parser.read("NOT a IN (1) AND a NOT IN (1)"))
    outer, inner = tree.parts  # type: ignore[attr-defined]
    assert isinstance(outer, Not) and isinstance(inner, Predicate) and inner.negated
    assert str(inner) == "a NOT IN (:1)"


@pytest.mark.parametrize(
    "text",
    ["size(t) NOT IN (0)", "(m['k']) NOT IN (1)", "((a)) NOT BETWEEN 1 AND 2", "s NOT RLIKE 'x'", "s NOT ILIKE 'x'", "u.x NOT IN (1, 2)",
     "s NOT LIKE ANY ('x')", "s NOT IN ('NOT IN')", "m.k NOT IN (1)"],
)  # fmt: skip
def test_what_has_a_not_of_its_own(text: str) -> None:
    c = two_valued(Attributes())
    for phrase, negated in ((text, True), (f"b = 1 AND {text}", True), ("NOT " + text.replace(" NOT", "", 1), False)):
        found: list[bool] = []
        tree = c.parser.parse(c.parser.read(phrase))
        rebuild(tree, lambda p, found=found: (found.append(p.negated), p)[1])  # type: ignore[misc]
        assert (True in found) is negated, phrase
        assert c.form(phrase)[0].conjunctions
