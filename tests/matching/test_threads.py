"""Threads: results in order, errors where they belong, nothing left running."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest
from contract import every_kind, pairs
from sizes import SMALL

import colmatch as cm
from colmatch.matching import threads

SCHEMA = {"age": "int64"}
TEXTS = {i: f"age >= {i * 10}" for i in range(20)}
EVENTS = pa.table({"age": [i % 200 for i in range(5000)]})


@every_kind
@pytest.mark.parametrize("threads", [2, 5])
@pytest.mark.parametrize("batch_rows", [7, 1000, 8192])
def test_threads_find_the_same_in_order(kind: str, threads: int, batch_rows: int) -> None:
    one = cm.Matcher.build(TEXTS, SCHEMA, index=kind, options=cm.Options(threads=1))
    many = cm.Matcher.build(TEXTS, SCHEMA, index=kind, options=cm.Options(threads=threads, batch_rows=batch_rows))
    events = EVENTS.slice(0, 250 if SMALL else 5000)
    assert pairs(many.match(events)) == pairs(one.match(events))
    assert many.count(events).tolist() == one.count(events).tolist()
    assert [sorted(some) for some in many.match_lists(events).to_pylist()] == [
        sorted(some) for some in one.match_lists(events).to_pylist()
    ]


def unseen(batches: list[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, None]]:
    return ((batch, None) for batch in batches)


def test_batches_are_matched_in_threads() -> None:
    names: set[str] = set()
    barrier = threading.Barrier(2, timeout=30)

    def task(batch: pa.RecordBatch, seen: None, offset: int) -> Iterator[int]:
        names.add(threading.current_thread().name)
        if offset < 2:
            barrier.wait()  # both at once, or never
        yield offset

    batches = pa.table({"age": range(6)}).to_batches(max_chunksize=1)
    assert list(threads.run_in_order(unseen(batches), 2, task)) == [0, 1, 2, 3, 4, 5]
    assert len(names) == 2 and all(name.startswith("colmatch") for name in names)


def test_a_single_large_batch_is_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def task(batch: pa.RecordBatch, seen: None, offset: int) -> Iterator[int]:
        sizes.append(batch.num_rows)
        yield offset

    assert list(threads.run_in_order(unseen(EVENTS.to_batches()), 2, task)) == [0, 2500]
    assert list(threads.run_in_order(unseen(EVENTS.slice(0, 2000).to_batches()), 2, task)) == [0]
    assert sorted(sizes) == [2000, 2500, 2500]


def test_an_error_in_a_thread_reaches_the_caller() -> None:
    matcher = cm.Matcher.build(TEXTS, SCHEMA, options=cm.Options(threads=2, batch_rows=10))
    good, bad = EVENTS.slice(0, 50), pa.table({"age": ["x"] * 50})
    with pytest.raises(cm.EventError, match="age"):
        matcher.match(bad)
    assert len(matcher.match(good)) > 0


def test_results_may_be_left_half_read() -> None:
    matcher = cm.Matcher.build(TEXTS, SCHEMA, options=cm.Options(threads=2, batch_rows=10))
    for _ in range(3):
        results = matcher.match_batches(EVENTS)
        next(results)
        del results
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("colmatch_")]
    assert pairs(matcher.match(EVENTS)) == pairs(cm.Matcher.build(TEXTS, SCHEMA).match(EVENTS))


def test_threads_are_checked() -> None:
    with pytest.raises(cm.OptionError, match=r"Options\(threads=-1\): a whole number from 0 to 1024"):
        cm.Options(threads=-1)
    assert threads.cores(3) == 3 and threads.cores(0) >= 1
