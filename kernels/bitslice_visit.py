"""bitslice, step by step: which postings a word of 64 rows meets, what their masks leave, and what becomes of it."""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.bits import ctz
from colmatch.kernels.columns import first_at_least, first_at_least_from
from colmatch.kernels.layout import ACCEPT, ATTR_MASK, CANDIDATES, PREDICATES
from colmatch.kernels.masks import ALL, LAST, MORE, OUTSIDE, STEP, VAGUE
from colmatch.kernels.predicates import clear, flagged_holds, program_accepts, spread

# The high bits of ``BitsliceIndex.conj``.
STRETCH = 512  # candidates whose predicates are asked for together

VERIFY = 1 << 31  # masks are a superset: verify
REPEATS = 1 << 30  # the same subscription may be found twice for a row
PROGRAM = 1 << 29
CONJ_MASK = (1 << 29) - 1


@device
def visit(head, table, begin, end, rows, survivor, mask, n):
    """Postings ``begin:end`` with some of ``rows`` left after two predicates -> survivor, mask, from place n. Returns the next place."""
    for i in range(begin, end):
        j = i << np.uint64(3)
        left = rows & table[head[j]] & ~table[head[j + np.uint64(1)]] & table[head[j + np.uint64(2)]] & ~table[head[j + np.uint64(3)]]
        survivor[n] = i
        mask[n] = left
        n += np.uint64(left != 0)
    return n


@device
def visit_reaching(head, table, hi, begin, end, code, rows, survivor, mask, n):
    """The same, for those whose access interval reaches up to ``code``."""
    for i in range(begin, end):
        j = i << np.uint64(3)
        left = rows & table[head[j]] & ~table[head[j + np.uint64(1)]] & table[head[j + np.uint64(2)]] & ~table[head[j + np.uint64(3)]]
        survivor[n] = i
        mask[n] = left
        n += np.uint64((left != 0) & (hi[i] >= code))
    return n


@device
def visit_active(head, table, active, start, stop, begin, end, at, kept, survivor, mask, n):
    """The same, for active postings: the access predicate of one holds at positions ``start:stop``, the word begins at ``at``.

    Those that go on after this word are moved to place ``kept`` and on. Returns the next places of both.
    """
    word_end = at + 64
    for k in range(begin, end):
        i = active[k]
        low, high = np.int64(start[k]), np.int64(stop[k])
        rows = (ALL << np.uint64(max(low - at, 0))) & (ALL >> np.uint64(64 - min(high - at, 64)))
        j = np.uint64(i) << np.uint64(3)
        left = rows & table[head[j]] & ~table[head[j + np.uint64(1)]] & table[head[j + np.uint64(2)]] & ~table[head[j + np.uint64(3)]]
        survivor[n] = i
        mask[n] = left
        n += np.uint64(left != 0)
        active[kept] = i
        start[kept] = low
        stop[kept] = high
        kept += np.uint64(high > word_end)
    return n, kept


@device
def refine(head, rest, rest_op, table, survivor, mask, ahead, n):
    """Survivors -> those with rows left after all their masks, in place. After a third one first, without a branch."""
    kept = np.uint64(0)
    for s in range(n):
        i = survivor[s]
        j = np.uint64(i) << np.uint64(3)
        left = mask[s] & table[head[j + np.uint64(4)]] & ~table[head[j + np.uint64(5)]]
        survivor[kept] = i
        mask[kept] = left
        kept += np.uint64(left != 0)
    n = kept
    for s in range(n):  # independent loads wait for memory together, those of the next loop would one after the other
        r = rest_of(head, survivor[s])
        ahead[s] = rest_op[r] + rest[r + r]
    kept = np.uint64(0)
    for s in range(n):
        i = survivor[s]
        left = mask[s]
        r = rest_of(head, i)
        more = r > 0 and not rest_op[r] & STEP
        while more and left != 0:
            op = rest_op[r]
            holds = table[rest[r + r]] & ~table[rest[r + r + np.uint64(1)]]
            while op & MORE:
                r += np.uint64(1)
                op = rest_op[r]
                holds |= table[rest[r + r]] & ~table[rest[r + r + np.uint64(1)]]
            if op & OUTSIDE:
                holds = ~holds
            left &= holds
            r += np.uint64(1)
            more = not op & LAST
        survivor[kept] = i
        mask[kept] = left
        kept += np.uint64(left != 0)
    return kept


@device
def rest_of(head, i):
    """First of the posting's entries in ``rest``, 0 if it has none."""
    j = np.uint64(i) << np.uint64(3)
    return np.uint64(head[j + np.uint64(6)]) | np.uint64(head[j + np.uint64(7)]) << np.uint64(16)


@device
def run_program(head, rest, rest_op, table, jump, at_jump, i, left, target):
    """Rows of ``left`` that a program may accept: each predicate hands its rows on, those where it holds and those where it does not.

    Jumps lead forward only, so one pass does it. target (longest program) is zero between calls.
    """
    accepted = np.uint64(0)
    target[0] = left
    p = np.int64(0)
    r = np.int64(rest_of(head, i))
    more = True
    while more:
        rows = target[p]
        target[p] = np.uint64(0)
        op = rest_op[r]
        holds = table[rest[2 * r]] & ~table[rest[2 * r + 1]]
        while op & MORE:
            r += 1
            op = rest_op[r]
            holds |= table[rest[2 * r]] & ~table[rest[2 * r + 1]]
        r += 1
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
def admit(lo, hi, i, end, last, code, at, code_end, place, tabled, active, start, stop, count):
    """Postings from ``i`` on that begin at code ``last`` or before become active, unless no row lies in them.

    place : see ``place_codes``, if ``tabled``; else their positions are searched for in ``code[at:code_end]``. Returns the next posting and
    the number of active ones.
    """
    while i < end and lo[i] <= last:
        if tabled:
            low, high = place[np.int64(lo[i])], place[np.int64(hi[i]) + 1]
        else:
            low = first_at_least(code, at, code_end, np.int64(lo[i]))
            high = first_at_least_from(code, low, code_end, np.int64(hi[i]) + 1)
        active[count] = i
        start[count] = low
        stop[count] = high
        count += high > low
        i += 1
    return i, count


@device
def segments_of_column(attr_group, group_first, reach, lo, a, code, at, word_end, upcoming, segment, bits):
    """Postings of the groups of equal codes that meet a word of sorted rows: ranges of postings, with the rows that have their code."""
    n = 0
    for g in range(attr_group[a], attr_group[a + 1]):
        if reach[g] != 0:
            continue
        i, end = upcoming[g], group_first[g + 1]
        q = at
        while q < word_end and i < end:
            value = np.int64(code[q])
            q_end = q + 1
            while q_end < word_end and code[q_end] == value:
                q_end += 1
            i = first_at_least_from(lo, i, end, value)
            i_end = first_at_least_from(lo, i, end, value + 1)
            segment[n, 0], segment[n, 1], segment[n, 2] = i, i_end, -1
            bits[n] = (ALL << np.uint64(q - at)) & (ALL >> np.uint64(64 - (q_end - at)))
            n += i_end > i
            q = q_end
            if q < word_end:
                i = i_end
        upcoming[g] = i
    return n


@device
def segments_of_rows(attr_group, group_first, reach, lo, by_column, row_attr, row_code, e, end, bit, segment, bits, n):
    """Postings that the entries ``e:end`` of one row may meet, of columns that are not sorted. Returns the first entry for which there
    is no room, or ``end``, and the number of segments.
    """
    while e < end:
        a = np.int64(row_attr[e])
        if not by_column[a]:
            if n + attr_group[a + 1] - attr_group[a] > len(bits):
                break
            code = np.int64(row_code[e])
            for g in range(attr_group[a], attr_group[a + 1]):
                i = first_at_least(lo, group_first[g], group_first[g + 1], code - np.int64(reach[g]))
                i_end = first_at_least_from(lo, i, group_first[g + 1], code + 1)
                segment[n, 0], segment[n, 1] = i, i_end
                segment[n, 2] = -1 if reach[g] == 0 else code
                bits[n] = bit
                n += i_end > i
        e += 1
    return e, n


@device
def put(owner, jump_first, jump, index_conj, head, rest, rest_op, table, order, at, start, survivor, mask, ahead, n, target,
        sink_row, sink_sub, hits, wanted, fill, candidate_row, candidate_conj, noted):  # fmt: skip
    """Write the rows that are left as matches, or as candidates where masks do not decide. Returns how many there are now of both.

    Matches are counted on when the sink is full, so that the caller learns how large it must be. Those of each row are counted here only
    if they are not written.
    """
    for s in range(n):
        survivor[s + n] = index_conj[survivor[s]]
    for s in range(n):
        ahead[s] = owner[np.int64(survivor[s + n]) & CONJ_MASK]
    room = np.uint64(len(sink_sub) if wanted else 0)
    place = np.uint64(at)
    first_row = np.uint32(start)
    for s in range(n):
        left = mask[s]
        word = np.int64(survivor[s + n])
        conj = word & CONJ_MASK
        if word & PROGRAM:
            left = run_program(head, rest, rest_op, table, jump, jump_first[conj], survivor[s], left, target)
        if word & VERIFY:
            while left != 0:
                candidate_row[noted] = order[at + np.int64(ctz(left))]
                candidate_conj[noted] = conj
                noted += 1
                left &= left - np.uint64(1)
        else:
            sub = ahead[s]
            if fill + np.uint64(64) <= room:
                while left != 0:
                    sink_row[fill] = first_row + order[place + ctz(left)]
                    sink_sub[fill] = sub
                    fill += np.uint64(1)
                    left &= left - np.uint64(1)
            else:
                while left != 0:
                    if fill < room:
                        sink_row[fill] = first_row + order[place + ctz(left)]
                        sink_sub[fill] = sub
                    elif not wanted:
                        hits[np.uint64(first_row + order[place + ctz(left)])] += 1
                    fill += np.uint64(1)
                    left &= left - np.uint64(1)
    return fill, noted


@device
def verify(first, pred, run_lo, run_hi, owner, jump_first, jump, row_first, row_attr, row_code, multi, start, count,
           candidate_row, candidate_conj, noted, place, ordered, ahead, table, sink_row, sink_sub, hits, wanted, fill,
           counters):  # fmt: skip
    """Candidates -> matches: ordered by row, so that a row is spread into the table once. Returns the number of matches so far.

    What a stretch of them needs from memory is asked for beforehand, all at once: evaluating one by one waits for each.
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
    end = 0  # place[r] has become the end of row r
    for stretch in range(0, noted, STRETCH):
        stretch_end = min(stretch + STRETCH, noted)
        for k in range(stretch, stretch_end):
            ahead[k - stretch] = first[np.int64(ordered[k])]
        for k in range(stretch, stretch_end):
            p = np.int64(ahead[k - stretch])
            if p < len(pred):
                ahead[k - stretch] = pred[p, 0] + owner[np.int64(ordered[k])]
        for k in range(stretch, stretch_end):
            if k == end:
                if r >= 0:
                    clear(row_first, row_attr, row, table)
                while k == end:
                    r += 1
                    end = place[r]
                row = start + r
                spread(row_first, row_attr, row_code, row, multi, table)
            c = np.int64(ordered[k])
            if len(jump_first) > 0 and jump_first[c] >= 0:
                holds, taken = program_accepts(
                    pred, run_lo, run_hi, jump, jump_first[c], first[c], row_attr, row_code, row_first[row], row_first[row + 1], table
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
                        holds = flagged_holds(pred, run_lo, run_hi, p, row_attr, row_code, row_first[row], row_first[row + 1], table)
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
