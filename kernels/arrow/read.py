"""Conversion of Arrow record batches to the entries of attributes, through Arrow's C data
interface.

Three kernels run one after the other on one exported ``ArrowArray``. A caller without maps or
strings never compiles the kernels for them. All walk ``Columns.item``: *items*, maps first, then in
the order of attributes.

1. ``read_maps``, for maps only: an item gathers the entries of a map with keys known to some
   attribute. So thousands of attributes of one map cost nothing if the event has no such entry.
2. ``read``: an item selects the rows that have a value and the slots of their values, then turns
   the values into keys. Each run of attributes of a map takes its share of the gathered entries.
   Everything is written once and in place, except that the key of a string is its slot.
3. ``read_texts``, for strings only: labels take the place of slots.

These kernels know no Arrow types or names. ``colmatch/events/binding.py`` makes the plan, once for
each schema of batches.

Compiling ``read`` takes a third of the time that one kernel for all of them took, and either of the
others a quarter.
"""

from typing import NamedTuple

from colmatch.kernels import layout
from colmatch.kernels._jit import kernel
from colmatch.kernels.arrow import select, structs
from colmatch.kernels.arrow.maps import MapKeyTable, copy_entries, gather_entries, label_keys, place_entries
from colmatch.kernels.arrow.memory import load_i64
from colmatch.kernels.arrow.select import decode, place_structs, select_elements, select_rows
from colmatch.kernels.arrow.structs import child
from colmatch.kernels.arrow.values import dense_number_keys, is_dense, number_keys, text_keys
from colmatch.kernels.arrow.words import Distinct, Words
from colmatch.kernels.layout import I64, Written


class Columns(NamedTuple):
    """The plan for reading the columns of one schema.

    Struct 0 is the batch itself. Parents come before children.
    """

    struct: layout.Table[I64]  # (S, 2) parent struct, number of the child there
    leaf: layout.Table[I64]  # (F, 5) see ``structs``
    # (I, 12) maps, then ascending by attribute. FIRST, LAST: entries of a map. FIRST: first entry,
    # pattern or member of a run
    item: layout.Table[I64]


class ReadBuffers(NamedTuple):
    """The arrays that all kernels write, including the results. One thread owns them; any content
    will do.
    """

    state: layout.I64  # (8)
    struct: layout.I64  # (3 S) address, first slot, address of the first row in ``valid`` or 0 where no row is NULL
    valid: layout.U8  # (S * rows at least) 1 where neither the struct nor a parent is NULL
    col: layout.I64  # (A + 1) as in ``layout.Batch``
    row: layout.I32  # (capacity)
    key: layout.I64  # (capacity)
    slot: layout.I64  # (stream capacity) slots of the present item
    entry_first: layout.I64  # (K + 1) entry -> its range in the next two
    entry_row: layout.I32  # (entry capacity)
    entry_key: layout.I64
    pattern_first: layout.I64  # (patterns + 1) pattern -> rows where it is true
    pattern_row: layout.I32
    member_first: layout.I64  # (members + 1) member of a template -> its range in the next two
    member_row: layout.I32
    member_key: layout.I64


class MapWork(NamedTuple):
    """The further arrays that ``read_maps`` writes."""

    known: layout.I64  # (stream capacity) entries of a dictionary's values
    # (2 K) entry -> 1 + last row with it; number of its values, then place of the next. 0 where not
    # ``touched``
    tally: layout.I32
    touched: layout.U8  # (K / BLOCK) block of entries -> whether ``tally`` has non-zeros. Begins as zeros


class TextWork(NamedTuple):
    """The further arrays that ``read_texts`` writes."""

    known: layout.I64  # (stream capacity) keys of a dictionary's values, -1 where not looked up yet
    hints: layout.I32  # (literals.hint[-1]) begins as zeros
    distinct: Distinct


@kernel
def read_maps(
    plan: Columns, keys: MapKeyTable, work: Written[ReadBuffers], maps: Written[MapWork], array: int, rows: int
) -> None:
    """Gathers the entries of map columns, for ``read`` to put in their places.

    ``work.state`` has the outcome, as in ``read``.
    """
    state = work.state
    struct = work.struct
    items = plan.item
    leaves = plan.leaf
    key_first = keys.first
    key_place = keys.place
    row = work.row
    key = work.key
    slot = work.slot
    known = maps.known
    tally = maps.tally
    touched = maps.touched
    entry_first = work.entry_first
    entry_row = work.entry_row
    entry_key = work.entry_key
    # Find the structs
    state[select.CODE] = select.OK
    state[select.ENTRIES_READ] = 0
    place_structs(plan.struct, struct, state, work.valid, array, rows)
    i = 0
    while i < len(items) and items[i, select.KIND] == select.MAP:
        item = items[i]
        state[select.WHERE] = i
        i += 1
        # Look up the keys of the map
        s = 3 * item[select.STRUCT]
        mask = struct[s + 2]
        here = child(struct[s], item[select.CHILD])
        base = struct[s + 1] + load_i64(here, structs.OFFSET)
        label_keys(
            item, leaves[item[select.KEYS]], state, mask, here, base, rows, slot, known, key, key_first, key_place
        )
        if state[select.CODE] != select.OK:
            break
        # Gather the entries with known keys
        leaf = leaves[item[select.LEAF]]
        n = gather_entries(item, leaf, state, mask, here, base, rows, row, key, slot, tally, touched)
        if state[select.CODE] != select.OK:
            break
        # Turn the values into keys, but leave strings as slots
        here = child(child(here, 0), 1)
        if leaf[structs.INDEX] >= 0:
            here = load_i64(here, structs.DICTIONARY)
        if leaf[structs.FORM] < structs.TEXTS:
            number_keys(leaf, state, here, slot, n, row, slot)
            if state[select.CODE] != select.OK:
                break
        # Sort them by entry
        place_entries(item, state, n, row, key, slot, tally, touched, entry_first, entry_row, entry_key)
        if state[select.CODE] != select.OK:
            break


@kernel
def read(plan: Columns, work: Written[ReadBuffers], array: int, rows: int) -> None:
    """Reads the batch exported at address ``array``.

    ``work.state[CODE]`` is OK, or an error, or names the array that must be larger.
    """
    state = work.state
    struct = work.struct
    items = plan.item
    leaves = plan.leaf
    col = work.col
    all_row = work.row
    all_key = work.key
    slot = work.slot
    entry_first = work.entry_first
    entry_row = work.entry_row
    entry_key = work.entry_key
    # Find the structs
    state[select.CODE] = select.OK
    place_structs(plan.struct, struct, state, work.valid, array, rows)
    done = 0
    col[0] = 0
    pos = col[0]  # not 0: functions would be compiled again for the constant
    for i in range(len(items)):
        item = items[i]
        kind = item[select.KIND]
        if kind == select.MAP:
            continue
        state[select.WHERE] = i
        # Close the columns before the item's attributes
        while done < item[select.ATTR]:
            done += 1
            col[done] = pos
        done = item[select.END]
        row = all_row[pos:]
        key = all_key[pos:]
        # Copy gathered entries of a map, rows of patterns, or results of templates
        if kind == select.ENTRIES or kind == select.PATTERNS or kind == select.MEMBERS:
            first, from_row, from_key = entry_first, entry_row, entry_key
            if kind == select.PATTERNS:
                first, from_row = work.pattern_first, work.pattern_row
            elif kind == select.MEMBERS:
                first, from_row, from_key = work.member_first, work.member_row, work.member_key
            n = copy_entries(item, state, pos, col, first, from_row, from_key, row, key)
            if state[select.CODE] != select.OK:
                break
            pos += n
            continue
        # Select the rows and slots of a column or a list
        s = 3 * item[select.STRUCT]
        mask = struct[s + 2]
        here = child(struct[s], item[select.CHILD])
        base = struct[s + 1] + load_i64(here, structs.OFFSET)
        leaf = leaves[item[select.LEAF]]
        dense = False
        if kind == select.VALUE:
            dense = is_dense(leaf, here, mask)
            n = select_rows(state, mask, here, base, rows, row, slot, dense)
        else:
            n = select_elements(item, leaf, state, mask, here, base, rows, row, key, slot)
            here = child(here, 0)
        if state[select.CODE] != select.OK:
            break

        # Turn the values into keys, but leave strings as slots
        if kind == select.VALUE or kind == select.ELEMENT:
            if leaf[structs.INDEX] >= 0:
                n = decode(leaf, state, here, n, row, slot)
                if state[select.CODE] != select.OK:
                    break
                here = load_i64(here, structs.DICTIONARY)
            if dense:
                dense_number_keys(leaf, here, base, n, key)
            elif leaf[structs.FORM] < structs.TEXTS:
                number_keys(leaf, state, here, slot, n, row, key)
                if state[select.CODE] != select.OK:
                    break
            else:
                for j in range(n):
                    key[j] = slot[j]
        pos += n
        col[done] = pos
    # Close the remaining columns
    if state[select.CODE] == select.FULL_OUT:
        state[select.NEEDED] += pos
    while done < len(col) - 1:
        done += 1
        col[done] = pos


@kernel
def read_texts(
    plan: Columns, literals: Words, entry_set: I64, work: Written[ReadBuffers], texts: Written[TextWork]
) -> None:
    """Puts labels or numbers of strings in the place of the slots that ``read`` wrote.

    ``work.state`` is as in ``read``.
    """
    state = work.state
    struct = work.struct
    items = plan.item
    leaves = plan.leaf
    col = work.col
    all_key = work.key
    known = texts.known
    hints = texts.hints
    distinct = texts.distinct
    for i in range(len(items)):
        item = items[i]
        kind = item[select.KIND]
        if kind != select.VALUE and kind != select.ELEMENT and kind != select.ENTRIES:
            continue
        # Find the item with the strings: for entries of a map, the map
        source = i
        if kind == select.ENTRIES:
            source = 0
            while items[source, select.LAST] <= item[select.FIRST]:  # maps come first, and their entries ascend
                source += 1
        leaf = leaves[items[source, select.LEAF]]
        if leaf[structs.FORM] < structs.TEXTS:
            continue
        # Find the array of the strings
        here = child(struct[3 * items[source, select.STRUCT]], items[source, select.CHILD])
        if kind != select.VALUE:
            here = child(here, 0)
        if kind == select.ENTRIES:
            here = child(here, 1)
        if leaf[structs.INDEX] >= 0:
            here = load_i64(here, structs.DICTIONARY)
        # Convert the strings of each attribute
        for a in range(item[select.ATTR], item[select.END]):
            n = col[a + 1] - col[a]
            if n == 0:
                continue
            store = -1
            # Look up each value of the dictionary once, if it has no more values than the batch
            if leaf[structs.INDEX] >= 0 and load_i64(here, structs.LENGTH) <= n:
                store = load_i64(here, structs.OFFSET)
                for k in range(load_i64(here, structs.LENGTH)):
                    known[k] = -1
            key = all_key[col[a] :]
            group = (
                entry_set[item[select.FIRST] + a - item[select.ATTR]] if kind == select.ENTRIES else item[select.SET]
            )
            text_keys(leaf, here, n, key, known, store, group, literals, hints, distinct, state)
            if state[select.CODE] != select.OK:
                break
        if state[select.CODE] != select.OK:
            break
