"""The size K and the clauses of each conjunction, before k-index posts it.

A plain conjunction needs clauses only if two of its predicates could be met in the same list, or
one in two lists. Then each predicate is a separate clause. A program is an AND of clauses
as far as its tree is one. Deeper down, an OR is the OR of a necessary condition of each part. Of an
AND, the part with the fewest predicates is kept, and the conjunction is *unsure*.

A predicate on an attribute with several values, which two values may meet, is a clause that counts
once. An expression that is a CNF is indexed as one. Other programs are indexed by the best clauses
that they imply, and their matches are verified.
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.kinds.kindex.arrays import FREE, NO_CLAUSE
from colmatch.kernels.layout import (
    ATTR_MASK,
    FLAG_MULTI,
    FLAG_NONE,
    FLAG_RUN,
    I32,
    I64,
    U8,
    U16,
    U32,
    Predicates,
    Written,
)

PLAIN, CLAUSES = 0, 1
COUNTED = 256  # most predicates of a conjunction that K may count: their overlaps are sought in pairs
MOST_CLAUSES = 4096


@device
def cut_program(tree, begin, end, first, clause, starts, stack):
    """Numbers the clauses of a program with the tree ``tree[begin:end]``, in ``clause``.

    Returns the number of clauses, and whether they are equivalent to the program.

    first : its first predicate; starts, stack : at least as long as the tree
    """
    # Find the first token of each subtree
    depth = np.int64(0)
    for t in range(begin, end):
        token = np.int64(tree[t])
        starts[t - begin] = t
        if token < 0:
            depth -= (-token) >> 1
            starts[t - begin] = stack[depth]
        stack[depth] = starts[t - begin]
        depth += 1
    # Cut the root, if it is an AND, into its parts
    root = np.int64(tree[end - 1])
    parts = (-root) >> 1 if root < 0 and root & 1 == 0 else 1
    part = end - 2 if parts > 1 else end - 1
    exact = parts <= MOST_CLAUSES
    for j in range(parts - 1, -1, -1):
        # Number the predicates of a part: all children of an OR, the smallest of an AND
        depth = np.int64(1)
        stack[0] = part
        while depth and j < MOST_CLAUSES:  # each token is pushed once
            depth -= 1
            t = stack[depth]
            token = np.int64(tree[t])
            if token >= 0:
                clause[first + token] = j
                continue
            child, best = t - 1, t - 1
            for _ in range((-token) >> 1):
                if token & 1:
                    stack[depth] = child
                    depth += 1
                elif child - starts[child - begin] < best - starts[best - begin]:
                    best = child
                child = starts[child - begin] - 1
            if token & 1 == 0:
                exact = False
                stack[depth] = best
                depth += 1
        part = starts[part - begin] - 1
    return min(parts, MOST_CLAUSES), exact


@device
def hull_of(preds, p):
    low, high = np.int64(preds.pred[p, 1]), np.int64(preds.pred[p, 2])
    if preds.pred[p, 0] & FLAG_RUN and low < high:
        return np.int64(preds.run_lo[low]), np.int64(preds.run_hi[high - 1])
    return low, high


@device
def count_negatives(preds, clause, p, end):
    """Counts the negated predicates of the clause that begins at ``p``.

    Returns the end of its predicates, and the number of posted negated ones, on attributes with one
    value and with several.

    With several values, entries do not distinguish several predicates from one that several values
    meet. So lists decide the clause only if it has at most one such predicate.
    """
    j = clause[p]
    none, several = 0, 0
    while p < end and (clause[p] == j or clause[p] == NO_CLAUSE):
        if clause[p] == j and preds.pred[p, 0] & FLAG_NONE:
            if preds.pred[p, 0] & FLAG_MULTI:
                several += 1
            else:
                none += 1
        p += 1
    return p, none, several


@device
def count_size(preds, clause, begin, end, counted):
    """Returns K of a conjunction with clauses, and whether lists decide each of its clauses.

    At least K lists have the conjunction when it is true.

    A positive clause counts unless one of its predicates overlaps two that are counted. A value in
    the overlap has only two lists with the conjunction, since one plane takes the second and later
    entries.
    """
    size, sure, predicates = 0, True, 0
    p = begin
    while p < end:
        if clause[p] == NO_CLAUSE:
            p += 1
            continue
        stop, none, several = count_negatives(preds, clause, p, end)
        sure = sure and several < 2
        # See whether each predicate of a positive clause overlaps fewer than two counted ones
        fits = none + several == 0 and stop - begin <= COUNTED
        q = p
        while fits and q < stop:
            if clause[q] != NO_CLAUSE:
                low, high = hull_of(preds, q)
                a = preds.pred[q, 0] & ATTR_MASK
                overlaps = 0
                for i in range(predicates):
                    other = np.int64(counted[i])
                    if preds.pred[other, 0] & ATTR_MASK == a:
                        from_, to = hull_of(preds, other)
                        overlaps += 1 if from_ <= high and low <= to else 0
                fits = overlaps < 2
            q += 1
        # Count the clause
        if fits:
            size += 1
            for q in range(p, stop):
                if clause[q] != NO_CLAUSE:
                    counted[predicates] = q
                    predicates += 1
        p = stop
    return size, sure


@kernel
def classify(
    preds: Predicates,
    last: Written[I64],
    starts: Written[I64],
    stack: Written[I64],
    counted: Written[I64],
    form: Written[U8],
    size: Written[U32],
    clauses: Written[U32],
    unsure: Written[U8],
    clause: Written[U16],
) -> None:
    """Writes the form, size and clauses of each conjunction.

    last (A) int64 : scratch, -1 on entry. starts, stack (longest tree) int64, counted (COUNTED)
    int64 : scratch

    Written are form and unsure (C) uint8, size and number of clauses (C) uint32, and the clause of
    each predicate (P) uint16.
    """
    programs = len(preds.jump_first) > 0
    for c in range(len(form)):
        begin, end = preds.first[c], preds.first[c + 1]
        size[c], clauses[c], unsure[c] = 0, 0, 0
        for p in range(begin, end):
            clause[p] = NO_CLAUSE
        # Cut a program into clauses
        if programs and preds.jump_first[c] >= 0:
            form[c] = CLAUSES
            count, exact = cut_program(
                preds.tree, preds.tree_first[c], preds.tree_first[c + 1], begin, clause, starts, stack
            )
        else:
            # Make each predicate a clause if two of them, or two values, may meet in a list
            form[c] = PLAIN
            total = 0
            for p in range(begin, end):
                word = preds.pred[p, 0]
                a = word & ATTR_MASK
                if last[a] == c or word & (FLAG_MULTI | FLAG_NONE) == FLAG_MULTI:
                    form[c] = CLAUSES
                last[a] = c
                total += 0 if word & FLAG_NONE else 1
            size[c] = total
            count, exact = min(end - begin, MOST_CLAUSES), end - begin <= MOST_CLAUSES
            if form[c] == CLAUSES:
                for j in range(count):
                    clause[begin + j] = j
        # Find K of a conjunction with clauses
        if form[c] == CLAUSES:
            clauses[c] = count
            total, sure = count_size(preds, clause, begin, end, counted)
            size[c] = total
            unsure[c] = not (exact and sure)


@kernel
def write_starts(
    preds: Predicates,
    conj: Written[U32],
    begin: int,
    clause: Written[U16],
    clause_first: Written[I64],
    clause_true: Written[I32],
) -> None:
    """Writes clause_true (clauses) int32 of the numbers from ``begin`` on, see ``KIndex``."""
    for number in range(begin, len(conj)):
        c = conj[number]
        at, at_end = clause_first[number - begin], clause_first[number - begin + 1]
        for j in range(at, at_end):
            clause_true[j] = FREE
        p = preds.first[c]
        while p < preds.first[c + 1]:
            if clause[p] == NO_CLAUSE:
                p += 1
                continue
            j = clause[p]
            p, none, several = count_negatives(preds, clause, p, preds.first[c + 1])
            clause_true[at + j] = none + none + several if several < 2 else FREE
