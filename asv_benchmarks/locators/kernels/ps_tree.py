"""Boundaries as the cuts of a PS-Tree: a key is found by its digits."""

import numpy as np

from colmatch.kernels._jit import kernel
from colmatch.kernels.hints import SIGN
from colmatch.kernels.kinds.pstree.arrays import FOUND, PREDS, USES
from colmatch.kernels.kinds.pstree.change import (
    begin_attribute,
    count_spaces,
    cut_at,
    needs_cut_above,
    needs_cut_below,
    run_of,
)
from colmatch.kernels.kinds.pstree.search import find_space, find_together, next_shift
from colmatch.kernels.kinds.pstree.tables import MOST_DIGITS, lacks_rows
from colmatch.kernels.predicates import Event
from locators.kernels.counting import LINES, NODES


@kernel
def enter_ranges(tree, attr, lo, hi, begin):
    """Enters predicates on attributes, those from place ``begin`` on, until there is no room.

    Returns how many are done.

    attr (P) uint32, lo, hi (P) uint64 : closed ranges of keys
    """
    for i in range(begin, len(attr)):
        if lacks_rows(tree, 2 * MOST_DIGITS, 2, 3):
            return i
        a = np.int64(attr[i])
        begin_attribute(tree, a)
        if needs_cut_below(tree, lo[i]):
            cut_at(tree, a, lo[i])
        if needs_cut_above(tree, a, hi[i]):
            cut_at(tree, a, hi[i] + np.uint64(1))
        s, last = run_of(tree, a, lo[i], hi[i])
        count_spaces(tree.space, s, last, PREDS, 1)
        tree.tree[a, USES] += 1
    return len(attr)


@kernel
def find_spaces(tree, attr, key, space):
    """Writes the space that has each key, NONE where the attribute has none.

    attr (N) uint32, key (N) uint64, space (N) uint32
    """
    for i in range(len(attr)):
        space[i] = find_space(tree.tree, tree.top, tree.inner, tree.cut, np.int64(attr[i]), key[i])


@kernel
def locate(of, points, attr, key, walk, space):
    """Write the space of each point.

    of : ends (2) int64, the lowest and the highest boundary; ``PSTree`` of one attribute, whose
    keys count from the lowest; rank (S), number of each of its spaces. points (m) int64, space (m)
    int64. For a while: attr (n) uint32 of zeros, key (n) uint64, walk (n, 4), of n keys at a time
    """
    rank = of.rank
    lowest, highest = of.ends
    for start in range(0, len(points), len(key)):
        size = min(len(key), len(points) - start)
        for i in range(size):
            key[i] = (np.uint64(min(max(points[start + i], lowest), highest)) ^ SIGN) - (np.uint64(lowest) ^ SIGN)
        find_together(of.tree, Event(attr, key, np.int64(0), size, attr), walk)
        for i in range(size):
            space[start + i] = 0 if points[start + i] < lowest else rank[walk[i, FOUND]]


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
