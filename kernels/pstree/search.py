"""The space of a key, found by its digits."""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.bits import ctz, popcount
from colmatch.kernels.pstree.arrays import CHILDREN, DIGIT_BITS, EQUAL, FIRST, LESS, NONE, ROOT


@device
def digit_of(key, shift):
    return (key >> shift) & np.uint64(15)


@device
def next_shift(shift):
    """Where the next digit begins. The last may share bits with the one before."""
    return shift - min(shift, np.uint64(DIGIT_BITS))


@device
def highest_bit(bits):
    """Number of the highest bit of up to 16."""
    for step in (1, 2, 4, 8):
        bits |= bits >> np.uint64(step)
    return popcount(bits) - np.uint64(1)


@device
def find_space(tree, top, inner, cut, a, key):
    """The space of an attribute that has a key, NONE where the attribute has no spaces.

    Where the key's path ends, a neighbour in the same inner node leads to a cut beside the key: the
    first one above, whose ``LESS`` is the space, or the last one below, whose ``EQUAL`` is.
    """
    n = np.int64(tree[a, ROOT])
    if n == NONE:
        return np.int64(tree[a, FIRST])
    shift = np.uint64(top[a])
    while True:
        digit = digit_of(key, shift)
        above = np.uint64(inner[n, CHILDREN]) >> digit
        if above & np.uint64(1) == 0:
            break
        n = np.int64(inner[n, digit])
        if shift == 0:
            return np.int64(cut[n, EQUAL])
        shift = next_shift(shift)
    side = LESS if above != 0 else EQUAL
    digit = digit + ctz(above) if above != 0 else highest_bit(np.uint64(inner[n, CHILDREN]))
    n = np.int64(inner[n, digit])
    while shift != 0:
        shift = next_shift(shift)
        children = np.uint64(inner[n, CHILDREN])
        n = np.int64(inner[n, ctz(children) if side == LESS else highest_bit(children)])
    return np.int64(cut[n, side])


@device
def find_cut(tree, a, key):
    """The cut at a key, NONE without one."""
    n, shift = np.int64(tree.tree[a, ROOT]), np.uint64(tree.top[a])
    while n != NONE:
        n = np.int64(tree.inner[n, digit_of(key, shift)])
        if shift == 0:
            return n
        shift = next_shift(shift)
    return n
