"""Propagation, changed: conjunctions that come and go, in the slabs of the pool."""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import FLAG_NONE, FLAG_RUN
from colmatch.kernels.propagation import arrays as pr
from colmatch.kernels.propagation.entries import (
    BIT,
    CONJ,
    INTERVAL,
    NEED_BITS,
    NEED_POOL,
    NEED_SLOTS,
    NEEDED,
    NOTHING,
    PREDICATE,
    add_entry,
    release,
)
from colmatch.kernels.propagation.predicates import WHAT, choose_access, choose_program_access, expected, find
from colmatch.kernels.room import with_room

SQUEEZED = 8  # conjunctions from which on a slab half of which is gone is put together


@device
def slab_words(columns, capacity):
    return pr.HEADER + capacity * (1 if columns == pr.PROGRAM else columns + 1)


@device
def copy_slab(pool, at, target, to, capacity):
    """What is left of a slab, with other room; in place if that is the same."""
    columns, old, size = np.int64(pool[at + pr.COLUMNS]), np.int64(pool[at + pr.CAPACITY]), np.int64(pool[at + pr.SIZE])
    kept = 0
    for column in range(0 if columns == pr.PROGRAM else columns, -1, -1):  # conjunctions last: they say who is gone
        kept = 0
        for i in range(size):
            if pool[at + pr.HEADER + i] < pr.DELETED:
                target[to + pr.HEADER + column * capacity + kept] = pool[at + pr.HEADER + column * old + i]
                kept += 1
    target[to + pr.NEXT] = pool[at + pr.NEXT]
    target[to + pr.COLUMNS] = pool[at + pr.COLUMNS]
    target[to + pr.CAPACITY] = capacity
    target[to + pr.SIZE] = kept
    target[to + pr.GONE] = 0


@device
def find_slab(pool, at, columns):
    """The slab of so many columns in a list, or 0, and the one before it, or 0."""
    before = np.int64(0)
    while at != 0 and pool[at + pr.COLUMNS] != columns:
        before = at
        at = np.int64(pool[at + pr.NEXT])
    return at, before


@device
def relink(index, bit, before, to):
    """Lets the list of an access predicate, or of what is always checked (-1), go on with slab
    ``to``.

    It stands behind slab ``before``; with 0 there, the list begins with it.
    """
    if before != 0:
        index.pool[before + pr.NEXT] = to
    elif bit < 0:
        index.state[pr.ALWAYS] = to
    else:
        index.slab[bit] = to
        mask = np.uint64(1) << np.uint64(bit & 63)
        if to != 0:
            index.access[bit >> 6] |= mask
        elif index.access[bit >> 6] & mask != 0:
            index.access[bit >> 6] ^= mask


@device
def add_conjunction(index, preds, c, bit, columns, ids, progress):
    """Enter a conjunction under its access predicate.

    Returns what there is no room for, as ``add_entry``.
    """
    pool, state = index.pool, index.state
    head = np.int64(index.slab[bit]) if bit >= 0 else state[pr.ALWAYS]
    at, before = find_slab(pool, head, columns)
    room = np.int64(0)
    if at == 0:
        room = np.int64(1)
    elif pool[at + pr.SIZE] == pool[at + pr.CAPACITY]:
        room = np.int64(pool[at + pr.CAPACITY])
        if 2 * np.int64(pool[at + pr.GONE]) >= room:
            copy_slab(pool, at, pool, at, room)
            room = np.int64(0)
        else:
            room = with_room(room)
    if room > 0:
        words = slab_words(columns, room)
        if state[pr.POOL] + words > len(pool):
            progress[NEEDED] = words
            return NEED_POOL
        to = state[pr.POOL]
        state[pr.POOL] += words
        if at == 0:
            pool[to + pr.NEXT] = head
            pool[to + pr.COLUMNS] = columns
            pool[to + pr.CAPACITY] = room
            pool[to + pr.SIZE] = 0
            pool[to + pr.GONE] = 0
            before = np.int64(0)
        else:
            copy_slab(pool, at, pool, to, room)
            state[pr.WASTE] += slab_words(columns, np.int64(pool[at + pr.CAPACITY]))
        relink(index, bit, before, to)
        at = to
    size, capacity = np.int64(pool[at + pr.SIZE]), np.int64(pool[at + pr.CAPACITY])
    place = at + pr.HEADER + size
    pool[place] = c
    pool[at + pr.SIZE] = size + 1
    if columns != pr.PROGRAM:
        begin = preds.first[c]
        skip = bit
        for p in range(begin, preds.first[c + 1]):
            negated = (preds.pred[p, 0] & FLAG_NONE) != 0
            number = np.int64(ids[p - begin])
            if number == skip and not negated:
                skip = np.int64(-1)  # once
                continue
            place += capacity
            pool[place] = number | (pr.NEGATED if negated else 0)
    return NOTHING


@device
def use_predicate(index, preds, p, estimates, progress):
    """Use predicate ``p`` once more; a new one gets a bit, and its intervals stand in groups.

    Returns what there is no room for, as ``add_entry``, and the predicate's bit.
    """
    key, slot, state = index.key, index.slot, index.state
    run_lo, run_hi = preds.run_lo, preds.run_hi
    word = np.int64(preds.pred[p, 0]) & WHAT
    low, high = np.int64(preds.pred[p, 1]), np.int64(preds.pred[p, 2])
    b = progress[BIT]
    if b < 0:
        b, place = find(key, slot, run_lo, run_hi, word, low, high)
        if b >= 0:
            index.uses[b] = np.int64(index.uses[b]) + 1
            return NOTHING, b
        if state[pr.FREE] == 0 and state[pr.BITS] == len(key):
            return NEED_BITS, b
        if 2 * (state[pr.SLOTS] + 1) > len(slot):
            return NEED_SLOTS, b
        if state[pr.FREE] != 0:
            b = state[pr.FREE] - 1
            state[pr.FREE] = np.int64(key[b, 1])
        else:
            b = state[pr.BITS]
            state[pr.BITS] += 1
        key[b, 0], key[b, 1], key[b, 2] = word, low, high
        index.uses[b] = 1
        index.slab[b] = 0
        index.truth[b] = expected(run_lo, run_hi, word, low, high, estimates)
        slot[place] = b + 1
        state[pr.SLOTS] += 1
        progress[BIT] = b
        progress[INTERVAL] = 0
    run = word & FLAG_RUN != 0
    intervals = high - low if run else (np.int64(1) if low < high else np.int64(0))
    from_run = low
    while progress[INTERVAL] < intervals:
        if run:
            low = np.int64(run_lo[from_run + progress[INTERVAL]])
            high = np.int64(run_hi[from_run + progress[INTERVAL]])
        lacking = add_entry(index, word & ~FLAG_RUN, low, high, b, progress)
        if lacking != NOTHING:
            return lacking, b
        progress[INTERVAL] += 1
    progress[BIT] = -1
    return NOTHING, b


@kernel
def enter(index, preds, end, estimates, ids, progress):
    """Enter conjunctions from ``progress[CONJ]`` up to ``end``.

    Returns what there is no room for: the caller makes more and calls again with the same
    ``progress`` and ``ids``; NOTHING when all is done.

    ids : as long as the longest conjunction
    """
    state = index.state
    while progress[CONJ] < end:
        c = progress[CONJ]
        begin, stop = preds.first[c], preds.first[c + 1]
        program = len(preds.jump_first) > 0 and preds.jump_first[c] >= 0
        only = choose_program_access(preds, c, estimates) if program else np.int64(-1)
        while begin + progress[PREDICATE] < stop:
            p = begin + progress[PREDICATE]
            if not program or p == only:
                lacking, b = use_predicate(index, preds, p, estimates, progress)
                if lacking != NOTHING:
                    return lacking
                ids[p - begin] = b
            progress[PREDICATE] += 1
        if program:
            access = only
            columns = np.int64(pr.PROGRAM)
        else:
            access = choose_access(preds.pred, ids, index.truth, begin, stop, begin)
            columns = stop - begin - (1 if access >= 0 else 0)
        bit = np.int64(ids[access - begin]) if access >= 0 else np.int64(-1)
        lacking = add_conjunction(index, preds, c, bit, columns, ids, progress)
        if lacking != NOTHING:
            return lacking
        if program:
            state[pr.PROGRAMS] = 1
        if c > 0 and preds.owner[c] == preds.owner[c - 1]:
            state[pr.SEVERAL] = 1
        progress[CONJ] += 1
        progress[PREDICATE] = 0
    return NOTHING


@device
def mark_deleted(index, bit, columns, c):
    """Delete a conjunction from the slab of so many columns of an access predicate, or -1.

    False when it is not there.
    """
    pool, state = index.pool, index.state
    at, before = find_slab(pool, np.int64(index.slab[bit]) if bit >= 0 else state[pr.ALWAYS], columns)
    if at == 0:
        return False
    size = np.int64(pool[at + pr.SIZE])
    low, high = at + pr.HEADER, at + pr.HEADER + size
    while low < high:  # conjunctions ascend
        middle = (low + high) >> 1
        if np.int64(pool[middle]) & (pr.DELETED - 1) < c:
            low = middle + 1
        else:
            high = middle
    if low == at + pr.HEADER + size or pool[low] != c:
        return False
    pool[low] = c | pr.DELETED
    gone = np.int64(pool[at + pr.GONE]) + 1
    pool[at + pr.GONE] = gone
    if gone == size:
        state[pr.WASTE] += slab_words(columns, np.int64(pool[at + pr.CAPACITY]))
        relink(index, bit, before, np.int64(pool[at + pr.NEXT]))
    elif size >= SQUEEZED and 2 * gone > size:
        copy_slab(pool, at, pool, at, np.int64(pool[at + pr.CAPACITY]))
    return True


@kernel
def remove(index, preds, conjunctions):
    """Delete conjunctions, which ``preds`` still has.

    Returns how many there were; those that are not there are passed over.
    """
    pred, run_lo, run_hi = preds.pred, preds.run_lo, preds.run_hi
    removed = 0
    for i in range(len(conjunctions)):
        c = conjunctions[i]
        begin, end = preds.first[c], preds.first[c + 1]
        program = len(preds.jump_first) > 0 and preds.jump_first[c] >= 0
        there = False
        bit = np.int64(-1)
        p = begin
        while not there and p <= end:  # the last round is for what is always checked
            bit = np.int64(-1)
            if p < end:
                word = np.int64(pred[p, 0])
                if not word & FLAG_NONE:
                    bit, _ = find(
                        index.key, index.slot, run_lo, run_hi, word & WHAT, np.int64(pred[p, 1]), np.int64(pred[p, 2])
                    )
            if p == end or bit >= 0:
                columns = np.int64(pr.PROGRAM) if program else end - begin - (1 if bit >= 0 else 0)
                there = mark_deleted(index, bit, columns, c)
            p += 1
        if not there:
            continue
        removed += 1
        for q in range(begin, end):
            if program and q != p - 1:
                continue
            word = np.int64(pred[q, 0]) & WHAT
            b, _ = find(index.key, index.slot, run_lo, run_hi, word, np.int64(pred[q, 1]), np.int64(pred[q, 2]))
            release(index, run_lo, run_hi, b)
    return removed


@kernel
def move_slabs(index, pool):
    """All slabs, one behind the other, into a new pool, which is written; their lists and the
    state are rewritten.
    """
    state = index.state
    end = np.int64(1)
    for bit in range(-1, state[pr.BITS]):
        at = np.int64(index.slab[bit]) if bit >= 0 else state[pr.ALWAYS]
        before = np.int64(0)
        while at != 0:
            capacity = np.int64(index.pool[at + pr.CAPACITY])
            copy_slab(index.pool, at, pool, end, capacity)
            if before != 0:
                pool[before + pr.NEXT] = end
            elif bit < 0:
                state[pr.ALWAYS] = end
            else:
                index.slab[bit] = end
            before = end
            end += slab_words(np.int64(index.pool[at + pr.COLUMNS]), capacity)
            at = np.int64(index.pool[at + pr.NEXT])
    state[pr.POOL] = end
    state[pr.WASTE] = 0
