"""Inserts and deletes of single conjunctions in an OpIndex, on the arrays that are matched.

Slots of a partition, runs of a segment and entries of a run each have room behind them. A part
without room moves to the end of its array, with half as much room again. If the array is full,
everything is copied to larger arrays, each part with some room (``copy``). A copy is due after
as many inserts as there are subscriptions, up to a constant. So an insert costs a constant share of
it.
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.kinds.opindex import arrays as oi
from colmatch.kernels.kinds.opindex.arrays import OpIndex, class_of, find_run, hash_of, signature_bit
from colmatch.kernels.kinds.opindex.entries import (
    ATTR,
    ENTRIES,
    LOWER,
    NEEDED,
    NUMBER,
    OP,
    PIVOTS,
    UPPER,
    Expansion,
    expand,
    is_in_partition,
    slot_word,
)
from colmatch.kernels.kinds.opindex.runs import ONE_RUN, count_columns, divide, enter, is_divided, runs_of, take_out
from colmatch.kernels.layout import I64, Predicates, Written
from colmatch.kernels.room import add_room

NEXT, AT_PIVOT, AT_ENTRY, SLOT, WANTED = range(5)  # places of ``progress``


@kernel
def insert(
    index: Written[OpIndex], preds: Predicates, end: int, progress: Written[I64], expansion: Written[Expansion]
) -> bool:
    """Enters conjunctions up to ``end``.

    Returns whether all are entered. If not, an array is too small, by progress[WANTED] at least.

    progress (5) int64 : the next conjunction, pivot and entry, the slot or -1, and the room that an
    array lacks. Another call continues from there
    """
    entry, pivot, result = expansion.entry, expansion.pivot, expansion.result
    owner = preds.owner
    state, always, partition, conj, needed = index.state, index.always, index.partition, index.conj, index.needed
    while progress[NEXT] < end:
        c = progress[NEXT]
        expand(preds, c, index.frequency, index.top, len(index.top) if c < state[oi.BUILT] else 0, expansion)
        # Note a conjunction without a pivot
        if result[PIVOTS] == 0:
            if state[oi.ALWAYS] == len(always):
                progress[WANTED] = 1
                return False
            always[state[oi.ALWAYS]] = c
            state[oi.ALWAYS] += 1
        # Mark that pairs may repeat
        if (
            result[PIVOTS] > 1
            or (c > 0 and owner[c - 1] == owner[c])
            or (c + 1 < len(owner) and owner[c + 1] == owner[c])
        ):
            state[oi.REPEATS] = 1
        while progress[AT_PIVOT] < result[PIVOTS]:
            a = np.int64(pivot[progress[AT_PIVOT]])
            # Take a slot in the partition
            if progress[SLOT] < 0:
                progress[WANTED] = take_slot(partition, conj, needed, state, a)
                if progress[WANTED] > 0:
                    return False
                free = np.int64(partition[a, 3])
                own = np.int64(partition[a, 0]) + free - 1
                partition[a, 3] = conj[own]
                conj[own] = c
                needed[own] = result[NEEDED]
                progress[SLOT] = free - 1
                progress[AT_ENTRY] = 0
            # Enter the predicates
            while progress[AT_ENTRY] < result[ENTRIES]:
                j = progress[AT_ENTRY]
                if is_in_partition(entry, j, a, result[NEEDED]):
                    op = np.int64(entry[j, OP])
                    mark = slot_word(op, progress[SLOT], np.int64(entry[j, NUMBER]))
                    progress[WANTED] = put(
                        index,
                        a,
                        op,
                        np.int64(entry[j, ATTR]),
                        np.int64(entry[j, LOWER]),
                        np.int64(entry[j, UPPER]),
                        mark,
                    )
                    if progress[WANTED] > 0:
                        return False
                progress[AT_ENTRY] += 1
            progress[AT_PIVOT] += 1
            progress[SLOT] = -1
        progress[NEXT] += 1
        progress[AT_PIVOT] = 0
    return True


@device
def take_slot(partition, conj, needed, state, a):
    """Ensures that a partition has a free slot.

    Returns 0, or the number of slots that the arrays lack.
    """
    if partition[a, 3] > 0:
        return 0
    size = np.int64(partition[a, 1])
    # Move a full partition to the end of the arrays
    if size == partition[a, 2]:
        room = add_room(size)
        start, old = state[oi.SLOTS], np.int64(partition[a, 0])
        if start + room > len(conj):
            return room
        for i in range(size):
            conj[start + i] = conj[old + i]
            needed[start + i] = needed[old + i]
        partition[a, 0] = start
        partition[a, 2] = room
        state[oi.SLOTS] += room
    # Add a free slot
    conj[np.int64(partition[a, 0]) + size] = 0
    partition[a, 1] = size + 1
    partition[a, 3] = size + 1
    return 0


@device
def put(index, pivot, op, attr, lower, upper, mark):
    """Enters one predicate.

    Returns 0, or the room that an array lacks. The next call finds the steps before it done.
    """
    lists, list_, segment, state = index.lists, index.list, index.segment, index.state
    hash = hash_of(attr)
    # Make the list, with one segment
    if lists[pivot, op] == oi.NONE:
        if state[oi.LISTS] == len(list_) or state[oi.SEGMENTS] == len(segment):
            return np.int64(1)
        number, s = state[oi.LISTS], state[oi.SEGMENTS]
        lists[pivot, op] = number
        list_[number, 0], list_[number, 1], list_[number, 2] = s, 0, 0
        segment[s, 0] = np.uint64(0) if state[oi.SIGNED] else np.uint64(2**64 - 1)
        segment[s, 1] = 0
        index.segment_room[s] = 0
        state[oi.LISTS] += 1
        state[oi.SEGMENTS] += 1
    # Cut the segments of a list with too many attributes
    number = np.int64(lists[pivot, op])
    if state[oi.SIGNED] and np.int64(list_[number, 2]) >= np.int64(2 * oi.RUNS_A_SEGMENT) << np.int64(list_[number, 1]):
        size = np.int64(2) << np.int64(list_[number, 1])
        if state[oi.SEGMENTS] + size > len(segment):
            return size
        halve_segments(list_, segment, index.segment_room, index.run, index.word, state, number, op)
    # Enter the predicate, after dividing a long run of ranges
    s = segment_of(list_, number, hash)
    width = np.int64(oi.ALL_WIDTHS)
    if op & 3 == oi.BETWEEN and is_divided(segment, index.run, s, hash):
        lacking = divide(index, number, s, hash, op)
        if lacking > 0:
            return lacking
        width = np.int64(class_of(lower, upper))
    return enter(index, number, s, hash, width, op, lower, upper, mark)


@device
def segment_of(list_, number, hash):
    """Returns the segment of a list that an attribute belongs to."""
    return np.int64(list_[number, 0]) + np.int64(hash >> np.uint64(32 - list_[number, 1]))


@device
def halve_segments(list_, segment, segment_room, run, word, state, number, op):
    """Cuts each segment of a list in two, by the next bit of the hash.

    Runs stay in their places.
    """
    log = np.int64(list_[number, 1])
    old, to = np.int64(list_[number, 0]), state[oi.SEGMENTS]
    for i in range(np.int64(1) << log):
        # Find the first run with the bit
        begin, end = runs_of(segment, old + i)
        n = end - begin
        cut = np.int64(find_run(run, np.uint64(begin), np.uint64(end), np.uint64((2 * i + 1) << (31 - log)))) - begin
        room = np.int64(segment_room[old + i])
        for half in range(2):
            s = to + 2 * i + half
            first, size = (begin + cut, n - cut) if half else (begin, cut)
            segment[s, 1] = first + size * ONE_RUN
            segment_room[s] = room - cut if half else cut
            # Compute the signature of this half
            bits = np.uint64(0)
            for r in range(first, first + size):
                start = np.int64(run[r, oi.WORD])
                for k in range(start, start + np.int64(run[r, oi.SIZE]) if op & 3 == oi.EQUAL else start + 1):
                    bits |= np.uint64(1) << signature_bit(np.uint64(run[r, oi.HASH]), op & 3, word[k])
            segment[s, 0] = bits
    list_[number, 0] = to
    list_[number, 1] = log + 1
    state[oi.SEGMENTS] += np.int64(2) << log


@kernel
def delete(index: Written[OpIndex], preds: Predicates, conjunctions: I64, expansion: Written[Expansion]) -> None:
    """Takes conjunctions out. Signatures keep their bits until ``halve_segments`` cuts the list."""
    entry, pivot, result = expansion.entry, expansion.pivot, expansion.result
    state, always, partition, conj, needed = index.state, index.always, index.partition, index.conj, index.needed
    for i in range(len(conjunctions)):
        c = conjunctions[i]
        expand(preds, c, index.frequency, index.top, len(index.top) if c < state[oi.BUILT] else 0, expansion)
        # Remove a conjunction without a pivot
        if result[PIVOTS] == 0:
            k = 0
            while k < state[oi.ALWAYS] and always[k] != c:
                k += 1
            if k < state[oi.ALWAYS]:
                state[oi.ALWAYS] -= 1
                always[k] = always[state[oi.ALWAYS]]
        for k in range(result[PIVOTS]):
            a = np.int64(pivot[k])
            slots = np.int64(partition[a, 0])
            slot = np.int64(-1)
            # Remove the entries from the partition
            for j in range(result[ENTRIES]):
                if is_in_partition(entry, j, a, result[NEEDED]):
                    op, lower = np.int64(entry[j, OP]), np.int64(entry[j, LOWER])
                    if index.lists[a, op] == oi.NONE:
                        continue
                    hash = hash_of(np.int64(entry[j, ATTR]))
                    s = segment_of(index.list, np.int64(index.lists[a, op]), hash)
                    entry_slot = take_out(index, s, hash, oi.ALL_WIDTHS, op, lower, slots, c)
                    if entry_slot < 0 and op & 3 == oi.BETWEEN:
                        entry_slot = take_out(
                            index, s, hash, class_of(lower, np.int64(entry[j, UPPER])), op, lower, slots, c
                        )
                    slot = max(slot, entry_slot)
            # Free the slot
            if slot >= 0:
                conj[slots + slot] = partition[a, 3]
                needed[slots + slot] = 0
                partition[a, 3] = slot + 1


@kernel
def measure(index: Written[OpIndex], sizes: Written[I64]) -> None:
    """Writes the sizes that ``copy`` needs.

    sizes (STATES) int64 : at the places of ``state``, written
    """
    state, list_, segment, run, lists, partition = (
        index.state,
        index.list,
        index.segment,
        index.run,
        index.lists,
        index.partition,
    )
    for i in range(len(sizes)):
        sizes[i] = state[i]
    sizes[oi.SEGMENTS], sizes[oi.RUNS], sizes[oi.WORDS], sizes[oi.SLOTS] = 0, 0, 0, 0
    for a in range(len(lists)):
        sizes[oi.SLOTS] += _plan_room(np.int64(partition[a, 1]))
        for op in range(oi.OPERATORS):
            if lists[a, op] == oi.NONE:
                continue
            number = np.int64(lists[a, op])
            begin = np.int64(list_[number, 0])
            segments = np.int64(1) << np.int64(list_[number, 1])
            sizes[oi.SEGMENTS] += segments
            for s in range(begin, begin + segments):
                low, high = runs_of(segment, s)
                sizes[oi.RUNS] += high - low + ((high - low) >> 2)
                for r in range(low, high):
                    sizes[oi.WORDS] += count_columns(op) * _plan_room(np.int64(run[r, oi.SIZE]))


@device
def _plan_room(size):
    """Returns the room of a list that is copied: an eighth more, since most get nothing soon."""
    return size + (size >> 3)


@kernel
def copy(index: Written[OpIndex], fresh: Written[OpIndex]) -> None:
    """Copies everything into larger arrays.

    The arrays of ``fresh`` are at least as long as ``measure`` says. Arrays with a row for each
    attribute, such as ``lists``, have their length already. Empty runs are left out.
    """
    list_, segment, run, word = index.list, index.segment, index.run, index.word
    partition, conj, needed, lists = index.partition, index.conj, index.needed, index.lists
    new_segment, new_run, new_word, state = fresh.segment, fresh.run, fresh.word, fresh.state
    slots, segments, runs, words = np.int64(0), 0, np.int64(0), np.int64(0)
    for a in range(len(lists)):
        # Copy the slots of a partition
        old, size = np.int64(partition[a, 0]), np.int64(partition[a, 1])
        for i in range(size):
            fresh.conj[slots + i] = conj[old + i]
            fresh.needed[slots + i] = needed[old + i]
        fresh.partition[a, 0], fresh.partition[a, 2] = slots, _plan_room(size)
        slots += _plan_room(size)
        for op in range(oi.OPERATORS):
            if lists[a, op] == oi.NONE:
                continue
            # Copy the segments of a list
            number = np.int64(lists[a, op])
            begin = np.int64(list_[number, 0])
            fresh.list[number, 0] = segments
            attributes = np.int64(0)
            for s in range(begin, begin + (np.int64(1) << np.int64(list_[number, 1]))):
                low, high = runs_of(segment, s)
                kept, room_for = np.int64(0), high - low + ((high - low) >> 2)
                for r in range(low, high):
                    start, entries, room = (
                        np.int64(run[r, oi.WORD]),
                        np.int64(run[r, oi.SIZE]),
                        np.int64(run[r, oi.ROOM]),
                    )
                    if entries == 0:
                        continue
                    # Copy a run with its entries
                    more = _plan_room(entries)
                    for j in range(count_columns(op)):
                        for i in range(entries):
                            new_word[words + j * more + i] = word[start + j * room + i]
                    to = runs + kept
                    new_run[to, oi.HASH], new_run[to, oi.WIDTH] = run[r, oi.HASH], run[r, oi.WIDTH]
                    new_run[to, oi.WORD], new_run[to, oi.SIZE], new_run[to, oi.ROOM] = words, entries, more
                    attributes += kept == 0 or new_run[to - 1, oi.HASH] != run[r, oi.HASH]
                    words += count_columns(op) * more
                    kept += 1
                new_segment[segments, 0] = segment[s, 0]
                new_segment[segments, 1] = runs + kept * ONE_RUN
                fresh.segment_room[segments] = room_for
                runs += room_for
                segments += 1
            fresh.list[number, 2] = attributes
    state[oi.SLOTS], state[oi.SEGMENTS], state[oi.RUNS], state[oi.WORDS] = slots, segments, runs, words
