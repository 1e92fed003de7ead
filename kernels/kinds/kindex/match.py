"""k-index: posting lists of conjunctions, read side by side with skipping.

``arrays`` defines lists, entries and segments. For one size K, the event's segments are kept in the
order of their current entries. A conjunction of K predicates needs K of them. So the first K - 1
lists have no match before the K-th list's conjunction, and gallop to it.

A value has a list for each level of its attribute's tree. But it meets one predicate of a
conjunction, or two if the conjunction has clauses. So lists are counted by value: a size that the
event's values cannot reach is passed over, however many lists they have.

Example, K = 2: the event's lists are ``age=3: 4 9 70``, ``city=NYC: 8 70`` and ``km=5: 60 61``.
They begin at 4, 8, 60. The first skips to at least 8, where the second is: 8, 9, 60. The next steps
give 9, 60, 70, then 60, 70, 70, and at last 70, 70: a match.

The K first lists are sorted in ``front``, the others are in a heap. A list that has moved is still
among the first, or changes places with the heap's top. This costs the logarithm of the number of
lists, where the papers sort all lists again.

Counters: NODES are entries read, including the search for a place. CONJUNCTIONS are conjunctions at
which K lists met, and the tail. CANDIDATES and PREDICATES concern conjunctions that lists could not
decide.

``dense`` takes 18 ms an event: 1M conjunctions of 5 predicates, 30 of 100 attributes present,
614,000 entries read. This is ten times SCAN and 30 ns an entry, half of them in the heap. Lists
there are too dense to gain from skipping. On seven named workloads at 20,000, reading on instead of
galloping reads from 0.6 % fewer to 1.1 % more entries. On sparse workloads, sizes and the choice of
the event's lists keep the work small. ``opindex`` takes 0.05 ms and ``pstree-sparse`` 0.36, where
SCAN takes 1.4 and 1.5.

Tried, on ``dense`` at 100,000:

- a heap with two children a place: 2.0 ms against 1.75;
- pieces of 2 and 8 instead of 4: 2.3 and 2.2 against 2.0;
- looking at a list's next entry before ``advance`` is called, and prefetching lists and entries: no
  gain.
"""

import numpy as np

from colmatch.kernels._jit import device, inlined, kernel
from colmatch.kernels.bits import ask_for
from colmatch.kernels.kinds.kindex.arrays import FANOUT_BITS, NO_CLAUSE, ONCE, KIndex, KIndexScratch
from colmatch.kernels.layout import CANDIDATES, CONJUNCTIONS, I64, NODES, PREDICATES, Predicates, Rows, Sink, Written
from colmatch.kernels.predicates import clear, conditions_of, conjunction_holds, spread
from colmatch.kernels.sink import FILL, emit, stops

END = np.uint64(2**64 - 1)  # key of a list without further entries


@device
def sift(heap, size, hole, key):
    """Puts ``key`` into the hole of a heap, or below it.

    Each place has four children, and the least child is found without a branch.
    """
    one, three = np.uint64(1), np.uint64(3)
    below = (hole << np.uint64(2)) + one
    # Move the hole down while all four children exist
    while below + three < size:
        a, b, c, d = heap[below], heap[below + one], heap[below + np.uint64(2)], heap[below + three]
        ab, cd = min(a, b), min(c, d)
        least = min(ab, cd)
        if key <= least:
            break
        heap[hole] = least
        right = np.uint64(cd < ab)
        hole = below + right + right + (np.uint64(d < c) if right else np.uint64(b < a))
        below = (hole << np.uint64(2)) + one
    # Compare the last children, fewer than four
    if below + three >= size:
        best = hole
        least = key
        while below < size:
            if heap[below] < least:
                best, least = below, heap[below]
            below += one
        heap[hole] = least
        hole = best
    heap[hole] = key


@device
def advance(entry, at, end, i, target, skipping):
    """Moves list ``i`` on to its first entry from ``target``.

    Returns the list's key, and the number of entries read. Steps double until one goes too far,
    then halve.
    """
    place, stop = at[i] + np.uint64(1), end[i]
    read = 0
    if place < stop:
        read = 1
        if entry[place] < target:
            # Gallop to the entry, or read on to it
            if skipping:
                step = np.uint64(1)
                while place + step < stop and entry[place + step] < target:
                    place += step
                    step += step
                    read += 1
                if place + step < stop:
                    read += 1
                low, high = place + np.uint64(1), min(place + step, stop)
                while low < high:
                    middle = (low + high) >> np.uint64(1)
                    read += 1
                    if entry[middle] < target:
                        low = middle + np.uint64(1)
                    else:
                        high = middle
                place = low
            else:
                place += np.uint64(1)
                while place < stop and entry[place] < target:
                    place += np.uint64(1)
                    read += 1
                if place < stop:
                    read += 1
    at[i] = place
    if place < stop:
        return np.uint64(entry[place]) << np.uint64(32) | i, read
    return END, read


@device
def note_clauses(entry, clause, base, place, stop, number, counter):
    """Applies a list's entries for a conjunction to the counters of its clauses."""
    while place < stop and np.uint64(entry[place]) >> np.uint64(1) == number:
        j = np.int64(clause[place - base])
        if j != NO_CLAUSE:
            if entry[place] & 1:
                counter[j] += 2
            elif j & ONCE:
                counter[j - ONCE] &= -2
            else:
                counter[j] -= 2
        place += np.uint64(1)


@device
def lowest_list(raw, raw_first, a, code):
    """Returns the number of the code's list on the lowest level.

    If each value has its own list, this is the list of the code's first value.
    """
    x = np.int64(code) - 1
    return raw[raw_first[a] + x] if len(raw) > 0 else x


@device
def lists_of(row_attr, row_code, begin, stop, index, seen, low, next, whose):
    """Finds the event's lists that are not empty, as ranges of segments, and the value of each.

    Returns the number of lists.
    """
    level_first, level_list, raw, raw_first = index.level_first, index.level_list, index.raw, index.raw_first
    list_first, multi = index.list_first, index.multi
    planes, lists = index.planes[0], index.planes[1]
    count = 0
    for e in range(begin, stop + 1):
        # Choose the levels of a value, or Z at last
        lowest = level = level_end = np.int64(0)
        several = False
        x = np.int64(0)
        if e < stop:
            a = np.int64(row_attr[e])
            lowest, level_end, several = level_first[a], level_first[a + 1], multi[a] != 0
            level = lowest
            x = lowest_list(raw, raw_first, a, row_code[e])
        else:
            level_end = np.int64(1)  # Z
        # Write the list of each level, in each plane
        while level < level_end:
            at = lists - 1
            if e < stop:
                at = level_list[level] + (x if level == lowest or level + 1 < level_end else 0)
            x >>= FANOUT_BITS
            level += 1
            if several:
                if seen[at]:
                    continue
                seen[at] = 1
            for _ in range(planes):
                if list_first[at] < list_first[at + 1]:
                    low[count] = list_first[at]
                    next[count] = list_first[at + 1]
                    whose[count] = e - begin
                    count += 1
                at += lists
    # Clear the marks of lists
    if len(seen) > 0:
        for e in range(begin, stop):
            a = np.int64(row_attr[e])
            if multi[a]:
                x = lowest_list(raw, raw_first, a, row_code[e])
                lowest, level_end = level_first[a], level_first[a + 1]
                for k in range(lowest, level_end):
                    seen[level_list[k] + (x if k == lowest or k + 1 < level_end else 0)] = 0
                    x >>= FANOUT_BITS
    return count


@device
def segments_of(part, most, lists, index, low, next, whose, at, end, opened):
    """Opens the event's segments of a part.

    Returns the number of segments, and the most predicates that the event's values can meet. Then
    it returns the next part or -1, and the number of lists left.

    most : predicates of a conjunction of the part that one value can meet
    """
    segment_part, segment_first, entry = index.segment_part, index.segment_first, index.entry
    count, reach, following, kept = np.uint64(0), np.uint64(0), np.int64(-1), 0
    value, met = np.int64(-1), 0
    for i in range(lists):
        begin, stop = low[i], next[i]
        # Open the next segment of a list if it is of the part
        if segment_part[stop - 1] == part:
            if whose[i] != value:
                value, met = np.int64(whose[i]), 0
            if met < most:
                reach += np.uint64(1)
            met += 1
            stop -= 1
            at[count] = segment_first[stop]
            end[count] = segment_first[stop + 1]
            opened[count] = np.uint64(whose[i]) << np.uint64(32) | np.uint64(stop)
            ask_for(entry, at[count])
            count += np.uint64(1)
        # Keep the list if it has further segments
        if begin < stop:
            low[kept], next[kept], whose[kept] = begin, stop, whose[i]
            kept += 1
            following = max(following, np.int64(segment_part[stop - 1]))
    return count, reach, following, kept


@device
def open_segments(entry, at, size, need, heap, front):
    """Orders the current entries of ``size`` segments.

    Puts the first ``need`` into ``front`` and the others into the heap. Returns the size of the
    heap.
    """
    one = np.uint64(1)
    for t in range(size):
        heap[t] = np.uint64(entry[at[t]]) << np.uint64(32) | np.uint64(t)
    inner = (size + np.uint64(2)) >> np.uint64(2)  # places that have children
    for t in range(inner):
        hole = inner - one - np.uint64(t)
        sift(heap, size, hole, heap[hole])
    left = size
    for t in range(need):
        front[t] = heap[0]
        left -= one
        sift(heap, left, np.uint64(0), heap[left])
    return left


@device
def verify(index, preds, rows, row, candidates, scratch, sink, counters):
    """Verifies the conjunctions in ``waiting``. Returns False when the sink takes no more."""
    steps, fits, conds = 0, True, conditions_of(preds)
    event = spread(rows, row, index.multi, scratch.table)
    for i in range(candidates):
        c = np.int64(scratch.waiting[i])
        holds, taken = conjunction_holds(conds, c, event)
        steps += taken
        if holds and not emit(sink, row, np.int64(preds.owner[c]), counters):
            fits = False
            break
    clear(event)
    counters[CANDIDATES] += candidates
    counters[PREDICATES] += steps
    return fits


@inlined
def read_number(index, number, need, left, target, clauses, scratch):
    """Reads all entries of a conjunction. Returns its truth and the number of entries read."""
    entry, clause, at, end = index.entry, index.clause, scratch.at, scratch.end
    heap, front, counter = scratch.heap, scratch.front, scratch.counter
    base, skipping = np.uint64(len(entry) - len(clause)), index.skipping[0] != 0
    read, count, begin = 0, np.int64(0), np.int64(0)
    holds = front[0] >> np.uint64(32) & np.uint64(1) != np.uint64(0)
    # Count the clauses of lists in front
    if clauses:
        first = number - np.uint64(index.with_clauses[1])
        begin = index.clause_first[first]
        count = index.clause_first[first + np.uint64(1)] - begin
        for j in range(count):
            counter[j] = index.clause_true[begin + j]
        for t in range(need):
            i = front[t] & np.uint64(2**32 - 1)
            note_clauses(entry, clause, base, at[i], end[i], number, counter)
    # Read the entries of lists in the heap, and move these lists on
    while left > 0 and heap[0] >> np.uint64(33) == number:
        i = heap[0] & np.uint64(2**32 - 1)
        if clauses:
            note_clauses(entry, clause, base, at[i], end[i], number, counter)
        key, steps = advance(entry, at, end, i, target, skipping)
        read += steps
        sift(heap, left, np.uint64(0), key)
    if clauses:
        holds = True
        for j in range(count):
            holds = holds and counter[j] > 0
    return holds, read


@inlined
def move_front(index, need, left, target, scratch):
    """Moves the lists in ``front`` to a key, in order. Returns the number of entries read."""
    entry, at, end, heap, front = index.entry, scratch.at, scratch.end, scratch.heap, scratch.front
    one, whole, last, read = np.uint64(1), np.uint64(32), need - np.uint64(1), 0
    skipping = index.skipping[0] != 0
    # Count the lists to move
    moving = np.uint64(0)
    while moving < need and front[moving] >> whole < target:
        moving += one
    while moving > 0:
        moving -= one
        # Move one, and exchange it with the heap's top if it has passed it
        i = front[moving] & np.uint64(2**32 - 1)
        key, steps = advance(entry, at, end, i, target, skipping)
        read += steps
        if left > 0 and heap[0] < key:
            first = heap[0]
            sift(heap, left, np.uint64(0), key)
            key = first
        for place in range(moving, last):  # without a branch on its place
            other = front[place + one]
            front[place] = min(key, other)
            key = max(key, other)
        front[last] = key
    return read


@kernel
def match(
    index: KIndex,
    preds: Predicates,
    rows: Written[Rows],
    start: int,
    stop: int,
    scratch: Written[KIndexScratch],
    sink: Written[Sink],
    counters: Written[I64],
) -> int:
    """Matches rows ``start:stop``.

    Returns the first row not finished: ``stop``, unless the sink became full.
    """
    conj, unsure, part_size, owner = index.conj, index.unsure, index.part_size, preds.owner
    first_part, first_number = index.with_clauses[0], np.uint64(index.with_clauses[1])
    row_first, row_attr, row_code = rows.first, rows.attr, rows.code
    low, next, whose, at, end = scratch.low, scratch.next, scratch.whose, scratch.at, scratch.end
    heap, front, waiting = scratch.heap, scratch.front, scratch.waiting
    one, half = np.uint64(1), np.uint64(33)
    for row in range(start, stop):
        fill = sink.state[FILL]
        full = False
        candidates = 0
        entries, entries_end = row_first[row], row_first[row + 1]
        # Find the row's lists, and the highest part in them
        lists = lists_of(row_attr, row_code, entries, entries_end, index, scratch.seen, low, next, whose)
        part = np.int64(-1)
        for i in range(lists):
            part = max(part, np.int64(index.segment_part[next[i] - 1]))
        while part >= 0 and not full:
            # Open the segments of the part, unless its size is out of reach
            need = max(np.uint64(part_size[part]), one)
            clauses = part >= first_part
            size, reach, following, lists = segments_of(
                part, 2 if clauses else 1, lists, index, low, next, whose, at, end, scratch.opened
            )
            part = following
            if reach < need:
                continue
            # Decide the conjunctions that ``need`` lists agree on
            read, decided = int(size), 0
            left = open_segments(index.entry, at, size, need, heap, front)
            while front[need - one] != END and not full:
                number = front[need - one] >> half
                target, holds = number + number, False
                if front[0] >> half == number:
                    decided += 1
                    target += np.uint64(2)
                    holds, steps = read_number(index, number, need, left, target, clauses, scratch)
                    read += steps
                read += move_front(index, need, left, target, scratch)
                if holds and clauses and unsure[number - first_number]:
                    waiting[candidates] = conj[number]
                    candidates += 1
                elif holds:
                    full = not emit(sink, row, np.int64(owner[conj[number]]), counters)
            counters[NODES] += read
            counters[CONJUNCTIONS] += decided
        # Verify unsure conjunctions, and undo the row if the sink is too small
        if not full and candidates > 0:
            full = not verify(index, preds, rows, row, candidates, scratch, sink, counters)
        if full and stops(sink, fill, counters):
            return row
    return stop
