"""Arrow record batches to the entries of attributes, through the structs of Arrow's C data interface.

``read`` gets the address of one exported ``ArrowArray`` and a ``Plan``: *items* in the order of attributes, so that everything is written
once and in place. An item selects the rows that have a value and the slots of their values, then turns the values into keys. Map columns
come first: one item gathers the entries of a map whose key some attribute knows, and each run of attributes takes its own from there.
So thousands of attributes of one map cost nothing where the event has no such entry.

Nothing here is known about Arrow types or names: ``colmatch/binding.py`` makes the plan, once for each schema of batches.

Device functions get the arrays that they use: with all of ``Work`` in their arguments, compiling took 58 s instead of 9, and what they took
out of it was counted atomically. What makes keys is called in one place, because it is inlined where it is called.
"""

from typing import NamedTuple

from colmatch.kernels._jit import kernel
from colmatch.kernels.arrow import DICTIONARY, FORM, INDEX, LENGTH, OFFSET, TEXTS, buffer, child
from colmatch.kernels.layout import I32, I64, U8
from colmatch.kernels.maps import BLOCK, BLOCK_BITS, Keys, gather_entries, label_keys, place_entries
from colmatch.kernels.memory import load_i64
from colmatch.kernels.select import (
    ATTR,
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
    KEYS,
    KIND,
    LAST,
    LEAF,
    MAP,
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
    place_structs,
    select_elements,
    select_rows,
)
from colmatch.kernels.text import Distinct, Words, start_group
from colmatch.kernels.values import dense_number_keys, is_dense, number_keys, text_keys


class Plan(NamedTuple):
    """What to take from batches of one schema. Struct 0 is the batch itself; parents come before children."""

    struct: I64  # (S, 2) parent struct, number of the child there
    leaf: I64  # (F, 5) see ``arrow``
    item: I64  # (I, 12) maps, then ascending by attribute. FIRST, LAST: a map's entries; FIRST: of a run, entry or pattern
    entry_set: I64  # (K) entry -> set of its values, as ``item[SET]``: set of literals, or -1 - group of distinct strings
    literals: Words
    keys: Keys


class Work(NamedTuple):
    """What ``read`` writes, its results among it. Owned by one thread; any content will do, but for those said to begin as zeros."""

    state: I64  # (8)
    struct: I64  # (S, 3) address, first slot, first place in ``valid`` or -1 where no row is NULL
    valid: U8  # (S * rows at least) 1 where the struct is there
    col: I64  # (A + 1) as in ``layout.Batch``
    row: I32  # (capacity)
    key: I64  # (capacity)
    slot: I64  # (stream capacity) slots of the item at hand
    known: I64  # (stream capacity) keys of a dictionary's values, -1 where not asked for yet
    tally: I32  # (2 K) entry -> 1 + the row that last had it; how many have a value, then where the next goes. Zeros where not ``touched``
    touched: U8  # (K / BLOCK) block of entries -> whether ``tally`` has others. Begins as zeros
    entry_first: I64  # (K + 1) entry -> its range in the next two
    entry_row: I32  # (entry capacity)
    entry_key: I64
    hints: I32  # (literals.hint[-1]) begins as zeros
    distinct: Distinct
    pattern_first: I64  # (patterns + 1) pattern -> rows where it is true
    pattern_row: I32


@kernel
def read(plan, work, array, rows):
    """Read the batch exported at address ``array``. ``work.state[CODE]`` is OK, or what is wrong, or what must be made larger."""
    state = work.state
    row = work.row
    key = work.key
    slot = work.slot
    col = work.col
    entry_key = work.entry_key
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
            from_row = work.entry_row if kind == ENTRIES else work.pattern_row
            low = item[FIRST]
            start = first[low]
            n = first[low + item[END] - done] - start
            if pos + n > len(row):
                fail(state, FULL_OUT, pos + n, 0)
                return
            shift = pos - start
            # Slices, so that indexes are seen to be positive: only then do loops vectorise.
            ends = col[done + 1 : item[END] + 1]
            from_ends = first[low + 1 : low + 1 + len(ends)]
            for j in range(len(ends)):
                ends[j] = shift + from_ends[j]
            done = item[END]
            to_row = row[pos : pos + n]
            from_row = from_row[start : start + n]
            for j in range(len(to_row)):
                to_row[j] = from_row[j]
            to_key = key[pos : pos + n]
            from_key = entry_key[start : start + n]
            for j in range(len(to_key)):
                to_key[j] = from_key[j] if kind == ENTRIES else 1
            pos += n
            continue

        s = item[STRUCT]
        mask = work.struct[s, 2]
        here = child(work.struct[s, 0], item[CHILD])
        base = work.struct[s, 1] + load_i64(here, OFFSET)
        leaf = plan.leaf[item[LEAF]]
        dense = False
        if kind == VALUE:
            if pos + rows > len(row) or rows > len(slot):
                fail(state, FULL_OUT if rows <= len(slot) else FULL_STREAM, pos + rows if rows <= len(slot) else rows, 0)
                return
            dense = mask < 0 and buffer(here, 0) == 0 and is_dense(leaf)
            n = select_rows(work.valid, mask, here, base, rows, row[pos : pos + rows], slot, dense)
        elif kind == MAP:
            label_keys(
                item, plan.leaf[item[KEYS]], state, work.valid, mask, here, base, rows, slot, work.known, key,
                plan.keys.first, plan.keys.place, len(row),
            )  # fmt: skip
            if state[CODE] != OK:
                return
            n = gather_entries(item, leaf, state, work.valid, mask, here, base, rows, row, key, slot, work.tally, work.touched)
            here = child(child(here, 0), 1)
            if leaf[INDEX] >= 0:
                here = load_i64(here, DICTIONARY)
        else:
            n = select_elements(item, leaf, state, work.valid, mask, here, base, rows, row, key, slot, pos)
            here = child(here, 0)
        if state[CODE] != OK:
            return

        if kind != SIZES and kind != HAS_NULL:
            text = leaf[FORM] >= TEXTS
            known = work.known[:0]
            store = 0
            if leaf[INDEX] >= 0 and kind != MAP:
                n = decode(leaf, state, here, n, row[pos : pos + n], slot)
                if state[CODE] != OK:
                    return
                here = load_i64(here, DICTIONARY)
                store = load_i64(here, OFFSET)
                # Looking up all values of the dictionary once must not cost more than those of the batch.
                if load_i64(here, LENGTH) <= n and text:
                    known = work.known[: load_i64(here, LENGTH)]
                    for k in range(len(known)):
                        known[k] = -1
            if not text:
                out = slot[:n] if kind == MAP else key[pos : pos + n]
                if dense:
                    dense_number_keys(leaf, here, base, out)
                else:
                    bad = number_keys(leaf, here, slot, out)
                    if bad >= 0:
                        fail(state, OVERFLOW, 0, row[bad] if kind == MAP else row[pos + bad])
                        return
            if kind == MAP:
                place_entries(item, state, n, row, key, slot, work.tally, work.touched, work.entry_first, work.entry_row, entry_key)
                if state[CODE] != OK:
                    return
            if text:
                g = item[FIRST] if kind == MAP else 0
                last = item[LAST] if kind == MAP else 1
                while g < last:
                    group = item[SET]
                    slots = slot[:n]
                    out = key[pos : pos + n]
                    if kind == MAP:
                        if g & (BLOCK - 1) == 0 and work.touched[g >> BLOCK_BITS] == 0:
                            g += BLOCK
                            continue
                        group = plan.entry_set[g]
                        slots = entry_key[work.entry_first[g] : work.entry_first[g + 1]]
                        out = slots
                    g += 1
                    if kind == MAP and len(out) == 0:
                        continue
                    if group < 0 and not start_group(distinct.table, len(distinct.offset), distinct.total, len(out)):
                        fail(state, FULL_STRINGS, distinct.total[1], 0)
                        return
                    begin = distinct.total[0] if group < 0 else -1
                    own = group if group >= 0 else 0
                    if not text_keys(
                        leaf,
                        here,
                        slots,
                        out,
                        known,
                        store,
                        plan.literals.first[own],
                        plan.literals.first[own + 1],
                        plan.literals.place,
                        work.hints[plan.literals.hint[own] : plan.literals.hint[own + 1]],
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
        if kind != MAP:
            pos += n
            done = item[END]
            col[done] = pos
    while done < len(col) - 1:
        done += 1
        col[done] = pos
