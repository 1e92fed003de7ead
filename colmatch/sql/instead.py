"""Advice for errors: replacements for words and functions that the language does not have."""

from __future__ import annotations

import difflib
import re

from colmatch.errors import show_value
from colmatch.expr.functions import NAMES

SUBQUERY = (
    "subqueries are not supported: list the values, as in a IN (1, 2), write array_contains(tags, 'x') for a list, or make their "
    "result a column of the events"
)
_QUOTES = "“”„‘’‚"  # of word processors
_PARAMETER = "there are no parameters of this form: write the value itself, or :name with parameters={'name': 5}"
_COLUMN = "compute it beforehand, as a column of the events"
_CLOCK = "write now(), or date_format(now(), 'HH:mm:ss') for the time of day"
_LAMBDA = "write exists(items, x -> x.price > 10), forall(...) or size(filter(...)) >= 2"
_QUANTIFIED = "it follows a comparison, as in a = ANY(array(1, 2)), or LIKE"
_JSON = "name a value in the text, as in get_json_object(doc, '$.a.b') = 'x', doc:a.b or doc->>'a'"
_AGGREGATE = "an expression sees one event: aggregate beforehand, into a column of the events"
_WINDOW = "an expression sees one event: number the rows beforehand, in a column of the events"
_GEOMETRY = "shapes are not read: write geo_within_radius(...) for a circle, or compute it beforehand, as a column of the events"
_FORMAT = "write date_format(at, 'yyyy-MM'), or compare parts of the date, as in year(day) = 2020"
_ROWS = "it makes rows: write array_contains(tags, 'x'), or name an element, as in tags[0]"
_FUNCTIONS = {
    "bround": "round(price) rounds halves away from 0",
    "to_number": "write CAST(name AS DOUBLE)",
    "convert": "write CAST(name AS type)",
    **dict.fromkeys(("any", "some", "all"), _QUANTIFIED),
    **dict.fromkeys(
        ("list_position", "list_indexof"), "write array_position(tags, 'x'), which is 0 where there is none"
    ),
    "st_dwithin": "write geo_within_radius(latitude, longitude, 48.86, 2.35, 5), in kilometres",
    "glob": "write LIKE",
    "split": "write split_part(name, ',', 1)",
    "regexp_full_match": "write name RLIKE '^(?s:...)$'",
    **dict.fromkeys(("list_extract", "array_extract"), "write element_at(tags, 1)"),
    "named_struct": "write user.tier = 'gold' AND user.age = 30 for user = named_struct('tier', 'gold', 'age', 30)",
    "struct_extract": "write user.tier for struct_extract(user, 'tier')",
    **dict.fromkeys(("isfinite", "is_finite"), "write abs(price) < double('inf')"),
    **dict.fromkeys(("isinf", "is_inf"), "write abs(price) = double('inf')"),
    "values": "write the members alone, as in a IN (1, 2)",
    **dict.fromkeys(("num_nonnulls", "num_nulls"), "write if(a IS NULL, 0, 1) + if(b IS NULL, 0, 1)"),
    "contains_substr": "write contains(lower(name), 'x')",
    "ieee_divide": "write try_divide(a, b)",
    **dict.fromkeys(("to_boolean", "try_to_boolean"), "write TRY_CAST(name AS BOOLEAN)"),
    **dict.fromkeys(
        ("try_to_number", "try_to_decimal", "try_to_double", "safe_to_number"), "write TRY_CAST(name AS DOUBLE)"
    ),
    **dict.fromkeys(
        ("parse_ip", "net.ip_from_string", "net.safe_ip_from_string", "inet"), "write cidr_contains('10.0.0.0/8', ip)"
    ),
    "booland": "write a AND b",
    "boolor": "write a OR b",
    "boolxor": "write a XOR b",
    "boolnot": "write NOT a",
    "collate": "write lower(name) = 'x'",
    **dict.fromkeys(("sort_array", "array_sort"), _COLUMN),
    **dict.fromkeys(("rand", "random"), _COLUMN),
    "age": "write datediff(later, day), in days, or months_between(later, day)",
    **dict.fromkeys(("isnil", "is_null"), "write a IS NULL"),
    "if_null": "write coalesce(a, 0)",
    "is_na": "write price IS NULL OR isnan(price)",
    **dict.fromkeys(("sysdate", "current_time", "localtime", "utc_timestamp", "systimestamp"), _CLOCK),
    **dict.fromkeys(("strftime", "format_datetime", "format_date", "format_timestamp"), _FORMAT),
    **dict.fromkeys(("transform", "aggregate", "reduce", "list_transform", "list_reduce"), _LAMBDA),
    **dict.fromkeys(("json_extract", "from_json", "json_query", "json_tuple", "jsonb_extract_path_text"), _JSON),
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
    "~": "it is written between a text and a pattern, as in name ~ '^a'",
    "GLOB": "write LIKE, with % and _",
    "MATCHES": "write RLIKE",
    "REGEXP_LIKE": "write RLIKE, as in name RLIKE '^a'",
    "XOR": "write a > 5 XOR b > 2",
    "=>": "write >=",
    "≥": "write >=",
    "≤": "write <=",
    "≠": "write <>",
    "[": "a name with spaces is written in backquotes: write `a` for [a]",
    "{": _PARAMETER,
    "{{": _PARAMETER,
    "->": _LAMBDA,
    "->>": _JSON,
    "#>": _JSON,
    "#>>": _JSON,
    "&&": "write AND; both sides are lists, as in tags && array('a', 'b')",
    "@": _PARAMETER,
    "#": "write ^ for the bits that differ",
    "<<=": "write cidr_contains('10.0.0.0/8', ip)",
    "//": "write a DIV b",
    "**": "write pow(a, 2)",
    "::": "it is written between a value and a type, as in age::bigint",
    ":": _PARAMETER,
    "?": _PARAMETER,
    "$": _PARAMETER,
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


def advise_function(name: str) -> str:
    """Says that there is no function of a name, and suggests a replacement."""
    advice, known = _FUNCTIONS.get(name.lower()), NAMES.get(name.lower())
    subject, _, method = name.rpartition(".")
    if subject and method.lower() in NAMES:
        advice = f"write {method}({subject}) or {method}({subject}, ...)"
    elif known is not None:
        advice = f"it is written {known.written}, as in {known.call}"
    if advice is None:
        near = _find_misspelt(name.lower(), list(NAMES))
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
        return f"{show_value(name[0])} is not expected here: texts are written in straight quotes, as in 'x'"
    if re.fullmatch(r"[0-9][0-9_]*(?:\.[0-9_]+)?", name):
        return f"{show_value(name)} is not expected here: write {name.replace('_', '')}"
    if name.lower() in ("infinity", "inf", "nan"):
        return f"{show_value(name)} is not supported: write double('{name[:3].lower()}')"
    advice = _FUNCTIONS.get(name.lower())
    return f"{show_value(name)} is not supported: {advice}" if advice == _CLOCK else None


def advise_word(word: str) -> str | None:
    """Returns the replacement for a word or sign, or None."""
    if word[:1] in _QUOTES:
        return "texts are written in straight quotes, as in 'x'"
    return _WORDS.get(word.upper())
