"""Forms mean what the trees mean: both are evaluated in plain Python, over events with NULLs."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import share
from trees import EVENTS, TREES, meaning, random_event, random_tree

from colmatch.errors import ExpressionError
from colmatch.expr.ast import Expr
from colmatch.expr.build import col
from colmatch.given.options import Options
from colmatch.given.schema import Attributes, Role, Schema
from colmatch.kernels.layout import ACCEPT, REJECT
from colmatch.kinds.settings import Budget
from colmatch.lowering import forms
from colmatch.lowering.forms import PATTERNS, Form, Kind, Leaf, Op
from colmatch.sql.compile import FormCompiler

SCHEMA = Schema(
    {
        "a": "int64",
        "b": "int64",
        "v": "bool",
        "s": "string",
        "t": pa.list_(pa.int64()),
        "m": pa.map_(pa.string(), pa.int64()),
        "u": pa.struct({"x": pa.int64(), "y": pa.struct({"z": pa.string()})}),
        "d": "date32",
        "odd": pa.list_(pa.struct({"x": pa.int64()})),
    }
)


def compiler(dnf: int = 64, cnf: int = 64, clauses: int = 0) -> FormCompiler:
    return FormCompiler(SCHEMA, Attributes(), Options(), Budget(dnf, cnf, clauses))


# What a form means
# --------------------------------------------------------------------------


def entries(attribute: Any, event: dict[str, Any]) -> list[Any]:
    x = event[attribute.path[0]]
    match attribute.role:
        case Role.VALUE:
            found = [x]
        case Role.ELEMENT:
            found = list(x or [])
        case Role.SIZE:
            found = [None if x is None else len(x)]
        case Role.HAS_NULL:
            found = [1] if x is not None and None in x else []
        case Role.ENTRY:
            found = [None if x is None else x.get(attribute.key)]
    return [y for y in found if y is not None]


def inside(test: forms.KeyTest, x: Any, literals: list[Any]) -> bool:
    ys: list[Any] = []
    for o in test.operands:
        y = o.value if o.slot < 0 else literals[o.slot]
        many = [int(i) if o.kind is Kind.INT else i for i in (y if o.many else [y])]
        ys.extend([-i for i in many] if o.negative else many)
    found = {
        Op.EQ: lambda: x == ys[0],
        Op.LT: lambda: x < ys[0],
        Op.LE: lambda: x <= ys[0],
        Op.GT: lambda: x > ys[0],
        Op.GE: lambda: x >= ys[0],
        Op.BETWEEN: lambda: ys[0] <= x <= ys[1],
        Op.IN: lambda: x in ys,
        Op.PRESENT: lambda: True,
        Op.STARTSWITH: lambda: x.startswith(ys[0]),
        Op.ENDSWITH: lambda: x.endswith(ys[0]),
        Op.CONTAINS: lambda: ys[0] in x,
    }[test.op]()
    return found is not test.outside


def holds(leaf: Leaf, attributes: Attributes, event: dict[str, Any], literals: list[Any]) -> bool:
    if any(t.op in PATTERNS for t in leaf.tests):
        assert len(leaf.tests) == 1
        assert not leaf.tests[0].outside
    if attributes[leaf.attr].multi:
        assert not any(t.outside for t in leaf.tests), "some element outside the set is not what NOT means"
    return (
        any(inside(t, x, literals) for x in entries(attributes[leaf.attr], event) for t in leaf.tests) is not leaf.none
    )


def matches(form: Form, attributes: Attributes, event: dict[str, Any], literals: list[Any]) -> bool:
    truths = [holds(leaf, attributes, event, literals) for leaf in form.leaves]
    found = False
    for conjunction in form.conjunctions:
        if not conjunction.jumps:
            assert not conjunction.tree
            found |= all(truths[i] for i in conjunction.leaves)
            continue
        place = 0
        while place not in (ACCEPT, REJECT):
            went = conjunction.jumps[place][0 if truths[conjunction.leaves[place]] else 1]
            assert went in (ACCEPT, REJECT) or place < went < len(conjunction.leaves)
            place = went
        stack: list[bool] = []
        for token in conjunction.tree:
            if token >= 0:
                stack.append(truths[conjunction.leaves[token]])
            else:
                count, any_ = (-token - 1) // 2 if -token % 2 else -token // 2, bool(-token % 2)
                last = stack[-count:]
                assert len(last) == count
                stack[-count:] = [any(last) if any_ else all(last)]
        assert stack == [place == ACCEPT]
        found |= place == ACCEPT
    return found


@given(TREES, st.lists(EVENTS, min_size=1, max_size=6), st.sampled_from([1, 2, 8, 64]))
@settings(max_examples=share(250), deadline=None)
def test_form_means_what_the_tree_means(tree: Expr, events: list[dict[str, Any]], budget: int) -> None:
    attributes = Attributes()
    c = FormCompiler(SCHEMA, attributes, Options(), Budget(budget, min(budget, 4), 4))
    for expression in (tree, str(tree)):
        form, literals = c.form(expression)
        assert form.slots == len(literals)
        for event in events:
            assert matches(form, attributes, event, literals) is (meaning(tree, event) is True), (
                str(tree),
                event,
                form,
            )


@pytest.mark.parametrize("budget", [1, 2, 8, 64])
def test_larger_trees_mean_what_they_say(budget: int) -> None:
    """Trees that are large enough for programs, which hypothesis seldom makes."""
    rng = random.Random(budget)
    attributes = Attributes()
    c = FormCompiler(SCHEMA, attributes, Options(), Budget(budget, min(budget, 4), 4))
    programs = several = 0
    for _ in range(share(400)):
        tree = random_tree(rng, 4)
        form, literals = c.form(tree)
        programs += any(conjunction.jumps for conjunction in form.conjunctions)
        several += len(form.conjunctions) > 1
        for _ in range(20):
            event = random_event(rng)
            assert matches(form, attributes, event, literals) is (meaning(tree, event) is True), (
                str(tree),
                event,
                form,
            )
    assert several > share(100)
    assert programs > share(10)


# Shape of forms
# --------------------------------------------------------------------------


def test_equalities_of_one_attribute_become_one_leaf() -> None:
    form, literals = compiler().form(" OR ".join(f"a = {i}" for i in range(50_000)))
    assert len(form.leaves) == 1
    assert len(form.leaves[0].tests) == len(literals) == 50_000
    assert [c.leaves for c in form.conjunctions] == [(0,)]


def test_constants() -> None:
    c = compiler()
    assert c.form("TRUE")[0].conjunctions[0].leaves == ()
    assert c.form("a = 1 OR NOT FALSE")[0].leaves == ()
    assert c.form("a = NULL AND b = 1")[0].conjunctions == ()
    assert c.form("NULL")[0].conjunctions == ()


def test_repeated_leaves_are_dropped() -> None:
    form, _ = compiler().form("v AND a IS NULL AND v AND a IS NULL")
    assert len(form.leaves) == 2
    assert form.conjunctions[0].leaves == (0, 1)


def test_within_the_budget_is_multiplied_out_and_beyond_is_a_program() -> None:
    text = "a = 1 AND " + " AND ".join(f"(b = {i} OR s = 'x{i}')" for i in range(3))
    within, _ = compiler(8).form(text)
    assert len(within.conjunctions) == 8
    assert not any(c.jumps for c in within.conjunctions)
    beyond, _ = compiler(7).form(text)
    (program,) = beyond.conjunctions
    assert program.jumps[0] == (1, REJECT)  # the necessary condition comes first
    assert program.tree == (0, 1, 2, -5, 3, 4, -5, 5, 6, -5, -8)


def test_necessary_conditions_of_a_program_come_first() -> None:
    c = compiler(1)
    attributes = c.normaliser.attributes
    (program,) = c.form("(a = 1 OR s = 'x') AND (b = 2 OR s = 'y') AND v")[0].conjunctions
    assert attributes[c.form("v")[0].leaves[0].attr].name == "v"
    form = c.form("(a = 1 OR s = 'x') AND (b = 2 OR s = 'y') AND v")[0]
    assert attributes[form.leaves[program.leaves[0]].attr].name == "v"


def test_a_wide_or_beyond_the_budget_has_one_conjunction_for_each_part() -> None:
    big = " AND ".join(f"(a = {i} OR s = 'x{i}')" for i in range(8))
    form, _ = compiler().form(" OR ".join([f"(a = {i} AND b = {i})" for i in range(100)] + [big, "v"]))
    assert len(form.conjunctions) == 102
    assert [bool(c.jumps) for c in form.conjunctions] == [False] * 100 + [True, False]


def test_nested_unknowns_do_not_blow_up() -> None:
    text = "a = 1"
    for _ in range(60):
        text = f"(({text}) IS UNKNOWN OR b = 2) AND s = 'x'"
    with pytest.raises(ExpressionError, match="too deep"):
        compiler().form(text)


def test_a_deep_ladder_is_a_form() -> None:
    text = "a = 0"
    for i in range(1, 150):
        text = f"({text} AND b = {i}) OR s = 'x{i}'" if i % 2 else f"({text} OR b = {i}) AND s = 'x{i}'"
    form, literals = compiler().form(text)
    assert len(literals) == 299
    assert form.conjunctions


def test_builder_nesting_without_bound_is_refused() -> None:
    e = col("a") == 1
    for _ in range(100_000):
        e = ~e
    with pytest.raises(ExpressionError, match="nests deeper than 200"):
        compiler().form(e)


# Attributes
# --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("u.x = 1 AND u.y.z = 'a'", ["u.x", "u.y.z"]),
        ("u['x'] = 1", ["u.x"]),
        ("U.X = 1 and A = 2", ["a", "u.x"]),
        ("m['k'] = 1 AND m.l = 2", ["m['k']", "m['l']"]),
        ("size(t) = 0 OR cardinality(m) > 2", ["size(m)", "size(t)"]),
    ],
)
def test_attributes(text: str, names: list[str]) -> None:
    attributes = Attributes()
    FormCompiler(SCHEMA, attributes, Options(), Budget(64, 64)).form(text)
    assert sorted(a.name for a in attributes) == names


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("a = 1 AND\n  agee = 2", "unknown attribute 'agee'", (2, 3)),
        ("v AND a = 'x'", "column 'a' is int64, the expression compares it with a string: write a number", (1, 11)),
        ("a IN (1, 2) AND a IN ('x', 'y')", "compares it with a string", (1, 22)),
        ("s > 5", "column 's' is string, the expression compares it with a number: write a string", (1, 5)),
        ("s > DATE '2026-01-01'", 'write a string, or make the column a date, as --schema "s: date" does', (1, 10)),
        ("size(t) = 'x'", "size\\(t\\) is int64, the expression compares it with a string", (1, 11)),
        ("v > 1", "write TRUE or FALSE", (1, 5)),
        ("a", "column 'a' is int64, not a condition by itself", (1, 1)),
        ("NOT s", "column 's' is string, not a condition", (1, 5)),
        ("v AND u = 1", "column 'u' is a struct: name a field, as in u.x", (1, 7)),
        ("m = 1", "column 'm' is a map: name an entry, as in m\\['key'\\]", (1, 1)),
        ("m[5] = 1", "the keys of 'm' are string: write a string", (1, 1)),
        ("t = 1", "column 't' is a list: write array_contains", (1, 1)),
        ("t['x'] = 1", "a list: \\[...\\] takes a place", (1, 1)),
        ("a['k'] = 1", "needs a map", (1, 1)),
        ("odd = 5", "which expressions cannot use", (1, 1)),
        ("array_contains(a, 1)", "array_contains needs a list column", (1, 16)),
        ("array_contains(t, 'x')", "compares it with a string", (1, 19)),
        ("array_contains(t, NULL)", "cannot look for NULL", (1, 16)),
        ("size(a) = 1", "size needs a list or map", (1, 6)),
        ("size(t[0]) = 1", "size needs a list or map column; t\\[0\\] is one value of a column", (1, 6)),
        ("size(t[0]) IN (1, 2)", "t\\[0\\] is one value of a column", (1, 6)),
        ("size(m['x']) = 1", "m\\['x'\\] is one value of a column", (1, 6)),
        ("a LIKE 'x'", "LIKE needs a string column; 'a' is int64", (1, 1)),
        ("s LIKE 5", "LIKE needs a string, not a number", (1, 8)),
        ("d = 5", "column 'd' is date32\\[day\\]|column 'd' is date", (1, 5)),
        ("u.w = 1", "unknown attribute 'u.w'", (1, 1)),
    ],
)
def test_what_does_not_fit_the_schema(text: str, message: str, place: tuple[int, int]) -> None:
    with pytest.raises(ExpressionError, match=message) as caught:
        compiler().form(text)
    assert (caught.value.line, caught.value.column) == place
    assert caught.value.id is None


def test_dates_may_be_strings() -> None:
    form, literals = compiler().form("d >= '2013-01-01' AND d < DATE '2013-02-01'")
    assert [leaf.tests[0].operands[0].kind for leaf in form.leaves] == [Kind.STRING, Kind.DATE]
    assert literals == ["2013-01-01", "2013-02-01"]
