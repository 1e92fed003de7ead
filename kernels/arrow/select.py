"""Selection of rows and slots: the rows of a column that have a value, and the places of the
values.

These functions handle structs, lists and dictionaries, and share some arguments. ``array`` is the
address of an ``ArrowArray``, ``base`` the slot of the batch's first row in it. ``mask`` is the
address of the first row's byte, which is 1 if no parent is NULL in the row. It is 0 if no parent is
NULL in any row. ``row`` and ``key`` begin at the present place of the arrays.

An error is written into ``state`` and ends the function. A function for that would be compiled
again for each code.
"""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.arrow import structs
from colmatch.kernels.arrow.memory import load_i64, load_u8, load_word
from colmatch.kernels.arrow.structs import bit, buffer, child, integer, list_start, list_stop, value_slot
from colmatch.kernels.bits import ctz

# plan.item
KIND, ATTR, END, STRUCT, CHILD, LAYOUT, SIZE, LEAF, SET, FIRST, LAST, KEYS = range(12)  # KEYS: leaf of a map's keys
VALUE, ELEMENT, SIZES, HAS_NULL, ENTRIES, PATTERNS, MEMBERS, MAP = range(8)  # KIND

# state: the outcome
CODE, WHERE, ROW, NEEDED, ENTRIES_READ, VALID = range(6)  # VALID: address of ``ReadBuffers.valid``
OK, FULL_OUT, FULL_STREAM, FULL_ENTRIES, FULL_STRINGS, FULL_BYTES, OVERFLOW, BAD_INDEX, NULL_KEY = range(9)  # CODE

ALL = np.uint64(2**64 - 1)


@device
def place_structs(plan, struct, state, valid, array, rows):
    """Writes the address and first slot of every struct, and the mask of its NULLs, parents
    included.

    ``read.ReadBuffers.struct`` describes them.
    """
    # Write the batch itself
    struct[0] = array
    struct[1] = load_i64(array, structs.OFFSET)
    struct[2] = 0
    # Write the other structs after their parents
    for s in range(1, len(plan)):
        parent = 3 * plan[s, 0]
        here = child(struct[parent], plan[s, 1])
        base = struct[parent + 1] + load_i64(here, structs.OFFSET)
        bits = buffer(here, 0)
        mask = struct[parent + 2]
        struct[3 * s] = here
        struct[3 * s + 1] = base
        # Combine the struct's bitmap with the parent's mask
        if bits == 0:
            struct[3 * s + 2] = mask
        else:
            struct[3 * s + 2] = state[VALID] + s * rows
            for r in range(rows):
                valid[s * rows + r] = 1 if is_there(mask, bits, base, r) else 0


@device
def is_there(mask, bits, base, r):
    """Returns whether row ``r`` of a column has a value.

    The parents' mask and the column's bitmap decide. Either is 0 where no row is NULL.
    """
    if mask != 0 and load_u8(mask, r) == 0:
        return False
    return bits == 0 or bit(bits, base + r) != 0


@device
def select_rows(state, mask, array, base, rows, row, slot, dense):
    """Selects the rows of a column that have a value, and their slots.

    Returns their number. ``dense``: all rows have one, and the slots are not needed
    """
    # Check the room
    if rows > len(row) or rows > len(slot):
        state[CODE] = FULL_OUT if rows <= len(slot) else FULL_STREAM
        state[NEEDED] = rows
        return 0
    bits = buffer(array, 0)
    n = 0
    # With a mask, test each row
    if mask != 0:
        for r in range(rows):
            row[n] = r
            slot[n] = base + r
            n += 1 if is_there(mask, bits, base, r) else 0
        return n
    # Without NULLs, select all rows
    if bits == 0:
        for r in range(rows):
            row[r] = r
        if not dense:
            for r in range(rows):
                slot[r] = base + r
        return rows
    # Read the bitmap bit by bit to the first whole byte, then by words. If a third of the rows have
    # a value, this takes 2.7 ns an entry, and 5.4 all bit by bit.
    words = -base & 7
    if words > rows:
        words = rows
    last = words + ((rows - words) & -64)
    r = 0
    while r < rows:
        if r < words or r >= last:
            row[n] = r
            slot[n] = base + r
            n += bit(bits, base + r)
            r += 1
            continue
        word = load_word(bits + (base + r >> 3), 0)
        if word == ALL:
            for k in range(64):
                row[n + k] = r + k
                slot[n + k] = base + r + k
            n += 64
        else:
            while word != 0:
                place = r + np.int64(ctz(word))
                row[n] = place
                slot[n] = base + place
                n += 1
                word &= word - np.uint64(1)
        r += 64
    return n


@device
def select_elements(item, leaf, state, mask, array, base, rows, row, key, slot):
    """Selects the rows of a list column.

    Writes keys with the rows if these are sizes or NULL elements, else the slots of the elements.

    Returns the number of rows.
    """
    kind = item[KIND]
    layout = item[LAYOUT]
    size = item[SIZE]
    bits = buffer(array, 0)
    offsets = 0 if layout == structs.LIST_FIXED else buffer(array, 1)
    sizes = buffer(array, 2) if layout >= structs.VIEW32 else 0
    counted = kind == ELEMENT
    # Check the room
    most = rows
    if counted:
        most = 0
        for r in range(rows):
            if is_there(mask, bits, base, r):
                most += list_stop(layout, size, offsets, sizes, base + r) - list_start(layout, size, offsets, base + r)
    if most > len(row) or most > len(slot):
        state[CODE] = FULL_OUT if most > len(row) else FULL_STREAM
        state[NEEDED] = most
        return 0
    # Find the array of the elements
    elements = array
    shift = 0
    if kind != SIZES:
        elements = child(array, 0)
        shift = load_i64(elements, structs.OFFSET)
    inner = buffer(elements, 0) if counted else 0
    # Walk through the lists
    n = 0
    for r in range(rows):
        if not is_there(mask, bits, base, r):
            continue
        start = list_start(layout, size, offsets, base + r)
        stop = list_stop(layout, size, offsets, sizes, base + r)
        if counted:
            for j in range(shift + start, shift + stop):
                if inner == 0 or bit(inner, j) != 0:
                    row[n] = r
                    slot[n] = j
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
    return n


@device
def decode(leaf, state, array, n, row, slot):
    """Replaces the slots of dictionary indexes by the slots of values. Leaves out NULL values.

    Returns the number of rows left.
    """
    dictionary = load_i64(array, structs.DICTIONARY)
    indexes = buffer(array, 1)
    length = load_i64(dictionary, structs.LENGTH)
    base = load_i64(dictionary, structs.OFFSET)
    bits = buffer(dictionary, 0)
    # Replace each slot, and keep it unless the value is NULL
    kept = 0
    for j in range(n):
        k = integer(leaf[structs.INDEX], indexes, slot[j])
        if k < 0 or k >= length:
            state[CODE] = BAD_INDEX
            state[ROW] = row[j]
            return 0
        k += base
        row[kept] = row[j]
        slot[kept] = k
        kept += 1 if bits == 0 or bit(bits, k) != 0 else 0
    return kept
