"""What each locator is about: the shape of the trees, and what is read for a point."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from locators.eytzinger import arranged
from locators.kernels.counting import LINES, NODES
from locators.locator import Locator
from locators.registry import LOCATORS
from test_locators import CHANGES, INTERVALS, changed
from tree_shapes import check_interval_tree, check_segment_tree, shape

from colmatch.arrays.frozen import freeze_view
from colmatch.kernels.layout import KEY_MAX, KEY_MIN


@given(st.lists(INTERVALS, max_size=30))
@example([])
@example([(KEY_MIN, KEY_MAX), (KEY_MIN, 0), (1, KEY_MAX), (KEY_MAX, KEY_MAX)])
@example([(k, k + 5) for k in range(20)])
def test_a_segment_tree_has_each_interval_at_the_fewest_nodes(intervals):
    check_segment_tree(Locator(intervals, "segment-tree").arrays, intervals)


@given(st.lists(INTERVALS, max_size=20), CHANGES)
@example([(0, 9)] * 5, [(False, (0, 9), 0)] * 5)
@example([(k, k) for k in range(8)], [(False, (0, 0), k * 5) for k in range(8)] + [(True, (3, 4), 0)] * 9)
def test_an_interval_tree_has_what_it_needs_and_no_more(intervals, changes):
    locator = Locator(intervals, "interval-tree")
    check_interval_tree(locator.arrays, dict(enumerate(intervals)))
    for now in changed(locator, dict(enumerate(intervals)), changes):
        check_interval_tree(locator.arrays, now)


def test_an_interval_tree_is_the_same_in_whatever_order_it_grew():
    rng = Random(4)
    intervals = [tuple(sorted(rng.choices(range(-500, 500), k=2))) for _ in range(60)]
    intervals += [(k, k + 1) for k in range(300, 200, -1)]  # sorted: a plain tree would be a chain
    built = shape(Locator(intervals, "interval-tree").arrays)
    for _ in range(4):
        order = rng.sample(range(len(intervals)), len(intervals))
        grown = Locator([], "interval-tree")
        for n in order:
            grown.insert(*intervals[n], n)
            grown.insert(n, n + 7, 1000 + n)
        for n in order[::-1]:
            grown.delete(n, n + 7, 1000 + n)
        assert shape(grown.arrays) == built
    assert all(n <= 20 for n in most_nodes(Locator(intervals, "interval-tree")))


def most_nodes(locator):
    return [int(locator.touched([point])[NODES]) for point in range(-10, 310, 10)]


@given(st.lists(st.integers(KEY_MIN, KEY_MAX), max_size=40, unique=True))
def test_boundaries_in_the_layout_of_eytzinger(bounds):
    bound = freeze_view(np.array(sorted(bounds), np.int64))
    tree = arranged(bound)
    size = len(tree)
    assert size > len(bound) and size & (size - 1) == 0 and tree.ctypes.data % 64 == 0

    def ascending(k):
        return [*ascending(2 * k), int(tree[k]), *ascending(2 * k + 1)] if k < size else []

    assert ascending(1) == [*bound.tolist(), *[KEY_MAX] * (size - 1 - len(bound))]


def touched(name, intervals, points):
    return Locator(intervals, name).touched(points) / len(points)


def test_what_is_read_for_a_point():
    """Hints read little among even keys and near the lowest; in a crowd elsewhere they halve."""
    n = 1000
    even = np.arange(n, dtype=np.int64) * 1000
    lowest = np.append(np.arange(n - 1, dtype=np.int64) * 1000, 2**60)
    crowded = np.append(-(2**60), np.arange(n - 1, dtype=np.int64) * 1000)
    reads = {
        (name, how): touched(name, np.stack([low, low + 499], 1), low + 7)
        for name in LOCATORS
        for how, low in (("even", even), ("lowest", lowest), ("crowded", crowded))
    }
    for (name, how), read in reads.items():
        assert read[LINES] > 0, (name, how)
    assert reads["scan", "even"][NODES] == n
    for how in ("even", "lowest", "crowded"):
        assert reads["eytzinger", how][NODES] == 11  # 2000 boundaries
        assert 10 <= reads["binary", how][NODES] <= 11
        assert reads["eytzinger", how][LINES] <= reads["binary", how][LINES] + 2
        assert reads["segment-tree", how][NODES] == 12
        assert reads["interval-tree", how][NODES] < 25
    assert reads["hinted", "lowest"][NODES] < 6
    # A cell, and as many steps as the fullest cell of some points takes.
    assert reads["hinted", "even"][NODES] == 2 and reads["hinted", "even"][LINES] < 3
    assert reads["hinted", "crowded"][NODES] == 12


@pytest.mark.parametrize("name", [name for name, kind in LOCATORS.items() if kind.locate])
def test_memory_grows_with_the_spaces_that_intervals_cover(name):
    """Short intervals stand in few lists, nested ones in all."""
    short, nested = [(10 * k, 10 * k + 5) for k in range(200)], [(-k, k) for k in range(1, 201)]
    entries = [len(Locator(some, name).arrays.spaces.member) for some in (short, nested)]
    assert entries == [200, 200 * 200]


@pytest.mark.parametrize("seed", range(20))
def test_an_interval_tree_makes_room_for_two_nodes_at_once(seed):
    """Whichever insert is the one that finds its arrays full."""
    rng = Random(seed)
    grown, intervals = Locator([], "interval-tree"), {}
    for n in range(60):
        low = rng.randrange(-(10**6), 10**6)
        intervals[n] = (low, low + rng.choice([0, 1, 1000]))
        grown.insert(*intervals[n], n)
    check_interval_tree(grown.arrays, intervals)
