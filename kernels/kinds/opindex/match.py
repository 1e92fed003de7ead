"""OpIndex matches a batch: it counts for each event the predicates that its values meet.

``arrays`` defines partitions, lists, segments, runs and slots.

A block of rows passes over a partition before the next one. So the lists come from memory once, and
the counters stay in the cache.

An event takes 0.8 ms with 1M conjunctions of 5 predicates, 100 attributes, 30 present. Finding runs
takes 0.14, gathering the slots of 261,000 entries that are met takes 0.2, counting them takes the
rest. With a branch on fresh counters it was 1.5 ms. At 100,000, a run by class of width has few
entries. Classes of powers of two took 170 us there instead of 135, since each is searched. Tried
and lost: prefetching the lists of the next pivots, no gain beyond the noise on 20,000 attributes.
"""

import numpy as np

from colmatch.kernels._jit import device, inlined, kernel
from colmatch.kernels.kinds.opindex import arrays as oi
from colmatch.kernels.kinds.opindex.arrays import OpIndex, OpIndexScratch, count_below, find_run, hash_of, signature_bit
from colmatch.kernels.layout import CANDIDATES, CONJUNCTIONS, I64, NODES, PREDICATES, Predicates, Rows, Sink, Written
from colmatch.kernels.predicates import Event, clear, conditions_of, conjunction_holds, spread
from colmatch.kernels.sink import FILL, emit, is_decided, roll_back

ROW_BLOCK = 256


@device
def group_rows(rows, start, stop, lists, scratch):
    """Chains the rows ``start:stop`` by attribute and prepares their entries.

    Returns the number of attributes in ``scratch.found``.
    """
    first, attr, code = rows.first, rows.attr, rows.code
    head, chain, row_of = scratch.head, scratch.chain, scratch.row
    key, bit, block_pivot = scratch.key, scratch.bit, scratch.found
    base = first[start]
    n = 0
    for row in range(start, stop):
        last = np.int64(-1)
        for e in range(first[row], first[row + 1]):
            # Write the key and signature bits of an entry
            i = e - base
            a = np.int64(attr[e])
            hash = hash_of(a)
            key[i] = hash << np.uint64(32) | np.uint64(code[e])
            bit[0, i] = signature_bit(hash, oi.EQUAL, code[e])
            bit[1, i] = signature_bit(hash, oi.BETWEEN, code[e])
            row_of[i] = row
            # Chain the row to others with the attribute
            if a != last and a < len(lists):
                if head[a] == 0:
                    block_pivot[n] = a
                    n += 1
                chain[i] = head[a]
                head[a] = i + 1
            last = a
    return n


@device
def next_stamp(stamp, counter):
    """Returns the start of the counters for the next row and pivot: all older ones are below."""
    if stamp[0] == oi.NO_STAMP - 1:
        counter[:] = 0
        stamp[0] = 0
    stamp[0] += 1
    return np.uint64(stamp[0] << oi.STAMP_BITS)


@device
def stop_slots(buffer, n, fresh_from, counter, mask):
    """Stops the counters of ``n`` gathered slots, and returns the number of fresh ones.

    A fresh counter has not been touched for this row and pivot: it is below ``fresh_from``.
    """
    touched = np.uint64(0)
    for i in range(n):
        slot = np.uint64(buffer[i])
        if counter[slot] < fresh_from:
            counter[slot] = fresh_from
            mask[slot] = 0
            touched += np.uint64(1)
        counter[slot] |= oi.STOPPED
    return touched


@device
def count_slots(buffer, n, fresh_from, counter, needed, slot_first, done, finished):
    """Adds one to the counters of ``n`` gathered slots, and writes complete ones to ``done``.

    Returns the number of fresh slots, and the number in ``done``.
    """
    one, touched = np.uint64(1), np.uint64(0)
    for i in range(n):  # without a branch: fresh counters cannot be predicted
        slot = np.uint64(buffer[i])
        before = np.uint64(counter[slot])
        after = max(before, fresh_from) + one
        counter[slot] = after
        touched += np.uint64(before < fresh_from)
        done[finished] = slot
        finished += np.uint64(after == fresh_from + np.uint64(needed[slot_first + slot]))
    return touched, finished


@device
def count_clauses(buffer, n, fresh_from, counter, mask, needed, slot_first, done, finished):
    """Counts the clauses of ``n`` gathered slot words, each clause once.

    Returns the same as ``count_slots``.
    """
    one, touched = np.uint64(1), np.uint64(0)
    for i in range(n):
        slot = np.uint64(buffer[i]) >> np.uint64(oi.CLAUSE_BITS)
        clause = one << (np.uint64(buffer[i]) & np.uint64(oi.MOST_CLAUSES - 1))
        before = np.uint64(counter[slot])
        if before < fresh_from:
            before = fresh_from
            mask[slot] = 0
            touched += one
        # Count the clause if it has not been counted
        if not mask[slot] & clause:
            mask[slot] |= clause
            before += one
            if before == fresh_from + np.uint64(needed[slot_first + slot] & oi.MOST_NEEDED):
                done[finished] = slot
                finished += one
        counter[slot] = before
    return touched, finished


@device
def verify(preds, c, event, counters):
    """Returns whether an event satisfies a conjunction."""
    holds, steps = conjunction_holds(conditions_of(preds), c, event)
    counters[PREDICATES] += steps
    return holds


@device
def emit_always(index, preds, rows, row, scratch, sink, counters):
    """Emits the always verified conjunctions that a row satisfies.

    Returns False when the sink is full.
    """
    fits = True
    event = spread(rows, row, scratch.multi, scratch.table)
    for i in range(index.state[oi.ALWAYS]):
        c = np.int64(index.always[i])
        if verify(preds, c, event, counters) and not emit(sink, row, np.int64(preds.owner[c]), counters):
            fits = is_decided(sink, row)
            break
    clear(event)
    return fits


@inlined
def read_run(index, r, op, value, fresh_from, slot_first, finished, scratch):
    """Counts the slots of the entries of a run that a value meets.

    Returns the number of entries read, of fresh slots, and of complete slots.
    """
    run, word, needed = index.run, index.word, index.needed
    counter, mask, done, buffer = scratch.counter, scratch.mask, scratch.done, scratch.buffer
    one, touched, shape = np.uint64(1), np.uint64(0), op & 3
    begin, size, room = np.uint64(run[r, oi.WORD]), np.uint64(run[r, oi.SIZE]), np.uint64(run[r, oi.ROOM])
    # Find the entries that the value may meet
    k, k_end = np.uint64(0), size
    if shape == oi.BETWEEN:
        reach = (one << (one + one) * np.uint64(run[r, oi.WIDTH] & np.uint32(oi.ALL_WIDTHS - 1))) - one
        k = count_below(word, begin, size, value - min(value, reach))
    elif shape <= oi.AT_MOST:
        k = count_below(word, begin, size, value)
    if shape != oi.AT_MOST:
        k_end = k + count_below(word, begin + k, size - k, value + one)
    read, slot_at = k_end - k, begin + room
    while k < k_end:
        # Gather the slots of some of them, and test the upper ends of ranges
        end, n = min(k + np.uint64(oi.CHUNK), k_end), np.uint64(0)
        if shape == oi.BETWEEN:
            for i in range(k, end):
                buffer[n] = word[slot_at + i]
                n += np.uint64(word[slot_at + room + i] >= value)
        else:
            for i in range(k, end):
                buffer[i - k] = word[slot_at + i]
            n = end - k
        k = end
        # Count the slots by the mode of the operator
        if op < oi.COUNT:
            fresh = stop_slots(buffer, n, fresh_from, counter, mask)
        elif op < oi.CLAUSE:
            fresh, finished = count_slots(buffer, n, fresh_from, counter, needed, slot_first, done, finished)
        else:
            fresh, finished = count_clauses(buffer, n, fresh_from, counter, mask, needed, slot_first, done, finished)
        touched += fresh
    return read, touched, finished


@inlined
def emit_finished(index, preds, rows, row, slot_first, finished, scratch, sink, counters):
    """Emits the conjunctions of complete slots. Returns whether the sink had room."""
    conj, needed, done, table, fits = index.conj, index.needed, scratch.done, scratch.table, True
    event = Event(rows.attr, rows.code, rows.first[row], rows.first[row + 1], table)
    entered = False  # whether the event is in the table
    for i in range(finished):
        slot = slot_first + np.uint64(done[i])
        c = np.int64(conj[slot])
        if needed[slot] & oi.VERIFY:
            if not entered:
                spread(rows, row, scratch.multi, table)
                entered = True
            if not verify(preds, c, event, counters):
                continue
        if not emit(sink, row, np.int64(preds.owner[c]), counters):
            fits = is_decided(sink, row)
            break
    if entered:
        clear(event)
    return fits


@kernel
def match(
    index: OpIndex,
    preds: Predicates,
    rows: Written[Rows],
    start: int,
    stop: int,
    scratch: Written[OpIndexScratch],
    sink: Written[Sink],
    counters: Written[I64],
) -> int:
    """Matches rows ``start:stop``.

    Returns the first row not finished: ``stop``, unless the sink became full.

    CONJUNCTIONS counts the slots in the partitions of an event's pivots, and the conjunctions that
    are always verified. Lemma 1 of the paper calls these slots candidates. CANDIDATES counts slots
    that were touched. PREDICATES counts entries read, and predicates evaluated to verify. NODES
    counts segments searched. An entry that is read is met, unless it is a range with two ends.
    """
    lists, partition, list_, segment = index.lists, index.partition, index.list, index.segment
    run, always = index.run, index.state[oi.ALWAYS]
    row_first, head, chain, row_of = rows.first, scratch.head, scratch.chain, scratch.row
    key, bit, block_pivot, stamp = scratch.key, scratch.bit, scratch.found, scratch.stamp
    one, low_half, half = np.uint64(1), np.uint64(0xFFFFFFFF), np.uint64(32)
    block = start
    while block < stop:
        block_end = min(block + ROW_BLOCK, stop)
        fill, base = sink.state[FILL], row_first[block]
        pivots = group_rows(rows, block, block_end, lists, scratch)
        t, fits = 0, True
        while t < pivots and fits:
            # Take the next pivot of the block
            pivot = np.int64(block_pivot[t])
            t += 1
            at = np.int64(head[pivot])
            head[pivot] = 0
            slot_first, slots = np.uint64(partition[pivot, 0]), np.int64(partition[pivot, 1])
            while at > 0 and slots > 0 and fits:  # the rows of the block that have the pivot
                row = np.int64(row_of[at - 1])
                at = np.int64(chain[at - 1])
                if is_decided(sink, row):
                    continue
                fresh_from = next_stamp(stamp, scratch.counter)
                entry, entry_end = np.uint64(row_first[row] - base), np.uint64(row_first[row + 1] - base)
                searched, read, touched, finished = np.int64(0), np.uint64(0), np.uint64(0), np.uint64(0)
                # Look the row's entries up in each list
                for op in range(oi.OPERATORS):
                    number = lists[pivot, op]
                    if number == oi.NONE:
                        continue
                    shape = op & 3
                    which = 0 if shape == oi.EQUAL else 1
                    first_segment, shift = np.uint64(list_[number, 0]), half - np.uint64(list_[number, 1])
                    for e in range(entry, entry_end):
                        hash, value = key[e] >> half, key[e] & low_half
                        s = first_segment + (hash >> shift)
                        # Skip the segment if its signature excludes the value
                        if not segment[s, 0] >> np.uint64(bit[which, e]) & one:
                            continue
                        searched += 1
                        low = segment[s, 1] & low_half
                        high = low + (segment[s, 1] >> half)
                        low = find_run(run, low, high, hash)
                        while low < high and run[low, oi.HASH] == hash:
                            more, fresh, finished = read_run(
                                index, low, op, value, fresh_from, slot_first, finished, scratch
                            )
                            low += one
                            read += more
                            touched += fresh
                counters[CONJUNCTIONS] += slots
                counters[CANDIDATES] += np.int64(touched)
                counters[PREDICATES] += np.int64(read)
                counters[NODES] += searched
                fits = emit_finished(index, preds, rows, row, slot_first, finished, scratch, sink, counters)
        # Verify the conjunctions without a pivot
        row = block
        while row < block_end and always > 0 and fits:
            counters[CONJUNCTIONS] += always
            fits = emit_always(index, preds, rows, row, scratch, sink, counters)
            row += 1
        # Undo the block if the sink is too small
        if not fits:
            for u in range(t, pivots):
                head[block_pivot[u]] = 0
            roll_back(sink, fill, counters)
            return block
        block = block_end
    return stop
