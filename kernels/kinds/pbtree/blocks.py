"""PB+tree: small trees, each of which is one block on a page with others of its size.

::

    number of the tree plus 1; 0 in a free block
    how many entries each of the six lists has, two numbers in a word
    room for slots, ordered by list and key
    room for their keys, in the same order

A block has room for as many entries as its page says, one of ``ROOMS``. The argument ``block`` is
the place of its first word in memory.

A value looks at one page for all six lists: first for ranges that do not hold, then for what holds.
So a task holds one page here, too. Sizes at least double, so a third of a block is free on average.
A tree moves to the next smaller block when it fills at most three quarters of it, so inserts and
deletes in turn move nothing. Small nodes of lists were the other design: leaf and lists of a tree
would lie in several pages, each with a header of 48 bytes, and each move would change pointers.
"""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.kinds.pbtree import arrays as pb
from colmatch.kernels.kinds.pbtree.counts import count_slots, miss_slots, note_span
from colmatch.kernels.kinds.pbtree.pages import key_at, put_key


@device
def class_for(count):
    """Returns the smallest size of block for so many entries, as its place in ``ROOMS``.

    The result is ``len(ROOMS)`` where no block has room.
    """
    size_class = np.int64(0)
    while size_class < len(pb.ROOMS) and pb.ROOMS[size_class] < count:
        size_class += 1
    return size_class


@device
def block_words(size_class):
    return pb.BLOCK_HEAD + pb.BLOCK_ENTRY * pb.ROOMS[size_class]


@device
def blocks_of(size_class):
    """Returns how many blocks of a size a page has."""
    return pb.CHILDREN // block_words(size_class)


@device
def count_of(mem, block, which):
    """Returns how many entries a list has."""
    return (np.int64(mem[block + 1 + which // 2]) >> (16 * (which & 1))) & 0xFFFF


@device
def add_count(mem, block, which, count):
    mem[block + 1 + which // 2] = np.int64(mem[block + 1 + which // 2]) + (count << (16 * (which & 1)))


@device
def begin_in_block(mem, block, which):
    """Returns at which of a block's entries a list begins."""
    begin = np.int64(0)
    for i in range(which):
        begin += count_of(mem, block, i)
    return begin


@device
def total_of(mem, block):
    return begin_in_block(mem, block, np.int64(pb.LISTS))


@device
def bisect_keys(mem, keys, low, high, key, behind):
    """Returns the first of the entries ``low:high`` whose key is not below ``key``.

    behind : return the first whose key is above ``key`` instead
    """
    while low < high:
        middle = (low + high) >> 1
        there = key_at(mem, keys + 2 * middle)
        if there < key or (behind and there == key):
            low = middle + 1
        else:
            high = middle
    return low


@device
def around(mem, block, room, which, key):
    """Returns where a list begins, where a key begins in it, where that key ends, and the list."""
    begin = begin_in_block(mem, block, which)
    end = begin + count_of(mem, block, which)
    keys = block + pb.BLOCK_HEAD + room
    low = bisect_keys(mem, keys, begin, end, key, False)
    return begin, low, bisect_keys(mem, keys, low, end, key, True), end


@device
def visit_block(mem, base, place, stage, key, left, spans, done, finished):
    """Counts what a value says of the slots of a block.

    The stage ``BLOCK_MISSES`` counts ranges that do not hold, the next one what holds. Ranges are
    counted from the side of the value on which fewer of their ends lie.

    Returns how many slots are complete, and how many were counted.
    """
    block, room = base + place, pb.ROOMS[np.int64(mem[base + pb.SIZE_CLASS])]
    slots, counted = block + pb.BLOCK_HEAD, np.int64(0)
    low_begin, _, begun, low_end = around(mem, block, room, pb.LOW_END, key)
    high_begin, ended, _, high_end = around(mem, block, room, pb.HIGH_END, key)
    is_low = begun - low_begin + ended - high_begin <= low_end - begun + high_end - ended
    if stage == pb.BLOCK_MISSES:
        begin, end = (high_begin, ended) if is_low else (begun, low_end)
        note_span(spans, slots + begin, slots + end)
        miss_slots(mem, slots + begin, slots + end, left)
        return finished, end - begin
    for which in range(pb.LISTS):
        if count_of(mem, block, which) == 0:
            continue
        begin, low, up, end = around(mem, block, room, np.int64(which), key)
        other, other_end = end, end
        if which == pb.UNEQUAL:
            low, up, other = begin, low, up
        elif which == pb.GREATER or which == pb.LOW_END:
            low = begin
        elif which != pb.EQUAL:
            up = end
        if low < up and which != (pb.HIGH_END if is_low else pb.LOW_END):
            note_span(spans, slots + low, slots + up)
            finished = count_slots(mem, slots + low, slots + up, left, done, finished)
            counted += up - low
        if other < other_end:
            note_span(spans, slots + other, slots + other_end)
            finished = count_slots(mem, slots + other, slots + other_end, left, done, finished)
            counted += other_end - other
    return finished, counted


@device
def put_entry(mem, block, room, i, key, slot):
    mem[block + pb.BLOCK_HEAD + i] = slot
    put_key(mem, block + pb.BLOCK_HEAD + room + 2 * i, key)


@device
def move_entries(mem, block, room, begin, end, by):
    """Moves the entries ``begin:end`` by one place: to the back by 1, to the front by -1."""
    for j in range(end - begin):
        i = begin + j if by < 0 else end - 1 - j
        source = block + pb.BLOCK_HEAD
        mem[source + i + by] = mem[source + i]
        source += room + 2 * i
        put_key(mem, source + 2 * by, key_at(mem, source))


@device
def enter_in_block(mem, block, room, which, key, slot):
    """Enters a slot behind the others of its key in a list. The block must have room for it."""
    _, _, behind, _ = around(mem, block, room, which, key)
    move_entries(mem, block, room, behind, total_of(mem, block), 1)
    put_entry(mem, block, room, behind, key, slot)
    add_count(mem, block, which, 1)


@device
def remove_from_block(mem, block, room, which, key, slot):
    """Takes a slot of a key out of a list. Returns whether it was there."""
    _, low, behind, _ = around(mem, block, room, which, key)
    for i in range(low, behind):
        if mem[block + pb.BLOCK_HEAD + i] == slot:
            move_entries(mem, block, room, i + 1, total_of(mem, block), -1)
            add_count(mem, block, which, -1)
            return True
    return False


@device
def copy_block(mem, block, room, to, to_room):
    """Copies a small tree to a block that has room for it."""
    total = total_of(mem, block)
    for i in range(pb.BLOCK_HEAD):
        mem[to + i] = mem[block + i]
    for i in range(total):
        put_entry(
            mem, to, to_room, i, key_at(mem, block + pb.BLOCK_HEAD + room + 2 * i), mem[block + pb.BLOCK_HEAD + i]
        )
