"""Heads of records: what does not fit together is refused, without a look beyond the records."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import pytest

from colmatch.kernels.segments.records import check_records, find_section

# as plain Python, since numpy then refuses places that are not there
check: Any = getattr(check_records, "py_func", check_records)
find: Any = getattr(find_section, "py_func", find_section)
SECTIONS = 34
EMPTY, FIRST, LAST = [3, 0, 0], [5, 1, 0, 4, 77], [6, 0, 2, 7, 88, 99]  # length, bits, sizes, words


def checked(*records: list[int]) -> int:
    first = np.cumsum([0, *map(len, records)])
    return int(check(np.array([*chain(*records)], np.uint32), first, SECTIONS))


def test_sections_of_all_records_are_told() -> None:
    assert checked() == checked(EMPTY) == 0
    assert checked(EMPTY, FIRST, EMPTY) == 1 and checked(LAST) == 1 << 33
    assert checked(FIRST, LAST, EMPTY) == 1 | 1 << 33
    both = [7, 1, 2, 4, 4, 77, 88]
    assert checked(both) == 1 | 1 << 33
    words, start, size = np.array(FIRST + LAST + both, np.uint32), np.zeros(3, np.int64), np.zeros(3, np.int64)
    find(words, np.array([0, 5, 11, 18]), 33, start, size)
    assert size.tolist() == [0, 7, 4] and start[1:].tolist() == [4 * (5 + 4), 4 * (11 + 6)]


@pytest.mark.parametrize(
    "record",
    [
        [1],  # without a whole head
        [2, 0],
        [3, 1, 0],  # sections without sizes
        [4, 3, 0, 0],
        [4, 0, 0, 0],  # a size without a section
        [4, 0, 4, 0],  # a section that is not known
        [4, 0, 1 << 31, 0],
        [4, 1, 0, 4],  # more bytes than there are, and fewer
        [5, 1, 0, 5, 77],
        [6, 1, 0, 4, 77, 88],
        [4, 1, 0, 2**32 - 1],
    ],
    ids=str,
)
def test_a_record_that_is_not_as_long_as_its_parts_is_refused(record: list[int]) -> None:
    assert checked(record) == checked(FIRST, record) == -1


@pytest.mark.parametrize("said", [0, 2, 4, 2**32 - 1])
def test_a_record_that_says_another_length_is_refused(said: int) -> None:
    assert checked([said, 0, 0]) == -1
