"""Boundaries as the cuts of a PS-Tree, which is found in by the digits of a key.

Source: Ji and Jacobsen, "PS-Tree-Based Efficient Boolean Expression Matching for High-Dimensional
and Dense Workloads" (section 4). The tree itself takes cuts one by one (``kernels/pstree``); the
lists of spaces are those of the other kinds here, so an update makes all anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from colmatch.kernels.hints import TILE
from colmatch.kernels.kinds.pstree.arrays import WALK_WORDS, PSTree
from colmatch.kernels.kinds.pstree.tables import MOST_DIGITS
from colmatch.kernels.layout import I64, KEY_MAX, U32
from colmatch.kinds.pstrees import add_rows, empty_tables
from locators.kernels import ps_tree
from locators.spaces import boundary_kind


class Digits(NamedTuple):
    """A PS-Tree of keys from the lowest boundary on, whose S spaces have numbers of their own."""

    ends: I64  # (2) lowest and highest boundary
    tree: PSTree
    rank: U32  # (S) how many boundaries are at or below a space of the tree


def ready(bound: I64) -> Digits:
    """The PS-Tree with these boundaries for cuts: each space is entered as a range of keys."""
    ends = bound[[0, -1]] if len(bound) else np.full(2, KEY_MAX)
    keys = (bound if len(bound) else ends[:1]).view(np.uint64) - ends[:1].view(np.uint64)
    low, high = keys, np.append(keys[1:] - np.uint64(1), keys[-1])
    attr = np.zeros(len(low), np.uint32)
    tree = add_rows(empty_tables(keys[-1:].copy(), 0), len(low), len(low), len(low))
    done = 0
    while (done := ps_tree.enter_ranges(tree, attr, low, high, done)) < len(low):
        left = len(low) - done
        tree = add_rows(tree, 2 * MOST_DIGITS + left, 2 + left, 3 + left)
    space = np.empty(len(low), np.uint32)
    ps_tree.find_spaces(tree, attr, low, space)
    rank = np.empty(len(tree.space), np.uint32)
    rank[space] = np.arange(len(low), dtype=np.uint32) + np.uint32(len(bound) > 0)
    return Digits(ends, tree, rank)


KIND = boundary_kind(
    "ps-tree",
    "boundaries in a radix tree of their digits, 4 bits each",
    ready=ready,
    locate=lambda of, points, space: ps_tree.locate(
        of.search,
        points,
        np.zeros(TILE, np.uint32),
        np.empty(TILE, np.uint64),
        np.empty((TILE, WALK_WORDS), np.uint32),
        space,
    ),
    touch=lambda of, points, counters: ps_tree.touch(of.search, points, counters),
)
