"""Lists of conjunctions, in blocks of 2, 4, 8 ... entries of one array.

A list belongs to a row of a table: ``PSTree.space``, or another table with the columns ``LIST``,
``COUNT`` and ``SIZE``. Free blocks of one class form a linked list. Lists that were built at once
are neighbours, without free entries, and have the class NONE. A list that grows moves to a block.
"""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.kinds.pstree.arrays import COUNT, ENTRIES, FREE_BLOCK, LIST, NONE, SIZE


@device
def room_of(size):
    """Returns the number of entries of a block of a class."""
    return np.int64(2) << np.int64(size)


@device
def class_for(count):
    """Returns the class of the smallest block for so many entries."""
    size = np.int64(0)
    while room_of(size) < count:
        size += 1
    return size


@device
def lacks_block(state, entry, count):
    """Returns whether there may be no room for a block of so many entries."""
    return state[ENTRIES] + room_of(class_for(count)) > len(entry)


@device
def _new_block(state, entry, size):
    at = state[FREE_BLOCK + size]
    if at != NONE:
        state[FREE_BLOCK + size] = entry[at, 0]
        return at
    at = state[ENTRIES]
    state[ENTRIES] += room_of(size)
    return at


@device
def copy_entry(entry, at, to):
    entry[to, 0], entry[to, 1], entry[to, 2] = entry[at, 0], entry[at, 1], entry[at, 2]


@device
def drop_list(state, entry, table, row):
    """Frees the block of a list, and empties the list."""
    size = np.int64(table[row, SIZE])
    if size != NONE:
        entry[np.int64(table[row, LIST]), 0] = state[FREE_BLOCK + size]
        state[FREE_BLOCK + size] = table[row, LIST]
    table[row, LIST] = table[row, SIZE] = NONE
    table[row, COUNT] = 0


@device
def has_room(table, row):
    """Returns whether a list has room for one entry more in its block."""
    size = np.int64(table[row, SIZE])
    return size != NONE and np.int64(table[row, COUNT]) < room_of(size)


@device
def push(state, entry, table, row, c, one, two):
    """Appends a conjunction to a list, with the tests of its two best further predicates.

    There must be room for a block of one entry more.
    """
    count = np.int64(table[row, COUNT])
    if not has_room(table, row):
        old = np.int64(table[row, LIST])
        size = class_for(count + 1)
        at = _new_block(state, entry, size)
        for i in range(count):
            copy_entry(entry, old + i, at + i)
        drop_list(state, entry, table, row)
        table[row, LIST], table[row, SIZE] = at, size
    at = np.int64(table[row, LIST]) + count
    entry[at, 0], entry[at, 1], entry[at, 2] = c, one, two
    table[row, COUNT] = count + 1


@device
def pull(state, entry, table, row, c):
    """Removes a conjunction from a list that has it. The last entry takes its place."""
    at = np.int64(table[row, LIST])
    last = at + np.int64(table[row, COUNT]) - 1
    while entry[at, 0] != c:
        at += 1
    copy_entry(entry, last, at)
    table[row, COUNT] = np.int64(table[row, COUNT]) - 1
    if table[row, COUNT] == 0:
        drop_list(state, entry, table, row)


@device
def copy_list(state, entry, table, row, to):
    """Copies the entries of a list to an empty one. There must be room for a block of so many."""
    count, old = np.int64(table[row, COUNT]), np.int64(table[row, LIST])
    if count == 0:
        return
    size = class_for(count)
    at = _new_block(state, entry, size)
    for i in range(count):
        copy_entry(entry, old + i, at + i)
    table[to, LIST], table[to, COUNT], table[to, SIZE] = at, count, size
