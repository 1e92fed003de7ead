"""Shapes of texts: which texts share a form, and that what is kept of one is right for all."""

from __future__ import annotations

import re
import string

import pytest
from compiling import compiler
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import share

from colmatch.errors import ExpressionError
from colmatch.sql.quotes import Quotes
from colmatch.sql.split import literal_places, split
from colmatch.sql.tokens import read_text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a1 = 1 AND s = 'x'", "a1 = -0 AND s = 'it''s \\\\'".replace("-", "")),
        ("a1 IN (1)", "a1 IN (1, 2, -3)"),
        ("s IN ('x', 'y')", "s IN (  '')"),
        ("a1 IN (1, 2) OR m['a1'] = 1", "a1 IN (7) OR m['a1'] = 15"),
        ('m["k"] = 1 AND `odd name` = 5', 'm["k"] = 12 AND `odd name` = 55'),
        ("a1 /* 5 */ = 1 AND x = X'00'", "a1 /* 6 */ = 2 AND x = X'0011'"),
        ("s LIKE 'a%' ESCAPE '!'", "s LIKE '!%%' ESCAPE '!'"),
        ("f = 1.5 AND n = 2.0D AND f = 1e3", "f = 7. AND n = 2D AND f = 17.2e-3"),
        ("f = CAST('NaN' AS DOUBLE)", "f = CAST('1' AS DOUBLE)"),
        ("d IN (DATE '2013-01-01', DATE '2013-01-02')", "d IN (DATE '2014-01-01', DATE '2015-01-02')"),
        ("arrays_overlap(t, array('x'))", "arrays_overlap(t, array('x', 'y'))"),
    ],
)
def test_same_shape_same_form(one: str, other: str) -> None:
    c = compiler()
    form, literals = c.form(one)
    again, others = c.form(other)
    assert again is form
    assert len(literals) == len(others) == form.slots


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a1 = 1", "a2 = 1"),
        ("a1 = 1", "a1 = 1.0"),
        ("f = 1.5", "f = 1e3"),
        ("f = 1", "f = 1L"),
        ("v AND (v OR a1 = 1)", "v AND v OR a1 = 1"),
        ("m['k'] = 1", "m['l'] = 1"),
        ("contains_all(t, 'x')", "contains_all(t, 'x', 'y')"),
        ("a1 = 1", "a1 = -1"),
        ("`a1` = 1 AND a2 = 2", "`a2` = 1 AND a1 = 2"),
    ],
)
def test_another_shape_another_form(one: str, other: str) -> None:
    c = compiler()
    assert c.form(one)[0] is not c.form(other)[0]


def test_a_literal_that_is_checked_is_always_checked() -> None:
    c = compiler()
    assert c.form("f = CAST('NaN' AS DOUBLE)")[1] == ["NaN"]
    assert c.form("f = CAST(' 5d' AS DOUBLE)")[1] == ["5"]
    with pytest.raises(ExpressionError, match="'x' is not a number") as raised:
        c.form("f = CAST('x' AS DOUBLE)")
    assert raised.value.column == 10


def test_what_looks_alike_is_read_properly() -> None:
    """The literal of the first text stands where the second one has a comment: one shape to
    ``split``, two forms.
    """
    c = compiler()
    for text, literals in [
        ("/* 5 */ a1 = 5Y", ["5"]),
        ("/* 6 */ a1 = 5Y", ["5"]),
        ("a1 = 7 -- 3", ["7"]),
        ("a1 = 7 -- 4", ["7"]),
        ("`odd name` = 3 AND 4 = a1", ["3", "4"]),
        ("s = r'\\' OR a1 = 1 OR s = 'x'", ["\\", "1", "x"]),
    ]:
        assert c.form(text)[1] == literals


WORDS = st.sampled_from(
    [
        *[
            "a1",
            "s",
            "v",
            "`a 5`",
            "m['k']",
            "m[5]",
            "'x'",
            "'it''s'",
            "'a\\'b'",
            '"q"',
            "5",
            "17",
            "1.5",
            "1e3",
            ".5",
            "5L",
            "-",
            "=",
            "<",
        ],
        *[
            "IN",
            "(",
            ")",
            ",",
            "('a','b')",
            "(1, -2)",
            "array",
            "AND",
            "OR",
            "NOT",
            "BETWEEN",
            "IS",
            "NULL",
            "TRUE",
            "LIKE",
            "ESCAPE",
            "DATE",
        ],
        *[
            "X'1F'",
            "r'\\'",
            "--",
            "\n",
            "/*",
            "*/",
            ";",
            "[",
            "]",
            ".",
            "'",
            '"',
            "`",
            "\\",
            "CAST",
            "AS",
            "DOUBLE",
            "CASE",
            "SELECT",
            "é",
        ],
        *["\0", "\x01i"],
    ]
)


@given(st.lists(WORDS, max_size=14), st.sampled_from(["", " "]))
@settings(max_examples=share(400))
def test_split_agrees_with_the_reader_or_is_not_used(words: list[str], gap: str) -> None:
    """Two texts that ``split`` takes for one shape, with other literals: the reader agrees with
    it on both, or on neither.
    """
    text = gap.join(words)
    other = re.sub("17", "171", re.sub("x'", "y'", text)).replace("5", "6").replace("it''s", "''").replace("'q'", "'r'")
    try:
        shapes = [split(t) for t in (text, other)]
        readings = [read_text(t, 50, Quotes()) for t in (text, other)]
    except (ValueError, Exception) as error:
        if type(error).__name__ not in ("Refusal", "ValueError"):
            raise
        return
    if shapes[0][0] != shapes[1][0]:
        return
    agree = [
        shape[1] == reading.literals and literal_places(t) == reading.literal_at
        for t, shape, reading in zip((text, other), shapes, readings, strict=True)
    ]
    assert agree[0] == agree[1], (text, other)


@given(st.lists(WORDS, max_size=14).map(" ".join) | st.text(string.printable, max_size=40) | st.text(max_size=20))
@settings(max_examples=share(400))
def test_nothing_but_our_errors(text: str) -> None:
    try:
        compiler().form(text)
    except ExpressionError as error:
        found = error
    else:
        return
    assert found.line is not None
    assert found.column is not None


def test_comments_are_not_cut() -> None:
    c = compiler()
    assert len(c.form("a1 = 1 -- AND a2 = 2\n AND v")[0].leaves) == 2
    assert len(c.form("a1 = 1 AND v -- AND a2 = 2")[0].leaves) == 2
    assert len(c.form("a1 = 1 /* OR a2 = 2 */ AND v")[0].leaves) == 2


def test_a_text_with_a_mark_is_read_properly() -> None:
    with pytest.raises(ExpressionError):
        compiler().form("a1 = 1 AND a2 = \x01i")
    c = compiler()
    c.form("a1 = 1")
    with pytest.raises(ExpressionError):
        c.form("a1 = \x01i")


def test_half_a_surrogate_in_a_known_shape() -> None:
    c = compiler()
    c.form("s = 'x'")
    with pytest.raises(ExpressionError, match="surrogate"):
        c.form("s = '\ud800'")
