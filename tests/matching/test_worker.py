"""What a worker does once for a batch, and how it calls kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from contract import NO_JIT, pairs
from inside import count_calls

import colmatch as cm
from colmatch.kernels.sink import group_keys, order_by_row, order_groups
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


def test_hits_order_no_pairs(called: list[Any]) -> None:
    """Only events that lack a required column need the order of rows, to be left out."""
    rules = {i: f"a >= {i % 3}" for i in range(50)}
    events = pa.table({"a": [0, None, 1, 2]})
    for field, is_ordered in ((pa.field("a", pa.int64()), False), (pa.field("a", pa.int64(), nullable=False), True)):
        matcher = cm.Matcher.build(rules, pa.schema([field]), index="bitslice")
        called.clear()
        hits = matcher.hits(events)
        assert hits["events"].to_pylist() == [3 - i % 3 for i in range(50)]
        assert (order_by_row in called) == is_ordered and order_groups not in called
        report = matcher.report(events, noisy=1)
        assert report.rules["matches"].to_pylist() == hits["events"].to_pylist()


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
        return [count_calls(lambda call=call: call(batch)) for call in calls]  # type: ignore[misc]

    few = counted(10)
    assert [number <= most for number, most in zip(few, MOST_CALLS, strict=True)] == [True] * 5, few
    assert counted(200) == few
