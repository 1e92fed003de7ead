"""BE-Tree and BE*-Tree with ``ranking="feedback"``: by what the events of a sample meet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import inside
import numpy as np
import pyarrow as pa
import pytest
from contract import pairs
from workload import named

import colmatch as cm
from colmatch.events.sample import count_keys
from colmatch.given.schema import Role
from colmatch.kernels.kinds.trees.arrays import WINDOW
from colmatch.kinds.registry import KINDS

TREES = pytest.mark.parametrize("kind", ["betree", "bestar"])
CONSTRUCTION = pytest.mark.parametrize("construction", ["bulk", "dynamic"])
SCHEMA = pa.schema(
    [*((name, pa.int64()) for name in "abx"), ("s", pa.string()), *((name, pa.list_(pa.int64())) for name in "kl")]
)
ENDS = ["a = 1000", "b = 1000", "a = 0", "b = 0"]  # so that both domains are as wide

# Where the predicate before AND is the wider one, but events seldom meet it.
SELDOM: dict[str, Callable[[int], str]] = {
    "a range": lambda i: f"a BETWEEN 0 AND {400 + i % 10} AND x = {i % 3}",
    "a list of values": lambda i: f"a IN ({i % 10}, {400 + i % 10}) AND x = {i % 3}",
    "an attribute that most lack": lambda i: f"b >= {i % 10} AND x = {i % 3}",
    "a string": lambda i: f"s > 'b{i % 10}' AND x = {i % 3}",
    "several values of an event": lambda i: f"array_contains(k, {i % 2}) AND x = {i % 3}",
}


def events(rng: Random, rows: int = 640, high: bool = True) -> pa.Table:
    """Nearly all have a high value of ``a`` and no ``b``, or nearly all a low one and ``b``.

    Fifty values of ``k`` fit, if there is one at all.
    """
    usual = [rng.random() < 0.98 for _ in range(rows)]
    low = [one != high for one in usual]
    return pa.table(
        {
            "a": [
                rng.choice([rng.randrange(10), rng.randrange(400)]) if one else rng.randrange(600, 1000) for one in low
            ],
            "b": [rng.randrange(1000) if one else None for one in low],
            "x": [rng.randrange(3) for _ in low],
            "s": [rng.choice("cd") if one else "a" for one in low],
            "k": [[rng.randrange(2) for _ in range(100)] if one else [] for one in low],
            "l": [[1]] * rows,
        },
        schema=SCHEMA,
    )


def texts(form: Callable[[int], str], count: int = 300) -> dict[int, str]:
    return {-1 - i: text for i, text in enumerate(ENDS)} | {i: form(i) for i in range(count)}


def built(texts: dict[int, str], kind: str, sample: Any, ranking: str = "feedback", **settings: Any) -> cm.Matcher:
    index = cm.index(kind, capacity=120, ranking=ranking, **settings)
    options = cm.Options(missing_columns="null")
    return cm.Matcher.build(texts, SCHEMA, index=index, sample=sample, options=options)


def looked_at(matcher: cm.Matcher, events: pa.Table) -> int:
    counters = matcher.counters(events)
    return counters["conjunctions"] + counters["candidates"]


@TREES
@CONSTRUCTION
@pytest.mark.parametrize("what", SELDOM)
def test_feedback_goes_by_what_events_seldom_meet(kind: str, construction: str, what: str) -> None:
    rng, some = Random(what), texts(SELDOM[what])
    later = events(rng)
    one, other = (
        built(some, kind, events(rng), ranking, construction=construction) for ranking in ("feedback", "selectivity")
    )
    assert looked_at(one, later) < 0.5 * looked_at(other, later)
    wanted = pairs(cm.Matcher.build(some, SCHEMA, index="scan").match(later))
    assert wanted and pairs(one.match(later)) == pairs(other.match(later)) == wanted


@TREES
@pytest.mark.parametrize("what", SELDOM)
@pytest.mark.parametrize("together", [1, 300])
def test_inserts_after_the_build_go_by_it_too(kind: str, what: str, together: int) -> None:
    """Those that come bring boundaries and literals that the first of them did not have.

    Attributes that the first did not have would go by selectivity, until the next segment is begun.
    """
    rng, some = Random(what), texts(SELDOM[what])
    later = events(rng)
    found = []
    for ranking in ("feedback", "selectivity"):
        matcher = built({}, kind, events(rng), ranking, construction="dynamic")
        matcher.insert(dict(list(some.items())[:6]))
        for i in range(6, len(some), together):
            matcher.insert(dict(list(some.items())[i : i + together]))
        assert inside.version(matcher).growing
        wanted = pairs(cm.Matcher.build(some, SCHEMA, index="scan").match(later))
        assert pairs(matcher.match(later)) == wanted
        found.append(looked_at(matcher, later))
    assert found[0] < 0.5 * found[1]


def test_shares_of_events_are_compared_with_shares_of_domains() -> None:
    """Nothing is known of an attribute that came later, so it goes by its domain: 4 of 10 here.

    The range of the other attribute is met by 6 of 10 events.
    """
    rng = Random(1)
    later = events(rng)
    matcher = built({}, "bestar", events(rng), construction="dynamic")
    first = {-10: "a = 0", -11: "a = 1000", -12: "s = 'c'", -13: "array_contains(l, 2)"}
    matcher.insert(first | {i: f"x = {i}" for i in range(1000, 1200)})
    matcher.insert({i: f"b = {10 * i}" for i in range(101)})
    known = len(inside.arrays(matcher).window_first) - 1
    assert known < len(inside.version(matcher).attributes)
    some = {i: f"a BETWEEN 0 AND {840 + i % 10} AND b BETWEEN 0 AND {400 + i % 10}" for i in range(200, 380)}
    with patch("colmatch.updates.growing.FEW_SUBSCRIPTIONS", 1000):  # the segment is not begun anew
        matcher.insert(some)
    assert inside.version(matcher).growing
    assert known == len(inside.arrays(matcher).window_first) - 1
    assert looked_at(matcher, later) < 20 * later.num_rows


@TREES
def test_an_index_that_takes_no_inserts_keeps_no_window(kind: str) -> None:
    rng = Random(1)
    for construction in ("bulk", "dynamic"):
        matcher = built(texts(SELDOM["a range"]), kind, events(rng), construction=construction)
        assert not any(len(getattr(inside.arrays(matcher), name)) for name in WINDOW)
    matcher.insert({1000: "a = 7"})
    assert all(len(getattr(inside.arrays(matcher), name)) for name in WINDOW)


@TREES
@pytest.mark.parametrize("seed", range(4))
def test_what_grows_is_what_is_built(kind: str, seed: int) -> None:
    """Values counted by key say of labels what those counted by code say of codes."""
    workload = named(
        "dense", subscriptions=300, attributes=12, cardinality=[5, 1000][seed % 2], event_size=(3, 10), seed=seed
    )
    index = cm.index(kind, capacity=5, ranking="feedback", construction="dynamic")
    sample, later = workload.events(256), workload.events(64, start=256)
    grown = cm.Matcher.build({}, workload.schema(), index=index, sample=sample)
    grown.insert(workload.predicate_table())
    assert inside.version(grown).growing
    once, blind = (
        cm.Matcher.build(workload.predicate_table(), workload.schema(), index=index, sample=some)
        for some in (sample, None)
    )
    assert grown.counters(later) == once.counters(later) != blind.counters(later)


@TREES
@CONSTRUCTION
def test_without_a_sample_it_is_selectivity(kind: str, construction: str) -> None:
    """And with one, the other rankings do not ask it."""
    workload = named("dense", subscriptions=2000, attributes=15, event_size=(3, 10))
    sample = workload.events(100)

    def arrays(ranking: str, sample: Any) -> Any:
        index = cm.index(kind, capacity=7, ranking=ranking, construction=construction)
        matcher = cm.Matcher.build(workload.predicate_table(), workload.schema(), index=index, sample=sample)
        return [*inside.arrays(matcher), *inside.predicates(matcher)]

    for ranking, other in (("feedback", "selectivity"), ("selectivity", "selectivity"), ("popularity", "popularity")):
        seen = None if ranking == "feedback" else sample
        for one, same in zip(arrays(ranking, seen), arrays(other, None), strict=True):
            np.testing.assert_array_equal(one, same)


@TREES
@pytest.mark.parametrize("way", ["as it is", "grown", "save", "journal", "pickle"])
def test_compact_moves_the_window(kind: str, way: str, tmp_path: Path) -> None:
    rng, some = Random(way), texts(SELDOM["a range"])
    now = events(rng)
    matcher = built(some if way != "grown" else {}, kind, events(rng, high=False), construction="dynamic")
    if way == "grown":
        matcher.insert(some)
    if way == "journal":
        matcher.save(tmp_path / "m")
        matcher = cm.Matcher.open(tmp_path / "m", journal=True)
    before = looked_at(matcher, now)
    matcher.compact()
    assert looked_at(matcher, now) == before
    version = matcher.version
    matcher.compact(sample=events(rng))
    assert matcher.version == version + 1
    after = looked_at(matcher, now)
    assert after < 0.5 * before
    if way in ("save", "journal"):
        if way == "save":
            matcher.save(tmp_path / "m")
        matcher.close()
        matcher = cm.Matcher.open(tmp_path / "m", journal=way == "journal")
        assert matcher.version == version + 1
        if way == "journal":  # what was built is as it was saved, what is built goes by the sample
            assert looked_at(matcher, now) == before
            matcher.insert({1000: "b = 3"})
            matcher.compact()
        assert looked_at(matcher, now) <= 1.1 * after + now.num_rows
        matcher.close()
    assert (matcher.match(now).num_rows > 0) and len(inside.sample(matcher))
    matcher.close()


@pytest.mark.parametrize("kind", [*KINDS, "auto"])
def test_every_kind_takes_another_sample(kind: str) -> None:
    rng, some = Random(kind), texts(SELDOM["a range"])
    matcher = cm.Matcher.build(some, SCHEMA, index=kind)
    index, wanted = matcher.index, pairs(matcher.match(now := events(rng)))
    matcher.compact(sample=now)
    assert len(inside.sample(matcher)) and matcher.index == index and pairs(matcher.match(now)) == wanted
    with pytest.raises(cm.EventError):
        matcher.compact(sample=pa.table({"a": ["no number"]}))
    assert len(inside.sample(matcher)) and matcher.version == 1
    matcher.compact(sample=now.slice(0, 0))
    assert not len(inside.sample(matcher)) and pairs(matcher.match(now)) == wanted
    matcher.close()
    with pytest.raises(cm.OptionError, match="closed"):
        matcher.compact(sample=now)


def test_what_events_say_by_key() -> None:
    """Each key is counted, and the rows that have an attribute; lists have several."""
    rng = Random(1)
    rows = [{name: [rng.randrange(4) for _ in range(rng.randrange(4))] for name in "kl"} for _ in range(50)]
    for row in rows:
        row |= {"a": rng.choice([None, rng.randrange(5)]), "s": rng.choice([None, "u", "v", "w"])}
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    some = {0: "a = 1 AND s = 'v' AND array_contains(l, 2) AND array_contains(k, 1) AND b = 5"}
    attributes = inside.attributes(matcher := cm.Matcher.build(some, SCHEMA, index="scan"))
    seen = count_keys(iter(table.to_batches(20)), attributes, inside.version(matcher).literals)
    assert seen.events == 50 and seen.first is not None and seen.key is not None
    for i, member in enumerate(attributes.members):
        if member.is_free or member.role not in (Role.VALUE, Role.ELEMENT):
            continue
        name = member.path[0]
        values = [row.get(name) for row in rows]
        many = [value if isinstance(value, list) else [] if value is None else [value] for value in values]
        assert seen.present[i] == sum(map(bool, many))
        begin, end = seen.first[i : i + 2]
        flat = [value for values in many for value in values]
        key = seen.key[begin:end]
        assert sorted(key.tolist()) == key.tolist() and len(set(key.tolist())) == len(key)
        if name == "s":  # what is before and what is behind the only literal
            assert seen.hits[begin:end].tolist() == [flat.count(text) for text in "uvw"]
        else:
            assert dict(zip(key.tolist(), seen.hits[begin:end].tolist(), strict=True)) == {
                value: flat.count(value) for value in flat
            }
    nothing = count_keys(iter([]), attributes, inside.version(matcher).literals)
    assert not len(nothing.hits) and nothing.events == 0
