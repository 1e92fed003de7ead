"""What an expression means, in the plainest Python: no index, no kernel, no import of colmatch.

An expression is a tuple, its operator first; a row is a dict of Python values, structs as dicts,
maps as lists of pairs. For example ``age BETWEEN 22 AND 36 AND NOT (city = 'Nice')`` is::

    ("and", ("between", ("col", "age"), lit(22), lit(36)),
            ("not", ("=", ("col", "city"), lit("Nice"))))

Terms        ("lit", kind, value)  ("col", name, *fields)  ("entry", col, key)
             ("size" | "size of map", col)
Predicates   ("=", a, b) and the other COMPARISONS
             ("between", a, lo, hi)   ("in", a, (lit, ...))   ("like" | "ilike" | "rlike", a, lit)
             ("startswith" | "endswith" | "contains", a, lit)
             ("array_contains", a, lit)   ("arrays_overlap" | "contains_all", a, (lit, ...))
             ("is null", a) and the other IS; ("not in", ...) and so on, where SQL has the word NOT
             inside the predicate
Connectives  ("and", *xs)  ("or", *xs)  ("not", x)  ("at_least", k, *xs)
With weight  ("weight", w, predicate): for ``score``, and the same as the predicate for all else
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable
from decimal import Decimal
from itertools import combinations, product
from typing import Any

Expr = tuple[Any, ...]
Row = dict[str, Any]

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda x, y: x == y,
    "<>": lambda x, y: x != y,
    "!=": lambda x, y: x != y,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
}
IS: dict[str, Callable[[Any], bool]] = {
    "is null": lambda x: x is None,
    "is unknown": lambda x: x is None,
    "is true": lambda x: x is True,
    "is false": lambda x: x is False,
}
IS |= {name.replace("is", "is not"): (lambda x, test=test: not test(x)) for name, test in IS.items()}  # type: ignore[misc]
KINDS = {
    bool: "bool",
    int: "int",
    Decimal: "decimal",
    float: "double",
    str: "string",
    bytes: "binary",
    dt.date: "date",
    type(None): "null",
}
KINDS |= {dt.datetime: "timestamp"}
PATTERNS: dict[str, Callable[[str, str], bool]] = {
    "startswith": lambda x, y: x.startswith(y),
    "endswith": lambda x, y: x.endswith(y),
    "contains": lambda x, y: y in x,
    "like": lambda x, y: like(x, y),
    "ilike": lambda x, y: like(x.lower(), y.lower()),
    "rlike": lambda x, y: re.search(y, x, re.ASCII) is not None,
}


def lit(value: Any, kind: str | None = None) -> Expr:
    return ("lit", kind or KINDS[type(value)], value)


def matches(e: Expr, row: Row) -> bool:
    """Whether a WHERE clause keeps the row."""
    return value(e, row) is True


def meets(e: Expr, row: Row, among: dict[str, list[Any]]) -> bool:
    """Whether a WHERE clause keeps the row for some choice of values of the columns ``among``."""
    return any(matches(e, row | dict(zip(among, choice))) for choice in product(*among.values()))


def value(e: Expr, row: Row) -> Any:
    """Value of a term, truth of a predicate: True, False or None for Unknown."""
    op, *args = e
    if op == "lit":
        return args[1]
    if op == "weight":
        return value(args[1], row)
    if op == "col":
        found: Any = row
        for name in args:
            found = None if found is None else found.get(name)
        return found
    if op == "entry":
        entries = value(args[0], row)
        return None if entries is None else dict(entries).get(args[1])
    if op in ("and", "or"):
        truths = {value(x, row) for x in args}
        decides = op == "or"
        return decides if decides in truths else None if None in truths else not decides
    if op == "at_least":
        truths = [value(x, row) for x in args[1:]]
        sure, possible = truths.count(True), truths.count(True) + truths.count(None)
        return True if sure >= args[0] else False if possible < args[0] else None
    if op == "not" or op.startswith("not "):
        truth = value(args[0] if op == "not" else (op[4:], *args), row)
        return None if truth is None else not truth
    if op in IS:
        return IS[op](value(args[0], row))
    if op == "between":
        return value(("and", (">=", args[0], args[1]), ("<=", args[0], args[2])), row)
    if op == "in":
        return value(("or", *(("=", args[0], x) for x in as_doubles(args[1]))), row)
    if op == "contains_all":
        return value(("and", *(("array_contains", args[0], x) for x in args[1])), row)

    x = value(args[0], row)
    if op in ("size", "size of map"):
        return None if x is None else len(x)
    if op == "array_contains":
        return (
            None
            if x is None
            else value(("or", ("=", lit(0), lit(1)), *(("=", lit(y, "element"), args[1]) for y in x)), row)
        )
    if op == "arrays_overlap":
        return (
            None
            if x is None
            else value(
                ("or", ("=", lit(0), lit(1)), *(("=", lit(y, "element"), z) for y in x for z in as_doubles(args[1]))),
                row,
            )
        )
    y = value(args[1], row)
    if op == "<=>" and (x is None or y is None):
        return x is y
    if x is None or y is None:
        return None
    if op in PATTERNS:
        return PATTERNS[op](x, y)
    if isinstance(y, float) and isinstance(x, int | Decimal):
        x = float(x)
    if isinstance(x, float) and isinstance(y, int | Decimal):
        y = float(y)
    x, y = (fit(x, y), y) if args[0][0] == "lit" else (x, fit(y, x))
    return COMPARISONS["=" if op == "<=>" else op](rank(x), rank(y))


def score(e: Expr, row: Row, given: dict[Expr, float], how: str, truth: bool = True) -> float:
    """How relevant an expression is to a row in which its value is ``truth``.

    given : what the event gives to terms; that of a column counts for what is asked of it. how :
    "dot", "sum" or "max"
    """
    op, *args = e
    if op == "weight":
        weight, predicate = args
        return weight if how == "sum" else weight * given_to(predicate, given)
    if op == "not":
        return score(args[0], row, given, how, not truth)
    if op == "at_least":
        k = args[0] if truth else len(args) - args[0]  # of the parts that are as the whole is, so many suffice
        each = (score(x, row, given, how, truth) for x in args[1:] if value(x, row) is truth)
        best = sorted(each, reverse=True)[:k]
        return best[0] if how == "max" else sum(best)
    if op not in ("and", "or"):
        return 0.0
    scores = [score(x, row, given, how, truth) for x in args if value(x, row) is truth]
    return sum(scores) if (op == "and") is truth and how != "max" else max(scores)


def best_score(e: Expr, row: Row, among: dict[str, list[Any]], given: dict[Expr, float], how: str) -> float | None:
    """The best score for any choice of values of ``among``; None where none matches."""
    rows = [row | dict(zip(among, choice)) for choice in product(*among.values())]
    return max((score(e, one, given, how) for one in rows if matches(e, one)), default=None)


def given_to(predicate: Expr, given: dict[Expr, float]) -> float:
    """What an event gives to the term that a predicate is about, 1 where nothing is said of it."""
    op, *args = predicate
    if op in ("not", "weight"):
        return given_to(args[-1], given)
    if op in ("col", "entry"):
        term = predicate
    else:
        term = next(x for x in args if x[0] != "lit")
    if term in given:
        return given[term]
    return given.get(term if term[0] == "col" else term[1], 1.0)


def as_doubles(literals: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Literals of one list: all are doubles if one is."""
    some = any(x[1] == "double" for x in literals)
    return tuple(lit(float(x[2])) if some and x[1] in ("int", "decimal") else x for x in literals)


def fit(literal: Any, beside: Any) -> Any:
    """A literal as it is compared with a value: the nearest double beside a double."""
    if isinstance(beside, float):
        return float(literal)
    if isinstance(literal, str) and isinstance(beside, dt.date):
        return dt.datetime.fromisoformat(literal)
    return literal


def rank(x: Any) -> Any:
    """A value that Python orders as SQL orders ``x``: NaN is the largest number, a date is its
    midnight, local times are read in UTC.
    """
    if isinstance(x, dt.date):
        at = x if isinstance(x, dt.datetime) else dt.datetime(x.year, x.month, x.day)
        since = at.replace(tzinfo=at.tzinfo or dt.UTC) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
        return (since // dt.timedelta(microseconds=1)) * 1000 + getattr(x, "nanosecond", 0)
    if isinstance(x, int | float | Decimal):
        return (1, 0) if x != x else (0, x)
    return x


def like(text: str, pattern: str) -> bool:
    parts, chars = [], iter(pattern)
    for char in chars:
        parts.append({"%": ".*", "_": "."}.get(char) or re.escape(next(chars) if char == "\\" else char))
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None


# ---- the same expression as text ----


def to_sql(e: Expr, dialect: str = "colmatch") -> str:
    """As text of ``dialect``: "colmatch", "spark" or "duckdb", with no parentheses but those
    that are needed.
    """
    op, *args = e

    def sql(x: Expr) -> str:
        return to_sql(x, dialect)

    def several(xs: tuple[Expr, ...]) -> str:
        return ", ".join(map(sql, xs))

    duck = dialect == "duckdb"
    if op == "lit":
        return literal_sql(args[0], args[1], duck)
    if op == "weight":
        return sql(args[1])
    if op == "col":
        return ".".join(
            f'"{name}"' if duck else name if name.isidentifier() and name != "select" else f"`{name}`" for name in args
        )
    if op == "entry":
        return f"{sql(args[0])}[{sql(lit(args[1]))}]"
    if op in ("and", "or"):
        loose = ("or",) if op == "and" else ()
        return f" {op.upper()} ".join(f"({sql(x)})" if x[0] in loose or len(args) == 1 else sql(x) for x in args)
    if op == "at_least" and dialect == "colmatch":
        return f"at_least({args[0]}, {several(tuple(args[1:]))})"
    if op == "at_least":
        return f"({sql(('or', *(('and', *some) for some in combinations(args[1:], args[0]))))})"
    if op == "not":
        return f"NOT ({sql(args[0])})" if args[0][0] in ("and", "or") else f"NOT {sql(args[0])}"
    if op in IS:
        return f"{sql(args[0])} {op.upper()}" if args[0][0] in ("col", "entry") else f"({sql(args[0])}) {op.upper()}"
    if op.endswith("between"):
        if duck:  # whose BETWEEN gives all three one type
            low, high = sql((">=", args[0], args[1])), sql(("<=", args[0], args[2]))
            return f"{op.removesuffix('between')}({low} AND {high})"
        return f"{sql(args[0])} {op.upper()} {sql(args[1])} AND {sql(args[2])}"
    if op in ("in", "not in"):
        return f"{sql(args[0])} {op.upper()} ({several(args[1])})"
    if op == "contains_all" and dialect != "colmatch":
        return "(" + sql(("and", *(("array_contains", args[0], x) for x in args[1]))) + ")"
    if duck and op in DUCKDB:
        return DUCKDB[op].format(sql(args[0]), *(several(x) if op == "arrays_overlap" else sql(x) for x in args[1:]))
    if op in ("like", "not like", "ilike", "not ilike", "rlike", "not rlike"):
        return f"{sql(args[0])} {op.upper()} {sql(args[1])}" + (" ESCAPE '\\'" if duck else "")
    if op == "contains_all":
        return f"contains_all({sql(args[0])}, {several(args[1])})"
    if op == "arrays_overlap":
        return f"arrays_overlap({sql(args[0])}, array({several(args[1])}))"
    if op in COMPARISONS or op == "<=>":
        return f"{sql(args[0])} {op} {sql(args[1])}"
    return f"{op.removesuffix(' of map')}({', '.join(map(sql, args))})"


# DuckDB's list functions ignore NULL elements where Spark's become Unknown, so that has to be said.
NULL_INSIDE = "len({0}) <> list_count({0})"
DUCKDB = {
    "<=>": "{0} IS NOT DISTINCT FROM {1}",
    "size": "len({0})",
    "size of map": "cardinality({0})",
    "startswith": "starts_with({0}, {1})",
    "endswith": "ends_with({0}, {1})",
    "rlike": "regexp_matches({0}, {1})",
    "not rlike": "NOT regexp_matches({0}, {1})",
    "array_contains": f"(list_contains({{0}}, {{1}}) OR CASE WHEN {NULL_INSIDE} THEN NULL ELSE FALSE END)",
    "arrays_overlap": f"(list_has_any({{0}}, [{{1}}]) OR CASE WHEN {NULL_INSIDE} THEN NULL ELSE FALSE END)",
}


def literal_sql(kind: str, x: Any, duck: bool = False) -> str:
    if x is None:
        return "NULL"
    if kind == "decimal":
        return f"{x:f}" if "." in f"{x:f}" else f"{x:f}.0"
    if kind == "double":
        if math.isfinite(x):
            return f"{x!r}" if "e" in f"{x!r}" else f"{x!r}e0"
        return f"CAST('{'NaN' if x != x else 'Infinity' if x > 0 else '-Infinity'}' AS DOUBLE)"
    if kind == "string":
        quoted = x.replace("'", "''")
        if duck:
            return "(" + f"'{quoted}'".replace("\0", "' || chr(0) || '") + ")" if "\0" in x else f"'{quoted}'"
        return "'" + quoted.replace("\\", "\\\\").replace("\0", "\\0") + "'"
    if kind == "binary":
        return "'" + "".join(f"\\x{byte:02X}" for byte in x) + "'::BLOB" if duck else f"X'{x.hex().upper()}'"
    if kind == "bool":
        return str(x).upper()
    if kind == "date":
        return f"DATE '{x}'"
    if kind in ("timestamp", "timestamp_ntz"):
        if duck and x.tzinfo:  # cannot stand beside nanoseconds there
            x = x.astimezone(dt.UTC).replace(tzinfo=None)
        return f"{'TIMESTAMP' if duck else kind.upper()} '{x.isoformat(sep=' ')}'"
    return str(x)
