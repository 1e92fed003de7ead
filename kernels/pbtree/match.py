"""PB+tree matches a batch: searches as in document 004, section 4.4, then counts.

Each value of an event is a task: it goes down its tree, then becomes a walk along each of the four
lists. A task holds one page at a time and the number of its next, so it can stop wherever a page
is not in memory, and go on when somebody has brought it.
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import CANDIDATES, CONJUNCTIONS, NODES, PREDICATES
from colmatch.kernels.pbtree.arrays import (
    ALWAYS,
    CHILDREN,
    CONTINUES,
    DOWN,
    ENTRY,
    EQ,
    EQUAL,
    GREATER,
    GT,
    HEAD,
    HEADS,
    IN_LIST,
    ITEMS,
    KIND,
    LEAF,
    LEAF_POINTERS,
    LESS,
    LISTS,
    LT,
    LT_BACK,
    LT_START,
    MIDDLE,
    NE,
    NE_BACK,
    NE_START,
    NEXT,
    OWN_TREES,
    PAGE_MASK,
    PREV,
    SIDS,
    TOP,
    TREE_WORDS,
    TREES,
    UNEQUAL,
    VERIFY,
    WORDS,
)
from colmatch.kernels.pbtree.pages import begin_of, child_of, first_key, item_at, items_below, key_at, last_item
from colmatch.kernels.predicates import clear, conjunction_holds, spread
from colmatch.kernels.sink import FILL, emit, is_decided, stops


@device
def count_slots(mem, begin, end, left, done, n):
    """Count one for each slot in the words ``begin:end``; those that are complete into ``done``."""
    one = np.uint64(1)
    i, stop = np.uint64(begin), np.uint64(end)
    full = np.uint64(n)
    while i < stop:
        slot = np.uint64(mem[i])
        before = left[slot]
        left[slot] = before - (before != 0)
        done[full] = slot
        full += np.uint64(before == 1)
        if full == np.uint64(len(done)):  # all slots are complete
            return np.int64(full)
        i += one
    return np.int64(full)


@device
def count_node(mem, base, stage, key, left, done, n):
    """Count what an event's key meets in a node of a list. Returns how many slots are complete."""
    first = base + HEAD
    size = np.int64(mem[base + SIDS])
    j = items_below(mem, base, key)
    begin = begin_of(mem, base, j)
    is_there = j < np.int64(mem[base + ITEMS]) and key_at(mem, item_at(base, j)) == key
    end = np.int64(mem[item_at(base, j) + 2]) if is_there else begin
    if stage == EQ or stage == LT_BACK:
        return count_slots(mem, first + begin, first + end, left, done, n), end - begin
    if stage == GT:
        return count_slots(mem, first, first + end, left, done, n), end
    if stage == LT_START or stage == LT:
        return count_slots(mem, first + begin, first + size, left, done, n), size - begin
    n = count_slots(mem, first, first + begin, left, done, n)
    return count_slots(mem, first + end, first + size, left, done, n), size - end + begin


@device
def begin_walks(mem, base, place, key, heads, task, n):
    """Append a walk along each list from an item of a leaf, -1 for none. Returns how many tasks."""
    less, unequal = heads >> 32, heads & PAGE_MASK
    if place >= 0:
        pointer = base + LEAF_POINTERS + LISTS * place
        if mem[pointer + EQUAL] & IN_LIST and key_at(mem, base + HEAD + 2 * place) == key:
            n = add_task(task, n, EQ, np.int64(mem[pointer + EQUAL]) & PAGE_MASK, key)
        n = add_task(task, n, GT, np.int64(mem[pointer + GREATER]) & PAGE_MASK, key)
        less_from = np.int64(mem[pointer + LESS]) & PAGE_MASK
        unequal_from = np.int64(mem[pointer + UNEQUAL]) & PAGE_MASK
        less, unequal = less_from if less_from else less, unequal_from if unequal_from else unequal
    n = add_task(task, n, LT_START, less, key)
    return add_task(task, n, NE_START, unequal, key)


@device
def add_task(task, n, stage, page, key):
    if page == 0:
        return n
    task[n, 0], task[n, 1], task[n, 2], task[n, 3] = stage, page, 0, key
    return n + 1


@device
def go_on(mem, base, stage, page, key, task, n):
    """Say what a walk along a list does behind a node: stage, next page, how many tasks."""
    continues = mem[base + CONTINUES] != 0 and first_key(mem, base) == key
    before, behind = np.int64(mem[base + PREV]), np.int64(mem[base + NEXT])
    if stage == GT or stage == NE_BACK:
        return stage, before, n
    if stage == EQ or stage == LT_BACK:
        return stage, before if continues else np.int64(0), n
    if stage == LT_START and continues:
        n = add_task(task, n, LT_BACK, before, key)
    if stage == NE_START:
        n = add_task(task, n, NE_BACK, before, key)
    if stage == LT_START or stage == LT:
        return LT, behind, n
    return NE, behind, n


@device
def advance(mem, frame, used, task, n, left, done, wanted, finished, counters):
    """Take all tasks as far as pages are there.

    Returns how many tasks are left, each of which waits for a page in ``wanted``, and how many
    slots are complete.
    """
    kept = np.int64(0)
    i = np.int64(0)
    while i < n:
        stage, page, more, key = task[i, 0], task[i, 1], task[i, 2], task[i, 3]
        i += 1
        while page != 0:
            where = np.int64(frame[page])
            if where < 0:
                task[kept, 0], task[kept, 1], task[kept, 2], task[kept, 3] = stage, page, more, key
                wanted[kept] = page
                kept += 1
                break
            used[where] = 1
            base = where * WORDS
            counters[NODES] += 1
            if stage == TOP:
                stage, page = MIDDLE, np.int64(mem[base + HEAD + more // TREES // CHILDREN])
            elif stage == MIDDLE:
                stage, page = ENTRY, np.int64(mem[base + HEAD + more // TREES % CHILDREN])
            elif stage == ENTRY:
                entry = base + HEAD + TREE_WORDS * (more % TREES)
                heads = entry + HEADS
                more = np.int64(mem[heads + LESS]) << 32 | np.int64(mem[heads + UNEQUAL])
                stage, page = DOWN, np.int64(mem[entry])
            elif stage == DOWN:
                if mem[base + KIND] != LEAF:
                    page = np.int64(mem[base + HEAD + child_of(mem, base, key)])
                    continue
                place = last_item(mem, base, key)
                if place < 0 and mem[base + PREV] != 0:
                    page = np.int64(mem[base + PREV])
                    continue
                n = begin_walks(mem, base, place, key, more, task, n)
                page = np.int64(0)
            else:
                finished, read = count_node(mem, base, stage, key, left, done, finished)
                counters[PREDICATES] += read
                stage, page, n = go_on(mem, base, stage, page, key, task, n)
    return kept, finished


@device
def begin_row(attr, key, begin, end, top, task):
    """Make the tasks of a row: one for each value, and one for what is always verified."""
    task[0, 0], task[0, 1], task[0, 2], task[0, 3] = TOP, top, ALWAYS, 0
    n = np.int64(1)
    for e in range(begin, end):
        task[n, 0], task[n, 1], task[n, 2], task[n, 3] = TOP, top, OWN_TREES + np.int64(attr[e]), np.int64(key[e])
        n += 1
    return n


@kernel
def search_rows(cache, top, needed, rows, state, scratch, out, counters):
    """Search and count for rows of a batch, until a page is missing or ``out`` is full.

    Parameters
    ----------
    cache : its memory; page -> its frame, or -1; (frames) 1 for what was read
    needed (slots) : what each has to count, and VERIFY
    rows : first, attr, key, as ``layout.Rows`` with keys for codes
    scratch : (tasks, 4); slots that are left; slots that are complete; pages that are wanted
    state : row to go on with, the row to stop at, its tasks (-1 for a row not begun), slots
        complete, pairs in ``out``, pages in ``wanted``
    out : (pairs, 2) row and slot
    """
    mem, frame, used = cache
    first, attr, key = rows
    task, left, done, wanted = scratch
    row = state[0]
    while row < state[1]:
        if state[2] < 0:
            for slot in range(len(needed)):
                left[slot] = needed[slot] & (VERIFY - 1)
            state[2] = begin_row(attr, key, first[row], first[row + 1], top, task)
            state[3] = 0
        state[2], state[3] = advance(mem, frame, used, task, state[2], left, done, wanted, state[3], counters)
        state[5] = state[2]
        if state[2] > 0:
            return
        if state[4] + state[3] > len(out):
            return
        for i in range(state[3]):
            out[state[4], 0], out[state[4], 1] = row, done[i]
            state[4] += 1
        counters[CANDIDATES] += state[3]
        counters[CONJUNCTIONS] += len(left)
        state[2] = -1
        row += 1
        state[0] = row


@kernel
def match(index, preds, rows, start, stop, scratch, sink, counters):
    """Match rows ``start:stop``.

    Returns the first row not finished: ``stop``, unless the sink became full.

    Counters: CANDIDATES, slots that have counted all; PREDICATES, numbers of slots that were read,
    and predicates evaluated to verify; NODES, pages visited.
    """
    first, attr, code, needed = rows.first, rows.attr, rows.code, index.needed
    left, done, task = scratch.left, scratch.done, scratch.task
    for row in range(start, stop):
        if is_decided(sink, row):
            continue
        fill = sink.state[FILL]
        for slot in range(len(needed)):
            left[slot] = needed[slot] & (VERIFY - 1)
        n = begin_row(attr, code, first[row], first[row + 1], index.state[0], task)
        _, finished = advance(
            index.page, index.frame, scratch.used, task, n, left, done, scratch.wanted, np.int64(0), counters
        )
        counters[CANDIDATES] += finished
        counters[CONJUNCTIONS] += len(needed)
        entered, fits = False, True
        for i in range(finished):
            c = np.int64(done[i])
            if needed[c] & VERIFY:
                if not entered:
                    spread(first, attr, code, row, scratch.multi, scratch.table)
                    entered = True
                holds, steps = conjunction_holds(
                    preds.pred, preds.run_lo, preds.run_hi, preds.first, preds.jump_first, preds.jump, c,
                    attr, code, first[row], first[row + 1], scratch.table,
                )  # fmt: skip
                counters[PREDICATES] += steps
                if not holds:
                    continue
            if not emit(sink, row, np.int64(preds.owner[c]), counters):
                fits = False
                break
        if entered:
            clear(first, attr, row, scratch.table)
        if not fits and stops(sink, fill, counters):
            return row
    return stop
