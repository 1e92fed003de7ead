"""Entries of map columns: known keys are selected by hashing, then grouped by attribute through
counting.

An *entry* is the number of one known key of one map in the whole plan. A key is known if some
attribute uses it. Entries ascend with the attributes of their map. They are handled in blocks of
64, so that a small batch spends next to nothing on the thousands of keys that it lacks.

``array`` is the address of the map's ``ArrowArray``. ``base``, ``mask`` and ``state`` are as in
``select``. The keys of a batch are a stream, with the keys of its rows one after the other.
"""

from typing import NamedTuple

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.arrow import select, structs
from colmatch.kernels.arrow.memory import load_i32, load_i64, load_prefix
from colmatch.kernels.arrow.select import is_there
from colmatch.kernels.arrow.structs import bit, buffer, child, integer, value_slot
from colmatch.kernels.arrow.values import text_at
from colmatch.kernels.arrow.words import hash_text, is_same_long
from colmatch.kernels.layout import I64, Written

BLOCK_BITS = 6
BLOCK = 1 << BLOCK_BITS  # the entries of a map start at a multiple of this
ENTRY_MASK = 2**32 - 1


class MapKeyTable(NamedTuple):
    """The known keys of M maps, K entries in all, in hash tables.

    An integer counts as a string of 8 bytes with this number as its prefix.

    A slot of a table is two words. The first is the key's prefix (``load_prefix``), or the hash of
    a key of more than 8 bytes. The second is the key's length << 32 | its entry, or -1 in a free
    slot. So all but long keys are compared within the slot's cache line. With binary search,
    reading an entry took 50 to 120 ns among 30,000 keys.
    """

    first: I64  # (M + 1) map -> its slots; their number is a power of two
    place: I64  # (3) addresses of: slots; ends of keys, int64 (K + 1) entry -> its bytes; bytes


@kernel
def fill_tables(
    textual: I64, entry_first: I64, entry_last: I64, number: I64, keys: MapKeyTable, table: Written[I64]
) -> None:
    """Writes the slots of ``keys`` into ``table``, which has only free slots.

    Parameters
    ----------
    textual : (M) int64, 1 where the keys of a map are strings, 0 where they are integers
    entry_first, entry_last : (M) int64 map -> its entries
    number : (K) int64 entry -> its key, if an integer
    """
    offsets = keys.place[1]
    bytes = keys.place[2]
    for m in range(len(textual)):
        start = keys.first[m]
        mask = keys.first[m + 1] - start - 1
        for e in range(entry_first[m], entry_last[m]):
            # Load the key, and hash it
            address = bytes
            length = 8
            prefix = number[e]
            if textual[m] != 0:
                address = bytes + load_i64(offsets, e)
                length = load_i64(offsets, e + 1) - load_i64(offsets, e)
                prefix = load_prefix(address, length)
            h = hash_text(prefix, address, length)
            word = prefix if length <= 8 else h
            # Enter it into the next free slot
            h &= mask
            while table[2 * (start + h) + 1] >= 0:
                h = (h + 1) & mask
            table[2 * (start + h)] = word
            table[2 * (start + h) + 1] = length << 32 | e


@device
def find_keys(leaf, array, slot, n, out, slots, mask, offsets, bytes):
    """Writes the entries of the keys in ``n`` slots of ``array``: -1 for an unknown key, -2 for
    NULL.

    ``slots`` is the address of the map's hash table, ``mask`` the number of its slots - 1.
    """
    form = leaf[structs.FORM]
    bits = buffer(array, 0)
    first = buffer(array, 1)
    second = buffer(array, 2) if form == structs.UTF32 or form == structs.UTF64 else 0
    for j in range(n):
        # Leave out NULL keys
        i = slot[j]
        if bits != 0 and bit(bits, i) == 0:
            out[j] = -2
            continue
        # Load the key, and hash it
        address = first
        length = 8
        if form < structs.TEXTS:
            prefix = integer(form, first, i)
        else:
            address, length = text_at(leaf, array, first, second, i)
            prefix = load_prefix(address, length)
        h = hash_text(prefix, address, length)
        word = prefix if length <= 8 else h
        # Look it up, comparing the bytes of long keys
        entry = -1
        h &= mask
        other = load_i64(slots, 2 * h + 1)
        while other >= 0:
            if load_i64(slots, 2 * h) == word and other >> 32 == length:
                entry = other & ENTRY_MASK
                if length <= 8:
                    break
                if is_same_long(address, bytes + load_i64(offsets, entry), length):
                    break
                entry = -1
            h = (h + 1) & mask
            other = load_i64(slots, 2 * h + 1)
        out[j] = entry


@device
def label_keys(item, leaf, state, mask, array, base, rows, slot, known, label, key_first, key_place):
    """Writes the entries of all keys of a map column into ``label``.

    The entry is -1 for an unknown key, -2 for NULL.

    A dictionary with no more values than the batch has keys is looked up as a whole, once. Then
    ``known`` has the entries of its values.
    """
    bits = buffer(array, 0)
    offsets = buffer(array, 1)
    pairs = child(array, 0)
    keys = child(pairs, 0)
    shift = load_i64(pairs, structs.OFFSET) + load_i64(keys, structs.OFFSET)
    # Count the keys. If a map is NULL, the count may be too high.
    most = load_i32(offsets, base + rows) - load_i32(offsets, base) if rows > 0 else 0
    if most > len(label) or most > len(slot):
        state[select.CODE] = select.FULL_OUT if most > len(label) else select.FULL_STREAM
        state[select.NEEDED] = most
        return
    # Find the keys, or their dictionary
    coded = leaf[structs.INDEX] >= 0
    words = load_i64(keys, structs.DICTIONARY) if coded else keys
    length = load_i64(words, structs.LENGTH)
    start = load_i64(words, structs.OFFSET)
    whole = coded and length <= most
    form = leaf[structs.INDEX]
    nulls = buffer(keys, 0) if coded else 0
    indexes = buffer(keys, 1)
    # Collect the slots of the keys
    place = label if whole else slot
    n = 0
    for r in range(rows):
        if not is_there(mask, bits, base, r):
            continue
        for j in range(shift + load_i32(offsets, base + r), shift + load_i32(offsets, base + r + 1)):
            i = j
            if coded:
                k = integer(form, indexes, j)
                missing = nulls != 0 and bit(nulls, j) == 0
                if missing or k < 0 or k >= length:
                    state[select.CODE] = select.NULL_KEY if missing else select.BAD_INDEX
                    state[select.ROW] = r
                    return
                i = start + k
            place[n] = i
            n += 1
    # Look up the keys, or the whole dictionary
    if whole:
        for k in range(length):
            slot[k] = start + k
    m = item[select.SET]
    low = key_first[m]
    out = known if whole else label
    count = length if whole else n
    find_keys(
        leaf, words, slot, count, out, key_place[0] + 16 * low, key_first[m + 1] - low - 1, key_place[1], key_place[2]
    )
    # Copy the entries of the dictionary's values
    if whole:
        for j in range(n):
            label[j] = known[label[j] - start]


@device
def gather_entries(item, leaf, state, mask, array, base, rows, row, label, slot, tally, touched):
    """Selects the entries of a map column with keys known to ``label_keys``.

    Writes their rows, entries (in ``label``) and slots of values. Returns their number.

    Counts them by entry. Of equal keys in a row, the first counts, even if its value is NULL.
    """
    bits = buffer(array, 0)
    offsets = buffer(array, 1)
    pairs = child(array, 0)
    values = child(pairs, 1)
    shift = load_i64(pairs, structs.OFFSET) + load_i64(values, structs.OFFSET)
    plain = leaf[structs.INDEX] < 0 and leaf[structs.FORM] != structs.NULLS and buffer(values, 0) == 0
    # Reset the tallies that the last batch touched
    for b in range(item[select.FIRST] >> BLOCK_BITS, (item[select.LAST] + BLOCK - 1) >> BLOCK_BITS):
        if touched[b] != 0:
            touched[b] = 0
            for e in range(b << BLOCK_BITS + 1, (b + 1) << BLOCK_BITS + 1):
                tally[e] = 0
    # Walk through the keys of all rows
    kept = 0
    n = 0
    for r in range(rows):
        if not is_there(mask, bits, base, r):
            continue
        for j in range(shift + load_i32(offsets, base + r), shift + load_i32(offsets, base + r + 1)):
            e = label[n]
            n += 1
            # Skip unknown keys and repeated keys of a row
            if e < 0:
                if e == -2:
                    state[select.CODE] = select.NULL_KEY
                    state[select.ROW] = r
                    return 0
                continue
            if tally[2 * e] == r + 1:
                continue
            tally[2 * e] = r + 1
            touched[e >> BLOCK_BITS] = 1
            # Find the slot of the value, and skip NULL values
            position = j
            if not plain:
                position = value_slot(leaf, values, j)
                if position == -2:
                    state[select.CODE] = select.BAD_INDEX
                    state[select.ROW] = r
                    return 0
                if position < 0:
                    continue
            # Keep the entry
            tally[2 * e + 1] += 1
            row[kept] = r
            label[kept] = e  # kept < n: already read
            slot[kept] = position
            kept += 1
    return kept


@device
def place_entries(item, state, kept, row, label, value, tally, touched, entry_first, entry_row, entry_key):
    """Writes the rows and values of gathered entries, by entry.

    They go to ranges of ``entry_row`` and ``entry_key`` from ENTRIES_READ on, which is moved.
    """
    # Check the room
    start = state[select.ENTRIES_READ]
    if start + kept > len(entry_row):
        state[select.CODE] = select.FULL_ENTRIES
        state[select.NEEDED] = start + kept
        return
    # Turn the counts into ranges, block by block
    place = start
    for b in range(item[select.FIRST] >> BLOCK_BITS, (item[select.LAST] + BLOCK - 1) >> BLOCK_BITS):
        low = b << BLOCK_BITS
        high = low + BLOCK
        if high > item[select.LAST]:
            high = item[select.LAST]
        if touched[b] == 0:
            for e in range(low, high):
                entry_first[e] = place
            continue
        for e in range(low, high):
            entry_first[e] = place
            count = tally[2 * e + 1]
            tally[2 * e + 1] = place - start
            place += count
    # Close the last range
    entry_first[item[select.LAST]] = place
    state[select.ENTRIES_READ] = place
    # Put each entry into its range
    for j in range(kept):
        at = 2 * label[j] + 1
        place = tally[at]
        tally[at] = place + 1
        entry_row[start + place] = row[j]
        entry_key[start + place] = value[j]


@device
def copy_entries(item, state, pos, col, first, from_row, from_key, row, key):
    """Copies rows and keys of a run of attributes from ranges of map entries, patterns or members.

    The key of a pattern is 1. Returns the number of rows.
    """
    # Check the room
    low = item[select.FIRST]
    start = first[low]
    count = item[select.END] - item[select.ATTR]
    n = first[low + count] - start
    if n > len(row):
        state[select.CODE] = select.FULL_OUT
        state[select.NEEDED] = n
        return 0
    # Write the columns' ends. Loops vectorise only with unsigned indexes, which cannot be negative.
    low = np.uint64(low + 1)
    attr = np.uint64(item[select.ATTR] + 1)
    for j in range(np.uint64(count)):
        col[attr + j] = pos - start + first[low + j]
    # Copy the rows and keys
    begin = np.uint64(start)
    for j in range(np.uint64(n)):
        row[j] = from_row[begin + j]
    keyed = item[select.KIND] != select.PATTERNS
    for j in range(np.uint64(n)):
        key[j] = from_key[begin + j] if keyed else 1
    return n
