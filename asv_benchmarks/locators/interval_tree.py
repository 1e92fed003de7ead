"""Interval-Tree: each interval at one node, whose key it contains."""

from __future__ import annotations

import numpy as np

from colmatch.arrays.frozen import contiguous
from colmatch.arrays.growing import extend_array
from colmatch.arrays.ranges import members, ranges_of
from colmatch.errors import OptionError
from colmatch.kernels.layout import I64
from locators.base import counting_kind
from locators.kernels import interval_tree
from locators.kernels.interval_tree import NONE, PLACES, SIZES, USED, IntervalTree

MOST_PLACES = 2**31 - 1  # where lists begin is an int32


def build(low: I64, high: I64) -> IntervalTree:
    """The tree of some intervals, with their lists behind one another."""
    center = np.empty(len(low), np.int64)
    interval_tree.find_forks(low, high, center)
    by_low, by_high = np.lexsort((low, center)), np.lexsort((~high, center))
    some = center[by_low]
    begins = np.flatnonzero(np.r_[True, some[1:] != some[:-1]]) if len(some) else np.empty(0, np.int64)
    size = np.diff(np.r_[begins, len(some)])
    # frexp tells how many bits a number has: the exponent of the power of two above it
    start = ranges_of(np.int64(1) << np.frexp(size - 1)[1].astype(np.int64))
    _check_room(int(start[-1]))
    places = members(start[:-1], ranges_of(size))
    tree = _empty(2 * len(begins), int(start[-1]))
    tree.low[places], tree.low_number[places] = low[by_low], by_low
    tree.high[places], tree.high_number[places] = ~high[by_high], by_high
    tree.state[PLACES] = start[-1]
    interval_tree.plant(tree, contiguous(some[begins]), contiguous(start[:-1]), contiguous(size))
    used = int(tree.state[USED])
    return tree._replace(center=tree.center[:used].copy(), node=tree.node[:used].copy())


def _empty(nodes: int, places: int) -> IntervalTree:
    return IntervalTree(
        np.zeros(nodes, np.int64),
        np.zeros((nodes, 4), np.int32),
        np.zeros(places, np.int64),
        np.zeros(places, np.uint32),
        np.zeros(places, np.int64),
        np.zeros(places, np.uint32),
        np.full(SIZES, NONE),
        np.array([NONE, 0, NONE, 0]),
    )


def _check_room(places: int) -> None:
    if places > MOST_PLACES:
        raise OptionError(
            f"the lists of intervals take {places:,} places, and {MOST_PLACES:,} is the most: divide them among several"
        )


def insert(tree: IntervalTree, low: int, high: int, number: int) -> IntervalTree:
    """The tree with an interval more; arrays without room are replaced by longer ones."""
    used = int(tree.state[USED])
    if used + 2 > len(tree.center):
        tree = tree._replace(
            center=extend_array(tree.center, used, used + 2), node=extend_array(tree.node, used, used + 2)
        )
    while needed := interval_tree.insert(tree, low, high, number):
        _check_room(needed)
        there = int(tree.state[PLACES])
        tree = tree._replace(
            low=extend_array(tree.low, there, needed),
            low_number=extend_array(tree.low_number, there, needed),
            high=extend_array(tree.high, there, needed),
            high_number=extend_array(tree.high_number, there, needed),
        )
    return tree


def delete(tree: IntervalTree, low: int, high: int, number: int) -> IntervalTree | None:
    """The tree without an interval, or None if that is not there."""
    return tree if interval_tree.delete(tree, low, high, number) else None


KIND = counting_kind(
    "interval-tree",
    "a tree with each interval at the highest node whose key it contains",
    build,
    interval_tree.count,
    interval_tree.fill,
    insert,
    delete,
)
