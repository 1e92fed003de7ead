"""Updates and batches at the same time; updates that fail; what they cost; what an index
estimates.
"""

from __future__ import annotations

import pickle
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import inside
import numpy as np
import pyarrow as pa
import pytest
from contract import every_kind, growing_kind, own_inserts, pairs
from installed import needs
from sizes import SMALL
from workload import Workload

import colmatch as cm
from colmatch.events import sample
from colmatch.kinds.registry import KINDS, find
from colmatch.matching import worker
from colmatch.updates import growing, policy

SCHEMA = {"a": "int64", "s": "string"}


@every_kind
@pytest.mark.parametrize("most", [3, 1024])
def test_a_batch_sees_all_of_an_update_or_nothing(kind: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each update moves ten subscriptions from one state to another; every row of every batch
    must find ten of one state.

    Each makes a segment, which is merged soon, or the growing one takes them all.
    """
    monkeypatch.setattr(policy, "GROWING_MOST", most)
    monkeypatch.setattr(policy, "DELETED_LEAST", 10)
    rounds, size = (5, 20) if SMALL else (60, 400)
    matcher = cm.Matcher.build(
        dict.fromkeys(range(10), "a >= 0"), SCHEMA, index=kind, options=cm.Options(batch_rows=50, threads=2)
    )
    events = pa.table({"a": [i % 7 for i in range(size)], "s": ["x"] * size})
    seen: list[set[int]] = []
    stop = threading.Event()
    failed: list[BaseException] = []

    def ask() -> None:
        try:
            while not stop.is_set():
                for row in matcher.match_lists(events).to_pylist():
                    assert len(row) == 10 and len({id // 10 for id in row}) == 1, row
                seen.append({row[0] // 10})
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(1, rounds):
        # As one step: the old ones turn false, new ones come.
        matcher.upsert(
            dict.fromkeys(range(10 * i - 10, 10 * i), "a < 0")
            | dict.fromkeys(range(10 * i, 10 * i + 10), f"a >= 0 AND s <> 'r{i}'")
        )
    stop.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert not failed
    assert inside.settled(matcher).merges or most > 3
    (left,) = matcher.match_lists(events.slice(0, 1)).to_pylist()
    assert sorted(left) == list(range(10 * rounds - 10, 10 * rounds))


@every_kind
@pytest.mark.parametrize("change", ["insert", "delete", "replace", "merge"])
def test_a_batch_in_parts_is_not_disturbed(kind: str, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its results are taken one row at a time, with updates in between: it goes on as it began.

    Others see the updates.
    """
    monkeypatch.setattr(worker, "FIRST_CAPACITY", 1)
    monkeypatch.setattr(worker, "LARGE_CAPACITY", 1)
    texts = {f"id {i}": f"a >= {i % 3} AND s = 'x'" for i in range(40)}
    matcher = cm.Matcher.build(texts, SCHEMA, index=kind, options=cm.Options(threads=1))
    events = pa.table({"a": [0, 1, 2, 3, 4, 5, 6], "s": ["x"] * 7})
    matcher.insert({"first": "a = 1"})  # from now on, there is a segment that grows
    before = pairs(matcher.match(events))
    results = matcher.match_batches(events)
    parts = [next(results)]
    if change == "insert":
        for i in range(30):
            matcher.insert({f"new {i}": f"a >= {i % 5} AND s > '{i}'"})
    elif change == "replace":
        matcher.upsert({f"id {i}": f"a > {i} OR s = 'y'" for i in range(20)})
    else:
        matcher.delete(["first", *(f"id {i}" for i in range(30))])
    if change == "merge":
        matcher.compact()
    assert matcher.stats()["merges"] == (change == "merge")
    after = pairs(matcher.match(events))
    assert after != before
    parts += list(results)
    assert len(parts) > 1
    assert pairs(pa.Table.from_batches(parts)) == before
    assert pairs(matcher.match(events)) == after


@every_kind
def test_results_left_unread_hold_what_they_need_and_no_longer(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They hold up no update, and what an update has replaced goes with them."""
    monkeypatch.setattr(worker, "FIRST_CAPACITY", 1)
    monkeypatch.setattr(worker, "LARGE_CAPACITY", 1)
    matcher = cm.Matcher.build(dict.fromkeys(range(5), "a >= 0"), SCHEMA, index=kind, options=cm.Options(threads=1))
    events = pa.table({"a": [1, 2, 3]})
    matcher.match(events)
    results = matcher.match_batches(events)
    next(results)
    replaced = weakref.ref(inside.segment(matcher))
    matcher.delete([0])
    matcher.insert({9: "a = 1"})
    matcher.compact()
    assert replaced() is not None
    del results
    assert replaced() is None
    assert sorted(matcher.match_lists(events)[0].as_py()) == [1, 2, 3, 4, 9]


@every_kind
def test_updates_while_events_are_read(kind: str) -> None:
    """The source of the events changes the matcher, and so that a column is needed that was not."""
    matcher = cm.Matcher.build({1: "a = 1"}, SCHEMA, index=kind, options=cm.Options(batch_rows=1))
    schema = pa.schema([("a", pa.int64()), ("s", pa.string()), *((f"c{i}", pa.int64()) for i in range(9))])

    def batches() -> Any:
        for i in range(4):
            if i == 2:
                matcher.insert({2: "s = 'x'", 3: "s IS NULL"})
            yield pa.RecordBatch.from_pylist([{"a": i % 2, "s": "x"}], schema)

    # The first two batches may have been taken from the source before the first of them was
    # matched.
    found = matcher.match_lists(pa.RecordBatchReader.from_batches(schema, batches())).to_pylist()
    assert sorted(found[3]) == [1, 2] and all(3 not in row for row in found)


@every_kind
@pytest.mark.parametrize("step", ["insert", "delete"])
def test_an_update_that_fails_in_the_index_changes_nothing(kind: str, step: str) -> None:
    matcher = cm.Matcher.build({i: f"a > {i} AND s = 'x{i % 3}'" for i in range(19)}, SCHEMA, index=kind)
    matcher.insert({19: "a > 19 AND s = 'x1'"})  # into a segment that grows
    events = pa.table({"a": [5, 30], "s": ["x1", "x2"]})
    before = pairs(matcher.match(events))
    real = inside.segment(matcher).index.kind

    def failing(*arguments: Any) -> Any:
        getattr(real, step)(*arguments)  # it has done its work by then
        raise MemoryError

    with inside.with_step(matcher, step, failing), pytest.raises(MemoryError):
        matcher.upsert({3: "a > 3 AND s = 'new'", 19: "a = 5", 77: "a = 5"})
    assert pairs(matcher.match(events)) == before
    assert sorted(matcher.ids.to_pylist()) == list(range(20))
    new = {3: "a > 3 AND s = 'x1'", 19: "a > 20", 77: "a = 5"}
    matcher.upsert(new)
    fresh = {i: f"a > {i} AND s = 'x{i % 3}'" for i in range(20)} | new
    assert pairs(matcher.match(events)) == pairs(cm.Matcher.build(fresh, SCHEMA, index=kind).match(events))


@every_kind
def test_gaps_are_closed_when_they_are_many(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "GROWING_MOST", 20)
    monkeypatch.setattr(policy, "DELETED_LEAST", 10)
    monkeypatch.setattr(policy, "SEGMENTS_MOST", 4)
    matcher = cm.Matcher.build({i: f"a > {i} AND a NOT IN ({i + 2}, {i + 9})" for i in range(100)}, SCHEMA, index=kind)
    size = matcher.stats()["arrays"]["predicates.run_lo"]
    assert size and matcher.count(pa.table({"a": [50]}))[0] and inside.idle(matcher)
    for i in range(100, 1000):
        matcher.insert({i: f"a > {i % 100} AND a NOT IN ({i % 100 + 2}, {i % 100 + 9})"})
        matcher.delete([i - 100])
    inside.settled(matcher)
    stats = matcher.stats()
    (idle,) = inside.idle(matcher)
    assert not idle._scratch  # nobody holds what was replaced
    assert stats["merges"] > 3 and stats["gaps"] <= 45 and stats["subscriptions"] == 100 == len(matcher)
    assert len(stats["segments"]) <= 5 and stats["arrays"]["predicates.run_lo"] <= 2.2 * size
    assert stats["conjunctions"] == 100 and stats["predicates"] == 100
    events = pa.table({"a": [50, 2000]})
    assert matcher.count(events).tolist() == [sum(i < 50 and 50 not in (i + 2, i + 9) for i in range(100)), 100]


@every_kind
def test_nothing_is_read_anew_where_nothing_is_new(kind: str) -> None:
    """An update that brings no literal or attribute leaves the reader of events as it is.

    None touches what there is for an older segment.
    """
    matcher = cm.Matcher.build({1: "a = 1 AND s = 'x'", 2: "a = 2"}, SCHEMA, index=kind)
    events = pa.table({"a": [1], "s": ["x"]})
    matcher.match(events)
    (idle,) = inside.idle(matcher)
    reader, oldest = idle._reader, inside.segment(matcher)
    scratch = inside.scratch(idle, matcher)
    matcher.insert({3: "s = 'x' AND a = 2"})
    assert matcher.match_lists(events).to_pylist() == [[1]] and idle._reader is reader
    matcher.insert({5: "a = 7"})
    assert matcher.match_lists(events).to_pylist() == [[1]] and idle._reader is reader
    assert inside.version(matcher).segments[0] is oldest and idle._scratch[oldest][0] is scratch
    matcher.insert({4: "a = 1 AND s < 'y'"})
    assert sorted(matcher.match_lists(events)[0].as_py()) == [1, 4] and idle._reader is not reader
    assert inside.version(matcher).segments[0] is oldest


@growing_kind
def test_labels_last_for_times_that_ascend_below_a_far_end(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody's offers end some day soon, one's never ends."""
    monkeypatch.setattr(policy, "GROWING_MOST", 10**9)
    count = 200 if SMALL else 2000
    index = own_inserts(kind)
    matcher = cm.Matcher.build({}, {"x": "double"}, index=index)
    matcher.insert({-1: "x <= 4e9"})
    with patch.object(growing, "combine", wraps=growing.combine) as spaced_anew:
        matcher.insert({i: f"x <= {1.7e9 + i / 8!r}" for i in range(count)})
        for i in range(count, 2 * count):
            matcher.insert({i: f"x <= {1.7e9 + i / 8!r}"})
    # Kinds that go by a sample begin anew when a segment has grown by half: behind 1 and 2,000.
    begun = 2 if kind in KINDS and find(kind).grows_by_sample(index) else 0
    assert spaced_anew.call_count <= 1 + begun and len(matcher.stats()["segments"]) == 2
    assert matcher.count(pa.table({"x": [1.7e9 + count / 8, 1.7e9 + (2 * count - 1) / 8, 3e9]})).tolist() == [
        count + 1,
        2,
        1,
    ]


@needs("pyspark")
@every_kind
def test_what_spark_was_sent_is_saved_again_after_an_update(kind: str) -> None:
    from colmatch.spark.shipping import _save_version

    matcher = cm.Matcher.build({1: "a = 1"}, SCHEMA, index=kind)
    first, hash = _save_version(matcher)
    assert _save_version(matcher) == (first, hash)
    matcher.insert({2: "a = 2"})
    second, other = _save_version(matcher)
    assert (
        hash != other
        and cm.Matcher.open(first).ids.to_pylist() == [1]
        and cm.Matcher.open(second).ids.to_pylist() == [1, 2]
    )


# What an index estimates


ZIPF = Workload(  # values and attributes of which few are frequent
    subscriptions=400 if SMALL else 8000,
    attributes=60 if SMALL else 400,
    subscription_size=(3, 7),
    event_size=(15, 15),
    attribute_zipf=1.0,
    value_zipf=1.0,
    layout="columns",
)


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few subscriptions are many here."""
    monkeypatch.setattr(policy, "GROWING_MOST", 50)


def looked_at(matcher: cm.Matcher, events: pa.Table) -> int:
    counters = matcher.counters(events)
    return counters["conjunctions"] + counters["predicates"]


@every_kind
def test_grown_from_empty_is_as_good_as_built_at_once(kind: str, early: None) -> None:
    """Frequencies are estimated anew with each merge.

    Those of nothing made opindex look at twenty times as many slots.
    """
    step, events = ZIPF.subscriptions // 40, ZIPF.events(100)
    grown = cm.Matcher.build({}, ZIPF.schema(), index=kind)
    for start in range(0, ZIPF.subscriptions, step):
        grown.insert(ZIPF.predicate_table(start, step))
    once = cm.Matcher.build(ZIPF.predicate_table(), ZIPF.schema(), index=kind)
    inside.settled(grown)
    assert grown.stats()["merges"] >= 1 and len(grown.stats()["segments"]) < 8
    assert pairs(grown.match(events)) == pairs(once.match(events))
    if not SMALL and kind != "auto":
        assert looked_at(grown, events) <= 2 * looked_at(once, events)
    grown.compact()
    assert grown.kind == once.kind and looked_at(grown, events) <= 1.1 * looked_at(once, events)


@every_kind
def test_many_at_once_are_built_and_not_entered_one_by_one(kind: str) -> None:
    matcher = cm.Matcher.build({}, SCHEMA, index=kind)
    matcher.insert({-1: "a = 7"})
    with inside.with_step(matcher, "insert", None.__init__):
        matcher.insert({i: f"a = {i}" for i in range(policy.GROWING_MOST + 1)})
    assert matcher.match_lists(pa.table({"a": [8]})).to_pylist() == [[8]]
    assert inside.segment(matcher).index.kind.name == kind or kind == "auto"


@pytest.mark.parametrize("kind", ["opindex", "propagation"])
@pytest.mark.parametrize("way", ["grow", "open", "pickle"])
def test_merges_remember_what_the_sample_told(kind: str, way: str, early: None, tmp_path: Path) -> None:
    """``often`` is rare among the subscriptions, though every event has it, and 7 is what most
    have.

    Half of the attributes and literals come after the matcher was built.
    """
    texts = {i: f"often = {7 + i % 2} AND seldom{i % 4} = {i % 2} AND s = '{'xyz'[i % 3]}'" for i in range(300)}
    texts |= {1000 + i: f"seldom{i % 4} = {i % 2}" for i in range(2000)}
    schema = {"often": "int64", "s": "string"} | {f"seldom{i}": "int64" for i in range(4)}
    seldom = {f"seldom{j}": pa.array([i % 2 if i % 40 == j else None for i in range(200)]) for j in range(4)}
    events = pa.table({"often": [7] * 200, "s": ["x"] * 200, **seldom, "unknown": pa.nulls(200)})
    once = cm.Matcher.build(texts, schema, index=kind, sample=events)
    blind = cm.Matcher.build(texts, schema, index=kind)
    assert looked_at(once, events) < 0.5 * looked_at(blind, events)
    first = {i: texts[i].replace("seldom3", "seldom1").replace("'z'", "'x'") for i in range(60)}
    matcher = cm.Matcher.build(first, schema, index=kind, sample=events)
    if way == "open":
        matcher.save(tmp_path / "m")
        matcher = cm.Matcher.open(tmp_path / "m")
    elif way == "pickle":
        matcher = pickle.loads(pickle.dumps(matcher))
    matcher.upsert(texts)  # makes a segment of its own
    assert looked_at(matcher, events) <= 1.3 * looked_at(once, events)
    matcher.compact()
    assert matcher.stats()["merges"] and matcher.stats()["arrays"]["sample"] > 0
    assert pairs(matcher.match(events)) == pairs(once.match(events))
    assert looked_at(matcher, events) <= 1.3 * looked_at(once, events)


def test_a_large_sample_is_kept_in_part_and_a_strange_one_is_left_out(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = pa.record_batch({"A": np.arange(100_000), "s": np.arange(100_000), "other": ["x" * 100] * 100_000})
    matcher = cm.Matcher.build({1: "a = 1"}, SCHEMA, index=own_inserts("opindex"), sample=batch)
    kept = pa.ipc.open_stream(pa.py_buffer(inside.sample(matcher))).read_all()
    assert kept.column_names == ["A", "s"] and sample.MOST_EVENTS // 2 < len(kept) <= sample.MOST_EVENTS
    a = kept["A"].to_numpy()
    assert a.min() == 0 and a.max() > 90_000 and matcher.stats()["arrays"]["sample"] < 20 * len(kept)
    # Its column s is not a string, which nobody asked for when the matcher was built.
    with caplog.at_level("WARNING", "colmatch"):
        matcher.insert({i: f"a = {i} AND s = 'x'" for i in range(2, 100)})
        assert "sample" in caplog.text  # the growing segment goes by it, too
        matcher.compact()
    assert matcher.stats()["merges"] == 1
    assert matcher.match_lists(pa.table({"a": [5, 1], "s": ["x", None]})).to_pylist() == [[5], [1]]
    wide = pa.table({"a": [1] * 128, "s": ["x" * (sample.MOST_BYTES // 100)] * 128})
    assert (
        0
        < len(inside.sample(cm.Matcher.build({1: "a = 1"}, SCHEMA, index="propagation", sample=wide)))
        < 1.1 * sample.MOST_BYTES
    )
    monkeypatch.setattr(sample, "MOST_BYTES", 1000)  # less than events that are kept together
    assert not len(inside.sample(cm.Matcher.build({1: "a = 1"}, SCHEMA, index="propagation", sample=batch)))
    lenient = cm.Options(missing_columns="null")
    other = cm.Matcher.build({1: "a = 1"}, SCHEMA, index="propagation", options=lenient, sample=pa.table({"b": [1]}))
    assert len(inside.sample(other)) == 0


def test_ids_of_another_type_while_events_are_read() -> None:
    """An empty matcher takes ids of both types; what has been begun with one type stays so."""
    schema = pa.schema({"a": pa.int64()})

    def events(matcher: cm.Matcher, a: int) -> pa.RecordBatchReader:
        def made() -> Iterator[pa.RecordBatch]:
            yield pa.record_batch({"a": [1]}, schema)
            if not len(matcher):
                matcher.insert({"x": "a = 1"})
            yield pa.record_batch({"a": [a]}, schema)

        return pa.RecordBatchReader.from_batches(schema, made())

    for ask in (cm.Matcher.match, cm.Matcher.match_lists):
        matcher = cm.Matcher.build({}, {"a": "int64"})
        with pytest.raises(cm.SubscriptionError, match="was empty when matching began, with int64 ids, and got string"):
            ask(matcher, events(matcher, 1))
        assert pairs(matcher.match(events(matcher, 1))) == [(0, "x"), (1, "x")]
        matcher = cm.Matcher.build({}, {"a": "int64"})
        assert all(not found for found in ask(matcher, events(matcher, 2)).to_pylist())
