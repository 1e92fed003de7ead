"""PB+tree: small trees. Each is one block, on a page with others of its size.

::

    number of the tree plus 1; 0 in a free block
    numbers of entries of the six lists, two in a word
    room for slots, ordered by list and key
    room for their keys, in the same order

A block can hold as many entries as its page says, one of ``ROOMS``. The argument ``block`` is the
place of its first word in memory.

A value reads one page for all six lists: first for the ranges that it misses, then for the
predicates that it meets. So a task holds only one page here, too. Sizes at least double, so a third
of a block is free on average. A tree moves to the next smaller block when it fills at most three
quarters of it, so alternating inserts and deletes move nothing.

Small nodes of lists were the other design. The leaf and the lists of a tree would be in several
pages with headers of 48 bytes. Each move would change pointers.
"""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.kinds.pbtree import arrays as pb
from colmatch.kernels.kinds.pbtree.counts import count_slots, miss_slots, note_span
from colmatch.kernels.kinds.pbtree.pages import key_at, put_key


@device
def class_for(count):
    """Returns the smallest size of block for so many entries, as its place in ``ROOMS``.

    The result is ``len(ROOMS)`` if no block has room.
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
    """Returns the number of blocks of a size on a page."""
    return pb.CHILDREN // block_words(size_class)


@device
def count_of(mem, block, which):
    """Returns the number of entries of a list."""
    return (np.int64(mem[block + 1 + which // 2]) >> (16 * (which & 1))) & 0xFFFF


@device
def add_count(mem, block, which, count):
    mem[block + 1 + which // 2] = np.int64(mem[block + 1 + which // 2]) + (count << (16 * (which & 1)))


@device
def begin_in_block(mem, block, which):
    """Returns the first entry of a list among the entries of a block."""
    begin = np.int64(0)
    for i in range(which):
        begin += count_of(mem, block, i)
    return begin


@device
def total_of(mem, block):
    return begin_in_block(mem, block, np.int64(pb.LISTS))


@device
def bisect_keys(mem, keys, low, high, key, behind):
    """Returns the first of the entries ``low:high`` with a key not below ``key``.

    behind : return the first entry with a key above ``key`` instead
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
def find_key_range(mem, block, room, which, key):
    """Returns the start of a list, the start and end of a key in it, and the end of the list."""
    begin = begin_in_block(mem, block, which)
    end = begin + count_of(mem, block, which)
    keys = block + pb.BLOCK_HEAD + room
    low = bisect_keys(mem, keys, begin, end, key, False)
    return begin, low, bisect_keys(mem, keys, low, end, key, True), end


@device
def visit_block(mem, base, place, stage, key, left, spans, done, finished):
    """Counts the slots of a block for a value.

    The stage ``BLOCK_MISSES`` counts the missed ranges, the next one the met predicates. Ranges are
    counted from the side of the value with fewer of their ends.

    Returns the number of complete slots, and the number of slots counted.
    """
    block, room = base + place, pb.ROOMS[np.int64(mem[base + pb.SIZE_CLASS])]
    slots, counted = block + pb.BLOCK_HEAD, np.int64(0)
    # Choose the side of the value with fewer ends of ranges
    low_begin, _, begun, low_end = find_key_range(mem, block, room, pb.LOW_END, key)
    high_begin, ended, _, high_end = find_key_range(mem, block, room, pb.HIGH_END, key)
    is_low = begun - low_begin + ended - high_begin <= low_end - begun + high_end - ended
    # Count the missed ranges
    if stage == pb.BLOCK_MISSES:
        begin, end = (high_begin, ended) if is_low else (begun, low_end)
        note_span(spans, slots + begin, slots + end)
        miss_slots(mem, slots + begin, slots + end, left)
        return finished, end - begin
    # Find the met entries of each list: one range of them, or two
    for which in range(pb.LISTS):
        if count_of(mem, block, which) == 0:
            continue
        begin, low, up, end = find_key_range(mem, block, room, np.int64(which), key)
        other, other_end = end, end
        if which == pb.UNEQUAL:
            low, up, other = begin, low, up
        elif which == pb.GREATER or which == pb.LOW_END:
            low = begin
        elif which != pb.EQUAL:
            up = end
        # Count them; ranges are counted at one end only
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
    """Enters a slot behind the other slots of its key in a list. The block must have room."""
    _, _, behind, _ = find_key_range(mem, block, room, which, key)
    move_entries(mem, block, room, behind, total_of(mem, block), 1)
    put_entry(mem, block, room, behind, key, slot)
    add_count(mem, block, which, 1)


@device
def remove_from_block(mem, block, room, which, key, slot):
    """Removes a slot of a key from a list. Returns whether it was there."""
    _, low, behind, _ = find_key_range(mem, block, room, which, key)
    for i in range(low, behind):
        if mem[block + pb.BLOCK_HEAD + i] == slot:
            move_entries(mem, block, room, i + 1, total_of(mem, block), -1)
            add_count(mem, block, which, -1)
            return True
    return False


@device
def copy_block(mem, block, room, to, to_room):
    """Copies a small tree to a block with room for it."""
    total = total_of(mem, block)
    for i in range(pb.BLOCK_HEAD):
        mem[to + i] = mem[block + i]
    for i in range(total):
        put_entry(
            mem, to, to_room, i, key_at(mem, block + pb.BLOCK_HEAD + room + 2 * i), mem[block + pb.BLOCK_HEAD + i]
        )
