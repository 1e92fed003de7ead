"""Definitions: expressions use conditions by name, and change with them.

COLMATCH_DIFFERENTIAL=3000 asks for so many random sets.
"""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from contract import expected_pairs, own_inserts, pairs, share_of_cases
from layouts import plain_table
from oracle import Expr, to_sql
from strategies import a_schema, an_expression, some_rows, terms

import colmatch as cm
from colmatch.expr import normalise
from colmatch.updates import policy

COUNT = int(os.environ.get("COLMATCH_DIFFERENTIAL", "44"))  # random sets
SCHEMA = {"team": "string", "price": "double", "tags": "list<string>"}
OPS = "team = 'ops' OR team LIKE 'sre%' OR price > 900"  # too large to be written out
EVENTS = [
    {"team": "ops", "price": 5.0, "tags": ["a"]},
    {"team": "sre-2", "price": None, "tags": []},
    {"team": "web", "price": 950.0, "tags": None},
    {"team": "web", "price": 7.0, "tags": ["a", None]},
    {"team": None, "price": 1.0, "tags": ["b"]},
]
TABLE = pa.Table.from_pylist(
    EVENTS, pa.schema([("team", pa.string()), ("price", pa.float64()), ("tags", pa.list_(pa.string()))])
)


def found(matcher: cm.Matcher) -> dict[str, str]:
    """The events of each subscription, as a string of their numbers; batches and single events."""
    lists = matcher.match_lists(TABLE).to_pylist()
    assert [sorted(matcher.match_one(event)) for event in EVENTS] == [sorted(ids) for ids in lists]
    return {id: "".join(str(i) for i, ids in enumerate(lists) if id in ids) for id in sorted(matcher)}


# Random sets, against the oracle
# --------------------------------------------------------------------------


def with_names(rng: Random, e: Expr, names: list[str]) -> Expr:
    """The expression with names of definitions in place of some of its predicates."""
    if e[0] in ("and", "or", "not") or (e[0].startswith("is ") and e[1][0] in ("and", "or", "not")):
        return (e[0], *(with_names(rng, part, names) for part in e[1:]))
    if names and rng.random() < 0.4:
        name = ("col", rng.choice(names))
        return rng.choice([name, name, ("not", name), ("is null", name), ("is not true", name)])
    return e


def written_out(e: Any, definitions: dict[str, Expr]) -> Any:
    if not isinstance(e, tuple):
        return e
    if len(e) == 2 and e[0] == "col" and e[1] in definitions:
        return written_out(definitions[e[1]], definitions)
    return tuple(written_out(part, definitions) for part in e)


def some_definitions(rng: Random, leaves: Any) -> dict[str, Expr]:
    """Definitions three deep."""
    definitions: dict[str, Expr] = {}
    for level in range(3):
        below = list(definitions)
        for i in range(2):
            definitions[f"d{level}{i}"] = with_names(rng, an_expression(rng, leaves, rng.choice([0, 1, 2])), below)
    return definitions


def texts(definitions: dict[str, Expr]) -> dict[str, str]:
    return {name: to_sql(e) for name, e in definitions.items()}


@share_of_cases(COUNT)
def test_rules_that_use_rules(kind: str, seed: int) -> None:
    """Built, inserted, redefined, saved: as if the definitions were written out."""
    rng = Random(seed)
    schema = a_schema(rng, 4)
    leaves, rows = terms(schema), some_rows(rng, schema, 12)
    events, definitions = plain_table(schema, rows), some_definitions(rng, leaves)
    rules = {i: with_names(rng, an_expression(rng, leaves, 2), list(definitions)) for i in range(15)}

    def check(matcher: cm.Matcher) -> None:
        out = [written_out(e, definitions) for e in rules.values()]
        assert pairs(matcher.match(events)) == expected_pairs(out, list(rules), rows), (definitions, rules)

    # Larger definitions are values, or all are written out
    with patch.object(normalise, "SMALL", rng.choice([0, 2, 1000])), patch.object(policy, "GROWING_MOST", 8):
        given = {i: to_sql(e) for i, e in rules.items()}
        first = {i: text for i, text in given.items() if i < 10}
        matcher = cm.Matcher.build(first, schema, index=own_inserts(kind), define=texts(definitions))
        matcher.insert({i: text for i, text in given.items() if i >= 10})
        check(matcher)
        for _ in range(2):
            name = rng.choice(list(definitions))
            below = [other for other in definitions if other[1] < name[1]]
            definitions[name] = with_names(rng, an_expression(rng, leaves, 1), below)
            id = rng.randrange(15)
            rules[id] = with_names(rng, an_expression(rng, leaves, 1), list(definitions))
            matcher.update(define={name: to_sql(definitions[name])}, upsert={id: to_sql(rules[id])})
            check(matcher)
        check(pickle.loads(pickle.dumps(matcher)))
        check(cm.Matcher.build(matcher.to_table(), schema))


# What an expression may say
# --------------------------------------------------------------------------


@pytest.mark.parametrize("small", [0, 1000], ids=["values", "written out"])
@pytest.mark.parametrize(
    ("rule", "events"),
    [
        ("ops", "012"), ("NOT ops", "3"), ("ops IS NULL", "4"), ("ops IS NOT NULL", "0123"), ("ops IS NOT TRUE", "34"),
        ("ops = TRUE", "012"), ("ops = FALSE", "3"), ("ops <> TRUE", "3"), ("ops <> FALSE", "012"), ("`OPS` AND price < 9", "0"),
        ("coalesce(ops, TRUE)", "0124"), ("CASE WHEN ops THEN 1 ELSE 0 END = 1", "012"), ("if(ops, price, 0) > 2", "02"),
        ("exists(tags, x -> x = 'a' AND ops)", "0"), ("exists(tags, x -> x = 'a' AND NOT Ops)", "3"), ("ops OR quiet", "0124"),
        ("quiet", "4"), ("NOT quiet", "0123"), ("has_a AND NOT ops", "3"), ("NOT has_a", "14"), ("ops <=> quiet", "3"),
        ("many IS NULL", "2"), ("two", "012"), ("NOT two", "3"), ("at_least(2, ops, quiet, has_a)", "0"),
    ],
)  # fmt: skip
def test_what_a_rule_may_say(rule: str, events: str, small: int) -> None:
    define = {
        "ops": OPS,
        "quiet": "price < 3 AND NOT ops IS TRUE",
        "has_a": "array_contains(tags, 'a')",
        "many": "size(tags) > 1",
        "two": "at_least(2, team = 'ops', ops, price > 4, team LIKE 'sre%')",
    }
    with patch.object(normalise, "SMALL", small):
        rules = {"r": rule, "t": "TRUE"}
        assert found(cm.Matcher.build(rules, SCHEMA, define=define))["r"] == events
        many = {f"r{i}": rule for i in range(200)}  # kernels read them
        assert set(found(cm.Matcher.build(many, SCHEMA, define=define)).values()) == {events}


def test_the_builder_names_definitions_like_columns() -> None:
    ops = cm.col("ops")
    rules = {"r": ops & (cm.col("price") < 9), "n": ~ops, "u": ops.is_null()}
    define = {"ops": (cm.col("team") == "ops") | (cm.col("price") > 900)}
    matcher = cm.Matcher.build(rules, SCHEMA, define=define)
    assert found(matcher) == {"n": "3", "r": "0", "u": "14"}
    assert matcher.definitions == {"ops": "team = 'ops' OR price > 900"}


def test_case_matters_as_it_does_for_columns() -> None:
    assert found(cm.Matcher.build({"r": "oPs"}, SCHEMA, define={"Ops": OPS})) == {"r": "012"}
    exact = cm.Schema(SCHEMA, case_sensitive=True)
    assert found(cm.Matcher.build({"r": "Ops"}, exact, define={"Ops": OPS, "ops": "price > 0"})) == {"r": "012"}
    with pytest.raises(cm.ExpressionError, match="unknown attribute 'oPs': did you mean 'Ops'"):
        cm.Matcher.build({"r": "oPs"}, exact, define={"Ops": OPS})


@pytest.mark.parametrize(
    ("given", "pairs"),
    [
        ({"missing": "false"}, "34"),
        ({"options": cm.Options(casts="spark")}, "3"),
        ({"options": cm.Options(ansi=True)}, "3"),
    ],
)
def test_definitions_have_the_meaning_of_the_matcher(given: Any, pairs: str) -> None:
    """NOT of an absent value is true in two-valued logic, in a definition as elsewhere."""
    define = {"ops": OPS, "not_ops": "NOT ops"}
    matcher = cm.Matcher.build({"a": "not_ops", "b": "NOT ops"}, SCHEMA, define=define, **given)
    assert found(matcher) == {"a": pairs, "b": pairs}


def test_scores_of_the_conditions_in_a_definition() -> None:
    """Weights of attributes count where a definition uses them, as if it was written out."""
    weights = pa.array([[("team", 2.0), ("price", 5.0)]] * 2, pa.map_(pa.string(), pa.float64()))
    table = pa.table({"id": [1, 2], "expression": ["ops AND price < 9", f"({OPS}) AND price < 9"], "weights": weights})
    best = cm.Matcher.build(table, SCHEMA, define={"ops": OPS}).match_topk(TABLE, 2, score="sum")
    assert best["score"].to_pylist() == [7.0, 7.0]
    with pytest.raises(cm.ExpressionError, match="'ops' is a definition and has no weight"):
        cm.Matcher.build({1: cm.col("ops").weight(2)}, SCHEMA, define={"ops": OPS})


# Changing
# --------------------------------------------------------------------------


def test_subscriptions_change_with_their_definitions() -> None:
    matcher = cm.Matcher.build(
        {"a": "deep AND price < 9", "b": "price < 2"}, SCHEMA, define={"ops": OPS, "deep": "NOT ops"}
    )
    before, updates = matcher.snapshot(), matcher.stats()["updates"]
    matcher.redefine({"ops": "team = 'web'"})
    assert found(matcher) == {"a": "0", "b": "4"}
    assert found(before) == {"a": "3", "b": "4"}
    assert matcher.stats()["updates"] == updates + 1
    matcher.redefine({"ops": "team = 'web'"})  # nothing changes
    assert matcher.stats()["updates"] == updates + 1
    matcher.restore(before)
    assert (found(matcher)["a"], matcher.definitions["ops"]) == ("3", OPS)
    matcher.insert({"c": "ops"})  # with the restored definition
    assert found(matcher)["c"] == "012"


def test_one_update_has_all_of_a_release() -> None:
    matcher = cm.Matcher.build({"a": "ops", "b": "ops", "c": "NOT ops"}, SCHEMA, define={"ops": OPS}, tags={"a": ["x"]})
    matcher.update(
        define={"ops": "price < 2", "web": "team = 'web'"},
        insert={"d": "web AND NOT ops"},
        delete=["b"],
        tags={"d": ["y"]},
    )
    assert found(matcher) == {"a": "4", "c": "023", "d": "23"}
    assert {id: matcher[id].tags for id in matcher} == {"a": ["x"], "c": [], "d": ["y"]}
    # A definition that nothing uses any more can go in the update that drops its last use
    matcher.update(define={"web": None}, replace={"d": "NOT ops"})
    assert (found(matcher)["d"], list(matcher.definitions)) == ("023", ["ops"])


def test_weights_and_tags_stay_when_a_definition_changes() -> None:
    weights = pa.array([[("price", 3.0)], None], pa.map_(pa.string(), pa.float64()))
    table = pa.table(
        {"id": [1, 2], "expression": ["ops", "price > 1"], "weights": weights, "tags": [["x"], ["y", "x"]]}
    )
    matcher = cm.Matcher.build(table, SCHEMA, define={"ops": OPS})
    matcher.redefine({"ops": "price < 2"})
    assert (matcher[1].weights, matcher[1].tags, matcher[2].tags) == ({"price": 3.0}, ["x"], ["x", "y"])
    assert matcher.match_topk(TABLE, 1, score="sum")["score"].to_pylist()[-1] == 3.0


def test_a_table_has_definitions_in_its_rows() -> None:
    rows = [("a", "ops AND price < 9", None), (None, OPS, "ops"), ("b", "NOT ops", None)]
    table = pa.Table.from_pylist([dict(zip(("id", "expression", "define"), row, strict=True)) for row in rows])
    matcher = cm.Matcher.build(table, SCHEMA)
    assert (found(matcher), matcher.definitions) == ({"a": "0", "b": "3"}, {"ops": OPS})
    assert matcher.to_table().sort_by("id").to_pylist() == table.sort_by("id").to_pylist()
    # A table makes the definitions its own; one without them leaves them
    with pytest.raises(cm.OptionError, match="'ops' is defined in the table and by define=: one of both"):
        cm.Matcher.build(table, SCHEMA, define={"ops": "price > 1"})
    changes = matcher.sync(table.slice(0, 2))
    assert (changes.removed.to_pylist(), changes.changed.to_pylist()) == (["b"], [])
    matcher.sync(pa.table({"id": ["a"], "expression": ["ops"]}))
    assert found(matcher) == {"a": "012"}
    other = pa.table({"id": [None, "a"], "expression": ["team = 'web'", "web"], "define": ["web", None]})
    matcher.sync(other)
    assert (found(matcher), list(matcher.definitions)) == ({"a": "23"}, ["web"])
    # A rule whose text stays is changed by its definition
    changes = matcher.sync(
        pa.table({"id": [None, "a"], "expression": ["team = 'ops'", "web"], "define": ["web", None]})
    )
    assert (changes.changed.to_pylist(), found(matcher)) == (["a"], {"a": "0"})
    matcher.redefine({"web": "team = 'web'"})
    matcher.insert(pa.table({"id": [None, "c"], "expression": ["price < 2", "low OR web"], "define": ["low", None]}))
    assert (found(matcher)["c"], list(matcher.definitions)) == ("234", ["web", "low"])


@pytest.mark.parametrize("way", ["file", "journal", "pages", "merged"])
def test_definitions_are_kept(way: str, tmp_path: Path) -> None:
    path, rules = str(tmp_path / "rules.cm"), {"a": "ops AND price < 9", "b": "NOT ops"}
    index = cm.index("pbtree", path=path) if way == "pages" else "auto"
    matcher = cm.Matcher.build(rules, SCHEMA, index=index, define={"ops": OPS})
    if way != "pages":
        matcher.save(path)
        matcher = cm.Matcher.open(path, journal=way == "journal")
    matcher.redefine({"ops": "price < 2", "web": "team = 'web'"})
    matcher.insert({"c": "web"})
    if way == "file":
        matcher.save(path)
    elif way == "merged":
        matcher.compact()
        matcher.save(path)
    matcher.close()
    opened = cm.Matcher.open(path, journal=way == "journal")
    assert (found(opened), list(opened.definitions)) == ({"a": "4", "b": "023", "c": "23"}, ["ops", "web"])
    opened.insert({"d": "ops OR web"})
    assert found(opened)["d"] == "234"
    opened.close()


# Errors
# --------------------------------------------------------------------------

WITHIN = {"x": "CASE WHEN y THEN 1 ELSE 0 END = 1", "y": "CASE WHEN x THEN 1 ELSE 0 END = 1"}  # a circle of values
CIRCLE = {"a": "b AND price > 1", "b": "NOT c", "c": "a OR price > 2"}


@pytest.mark.parametrize(
    ("define", "error", "message"),
    [
        ({"ops": "tem = 'ops'"}, cm.ExpressionError, r"definition 'ops': unknown attribute 'tem': did .* \(line 1, column 1\)"),
        ({"ops": "price > 1 AND\n price > 'x'"}, cm.ExpressionError, r"definition 'ops': .* a string.*line 2, column"),
        ({"ops": ""}, cm.ExpressionError, "definition 'ops': "), ({"ops": "price +"}, cm.ExpressionError, "definition 'ops': "),
        (CIRCLE, cm.ExpressionError, "definition 'a': definitions use one another in a circle: a -> b -> c -> a"),
        ({"ops": "ops OR price > 1"}, cm.ExpressionError, "in a circle: ops -> ops"),
        (WITHIN, cm.ExpressionError, "definition 'x': .* in a circle: x -> y -> x"),
        ({"Price": "team = 'x'"}, cm.SchemaError, "the definition 'Price' has the name of a column: rename it"),
        ({"ops": OPS, "Ops": OPS}, cm.SchemaError, "differ in case alone"),
        ({"ops": 5}, cm.OptionError, "define= has 5 for 'ops': a condition is needed"),
        ({5: OPS}, cm.OptionError, "define= has the name 5"), ({"": OPS}, cm.OptionError, "has the name ''"),
        *[({name: OPS}, cm.OptionError, "has the name") for name in ("a\nb", "u.age", "x`y", "été", "1a", "a" * 201, "current_date")],
        ([("ops", OPS)], cm.OptionError, "a mapping is needed"),
        ({"ops": None}, cm.OptionError, "None for 'ops', which is not defined: there are none"),
        ({"ops": (cm.col("price") > 2).weight(2)}, cm.OptionError, "a weight within 'ops'"),
        ({f"d{i}": f"d{i + 1}" if i < 40 else "price > 1" for i in range(41)}, cm.ExpressionError, "more than 32 deep"),
    ],
)  # fmt: skip
def test_wrong_definitions(define: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        cm.Matcher.build({"r": "price > 1"}, SCHEMA, define=define)
    matcher = cm.Matcher.build({"r": "price > 1"}, SCHEMA)
    with pytest.raises(error, match=message):
        matcher.redefine(define)
    assert (matcher.definitions, matcher.stats()["updates"], found(matcher)) == ({}, 0, {"r": "023"})


def test_a_change_that_breaks_a_rule_changes_nothing() -> None:
    matcher = cm.Matcher.build({"a": "ops AND price < 9"}, SCHEMA, define={"ops": OPS})
    for define, message in (
        ({"ops": None}, "unknown attribute 'ops'.*subscription 'a'"),
        ({"ops": "tem = 'x'"}, "definition 'ops'"),
    ):
        with pytest.raises(cm.ExpressionError, match=message):
            matcher.redefine(define)
        assert (found(matcher), matcher.definitions) == ({"a": "0"}, {"ops": OPS})
    with pytest.raises(cm.OptionError, match="use a definition that changes, so use errors='raise'"):
        matcher.update(define={"ops": "price > 1"}, errors="collect")
    with pytest.raises(cm.OptionError, match="needs something"):
        matcher.redefine({})


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("ops > 5", "'ops' is a definition: write ops, NOT ops or ops IS NULL"), ("ops IN (TRUE)", "'ops' is a definition"),
        ("ops LIKE 'x'", "'ops' is a definition"), ("size(ops) > 1", "'ops' is a definition"), ("ops['x'] = 1", "'ops' is a definition"),
        ("ops + 1 > 2", "needs numbers, not boolean"), ("CASE WHEN has_a THEN 1 END = 1", "definition 'has_a' cannot be a part of a value"),
        ("opz", r"unknown attribute 'opz': did you mean 'ops'\?"),
    ],
)  # fmt: skip
def test_wrong_uses(rule: str, message: str) -> None:
    define = {
        "ops": OPS,
        "near": "price > 1",
        "has_a": "array_contains(tags, 'a') AND price > 1 AND price < 7 AND team = 'x'",
    }
    with pytest.raises(cm.ExpressionError, match=message):
        cm.Matcher.build({"r": rule}, SCHEMA, define=define)


def test_texts_that_were_not_kept() -> None:
    matcher = cm.Matcher.build({"a": "ops"}, SCHEMA, define={"ops": OPS}, options={"keep_texts": False})
    matcher.redefine({"web": "team = 'web'"})  # nothing uses it yet
    with pytest.raises(cm.OptionError, match=r"read again, and Options\(keep_texts=False\) keeps no texts"):
        matcher.redefine({"ops": "price > 1"})
    with pytest.raises(cm.OptionError, match="define= goes with language='sql'"):
        cm.Matcher.build({1: "a > 1"}, "a|integer|true", language="betree", define={"b": "a > 1"})


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(None, None, "ops")], "definition 'ops' has no expression"),
        ([(None, OPS, "ops"), (None, OPS, "ops")], "'ops' is defined more than once"),
        ([(None, OPS, " ")], "the name ' '"), ([(1, "price > 1", 5)], "column 'define' is int64, a string is needed"),
    ],
)  # fmt: skip
def test_wrong_rows_of_definitions(rows: Any, message: str) -> None:
    table = pa.table(dict(zip(("id", "expression", "define"), map(list, zip(*rows, strict=True)), strict=True)))
    with pytest.raises(cm.SubscriptionError, match=message):
        cm.Matcher.build(table, SCHEMA)


# Explaining
# --------------------------------------------------------------------------


def test_explain_opens_definitions() -> None:
    define = {"ops": "team = 'ops' OR price > 900", "deep": "`OPS` AND price < 9"}
    matcher = cm.Matcher.build({"r": "ops AND price < 9", "n": "NOT deep", "x": "deep IS NULL"}, SCHEMA, define=define)
    assert str(matcher.explain(EVENTS[0], "r")) == (
        "subscription 'r': matches\n"
        "└─ True    all of\n"
        "   ├─ True    ops, defined as\n"
        "   │  └─ True    any of\n"
        "   │     ├─ True    team = 'ops'   ['ops']\n"
        "   │     └─ False   price > 900   [5.0]\n"
        "   └─ True    price < 9   [5.0]"
    )
    opened = "`OPS` (team = 'ops' ['web'] OR price > 900 [7.0]) AND price < 9 [7.0]"
    assert matcher.explain(EVENTS[3], "n").as_text() == f"NOT deep ({opened})"
    assert matcher.explain(EVENTS[3], "n").matched and not matcher.explain(EVENTS[3], "x").matched
    matcher.redefine({"ops": "price > 1"})
    assert matcher.explain(EVENTS[0], "r").as_text() == "ops (price > 1 [5.0]) AND price < 9 [5.0]"


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("(w)", "w (team = 'ops' ['ops'])"), ("NOT(w)", "NOT w (team = 'ops' ['ops'])"), ("not\n`W`", "NOT `W` (team = 'ops' ['ops'])"),
        ("w IS NULL", "w (team = 'ops' ['ops']) IS NULL"), ("w is not  true", "w (team = 'ops' ['ops']) IS NOT TRUE"),
        ("NOT NOT w", "NOT NOT w (team = 'ops' ['ops'])"), ("w = TRUE", "w = TRUE"),
    ],
)  # fmt: skip
def test_explain_opens_definitions_in_other_words(rule: str, text: str) -> None:
    matcher = cm.Matcher.build({"r": rule}, SCHEMA, define={"w": "team = 'ops'"})
    told = matcher.explain(EVENTS[0], "r")
    assert told.as_text().startswith(text)
    assert told.matched is ("r" in matcher.match_one(EVENTS[0]))


@pytest.mark.parametrize("base", ["price > 1 OR team = 'x'", "array_contains(tags, 'a') OR team = 'x'"])
def test_layers_of_definitions(base: str) -> None:
    """Each layer uses the one below twice. Written out, the last of 30 has 2 ** 30 parts."""
    layers = {f"d{i}": f"(d{i - 1} AND price > {i}) OR (NOT d{i - 1} AND team = 'q{i}')" for i in range(1, 30)}
    define = {"d0": base} | layers
    with pytest.raises(
        cm.ExpressionError, match=r"definition 'd1\d': written out, this has more than 10,000 predicates"
    ):
        cm.Matcher.build({"r": "d29"}, SCHEMA, define=define)
    some = {name: define[name] for name in list(define)[:9]}
    matcher = cm.Matcher.build({"r": "d8", "n": "NOT d8"}, SCHEMA, define=some)
    event = {"team": "x", "price": 50.0, "tags": ["a"]}
    assert matcher.match_one(event) == ["r"]
    assert matcher.explain(event, "r").matched
    assert not matcher.explain(event, "n").matched


def test_definitions_beside_subscriptions_without_texts() -> None:
    matcher = cm.Matcher.build({1: "ops"}, SCHEMA, define={"ops": OPS})
    rows = {"id": [2], "attribute": ["price"], "op": [">"], "operands": pa.array([[6.0]], pa.list_(pa.float64()))}
    matcher.insert(cm.PredicateTable(pa.table(rows)))
    matcher.redefine({"ops": "price < 6"})
    assert [matcher.match_one(event) for event in EVENTS] == [[1], [], [2], [2], [1]]


def test_more_names_than_one_regular_expression_takes() -> None:
    define = {f"segment_{'x' * 120}_{i}": f"price > {i}" for i in range(3000)}
    last = list(define)[-1]
    matcher = cm.Matcher.build({"r": last, "s": next(iter(define))}, SCHEMA, define=define)
    matcher.redefine(dict.fromkeys(define, "price < 3"))
    assert matcher.match_one(EVENTS[4]) == ["r", "s"]


def test_a_predicate_that_matters_to_one_truth_alone_is_compared_exactly() -> None:
    """Beside NULL, it decides only where the definition is false. No float is 16777217."""
    text = "(f <> 16777217 AND NULL) OR a = 1 OR b = 2"
    schema = {"f": "float", "a": "int64", "b": "int64"}
    matcher = cm.Matcher.build({"d": "NOT d", "w": f"NOT ({text})"}, schema, define={"d": text})
    for f in (16777216.0, 1.0, None):
        assert matcher.match_one({"f": f, "a": 5, "b": 5}) in ([], ["d", "w"]), f


BESIDE = {
    "ops and web": "ops AND team = 'web' AND price < 900",
    "cheap ops": "ops AND price < 5",
    "written": f"({OPS}) AND price < 5",
    "wide": "ops OR price < 9000",
    "sure": "ops OR ops IS NOT TRUE",
}


@pytest.mark.parametrize("index", ["auto", "pbtree"])
def test_checks_look_into_definitions(index: str, tmp_path: Path) -> None:
    kind = cm.index("pbtree", path=str(tmp_path / "pages")) if index == "pbtree" else index
    matcher = cm.Matcher.build(BESIDE, SCHEMA, index=kind, define={"ops": OPS})
    matcher.insert({"late": "ops AND price > 900 AND price < 800"})
    found = matcher.check(["never", "always", "duplicate", "contained"]).to_pylist()
    assert [(row["id"], row["finding"], row["other"], row["status"]) for row in found] == [
        ("ops and web", "never", None, "proven"),
        ("late", "never", None, "proven"),
        ("sure", "always", None, "proven"),
        ("written", "duplicate", "cheap ops", "proven"),
        ("cheap ops", "contained", "wide", "proven"),
        ("written", "contained", "wide", "proven"),
    ]
    sample = TABLE.slice(1, 1)
    reasons = matcher.check("odd literal", ids=["cheap ops"], sample=sample)["reason"].to_pylist()
    assert reasons == ["team = 'ops': no event of the sample has this value"]
    # Without texts, a definition stays one value
    lean = cm.Matcher.build(BESIDE, SCHEMA, define={"ops": OPS}, options={"keep_texts": False})
    assert lean.check("never", ids=["ops and web"])["status"].to_pylist() == ["undecided"]


@pytest.mark.parametrize("index", ["auto", "pbtree"])
def test_reports_and_reasons_name_definitions(index: str, tmp_path: Path) -> None:
    kind = cm.index("pbtree", path=str(tmp_path / "pages")) if index == "pbtree" else index
    rules = {1: "My_Ops AND small", 2: "NOT my_ops AND price > 1000", 3: "lower(team) = 'x'"}
    define = {"My_Ops": OPS, "small": "price < 5", "unused": "price < 5 OR price > 7 AND team = 'x'"}
    matcher = cm.Matcher.build(rules, SCHEMA, index=kind, define=define)
    reasons = matcher.reasons(TABLE.slice(3, 1), "predicate").to_pylist()
    assert [(row["attribute"], row["predicate"]) for row in reasons if row["subscription"] == 2] == [
        ("price", "price > 1000")
    ]
    reasons = matcher.reasons(
        pa.Table.from_pylist([{"team": "web", "price": 1.0, "tags": []}], TABLE.schema), "predicate"
    )
    assert [(row["attribute"], row["predicate"]) for row in reasons.to_pylist() if row["subscription"] == 1] == [
        ("My_Ops", "My_Ops")
    ]
    kinds = {row["attribute"]: row["kind"] for row in matcher.report(TABLE).attributes.to_pylist()}
    assert kinds == {"My_Ops": "definition", "price": "column", "lower(team)": "computed value"}
