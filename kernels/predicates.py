"""Truth of predicates and conjunctions for one event.

The event has two forms: its row of ``layout.Rows``, and a *table* (A) uint32 over all attributes.
An attribute that the row lacks is zero in the table. A single-valued attribute has its code there.
An attribute with several entries has 1 + the place of the first among the row's entries.

Functions take small NamedTuples of arrays. Passing one costs nothing where LLVM inlines the
function, and about 1.5 ns an array where it does not. So whole indexes, and ``layout.Predicates``
with its eleven arrays, go only to functions that are called once for a block of rows. Functions
that are called for each conjunction take ``PredicateColumns`` and an ``Event``. With ``Predicates``
instead, 64 events took ``betree`` (100,000 ``dense``) twice the time.
"""

from typing import Any, NamedTuple

import numpy as np

from colmatch.kernels._jit import device, inlined, kernel
from colmatch.kernels.layout import (
    ACCEPT,
    ATTR_MASK,
    CODE_MAX,
    FLAG_MULTI,
    FLAG_NONE,
    FLAG_RUN,
    I32,
    I64,
    U32,
    Table,
    Written,
)


class PredicateColumns(NamedTuple):
    """The columns of ``layout.Predicates`` that decide whether a conjunction is true."""

    first: I64
    pred: U32
    run_lo: U32
    run_hi: U32
    jump_first: I64
    jump: I32


class Event(NamedTuple):
    """One row: its entries ``begin:end`` among the entries of all rows, and its table."""

    attr: U32  # (E) of all rows
    code: U32  # (E)
    begin: Any
    end: Any
    table: U32  # (A)


@kernel
def count_uses(pred: Table[U32], uses: Written[I64]) -> None:
    """Counts the predicates (P, 3) of each attribute: ``uses`` (A) int64, zeros on entry."""
    for p in range(len(pred)):
        uses[pred[p, 0] & ATTR_MASK] += 1


@device
def conditions_of(preds):
    return PredicateColumns(preds.first, preds.pred, preds.run_lo, preds.run_hi, preds.jump_first, preds.jump)


@device
def spread(rows, row, multi, table):
    """Enters a row of ``layout.Rows`` into the table, which is zero before. Returns the event."""
    attr, code, begin, end = rows.attr, rows.code, rows.first[row], rows.first[row + 1]
    for e in range(end - 1, begin - 1, -1):  # backwards, so that the first of several entries stays
        a = attr[e]
        if multi[a]:
            table[a] = 1 + e - begin
        else:
            table[a] = code[e]
    return Event(attr, code, begin, end, table)


@device
def clear(event):
    """Removes an event from its table. Only entries that the event had set are written."""
    for e in range(event.begin, event.end):
        event.table[event.attr[e]] = 0


@device
def in_run(lo, hi, begin, end, code):
    """Returns whether ``code`` lies in one of the ascending intervals ``begin:end``."""
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
def flagged_holds(conds, p, v, event):
    """Returns whether an event makes a predicate with any flags true. ``v`` is the entry of its
    table.
    """
    attr, code, begin, end = event.attr, event.code, event.begin, event.end
    run_lo, run_hi = conds.run_lo, conds.run_hi
    word = conds.pred[p, 0]
    a = word & ATTR_MASK
    low = np.int64(conds.pred[p, 1])
    high = np.int64(conds.pred[p, 2])
    holds = False
    # Test the entries of the attribute, or its only value
    if word & FLAG_MULTI:
        if v != 0:
            e = begin + v - 1
            if word & FLAG_RUN and high - low > 2:
                while e < end and attr[e] == a and not holds:
                    holds = in_run(run_lo, run_hi, low, high, code[e])
                    e += 1
            else:  # one interval, or two: a search among two took twice as long (asv_benchmarks/calls.py)
                other_low, other_high = low, high
                if word & FLAG_RUN:
                    last = high - 1
                    other_low, other_high = np.int64(run_lo[last]), np.int64(run_hi[last])
                    low, high = np.int64(run_lo[low]), np.int64(run_hi[low])
                while e < end and attr[e] == a and not holds:
                    here = np.int64(code[e])
                    if (low <= here and here <= high) or (other_low <= here and here <= other_high):
                        holds = True
                    e += 1
    elif v != 0:
        if word & FLAG_RUN:
            holds = in_run(run_lo, run_hi, low, high, v)
        else:
            holds = low <= v and v <= high
    # Negate where no entry may lie in the intervals
    if word & FLAG_NONE:
        return not holds
    return holds


@device
def predicate_holds(conds, p, event):
    """Returns whether a predicate is true. Almost all have one interval, and one value at most."""
    word = conds.pred[p, 0]
    if word <= ATTR_MASK:
        v = event.table[word]
        return conds.pred[p, 1] <= v and v <= conds.pred[p, 2]
    return flagged_holds(conds, p, event.table[word & ATTR_MASK], event)


@device
def program_accepts(conds, c, event):
    """Follows a program's jumps to the verdict. Returns it and the number of predicates evaluated.

    Jumps lead forward only, so there are at most as many steps as the program has predicates.
    """
    first, at_jump = conds.first[c], conds.jump_first[c]
    at = np.int64(0)
    steps = 0
    while at >= 0:
        steps += 1
        side = 0 if predicate_holds(conds, first + at, event) else 1
        at = np.int64(conds.jump[at_jump + at, side])
    return at == ACCEPT, steps


@inlined
def conjunction_holds(conds, c, event):
    """Returns whether a conjunction or program is true, and the number of predicates evaluated."""
    if len(conds.jump_first) > 0 and conds.jump_first[c] >= 0:
        return program_accepts(conds, c, event)
    steps, holds = 0, True
    p, p_end = np.uint64(conds.first[c]), np.uint64(conds.first[c + 1])
    while holds and p < p_end:
        steps += 1
        holds = predicate_holds(conds, p, event)
        p += np.uint64(1)
    return holds, steps


@device
def hull(pred, run_lo, run_hi, p):
    """Returns the lowest and highest table entry that can make a predicate true.

    This is a cheap necessary condition.
    """
    word = pred[p, 0]
    if word & FLAG_NONE:
        return 0, CODE_MAX
    if word & FLAG_MULTI:
        return 1, CODE_MAX
    if word & FLAG_RUN:
        return np.int64(run_lo[pred[p, 1]]), np.int64(run_hi[pred[p, 2] - 1])
    return np.int64(pred[p, 1]), np.int64(pred[p, 2])
