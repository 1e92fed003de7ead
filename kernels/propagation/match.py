"""Propagation: first the predicates that hold are found, each once however many conjunctions have
it; then conjunctions are checked.

Each distinct predicate has a *bit*. Phase 1 sets the bits of those that an event satisfies: an
equality is found by its value in a hash table; ranges stand in *groups* of like width ordered by
lowest code, so that those which can contain a code are neighbours. A negated predicate shares the
bit of what it negates and is true where that is not set.

Phase 2 goes over the bits that are both set and some conjunction's *access predicate*. The
conjunctions of one access predicate stand in *slabs*, one for each number of predicates that
remain::

    pool   next | columns | capacity | size | gone | conjunctions ... |
           first remaining predicate of each ... | second ... | ...

with room for ``capacity`` conjunctions in each column. One column is tested after the other, for
those that are left, until none is. The slabs of one predicate are a list; so are those of
conjunctions without access predicate, which are always checked.

Afterwards the words that were set are cleared, and no others: the event has noted them.
"""

from typing import NamedTuple

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.bits import ask_for, ctz, popcount, without_lowest
from colmatch.kernels.layout import CANDIDATES, CONJUNCTIONS, F64, I64, NODES, PREDICATES, U8, U32, U64
from colmatch.kernels.predicates import clear, program_accepts, spread
from colmatch.kernels.propagation.predicates import plain_home
from colmatch.kernels.search import first_at_least
from colmatch.kernels.sink import FILL, emit, roll_back

# A slab of ``pool``
# GONE: conjunctions that were deleted, whose places are not yet used again
NEXT, COLUMNS, CAPACITY, SIZE, GONE = range(5)
HEADER = 5
PROGRAM = 2**32 - 1  # COLUMNS: the conjunctions are programs, evaluated themselves
DELETED = 2**31  # in the word of a conjunction
NEGATED = 2**31  # in the word of a remaining predicate

# A row of ``group``
GROUP_NEXT, CLASS, START, LENGTH, ROOM, REACH = range(6)  # REACH: the widest interval is so much higher than low
GROUP_WORDS = 6

# ``state``
BITS, FREE, GROUPS, ENTRIES, POOL, WASTE, SLOTS, ALWAYS, PROGRAMS, SEVERAL = range(10)
STATE_WORDS = 10

HITS = 256  # slabs that are on their way from memory together
FEW = 8  # conjunctions of a slab of which a first look says whether one is left
BLOCK = 1024  # conjunctions of a slab that are looked at together


class PropagationIndex(NamedTuple):
    """D predicates, H slots, A attributes, G groups of E entries.

    Arrays may be longer than what is used of them: see ``state``.
    """

    # (D, 3) bit -> predicate, without FLAG_MULTI and FLAG_NONE; a free one has the next free one +
    # 1 in its second word
    key: U32
    # (H) hash table of the predicates: bit + 1, or 0. H is a power of two, at least twice as many
    # as are used
    slot: U32
    uses: U32  # (D) how often conjunctions have it
    truth: F64  # (D) how many events are thought to satisfy it, in some unit
    slab: U32  # (D) first slab in the pool, 0 if it is no access predicate
    access: U64  # (words of D) bits of those that have a slab
    group_of: U32  # (A) attribute -> its first group + 1, or 0
    # (G, 6) next group of the attribute + 1; class of width; first entry, number of entries, room
    # for them; reach
    group: U32
    entry_lo: U32  # (E) lowest code of an interval, ascending within a group
    entry_hi: U32  # (E) highest code
    entry_bit: U32  # (E) its predicate
    pool: U32  # slabs; the first word belongs to none
    present: F64  # (A) how many events are thought to have the attribute, in the unit of ``truth``
    codes: F64  # (A) how many elementary intervals it had when the index was built
    top: F64  # (A) highest code that a predicate had then
    code_first: I64  # (A then + 1) place of each attribute's code 1 among all codes there were
    label: U32  # (boundaries then) their labels, or (0) if predicates have codes
    multi: U8  # (A) attribute may have several entries in a row
    state: I64  # (10) bits, first free bit + 1, groups, entries, words of the pool; of these, words in no slab; slots;
    # first slab of what is always checked, or 0; 1 when there are programs; 1 when a subscription
    # may have several conjunctions


class PropagationScratch(NamedTuple):
    bits: U64  # (words of D) the predicate bit vector, zero between rows
    touched: U32  # (words of D + 1) words that are not zero
    hit: U32  # (HITS) first slabs of access predicates that hold
    survivor: U32  # (BLOCK)
    table: U32  # (A) zero between rows; of use to programs only


@device
def set_word(bits, touched, words, at, mask):
    """Set bits of one word, and note the word when it had none.

    Returns the number of words noted.
    """
    old = bits[at]
    touched[words] = at
    bits[at] = old | mask
    return words + np.uint64((old == 0) & (mask != 0))


@device
def set_bits(attr, code, begin, end, key, slot, group_of, group, entry_lo, entry_hi, entry_bit, bits, touched):
    """Phase 1: set the bits of what the entries ``begin:end`` of a row satisfy.

    Returns how many words they are in, and how many slots and entries were looked at.
    """
    words = np.uint64(0)
    visited = 0
    last_slot = len(slot) - 1
    for e in range(begin, end):
        a = np.int64(attr[e])
        v = np.int64(code[e])
        place = plain_home(a, v, v) & last_slot
        while slot[place] != 0:
            b = np.uint64(slot[place]) - np.uint64(1)
            visited += 1
            if key[b, 1] == v and key[b, 2] == v and key[b, 0] == a:
                words = set_word(bits, touched, words, b >> np.uint64(6), np.uint64(1) << (b & np.uint64(63)))
                break
            place = (place + 1) & last_slot
        g = np.int64(group_of[a]) if a < len(group_of) else 0
        while g != 0:
            start = np.int64(group[g - 1, START])
            stop = start + np.int64(group[g - 1, LENGTH])
            i = first_at_least(entry_lo, start, stop, v - np.int64(group[g - 1, REACH]))
            stop = first_at_least(entry_lo, i, stop, v + 1)
            visited += stop - i
            g = np.int64(group[g - 1, GROUP_NEXT])
            if i == stop:
                continue
            # Neighbours have neighbouring bits, most of them: a word is put together in a register.
            at = np.uint64(entry_bit[i]) >> np.uint64(6)
            mask = np.uint64(0)
            value = code[e]
            for k in range(np.uint64(i), np.uint64(stop)):
                b = np.uint64(entry_bit[k])
                if b >> np.uint64(6) != at:
                    words = set_word(bits, touched, words, at, mask)
                    at = b >> np.uint64(6)
                    mask = np.uint64(0)
                mask |= np.uint64(entry_hi[k] >= value) << (b & np.uint64(63))
            words = set_word(bits, touched, words, at, mask)
    return words, visited


@device
def clear_bits(bits, touched, words):
    """Clear the words that were set. Returns how many bits there were."""
    total = np.uint64(0)
    for i in range(words):
        at = np.uint64(touched[i])
        total += popcount(bits[at])
        bits[at] = 0
    return total


@device
def remaining_hold(pool, begin, capacity, columns, i, end, bits, survivor):
    """Which of the conjunctions ``i:end`` of a slab have all remaining predicates: survivor is
    written.

    Returns how many, and the bits tested. begin: the slab's conjunctions.
    """
    one, low = np.uint64(1), np.uint64(63)
    column = begin + capacity
    left = np.uint64(0)
    tested = end - i
    for k in range(i, end):
        p = np.uint64(pool[column + k])
        survivor[left] = k
        left += (bits[(p & np.uint64(NEGATED - 1)) >> np.uint64(6)] >> (p & low) ^ p >> np.uint64(31)) & one
    for _ in range(one, columns):
        if left == 0:
            break
        column += capacity
        tested += left
        kept = np.uint64(0)
        for k in range(left):
            s = survivor[k]
            p = np.uint64(pool[column + np.uint64(s)])
            survivor[kept] = s
            kept += (bits[(p & np.uint64(NEGATED - 1)) >> np.uint64(6)] >> (p & low) ^ p >> np.uint64(31)) & one
        left = kept
    return left, tested


@device
def check_slabs(
    preds,
    attr,
    code,
    begin,
    end,
    table,
    pool,
    slab,
    access,
    always,
    bits,
    touched,
    words,
    hit,
    survivor,
    row,
    sink,
    counters,
):
    """Phase 2: the conjunctions whose access predicate holds, and those without.

    False when the sink is full.
    """
    pred, run_lo, run_hi, first, owner = preds.pred, preds.run_lo, preds.run_hi, preds.first, preds.owner
    jump_first, jump = preds.jump_first, preds.jump
    checked, tested, steps = np.uint64(0), np.uint64(0), 0
    next_word, found, k_hit = np.uint64(0), np.uint64(0), np.uint64(0)
    at = np.uint64(always)
    fits = True
    while fits:
        if at == 0:
            if k_hit == found:
                k_hit = found = np.uint64(0)
                while next_word < words and found <= np.uint64(HITS - 64):
                    base = np.uint64(touched[next_word])
                    word = bits[base] & access[base]
                    next_word += np.uint64(1)
                    while word != 0:
                        place = slab[(base << np.uint64(6)) + ctz(word)]
                        ask_for(pool, np.uint64(place))
                        ask_for(pool, np.uint64(place) + np.uint64(15))
                        hit[found] = place
                        found += np.uint64(1)
                        word = without_lowest(word)
                if found == 0:
                    break
            at = np.uint64(hit[k_hit])
            k_hit += np.uint64(1)
        columns, capacity, size = (
            np.uint64(pool[at + np.uint64(COLUMNS)]),
            np.uint64(pool[at + np.uint64(CAPACITY)]),
            np.uint64(pool[at + np.uint64(SIZE)]),
        )
        conj = at + np.uint64(HEADER)
        at = np.uint64(pool[at])
        checked += size
        i = np.uint64(0)
        plain = columns != 0 and columns != np.uint64(PROGRAM)
        if plain and size <= np.uint64(FEW):  # most are small, and done with here: a call would take longer than that
            some = np.uint64(0)
            column = conj + capacity
            for k in range(size):
                p = np.uint64(pool[column + k])
                some |= bits[(p & np.uint64(NEGATED - 1)) >> np.uint64(6)] >> (p & np.uint64(63)) ^ p >> np.uint64(31)
            if some & np.uint64(1) == 0:
                tested += size
                continue
        while i < size and fits:
            stop = min(i + np.uint64(BLOCK), size)
            left = stop - i
            if plain:
                left, more = remaining_hold(pool, conj, capacity, columns, i, stop, bits, survivor)
                tested += more
            for k in range(left):
                c = np.int64(pool[conj + (np.uint64(survivor[k]) if plain else i + k)])
                if c >= DELETED:
                    continue
                if columns == np.uint64(PROGRAM):
                    holds, taken = program_accepts(
                        pred, run_lo, run_hi, jump, jump_first[c], first[c], attr, code, begin, end, table
                    )
                    steps += taken
                    if not holds:
                        continue
                if not emit(sink, row, np.int64(owner[c]), counters):
                    fits = False
                    break
            i = stop
    counters[CONJUNCTIONS] += np.int64(checked)
    counters[CANDIDATES] += np.int64(checked)
    counters[PREDICATES] += np.int64(tested) + steps
    return fits


@kernel
def match(index, preds, rows, start, stop, scratch, sink, counters):
    """Match rows ``start:stop``.

    Returns the first row not finished: ``stop``, unless the sink became full.
    """
    first, attr, code = rows.first, rows.attr, rows.code
    key, slot, slab, access, pool = index.key, index.slot, index.slab, index.access, index.pool
    group_of, group, entry_lo, entry_hi, entry_bit = (
        index.group_of,
        index.group,
        index.entry_lo,
        index.entry_hi,
        index.entry_bit,
    )
    bits, touched, hit, survivor, table = scratch.bits, scratch.touched, scratch.hit, scratch.survivor, scratch.table
    programs = index.state[PROGRAMS] != 0
    always = index.state[ALWAYS]
    for row in range(start, stop):
        fill = sink.state[FILL]
        begin, end = first[row], first[row + 1]
        if programs:
            spread(first, attr, code, row, index.multi, table)
        words, visited = set_bits(
            attr, code, begin, end, key, slot, group_of, group, entry_lo, entry_hi, entry_bit, bits, touched
        )
        fits = check_slabs(
            preds,
            attr,
            code,
            begin,
            end,
            table,
            pool,
            slab,
            access,
            always,
            bits,
            touched,
            words,
            hit,
            survivor,
            row,
            sink,
            counters,
        )
        counters[NODES] += visited + np.int64(clear_bits(bits, touched, words))
        if programs:
            clear(first, attr, row, table)
        if not fits:
            roll_back(sink, fill, row, row + 1, counters)
            return row
    return stop
