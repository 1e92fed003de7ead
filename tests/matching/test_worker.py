"""What a worker does once for a batch, and how it calls kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import inside
import pyarrow as pa
import pytest
from contract import NO_JIT, pairs

import colmatch as cm
from colmatch.kernels.sink import group_keys, order_by_row, order_groups, order_ids
from colmatch.kernels.transpose import code_rows, to_labels, transpose
from colmatch.kinds.registry import find
from colmatch.matching import worker
from colmatch.updates import policy

EVENTS = pa.table({"a": [1, 2, 3]})
MOST_CALLS = 370, 350, 310, 310, 370  # and returns, of a small batch: match, match_lists, count, exists, hits


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The kernels that were called as ``entry`` says."""
    kernels: list[Any] = []

    def entry(kernel: Any) -> Callable[..., Any]:
        return lambda *arguments: kernels.append(kernel) or kernel(*arguments)

    monkeypatch.setattr(worker, "entry", entry)
    return kernels


def test_kernels_are_called_without_a_look_at_types(called: list[Any]) -> None:
    """It takes 20 us for 60 arrays, which a match of one event would wait for."""
    matcher = cm.Matcher.build({1: "a >= 1"}, {"a": "int64"}, index="bitslice")
    matcher.insert({2: "a >= 2"})
    assert pairs(matcher.match(EVENTS)) == [(0, 1), (1, 1), (1, 2), (2, 1), (2, 2)]
    frozen, growing = find("bitslice").match, find("scan").match
    assert called == [transpose, code_rows, frozen, code_rows, to_labels, growing, group_keys, order_groups]


def test_any_order_spares_the_sort(called: list[Any]) -> None:
    """A worker that was idle does as the options say now."""
    matcher = cm.Matcher.build({i: f"a >= {-i}" for i in range(50)}, {"a": "int64"}, index="bitslice")
    for order in ("subscription", "any", "subscription"):
        called.clear()
        matcher.options = cm.Options(order=order)
        [found] = matcher.match_lists(pa.table({"a": [0]})).to_pylist()
        assert sorted(found) == list(range(50))
        assert (found == sorted(found)) == (order_groups in called) == (order == "subscription")


def test_only_ids_with_gaps_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    tables: list[tuple[int, int]] = []  # ids by number, and the first one

    def entry(kernel: Any) -> Callable[..., Any]:
        ids = {order_groups: 7, order_ids: 3}.get(kernel)
        note = (lambda given: tables.append((len(given[ids]), given[ids + 1]))) if ids else (lambda given: None)
        return lambda *arguments: note(arguments) or kernel(*arguments)

    monkeypatch.setattr(worker, "entry", entry)
    for order in ("subscription", "any"):
        for ids, table in (([5, 6, 7], (0, 5)), ([5, 7, 8], (3, 0))):
            tables.clear()
            matcher = cm.Matcher.build(dict.fromkeys(ids, "a > 0"), {"a": "int64"}, options=cm.Options(order=order))
            assert pairs(matcher.match(EVENTS)) == [(event, id) for event in range(3) for id in ids]
            assert tables == [table]


def test_hits_order_no_pairs(called: list[Any]) -> None:
    """Only events that lack a required column need the order of rows, to be left out."""
    rules = {i: f"a >= {i % 3}" if i % 2 else "b = 1" for i in range(50)}
    events = pa.table({"a": [0, None, 1, 2], "b": [9, 1, 1, 9]})
    for is_nullable in (True, False):
        schema = pa.schema([pa.field("a", pa.int64(), nullable=is_nullable), ("b", pa.int64())])
        matcher = cm.Matcher.build(rules, schema, index="bitslice", options=cm.Options(order="any"))
        for ask in (matcher.hits, lambda events, matcher=matcher: matcher.report(events, noisy=1).rules):
            called.clear()
            table = ask(events)
            counts = dict(zip(table[0].to_pylist(), table[1].to_pylist(), strict=True))
            assert counts == {i: 3 - i % 3 if i % 2 else 1 + is_nullable for i in range(50)}
            assert (order_by_row in called) == (not is_nullable) and order_groups not in called


def test_hits_of_a_worker_outlive_its_next_batch() -> None:
    """Each thread goes on with another batch before the numbers of the last one are counted."""
    matcher = cm.Matcher.build({i: f"a = {i}" for i in range(64)}, {"a": "int64"}, index="bitslice")
    matcher.options = cm.Options(batch_rows=1, threads=2)
    hits = matcher.hits(pa.table({"a": [row % 64 for row in range(640)]}))
    assert hits["events"].to_pylist() == [10] * 64


def test_all_rows_of_a_table_see_one_version() -> None:
    chunks = EVENTS.to_batches(1)
    for events, seen in (
        (pa.Table.from_batches(chunks), 1),
        (pa.RecordBatchReader.from_batches(EVENTS.schema, chunks), 3),
    ):
        matcher = cm.Matcher.build({0: "a >= 1"}, {"a": "int64"}, options=cm.Options(batch_rows=1, threads=1))
        counts = []
        for found in matcher.match_batches(events):
            counts.append(found.num_rows)
            matcher.insert({len(counts): "a >= 1"})
        assert counts == [1, min(seen, 2), seen]


def test_a_larger_batch_has_memory_of_its_size() -> None:
    """A plan has the memory of kernels, which depends on the number of rows."""
    matcher = cm.Matcher.build({1: "a >= 1"}, {"a": "int64"}, index="bitslice")
    assert matcher.count(EVENTS).tolist() == [1, 1, 1]
    (idle,), version = inside.idle(matcher), inside.version(matcher)
    before = idle._plan_of(version).parts[0].scratch
    idle._make_room(10_000, 10_000)
    after = idle._plan_of(version).parts[0].scratch
    assert after is not before and after is idle.scratch_of(version.segments[0])
    assert matcher.count(pa.table({"a": [1] * 10_000})).tolist() == [1] * 10_000


def test_rows_are_placed_once_for_segments_with_the_same_attributes(called: list[Any]) -> None:
    """Only codes are theirs alone; the next batch has other rows."""
    matcher = cm.Matcher.build({1: "a >= 1"}, {"a": "int64", "b": "int64"}, index="bitslice")
    with patch.object(policy, "GROWING_MOST", 0), patch.object(policy, "choose_segments", return_value=None):
        matcher.insert({2: "a >= 2"})
        matcher.insert({3: "a >= 3"})
        matcher.insert({4: "b IS NULL AND a >= 1"})
    events = EVENTS.append_column("b", pa.nulls(3, pa.int64()))
    for _ in range(2):
        called.clear()
        assert matcher.count(events).tolist() == [2, 3, 4]
        assert called.count(code_rows) == 4 and called.count(transpose) == 2


@pytest.mark.skipif(NO_JIT, reason="kernels are calls of Python")
def test_a_small_batch_takes_few_calls_of_python() -> None:
    """A profile counts calls and returns, which take most of the time of such a batch."""

    def counted(columns: int) -> list[int]:
        names = [f"c{i}" for i in range(columns)]
        rules = {i: f"{name} = {i % 7} AND {names[i - 1]} BETWEEN {i % 3} AND 9" for i, name in enumerate(names)}
        options = cm.Options(threads=1)
        matcher = cm.Matcher.build(rules, dict.fromkeys(names, "int64"), index="bitslice", options=options)
        batch = pa.record_batch({name: [(row + i) % 10 for row in range(10)] for i, name in enumerate(names)})
        assert matcher.match(batch).num_rows
        calls = matcher.match, matcher.match_lists, matcher.count, matcher.exists, matcher.hits
        return [inside.count_calls(lambda call=call: call(batch)) for call in calls]  # type: ignore[misc]

    few = counted(10)
    assert [number <= most for number, most in zip(few, MOST_CALLS, strict=True)] == [True] * 5, few
    assert counted(200) == few
