"""The choice of access predicates: the predicates that the fewest events are expected to meet.

Source: section 3.3 of "PS-Tree-Based Efficient Boolean Expression Matching for High-Dimensional and
Dense Workloads". Events are counted for single codes, the finest possible spaces, as running sums.
So the count of a predicate is a difference, however many spaces it covers.
"""

import numpy as np

from colmatch.kernels._jit import device, inlined
from colmatch.kernels.bits import popcount
from colmatch.kernels.geometry import boundaries_below, end_of_required, share_between
from colmatch.kernels.kinds.pstree.arrays import FANOUT
from colmatch.kernels.kinds.pstree.intervals import cells_within, interval_of, intervals_of
from colmatch.kernels.layout import ATTR_MASK, FLAG_MULTI, FLAG_NONE
from colmatch.kernels.window import values_met

# The test of a predicate before its conjunction is verified, in the high bits of ``probe``. The low
# bits have its attribute. 0 : no test.
BY_SPACE = 1 << 29  # by spaces that are cut at its ends
BY_CELL = 1 << 30  # by the cells of its attribute
PRESENT = BY_SPACE | BY_CELL  # by the presence of its attribute
ACCESS = 1 << 31  # with BY_SPACE or BY_CELL : an access predicate

# ``plan``. SIGNATURES : predicates that an attribute needs to be in signatures, 0 without these
LEAVES, BY_OPERATOR, DIMENSIONS, PRODUCT, SIGNATURES = range(5)
PLAN_WORDS = 8

LOOSE = 4  # codes that a predicate's cells may have for each code of the predicate
SPACES_MOST = 128  # codes beyond which a predicate always takes cells

# The paper's order of operators: =, IN, BETWEEN, one-sided, <>, NOT IN.
EQUALITY, ONE_OF, BETWEEN, ONE_SIDED, UNEQUAL, NONE_OF = range(6)


@device
def is_placed(probe, first, c):
    """Returns whether a conjunction has an access predicate."""
    for p in range(first[c], first[c + 1]):
        if np.int64(probe[p]) & ACCESS:
            return True
    return False


@inlined
def _count_codes(pred, run_lo, run_hi, code_first, label, p):
    """Returns the number of codes of a predicate: it has at most as many spaces."""
    a, n = np.int64(pred[p, 0]) & ATTR_MASK, np.int64(0)
    begin, end = intervals_of(pred, p)
    for j in range(begin, end):
        lo, hi = interval_of(pred, run_lo, run_hi, p, j)
        below_hi, below_lo = boundaries_below(code_first, label, a, hi), boundaries_below(code_first, label, a, lo)
        n += max(below_hi - below_lo + 1, 0)
    return n


@inlined
def _choose_test(most, tree, pred, run_lo, run_hi, code_first, label, p):
    """Returns the test of a predicate: by cells if it has many codes, and its cells have few
    others.
    """
    a = np.int64(pred[p, 0]) & ATTR_MASK
    n = _count_codes(pred, run_lo, run_hi, code_first, label, p)
    if n <= most:
        return a | BY_SPACE
    cells = np.int64(popcount(np.uint64(cells_within(tree, pred, run_lo, run_hi, p))))
    others = cells * ((code_first[a + 1] - code_first[a]) // FANOUT + 1)
    return a | (BY_CELL if n > SPACES_MOST or others <= LOOSE * n else BY_SPACE)


@device
def _guess_operator(pred, run_lo, run_hi, code_first, bound, label, p):
    """Returns the operator that a predicate may come from, going by its intervals."""
    a = np.int64(pred[p, 0]) & ATTR_MASK
    begin, end = intervals_of(pred, p)
    lowest, _ = interval_of(pred, run_lo, run_hi, p, begin)
    _, highest = interval_of(pred, run_lo, run_hi, p, end - 1)
    n, first = code_first[a + 1] - code_first[a], code_first[a]
    b, b_end = boundaries_below(code_first, label, a, lowest), boundaries_below(code_first, label, a, highest)
    if end - begin > 1:
        return ONE_OF if b > 0 and b_end < n else UNEQUAL if end - begin == 2 else NONE_OF
    if b == 0 or b_end == n:
        return NONE_OF if b == 0 and b_end == n else ONE_SIDED
    return EQUALITY if bound[first + b_end] == bound[first + b - 1] + 1 else BETWEEN


@inlined
def _estimate_events(pred, run_lo, run_hi, code_first, bound, label, window, known, key, by_operator, p):
    """Estimates the number of events that meet a predicate, in some unit.

    window, known, key : ``window``, ``window_first`` and ``window_key`` of the index
    """
    a = np.int64(pred[p, 0]) & ATTR_MASK
    part, events = 0.0, np.int64(0)
    begin, end = intervals_of(pred, p)
    for j in range(begin, end):
        lo, hi = interval_of(pred, run_lo, run_hi, p, j)
        if lo > hi:
            continue
        part += share_between(code_first, bound, label, a, lo, hi)
        if len(known) > 0:
            events += max(values_met(window, known, key, code_first, bound, label, a, lo, hi), 0)
    part = min(part, 1.0) / 2
    if len(known) > 0:
        return events + part
    return _guess_operator(pred, run_lo, run_hi, code_first, bound, label, p) + part if by_operator else part


@inlined
def choose(tree, preds, codes, score, c, next):
    """Chooses the access predicates of a conjunction, on different attributes.

    There are as many as ``plan`` allows, and fewer if their spaces would be too many together.
    ``probe`` of all predicates is written: access predicates have ``ACCESS``, and other predicates
    that must hold have their test. ``next`` (C, 2) is also written: the tests of the two most
    selective other predicates, 0 if there is none.

    tree : ``PSTBloom`` or ``PSTHash``
    score : scratch, for all predicates of a conjunction
    """
    plan, trees, probe = tree.plan, tree.tree, tree.probe
    window, window_first, key = tree.window, tree.window_first, tree.window_key
    pred, run_lo, run_hi = preds.pred, preds.run_lo, preds.run_hi
    code_first, bound, label = codes.first, codes.bound, codes.label
    first, last = preds.first[c], end_of_required(preds.first, preds.jump_first, preds.jump, c)
    # Score the predicates that must hold
    for p in range(first, preds.first[c + 1]):
        probe[p] = 0
    for p in range(first, last):
        by_operator = plan[BY_OPERATOR] != 0
        score[p - first] = _estimate_events(
            pred, run_lo, run_hi, code_first, bound, label, window, window_first, key, by_operator, p
        )
    product = np.int64(1)
    for taken in range(plan[DIMENSIONS]):
        # Find the best predicate on an attribute without access predicate
        best = np.int64(-1)
        for p in range(first, last):
            word = np.int64(pred[p, 0])
            if word & FLAG_NONE or (best >= 0 and score[best - first] <= score[p - first]):
                continue
            used = False
            for q in range(first, last if taken > 0 else first):
                used |= np.int64(probe[q]) & ACCESS != 0 and np.int64(probe[q]) & ATTR_MASK == word & ATTR_MASK
            if not used:
                best = np.int64(p)
        if best < 0:
            break
        # Take it, unless the spaces become too many
        chosen = _choose_test(plan[LEAVES], trees, pred, run_lo, run_hi, code_first, label, best) | ACCESS
        if chosen & BY_CELL:
            product *= np.int64(popcount(np.uint64(cells_within(trees, pred, run_lo, run_hi, best))))
        else:
            product *= _count_codes(pred, run_lo, run_hi, code_first, label, best)
        if taken > 0 and product > plan[PRODUCT]:
            break
        probe[best] = chosen
    # Choose the tests of other predicates, and find the two best of these
    one, two = np.int64(-1), np.int64(-1)
    for p in range(first, last):
        word = np.int64(pred[p, 0])
        if word & FLAG_NONE or np.int64(probe[p]) & ACCESS:
            continue
        probe[p] = word & ATTR_MASK | PRESENT
        few = tree.common[word & ATTR_MASK] < plan[SIGNATURES]
        if plan[SIGNATURES] and not few and not word & FLAG_MULTI:
            probe[p] = _choose_test(plan[LEAVES], trees, pred, run_lo, run_hi, code_first, label, p)
        if one < 0 or score[p - first] < score[one - first]:
            one, two = np.int64(p), one
        elif two < 0 or score[p - first] < score[two - first]:
            two = np.int64(p)
    next[c, 0] = probe[one] if one >= 0 else 0
    next[c, 1] = probe[two] if two >= 0 else 0
