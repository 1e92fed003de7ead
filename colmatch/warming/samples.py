"""Made-up subscriptions and events, by which kernels are compiled.

They are few: a kernel is compiled when it is called, however little it does. What they are is the
same each time.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from random import Random

import pyarrow as pa

NUMBERS = [f"n{i}" for i in range(6)]
PLAIN = pa.schema({**{name: pa.int64() for name in NUMBERS}, "s": pa.string(), "f": pa.float64(), "b": pa.bool_()})

# A column of each type and form that is read in a way of its own.
RICH = pa.schema(
    {
        "i8": pa.int8(),
        "u32": pa.uint32(),
        "f32": pa.float32(),
        "amount": pa.decimal128(10, 2),
        "day": pa.date32(),
        "at": pa.timestamp("us", "UTC"),
        "b": pa.bool_(),
        "s": pa.string(),
        "x": pa.binary(),
        "tags": pa.list_(pa.string()),
        "user": pa.struct({"age": pa.int64(), "name": pa.string()}),
        "attrs": pa.map_(pa.string(), pa.int64()),
        "words": pa.map_(pa.string(), pa.string()),
        "lat": pa.float64(),
        "lon": pa.float64(),
        "now": pa.timestamp("us", "UTC"),
        "seen": pa.list_(pa.struct({"id": pa.int64(), "timestamp": pa.int64()})),
        "caps": pa.list_(
            pa.struct(
                {"type": pa.string(), "id": pa.int64(), "ns": pa.string(), "value": pa.int64(), "timestamp": pa.int64()}
            )
        ),
    }
)
RICH_TEXTS = [
    "i8 > 3 AND u32 < 9",
    "f32 BETWEEN 0.5 AND 2 OR amount = 3.25",
    "day >= DATE '2026-01-01' AND at < TIMESTAMP '2026-06-01 00:00:00'",
    "x = X'01' OR NOT b",
    "array_contains(tags, 'a') AND size(tags) > 1",
    "user.age >= 18 AND user.name <> 'b'",
    "attrs['k'] = 3 OR words['k'] = 'v'",
    "contains_all(tags, 'a', 'b') OR arrays_overlap(tags, array('c', 'd'))",
    "s LIKE 'a%' OR s LIKE '%b' OR s LIKE '%c%d%'",
    "s NOT LIKE '_bcd%' AND s ILIKE '%XY%'",
    "s RLIKE '^(ab|cd)+e' OR s RLIKE 'x[0-9]+yz' OR s RLIKE '[a-c]'",
    "contains(s, 'bcd') OR startswith(s, 'x') OR endswith(s, 'yz')",
    "array_contains(tags, 'a') AND words['k'] LIKE '%b%'",
    "i8 * 2 > u32 % 7 AND f32 < amount",
    "lower(s) = 'abc' OR coalesce(i8, 0) > 3 OR year(at) = 2026",
    "length(s) > 3 AND cidr_contains('10.0.0.0/8', s)",
    "geo_within_radius(lat, lon, 48.2, 16.4, 10.0)",
    "NOT geo_within_radius(lat, lon, 0.0, 0.0, 9000.0)",
    "segment_within(seen, now, 12, 3600) OR segment_before(seen, now, 13, 60)",
    "within_frequency_cap(caps, now, 'flight', 7, 'shop', 3, 3600)",
    "s IS NULL OR tags IS NULL",
]

WEIGHTS = pa.map_(pa.string(), pa.float64())


def texts(count: int, first: int = 0) -> dict[int, str]:
    """Returns expressions over ``PLAIN`` by their ids, which count from ``first``."""
    random = Random(first + count)
    return {id: _text(id, random) for id in range(first, first + count)}


def _text(id: int, random: Random) -> str:
    some = random.sample(NUMBERS, 3)
    if id % 8 < 4:
        return " AND ".join(f"{name} BETWEEN {random.randrange(40)} AND {random.randrange(40, 60)}" for name in some)
    if id % 8 == 4:
        return f"{some[0]} = {random.randrange(50)} AND s = '{'abc'[id % 3]}{id}' AND f > {random.random()}"
    if id % 8 == 5:  # too many combinations: a program
        ors = (f"({name} < {random.randrange(60)} OR {other} <> {id % 7})" for name in NUMBERS for other in some[:2])
        return " AND ".join(ors)
    if id % 8 == 6:
        return f"s IN ('{'abc'[id % 3]}{id % 10}', 'x{id}') OR {some[0]} NOT IN ({id % 30}, {id % 30 + 3}, 77)"
    return f"{some[0]} IS NULL OR NOT b AND f <= {random.random()}"


def weighted(count: int, first: int = 0, *, weights: bool = True, priority: bool = True) -> pa.Table:
    """Returns ``texts`` as a table, with weights, priorities and tags."""
    found = texts(count, first)
    columns = {
        "id": pa.array(list(found), pa.int64()),
        "expression": pa.array(list(found.values())),
        "tags": pa.array([["odd"] if id % 2 else ["even", "all"] for id in found]),
    }
    if weights:
        each = [{"n0": 2.0, "s": 0.5, "n1": 1.5} if id % 3 else {} for id in found]
        columns["weights"] = pa.array([list(some.items()) for some in each], WEIGHTS)
    if priority:
        columns["priority"] = pa.array([float(id % 10) for id in found])
    return pa.table(columns)


def events(count: int) -> pa.Table:
    """Returns events of ``PLAIN``, with columns for weights and for the ends of ranges."""
    random = Random(count)

    def numbers(*least: int | None) -> pa.Array:
        return pa.array([random.choice([*least, random.randrange(60)]) for _ in range(count)], pa.int64())

    columns = {name: numbers(None) for name in NUMBERS}
    columns["s"] = pa.array([random.choice([None, "a1", "b2", "x3", "c"]) for _ in range(count)], pa.string())
    columns["f"] = pa.array([random.random() for _ in range(count)])
    columns["b"] = pa.array([random.random() < 0.5 for _ in range(count)])
    columns["low"] = pa.array([random.choice([None, 5]) for _ in range(count)], pa.int64())
    columns["high"] = pa.array([random.choice([None, 25]) for _ in range(count)], pa.int64())
    columns["weight"] = pa.array([random.random() for _ in range(count)])
    columns["weights"] = pa.array([[("n0", 2.0), ("s", 0.25), ("?", 1.0)]] * count, WEIGHTS)
    return pa.table(columns)


def rich_events() -> pa.Table:
    """Returns events of ``RICH``."""
    cap = {"type": "flight", "id": 7, "ns": "shop", "value": 3, "timestamp": 1_763_000_000_000_000}
    full = {
        "i8": 5,
        "u32": 7,
        "f32": 1.5,
        "amount": Decimal("3.25"),
        "day": date(2026, 3, 1),
        "at": datetime(2026, 3, 1),
        "b": False,
        "s": "abcdxyz",
        "x": b"\1",
        "tags": ["a", "b"],
        "user": {"age": 20, "name": "c"},
        "attrs": [("k", 3), ("other", 4)],
        "words": [("k", "abc")],
        "lat": 48.21,
        "lon": 16.37,
        "now": datetime(2026, 3, 1),
        "seen": [{"id": 12, "timestamp": 1_763_000_000_000_000}],
        "caps": [cap],
    }
    other = full | {"s": "xyz", "tags": [], "seen": [], "caps": [], "lat": -3.0, "attrs": []}
    return pa.Table.from_pylist([full, other, {}, full] * 4, RICH)
