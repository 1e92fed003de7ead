"""What BE-Tree and BE*-Tree are about, seen in their counters and tables: each part of them
spares work.
"""

from __future__ import annotations

from random import Random
from typing import Any

import inside
import numpy as np
import pyarrow as pa
import pytest
from tree_walk import Walker, empty_tree

import colmatch as cm
from colmatch.kernels.bits import mix
from colmatch.kernels.kinds.trees import arrays as bt
from colmatch.kernels.kinds.trees.arrays import NONE, Tree
from colmatch.kernels.kinds.trees.change import note_parts
from colmatch.kernels.layout import ATTR_MASK
from colmatch.kinds import trees

TREES = pytest.mark.parametrize("kind", ["betree", "bestar"])
BATCHES = pytest.mark.parametrize("rows", [1, 64])  # a row alone, and rows that go down together
OPTIONS = cm.Options(missing_columns="null")
NAMES = ["a", "b", *(f"x{i}" for i in range(50)), *(f"z{i}" for i in range(5))]
SCHEMA = pa.schema([(name, pa.int64()) for name in NAMES])


def built(texts: list[str], kind: str, **settings: Any) -> cm.Matcher:
    return cm.Matcher.build(dict(enumerate(texts)), SCHEMA, index=cm.index(kind, **settings), options=OPTIONS)


def counted(matcher: cm.Matcher, rows: int = 1, **event: int) -> dict[str, float]:
    """The counters of a batch of equal events, for each."""
    events = pa.table({name: pa.array([value] * rows, pa.int64()) for name, value in event.items()})
    return {name: count / rows for name, count in matcher.counters(events).items()}


def top(tree: Tree) -> int:
    """The topmost bucket of the only attribute that the root is divided by."""
    assert tree.node[bt.ROOT, bt.PARTS] == 1
    return int(tree.part[tree.node[bt.ROOT, bt.FIRST], bt.TOP])


def halves(tree: Tree) -> list[int]:
    """How many conjunctions each of its halves has."""
    return [int(tree.above[tree.node[top(tree), side], bt.BELOW]) for side in (bt.LEFT, bt.RIGHT)]


@TREES
@BATCHES
def test_a_divided_domain_spares_most_leaves(kind: str, rows: int) -> None:
    matcher = built([f"a = {i}" for i in range(300)], kind, capacity=5)
    assert 1 <= counted(matcher, rows, a=7)["conjunctions"] <= 5
    assert max(counted(matcher, a=value)["nodes"] for value in (7, 290)) < 15


def test_the_middle_of_a_domain_is_that_of_its_keys() -> None:
    texts = [f"a = {i}" for i in [*range(200), 1_000_000]]
    keys, codes = (inside.arrays(built(texts, "betree", capacity=5, halves=what)) for what in ("keys", "codes"))
    assert halves(keys) == [200, 1]
    left, right = halves(codes)
    assert left + right == 201 and abs(left - right) <= 2


@TREES
@BATCHES
def test_what_both_halves_would_have_stays_between_them(kind: str, rows: int) -> None:
    """It is read only where its own range is, although its bucket reaches farther."""
    texts = [f"a = {i}" for i in [*range(10), *range(20, 30)]] + ["a BETWEEN 9 AND 20"] * 20
    matcher = built(texts, kind, capacity=5, **({"alpha": 25} if kind == "bestar" else {}))
    assert counted(matcher, rows, a=15)["matches"] == counted(matcher, rows, a=15)["conjunctions"] == 20
    assert counted(matcher, rows, a=3)["conjunctions"] <= (25 if kind == "betree" else 5)


@TREES
@BATCHES
def test_ranking_by_selectivity_finds_what_few_events_meet(kind: str, rows: int) -> None:
    texts = [f"a BETWEEN 0 AND {900 + i % 10} AND x{i % 3} = {i}" for i in range(300)]
    matcher, other = (built(texts, kind, capacity=5, ranking=how) for how in ("selectivity", "popularity"))
    assert counted(matcher, rows, a=5, x0=3)["matches"] == 1
    assert counted(matcher, rows, a=5, x0=3)["conjunctions"] <= 5
    assert counted(matcher, a=5)["nodes"] == 2 < counted(other, a=5)["nodes"]


@TREES
def test_ranking_by_popularity_divides_by_what_most_have(kind: str) -> None:
    texts = [f"a = {i} AND x{i % 50} = 1 AND b >= {i}" if i % 2 else f"x{i % 50} = 1 AND b >= {i}" for i in range(200)]
    tree = inside.arrays(built(texts, kind, capacity=5, ranking="popularity"))
    assert tree.node[bt.ROOT, bt.PARTS] == 1 and tree.part[tree.node[bt.ROOT, bt.FIRST], bt.PART_COUNT] == 200


@TREES
@pytest.mark.parametrize("many", ["ab", "ba"])
def test_a_conjunction_goes_to_the_part_of_the_highest_rank(kind: str, many: str) -> None:
    texts = [f"{many[0]} = {i}" for i in range(50)] + [f"{many[1]} = {i}" for i in range(10)]
    texts += [f"a = {i} AND b = {i}" for i in range(20)]
    tree = inside.arrays(built(texts, kind, capacity=5, ranking="popularity", construction="dynamic"))
    parts = int(tree.node[bt.ROOT, bt.PARTS])
    assert sorted(tree.part[: tree.state[bt.N_PARTS], bt.PART_COUNT][tree.part[:, bt.OWNER] == bt.ROOT]) == [10, 70]
    assert parts == 2


@TREES
@BATCHES
def test_what_needs_an_absent_attribute_is_not_verified(kind: str, rows: int) -> None:
    texts = [f"a = 1 AND x{i} >= 0" for i in range(50)]
    with_it, without = (built(texts, kind, short_circuit=short) for short in (True, False))
    assert counted(with_it, rows, a=1)["candidates"] == 0
    assert counted(with_it, rows, a=1, x3=1)["candidates"] == 1
    assert counted(without, rows, a=1)["candidates"] == 50
    some = pa.table({"a": [1] * 64, "x3": pa.array([1] + [None] * 63, pa.int64())})
    assert with_it.counters(some)["candidates"] == 1


@TREES
@BATCHES
def test_an_entry_whose_range_is_missed_is_not_verified(kind: str, rows: int) -> None:
    matcher = built([f"a = {i}" for i in range(1000)], kind)
    few = counted(matcher, rows, a=7)
    assert few["conjunctions"] > 10 and few["candidates"] == few["matches"] == 1


@TREES
def test_rows_go_down_together(kind: str) -> None:
    matcher = built([f"a = {i}" for i in range(1000)], kind, capacity=5)
    assert counted(matcher, 64, a=7)["nodes"] * 64 == counted(matcher, 1, a=7)["nodes"] > 5


@TREES
def test_a_directory_is_passed_over_or_looked_up(kind: str) -> None:
    """It is read as a whole only where it is short."""
    texts = [f"x{i % 3} = {i} AND z{i % 5} >= 0" for i in range(60)]
    matcher = built(texts, kind, capacity=5)
    assert counted(matcher, **{f"z{i}": 1 for i in range(5)})["nodes"] == 2
    matcher = built([f"x{i % 50} = {i}" for i in range(1000)], kind, capacity=50)
    assert inside.arrays(matcher).node[bt.ROOT, bt.PARTS] >= 45
    assert counted(matcher, x49=-1, x48=-1)["nodes"] <= 2 + 2 * 2 + 2


@BATCHES
def test_values_that_a_part_has_not_end_there(rows: int) -> None:
    matcher = built([f"a = {i}" for i in range(100)], "bestar", capacity=5)
    assert counted(matcher, rows, a=500)["nodes"] * rows == 3


def test_a_much_wider_range_gets_a_bucket_above() -> None:
    """What was there before is not read for values that only the wide range has."""
    texts = ["a BETWEEN 0 AND 99"] * 20 + ["a BETWEEN 0 AND 50000"] * 3
    texts = [f"a = {i % 10 * 10}" for i in range(20)] + texts
    four, many = (built(texts, "bestar", capacity=5, construction="dynamic", beta=beta) for beta in (4, 1000))
    assert inside.arrays(four).state[bt.INJECTED] > inside.arrays(many).state[bt.INJECTED]
    assert counted(four, a=30_000)["conjunctions"] == 3
    assert counted(many, a=30_000)["conjunctions"] > 10


@pytest.mark.parametrize("step", [1, -1])
def test_a_bucket_above_another_gets_a_second_half(step: int) -> None:
    """Else all that comes later would be in its leaf."""
    texts = [f"a = {i * step}" for i in [*range(10), 100_000, 100_000, *range(10, 500)]]
    matcher = built(texts, "bestar", capacity=5, construction="dynamic")
    assert inside.arrays(matcher).state[bt.INJECTED] > 0
    assert max(counted(matcher, a=i * step)["conjunctions"] for i in (3, 20, 50, 300, 499, 100_000)) <= 15


def test_what_lies_between_two_halves_goes_to_the_nearer() -> None:
    low, high = [f"a = {i}" for i in range(10)], [f"a = {10_000 + i}" for i in range(10)]
    texts = [text for pair in zip(low, high, strict=True) for text in pair]
    below, above = ([f"a = {base + i}" for i in range(5)] for base in (20, 9_980))
    for more, counts in ((below, [15, 10]), (above, [10, 15])):
        matcher = built(texts + more, "bestar", capacity=15, construction="dynamic", beta=1000)
        assert halves(inside.arrays(matcher)) == counts


def one_cut(ranges: list[tuple[int, int]], **settings: Any) -> tuple[Tree, int, list[int]]:
    """A tree whose only bucket was cut once; and the codes that its ranges have, by entry."""
    texts = [f"a BETWEEN {lo} AND {hi}" for lo, hi in ranges]
    tree = inside.arrays(built(texts, "bestar", capacity=len(ranges) - 1, **settings))
    assert tree.state[bt.HALVED] == 1
    n = top(tree)
    left, right = (int(tree.node[n, side]) for side in (bt.LEFT, bt.RIGHT))
    return tree, n, [int(tree.node[bucket, bt.COUNT]) for bucket in (left, n, right)]


def cost(ranges: list[tuple[int, int]], cut: int) -> tuple[int, int, list[int]]:
    """Overlap and coverage of the buckets that a cut of keys makes, and how many go where."""
    left, right = [r for r in ranges if r[1] <= cut], [r for r in ranges if r[0] > cut]
    both = [r for r in ranges if r[0] <= cut < r[1]]
    keys = [set(range(min(r)[0], max(hi for _, hi in r) + 1)) if r else set() for r in (left, both, right)]
    return len(keys[1]), len(keys[0] | keys[1] | keys[2]), [len(left), len(both), len(right)]


@pytest.mark.parametrize("seed", range(20))
def test_the_exhaustive_split_is_the_best(seed: int) -> None:
    rng = Random(seed)
    ranges = [(lo, lo + rng.choice([0, 3, 20, 60])) for lo in (rng.randrange(200) for _ in range(20))]
    costs = [cost(ranges, cut) for cut in range(-1, 270)]
    allowed = [one for one in costs if min(one[2][0], one[2][2]) >= 2]
    best = min(allowed)[:2]
    _, _, counts = one_cut(ranges)
    assert counts in [one[2] for one in allowed if one[:2] == best]


def test_the_approximate_split_goes_from_both_ends() -> None:
    _, _, counts = one_cut([(2**i, 2**i) for i in range(20)], split="approximate")
    assert counts == [10, 0, 10]


@pytest.mark.parametrize("split", ["exhaustive", "approximate"])
def test_space_is_cut_where_no_cut_leaves_enough_on_both_sides(split: str) -> None:
    ranges = [(i, i + 50) for i in range(100)]
    tree, _, counts = one_cut(ranges, split=split, alpha=50)
    assert tree.state[bt.SPACED] == 1 and counts[0] > 0 < counts[2]
    tree, _, counts = one_cut(ranges, split=split, alpha=10)
    assert tree.state[bt.SPACED] == 0 and min(counts[0], counts[2]) >= 10


def grown(kind: str, texts: list[str], **settings: Any) -> tuple[cm.Matcher, Tree]:
    scan = cm.Matcher.build(dict(enumerate(texts)), SCHEMA, index="scan")
    tree = empty_tree(scan, kind, **settings)
    return scan, trees.insert_conjunctions(tree, inside.predicates(scan), inside.codes(scan), 0, len(texts))


def shrunk(scan: cm.Matcher, tree: Tree, gone: list[int]) -> tuple[Tree, Walker]:
    preds, codes = inside.predicates(scan), inside.codes(scan)
    tree = trees.remove_conjunctions(tree, preds, codes, np.array(gone, np.int64))
    walker = Walker(tree, preds, codes)
    walker.check({c for c in range(len(preds.owner)) if tree.at[c] != NONE})
    return tree, walker


@TREES
def test_halves_and_parts_of_few_are_given_back(kind: str) -> None:
    scan, tree = grown(kind, [f"a = {i}" for i in range(400)], capacity=20)
    tree, walker = shrunk(scan, tree, list(range(10, 400)))
    assert len(walker.nodes) == 3 and len(walker.parts) == 1
    tree, walker = shrunk(scan, tree, list(range(3, 10)))
    assert len(walker.nodes) == 2 and not walker.parts


def test_a_deletion_looks_no_higher_than_bounds_change() -> None:
    scan, tree = grown("bestar", [f"a = {i // 4}" for i in range(1600)], capacity=20)
    before = int(tree.state[bt.TIGHTENED])
    tree, _ = shrunk(scan, tree, list(range(1, 1600, 200)))
    assert tree.state[bt.TIGHTENED] == before + 8
    tree, _ = shrunk(scan, tree, [0, 2, 3])  # now the lowest value goes, and all above has to know
    assert tree.state[bt.TIGHTENED] > before + 8 + 3


def test_a_deletion_repairs_ranges_of_attributes_further_up() -> None:
    """Buckets of one attribute know the ranges of those that their part hangs below."""
    texts = [f"b BETWEEN 49 AND {51 + i}" for i in range(10)]
    texts += [f"b BETWEEN {50 - i % 10} AND {50 + i % 10} AND a = {i}" for i in range(200)]
    texts += ["b BETWEEN 0 AND 1000 AND a = 3"]
    scan, tree = grown("bestar", texts, capacity=5, ranking="popularity")
    assert tree.above[: tree.state[bt.NODES], bt.LEVEL].max() == 2
    part = tree.part[tree.node[bt.ROOT, bt.FIRST]]
    wide = int(part[bt.PART_HI])
    tree, _ = shrunk(scan, tree, [210])
    assert tree.part[tree.node[bt.ROOT, bt.FIRST], bt.PART_HI] < wide


@TREES
def test_parts_are_found_after_others_have_gone(kind: str) -> None:
    """Those that stood in one run of the hash table with them are moved up."""
    scan, tree = grown(kind, [f"x{i % 50} = {i}" for i in range(1000)], capacity=20)
    tree = tree._replace(slot=np.zeros(128, np.uint32))  # a small one, in which runs are long
    note_parts(tree)
    used = np.flatnonzero(tree.slot)
    parts = tree.part[tree.slot[used] - 1]
    wanted = [mix(int(part[bt.OWNER]), int(part[bt.PART_ATTR])) % len(tree.slot) for part in parts]
    moved = set(parts[used != wanted, bt.PART_ATTR].tolist())
    assert moved, "no two parts want one place, so this shows nothing"
    preds = inside.predicates(scan)
    attribute = preds.pred[preds.first[:-1], 0] & ATTR_MASK
    tree, walker = shrunk(scan, tree, [c for c in range(1000) if int(attribute[c]) not in moved])
    assert len(walker.parts) == len(moved) and len(tree.slot) == 128


@TREES
def test_what_cannot_be_divided_is_looked_at_ever_less_often(kind: str) -> None:
    _, tree = grown(kind, ["a = 1"] * 1000, capacity=5)
    assert 1 <= tree.state[bt.RAISED] <= 8


@TREES
@pytest.mark.parametrize("evaluation", ["memo", "bitmap"])
def test_a_predicate_that_many_have_is_evaluated_once(kind: str, evaluation: str) -> None:
    texts = [f"a BETWEEN 0 AND {i} AND b NOT IN (3, 5) AND x0 BETWEEN 0 AND 9" for i in range(100)]
    apart = 100 + 100  # those with a range of their own, and those of several intervals
    lazy, once = (built(texts, kind, evaluation=how) for how in ("lazy", evaluation))
    event = {"a": 0, "b": 1, "x0": 5}
    assert counted(lazy, 64, **event)["predicates"] == 300
    assert counted(once, 64, **event)["predicates"] == apart + 1
    assert counted(once, 1, **event)["predicates"] == 300  # a row alone
    for seen in ({"a": 0, "b": 5, "x0": 5}, {"a": 0, "b": 1, "x0": 10}, {"a": 99, "b": 1, "x0": 0}, event):
        assert counted(once, 40, **seen)["matches"] == counted(lazy, 1, **seen)["matches"]


@TREES
def test_a_bitmap_has_the_predicates_on_attributes_that_are_there(kind: str) -> None:
    """Those on others are not evaluated, and those that nothing leads to are."""
    texts = [f"a = {i % 10} AND x{i % 2} = {i}" for i in range(100)]
    memo, bitmap = (built(texts, kind, evaluation=how) for how in ("memo", "bitmap"))
    assert counted(memo, 64, a=-1)["predicates"] == 0
    assert counted(bitmap, 64, a=-1)["predicates"] == 10
    assert counted(bitmap, 64, a=-1, x1=0)["predicates"] == 10 + 50


@TREES
@pytest.mark.parametrize("evaluation", ["memo", "bitmap"])
def test_what_one_tile_found_is_not_taken_for_another(kind: str, evaluation: str) -> None:
    matcher = built([f"a BETWEEN {i} AND 9 AND x{i} = 1" for i in range(10)], kind, evaluation=evaluation)
    values = [i // 64 % 10 for i in range(640)]
    events = pa.table({"a": values, **{f"x{i}": [1] * 640 for i in range(10)}})
    assert np.bincount(matcher.match(events)["event"], minlength=640).tolist() == [value + 1 for value in values]


@TREES
@pytest.mark.parametrize("evaluation", ["memo", "bitmap"])
def test_predicates_are_shared_whatever_the_number_of_attributes(kind: str, evaluation: str) -> None:
    """Beyond 1,024 attributes, a tile is made for these ways of evaluation alone."""
    texts = {i: f"a BETWEEN 0 AND {i} AND b < 5 AND x{i} = 1" for i in range(1100)}
    schema = dict.fromkeys(["a", "b", *(f"x{i}" for i in range(1100))], "int64")
    events = pa.table({"a": [0] * 64, "b": [1] * 64, **{f"x{i}": [1] * 64 for i in range(1100)}})
    lazy, once = (
        cm.Matcher.build(texts, schema, cm.index(kind, evaluation=how)).counters(events) for how in ("lazy", evaluation)
    )
    assert lazy["predicates"] == 64 * 3 * 1100
    assert once["predicates"] == 64 * (2 * 1100 + 1)
    assert once["matches"] == lazy["matches"] == 64 * 1100
