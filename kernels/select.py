"""Rows and slots: which rows of a column have a value, and where the values are. Structs, lists, dictionaries and maps.

Of the arguments that all of these share: ``array`` is the address of an ``ArrowArray``, ``base`` the slot of the batch's first row in it;
``valid`` and ``mask`` say where its parents are NULL, ``mask`` being the place of the first row in ``valid``, or -1 where none is.
"""

from colmatch.kernels._jit import device
from colmatch.kernels.arrow import (
    DICTIONARY,
    INDEX,
    LENGTH,
    LIST32,
    LIST_FIXED,
    OFFSET,
    VIEW32,
    bit,
    buffer,
    child,
    integer,
    list_start,
    list_stop,
    value_slot,
)
from colmatch.kernels.memory import load_i64

# plan.item
KIND, ATTR, END, STRUCT, CHILD, LAYOUT, SIZE, LEAF, SET, FIRST, LAST = range(11)
VALUE, ELEMENT, SIZES, HAS_NULL, ENTRIES, PATTERNS, MAP_KEYS, MAP_VALUES = range(8)  # KIND

# state: what came of it
CODE, WHERE, ROW, NEEDED, ENTRIES_READ, STAMP = range(6)
OK, FULL_OUT, FULL_STREAM, FULL_ENTRIES, FULL_STRINGS, FULL_BYTES, OVERFLOW, BAD_INDEX = range(8)  # CODE


@device
def fail(state, code, needed, row):
    state[CODE] = code
    state[NEEDED] = needed
    state[ROW] = row


@device
def place_structs(plan, struct, valid, array, rows):
    """Address and first slot of every struct, and where it is NULL, parents included."""
    struct[0, 0] = array
    struct[0, 1] = load_i64(array, OFFSET)
    struct[0, 2] = -1
    for s in range(1, len(plan)):
        parent = plan[s, 0]
        here = child(struct[parent, 0], plan[s, 1])
        base = struct[parent, 1] + load_i64(here, OFFSET)
        bits = buffer(here, 0)
        mask = struct[parent, 2]
        struct[s, 0] = here
        struct[s, 1] = base
        struct[s, 2] = mask
        if bits != 0:
            struct[s, 2] = s * rows
            for r in range(rows):
                valid[s * rows + r] = 1 if _there(valid, mask, bits, base, r) else 0


@device
def _there(valid, mask, bits, base, r):
    """Whether row ``r`` of a column has a value: its parents (mask -1: all do) and its own bitmap (0: none, all do)."""
    if mask >= 0 and valid[mask + r] == 0:
        return False
    return bits == 0 or bit(bits, base + r) != 0


@device
def select_rows(valid, mask, array, base, rows, row, slot):
    """Rows of a column that have a value, and their slots. Returns how many. Slots are left out where all rows have one."""
    bits = buffer(array, 0)
    n = 0
    if mask < 0 and bits == 0:
        for r in range(rows):
            row[r] = r
        return rows
    if mask < 0:
        for r in range(rows):
            row[n] = r
            slot[n] = base + r
            n += bit(bits, base + r)
        return n
    for r in range(rows):
        row[n] = r
        slot[n] = base + r
        n += 1 if _there(valid, mask, bits, base, r) else 0
    return n


@device
def select_elements(item, leaf, state, valid, mask, array, base, rows, row, key, slot, pos):
    """Rows of a list column from ``row[pos]``, with their keys where these are sizes or NULL elements, else with the slots of its elements
    (or of a map's keys). Returns how many.
    """
    kind = item[KIND]
    layout = item[LAYOUT]
    size = item[SIZE]
    bits = buffer(array, 0)
    offsets = 0 if layout == LIST_FIXED else buffer(array, 1)
    sizes = buffer(array, 2) if layout >= VIEW32 else 0
    counted = kind == ELEMENT or kind == MAP_KEYS
    most = rows
    if counted:
        most = 0
        for r in range(rows):
            if _there(valid, mask, bits, base, r):
                most += list_stop(layout, size, offsets, sizes, base + r) - list_start(layout, size, offsets, base + r)
    if pos + most > len(row):
        fail(state, FULL_OUT, pos + most, 0)
        return 0
    if most > len(slot):
        fail(state, FULL_STREAM, most, 0)
        return 0
    elements = array
    shift = 0
    if kind == MAP_KEYS:
        pairs = child(array, 0)
        elements = child(pairs, 0)
        shift = load_i64(pairs, OFFSET) + load_i64(elements, OFFSET)
    elif kind != SIZES:
        elements = child(array, 0)
        shift = load_i64(elements, OFFSET)
    inner = buffer(elements, 0) if kind == ELEMENT else 0
    n = pos
    for r in range(rows):
        if not _there(valid, mask, bits, base, r):
            continue
        start = list_start(layout, size, offsets, base + r)
        stop = list_stop(layout, size, offsets, sizes, base + r)
        if counted:
            for j in range(shift + start, shift + stop):
                if inner == 0 or bit(inner, j) != 0:
                    row[n] = r
                    slot[n - pos] = j
                    n += 1
        elif kind == SIZES:
            row[n] = r
            key[n] = stop - start
            n += 1
        else:
            for j in range(shift + start, shift + stop):
                if value_slot(leaf, elements, j) == -1:
                    row[n] = r
                    key[n] = 1
                    n += 1
                    break
    return n - pos


@device
def decode(leaf, state, array, n, row, slot):
    """Slots in a dictionary instead of those of its indexes, without the NULL ones among its values. Returns how many are left."""
    dictionary = load_i64(array, DICTIONARY)
    indexes = buffer(array, 1)
    length = load_i64(dictionary, LENGTH)
    base = load_i64(dictionary, OFFSET)
    bits = buffer(dictionary, 0)
    kept = 0
    for j in range(n):
        k = integer(leaf[INDEX], indexes, slot[j])
        if k < 0 or k >= length:
            fail(state, BAD_INDEX, 0, row[j])
            return 0
        k += base
        row[kept] = row[j]
        slot[kept] = k
        kept += 1 if bits == 0 or bit(bits, k) != 0 else 0
    return kept


@device
def gather_entries(
    item, leaf, state, valid, mask, array, base, rows, entry_of, row, label, slot, seen, entry_first, entry_next, entry_row, entry_slot
):  # fmt: skip
    """Entries of a map whose keys are known, by entry: ranges of entry_row and entry_slot from ENTRIES_READ on, which is moved.

    MAP_KEYS has just left the labels of all keys in ``label``. Returns the array that the slots are of.
    """
    low = item[FIRST]
    high = item[LAST]
    bits = buffer(array, 0)
    offsets = buffer(array, 1)
    pairs = child(array, 0)
    values = child(pairs, 1)
    shift = load_i64(pairs, OFFSET) + load_i64(values, OFFSET)
    for e in range(low, high):
        entry_next[e] = 0
    kept = 0
    n = 0
    for r in range(rows):
        if not _there(valid, mask, bits, base, r):
            continue
        state[STAMP] += 1
        stamp = state[STAMP]
        for j in range(list_start(LIST32, 0, offsets, base + r), list_start(LIST32, 0, offsets, base + r + 1)):
            known = label[n]
            n += 1
            if known & 1 == 0:
                continue
            e = entry_of[low + (known >> 1)]
            if seen[e] == stamp:  # of equal keys, the first counts
                continue
            seen[e] = stamp
            found = value_slot(leaf, values, shift + j)
            if found == -2:
                fail(state, BAD_INDEX, 0, r)
                return 0
            if found >= 0:
                row[kept] = r
                label[kept] = e  # kept < n: has been read
                slot[kept] = found
                entry_next[e] += 1
                kept += 1
    place = state[ENTRIES_READ]
    if place + kept > len(entry_row):
        fail(state, FULL_ENTRIES, place + kept, 0)
        return 0
    for e in range(low, high):
        entry_first[e] = place
        place += entry_next[e]
        entry_next[e] = entry_first[e]
    entry_first[high] = place
    state[ENTRIES_READ] = place
    for j in range(kept):
        place = entry_next[label[j]]
        entry_next[label[j]] = place + 1
        entry_row[place] = row[j]
        entry_slot[place] = slot[j]
    return load_i64(values, DICTIONARY) if leaf[INDEX] >= 0 else values
