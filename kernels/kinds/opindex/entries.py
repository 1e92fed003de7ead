"""A conjunction -> its entries in the lists of an OpIndex, its pivots, and the count of a slot."""

from typing import NamedTuple

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.kinds.opindex import arrays as oi
from colmatch.kernels.layout import (
    ATTR_MASK,
    CODE_MAX,
    FLAG_MULTI,
    FLAG_NONE,
    FLAG_RUN,
    I64,
    U32,
    Predicates,
    Table,
)

# Columns of ``entry``. For AT_MOST, LOWER has the operand, which is the upper one
OP, ATTR, LOWER, UPPER, NUMBER, ENTRY_WORDS = range(6)
ENTRIES, PIVOTS, NEEDED, RESULTS = range(4)  # places of ``result``


class Expansion(NamedTuple):
    """The representation of one conjunction in an index."""

    entry: Table[U32]  # (most entries, ENTRY_WORDS)
    pivot: U32  # (most entries) attributes; without any, the conjunction is always verified
    result: I64  # (RESULTS) number of entries, number of pivots, count that completes a slot


@kernel
def most_entries(preds: Predicates, conjunctions: I64) -> int:
    """Returns an upper bound on the entries, and on the predicates, of any of the conjunctions.

    conjunctions : int64, any number of them
    """
    most = np.int64(1)
    for c in conjunctions:
        size = np.int64(0)
        for p in range(preds.first[c], preds.first[c + 1]):
            size += 1
            if preds.pred[p, 0] & FLAG_RUN:
                size += np.int64(preds.pred[p, 2]) - np.int64(preds.pred[p, 1])
        most = max(most, size)
    return most


@device
def write(pred, run_lo, run_hi, top, known, p, mode, number, entry, n):
    """Writes the entries of predicate ``p``, one for each interval, from the n-th on.

    Returns the new number of entries.
    """
    word = np.int64(pred[p, 0])
    a = word & ATTR_MASK
    begin, end = np.int64(pred[p, 1]), np.int64(pred[p, 2])
    several = word & FLAG_RUN
    last = end if several else begin + 1
    for j in range(begin, last):
        low = np.int64(run_lo[j]) if several else begin
        high = np.int64(run_hi[j]) if several else end
        if low > high:
            continue
        # Choose the shape by the ends that the interval has
        open = high >= (top[a] if a < known else CODE_MAX)
        shape, lower = oi.BETWEEN, low
        if low <= 1:
            shape, lower = oi.AT_MOST, np.int64(CODE_MAX) if open else high
        elif open:
            shape = oi.AT_LEAST
        elif low == high:
            shape = oi.EQUAL
        entry[n, OP] = mode + shape
        entry[n, ATTR] = a
        entry[n, LOWER] = lower
        entry[n, UPPER] = high
        entry[n, NUMBER] = number
        n += 1
    return n


@device
def find_subtree(tree, at):
    """Returns the first token of the subtree with the last token ``at``.

    The number of subtrees still to be read goes down to 0.
    """
    subtrees = np.int64(1)
    while subtrees > 0:
        token = np.int64(tree[at])
        subtrees -= 1
        if token < 0:
            subtrees += -token >> 1
        at -= 1
    return at + 1


@device
def clause_of(pred, tree, begin, at, first):
    """Returns the number of leaves and the fault of the clause with the tokens ``begin:at + 1``.

    The fault is 0 for a positive leaf or an OR of positive leaves. It is 1 for a negated leaf, and
    2 for anything else.
    """
    token = np.int64(tree[at])
    if token >= 0:
        return 1, 1 if pred[first + token, 0] & FLAG_NONE else 0
    leaves = -token >> 1
    if not -token & 1 or at - begin != leaves:  # an AND, or an OR of groups
        return leaves, 2
    for i in range(begin, at):
        if pred[first + np.int64(tree[i]), 0] & FLAG_NONE:
            return leaves, 2
    return leaves, 0


@device
def expand_plain(preds, c, frequency, top, known, expansion):
    """Expands a conjunction without a program.

    With single-valued attributes every predicate is counted (section 4). A predicate on a
    several-valued attribute may be met by two elements, so every predicate is then a clause. With
    too many predicates, only one on the pivot is entered, and matches are verified. The pivot is
    the rarest attribute.
    """
    pred, run_lo, run_hi = preds.pred, preds.run_lo, preds.run_hi
    entry, result = expansion.entry, expansion.result
    first, last = preds.first[c], preds.first[c + 1]
    # Find the rarest attribute, and count the positive predicates
    best, rarest = -1, 0
    positives, several = 0, np.int64(0)
    for p in range(first, last):
        word = np.int64(pred[p, 0])
        if word & FLAG_NONE:
            continue
        a = word & ATTR_MASK
        if best < 0 or frequency[a] < rarest or (frequency[a] == rarest and a < np.int64(pred[best, 0]) & ATTR_MASK):
            best, rarest = p, frequency[a]
        positives += 1
        several |= word & FLAG_MULTI
    if best < 0:
        return
    expansion.pivot[0] = pred[best, 0] & ATTR_MASK
    result[PIVOTS] = 1
    result[NEEDED] = positives
    # Choose the mode
    mode, clause = oi.COUNT, 0
    if several:
        mode = oi.CLAUSE
    if positives > (oi.MOST_CLAUSES if several else oi.MOST_NEEDED):
        mode = oi.CLAUSE
        result[NEEDED] = 1 | oi.VERIFY
        first, last = best, best + 1
    # Write the entries
    n = 0
    for p in range(first, last):
        if pred[p, 0] & FLAG_NONE:
            n = write(pred, run_lo, run_hi, top, known, p, oi.NEVER, 0, entry, n)
        else:
            n = write(pred, run_lo, run_hi, top, known, p, mode, clause, entry, n)
            clause += mode == oi.CLAUSE
    result[ENTRIES] = n


@device
def choose_clause(pred, tree, begin, end, first, frequency):
    """Chooses the clause with the pivots: the rarest among the clauses with the fewest leaves.

    Returns its last token or -1, the number of positive clauses, and whether all clauses are leaves
    or ORs of positive leaves.

    begin, end : the first token, and the last token of the last clause. first : predicate of leaf 0
    """
    best, fewest, rarest, clauses, simple = -1, 0, 0, 0, True
    at = end
    while at >= begin:  # from the last clause to the first
        start = find_subtree(tree, at)
        leaves, fault = clause_of(pred, tree, start, at, first)
        if fault == 2:
            simple = False
        elif fault == 0:
            clauses += 1
            # Estimate how often events have an attribute of the clause
            total = 0
            for i in range(start, start + leaves):
                total += frequency[np.int64(pred[first + np.int64(tree[i]), 0]) & ATTR_MASK]
            if best < 0 or leaves < fewest or (leaves == fewest and total < rarest):
                best, fewest, rarest = at, leaves, total
        at = start - 1
    return best, clauses, simple


@device
def expand_program(preds, c, frequency, top, known, expansion):
    """Expands a conjunction with a program.

    An AND of leaves and ORs of positive leaves is entered by its clauses (section 6.1). Any other
    program, or one with too many clauses, is entered by the clause with the pivots only. Its
    matches are verified.
    """
    pred, run_lo, run_hi = preds.pred, preds.run_lo, preds.run_hi
    tree, first = preds.tree, preds.first[c]
    entry, pivot, result = expansion.entry, expansion.pivot, expansion.result
    begin, root = preds.tree_first[c], preds.tree_first[c + 1] - 1
    end = root - 1 if tree[root] < 0 and not -tree[root] & 1 else root  # the last token of the last clause
    best, clauses, simple = choose_clause(pred, tree, begin, end, first, frequency)
    if best < 0:
        return
    simple = simple and clauses <= oi.MOST_CLAUSES
    # Write the attributes of the best clause as pivots, each once
    pivots = 0
    for i in range(find_subtree(tree, best), best + 1):
        if tree[i] >= 0:
            a = pred[first + np.int64(tree[i]), 0] & ATTR_MASK
            there = False
            for j in range(pivots):
                there |= pivot[j] == a
            if not there:
                pivot[pivots] = a
                pivots += 1
    result[PIVOTS] = pivots
    result[NEEDED] = clauses if simple else 1 | oi.VERIFY
    # Write the entries of all clauses, or of the best one
    n, number = 0, 0
    at = end if simple else best
    while at >= begin:
        start = find_subtree(tree, at)
        leaves, fault = clause_of(pred, tree, start, at, first)
        mode = oi.NEVER if fault == 1 else oi.CLAUSE
        for i in range(start, start + leaves):
            n = write(pred, run_lo, run_hi, top, known, first + np.int64(tree[i]), mode, number, entry, n)
        number += fault == 0
        at = start - 1 if simple else begin - 1
    result[ENTRIES] = n


@device
def expand(preds, c, frequency, top, known, expansion):
    """Writes the representation of conjunction ``c`` in an index into ``expansion``.

    top (A) int64 : highest code of each of the first ``known`` attributes. A range up to it, or to
    CODE_MAX, has no upper end
    """
    result = expansion.result
    result[ENTRIES], result[PIVOTS], result[NEEDED] = 0, 0, 0
    if len(preds.tree_first) > 0 and preds.tree_first[c] < preds.tree_first[c + 1]:
        expand_program(preds, c, frequency, top, known, expansion)
    else:
        expand_plain(preds, c, frequency, top, known, expansion)


@device
def is_in_partition(entry, j, pivot, needed):
    """Returns whether the partition of a pivot has an entry.

    If matches are verified, it has only the predicates on the pivot.
    """
    return not needed & oi.VERIFY or entry[j, ATTR] == pivot


@device
def slot_word(op, slot, number):
    """Returns the slot word of an entry: its slot, and its clause in mode CLAUSE."""
    return slot << oi.CLAUSE_BITS | number if op >= oi.CLAUSE else slot
