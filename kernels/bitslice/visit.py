"""bitslice: what the masks of postings leave, and what becomes of it."""

from typing import Any

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.bits import ask_for, ctz, half_within_kth, popcount, within, within_kth, without_lowest
from colmatch.kernels.bitslice.tiles import ALL, LAST, MORE, OUTSIDE, STEP, VAGUE, WORD
from colmatch.kernels.layout import ACCEPT, ATTR_MASK, CANDIDATES, FLAG_RUN, PREDICATES
from colmatch.kernels.predicates import clear, flagged_holds, program_accepts, spread

SEGMENTS_AHEAD = 6  # segments of rows whose postings are on their way from memory
STRETCH = 32  # postings of a segment that are asked for at once
AHEAD = 32  # candidates whose predicates are on their way from memory

# The high bits of ``BitsliceIndex.who``.
VERIFY = 1 << 31  # masks are a superset: verify
PROGRAM = 1 << 30
CONJ_MASK = (1 << 30) - 1


@device
def visit(head, tile, stride, segment, bits, s, segments, most, survivor, place, mask, n):
    """Postings of the segments ``s:segments`` with rows left after three predicates -> survivor,
    place, mask, from n on.

    Ends when n is ``most``, and may leave a part of a segment. Returns the next s and n, and how
    many postings were looked at.
    """
    looked = np.uint64(0)
    while s < segments and n < most:
        begin, end = np.uint64(segment[s, 0]), np.uint64(segment[s, 1])
        at, rows = np.uint64(segment[s, 2]), bits[s]
        stop = min(end, begin + most)
        if rows >> np.uint64(32) == 0:
            for i in range(begin, stop):
                j = i << np.uint64(3)
                left = rows & half_within_kth(tile, head[j] * stride + at, head, j + np.uint64(1))
                left &= half_within_kth(tile, head[j + np.uint64(2)] * stride + at, head, j + np.uint64(3))
                left &= half_within_kth(tile, head[j + np.uint64(4)] * stride + at, head, j + np.uint64(5))
                survivor[n] = i
                place[n] = at
                mask[n] = left
                n += np.uint64(left != 0)
        else:
            for i in range(begin, stop):
                j = i << np.uint64(3)
                left = rows & within_kth(tile, head[j] * stride + at, head, j + np.uint64(1))
                left &= within_kth(tile, head[j + np.uint64(2)] * stride + at, head, j + np.uint64(3))
                left &= within_kth(tile, head[j + np.uint64(4)] * stride + at, head, j + np.uint64(5))
                survivor[n] = i
                place[n] = at
                mask[n] = left
                n += np.uint64(left != 0)
        looked += stop - begin
        segment[s, 0] = stop
        s += np.uint64(stop == end)
    return s, n, looked


@device
def visit_active(head, tile, stride, active, active_from, active_to, k, count, most, survivor, place, mask, n):
    """Active postings from ``k`` on with rows left, as ``visit`` has them.

    The access predicate of one holds from one position of the tile to another. Ends after all
    ``count``, or when n is ``most``. Returns the next k and n, and how many words were looked at.
    """
    words = np.uint64(0)
    while k < count and n < most:
        i = np.uint64(active[k])
        high = np.uint64(active_to[k])
        j = i << np.uint64(3)
        first, second, third = head[j] * stride, head[j + np.uint64(2)] * stride, head[j + np.uint64(4)] * stride
        first_bounds, second_bounds, third_bounds = (
            head[j + np.uint64(1)],
            head[j + np.uint64(3)],
            head[j + np.uint64(5)],
        )
        for at in range(np.uint64(active_from[k]), high, np.uint64(WORD)):
            left = within(tile, first + at, first_bounds) & within(tile, second + at, second_bounds)
            left &= within(tile, third + at, third_bounds)
            left &= ALL >> (np.uint64(WORD) - min(high - at, np.uint64(WORD)))
            survivor[n] = i
            place[n] = at
            mask[n] = left
            n += np.uint64(left != 0)
            words += np.uint64(1)
        k += np.uint64(1)
    return k, n, words


@device
def lies_within(tile, at, bounds):
    """``within`` for one row."""
    return (np.int64(tile[at]) - np.int64(bounds & np.uint16(255))) & 255 <= np.int64(bounds >> np.uint16(8))


@device
def visit_row(head, hi, tile, segment, s, segments, last, most, survivor, place, mask, n):
    """Postings for a tile of one row, as ``visit`` has them: those whose access interval reaches up
    to the segment's code, unless that is 0.

    last : the last segment of all rows, up to which postings are asked for ahead
    """
    looked = np.uint64(0)
    while s < segments and n < most:
        soon = min(s + np.uint64(SEGMENTS_AHEAD), last)
        for i in range(
            np.uint64(segment[soon, 0]), np.uint64(min(segment[soon, 0] + STRETCH, segment[soon, 1])), np.uint64(4)
        ):
            ask_for(head, i << np.uint64(3))
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
                survivor[n] = i
                place[n] = 0
                mask[n] = 1
                n += np.uint64(holds)
        looked += stop - begin
        segment[s, 0] = stop
        s += np.uint64(stop == end)
    return s, n, looked


@device
def refine(head, rest, rest_op, who, tile, stride, survivor, place, mask, n):
    """Survivors -> those with rows left after all their masks, in place."""
    for s in range(n):
        r = rest_of(head, survivor[s])
        ask_for(rest, r + r)
        ask_for(rest_op, r)
        ask_for(who, np.uint64(survivor[s]))
    kept = np.uint64(0)
    for s in range(n):
        i = survivor[s]
        left = mask[s]
        at = np.uint64(place[s])
        r = rest_of(head, i)
        more = r > 0 and not rest_op[r] & STEP
        while more and left != 0:
            op = rest_op[r]
            holds = within_kth(tile, rest[r + r] * stride + at, rest, r + r + np.uint64(1))
            while op & MORE:
                r += np.uint64(1)
                op = rest_op[r]
                holds |= within_kth(tile, rest[r + r] * stride + at, rest, r + r + np.uint64(1))
            if op & OUTSIDE:
                holds = ~holds
            left &= holds
            r += np.uint64(1)
            more = not op & LAST
        survivor[kept] = i
        place[kept] = at
        mask[kept] = left
        kept += np.uint64(left != 0)
    return kept


@device
def rest_of(head, i):
    """First of the posting's entries in ``rest``, 0 if it has none."""
    j = np.uint64(i) << np.uint64(3)
    return np.uint64(head[j + np.uint64(6)]) | np.uint64(head[j + np.uint64(7)]) << np.uint64(16)


@device
def run_program(head, rest, rest_op, tile, stride, at, jump, at_jump, i, left, target):
    """Rows of ``left`` that a program may accept: each predicate hands its rows on, those where it
    holds and those where it does not.

    Jumps lead forward only, so one pass does it. target (longest program) is zero between calls.
    """
    accepted = np.uint64(0)
    target[0] = left
    p = np.int64(0)
    r = rest_of(head, i)
    more = True
    while more:
        rows = target[p]
        target[p] = np.uint64(0)
        op = rest_op[r]
        holds = within_kth(tile, rest[r + r] * stride + at, rest, r + r + np.uint64(1))
        while op & MORE:
            r += np.uint64(1)
            op = rest_op[r]
            holds |= within_kth(tile, rest[r + r] * stride + at, rest, r + r + np.uint64(1))
        r += np.uint64(1)
        fails = ~holds
        if op & VAGUE:
            fails = ALL
        if op & OUTSIDE:
            holds, fails = fails, holds
        for side in range(2):
            to = jump[at_jump + p, side]
            part = rows & (holds if side == 0 else fails)
            if to >= 0:
                target[to] |= part
            elif to == ACCEPT:
                accepted |= part
        p += 1
        more = not op & LAST
    return accepted


@device
def put(owner, jump_first, jump, who, head, rest, rest_op, tile, stride, order, base, start, survivor, place, mask, n, target,
        sink_row, sink_sub, hits, wanted, fill, candidate_row, candidate_conj, noted):  # fmt: skip
    """Write the rows that are left as matches, or as candidates where masks do not decide.

    Returns how many there are now of both.

    order[base + position] is a row. Matches are counted on when the sink is full, so that the
    caller learns how large it must be. Those of each row are counted here only if they are not
    written.
    """
    room = np.uint64(len(sink_sub) if wanted else 0)
    first_row = np.uint32(start)
    for s in range(n):
        left = mask[s]
        word = np.int64(who[survivor[s]])
        conj = word & CONJ_MASK
        sub: Any = conj
        at = np.uint64(place[s])
        if word & PROGRAM:
            left = run_program(head, rest, rest_op, tile, stride, at, jump, jump_first[conj], survivor[s], left, target)
            sub = np.int64(owner[conj])
        at += np.uint64(base)
        if word & VERIFY:
            while left != 0:
                candidate_row[noted] = order[at + ctz(left)]
                candidate_conj[noted] = conj
                noted += 1
                left = without_lowest(left)
        else:
            if fill + np.uint64(64) <= room:
                # Four at once, however many there are: where a loop over few bits ends cannot be
                # foretold.
                end = fill + popcount(left)
                while left != 0:
                    for k in range(np.uint64(4)):
                        sink_row[fill + k] = first_row + order[at + (ctz(left) & np.uint64(63))]
                        sink_sub[fill + k] = sub
                        left = without_lowest(left)
                    fill += np.uint64(4)
                fill = end
            else:
                while left != 0:
                    if fill < room:
                        sink_row[fill] = first_row + order[at + ctz(left)]
                        sink_sub[fill] = sub
                    elif not wanted:
                        hits[np.uint64(first_row + order[at + ctz(left)])] += 1
                    fill += np.uint64(1)
                    left = without_lowest(left)
    return fill, noted


@device
def verify(first, pred, run_lo, run_hi, owner, jump_first, jump, row_first, row_attr, row_code, multi, start, count,
           candidate_row, candidate_conj, noted, place, ordered, table, sink_row, sink_sub, hits, wanted, fill,
           counters):  # fmt: skip
    """Candidates -> matches: ordered by row, so that a row is spread into the table once.

    Returns the number of matches so far.

    What they need from memory is asked for some candidates ahead.
    """
    for r in range(count + 1):
        place[r] = 0
    for k in range(noted):
        place[np.int64(candidate_row[k]) + 1] += 1
    for r in range(count):
        place[r + 1] += place[r]
    for k in range(noted):
        at_row = np.int64(candidate_row[k])
        ordered[place[at_row]] = candidate_conj[k]
        place[at_row] += 1
    room = np.uint64(len(sink_sub) if wanted else 0)
    steps = 0
    r = -1
    row = start
    end = np.uint64(0)  # place[r] has become the end of row r
    last = np.uint64(noted - 1)
    for k in range(np.uint64(noted)):
        ask_for(first, np.uint64(ordered[min(k + np.uint64(2 * AHEAD), last)]))
        soon = np.uint64(ordered[min(k + np.uint64(AHEAD), last)])
        ask_for(owner, soon)
        for part in range(np.uint64(4)):  # of 64 bytes
            ask_for(pred, np.uint64(3 * first[soon]) + np.uint64(16) * part)
        if len(run_lo) > 0:
            sooner = np.uint64(ordered[min(k + np.uint64(AHEAD // 2), last)])
            for p in range(np.uint64(first[sooner]), np.uint64(first[sooner + np.uint64(1)])):
                if pred[p, 0] & np.uint32(FLAG_RUN):
                    ask_for(run_lo, np.uint64(pred[p, 1]))
                    ask_for(run_hi, np.uint64(pred[p, 1]))
        if k == end:
            if r >= 0:
                clear(row_first, row_attr, row, table)
            while k == end:
                r += 1
                end = np.uint64(place[r])
            row = start + r
            spread(row_first, row_attr, row_code, row, multi, table)
        c = np.int64(ordered[k])
        if len(jump_first) > 0 and jump_first[c] >= 0:
            holds, taken = program_accepts(
                pred,
                run_lo,
                run_hi,
                jump,
                jump_first[c],
                first[c],
                row_attr,
                row_code,
                row_first[row],
                row_first[row + 1],
                table,
            )
            steps += taken
        else:
            holds = True
            p = first[c]
            while holds and p < first[c + 1]:
                word = pred[p, 0]
                if word <= ATTR_MASK:
                    v = table[word]
                    holds = pred[p, 1] <= v and v <= pred[p, 2]
                else:
                    holds = flagged_holds(
                        pred, run_lo, run_hi, p, row_attr, row_code, row_first[row], row_first[row + 1], table
                    )
                p += 1
            steps += p - first[c]
        if holds:
            if fill < room:
                sink_row[fill] = row
                sink_sub[fill] = owner[c]
            elif not wanted:
                hits[row] += 1
            fill += np.uint64(1)
    if r >= 0:
        clear(row_first, row_attr, row, table)
    counters[PREDICATES] += steps
    counters[CANDIDATES] += noted
    return fill
