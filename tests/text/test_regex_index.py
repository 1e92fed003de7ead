"""Regular expressions: the literals that they need, and many of them at once against each alone."""

from __future__ import annotations

import logging

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import BINARY, STRING, few
from test_pattern_index import alone, odd, strings, together

from colmatch.text import regex_index
from colmatch.text.pattern_index import BasePatterns, PatternIndex
from colmatch.text.reduce import reduce_pattern
from colmatch.text.regex_literals import requirement


@pytest.fixture(autouse=True)
def without_hyperscan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLMATCH_REGEX", "re2")


@pytest.mark.parametrize(
    ("regex", "literals"),
    [
        ("abc", ["abc"]),
        ("a[0-9]+bcd|xyz+", ["bcd", "xyz"]),
        ("err(or)?: [0-9]+ (disk|memory) full", [" full"]),
        ("(disk|memory)", ["disk", "memory"]),
        ("(?:ab){2,}c", ["ab"]),
        ("(ab)*c", ["c"]),
        ("(ab|c*)", []),
        ("ab+cd?e", ["ab"]),
        ("a+bcd", ["abcd"]),
        ("ab{0}cde?f", ["cd"]),
        ("abc??de*?f", ["ab"]),
        (r"a\.b\n\x41\pNxyz\d", ["a.b\n"]),
        (r"\Aab\zc", ["ab"]),
        ("[.]com[]x][^]y][[:alpha:]\\]z]zz", [".com"]),
        ("(?s)ab.*cde", ["cde"]),
        ("(?P<n>abc)(?<m>d)(?s:e)(?-s)fghij", ["fghij"]),
        ("[ab]+", []),
        ("", []),
        (r"\Qa+b\E", []),
        ("a(?i)bc", []),
        ("a{,3}b", ["a{,3}b"]),
        ("^a*$|b", []),
        ("|".join("abcdefghijklmnopq"), []),
    ],
)
def test_literals(regex: str, literals: list[str]) -> None:
    assert not reduce_pattern("rlike", regex).error
    assert requirement(regex) == (tuple(literal.encode() for literal in literals), False)


@pytest.mark.parametrize(
    ("regex", "literal"),
    [("(?i)Nice x", b"nice x"), ("(?i)kiosk-aBc", b"-abc"), ("(?i)été-x", b"-x"), ("(?si)K+", None)],
)
def test_literals_in_any_case(regex: str, literal: bytes | None) -> None:
    assert requirement(regex) == (((literal,), True) if literal else ((), False))


def test_deep_groups_are_given_up() -> None:
    assert requirement("(" * 900 + "abc" + ")" * 900).literals == ()


def joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    several = st.lists(inner, min_size=1, max_size=3)
    repeated = st.tuples(inner, st.sampled_from(["*", "+", "?", "{0}", "{1,}", "{2}", "+?", "??", "{0,1}?"])).map(
        lambda t: f"(?:{t[0]}){t[1]}"
    )
    return several.map("".join) | several.map("|".join).map("({})".format) | repeated | inner.map("(?s:{})".format)


characters = ["a", "b", "ab", "ks", "é", "A", "-", "{", "}", "]"]
classes = [".", "[ab]", "[^a]", "[b]", "[]a]", r"\.", r"\w", r"\b", r"\pL", r"\x61", r"\n", "^", "$"]
atoms = st.sampled_from([*characters, *classes, "a+", "b*", "c?"])
regexes = st.tuples(
    st.sampled_from(["", "", "(?i)", "(?s)", "(?mi)", "(?U)"]), st.recursive(atoms, joined, max_leaves=6)
).map("".join)
subjects = st.text("abcksKSA\u212a\u017fé.{}]-\n", max_size=8)


@few
@given(st.lists(regexes, min_size=1, max_size=8), st.lists(subjects, min_size=1, max_size=8))
def test_as_one_by_one(chosen: list[str], values: list[str]) -> None:
    known = [("rlike", regex) for regex in chosen if not reduce_pattern("rlike", regex).error]
    array = pa.array(values, pa.large_string())
    assert together(array, known) == alone(array, known)


@few
@given(st.lists(regexes, min_size=1, max_size=8), st.lists(odd, min_size=1, max_size=8))
def test_what_is_not_utf8(chosen: list[str], values: list[bytes]) -> None:
    known = [("rlike", regex) for regex in chosen if not reduce_pattern("rlike", regex).error]
    for arrow, type in ((pa.large_string(), STRING), (pa.large_binary(), BINARY)):
        array = strings(values, arrow)
        assert together(array, known, type) == alone(array, known)


MANY = [("rlike", f"[{a}{b}][^{c}]{{2}}{d}?[{b}{c}]$") for a in "abc" for b in "abc" for c in "abc" for d in "abcd"]
SOME = ["".join(text) for text in zip("abcabcbacba" * 40, "aabbccab" * 55, "abcd" * 110, "cab" * 146, "bca" * 146)]


def test_pieces_of_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex_index, "PIECE", 50)
    array = pa.array(SOME, pa.large_string())
    known = [("rlike", f"{a}b.*{b}") for a in "abc" for b in "abc"] + [
        ("rlike", "(?i)B.?(AB|CA)"),
        ("rlike", "ab|ba|ca"),
    ]
    assert together(array, known) == alone(array, known)


def test_many_without_a_literal_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    array = pa.array(SOME[:40], pa.large_string())
    with caplog.at_level(logging.WARNING, "colmatch"):
        assert together(array, MANY) == alone(array, MANY)
        few = PatternIndex([BasePatterns(MANY[:10], range(10), STRING, "s")])
        assert few.matches(array)
    (record,) = caplog.records
    assert "108 regular expressions over ''" in record.getMessage() and "colmatch[regex]" in record.getMessage()
