"""A check that predicates lead kernels to no place outside their arrays.

A file from elsewhere may have correct checksums. Kernels do not check the numbers that they index
by, so all of these are checked once, when a file is opened.
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import ACCEPT, ATTR_MASK, FLAG_MULTI, FLAG_RUN, I64, REJECT, U8, Predicates

# Results of a check: nothing is wrong, or this part of the predicates is.
SOUND, RANGES, OWNERS, ATTRIBUTES, CODES, RUNS, PROGRAMS, TREES = range(8)


@kernel
def fault_of_ranges(first: I64, end: int) -> int:
    """Returns 0 for ranges that follow one another from 0 to ``end``, else 1."""
    if len(first) == 0 or first[0] != 0 or first[len(first) - 1] != end:
        return 1
    for i in range(1, len(first)):
        if first[i] < first[i - 1]:
            return 1
    return 0


@kernel
def fault_of_order(first: I64, value: I64, least: int, most: int) -> int:
    """Returns 0 for numbers that ascend within each range, from ``least`` to ``most``, else 1."""
    for a in range(len(first) - 1):
        for i in range(first[a], first[a + 1]):
            if value[i] < least or value[i] > most or (i > first[a] and value[i] <= value[i - 1]):
                return 1
    return 0


@kernel
def fault_of_predicates(preds: Predicates, top: I64, multi: U8, size: int) -> int:
    """Returns the faulty part of the predicates of ``size`` subscriptions, or ``SOUND``.

    The caller has checked the lengths of arrays, except lengths that ranges give.

    top : (A) int64, highest code of each attribute
    multi : (A) uint8, 1 where an attribute may have several values
    """
    first, pred, run_lo, run_hi, owner = preds.first, preds.pred, preds.run_lo, preds.run_hi, preds.owner
    jump_first, tree_first = preds.jump_first, preds.tree_first
    runs = np.int64(0)  # intervals of predicates: no two share one, so their sum is at most ``len(run_lo)``
    for c in range(len(owner)):
        if np.int64(owner[c]) >= size:
            return OWNERS
        for p in range(first[c], first[c + 1]):
            # Check attribute and codes of each predicate
            word, low, high = np.int64(pred[p, 0]), np.int64(pred[p, 1]), np.int64(pred[p, 2])
            a = word & ATTR_MASK
            if a >= len(multi) or (word & FLAG_MULTI != 0) != (multi[a] != 0):
                return ATTRIBUTES
            if word & FLAG_RUN:
                runs += high - low
                if low >= high or high > len(run_lo) or runs > len(run_lo):
                    return RUNS
                for j in range(low, high):
                    if run_lo[j] < 1 or run_lo[j] > run_hi[j] or np.int64(run_hi[j]) > top[a]:
                        return CODES
                    if j > low and run_lo[j] <= run_hi[j - 1]:
                        return CODES
            elif low < 1 or low > top[a] or high > top[a]:
                return CODES
        # Check the program and its tree
        if len(jump_first) > 0 and jump_first[c] >= 0:
            count = first[c + 1] - first[c]
            if not _leads_on(preds.jump, jump_first[c], count):
                return PROGRAMS
            if not _is_tree(preds.tree, tree_first[c], tree_first[c + 1], count):
                return TREES
    return SOUND


@device
def _leads_on(jump, begin, count):
    """Returns whether each jump of a program leads forward within it, or ends it."""
    if count == 0 or begin > len(jump) - count:
        return False
    for p in range(count):
        for side in range(2):
            to = np.int64(jump[begin + p, side])
            if not (p < to < count or to == ACCEPT or to == REJECT):
                return False
    return True


@device
def _is_tree(tree, begin, end, count):
    """Returns whether tokens are one postfix expression over ``count`` predicates."""
    height = np.int64(0)
    for t in range(begin, end):
        token = np.int64(tree[t])
        if token >= 0:
            if token >= count:
                return False
            height += 1
            continue
        parts = -token >> 1
        if parts < 1 or parts > height:
            return False
        height -= parts - 1
    return height == 1
