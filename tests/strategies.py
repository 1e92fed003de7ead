"""Random schemas, rows and expressions.

Everything is written against the interface of ``random.Random``, so that the differential tests can
draw thousands from a seed, and hypothesis, through ``st.randoms(use_true_random=False)``, can
choose, replay and shrink the same things.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
from oracle import Expr, Row, lit

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
    "dec30": pa.decimal128(30, 6),
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
        {
            "age": pa.int32(),
            "name": pa.string(),
            "vip": pa.bool_(),
            "home": pa.struct({"city": pa.string(), "lat": pa.float64()}),
        }
    ),
    "attrs": pa.map_(pa.string(), pa.int64()),
    "words": pa.map_(pa.string(), pa.string()),
    "by_num": pa.map_(pa.int32(), pa.float64()),
}

STRINGS = [
    *(
        "",
        "a",
        "A",
        "b",
        "ab",
        "abc",
        "abcd",
        "b ",
        "a%b",
        "a_b",
        "a\\b",
        "a\\%b",
        "it's",
        'say "x"',
        "''",
        "é",
        "É",
        "ß",
        "ñandú",
    ),
    *(
        "日本",
        "😀",
        "a😀b",
        "\uff5e",
        "z",
        "zz",
        "a\nb",
        "\n\t",
        " a",
        "x" * 40,
        "x" * 40 + "y",
        "\0",
        "a\0",
        "a\0b",
        "1",
        "NULL",
        "TRUE",
    ),
    *("--", "/*", "`", ";"),
]
REGEXES = [
    "a",
    "^a",
    "b$",
    "a.b",
    "[ab]+",
    "^$",
    "^(a|z)",
    "x{40}",
    "é",
    r"\\",
    "a%",
    "[^a]",
    "^[a-z]*$",
    r"\.",
    "(ab|é)c?",
]
DAYS = [
    dt.date(1970, 1, 1),
    dt.date(1969, 12, 31),
    dt.date(2013, 1, 31),
    dt.date(2013, 2, 1),
    dt.date(1, 1, 1),
    dt.date(9999, 12, 31),
]
TIMES = [
    *(
        dt.datetime(1970, 1, 1),
        dt.datetime(1969, 12, 31, 23, 59, 59),
        dt.datetime(2013, 1, 31),
        dt.datetime(2013, 1, 31, 10, 30),
    ),
    *(dt.datetime(2013, 1, 31, 10, 30, 1), dt.datetime(2013, 7, 1, 4), dt.datetime(1969, 12, 31, 23, 59, 58)),
]
NAN, INF = math.nan, math.inf
DOUBLES = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1.5,
    2.0,
    3.25,
    0.1,
    -0.1,
    1e10,
    2.0**24,
    2.0**24 + 1,
    2.0**53,
    1e300,
    -1e300,
    5e-324,
]
DOUBLES += [NAN, INF, -INF]
WEIGHTS = [-1.0, -0.125, 0.0, 0.125, 0.5, 0.5, 1.0, 2.25]  # few, for ties; their sums are exact
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
    """A value that a column of the type can hold, never NULL itself; NULLs inside lists, structs
    and maps.
    """
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
        return Decimal(f"{unscaled}E-{type.scale}")  # without rounding
    if t.is_string(type):
        return rng.choice(STRINGS)
    if t.is_fixed_size_binary(type):
        return rng.choice([b"\0\0", b"\0\1", b"ab", b"\x7f\xff", b"\x80\0", b"\xff\xff"])
    if t.is_binary(type):
        return rng.choice([b"", b"\0", b"a", b"ab", b"\x7f", b"\x80", b"\xff", b"\xff\xff"])
    if t.is_date(type):
        return rng.choice(DAYS)
    if t.is_timestamp(type):
        step = {"s": dt.timedelta(seconds=1), "ms": dt.timedelta(milliseconds=1)}.get(
            type.unit, dt.timedelta(microseconds=1)
        )
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
    """A literal that may stand beside a value of the type: of its own kind or a related one, in
    its range or not.
    """
    t = pa.types
    if t.is_integer(type):
        x = a_value(rng, type)
        some = rng.randrange(8)
        if some == 0:
            return lit(rng.choice([-1, 128, 256, -129, 2**31, 2**32, 2**63, -(2**63) - 1, 2**64, 10**20, -(10**20)]))
        if some == 1:
            return lit(Decimal(x) + Decimal(rng.choice(["0.0", "0.5", "-0.5", "0.000001"])))
        if some == 2:
            large = [2.0**53, -(2.0**53), 2.0**53 + 2, 2.0**63, -(2.0**63), 2.0**64, 1e300]
            return lit(rng.choice([0.0, -0.0, 1.0, 1.5, -2.5, 5.0, NAN, INF, -INF, *large]))
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
        if some == 1:
            return lit(
                rng.choice([0.0, 0.5, 1.5, 2.0, -0.5, 0.1, 1.1, -0.3, 1e15, NAN, INF, float(a_value(rng, type))])
            )
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
        return (
            op,
            term,
            element() if op == "array_contains" else tuple(element() for _ in range(rng.choice([1, 2, 3]))),
        )
    if pa.types.is_boolean(type) and rng.random() < 0.6:
        return (
            term
            if rng.random() < 0.5
            else (f"is {rng.choice(['', 'not '])}{rng.choice(['true', 'false', 'unknown'])}", term)
        )
    if pa.types.is_string(type) and rng.random() < 0.5:
        op = rng.choice(
            ["like", "not like", "ilike", "not ilike", "rlike", "not rlike", "startswith", "endswith", "contains"]
        )
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
    own = Random(repr(parts))  # so that all other expressions stay as they are
    if own.random() < 0.08:
        parts += [a_predicate(own, own.choice(leaves), nulls) for _ in range(own.choice([0, 0, 1, 4]))]
        return ("at_least", own.randint(1, len(parts)), *parts)
    return ("and" if some < 9 else "or", *parts)


def weighed(rng: Random, e: Expr) -> Expr:
    """The expression with weights for most of its predicates, also for negated ones."""
    op, *args = e
    if op in ("and", "or", "at_least"):
        return (op, *(weighed(rng, x) if isinstance(x, tuple) else x for x in args))
    if op == "not" and args[0][0] in ("and", "or", "at_least", "not"):
        return (op, weighed(rng, args[0]))
    predicate = args[0] if op == "not" else e
    plain = predicate[0] != "lit" and not predicate[0].startswith("is ") and rng.random() < 0.8
    return ("weight", rng.choice(WEIGHTS), e) if plain else e


def tame(e: Any, beyond: int = 2**63 - 1) -> Any:
    """The expression without what SQL engines see differently: numbers larger than ``beyond``."""
    if not isinstance(e, tuple):
        return e
    if e[:2] in (("lit", "int"), ("lit", "decimal")) and abs(e[2]) >= beyond:
        return lit(beyond)
    return tuple(tame(x, beyond) for x in e)
