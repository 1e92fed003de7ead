"""Bits of predicates, estimates of the events that satisfy them, and the access predicates of
conjunctions.
"""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.bits import mix
from colmatch.kernels.geometry import boundaries_below
from colmatch.kernels.layout import ATTR_MASK, FLAG_NONE, FLAG_RUN, REJECT
from colmatch.kernels.window import values_met

WHAT = ATTR_MASK | FLAG_RUN  # bits of a predicate's first word that are part of its key
CLASS_OF_SEVERAL = 63  # class of several intervals, for the order of the bits; class k is one of up to 2^k codes


@device
def plain_home(word, low, high):
    """Returns the hash of a predicate with one interval."""
    return mix(word << 32 | low, high << 20)


@device
def home(run_lo, run_hi, word, low, high):
    """Returns the hash of a predicate. It depends on the intervals, not on their places.

    word : attribute, and FLAG_RUN
    """
    if word & FLAG_RUN:
        h = word
        for j in range(low, high):
            h = mix(mix(h, np.int64(run_lo[j])), np.int64(run_hi[j]))
        return h
    return plain_home(word, low, high)


@device
def find(key, slot, run_lo, run_hi, word, low, high):
    """Returns the bit of a predicate, or -1, and its slot, or the free slot for it.

    word : without FLAG_MULTI and FLAG_NONE
    """
    last_slot = len(slot) - 1
    place = home(run_lo, run_hi, word, low, high) & last_slot
    while slot[place] != 0:
        # Compare the word, then the places of the intervals
        b = np.int64(slot[place]) - 1
        if np.int64(key[b, 0]) == word:
            low_b, high_b = np.int64(key[b, 1]), np.int64(key[b, 2])
            if low_b == low and high_b == high:
                return b, place
            # Compare the intervals themselves
            if word & FLAG_RUN and high_b - low_b == high - low:
                same = True
                j = 0
                while same and j < high - low:
                    same = run_lo[low_b + j] == run_lo[low + j] and run_hi[low_b + j] == run_hi[low + j]
                    j += 1
                if same:
                    return b, place
        place = (place + 1) & last_slot
    return np.int64(-1), place


@device
def estimate_events(run_lo, run_hi, word, low, high, estimates):
    """Returns the expected number of events that satisfy a predicate.

    Without a sample, an equality shares the attribute's events evenly with all elementary
    intervals. A range takes its share of the codes, at least as much as an equality.
    """
    present, codes, code_first = estimates.present, estimates.codes, estimates.code_first
    window, window_first, key = estimates.window, estimates.window_first, estimates.window_key
    bound, label = estimates.bound, estimates.label
    a = word & ATTR_MASK
    most = estimates.top[a]
    j, end = (low, high) if word & FLAG_RUN else (np.int64(0), np.int64(1))
    total = 0.0
    while j < end:
        # Add the estimate of each interval
        if word & FLAG_RUN:
            low, high = np.int64(run_lo[j]), np.int64(run_hi[j])
        if low <= high:
            met = np.int64(-1)
            if len(window_first) > 0:
                met = values_met(window, window_first, key, code_first, bound, label, a, low, high)
            guess = present[a] / codes[a]
            if low < high:
                guess = max(guess, present[a] * min(high - low + 1, most) / most)
            if len(window_first) > 0:
                total += max(met, 0) + 1e-9 * guess  # the guess breaks ties
            else:
                total += guess
        j += 1
    return total


@device
def is_equality(word, low, high, estimates):
    """Says whether a predicate holds for one key only. A range without a boundary inside has one
    code, too.
    """
    if word & FLAG_RUN or low != high:
        return False
    first, bound, a = estimates.code_first, estimates.bound, word & ATTR_MASK
    next = first[a] + boundaries_below(first, estimates.label, a, low)
    return first[a] < next < first[a + 1] and bound[next] == bound[next - 1] + 1


@device
def rank(run_lo, run_hi, word, low, high, estimates):
    """Returns a number that is lower for a better access predicate.

    Without a sample, equalities are better than all other predicates. With a sample, they are
    better than predicates that hold as often.
    """
    share = estimate_events(run_lo, run_hi, word, low, high, estimates)
    if not is_equality(word, low, high, estimates):
        return share
    return share - 0.5 if len(estimates.window_first) > 0 else -1.0 / share


@device
def choose_program_access(preds, c, estimates):
    """Returns a predicate that a program requires, or -1.

    It is the best of the rejecting predicates at the program's beginning.
    """
    best, least = -1, np.inf
    begin = preds.first[c]
    for p in range(begin, preds.first[c + 1]):
        at = preds.jump_first[c] + p - begin
        if preds.jump[at, 1] != REJECT:
            break
        word = np.int64(preds.pred[p, 0])
        if not word & FLAG_NONE:
            low, high = np.int64(preds.pred[p, 1]), np.int64(preds.pred[p, 2])
            own = rank(preds.run_lo, preds.run_hi, word & WHAT, low, high, estimates)
            if own < least:
                best, least = p, own
        if preds.jump[at, 0] != p - begin + 1:
            break  # the next predicate may be skipped
    return best


@device
def choose_access(pred, number, ranks, begin, end):
    """Returns the access predicate among the predicates ``begin:end`` of a conjunction, or -1.

    It has the lowest rank among the predicates that are not negated.

    number : predicate -> bit
    """
    best, least = -1, np.inf
    for p in range(begin, end):
        if not np.int64(pred[p, 0]) & FLAG_NONE and ranks[number[p]] < least:
            best, least = p, ranks[number[p]]
    return best
