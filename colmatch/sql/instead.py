"""Advice for errors: replacements for words and functions that the language does not have."""

from __future__ import annotations

import difflib
import re

from colmatch.errors import show_value
from colmatch.expr.computed import FUNCTIONS as VALUES
from colmatch.given.special import SPECIAL

SUBQUERY = (
    "subqueries are not supported: list the values, as in a IN (1, 2), or make their result a column of the events"
)
_QUOTES = "“”„‘’‚"  # of word processors
_COLUMN = "compute it beforehand, as a column of the events"
_CLOCK = "an expression has no clock: compare with a literal, or give events the time as a column"
_MONTHS = "months differ in length: compare with the date itself, or compute it beforehand, as a column of the events"
_LAMBDA = "a list has no conditions on its elements: write array_contains, arrays_overlap or contains_all"
_ANY = "write array_contains(tags, 'x')"
_SOME = "write array_contains(tags, 'x') for 'x' = ANY(tags); other comparisons with elements are not computed"
_JSON = "texts are not read as JSON: read it beforehand, into a struct or map, and write doc.k or doc['k']"
_AGGREGATE = "an expression sees one event: aggregate beforehand, into a column of the events"
_WINDOW = "an expression sees one event: number the rows beforehand, in a column of the events"
_GEOMETRY = "shapes are not read: write geo_within_radius(...) for a circle, or compute it beforehand, as a column of the events"
_FORMAT = "compare parts of the date, as in year(day) = 2020 AND month(day) = 5"
_ROWS = "it makes rows: write array_contains(tags, 'x'), or name an element, as in tags[0]"
_FUNCTIONS = {
    "bround": "round(price) rounds halves away from 0",
    "trunc": "write date_trunc('month', at), or CAST(price AS BIGINT) of a number",
    "to_number": "write CAST(name AS DOUBLE)",
    "convert": "write CAST(name AS type)",
    "map_keys": "write map_contains_key(attrs, 'k')",
    "map_values": "name the entry, as in attrs['k'] = 'x'",
    "any": _SOME,
    "some": _SOME,
    "all": "write NOT array_contains(tags, 'x') for 'x' <> ALL(tags); other comparisons with all elements are not computed",
    "array_position": _ANY,
    "list_position": _ANY,
    "st_dwithin": "write geo_within_radius(latitude, longitude, 48.86, 2.35, 5), in kilometres",
    "similar": "write RLIKE",
    "glob": "write LIKE",
    "position": "write instr(name, 'x')",
    "split": "write split_part(name, ',', 1)",
    "regexp_full_match": "write RLIKE '^(...)$'",
    "to_date": "it reads a literal, as in to_date('2020-01-31'): cast a column to a date beforehand",
    "to_timestamp": "it reads a literal, as in to_timestamp('2020-01-31 12:00:00'): cast a column beforehand",
    "exists": "exists(tags, x -> x = 'y') is array_contains(tags, 'y'), and other conditions on elements are not taken",
    "date": "write CAST(ts AS DATE)",
    "list_has_any": "write arrays_overlap(tags, array('a', 'b'))",
    "list_has_all": "write contains_all(tags, 'a', 'b')",
    **dict.fromkeys(("array_max", "array_min", "list_max", "list_min", "sort_array", "array_sort"), _COLUMN),
    **dict.fromkeys(("pi", "rand", "random"), _COLUMN),
    "age": "write datediff(later, day), in days",
    "try_divide": "write a / b, which is NULL where b is 0 unless Options(ansi=True)",
    **dict.fromkeys(("isnil", "is_null"), "write a IS NULL"),
    "if_null": "write coalesce(a, 0)",
    "is_nan": "write isnan(price)",
    "is_na": "write price IS NULL OR isnan(price)",
    **dict.fromkeys(("log", "hash", "xxhash64", "soundex"), _COLUMN),
    **dict.fromkeys(("now", "current_timestamp", "localtimestamp", "getdate", "sysdate", "unix_timestamp"), _CLOCK),
    **dict.fromkeys(("current_date", "today", "curdate", "current_time"), _CLOCK),
    **dict.fromkeys(("months_between",), _MONTHS),
    **dict.fromkeys(("to_char", "date_format", "strftime", "format_datetime"), _FORMAT),
    **dict.fromkeys(("forall", "filter", "transform", "aggregate", "any_match", "list_filter"), _LAMBDA),
    **dict.fromkeys(("get_json_object", "json_extract", "json_extract_string", "from_json", "json_value"), _JSON),
    **dict.fromkeys(
        ("count", "sum", "avg", "min", "max", "median", "stddev", "first", "last", "any_value"), _AGGREGATE
    ),
    **dict.fromkeys(("row_number", "rank", "dense_rank", "lag", "lead", "ntile"), _WINDOW),
    **dict.fromkeys(("explode", "unnest"), _ROWS),
}
_WORDS = {
    "STARTS": "write startswith(name, 'x')",
    "BEGINS": "write startswith(name, 'x')",
    "ENDS": "write endswith(name, 'x')",
    "CONTAINS": "write contains(name, 'x')",
    "SIMILAR TO": "write RLIKE, with a regular expression",
    "~*": "write RLIKE '(?i)...'",
    "~": "it stands between a text and a pattern, as in name ~ '^a'",
    "GLOB": "write LIKE, with % and _",
    "MATCHES": "write RLIKE",
    "REGEXP_LIKE": "write RLIKE, as in name RLIKE '^a'",
    "XOR": "write (a > 5) <> (b > 2)",
    "=>": "write >=",
    "≥": "write >=",
    "≤": "write <=",
    "≠": "write <>",
    "[": "a name with spaces stands in backquotes: write `a` for [a]",
    "{": "there are no parameters: write the value itself",
    "{{": "there are no parameters: write the value itself",
    "->": _LAMBDA,
    "->>": _JSON,
    "#>": _JSON,
    "&&": "write AND; of lists, arrays_overlap",
    "@": "@> is written contains_all(tags, 'a', 'b')",
    "<<": "write shiftleft(a, 1) for a << 1",
    ">>": "write shiftright(a, 1) for a >> 1",
    "//": "write a DIV b",
    "**": "write pow(a, 2)",
    "::": "it stands between a value and a type, as in age::bigint",
    ":": "there are no parameters: write the value itself",
    "?": "there are no parameters: write the value itself",
    "$": "there are no parameters: write the value itself",
    "WHERE": "write the condition alone, without WHERE",
    "ORDER": "write the condition alone, without ORDER BY",
    "ORDER BY": "write the condition alone, without ORDER BY",
    "GROUP BY": "write the condition alone, without GROUP BY",
    "HAVING": "write the condition alone, without HAVING",
    "LIMIT": "write the condition alone, without LIMIT; match_topk returns the best",
    "OVER": _WINDOW,
    "THEN": "it belongs to CASE WHEN ... THEN ... END",
    "WHEN": "it belongs to CASE WHEN ... THEN ... END",
    "ELSE": "it belongs to CASE WHEN ... THEN ... END",
    "END": "it belongs to CASE WHEN ... THEN ... END",
    "CASE": "a CASE is written CASE WHEN a > 5 THEN 'x' ELSE 'y' END",
}


def advise_function(name: str, names: frozenset[str]) -> str:
    """Says that there is no function of a name, and suggests a replacement.

    names : functions that are conditions
    """
    advice = _FUNCTIONS.get(name.lower())
    subject, _, method = name.rpartition(".")
    if subject and method.lower() in {*names, *VALUES}:
        advice = f"write {method}({subject}) or {method}({subject}, ...)"
    if advice is None:
        near = _find_misspelt(name.lower(), [*names, *VALUES, *SPECIAL])
        other = _GEOMETRY if name.lower().startswith("st_") else _COLUMN
        advice = f"did you mean {' or '.join(map(repr, near))}?" if near else other
    return f"function {show_value(name)} is not supported: {advice}"


def _find_misspelt(word: str, names: list[str]) -> list[str]:
    """Returns names that a word probably misspells.

    list_sum does not misspell list_has, nor st_contains list_contains.
    """
    alike = difflib.get_close_matches(word, names, n=4, cutoff=0.75)

    def is_error(name: str) -> bool:
        near = name[0] == word[0] and difflib.SequenceMatcher(None, word, name).ratio() >= 0.85
        return near or sorted(name) == sorted(word)

    return list(filter(is_error, alike))[:2]


def advise_column(name: str) -> str | None:
    """Returns the error for a word of SQL, or a number, that was taken for a column.

    The result is None for other names.
    """
    if name[0] in _QUOTES:
        return f"{show_value(name[0])} is not expected here: texts stand in straight quotes, as in 'x'"
    if re.fullmatch(r"[0-9][0-9_]*(?:\.[0-9_]+)?", name):
        return f"{show_value(name)} is not expected here: write {name.replace('_', '')}"
    if name.lower() in ("infinity", "inf", "nan"):
        return f"{show_value(name)} is not supported: write double('{name[:3].lower()}')"
    advice = _FUNCTIONS.get(name.lower())
    return f"{show_value(name)} is not supported: {advice}" if advice == _CLOCK else None


def advise_word(word: str) -> str | None:
    """Returns the replacement for a word or sign, or None."""
    if word[:1] in _QUOTES:
        return "texts stand in straight quotes, as in 'x'"
    return _WORDS.get(word.upper())
