"""bitslice: survivors of the masks become matches, at once or after verification."""

from typing import Any

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.bits import ask_for, ctz, popcount, without_lowest
from colmatch.kernels.kinds.bitslice.arrays import CONJ_MASK, FOUND, NOTED, PROGRAM, VERIFY
from colmatch.kernels.layout import CANDIDATES, FLAG_RUN, PREDICATES
from colmatch.kernels.predicates import Event, clear, conditions_of, conjunction_holds, spread
from colmatch.kernels.ranges import begin_ranges
from colmatch.kernels.sink import BASE, PAIRS, WANTED, is_deleted

CANDIDATES_AHEAD = 32  # distance, in candidates, at which their predicates are prefetched


@device
def put(who, owner, order, base, start, survivors, n, sink, candidates, progress):
    """Writes the rows left as matches, or as candidates if masks do not decide.

    order[base + position] is a row, counted from ``start``. Counting goes on after the sink is
    full, so that the caller learns the size it needs. Matches of each row are counted here only if
    they are not written.
    """
    posting, place, mask = survivors.posting, survivors.place, survivors.mask
    sink_row, sink_sub, hits, wanted = sink.row, sink.sub, sink.hits, sink.state[WANTED] == PAIRS
    deleted_bits, number = sink.deleted_bits, np.uint64(sink.state[BASE])
    candidate_row, candidate_conj = candidates.row, candidates.conj
    fill, noted = np.uint64(progress[FOUND]), progress[NOTED]
    room = np.uint64(len(sink_sub) if wanted else 0)
    first_row = np.uint32(start)
    for s in range(n):
        left = mask[s]
        word = np.int64(who[posting[s]])
        conj = word & CONJ_MASK
        at = np.uint64(place[s]) + np.uint64(base)
        # Note candidates
        if word & VERIFY:
            if len(deleted_bits) > 0 and is_deleted(deleted_bits, np.uint64(owner[conj]) + number):
                continue
            while left != 0:
                candidate_row[noted] = order[at + ctz(left)]
                candidate_conj[noted] = conj
                noted += 1
                left = without_lowest(left)
            continue
        # Write or count matches
        sub: Any = conj
        if word & PROGRAM:
            sub = np.int64(owner[conj])
        sub = np.uint64(sub) + number
        if is_deleted(deleted_bits, sub):
            continue
        # Write or count four at once, however many are left: the end of a loop over few bits cannot
        # be predicted.
        end = fill + popcount(left)
        if not wanted:
            while left != 0:
                for _ in range(4):
                    hits[np.uint64(first_row + order[at + (ctz(left) & np.uint64(63))])] += np.int64(left != 0)
                    left = without_lowest(left)
        elif fill + np.uint64(64) <= room:
            while left != 0:
                for k in range(np.uint64(4)):
                    sink_row[fill + k] = first_row + order[at + (ctz(left) & np.uint64(63))]
                    sink_sub[fill + k] = sub
                    left = without_lowest(left)
                fill += np.uint64(4)
        else:
            while left != 0 and fill < room:
                sink_row[fill] = first_row + order[at + ctz(left)]
                sink_sub[fill] = sub
                fill += np.uint64(1)
                left = without_lowest(left)
        fill = end
    progress[FOUND], progress[NOTED] = fill, noted


@device
def order_candidates(candidates, noted, count, first, ordered):
    """Writes the conjunctions of candidates by row.

    first (count + 1) : row -> end of its conjunctions, written
    """
    row, conj = candidates.row, candidates.conj
    for r in range(count + 1):
        first[r] = 0
    for k in range(noted):
        first[np.int64(row[k]) + 1] += 1
    begin_ranges(first, count)
    for k in range(noted):
        at_row = np.int64(row[k])
        ordered[first[at_row]] = conj[k]
        first[at_row] += 1


@device
def verify(preds, rows, multi, start, count, scratch, sink, progress, counters):
    """Turns candidates into matches, ordered by row: each row is spread into the table once.

    Data of later candidates is prefetched.
    """
    first, pred, run_lo, run_hi, owner = preds.first, preds.pred, preds.run_lo, preds.run_hi, preds.owner
    sink_row, sink_sub, hits, wanted = sink.row, sink.sub, sink.hits, sink.state[WANTED] == PAIRS
    deleted_bits, number = sink.deleted_bits, np.uint64(sink.state[BASE])
    row_end, ordered, table = scratch.order, scratch.ordered, scratch.values
    fill, noted = np.uint64(progress[FOUND]), progress[NOTED]
    order_candidates(scratch.candidates, noted, count, row_end, ordered)
    room = np.uint64(len(sink_sub) if wanted else 0)
    steps = 0
    r, row, conds = -1, start, conditions_of(preds)
    event = Event(rows.attr, rows.code, np.int64(0), np.int64(0), table)
    end = np.uint64(0)
    last = np.uint64(noted - 1)
    for k in range(np.uint64(noted)):
        # Prefetch data of later candidates
        ask_for(first, np.uint64(ordered[min(k + np.uint64(2 * CANDIDATES_AHEAD), last)]))
        soon = np.uint64(ordered[min(k + np.uint64(CANDIDATES_AHEAD), last)])
        ask_for(owner, soon)
        for part in range(np.uint64(4)):  # of 64 bytes
            ask_for(pred, np.uint64(3 * first[soon]) + np.uint64(16) * part)
        if len(run_lo) > 0:
            sooner = np.uint64(ordered[min(k + np.uint64(CANDIDATES_AHEAD // 2), last)])
            for p in range(np.uint64(first[sooner]), np.uint64(first[sooner + np.uint64(1)])):
                if pred[p, 0] & np.uint32(FLAG_RUN):
                    ask_for(run_lo, np.uint64(pred[p, 1]))
                    ask_for(run_hi, np.uint64(pred[p, 1]))
        # Spread the next row
        if k == end:
            if r >= 0:
                clear(event)
            while k == end:
                r += 1
                end = np.uint64(row_end[r])
            row = start + r
            event = spread(rows, row, multi, table)
        # Evaluate the conjunction, and write or count the match
        c = np.int64(ordered[k])
        holds, taken = conjunction_holds(conds, c, event)
        steps += taken
        sub = np.uint64(owner[c]) + number
        if holds and not is_deleted(deleted_bits, sub):
            if fill < room:
                sink_row[fill] = row
                sink_sub[fill] = sub
            elif not wanted:
                hits[row] += 1
            fill += np.uint64(1)
    if r >= 0:
        clear(event)
    progress[FOUND], progress[NOTED] = fill, 0
    counters[PREDICATES] += steps
    counters[CANDIDATES] += noted
