"""Propagation in bulk: distinct predicates, their order, and the slabs of the pool."""

import numpy as np

from colmatch.kernels._jit import kernel
from colmatch.kernels.bits import ask_for
from colmatch.kernels.kinds.propagation.arrays import COLUMNS, HEADER, NEGATED, NEXT, PROGRAM, SIZE, Estimates
from colmatch.kernels.kinds.propagation.predicates import (
    CLASS_OF_SEVERAL,
    WHAT,
    choose_access,
    choose_program_access,
    find,
    home,
    rank,
)
from colmatch.kernels.layout import (
    ATTR_MASK,
    CODE_MAX,
    F64,
    FLAG_NONE,
    FLAG_RUN,
    I64,
    U32,
    U64,
    Predicates,
    Table,
    Written,
)
from colmatch.kernels.widths import width_class

CONJUNCTIONS_AHEAD = 16  # conjunctions with predicates that are prefetched together
NO_BIT = CODE_MAX  # number of a program's predicate that is not indexed


@kernel
def highest_codes(preds: Predicates, top: Written[F64]) -> None:
    """Raises ``top`` (A) float64 to the highest code of each attribute's predicates."""
    for p in range(len(preds.pred)):
        word, high = np.int64(preds.pred[p, 0]), np.int64(preds.pred[p, 2])
        if word & FLAG_RUN:
            if np.int64(preds.pred[p, 1]) == high:
                continue
            high = np.int64(preds.run_hi[high - 1])
        top[word & ATTR_MASK] = max(top[word & ATTR_MASK], np.float64(high))


@kernel
def number_predicates(
    preds: Predicates,
    start: int,
    estimates: Written[Estimates],
    key: Written[Table[U32]],
    slot: Written[U32],
    used: Written[I64],
    number: Written[U32],
) -> int:
    """Enters the predicates of conjunctions ``start`` onwards into ``key`` and the hash table
    ``slot``, and writes their bits.

    Returns the first conjunction without room: the caller enlarges the arrays and calls again.

    used (1) int64 : number of distinct predicates so far
    number (P) uint32 : written, predicate -> bit. A program has NO_BIT for all predicates except
        its access predicate.
    """
    pred, run_lo, run_hi, first, jump_first = preds.pred, preds.run_lo, preds.run_hi, preds.first, preds.jump_first
    programs = len(jump_first) > 0
    n = used[0]
    last_slot = len(slot) - 1
    prefetched = start
    for c in range(start, len(preds.owner)):
        begin, end = first[c], first[c + 1]
        if c == prefetched:  # prefetch slots and keys of the next conjunctions before any is used
            prefetched = min(c + CONJUNCTIONS_AHEAD, len(preds.owner))
            for p in range(begin, first[prefetched]):
                word = np.int64(pred[p, 0]) & WHAT
                ask_for(
                    slot, np.uint64(home(run_lo, run_hi, word, np.int64(pred[p, 1]), np.int64(pred[p, 2])) & last_slot)
                )
            for p in range(begin, first[prefetched]):
                word = np.int64(pred[p, 0]) & WHAT
                b = slot[home(run_lo, run_hi, word, np.int64(pred[p, 1]), np.int64(pred[p, 2])) & last_slot]
                ask_for(key, np.uint64(3) * np.uint64(b))
        # Return if the arrays might be too small
        if n + end - begin > len(key) or 2 * (n + end - begin) > len(slot):
            used[0] = n
            return c
        # Find the bit of each predicate, or add a predicate
        program = programs and jump_first[c] >= 0
        only = choose_program_access(preds, c, estimates) if program else np.int64(-1)
        for p in range(begin, end):
            if program and p != only:
                number[p] = NO_BIT
                continue
            word = np.int64(pred[p, 0]) & WHAT
            low, high = np.int64(pred[p, 1]), np.int64(pred[p, 2])
            b, place = find(key, slot, run_lo, run_hi, word, low, high)
            if b < 0:
                b = n
                n += 1
                slot[place] = n
                key[b, 0], key[b, 1], key[b, 2] = word, low, high
            number[p] = b
    used[0] = n
    return len(preds.owner)


@kernel
def fill_slots(preds: Predicates, key: Written[Table[U32]], old: Written[U32], slot: Written[U32]) -> None:
    """Writes the hash table ``slot`` of the predicates in another table, or in a list of bits + 1.

    ``slot`` must be zero.
    """
    last_slot = len(slot) - 1
    for i in range(len(old)):
        if old[i] == 0:
            continue
        b = np.int64(old[i]) - 1
        place = (
            home(preds.run_lo, preds.run_hi, np.int64(key[b, 0]), np.int64(key[b, 1]), np.int64(key[b, 2])) & last_slot
        )
        while slot[place] != 0:
            place = (place + 1) & last_slot
        slot[place] = b + 1


@kernel
def classify(key: Written[Table[U32]], order: Written[I64]) -> None:
    """Writes attribute, class of width and lowest code of each predicate as one number into
    ``order`` (D) int64.

    Attributes must be below 2^25.
    """
    for b in range(len(order)):
        word = np.int64(key[b, 0])
        low = np.int64(key[b, 1])
        size = np.int64(CLASS_OF_SEVERAL)
        if not word & FLAG_RUN:
            size = width_class(low, np.int64(key[b, 2]))
        order[b] = ((word & ~FLAG_RUN) << 6 | size) << 32 | low


@kernel
def renumber(number: Written[U32], key: Written[Table[U32]], rank: Written[U32], out_key: Written[Table[U32]]) -> None:
    """Gives predicates other bits.

    rank (D) : bit -> its new one
    number : rewritten
    out_key (D, 3) : written
    """
    for p in range(len(number)):
        if number[p] != NO_BIT:
            number[p] = rank[number[p]]
    for b in range(len(rank)):
        r = rank[b]
        for j in range(3):
            out_key[r, j] = key[b, j]


@kernel
def describe(preds: Predicates, key: Written[Table[U32]], estimates: Written[Estimates], ranks: Written[F64]) -> int:
    """Writes the rank of each predicate into ``ranks`` (D).

    Returns the number of intervals that are entries of groups.
    """
    entries = np.int64(0)
    for b in range(len(ranks)):
        word, low, high = np.int64(key[b, 0]), np.int64(key[b, 1]), np.int64(key[b, 2])
        ranks[b] = rank(preds.run_lo, preds.run_hi, word, low, high, estimates)
        if word & FLAG_RUN:
            entries += high - low
        elif low < high:
            entries += 1
    return entries


@kernel
def list_entries(
    preds: Predicates,
    key: Written[Table[U32]],
    used: int,
    attr_class: Written[I64],
    lo: Written[U32],
    hi: Written[U32],
    bit: Written[U32],
) -> None:
    """Lists the intervals of the groups.

    attr_class (E) int64 = attribute * 64 + class, lo, hi and bit are written.
    """
    n = 0
    for b in range(used):
        word, low, high = np.int64(key[b, 0]), np.int64(key[b, 1]), np.int64(key[b, 2])
        if word & FLAG_RUN:
            a = word & ~FLAG_RUN
            for j in range(low, high):
                lo[n], hi[n], bit[n] = preds.run_lo[j], preds.run_hi[j], b
                attr_class[n] = a << 6 | width_class(np.int64(lo[n]), np.int64(hi[n]))
                n += 1
        elif low < high:
            lo[n], hi[n], bit[n] = low, high, b
            attr_class[n] = word << 6 | width_class(low, high)
            n += 1


@kernel
def choose(preds: Predicates, number: Written[U32], ranks: Written[F64], access: Written[I64]) -> None:
    """Chooses the access predicate of each conjunction.

    access (C) int64 = 2^32 * (bit of its access predicate + 1, or 0) + number of its remaining
    predicates, or PROGRAM.
    """
    first, pred, jump_first = preds.first, preds.pred, preds.jump_first
    programs = len(jump_first) > 0
    prefetched = 0
    for c in range(len(access)):
        begin, end = first[c], first[c + 1]
        # Prefetch the ranks of the next predicates
        if c == prefetched:
            prefetched = min(c + CONJUNCTIONS_AHEAD, len(access))
            for p in range(begin, first[prefetched]):
                if number[p] != NO_BIT:
                    ask_for(ranks, np.uint64(number[p]))
        # Take the one predicate of a program that has a bit
        if programs and jump_first[c] >= 0:
            access[c] = PROGRAM
            for p in range(begin, end):
                if number[p] != NO_BIT:
                    access[c] |= (np.int64(number[p]) + 1) << 32
            continue
        # Choose the best predicate of a plain conjunction
        p = choose_access(pred, number, ranks, begin, end)
        access[c] = end - begin if p < 0 else (np.int64(number[p]) + 1) << 32 | end - begin - 1


@kernel
def fill_pool(
    preds: Predicates,
    number: Written[U32],
    access: Written[I64],
    order: Written[I64],
    pool: Written[U32],
    slab: Written[U32],
    bits: Written[U64],
) -> int:
    """Writes slabs. Slabs of one access predicate are neighbours. ``pool``, ``slab`` (D) and
    ``bits`` are written and must be zero.

    order : conjunctions by ``access``, ascending among equals

    Returns the first slab of the conjunctions without access predicate, or 0.
    """
    first, pred = preds.first, preds.pred
    last_order = len(order) - 1
    at = 1
    i = 0
    always = 0
    last, last_under = 0, np.int64(-1)
    while i < len(order):
        # Find the conjunctions of the next slab
        under = access[order[i]]
        stop = i + 1
        while stop < len(order) and access[order[stop]] == under:
            stop += 1
        size = stop - i
        columns = under & CODE_MAX
        bit = (under >> 32) - 1
        # Link the slab to the last one, or begin a list
        if last > 0 and bit == last_under:
            pool[last + NEXT] = at
        elif bit >= 0:
            slab[bit] = at
            bits[bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)
        else:
            always = at
        last, last_under = at, bit
        # Write its header
        pool[at + COLUMNS] = columns
        pool[at + SIZE] = size
        # Write its conjunctions, and prefetch the predicates of later ones
        begin = at + HEADER
        for k in range(size):
            c = order[i + k]
            far, near = (
                order[min(i + k + 2 * CONJUNCTIONS_AHEAD, last_order)],
                order[min(i + k + CONJUNCTIONS_AHEAD, last_order)],
            )
            ask_for(first, np.uint64(far))
            ask_for(pred, np.uint64(3) * np.uint64(first[near]))
            ask_for(number, np.uint64(first[near]))
            pool[begin + k] = c
            if columns == PROGRAM:
                continue
            # Write the remaining predicates, one in each column
            place = begin + k
            skip = bit
            for p in range(first[c], first[c + 1]):
                negated = (pred[p, 0] & FLAG_NONE) != 0
                if np.int64(number[p]) == skip and not negated:
                    skip = np.int64(-1)  # leave the access predicate out once
                    continue
                place += size
                pool[place] = np.int64(number[p]) | (NEGATED if negated else 0)
        at = begin + size * (1 if columns == PROGRAM else columns + 1)
        i = stop
    return always
