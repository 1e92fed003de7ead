"""OpIndex: subscriptions by pivot attribute, their predicates by operator, and a counter for each
subscription.

A *partition* holds the conjunctions of one pivot attribute, which a matching event must have. Each
has a *slot* there: a counter of the predicates that are still to be met. For each operator a
partition has a *list* of predicates, in order of attribute and operand. Those of one attribute are
a *run*; runs are cut into *segments* by a hash of the attribute, each with a signature of 64 bits
that tells what cannot be in it. A value of an event is looked up in each list of each partition of
the event, and every predicate that it meets is counted in its slot.

Ranges with two ends are read before it is known which of them a value meets. More than
``UNDIVIDED`` of them on one attribute are cut into a run for each class of width, in which few are
read that do not hold (``kernels/widths.py``).

Example: ``a = 1 AND b <= 5`` and ``a >= 3 AND b = 2`` with the pivot a::

    partition a    slots 0, 1, of which 2 predicates each are to be counted
      =            run a: (1, slot 0)    run b: (2, slot 1)
      <=           run b: (5, slot 0)
      >=           run a: (3, slot 1)

Operators are pairs of a *shape* and a *mode*. What must not be met comes first and stops a slot
from ever reaching 0; then what counts; then what is one of the alternatives of a clause, where a
bitmap for each slot remembers the clauses that have been counted.

A block of rows passes over a partition before the next one, so that its lists come from memory once
and its counters stay in the cache.

What the time goes to (1M conjunctions of 5 predicates, 100 attributes, 30 present): 0.8 ms an
event, of which 0.14 to find runs, 0.2 to gather the slots of 261,000 entries that are met, the rest
to count them. With a branch on whether a counter is fresh it was 1.5 ms. At 100,000, where a run by
class of width has few entries, classes of powers of two took 170 us instead of 135, since each is
searched. Tried and lost: asking for the lists of the next pivots ahead, no gain beyond the noise on
20,000 attributes.
"""

from typing import NamedTuple

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import CANDIDATES, CONJUNCTIONS, I64, NODES, PREDICATES, U8, U16, U32, U64
from colmatch.kernels.predicates import clear, conjunction_holds, spread
from colmatch.kernels.sink import FILL, emit, roll_back
from colmatch.kernels.widths import width_class

EQUAL, AT_MOST, AT_LEAST, BETWEEN = 0, 1, 2, 3  # shapes
NEVER, COUNT, CLAUSE = 0, 4, 8  # modes, added to a shape; an event's values meet them in this order
OPERATORS = 12
NONE = 2**32 - 1  # no list

MOST_CLAUSES = 64
CLAUSE_BITS = 6  # of an entry's slot word in the lists of mode CLAUSE
MOST_NEEDED = 0x3FFF
VERIFY = 0x8000  # flag of ``needed``: what is counted is only necessary
STOPPED = 0x8000  # flag of a counter: above all that can be counted
UNDIVIDED = 256  # ranges that one run may hold, whatever their widths
ALL_WIDTHS = 32  # added to the class of the widest range in such a run
STAMP_BITS = 16
NO_STAMP = 1 << STAMP_BITS

LISTS, SEGMENTS, RUNS, WORDS, SLOTS, ALWAYS, REPEATS, SIGNED, BUILT, STATES = range(10)  # places of ``state``

HASH, WORD, SIZE, ROOM, WIDTH = range(5)  # columns of ``run``
RUN_WORDS = 5

ROW_BLOCK = 256
CHUNK = 2048  # entries whose slots are gathered before they are counted


class OpIndex(NamedTuple):
    """A attributes, L lists, S segments, R runs, W words, P slots.

    Arrays may have room behind what ``state`` says is used.
    """

    frequency: I64  # (A) how often events are thought to have an attribute: the pivot is the rarest
    top: I64  # (A) highest code of an attribute when the index was built
    lists: U32  # (A, OPERATORS) pivot and operator -> list, or NONE
    partition: U32  # (A, 4) pivot -> first slot, slots in use or free again, room, 1 + first of the free ones or 0
    list: U32  # (L, 3) list -> first segment, binary logarithm of the number of its segments, attributes
    segment: U64  # (S, 2) signature; first run in the low half, number of runs in the high half
    segment_room: U32  # (S)
    run: U32  # (R, 5) hash of the attribute, first word, entries, room, class of width.
    # A segment's runs ascend by hash and class
    # (W) a run's operands, ascending, as much room for slots, and where the shape is BETWEEN, for
    # upper operands
    word: U32
    conj: U32  # (P) slot -> conjunction, or if it is free 1 + the next free one of its partition
    needed: U16  # (P) slot -> what is to be counted, and VERIFY
    always: U32  # conjunctions that are verified for each event
    # (STATES) how much of each is used; may a pair be found twice; are there signatures;
    # conjunctions when it was built
    state: I64


class OpIndexScratch(NamedTuple):
    head: U32  # (A) zero between calls; 1 + last entry of the block that has the attribute
    chain: U32  # (E) entry -> 1 + the one before it with the same attribute, of another row
    row: U32  # (E) row of an entry
    key: U64  # (E) hash of the attribute in the high half, code in the low one
    bit: U8  # (2, E) bits of the signatures that an entry needs: for = and for the other shapes
    found: U32  # (A + 1) pivots that rows of the block have
    counter: U32  # (slots of the largest partition) stamp, STOPPED, and what has been counted
    mask: U64  # (the same) clauses that have been counted
    done: U32  # (the same + 1) slots all of whose predicates have been counted
    buffer: U32  # (CHUNK)
    stamp: I64  # (1)
    table: U32  # (A) zero between calls; for verification
    multi: U8  # (A)


@device
def hash_of(attr):
    """A number below 2^32, another one for each attribute. Its high bits are the segment."""
    return np.uint64(attr) * np.uint64(0x9E3779B1) & np.uint64(0xFFFFFFFF)


@device
def signature_bit(hash, shape, code):
    """Which bit of a signature stands for a predicate, or for what an event's value can meet."""
    if shape == EQUAL:
        hash = (hash ^ np.uint64(code) * np.uint64(0xC2B2AE35)) & np.uint64(0xFFFFFFFF)
    return hash * np.uint64(0x85EBCA6B) >> np.uint64(26) & np.uint64(63)


@device
def class_of(lower, upper):
    """Class of width of a range with two ends: class k has up to 4^k codes."""
    return np.int64(width_class(lower, upper) + 1) >> 1


@device
def find_run(run, low, high, hash):
    """The first of the runs ``low:high`` whose hash is not below ``hash``."""
    while low < high:
        middle = (low + high) >> np.uint64(1)
        if run[middle, HASH] < hash:
            low = middle + np.uint64(1)
        else:
            high = middle
    return low


@device
def below(word, begin, size, value):
    """How many of the ``size`` ascending words from ``begin`` are below ``value``."""
    low, high = begin, begin + size
    while low < high:
        middle = (low + high) >> np.uint64(1)
        if word[middle] < value:
            low = middle + np.uint64(1)
        else:
            high = middle
    return low - begin


@device
def group_rows(rows, start, stop, lists, scratch):
    """Chain the rows ``start:stop`` by attribute and prepare their entries.

    Returns the number of attributes in ``found``.
    """
    first, attr, code = rows.first, rows.attr, rows.code
    head, chain, row_of, key, bit, found = (
        scratch.head,
        scratch.chain,
        scratch.row,
        scratch.key,
        scratch.bit,
        scratch.found,
    )
    base = first[start]
    n = 0
    for row in range(start, stop):
        last = np.int64(-1)
        for e in range(first[row], first[row + 1]):
            i = e - base
            a = np.int64(attr[e])
            hash = hash_of(a)
            key[i] = hash << np.uint64(32) | np.uint64(code[e])
            bit[0, i] = signature_bit(hash, EQUAL, code[e])
            bit[1, i] = signature_bit(hash, BETWEEN, code[e])
            row_of[i] = row
            if a != last and a < len(lists):
                if head[a] == 0:
                    found[n] = a
                    n += 1
                chain[i] = head[a]
                head[a] = i + 1
            last = a
    return n


@kernel
def match(index, preds, rows, start, stop, scratch, sink, counters):
    """Match rows ``start:stop``.

    Returns the first row not finished: ``stop``, unless the sink became full.

    Counters: CONJUNCTIONS, slots of the partitions of an event's pivots, which Lemma 1 of the
    document calls candidates, and conjunctions that are always verified; CANDIDATES, slots that
    were counted; PREDICATES, entries that were read, and predicates evaluated to verify; NODES,
    segments searched. An entry that is read is met, unless it is a range with two ends.
    """
    lists, partition, list_, segment, run, word = (
        index.lists,
        index.partition,
        index.list,
        index.segment,
        index.run,
        index.word,
    )
    conj, needed, always, always_size = index.conj, index.needed, index.always, index.state[ALWAYS]
    row_first, row_attr, row_code = rows.first, rows.attr, rows.code
    head, chain, row_of, key, bit, found = (
        scratch.head,
        scratch.chain,
        scratch.row,
        scratch.key,
        scratch.bit,
        scratch.found,
    )
    counter, mask, done, buffer, stamp = scratch.counter, scratch.mask, scratch.done, scratch.buffer, scratch.stamp
    table, multi = scratch.table, scratch.multi
    pred, run_lo, run_hi, first, owner = preds.pred, preds.run_lo, preds.run_hi, preds.first, preds.owner
    jump_first, jump = preds.jump_first, preds.jump
    one, low_half, half = np.uint64(1), np.uint64(0xFFFFFFFF), np.uint64(32)
    block = start
    while block < stop:
        block_end = min(block + ROW_BLOCK, stop)
        fill = sink.state[FILL]
        base = row_first[block]
        pivots = group_rows(rows, block, block_end, lists, scratch)
        full = False
        for t in range(pivots + 1):
            if t < pivots:
                pivot = np.int64(found[t])
                at = np.int64(head[pivot])
                head[pivot] = 0
                slot_first = np.uint64(partition[pivot, 0])
                slots = np.int64(partition[pivot, 1])
            else:  # what is always verified, as if every row had a pivot for it
                pivot = np.int64(-1)
                at = block_end if always_size > 0 else np.int64(0)
                slot_first = np.uint64(0)
                slots = always_size
            if slots == 0:
                continue
            while at > 0 and not full:
                finished = np.uint64(0)
                if pivot >= 0:
                    row = np.int64(row_of[at - 1])
                    at = np.int64(chain[at - 1])
                    if stamp[0] == NO_STAMP - 1:
                        counter[:] = 0
                        stamp[0] = 0
                    stamp[0] += 1
                    fresh_from = np.uint64(stamp[0] << STAMP_BITS)
                    entry, entry_end = np.uint64(row_first[row] - base), np.uint64(row_first[row + 1] - base)
                    searched, read, touched = np.int64(0), np.uint64(0), np.uint64(0)
                    for op in range(OPERATORS):
                        number = lists[pivot, op]
                        if number == NONE:
                            continue
                        shape = op & 3
                        which = 0 if shape == EQUAL else 1
                        first_segment, shift = np.uint64(list_[number, 0]), half - np.uint64(list_[number, 1])
                        for e in range(entry, entry_end):
                            hash = key[e] >> half
                            s = first_segment + (hash >> shift)
                            if not segment[s, 0] >> np.uint64(bit[which, e]) & one:
                                continue
                            searched += 1
                            low = segment[s, 1] & low_half
                            high = low + (segment[s, 1] >> half)
                            low = find_run(run, low, high, hash)
                            while low < high and run[low, HASH] == hash:
                                begin, size, room = (
                                    np.uint64(run[low, WORD]),
                                    np.uint64(run[low, SIZE]),
                                    np.uint64(run[low, ROOM]),
                                )
                                value = key[e] & low_half
                                k, k_end = np.uint64(0), size
                                if shape == BETWEEN:
                                    reach = (
                                        one << (one + one) * np.uint64(run[low, WIDTH] & np.uint32(ALL_WIDTHS - 1))
                                    ) - one
                                    k = below(word, begin, size, value - min(value, reach))
                                elif shape <= AT_MOST:
                                    k = below(word, begin, size, value)
                                if shape != AT_MOST:
                                    k_end = k + below(word, begin + k, size - k, value + one)
                                low += one
                                read += k_end - k
                                while k < k_end:
                                    end = min(k + np.uint64(CHUNK), k_end)
                                    n = np.uint64(0)
                                    slot_at = begin + room
                                    if shape == BETWEEN:
                                        upper_at = slot_at + room
                                        for i in range(k, end):
                                            buffer[n] = word[slot_at + i]
                                            n += np.uint64(word[upper_at + i] >= value)
                                    else:
                                        for i in range(k, end):
                                            buffer[i - k] = word[slot_at + i]
                                        n = end - k
                                    k = end
                                    if op < COUNT:
                                        for i in range(n):
                                            slot = np.uint64(buffer[i])
                                            if counter[slot] < fresh_from:
                                                counter[slot] = fresh_from
                                                mask[slot] = 0
                                                touched += one
                                            counter[slot] |= STOPPED
                                    elif op < CLAUSE:
                                        # Without a branch: whether a counter is fresh cannot be
                                        # foretold.
                                        for i in range(n):
                                            slot = np.uint64(buffer[i])
                                            before = np.uint64(counter[slot])
                                            now = max(before, fresh_from) + one
                                            counter[slot] = now
                                            touched += np.uint64(before < fresh_from)
                                            done[finished] = slot
                                            finished += np.uint64(
                                                now == fresh_from + np.uint64(needed[slot_first + slot])
                                            )
                                    else:
                                        for i in range(n):
                                            slot = np.uint64(buffer[i]) >> np.uint64(CLAUSE_BITS)
                                            clause = one << (np.uint64(buffer[i]) & np.uint64(MOST_CLAUSES - 1))
                                            before = np.uint64(counter[slot])
                                            if before < fresh_from:
                                                before = fresh_from
                                                mask[slot] = 0
                                                touched += one
                                            if not mask[slot] & clause:
                                                mask[slot] |= clause
                                                before += one
                                                if before == fresh_from + np.uint64(
                                                    needed[slot_first + slot] & MOST_NEEDED
                                                ):
                                                    done[finished] = slot
                                                    finished += one
                                            counter[slot] = before
                    counters[CANDIDATES] += np.int64(touched)
                    counters[PREDICATES] += np.int64(read)
                    counters[NODES] += searched
                else:
                    at -= 1
                    row = at
                    finished = np.uint64(always_size)
                    if at == block:
                        at = np.int64(0)
                counters[CONJUNCTIONS] += slots
                entered = False
                for i in range(finished):
                    true = True
                    if pivot >= 0:
                        slot = slot_first + np.uint64(done[i])
                        c = np.int64(conj[slot])
                        check = (needed[slot] & VERIFY) != 0
                    else:
                        c = np.int64(always[i])
                        check = True
                    if check:
                        if not entered:
                            spread(row_first, row_attr, row_code, row, multi, table)
                            entered = True
                        true, steps = conjunction_holds(
                            pred,
                            run_lo,
                            run_hi,
                            first,
                            jump_first,
                            jump,
                            c,
                            row_attr,
                            row_code,
                            row_first[row],
                            row_first[row + 1],
                            table,
                        )
                        counters[PREDICATES] += steps
                    if true and not emit(sink, row, np.int64(owner[c]), counters):
                        full = True
                        break
                if entered:
                    clear(row_first, row_attr, row, table)
            if full:
                for u in range(t + 1, pivots):
                    head[found[u]] = 0
                roll_back(sink, fill, block, block_end, counters)
                return block
        block = block_end
    return stop
