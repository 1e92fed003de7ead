"""Segments: merged, due, marked as deleted, seen by batches, and drained in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import inside
import numpy as np
import pyarrow as pa
import pytest
from contract import expected_pairs, lists, pairs, share_of_cases
from layouts import plain_table
from oracle import Expr, to_sql
from sizes import SMALL
from strategies import a_schema, an_expression, some_rows, terms

import colmatch as cm
from colmatch.events.gather import gather_with_state
from colmatch.kernels.layout import ATTR_MASK, FLAG_RUN, Codes, Predicates
from colmatch.kinds.registry import KINDS, find
from colmatch.matching import worker
from colmatch.updates import policy
from colmatch.updates.combined import combine
from colmatch.updates.deleted import DeletedNumbers
from colmatch.updates.literals import whole
from colmatch.updates.versions import Version

# Merges


@pytest.mark.parametrize("way", ["build", "insert", "compact"])
def test_what_is_indexed_has_all_that_a_batch_needs(way: str) -> None:
    """The first batch after a merge of a million took 35 ms longer than the others."""
    matcher = cm.Matcher.build({1: "a = 1", 2: "a = 2"}, {"a": "int64"})
    with patch.object(policy, "GROWING_MOST", 0):
        matcher.insert({3: "a = 3"}) if way == "insert" else None
    matcher.delete([1])
    matcher.compact() if way == "compact" else None
    assert {"hints", "used"} <= vars(inside.segment(matcher)).keys()


def in_segments(rng: Random, kind: str, schema: pa.Schema, expressions: dict[int, Expr], budget: int) -> cm.Matcher:
    """A matcher of several segments, the last of which may grow, and some deleted subscriptions."""
    texts = [(id, to_sql(e)) for id, e in expressions.items()]
    cuts = sorted(rng.choices(range(len(texts) + 1), k=rng.randrange(1, 6)))
    options = cm.Options(missing_columns="null")
    index = cm.index(kind, dnf_budget=budget)
    matcher = cm.Matcher.build(texts[: cuts[0]], schema, index=index, options=options)
    with patch.object(policy, "choose_segments", return_value=None):
        for begin, end in zip(cuts, [*cuts[1:], len(texts)], strict=True):
            with patch.object(policy, "GROWING_MOST", rng.choice([0, 3, 1024])):
                matcher.insert(texts[begin:end])
            if rng.random() < 0.5:
                gone = rng.sample(matcher.ids.to_pylist(), min(rng.randrange(4), len(matcher)))
                matcher.delete(gone)
                for id in gone:
                    del expressions[id]
    return matcher


def spelled(version: Version, predicates: Predicates, codes: Codes, base: int) -> tuple[dict[Any, Any], list[Any]]:
    """Boundaries by attribute, and conjunctions, in what does not depend on numbers and labels."""
    known, literals = version.attributes.members, whole(version.literals)
    attributes = [(member.path, member.role, member.key, member.pattern) for member in known]

    def key(a: int, bound: int) -> Any:
        label = literals.label[literals.first[a] : literals.first[a + 1]]
        i = int(np.searchsorted(label, bound, "right")) - 1
        if i < 0 or bound - label[i] > 1:
            return bound
        begin, end = literals.offset[literals.first[a] + i :][:2]
        return literals.data[begin:end].tobytes(), bound - int(label[i])

    ends = [
        [key(a, bound) for bound in codes.bound[codes.first[a] : codes.first[a + 1]].tolist()]
        for a in range(len(codes.multi))
    ]

    def interval(a: int, low: int, high: int) -> Any:
        if low > high:
            return "none"
        return (ends[a][low - 2] if low > 1 else None, ends[a][high - 1] if high <= len(ends[a]) else None)

    def predicate(p: int) -> Any:
        word, low, high = predicates.pred[p].tolist()
        a = word & ATTR_MASK
        several = range(low, high) if word & FLAG_RUN else None
        both = [(low, high)] if several is None else [(predicates.run_lo[j], predicates.run_hi[j]) for j in several]
        weight = predicates.weight[p].tolist() if len(predicates.weight) else [0.0, 0.0]
        return repr((attributes[a], word >> 29, [interval(a, int(x), int(y)) for x, y in both], weight))

    conjunctions = []
    for c, owner in enumerate(predicates.owner.tolist()):
        some = [predicate(p) for p in range(predicates.first[c], predicates.first[c + 1])]
        program: Any = None
        if len(predicates.jump_first) and predicates.jump_first[c] >= 0:
            start = predicates.jump_first[c]
            tree = predicates.tree[predicates.tree_first[c] : predicates.tree_first[c + 1]]
            program = (predicates.jump[start : start + len(some)].tolist(), tree.tolist())
        priority = float(predicates.priority[c]) if len(predicates.priority) else 0.0
        conjunctions.append(
            (version.ids.array[base + owner].as_py(), priority, some if program else sorted(some), repr(program))
        )
    boundaries = {attributes[a]: (some, int(codes.multi[a])) for a, some in enumerate(ends) if some}
    return boundaries, conjunctions


@share_of_cases(90 if SMALL else 270)
def test_what_is_merged_is_what_a_fresh_build_has(kind: str, seed: int) -> None:
    rng = Random(seed)
    schema, budget = a_schema(rng), rng.choice([1, 4, 64])
    leaves = terms(schema)
    depth = rng.choice([0, 1, 2, 3])
    expressions = {id: an_expression(rng, leaves, depth) for id in range(rng.choice([3, 20]))}
    matcher = in_segments(rng, kind, schema, expressions, budget)
    version = inside.version(matcher)
    count = len(version.segments)
    begin = rng.choice([0, rng.randrange(count)])
    end = count if not begin else rng.randrange(begin, count) + 1
    base = version.bases[begin]
    left = version.live()[base:]
    some = combine(version.segments[begin:end], version.bases[begin:end], left)
    predicates, codes = some.by_subscription(), some.codes
    assert not len(codes.label) and (np.diff(predicates.owner.astype(np.int64)) >= 0).all()
    last = version.bases[end] if end < count else len(version.ids)
    ids = [id for id in version.ids.array[base:last].to_pylist() if id in expressions]
    texts = [(id, to_sql(expressions[id])) for id in ids]
    index = cm.index("scan", dnf_budget=inside.version(matcher).segments[0].index.settings.dnf_budget)
    # Some kinds keep expressions whole that others do not, or find programs by predicates.
    if kind in ("opindex", "kindex") or (kind in KINDS and find(kind).settings.by_predicate):
        index = cm.index(kind, dnf_budget=budget)
    fresh = inside.version(cm.Matcher.build(texts, schema, index=index, options=cm.Options(missing_columns="null")))
    (segment,) = fresh.segments
    _, as_built = spelled(fresh, segment.predicates, segment.codes, 0)
    # once more, to leave out boundaries that no predicate has
    again = combine(fresh.segments, fresh.bases, fresh.live())
    coded = again.codes
    boundaries, conjunctions = spelled(
        fresh, again.by_subscription(), coded._replace(multi=segment.codes.multi[: len(coded.multi)]), 0
    )
    assert set(coded.bound.tolist()) <= set(segment.codes.bound.tolist())
    assert sorted(conjunctions, key=repr) == sorted(as_built, key=repr)
    found_boundaries, found = spelled(version, predicates, codes, base)
    assert found_boundaries == boundaries
    assert sorted(found, key=repr) == sorted(conjunctions, key=repr)
    assert [id for id, *_ in found] == [id for id, *_ in conjunctions]


# What is due


@pytest.mark.parametrize(
    ("alive", "deleted", "growing", "due"),
    [
        ([1000], [0], False, None),
        ([100, 30], [0, 0], True, None),  # the last one grows
        ([40, 10], [0, 0], False, (0, 2)),
        ([41, 10], [0, 0], False, None),
        ([41, 10, 3], [0, 0, 0], True, None),
        ([1000, 100, 30], [0, 0, 0], False, (1, 3)),
        ([520, 100, 30], [0, 0, 0], False, (0, 3)),
        ([521, 130, 100, 30], [0] * 4, True, (0, 3)),
        ([10_000, 2_000, 400, 80], [0] * 4, False, None),  # each much larger than all younger ones
        ([0, 10], [0, 0], False, (0, 2)),
        ([0, 10], [0, 0], True, None),
        ([744], [256], False, None),
        ([743], [257], False, (0, 1)),  # more than a quarter of all numbers, and more than a few
        ([743, 5], [257, 0], False, (0, 2)),
        ([1700], [300], False, None),
        ([9000, 300], [0, 257], False, (1, 2)),  # more than a quarter of one segment
        ([9000, 2000], [257, 0], False, None),
        ([9000, 300], [0, 257], True, None),
        ([0, 700], [0, 300], True, None),  # of the growing one
        ([100, 700], [257, 300], True, (0, 1)),
        ([9000, 2000, 300], [0, 667, 0], False, (1, 2)),
    ],
)
@patch.object(policy, "TIER", 4)
def test_which_segments_are_due(alive: list[int], deleted: list[int], growing: bool, due: Any) -> None:
    sizes = [some + gone for some, gone in zip(alive, deleted)]
    version: Any = SimpleNamespace(
        frozen_count=len(alive) - growing,
        growing=growing,
        ids=range(sum(sizes)),
        bases=tuple(sum(sizes[:i]) for i in range(len(sizes))),
        alive=tuple(alive),
        stale=tuple(0 if growing and i == len(deleted) - 1 else gone for i, gone in enumerate(deleted)),
    )
    assert policy.choose_segments(version) == due


@patch.object(policy, "GROWING_MOST", 1024)
def test_deleted_ones_of_the_growing_segment_do_not_merge_the_others_for_ever() -> None:
    matcher = cm.Matcher.build({-1: "a = 0"}, {"a": "int64"}, index="scan")
    matcher.insert({i: f"a = {i}" for i in range(1000)})
    matcher.delete(range(300))
    assert inside.settled(matcher).merges == 0 and matcher.stats()["gaps"] == 300
    matcher.insert({i: f"a = {i}" for i in range(1000, 2000)})  # another one grows now
    assert inside.settled(matcher).merges == 1 and matcher.stats()["gaps"] == 0
    assert matcher.match_lists(pa.table({"a": [0, 299, 300, 1999]})).to_pylist() == [[-1], [], [300], [1999]]


def test_segments_become_few() -> None:
    """After inserts of any sizes there are at most as many segments as tiers."""
    rng = Random(3)
    matcher = cm.Matcher.build({}, {"a": "int64"}, index="scan")
    id = 0
    with patch.object(policy, "GROWING_MOST", 4):
        for _ in range(60):
            size = rng.choice([1, 1, 2, 9, 30])
            matcher.insert({id + i: f"a = {i}" for i in range(size)})
            id += size
        version = inside.settled(matcher)
    sizes = version.alive[: version.frozen_count]
    assert version.merges > 5 and sum(version.alive) == id == len(matcher)
    assert all(older > policy.TIER * sum(sizes[i + 1 :]) for i, older in enumerate(sizes[:-1]))


def test_too_many_segments_are_merged_before_an_update_returns() -> None:
    matcher = cm.Matcher.build({}, {"a": "int64"}, index="scan")
    with (
        patch.multiple(policy, GROWING_MOST=0, SEGMENTS_MOST=3),
        patch("threading.Thread.start", side_effect=RuntimeError("can't start new thread")),
    ):
        for i in range(20):
            matcher.insert({i: "a = 1"})
            assert len(matcher.stats()["segments"]) <= 3
    assert matcher.match_lists(pa.table({"a": [1]})).to_pylist() == [list(range(20))]


def test_what_a_kind_refuses_is_merged_in_the_manner_of_the_growing_segment() -> None:
    """Raw enumeration needs small domains: it takes 1, 2 and 3, and not 10^18 with them."""
    index = cm.index("kindex", enumerate="raw")
    matcher = cm.Matcher.build({i: f"a = {i % 3}" for i in range(40)}, {"a": "int64"}, index=index)
    events = pa.table({"a": [1, 10**18]})
    with patch.object(policy, "GROWING_MOST", 8):
        for i in range(40, 64):
            matcher.insert({i: f"a = {10**18 if i % 2 else 1}"})
        with pytest.raises(cm.OptionError, match="raw enumeration"):
            matcher.insert({i: f"a = {i * 10**16}" for i in range(70, 80)})
        before = inside.settled(matcher)
    assert "raw enumeration" in matcher.stats()["merge_error"]
    assert [one["index"] for one in matcher.stats()["segments"]][:2] == ["kindex", "scan"]
    assert before.merges and before.alive[0] == 40 and sum(before.alive) == 64
    wanted = [*range(1, 40, 3), *range(40, 64, 2)], [*range(41, 64, 2)]
    for _ in range(2):
        assert lists(matcher.match_lists(events)) == list(wanted)
        with pytest.raises(cm.OptionError, match="raw enumeration"):
            matcher.compact()
    matcher.delete(range(41, 64, 2))
    matcher.compact()
    assert matcher.stats()["merge_error"] is None and matcher.index == index
    assert lists(matcher.match_lists(events)) == [wanted[0], []]


# Deleted ones


@pytest.mark.parametrize("seed", range(20))
def test_which_numbers_are_deleted(seed: int) -> None:
    rng = Random(seed)
    gone, deleted = set(), DeletedNumbers()
    for _ in range(6):
        more = rng.sample(range(rng.choice([1, 63, 64, 65, 300])), 1)
        more += [i for i in range(rng.choice([0, 20, 200])) if rng.random() < 0.3]
        more = sorted(set(more) - gone)
        before, was = deleted, len(gone)
        deleted = deleted.with_more(np.array(more, np.int64))
        gone |= set(more)
        for some in (range(400), rng.sample(range(400), 9)):
            numbers = np.array(some)
            assert deleted.drop(numbers) == len(set(some) - gone)
            assert numbers.tolist() == [-1 if i in gone else i for i in some]
        if rng.random() < 0.5:  # else the bits of several are written together
            for begin, count in [(0, 400), (0, 0), (1, 63), (64, 64), (100, 29), (390, 100)]:
                assert deleted.among(begin, count).tolist() == [i in gone for i in range(begin, begin + count)]
        assert before.among(0, 400).sum() == was  # which others may be reading


def test_bits_of_deleted_ones_are_copied_for_batches_only() -> None:
    deleted = DeletedNumbers().with_more(np.arange(1000))
    for i in range(1000, 1020):
        later = deleted.with_more(np.array([i]))
        assert later._now[0] is deleted._now[0] and later.has(i) and not deleted.has(i)
        deleted = later
    assert deleted.bits is deleted.bits and deleted.with_more(np.array([2000]))._now[0] is deleted.bits
    assert deleted.among(0, 2000).sum() == 1020


# What batches see


@pytest.mark.parametrize("rows", [1, 3, 4, 100])
def test_rows_of_one_batch_of_a_stream_see_the_same(rows: int) -> None:
    """However they are cut or gathered; what changed in between separates batches."""
    seen = {"now": 0}
    schema = pa.schema([("x", pa.int64()), ("then", pa.int64())])

    def source() -> Iterator[pa.RecordBatch]:
        x = 0
        for size, change in [(5, False), (2, False), (3, True), (1, False), (9, True), (0, True), (2, False)]:
            seen["now"] += change
            yield pa.record_batch([pa.array(range(x, x + size)), pa.array([seen["now"]] * size)], schema)
            x += size

    def read(events: Any, see: Any) -> list[tuple[dict[str, list[int]], int]]:
        return [(batch.to_pydict(), then) for batch, then in gather_with_state(events, rows, see, lambda _: None)]

    stream = read(pa.RecordBatchReader.from_batches(schema, source()), lambda: seen["now"])
    assert all(set(batch["then"]) == {then} and len(batch["x"]) <= rows for batch, then in stream)
    assert [x for batch, _ in stream for x in batch["x"]] == list(range(22))
    if rows == 3:
        assert [len(batch["x"]) for batch, _ in stream] == [3, 3, 1, 3, 1, 3, 3, 3, 2]
    seen["now"] = 0
    asked = iter(range(100))
    whole = pa.Table.from_batches(source(), schema)
    for i, events in enumerate((whole, whole.combine_chunks().to_batches()[0], whole.to_struct_array(), Frame(whole))):
        assert {then for _, then in read(events, lambda: next(asked))} == {i}


class Frame:
    """A data frame of another library: it has a length, and several batches."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __len__(self) -> int:
        return len(self.table)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


def test_a_stream_sees_an_update_from_its_next_batch_on() -> None:
    matcher = cm.Matcher.build({1: "a >= 0"}, {"a": "int64"}, options=cm.Options(batch_rows=3, threads=1))
    schema = pa.schema([("a", pa.int64())])
    batches = (pa.record_batch([pa.array(range(i, i + 7))], schema) for i in range(0, 21, 7))
    results = matcher.match_batches(pa.RecordBatchReader.from_batches(schema, batches))
    found = [next(results)]
    matcher.insert({2: "a >= 0"})
    matcher.compact()
    found += [next(results), next(results)]
    matcher.delete([1])
    found += list(results)
    seen: dict[int, list[int]] = {}
    for event, id in pairs(pa.Table.from_batches(found)):
        seen.setdefault(event // 7, []).append(id)
    # The second batch of the stream was there already when 1 was deleted: the row left over of the
    # first one was waiting for others.
    assert seen == {0: [1] * 7, 1: [1, 2] * 7, 2: [2] * 7}


# Pieces


@share_of_cases(27 if SMALL else 72)
def test_pieces_of_several_segments(kind: str, seed: int) -> None:
    """Full sinks, several segments, deleted ones that an index still finds, and repeats."""
    rng = Random(seed)
    schema = a_schema(rng)
    leaves, rows = terms(schema), some_rows(rng, schema, rng.choice([1, 10, 40]))
    expressions = {
        id: ("or", *(an_expression(rng, leaves, 1) for _ in range(rng.choice([1, 2, 4])))) for id in range(30)
    }
    large = rng.choice([1, 7, 100])
    with patch.multiple(worker, FIRST_CAPACITY=rng.choice([1, 4]), LARGE_CAPACITY=large):
        matcher = in_segments(rng, kind, schema, expressions, 64)
        matcher.options = cm.Options(missing_columns="null", batch_rows=rng.choice([3, 8192]), threads=1)
        events = plain_table(schema, rows)
        wanted = expected_pairs(list(expressions.values()), list(expressions), rows)
        for _ in range(2):  # the second time, it is known how many there are
            assert pairs(matcher.match(events)) == wanted
            assert matcher.count(events).tolist() == [sum(i == row for row, _ in wanted) for i in range(len(rows))]
            assert lists(matcher.match_lists(events)) == [
                [id for row, id in wanted if row == i] for i in range(len(rows))
            ]
        assert matcher.counters(events)["matches"] == len(wanted)
    (idle,) = inside.idle(matcher)
    most = max(np.bincount([i for i, _ in wanted], minlength=1))
    assert len(idle._sink.sub) <= max(64, 4 * large, 16 * most)


def test_the_reason_is_that_of_the_oldest_segment() -> None:
    with patch.object(policy, "GROWING_MOST", 4):
        matcher = cm.Matcher.build({i: f"a = {i}" for i in range(3000)}, {"a": "int64"})
        before = matcher.stats()
        for i in range(3):
            matcher.insert({10_000 + 20 * i + j: f"a > {j}" for j in range(10)})
        inside.settled(matcher)
    after = matcher.stats()
    assert after["merges"] and len(after["segments"]) == 2
    assert (after["index"], after["reason"]) == (before["index"], before["reason"])
