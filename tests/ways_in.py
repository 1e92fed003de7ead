"""The expressions of strategies.py by the other ways in: made with ``cm.col``, and as rows of
predicate tables.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from random import Random
from typing import Any

import pyarrow as pa
from oracle import PATTERNS, Expr

import colmatch as cm

METHODS = {"is null": "is_null", "is not null": "is_not_null", "<=>": "eq_null_safe"}
SIGNS = {
    "=": operator.eq,
    "<>": operator.ne,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def to_builder(e: Expr, two_valued: Any) -> Any:
    """The expression made with ``cm.col``.

    ``two_valued``: a condition that is never Unknown, to make constants of.
    """
    op, *args = e

    def build(x: Expr) -> Any:
        return to_builder(x, two_valued)

    if op == "lit":
        return args[1]
    if op == "weight":
        return to_builder(args[1], two_valued).weight(args[0])
    if op == "col":
        return cm.col(*args)
    if op == "entry":
        return build(args[0])[args[1]]
    if op.startswith("size"):
        return build(args[0]).size()
    if op in ("and", "or"):
        return reduce(operator.and_ if op == "and" else operator.or_, [condition(x, two_valued) for x in args])
    if op == "at_least":
        return cm.at_least(args[0], *(condition(x, two_valued) for x in args[1:]))
    if op == "not":
        return ~condition(args[0], two_valued)
    if op.startswith("not "):
        return ~build((op[4:], *args))
    if op in ("is null", "is not null") and args[0][0] in ("col", "entry", "size", "size of map"):
        return getattr(build(args[0]), METHODS[op])()
    if op.startswith("is "):
        word = op.split()[-1].replace("null", "unknown")
        found = getattr(condition(args[0], two_valued), f"is_{word}")()
        return ~found if "not" in op else found
    if op in SIGNS:
        return SIGNS[op](build(args[0]), build(args[1]))
    if op == "<=>" and args[0][0] == "lit":
        return build((op, *args[::-1]))
    if op in PATTERNS and args[1][2] is None:
        return build(args[0]) == None  # noqa: E711  # Unknown, as a NULL pattern makes it
    several = {"in": "isin", "arrays_overlap": "arrays_overlap"}
    if op in several:
        return getattr(build(args[0]), several[op])([x[2] for x in args[1]])
    if op == "contains_all":
        return build(args[0]).contains_all(*(x[2] for x in args[1]))
    return getattr(build(args[0]), METHODS.get(op, op))(*map(build, args[1:]))


def condition(e: Expr, two_valued: Any) -> Any:
    if e[0] == "lit":
        return two_valued | True if e[2] else two_valued & False
    return to_builder(e, two_valued)


ARROW_KINDS: dict[str, pa.DataType] = {
    "int": pa.int64(),
    "decimal": pa.decimal128(38, 8),
    "double": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "binary": pa.binary(),
    "none": pa.null(),
}
TableRow = tuple[int, str, str, list[Any], str, float | None]


def table_rows(e: Expr) -> list[TableRow] | None:
    """The expression as rows (conjunction, attribute, op, operands, kind of the operands, weight);
    None unless it is an OR of ANDs of plain predicates whose literals are of one kind.
    """
    rows: list[TableRow] = []
    for number, conjunction in enumerate(e[1:] if e[0] == "or" else [e]):
        for predicate in conjunction[1:] if conjunction[0] == "and" else [conjunction]:
            weight, plain = predicate[1:] if predicate[0] == "weight" else (None, predicate)
            row = _table_row(plain)
            if row is None:
                return None
            rows.append((number, *row, weight))
    return rows


def _table_row(e: Expr) -> tuple[str, str, list[Any], str] | None:
    negated = e[0] == "not"
    op, *args = e[1] if negated else e
    if op in ("is null", "is not null") and args[0][0] in ("col", "entry") and not negated:
        return attribute_name(args[0]), op, [], "none"
    if op in ("col", "entry"):
        return attribute_name((op, *args)), "not =" if negated else "=", [True], "bool"
    plain = (
        op in ("=", "<>", "!=", "<", "<=", ">", ">=", "array_contains", "arrays_overlap")
        or op.removeprefix("not ") in TABLE_WORDS
    )
    if not plain or args[0][0] == "lit" or (negated and op.startswith("not ")):
        return None
    literals = args[1] if op in ("in", "not in", "arrays_overlap") else args[1:]
    kinds = {x[1].removesuffix("_ntz") for x in literals}
    kind = kinds.pop()
    if kinds or kind == "null" or (kind == "timestamp" and any(x[2].tzinfo for x in literals)):
        return None
    if kind in ("int", "decimal") and any(abs(x[2]) >= 2**63 for x in literals):
        return None
    return attribute_name(args[0]), f"not {op}" if negated else op, [x[2] for x in literals], kind


TABLE_WORDS = ("between", "in", "like", "ilike", "rlike", "startswith", "endswith", "contains")


def attribute_name(term: Expr) -> str:
    op, *args = term
    if op == "entry":
        key = args[1] if isinstance(args[1], int) else "'" + args[1].replace("\\", "\\\\").replace("'", "\\'") + "'"
        return f"{attribute_name(args[0])}[{key}]"
    return ".".join(args) if op == "col" else f"size({attribute_name(args[0])})"


def predicate_tables(
    rng: Random, rows: dict[Any, list[TableRow]], id_type: pa.DataType, priority: dict[Any, float] | None = None
) -> list[pa.Table]:
    """Arrow tables for ``cm.PredicateTable``: one for each kind of operands, in random order and
    encoding.
    """
    flat = [(id, *row) for id, some in rows.items() for row in some]
    rng.shuffle(flat)
    tables = []
    for kind in sorted({row[5] for row in flat}):
        some = [row for row in flat if row[5] == kind]
        ids, conjunctions, names, ops, operands, _, weights = zip(*some, strict=True)
        text: Callable[[pa.Array], pa.Array] = (
            (lambda x: x.dictionary_encode()) if rng.random() < 0.5 else (lambda x: x)
        )
        table = {
            "id": pa.array(ids, id_type),
            "attribute": text(pa.array(names)),
            "op": text(pa.array(ops)),
            "operands": pa.array([values or None for values in operands], pa.list_(ARROW_KINDS[kind])),
            "conjunction": pa.array(conjunctions, pa.int32()),
        }
        if any(weight is not None for weight in weights):
            table["weight"] = pa.array(weights, pa.float64())
        if priority is not None:
            table["priority"] = pa.array([priority[id] for id in ids], pa.float64())
        tables.append(pa.table(table))
    rng.shuffle(tables)
    return tables
