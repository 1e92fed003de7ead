"""Ranges from sizes, and the members of ranges that lie anywhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colmatch.arrays.ranges import members, ranges_of


@pytest.mark.parametrize("dtype", [np.int64, np.uint32, np.uint8, np.bool_])
def test_sizes_of_any_type_make_int64(dtype: type) -> None:
    first = ranges_of(np.array([1, 0, 1], dtype))
    assert first.dtype == np.int64 and first.tolist() == [0, 1, 1, 2]


def test_sizes_that_no_narrow_type_holds() -> None:
    assert ranges_of(np.full(3, 2**31, np.uint32))[-1] == 3 * 2**31


def test_a_list_and_nothing_at_all() -> None:
    assert ranges_of([2, 3]).tolist() == [0, 2, 5]
    assert ranges_of([]).tolist() == [0]
    assert members(np.empty(0, np.int64), ranges_of([])).tolist() == []


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5))))
def test_members_are_those_of_each_range_in_turn(ranges: list[tuple[int, int]]) -> None:
    start = np.array([begin for begin, _ in ranges], np.int64)
    found = members(start, ranges_of([size for _, size in ranges]))
    assert found.dtype == np.int64
    assert found.tolist() == [place for begin, size in ranges for place in range(begin, begin + size)]
