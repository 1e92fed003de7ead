"""Segment-Tree: each interval in the list of the few nodes that together cover what it covers.

A perfect tree stands over the spaces between boundaries; its inner nodes have the boundaries in the
layout of Eytzinger. An interval is listed at the highest nodes whose spaces it covers all, at most
two of each level, so lists have n log n entries however long intervals are. A point has the lists
of all nodes on its way from the root to its space. The structure is static: another boundary moves
all nodes.
"""

from typing import NamedTuple

import numpy as np

from colmatch.kernels._jit import kernel
from colmatch.kernels.bits import ask_for, ctz
from colmatch.kernels.layout import I64, U32
from colmatch.kernels.ranges import begin_ranges, rewind_ranges
from locators.kernels.counting import LINES, NODES

ONE = np.uint64(1)


class SegmentTree(NamedTuple):
    """2^h spaces, the last ones of no key, and a node for each 2^k of them; E entries of lists."""

    cut: I64  # (2^h) inner node -> the key at which its right child begins, as ``eytzinger.arrange`` writes it
    first: I64  # (2^(h + 1) + 1) node -> its list; the root is 1, the children of k are 2k and 2k + 1
    member: U32  # (E) number of an interval


@kernel
def count_nodes(begin, last, first):
    """Write ``SegmentTree.first`` for intervals that cover the spaces ``begin`` to ``last``.

    begin, last (n) int64
    """
    first[:] = 0
    half = (len(first) - 1) >> 1
    for i in range(len(begin)):
        low, end = begin[i] + half, last[i] + half + 1
        while low < end:
            if low & 1:
                first[low + 1] += 1
                low += 1
            if end & 1:
                end -= 1
                first[end + 1] += 1
            low >>= 1
            end >>= 1
    begin_ranges(first, len(first) - 1)


@kernel
def fill_nodes(begin, last, first, member):
    """Write ``SegmentTree.member`` as ``count_nodes`` has cut it."""
    half = (len(first) - 1) >> 1
    for i in range(len(begin)):
        low, end = begin[i] + half, last[i] + half + 1
        while low < end:
            if low & 1:
                member[first[low]] = i
                first[low] += 1
                low += 1
            if end & 1:
                end -= 1
                member[first[end]] = i
                first[end] += 1
            low >>= 1
            end >>= 1
    rewind_ranges(first, len(first) - 1)


@kernel
def count(tree, points, hits, counters):
    """Write how many intervals contain each point.

    points (m) int64, hits (m) int64, counters of ``counting.py``
    """
    cut, first = tree.cut, tree.first
    steps = np.int64(ctz(np.uint64(len(cut)))) + 1
    for i in range(np.uint64(len(points))):
        at, size = ONE, np.int64(0)
        for step in range(steps):
            ask_for(first, at << np.uint64(3))
            size += first[at + ONE] - first[at]
            if step < steps - 1:
                ask_for(cut, at << np.uint64(3))
                at = at + at + np.uint64(cut[at] <= points[i])
        hits[i] = size
    counters[NODES] += len(points) * steps
    counters[LINES] += len(points) * (2 * steps - 1)


@kernel
def fill(tree, points, place, found):
    """Write the intervals that contain each point.

    place (m + 1) int64 : point -> its part of ``found``
    """
    cut, first, member = tree.cut, tree.first, tree.member
    steps = np.int64(ctz(np.uint64(len(cut)))) + 1
    for i in range(np.uint64(len(points))):
        at, to = ONE, np.uint64(place[i])
        for step in range(steps):
            for j in range(np.uint64(first[at]), np.uint64(first[at + ONE])):
                found[to] = member[j]
                to += ONE
            if step < steps - 1:
                at = at + at + np.uint64(cut[at] <= points[i])
