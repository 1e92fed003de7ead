"""PB+tree: phase 2 of matching counts, for each slot, the predicates still to be met.

Source: the PB+tree paper leaves phase 2 open; this is the counting of the OpIndex paper ("An
Efficient Publish/Subscribe Index for E-Commerce Databases", section 4).

Resetting all slots took 8 of the 9 us of an event, with 300,000 subscriptions of an equality each.
Resetting only the counted slots takes 0.5 us. If a page has to be read in between, the noted places
are no longer valid, and all slots are reset.
"""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.kinds.pbtree.arrays import VERIFY
from colmatch.kernels.layout import CONJUNCTIONS

FEW_SLOTS = 16  # if more than one slot in so many was counted, all are reset


@device
def count_slots(mem, begin, end, left, done, n):
    """Counts one for each slot in the words ``begin:end``, and appends complete slots to ``done``.

    Returns the number of complete slots. ``done`` has room for one more than all slots: each slot
    is complete once.
    """
    one = np.uint64(1)
    full = np.uint64(n)
    for i in range(np.uint64(begin), np.uint64(end)):  # without a branch, since no processor could predict it
        slot = np.uint64(mem[i])
        before = np.uint64(left[slot])
        left[slot] = before - min(before, one)
        done[full] = slot
        full += np.uint64(before == one)
    return np.int64(full)


@device
def miss_slots(mem, begin, end, left):
    """Makes each slot in the words ``begin:end`` need one count more."""
    for i in range(np.uint64(begin), np.uint64(end)):
        left[np.uint64(mem[i])] += np.uint8(1)


@device
def note_span(spans, begin, end):
    """Remembers that the slots in the words ``begin:end`` were counted."""
    if begin == end:
        return
    spans[0, 0] += 1
    spans[0, 1] += end - begin
    if spans[0, 0] < len(spans):
        spans[spans[0, 0], 0], spans[spans[0, 0], 1] = begin, end


@device
def begin_count(mem, needed, left, spans, is_known, counters):
    """Resets the slots for the next row to the counts that they need.

    If few slots were counted for the last row, only these are written.

    is_known : ``spans`` describes the last row, and its pages have not moved
    """
    count, slots = spans[0, 0], spans[0, 1]
    spans[0, 0], spans[0, 1] = 0, 0
    if not is_known or count >= len(spans) or slots > len(needed) // FEW_SLOTS:
        for slot in range(len(needed)):
            left[slot] = needed[slot] & (VERIFY - 1)
        counters[CONJUNCTIONS] += len(needed)
        return
    for j in range(1, count + 1):
        for i in range(np.uint64(spans[j, 0]), np.uint64(spans[j, 1])):
            counted = np.uint64(mem[i])
            left[counted] = needed[counted] & np.uint8(VERIFY - 1)
    counters[CONJUNCTIONS] += slots
