"""Segment-Tree: intervals at the few nodes that cover them, over the spaces between boundaries.

It is static, as its source is: to add a boundary is to build it anew.
"""

from __future__ import annotations

import numpy as np

from colmatch.arrays.frozen import freeze, seal
from colmatch.kernels.layout import I64
from locators.base import counting_kind
from locators.eytzinger import arranged
from locators.kernels import segment_tree
from locators.kernels.segment_tree import SegmentTree
from locators.spaces import cut


def build(low: I64, high: I64) -> SegmentTree:
    """The tree of some intervals."""
    parts = cut(low, high)
    tree = arranged(seal(parts.bound))
    # Keys from the last boundary on may go down to any space behind it.
    last = np.where(parts.last == len(parts.bound), len(tree) - 1, parts.last)
    begin, last = seal(parts.begin), seal(last)
    first = np.empty(2 * len(tree) + 1, np.int64)
    segment_tree.count_nodes(begin, last, first)
    member = np.empty(first[-1], np.uint32)
    segment_tree.fill_nodes(begin, last, first, member)
    return freeze(SegmentTree(tree, first, member))


KIND = counting_kind(
    "segment-tree",
    "a tree over the spaces, with each interval at the highest nodes that it covers",
    build,
    segment_tree.count,
    segment_tree.fill,
)
