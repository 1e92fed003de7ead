"""Truth of predicates for an event that may have ranges as attributes.

A conjunction meets the ranges if some values, one out of each range, make it true. The event is in
two tables like the one of ``predicates.py``, for the lower and the upper ends. An attribute that is
no range has the same entry in both. Predicates end at boundaries only, and both ends are codes or
both are labels. So an interval meets a range if neither begins after the other's end.

A plain conjunction has one predicate for each attribute, so each predicate can be tested
separately. In a program, several predicates may share an attribute, and one value must do for all
of them. Then the program is tested at each point of the range where one of them begins to be true.
The caller has checked with ``find_hardest`` that these points are few.

Since a plain conjunction has one interval set for each attribute, no range meets
``a < 3 AND a > 7``. For the same reason, a predicate that an absent value meets is no negation. So
5 to 6 meets ``NOT (a <=> 5)``, as it meets ``a <> 5``. Testing each predicate of a program
separately would make matches depend on the budget of the kind.
"""

from typing import NamedTuple

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import (
    ACCEPT,
    ATTR_MASK,
    CANDIDATES,
    CONJUNCTIONS,
    FLAG_NONE,
    FLAG_RUN,
    I64,
    PREDICATES,
    U8,
    U32,
    U64,
    Predicates,
    Rows,
    Sink,
    Table,
    Written,
)
from colmatch.kernels.predicates import Event, clear, conditions_of, flagged_holds, spread
from colmatch.kernels.sink import FILL, emit, is_decided, is_deleted, stops

ROW_BLOCK = 64
CONJ_BLOCK = 1024

MOST_POINTS = 4096  # combinations of points at which a program is tested, for one event
# Ranges with several points: each has at least 3, and 3^8 is above MOST_POINTS.
MOST_RANGES = 8


class Meeting(NamedTuple):
    """Working memory of one thread for A attributes. Arrays (A) are zero between calls."""

    low: U32  # (A) table of the lower ends
    high: U32  # (A) table of the upper ends
    seen: U32  # (A)
    many: Table[U32]  # (MOST_RANGES, 3) range that several predicates of a program share: attribute, ends


@device
def first_from(run_hi, begin, end, low):
    """Returns the first of the ascending intervals ``begin:end`` that ends at ``low`` or above."""
    while begin < end:
        middle = (begin + end) >> 1
        if run_hi[middle] < low:
            begin = middle + 1
        else:
            end = middle
    return begin


@device
def flagged_meets(conds, p, event, high):
    """Returns whether a predicate with any flags can be true.

    With FLAG_NONE it can, unless one interval covers the whole range: intervals of a predicate do
    not touch. The event's table has the lower ends.
    """
    word = conds.pred[p, 0]
    a = word & ATTR_MASK
    bottom, top = event.table[a], high[a]
    if bottom == top:  # a point, nothing, or the place of several entries
        return flagged_holds(conds, p, bottom, event)
    # Find the interval to compare with the range
    lo, hi = conds.pred[p, 1], conds.pred[p, 2]
    if word & FLAG_RUN:
        i = first_from(conds.run_hi, np.int64(lo), np.int64(hi), bottom)
        if i == np.int64(hi):
            return word & FLAG_NONE != 0
        lo, hi = conds.run_lo[i], conds.run_hi[i]
    if word & FLAG_NONE:
        return lo > bottom or top > hi
    return lo <= top and bottom <= hi


@device
def plain_meets(conds, c, event, high):
    """Returns whether a conjunction that is no program can be true, and how many predicates it
    tested.
    """
    pred, low, first, last = conds.pred, event.table, conds.first[c], conds.first[c + 1]
    p = first
    meets = True
    while meets and p < last:
        word = pred[p, 0]
        if word <= ATTR_MASK:
            meets = pred[p, 1] <= high[word] and low[word] <= pred[p, 2]
        else:
            meets = flagged_meets(conds, p, event, high)
        p += 1
    return meets, p - first


@device
def _accepts(conds, c, event, high):
    """Follows a program's jumps as if ranges were independent. Returns like ``plain_meets``."""
    first, at_jump = conds.first[c], conds.jump_first[c]
    at, steps = np.int64(0), np.int64(0)
    while at >= 0:
        steps += 1
        meets = flagged_meets(conds, first + at, event, high)
        at = np.int64(conds.jump[at_jump + at, 0 if meets else 1])
    return at == ACCEPT, steps


@device
def _next_point(conds, c, a, after, most):
    """Returns the next code of an attribute, above ``after``, where a predicate of ``c`` begins to
    be true.

    The code is at most ``most``, or 0 where there is none.
    """
    pred, run_lo, run_hi = conds.pred, conds.run_lo, conds.run_hi
    code = np.int64(0)
    for p in range(conds.first[c], conds.first[c + 1]):
        word = pred[p, 0]
        if word & ATTR_MASK != a:
            continue
        # Keep the lowest point where one of the predicate's intervals begins
        begin, end = np.int64(0), np.int64(1)
        if word & FLAG_RUN:
            begin, end = np.int64(pred[p, 1]), np.int64(pred[p, 2])
        for i in range(begin, end):
            lo, hi = np.int64(pred[p, 1]), np.int64(pred[p, 2])
            if word & FLAG_RUN:
                lo, hi = np.int64(run_lo[i]), np.int64(run_hi[i])
            point = hi + 1 if word & FLAG_NONE else lo
            if after < point and point <= most and (code == 0 or point < code):
                code = point
    return code


@device
def begin_points(conds, c, meeting):
    """Sets each range that several predicates of a program share to its lower end.

    Returns the number of these ranges. ``end_points`` restores them.
    """
    low, high, seen, many = meeting.low, meeting.high, meeting.seen, meeting.many
    first, last, pred = conds.first[c], conds.first[c + 1], conds.pred
    n = 0
    # Find the ranges, and keep their ends
    for p in range(first, last):
        a = pred[p, 0] & ATTR_MASK
        if low[a] != high[a]:
            seen[a] += 1
            if seen[a] == 2:
                many[n, 0], many[n, 1], many[n, 2] = a, low[a], high[a]
                n += 1
    # Reset the counts, and set the ranges
    for p in range(first, last):
        seen[pred[p, 0] & ATTR_MASK] = 0
    for k in range(n):
        high[many[k, 0]] = many[k, 1]
    return n


@device
def next_points(conds, c, n, meeting):
    """Sets ``n`` ranges to their next combination of points. Returns whether there is one.

    Combinations are counted up like digits: a range at its last point starts again from its first.
    """
    low, high, many = meeting.low, meeting.high, meeting.many
    for k in range(n):
        a = many[k, 0]
        point = _next_point(conds, c, a, np.int64(low[a]), np.int64(many[k, 2]))
        if point != 0:
            low[a] = high[a] = point
            return True
        low[a] = high[a] = many[k, 1]
    return False


@device
def end_points(n, meeting):
    """Restores ``n`` ranges."""
    low, high, many = meeting.low, meeting.high, meeting.many
    for k in range(n):
        low[many[k, 0]], high[many[k, 0]] = many[k, 1], many[k, 2]


@device
def program_meets(conds, c, event, meeting):
    """Returns whether a program can be true, and how many predicates were tested."""
    n = begin_points(conds, c, meeting)
    meets, steps = _accepts(conds, c, event, meeting.high)
    while not meets and next_points(conds, c, n, meeting):
        meets, taken = _accepts(conds, c, event, meeting.high)
        steps += taken
    end_points(n, meeting)
    return meets, steps


@device
def spread_ends(low, high, row, multi, meeting):
    """Enters a row into both tables. Returns the event with the table of the lower ends."""
    spread(high, row, multi, meeting.high)
    return spread(low, row, multi, meeting.low)


@device
def clear_ends(event, meeting):
    """Removes an event from both tables."""
    clear(event)
    clear(Event(event.attr, event.code, event.begin, event.end, meeting.high))


@device
def conjunction_meets(conds, c, event, meeting):
    """Returns whether a conjunction can be true, and how many predicates were tested."""
    if len(conds.jump_first) > 0 and conds.jump_first[c] >= 0:
        return program_meets(conds, c, event, meeting)
    return plain_meets(conds, c, event, meeting.high)


@kernel
def meet_all(
    multi: U8,
    preds: Predicates,
    low: Written[Rows],
    high: Written[Rows],
    start: int,
    stop: int,
    meeting: Written[Meeting],
    sink: Written[Sink],
    counters: Written[I64],
) -> int:
    """Matches rows ``start:stop`` with every conjunction, for any kind of index.

    Returns the first row not finished: ``stop``, unless the sink became full. A subscription is
    written once for each of its conjunctions that match.

    multi : (A) uint8
    low, high : ``layout.Rows`` of the lower and the upper ends, which differ in ``code`` only
    """
    conds, owner = conditions_of(preds), preds.owner
    block = start
    while block < stop:
        fill = sink.state[FILL]
        block_end = min(block + ROW_BLOCK, stop)
        for c in range(0, len(owner), CONJ_BLOCK):
            c_end = min(c + CONJ_BLOCK, len(owner))
            for row in range(block, block_end):
                # Test a block of conjunctions with one row
                if is_decided(sink, row):
                    continue
                event = spread_ends(low, high, row, multi, meeting)
                steps = np.int64(0)
                fits = True
                for d in range(c, c_end):
                    meets, taken = conjunction_meets(conds, d, event, meeting)
                    steps += taken
                    if meets and not emit(sink, row, owner[d], counters):
                        fits = False
                        break
                # Count, and roll back where the sink is full
                clear_ends(event, meeting)
                counters[CONJUNCTIONS] += c_end - c
                counters[CANDIDATES] += c_end - c
                counters[PREDICATES] += steps
                if not fits and stops(sink, fill, counters):
                    return block
        block = block_end
    return stop


@kernel
def find_hardest(
    preds: Predicates, is_range: U8, deleted_bits: U64, base: int, points: Written[I64], attribute: Written[I64]
) -> int:
    """Finds a program that would have to be tested at more than ``MOST_POINTS`` points.

    Returns its conjunction, or -1.

    is_range : (A) uint8
    deleted_bits, base : bits of deleted subscriptions, which are passed over, and the number of the
        first subscription
    points : (A) int64, zeros on entry and return
    attribute : (1) int64, written, an attribute that the program has several predicates on
    """
    first, pred = preds.first, preds.pred
    for c in range(len(preds.jump_first)):
        # Skip plain conjunctions and deleted subscriptions
        if preds.jump_first[c] < 0 or is_deleted(deleted_bits, np.uint64(base + preds.owner[c])):
            continue
        # Multiply the points of all ranges with several predicates
        total = np.int64(1)
        for pass_on in range(2):  # in the first pass intervals are counted, in the second multiplied
            for p in range(first[c], first[c + 1]):
                word = pred[p, 0]
                a = word & ATTR_MASK
                if not is_range[a]:
                    continue
                own = np.int64(pred[p, 2]) - np.int64(pred[p, 1]) if word & FLAG_RUN else np.int64(1)
                if pass_on == 0:
                    points[a] += own << 32 | 1  # intervals in the upper half, predicates in the lower
                elif points[a] != 0:
                    if points[a] & 0xFFFFFFFF > 1:
                        total = min(total * ((points[a] >> 32) + 1), np.int64(MOST_POINTS) + 1)
                        attribute[0] = a
                    points[a] = 0
        if total > MOST_POINTS:
            return c
    return -1
