"""Random schemas, rows, expressions and physical layouts.

Everything is written against the interface of ``random.Random``, so that the differential tests can draw thousands from a seed, and
hypothesis, through ``st.randoms(use_true_random=False)``, can choose, replay and shrink the same things.
"""

from __future__ import annotations

import datetime as dt
import math
import operator
import struct
from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from random import Random
from typing import Any

import pyarrow as pa
from oracle import PATTERNS, Expr, Row, lit

import colmatch as cm

UTC = dt.UTC

# One column of every type. The names are such that errors and quoting are exercised too.
COLUMNS: dict[str, pa.DataType] = {
    "flag": pa.bool_(),
    "i8": pa.int8(),
    "i16": pa.int16(),
    "i32": pa.int32(),
    "i64": pa.int64(),
    "u8": pa.uint8(),
    "u16": pa.uint16(),
    "u32": pa.uint32(),
    "u64": pa.uint64(),
    "f32": pa.float32(),
    "f64": pa.float64(),
    "dec": pa.decimal128(9, 2),
    "dec18": pa.decimal128(18, 6),
    "s": pa.string(),
    "select": pa.string(),
    "a name": pa.int32(),
    "day": pa.date32(),
    "day64": pa.date64(),
    "at_s": pa.timestamp("s"),
    "at_ms": pa.timestamp("ms"),
    "at_us": pa.timestamp("us"),
    "at_ns": pa.timestamp("ns"),
    "utc": pa.timestamp("us", "UTC"),
    "zoned": pa.timestamp("ms", "America/New_York"),
    "bin": pa.binary(),
    "pair": pa.binary(2),
    "tags": pa.list_(pa.string()),
    "nums": pa.list_(pa.int64()),
    "user": pa.struct(
        {"age": pa.int32(), "name": pa.string(), "vip": pa.bool_(), "home": pa.struct({"city": pa.string(), "lat": pa.float64()})}
    ),
    "attrs": pa.map_(pa.string(), pa.int64()),
    "words": pa.map_(pa.string(), pa.string()),
    "by_num": pa.map_(pa.int32(), pa.float64()),
}

STRINGS = [
    *("", "a", "A", "b", "ab", "abc", "abcd", "b ", "a%b", "a_b", "a\\b", "a\\%b", "it's", 'say "x"', "''", "é", "É", "ß", "ñandú"),
    *("日本", "😀", "a😀b", "\uff5e", "z", "zz", "a\nb", "\n\t", " a", "x" * 40, "x" * 40 + "y", "\0", "a\0", "a\0b", "1", "NULL", "TRUE"),
    *("--", "/*", "`", ";"),
]
REGEXES = ["a", "^a", "b$", "a.b", "[ab]+", "^$", "^(a|z)", "x{40}", "é", r"\\", "a%", "[^a]", "^[a-z]*$", r"\.", "(ab|é)c?"]
DAYS = [dt.date(1970, 1, 1), dt.date(1969, 12, 31), dt.date(2013, 1, 31), dt.date(2013, 2, 1), dt.date(1, 1, 1), dt.date(9999, 12, 31)]
TIMES = [
    *(dt.datetime(1970, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59), dt.datetime(2013, 1, 31), dt.datetime(2013, 1, 31, 10, 30)),
    *(dt.datetime(2013, 1, 31, 10, 30, 1), dt.datetime(2013, 7, 1, 4), dt.datetime(1969, 12, 31, 23, 59, 58)),
]
NAN, INF = math.nan, math.inf
DOUBLES = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.0, 3.25, 0.1, -0.1, 1e10, 2.0**24, 2.0**24 + 1, 2.0**53, 1e300, -1e300, 5e-324]
DOUBLES += [NAN, INF, -INF]
KEYS = ["colour", "size", "a b", "it's", "", "é"]


def as_float32(x: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", x))[0])
    except OverflowError:
        return math.copysign(INF, x)


def integers(bits: int, signed: bool) -> list[int]:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    near = {low, low + 1, high, high - 1, -2, -1, 0, 1, 2, 3, 5, 7, 17, 2**53, 2**53 + 1, -(2**53) - 1}
    return sorted(x for x in near if low <= x <= high)


def a_value(rng: Random, type: pa.DataType) -> Any:
    """A value that a column of the type can hold, never NULL itself; NULLs inside lists, structs and maps."""
    t = pa.types
    if t.is_boolean(type):
        return rng.choice([False, True])
    if t.is_integer(type):
        return rng.choice(integers(type.bit_width, t.is_signed_integer(type)))
    if t.is_float32(type):
        return as_float32(rng.choice(DOUBLES))
    if t.is_floating(type):
        return rng.choice(DOUBLES)
    if t.is_decimal(type):
        top = 10**type.precision - 1
        unscaled = rng.choice([0, 1, -1, 110, 111, 150, 50, -50, 200, 1_500_000, top, -top])
        return Decimal(unscaled).scaleb(-type.scale)
    if t.is_string(type):
        return rng.choice(STRINGS)
    if t.is_fixed_size_binary(type):
        return rng.choice([b"\0\0", b"\0\1", b"ab", b"\x7f\xff", b"\x80\0", b"\xff\xff"])
    if t.is_binary(type):
        return rng.choice([b"", b"\0", b"a", b"ab", b"\x7f", b"\x80", b"\xff", b"\xff\xff"])
    if t.is_date(type):
        return rng.choice(DAYS)
    if t.is_timestamp(type):
        step = {"s": dt.timedelta(seconds=1), "ms": dt.timedelta(milliseconds=1)}.get(type.unit, dt.timedelta(microseconds=1))
        at = rng.choice(TIMES) + rng.choice([-1, 0, 0, 0, 1]) * step
        return at.replace(tzinfo=UTC) if type.tz else at
    if t.is_list(type):
        return [a_value_or_null(rng, type.value_type, 0.15) for _ in range(rng.choice([0, 1, 1, 2, 3, 5]))]
    if t.is_struct(type):
        return {field.name: a_value_or_null(rng, field.type, 0.2) for field in type}
    assert t.is_map(type)
    keys = [1, 2, -1, 2**31 - 1] if t.is_integer(type.key_type) else KEYS
    return [(key, a_value_or_null(rng, type.item_type, 0.2)) for key in rng.sample(keys, rng.choice([0, 1, 2, 4]))]


def a_value_or_null(rng: Random, type: pa.DataType, nulls: float) -> Any:
    return None if rng.random() < nulls else a_value(rng, type)


def some_rows(rng: Random, schema: pa.Schema, n: int, nulls: float = 0.2) -> list[Row]:
    return [{field.name: a_value_or_null(rng, field.type, nulls) for field in schema} for _ in range(n)]


def a_schema(rng: Random, most: int = 8) -> pa.Schema:
    names = rng.sample(sorted(COLUMNS), rng.randint(1, most))
    return pa.schema([(name, COLUMNS[name]) for name in names])


# ---- literals and expressions ----


def a_literal(rng: Random, type: pa.DataType) -> Expr:
    """A literal that may stand beside a value of the type: of its own kind or a related one, in its range or not."""
    t = pa.types
    if t.is_integer(type):
        x = a_value(rng, type)
        some = rng.randrange(8)
        if some == 0:
            return lit(rng.choice([-1, 128, 256, -129, 2**31, 2**32, 2**63, -(2**63) - 1, 2**64, 10**20, -(10**20)]))
        if some == 1:
            return lit(Decimal(x) + Decimal(rng.choice(["0.0", "0.5", "-0.5", "0.000001"])))
        if some == 2:  # small: Spark compares large ones as doubles
            return lit(rng.choice([0.0, -0.0, 1.0, 1.5, -2.5, 5.0, NAN, INF, -INF]))
        return lit(x + rng.choice([0, 0, 0, 1, -1]))
    if t.is_floating(type):
        some = rng.randrange(8)
        if some == 0:
            return lit(rng.choice([0, 1, 2, 16777217, 2**53 + 1, -1]))
        if some == 1:
            return lit(Decimal(rng.choice(["0.0", "0.1", "0.5", "1.5", "-1.0", "3.25"])))
        return lit(a_value(rng, type) if some < 5 else rng.choice(DOUBLES))
    if t.is_decimal(type):
        some = rng.randrange(8)
        if some == 0:
            return lit(rng.choice([0, 1, 2, -1, 10**10]))
        if some == 1:  # exact as doubles: Spark compares as doubles
            return lit(rng.choice([0.0, 0.5, 1.5, 2.0, -0.5, NAN, INF]))
        return lit(a_value(rng, type) + Decimal(rng.choice(["0", "0", "0", "0.001", "-0.0000001"])))
    if t.is_timestamp(type):
        at = rng.choice(TIMES) + dt.timedelta(microseconds=rng.choice([0, 0, 0, 1, -1, 1000, 1_000_000]))
        some = rng.randrange(10)
        if some == 0:
            return lit(rng.choice(DAYS[:4]))
        if some == 1:
            return lit(at.isoformat(sep=" "))
        if some == 2:
            return lit(at.replace(tzinfo=dt.timezone(dt.timedelta(hours=rng.choice([0, 2, -5])))))
        return lit(at, rng.choice(["timestamp", "timestamp_ntz"]))
    if t.is_date(type) and rng.random() < 0.2:
        return lit(str(a_value(rng, type)))
    return lit(a_value(rng, type))


def a_pattern(rng: Random) -> str:
    """A LIKE pattern that some of STRINGS fit."""
    parts = []
    for char in rng.choice(STRINGS):
        some = rng.randrange(6)
        parts.append("%" if some == 0 else "_" if some == 1 else "\\" + char if char in "%_\\" else char)
    return rng.choice(["", "", "%"]) + "".join(parts) + rng.choice(["", "", "%", "%%"])


Leaf = tuple[Expr, pa.DataType]


def terms(schema: pa.Schema) -> list[Leaf]:
    """Everything that a predicate can test, with its type."""
    found: list[Leaf] = []

    def visit(path: tuple[str, ...], type: pa.DataType) -> None:
        if pa.types.is_struct(type):
            for field in type:
                visit((*path, field.name), field.type)
        elif pa.types.is_map(type):
            keys: list[Any] = [1, 2, 3, -1] if pa.types.is_integer(type.key_type) else [*KEYS[:4], "absent"]
            found.extend((("entry", ("col", *path), key), type.item_type) for key in keys)
            found.append((("col", *path), type))
        else:
            found.append((("col", *path), type))

    for field in schema:
        visit((field.name,), field.type)
    return found


def a_predicate(rng: Random, leaf: Leaf, nulls: float = 0.08) -> Expr:
    """One predicate on one term. ``nulls``: how often a literal is NULL."""
    term, type = leaf

    def literal() -> Expr:
        return lit(None) if rng.random() < nulls else a_literal(rng, type)

    def literals() -> tuple[Expr, ...]:
        return tuple(literal() for _ in range(rng.choice([1, 1, 2, 3, 6])))

    if rng.random() < 0.1:
        return (rng.choice(["is null", "is not null"]), term)
    if pa.types.is_list(type) or pa.types.is_map(type):
        if pa.types.is_map(type) or rng.random() < 0.25:
            size = "size of map" if pa.types.is_map(type) else "size"
            return a_predicate(rng, ((size, term), pa.int8()), nulls)
        element: Callable[[], Expr] = lambda: lit(a_value(rng, type.value_type))  # noqa: E731
        op = rng.choice(["array_contains", "arrays_overlap", "contains_all"])
        return (op, term, element() if op == "array_contains" else tuple(element() for _ in range(rng.choice([1, 2, 3]))))
    if pa.types.is_boolean(type) and rng.random() < 0.6:
        return term if rng.random() < 0.5 else (f"is {rng.choice(['', 'not '])}{rng.choice(['true', 'false', 'unknown'])}", term)
    if pa.types.is_string(type) and rng.random() < 0.5:
        op = rng.choice(["like", "not like", "ilike", "not ilike", "rlike", "not rlike", "startswith", "endswith", "contains"])
        if rng.random() < nulls:
            return (op, term, lit(None))
        if op.endswith("rlike"):
            return (op, term, lit(rng.choice(REGEXES)))
        return (op, term, lit(a_pattern(rng) if op.endswith("like") else rng.choice(STRINGS)))
    some = rng.randrange(10)
    if some == 0:
        return (rng.choice(["between", "not between"]), term, literal(), literal())
    if some in (1, 2):
        return (rng.choice(["in", "not in"]), term, literals())
    op = rng.choice(["=", "=", "<>", "!=", "<", "<=", ">", ">=", "<=>"])
    return (op, literal(), term) if some == 3 else (op, term, literal())


def an_expression(rng: Random, leaves: list[Leaf], depth: int = 3, nulls: float = 0.08) -> Expr:
    """An expression of at most ``depth`` connectives above each predicate."""
    some = rng.randrange(12) if depth else 0
    if some < 3:
        return lit(rng.choice([True, False])) if rng.random() < 0.02 else a_predicate(rng, rng.choice(leaves), nulls)
    if some < 5:
        return ("not", an_expression(rng, leaves, depth - 1, nulls))
    if some == 5:
        truth = rng.choice(["true", "false", "unknown", "not true", "not false", "not unknown", "null", "not null"])
        return (f"is {truth}", an_expression(rng, leaves, depth - 1, nulls))
    parts = [an_expression(rng, leaves, depth - 1, nulls) for _ in range(rng.choice([2, 2, 3, 4]))]
    if rng.random() < 0.2:  # several predicates on one attribute: intersected and merged
        leaf = rng.choice(leaves)
        parts += [a_predicate(rng, leaf, nulls), a_predicate(rng, leaf, nulls)]
    return ("and" if some < 9 else "or", *parts)


def tame(e: Any, beyond: int = 2**63 - 1) -> Any:
    """The same expression without what SQL engines see differently: numbers larger than ``beyond``, doubles and exact numbers in one IN."""
    if not isinstance(e, tuple):
        return e
    if e[:2] in (("lit", "int"), ("lit", "decimal")) and abs(e[2]) >= beyond:
        return lit(beyond)
    if e[:1] in (("in",), ("not in",)) and any(x[1] == "double" for x in e[2]):
        return (*e[:2], tuple(x for x in e[2] if x[1] in ("double", "null")))
    return tuple(tame(x, beyond) for x in e)


# ---- rows as Arrow, in every physical layout ----


def plain_table(schema: pa.Schema, rows: list[Row]) -> pa.Table:
    return pa.table([pa.array([row[f.name] for row in rows], f.type) for f in schema], schema=schema)


def an_array(rng: Random, values: list[Any], type: pa.DataType) -> pa.Array:
    """The values in some layout that means ``type``, behind and before rows that a slice hides."""
    hidden = [a_value_or_null(rng, type, 0.3) for _ in range(rng.choice([0, 0, 1, 3, 9]))]
    after = [a_value_or_null(rng, type, 0.3) for _ in range(rng.choice([0, 0, 2]))]
    whole = laid_out(rng, hidden + values + after, type)
    return whole.slice(len(hidden), len(values))


def laid_out(rng: Random, values: list[Any], type: pa.DataType) -> pa.Array:
    t = pa.types
    absent = [value is None for value in values]
    if t.is_string(type) or (t.is_binary(type) and not t.is_fixed_size_binary(type)):
        text = t.is_string(type)
        large, view = (pa.large_string(), pa.string_view()) if text else (pa.large_binary(), pa.binary_view())
        physical = rng.choice([type, type, large, view])
        if rng.random() < 0.4:
            return dictionary(rng, values, physical)
        return pa.array(values, physical)
    if t.is_struct(type):
        # A NULL struct may hide anything in its children.
        rows = [a_value(rng, type) if value is None else value for value in values]
        children = [laid_out(rng, [row[f.name] for row in rows], f.type) for f in type]
        mask = pa.array(absent, pa.bool_()) if any(absent) else None
        fields = [pa.field(f.name, child.type) for f, child in zip(type, children, strict=True)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
    if t.is_list(type):
        # So may a NULL list: its range need not be empty.
        lists = [a_value(rng, type) if value is None and rng.random() < 0.5 else value or [] for value in values]
        flat = [x for some in lists for x in some]
        first = [0]
        for some in lists:
            first.append(first[-1] + len(some))
        child = laid_out(rng, flat, type.value_type)
        mask = pa.array(absent, pa.bool_()) if any(absent) else None
        if rng.random() < 0.3:
            return pa.LargeListArray.from_arrays(pa.array(first, pa.int64()), child, mask=mask)
        return pa.ListArray.from_arrays(pa.array(first, pa.int32()), child, mask=mask)
    return pa.array(values, type)


def dictionary(rng: Random, values: list[Any], physical: pa.DataType) -> pa.Array:
    """Dictionary-encoded, in no order, with entries that are unused, repeated, or NULL."""
    entries = sorted({value for value in values if value is not None})
    entries += [rng.choice(entries)] if entries and rng.random() < 0.3 else []
    entries += [None] if rng.random() < 0.3 else []
    entries += ["unused" if pa.types.is_string_view(physical) or "string" in str(physical) else b"unused"]
    rng.shuffle(entries)
    at = {entry: i for i, entry in enumerate(entries)}
    null = at.get(None) if rng.random() < 0.7 else None
    width = rng.choice([pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32()])
    codes = pa.array([null if value is None else at[value] for value in values], width)
    return pa.DictionaryArray.from_arrays(codes, pa.array(entries, physical))


def some_events(rng: Random, schema: pa.Schema, rows: list[Row]) -> tuple[pa.Table | pa.RecordBatch | pa.RecordBatchReader, list[Row]]:
    """The rows as Arrow data in a random layout, and as the oracle sees them: a column may be left out, which makes it all NULL."""
    rows = [dict(row) for row in rows]
    columns: dict[str, pa.ChunkedArray] = {}
    chunks = [len(rows)]
    while chunks[-1] > 1 and rng.random() < 0.4:
        cut = rng.randint(0, chunks[-1])
        chunks[-1:] = [cut, chunks[-1] - cut]
    names = list(schema.names)
    rng.shuffle(names)
    for name in names:
        some = rng.random()
        if some < 0.12:  # missing, or all NULL
            for row in rows:
                row[name] = None
            if some < 0.04:
                columns[name] = pa.chunked_array([pa.nulls(n, pa.null()) for n in chunks], pa.null())
            elif some < 0.08:
                columns[name] = pa.chunked_array([pa.nulls(n, schema.field(name).type) for n in chunks], schema.field(name).type)
            continue
        values, start, arrays = [row[name] for row in rows], 0, []
        seed = rng.randrange(2**16)  # chunks of one column share a layout
        for n in chunks:
            arrays.append(an_array(Random(seed), values[start : start + n], schema.field(name).type))
            start += n
        kinds = {str(array.type) for array in arrays}
        columns[name] = pa.chunked_array(arrays) if len(kinds) == 1 else pa.chunked_array([pa.array(values, schema.field(name).type)])
    if rng.random() < 0.3:
        columns["unknown to the schema"] = pa.chunked_array([pa.array([{"x": 1}] * len(rows), pa.struct({"x": pa.int8()}))])
    if not columns:
        columns["unknown to the schema"] = pa.chunked_array([pa.nulls(len(rows), pa.int8())])
    table = pa.table(columns)
    some = rng.randrange(3)
    if some == 0 and len(rows) and len(chunks) == 1:
        return table.to_batches()[0], rows
    return (pa.RecordBatchReader.from_batches(table.schema, table.to_batches()) if some == 1 else table), rows


# ---- the same expression by other ways in ----

METHODS = {"is null": "is_null", "is not null": "is_not_null", "<=>": "eq_null_safe"}
SIGNS = {"=": operator.eq, "<>": operator.ne, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def to_builder(e: Expr, two_valued: Any) -> Any:
    """The expression made with ``cm.col``. ``two_valued``: a condition that is never Unknown, to make constants of."""
    op, *args = e

    def build(x: Expr) -> Any:
        return to_builder(x, two_valued)

    if op == "lit":
        return args[1]
    if op == "col":
        return cm.col(*args)
    if op == "entry":
        return build(args[0])[args[1]]
    if op.startswith("size"):
        return build(args[0]).size()
    if op in ("and", "or"):
        return reduce(operator.and_ if op == "and" else operator.or_, [condition(x, two_valued) for x in args])
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
TableRow = tuple[int, str, str, list[Any], str]


def table_rows(e: Expr) -> list[TableRow] | None:
    """The expression as rows (conjunction, attribute, op, operands, kind of the operands); None unless it is an OR of ANDs of plain
    predicates whose literals are of one kind.
    """
    rows: list[TableRow] = []
    for number, conjunction in enumerate(e[1:] if e[0] == "or" else [e]):
        for predicate in conjunction[1:] if conjunction[0] == "and" else [conjunction]:
            row = _table_row(predicate)
            if row is None:
                return None
            rows.append((number, *row))
    return rows


def _table_row(e: Expr) -> tuple[str, str, list[Any], str] | None:
    negated = e[0] == "not"
    op, *args = e[1] if negated else e
    if op in ("is null", "is not null") and args[0][0] in ("col", "entry") and not negated:
        return attribute_name(args[0]), op, [], "none"
    if op in ("col", "entry"):
        return attribute_name((op, *args)), "not =" if negated else "=", [True], "bool"
    plain = op in ("=", "<>", "!=", "<", "<=", ">", ">=", "array_contains", "arrays_overlap") or op.removeprefix("not ") in TABLE_WORDS
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


def predicate_tables(rng: Random, rows: dict[Any, list[TableRow]], id_type: pa.DataType) -> list[pa.Table]:
    """Arrow tables for ``cm.PredicateTable``: one for each kind of operands, in random order and encoding."""
    flat = [(id, *row) for id, some in rows.items() for row in some]
    rng.shuffle(flat)
    tables = []
    for kind in sorted({row[5] for row in flat}):
        some = [row for row in flat if row[5] == kind]
        ids, conjunctions, names, ops, operands, _ = zip(*some, strict=True)
        text: Callable[[pa.Array], pa.Array] = (lambda x: x.dictionary_encode()) if rng.random() < 0.5 else (lambda x: x)
        table = {
            "id": pa.array(ids, id_type),
            "attribute": text(pa.array(names)),
            "op": text(pa.array(ops)),
            "operands": pa.array([values or None for values in operands], pa.list_(ARROW_KINDS[kind])),
            "conjunction": pa.array(conjunctions, pa.int32()),
        }
        tables.append(pa.table(table))
    rng.shuffle(tables)
    return tables
