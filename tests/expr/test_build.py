"""The builder makes the trees that texts make."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from clauses import TAKEN, Clause
from hostile import unitless
from hypothesis import given
from hypothesis import strategies as st
from text_values import parse
from trees import TREES

from colmatch.errors import ExpressionError
from colmatch.expr.ast import Expr, Predicate, Verb
from colmatch.expr.build import col
from colmatch.given.options import Options
from colmatch.given.schema import Attributes, Schema
from colmatch.kinds.settings import Budget
from colmatch.sql.compile import FormCompiler

a, b, s, t = col("a"), col("b"), col("s"), col("t")


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (
            col("age").between(22, 36) & col("city").isin(["NYC"]) & ~col("vip"),
            "age BETWEEN 22 AND 36 AND city IN ('NYC') AND NOT vip",
        ),
        ((a == 1) | b & (a != 2), "a = 1 OR b AND a <> 2"),
        (((a < 1) | (a <= 1)) & (a > 1) & (a >= 1), "(a < 1 OR a <= 1) AND a > 1 AND a >= 1"),
        (1 < a, "a > 1"),  # noqa: SIM300
        (b & True, "b AND TRUE"),
        (False | b, "FALSE OR b"),
        (a == None, "a = NULL"),  # noqa: E711
        (a.is_null() & a.is_not_null(), "a IS NULL AND a IS NOT NULL"),
        (a.eq_null_safe(None), "a <=> NULL"),
        (a.isin([1, 2.5, None]), "a IN (1, 2.5D, NULL)"),
        (a.isin([]), "FALSE"),
        (~a.isin(range(3)), "a NOT IN (0, 1, 2)"),
        (s.like(r"50\%") | s.ilike("x") | s.rlike(r"\d"), r"s LIKE '50\\%' OR s ILIKE 'x' OR s RLIKE '\\d'"),
        (
            s.startswith("'") & s.endswith("b") & s.contains("c"),
            r"startswith(s, '\'') AND endswith(s, 'b') AND contains(s, 'c')",
        ),
        (t.array_contains("x") & t.contains_all("x", "y"), "array_contains(t, 'x') AND contains_all(t, 'x', 'y')"),
        (t.arrays_overlap(["x", "y"]) & (t.size() == 0), "arrays_overlap(t, array('x', 'y')) AND size(t) = 0"),
        (b.is_true() & b.is_false() & b.is_unknown(), "b IS TRUE AND b IS FALSE AND b IS UNKNOWN"),
        ((a == 1).is_unknown(), "(a = 1) IS NULL"),
        (col("user.age") == 1, "user.age = 1"),
        (col("user.x", "age") == 1, "`user.x`.age = 1"),
        (col("attrs")["k"] == 1, "attrs['k'] = 1"),
        (col("s.m")[-5].is_null(), "s.m[-5] IS NULL"),
        (a == Decimal("1.50"), "a = 1.50"),
        (a == Decimal("1E+3"), "a = 1000BD"),
        (a == -1.5e300, "a = -1.5e300"),
        (a == float("nan"), "a = CAST('NaN' AS DOUBLE)"),
        (a == float("-inf"), "a = CAST('-Infinity' AS DOUBLE)"),
        (a == date(2013, 1, 31), "a = DATE '2013-01-31'"),
        (a == datetime(2013, 1, 31, 10), "a = TIMESTAMP '2013-01-31 10:00:00'"),
        (a == datetime(2013, 1, 31, 10, tzinfo=UTC), "a = TIMESTAMP '2013-01-31 10:00:00+00:00'"),
        (a == b"\x00\xff", "a = X'00FF'"),
        (a == np.int32(5), "a = 5"),
        (a == np.float64(5), "a = 5D"),
        (b == np.bool_(True), "b = TRUE"),
        (s == np.str_("x"), "s = 'x'"),
        (a == np.datetime64("2013-01-31"), "a = DATE '2013-01-31'"),
        (a == np.datetime64("2013-01-31T10:00:00.000000001"), "a = TIMESTAMP '2013-01-31 10:00:00.000000001'"),
        (a == pa.scalar(5), "a = 5"),
    ],
)
def test_built_is_the_text(built: Expr, text: str) -> None:
    assert built == parse(text)
    assert parse(str(built)) == built
    assert hash(built) == hash(parse(text))
    assert str(pickle.loads(pickle.dumps(built))) == str(built)  # one NaN is not another
    assert copy.deepcopy(built) == built


@given(TREES)
def test_str_parses_back(tree: Expr) -> None:
    assert parse(str(tree)) == tree
    assert repr(tree) == str(tree)


@pytest.mark.parametrize("clause", TAKEN, ids=[clause.text for clause in TAKEN])
def test_what_a_clause_says_parses_back(clause: Clause) -> None:
    """Computed values, conditions within them and CASE are written as they are read."""
    tree = parse(clause.text)
    assert parse(repr(tree)) == tree


def test_conditions_read_like_clauses() -> None:
    price, city = col("price"), col("city")
    assert repr((price > 5) & city.isin(["LIS", "OPO"])) == "price > 5 AND city IN ('LIS', 'OPO')"
    assert repr([~(price > 5), city.is_not_null()]) == "[NOT (price > 5), city IS NOT NULL]"
    assert repr(parse("price > 5 OR CASE WHEN vip THEN 1 ELSE 2 END = 1")) == (
        "price > 5 OR CASE WHEN vip THEN 1 ELSE 2 END = 1"
    )
    assert repr(parse("tags[0] = 'x' AND (price + 1) * 2 > 3 AND isnan(price)")) == (
        "tags[0] = 'x' AND (price + 1) * 2 > 3 AND isnan(price)"
    )


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_string_and_name_survive(text: str, name: str) -> None:
    built = (col(name, name) == text) | (col(name)[text].isin([text, text]))
    assert parse(str(built)) == built


def test_not_a_truth_value() -> None:
    for make in (lambda: a and b, lambda: not a, lambda: bool(a == 1), lambda: (a == 1) or b, lambda: 1 < a < 5):
        with pytest.raises(ExpressionError, match="& | ~"):
            make()
    with pytest.raises(ExpressionError, match="parentheses"):
        a & 1  # type: ignore[operator]
    with pytest.raises(TypeError):
        list(a)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "make",
    [
        lambda: a == object(),
        lambda: a < [object()],
        lambda: a.isin("NYC"),
        lambda: a.isin(5),
        lambda: s.like(5),
        lambda: s == "\ud800",
        lambda: a == unitless(np.datetime64, "NaT"),
        lambda: a == Decimal("NaN"),
        lambda: t.contains_all(),
        lambda: a["k"]["l"],
        lambda: a[1.5],
        lambda: t.size() & b,
        lambda: t.size().size(),
        lambda: (a + 1).size() == 3,
        lambda: (a + 1)["x"] == 3,
        lambda: a.cast("int")["q"] == 2,
        lambda: t[0].size() == 1,
        lambda: col("m")["k"].size() + 1 > 9,
        lambda: t.size()[0] == 3,
        lambda: col(),
        lambda: col(5),
    ],
    ids=lambda make: str(make.__code__.co_firstlineno),
)
def test_values_that_cannot_be(make: Any) -> None:
    with pytest.raises(ExpressionError):
        make()


def test_column_shows_itself() -> None:
    assert repr(col("user.age")) == "<column user.age>"
    assert repr(col("t").size()) == "<column size(t)>"
    assert str(col("vip")) == "vip"


# Forms
# --------------------------------------------------------------------------

SCHEMA = Schema({"a": "int64", "b": "bool", "s": "string", "t": pa.list_(pa.string())})


def test_one_form_for_one_structure() -> None:
    c = FormCompiler(SCHEMA, Attributes(), Options(), Budget(64, 64))

    def built(n: int) -> Expr:
        return (a == n) & s.isin([f"x{i}" for i in range(n)]) & ~b & (b == True) & t.contains_all("x", str(n))  # noqa: E712

    form, literals = c.form(built(1))
    again, others = c.form(built(3))
    assert again is form
    assert literals == [1, ["x0"], "x", "1"]
    assert others == [3, ["x0", "x1", "x2"], "x", "3"]
    assert c.form((a == 5.0) & b)[0] is not c.form((a == 5) & b)[0]
    assert c.form(a.isin([1]) & (b == True))[0] is not c.form(a.isin([1]) & (b == False))[0]  # noqa: E712


def test_structures_are_not_mixed_up() -> None:
    c = FormCompiler(SCHEMA, Attributes(), Options(), Budget(64, 64))
    x, y, z, w = a == 1, a < 2, a > 3, a >= 4
    pairs = [(x & y) | z, (x | y) & z, (x | y) & z & w, (x | y | z) & w]
    assert len({id(c.form(e)[0]) for e in pairs}) == len(pairs)
    forms = [
        c.form(e)[0]
        for e in (
            (x & y) | z,
            x & (y | z),
            ~(x & y) | z,
            ~((x & y) | z),
            (x & y).is_true() | z,
            (x & y).is_false() | z,
            x | y | z,
        )
    ]
    assert len({id(form) for form in forms}) == len(forms)


def test_a_column_is_a_form() -> None:
    c = FormCompiler(SCHEMA, Attributes(), Options(), Budget(64, 64))
    assert c.form(b) == c.form("b")
    assert isinstance(b.node(), Predicate)
    assert b.node().verb is Verb.BARE  # type: ignore[attr-defined]


def test_errors_have_no_place() -> None:
    c = FormCompiler(SCHEMA, Attributes(), Options(), Budget(64, 64))
    for expression in (a == "x", col("agee") == 1, t == "x", a):
        with pytest.raises(ExpressionError) as caught:
            c.form(expression)
        assert caught.value.line is None
    assert c.place(a == 1, 0) is None
