"""PB+tree: what leaves have for the nodes of a list."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from colmatch.kernels._jit import kernel
from colmatch.kernels.kinds.pbtree.arrays import LISTS, PREV, WORDS
from colmatch.kernels.kinds.pbtree.editing import MISSED, PageCache
from colmatch.kernels.kinds.pbtree.lists import pointer_to


@kernel
def each_pointer(pages, nodes, out):
    for i in range(len(nodes)):
        out[i] = pointer_to(pages, nodes[i])


def pages_of(frame: list[int]) -> PageCache:
    """Pages of which nothing is known but in which frame of five each stands."""
    return PageCache(
        mem=np.zeros(5 * WORDS, np.uint32), frame=np.array(frame, np.int32), used=np.zeros(5, np.uint8),
        dirty=np.zeros(5, np.uint8), shadow=np.zeros(WORDS, np.uint32), shadow_of=np.zeros((1, 2), np.int64),
        fresh=np.zeros(0, np.int64), freed=np.zeros(1, np.int64), carried=np.zeros(LISTS, np.int64),
        state=np.zeros(6, np.int64),
    )  # fmt: skip


def pointers(pages: PageCache, nodes: list[int]) -> list[int]:
    out: NDArray[np.int64] = np.full(len(nodes), -1)
    each_pointer(pages, np.array(nodes, np.int64), out)
    return out.tolist()


def test_no_leaf_points_to_the_first_node_of_a_list() -> None:
    """Its place is in the entry of the tree, so a pointer of 0 leads there."""
    pages = pages_of([-1, 3, 1, 4, 2])  # page 4 stands in frame 2
    for page, before in ((1, 0), (4, 1), (2, 4), (3, 0)):
        pages.mem[WORDS * int(pages.frame[page]) + PREV] = before
    assert pointers(pages, [0, 1, 4, 2, 3]) == [0, 0, 4, 2, 0]
    assert pages.state.tolist() == [0] * 6 and pages.used.tolist() == [0, 1, 1, 1, 1]


def test_a_node_that_is_not_in_memory_is_asked_for() -> None:
    pages = pages_of([-1, 1, -1])
    pointers(pages, [2])
    assert pages.state[MISSED] == 2 and not pages.used.any()
