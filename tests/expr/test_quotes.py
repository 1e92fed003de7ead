"""Double quotes around texts and around names."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.sql.quotes import Quotes
from colmatch.subscriptions.intake import FEWEST_TEXTS

SCHEMA = {"name": "string", "kind": "string", "a": "int64", "user": "struct<age:int64>", "first name": "string"}
EVENTS = pa.Table.from_pylist(
    [
        {"name": "Ada", "kind": "k", "a": 5, "user": {"age": 7}, "first name": "x"},
        {"name": "kind", "kind": "name", "a": 0, "user": {"age": 1}, "first name": "y"},
    ],
    cm.Schema(SCHEMA).arrow,
)
NAMES = cm.Options(double_quotes="names")


def filled(expression: str) -> dict[str, str]:
    """Returns the expression among so many that kernels read them all."""
    return {"it": expression} | {str(number): f"a = {number}" for number in range(FEWEST_TEXTS)}


AMBIGUOUS = [
    "\"name\" = 'Ada'", '"a" > "b"', 'name = "kind"', "\"name\" LIKE 'x'", "\"name\" IN ('x', 'y')", '"name" IS NULL',
    '"user"."age" > 3', '"a" > 3', '"name"', 'NOT "name"', "upper(\"name\") = 'X'", "startswith(\"name\", 'A')", "'x' = \"name\"",
    'name IN ("kind", "x")', "array_contains(\"name\", 'x')", "a = 1 AND \"NAME\" <> 'Ada'", '"user.age" = 1',
]  # fmt: skip
NO_COLUMN = [
    "\"nope\" = 'x'", "\"nope\" LIKE 'x'", "length(\"nope\") > 3", "\"nope\" IN ('x')", '"nope"', "coalesce(\"nope\", 'x') = 'y'",
    "\"nope\" = \"other\"", "\"n\" BETWEEN 'a' AND 'b'", '"nope" IS NULL',
]  # fmt: skip


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_a_text_that_is_the_name_of_a_column_is_an_error(text: str) -> None:
    place = next(i for i in range(len(text)) if text[i] == '"') + 1
    for given in ({"it": text}, filled(text)):
        with pytest.raises(cm.ExpressionError, match="write `.+` for the column, '.+' for the text") as caught:
            cm.Matcher.build(given, SCHEMA)
        assert caught.value.column == place


@pytest.mark.parametrize("text", NO_COLUMN)
def test_a_text_in_the_place_of_a_column_is_an_error(text: str) -> None:
    for given in ({"it": text}, filled(text)):
        with pytest.raises(cm.ExpressionError, match=r'in double quotes stands where a column.*double_quotes="names"'):
            cm.Matcher.build(given, SCHEMA)


def test_texts_in_double_quotes_stay_texts() -> None:
    texts = [
        'name = "Ada"', 'name IN ("Ada", "Bob")', 'name LIKE "A%"', 'concat("-", name) = "-Ada"', "name = \"a 'name' b\"",
    ]  # fmt: skip
    rules = {text: text for text in texts}
    for given in (rules, rules | filled("FALSE")):
        found = cm.Matcher.build(given, SCHEMA).match_lists(EVENTS)[0].as_py()
        assert [text for text in texts if text in found] == texts[:4]


def test_errors_come_whatever_was_read_before() -> None:
    """A shape, or a phrase, is known from a text that is no name."""
    good = {str(number): f'kind = "{number}" OR name = "x{number}"' for number in range(2 * FEWEST_TEXTS)}
    matcher = cm.Matcher.build(good, SCHEMA)
    for some in ({"bad": 'kind = "name" OR name = "x"'}, {"bad": 'kind = "1" OR name = "Kind"'} | good):
        with pytest.raises(cm.ExpressionError, match="for the column"):
            cm.Matcher.build(good | some, SCHEMA)
    with pytest.raises(cm.ExpressionError, match="for the column"):
        matcher.insert({"bad": 'kind = "name" OR name = "x"'})


AS_NAMES = {
    "\"name\" = 'Ada'": "10", '"a" > 3': "10", '"kind" = "name"': "00", "\"first name\" = 'x'": "10", '"user"."age" = 7': "10",
    "\"name\" IN ('kind', 'x')": "01", "name = 'say \"name\"'": "00", "\"name\" LIKE '%d%' AND `a` = 0": "01",
    "name = 'it''s' OR \"a\" = 5": "10", "/* \"kind\" */ \"a\" = 5": "10", "\"a\" = 5 -- it's \"kind\"": "10",
    "name RLIKE '\\\\w' AND \"a\" = 5": "10", "name <> r'\\' AND \"a\" = 0": "01", "upper(\"name\") = 'ADA'": "10", "\"A\" = 5": "10",
}  # fmt: skip


@pytest.mark.parametrize("is_many", [False, True])
def test_double_quotes_around_names(is_many: bool) -> None:
    rules = {text: text for text in AS_NAMES}
    matcher = cm.Matcher.build(rules | filled("FALSE") if is_many else rules, SCHEMA, options=NAMES)
    found = [set(ids) for ids in matcher.match_lists(EVENTS).to_pylist()]
    assert {text: "".join(str(int(text in ids)) for ids in found) for text in AS_NAMES} == AS_NAMES


def test_double_quotes_within_texts_stay() -> None:
    """Also where no name follows, or one comes before."""
    said = 'say "b"'
    texts = [
        f"name = '{said}'", f"\"a\" = 5 AND name = '{said}'", f"name = '{said}' AND \"a\" = 5", f"name IN ('x', '{said}')",
        "\"name\" LIKE '%\"b\"%'", f"name = '{said}' -- \"a\"", f"`name` = '{said}' OR \"kind\" = '\"'",
    ]  # fmt: skip
    events = pa.Table.from_pylist([{"name": said, "a": 5}, {"name": "say `b`", "a": 5}], cm.Schema(SCHEMA).arrow)
    for given in ({text: text for text in texts}, {text: text for text in texts} | filled("FALSE")):
        found = cm.Matcher.build(given, SCHEMA, options=NAMES).match_lists(events).to_pylist()
        assert [[text for text in texts if text in ids] for ids in found] == [texts, []]
    rows = {"id": [1], "attribute": ["replace(name, '\"b\"', 'x')"], "op": ["="], "operands": [["say x"]]}
    table = cm.PredicateTable(pa.table(rows))
    assert cm.Matcher.build(table, SCHEMA, options=NAMES).match_lists(events).to_pylist() == [[1], []]


def test_fields_are_written_part_by_part() -> None:
    with pytest.raises(cm.ExpressionError, match="write `user`.`age` for the column"):
        cm.Matcher.build({1: '"user.age" > 3'}, SCHEMA)
    with pytest.raises(cm.ExpressionError, match="'user.age': it is a field, so write `user`.`age`"):
        cm.Matcher.build({1: '"user.age" > 3'}, SCHEMA, options=NAMES)


@pytest.mark.parametrize("text", ['a = ""', '"a""b" = \'x\'', "\"a`b\" = 'x'", '"nope" = 1', 'name = "Ada"'])
def test_what_is_no_name(text: str) -> None:
    for given in ({"it": text}, filled(text)):
        with pytest.raises(cm.ExpressionError, match="in double quotes is not empty|unknown attribute") as caught:
            cm.Matcher.build(given, SCHEMA, options=NAMES)
        assert caught.value.column == text.index('"') + 1


def test_columns_of_texts_are_written_as_single_texts_are() -> None:
    rng = Random(3)
    parts = [
        '"a"',
        "'x'",
        "'\"'",
        '"b c"',
        "`d`",
        '`"`',
        " ",
        "=",
        "'it''s'",
        '""',
        "\\'",
        "--",
        "/*",
        "*/",
        "\n",
        "r'\\'",
        "'",
        '"',
        "é",
    ]
    texts = ["".join(rng.choices(parts, k=rng.randint(0, 9))) for _ in range(3000)]
    quotes = Quotes(cm.Schema(SCHEMA), "names")
    column, left = quotes.of_column(pa.array(texts))
    for text, found, alone in zip(texts, column.to_pylist(), left.tolist(), strict=True):
        wanted = quotes.written(text)
        assert len(wanted) == len(text)
        assert found == wanted or (alone and found == text)
        assert alone or '"' not in wanted
        plain = re.sub(r"'[^']*'|`[^`]*`", "", text)
        assert alone or '"' not in plain or wanted != text


def test_the_option_is_kept_and_checked(tmp_path: Path) -> None:
    matcher = cm.Matcher.build({1: "\"name\" = 'Ada'"}, SCHEMA, options={"double_quotes": "names"})
    matcher.save(tmp_path / "m.cm")
    for again in (cm.Matcher.open(tmp_path / "m.cm"), pickle.loads(pickle.dumps(matcher))):
        again.insert({2: "\"kind\" = 'k'"})
        assert again.match_lists(EVENTS).to_pylist() == [[1, 2], []]
    with pytest.raises(cm.OptionError, match="'texts' or 'names' is needed"):
        cm.Options(double_quotes="columns")  # type: ignore[arg-type]
    with pytest.raises(cm.OptionError, match="was built with double_quotes='names'"):
        cm.Matcher.open(tmp_path / "m.cm", options={"double_quotes": "texts"})
