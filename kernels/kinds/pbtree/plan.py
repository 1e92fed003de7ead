"""PB+tree: the predicates of a conjunction that are counted, and their places in the lists.

Keys are whole numbers, so ``> 5`` is ``>= 6``. Each predicate is in one list, while the paper puts
``>=`` and ``<=`` into the leaf as well. A range with two ends is two predicates in separate lists.
An IN has several keys on one slot, and an event meets one of them. A NOT IN is as many ``<>``.
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.kinds.pbtree import arrays as pb
from colmatch.kernels.layout import (
    ATTR_MASK,
    FLAG_MULTI,
    FLAG_NONE,
    FLAG_RUN,
    I32,
    I64,
    KEY_MAX,
    KEY_MIN,
    REJECT,
    U8,
    U32,
    Table,
    Written,
)

UNEQUAL_MOST = 8  # keys of a NOT IN that is counted; a longer one is verified


@device
def enter(out_tree, out_key, out_slot, n, tree, which, key, slot):
    if len(out_tree) > 0:
        out_tree[n], out_key[n], out_slot[n] = tree * pb.LISTS + which, key, slot
    return n + 1


@device
def enter_range(out_tree, out_key, out_slot, n, tree, lo, hi, slot):
    """Enters an interval. Returns the number of entries, and the count that a value in it adds."""
    if lo == hi:
        return enter(out_tree, out_key, out_slot, n, tree, pb.EQUAL, lo, slot), 1
    if hi == KEY_MAX:
        return enter(out_tree, out_key, out_slot, n, tree, pb.GREATER, lo, slot), 1
    if lo == KEY_MIN:
        return enter(out_tree, out_key, out_slot, n, tree, pb.LESS, hi, slot), 1
    n = enter(out_tree, out_key, out_slot, n, tree, pb.LOW_END, lo, slot)
    return enter(out_tree, out_key, out_slot, n, tree, pb.HIGH_END, hi, slot), 1


@device
def shape_of(runs_low, runs_high, begin, end):
    """Returns 1 if all intervals are points, 2 if they cover all keys except a few points, else
    0.
    """
    points, gaps = True, runs_low[begin] == KEY_MIN and runs_high[end - 1] == KEY_MAX
    for r in range(begin, end):
        points = points and runs_low[r] == runs_high[r]
        if r > begin:
            gaps = gaps and runs_low[r] - runs_high[r - 1] == 2
    if points:
        return 1
    return 2 if gaps and end - begin - 1 <= UNEQUAL_MOST else 0


@device
def enter_predicate(word, begin, end, low, high, out_tree, out_key, out_slot, n, slot):
    """Enters a predicate. Returns the number of entries, the count that a matching value adds, and
    whether counting decides the predicate.
    """
    tree = pb.OWN_TREES + np.int64(word & ATTR_MASK)
    if not word & FLAG_RUN:
        n, met = enter_range(out_tree, out_key, out_slot, n, tree, low[begin], high[begin], slot)
        return n, met, True
    shape = shape_of(low, high, begin, end)
    if shape == 1:
        for r in range(begin, end):
            n = enter(out_tree, out_key, out_slot, n, tree, pb.EQUAL, low[r], slot)
        return n, 1, True
    if shape == 2:
        for r in range(begin + 1, end):
            n = enter(out_tree, out_key, out_slot, n, tree, pb.UNEQUAL, low[r] - 1, slot)
        return n, end - begin - 1, True
    n, met = enter_range(out_tree, out_key, out_slot, n, tree, low[begin], high[end - 1], slot)
    return n, met, False


@device
def enter_any(word, begin, end, low, high, out_tree, out_key, out_slot, n, slot):
    """Enters a predicate on an attribute with several values: any value may meet an entry."""
    tree = pb.OWN_TREES + np.int64(word & ATTR_MASK)
    if word & FLAG_RUN and shape_of(low, high, begin, end) == 1:
        for r in range(begin, end):
            n = enter(out_tree, out_key, out_slot, n, tree, pb.EQUAL, low[r], slot)
        return n
    lo, hi = low[begin], high[end - 1]
    if lo == hi:
        return enter(out_tree, out_key, out_slot, n, tree, pb.EQUAL, lo, slot)
    if lo == KEY_MIN and hi != KEY_MAX:
        return enter(out_tree, out_key, out_slot, n, tree, pb.LESS, hi, slot)
    return enter(out_tree, out_key, out_slot, n, tree, pb.GREATER, lo, slot)


@kernel
def plan_conjunctions(
    first: I64,
    pred: Table[U32],
    jump_first: I64,
    jump: Table[I32],
    interval: I64,
    low: I64,
    high: I64,
    slot_of: U32,
    needed: Written[U8],
    entries: Written[tuple[I64, I64, U32]],
) -> int:
    """Enters conjunctions into the lists. Returns the number of entries.

    interval (P + 1), low, high : as in ``predicates/keys.py``
    slot_of (C) : slot of each conjunction
    needed (C) : written, the count that each conjunction needs, and VERIFY
    entries : written, tree and list, key, slot of each entry; arrays of length 0 to count entries
        only
    """
    out_tree, out_key, out_slot = entries
    n = np.int64(0)
    for c in range(len(slot_of)):
        # Find its program, if it has one
        slot = slot_of[c]
        program = np.int64(-1)
        if len(jump_first) > 0:
            program = jump_first[c]
        verify, impossible = np.int64(program >= 0), np.int64(0)
        count, fallback = np.int64(0), np.int64(-1)
        # Enter the predicates that must hold, as far as they can be counted
        for p in range(first[c], first[c + 1]):
            if program >= 0 and jump[program + p - first[c], 1] != REJECT:
                break
            word, begin, end = pred[p, 0], interval[p], interval[p + 1]
            if word & (FLAG_NONE | FLAG_MULTI):
                verify = np.int64(1)
                if not word & FLAG_NONE and fallback < 0:
                    fallback = np.int64(p)
            elif begin == end or low[begin] > high[begin]:
                impossible = verify = np.int64(1)
            elif count + 2 + UNEQUAL_MOST > pb.MOST_NEEDED:
                verify = np.int64(1)
            else:
                n, met, whole = enter_predicate(word, begin, end, low, high, out_tree, out_key, out_slot, n, slot)
                count += met
                verify |= np.int64(not whole)
            if program >= 0 and jump[program + p - first[c], 0] != p + 1 - first[c]:
                break
        # Enter another predicate if none is counted, or verify always
        if count == 0 and not impossible:
            count = np.int64(1)
            begin, end = (interval[fallback], interval[fallback + 1]) if fallback >= 0 else (np.int64(0), np.int64(0))
            if begin < end:
                n = enter_any(pred[fallback, 0], begin, end, low, high, out_tree, out_key, out_slot, n, slot)
            else:
                n = enter(out_tree, out_key, out_slot, n, pb.ALWAYS, pb.EQUAL, 0, slot)
        needed[c] = count | (pb.VERIFY if verify else 0)
    return n
