"""The contract of locators: whatever the kind, the intervals that contain a point are those that
plain Python finds.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from locators import spaces
from locators.locator import Locator
from locators.registry import LOCATORS, find
from numba.core import config

from colmatch.errors import OptionError
from colmatch.kernels import _jit
from colmatch.kernels.layout import KEY_MAX, KEY_MIN

BY_SPACES = [name for name, kind in LOCATORS.items() if kind.locate]
DYNAMIC = [name for name, kind in LOCATORS.items() if kind.insert]
STATIC = [name for name in LOCATORS if name not in DYNAMIC]

NEAR_ENDS = [KEY_MIN, KEY_MIN + 1, -1, 0, 1, KEY_MAX - 1, KEY_MAX]
KEYS = st.integers(-8, 8) | st.sampled_from(NEAR_ENDS) | st.integers(KEY_MIN, KEY_MAX)
INTERVALS = st.tuples(KEYS, KEYS).map(lambda ends: (min(ends), max(ends)))
WHOLE = (KEY_MIN, KEY_MAX)


def containing(intervals, point):
    return sorted(number for number, (low, high) in intervals.items() if low <= point <= high)


def points_of(intervals):
    """Both ends of each interval, and the keys beside them."""
    ends = {end + step for pair in intervals for end in pair for step in (-1, 0, 1)}
    return sorted(key for key in {*ends, *NEAR_ENDS} if KEY_MIN <= key <= KEY_MAX)


def check(locator, intervals, points):
    """``intervals`` by number."""
    points = np.array(points, np.int64)
    first, found = locator.stab(points)
    got = [sorted(found[first[i] : first[i + 1]].tolist()) for i in range(len(points))]
    assert got == [containing(intervals, point) for point in points.tolist()]
    assert locator.count(points).tolist() == [len(numbers) for numbers in got]
    assert len(found) == first[-1] and locator.nbytes >= 0


@pytest.mark.parametrize("name", LOCATORS)
@given(st.lists(INTERVALS, max_size=30), st.lists(KEYS, max_size=10))
@example([], [0])
@example([WHOLE], [])
@example([WHOLE, WHOLE, (KEY_MIN, KEY_MIN), (KEY_MAX, KEY_MAX)], [3])
@example([(0, 4), (0, 4), (2, 4)], [3])
@example([(k, k) for k in range(70)], [100])  # more points than go down a tree together
def test_points_are_in_the_intervals_that_contain_them(name, intervals, points):
    locator = Locator(intervals, name)
    check(locator, dict(enumerate(intervals)), [*points, *points_of(intervals)])


@pytest.mark.parametrize("name", LOCATORS)
def test_many_intervals(name):
    rng = np.random.default_rng(5)
    low = rng.integers(-(10**6), 10**6, 300)
    low[:100] >>= 12  # crowded
    intervals = np.stack([low, low + rng.integers(0, 20_000, 300)], 1)
    check(Locator(intervals, name), dict(enumerate(map(tuple, intervals.tolist()))), points_of(intervals.tolist()))


@pytest.mark.parametrize("name", BY_SPACES)
@given(st.lists(INTERVALS, max_size=30), st.lists(KEYS, max_size=10))
@example([(KEY_MIN, 3), (5, KEY_MAX)], [])
def test_a_space_is_the_number_of_boundaries_at_or_below(name, intervals, points):
    bounds = {low for low, _ in intervals if low > KEY_MIN} | {high + 1 for _, high in intervals if high < KEY_MAX}
    points = [*points, *points_of(intervals)]
    located = Locator(intervals, name).locate(np.array(points, np.int64))
    assert located.tolist() == [sum(bound <= point for bound in bounds) for point in points]


@pytest.mark.parametrize("name", [name for name in LOCATORS if name not in BY_SPACES])
def test_what_has_no_spaces_says_so(name):
    with pytest.raises(OptionError, match=f"'{name}' has no spaces: use 'hinted'"):
        Locator([[1, 2]], name).locate([1])


CHANGES = st.lists(st.tuples(st.booleans(), INTERVALS, st.integers(0, 10**6)), max_size=40)


def changed(locator, intervals, changes):
    """Inserts and deletes some; yields what intervals there are after each."""
    number = len(intervals)
    for inserts, interval, pick in changes:
        if inserts or not intervals:
            locator.insert(*interval, number)
            intervals[number] = interval
            number += 1
        else:
            gone = sorted(intervals)[pick % len(intervals)]
            locator.delete(*intervals.pop(gone), gone)
        yield intervals


@pytest.mark.parametrize("name", DYNAMIC)
@given(st.lists(INTERVALS, max_size=12), CHANGES)
@example([(0, 9)] * 3, [(True, (0, 9), 0)] * 6 + [(False, (0, 9), 1)] * 9)
def test_intervals_come_and_go(name, intervals, changes):
    locator = Locator(intervals, name)
    seen = list(intervals)
    for now in changed(locator, dict(enumerate(intervals)), changes):
        seen += [interval for interval in now.values() if interval not in seen]
        check(locator, now, points_of(seen)[:40])


@pytest.mark.parametrize("name", BY_SPACES)
@given(st.lists(INTERVALS, max_size=12), CHANGES)
@example([(1, 5), (6, 9)], [(True, (6, 9), 0), (False, (0, 0), 1), (False, (0, 0), 0), (False, (0, 0), 0)])
def test_spaces_after_updates_are_those_of_what_is_there(name, intervals, changes):
    """A boundary goes with its last interval, whatever else covers it."""
    locator = Locator(intervals, name)
    for now in changed(locator, dict(enumerate(intervals)), changes):
        of = locator.arrays.spaces
        numbers = sorted(now)
        built = spaces.build_spaces(*np.array([now[n] for n in numbers], np.int64).reshape(-1, 2).T)
        assert of.bound.tolist() == built.bound.tolist()
        assert of.uses.tolist() == built.uses.tolist()
        assert of.first.tolist() == built.first.tolist()
        ranges = list(zip(of.first[:-1].tolist(), of.first[1:].tolist(), strict=True))
        assert [sorted(of.member[a:b].tolist()) for a, b in ranges] == [
            sorted(numbers[i] for i in built.member[a:b].tolist()) for a, b in ranges
        ]
        assert not any(array.flags.writeable for array in (*of, *built))


@pytest.mark.parametrize("name", STATIC)
def test_what_is_static_says_so(name):
    locator = Locator([[1, 2]], name)
    for change in (locator.insert, locator.delete):
        with pytest.raises(OptionError, match=f"'{name}' is static: build another"):
            change(1, 2, 0)


@pytest.mark.parametrize("name", DYNAMIC)
@pytest.mark.parametrize(
    "interval",
    [(1, 9, 1), (2, 8, 0), (1, 8, 0), (2, 9, 0), (2, 12, 0), (-5, 9, 0), (100, 200, 0), (KEY_MIN, KEY_MAX, 7)],
)
def test_what_is_not_there_cannot_be_deleted(name, interval):
    """And nothing has changed afterwards."""
    there = {0: (2, 9), 1: (2, 8), 2: (0, 12)} if interval == (1, 9, 1) else {0: (1, 9), 1: (2, 8), 2: (0, 12)}
    if interval == (2, 9, 0):
        there = {0: (1, 9), 1: (2, 9), 2: (0, 12)}
    locator = Locator([there[n] for n in range(3)], name)
    with pytest.raises(OptionError, match=f"interval {interval[2]} from .* is not there"):
        locator.delete(*interval)
    check(locator, there, points_of(there.values()))


@pytest.mark.parametrize("name", DYNAMIC)
@pytest.mark.parametrize("part", [(5, 9), (1, 5), (5, 5), (KEY_MIN, 9), (1, KEY_MAX)])
def test_a_part_of_an_interval_cannot_be_deleted(name, part):
    """Where nothing else begins or ends, the part lies in the one space that the interval has."""
    locator = Locator([(1, 9)], name)
    with pytest.raises(OptionError, match="interval 0 from .* is not there"):
        locator.delete(*part, 0)
    check(locator, {0: (1, 9)}, range(-1, 12))


@pytest.mark.parametrize("name", LOCATORS)
def test_malformed_input_is_met_at_the_door(name):
    for wrong in ([[3, 1]], [[0, 1], [5, 4]]):
        with pytest.raises(OptionError, match=f"interval {len(wrong) - 1} is from . to .: give the lower"):
            Locator(wrong, name)
    for wrong in ([[1.5, 2.5]], [1, 2], [[1, 2, 3]], np.array([[1, 2]], np.uint64)):
        with pytest.raises(OptionError, match="give integers of int64, a lower and an upper end"):
            Locator(wrong, name)
    locator = Locator([[1, 2]], name)
    for points in ([0.5], [[1]], ["a"]):
        with pytest.raises(OptionError, match="give int64 in one dimension"):
            locator.stab(points)


@pytest.mark.parametrize("name", DYNAMIC)
def test_an_update_checks_its_interval(name):
    locator = Locator([[1, 2]], name)
    for low, high, number in ((2, 1, 5), (0, 2**63, 5), (-(2**63) - 1, 0, 5), (1, 2, -1), (1, 2, 2**32)):
        for change in (locator.insert, locator.delete):
            with pytest.raises(OptionError, match=f"interval .*{number}"):
                change(low, high, number)


def test_an_unknown_name():
    with pytest.raises(OptionError, match="did you mean 'interval-tree'"):
        find("intervaltree")


@pytest.mark.parametrize("name", BY_SPACES)
def test_lists_that_would_fill_the_memory_are_refused(name, monkeypatch):
    """Nested intervals: n of them stand n^2 times in lists."""
    nested = [(-k, k) for k in range(1, 11)]
    monkeypatch.setattr(spaces, "MOST_ENTRIES", 100)
    locator = Locator(nested, name)
    with pytest.raises(OptionError, match="stand 101 times .* use 'interval-tree'"):
        Locator([*nested, (50, 50)], name)
    with pytest.raises(OptionError, match="stand 101 times"):
        locator.insert(50, 50, 10)
    check(locator, dict(enumerate(nested)), points_of(nested))


@pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")
@pytest.mark.parametrize("name", LOCATORS)
def test_kernels_have_one_signature(name):
    """However the arrays came about, or callers would wait for compilations of their own."""
    locator = Locator([[1, 2], [3, 4]], name)
    for points in ([2], np.arange(9)[::2], np.arange(3, dtype=np.int32)):
        locator.stab(points)
        locator.touched(points)
        if name in DYNAMIC:
            locator.insert(3, 9, 2)
            locator.delete(3, 9, 2)
    kernels = [kernel for kernel in _jit.kernels() if kernel.__module__.startswith("locators.kernels.")]
    assert any(kernel.signatures for kernel in kernels)
    assert not [kernel for kernel in kernels if len(kernel.signatures) > 1]
