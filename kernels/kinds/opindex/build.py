"""Conjunctions -> OpIndex, all at once.

Entries are counted, written, sorted by digits, and cut into runs, segments and lists.
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
    is_in_partition,
    slot_word,
)
from colmatch.kernels.layout import I64, U8, U16, U32, U64, Predicates, Table, Written

NOT_YET = 2**32 - 1
DIGIT = 11  # bits of a pass of sorting


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
    """Counts the slots of each partition, and adds them to slots (A) int64.

    Returns the numbers of entries, of conjunctions that are always verified, and of conjunctions
    with several pivots.
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
                total += is_in_partition(entry, j, pivot[k], result[NEEDED])
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

    place (A) int64, bits : rank of each attribute by hash, and the bits of a rank
    next (A) int64 : first slot of each partition; on return, one past its last slot

    key (E) uint64 : pivot, operator, rank of the attribute; written
    entries, conj, needed (P), always : written
    """
    entry, pivot, result = expansion.entry, expansion.pivot, expansion.result
    operand, upper, slot, clause = entries.operand, entries.upper, entries.slot, entries.clause
    n, count = np.uint64(0), 0
    for c in range(len(preds.first) - 1):
        expand(preds, c, frequency, top, len(top), expansion)
        # Note a conjunction without a pivot
        if result[PIVOTS] == 0:
            always[count] = c
            count += 1
        # Write a slot and the entries for each pivot
        for k in range(result[PIVOTS]):
            a = np.int64(pivot[k])
            own = next[a]
            next[a] += 1
            conj[own] = c
            needed[own] = result[NEEDED]
            for j in range(result[ENTRIES]):
                if is_in_partition(entry, j, a, result[NEEDED]):
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
    """Sorts keys by their lowest ``bits`` bits, stably, and order (E) uint32 with them.

    Returns whether the sorted arrays are the spare ones. Spare arrays have the same sizes and are
    overwritten. begins (1 << DIGIT) int64 : scratch
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
        # Count the keys with each digit
        for i in range(size):
            begins[source[i] >> shift & digits] += 1
        total = 0
        for d in range(1 << DIGIT):
            n = begins[d]
            begins[d] = total
            total += n
        # Move them in order of the digit
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

    Much of the counting then goes through slots in order.

    first (A + 1) int64 : slots of each partition
    next (A) int64 : first slot of each partition, overwritten

    number (P) uint32 : new number within the partition, written
    new_conj, new_needed : ``conj`` and ``needed`` by new number, written
    """
    # Number the slots by the entries on their pivots
    number[:] = NOT_YET
    for i in range(len(key)):
        a = np.int64(key[i] >> np.uint64(bits)) // oi.OPERATORS
        if np.int64(key[i] & np.uint64((1 << bits) - 1)) == place[a]:
            own = np.int64(slot[order[i]])
            if number[own] == NOT_YET:
                number[own] = next[a] - first[a]
                next[a] += 1
    # Number the others, and move all slots to their new places
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
    """Counts the sorted entries ``i:end`` of an attribute for a run of each class of width.

    Writes sizes (ALL_WIDTHS + 1) int64 from a class on, and returns this class. It is ALL_WIDTHS if
    the entries are one run.
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

    attributes (A, OPERATORS) uint32 : number of attributes of each list, added to
    """
    i, n, words, several = 0, 0, 0, 0
    while i < len(key):
        end = i
        # Find the entries of one list and attribute
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
    """Writes runs, segments and words of the sorted entries into an ``OpIndex`` that has its lists.

    number_of : new number of each slot within its partition
    attr_of (A) : attribute of each rank by hash
    sizes (ALL_WIDTHS + 1) int64 : scratch
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
        # Find the entries of one list and attribute
        end = i
        while end < size and key[end] == key[i]:
            end += 1
        which = np.int64(key[i] >> np.uint64(bits))
        op = which % oi.OPERATORS
        shape = op & 3
        hash = hash_of(attr_of[np.int64(key[i] & np.uint64((1 << bits) - 1))])
        # Begin a segment if their hash is in another one
        number = np.int64(lists[which // oi.OPERATORS, op])
        here = np.int64(list_[number, 0]) + np.int64(hash >> np.uint64(32 - list_[number, 1]))
        if here != s:
            s = here
            segment[s, 1] = r
        # Begin a run for each class of width that has entries
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
        # Write the entries into their runs, and add them to the signature
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
