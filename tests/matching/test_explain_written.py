"""Explanations in the words of the text: each part with its truth and value."""

from __future__ import annotations

import pickle
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import oracle
import pyarrow as pa
import pytest
from layouts import plain_table
from oracle import Expr
from sizes import SMALL
from strategies import a_schema, an_expression, some_rows, terms

import colmatch as cm
from colmatch import explain
from colmatch.explain import ExplainedNode
from colmatch.sql.skeleton import CONDITION, Piece, cut_text


def parts_of(e: Any) -> list[Expr]:
    """An expression and those within it."""
    if not isinstance(e, tuple):
        return []
    return (
        [e, *(part for inner in e for part in parts_of(inner))]
        if e and isinstance(e[0], str)
        else [p for x in e for p in parts_of(x)]
    )


def nodes_of(node: ExplainedNode) -> list[ExplainedNode]:
    return [node, *(inner for child in node.children for inner in nodes_of(child))]


def test_parts_have_the_truth_of_sql() -> None:
    compared = written = 0
    for seed in range(20 if SMALL else 60):
        rng = Random(seed)
        schema = a_schema(rng)
        some = {i: an_expression(rng, terms(schema), depth=3) for i in range(8)}
        matcher = cm.Matcher.build({i: oracle.to_sql(e) for i, e in some.items()}, schema)
        rows = some_rows(rng, schema, 3, nulls=0.3)
        many = iter(matcher.explain_many(plain_table(schema, rows), some).to_pylist())
        for event, row in enumerate(rows):
            for i, e in some.items():
                told = matcher.explain(row, i)
                assert told.tree.truth is oracle.value(e, row), f"{matcher.expression(i)}\n{row}\n{told}"
                assert told.matched is oracle.matches(e, row)
                known = {
                    oracle.to_sql(part): part for part in parts_of(e) if part[0] not in ("lit", "col", "entry", "size")
                }
                for node in nodes_of(told.tree):
                    if node.text in known:
                        assert node.truth is oracle.value(known[node.text], row), f"{node}\n{row}\n{told}"
                        compared += 1
                one = {"event": event, "subscription": i, "matched": told.matched, "explanation": told.as_text()}
                assert next(many) == one
                written += bool(told.tree.children)
    assert compared > 400 and written > 100


A, B = {"a": 1}, {"a": None}
RULES = {
    "a > 1": ("a > 1 [1]", "a > 1 [NULL]"),
    "a>=2 -- at least": ("a>=2 [1]", "a>=2 [NULL]"),
    "a\n  > 1 AND\n NOT (b = 2 OR a + 1 = 2)": ("a > 1 [1] AND NOT (b = 2 [NULL] OR a + 1 = 2 [1])", None),
    "(a <=> NULL OR b = 1) IS NOT UNKNOWN": ("(a <=> NULL [1] OR b = 1 [NULL]) IS NOT UNKNOWN", None),
    "at_least(2, a = 1, a = 1 AND b = 1, s LIKE '%x%')": (
        "at_least(2, a = 1 [1], (a = 1 [1] AND b = 1 [NULL]), s LIKE '%x%' [NULL])", None,
    ),
    "a BETWEEN 1 AND 3 OR a IN (1, 2) AND TRUE": ("a BETWEEN 1 AND 3 [1] OR (a IN (1, 2) [1] AND TRUE)", None),
    "exists(l, x -> x > 1 AND x < a)": ("exists(l, x -> x > 1 AND x < a) [{'l': None, 'a': 1}]", None),
    "CASE WHEN a > 1 AND b = 2 THEN a = 1 ELSE s = 'x' END": (
        "CASE WHEN a > 1 AND b = 2 THEN a = 1 ELSE s = 'x' END [{'a': 1, 'b': None, 's': None}]", None,
    ),
    "where s = 'a AND b' or not not (a = 1 or a = 2);": ("s = 'a AND b' [NULL] OR NOT NOT (a = 1 [1] OR a = 2 [1])", None),
    "(" * 150 + "a = 1 OR b = 1" + ")" * 150: (None, None),
}  # fmt: skip
SCHEMA = "a int, b int, s string, l array<int>"


def test_texts_are_shown_as_they_were_written(tmp_path: Path) -> None:
    rules = dict(enumerate(RULES))
    matcher = cm.Matcher.build(rules, SCHEMA)
    matcher.save(tmp_path / "rules.cm")
    cm.Matcher.build(rules, SCHEMA, index=cm.index("pbtree", path=str(tmp_path / "rules.pages")))
    for of in (matcher, cm.Matcher.open(tmp_path / "rules.cm"), cm.Matcher.open(tmp_path / "rules.pages")):
        for i, (text, other) in enumerate(RULES.values()):
            assert text is None or of.explain(A, i).as_text() == text
            assert other is None or of.explain(B, i).as_text() == other
            assert of.explain(A, i).matched is (i in of.match_one(A))
        events = pa.table({"a": pa.array([1, None], pa.int32()), "b": pa.nulls(2, pa.int32()), "s": pa.nulls(2, pa.string()),
                           "l": pa.nulls(2, pa.list_(pa.int32()))})  # fmt: skip
        found = of.explain_many(events, [1, 0, 99])
        assert found["explanation"].to_pylist() == ["a>=2 [1]", "a > 1 [1]", "a>=2 [NULL]", "a > 1 [NULL]"]
        assert found.select(["event", "subscription"]).to_pydict() == {
            "event": [0, 0, 1, 1],
            "subscription": [1, 0, 1, 0],
        }
        assert of.explain_many(events, []).num_rows == 0


def test_the_tree_the_dict_and_html_say_the_same() -> None:
    matcher = cm.Matcher.build({"r": "a >= 2 OR NOT (b = 1 AND a = 1)"}, SCHEMA)
    told = matcher.explain({"a": 1, "b": 1}, "r")
    assert str(told).splitlines() == [
        "subscription 'r': does not match", "└─ False   any of", "   ├─ False   a >= 2   [1]", "   └─ False   NOT",
        "      └─ True    all of", "         ├─ True    b = 1   [1]", "         └─ True    a = 1   [1]",
    ]  # fmt: skip
    tree = told.as_dict()["tree"]
    assert tree["children"][0] == {"text": "a >= 2", "truth": False, "value": 1}
    assert tree["children"][1]["text"] == "NOT" and "a &gt;= 2   [1]" in told._repr_html_()
    counted = cm.Matcher.build({1: cm.at_least(2, cm.col("a") > 1, cm.col("b") > 1, cm.col("s") == "x")}, SCHEMA)
    assert counted.explain({"a": 2, "b": 1}, 1).tree.text == "at least 2 of 3, 1 is true"


def test_what_has_no_text_is_shown_as_it_is_kept() -> None:
    table = cm.PredicateTable(pa.table({"id": [1], "attribute": ["a"], "op": [">="], "operands": [[6]]}))
    for rules, options in ((table, None), ({1: "a >= 6"}, {"keep_texts": False})):
        matcher = cm.Matcher.build(rules, SCHEMA, options=options)
        assert (
            matcher.explain(A, 1).as_text()
            == matcher.explain_many(pa.table({"a": [1]}), [1])["explanation"][0].as_py()
            == "a > 5 [1]"
        )
    betree = cm.Matcher.build({1: "a >= 6 && not (b = 7)"}, "a|integer|true\nb|integer|true", language="betree")
    assert [node.text for node in betree.explain(A, 1).tree.children] == ["a > 5", "(b = 7) IS NOT TRUE"]


def test_a_value_that_fails_says_so() -> None:
    matcher = cm.Matcher.build({1: "1 / a > 2 OR b = 1"}, SCHEMA, options={"ansi": True})
    told = matcher.explain({"a": 0, "b": 1}, 1)
    assert told.matched and "cannot be computed" in told.tree.children[0].text and told.tree.children[0].truth is None


@pytest.mark.parametrize("text", ["a > 1)", "(a", "", "CASE WHEN a", "'"])
def test_a_text_that_is_none_has_no_skeleton(text: str) -> None:
    assert cut_text(text) is None


def test_what_belongs_to_a_condition_is_not_cut() -> None:
    for text in ("a.and = 1", "f(a AND b)", "a NOT BETWEEN 1 AND 2", "x[1] = 'OR'", "NOT (a = 1)", "(a XOR b)"):
        assert cut_text(text) == Piece(CONDITION, text)


def test_a_subset_has_ids_a_length_and_matches() -> None:
    matcher = cm.Matcher.build({1: "a > 1", 2: "a > 2", 3: "a > 3"}, SCHEMA, tags={1: ["x"], 3: ["x"]})
    some, tagged = matcher.subset([3, 2, 9]), matcher.subset(tags=["x"])
    events = pa.table({"a": pa.array([3, 5], pa.int32())})
    assert (some.ids.to_pylist(), len(some), tagged.ids.to_pylist()) == ([2, 3], 2, [1, 3])
    assert some.match(events).to_pydict() == {"event": [0, 1, 1], "subscription": [2, 2, 3]}
    matcher.insert({9: "a < 9"})
    matcher.delete([2])
    assert some.ids.to_pylist() == [3, 9] and len(matcher.subset([7])) == 0 and matcher.subset([7])
    assert matcher.explain_many(events, tagged)["subscription"].to_pylist() == [1, 3, 1, 3]
    assert matcher.explain_many(events, tags=["x"])["matched"].to_pylist() == [True, False, True, True]
    alone = pickle.loads(pickle.dumps(some))
    assert matcher.count(events, ids=alone).tolist() == [1, 2]
    with pytest.raises(cm.OptionError, match="this subset was unpickled and has no matcher"):
        alone.match(events)


def test_explaining_many_names_the_event() -> None:
    matcher = cm.Matcher.build({1: "a > 1"}, SCHEMA)
    with pytest.raises(cm.OptionError, match="say which"):
        matcher.explain_many(pa.table({"a": [1]}))
    with pytest.raises(cm.EventError):
        matcher.explain_many(pa.table({"b": [1]}), [1])


@pytest.mark.parametrize("keep", [True, False], ids=["texts", "predicates"])
def test_no_list_in_two_valued_logic(keep: bool) -> None:
    of_all = ["forall(it, x -> x.p > 1)", "size(filter(it, x -> x.p > 1)) < 2", "exists(it, x -> x.p > 1)"]
    texts = dict(enumerate([text for one in of_all for text in (one, f"NOT {one}")]))
    schema, options = {"it": "array<struct<p double>>"}, {"keep_texts": keep}
    matcher = cm.Matcher.build(texts, schema, missing="false", options=options)
    for items in (None, [], [{"p": 0.0}], [{"p": 2.0}], [{"p": 2.0}, {"p": 3.0}], [{"p": None}]):
        found = matcher.match_one({"it": items})
        assert [i for i in texts if matcher.explain({"it": items}, i).matched] == found, items


def test_what_an_explanation_has_read_is_kept() -> None:
    matcher = cm.Matcher.build({1: "a > 1 AND a < 9", 2: "a = 5"}, {"a": "int64"})
    with patch.object(explain, "_read_small", wraps=explain._read_small) as read:
        for a in (0, 3, 10):
            assert matcher.explain({"a": a}, 1).matched is (a == 3)
        assert read.call_count == 1
        matcher.explain({"a": 5}, 2)
        assert read.call_count == 2
        matcher.upsert({1: "a > 4 AND a < 9"})  # another version has texts of its own
        assert not matcher.explain({"a": 3}, 1).matched
        many = {i: f"a > {i} AND a < {i + 2}" for i in range(40)}
        large = cm.Matcher.build(many, {"a": "int64"})
        for _ in range(2):  # texts of so many subscriptions would take memory
            large.explain_many(pa.table({"a": [1]}), list(many))
        assert read.call_count == 5
