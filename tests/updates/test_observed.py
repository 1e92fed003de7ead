"""Events that were matched take the place of the sample, if the options say so."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random, random, seed
from typing import Any

import inside
import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.events import observed as window
from colmatch.events.observed import EVERY, LEAST, Observed
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
        for i in range(LEAST + PART):
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


def taken(batches: int, size: int) -> list[list[int]]:
    """Returns which rows of so many batches are taken, for each that is looked at."""
    found, observed = [], Observed(["a"])
    batch = pa.record_batch({"a": range(size)})
    for _ in range(batches):
        observed._kept = (), ()
        observed.note(batch, 4096)
        found.append([row for parts in observed._kept for part in parts for row in part["a"].to_pylist()])
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
    observed, table = Observed(["a"]), pa.table({"A": range(100_000), "other": range(100_000)})
    for _ in range(EVERY * 10):
        observed.note(table.to_batches()[0].slice(0, 0), 4096)
        observed.note(table.to_batches()[0], 0)
    assert len(observed) == 0
    held = pa.total_allocated_bytes()
    for start in range(0, 99_000, 10):
        observed.note(table.to_batches()[0].slice(start, 10), 4096)
    assert len(observed) > LEAST and pa.total_allocated_bytes() - held < 30 * len(observed)
    kept = observed.sample(4096)
    assert kept is not None
    seen = pa.ipc.open_stream(pa.py_buffer(kept)).read_all()
    assert seen.column_names == ["A"] and seen["A"][-1].as_py() > 80_000


def test_what_a_caller_draws_is_the_same() -> None:
    """The window has random numbers of its own; in one thread, they are the same each time."""
    rows = []
    for _ in range(2):
        seed(1)
        observed, batch = Observed(["a"]), pa.record_batch({"a": range(200)})
        for _ in range(500):
            observed.note(batch, 4096)
        rows.append((len(observed), random()))
    assert rows[0] == rows[1] and rows[0][0] > 0
    seed(1)
    assert random() == rows[0][1]


@pytest.mark.usefixtures("often")
def test_columns_that_came_later_are_null_before() -> None:
    observed = Observed(["a", "b"])
    one, both = pa.table({"a": range(5000)}), pa.table({"a": range(5000), "b": range(5000)})
    for table in (one, both):
        for start in range(0, 5000, 500):
            observed.note(table.slice(start, 500).combine_chunks().to_batches()[0], 4096)
    kept = observed.sample(4096)
    assert kept is not None
    seen = pa.ipc.open_stream(pa.py_buffer(kept)).read_all()
    assert 0 < seen["b"].null_count < seen.num_rows
    texts = pa.table({"a": [str(i) for i in range(8192)]})
    for start in range(0, 8192, 512):
        observed.note(texts.slice(start, 512).combine_chunks().to_batches()[0], 4096)
    kept = observed.sample(4096)
    assert kept is not None and pa.ipc.open_stream(pa.py_buffer(kept)).read_all()["a"].type == pa.string()
