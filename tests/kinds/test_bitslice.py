"""What bitslice is about, seen in its counters: masks decide, rows share work, and where they
cannot the row-wise path finds the same.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import inside
import numpy as np
import pyarrow as pa
import pytest
from contract import pairs
from numpy.typing import NDArray
from sizes import SMALL
from workload import named

import colmatch as cm
import colmatch.kinds.bitslice
import colmatch.matching.worker
from colmatch.arrays.frozen import freeze_view
from colmatch.kernels.kinds.bitslice.arrays import LAST
from colmatch.kernels.kinds.bitslice.build import cut_bins, longest_rest
from colmatch.kinds.settings import Settings
from colmatch.matching.worker import Worker
from colmatch.updates.memory_set import MemorySet

SIZE, ROWS = (300, 150) if SMALL else (20_000, 1500)


# All columns are sorted, as they are for large sets.
OPEN = cm.index("bitslice", close_columns=False)


def built(
    kind: str | Settings = OPEN, name: str = "dense", subscriptions: int = SIZE, **options: Any
) -> tuple[cm.Matcher, pa.Table]:
    workload = named(name, subscriptions=subscriptions)
    matcher = cm.Matcher.build(workload.predicate_table(), workload.schema(), index=kind, options=cm.Options(**options))
    return matcher, workload.events(ROWS)


def fresh(matcher: cm.Matcher) -> cm.Matcher:
    """A copy of the matcher, without the working memory that is kept for the next call."""
    return cm.Matcher(MemorySet(inside.parts(matcher)))


def test_columns_with_few_subscriptions_are_not_sorted() -> None:
    """The others move to fewer columns, and all rows have one tile where none is worth it."""
    for size, most in ((SIZE // 20, 0.1), (SIZE // 2, 0.9)):
        workload = named("dense", subscriptions=size)
        table, schema, events = workload.predicate_table(), workload.schema(), workload.events(ROWS)
        closed, open = (cm.Matcher.build(table, schema, index=index) for index in ("bitslice", OPEN))
        assert pairs(closed.match(events)) == pairs(open.match(events))
        if not SMALL:
            assert closed.counters(events)["nodes"] < most * open.counters(events)["nodes"]


def test_columns_of_many_attributes_stay_open() -> None:
    """Events have values of few of them: to test all rows would cost more."""
    table = named("pstree-sparse", subscriptions=SIZE).predicate_table()
    schema, events = named("pstree-sparse").schema(), named("pstree-sparse").events(ROWS)
    closed, open = (cm.Matcher.build(table, schema, index=index).counters(events) for index in ("bitslice", OPEN))
    assert closed == open


def test_rows_share_the_look_at_a_subscription() -> None:
    matcher = cm.Matcher.build(
        {i: f"a = {i % 7} AND b > {i % 50}" for i in range(500)}, {"a": "int64", "b": "int64"}, index=OPEN
    )
    events = pa.table({"a": np.arange(300) % 7, "b": np.arange(300) % 60})
    together = matcher.counters(events)["conjunctions"]
    one_by_one = sum(matcher.counters(events.slice(i, 1))["conjunctions"] for i in range(70)) * 300 / 70
    assert together < 0.05 * one_by_one
    assert together < 0.05 * 500 * 300


@pytest.mark.parametrize("name", ["dense", "dense-planted", "bestar", "pstree-sparse", "ads", "querylog"])
@pytest.mark.parametrize("batch_rows", [1, 50, 8192])
def test_every_size_of_batch_finds_what_scan_finds(name: str, batch_rows: int) -> None:
    """Batches of one row go row by row, large ones by sorted columns."""
    size = SIZE // 10
    matcher, events = built(name=name, subscriptions=size, batch_rows=batch_rows)
    scan, _ = built("scan", name, size)
    few = events.slice(0, ROWS // 3)
    assert pairs(matcher.match(few)) == pairs(scan.match(few))


def test_masks_decide_where_bins_are_codes() -> None:
    matcher, events = built(batch_rows=4096)
    assert matcher.counters(events)["candidates"] == 0
    assert matcher.counters(events)["matches"] > 0


@pytest.mark.parametrize("bins", [3, 20])
def test_fewer_bins_than_codes_leave_candidates_that_are_verified(bins: int) -> None:
    exact, events = built()
    with inside.with_constants(colmatch.kinds.bitslice, "bs", MOST_BINS=bins):
        vague, _ = built()
    assert vague.counters(events)["candidates"] > exact.counters(events)["candidates"] == 0
    assert pairs(vague.match(events)) == pairs(exact.match(events))


def test_columns_longer_than_a_tile() -> None:
    """Tiles of 64 rows: access intervals begin in one and end in another."""
    whole, events = built(batch_rows=4096)
    wanted, tiles_made = pairs(whole.match(events)), whole.counters(events)["nodes"]
    with patch.object(colmatch.kinds.bitslice, "TILE", 1):
        assert pairs(fresh(whole).match(events)) == wanted
        # columns have 45 rows without the JIT, 450 with it
        assert SMALL or whole.counters(events)["nodes"] > 3 * tiles_made


def test_more_segments_than_there_is_room_for() -> None:
    """Rows are then gone through several times."""
    whole, events = built(batch_rows=60)
    wanted = pairs(whole.match(events))
    module = colmatch.kinds.bitslice
    with (
        patch.object(module, "TILE", 1),
        patch.object(module, "AN_ENTRY", 0),
        inside.with_constants(module, "bs", SEGMENTS=70),
    ):
        assert pairs(fresh(whole).match(events)) == wanted


@pytest.mark.parametrize("tile", [1, 1 << 18])
def test_ranges_over_several_tiles_and_more_of_them_than_are_kept_at_once(tile: int) -> None:
    low, high = np.arange(1500) % 7, 90 + np.arange(1500) % 50
    a = np.random.default_rng(4).integers(0, 160, 200)
    texts = {i: f"a BETWEEN {low[i]} AND {high[i]} AND b IS {'NOT ' * (i % 3 > 0)}NULL" for i in range(1500)}
    matcher = cm.Matcher.build(texts, {"a": "int64", "b": "int64"}, index=OPEN)
    absent = np.arange(200) % 5 == 0
    wanted = (low <= a[:, None]) & (a[:, None] <= high) & (absent[:, None] == (np.arange(1500) % 3 == 0))
    with patch.object(colmatch.kinds.bitslice, "TILE", tile):
        assert pairs(matcher.match(pa.table({"a": a, "b": pa.array(a, mask=absent)}))) == [
            tuple(pair) for pair in np.argwhere(wanted).tolist()
        ]


def test_no_value_of_one_column_is_left_for_the_next() -> None:
    """Columns a and b have other rows, of which only a's have c."""
    texts = {i: f"{'ab'[i % 2]} = {i % 5}" + " AND c >= 0" * (i < 90) for i in range(200)}
    events = pa.table(
        {"a": [*range(5)] * 20 + [None] * 100, "b": [None] * 100 + [*range(5)] * 20, "c": [1] * 100 + [None] * 100}
    )
    matcher = cm.Matcher.build(texts, dict.fromkeys("abc", "int64"), index=OPEN)
    assert pairs(matcher.match(events)) == [
        (row, i)
        for row in range(200)
        for i in range(200)
        if i % 5 == row % 5 and i % 2 == row // 100 and (row < 100 or i >= 90)
    ]


def test_codes_of_an_attribute_without_a_rank_may_be_large() -> None:
    texts = {i: f"a = {i % 4} AND c = 1" + f" AND b <> {i}" * (i > 99) for i in range(600)}
    with inside.with_constants(colmatch.kinds.bitslice, "bs", MOST_RANKS=3):
        matcher = cm.Matcher.build(texts, dict.fromkeys("abc", "int64"), index=OPEN)
    wanted = [(row, i) for row in range(100) for i in range(600) if row % 4 == i % 4 and row + 400 != i]
    assert pairs(matcher.match(pa.table({"a": np.arange(100) % 4, "b": np.arange(400, 500), "c": [1] * 100}))) == wanted


def test_attributes_without_slots() -> None:
    exact, events = built()
    with inside.with_constants(colmatch.kinds.bitslice, "bs", MOST_RANKS=20):
        vague, _ = built()
    assert pairs(vague.match(events)) == pairs(exact.match(events))


def test_a_nested_expression_is_evaluated_on_masks() -> None:
    """2^12 conjunctions if it were multiplied out."""
    clauses = [
        f"(a{i} BETWEEN {i} AND {i + 3} OR NOT b{i} = 1 OR c IN ({i}, {i + 20}) OR b{i} IS NULL)" for i in range(12)
    ]
    schema = {**{f"{x}{i}": "int64" for x, i in product("ab", range(12))}, "c": "int64"}
    matcher = cm.Matcher.build({1: "c >= 0 AND " + " AND ".join(clauses)}, schema, index=OPEN)
    assert len(inside.predicates(matcher).owner) == 1
    rng = np.random.default_rng(0)
    columns: dict[str, NDArray[np.int64]] = {name: rng.integers(0, 12, 400) for name in schema}
    columns |= {f"b{i}": rng.integers(0, 3, 400) for i in range(12)}
    absent = {name: rng.random(400) < (0.2 if name[0] == "b" else 0) for name in schema}
    true = np.ones(400, bool)
    for i in range(12):
        a, b, c = columns[f"a{i}"], columns[f"b{i}"], columns["c"]
        true &= ((a >= i) & (a <= i + 3)) | (b != 1) | absent[f"b{i}"] | (c == i) | (c == i + 20)
    assert 0 < true.sum() < 400
    events = pa.table({name: pa.array(column, mask=absent[name]) for name, column in columns.items()})
    assert [row for row, _ in pairs(matcher.match(events))] == np.flatnonzero(true).tolist()
    assert matcher.counters(events)["candidates"] == 0


def test_steps_of_a_program_without_rows_are_passed_over() -> None:
    """Also those of several intervals, and all steps once no row waits for any."""
    text = (
        "d = {0} AND (a = 1 OR b IN (1, 5, 9) OR c = 2) AND (b NOT IN (2, 4, 8) OR e = 3) AND (c = 1 OR b IN (0, 3, 7))"
    )
    kind = cm.index("bitslice", dnf_budget=1)
    matcher = cm.Matcher.build({i: text.format(i) for i in range(3)}, dict.fromkeys("abcde", "int64"), index=kind)
    assert len(inside.segment(matcher).predicates.jump) > 0
    values = product([1, 2], [0, 1, 2, 4, 7], [1, 2, 3], [0, 1, 5], [3, 4])
    events = [dict(zip("abcde", some, strict=True)) for some in values]
    wanted = [
        [e["d"]] if e["d"] < 3 and (e["a"] == 1 or e["b"] in (1, 5, 9) or e["c"] == 2)
        and (e["b"] not in (2, 4, 8) or e["e"] == 3) and (e["c"] == 1 or e["b"] in (0, 3, 7)) else []
        for e in events
    ]  # fmt: skip
    assert [matcher.match_one(event) for event in events] == wanted
    assert matcher.match_lists(pa.Table.from_pylist(events)).to_pylist() == wanted


def test_a_subscription_of_several_conjunctions_is_found_once() -> None:
    texts = {
        1: "a = 1 OR b = 1 OR c > 0",
        2: "array_contains(t, 1) OR array_contains(t, 2)",
        3: "a IN (1, 2) OR a BETWEEN 2 AND 9",
    }
    matcher = cm.Matcher.build(texts, {"a": "int64", "b": "int64", "c": "int64", "t": pa.list_(pa.int64())}, index=OPEN)
    events = pa.table({"a": [1, 2] * 100, "b": [1, 0] * 100, "c": [1, 0] * 100, "t": [[1, 2, 1], [3]] * 100})
    assert pairs(matcher.match(events)) == [(i, id) for i in range(200) for id in ([3] if i % 2 else [1, 2, 3])]
    assert matcher.count(events).tolist() == [3, 1] * 100
    assert pairs(matcher.match(events)) == pairs(matcher.match(events))


@pytest.mark.parametrize(("sizes", "longest"), [([], 0), ([1], 1), ([3], 3), ([4, 1, 2], 4), ([1, 2, 5], 5)])
def test_the_posting_with_most_entries(sizes: list[int], longest: int) -> None:
    ops = [LAST if i == size - 1 else 0 for size in sizes for i in range(size)]
    assert longest_rest(freeze_view(np.array(ops, np.uint8))) == longest


def test_long_lists_of_values() -> None:
    """Up to some length an IN is posted once for each value, beyond it from its lowest to its
    highest.
    """
    values = {1: range(0, 20, 2), 2: range(0, 200, 2)}
    texts = {id: f"a IN ({', '.join(map(str, some))}) AND b = 1" for id, some in values.items()}
    values[3] = range(1, 200, 2)
    texts[3] = f"a IN ({', '.join(map(str, values[3]))})"  # has no other access predicate
    matcher = cm.Matcher.build(texts, {"a": "int64", "b": "int64"}, index=OPEN)
    events = pa.table({"a": range(300), "b": [1, 1, 0] * 100})
    wanted = [(i, id) for i in range(300) for id, some in values.items() if i in some and (i % 3 != 2 or id == 3)]
    assert pairs(matcher.match(events)) == wanted


@pytest.mark.parametrize("batch_rows", [1, 70])
def test_ranges_of_all_widths_for_rows_that_are_not_sorted(batch_rows: int) -> None:
    """So many ranges, and so few rows, that looking at some for each row is cheaper than
    admitting all of them.
    """
    rng = np.random.default_rng(3)
    low, width = rng.integers(0, 1000, 600), rng.integers(0, 500, 600) // rng.integers(1, 100, 600)
    texts = {i: f"a BETWEEN {low[i]} AND {low[i] + width[i]}" for i in range(600)}
    matcher = cm.Matcher.build(texts, {"a": "int64"}, index=OPEN, options=cm.Options(batch_rows=batch_rows))
    a = rng.integers(0, 1100, 70)
    wanted = np.argwhere((low <= a[:, None]) & (a[:, None] <= low + width))
    assert pairs(matcher.match(pa.table({"a": a}))) == [tuple(pair) for pair in wanted.tolist()]


def test_bins_have_as_many_ends() -> None:
    rng = np.random.default_rng(1)
    ends = rng.integers(0, 20, 5000)
    ends[2000] = 5000  # a literal that many use gets its bin's beginning
    bin_of, starts = np.empty(5000, np.uint8), np.empty(5000, np.uint8)
    cut_bins(np.array([0, 5000]), ends, np.array([40]), bin_of, starts)
    assert starts.sum() == 40 and starts[0] == 1 and starts[2000] == 1
    assert np.array_equal(np.cumsum(starts), bin_of)
    inside = np.bincount(bin_of, np.where(starts, 0, ends))  # of predicates that are undecided for a value in the bin
    assert inside.max() <= 2 * ends.sum() / 40


def test_a_sample_of_events_finds_better_access_predicates() -> None:
    """Every event has a = 1, which is the narrower predicate to who has not seen events."""
    rng = np.random.default_rng(2)
    low = rng.integers(0, 900, SIZE)
    table = cm.PredicateTable(
        pa.table(
            {
                "id": np.repeat(np.arange(SIZE), 2),
                "attribute": ["a", "b"] * SIZE,
                "op": ["=", "between"] * SIZE,
                "operands": [
                    x for i in range(SIZE) for x in ([int(rng.integers(1, 3))], [int(low[i]), int(low[i]) + 700])
                ],
            }
        )
    )
    events = pa.table({"a": np.ones(ROWS, np.int64), "b": rng.integers(0, 2000, ROWS)})
    schema = {"a": "int64", "b": "int64"}
    blind = cm.Matcher.build(table, schema, index=OPEN)
    seeing = cm.Matcher.build(table, schema, index=OPEN, sample=events.slice(0, 100))
    assert pairs(blind.match(events)) == pairs(seeing.match(events))
    assert seeing.counters(events)["conjunctions"] < 0.7 * blind.counters(events)["conjunctions"]


def test_a_full_sink_says_what_it_needs() -> None:
    matcher, events = built(batch_rows=4096)
    with patch.object(colmatch.matching.worker, "FIRST_CAPACITY", 1):
        worker = Worker()
    match = inside.segment(matcher).index.kind.match
    calls = 0

    def counted(*arguments: Any) -> int:
        nonlocal calls
        calls += 1
        return match(*arguments)

    (batch,) = events.combine_chunks().to_batches()
    with inside.with_step(matcher, "match", counted):
        total = sum(len(piece.id) for piece in inside.run(worker, matcher, batch))
    assert total == matcher.count(events).sum() > 1
    assert calls == 2


def test_a_program_is_sound_in_a_file(tmp_path: Path) -> None:
    texts = {1: "(a = 1 OR b = 1) AND (c = 1 OR b = 2) AND (a = 2 OR c = 3)", 2: "a = 3"}
    matcher = cm.Matcher.build(texts, dict.fromkeys("abc", "int64"), index=cm.index("bitslice", dnf_budget=1))
    matcher.save(tmp_path / "rules.cm")
    opened = cm.Matcher.open(tmp_path / "rules.cm")
    assert opened.match_one({"a": 1, "b": 2, "c": 3}) == [1]
    assert opened.match_one({"a": 1, "b": 1, "c": 3}) == []
