"""PB+tree: reading the contents of a page. ``base`` is the place of its first word in memory."""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.kinds.pbtree.arrays import HEAD, INNER_KEYS, ITEM, ITEMS, SIDS, WORDS

SIGN = 1 << 31
HIGH = 1 << 32
LOW = HIGH - 1


@device
def key_at(mem, i):
    """Returns the key in the words ``i`` and ``i + 1``."""
    return ((np.int64(mem[i + 1]) ^ SIGN) - SIGN) * HIGH + np.int64(mem[i])


@device
def put_key(mem, i, key):
    mem[i] = key & LOW
    mem[i + 1] = (key >> 32) & LOW


@device
def keys_up_to(mem, at, count, key):
    """Counts the keys not above ``key`` among ``count`` ascending keys from word ``at`` on."""
    low, high = np.int64(0), np.int64(count)
    while low < high:
        middle = (low + high) >> 1
        if key_at(mem, at + 2 * middle) <= key:
            low = middle + 1
        else:
            high = middle
    return low


@device
def child_of(mem, base, key):
    """Returns the place of the child for a key in an inner page."""
    return keys_up_to(mem, base + INNER_KEYS, mem[base + ITEMS], key)


@device
def last_item(mem, base, key):
    """Returns the last item of a leaf with a key not above ``key``, or -1."""
    return keys_up_to(mem, base + HEAD, mem[base + ITEMS], key) - 1


@device
def item_at(base, j):
    """Returns the place of item ``j`` of a list node."""
    return base + WORDS - ITEM * (j + 1)


@device
def items_below(mem, base, key):
    """Returns the number of items of a list node with keys below ``key``."""
    low, high = np.int64(0), np.int64(mem[base + ITEMS])
    while low < high:
        middle = (low + high) >> 1
        if key_at(mem, item_at(base, middle)) < key:
            low = middle + 1
        else:
            high = middle
    return low


@device
def begin_of(mem, base, j):
    """Returns the start of the SidSet of item ``j`` among the slots of a list node."""
    return np.int64(0) if j == 0 else np.int64(mem[item_at(base, j - 1) + 2])


@device
def first_key(mem, base):
    return key_at(mem, item_at(base, 0))


@device
def last_key(mem, base):
    return key_at(mem, item_at(base, np.int64(mem[base + ITEMS]) - 1))


@device
def words_used(mem, base):
    """Returns the number of words in use in a list node, without its header."""
    return np.int64(mem[base + SIDS]) + ITEM * np.int64(mem[base + ITEMS])
