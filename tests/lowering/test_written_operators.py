"""Explanations are written with the operators that people write."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import colmatch as cm

SCHEMA = pa.schema(
    {
        "a": pa.int64(),
        "u": pa.uint64(),
        "price": pa.float64(),
        "day": pa.date32(),
        "at": pa.timestamp("us"),
        "d": pa.decimal128(10, 2),
        "flag": pa.bool_(),
        "name": pa.string(),
    }
)
EVENT = {
    "a": 2,
    "u": 7,
    "price": 5.0,
    "day": dt.date(2020, 5, 3),
    "at": dt.datetime(2020, 5, 3),
    "d": Decimal("2.50"),
    "flag": True,
    "name": "ab",
}
AS_WRITTEN = [
    "a > 5",
    "a >= 18",
    "a < 100",
    "a > 0",
    "a >= 0",
    "a < 0",
    "a > 15",
    "a = 5",
    "a <> 5",
    "a IN (1, 2, 3)",
    "a IN (1, 2, 3, 7)",
    "a IN (10, 11, 12, 20, 21)",
    "a NOT IN (1, 2, 3)",
    "a NOT IN (1, 2, 7)",
    "a BETWEEN 3 AND 4",
    "a BETWEEN 22 AND 36",
    "a BETWEEN 1 AND 30",
    "a > 5 AND a < 10",
    "a NOT BETWEEN 5 AND 10",
    "u > 1000",
    "u IN (1, 2, 3)",
    "a > -1000",
    "a <= -7",
    "a > 9223372036854775800",
    "a BETWEEN -2 AND 3",
    "price > 5",
    "price < 2.5",
    "price >= 100",
    "price BETWEEN 2 AND 3.5",
    "price = 5",
    "price IN (1, 2.5)",
    "day > DATE '2020-01-01'",
    "day >= DATE '2021-01-01'",
    "day < DATE '2021-01-01'",
    "day BETWEEN DATE '2020-03-05' AND DATE '2020-09-27'",
    "day IN (DATE '2020-05-03', DATE '2020-05-04', DATE '2020-05-05')",
    "at < TIMESTAMP '2021-01-01 00:00:00.000000'",
    "at >= TIMESTAMP '2021-01-01 00:00:00.000000'",
    "d < 100.00",
    "d > 0.00",
    "d >= 0.00 AND d < 100.00",
    "d BETWEEN 1.25 AND 3.75",
    "flag",
    "NOT flag",
    "name > 'ab'",
    "name >= 'ab'",
    "name IN ('ab', 'b')",
    "name LIKE 'a%'",
    "name NOT LIKE 'a%'",
    "a % 7 > 5",
    "a IS NULL",
    "a IS NOT NULL",
]


def written(clause: str, **event: Any) -> str:
    """The only predicate of a clause, as its explanation has it."""
    shown = str(cm.Matcher.build({1: clause}, SCHEMA).explain({**EVENT, **event}, 1)).splitlines()
    assert len(shown) == 2
    return shown[1][10:].rsplit("   [", 1)[0].strip()


@pytest.mark.parametrize("clause", AS_WRITTEN)
@pytest.mark.usefixtures("kept_predicates")
def test_a_predicate_reads_as_it_was_written(clause: str) -> None:
    assert written(clause) == clause


@pytest.mark.parametrize(
    ("clause", "shown"),
    [
        ("a >= 6", "a > 5"),
        ("a <= 99", "a < 100"),
        ("a > 17", "a >= 18"),
        ("a < 5 OR a > 10", "a NOT BETWEEN 5 AND 10"),
        ("a = 1 OR a = 2 OR a = 3", "a IN (1, 2, 3)"),
        ("a IN (3, 4)", "a BETWEEN 3 AND 4"),
        ("flag = TRUE", "flag"),
        ("flag <> TRUE", "NOT flag"),
        ("a < price", "a < price"),
        ("NOT a > 5", "a <= 5"),
    ],
)
@pytest.mark.usefixtures("kept_predicates")
def test_what_means_the_same_reads_alike(clause: str, shown: str) -> None:
    assert written(clause) == shown
    again = cm.Matcher.build({1: clause, 2: shown}, SCHEMA)
    events = pa.Table.from_pylist(
        [{**EVENT, "a": a, "flag": flag} for a in range(-3, 25) for flag in (True, False, None)], SCHEMA
    )
    assert all(found in ([], [1, 2]) for found in again.match_lists(events).to_pylist())


def test_what_is_shown_means_what_was_written() -> None:
    """Each set of whole numbers, dates and decimals that a predicate may look for."""
    rng = Random(1977)
    clauses = []
    for _ in range(80):
        some = sorted(rng.sample(range(-4, 24), rng.randrange(1, 7)))
        low, high = min(some), max(some)
        day = "DATE '2020-01-{:02}'".format
        clauses += [
            f"a IN ({', '.join(map(str, some))})",
            f"a NOT IN ({', '.join(map(str, some))})",
            f"a {rng.choice(['BETWEEN', 'NOT BETWEEN'])} {low} AND {high}",
            f"a {rng.choice(['<', '<=', '>', '>=', '=', '<>'])} {low}",
            f"d {rng.choice(['<', '<=', '>', '>='])} {low / 4:.2f}",
            f"d BETWEEN {low}.01 AND {high}.99" if low > 0 else "d IS NULL",
            f"day {rng.choice(['<', '<=', '>', '>='])} {day(abs(low) + 1)}",
            f"day BETWEEN {day(abs(low) + 1)} AND {day(25)}",
        ]
    clauses = sorted(set(clauses))
    values = range(-6, 26)
    first = dt.date(2020, 1, 1)
    events = pa.Table.from_pylist(
        [{"a": a, "d": Decimal(a) / 4, "day": first + dt.timedelta(a)} for a in values] + [{}], SCHEMA
    )
    shown = {i: written(clause) for i, clause in enumerate(clauses)}
    found = cm.Matcher.build(dict(enumerate(clauses)), SCHEMA).match_lists(events)
    assert cm.Matcher.build(shown, SCHEMA).match_lists(events) == found
