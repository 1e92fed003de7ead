"""bitslice: masks of postings, which leave some rows of a tile."""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.bits import ask_for, half_within_kth, within, within_kth
from colmatch.kernels.kinds.bitslice.arrays import ALL, CONJ_MASK, LAST, MORE, OUTSIDE, STEP, VAGUE, WORD
from colmatch.kernels.layout import ACCEPT

SEGMENTS_AHEAD = 6  # distance, in segments of rows, at which their postings are prefetched
STRETCH = 32  # postings of a segment that are prefetched at once


@device
def visit(head, tile, stride, segment, bits, s, segments, most, survivors, n):
    """Tests the postings of segments ``s:segments`` against three predicates each.

    Postings with rows left become survivors, from n on. Ends when n reaches ``most``, perhaps
    within a segment. Returns the next s and n, and the number of postings tested.
    """
    posting, place, mask = survivors.posting, survivors.place, survivors.mask
    looked = np.uint64(0)
    while s < segments and n < most:
        begin, end = np.uint64(segment[s, 0]), np.uint64(segment[s, 1])
        at, rows = np.uint64(segment[s, 2]), bits[s]
        stop = min(end, begin + most)
        if rows >> np.uint64(32) == 0:  # up to 32 rows: read half of the bytes
            for i in range(begin, stop):
                j = i << np.uint64(3)
                left = rows & half_within_kth(tile, head[j] * stride + at, head, j + np.uint64(1))
                left &= half_within_kth(tile, head[j + np.uint64(2)] * stride + at, head, j + np.uint64(3))
                left &= half_within_kth(tile, head[j + np.uint64(4)] * stride + at, head, j + np.uint64(5))
                posting[n] = i
                place[n] = at
                mask[n] = left
                n += np.uint64(left != 0)
        else:
            for i in range(begin, stop):
                j = i << np.uint64(3)
                left = rows & within_kth(tile, head[j] * stride + at, head, j + np.uint64(1))
                left &= within_kth(tile, head[j + np.uint64(2)] * stride + at, head, j + np.uint64(3))
                left &= within_kth(tile, head[j + np.uint64(4)] * stride + at, head, j + np.uint64(5))
                posting[n] = i
                place[n] = at
                mask[n] = left
                n += np.uint64(left != 0)
        looked += stop - begin
        segment[s, 0] = stop
        s += np.uint64(stop == end)
    return s, n, looked


@device
def visit_active(head, tile, stride, active, k, count, most, survivors, n):
    """Tests the active postings ``k:count``, as ``visit`` does the postings of segments.

    The access predicate of an active posting holds for a range of positions in the tile. Ends when
    n reaches ``most``. Returns the next k and n, and the number of words tested.
    """
    active_posting, begin, end = active.posting, active.begin, active.end
    posting, place, mask = survivors.posting, survivors.place, survivors.mask
    words = np.uint64(0)
    while k < count and n < most:
        i = np.uint64(active_posting[k])
        high = np.uint64(end[k])
        j = i << np.uint64(3)
        first, second, third = head[j] * stride, head[j + np.uint64(2)] * stride, head[j + np.uint64(4)] * stride
        first_bounds, second_bounds, third_bounds = (
            head[j + np.uint64(1)],
            head[j + np.uint64(3)],
            head[j + np.uint64(5)],
        )
        # Test 64 positions at once
        for at in range(np.uint64(begin[k]), high, np.uint64(WORD)):
            left = within(tile, first + at, first_bounds) & within(tile, second + at, second_bounds)
            left &= within(tile, third + at, third_bounds)
            left &= ALL >> (np.uint64(WORD) - min(high - at, np.uint64(WORD)))
            posting[n] = i
            place[n] = at
            mask[n] = left
            n += np.uint64(left != 0)
            words += np.uint64(1)
        k += np.uint64(1)
    return k, n, words


@device
def lies_within(tile, at, bounds):
    """Returns whether one row lies within bounds, as ``within`` does for 64."""
    return (np.int64(tile[at]) - np.int64(bounds & np.uint16(255))) & 255 <= np.int64(bounds >> np.uint16(8))


@device
def visit_row(head, hi, tile, segment, s, segments, last, most, survivors, n):
    """Tests postings on a tile of one row, as ``visit`` does on many.

    A survivor's access interval also reaches the segment's code, unless this code is 0.

    last : the last segment of all rows; postings up to there are prefetched
    """
    posting, place, mask = survivors.posting, survivors.place, survivors.mask
    looked = np.uint64(0)
    while s < segments and n < most:
        soon = min(s + np.uint64(SEGMENTS_AHEAD), last)
        # Prefetch the postings of a later segment
        for i in range(
            np.uint64(segment[soon, 0]), np.uint64(min(segment[soon, 0] + STRETCH, segment[soon, 1])), np.uint64(4)
        ):
            ask_for(head, i << np.uint64(3))
        # Test the postings of this segment
        begin, end, code = np.uint64(segment[s, 0]), np.uint64(segment[s, 1]), segment[s, 2]
        stop = min(end, begin + most)
        for i in range(begin, stop):
            j = i << np.uint64(3)
            ask_for(head, j + np.uint64(8 * STRETCH))
            if lies_within(tile, head[j], head[j + np.uint64(1)]):  # the row seldom has the attribute at all
                holds = lies_within(tile, head[j + np.uint64(2)], head[j + np.uint64(3)])
                holds &= lies_within(tile, head[j + np.uint64(4)], head[j + np.uint64(5)])
                if code != 0:
                    holds &= hi[i] >= code
                posting[n] = i
                place[n] = 0
                mask[n] = 1
                n += np.uint64(holds)
        looked += stop - begin
        segment[s, 0] = stop
        s += np.uint64(stop == end)
    return s, n, looked


@device
def refine(head, rest, rest_op, who, jump_first, jump, target, tile, stride, survivors, n):
    """Keeps the survivors with rows left after all their masks, and returns their number."""
    posting, place, mask = survivors.posting, survivors.place, survivors.mask
    # Prefetch the other predicates of all survivors
    for s in range(n):
        e = rest_of(head, posting[s])
        ask_for(rest, e + e)
        ask_for(rest_op, e)
        ask_for(who, np.uint64(posting[s]))
    # Test them, and keep the survivors with rows left
    kept = np.uint64(0)
    for s in range(n):
        i = posting[s]
        left = mask[s]
        at = np.uint64(place[s])
        e = rest_of(head, i)
        if e > 0 and rest_op[e] & STEP:
            at_jump = jump_first[np.int64(who[i]) & CONJ_MASK]
            left = run_program(rest, rest_op, e, tile, stride, at, jump, at_jump, left, target)
        elif e > 0:
            more = True
            while more and left != 0:
                holds, e = match_intervals(tile, stride, rest, rest_op, e, at)
                op = rest_op[e]
                if op & OUTSIDE:
                    holds = ~holds
                left &= holds
                e += np.uint64(1)
                more = not op & LAST
        posting[kept] = i
        place[kept] = at
        mask[kept] = left
        kept += np.uint64(left != 0)
    return kept


@device
def rest_of(head, i):
    """Returns the posting's first entry in ``rest``, 0 if it has none."""
    j = np.uint64(i) << np.uint64(3)
    return np.uint64(head[j + np.uint64(6)]) | np.uint64(head[j + np.uint64(7)]) << np.uint64(16)


@device
def match_intervals(tile, stride, rest, rest_op, e, at):
    """Returns the rows within any interval of a predicate, and its last entry in ``rest``.

    e : its first entry
    """
    holds = within_kth(tile, rest[e + e] * stride + at, rest, e + e + np.uint64(1))
    while rest_op[e] & MORE:
        e += np.uint64(1)
        holds |= within_kth(tile, rest[e + e] * stride + at, rest, e + e + np.uint64(1))
    return holds, e


@device
def run_program(rest, rest_op, e, tile, stride, at, jump, at_jump, left, target):
    """Returns the rows of ``left`` that a program may accept.

    Each predicate hands on the rows where it holds, and the rows where it fails. Jumps lead forward
    only, so one pass suffices. It ends when no row waits. Of a single row, most programs test few
    predicates.

    e : the program's first entry in ``rest``; at_jump : its first row in ``jump``; target (longest
    program) : zero between calls
    """
    accepted = np.uint64(0)
    target[0] = left
    p, furthest = np.int64(0), np.int64(0)
    while p <= furthest:
        # Take the rows of this predicate and test them, if there are any
        rows = target[p]
        if rows == 0:
            while rest_op[e] & MORE:
                e += np.uint64(1)
            e += np.uint64(1)
            p += 1
            continue
        target[p] = np.uint64(0)
        holds, e = match_intervals(tile, stride, rest, rest_op, e, at)
        op = rest_op[e]
        e += np.uint64(1)
        fails = ~holds
        if op & VAGUE:
            fails = ALL
        if op & OUTSIDE:
            holds, fails = fails, holds
        # Hand the rows on along both jumps
        for side in range(2):
            to = jump[at_jump + p, side]
            part = rows & (holds if side == 0 else fails)
            if part == 0:
                continue
            if to >= 0:
                target[to] |= part
                furthest = max(furthest, np.int64(to))
            elif to == ACCEPT:
                accepted |= part
        p += 1
    return accepted
