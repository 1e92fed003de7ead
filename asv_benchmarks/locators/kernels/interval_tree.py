"""Interval-Tree: each interval at the highest node whose key it contains.

Source: Edelsbrunner's centered interval tree. A node has a key, its center, and the intervals that
contain it, once by lower and once by upper end. A point below the center is in those that begin at
or below it, which are the first by lower end; then it goes on to the left. Above, by upper end and
to the right. So nothing is read in vain but the nodes, and each interval stands in two lists,
however long it is.

Deviation: a center is no median, but the key in the interval that a halving of all int64 keys
comes to first (``fork``), and only nodes with intervals or two children are there. The tree then
depends on its intervals alone, not on their order of arrival, so inserts and deletes move no other
node. A child is cut by a finer halving than its parent, so a way down has at most 65 nodes.

Lists have room for the next power of two. What is full moves to another place, and what is left
goes to a list of free ones by size; free places are not joined again.
"""

from typing import Annotated, NamedTuple

import numpy as np

from colmatch.kernels._jit import brief, device, kernel
from colmatch.kernels.layout import I32, I64, KEY_MIN, U32
from colmatch.kernels.search import first_at_least, first_at_least_from
from locators.kernels.counting import LINE, LINES, NODES

LEFT, RIGHT, START, SIZE = 0, 1, 2, 3  # columns of ``IntervalTree.node``
ROOT, USED, FREE_NODE, PLACES = 0, 1, 2, 3  # places of ``IntervalTree.state``
NONE = -1
SIZES = 32  # powers of two that lists may have room for


class IntervalTree(NamedTuple):
    """M nodes and room for lists of L places."""

    center: I64  # (M)
    node: Annotated[I32, 4]  # (M, 4) left child, right child, where its lists begin, how long they are
    low: I64  # (L) lower ends, ascending within a node
    low_number: U32  # (L) the intervals of these
    high: I64  # (L) complements of upper ends, ascending within a node: the highest end is first
    high_number: U32  # (L) the intervals of these
    free: I64  # (SIZES) first place of a free list of 2^i, whose ``low`` begins with the next; or NONE
    state: I64  # (4) root; nodes used; first free node, whose left child is the next; places used


@device
def fork(low, high):
    """The key in ``low`` to ``high`` that comes first when all keys are halved again and again.

    Of all keys in the interval, it has the most zeros at its end.
    """
    if low == KEY_MIN:
        return low
    x = (low - 1) ^ high
    if x < 0:
        return np.int64(0)
    for shift in (1, 2, 4, 8, 16, 32):
        x |= x >> shift
    return high & ~(x >> 1)


@kernel
def find_forks(low, high, center):
    """Write the fork of each interval: (n) int64."""
    for i in range(len(low)):
        center[i] = fork(low[i], high[i])


@device
def _new_node(tree, center):
    at = tree.state[FREE_NODE]
    if at != NONE:
        tree.state[FREE_NODE] = tree.node[at, LEFT]
    else:
        at = tree.state[USED]
        tree.state[USED] = at + 1
    tree.center[at] = center
    tree.node[at, LEFT] = tree.node[at, RIGHT] = NONE
    tree.node[at, START] = tree.node[at, SIZE] = 0
    return at


@device
def _free_node(tree, at):
    tree.node[at, LEFT] = tree.state[FREE_NODE]
    tree.state[FREE_NODE] = at


@device
def _link(tree, above, side, at):
    if above == NONE:
        tree.state[ROOT] = at
    else:
        tree.node[above, side] = at


@device
def _node_of(tree, key):
    """The node with this center, which is made where there is none: it may take two nodes."""
    at, above, side = tree.state[ROOT], np.int64(NONE), LEFT
    parting = np.int64(0)
    while at != NONE:
        center = tree.center[at]
        if center == key:
            return at
        parting = fork(min(center, key), max(center, key))
        if parting != center:
            break
        above, side = at, LEFT if key < center else RIGHT
        at = np.int64(tree.node[above, side])
    made = _new_node(tree, key)
    if at == NONE:
        _link(tree, above, side, made)
        return made
    top = made if parting == key else _new_node(tree, parting)
    _link(tree, above, side, top)
    tree.node[top, LEFT if tree.center[at] < parting else RIGHT] = at
    if top != made:
        tree.node[top, LEFT if key < parting else RIGHT] = made
    return made


@kernel
def plant(tree, center, start, size):
    """Make the nodes for lists that stand there already, one for each center.

    center, start, size (n) int64. There must be room for twice as many nodes.
    """
    for i in range(len(center)):
        at = _node_of(tree, center[i])
        tree.node[at, START], tree.node[at, SIZE] = start[i], size[i]


@device
def _power(size):
    """The number of the power of two that has room for a list."""
    power = 0
    while 1 << power < size:
        power += 1
    return power


@device
def _put(key, number, start, size, new_key, new_number):
    """Enter an interval into an ascending list, which has room for it."""
    at = start + size
    while at > start and key[at - 1] > new_key:
        key[at], number[at] = key[at - 1], number[at - 1]
        at -= 1
    key[at], number[at] = new_key, new_number


@brief
def insert(tree, low, high, number):
    """Enter an interval; there must be room for two nodes.

    Returns 0, or how many places for lists there must be. Then call it again with these.
    """
    at = _node_of(tree, fork(low, high))
    start, size = np.int64(tree.node[at, START]), np.int64(tree.node[at, SIZE])
    power = _power(size)
    if size == 0 or size == 1 << power:
        bigger = power + (size > 0)
        to = tree.free[bigger]
        if to != NONE:
            tree.free[bigger] = tree.low[to]
        else:
            to = tree.state[PLACES]
            if to + (1 << bigger) > len(tree.low):
                return to + (1 << bigger)
            tree.state[PLACES] = to + (1 << bigger)
        for i in range(size):
            tree.low[to + i], tree.low_number[to + i] = tree.low[start + i], tree.low_number[start + i]
            tree.high[to + i], tree.high_number[to + i] = tree.high[start + i], tree.high_number[start + i]
        if size > 0:
            _free_list(tree, start, power)
        tree.node[at, START] = start = to
    _put(tree.low, tree.low_number, start, size, low, number)
    _put(tree.high, tree.high_number, start, size, ~high, number)
    tree.node[at, SIZE] = size + 1
    return np.int64(0)


@device
def _free_list(tree, start, power):
    tree.low[start] = tree.free[power]
    tree.free[power] = start


@device
def _place(key, number, start, size, old_key, old_number):
    """Where an interval stands in an ascending list, or NONE."""
    at = first_at_least(key, start, start + size, old_key)
    while at < start + size and key[at] == old_key:
        if number[at] == old_number:
            return at
        at += 1
    return np.int64(NONE)


@device
def _take(key, number, at, end):
    for i in range(at, end - 1):
        key[i], number[i] = key[i + 1], number[i + 1]


@brief
def delete(tree, low, high, number):
    """Take an interval out. Returns whether it was there."""
    center = fork(low, high)
    at, above, side = tree.state[ROOT], np.int64(NONE), LEFT
    highest, turn = np.int64(NONE), LEFT  # the node above ``above``, and the side of that
    while at != NONE and tree.center[at] != center:
        highest, turn = above, side
        above, side = at, LEFT if center < tree.center[at] else RIGHT
        at = np.int64(tree.node[above, side])
    if at == NONE:
        return False
    start, size = np.int64(tree.node[at, START]), np.int64(tree.node[at, SIZE])
    by_low = _place(tree.low, tree.low_number, start, size, low, number)
    by_high = _place(tree.high, tree.high_number, start, size, ~high, number)
    if by_low == NONE or by_high == NONE:
        return False
    _take(tree.low, tree.low_number, by_low, start + size)
    _take(tree.high, tree.high_number, by_high, start + size)
    size -= 1
    tree.node[at, SIZE] = size
    power = _power(size)
    if size == 0:
        _free_list(tree, start, 0)
        _splice(tree, at, above, side, highest, turn)
    elif size == 1 << power:  # the upper half is no longer needed
        _free_list(tree, start + size, power)
    return True


@device
def _splice(tree, at, above, side, highest, turn):
    """Leave out a node without intervals, unless two children need it.

    Then the one above it, if that has no intervals and only one child is left to it.
    """
    left, right = np.int64(tree.node[at, LEFT]), np.int64(tree.node[at, RIGHT])
    if left != NONE and right != NONE:
        return
    _link(tree, above, side, right if left == NONE else left)
    _free_node(tree, at)
    if left == NONE and right == NONE and above != NONE and tree.node[above, SIZE] == 0:
        _link(tree, highest, turn, np.int64(tree.node[above, RIGHT if side == LEFT else LEFT]))
        _free_node(tree, above)


@kernel
def count(tree, points, hits, counters):
    """Write how many intervals contain each point.

    points (m) int64, hits (m) int64, counters of ``counting.py``
    """
    nodes, lines = np.int64(0), np.int64(0)
    for i in range(len(points)):
        key, total = points[i], np.int64(0)
        at = tree.state[ROOT]
        while at != NONE:
            size, to = _first_of(tree, at, key)
            nodes += 1
            # Its center, the rest of it, and what is read of its list.
            lines += 2 + (tree.node[at, SIZE] > 0) + (size >> LINE)
            total += size
            at = to
        hits[i] = total
    counters[NODES] += nodes
    counters[LINES] += lines


@device
def _first_of(tree, at, key):
    """How many intervals of a node contain a key, and the node to go on with."""
    center, start, size = tree.center[at], np.int64(tree.node[at, START]), np.int64(tree.node[at, SIZE])
    if key == center:
        return size, np.int64(NONE)
    if key < center:
        return first_at_least_from(tree.low, start, start + size, key + 1) - start, np.int64(tree.node[at, LEFT])
    return first_at_least_from(tree.high, start, start + size, ~key + 1) - start, np.int64(tree.node[at, RIGHT])


@kernel
def fill(tree, points, place, found):
    """Write the intervals that contain each point.

    place (m + 1) int64 : point -> its part of ``found``
    """
    for i in range(len(points)):
        key, to = points[i], place[i]
        at = tree.state[ROOT]
        while at != NONE:
            start, above = np.int64(tree.node[at, START]), key > tree.center[at]
            size, at = _first_of(tree, at, key)
            for j in range(start, start + size):
                found[to] = tree.high_number[j] if above else tree.low_number[j]
                to += 1
