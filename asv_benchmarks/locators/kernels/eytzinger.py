"""Boundaries as a perfect binary tree, level by level: the layout of Eytzinger.

What the first steps of a search compare stands together and stays in the cache. A perfect tree has
2^h - 1 nodes; those for which there are no boundaries have ``KEY_MAX``. The way down, a bit for
each step, is then the number of boundaries at or below the key: no table of ranks is needed, and
each search takes h steps.

Points go down together: 64 of them take each step before any takes the next. One point after the
other, with nodes asked for three steps ahead, took three times as long with a million boundaries.
"""

import numpy as np

from colmatch.kernels._jit import kernel
from colmatch.kernels.bits import ctz
from colmatch.kernels.layout import KEY_MAX
from locators.kernels.counting import read_key

ONE = np.uint64(1)
TILE = 64  # points that go down together


@kernel
def arrange(bound, tree):
    """Write the tree: (2^h) int64 with 2^h > B.

    The root is at 1, and the children of k are at 2k and 2k + 1.
    The middle of what is left is a node's key, so node number r in ascending order, from 1, stands
    as high as r has zeros at its end.
    """
    tree[0] = KEY_MAX
    height = ctz(np.uint64(len(tree)))
    for r in range(np.uint64(1), np.uint64(len(tree))):
        number = np.uint64(r)
        zeros = ctz(number)
        at = (ONE << (height - zeros - ONE)) + (number >> (zeros + ONE))
        tree[at] = bound[number - ONE] if number <= np.uint64(len(bound)) else KEY_MAX


@kernel
def locate(tree, boundaries, points, space):
    """Write the space of each point.

    boundaries : how many there are, points (m) int64, space (m) int64, which has the nodes that
    points are at on their way. ``KEY_MAX`` may go behind all boundaries.

    Many points go down together, so that no step waits for the one before. With a million
    boundaries that takes 66 ns a point; one point after the other, each node asked for three steps
    ahead, took 200, and 21 instead of 15 with a thousand. To ask for nodes here as well gained
    nothing.
    """
    height = np.int64(ctz(np.uint64(len(tree))))
    m = np.uint64(len(points))
    for begin in range(np.uint64(0), m, np.uint64(TILE)):
        end = min(np.uint64(begin) + np.uint64(TILE), m)
        for i in range(np.uint64(begin), end):
            space[i] = 1
        for _ in range(height):
            for i in range(np.uint64(begin), end):
                at = np.uint64(space[i])
                space[i] = np.int64(at + at + np.uint64(tree[at] <= points[i]))
        for i in range(np.uint64(begin), end):
            space[i] = min(space[i] - len(tree), boundaries)


@kernel
def touch(tree, points, counters):
    """Count what ``locate`` reads; counters are those of ``counting.py``."""
    height = np.int64(ctz(np.uint64(len(tree))))
    for i in range(len(points)):
        at, line = np.int64(1), -1
        for _ in range(height):
            line = read_key(counters, at, line)
            at = at + at + np.int64(tree[at] <= points[i])
