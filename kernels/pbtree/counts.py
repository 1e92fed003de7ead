"""PB+tree: phase 2 counts what of each slot is still to be met (document 002)."""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.layout import CONJUNCTIONS
from colmatch.kernels.pbtree.arrays import VERIFY

FEW = 16  # all slots are made ready at once where more than one of so many was counted


@device
def count_slots(mem, begin, end, left, done, n):
    """Count one for each slot in the words ``begin:end``; those that are complete into ``done``.

    ``done`` has room for one more than all slots, each of which is complete once.
    """
    one = np.uint64(1)
    full = np.uint64(n)
    for i in range(np.uint64(begin), np.uint64(end)):  # without a branch: it could not be foretold
        slot = np.uint64(mem[i])
        before = np.uint64(left[slot])
        left[slot] = before - min(before, one)
        done[full] = slot
        full += np.uint64(before == one)
    return np.int64(full)


@device
def miss_slots(mem, begin, end, left):
    """Count one more to be counted for each slot in the words ``begin:end``."""
    for i in range(np.uint64(begin), np.uint64(end)):
        left[np.uint64(mem[i])] += np.uint8(1)


@device
def note_span(spans, begin, end):
    """Remember that the slots in the words ``begin:end`` were counted."""
    if begin == end:
        return
    spans[0, 0] += 1
    spans[0, 1] += end - begin
    if spans[0, 0] < len(spans):
        spans[spans[0, 0], 0], spans[spans[0, 0], 1] = begin, end


@device
def begin_count(mem, needed, left, spans, is_known, counters):
    """Give each slot what it needs, behind a row: those that were counted, if these are few.

    is_known : ``spans`` are those of the row before, whose pages are where they were
    """
    count, slots = spans[0, 0], spans[0, 1]
    spans[0, 0], spans[0, 1] = 0, 0
    if not is_known or count >= len(spans) or slots > len(needed) // FEW:
        for slot in range(len(needed)):
            left[slot] = needed[slot] & (VERIFY - 1)
        counters[CONJUNCTIONS] += len(needed)
        return
    for j in range(1, count + 1):
        for i in range(np.uint64(spans[j, 0]), np.uint64(spans[j, 1])):
            counted = np.uint64(mem[i])
            left[counted] = needed[counted] & np.uint8(VERIFY - 1)
    counters[CONJUNCTIONS] += slots
