"""Arrow record batches to the entries of attributes, through the structs of Arrow's C data interface.

``read`` gets the address of one exported ``ArrowArray`` and a ``Plan``: *items* in the order of attributes, so that everything is written
once and in place. An item selects the rows that have a value and the slots of their values, then turns the values into keys. Map columns
come first, with two items each: one labels the keys of all their entries, one gathers the entries whose key some attribute
knows. So thousands of attributes of one map cost nothing where the event has no such entry.

Nothing here is known about Arrow types or names: ``colmatch/binding.py`` makes the plan, once for each schema of batches.

Device functions get the arrays that they use: with all of ``Work`` in their arguments, compiling took 58 s instead of 9, and what they took
out of it was counted atomically. What makes keys is called in one place, because it is inlined where it is called.
"""

from typing import NamedTuple

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.arrow import (
    DICTIONARY,
    FORM,
    INDEX,
    LENGTH,
    LIST_FIXED,
    OFFSET,
    TEXTS,
    VIEW32,
    bit,
    buffer,
    child,
    integer,
    list_start,
    list_stop,
    value_slot,
)
from colmatch.kernels.layout import I32, I64, U8
from colmatch.kernels.memory import load_i64
from colmatch.kernels.text import Distinct, Words, start_group
from colmatch.kernels.values import dense_number_keys, number_keys, text_keys

# plan.item
KIND, ATTR, END, STRUCT, CHILD, LAYOUT, SIZE, LEAF, SET, FIRST, LAST = range(11)
VALUE, ELEMENT, SIZES, HAS_NULL, ENTRIES, PATTERNS, MAP_KEYS, MAP_VALUES = range(8)  # KIND

# state: what came of it
CODE, WHERE, ROW, NEEDED, ENTRIES_READ, STAMP = range(6)
OK, FULL_OUT, FULL_STREAM, FULL_ENTRIES, FULL_STRINGS, FULL_BYTES, OVERFLOW, BAD_INDEX = range(8)  # CODE


class Plan(NamedTuple):
    """What to take from batches of one schema. Struct 0 is the batch itself; parents come before children."""

    struct: I64  # (S, 2) parent struct, number of the child there
    leaf: I64  # (F, 5) see ``arrow``
    item: I64  # (I, 11) items of maps, then ascending by attribute. FIRST, LAST: a map's entries; FIRST: of a run, entry or pattern
    entry: I64  # (K) a map's known keys in sorted order -> number of the entry, FIRST <= number < LAST
    entry_set: I64  # (K) number of the entry -> set of its values, as ``item[SET]``: set of literals, or -1 - group of distinct strings
    literals: Words
    keys: Words  # known keys: a set for each map


class Work(NamedTuple):
    """What ``read`` writes, its results among it. Owned by one thread; any content will do, but for ``seen`` and the hints (zeros)."""

    state: I64  # (8)
    struct: I64  # (S, 3) address, first slot, first place in ``valid`` or -1 where no row is NULL
    valid: U8  # (S * rows at least) 1 where the struct is there
    col: I64  # (A + 1) as in ``layout.Batch``
    row: I32  # (capacity)
    key: I64  # (capacity)
    slot: I64  # (stream capacity) slots of the item at hand
    known: I64  # (stream capacity) keys of a dictionary's values, -1 where not asked for yet
    seen: I64  # (K) the map and row that last had this key, by a number that never comes again
    entry_first: I64  # (K + 1) entry -> its range in the next three
    entry_row: I32  # (entry capacity)
    entry_slot: I64
    entry_key: I64
    entry_next: I64  # (K)
    hints: I32  # (literals.hint[-1])
    key_hints: I32  # (keys.hint[-1])
    distinct: Distinct
    pattern_first: I64  # (patterns + 1) pattern -> rows where it is true
    pattern_row: I32


@kernel
def read(plan, work, array, rows):
    """Read the batch exported at address ``array``. ``work.state[CODE]`` is OK, or what is wrong, or what must be made larger."""
    state = work.state
    row = work.row
    col = work.col
    distinct = work.distinct
    state[CODE] = OK
    state[ENTRIES_READ] = 0
    distinct.total[0] = 0
    distinct.offset[0] = 0
    for g in range(len(distinct.range)):
        distinct.range[g, 0] = 0
        distinct.range[g, 1] = 0
    _structs(plan.struct, work.struct, work.valid, array, rows)
    pos = 0
    done = 0
    col[0] = 0
    for i in range(len(plan.item)):
        item = plan.item[i]
        kind = item[KIND]
        state[WHERE] = i
        while done < item[ATTR]:
            done += 1
            col[done] = pos
        if kind == ENTRIES or kind == PATTERNS:
            first = work.entry_first if kind == ENTRIES else work.pattern_first
            start = first[item[FIRST]]
            stop = first[item[FIRST] + item[END] - item[ATTR]]
            if pos + stop - start > len(row):
                _fail(state, FULL_OUT, pos + stop - start, 0)
                return
            while done < item[END]:
                done += 1
                col[done] = pos + first[item[FIRST] + done - item[ATTR]] - start
            from_row = work.entry_row if kind == ENTRIES else work.pattern_row
            for j in range(stop - start):
                row[pos + j] = from_row[start + j]
                work.key[pos + j] = work.entry_key[start + j] if kind == ENTRIES else 1
            pos += stop - start
            continue

        s = item[STRUCT]
        mask = work.struct[s, 2]
        here = child(work.struct[s, 0], item[CHILD])
        base = work.struct[s, 1] + load_i64(here, OFFSET)
        leaf = plan.leaf[item[LEAF]]
        slot = work.slot
        key = work.key
        at = 0
        dense = -1
        if kind == VALUE:
            if pos + rows > len(row) or rows > len(slot):
                _fail(state, FULL_OUT if rows <= len(slot) else FULL_STREAM, pos + rows if rows <= len(slot) else rows, 0)
                return
            if mask < 0 and buffer(here, 0) == 0:
                dense = base
            n = _select(work.valid, mask, here, base, rows, row[pos : pos + rows], slot)
        elif kind == MAP_VALUES:
            at = state[ENTRIES_READ]
            key = work.entry_key
            slot = work.entry_slot
            here = _gather(
                item,
                leaf,
                state,
                work.valid,
                mask,
                here,
                base,
                rows,
                plan.entry,
                row,
                work.key,
                work.slot,
                work.seen,
                work.entry_first,
                work.entry_next,
                work.entry_row,
                work.entry_slot,
            )
            n = state[ENTRIES_READ] - at
        else:
            n = _list(item, leaf, state, work.valid, mask, here, base, rows, row, key, slot, pos)
            here = child(child(here, 0), 0) if kind == MAP_KEYS else child(here, 0)
        if state[CODE] != OK:
            return

        if kind != SIZES and kind != HAS_NULL:
            known = work.known[:0]
            store = 0
            if leaf[INDEX] >= 0 and kind != MAP_VALUES:
                if dense >= 0:
                    for j in range(n):
                        slot[j] = dense + j
                    dense = -1
                most = n
                n = _decode(leaf, state, here, n, row[pos : pos + n], slot)
                if kind == MAP_KEYS and n < most and state[CODE] == OK:
                    _fail(state, BAD_INDEX, 0, 0)  # a NULL key: the labels would no longer be in step with the entries
                here = load_i64(here, DICTIONARY)
                store = load_i64(here, OFFSET)
                # Looking up all values of the dictionary once must not cost more than those of the batch.
                if load_i64(here, LENGTH) <= n and (leaf[FORM] >= TEXTS or kind == MAP_KEYS):
                    known = work.known[: load_i64(here, LENGTH)]
                    for k in range(len(known)):
                        known[k] = -1
                if state[CODE] != OK:
                    return
            if leaf[FORM] >= TEXTS or kind == MAP_KEYS:
                if dense >= 0:
                    for j in range(n):
                        slot[j] = dense + j
                words = plan.keys if kind == MAP_KEYS else plan.literals
                hints = work.key_hints if kind == MAP_KEYS else work.hints
                groups = item[LAST] - item[FIRST] if kind == MAP_VALUES else 1
                for g in range(groups):
                    group = item[SET]
                    if kind == MAP_VALUES:
                        group = plan.entry_set[item[FIRST] + g]
                        at = work.entry_first[item[FIRST] + g]
                        n = work.entry_first[item[FIRST] + g + 1] - at
                        if n == 0:
                            continue
                    if group < 0 and not start_group(distinct.table, len(distinct.offset), distinct.total, n):
                        _fail(state, FULL_STRINGS, distinct.total[1], 0)
                        return
                    begin = distinct.total[0] if group < 0 else -1
                    own = group if group >= 0 else 0
                    if not text_keys(
                        leaf,
                        here,
                        slot[at : at + n],
                        key[at : at + n] if kind == MAP_VALUES else key[pos : pos + n],
                        known,
                        store,
                        words.first[own],
                        words.first[own + 1],
                        words.place,
                        hints[words.hint[own] : words.hint[own + 1]],
                        begin,
                        distinct.table,
                        distinct.offset,
                        distinct.data,
                        distinct.total,
                    ):
                        _fail(state, FULL_BYTES, distinct.total[1], 0)
                        return
                    if group < 0:
                        distinct.range[-1 - group, 0] = begin
                        distinct.range[-1 - group, 1] = distinct.total[0]
            else:
                out = key[at : at + n] if kind == MAP_VALUES else key[pos : pos + n]
                if dense < 0 or not dense_number_keys(leaf, here, dense, out):
                    if dense >= 0:
                        for j in range(n):
                            slot[j] = dense + j
                    bad = number_keys(leaf, here, slot[at : at + n], out)
                    if bad >= 0:
                        _fail(state, OVERFLOW, 0, work.entry_row[at + bad] if kind == MAP_VALUES else row[pos + bad])
                        return
        if kind < MAP_KEYS:
            pos += n
            done = item[END]
            col[done] = pos
    while done < len(col) - 1:
        done += 1
        col[done] = pos


@kernel
def expand(base, row, value, value_first, value_pattern, first, out_row):
    """Rows where each pattern is true, from the distinct strings where it is.

    Parameters
    ----------
    base : (N, 3) int64 for each attribute under patterns: its range in ``row`` and ``value``, number of its first distinct string
    row (int32), value (int64) : entries; the number of the string among those of the attribute
    value_first : (V + 1) int64 distinct string -> its range in ``value_pattern``
    value_pattern : int64 patterns that are true of the string
    first : (P + 1) int64, written: pattern -> its range in ``out_row``
    out_row : int32, written if there is room for ``first[P]``; else call again with more
    """
    for p in range(len(first)):
        first[p] = 0
    for n in range(len(base)):
        for j in range(base[n, 0], base[n, 1]):
            v = base[n, 2] + value[j]
            for k in range(value_first[v], value_first[v + 1]):
                first[value_pattern[k] + 1] += 1
    for p in range(1, len(first)):
        first[p] += first[p - 1]
    if first[len(first) - 1] > len(out_row):
        return
    for n in range(len(base)):
        for j in range(base[n, 0], base[n, 1]):
            v = base[n, 2] + value[j]
            for k in range(value_first[v], value_first[v + 1]):
                p = value_pattern[k]
                out_row[first[p]] = row[j]
                first[p] += 1
    for p in range(len(first) - 1, 0, -1):
        first[p] = first[p - 1]
    first[0] = 0


@device
def _fail(state, code, needed, row):
    state[CODE] = code
    state[NEEDED] = needed
    state[ROW] = row


@device
def _structs(plan, struct, valid, array, rows):
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
def _select(valid, mask, array, base, rows, row, slot):
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
def _list(item, leaf, state, valid, mask, array, base, rows, row, key, slot, pos):
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
        _fail(state, FULL_OUT, pos + most, 0)
        return 0
    if most > len(slot):
        _fail(state, FULL_STREAM, most, 0)
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
def _decode(leaf, state, array, n, row, slot):
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
            _fail(state, BAD_INDEX, 0, row[j])
            return 0
        k += base
        row[kept] = row[j]
        slot[kept] = k
        kept += 1 if bits == 0 or bit(bits, k) != 0 else 0
    return kept


@device
def _gather(
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
        for j in range(list_start(0, 0, offsets, base + r), list_start(0, 0, offsets, base + r + 1)):
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
                _fail(state, BAD_INDEX, 0, r)
                return 0
            if found >= 0:
                row[kept] = r
                label[kept] = e  # kept < n: has been read
                slot[kept] = found
                entry_next[e] += 1
                kept += 1
    place = state[ENTRIES_READ]
    if place + kept > len(entry_row):
        _fail(state, FULL_ENTRIES, place + kept, 0)
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
