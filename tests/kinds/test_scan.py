"""SCAN by tiles of 64 events against SCAN event by event, and against the oracle."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest
from contract import expected_pairs, pairs
from layouts import plain_table
from sizes import SMALL
from strategies import a_schema, an_expression, some_rows, terms
from ways_in import condition, to_builder

import colmatch as cm
from colmatch.kernels.tiles import TILE_LEAST, TILE_MOST, TILE_ROWS
from colmatch.kinds import scan
from colmatch.matching import worker

BY_TILES, BY_ROWS = cm.index("scan", dnf_budget=3), cm.index("scan", dnf_budget=3, tiles=False)


@pytest.mark.parametrize("seed", range(4 if SMALL else 30))
@pytest.mark.parametrize("room", [1, 1 << 16])
def test_tiles_find_what_is_found_event_by_event(seed: int, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists, negations and programs too, with a tile that is not full, events beyond the last tile,
    subscriptions of several conjunctions, deleted ones, and no room for pairs.
    """
    monkeypatch.setattr(worker, "FIRST_CAPACITY", room)
    rng = Random(seed)
    schema = a_schema(rng)
    leaves = terms(schema)
    two_valued = to_builder(("is null", leaves[0][0]), None)
    expressions = [an_expression(rng, leaves, depth=rng.choice([0, 1, 2])) for _ in range(20)]
    some = [(i, condition(e, two_valued)) for i, e in enumerate(expressions)]
    rows = some_rows(rng, schema, rng.choice([TILE_LEAST, TILE_ROWS, TILE_ROWS + 3, 2 * TILE_ROWS + TILE_LEAST]))
    events = plain_table(schema, rows)
    tiles, by_row = (cm.Matcher.build(some, schema, index=index) for index in (BY_TILES, BY_ROWS))
    wanted = expected_pairs(expressions, range(20), rows)
    assert pairs(tiles.match(events)) == pairs(by_row.match(events)) == wanted
    gone = rng.sample(range(20), 5)
    for matcher in (tiles, by_row):
        matcher.delete(gone)
        assert pairs(matcher.match(events)) == [(row, id) for row, id in wanted if id not in gone]
        assert matcher.count(events).sum() == sum(id not in gone for _, id in wanted)
        matcher.close()


def test_a_tile_tests_what_single_events_test() -> None:
    """A predicate is not evaluated for events of which one before it was not true."""
    texts = {i: f"a = {i % 7} AND b > {i % 5} AND c IN (1, {i % 3 + 2})" for i in range(70)}
    rng = np.random.default_rng(0)
    events = pa.table({name: rng.integers(0, 7, 2 * TILE_ROWS) for name in "abc"})
    schema = dict.fromkeys("abc", "int64")
    tiles, by_row = (cm.Matcher.build(texts, schema, index=index).counters(events) for index in (BY_TILES, BY_ROWS))
    assert tiles["conjunctions"] == by_row["conjunctions"] == 70 * len(events)
    assert tiles["matches"] == by_row["matches"] > 0
    assert tiles["candidates"] == 10 * len(events)  # the events that the heads leave
    assert tiles["predicates"] < 3 * tiles["candidates"]


def test_a_tile_counts_the_steps_of_programs() -> None:
    """Each event goes its own way, so they are those that it takes by itself."""
    texts = {i: f"(a = {i % 7} OR b > 2) AND (b = {i % 5} OR NOT (c = 1 OR a > {i % 3}))" for i in range(40)}
    rng = np.random.default_rng(0)
    events = pa.table({name: rng.integers(0, 7, TILE_ROWS) for name in "abc"})
    indexes = (cm.index("scan", dnf_budget=1, tiles=tiles) for tiles in (True, False))
    tiles, by_row = (cm.Matcher.build(texts, dict.fromkeys("abc", "int64"), index=index) for index in indexes)
    assert tiles.stats()["programs"] == 40
    assert tiles.counters(events) == by_row.counters(events)
    assert tiles.counters(events)["predicates"] > 40 * TILE_ROWS


@pytest.mark.parametrize("attributes", [TILE_MOST // TILE_ROWS, TILE_MOST // TILE_ROWS + 1])
def test_no_tile_for_too_many_attributes(attributes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made, type, plain = [], pa.map_(pa.string(), pa.int64()), scan.ScanScratch
    monkeypatch.setattr(scan, "ScanScratch", lambda *arrays: made.append(plain(*arrays)) or made[-1])
    texts = {i: f"m['k{i}'] = {i % 3}" for i in range(attributes)}
    matcher = cm.Matcher.build(texts, {"m": type}, index="scan", options=cm.Options(threads=1))
    last = range(attributes - TILE_LEAST, attributes)
    events = pa.table({"m": pa.array([[(f"k{i}", i % 2)] for i in last], type)})
    assert matcher.match_lists(events).to_pylist() == [[i] if i % 3 == i % 2 else [] for i in last]
    assert [len(one.tile) > 0 for one in made] == [attributes * TILE_ROWS <= TILE_MOST]
