"""Any text is either an expression or an ``ExpressionError`` that says where: nothing else is
raised, nothing crashes, nothing hangs.
"""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from oracle import to_sql
from strategies import COLUMNS, STRINGS, a_schema, an_expression, terms

import colmatch as cm

SCHEMA = cm.Schema(pa.schema(list(COLUMNS.items())))
_WORDS = """
    AND OR NOT IN IS NULL TRUE FALSE UNKNOWN BETWEEN LIKE ILIKE RLIKE REGEXP ESCAPE ANY ALL DISTINCT FROM CASE WHEN THEN ELSE END CAST AS
    DOUBLE DATE TIMESTAMP TIMESTAMP_NTZ INTERVAL SELECT WHERE EXISTS ARRAY MAP STRUCT size array_contains arrays_overlap contains_all
    startswith contains array flag i8 i64 f64 dec s day at_us utc bin tags nums user user.age attrs attrs['colour'] by_num[1] `select`
    ( ) [ ] { } , ; . : :: + - * / % = == <> != < <= > >= <=> ! && || | & ^ ~ -> => @ # $ ? \\ 0 1 -1 1.5 .5 1. 1e3 1e 1.5e+ 1e400 1.5D 1BD
    5L 300Y 0x1F 9223372036854775808 'a' 'it''s' "q" X'1F' X'1' r'\\d' '' ' " ` -- /* */ NaN Infinity é 😀 '2013-01-31' '\
"""
WORDS = [*_WORDS.split(), "\n", "\t", "\0", "\ufeff", "\u00a0", "\u2028", "\ud800", "DATE '2013-02-30'", "`a name`"]


def build(text: str) -> cm.Matcher | None:
    """The matcher, or None where the text was refused as it should be."""
    try:
        return cm.Matcher.build({1: text}, SCHEMA, options=cm.Options(max_text_bytes=1 << 30))
    except cm.ExpressionError as refused:
        error = refused
    assert error.id == 1
    assert error.message
    assert len(str(error)) < 2000, "an error is a sentence, not the whole input"
    assert error.line is not None
    assert error.column is not None
    assert 1 <= error.line <= text.count("\n") + 1
    assert 1 <= error.column <= max(map(len, text.split("\n"))) + 2
    return None


@given(st.text())
@example("")
@example(" \n ")
@example("\0")
@example("\ud800")
@example("'\udfff' = s")
@example("`\ud800` = 1")
@example("'")
@example("s = 'abc")
@example('s = "abc')
@example("`s = 1")
@example("/*")
@example("/* never closed TRUE")
@example("-- only a comment")
@example("TRUE -- and a comment")
@example("TRUE /* and a comment */")
@example("s = 'a\\")
@example("s LIKE 'a\\\\'")
@example("s RLIKE '('")
@example("s RLIKE 'a(?=b)'")
@example("s RLIKE '" + "(" * 5000 + ")" * 5000 + "'")
@example("s RLIKE 'a{1000}{1000}'")
@example("day = DATE '2013-02-30'")
@example("utc = TIMESTAMP '2013-01-31 25:00:00'")
@example("utc = TIMESTAMP '2013-01-31 10:00:00 Nowhere/City'")
@example("bin = X'GG'")
@example("i8 = 1; DROP TABLE x")
@example("SELECT 1")
@example("i8 = (SELECT 1)")
@example("i8 = 1 = 1")
@example("i8 + 1 = 2")
@example("i8 = i16")
@example("1 = 1")
@example("'x'")
@example("5")
@example("s")
@example("tags")
@example("user")
@example("user IS NULL")
@example("user.nothing = 1")
@example("attrs['a']['b'] = 1")
@example("attrs[1] = 1")
@example("by_num['a'] = 1")
@example("tags[0] = 'a'")
@example("array_contains(s, 'a')")
@example("array_contains(tags, NULL)")
@example("arrays_overlap(tags, array())")
@example("arrays_overlap(tags, nums)")
@example("contains_all(tags)")
@example("size(s) = 1")
@example("i8 IN ()")
@example("i8 IN (SELECT 1)")
@example("i8 IN (NULL)")
@example("i8 BETWEEN 1")
@example("NOT")
@example("?")
@example(":a = 1")
@example("${x} = 1")
@example("{{ x }}")
@example("{% if x %}")
@example("@x = 1")
@example("FETCH NEXT ;")
@example("FETCH FETCH ;")
@example("SHOW = 's' ;")
@example("by_num[9999999999999999999] = 1")
def test_any_text(text: str) -> None:
    build(text)


@given(st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join))
def test_words_in_any_order(text: str) -> None:
    build(text)


@pytest.mark.parametrize("seed", range(20))
def test_valid_expressions_with_faults(seed: int) -> None:
    """Characters and words removed, doubled, swapped or put in."""
    rng = Random(seed)
    for _ in range(40):
        text = to_sql(an_expression(rng, terms(a_schema(rng)), depth=2))
        for _ in range(rng.choice([1, 1, 2, 5])):
            i, j = sorted(rng.randrange(len(text) + 1) for _ in range(2))
            j = min(j, i + 8)
            other = rng.choice([*WORDS, *STRINGS, chr(rng.randrange(0x110000))])
            spaced = f"{text[:i]} {other} {text[i:]}"
            text = rng.choice([text[:i] + text[j:], text[:j] + text[i:], text[:i] + other + text[j:], spaced, text[:j]])
        build(text)


REPEATED = [
    "(",
    ")",
    "[",
    "NOT ",
    "- ",
    "-",
    "!",
    "(((",
    "'",
    "`",
    "/*",
    "i8 = 1 AND (",
    "i8 IN (",
    "CASE WHEN ",
    "\0",
    "size(",
    "x",
]


@pytest.mark.parametrize("text", REPEATED)
def test_a_hundred_thousand_times(text: str) -> None:
    assert build(text * 100_000) is None


# What a search that begins again behind each quote, or two stretches of blanks side by side, would
# take hours for.
SEARCHES = {
    "quotes escaped in double quotes": "s IN (" + '"it\\\'s", ' * 100_000 + "'a')",
    "no quote closes": "'\\'" * 100_000,
    "no quote closes behind a name": "s = x" + "'\\" * 100_000,
    "doubled quotes": "s = '" + "''" * 100_001,
    "blanks in a timestamp": "utc > '2013-01-31" + " " * 100_000 + "x'",
    "blanks in a date": "day > '" + " " * 100_000 + "2013'",
    "digits in a cast": "f64 = CAST('" + "1" * 100_000 + "x' AS DOUBLE)",
    "digits of an exponent": "f64 = " + "1" * 100_000 + "e",
    "repetitions": "s RLIKE '" + "x{0,1000}" * 100_000 + "'",
}


@pytest.mark.parametrize("text", SEARCHES.values(), ids=SEARCHES)
def test_no_search_begins_again_and_again(text: str) -> None:
    build(text)


def test_a_hundred_thousand_strings_with_escapes() -> None:
    event = pa.table({"s": ["it's 7"]})
    for one in ("'it\\'s %d'", '"it\\\'s %d"', "'it''s %d'"):
        matcher = build("s IN (" + ", ".join(one % i for i in range(100_000)) + ")")
        assert matcher is not None
        assert matcher.count(event).tolist() == [1]


def test_deep_nesting() -> None:
    assert build("(" * 150 + "i8 = 1" + ")" * 150) is not None
    assert build("NOT " * 150 + "i8 = 1") is not None
    for text in (
        "(" * 100_000 + "i8 = 1" + ")" * 100_000,
        "NOT " * 100_000 + "i8 = 1",
        "NOT (" * 100_000 + "i8 = 1" + ")" * 100_000,
    ):
        assert build(text) is None
    e = cm.col("i8") == 1
    for _ in range(100_000):
        e = ~(e & (cm.col("i16") == 1))
    with pytest.raises(cm.ExpressionError, match="nest"):
        cm.Matcher.build({1: e}, SCHEMA)


def test_long_expressions() -> None:
    """A megabyte is not too much, whatever joins it."""
    event = pa.table(
        {"i64": pa.array([7], pa.int64()), "i32": pa.array([1], pa.int32()), "s": pa.array([None], pa.string())}
    )
    for text, truth in (
        (" AND ".join(f"i64 <> {i}" for i in range(100, 70_000)), True),
        (" OR ".join(f"i64 = {i}" for i in range(5000)), True),
        (" OR ".join(f"(i64 = {i} AND i32 = 2)" for i in range(5000)), False),
        (" AND ".join(f"(i64 = {i} OR i32 = 1)" for i in range(5000)), True),
        ("i64 IN (" + ", ".join(map(str, range(100_000))) + ")", True),
        ("i64 NOT IN (" + ", ".join(map(str, range(100_000))) + ")", False),
        ("s IN (" + ", ".join(f"'{i}'" for i in range(100_000)) + ") OR i32 = 1", True),
        ("i64 IN (" + ", ".join(f"{i}.5, {i}, NULL" for i in range(30_000)) + ")", True),
        ("s = '" + "x" * 1_000_000 + "' OR i32 = 1", True),
        ("i32 = 1" + " " * 1_000_000, True),
        ("i32 = 1 /*" + "x" * 1_000_000 + "*/", True),
    ):
        matcher = build(text)
        if matcher is not None:  # refused clearly is good too
            assert matcher.count(event).tolist() == [truth], text[:60]


def test_errors_are_collected_among_thousands() -> None:
    texts = {i: f"i8 = {i}" if i % 100 else f"i8 = = {i}" for i in range(5000)}
    matcher = cm.Matcher.build(texts, SCHEMA, errors="collect", max_rejected=1.0)
    assert len(matcher) == 4950
    assert [entry.id for entry in matcher.rejected] == list(range(0, 5000, 100))


# A literal of the wrong type is an error at build, never a silent cast.
WRONG_TYPES = [
    *(
        "i8 = 'a'",
        "i8 = '5'",
        "i8 = TRUE",
        "i8 = DATE '2013-01-31'",
        "i8 = X'1F'",
        "f64 = '1.5'",
        "dec = '1.5'",
        "dec = TRUE",
    ),
    *(
        "s = 5",
        "s = 1.5",
        "s = TRUE",
        "s < X'1F'",
        "s = DATE '2013-01-31'",
        "s IN ('a', 5)",
        "flag > 0.5",
    ),
    *(
        "day = 5",
        "day = 'today'",
        "day = TIMESTAMP '2013-01-31 00:00:00'",
        "utc = 5",
        "utc = 'noon'",
        "bin = 'a'",
        "bin = 5",
    ),
    *(
        "i8 LIKE 'a'",
        "bin LIKE 'a'",
        "startswith(i8, 'a')",
        "i8 RLIKE 'a'",
        "s LIKE 5",
        "contains(s, 5)",
        "array_contains(tags, 5)",
    ),
    *(
        "array_contains(nums, 'a')",
        "arrays_overlap(tags, array(1))",
        "contains_all(nums, 'a')",
        "size(tags) = 'a'",
        "tags = 'a'",
    ),
    *(
        "attrs['colour'] = 'red'",
        "words['colour'] = 5",
        "user.age = 'x'",
        "user = 5",
        "i8",
        "s AND flag",
        "NOT s",
        "attrs = 1",
    ),
    *(
        "i8 IS TRUE",
        "array_contains(i8, 1)",
        "array_contains(attrs, 1)",
        "size(i8) = 1",
        "i8 BETWEEN 1 AND 'a'",
        "i8 IN (1, 'a')",
    ),
    *("s <=> 5", "s <=> TRUE", "f64 IN ('a', 'b')"),
]


@pytest.mark.parametrize("text", WRONG_TYPES)
def test_wrong_types_are_refused(text: str) -> None:
    assert build(text) is None
