"""Spaces between boundaries, each with the list of the intervals that cover it.

Boundaries are the lower ends of intervals and the keys behind their upper ends. No interval begins
or ends inside a space, so all its keys have one list, and a point needs no more than its space.
Memory is the price: an interval stands in the list of each space that it covers, so lists have as
many entries as there are spaces times how many intervals cover one. That is some n for n short
intervals, and (2 / 3) n^2 for n intervals between any two keys.
"""

from typing import NamedTuple

import numpy as np

from colmatch.kernels._jit import kernel
from colmatch.kernels.bits import ask_for
from colmatch.kernels.layout import I64, U32
from colmatch.kernels.ranges import rewind_ranges

AHEAD = 16  # points whose lists are on their way from memory


class Spaces(NamedTuple):
    """B boundaries, and the lists of the B + 1 spaces around them with E entries."""

    bound: I64  # (B) strictly ascending. space of a key: how many of them are at or below it
    uses: U32  # (B) ends of intervals that lie there, at least 1
    first: I64  # (B + 2) space -> its list
    member: U32  # (E) number of an interval


@kernel
def count_lists(begin, last, first):
    """Write ``Spaces.first`` for intervals that cover the spaces ``begin`` to ``last``.

    begin, last (n) int64
    """
    first[:] = 0
    spaces = len(first) - 1
    for i in range(len(begin)):
        first[begin[i] + 1] += 1
        if last[i] + 2 <= spaces:
            first[last[i] + 2] -= 1
    size = np.int64(0)
    for s in range(spaces):
        size += first[s + 1]
        first[s + 1] = first[s] + size


@kernel
def fill_lists(begin, last, first, member):
    """Write ``Spaces.member`` as ``count_lists`` has cut it; numbers ascend within a list."""
    for i in range(len(begin)):
        for s in range(np.uint64(begin[i]), np.uint64(last[i]) + np.uint64(1)):
            member[np.uint64(first[s])] = i
            first[s] += 1
    rewind_ranges(first, len(first) - 1)


@kernel
def count_spaces(first, space, hits):
    """Write how many intervals the list of each point's space has.

    space (m) int64, hits (m) int64
    """
    m = np.uint64(len(space))
    for i in range(m):
        s = np.uint64(space[i])
        hits[i] = first[s + np.uint64(1)] - first[s]


@kernel
def copy_lists(first, member, space, place, found):
    """Write the intervals of each point's space.

    place (m + 1) int64 : point -> its part of ``found``
    """
    m = np.uint64(len(space))
    for i in range(m):
        soon = min(i + np.uint64(AHEAD), m - np.uint64(1))
        ask_for(member, np.uint64(first[np.uint64(space[soon])]))
        begin = np.uint64(first[np.uint64(space[i])])
        to = np.uint64(place[i])
        for j in range(np.uint64(place[i + np.uint64(1)]) - to):
            found[to + np.uint64(j)] = member[begin + np.uint64(j)]
