"""Changes of runs in an OpIndex: entries come and go, and many ranges are divided by width."""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.kinds.opindex import arrays as oi
from colmatch.kernels.kinds.opindex.arrays import class_of, count_below, find_run, signature_bit
from colmatch.kernels.room import add_room

LOW = 2**32 - 1
ONE_RUN = 1 << 32


@device
def count_columns(op):
    """Returns the number of words of an entry."""
    return 3 if op & 3 == oi.BETWEEN else 2


@device
def runs_of(segment, s):
    """Returns the runs of a segment: the first, and one past the last."""
    begin = np.int64(segment[s, 1] & np.uint64(LOW))
    return begin, begin + np.int64(segment[s, 1] >> np.uint64(32))


@device
def find_class(run, begin, end, hash, width):
    """Finds the run of an attribute and a class of width among the runs ``begin:end``.

    Returns its place, or the place for it, and whether it exists.

    width : a class, or ALL_WIDTHS for the run that is not divided by class
    """
    r = np.int64(find_run(run, np.uint64(begin), np.uint64(end), hash))
    while r < end and run[r, oi.HASH] == hash and run[r, oi.WIDTH] < width:
        r += 1
    return r, r < end and run[r, oi.HASH] == hash and min(np.int64(run[r, oi.WIDTH]), np.int64(oi.ALL_WIDTHS)) == width


@device
def is_divided(segment, run, s, hash):
    """Returns whether the ranges of an attribute are divided by class of width.

    This is also True if they must be divided before the next insert.
    """
    begin, end = runs_of(segment, s)
    r, there = find_class(run, begin, end, hash, oi.ALL_WIDTHS)
    return (r > begin and run[r - 1, oi.HASH] == hash) or (there and run[r, oi.SIZE] >= oi.UNDIVIDED)


@device
def divide(index, number, s, hash, op):
    """Moves the entries of the run of all widths into runs by class.

    Returns 0, or the room that an array lacks; another call continues from there.
    """
    segment, run, word = index.segment, index.run, index.word
    while True:
        begin, end = runs_of(segment, s)
        r, there = find_class(run, begin, end, hash, oi.ALL_WIDTHS)
        if not there or run[r, oi.SIZE] == 0:
            return np.int64(0)
        last, room = np.int64(run[r, oi.WORD]) + np.int64(run[r, oi.SIZE]) - 1, np.int64(run[r, oi.ROOM])
        lower, mark, upper = np.int64(word[last]), np.int64(word[last + room]), np.int64(word[last + 2 * room])
        lacking = enter(index, number, s, hash, class_of(lower, upper), op, lower, upper, mark)
        if lacking > 0:
            return lacking
        begin, end = runs_of(segment, s)
        r, there = find_class(run, begin, end, hash, oi.ALL_WIDTHS)
        run[r, oi.SIZE] = np.int64(run[r, oi.SIZE]) - 1


@device
def enter(index, number, s, hash, width, op, lower, upper, mark):
    """Enters one predicate in the run of its attribute and class.

    Returns 0, or the room that an array lacks.
    """
    segment, segment_room, run, word, state = index.segment, index.segment_room, index.run, index.word, index.state
    begin, end = runs_of(segment, s)
    r, there = find_class(run, begin, end, hash, width)
    # Make the run, in a larger segment if there is no room for it
    if not there:
        n = end - begin
        has_run = (r > begin and run[r - 1, oi.HASH] == hash) or (r < end and run[r, oi.HASH] == hash)
        if n == segment_room[s]:
            room = add_room(n)
            start = state[oi.RUNS]
            if start + room > len(run):
                return room
            for i in range(n):
                for j in range(oi.RUN_WORDS):
                    run[start + i, j] = run[begin + i, j]
            segment[s, 1] = start + n * ONE_RUN
            segment_room[s] = room
            state[oi.RUNS] += room
            r += start - begin
            begin = start
        for i in range(begin + n, r, -1):
            for j in range(oi.RUN_WORDS):
                run[i, j] = run[i - 1, j]
        run[r, oi.HASH], run[r, oi.WORD], run[r, oi.SIZE], run[r, oi.ROOM], run[r, oi.WIDTH] = hash, 0, 0, 0, width
        segment[s, 1] += np.uint64(ONE_RUN)
        if not has_run:
            index.list[number, 2] += 1
    start, size, room = np.int64(run[r, oi.WORD]), np.int64(run[r, oi.SIZE]), np.int64(run[r, oi.ROOM])
    # Move a full run to the end of the array
    if size == room:
        more = add_room(size)
        to = state[oi.WORDS]
        if to + count_columns(op) * more > len(word):
            return count_columns(op) * more
        for j in range(count_columns(op)):
            for i in range(size):
                word[to + j * more + i] = word[start + j * room + i]
        start, room = to, more
        run[r, oi.WORD], run[r, oi.ROOM] = to, more
        state[oi.WORDS] += count_columns(op) * more
    # Insert the entry by its operand
    k = np.int64(count_below(word, np.uint64(start), np.uint64(size), np.uint64(lower + 1)))
    for j in range(count_columns(op)):
        for i in range(start + j * room + size, start + j * room + k, -1):
            word[i] = word[i - 1]
    word[start + k] = lower
    word[start + room + k] = mark
    if op & 3 == oi.BETWEEN:
        word[start + 2 * room + k] = upper
        if width == oi.ALL_WIDTHS:
            run[r, oi.WIDTH] = max(np.int64(run[r, oi.WIDTH]), oi.ALL_WIDTHS + class_of(lower, upper))
    run[r, oi.SIZE] = size + 1
    segment[s, 0] |= np.uint64(1) << signature_bit(hash, op & 3, lower)
    return np.int64(0)


@device
def take_out(index, s, hash, width, op, lower, slots, c):
    """Removes one entry of a conjunction from the run of its attribute and class.

    Returns its slot, or -1 if there is none.

    slots : the first slot of the partition
    """
    run, word = index.run, index.word
    begin, end = runs_of(index.segment, s)
    r, there = find_class(run, begin, end, hash, width)
    if not there:
        return np.int64(-1)
    # Find the conjunction's entry among the entries with the operand, and close the gap
    start, size, room = np.int64(run[r, oi.WORD]), np.int64(run[r, oi.SIZE]), np.int64(run[r, oi.ROOM])
    k = np.int64(count_below(word, np.uint64(start), np.uint64(size), np.uint64(lower)))
    while k < size and word[start + k] == lower:
        slot = np.int64(word[start + room + k])
        if op >= oi.CLAUSE:
            slot >>= oi.CLAUSE_BITS
        if index.conj[slots + slot] == c:
            for j in range(count_columns(op)):
                for i in range(start + j * room + k, start + j * room + size - 1):
                    word[i] = word[i + 1]
            run[r, oi.SIZE] = size - 1
            return slot
        k += 1
    return np.int64(-1)
