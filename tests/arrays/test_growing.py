"""Arrays with room: what is appended moves little, and views stay as they are."""

from __future__ import annotations

import numpy as np
import pytest

from colmatch.arrays.frozen import freeze_view
from colmatch.arrays.growing import Growing, extend_array


def test_a_long_enough_array_is_itself() -> None:
    array = np.arange(6)
    assert extend_array(array, 3, 6) is array


def test_a_longer_array_keeps_what_is_used_and_is_0_behind() -> None:
    array = np.arange(12, dtype=np.uint32).reshape(4, 3)
    longer = extend_array(array, 2, 5)
    assert longer.dtype == np.uint32 and longer.shape[1:] == (3,) and len(longer) > 5
    assert longer[:2].tolist() == array[:2].tolist() and not longer[2:].any()


def test_single_appends_copy_a_few_times_only() -> None:
    growing, memory = Growing(np.empty(0, np.int64)), set()
    for i in range(5000):
        growing.append(np.array([i]))
        memory.add(growing.view().ctypes.data)
    assert growing.view().tolist() == list(range(5000))
    assert len(memory) < 15


def test_views_stay_as_they_are() -> None:
    growing = Growing(np.arange(3))
    before = growing.view()
    growing.append(np.array([7, 8]))
    with pytest.raises(ValueError, match="read-only"):
        growing.view()[0] = 1
    growing.size = 4
    growing.append(np.array([9]))
    assert before.tolist() == [0, 1, 2] and growing.view().tolist() == [0, 1, 2, 7, 9]


@pytest.mark.parametrize("used", [2, 5])
def test_memory_that_cannot_be_written_is_copied(used: int) -> None:
    whole = freeze_view(np.arange(5))
    growing = Growing(whole)
    growing.size = used
    growing.append(np.array([9]))
    assert growing.view().tolist() == [*range(used), 9] and whole.tolist() == [0, 1, 2, 3, 4]
