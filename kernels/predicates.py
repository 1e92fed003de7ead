"""Truth of predicates and conjunctions for one event.

The event stands in two forms: its row of ``layout.Rows``, and a *table* (A) uint32 over all
attributes, zero but for those that the row has: the code of a single-valued attribute; for one with
several entries 1 + the place of the first among the row's entries.

Functions of inner loops take arrays, not the NamedTuples that hold them, since a call hands over
seven words for each array. So a kernel also writes the almost universal case, one interval of one
single-valued attribute, in its own loop and calls only for the rest. Verification of a candidate in
SCAN at 1M took 290 ns with NamedTuples, 80 with a call for each predicate, 20 so, when each array
that a function was handed was also counted (``_jit.POLICY``).
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import ACCEPT, ATTR_MASK, CODE_MAX, FLAG_MULTI, FLAG_NONE, FLAG_RUN


@kernel
def count_uses(pred, uses):
    """Counts the predicates (P, 3) of each attribute: ``uses`` (A) int64, zeros on entry."""
    for p in range(len(pred)):
        uses[pred[p, 0] & ATTR_MASK] += 1


@device
def spread(first, attr, code, row, multi, table):
    """Enter a row (``layout.Rows``) into the table."""
    begin = first[row]
    for e in range(first[row + 1] - 1, begin - 1, -1):  # backwards, so that the first of several entries stays
        a = attr[e]
        if multi[a]:
            table[a] = 1 + e - begin
        else:
            table[a] = code[e]


@device
def clear(first, attr, row, table):
    """Take a row out of the table again: only what it had set."""
    for e in range(first[row], first[row + 1]):
        table[attr[e]] = 0


@device
def in_run(lo, hi, begin, end, code):
    """Whether ``code`` lies in one of the ascending intervals ``begin:end``."""
    while begin < end:
        middle = (begin + end) >> 1
        if hi[middle] < code:
            begin = middle + 1
        elif lo[middle] > code:
            end = middle
        else:
            return True
    return False


@device
def flagged_holds(pred, run_lo, run_hi, p, v, attr, code, begin, end):
    """Truth of a predicate with any flags, on an attribute that has ``v`` in the event's table.

    ``attr``, ``code``: the entries of the rows, those of this one are ``begin:end``.
    """
    word = pred[p, 0]
    a = word & ATTR_MASK
    low = np.int64(pred[p, 1])
    high = np.int64(pred[p, 2])
    found = False
    if word & FLAG_MULTI:
        if v != 0:
            e = begin + v - 1
            if word & FLAG_RUN and high - low > 2:
                while e < end and attr[e] == a and not found:
                    found = in_run(run_lo, run_hi, low, high, code[e])
                    e += 1
            else:  # one interval, or two: a search among two took twice as long (asv_benchmarks/calls.py)
                other_low, other_high = low, high
                if word & FLAG_RUN:
                    last = high - 1
                    other_low, other_high = np.int64(run_lo[last]), np.int64(run_hi[last])
                    low, high = np.int64(run_lo[low]), np.int64(run_hi[low])
                while e < end and attr[e] == a and not found:
                    here = np.int64(code[e])
                    if (low <= here and here <= high) or (other_low <= here and here <= other_high):
                        found = True
                    e += 1
    elif v != 0:
        if word & FLAG_RUN:
            found = in_run(run_lo, run_hi, low, high, v)
        else:
            found = low <= v and v <= high
    if word & FLAG_NONE:
        return not found
    return found


@device
def predicate_holds(pred, run_lo, run_hi, p, attr, code, begin, end, table):
    """Truth of any predicate; almost all are plain: one interval of one single-valued attribute."""
    word = pred[p, 0]
    if word <= ATTR_MASK:
        v = table[word]
        return pred[p, 1] <= v and v <= pred[p, 2]
    return flagged_holds(pred, run_lo, run_hi, p, table[word & ATTR_MASK], attr, code, begin, end)


@device
def program_accepts(pred, run_lo, run_hi, jump, at_jump, first, attr, code, begin, end, table):
    """Follow a program's jumps to the verdict. Returns it and the number of predicates evaluated.

    Jumps lead forward only, so this ends after as many steps as the program has predicates.
    """
    at = np.int64(0)
    steps = 0
    while at >= 0:
        steps += 1
        side = 0 if predicate_holds(pred, run_lo, run_hi, first + at, attr, code, begin, end, table) else 1
        at = np.int64(jump[at_jump + at, side])
    return at == ACCEPT, steps


@device
def conjunction_holds(pred, run_lo, run_hi, first, jump_first, jump, c, attr, code, begin, end, table):
    """Truth of a conjunction, plain or a program, and the number of predicates evaluated: where
    few are verified (see above).
    """
    if len(jump_first) > 0 and jump_first[c] >= 0:
        return program_accepts(pred, run_lo, run_hi, jump, jump_first[c], first[c], attr, code, begin, end, table)
    steps = np.int64(0)
    for p in range(first[c], first[c + 1]):
        steps += 1
        if not predicate_holds(pred, run_lo, run_hi, p, attr, code, begin, end, table):
            return False, steps
    return True, steps


@device
def hull(pred, run_lo, run_hi, p):
    """Lowest and highest entry of the table with which predicate ``p`` can be true: a cheap
    necessary condition.
    """
    word = pred[p, 0]
    if word & FLAG_NONE:
        return 0, CODE_MAX
    if word & FLAG_MULTI:
        return 1, CODE_MAX
    if word & FLAG_RUN:
        return np.int64(run_lo[pred[p, 1]]), np.int64(run_hi[pred[p, 2] - 1])
    return np.int64(pred[p, 1]), np.int64(pred[p, 2])
