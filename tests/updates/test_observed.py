"""Events that were matched take the place of the sample, if the options say so."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random, random, seed
from typing import Any

import inside
import numpy as np
import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.events import observed as window
from colmatch.events.observed import EVERY, LEAST_EVENTS, EventWindow
from colmatch.events.sample import PART

SCHEMA = pa.schema([("a", pa.int64()), ("x", pa.int64())])
RULES = {i: f"a BETWEEN 0 AND {400 + i % 10} AND x = {i % 3}" for i in range(300)} | {-1: "a = 1000", -2: "a = 0"}
INDEX = cm.index("bestar", capacity=120, ranking="feedback")


def events(rng: Random, low: bool, rows: int = 8192) -> pa.Table:
    """Makes events of which nearly all have a low value of ``a``, or nearly all a high one."""
    of = [rng.random() < 0.02 for _ in range(rows)]
    a = [rng.randrange(400) if one != low else rng.randrange(600, 1000) for one in of]
    return pa.table({"a": a, "x": [rng.randrange(3) for _ in of]}, SCHEMA)


def built(observe: int, rng: Random, **more: Any) -> cm.Matcher:
    options = cm.Options(observe=observe, batch_rows=1024)
    return cm.Matcher.build(RULES, SCHEMA, index=INDEX, options=options, sample=events(rng, low=True), **more)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes events from every batch, so that few events are enough."""
    monkeypatch.setattr(window, "EVERY", 1)


def looked_at(matcher: cm.Matcher, events: pa.Table) -> int:
    counters = matcher.counters(events)
    return counters["conjunctions"] + counters["candidates"]


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("way", ["compact", "merge", "one by one"])
@pytest.mark.parametrize("observe", [4096, 0])
def test_what_was_matched_says_how_it_is_indexed_next(way: str, observe: int) -> None:
    """The index follows events that drift away from the sample, if they are observed."""
    rng = Random(way)
    matcher, later = built(observe, rng), events(rng, low=False)
    before = looked_at(matcher, later)
    if way == "one by one":
        for i in range(LEAST_EVENTS + PART):
            matcher.match(later.slice(i, 1))
    else:
        matcher.match(later)
    assert (matcher.stats()["observed"] > 0) == (observe > 0)
    assert looked_at(matcher, later) == before
    if way == "merge":
        matcher.insert({i + 600: "a = 2000" for i in range(600)})
        assert inside.settled(matcher).merges == 1
    else:
        matcher.compact()
    if observe:
        assert looked_at(matcher, later) < 0.5 * before
    else:
        assert looked_at(matcher, later) > 0.8 * before


@pytest.mark.usefixtures("often")
def test_a_window_forgets_what_came_before() -> None:
    rng = Random(1)
    matcher, now = built(512, rng), events(rng, low=False)
    matcher.match(now)
    matcher.compact()
    few = looked_at(matcher, now)
    matcher.match(events(rng, low=True))
    matcher.compact()
    assert looked_at(matcher, now) > 2 * few
    assert len(inside.sample(matcher)) < 20 * 512 * 2


@pytest.mark.usefixtures("often")
def test_what_was_observed_is_saved(tmp_path: Path) -> None:
    rng = Random(2)
    matcher, now = built(4096, rng), events(rng, low=False)
    matcher.match(now)
    matcher.compact()
    matcher.save(tmp_path / "m")
    again = cm.Matcher.open(tmp_path / "m")
    assert again.options.observe == 4096 and again.stats()["observed"] == 0
    few = looked_at(again, now)
    again.insert({1000: "a = 3"})
    again.compact()
    assert looked_at(again, now) <= few + now.num_rows


@pytest.mark.usefixtures("often")
def test_a_save_has_events_that_a_merge_has_counted(tmp_path: Path) -> None:
    """Of these it has the columns of the schema, and no others."""
    schema, options = {"a": "int64", "used": "string", "named": "string"}, cm.Options(observe=4096)
    matcher = cm.Matcher.build({1: "a = 1 AND used = 'x'"}, schema, index="opindex", options=options)
    texts = {name: [f"a text of {name}"] * 2 * LEAST_EVENTS for name in ("used", "named", "other")}
    for _ in range(LEAST_EVENTS // PART):
        matcher.count(pa.table({"a": range(2 * LEAST_EVENTS), **texts}))
    for counted in (False, True):
        matcher.save(tmp_path / "m")
        saved = (tmp_path / "m").read_bytes()
        assert [f"a text of {name}".encode() in saved for name in texts] == [counted, counted, False]
        matcher.compact()


@pytest.mark.usefixtures("often")
def test_events_that_cannot_be_copied_are_matched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> Any:
        raise pa.ArrowNotImplementedError

    matcher = built(4096, Random(7))
    monkeypatch.setattr(EventWindow, "_copy_events", refused)
    assert matcher.count(pa.table({"a": [0], "x": [0]})).tolist() == [101]
    assert matcher.stats()["observed"] == 0


def test_a_window_of_a_few_events_forgets_too() -> None:
    """One of fewer than are taken together keeps those that were taken last."""
    observed = EventWindow(["a"])
    for i in range(20):
        observed.note(pa.record_batch({"a": [i] * EVERY * PART}), 10)
    assert len(observed) == PART
    assert sampled(observed, 10)["a"].to_pylist() == [19] * 10


def test_events_without_any_column_of_an_expression_are_none() -> None:
    observed = EventWindow(["a"])
    for _ in range(20):
        observed.note(pa.record_batch({"b": range(EVERY * PART)}), 4096)
    assert len(observed) == 0


@pytest.mark.usefixtures("often")
def test_a_few_events_do_not_hold_the_batch_that_they_came_in() -> None:
    observed, before = EventWindow(["a"]), pa.total_allocated_bytes()
    batch = pa.record_batch({"a": pa.array(range(100_000))})
    observed.note(batch.slice(5, 5), 4096)
    del batch
    assert len(observed) == 5 and pa.total_allocated_bytes() - before < 10_000


@pytest.mark.usefixtures("often")
def test_what_cannot_be_kept_takes_no_samples_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a single event is too large: an empty stream would be a sample of nothing."""
    observed = EventWindow(["a"])
    for _ in range(8):
        observed.note(pa.record_batch({"a": range(PART)}), 4096)
    assert observed.sample(4096) is not None
    monkeypatch.setattr(window, "stream_of", lambda parts: np.empty(0, np.uint8))
    assert observed.sample(4096) is None


@pytest.mark.usefixtures("often")
def test_an_explicit_sample_counts_more() -> None:
    rng = Random(3)
    matcher, now = built(4096, rng), events(rng, low=False)
    matcher.match(events(rng, low=True))
    before = looked_at(matcher, now)
    matcher.compact(sample=now)
    assert looked_at(matcher, now) < 0.5 * before


@pytest.mark.usefixtures("often")
def test_others_may_be_set_later_and_diagnosis_is_not_observed() -> None:
    rng = Random(4)
    matcher, now = built(0, rng), events(rng, low=False)
    matcher.options = cm.Options(observe=64, batch_rows=1024)
    matcher.counters(now)
    matcher.reasons(now)
    assert matcher.stats()["observed"] == 0
    for _ in matcher.match_batches(now):
        pass
    assert 64 <= matcher.stats()["observed"] <= 2 * 64
    with pytest.raises(cm.OptionError, match="observe"):
        cm.Options(observe=4097)


@pytest.mark.usefixtures("often")
def test_events_that_are_ranges_are_not_observed() -> None:
    """They have no value of an attribute, which would count as NULL."""
    rng = Random(5)
    matcher, now = built(4096, rng), events(rng, low=False)
    ends = pa.table({"low": now["a"], "high": now["a"], "x": now["x"]})
    found = matcher.count(ends, ranges={"a": ("low", "high")}).tolist()
    assert matcher.stats()["observed"] == 0
    assert matcher.count(now).tolist() == found and matcher.stats()["observed"] > 0


def taken(batches: int, size: int) -> list[list[int]]:
    """Returns which rows of so many batches are taken, for each that is looked at."""
    found, observed = [], EventWindow(["a"])
    batch = pa.record_batch({"a": range(size)})
    for _ in range(batches):
        observed._kept = (), ()
        observed.note(batch, 4096)
        found.append([row for parts in observed._kept for part in parts for row in part.events["a"].to_pylist()])
    return [rows for rows in found if rows]


@pytest.mark.parametrize("size", [1, 5, 64, 65, 1024, EVERY * PART])
def test_each_event_is_taken_as_often_whatever_its_batch(size: int) -> None:
    """Few batches are looked at, of which up to 64 events are taken."""
    batches = 100 * EVERY * PART // max(size, PART)
    rows = taken(batches, size)
    assert 80 <= len(rows) <= 120
    assert {len(each) for each in rows} == {min(size, PART)}
    assert 0.8 < sum(map(len, rows)) * EVERY / (batches * size) < 1.2


def test_of_larger_batches_64_are_taken() -> None:
    """The rows have even distances, and any row may be among them."""
    size = 2 * EVERY * PART
    rows = taken(1000, size)
    assert len(rows) == 1000
    for each in rows[:20]:
        assert {b - a for a, b in pairwise(each)} == {size // PART} and 0 <= each[0] < size // PART
    assert len({row for each in rows for row in each}) > 0.9 * size
    assert {row for each in taken(20_000, 65) for row in each} == set(range(65))


def test_nothing_is_taken_that_nobody_asked_for() -> None:
    """Other columns, and the rest of a sliced batch, are not kept in memory."""
    observed, table = EventWindow(["a"]), pa.table({"A": range(100_000), "other": range(100_000)})
    for _ in range(EVERY * 10):
        observed.note(table.to_batches()[0].slice(0, 0), 4096)
        observed.note(table.to_batches()[0], 0)
    assert len(observed) == 0
    held = pa.total_allocated_bytes()
    for start in range(0, 99_000, 10):
        observed.note(table.to_batches()[0].slice(start, 10), 4096)
    assert len(observed) > LEAST_EVENTS and pa.total_allocated_bytes() - held < 30 * len(observed)
    seen = sampled(observed)
    assert seen.column_names == ["A"] and seen["A"][-1].as_py() > 80_000


def test_what_a_caller_draws_is_the_same() -> None:
    """The window has random numbers of its own; in one thread, they are the same each time."""
    rows = []
    for _ in range(2):
        seed(1)
        observed, batch = EventWindow(["a"]), pa.record_batch({"a": range(200)})
        for _ in range(500):
            observed.note(batch, 4096)
        rows.append((len(observed), random()))
    assert rows[0] == rows[1] and rows[0][0] > 0
    seed(1)
    assert random() == rows[0][1]


def sampled(observed: EventWindow, most: int = 4096) -> pa.Table:
    """Returns the events of a sample, none where there is no sample."""
    kept = observed.sample(most)
    return pa.table({}) if kept is None else pa.ipc.open_stream(pa.py_buffer(kept)).read_all()


def noted(observed: EventWindow, table: pa.Table, size: int = PART, most: int = 4096) -> None:
    """Matches events in batches of a size."""
    for start in range(0, table.num_rows, size):
        observed.note(table.slice(start, size).combine_chunks().to_batches()[0], most)


@pytest.mark.usefixtures("often")
def test_columns_that_came_later_are_null_before() -> None:
    observed = EventWindow(["a", "b"])
    one, both = pa.table({"a": range(640)}), pa.table({"a": range(640), "b": range(640)})
    for table in (one, both):
        noted(observed, table)
    assert sampled(observed)["b"].to_pylist() == [None] * 640 + [*range(640)]


TEXTS = pa.table({"a": [str(i) for i in range(1280)]})
WHOLE = pa.table({"a": range(1280)})
OTHERS = pa.table({"a": [i / 2 for i in range(1280)], "b": [True] * 1280})


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("size", [1, PART])
def test_of_events_of_several_types_those_count_that_most_are_like(size: int) -> None:
    """One batch of another type does not take the place of all others; many do."""
    observed = EventWindow(["a", "b"])
    noted(observed, WHOLE.slice(0, 1280 - size), size)
    noted(observed, TEXTS.slice(0, size))
    assert sampled(observed)["a"].to_pylist() == [*range(1280 - size)]
    noted(observed, pa.table({"b": [True] * PART}))  # which has no column of another type
    assert sampled(observed)["a"].to_pylist() == [*range(1280 - size)] + [None] * PART
    noted(observed, TEXTS.slice(0, 1280 - size), size)
    assert sampled(observed)["a"].type == pa.string()  # of as many, the latest
    noted(observed, WHOLE.slice(0, PART), size)
    assert sampled(observed)["a"].type == pa.int64()


@pytest.mark.usefixtures("often")
def test_too_few_events_of_one_type_are_no_sample() -> None:
    observed = EventWindow(["a", "b"])
    for table in (WHOLE, TEXTS, OTHERS):
        noted(observed, table.slice(0, LEAST_EVENTS - PART))
    assert len(observed) > 2 * LEAST_EVENTS and observed.sample(4096) is None
    noted(observed, WHOLE.slice(0, PART))
    assert sampled(observed).num_rows == LEAST_EVENTS


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize(("size", "bytes"), [(1, 5000), (3, 5000), (PART, 5000), (200, 5000), (1, 50_000)])
def test_a_window_has_so_many_bytes(monkeypatch: pytest.MonkeyPatch, size: int, bytes: int) -> None:
    """The oldest of large events give way before there are as many as were asked for."""
    monkeypatch.setattr(window, "MOST_BYTES", most := 1 << 20)
    observed, held, largest = EventWindow(["a"]), pa.total_allocated_bytes(), 0
    for start in range(0, 2000, size):
        made = pa.record_batch({"a": [f"{start + i:05}" * (bytes // 5) for i in range(size)]})
        observed.note(made, 4096)
        del made
        largest = max(largest, pa.total_allocated_bytes() - held)
    assert 0.5 * most < largest < 1.1 * most
    assert len(observed) < LEAST_EVENTS and observed.sample(4096) is None
    kept = sampled(observed, 16)["a"].to_pylist()
    if size <= PART:
        assert [int(text[:5]) for text in kept] == [*range(start + size - 16, start + size)]
    assert len(kept) == 16 and kept[0] > "018"
    observed.note(pa.record_batch({"a": ["x" * (most + 1)]}), 4096)
    assert sampled(observed, 16)["a"].to_pylist() == kept


@pytest.mark.usefixtures("often")
def test_a_sample_has_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns that few events have are NULL in all others, and take room there."""
    names = [f"x{i}" for i in range(50)]
    observed, wide = EventWindow(["a", *names]), pa.table({name: range(2 * PART) for name in ["a", *names]})
    monkeypatch.setattr(window, "MOST_BYTES", most := 8 * len(names) * 640)
    noted(observed, WHOLE)
    assert sampled(observed).num_rows == 1280
    noted(observed, wide)
    seen = sampled(observed)
    assert LEAST_EVENTS <= seen.num_rows < 640 and seen.nbytes <= most
    assert (
        seen["a"].to_pylist()[-PART:] == [*range(PART, 2 * PART)] and seen["x1"].null_count == seen.num_rows - 2 * PART
    )
    monkeypatch.setattr(window, "MOST_BYTES", most // 4)
    assert observed.sample(4096) is None


WORDS = [f"one of very many words, number {i}" for i in range(1000)]
HOLDING = {
    pa.dictionary(pa.int32(), pa.string()): WORDS,
    pa.string_view(): WORDS,
    pa.run_end_encoded(pa.int32(), pa.string()): WORDS,
    pa.list_(pa.string_view()): [[word, "x"] for word in WORDS],
    pa.list_(pa.dictionary(pa.int32(), pa.string())): [[word, "x"] for word in WORDS],
    pa.list_view(pa.string()): [[word, "x"] for word in WORDS],
}


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("type", HOLDING, ids=str)
@pytest.mark.parametrize("size", [PART // 2, 1000])
def test_a_few_values_do_not_hold_all_words_of_their_column(type: pa.DataType, size: int) -> None:
    """Nor is there a type that only small batches can have."""
    observed, held = EventWindow(["a", "b"]), pa.total_allocated_bytes()
    for _ in range(2 * LEAST_EVENTS // min(size, PART)):
        made = pa.record_batch({"other": range(1000), "b": range(1000), "a": pa.array(HOLDING[type], type)})
        observed.note(made.slice(0, size), 4096)
        del made
    assert len(observed) == 2 * LEAST_EVENTS and pa.total_allocated_bytes() - held < 100 * len(observed)
    seen = sampled(observed)
    assert [HOLDING[type][b] for b in seen["b"].to_pylist()] == seen["a"].to_pylist()


def test_what_the_rows_of_a_data_frame_are_is_not_held() -> None:
    """It differs from batch to batch, and would count as another type of events."""
    observed = EventWindow(["a"])
    for i in range(EVERY * 5):
        observed.note(pa.record_batch({"a": [i] * PART}).replace_schema_metadata({"pandas": str(i)}), 4096)
    assert sampled(observed).num_rows > LEAST_EVENTS and sampled(observed).schema.metadata is None
