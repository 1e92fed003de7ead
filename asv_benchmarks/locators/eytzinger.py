"""Boundaries in the layout of Eytzinger.

The sorted ones are kept for updates, which arrange all of the tree anew.
"""

from __future__ import annotations

import numpy as np

from colmatch.arrays.frozen import seal
from colmatch.kernels.layout import I64
from locators.kernels import eytzinger
from locators.spaces import boundary_kind

IN_LINE = 8  # keys of a cache line


def arranged(bound: I64) -> I64:
    """The perfect tree of boundaries: (2^h) with room for all of them and one more.

    Its place 0 begins a cache line, so that the eight nodes three steps below one share a line.
    """
    size = 1 << len(bound).bit_length()
    memory = np.empty(size + IN_LINE, np.int64)
    begin = -(memory.ctypes.data >> 3) % IN_LINE
    tree = memory[begin : begin + size]
    eytzinger.arrange(bound, tree)
    return seal(tree)


KIND = boundary_kind(
    "eytzinger",
    "boundaries as a perfect tree, level by level, in arrays",
    ready=arranged,
    locate=lambda of, points, space: eytzinger.locate(of.search, len(of.spaces.bound), points, space),
    touch=lambda of, points, counters: eytzinger.touch(of.search, points, counters),
)
