"""Propagation, changed: predicates that come and go, in the hash table and in the groups of
ranges.
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import FLAG_RUN
from colmatch.kernels.propagation import arrays as pr
from colmatch.kernels.propagation.predicates import find, home
from colmatch.kernels.room import with_room
from colmatch.kernels.search import first_at_least
from colmatch.kernels.widths import width_class

# What there is no room for
NOTHING, NEED_BITS, NEED_SLOTS, NEED_GROUPS, NEED_ENTRIES, NEED_POOL = range(6)

# What is under way when there was no room
CONJ, PREDICATE, INTERVAL, BIT, NEEDED = range(5)  # BIT: of a new predicate whose intervals are being entered, or -1
PROGRESS_WORDS = 5

FIRST_ROOM = 4  # entries of a new group


@device
def find_group(index, a, size):
    """Group of an attribute's intervals of a class, or -1."""
    g = np.int64(index.group_of[a]) - 1
    while g >= 0 and index.group[g, pr.CLASS] != size:
        g = np.int64(index.group[g, pr.GROUP_NEXT]) - 1
    return g


@device
def add_entry(index, a, low, high, b, progress):
    """Enter an interval of predicate ``b``.

    Returns what there is no room for: then nothing has changed, and progress says how much is
    needed.
    """
    group, state = index.group, index.state
    entry_lo, entry_hi, entry_bit = index.entry_lo, index.entry_hi, index.entry_bit
    size = width_class(low, high)
    g = find_group(index, a, size)
    if g < 0:
        if state[pr.GROUPS] == len(group):
            return NEED_GROUPS
        if state[pr.ENTRIES] + FIRST_ROOM > len(entry_lo):
            progress[NEEDED] = FIRST_ROOM
            return NEED_ENTRIES
        g = state[pr.GROUPS]
        state[pr.GROUPS] += 1
        group[g, pr.GROUP_NEXT] = index.group_of[a]
        index.group_of[a] = g + 1
        group[g, pr.CLASS] = size
        group[g, pr.START] = state[pr.ENTRIES]
        group[g, pr.LENGTH] = 0
        group[g, pr.ROOM] = FIRST_ROOM
        group[g, pr.REACH] = 0
        state[pr.ENTRIES] += FIRST_ROOM
    start, length, room = np.int64(group[g, pr.START]), np.int64(group[g, pr.LENGTH]), np.int64(group[g, pr.ROOM])
    if length == room:
        more = with_room(room) - room
        last = start + room == state[pr.ENTRIES]  # grows where it stands
        wanted = more if last else room + more
        if state[pr.ENTRIES] + wanted > len(entry_lo):
            progress[NEEDED] = wanted
            return NEED_ENTRIES
        if not last:
            for i in range(length):
                entry_lo[state[pr.ENTRIES] + i] = entry_lo[start + i]
                entry_hi[state[pr.ENTRIES] + i] = entry_hi[start + i]
                entry_bit[state[pr.ENTRIES] + i] = entry_bit[start + i]
            start = state[pr.ENTRIES]
            group[g, pr.START] = start
        group[g, pr.ROOM] = room + more
        state[pr.ENTRIES] += wanted
    place = first_at_least(entry_lo, start, start + length, low)
    for i in range(start + length, place, -1):
        entry_lo[i] = entry_lo[i - 1]
        entry_hi[i] = entry_hi[i - 1]
        entry_bit[i] = entry_bit[i - 1]
    entry_lo[place] = low
    entry_hi[place] = high
    entry_bit[place] = b
    group[g, pr.LENGTH] = length + 1
    group[g, pr.REACH] = max(np.int64(group[g, pr.REACH]), high - low)
    return NOTHING


@device
def drop_entry(index, a, low, high, b):
    """Take out an interval of predicate ``b``. The group's reach stays."""
    group, entry_lo, entry_hi, entry_bit = index.group, index.entry_lo, index.entry_hi, index.entry_bit
    g = find_group(index, a, width_class(low, high))
    start = np.int64(group[g, pr.START])
    stop = start + np.int64(group[g, pr.LENGTH])
    place = first_at_least(entry_lo, start, stop, low)
    while entry_bit[place] != b:
        place += 1
    for i in range(place, stop - 1):
        entry_lo[i] = entry_lo[i + 1]
        entry_hi[i] = entry_hi[i + 1]
        entry_bit[i] = entry_bit[i + 1]
    group[g, pr.LENGTH] = stop - 1 - start


@device
def release(index, run_lo, run_hi, b):
    """One use of a predicate less; at the last its bit becomes free."""
    key, slot, state = index.key, index.slot, index.state
    index.uses[b] = np.int64(index.uses[b]) - 1
    if index.uses[b] != 0:
        return
    word, low, high = np.int64(key[b, 0]), np.int64(key[b, 1]), np.int64(key[b, 2])
    a = word & ~FLAG_RUN
    run = word & FLAG_RUN != 0
    j, end = (low, high) if run else (np.int64(0), np.int64(1))
    if run or low < high:
        while j < end:
            if run:
                low, high = np.int64(run_lo[j]), np.int64(run_hi[j])
            drop_entry(index, a, low, high, b)
            j += 1
    _, hole = find(key, slot, run_lo, run_hi, word, np.int64(key[b, 1]), np.int64(key[b, 2]))
    # What came behind for want of a better place moves up.
    last_slot = len(slot) - 1
    place = (hole + 1) & last_slot
    while slot[place] != 0:
        other = np.int64(slot[place]) - 1
        wanted = (
            home(run_lo, run_hi, np.int64(key[other, 0]), np.int64(key[other, 1]), np.int64(key[other, 2])) & last_slot
        )
        if (place - wanted) & last_slot >= (place - hole) & last_slot:
            slot[hole] = slot[place]
            hole = place
        place = (place + 1) & last_slot
    slot[hole] = 0
    state[pr.SLOTS] -= 1
    key[b, 1] = state[pr.FREE]
    state[pr.FREE] = b + 1


@kernel
def move_entries(index, entry_lo, entry_hi, entry_bit):
    """All groups, one behind the other, into new arrays: these are written, ``start`` of the
    groups and the state rewritten.
    """
    at = np.int64(0)
    for g in range(index.state[pr.GROUPS]):
        start = np.int64(index.group[g, pr.START])
        for i in range(np.int64(index.group[g, pr.LENGTH])):
            entry_lo[at + i] = index.entry_lo[start + i]
            entry_hi[at + i] = index.entry_hi[start + i]
            entry_bit[at + i] = index.entry_bit[start + i]
        index.group[g, pr.START] = at
        at += np.int64(index.group[g, pr.ROOM])
    index.state[pr.ENTRIES] = at
