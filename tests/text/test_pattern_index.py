"""Many text patterns at once against each of them alone."""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from pathlib import Path

import inside
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from one_by_one import pattern_truth
from reading import BINARY, STRING, entries, few, literals

import colmatch as cm
from colmatch.events.patterns import patterns_of
from colmatch.events.reader import Reader
from colmatch.given.schema import Attribute, Attributes, Role, Type
from colmatch.kernels.text import automaton, search, verify
from colmatch.kernels.text import rows as expand
from colmatch.text import literal_index
from colmatch.text.filters import Filter, filters_of
from colmatch.text.like import LiteralPosition
from colmatch.text.pattern_index import BasePatterns, Pattern, PatternIndex
from colmatch.text.reduce import reduce_pattern

LETTERS = "abAé\0%_€"
operands = st.text(LETTERS, max_size=6) | st.text("ab%", max_size=8) | st.text("aé_%", max_size=5)
patterns = st.tuples(st.sampled_from(["contains", "endswith", "like", "ilike"]), operands)
texts = st.text("abAÉé\0€😀", max_size=12)
# Lead and trail bytes without each other, overlong forms, a surrogate, what UTF-8 never has, and
# whole characters.
whole = ["a", "b", "A", "\0", "é", "€", "😀"]
broken = [
    b"\x80",
    b"\xc3",
    b"\xe2\x82",
    b"\xff",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xf5",
    b"\xe0\x80\x80",
]
odd = st.lists(st.sampled_from([*map(str.encode, whole), *broken]), max_size=8).map(b"".join)


def strings(values: Sequence[bytes], arrow: pa.DataType) -> pa.Array:
    """Whether or not they are UTF-8."""
    offset = np.cumsum([0, *map(len, values)], dtype=np.int64)
    return pa.Array.from_buffers(arrow, len(values), [None, pa.py_buffer(offset), pa.py_buffer(b"".join(values))])


def alone(values: pa.Array, chosen: Sequence[Pattern]) -> set[tuple[int, int]]:
    found = set()
    for p, (op, operand) in enumerate(chosen):
        truth = pattern_truth(op, operand)(values).to_pylist()
        found |= {(v, p) for v, true in enumerate(truth) if true}
    return found


def together(values: pa.Array, chosen: Sequence[Pattern], type: Type = STRING) -> set[tuple[int, int]]:
    value, pattern = PatternIndex([BasePatterns(chosen, range(len(chosen)), type)]).matches(values)
    pairs = list(zip(value.tolist(), pattern.tolist()))
    assert len(set(pairs)) == len(pairs), "a pair is there twice"
    return set(pairs)


def legal(chosen: Sequence[Pattern]) -> list[Pattern]:
    return [pattern for pattern in chosen if not reduce_pattern(*pattern).error]


@few
@given(st.lists(texts, max_size=12), st.lists(patterns, max_size=12))
@example(
    ["", "a", "\0"],
    [("contains", ""), ("endswith", ""), ("like", ""), ("like", "%"), ("ilike", "%%"), ("like", "_"), ("like", "%_%")],
)
@example(
    ["aaaa", "aa"],
    [
        ("contains", "a"),
        ("contains", "aa"),
        ("contains", "aaa"),
        ("contains", "aa"),
        ("endswith", "aa"),
        ("endswith", "a"),
    ],
)
@example(
    ["ab", "aXb", "ba", "abab"],
    [("like", "%a%b%"), ("like", "a%b"), ("like", "%a_b%"), ("like", "a%b%a%b"), ("like", "%ab"), ("like", "ab%")],
)
@example(["é", "e", "€a"], [("like", "_"), ("like", "__"), ("like", "_a"), ("like", r"\%%"), ("ilike", "É")])
def test_as_one_by_one(values: list[str], chosen: list[Pattern]) -> None:
    chosen = legal(chosen)
    array = pa.array(values, pa.large_string())
    assert together(array, chosen) == alone(array, chosen)


@few
@given(
    st.lists(st.text("ab", min_size=60, max_size=300), max_size=6),
    st.lists(st.tuples(st.sampled_from(["contains", "like"]), st.text("ab", max_size=9)), max_size=8),
    st.sampled_from([1 << 20, 1]),
)
def test_long_strings(values: list[str], chosen: list[Pattern], cells: int) -> None:
    """Literals stand over the ends of the parts that are read in turns."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(literal_index, "DENSE_CELLS", cells)
        chosen = [(op, f"%{operand[:4]}%{operand[4:]}%" if op == "like" else operand) for op, operand in chosen]
        array = pa.array(values, pa.large_string())
        assert together(array, chosen) == alone(array, chosen)


@pytest.mark.parametrize("size", [64, 101, 402])
def test_a_literal_anywhere_in_a_long_string(size: int) -> None:
    """Each is in a string once, in each of the parts that are read in turns and over their ends."""
    words = [f"x{a}y{b}" for a in "abcd" for b in "abcd"]  # more than are looked for one by one
    values = ["-" * place + words[place % 16] + "-" * (size - 4 - place) for place in range(size - 3)]
    array = pa.array(values, pa.large_string())
    found = together(array, [("contains", word) for word in words])
    assert found == {(place, place % 16) for place in range(size - 3)}


def test_a_few_literals_of_which_the_first_is_longer_than_the_string() -> None:
    array = pa.array(["-" * 90 + "ab"], pa.large_string())
    assert together(array, [("contains", "-" * 200), ("contains", "ab")]) == {(0, 1)}


@pytest.mark.parametrize("bytes_used", [254, 255, 256])
def test_all_bytes_are_used(bytes_used: int) -> None:
    values = [bytes(range(256)), bytes(range(255, -1, -1)), b"\xff\xff", b"\0"]
    chosen = [Filter(LiteralPosition.INSIDE, (bytes([i, i + 1]),)) for i in range(0, bytes_used - 1, 2)]
    if bytes_used == 255:
        chosen.append(Filter(LiteralPosition.INSIDE, (bytes([254]),)))
    texts, pairs = literal_index.texts_of(strings(values, pa.large_binary())), literal_index.Pairs()
    literal_index.LiteralIndex(chosen, range(len(chosen)), False).find(texts, pairs)
    value, pattern = pairs.arrays()
    found = {(v, p) for v, value in enumerate(values) for p, one in enumerate(chosen) if one.literals[0] in value}
    assert set(zip(value.tolist(), pattern.tolist())) == found


ANY_CASE = "@[zZaAbBkKsS\u212a\u017fÉéİıß_-"


@few
@given(st.lists(st.text(ANY_CASE, max_size=8), max_size=8), st.lists(st.text(ANY_CASE + "%_", max_size=4), max_size=8))
@example(["K", "k", "\u212a", "É"], ["k", "%\u212a", "é", "_"])
def test_any_case(values: list[str], operands: list[str]) -> None:
    """Strings of ASCII are lowered by a kernel, others by Arrow."""
    chosen = legal([("ilike", operand) for operand in operands])
    array = pa.array(values, pa.large_string())
    assert together(array, chosen) == alone(array, chosen)


@few
@given(st.lists(odd, max_size=12), st.lists(patterns.filter(lambda pattern: pattern[0] != "ilike"), max_size=12))
@example(
    [b"a\xffab", b"a\xffb", b"\xffab", b"ab\xff"],
    [("like", "%a%b%"), ("like", "a%b"), ("like", "%a%b"), ("like", "a%b%"), ("like", "%a_b")],
)
@example(
    [
        b"a" + text + b"b"
        for text in (
            b"\xf5\x80\x80\x80",
            b"\xf4\xbf\x80\x80",
            b"\xc1\x80",
            b"\xc2\x80",
            b"\xe0\x80\x80",
            b"\xf0\x80\x80\x80",
            b"\xf0\x80\x80",
        )
    ],
    [("like", "a_b"), ("like", "a%_%b"), ("like", "a%b%b"), ("like", "%a__b")],
)
@example(
    [b"a\xc3b", b"a\xed\xa0\x80b", b"a\xc0\x80b", b"\x80"],
    [("like", "a_b"), ("like", "a%_%b"), ("like", "%_%"), ("contains", "b")],
)
def test_what_is_not_utf8(values: list[bytes], chosen: list[Pattern]) -> None:
    """Strings that no one has checked, and binary ones, where ``_`` is a byte."""
    chosen = legal(chosen)
    for arrow, type in ((pa.large_string(), STRING), (pa.large_binary(), BINARY)):
        array = strings(values, arrow)
        assert together(array, chosen, type) == alone(array, chosen)


@pytest.mark.parametrize("cells", [1, 200])
def test_many(monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    """Literals over three letters, each part of many others; states with and without a row; more
    candidates than there is room for.
    """
    monkeypatch.setattr(literal_index, "DENSE_CELLS", cells)
    monkeypatch.setattr(literal_index, "CANDIDATES", 10)
    rng = np.random.default_rng(1)

    def some(n: int, most: int) -> list[str]:
        return ["".join(rng.choice(list("abc"), rng.integers(1, most + 1))) for _ in range(n)]

    array = pa.array(some(60, 30), pa.large_string())
    chosen = [("contains", text) for text in some(300, 7)] + [("endswith", text) for text in some(100, 5)]
    chosen += [("like", f"%{a}%{b}%") for a, b in zip(some(200, 4), some(200, 4))]
    chosen += [("like", f"{a}_{b}%") for a, b in zip(some(100, 2), some(100, 2))]
    chosen += [("ilike", f"%{a.upper()}%{b}") for a, b in zip(some(100, 3), some(100, 2))]
    found = together(array, chosen)
    assert found == alone(array, chosen)
    assert len(found) > 1000


def test_filters() -> None:
    """What an index looks for."""

    def look(pattern: str) -> tuple[LiteralPosition, bytes, bytes, int]:
        (filter,) = filters_of([("like", pattern)])
        return filter.place, *filter.literals, filter.also, len(filter.pieces)

    assert look("abc") == (LiteralPosition.WHOLE, b"abc", b"", 0)
    assert look("abc%") == (LiteralPosition.HEAD, b"abc", b"", 0)
    assert look("%abc") == (LiteralPosition.TAIL, b"abc", b"", 0)
    assert look("%abc%") == (LiteralPosition.INSIDE, b"abc", b"", 0)
    assert look(r"%a\%\_\\%") == (LiteralPosition.INSIDE, b"a%_\\", b"", 0)
    assert look("%ab%abcd%c") == (LiteralPosition.INSIDE, b"abcd", b"ab", 3)
    assert look("ab_cde_f") == (LiteralPosition.INSIDE, b"cde", b"ab", 1)
    assert look("abc%cde") == (LiteralPosition.HEAD, b"abc", b"cde", 2)
    assert look("a_%_bcd") == (LiteralPosition.TAIL, b"bcd", b"a", 2)
    assert look("_%_") == (LiteralPosition.HEAD, b"", b"", 2)
    assert look("%") == (LiteralPosition.HEAD, b"", b"", 0)
    assert look("") == (LiteralPosition.WHOLE, b"", b"", 0)
    assert [f.literals for f in filters_of([("like", f"%https://www.%{name}%") for name in ("nice", "lyon")])] == [
        (b"nice",),
        (b"lyon",),
    ]


def test_as_any_string_type() -> None:
    index = PatternIndex([BasePatterns([("contains", "b"), ("ilike", "B%")], [7, 3], STRING)])
    for array in (
        pa.array(["abc", "x", "b"]),
        pa.array(["zz", "abc", "x", "b"], pa.string_view()).slice(1),
        pa.array([b"abc", b"x", b"b"]),
    ):
        value, pattern = index.matches(array)
        assert sorted(zip(value.tolist(), pattern.tolist())) == [(0, 7), (2, 3), (2, 7)]


def test_made_once_for_all_readers_of_a_matcher(tmp_path: Path) -> None:
    texts = {
        i: f"s LIKE '%{a}%{b}%' OR t RLIKE '{b}+{a}c' OR contains(s, '{a}{b}')"
        for i, (a, b) in enumerate(["ab", "bc", "ca"])
    }
    matcher = cm.Matcher.build(texts, schema={"s": "string", "t": "string"})
    batch = pa.record_batch({"s": ["a-b", "cc", None, "ca"], "t": [None, "bbac", "", "cb"]})
    wanted = matcher.match(batch).to_pylist()
    assert sorted((pair["event"], pair["subscription"]) for pair in wanted) == [(0, 0), (1, 0), (3, 2)]
    attributes = inside.attributes(matcher)
    made = patterns_of(attributes)
    matcher.explain({"s": "a", "t": "b"}, 0)
    matcher.count(batch)
    assert patterns_of(attributes) is made
    matcher.save(tmp_path / "m.cm")
    assert cm.Matcher.open(tmp_path / "m.cm").match(batch).to_pylist() == wanted
    assert pickle.loads(pickle.dumps(matcher)).match(batch).to_pylist() == wanted


def test_candidates_have_both_literals() -> None:
    """The second literal of a LIKE pattern costs a look at a stamp, and spares most of the
    verifying.
    """
    array = pa.array(["ab--cde", "cde--ab", "ab", "cde", "--"], pa.large_string())
    index = literal_index.LiteralIndex(filters_of([("like", "%ab%cde%")]), [0])
    pairs = literal_index.Pairs()
    texts = literal_index.texts_of(array)
    search.find(texts.offset, texts.data, 0, 5, 0, 0, index.filters, pairs.room(10, 2))
    assert pairs.arrays()[0].tolist() == [0, 1]
    pairs.clear()
    assert index.find(texts, pairs) == 5
    assert pairs.arrays()[0].tolist() == [0]


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_one_signature_each() -> None:
    schema = {"s": "string", "x": "binary"}
    texts = {
        "a": "s LIKE '%a%b%' AND s ILIKE '%A_' AND s RLIKE '(?i)a.' AND s RLIKE 'a.'",
        "b": "endswith(s, 'b') OR s RLIKE '[ab]'",
    }
    matcher = cm.Matcher.build(texts, schema)
    for one in (matcher, pickle.loads(pickle.dumps(matcher))):
        for values in (["ab", "cab"], ["x"] * 10, [None], [], ["", "ab" * 50]):
            one.match(pa.record_batch({"s": pa.array(values, pa.string())}))
    PatternIndex([BasePatterns([], [], STRING)]).matches(pa.array(["a"]))
    for kernel in (
        automaton.share,
        automaton.fill_trie,
        automaton.fill_links,
        search.find,
        verify.verify,
        expand.order_by_value,
        expand.expand,
    ):
        assert len(kernel.signatures) == 1, kernel


def test_several_attributes() -> None:
    """Strings of one follow those of another in the same arrays; regular expressions with and
    without a literal, in any case, many.
    """
    operators = [
        ("contains", "b"),
        ("ilike", "%B_"),
        ("rlike", "bc|ca"),
        ("rlike", "(?i)AB"),
        ("rlike", "^[ab]$"),
        ("like", "a%c"),
    ]
    columns = {
        "s": ["abc", "B", None, "abc", "ca"],
        "t": ["b", "BCA", "aab", "", "c"],
        "u": ["ABC", "AbB", "abb", "abc", "a"],
    }
    attributes = [Attribute((name,), Role.VALUE, STRING, None, pattern) for name in columns for pattern in operators]
    found = entries(Reader(Attributes(attributes), literals([[]] * len(attributes))).read(pa.record_batch(columns)))
    for attribute, rows in zip(attributes, found):
        assert attribute.pattern is not None
        truth = pattern_truth(*attribute.pattern)(pa.array(columns[attribute.path[0]], pa.large_string())).to_pylist()
        assert rows == [(row, 1) for row, true in enumerate(truth) if true], attribute
