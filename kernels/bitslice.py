"""bitslice: work shared between the events of a batch, 64 to a word. Our own; no source document has it.

Every conjunction is posted under its *access predicate*, one interval of one attribute, and postings of an attribute are ordered by where
the interval begins. Where a batch has many rows with that attribute, these rows are sorted by code: the access predicate is then a range of
positions, rows outside it are never touched, and the other predicates are masks over words of 64 positions (``masks.py``).
Where it has few, the rows are taken as they come, 64 to a word, and each row's code picks the postings that it may meet.

Masks are supersets where a predicate's end lies within a bin. A posting whose masks are exact is a match as soon as a bit is left; what
others leave is verified against the predicates themselves, row by row, after the masks.
"""

from typing import Any, NamedTuple

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.bitslice_visit import (
    admit,
    put,
    refine,
    segments_of_column,
    segments_of_rows,
    verify,
    visit,
    visit_active,
    visit_reaching,
)
from colmatch.kernels.columns import place_codes, place_columns, sort_column
from colmatch.kernels.layout import CONJUNCTIONS, I64, MATCHES, NODES, U8, U16, U32, U64
from colmatch.kernels.masks import WORD, clear_table, fill_table, sets_few, slots_of_rows
from colmatch.kernels.sink import FILL, NEEDED, WANTED

BUFFER = 1024  # postings visited between two rounds of refinement
CANDIDATES_KEPT = 1 << 18  # verified at once; room for 64 rows of every survivor of a round
SEGMENTS = 4096  # at least a word's rows times the classes of width


class BitsliceIndex(NamedTuple):
    """P postings in G groups. A group has one attribute, and widths of the access interval that are alike."""

    attr_group: I64  # (A + 2) attribute -> its groups; A stands for "always": postings without an access predicate
    reach: U32  # (G) the widest interval of the group, highest minus lowest code
    group_first: I64  # (G + 1) group -> its postings
    lo: U32  # (P) access interval, as codes; ascending within a group
    hi: U32  # (P)
    conj: U32  # (P) conjunction, and flags
    head: U16  # (8 * P) slots of three predicates, high, low, high, low, high, low; and the first of ``rest``, low and high half
    rest: U16  # (2 * R) slots of the other predicates: high, low. Entry 0 belongs to postings that have none
    rest_op: U8  # (R)
    step: I64  # (K + 2) slots, see ``masks.py``: step k -> its first slot
    rank: U32  # (A) attribute -> place within a step; 2^32 - 1 for none
    cut_first: I64  # (A + 1) attribute -> its cuts
    cut: U32  # codes at which bins after the first begin
    exact: U8  # (A) 1: as many bins as codes
    multi: U8  # (A)
    top: I64  # (A + 1) number of codes
    any_repeats: U8  # (1) whether a posting has REPEATS


class BitsliceScratch(NamedTuple):
    """For a block of up to N rows with E entries."""

    slot: U16  # (E)
    column: I64  # (A + 2) attribute -> its rows; A has every row
    row: U32  # (E + N)
    code: U32  # (E + N)
    spare_row: U32  # (E)
    spare_code: U32  # (E)
    histogram: I64  # (256)
    sorted: U8  # (A + 1) columns to be sorted
    table: U64  # (slots) zero between calls
    survivor: U32  # (4 * BUFFER) and, behind them, what is read of each
    mask: U64  # (2 * BUFFER)
    ahead: U32  # (2 * BUFFER)
    active: U32  # (most postings of an attribute)
    active_from: U32  # (most postings of an attribute)
    active_to: U32  # (most postings of an attribute)
    upcoming: I64  # (G) next posting of a group
    segment: I64  # (SEGMENTS, 3) postings to visit, begin and end; the code they must reach up to, -1 if they all do
    bits: U64  # (SEGMENTS) their rows
    code_place: I64  # (most codes + 2)
    target: U64  # (longest program + 1)
    candidate_row: U32  # (CANDIDATES_KEPT)
    candidate_conj: U32  # (CANDIDATES_KEPT)
    ordered: U32  # (CANDIDATES_KEPT)
    place: I64  # (N + 1)
    values: U32  # (A) table of one row for verification, zero between calls


@device
def choose_columns(attr_group, group_first, reach, top, column, step, rows, by_column):
    """Mark the columns whose rows are worth sorting. Returns whether one is left that has rows and postings and is not marked.

    Estimates in nanoseconds: a table for each 64 rows of the column against a look-up and a look at some postings for each row.
    """
    left = False
    pairs = column[len(column) - 2] / rows
    slots = step[len(step) - 1]
    for a in range(len(column) - 1):
        by_column[a] = 0
        n = column[a + 1] - column[a]
        if n == 0 or group_first[attr_group[a]] == group_first[attr_group[a + 1]]:
            continue
        words = (n + WORD - 1) >> 6
        sorted_cost = 200.0 + 6.0 * n + 1.1 * n * pairs
        sorted_cost += 1.1 * n * pairs if sets_few(step, pairs, n) else words * (60.0 + 0.12 * slots)
        row_cost = 0.0
        for g in range(attr_group[a], attr_group[a + 1]):
            postings = float(group_first[g + 1] - group_first[g])
            share = min(1.0, (reach[g] + 1.0) / top[a])
            row_cost += n * (150.0 + 1.5 * share * postings)
            if reach[g] == 0:
                sorted_cost += 2.4 * min(postings, n * postings / top[a]) + 15.0 * min(n, top[a])
            else:
                sorted_cost += postings * (8.0 + 2.4 * (1.0 + 0.6 * share * n / WORD))
        if sorted_cost < row_cost or a == len(column) - 2:
            by_column[a] = 1
        else:
            left = True
    return left


@kernel
def match(index, preds, rows, start, stop, scratch, sink, counters):
    """Match rows ``start:stop``, all of them or none. Returns ``stop``, or ``start`` when the sink is too small."""
    group_first, reach, attr_group, lo, hi, head = index.group_first, index.reach, index.attr_group, index.lo, index.hi, index.head
    rest, rest_op, conj, step, multi = index.rest, index.rest_op, index.conj, index.step, index.multi
    row_first, row_attr, row_code = rows.first, rows.attr, rows.code
    first, pred, run_lo, run_hi, owner = preds.first, preds.pred, preds.run_lo, preds.run_hi, preds.owner
    jump_first, jump = preds.jump_first, preds.jump
    table, survivor, mask, slot, target = scratch.table, scratch.survivor, scratch.mask, scratch.slot, scratch.target
    active, active_from, active_to, upcoming = scratch.active, scratch.active_from, scratch.active_to, scratch.upcoming
    column, col_row, col_code, by_column, code_place = scratch.column, scratch.row, scratch.code, scratch.sorted, scratch.code_place
    ahead = scratch.ahead
    segment, bits, candidate_row, candidate_conj = scratch.segment, scratch.bits, scratch.candidate_row, scratch.candidate_conj
    sink_row, sink_sub, hits, wanted, fill = sink.row, sink.sub, sink.hits, sink.state[WANTED] != 0, np.uint64(sink.state[FILL])
    before = np.int64(fill)
    attributes = len(multi)
    count = stop - start
    offset = row_first[start]
    slots_of_rows(row_first, row_attr, row_code, start, stop, index.rank, step, index.cut_first, index.cut, index.exact, slot)
    place_columns(row_first, row_attr, row_code, start, stop, column, col_row, col_code)
    by_rows = choose_columns(attr_group, group_first, reach, index.top, column, step, count, by_column)
    visits = 0
    tables = 0
    noted = 0

    # Columns whose rows are sorted, the column of all rows, and that of all rows again for what the attributes not sorted bring.
    for a in range(attributes + 2):
        if a > attributes and not by_rows:
            break
        if a <= attributes and not by_column[a]:
            continue
        begin, end = column[min(a, attributes)], column[min(a, attributes) + 1]
        tabled = False
        if a < attributes:
            sort_column(col_row, col_code, begin, end, index.top[a], scratch.spare_row, scratch.spare_code, scratch.histogram)
        if a <= attributes:
            for g in range(attr_group[a], attr_group[a + 1]):
                upcoming[g] = group_first[g]
            tabled = index.top[a] <= 8 * (end - begin)
            if tabled:
                place_codes(col_code, begin, end, index.top[a], code_place)
        actives: Any = 0
        for at in range(begin, end, WORD):
            word_end = min(at + WORD, end)
            fill_table(table, step, row_first, slot, offset, start, col_row, at, word_end)
            tables += 1
            row = start + (at - begin if a > attributes else 0)  # positions of sorted columns are no rows
            e = row_first[row]
            working = True
            while working:  # once, or as often as the segments of the rows take
                segments = 0
                if a <= attributes:
                    segments = segments_of_column(attr_group, group_first, reach, lo, a, col_code, at, word_end, upcoming, segment, bits)
                    for g in range(attr_group[a], attr_group[a + 1]):
                        if reach[g] != 0:
                            upcoming[g], actives = admit(
                                lo, hi, upcoming[g], group_first[g + 1], np.int64(col_code[word_end - 1]), col_code, at, end, code_place,
                                tabled, active, active_from, active_to, actives,
                            )  # fmt: skip
                    working = False
                else:
                    while working:
                        e, segments = segments_of_rows(
                            attr_group, group_first, reach, lo, by_column, row_attr, row_code, e, row_first[row + 1],
                            np.uint64(1) << np.uint64(row - start - at + begin), segment, bits, segments,
                        )  # fmt: skip
                        if e < row_first[row + 1]:
                            break
                        row += 1
                        working = row < start + word_end - begin
                s = 0
                k = 0
                kept = np.uint64(0)
                while s < segments or k < actives:
                    n = np.uint64(0)
                    while s < segments and n < BUFFER:
                        i, i_end, code = segment[s, 0], segment[s, 1], segment[s, 2]
                        i_stop = min(i_end, i + BUFFER)
                        visits += i_stop - i
                        if code < 0:
                            n = visit(head, table, np.uint64(i), np.uint64(i_stop), bits[s], survivor, mask, n)
                        else:
                            n = visit_reaching(head, table, hi, np.uint64(i), np.uint64(i_stop), code, bits[s], survivor, mask, n)
                        segment[s, 0] = i_stop
                        s += i_stop == i_end
                    while s == segments and k < actives and n < BUFFER:
                        k_stop = min(actives, k + BUFFER)
                        visits += k_stop - k
                        n, kept = visit_active(
                            head, table, active, active_from, active_to, np.uint64(k), np.uint64(k_stop), at, kept, survivor, mask, n
                        )
                        k = k_stop
                    n = refine(head, rest, rest_op, table, survivor, mask, ahead, n)
                    fill, noted = put(
                        owner, jump_first, jump, conj, head, rest, rest_op, table, col_row, at, start, survivor, mask, ahead, n, target,
                        sink_row, sink_sub, hits, wanted, fill, candidate_row, candidate_conj, noted,
                    )  # fmt: skip
                    if noted > len(candidate_row) - WORD * len(mask):
                        fill = verify(
                            first, pred, run_lo, run_hi, owner, jump_first, jump, row_first, row_attr, row_code, multi, start, count,
                            candidate_row, candidate_conj, noted, scratch.place, scratch.ordered, ahead, scratch.values, sink_row,
                            sink_sub, hits, wanted, fill, counters,
                        )  # fmt: skip
                        noted = 0
                actives = np.int64(kept)
            clear_table(table, step, row_first, slot, offset, start, col_row, at, word_end)
    if noted > 0:
        fill = verify(
            first, pred, run_lo, run_hi, owner, jump_first, jump, row_first, row_attr, row_code, multi, start, count, candidate_row,
            candidate_conj, noted, scratch.place, scratch.ordered, ahead, scratch.values, sink_row, sink_sub, hits, wanted, fill, counters,
        )  # fmt: skip
    counters[CONJUNCTIONS] += visits
    counters[NODES] += tables
    pairs = np.int64(fill) - before
    if wanted and fill > np.uint64(len(sink_sub)):
        sink.state[NEEDED] = pairs
        return start
    if wanted:
        for i in range(np.uint64(before), fill):
            hits[np.uint64(sink_row[i])] += 1
        sink.state[FILL] = fill
    counters[MATCHES] += pairs
    return stop
