"""PB+tree: matching of a batch, by searches as in the PB+tree paper (section 4.4), then counting.

Each value of an event is a task. It goes down its tree, then becomes a walk along each of the
lists. A task holds one page at a time, and the number of its next page. So it can stop at any page
that is not in memory, and go on when the page has been read.

A value lies in the ranges that begin before it, less the ranges that end before it. Likewise it
lies in the ranges that end behind it, less the ranges that begin behind it. The first way is short
for low values, the second for high values. A million ``dense`` subscriptions then have 0.75 million
entries an event to count, instead of 1.8 million in GreaterThan and LessThan. Missed ranges must be
counted before any slot is complete, so their walks come first.

Once all tasks wait, the pages that they want are read together, in the order of the file. So a
cache of 8 pages is enough for any event, and no page is pinned between two calls of the kernel.
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.kinds.pbtree import arrays as pb
from colmatch.kernels.kinds.pbtree.arrays import PbtreeIndex, PbtreeScratch, SearchScratch
from colmatch.kernels.kinds.pbtree.blocks import visit_block
from colmatch.kernels.kinds.pbtree.counts import begin_count, count_slots, miss_slots, note_span
from colmatch.kernels.kinds.pbtree.pages import begin_of, child_of, first_key, item_at, items_below, key_at, last_item
from colmatch.kernels.layout import (
    CANDIDATES,
    I32,
    I64,
    NODES,
    PREDICATES,
    U8,
    U32,
    Predicates,
    Rows,
    Sink,
    Table,
    Written,
)
from colmatch.kernels.predicates import Event, clear, conditions_of, conjunction_holds, spread
from colmatch.kernels.sink import FILL, emit, is_decided, stops


@device
def find_met_slots(mem, base, stage, key):
    """Returns the slots of a node that a stage counts for an event's key: start and end, twice."""
    # Find the SidSet of the key
    size = np.int64(mem[base + pb.SIDS])
    j = items_below(mem, base, key)
    begin = begin_of(mem, base, j)
    is_there = j < np.int64(mem[base + pb.ITEMS]) and key_at(mem, item_at(base, j)) == key
    end = np.int64(mem[item_at(base, j) + 2]) if is_there else begin
    # Choose the slots before it, with it, or behind it
    if stage == pb.EQ or stage == pb.LT_BACK:
        return begin, end, end, end
    if stage == pb.GT or stage == pb.BEGUN:
        return np.int64(0), end, end, end
    if stage == pb.ENDED:
        return np.int64(0), begin, begin, begin
    if stage == pb.BEGINS:
        return end, size, size, size
    if stage == pb.LT_START or stage == pb.LT or stage == pb.ENDS:
        return begin, size, size, size
    return np.int64(0), begin, end, size


@device
def begin_walks(mem, base, place, key, half, heads, task, n):
    """Appends a walk along each list, from an item of a leaf. Returns the number of tasks.

    place : of the item; -1 if the key is below all items
    half : 0 if the key is in the lower half of its tree
    heads : first nodes of the lists, two in a number
    """
    # Choose the nodes to begin at: nodes of the item, or first nodes
    less, unequal = heads[1] >> 32, heads[1] & pb.PAGE_MASK
    begins, ends = heads[2] >> 32, heads[2] & pb.PAGE_MASK
    equal, greater = np.int64(0), np.int64(0)
    begun, ended = np.int64(0), np.int64(0)
    if place >= 0:
        pointer = base + pb.LEAF_POINTERS + pb.LISTS * place
        if mem[pointer + pb.EQUAL] & pb.IN_LIST and key_at(mem, base + pb.HEAD + 2 * place) == key:
            equal = np.int64(mem[pointer + pb.EQUAL]) & pb.PAGE_MASK or heads[0] >> 32
        greater = np.int64(mem[pointer + pb.GREATER]) & pb.PAGE_MASK or heads[0] & pb.PAGE_MASK
        less = np.int64(mem[pointer + pb.LESS]) & pb.PAGE_MASK or less
        unequal = np.int64(mem[pointer + pb.UNEQUAL]) & pb.PAGE_MASK or unequal
        begins = begun = np.int64(mem[pointer + pb.LOW_END]) & pb.PAGE_MASK or begins
        ends = ended = np.int64(mem[pointer + pb.HIGH_END]) & pb.PAGE_MASK or ends
    # Append the walks, with the shorter way to count ranges
    n = add_task(task, n, pb.EQ, equal, key)
    n = add_task(task, n, pb.GT, greater, key)
    n = add_task(task, n, pb.LT_START, less, key)
    n = add_task(task, n, pb.NE_START, unequal, key)
    if half == 0:
        n = add_task(task, n, pb.BEGUN, begun, key)
        return add_task(task, n, pb.ENDED, ended, key)
    n = add_task(task, n, pb.BEGINS, begins, key)
    return add_task(task, n, pb.ENDS, ends, key)


@device
def add_task(task, n, stage, page, key):
    if page == 0:
        return n
    return put_task(task, n, stage, page, np.int64(0), key, (np.int64(0), np.int64(0), np.int64(0)))


@device
def put_task(task, n, stage, page, more, key, heads):
    task[n, 0], task[n, 1], task[n, 2], task[n, 3] = stage, page, more, key
    task[n, 4], task[n, 5], task[n, 6] = heads
    return n + 1


@device
def enter_tree(mem, entry):
    """Reads the next page of a task from the entry of its tree.

    Returns the stage, the page, the place of a block in it (-1 without), and the first nodes of
    lists.
    """
    first, size = entry + pb.HEADS, np.int64(mem[entry + pb.TREE_SIZE])
    heads = (
        np.int64(mem[first + pb.EQUAL]) << 32 | np.int64(mem[first + pb.GREATER]),
        np.int64(mem[first + pb.LESS]) << 32 | np.int64(mem[first + pb.UNEQUAL]),
        np.int64(mem[first + pb.LOW_END]) << 32 | np.int64(mem[first + pb.HIGH_END]),
    )
    page = np.int64(mem[entry + pb.TREE_ROOT])
    if size & pb.IN_BLOCK:
        return pb.BLOCK_MISSES, page, size ^ pb.IN_BLOCK, heads
    return pb.DOWN, page, np.int64(-1), heads


@device
def go_on(mem, base, stage, key, task, n):
    """Returns the next step of a walk along a list behind a node: stage, next page, number of
    tasks.
    """
    continues = mem[base + pb.CONTINUES] != 0 and first_key(mem, base) == key
    before, behind = np.int64(mem[base + pb.PREV]), np.int64(mem[base + pb.NEXT])
    if stage == pb.GT or stage == pb.NE_BACK or stage == pb.BEGUN or stage == pb.ENDED:
        return stage, before, n
    if stage == pb.EQ or stage == pb.LT_BACK:
        return stage, before if continues else np.int64(0), n
    if continues and (stage == pb.LT_START or stage == pb.ENDS):
        n = add_task(task, n, pb.LT_BACK, before, key)
    if stage == pb.NE_START:
        return pb.NE, behind, add_task(task, n, pb.NE_BACK, before, key)
    if stage == pb.NE or stage == pb.BEGINS:
        return stage, behind, n
    return pb.LT, behind, n


@device
def advance(mem, frame, used, task, n, left, spans, done, wanted, finished, counters):
    """Advances all tasks as far as their pages are in memory.

    Missed ranges are counted before met predicates.

    Returns the number of tasks left, the number of pages in ``wanted``, and the number of complete
    slots.
    """
    waiting = np.int64(0)
    # Count missed ranges in the first pass, met predicates in the second
    for hits in range(2):
        kept = np.int64(0)
        i = np.int64(0)
        while i < n:
            stage, page, more, key = task[i, 0], task[i, 1], task[i, 2], task[i, 3]
            heads = (task[i, 4], task[i, 5], task[i, 6])
            i += 1
            while page != 0:
                # Keep a task that has to wait for its page, or for the second pass
                where = np.int64(frame[page])
                is_late = hits == 0 and stage >= pb.IS_HIT
                if where < 0 or is_late:
                    kept = put_task(task, kept, stage, page, more, key, heads)
                    if not is_late:
                        wanted[waiting] = page
                        waiting += 1
                    break
                used[where] = 1
                base = where * pb.WORDS
                counters[NODES] += 1
                # Go through the table to the entry of the tree
                if stage == pb.TOP:
                    stage, page = pb.MIDDLE, np.int64(mem[base + pb.HEAD + more // pb.TREES // pb.CHILDREN])
                elif stage == pb.MIDDLE:
                    stage, page = pb.ENTRY, np.int64(mem[base + pb.HEAD + more // pb.TREES % pb.CHILDREN])
                elif stage == pb.ENTRY:
                    stage, page, more, heads = enter_tree(mem, base + pb.HEAD + pb.TREE_WORDS * (more % pb.TREES))
                elif stage == pb.DOWN:
                    # Go down the tree, then begin the walks
                    items = np.int64(mem[base + pb.ITEMS])
                    if mem[base + pb.KIND] != pb.LEAF:
                        child = child_of(mem, base, key)
                        more = np.int64(2 * child > items) if more < 0 else more
                        page = np.int64(mem[base + pb.HEAD + child])
                        continue
                    place = last_item(mem, base, key)
                    more = np.int64(2 * place >= items) if more < 0 else more
                    if place < 0 and mem[base + pb.PREV] != 0:
                        page = np.int64(mem[base + pb.PREV])
                        continue
                    n = begin_walks(mem, base, place, key, more, heads, task, n)
                    page = np.int64(0)
                elif stage == pb.BLOCK_MISSES or stage == pb.BLOCK_HITS:
                    # Count in a small tree
                    finished, met = visit_block(mem, base, more, stage, key, left, spans, done, finished)
                    counters[PREDICATES] += met
                    stage, page = (pb.BLOCK_HITS, page) if stage == pb.BLOCK_MISSES else (stage, np.int64(0))
                else:
                    # Count in a node of a list
                    a, b, c, d = find_met_slots(mem, base, stage, key)
                    first = base + pb.HEAD
                    note_span(spans, first + a, first + b)
                    note_span(spans, first + c, first + d)
                    if stage < pb.IS_HIT:
                        miss_slots(mem, first + a, first + b, left)
                    else:
                        finished = count_slots(mem, first + a, first + b, left, done, finished)
                        finished = count_slots(mem, first + c, first + d, left, done, finished)
                    counters[PREDICATES] += b - a + d - c
                    stage, page, n = go_on(mem, base, stage, key, task, n)
        n = kept
        if waiting > 0:
            break
    return n, waiting, finished


@device
def begin_row(attr, key, begin, end, top, task):
    """Makes the tasks of a row: one for each value, and one for conjunctions to verify always."""
    n = add_task(task, np.int64(0), pb.TOP, top, np.int64(0))
    task[0, 2] = pb.ALWAYS
    for e in range(begin, end):
        n = add_task(task, n, pb.TOP, top, np.int64(key[e]))
        task[n - 1, 2] = pb.OWN_TREES + np.int64(attr[e])
    return n


@kernel
def search_rows(
    cache: Written[tuple[U32, I32, U8]],
    top: int,
    needed: U8,
    rows: tuple[I64, I64, I64],
    state: Written[I64],
    scratch: Written[SearchScratch],
    out: Written[Table[I64]],
    counters: Written[I64],
) -> None:
    """Searches and counts for rows of a batch, until a page is missing or ``out`` is full.

    Parameters
    ----------
    cache : its memory; page -> its frame, or -1; (frames) 1 for each frame that was read
    needed (slots) : count that each slot needs, and VERIFY
    rows : first, attr, key, as ``layout.Rows`` with keys instead of codes
    scratch : (tasks, TASK); counts still needed; spans of counted slots; complete slots; pages
        wanted
    state : next row; row to stop at; tasks of the row, -1 if it is not begun; complete slots. Then
        pairs in ``out``; pages in ``wanted``; 1 if ``scratch`` knows the slots counted for the last
        row
    out : (pairs, 2) row and slot
    """
    mem, frame, used = cache
    first, attr, key = rows
    task, left, spans, done, wanted_pages = scratch
    row = state[0]
    while row < state[1]:
        # Begin the row
        if state[2] < 0:
            begin_count(mem, needed, left, spans, state[6] > 0, counters)
            state[6] = 1
            state[2] = begin_row(attr, key, first[row], first[row + 1], top, task)
            state[3] = 0
        # Advance its tasks, and return if a page is missing
        state[2], state[5], state[3] = advance(
            mem, frame, used, task, state[2], left, spans, done, wanted_pages, state[3], counters
        )
        if state[5] > 0:
            state[6] = 0  # pages will move
            return
        # Write its complete slots, or return if there is no room
        if state[4] + state[3] > len(out):
            return
        for i in range(state[3]):
            out[state[4], 0], out[state[4], 1] = row, done[i]
            state[4] += 1
        counters[CANDIDATES] += state[3]
        state[2] = -1
        row += 1
        state[0] = row


@kernel
def match(
    index: PbtreeIndex,
    preds: Predicates,
    rows: Written[Rows],
    start: int,
    stop: int,
    scratch: Written[PbtreeScratch],
    sink: Written[Sink],
    counters: Written[I64],
) -> int:
    """Matches rows ``start:stop``.

    Returns the first unfinished row: ``stop``, unless the sink became full.

    Counters: CANDIDATES, complete slots; CONJUNCTIONS, slots that were reset; PREDICATES, slots
    read in lists, and predicates evaluated in verification; NODES, pages visited.
    """
    first, attr, code, needed = rows.first, rows.attr, rows.code, index.needed
    left, done, task, spans = scratch.left, scratch.done, scratch.task, scratch.spans
    is_known = False
    for row in range(start, stop):
        if is_decided(sink, row):
            continue
        fill = sink.state[FILL]
        # Count predicates per slot
        begin_count(index.page, needed, left, spans, is_known, counters)
        is_known = True
        n = begin_row(attr, code, first[row], first[row + 1], index.state[0], task)
        _, _, finished = advance(
            index.page, index.frame, scratch.used, task, n, left, spans, done, scratch.wanted, np.int64(0), counters
        )
        counters[CANDIDATES] += finished
        # Verify complete slots if needed, and emit the matches
        event = Event(attr, code, first[row], first[row + 1], scratch.table)
        entered, fits = False, True
        for i in range(finished):
            c = np.int64(done[i])
            if needed[c] & pb.VERIFY:
                if not entered:
                    spread(rows, row, scratch.multi, scratch.table)
                    entered = True
                holds, steps = conjunction_holds(conditions_of(preds), c, event)
                counters[PREDICATES] += steps
                if not holds:
                    continue
            if not emit(sink, row, np.int64(preds.owner[c]), counters):
                fits = False
                break
        if entered:
            clear(event)
        if not fits and stops(sink, fill, counters):
            return row
    return stop
