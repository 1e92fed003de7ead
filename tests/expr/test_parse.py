"""Texts: what they say, where they are wrong, and how large they may be."""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from compiling import compiler
from text_values import parse

from colmatch.errors import ExpressionError
from colmatch.expr.ast import And, Constant, Expr, Not, Or, Predicate, Subject, Truth, Verb
from colmatch.given.options import Options
from colmatch.lowering.forms import Kind, Operand
from colmatch.sql.parse import FRAMES, Parser
from colmatch.sql.split import split, unescape
from colmatch.sql.stack import room


def p(verb: Verb, name: str, *operands: Any) -> Predicate:
    kinds = {
        int: Kind.INT,
        Decimal: Kind.DECIMAL,
        float: Kind.DOUBLE,
        str: Kind.STRING,
        bool: Kind.BOOL,
        bytes: Kind.BINARY,
    }

    def operand(x: Any) -> Operand | None:
        if isinstance(x, list):
            return Operand(kinds[type(x[0])], many=True, value=tuple(x))
        return x if x is None or isinstance(x, Operand) else Operand(kinds[type(x)], value=x)

    return Predicate(verb, Subject(tuple(name.split("."))), tuple(operand(x) for x in operands))


A, B = p(Verb.EQ, "a", 1), p(Verb.BARE, "b")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a = 1", A),
        ("a == 1 AND b", And((A, B))),
        ("a = 1 or b and b", Or((A, And((B, B))))),
        ("(a = 1 or b) and b", And((Or((A, B)), B))),
        ("a = 1 AND (b AND a = 1)", And((A, B, A))),
        ("NOT a = 1", Not(A)),
        ("! b", Not(B)),
        ("1 = a", A),
        ("5 < a", p(Verb.GT, "a", 5)),
        ("5 >= a", p(Verb.LE, "a", 5)),
        ("a != 5", p(Verb.NE, "a", 5)),
        ("a <=> NULL", p(Verb.SAME, "a", None)),
        ("a IS NOT DISTINCT FROM 5", p(Verb.SAME, "a", 5)),
        ("a IS DISTINCT FROM 5", Not(p(Verb.SAME, "a", 5))),
        ("a BETWEEN -1 AND - -2 AND b", And((p(Verb.BETWEEN, "a", -1, 2), B))),
        ("a NOT BETWEEN 1 AND 2", Not(p(Verb.BETWEEN, "a", 1, 2))),
        ("a IN (1, -2)", p(Verb.IN, "a", [1, -2])),
        ("a IN (5)", p(Verb.IN, "a", [5])),
        ("a NOT IN (1, 2.5, NULL)", Not(p(Verb.IN, "a", 1, Decimal("2.5"), None))),
        ("a IS NULL", p(Verb.NULL, "a")),
        ("a IS NOT NULL", Not(p(Verb.NULL, "a"))),
        ("(b) IS UNKNOWN", p(Verb.NULL, "b")),
        ("(a = 1) IS NULL", Truth(A, None)),
        ("a = 1 IS NOT UNKNOWN", Not(Truth(A, None))),
        ("b IS NOT TRUE", Not(Truth(B, True))),
        ("b IS FALSE", Truth(B, False)),
        ("TRUE AND NULL", And((Constant(True), Constant(None)))),
        ("s LIKE 'x%' AND s NOT ILIKE 'y_'", And((p(Verb.LIKE, "s", "x%"), Not(p(Verb.ILIKE, "s", "y_"))))),
        (r"s LIKE 'a!%\\' ESCAPE '!'", p(Verb.LIKE, "s", r"a\%" + "\\\\")),
        ("s LIKE ANY ('x', 'y')", Or((p(Verb.LIKE, "s", "x"), p(Verb.LIKE, "s", "y")))),
        ("s NOT LIKE ALL ('x', 'y')", And((Not(p(Verb.LIKE, "s", "x")), Not(p(Verb.LIKE, "s", "y"))))),
        ("s NOT RLIKE 'x' OR s REGEXP 'y'", Or((Not(p(Verb.RLIKE, "s", "x")), p(Verb.RLIKE, "s", "y")))),
        ("rlike(s, 'x')", p(Verb.RLIKE, "s", "x")),
        ("startswith(s, 'x')", p(Verb.STARTSWITH, "s", "x")),
        ("NOT endswith(s, 'x')", Not(p(Verb.ENDSWITH, "s", "x"))),
        ("contains(s, 'x')", p(Verb.CONTAINS, "s", "x")),
        ("array_contains(t, 5)", p(Verb.ARRAY_CONTAINS, "t", 5)),
        ("arrays_overlap(t, array('x', 'y'))", p(Verb.ARRAYS_OVERLAP, "t", ["x", "y"])),
        ("arrays_overlap(array('x'), t)", p(Verb.ARRAYS_OVERLAP, "t", ["x"])),
        ("arrays_overlap(t, array())", p(Verb.ARRAYS_OVERLAP, "t")),
        ("contains_all(t, 'x', 'y')", p(Verb.CONTAINS_ALL, "t", "x", "y")),
        ("size(t) = 0", Predicate(Verb.EQ, Subject(("t",), None, True), (Operand(Kind.INT, value=0),))),
        ("cardinality(m['k']) IS NULL", Predicate(Verb.NULL, Subject(("m",), "k", True))),
        ("a.b.c.d.e.f = 1", p(Verb.EQ, "a.b.c.d.e.f", 1)),
        ("s.m['it\\'s'] = 1", Predicate(Verb.EQ, Subject(("s", "m"), "it's"), (Operand(Kind.INT, value=1),))),
        ("m[-5] = 1", Predicate(Verb.EQ, Subject(("m",), -5), (Operand(Kind.INT, value=1),))),
        ("`a.b c``d`.`select` = 1", Predicate(Verb.EQ, Subject(("a.b c`d", "select")), (Operand(Kind.INT, value=1),))),
        ("date = DATE '2013-01-31'", p(Verb.EQ, "date", Operand(Kind.DATE, value=date(2013, 1, 31)))),
        ("a.order = 1 AND end = 1", And((p(Verb.EQ, "a.order", 1), p(Verb.EQ, "end", 1)))),
        (
            "ts < TIMESTAMP'2013-01-31 10:00:00'",
            p(Verb.LT, "ts", Operand(Kind.TIMESTAMP, value=datetime(2013, 1, 31, 10))),
        ),
        ("ts < TIMESTAMP_LTZ '2013'", p(Verb.LT, "ts", Operand(Kind.TIMESTAMP, value="2013"))),
        ("ts < timestamp_ntz '2013'", p(Verb.LT, "ts", Operand(Kind.TIMESTAMP_NTZ, value="2013"))),
        ("f = CAST('-Infinity' AS DOUBLE)", p(Verb.EQ, "f", float("-inf"))),
        ("f = double('1.5')", p(Verb.EQ, "f", 1.5)),
        ("f = 1.5e3 AND f = 1.5D", And((p(Verb.EQ, "f", 1500.0), p(Verb.EQ, "f", 1.5)))),
        ("f = .5 AND f = -.5", And((p(Verb.EQ, "f", Decimal("0.5")), p(Verb.EQ, "f", Decimal("-0.5"))))),
        ("a = 1L AND a = 5BD", And((A, p(Verb.EQ, "a", Decimal(5))))),
        ("f = 1.1F", p(Verb.EQ, "f", 1.100000023841858)),
        ("x = X'1f'", p(Verb.EQ, "x", b"\x1f")),
        ("s = 'it\\'s' AND s = 'it''s'", And((p(Verb.EQ, "s", "it's"), p(Verb.EQ, "s", "it's")))),
        ("s = \"it's\" AND s = 'a' 'b'", And((p(Verb.EQ, "s", "it's"), p(Verb.EQ, "s", "ab")))),
        (r"s = r'\d' AND s = '\%\_\\\n\u0041\101\q'", And((p(Verb.EQ, "s", r"\d"), p(Verb.EQ, "s", "\\%\\_\\\nAAq")))),
        ("a = 1 -- b AND\n AND /* c = 'x */ b", And((A, B))),
    ],
)
def test_text(text: str, tree: Expr | None) -> None:
    if tree is None:
        with pytest.raises(ExpressionError):
            parse(text)
        return
    assert parse(text) == tree
    assert parse(str(tree)) == tree


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("", "the expression is empty", (1, 1)),
        (" -- nothing", "the expression is empty", (1, 1)),
        ("a = 1;\nb = 2", "not several statements", (1, 6)),
        ("a b", "'b' follows 'a': write AND, OR or an operator", (1, 3)),
        ("a = 1\nAND\n  b b", "'b' follows 'b'", (3, 5)),
        ("a =", "something is missing after '='", (1, 3)),
        ("a = 1 AND", "something is missing after 'AND'", (1, 7)),
        ("(a = 1", "'\\)' is missing", (1, 7)),
        ("a = 1)", "'\\)' is not expected", (1, 6)),
        ("s = 'x", "a string is not closed", (1, 5)),
        ("`a = 1", "a name is not closed", (1, 1)),
        ("a /* = 1", "a comment is not closed", (1, 3)),
        ("* a = 2", "'\\*' is not expected", (1, 1)),
        ("a && 2 = 4", "operator '&&' is not supported", (1, 3)),
        ("b AND\trandstr(5) = 'X'", "function 'randstr' is not supported: compute it beforehand", (1, 7)),
        ("s.trim() = 'x'", "function 's.trim'", (1, 1)),
        ("a IN (SELECT 1)", "subqueries are not supported", (1, 7)),
        ("EXISTS (SELECT 1)", "subqueries", (1, 1)),
        ("b OR CASE WHEN b THEN b", "CASE is not closed", (1, 6)),
        ("d > d - INTERVAL 1 MOON", "an interval is written INTERVAL 7 DAYS", (1, 9)),
        ("a IN ()", "IN needs a list", (1, 1)),
        ("a IN (1,,2)", "something is missing before ','", (1, 9)),
        ("s RLIKE s", "a literal is needed", (1, 9)),
        ("s LIKE 'x!' ESCAPE '!'", "in this LIKE pattern", (1, 8)),
        ("s LIKE 'x' ESCAPE '!!'", "ESCAPE needs one character", (1, 19)),
        ("5", "a literal is not a condition", (1, 1)),
        ("a IS 5", "IS is followed by", (1, 1)),
        ("m[k] = 1", "a literal key is needed", (1, 2)),
        ("m['k']['l'] = 1", "an entry of a map has no parts here", (1, 7)),
        ("a = 5Y AND a = 500Y", "500Y is too large", (1, 16)),
        ("a = 9223372036854775808L", "too large", (1, 5)),
        ("a = " + "9" * 39, "at most 38 digits", (1, 5)),
        ("f = 1e400", "too large for a double", (1, 5)),
        ("f = CAST('x' AS DOUBLE)", "'x' is not a number", (1, 10)),
        ("f = CAST(a DOUBLE)", "CAST takes a value and a type", (1, 5)),
        ("x = X'G'", "not hexadecimal", (1, 5)),
        ("x =\n X'\n'", "X' ' is not hexadecimal", (2, 2)),
        ("a = 0x1F", "a binary literal is written", (1, 5)),
        ("s = '\\ud800'", "is not a character", (1, 5)),
        ("s = '\ud800'", "half a surrogate pair", (1, 6)),
        ("a = :x", "':' is not expected", (1, 5)),
        ("contains(s)", "contains has too few or too many arguments here: it is written", (1, 1)),
        ("arrays_overlap(t, t)", "arrays_overlap needs", (1, 16)),
        ("a in", "IN needs a list", (1, 1)),
        ("in", "'in' is not expected", (1, 1)),
        (" OR ( ('a', 'b')", "this is not a condition", (1, 2)),
        ("b AND a" + ".x" * 64 + " = 1", "a name of 65 parts", (1, 7)),
    ],
)
def test_refused(text: str, message: str, place: tuple[int, int]) -> None:
    with pytest.raises(ExpressionError, match=message) as caught:
        parse(text)
    assert (caught.value.line, caught.value.column) == place
    assert "\x1b" not in str(caught.value)
    assert "\n" not in caught.value.message
    with pytest.raises(ExpressionError) as compiled:
        compiler().form(text)
    assert compiled.value.id is None


# Literals
# --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("''", ""),
        ("'a''b'", "a'b"),
        ('"a""b\'\'"', "a\"b''"),
        (r"'\'''\''", "'''"),
        (r"'\\''\\'", r"\'" + "\\"),
        (r"'\0\b\n\r\t\Z\x'", "\0\b\n\r\t\x1ax"),
        (r"'\U0001F600\u00e9\400'", "\U0001f600\u00e9400"),
        (r"'50\%\_'", r"50\%\_"),
        ("'\\n a''b'", "\n a'b"),
    ],
)
def test_unescape(raw: str, text: str) -> None:
    assert unescape(raw) == text


def test_literals_are_found_by_slot() -> None:
    _, literals = compiler().form(
        "a1 BETWEEN 1 AND -2 AND s IN ('x', 'it''s') AND n > 1.50 AND x = X'00FF' AND a2 IN (1, -3) AND f = 1e3"
    )
    assert literals == ["1", "2", ["x", "it's"], "1.50", b"\x00\xff", ["1", "-3"], "1e3"]


def test_split_finds_lists_with_escapes() -> None:
    assert split(r"s IN ('x', 'it''s', '\'', '') AND a1 = 5") == (
        "s IN \x01S AND a1 = \x01i",
        [["x", "it's", "'", ""], "5"],
    )


def test_place_of_a_literal() -> None:
    c = compiler()
    assert c.place("d = '2013'\n  AND d IN ('x', 'y') AND d < '2014'", 2) == (2, 31)
    assert c.place("d = '2013'\n  AND d IN ('x', 'y') AND d < '2014'", 0) == (1, 5)


# Size
# --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "(" * 100_000 + "v" + ")" * 100_000,
        "(" * 100_000,
        "NOT " * 100_000 + "v",
        "size(" * 100_000,
        "a1 NOT " * 100_000,
        "m" + "[" * 100_000,
        "CASE WHEN " * 100_000,
        "a1" + ".x" * 100_000,
        "a1 BETWEEN " * 30_000,
        "CAST(" * 100_000,
        "s LIKE ANY (" * 30_000,
        "v" + " IS NOT TRUE" * 20_000,
        "'" * 1_000_001,
        "a1 = " + "9" * 1_000_000,
    ],
    ids="parentheses open not size infix brackets case dots between cast any is-not quotes digits".split(),  # noqa: SIM905
)
def test_huge_nonsense_is_refused(text: str) -> None:
    start = time.process_time()
    with pytest.raises(ExpressionError):
        compiler().form(text)
    assert time.process_time() - start < 30


@pytest.mark.parametrize(
    ("text", "leaves"),
    [
        (" AND ".join(f"a{i % 20} = {i}" for i in range(60_000)), 60_000),
        ("(" + " AND ".join(f"a{i % 20} = {i}" for i in range(20_000)) + ")", 20_000),
        (" OR ".join(f"a{i % 20} = {i}" for i in range(60_000)), 20),
        (f"a1 IN ({', '.join(map(str, range(100_000)))})", 1),
        (f"a1 IN (NULL, {', '.join(map(str, range(20_000)))})", 1),
        ("a1 = " + "- " * 100_000 + "5", 1),
        ("v" + " IS NULL" * 20_000, 0),
        (f"s = '{'x' * 1_000_000}'", 1),
        ("/**/" * 100_000 + "v", 1),
        ("v" + " " * 1_000_000 + "AND" + " " * 1_000_000 + "v", 1),
    ],
    ids=["and", "parenthesis", "or", "in", "mixed in", "signs", "is null", "string", "comments", "spaces"],
)
def test_huge_expressions(text: str, leaves: int) -> None:
    form, _ = compiler(max_text_bytes=1 << 30).form(text)
    assert len(form.leaves) == leaves


@pytest.mark.parametrize("depth", [200, 400])
def test_nesting_up_to_the_limit(depth: int) -> None:
    c = compiler(max_depth=depth)
    assert c.form("(" * depth + "v" + ")" * depth)[0].leaves
    assert c.form("NOT (" * (depth // 2) + "v" + ")" * (depth // 2))[0].leaves
    assert c.form("NOT " * depth + "v")[0].leaves
    with pytest.raises(ExpressionError, match="nests deeper") as caught:
        c.form("(" * (depth + 1) + "v" + ")" * (depth + 1))
    assert caught.value.column == depth + 1


def test_depth_begins_anew_after_each_and() -> None:
    assert isinstance(parse(" AND ".join(["NOT (v)"] * 300), Options(max_depth=2)), And)
    assert isinstance(parse(" AND ".join(["NOT v"] * 300), Options(max_depth=2)), And)
    with pytest.raises(ExpressionError):
        parse("NOT (v AND (v))", Options(max_depth=2))


def test_not_an_expression() -> None:
    with pytest.raises(ExpressionError, match="not int"):
        compiler().form(5)  # type: ignore[arg-type]


def test_two_threads_parse_deep_texts_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recursion limit is the process's: who leaves first takes no room from the other, and
    the last puts the limit back.
    """
    before = sys.getrecursionlimit()
    texts = {"first": "(" * 100 + "a = 1" + ")" * 100, "second": "(" * 200 + "a = 1" + ")" * 200}
    inside, leave = {name: threading.Event() for name in texts}, {name: threading.Event() for name in texts}
    limits: list[int] = []

    class Slow:
        """A parser that waits, and then says how much room there is."""

        def __init__(self, name: str, parser: Any) -> None:
            self.name = name
            self.parser = parser

        def parse_into(self, *arguments: Any) -> Any:
            inside[self.name].set()
            assert leave[self.name].wait(60)
            limits.append(sys.getrecursionlimit())
            return self.parser.parse_into(*arguments)

    def run(name: str) -> Expr:
        parser = Parser(400)
        parser._sqlglot = Slow(name, parser._sqlglot)
        return parser.parse(parser.read(texts[name]))

    with ThreadPoolExecutor(2) as pool:
        found = {}
        for name in texts:
            found[name] = pool.submit(run, name)
            assert inside[name].wait(60)
        for name in texts:
            leave[name].set()
            assert isinstance(found[name].result(60), Predicate)
    assert limits[0] >= before + 100 * FRAMES
    assert limits[1] >= before + 200 * FRAMES
    assert sys.getrecursionlimit() == before


def test_a_limit_that_somebody_else_sets_is_left_alone() -> None:
    before = sys.getrecursionlimit()
    try:
        with room(1000):
            assert sys.getrecursionlimit() == before + 1000
            with room(500):
                sys.setrecursionlimit(before + 5000)
        assert sys.getrecursionlimit() == before + 5000
    finally:
        sys.setrecursionlimit(before)
