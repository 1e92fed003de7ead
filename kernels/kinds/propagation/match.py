"""Propagation matches a batch: it finds the satisfied predicates, then it checks conjunctions.

Each predicate is found once, however many conjunctions share it.

``arrays`` defines bits, groups and slabs. Phase 1 sets the bits of the predicates that an event
satisfies. Phase 2 goes over the set bits of access predicates, and over their slabs. It tests one
column after the other for the remaining conjunctions, until none is left.

Afterwards only the words that the event has set are cleared: phase 1 notes them.
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.bits import ask_for, ctz, popcount, without_lowest
from colmatch.kernels.kinds.propagation import arrays as pr
from colmatch.kernels.kinds.propagation.arrays import PropagationIndex, PropagationScratch
from colmatch.kernels.kinds.propagation.predicates import plain_home
from colmatch.kernels.layout import CANDIDATES, CONJUNCTIONS, I64, NODES, PREDICATES, Predicates, Rows, Sink, Written
from colmatch.kernels.predicates import Event, clear, conditions_of, program_accepts, spread
from colmatch.kernels.search import first_at_least
from colmatch.kernels.sink import FILL, emit, stops

FEW_CONJUNCTIONS = 8  # conjunctions of a slab that is tested for any survivor first


@device
def set_word(bits, touched, words, at, mask):
    """Sets bits of one word, and notes a word that was zero.

    Returns the number of words noted.
    """
    old = bits[at]
    touched[words] = at
    bits[at] = old | mask
    return words + np.uint64((old == 0) & (mask != 0))


@device
def set_bits(index, attr, code, begin, end, bits, touched):
    """Sets the bits of the predicates that the entries ``begin:end`` of a row satisfy (phase 1).

    Returns the number of words with these bits, and the number of slots and entries visited.
    """
    key, slot, group_of, group = index.key, index.slot, index.group_of, index.group
    entry_lo, entry_hi, entry_bit = index.entry_lo, index.entry_hi, index.entry_bit
    words = np.uint64(0)
    visited = 0
    last_slot = len(slot) - 1
    for e in range(begin, end):
        a = np.int64(attr[e])
        v = np.int64(code[e])
        # Find the equality with this value in the hash table
        place = plain_home(a, v, v) & last_slot
        while slot[place] != 0:
            b = np.uint64(slot[place]) - np.uint64(1)
            visited += 1
            if key[b, 1] == v and key[b, 2] == v and key[b, 0] == a:
                words = set_word(bits, touched, words, b >> np.uint64(6), np.uint64(1) << (b & np.uint64(63)))
                break
            place = (place + 1) & last_slot
        # Find the ranges that can contain the value, group by group
        g = np.int64(group_of[a]) if a < len(group_of) else 0
        while g != 0:
            start = np.int64(group[g - 1, pr.START])
            stop = start + np.int64(group[g - 1, pr.LENGTH])
            i = first_at_least(entry_lo, start, stop, v - np.int64(group[g - 1, pr.REACH]))
            stop = first_at_least(entry_lo, i, stop, v + 1)
            visited += stop - i
            g = np.int64(group[g - 1, pr.GROUP_NEXT])
            if i == stop:
                continue
            # Set their bits: most neighbours share a word, which is collected in a register
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
    """Clears the words that were set, and returns the number of their bits."""
    total = np.uint64(0)
    for i in range(words):
        at = np.uint64(touched[i])
        total += popcount(bits[at])
        bits[at] = 0
    return total


@device
def test_columns(pool, begin, size, columns, i, end, bits, survivor):
    """Writes the conjunctions ``i:end`` of a slab that have all remaining predicates true.

    Returns their number, and the number of bits tested.

    begin : place of the slab's conjunctions
    """
    one, low = np.uint64(1), np.uint64(63)
    column = begin + size
    left = np.uint64(0)
    tested = end - i
    # Test the first column
    for k in range(i, end):
        p = np.uint64(pool[column + k])
        survivor[left] = k
        left += (bits[(p & np.uint64(pr.NEGATED - 1)) >> np.uint64(6)] >> (p & low) ^ p >> np.uint64(31)) & one
    # Test each further column for the conjunctions left
    for _ in range(one, columns):
        if left == 0:
            break
        column += size
        tested += left
        kept = np.uint64(0)
        for k in range(left):
            s = survivor[k]
            p = np.uint64(pool[column + np.uint64(s)])
            survivor[kept] = s
            kept += (bits[(p & np.uint64(pr.NEGATED - 1)) >> np.uint64(6)] >> (p & low) ^ p >> np.uint64(31)) & one
        left = kept
    return left, tested


@device
def next_slabs(index, bits, touched, next_word, words, hit):
    """Collects the first slabs of the next satisfied access predicates, and prefetches them.

    Returns the next word of bits to visit, and the number of slabs in ``hit``: 0 at the end.
    """
    slab, access, pool = index.slab, index.access, index.pool
    hits = np.uint64(0)
    while next_word < words and hits <= np.uint64(pr.HITS - 64):
        base = np.uint64(touched[next_word])
        word = bits[base] & access[base]
        next_word += np.uint64(1)
        while word != 0:
            place = slab[(base << np.uint64(6)) + ctz(word)]
            ask_for(pool, np.uint64(place))
            ask_for(pool, np.uint64(place) + np.uint64(15))
            hit[hits] = place
            hits += np.uint64(1)
            word = without_lowest(word)
    return next_word, hits


@device
def check_slabs(index, preds, event, row, words, scratch, sink, counters):
    """Checks the conjunctions with a satisfied access predicate, and those without any (phase 2).

    Returns False if the sink is full.

    words : number of words with bits from phase 1
    """
    conds, owner, pool = conditions_of(preds), preds.owner, index.pool
    bits, hit, survivor = scratch.bits, scratch.hit, scratch.survivor
    checked, tested, steps = np.uint64(0), np.uint64(0), 0
    next_word, hits, k_hit = np.uint64(0), np.uint64(0), np.uint64(0)
    at = np.uint64(index.state[pr.ALWAYS])
    fits = True
    while fits:
        # Take the next slab of the list, or begin the list of the next access predicate
        if at == 0:
            if k_hit == hits:
                next_word, hits = next_slabs(index, bits, scratch.touched, next_word, words, hit)
                k_hit = np.uint64(0)
                if hits == 0:
                    break
            at = np.uint64(hit[k_hit])
            k_hit += np.uint64(1)
        # Read its header
        columns, size = np.uint64(pool[at + np.uint64(pr.COLUMNS)]), np.uint64(pool[at + np.uint64(pr.SIZE)])
        conj = at + np.uint64(pr.HEADER)
        at = np.uint64(pool[at])
        checked += size
        # Skip a small slab if no conjunction has its first remaining predicate
        i = np.uint64(0)
        plain = columns != 0 and columns != np.uint64(pr.PROGRAM)
        if plain and size <= np.uint64(FEW_CONJUNCTIONS):  # most slabs are small and end here: a call would take longer
            truth = np.uint64(0)
            column = conj + size
            for k in range(size):
                p = np.uint64(pool[column + k])
                truth |= bits[(p & np.uint64(pr.NEGATED - 1)) >> np.uint64(6)] >> (p & np.uint64(63)) ^ p >> np.uint64(
                    31
                )
            if truth & np.uint64(1) == 0:
                tested += size
                continue
        # Test the remaining predicates of a block, and emit the matches
        while i < size and fits:
            stop = min(i + np.uint64(pr.BLOCK), size)
            left = stop - i
            if plain:
                left, more = test_columns(pool, conj, size, columns, i, stop, bits, survivor)
                tested += more
            for k in range(left):
                c = np.int64(pool[conj + (np.uint64(survivor[k]) if plain else i + k)])
                if columns == np.uint64(pr.PROGRAM):
                    holds, taken = program_accepts(conds, c, event)
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
def match(
    index: PropagationIndex,
    preds: Predicates,
    rows: Written[Rows],
    start: int,
    stop: int,
    scratch: Written[PropagationScratch],
    sink: Written[Sink],
    counters: Written[I64],
) -> int:
    """Matches rows ``start:stop``.

    Returns the first unfinished row: ``stop``, unless the sink became full.
    """
    first, attr, code = rows.first, rows.attr, rows.code
    bits, touched, table = scratch.bits, scratch.touched, scratch.table
    programs = index.state[pr.PROGRAMS] != 0
    for row in range(start, stop):
        fill = sink.state[FILL]
        # Prepare the event, with its table if there are programs
        event = Event(attr, code, first[row], first[row + 1], table)
        if programs:
            event = spread(rows, row, index.multi, table)
        # Find the satisfied predicates, then check the conjunctions behind them
        words, visited = set_bits(index, attr, code, first[row], first[row + 1], bits, touched)
        fits = check_slabs(index, preds, event, row, words, scratch, sink, counters)
        # Clear the bits and the table
        counters[NODES] += visited + np.int64(clear_bits(bits, touched, words))
        if programs:
            clear(event)
        if not fits and stops(sink, fill, counters):
            return row
    return stop
