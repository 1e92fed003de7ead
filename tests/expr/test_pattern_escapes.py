"""Backslashes that Spark drops from a text, in regular expressions."""

from __future__ import annotations

import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.subscriptions.intake import FEWEST_TEXTS

SCHEMA = {"name": "string", "a": "int64"}
EVENTS = pa.table({"name": ["bet12", "a.b", "a+", "A", "x\ny"], "a": [-1, -2, -3, -4, -5]})
SHAPES = ["name RLIKE {}", "name NOT RLIKE {}", "regexp_like(name, {})", "regexp_matches(name, {})", "name ~ {}", "name REGEXP {}",
          "if(name RLIKE {}, 1, 2) = 1", "a = 1 OR NOT name RLIKE {}"]  # fmt: skip
WRONG = {  # a literal: what to write
    r"'bet\d+'": r"write r'bet\d+' or 'bet\\d+' for",
    r"'\bfoo'": r"\b is a backspace in a text, as in Spark: write r'\bfoo' or '\\bfoo' for",
    r"'a\.b'": r"\. is '.' in a text, as in Spark: write r'a\.b' or 'a\\.b' for", r'"\w"': r'write r"\w" or "\\w" for',
    r"'\\\d'": r"write r'\\d' or '\\\\d' for", r"'\\s\S'": r"write r'\s\S' or '\\s\\S' for", r"'it\'s\s'": r"write 'it\'s\\s' for",
    r"'it''s\s'": r"write 'it''s\\s' for", r"'\1'": r"\1 is '1'", r"'\u00'": r"\u is 'u'", r"'a\Z'": r"\Z is a control character",
    r"'a\n\d'": r"write 'a\n\\d' for",
}  # fmt: skip
RIGHT = {  # a literal: the rows that it matches
    r"'bet\\d+'": [0], r"r'bet\d+'": [0], r"'a\\.b'": [1], r"r'a\+'": [2], r"'\u0041'": [3], r"'\101'": [3], r"'x\ny'": [4], "'[0-9]'": [0],
    r"'x\\ny'": [4],
}  # fmt: skip


def among_many(text: str) -> dict[str, str]:
    return {"it": text} | {str(number): f"name RLIKE '^{number}' OR a = {number}" for number in range(FEWEST_TEXTS)}


@pytest.mark.parametrize("literal", WRONG)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_backslash_that_is_dropped_is_an_error(shape: str, literal: str) -> None:
    with pytest.raises(cm.ExpressionError) as caught:
        cm.Matcher.build({"it": shape.format(literal)}, SCHEMA)
    assert WRONG[literal] in caught.value.message
    assert caught.value.column == shape.index("{") + 1


@pytest.mark.parametrize("literal", WRONG)
def test_so_it_is_among_texts_of_the_same_shape(literal: str) -> None:
    text = f"name RLIKE {literal} OR a = 5"
    with pytest.raises(cm.ExpressionError) as caught:
        cm.Matcher.build(among_many(text), SCHEMA)
    assert WRONG[literal] in caught.value.message
    matcher = cm.Matcher.build(among_many("FALSE"), SCHEMA)
    for _ in range(2):
        with pytest.raises(cm.ExpressionError, match="for the regular expression"):
            matcher.insert({"new": text})


@pytest.mark.parametrize("behind", ["", " -- x", " OR a = 5L", " OR name LIKE 'a!%' ESCAPE '!'"])
def test_so_it_is_behind_right_texts_of_the_same_shape(behind: str) -> None:
    matcher = cm.Matcher.build({}, SCHEMA)
    for number, literal in enumerate([r"r'\d'", "'d'", "'e'"]):
        matcher.insert({str(number): f"name RLIKE {literal}{behind}"})
    for _ in range(2):
        with pytest.raises(cm.ExpressionError, match="for the regular expression"):
            matcher.insert({"new": rf"name RLIKE '\d'{behind}"})


@pytest.mark.parametrize("literal", RIGHT)
@pytest.mark.parametrize("is_many", [False, True])
def test_other_backslashes_mean_what_they_say(literal: str, is_many: bool) -> None:
    text = f"name RLIKE {literal}"
    matcher = cm.Matcher.build(among_many(text) if is_many else {"it": text}, SCHEMA)
    found = matcher.match(EVENTS).to_pylist()
    assert [row["event"] for row in found if row["subscription"] == "it"] == RIGHT[literal]


def test_a_text_that_is_no_pattern_is_as_in_spark() -> None:
    rules = {1: r"name = 'bet12\d'", 2: r"name LIKE 'b\et%'", 3: r"name IN ('\A')", 4: r"contains(name, '\+')"}
    assert cm.Matcher.build(rules, SCHEMA).match_lists(EVENTS).to_pylist() == [[2], [], [4], [3], []]


def test_a_built_pattern_is_taken_as_it_is() -> None:
    matcher = cm.Matcher.build({1: cm.col("name").rlike(r"bet\d+")}, SCHEMA)
    assert matcher.match_lists(EVENTS).to_pylist()[0] == [1]
