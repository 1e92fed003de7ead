"""A conjunction -> its entries in the lists of an OpIndex, its pivots, and what its slots count."""

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

# columns of ``entry``; for AT_MOST the operand, which is the upper one, is LOWER
OP, ATTR, LOWER, UPPER, NUMBER, ENTRY_WORDS = range(6)
ENTRIES, PIVOTS, NEEDED, RESULTS = range(4)  # places of ``result``


class Expansion(NamedTuple):
    """What stands for one conjunction in an index."""

    entry: Table[U32]  # (most entries, ENTRY_WORDS)
    pivot: U32  # (most entries) attributes; none: it is always verified
    result: I64  # (RESULTS) entries, pivots, what its slots count


@kernel
def most_entries(preds: Predicates, conjunctions: I64) -> int:
    """An upper bound of the entries of any of the conjunctions (any number of them, int64), and
    of its predicates.
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
    """Writes the entries of predicate ``p``, one for each of its intervals, from the
    n-th on.

    Returns how many entries there are then.
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
def subtree(tree, at):
    """Returns the first token of the subtree whose last one is ``at``.

    A bound on the tokens still wanted goes down to 0.
    """
    wanted = np.int64(1)
    while wanted > 0:
        token = np.int64(tree[at])
        wanted -= 1
        if token < 0:
            wanted += -token >> 1
        at -= 1
    return at + 1


@device
def clause_of(pred, tree, begin, at, first):
    """Leaves and fault of the clause whose tokens are ``begin:at + 1``.

    The fault is 0 for a leaf or an OR of leaves that want an entry, 1 for a leaf that wants none, 2
    for anything else.
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

    With single-valued attributes every predicate is counted (section 4). With several-valued ones,
    which two elements may meet, every predicate is a clause of its own. The pivot is the rarest
    attribute.
    """
    pred, run_lo, run_hi = preds.pred, preds.run_lo, preds.run_hi
    entry, result = expansion.entry, expansion.result
    first, last = preds.first[c], preds.first[c + 1]
    best, rarest = -1, 0
    wanted, several = 0, np.int64(0)
    for p in range(first, last):
        word = np.int64(pred[p, 0])
        if word & FLAG_NONE:
            continue
        a = word & ATTR_MASK
        if best < 0 or frequency[a] < rarest or (frequency[a] == rarest and a < np.int64(pred[best, 0]) & ATTR_MASK):
            best, rarest = p, frequency[a]
        wanted += 1
        several |= word & FLAG_MULTI
    if best < 0:
        return
    expansion.pivot[0] = pred[best, 0] & ATTR_MASK
    result[PIVOTS] = 1
    result[NEEDED] = wanted
    mode, clause = oi.COUNT, 0
    if several:
        mode = oi.CLAUSE
    if wanted > (oi.MOST_CLAUSES if several else oi.MOST_NEEDED):
        mode = oi.CLAUSE
        result[NEEDED] = 1 | oi.VERIFY
        first, last = best, best + 1
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
    """Chooses the clause that has the pivots: the rarest of those with the fewest
    leaves.

    Returns its last token or -1, how many clauses want an entry, and whether the program is an AND
    of leaves and of ORs of leaves.

    begin, end : the first token, and the last one of the last clause. first : predicate of leaf 0
    """
    best, fewest, rarest, wanted, simple = -1, 0, 0, 0, True
    at = end
    while at >= begin:  # from the last clause to the first
        start = subtree(tree, at)
        leaves, fault = clause_of(pred, tree, start, at, first)
        if fault == 2:
            simple = False
        elif fault == 0:
            wanted += 1
            total = 0
            for i in range(start, start + leaves):
                total += frequency[np.int64(pred[first + np.int64(tree[i]), 0]) & ATTR_MASK]
            if best < 0 or leaves < fewest or (leaves == fewest and total < rarest):
                best, fewest, rarest = at, leaves, total
        at = start - 1
    return best, wanted, simple


@device
def expand_program(preds, c, frequency, top, known, expansion):
    """Expands a conjunction with a program.

    Of one that is an AND of leaves and of ORs of leaves, the clauses are entered (section 6.1). Of
    any other, or with too many clauses, only the clause with the pivots is, and what it finds is
    verified.
    """
    pred, run_lo, run_hi = preds.pred, preds.run_lo, preds.run_hi
    tree, first = preds.tree, preds.first[c]
    entry, pivot, result = expansion.entry, expansion.pivot, expansion.result
    begin, root = preds.tree_first[c], preds.tree_first[c + 1] - 1
    end = root - 1 if tree[root] < 0 and not -tree[root] & 1 else root  # the last token of the last clause
    best, wanted, simple = choose_clause(pred, tree, begin, end, first, frequency)
    if best < 0:
        return
    simple = simple and wanted <= oi.MOST_CLAUSES
    pivots = 0
    for i in range(subtree(tree, best), best + 1):
        if tree[i] >= 0:
            a = pred[first + np.int64(tree[i]), 0] & ATTR_MASK
            there = False
            for j in range(pivots):
                there |= pivot[j] == a
            if not there:
                pivot[pivots] = a
                pivots += 1
    result[PIVOTS] = pivots
    result[NEEDED] = wanted if simple else 1 | oi.VERIFY
    n, number = 0, 0
    at = end if simple else best
    while at >= begin:
        start = subtree(tree, at)
        leaves, fault = clause_of(pred, tree, start, at, first)
        mode = oi.NEVER if fault == 1 else oi.CLAUSE
        for i in range(start, start + leaves):
            n = write(pred, run_lo, run_hi, top, known, first + np.int64(tree[i]), mode, number, entry, n)
        number += fault == 0
        at = start - 1 if simple else begin - 1
    result[ENTRIES] = n


@device
def expand(preds, c, frequency, top, known, expansion):
    """Writes what stands for conjunction ``c`` in an index into ``expansion``.

    top (A) int64 : highest code of each of the first ``known`` attributes: a range up to it, or to
    CODE_MAX, has no upper end
    """
    result = expansion.result
    result[ENTRIES], result[PIVOTS], result[NEEDED] = 0, 0, 0
    if len(preds.tree_first) > 0 and preds.tree_first[c] < preds.tree_first[c + 1]:
        expand_program(preds, c, frequency, top, known, expansion)
    else:
        expand_plain(preds, c, frequency, top, known, expansion)


@device
def stands_in(entry, j, pivot, needed):
    """Returns whether an entry stands in the partition of a pivot.

    Where matches are verified, each pivot has the predicates on itself.
    """
    return not needed & oi.VERIFY or entry[j, ATTR] == pivot


@device
def slot_word(op, slot, number):
    """Returns what an entry says of its slot."""
    return slot << oi.CLAUSE_BITS | number if op >= oi.CLAUSE else slot
