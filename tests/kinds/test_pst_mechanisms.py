"""What PSTBloom and PSTHash are about, seen in their counters and tables: each part of them spares
work.
"""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import Any

import inside
import numpy as np
import pyarrow as pa
import pytest
from pstree_walk import check_pstbloom, check_psthash
from sizes import SMALL
from tree_walk import empty_tree
from workload import named

import colmatch as cm
from colmatch.kernels.kinds.pstbloom import arrays as psb
from colmatch.kernels.kinds.pstbloom.arrays import SIGNED, WORDS
from colmatch.kernels.kinds.psthash import arrays as psh
from colmatch.kernels.kinds.pstree import arrays as ps
from colmatch.kinds import pstbloom
from colmatch.kinds.registry import find

KINDS = pytest.mark.parametrize("kind", ["pstbloom", "psthash"])
CHECKS = {"pstbloom": check_pstbloom, "psthash": check_psthash}
OPTIONS = cm.Options(missing_columns="null")
NAMES = ["a", "b", "c", *(f"x{i}" for i in range(100))]
SCHEMA = pa.schema([(name, pa.int64()) for name in NAMES])


def built(texts: list[str], kind: str, sample: pa.Table | None = None, **settings: Any) -> cm.Matcher:
    return cm.Matcher.build(
        dict(enumerate(texts)), SCHEMA, index=cm.index(kind, **settings), options=OPTIONS, sample=sample
    )


def counted(matcher: cm.Matcher, **event: int) -> dict[str, int]:
    return matcher.counters(pa.table({name: pa.array([value], pa.int64()) for name, value in event.items()}))


@KINDS
def test_only_the_space_of_a_value_is_read(kind: str) -> None:
    matcher = built([f"a = {i}" for i in range(300)], kind)
    assert counted(matcher, a=7)["conjunctions"] == 1
    assert counted(matcher, a=7, b=5)["conjunctions"] == 1
    assert counted(matcher, a=1000)["conjunctions"] == 0


@KINDS
def test_the_narrowest_predicate_finds_a_conjunction(kind: str) -> None:
    one = {"dimensions": 1} if kind == "psthash" else {}
    matcher = built([f"a BETWEEN 0 AND {500 + i % 10} AND b = {i}" for i in range(1000)], kind, **one)
    assert counted(matcher, a=5, b=7)["conjunctions"] == 1
    assert counted(matcher, a=5)["conjunctions"] == 0


@KINDS
def test_a_sample_tells_which_predicate_few_events_meet(kind: str) -> None:
    """By their widths, ``b = 1`` is the most selective; but all events have it."""
    one = {"dimensions": 1, "leaves": 128} if kind == "psthash" else {}
    texts = [f"a BETWEEN {i} AND {i + 5} AND b = 1" for i in range(100)] + ["b = 100"]
    events = pa.table({"a": pa.array(np.arange(1000) % 100), "b": pa.array([1] * 1000)})
    blind, told = built(texts, kind, **one), built(texts, kind, events, **one)
    assert counted(blind, a=50, b=1)["conjunctions"] == 100
    assert counted(told, a=50, b=1)["conjunctions"] == 6
    assert counted(told, a=50, b=1)["matches"] == counted(blind, a=50, b=1)["matches"] == 6


@KINDS
@pytest.mark.parametrize(
    ("texts", "value"),
    [
        (["a = 1 AND b IN (1, 3)", "a = 9 AND b = 900"], 1),
        (["a IN (1, 90) AND b BETWEEN 1 AND 2", "a = 99 AND b = 900"], 90),
        (["a BETWEEN 1 AND 90 AND b < 2", "a = 99 AND b = 1", "b = 900 AND a = 1"], 50),
        (["a >= 2 AND b <> 7"], 5),
    ],
)
def test_operators_rank_first_if_that_is_asked_for(kind: str, texts: list[str], value: int) -> None:
    """= before IN, IN before BETWEEN, that before <, and that before <>, whatever their widths."""
    one = {"dimensions": 1} if kind == "psthash" else {}
    operators, share = (built(texts, kind, ranking=how, **one) for how in ("operators", "share"))
    assert counted(operators, a=value)["conjunctions"] >= 1
    assert counted(share, a=value)["conjunctions"] == 0


def test_signatures_leave_out_what_would_fail() -> None:
    workload = named("dense", subscriptions=2000 if SMALL else 20_000)
    events = workload.events(100)
    few, all_ = (
        cm.Matcher.build(
            workload.predicate_table(), workload.schema(), index=cm.index("pstbloom", signatures=signatures)
        ).counters(events)
        for signatures in (True, False)
    )
    assert few["conjunctions"] == all_["conjunctions"] and few["matches"] == all_["matches"]
    assert few["candidates"] - few["matches"] < 0.35 * (all_["candidates"] - all_["matches"])
    assert few["candidates"] - few["matches"] < 0.2 * (few["conjunctions"] - few["matches"])


CARDINALITIES = (3, 10, 100, 1000) if SMALL else (3, 10, 100, 1000, 10_000)


@pytest.mark.parametrize("cardinality", CARDINALITIES)
def test_signatures_are_not_full_whatever_the_cardinality(cardinality: int) -> None:
    """Signatures of cells have a length of their own, since cells have many more conjunctions."""
    workload = named("dense", subscriptions=1000 if SMALL else 10_000, cardinality=cardinality)
    events = workload.events(10 if SMALL else 100)
    with_, without = (
        cm.Matcher.build(
            workload.predicate_table(), workload.schema(), index=cm.index("pstbloom", signatures=signatures)
        )
        for signatures in (True, False)
    )
    few, all_ = with_.counters(events), without.counters(events)
    index = inside.arrays(with_)
    for words, full in bits_set(index):
        assert full < 0.6 or not words, "what is nearly full has no signatures"
    wrong, wrong_without = (found["candidates"] - found["matches"] for found in (few, all_))
    assert few["matches"] == all_["matches"]
    assert wrong < 0.5 * wrong_without


def bits_set(index: Any) -> list[tuple[int, float]]:
    """Returns words of a signature, and the share of bits set, of spaces and of cells."""
    state, first = index.state, int(index.state[psb.FIRST_CELL])
    used = int(state[ps.SPACES] - ps.FANOUT * (index.tree[:, ps.CELLS] != ps.NONE).sum())
    cells = ps.FANOUT * int((index.tree[:, ps.CELLS] != ps.NONE).sum())
    parts = (index.sign[psb.SPACES_FROM : first], used, psb.WORDS), (index.sign[first:], cells, psb.CELL_WORDS)
    return [
        (int(state[words]), np.unpackbits(sign.view(np.uint8)).sum() / max(64 * rows * int(state[words]), 1))
        for sign, rows, words in parts
    ]


def test_there_are_no_signatures_where_they_would_be_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """A conjunction is in those of a thousand spaces here, and has 1,024 bits of all of them."""
    texts = [f"a BETWEEN {i} AND {i + 900} AND b BETWEEN {i} AND {i + 1400}" for i in range(1500)]
    few = [f"a BETWEEN {i} AND {i + 90} AND b BETWEEN {i} AND {i + 140}" for i in range(1500)]
    words, sizes = [], []
    for fullest, some in ((pstbloom.FULLEST, few), (pstbloom.FULLEST, texts), (1.0, texts)):
        monkeypatch.setattr(pstbloom, "FULLEST", fullest)
        matcher = built(some, "pstbloom", leaves=100_000)
        words.append(int(inside.arrays(matcher).state[WORDS]))
        sizes.append(inside.arrays(matcher).sign.nbytes)
        assert counted(matcher, a=1450, b=1450)["matches"] == (91 if some is few else 901)
    assert words[0] > 0 and words[1] == 0 and words[2] > 0
    assert sizes[1] == 16 and sizes[2] > 60 * 1500


def test_attributes_of_few_predicates_have_no_signatures() -> None:
    """Their lists are short, and the spaces for signatures alone would be half of all memory."""
    workload = named("dense", subscriptions=1500, attributes=3000, layout="map")
    events, sizes, candidates = workload.events(100), [], []
    for signatures in (True, False):
        index = cm.index("pstbloom", signatures=signatures)
        matcher = cm.Matcher.build(workload.predicate_table(), workload.schema(), index=index)
        sizes.append(matcher.stats()["bytes_per_subscription"])
        candidates.append(matcher.counters(events)["candidates"])
    assert candidates[0] == candidates[1] and sizes[0] <= 1.02 * sizes[1]


def test_all_predicates_have_signatures(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the third or fourth one turns away is not verified, either."""
    monkeypatch.setattr(pstbloom, "COMMON", 1)
    parts = [f"{name} = {i}" for i, name in enumerate(NAMES[:6])]
    matcher = built([" AND ".join(parts)], "pstbloom")
    event = {name: i for i, name in enumerate(NAMES[:6])}
    assert counted(matcher, **event)["matches"] == 1
    for name in NAMES[:6]:
        assert counted(matcher, **event | {name: 77})["candidates"] == 0


def test_signatures_grow_with_what_they_have() -> None:
    """One of 64 bits would let everybody through; one that was made for few is made anew."""
    texts = [f"a = {i % 10} AND b BETWEEN {i % 50} AND {i % 50 + 20}" for i in range(3000)]
    bulk, dynamic = (inside.arrays(built(texts, "pstbloom", construction=how)) for how in ("bulk", "dynamic"))
    assert bulk.state[WORDS] == dynamic.state[WORDS] >= 16
    assert bulk.state[SIGNED] == dynamic.state[SIGNED]
    scan = cm.Matcher.build(dict(enumerate(texts)), SCHEMA, index="scan")
    index, preds, codes = empty_tree(scan, "pstbloom"), inside.predicates(scan), inside.codes(scan)
    insert = find("pstbloom").insert
    assert insert is not None
    for begin in range(0, 3000, 100):
        index = insert(index, preds, codes, begin, begin + 100)
        assert index.state[SIGNED] <= 64 * index.state[WORDS] * index.state[ps.SPACES]
    check_pstbloom(index, preds, set(range(3000)))


def test_rows_without_an_attribute_are_told_without_its_predicate() -> None:
    for kind in ("pstbloom", "psthash"):
        one = {"dimensions": 1} if kind == "psthash" else {}
        matcher = built([f"a = 1 AND x{i} >= 0" for i in range(50)], kind, **one)
        assert counted(matcher, a=1)["candidates"] == 0
        assert counted(matcher, a=1, x3=1)["candidates"] == counted(matcher, a=1, x3=1)["matches"] == 1


def test_two_predicates_find_less_than_one() -> None:
    texts = [f"a = {i % 20} AND b = {i // 20}" for i in range(400)]
    one, two = (built(texts, "psthash", dimensions=n) for n in (1, 2))
    assert counted(two, a=3, b=7)["conjunctions"] == 1
    assert counted(one, a=3, b=7)["conjunctions"] == 20
    three = built([f"{text} AND c = {i % 2}" for i, text in enumerate(texts)], "psthash", dimensions=3)
    assert counted(three, a=3, b=7, c=1)["conjunctions"] == 1
    assert counted(three, a=3, b=7, c=0)["conjunctions"] == 0
    assert counted(three, a=3, b=7)["conjunctions"] == 0


def test_what_has_one_predicate_or_may_be_absent_is_found_too() -> None:
    matcher = built(["a = 1", "a = 1 AND b = 2", "a IS NULL", "NOT (a <=> 3)"], "psthash")
    assert counted(matcher, a=1)["conjunctions"] == 3
    assert counted(matcher, a=1, b=2)["matches"] == 3


def test_only_pairs_that_some_subscription_has_are_looked_for() -> None:
    """An event of 60 attributes has 1,770 pairs; five of them are somebody's, and what has no
    partner is asked for by itself alone.
    """
    texts = [f"x{2 * i} = 1 AND x{2 * i + 1} = 1" for i in range(30)]
    matcher = built(texts, "psthash")
    event = {f"x{i}": 1 for i in range(60)}
    assert counted(matcher, **event)["matches"] == 30
    assert counted(matcher, **event)["nodes"] <= 60 + 30
    assert counted(matcher, **{f"x{2 * i}": 1 for i in range(30)})["nodes"] == 30


@pytest.mark.parametrize(("width", "most"), [(0, 435), (50, 435)])
def test_a_value_has_as_many_pairs_as_the_document_says(width: int, most: int) -> None:
    """30 values have n (n - 1) / 2 = 435 pairs where all predicates have spaces, or cells."""
    names = NAMES[3:33]
    pairs = [(first, second) for i, first in enumerate(names) for second in names[i + 1 :]]
    texts = [f"{first} BETWEEN 5 AND {5 + width} AND {second} BETWEEN 5 AND {5 + width}" for first, second in pairs]
    matcher = built(texts, "psthash")
    found = counted(matcher, **dict.fromkeys(names, 5))
    assert found["matches"] == len(texts) == most
    assert found["nodes"] <= most + 30


def test_longer_spaces_are_looked_for_only_where_they_begin() -> None:
    texts = [f"x{i} = 1 AND x{i + 1} = {i} AND x{i + 2} = 1" for i in range(0, 50, 5)]
    matcher = built(texts, "psthash", dimensions=3)
    event = {f"x{i}": 1 for i in range(60)}
    assert counted(matcher, **event)["nodes"] < 60 + 60


def test_a_cap_on_spaces_leaves_one_access_predicate() -> None:
    texts = [f"a BETWEEN {i} AND {i + 3} AND b BETWEEN {i} AND {i + 3}" for i in range(50)]
    many, few = (inside.arrays(built(texts, "psthash", spaces=most)) for most in (16, 15))
    assert max(h_count(many)) == 16 and max(h_count(few)) == 4
    assert len(h_count(many)) == 50


def h_count(index: Any) -> list[int]:
    """In how many spaces each conjunction is that buckets have."""
    conj = []
    for b in range(int(index.state[psh.BUCKETS])):
        at, count = index.bucket[b, [psh.BUCKET_LIST, psh.BUCKET_COUNT]].tolist()
        conj += index.entry[at : at + count, 0].tolist() if count else []
    return np.unique(conj, return_counts=True)[1].tolist()


@KINDS
def test_cells_are_used_while_a_segment_grows(kind: str) -> None:
    """Labels of whole numbers are neighbours, wherever these numbers lie."""
    texts = [f"a BETWEEN {i} AND {i + 2000}" for i in range(0, 20_000, 50)]
    grown = built([], kind, leaves=4, construction="dynamic")
    for begin in range(0, 400, 20):
        grown.insert(dict(enumerate(texts[begin : begin + 20], begin)))
    index, event = inside.arrays(grown), {"a": 10_000}
    first = int(index.tree[0, ps.CELLS])
    assert first != ps.NONE
    used = index.space[first : first + ps.FANOUT, ps.PREDS]
    assert (used > 0).sum() >= 8 and used.max() < 0.5 * len(texts)
    now, fresh = counted(grown, **event), counted(built(texts, kind, leaves=4), **event)
    assert now["matches"] == fresh["matches"] == 41
    assert now["conjunctions"] <= 1.5 * fresh["conjunctions"] < 0.5 * len(texts)


def test_a_growing_segment_reads_as_little_as_one_that_was_built() -> None:
    workload = named("dense", subscriptions=512, attributes=10, event_size=(6, 6))
    events = workload.events(10 if SMALL else 200)
    matcher = cm.Matcher.build({}, workload.schema(), index=cm.index("psthash", construction="dynamic"))
    matcher.insert(workload.predicate_table())
    growing = matcher.counters(events)
    matcher.compact()
    built_ = matcher.counters(events)
    assert growing["matches"] == built_["matches"]
    assert growing["conjunctions"] <= 1.5 * built_["conjunctions"]


@KINDS
def test_wide_predicates_have_at_most_16_cells(kind: str) -> None:
    """By spaces of their own, each would have hundreds."""
    texts = [f"a BETWEEN {i} AND {i + 5000}" for i in range(0, 10_000, 10)]
    matcher = built(texts, kind)
    index = inside.arrays(matcher)
    assert index.state[ps.ENTRIES] <= 16 * len(texts) and index.state[ps.CUTS] == 0
    spaces = inside.arrays(built(texts, kind, leaves=100_000, **({"spaces": 100_000} if kind == "psthash" else {})))
    assert spaces.state[ps.ENTRIES] > 300 * len(texts) and spaces.state[ps.CUTS] > 1000
    event = counted(matcher, a=6000)
    assert event["matches"] == 501 and event["conjunctions"] < 501 + 2 * len(texts) / 16 + 2


def test_values_that_are_spread_have_spaces_of_their_own() -> None:
    """The cells of so few would have those of all others, too."""
    texts = [f"a IN ({', '.join(str(i + 100 * j) for j in range(6))})" for i in range(100)]
    assert counted(built(texts, "psthash"), a=205)["conjunctions"] == 1


@KINDS
def test_spaces_are_merged_when_predicates_go(kind: str) -> None:
    texts = [f"a BETWEEN {i} AND {i + 50}" for i in range(100)] + ["a BETWEEN 20 AND 60"]
    scan = cm.Matcher.build(dict(enumerate(texts)), SCHEMA, index="scan")
    preds, codes, wide = inside.predicates(scan), inside.codes(scan), {"leaves": 1000}
    insert, delete = find(kind).insert, find(kind).delete
    assert insert is not None and delete is not None
    index = insert(
        empty_tree(scan, kind, **wide, **({"spaces": 1000} if kind == "psthash" else {})), preds, codes, 0, 101
    )
    assert index.state[ps.CUTS] > 100
    index = delete(index, preds, codes, np.arange(100))
    walker = CHECKS[kind](index, preds, {100})
    (spaces,) = [some for some in walker.spaces.values() if some]
    assert len(spaces) == 3 and index.state[ps.MERGED] > 100
    assert inside.with_index(scan, kind, index).counters(pa.table({"a": [30]}))["nodes"] <= 1
    assert len(index.space) == len(insert(index, preds, codes, 0, 100).space)


def test_crowded_signatures_of_cells_are_made_anew() -> None:
    texts = {i: f"b = {i % 10} AND a BETWEEN {10 * i} AND {10 * i + 5000}" for i in range(1500)}
    scan = cm.Matcher.build(texts, {"a": "int64", "b": "int64"}, index="scan")
    index, preds, codes = empty_tree(scan, "pstbloom"), inside.predicates(scan), inside.codes(scan)
    insert = find("pstbloom").insert
    assert insert is not None
    for begin in range(0, 1500, 100):
        index = insert(index, preds, codes, begin, begin + 100)
        assert index.state[psb.CELL_SIGNED] <= 64 * index.state[psb.CELL_WORDS] * ps.FANOUT
    assert index.state[psb.CELL_SIGNED] > 1500


def test_a_space_that_stays_has_no_bits_of_those_that_went() -> None:
    texts = {i: f"a = {i}" for i in range(100)} | {
        100 + i: f"b = {i} AND a BETWEEN {i} AND {i + 9}" for i in range(100)
    }
    scan = cm.Matcher.build(texts, {"a": "int64", "b": "int64"}, index="scan")
    preds, codes, kind = inside.predicates(scan), inside.codes(scan), find("pstbloom")
    assert kind.insert is not None and kind.delete is not None
    index = kind.insert(empty_tree(scan, "pstbloom"), preds, codes, 0, 200)
    assert index.sign[psb.SPACES_FROM :].any() and index.state[SIGNED] > 0
    index = kind.delete(index, preds, codes, np.arange(100, 200))
    assert not index.sign[psb.SPACES_FROM :].any()


@pytest.mark.parametrize("kind", ["pstbloom", "psthash"])
def test_predicates_that_no_value_meets_are_in_no_list(kind: str) -> None:
    schema = pa.schema({"d": pa.decimal128(9, 2), "i": pa.int64()})
    texts = {1: "d = 1.101 AND i = 5", 2: "d = 1.10 AND i > 3", 3: "d = 2.005", 4: "i IN (5, 6) AND d = 1.109"}
    matcher = cm.Matcher.build(texts, schema, index=kind)
    events = pa.table({"d": [Decimal("1.10"), Decimal("1.11"), None], "i": [5, 5, 6]}, schema)
    assert matcher.match_lists(events).to_pylist() == [[2], [], []]


def test_a_space_grows_while_its_members_enter_their_buckets() -> None:
    """Each insert may find too little room half way, and goes on there with more."""
    rng = Random(0)
    index = cm.index("psthash", construction="dynamic", dimensions=rng.choice([1, 2, 3]))
    matcher = cm.Matcher.build({}, {"a": "int64", "b": "int64"}, index=index)
    texts: dict[int, str] = {}
    for i in range(30):
        parts = []
        for name in rng.sample("ab", rng.choice([1, 2])):
            low = rng.randrange(100)
            wide = f"{name} BETWEEN {low} AND {low + rng.randrange(40)}"
            two, some = f"({name} < {low} OR {name} > {low + 3})", f"{name} IN ({low}, {low + 5}, {low + 20})"
            parts.append(rng.choice([wide, f"{name} >= {low}", f"{name} < {low}", two, some]))
        texts[i] = " AND ".join(parts)
        matcher.insert({i: texts[i]})
    events = pa.table({"a": [rng.randrange(110) for _ in range(60)], "b": [rng.randrange(110) for _ in range(60)]})
    scan = cm.Matcher.build(texts, {"a": "int64", "b": "int64"}, index="scan")
    assert matcher.match_lists(events).to_pylist() == scan.match_lists(events).to_pylist()
