"""PB+tree: what of a conjunction is counted, and where in the lists it stands.

Keys are whole numbers, so ``> 5`` is ``>= 6``: each predicate stands in one list, where the
document puts ``>=`` and ``<=`` into the leaf as well. A range with two ends is two predicates in
lists of their own, IN several keys on one slot, of which an event meets one, NOT IN as many ``<>``.
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import ATTR_MASK, FLAG_MULTI, FLAG_NONE, FLAG_RUN, KEY_MAX, KEY_MIN, REJECT
from colmatch.kernels.pbtree import arrays as pb

UNEQUAL_MOST = 8  # keys of a NOT IN that are counted; of more, it is verified


@kernel
def key_intervals(first, bound, is_code, pred, run_lo, run_hi, low, high, runs_low, runs_high):
    """Write the closed intervals of predicates as keys: (P) and (R) int64.

    is_code : codes stand for keys; what has no end is KEY_MIN and KEY_MAX all the same
    """
    for p in range(len(pred)):
        a = np.int64(pred[p, 0] & ATTR_MASK)
        if pred[p, 0] & FLAG_RUN:
            low[p], high[p] = np.int64(pred[p, 1]), np.int64(pred[p, 2])
            for r in range(low[p], high[p]):
                runs_low[r], runs_high[r] = interval(first, bound, is_code, a, run_lo[r], run_hi[r])
        else:
            low[p], high[p] = interval(first, bound, is_code, a, pred[p, 1], pred[p, 2])


@device
def interval(first, bound, is_code, a, lowest, highest):
    lo, hi = np.int64(lowest), np.int64(highest)
    if lo > hi:
        return np.int64(0), np.int64(-1)
    begin, top = first[a], first[a + 1] - first[a] + 1
    least = KEY_MIN if lo <= 1 else (lo if is_code else bound[begin + lo - 2])
    most = KEY_MAX if hi >= top else (hi if is_code else bound[begin + hi - 1] - 1)
    return np.int64(least), np.int64(most)


@device
def enter(out_tree, out_key, out_slot, n, tree, which, key, slot):
    if len(out_tree) > 0:
        out_tree[n], out_key[n], out_slot[n] = tree * pb.LISTS + which, key, slot
    return n + 1


@device
def enter_range(out_tree, out_key, out_slot, n, tree, lo, hi, slot):
    """Enter an interval. Returns how many entries there are, and how many of them a value meets."""
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
    """Say of intervals whether they are points (1), all but points (2), or others (0)."""
    points, gaps = True, runs_low[begin] == KEY_MIN and runs_high[end - 1] == KEY_MAX
    for r in range(begin, end):
        points = points and runs_low[r] == runs_high[r]
        if r > begin:
            gaps = gaps and runs_low[r] - runs_high[r - 1] == 2
    if points:
        return 1
    return 2 if gaps and end - begin - 1 <= UNEQUAL_MOST else 0


@device
def enter_predicate(word, lo, hi, runs_low, runs_high, out_tree, out_key, out_slot, n, slot):
    """Enter a predicate. Returns entries, what a value meets of them, and whether that says all."""
    tree = pb.OWN_TREES + np.int64(word & ATTR_MASK)
    if not word & FLAG_RUN:
        n, met = enter_range(out_tree, out_key, out_slot, n, tree, lo, hi, slot)
        return n, met, True
    shape = shape_of(runs_low, runs_high, lo, hi)
    if shape == 1:
        for r in range(lo, hi):
            n = enter(out_tree, out_key, out_slot, n, tree, pb.EQUAL, runs_low[r], slot)
        return n, 1, True
    if shape == 2:
        for r in range(lo + 1, hi):
            n = enter(out_tree, out_key, out_slot, n, tree, pb.UNEQUAL, runs_low[r] - 1, slot)
        return n, hi - lo - 1, True
    n, met = enter_range(out_tree, out_key, out_slot, n, tree, runs_low[lo], runs_high[hi - 1], slot)
    return n, met, False


@device
def enter_any(word, lo, hi, runs_low, runs_high, out_tree, out_key, out_slot, n, slot):
    """Enter a predicate on an attribute with several values: one entry that any of them meets."""
    tree = pb.OWN_TREES + np.int64(word & ATTR_MASK)
    if word & FLAG_RUN:
        if shape_of(runs_low, runs_high, lo, hi) == 1:
            for r in range(lo, hi):
                n = enter(out_tree, out_key, out_slot, n, tree, pb.EQUAL, runs_low[r], slot)
            return n
        lo, hi = runs_low[lo], runs_high[hi - 1]
    if lo == hi:
        return enter(out_tree, out_key, out_slot, n, tree, pb.EQUAL, lo, slot)
    if lo == KEY_MIN and hi != KEY_MAX:
        return enter(out_tree, out_key, out_slot, n, tree, pb.LESS, hi, slot)
    return enter(out_tree, out_key, out_slot, n, tree, pb.GREATER, lo, slot)


@kernel
def plan_conjunctions(first, pred, jump_first, jump, low, high, runs_low, runs_high, slot_of, needed, entries):
    """Enter conjunctions into the lists. Returns how many entries that are.

    low, high, runs_low, runs_high : of ``key_intervals``
    slot_of (C) : slot of each conjunction
    needed (C) : written, what each has to count, and VERIFY
    entries : tree and list, key, slot of each entry, to be written; arrays of no length where they
        are counted only
    """
    out_tree, out_key, out_slot = entries
    n = np.int64(0)
    for c in range(len(slot_of)):
        slot = slot_of[c]
        program = np.int64(-1)
        if len(jump_first) > 0:
            program = jump_first[c]
        verify, impossible = np.int64(program >= 0), np.int64(0)
        count, fallback = np.int64(0), np.int64(-1)
        for p in range(first[c], first[c + 1]):
            if program >= 0 and jump[program + p - first[c], 1] != REJECT:
                break
            word = pred[p, 0]
            if word & (FLAG_NONE | FLAG_MULTI):
                verify = np.int64(1)
                if not word & FLAG_NONE and fallback < 0:
                    fallback = np.int64(p)
            elif low[p] > high[p] or (word & FLAG_RUN and low[p] == high[p]):
                impossible = verify = np.int64(1)
            elif count + 2 + UNEQUAL_MOST > pb.MOST_NEEDED:
                verify = np.int64(1)
            else:
                n, met, whole = enter_predicate(
                    word, low[p], high[p], runs_low, runs_high, out_tree, out_key, out_slot, n, slot
                )
                count += met
                verify |= np.int64(not whole)
            if program >= 0 and jump[program + p - first[c], 0] != p + 1 - first[c]:
                break
        if count == 0 and not impossible:
            count = np.int64(1)
            if fallback >= 0 and not (pred[fallback, 0] & FLAG_RUN and low[fallback] == high[fallback]):
                n = enter_any(
                    pred[fallback, 0], low[fallback], high[fallback], runs_low, runs_high,
                    out_tree, out_key, out_slot, n, slot,
                )  # fmt: skip
            else:
                n = enter(out_tree, out_key, out_slot, n, pb.ALWAYS, pb.EQUAL, 0, slot)
        needed[c] = count | (pb.VERIFY if verify else 0)
    return n
