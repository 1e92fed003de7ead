"""Clauses as users of Spark, DuckDB and PostgreSQL write them: taken, or told what to write."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.sql.literals import ALLOWED

SCHEMA = pa.schema(
    {
        "a": pa.int64(),
        "price": pa.float64(),
        "name": pa.string(),
        "ts": pa.timestamp("us", "UTC"),
        "day": pa.date32(),
        "tags": pa.list_(pa.string()),
        "m": pa.map_(pa.string(), pa.int64()),
        "items": pa.list_(pa.struct({"sku": pa.string()})),
        "flag": pa.bool_(),
    }
)
EVENTS = pa.Table.from_pylist(
    [
        {
            "a": 5,
            "price": 2.5,
            "name": "ab",
            "ts": dt.datetime(2020, 5, 3, 7, tzinfo=dt.UTC),
            "day": dt.date(2020, 5, 3),
            "tags": ["x", None],
            "m": [("k", 5)],
            "flag": True,
        },
        {
            "a": 6,
            "price": None,
            "name": None,
            "day": dt.date(2021, 1, 1),
            "tags": [],
            "m": [("k", None)],
            "flag": False,
        },
        {"a": None, "price": 0.5, "name": "b", "tags": ["y"], "m": []},
    ],
    SCHEMA,
)
SAME = [
    ("1 = 1", "TRUE"),
    ("1 = 2", "FALSE"),
    ("1 = 1 AND a = 5", "a = 5"),
    ("1 = 0 AND a = 5", "FALSE"),
    ("1 = 0 OR a = 5", "a = 5"),
    ("1=1 and 'x' <> 'y' and (a = 6 or name = 'b')", "a = 6 OR name = 'b'"),
    ("NOT 1 = 1 OR a = 5", "a = 5"),
    ("1.0 >= 1 AND -1 < 1 AND 2 <=> 2 AND a = 5", "a = 5"),
    ("'b' <= 'a' OR a = 6", "a = 6"),
    ("isnull(name)", "name IS NULL"),
    ("ISNOTNULL(name) AND a = 5", "name IS NOT NULL AND a = 5"),
    ("NOT isnull(name) OR isnull(a)", "name IS NOT NULL OR a IS NULL"),
    ("isnull(lower(name)) AND isnotnull(CAST(a AS STRING))", "name IS NULL AND a IS NOT NULL"),
    ("CAST(nvl(a, 0) AS STRING) = '0' OR isnull(name)", "a IS NULL OR name IS NULL"),
    ("nvl(name, 'x') = 'x'", "coalesce(name, 'x') = 'x'"),
    ("ifnull(a, 7) > 5", "coalesce(a, 7) > 5"),
    ("extract(year FROM day) = 2020", "year(day) = 2020"),
    ("EXTRACT(MONTH FROM ts) = 5 AND a = 5", "month(ts) = 5 AND a = 5"),
    ("extract(dow FROM day) = 1", "dayofweek(day) = 1"),
    ("extract(dow FROM day) > 0", "dayofweek(day) > 0"),
    ("a = 5F", "a = 5D"),
    ("extract(doy FROM day) = 1", "dayofyear(day) = 1"),
    ("element_at(m, 'k') = 5", "m['k'] = 5"),
    ("element_at(m, 'k') IS NULL AND a > 0", "m['k'] IS NULL AND a > 0"),
    ("starts_with(name, 'a')", "startswith(name, 'a')"),
    ("NOT ends_with(name, 'ab')", "NOT endswith(name, 'ab')"),
    ("regexp_matches(name, '^a')", "name RLIKE '^a'"),
    ("array_size(tags) = 1", "size(tags) = 1"),
    ("list_contains(tags, 'x') OR array_has(tags, 'y')", "array_contains(tags, 'x') OR array_contains(tags, 'y')"),
]
REFUSED = [
    ("m['k'].x = 1", "an entry of a map has no parts", 7),
    ("name SIMILAR TO 'a%'", "'SIMILAR TO' .* write RLIKE", 6),
    ("name starts with 'x'", "'starts' .* write startswith", 6),
    ("name ends with 'x'", "'ends' .* write endswith", 6),
    ("price =< 3", "'=<' .* write <=", 7),
    ("price => 3", "'=>' .* write >=", 7),
    ("filter(tags, x -> x = 'y') = 1", "filter makes a list: write exists", 8),
    ("transform(tags, x -> x) = 1", "function 'transform' .* write exists", 1),
    ("EXISTS (SELECT 1)", "subqueries are not supported", 1),
    ("map_keys(m) = 1", "map_keys makes a list: write exists", 10),
    ("list_sum(nums) > 3", "as a column of the events", 1),
    ("array_join(tags, ',') = 'x'", "as a column of the events", 1),
    ("randstr(5) = 'x'", "as a column of the events", 1),
    ("ST_DWithin(a, a, 3)", "geo_within_radius", 1),
    ("ST_Contains(a, a)", "shapes are not read", 1),
    ("a IN (SELECT b FROM other WHERE b = 93)", "subqueries are not supported", 7),
    ("concat_ws(name, name, name) = 'x'", "concat_ws takes a literal string here, as in concat_ws", 11),
    ("if_null(a, 1) > 2", "write coalesce", 1),
    ("is_na(price)", "price IS NULL OR isnan", 1),
    ("name = 5", r"write a string, or CAST\(name AS DOUBLE\)", 8),
    ("price > 1,5", "write 1.5 for 1,5", 10),
    ("price > 1,500", "write 1500 for 1,500", 10),
    ("name:user.id = 1", r"write a string, or CAST\(get_json_object\(name, '\$.user.id'\) AS DOUBLE\)", 16),
    ("name:user b = 'x'", "'b' follows 'user': write AND, OR", 11),
    ("name:tags[*] = 'x'", "a literal key or place is needed", 10),
    ("name:user. = 'x'", "a name is needed behind '.'", 10),
    ("items.sku = 'x'", "column 'items' is a list", 1),
    ("extract(dow FROM day) IN (0, 6)", "write 1 for Sunday", 26),
    ("0 = date_part('dow', day)", "write 1 for Sunday", 1),
    ("extract(dow FROM day) = 0", "write 1 for Sunday", 25),
    ("extract(dow FROM day) = 0.0", "write 1 for Sunday", 25),
    ("(extract(dow FROM day)) < 00", "write 1 for Sunday", 27),
    ("extract(dow FROM day) BETWEEN 0 AND 2", "write 1 for Sunday", 31),
    ("a = 16777216F", "is a FLOAT beyond 16777215.* write 16777216.0D, or CAST\\(16777216.0 AS FLOAT\\)", 5),
    ("frobnicate(a) = 1", "function 'frobnicate' is not supported: compute it beforehand", 1),
    ("lenght(name) > 3", "did you mean 'length'", 1),
    ("uper(name) = 'X'", "did you mean 'upper'", 1),
    ("array_contain(tags, 'x')", "did you mean 'array_contains'", 1),
    ("1 = 'x'", "a number is compared with a string", 1),
    ("extract(century FROM day) = 3", "extract takes a part of a date", 1),
    ("extract(SECOND FROM ) = 3", "extract takes one timestamp", 1),
    ("extract(SECOND FROM ts, ts) = 3", "extract takes one timestamp", 1),
    ("`at time zone`(ts) = ts", "function 'at time zone' is not supported", 1),
    ("extract(day) = 3", "extract takes a part of a date", 1),
    ("extract(", "extract takes a part of a date", 1),
    ("element_at(m) = 1", "element_at has too few or too many arguments here: it is written element_at.list, any., as in", 1),
    ("element_at(m, a) = 1", "a literal key is needed", 13),
    ("element_at(a, 1) = 1", "'a' is int64: .* needs a map or list before it", 12),
    ("flag AND ~a", "'~' is not supported: it is written between a text and a pattern", 10),
    ("isnull(name", r"a '\)' is missing", 12),
    ("isnull(", "something is missing after", 7),
    ("a ≥ 5", "'≥' .* write >=", 3),
    ("a ≤ 5", "'≤' .* write <=", 3),
    ("a ≠ 5", "'≠' .* write <>", 3),
    ("a > 1,000", "',' .* separates arguments, .* write 1000 for 1,000", 6),
    ("a > 1_000", "'1_000' .* write 1000", 5),
    ("price > 1_000.5", "'1_000.5' .* write 1000.5", 9),
    ("a > 0x10", "write 16", 5),
    (f"a > 0x{'f' * 4000}", "a binary literal is written X'1F' ", 5),
    ("[a] > 5", r"'\[' .* write `a` for \[a\]", 1),
    ("a > {{x}}", "'{{' .* there are no parameters", 5),
    ("a > {x}", "'{' .* there are no parameters", 5),
    ("name = “x”", "'“' .* straight quotes", 8),
    ("name = ‘x’", "'‘' .* straight quotes", 8),
    ("name REGEXP_LIKE 'x'", "'REGEXP_LIKE' .* write RLIKE, as in name RLIKE", 6),
    ("a XOR flag", "XOR takes conditions, not bigint", 1),
    ("name XOR name", "XOR takes conditions, not string", 1),
    ("coalesce(flag, a XOR flag)", "XOR takes conditions, not bigint", 16),
    ("1 XOR a", "XOR takes conditions, not int", 7),
    ("CASE WHEN a > 5 AND flag XOR flag THEN 1 END = 1", "put parentheses around each", 26),
    ("a > 5 XOR flag AND flag", "put parentheses around each", 7),
    ("a > 5 || flag", r"concat needs a string, not int: cast it; between conditions, write OR for \|\|", 10),
    ("name IS EMPTY", "name = '' or size.tags. = 0 for IS EMPTY", 1),
    ("a IS 5", "IS is followed by NULL, .*: write = or <> for other values", 1),
    ("a IN 5", "IN takes a list in parentheses, as in a IN .5.", 1),
    ("startswith(name)", "startswith has .* is written startswith.string, literal string., as in startswith", 1),
    ("name.lower() = 'x'", "'name.lower' .* write lower.name. or", 1),
    ("name.startswith('x')", "'name.startswith' .* or startswith.name, ", 1),
    ("name = xx", "unknown attribute 'xx'", 8),
    ("name = xx AND a = 5", "unknown attribute 'xx'", 8),
    ("t.a > 5", "unknown attribute 't.a': did you mean 'a'", 1),
    ("price > infinity", r"write double\('inf'\)", 9),
    ("price > 5 my_col = 3", "'my_col' follows '5': write AND", 11),
    ("name = “two words”", "'“' .* straight quotes|'“two' .* straight quotes", 8),
]  # fmt: skip


@pytest.mark.parametrize(("clause", "same"), SAME)
def test_clauses_that_are_taken(clause: str, same: str) -> None:
    rules = {1: clause, 2: same, 3: f"({clause}) OR a = 99", 4: f"/* as a comment */ {clause}"}
    found = cm.Matcher.build(rules, SCHEMA).match_lists(EVENTS).to_pylist()
    assert all(some in ([], [1, 2, 3, 4]) for some in found)
    assert any(found) or same == "FALSE"


@pytest.mark.parametrize(("clause", "said", "column"), REFUSED)
def test_clauses_that_are_refused(clause: str, said: str, column: int) -> None:
    with pytest.raises(cm.ExpressionError, match=said) as refused:
        cm.Matcher.build({1: clause}, SCHEMA)
    assert refused.value.column == column
    assert ALLOWED not in str(refused.value)


def test_literals_that_are_compared_belong_to_their_text() -> None:
    """Texts that differ in such literals have one shape and several forms."""
    rules = {}
    for i, text in enumerate(["{} = {}", "{} = {} AND a = 5", "a = 6 OR {} = {}", "/* c */ {} = {}"]):
        for j, values in enumerate([(1, 1), (1, 2), (3, 3), (2, 1), (1, 1)]):
            rules[10 * i + j] = text.format(*values)
    found = cm.Matcher.build(rules, SCHEMA).match_lists(EVENTS).to_pylist()
    true = [0, 2, 4]
    assert found[0] == [*true, *[10 + i for i in true], *[20 + i for i in true], *[30 + i for i in true]]
    assert found[1] == [*true, *range(20, 25), *[30 + i for i in true]]
    matcher = cm.Matcher.build({}, SCHEMA)
    for id, text in rules.items():
        matcher.insert({id: text})
    assert matcher.match_lists(EVENTS).to_pylist() == found


@pytest.mark.parametrize("clause", ["'isnull'(name)", "`isnull`(name)", "r'isnull'(name)", "'element_at'(m, 'k') = 5"])
def test_texts_and_quoted_names_are_no_functions(clause: str) -> None:
    with pytest.raises(cm.ExpressionError):
        cm.Matcher.build({1: f"isnull(name) OR {clause}"}, SCHEMA)


def test_functions_by_other_names_are_rewritten_in_time_that_follows_the_text() -> None:
    """The places of parentheses are found once, not for each function."""
    many = " OR ".join([f"isnull(name) AND element_at(m, 'k{i}') = {i}" for i in range(3000)])
    nested = "isnull(" * 150 + "name" + ")" * 150
    matcher = cm.Matcher.build({1: many}, SCHEMA, options=cm.Options(max_depth=400))
    assert matcher.match_lists(EVENTS).to_pylist() == [[], [], []]
    with pytest.raises(cm.ExpressionError, match="nests deeper than 200 levels"):
        cm.Matcher.build({1: nested}, SCHEMA)


def test_words_of_other_dialects_may_be_names() -> None:
    schema = {
        "case": "int64",
        "end": "int64",
        "when": "int64",
        "isnull": "int64",
        "interval": "int64",
        "symmetric": "int64",
    }
    text = (
        "case > 1 AND end BETWEEN symmetric AND 5 AND isnull = 3 AND when IN (1, 2) AND interval > 0 OR x::string ~ 'a'"
    )
    event = pa.table({"case": [2], "end": [3], "when": [1], "isnull": [3], "interval": [1], "symmetric": [2], "x": [1]})
    assert cm.Matcher.build({1: text}, {**schema, "x": "int64"}).count(event).tolist() == [1]
