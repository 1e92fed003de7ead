"""What k-index must know of each conjunction before it is posted.

That is its size K, and where it takes clauses, which predicates are in which.

A plain conjunction needs no clauses unless two of its predicates could be met in the same list, or
one of them in two lists: then each is a clause of its own. A program is an AND of clauses as far as
its tree is one. Deeper down, an OR is the OR of a necessary condition of each part, and of an AND
the part with the fewest predicates is kept; such a conjunction is *unsure*.

A predicate on an attribute with several values, which two values may meet, is a clause that counts
once. An expression that is a CNF is indexed as one. Of other programs the best implied clause is
indexed, and what it finds is verified.
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
COUNTED = 256  # predicates of a conjunction that K may count: their overlaps are looked for in pairs
MOST_CLAUSES = 4096


@device
def cut_program(tree, begin, end, first, clause, starts, stack):
    """Numbers the clauses of the program whose tree is ``tree[begin:end]``: clause of its
    predicates, from ``first``, is written.

    starts, stack : at least as long as the tree. Returns the number of clauses, and whether they
    are all there is to it.
    """
    depth = np.int64(0)
    for t in range(begin, end):
        token = np.int64(tree[t])
        starts[t - begin] = t
        if token < 0:
            depth -= (-token) >> 1
            starts[t - begin] = stack[depth]
        stack[depth] = starts[t - begin]
        depth += 1
    root = np.int64(tree[end - 1])
    parts = (-root) >> 1 if root < 0 and root & 1 == 0 else 1
    part = end - 2 if parts > 1 else end - 1
    exact = parts <= MOST_CLAUSES
    for j in range(parts - 1, -1, -1):
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
def negatives(preds, clause, p, end):
    """Reads the clause whose predicates begin at ``p``.

    Returns where they end, and how many of the posted ones are negated, on attributes with one
    value and with several.

    Entries of the latter do not tell one predicate that several values meet from several
    predicates, so lists can tell whether the clause is true only if there is one.
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
    """K of a conjunction with clauses, and whether lists can tell of each of them.

    So many lists have it when it is true.

    A positive clause counts where no two predicates that are counted could be met by the same value
    as one of its own: such a value has two lists with the conjunction, for one plane takes the
    second and later entries.
    """
    size, sure, known = 0, True, 0
    p = begin
    while p < end:
        if clause[p] == NO_CLAUSE:
            p += 1
            continue
        stop, none, several = negatives(preds, clause, p, end)
        sure = sure and several < 2
        fits = none + several == 0 and stop - begin <= COUNTED
        q = p
        while fits and q < stop:
            if clause[q] != NO_CLAUSE:
                low, high = hull_of(preds, q)
                a = preds.pred[q, 0] & ATTR_MASK
                overlaps = 0
                for i in range(known):
                    other = np.int64(counted[i])
                    if preds.pred[other, 0] & ATTR_MASK == a:
                        from_, to = hull_of(preds, other)
                        overlaps += 1 if from_ <= high and low <= to else 0
                fits = overlaps < 2
            q += 1
        if fits:
            size += 1
            for q in range(p, stop):
                if clause[q] != NO_CLAUSE:
                    counted[known] = q
                    known += 1
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
    """Writes what each conjunction is.

    That is its form (C) uint8, its size and number of clauses (C) uint32, whether it is unsure (C)
    uint8, and the clause of each predicate (P) uint16.

    last (A) int64 : scratch, -1 on entry. starts, stack (longest tree) int64, counted (COUNTED)
    int64 : scratch
    """
    programs = len(preds.jump_first) > 0
    for c in range(len(form)):
        begin, end = preds.first[c], preds.first[c + 1]
        size[c], clauses[c], unsure[c] = 0, 0, 0
        for p in range(begin, end):
            clause[p] = NO_CLAUSE
        if programs and preds.jump_first[c] >= 0:
            form[c] = CLAUSES
            count, exact = cut_program(
                preds.tree, preds.tree_first[c], preds.tree_first[c + 1], begin, clause, starts, stack
            )
        else:
            form[c] = PLAIN
            some = 0
            for p in range(begin, end):
                word = preds.pred[p, 0]
                a = word & ATTR_MASK
                if last[a] == c or word & (FLAG_MULTI | FLAG_NONE) == FLAG_MULTI:
                    form[c] = CLAUSES
                last[a] = c
                some += 0 if word & FLAG_NONE else 1
            size[c] = some
            count, exact = min(end - begin, MOST_CLAUSES), end - begin <= MOST_CLAUSES
            if form[c] == CLAUSES:
                for j in range(count):
                    clause[begin + j] = j
        if form[c] == CLAUSES:
            clauses[c] = count
            some, sure = count_size(preds, clause, begin, end, counted)
            size[c] = some
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
    """clause_true (clauses) int32 of the numbers from ``begin``, as ``KIndex`` has it, is
    written.
    """
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
            p, none, several = negatives(preds, clause, p, preds.first[c + 1])
            clause_true[at + j] = none + none + several if several < 2 else FREE
