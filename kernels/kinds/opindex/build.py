"""Conjunctions -> OpIndex, all at once: entries are counted, written, sorted by digits, and cut
into runs, segments and lists.
"""

from typing import NamedTuple

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.kinds.opindex import arrays as oi
from colmatch.kernels.kinds.opindex.arrays import OpIndex, class_of, hash_of, signature_bit
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
    slot_word,
    stands_in,
)
from colmatch.kernels.layout import I64, U8, U16, U32, U64, Predicates, Table, Written

NOT_YET = 2**32 - 1
DIGIT = 11  # bits that are sorted by at a time


class OperatorEntries(NamedTuple):
    """E entries, in the order of conjunctions."""

    operand: U32  # (E)
    upper: U32  # (E)
    slot: U32  # (E)
    clause: U8  # (E)


@kernel
def count_entries(
    preds: Predicates, frequency: Written[I64], top: Written[I64], expansion: Written[Expansion], slots: Written[I64]
) -> tuple[int, int, int]:
    """Adds to slots (A) int64 the slots of each partition.

    Returns entries, conjunctions that are always verified, and those with several pivots.
    """
    entry, pivot, result = expansion.entry, expansion.pivot, expansion.result
    total, always, several = 0, 0, 0
    for c in range(len(preds.first) - 1):
        expand(preds, c, frequency, top, len(top), expansion)
        always += result[PIVOTS] == 0
        several += result[PIVOTS] > 1
        for k in range(result[PIVOTS]):
            slots[pivot[k]] += 1
            for j in range(result[ENTRIES]):
                total += stands_in(entry, j, pivot[k], result[NEEDED])
    return total, always, several


@kernel
def write_entries(
    preds: Predicates,
    frequency: Written[I64],
    top: Written[I64],
    place: Written[I64],
    bits: int,
    expansion: Written[Expansion],
    next: Written[I64],
    key: Written[U64],
    entries: Written[OperatorEntries],
    conj: Written[U32],
    needed: Written[U16],
    always: Written[U32],
) -> None:
    """Writes all entries in the order of conjunctions, and the slots.

    place (A) int64 : rank of each attribute by hash. bits : of such a rank. next (A) int64 : first
    slot of each partition, on return that behind its last one. key (E) uint64 : pivot, operator,
    rank of the attribute. entries (``OperatorEntries``), conj, needed (P), always : written
    """
    entry, pivot, result = expansion.entry, expansion.pivot, expansion.result
    operand, upper, slot, clause = entries.operand, entries.upper, entries.slot, entries.clause
    n, some = np.uint64(0), 0
    for c in range(len(preds.first) - 1):
        expand(preds, c, frequency, top, len(top), expansion)
        if result[PIVOTS] == 0:
            always[some] = c
            some += 1
        for k in range(result[PIVOTS]):
            a = np.int64(pivot[k])
            own = next[a]
            next[a] += 1
            conj[own] = c
            needed[own] = result[NEEDED]
            for j in range(result[ENTRIES]):
                if stands_in(entry, j, a, result[NEEDED]):
                    op = np.int64(entry[j, OP])
                    key[n] = (a * oi.OPERATORS + op) << bits | place[np.int64(entry[j, ATTR])]
                    operand[n] = entry[j, LOWER]
                    upper[n] = entry[j, UPPER]
                    slot[n] = own
                    clause[n] = entry[j, NUMBER]
                    n += np.uint64(1)


@kernel
def sort_entries(
    key: Written[U64],
    order: Written[U32],
    spare_key: Written[U64],
    spare_order: Written[U32],
    bits: int,
    begins: Written[I64],
) -> bool:
    """Sorts keys by their lowest ``bits`` bits, what is equal stays in order; order (E) uint32 goes
    with them.

    Spare arrays of the same sizes are used up; begins (1 << DIGIT) int64: scratch. Returns whether
    the sorted arrays are the spare ones.
    """
    size = np.uint64(len(key))
    digits = np.uint64((1 << DIGIT) - 1)
    passes = (bits + DIGIT - 1) // DIGIT
    for number in range(passes):
        shift = np.uint64(number * DIGIT)
        begins[:] = 0
        source, source_order, target, target_order = (
            (key, order, spare_key, spare_order) if number & 1 == 0 else (spare_key, spare_order, key, order)
        )
        for i in range(size):
            begins[source[i] >> shift & digits] += 1
        total = 0
        for d in range(1 << DIGIT):
            n = begins[d]
            begins[d] = total
            total += n
        for i in range(size):
            d = source[i] >> shift & digits
            to = np.uint64(begins[d])
            begins[d] += 1
            target[to] = source[i]
            target_order[to] = source_order[i]
    return passes & 1 == 1


@kernel
def number_slots(
    key: Written[U64],
    order: Written[U32],
    slot: Written[U32],
    bits: int,
    place: Written[I64],
    first: Written[I64],
    next: Written[I64],
    conj: Written[U32],
    needed: Written[U16],
    number: Written[U32],
    new_conj: Written[U32],
    new_needed: Written[U16],
) -> None:
    """Numbers the slots of each partition in the order of the entries on its pivot.

    A good part of all counting then goes through them in order.

    first (A + 1) int64 : slots of each partition. next (A) int64 : their beginnings. number (P)
    uint32 : new number within the partition. new_conj, new_needed : conj and needed by it. All but
    ``first`` are written
    """
    number[:] = NOT_YET
    for i in range(len(key)):
        a = np.int64(key[i] >> np.uint64(bits)) // oi.OPERATORS
        if np.int64(key[i] & np.uint64((1 << bits) - 1)) == place[a]:
            own = np.int64(slot[order[i]])
            if number[own] == NOT_YET:
                number[own] = next[a] - first[a]
                next[a] += 1
    for pivot in range(len(next)):
        for one in range(first[pivot], first[pivot + 1]):
            if number[one] == NOT_YET:  # its predicate on the pivot has no intervals
                number[one] = next[pivot] - first[pivot]
                next[pivot] += 1
            to = first[pivot] + np.int64(number[one])
            new_conj[to] = conj[one]
            new_needed[to] = needed[one]


@device
def divide(order, operand, upper, i, end, op, sizes):
    """Counts the sorted entries ``i:end`` of an attribute that go into a run of each class of
    width.

    sizes (ALL_WIDTHS + 1) int64 is written, from the class on that is returned: ALL_WIDTHS if the
    entries are one run.
    """
    if op & 3 != oi.BETWEEN or end - i <= oi.UNDIVIDED:
        sizes[oi.ALL_WIDTHS] = end - i
        return oi.ALL_WIDTHS
    sizes[:] = 0
    for j in range(i, end):
        sizes[class_of(np.int64(operand[order[j]]), np.int64(upper[order[j]]))] += 1
    return 0


@kernel
def count_runs(
    key: Written[U64],
    order: Written[U32],
    operand: Written[U32],
    upper: Written[U32],
    bits: int,
    attributes: Written[Table[U32]],
    shapes: Written[I64],
    sizes: Written[I64],
) -> tuple[int, int, int]:
    """Counts runs, lists and words of the sorted entries.

    attributes (A, OPERATORS) uint32 : of each list; is added to
    """
    i, n, words, several = 0, 0, 0, 0
    while i < len(key):
        end = i
        while end < len(key) and key[end] == key[i]:
            end += 1
        which = np.int64(key[i] >> np.uint64(bits))
        op = which % oi.OPERATORS
        several += attributes[which // oi.OPERATORS, op] == 0
        attributes[which // oi.OPERATORS, op] += 1
        for width in range(divide(order, operand, upper, i, end, op, sizes), oi.ALL_WIDTHS + 1):
            n += sizes[width] > 0
        words += shapes[op] * (end - i)
        i = end
    return n, several, words


@kernel
def cut_runs(
    key: Written[U64],
    order: Written[U32],
    entries: Written[OperatorEntries],
    number_of: Written[U32],
    bits: int,
    attr_of: Written[I64],
    sizes: Written[I64],
    index: Written[OpIndex],
) -> None:
    """Writes runs, segments and words of the sorted entries into the arrays of an ``OpIndex``,
    whose lists are there.

    number_of : new number of each slot within its partition. attr_of (A) : attribute of each rank
    by hash. sizes (ALL_WIDTHS + 1) int64 : scratch
    """
    operand, upper, slot, clause = entries.operand, entries.upper, entries.slot, entries.clause
    lists, list_, segment, segment_room = index.lists, index.list, index.segment, index.segment_room
    run, word = index.run, index.word
    size = len(key)
    i, r, w = 0, 0, 0
    s = np.int64(-1)
    for first in range(len(segment)):
        segment[first, 0] = 0
        segment[first, 1] = 0
    while i < size:
        end = i
        while end < size and key[end] == key[i]:
            end += 1
        which = np.int64(key[i] >> np.uint64(bits))
        op = which % oi.OPERATORS
        shape = op & 3
        hash = hash_of(attr_of[np.int64(key[i] & np.uint64((1 << bits) - 1))])
        number = np.int64(lists[which // oi.OPERATORS, op])
        here = np.int64(list_[number, 0]) + np.int64(hash >> np.uint64(32 - list_[number, 1]))
        if here != s:
            s = here
            segment[s, 1] = r
        lowest = divide(order, operand, upper, i, end, op, sizes)
        for width in range(lowest, oi.ALL_WIDTHS + 1):
            n = sizes[width]
            if n == 0:
                continue
            segment[s, 1] += np.uint64(1 << 32)
            segment_room[s] += 1
            run[r, oi.HASH], run[r, oi.WORD], run[r, oi.SIZE], run[r, oi.ROOM], run[r, oi.WIDTH] = hash, w, 0, n, width
            sizes[width] = r
            w += n * (3 if shape == oi.BETWEEN else 2)
            r += 1
        for j in range(i, end):
            from_ = order[j]
            width = class_of(np.int64(operand[from_]), np.int64(upper[from_])) if shape == oi.BETWEEN else 0
            own = sizes[min(lowest + width, oi.ALL_WIDTHS)]
            run[own, oi.WIDTH] = max(np.int64(run[own, oi.WIDTH]), lowest + width)
            n = np.int64(run[own, oi.ROOM])
            to = np.int64(run[own, oi.WORD]) + np.int64(run[own, oi.SIZE])
            run[own, oi.SIZE] += 1
            word[to] = operand[from_]
            word[to + n] = slot_word(op, np.int64(number_of[slot[from_]]), np.int64(clause[from_]))
            if shape == oi.BETWEEN:
                word[to + 2 * n] = upper[from_]
            if shape == oi.EQUAL:
                segment[s, 0] |= np.uint64(1) << signature_bit(hash, oi.EQUAL, operand[from_])
        if shape != oi.EQUAL:
            segment[s, 0] |= np.uint64(1) << signature_bit(hash, shape, 0)
        i = end
