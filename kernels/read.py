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

from colmatch.kernels._jit import kernel
from colmatch.kernels.arrow import DICTIONARY, FORM, INDEX, LENGTH, OFFSET, TEXTS, buffer, child
from colmatch.kernels.layout import I32, I64, U8
from colmatch.kernels.memory import load_i64
from colmatch.kernels.select import (
    ATTR,
    BAD_INDEX,
    CHILD,
    CODE,
    END,
    ENTRIES,
    ENTRIES_READ,
    FIRST,
    FULL_BYTES,
    FULL_OUT,
    FULL_STREAM,
    FULL_STRINGS,
    HAS_NULL,
    KIND,
    LAST,
    LEAF,
    MAP_KEYS,
    MAP_VALUES,
    OK,
    OVERFLOW,
    PATTERNS,
    SET,
    SIZES,
    STRUCT,
    VALUE,
    WHERE,
    decode,
    fail,
    gather_entries,
    place_structs,
    select_elements,
    select_rows,
)
from colmatch.kernels.text import Distinct, Words, start_group
from colmatch.kernels.values import dense_number_keys, number_keys, text_keys


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
    place_structs(plan.struct, work.struct, work.valid, array, rows)
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
                fail(state, FULL_OUT, pos + stop - start, 0)
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
                fail(state, FULL_OUT if rows <= len(slot) else FULL_STREAM, pos + rows if rows <= len(slot) else rows, 0)
                return
            if mask < 0 and buffer(here, 0) == 0:
                dense = base
            n = select_rows(work.valid, mask, here, base, rows, row[pos : pos + rows], slot)
        elif kind == MAP_VALUES:
            at = state[ENTRIES_READ]
            key = work.entry_key
            slot = work.entry_slot
            here = gather_entries(
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
            n = select_elements(item, leaf, state, work.valid, mask, here, base, rows, row, key, slot, pos)
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
                n = decode(leaf, state, here, n, row[pos : pos + n], slot)
                if kind == MAP_KEYS and n < most and state[CODE] == OK:
                    fail(state, BAD_INDEX, 0, 0)  # a NULL key: the labels would no longer be in step with the entries
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
                        fail(state, FULL_STRINGS, distinct.total[1], 0)
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
                        fail(state, FULL_BYTES, distinct.total[1], 0)
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
                        fail(state, OVERFLOW, 0, work.entry_row[at + bad] if kind == MAP_VALUES else row[pos + bad])
                        return
        if kind < MAP_KEYS:
            pos += n
            done = item[END]
            col[done] = pos
    while done < len(col) - 1:
        done += 1
        col[done] = pos
