"""What to write in the place of what the language has not, for errors."""

from __future__ import annotations

import difflib

from colmatch.calls import SPECIAL
from colmatch.errors import shown
from colmatch.expr.computed import FUNCTIONS as VALUES

_COLUMN = "compute it beforehand, as a column of the events"
_CLOCK = "an expression has no clock: compare with a literal, or give events the time as a column"
_DATES = "compare with the date itself, or compute it beforehand, as a column of the events"
_PLACE = "write contains(name, 'x')"
_LAMBDA = "a list has no conditions on its elements: write array_contains, arrays_overlap or contains_all"
_ANY = "write array_contains(tags, 'x')"
_FUNCTIONS = {
    "if": "write it with AND, OR and NOT, as in (c AND x) OR (NOT c AND y)",
    "iff": "write it with AND, OR and NOT, as in (c AND x) OR (NOT c AND y)",
    "decode": "write it with AND, OR and NOT",
    "isnan": "write price = DOUBLE 'NaN'",
    "nanvl": "write it with OR and price = DOUBLE 'NaN'",
    "nullif": "nullif(a, 0) = 1 is a = 1 AND a <> 0",
    "nvl2": "nvl2(a, b, c) = 1 is (a IS NOT NULL AND b = 1) OR (a IS NULL AND c = 1)",
    "round": "write a range: round(x) = 5 is x >= 4.5 AND x < 5.5",
    "bround": "write a range",
    "trunc": "write a range",
    "floor": "write a range: floor(x) = 5 is x >= 5 AND x < 6",
    "ceil": "write a range: ceil(x) = 5 is x > 4 AND x <= 5",
    "ceiling": "write a range: ceiling(x) = 5 is x > 4 AND x <= 5",
    "greatest": "greatest(a, b) > 3 is a > 3 OR b > 3",
    "least": "least(a, b) < 3 is a < 3 OR b < 3",
    "left": "write startswith(name, 'ab'), or substring(name, 1, 2)",
    "right": "write endswith(name, 'ab')",
    "to_date": "write DATE '2020-01-31', or CAST(name AS DATE)",
    "to_timestamp": "write TIMESTAMP '2020-01-31 12:00:00', or CAST(name AS TIMESTAMP)",
    "try_cast": "write CAST, which gives NULL for what it cannot read unless Options(ansi=True)",
    "convert": "write CAST(name AS type)",
    "map_contains_key": "write attrs['k'] IS NOT NULL",
    "map_keys": "write attrs['k'] IS NOT NULL",
    "any": _ANY,
    "some": _ANY,
    "all": "write contains_all",
    "array_position": _ANY,
    "similar": "write RLIKE",
    "glob": "write LIKE",
    **dict.fromkeys(("power", "pow", "sqrt", "exp", "log", "sign", "hash", "md5", "sha1", "sha2", "soundex"), _COLUMN),
    **dict.fromkeys(("instr", "position", "locate", "charindex", "strpos"), _PLACE),
    **dict.fromkeys(("now", "current_timestamp", "localtimestamp", "getdate", "sysdate", "unix_timestamp"), _CLOCK),
    **dict.fromkeys(("current_date", "today", "curdate", "current_time"), _CLOCK),
    **dict.fromkeys(
        ("datediff", "date_diff", "date_add", "date_sub", "dateadd", "add_months", "months_between"), _DATES
    ),
    **dict.fromkeys(("exists", "forall", "filter", "transform", "aggregate", "any_match", "list_filter"), _LAMBDA),
}
_WORDS = {
    "STARTS": "write startswith(name, 'x')",
    "BEGINS": "write startswith(name, 'x')",
    "ENDS": "write endswith(name, 'x')",
    "CONTAINS": "write contains(name, 'x')",
    "SIMILAR TO": "write RLIKE, with a regular expression",
    "~": "write RLIKE",
    "GLOB": "write LIKE, with % and _",
    "MATCHES": "write RLIKE",
    "::": "write CAST(name AS type)",
    "=>": "write >=",
    "->": _LAMBDA,
    "&&": "write AND",
    "AMP": "write AND",
    **dict.fromkeys(("&", "|", "^", "<<", ">>"), f"bits have no operators: {_COLUMN}"),
}


def of_function(name: str, names: frozenset[str]) -> str:
    """Says that there is no function of a name, and what to write instead.

    names : of the functions that are conditions
    """
    known = _FUNCTIONS.get(name.lower())
    if known is None:
        near = difflib.get_close_matches(name.lower(), [*names, *VALUES, *SPECIAL], n=2, cutoff=0.75)
        known = f"did you mean {' or '.join(map(repr, near))}?" if near else _COLUMN
    return f"function {shown(name)} is not supported: {known}"


def of_word(word: str) -> str | None:
    """Returns what to write instead of a word or sign, None where that is not known."""
    return _WORDS.get(word.upper())
