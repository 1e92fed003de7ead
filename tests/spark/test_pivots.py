"""Pivots: a row that an expression is true of has one of them, whatever the expression is."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from clauses import EVENTS, SCHEMA, TAKEN
from oracle import to_sql
from strategies import a_schema, an_expression, some_rows, terms

import colmatch as cm
from colmatch.given.language import SQL
from colmatch.given.schema import Schema

pivots = pytest.importorskip("colmatch.spark.pivots", reason="pyspark is not installed", exc_type=ImportError)


def needs(
    schema: pa.Schema, texts: list[str], uses: dict[Any, int] | None = None, options: Any = None
) -> list[list[Any]]:
    """Returns the pivots of each text; None for a conjunction that has none."""
    reader = pivots.PivotReader(Schema(schema), options or cm.Options(threads=1), SQL, uses or {})
    found, rows = reader.pivots(pa.table({"id": np.arange(len(texts)), "expression": texts}))
    each: list[list[Any]] = [[] for _ in texts]
    known = [*found.known, None]
    for owner, pivot in zip(rows[found.owner].tolist(), found.pivot.tolist()):
        each[owner].append(known[pivot])
    return each


def check(schema: pa.Schema, texts: list[str], events: pa.Table, options: cm.Options) -> int:
    """Checks that events have the pivots of what they match; counts the texts that have some."""
    told = needs(schema, texts, options=options)
    rows = {i: pivots.condition(set(routes)) for i, routes in enumerate(told) if None not in routes}
    router = cm.Matcher.build(rows, schema, "scan", options)
    matcher = cm.Matcher.build(dict(enumerate(texts)), schema, "scan", options)
    have = set(zip(*(router.match(events).column(i).to_pylist() for i in (0, 1)), strict=True))
    for event, sub in zip(*(matcher.match(events).column(i).to_pylist() for i in (0, 1)), strict=True):
        assert sub not in rows or (event, sub) in have, texts[sub]
    return len(rows)


def test_clauses_of_manuals() -> None:
    assert check(SCHEMA, [clause.text for clause in TAKEN], EVENTS, cm.Options(threads=1)) > 100


@pytest.mark.parametrize("seed", range(8))
def test_random_expressions(seed: int) -> None:
    rng = Random(seed)
    schema = a_schema(rng)
    leaves = terms(schema)
    texts = [to_sql(an_expression(rng, leaves)) for _ in range(60)]
    events = pa.Table.from_pylist(some_rows(rng, schema, 80, nulls=0.5), schema)
    check(schema, texts, events, cm.Options(threads=1))


def test_what_the_pivot_is() -> None:
    schema = pa.schema(
        {
            "a": pa.int64(),
            "b": pa.int64(),
            "s": pa.string(),
            "m": pa.map_(pa.string(), pa.int64()),
            "tags": pa.list_(pa.string()),
        }
    )
    uses = {(("a",), None): 9, (("b",), None): 5, (("m",), "k"): 1}
    texts = {
        "a = 1 AND b = 2": [(("b",), None)],
        "a = 1 AND m['k'] > 2": [(("m",), "k")],
        "a = 1 OR m['k'] > 2": [(("a",), None), (("m",), "k")],
        "a IS NULL": [None],
        "a IS NULL AND b = 1": [(("b",), None)],
        "NOT (b = 1)": [(("b",), None)],
        "a <=> NULL OR b = 1": [(("b",), None), None],
        "s LIKE '%x%' AND a = 1": [(("s",), None)],
        "array_contains(tags, 'x')": [(("tags",), None)],
        "size(tags) > 1": [(("tags",), None)],
        "a + b > 3": [None],
        "a + b > 3 AND m['k'] = 1": [(("m",), "k")],
        "TRUE": [None],
    }
    found = needs(schema, list(texts), uses)
    for (text, wanted), routes in zip(texts.items(), found, strict=True):
        assert sorted(map(json.dumps, routes)) == sorted(map(json.dumps, wanted)), text


def test_what_is_kept_whole_has_a_pivot_of_its_first_part() -> None:
    schema = pa.schema({f"c{i}": pa.int64() for i in range(40)})
    ors = [f"(c{i} = 1 OR c{i + 1} = 2)" for i in range(0, 40, 2)]
    (routes,) = needs(schema, [" AND ".join(ors)])
    assert None not in routes and len(routes) <= 64
    assert (
        check(schema, [" AND ".join(ors)], pa.table({name: [1, None, 2] for name in schema.names}), cm.Options()) == 1
    )


def test_the_most_frequent_pivot_is_home() -> None:
    schema = pa.schema({"a": pa.int64(), "b": pa.int64()})
    uses = {(("a",), None): 9, (("b",), None): 5}
    reader = pivots.PivotReader(Schema(schema), cm.Options(threads=1), SQL, uses)
    texts = ["a = 1 OR b = 1", "b = 1 OR a = 2", "b = 3", "a IS NULL OR b = 1", "nope = 1"]
    found, rows = reader.pivots(pa.table({"id": np.arange(5), "expression": texts}))
    known = [*found.known, None]
    assert rows.tolist() == [0, 1, 2, 3]
    assert [known[i] for i in pivots.homes(found, 4)] == [(("a",), None), (("a",), None), (("b",), None), None]


def test_shards_are_equal_parts() -> None:
    routes = [(("m",), f"k{i}") for i in range(100)]
    rows = [1000, *[10] * 99, 10]  # a long one is in several shards
    layout = pivots.Layout(routes, rows, 10)
    home = np.repeat(np.append(np.arange(100), -1), rows)
    hashes = np.random.default_rng(1).integers(-(2**63), 2**63, len(home))
    none = np.empty(0, np.int64)
    found = pivots.Pivots(routes, [], np.zeros(101), none, none, none)
    sizes = np.bincount(layout.shard_of(found, home, hashes), minlength=10)
    assert sizes.max() < 1.3 * sizes.mean() and len(set(layout.shard_of(found, home, hashes)[:1000])) == 5
    new = pivots.Pivots([(("m",), "new")], [], np.array([0.35, 0.0]), none, none, none)
    assert set(layout.shard_of(new, np.zeros(20, np.int64), hashes[:20]).tolist()) == {3}
    empty = pivots.Layout([], [0], 10)  # nothing is known: by id
    sizes = np.bincount(empty.shard_of(found, home, hashes), minlength=10)
    assert sizes.max() < 1.3 * sizes.mean()


def test_pivots_do_not_depend_on_the_order_of_texts() -> None:
    schema = pa.schema({f"c{i}": pa.int64() for i in range(12)})
    rng = Random(3)
    texts = [" AND ".join(f"c{i} = 1" for i in rng.sample(range(12), 3)) for _ in range(50)]
    texts += [" OR ".join(f"c{i} = 1" for i in rng.sample(range(12), 3)) for _ in range(50)]
    uses = {((f"c{i}",), None): i % 2 for i in range(12)}

    def told(texts: list[str]) -> dict[str, Any]:
        reader = pivots.PivotReader(Schema(schema), cm.Options(threads=1), SQL, uses)
        found, rows = reader.pivots(pa.table({"id": np.arange(len(texts)), "expression": texts}))
        homes = pivots.homes(found, len(texts))
        return {texts[row]: (found.known[homes[i]], needs(schema, [texts[row]], uses)) for i, row in enumerate(rows)}

    want = told(texts)
    for _ in range(5):
        rng.shuffle(texts)
        assert told(texts) == want
