"""Boundaries as the cuts of a PS-Tree: a key is found by its digits."""

import numpy as np

from colmatch.kernels._jit import kernel
from colmatch.kernels.hints import SIGN
from colmatch.kernels.locators.counting import LINES, NODES
from colmatch.kernels.pstree.search import find_space, next_shift


@kernel
def locate(of, points, space):
    """Write the space of each point.

    of : ends (2) int64, the lowest and the highest boundary; ``PSTree`` of one attribute, whose
    keys count from the lowest; rank (S), number of each of its spaces. points (m) int64, space (m)
    int64
    """
    trees, top, inner, cut, rank = of.tree.tree, of.tree.top, of.tree.inner, of.tree.cut, of.rank
    lowest, highest = of.ends
    for i in range(len(points)):
        point = points[i]
        if point < lowest:
            space[i] = 0
        else:
            key = (np.uint64(min(point, highest)) ^ SIGN) - (np.uint64(lowest) ^ SIGN)
            space[i] = rank[find_space(trees, top, inner, cut, 0, key)]


@kernel
def touch(of, points, counters):
    """Count what ``locate`` reads; counters are those of ``counting.py``.

    All ways down are equally long, where a key's own digits end by way of a neighbour. Each inner
    node has two lines, of which the child is in one and the bits of all children in the other; then
    come the cut and the space's number.
    """
    inner, shift = np.int64(1), np.uint64(of.tree.top[0])
    while shift != 0:
        shift = next_shift(shift)
        inner += 1
    counters[NODES] += len(points) * (inner + 1)
    counters[LINES] += len(points) * (2 * inner + 2)
