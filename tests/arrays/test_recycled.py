"""Memory of results is used again, but never while anybody can see it."""

from __future__ import annotations

import gc

import numpy as np
import pyarrow as pa

import colmatch as cm
from colmatch.arrays.recycled import KEPT, LARGE, RecycledArrays

SIZE = LARGE  # elements of eight bytes


def place(array: np.ndarray) -> int:
    return int(array.ctypes.data)


def test_what_nobody_holds_is_given_again() -> None:
    memory = RecycledArrays()
    first = place(memory.array(SIZE, np.int64))
    assert place(memory.array(SIZE - 5, np.int64)) == first
    held = memory.array(SIZE // 2, np.uint32)
    assert (place(held), held.dtype, held.shape) == (first, np.uint32, (SIZE // 2,))
    assert place(memory.array(SIZE, np.int64)) != first


def test_a_part_of_a_result_keeps_all_of_it() -> None:
    memory = RecycledArrays()
    array = memory.array(SIZE, np.int64)
    first = place(array)
    array[:] = 7
    result = pa.table({"a": array})
    del array
    part = result["a"].chunk(0).slice(3, 2)
    capsule = part.__arrow_c_array__()
    del result, part
    gc.collect()
    memory.array(SIZE, np.int64)[:] = 0
    assert pa.Array._import_from_c_capsule(*capsule).to_pylist() == [7, 7]
    del capsule
    gc.collect()
    assert first in {place(memory.array(SIZE, np.int64)) for _ in range(3)}


def test_little_is_kept() -> None:
    memory = RecycledArrays()
    memory.array(LARGE // 8 - 1, np.int64)
    assert not memory._arrays
    results = [memory.array(SIZE, np.int64) for _ in range(3 * KEPT)]
    assert len({place(result) for result in results}) == 3 * KEPT
    assert len(memory._arrays) == KEPT
    del results
    larger = memory.array(2 * SIZE, np.int64)  # those that are too small go
    assert len(memory._arrays) == 1
    assert len(larger) == 2 * SIZE


def test_a_result_outlives_the_next() -> None:
    matcher = cm.Matcher.build(
        {i: f"a >= {i % 10}" for i in range(1000)}, {"a": "int64"}, options=cm.Options(threads=1)
    )
    results, copies = [], []
    for shift in range(3 * KEPT):
        events = pa.table({"a": (np.arange(100) + shift) % 12})
        for result in (matcher.match(events), matcher.match_lists(events)):
            results.append(result)
            copies.append(result.to_pylist())
    assert [result.to_pylist() for result in results] == copies
