"""bitslice: work shared between the events of a batch, 64 at a time.

Our own; no source document has it.

Every conjunction is posted under its *access predicate*, one interval of one attribute, and
postings of an attribute are ordered by where the interval begins. Where a batch has many rows with
that attribute, these rows are sorted by code: the access predicate is then a range of positions,
rows outside it are never touched, and the other predicates are tested for up to 64 positions at
once (``tiles.py``). Where it has few, the rows are taken one by one, and each row's code picks the
postings that it may meet.

Masks are supersets where a predicate's end lies within a bin. A posting whose masks are exact is a
match as soon as a bit is left; what others leave is verified against the predicates themselves, row
by row, after the masks.
"""

from typing import NamedTuple

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.bitslice.postings import admit, order_segments, segments_of_column, segments_of_rows
from colmatch.kernels.bitslice.tiles import WORD, bin_entries, clear_tile, fill_tile, sets_few
from colmatch.kernels.bitslice.visit import put, refine, verify, visit, visit_active, visit_row
from colmatch.kernels.layout import CONJUNCTIONS, I64, MATCHES, NODES, U8, U16, U32, U64
from colmatch.kernels.search import first_at_least, place_codes, place_columns, sort_column
from colmatch.kernels.sink import FILL, NEEDED, WANTED

BUFFER = 1024  # postings visited between two rounds of refinement
CANDIDATES_KEPT = 1 << 18  # verified at once; room for 64 rows of every survivor of a round
SEGMENTS = 4096  # of a tile, which has no more rows, at most


class BitsliceIndex(NamedTuple):
    """P postings in G groups.

    A group has one attribute, and widths of the access interval that are alike.
    """

    attr_group: I64  # (A + 2) attribute -> its groups; A stands for "always": postings without an access predicate
    reach: U32  # (G) the widest interval of the group, highest minus lowest code
    group_first: I64  # (G + 1) group -> its postings
    # (G) lowest lo of the group; this and what follows are hints (``hints.py``) where among the
    # group's lo a code stands
    lowest: I64
    highest: I64  # (G)
    cell_first: I64  # (G + 1)
    cell_shift: I64  # (G)
    below: U32  # (H)
    lo: U32  # (P) access interval, as codes; ascending within a group
    hi: U32  # (P)
    who: U32  # (P) subscription, or where VERIFY or PROGRAM stands conjunction; and flags
    # (8 * P) rank and bounds of three predicates (see ``tiles.py``); and the first of ``rest``, low
    # and high half
    head: U16
    rest: U16  # (2 * R) rank and bounds of the other predicates. Entry 0 belongs to postings that have none
    rest_op: U8  # (R)
    ranks: I64  # (1) ranks, the one for no attribute counted
    rank: U32  # (A) attribute -> its place in a tile, or NO_RANK
    bin_first: I64  # (A + 1) attribute -> its part of ``bin_of``, empty where bins are codes
    bin_of: U8  # code - 1 -> bin
    multi: U8  # (A)
    top: I64  # (A + 1) number of codes
    repeats: U8  # (1) whether a subscription may be found twice for a row


class BitsliceScratch(NamedTuple):
    """For a block of up to N rows with E entries."""

    slot: U32  # (E + 7 * N)
    slot_first: U64  # (N + 1)
    column: I64  # (A + 2) attribute -> its rows; A has every row
    row: U32  # (E + N)
    code: U32  # (E + N)
    spare_row: U32  # (E)
    spare_code: U32  # (E)
    histogram: I64  # (256)
    sorted: U8  # (A + 1) columns to be sorted
    stride: I64  # (1) rows of a tile
    tile: U8  # (ranks * stride + 64) zero between calls
    survivor: U32  # (2 * BUFFER)
    place: U32  # (2 * BUFFER)
    mask: U64  # (2 * BUFFER)
    active: U32  # (most postings of an attribute)
    active_from: U32  # (the same)
    active_to: U32  # (the same)
    # (S, 3) postings to visit, begin and end; position of the first row, or code that they must
    # reach up to
    segment: U32
    bits: U64  # (SEGMENTS) their rows
    found: U32  # (S, 4) segments of rows before they are ordered: row, and the same
    segment_first: I64  # (N + 1) row -> its segments
    code_place: I64  # (most codes + 2)
    target: U64  # (longest program + 1)
    candidate_row: U32  # (CANDIDATES_KEPT)
    candidate_conj: U32  # (CANDIDATES_KEPT)
    ordered: U32  # (CANDIDATES_KEPT)
    order: I64  # (N + 1)
    values: U32  # (A) table of one row for verification, zero between calls


@device
def choose_columns(attr_group, group_first, reach, top, column, ranks, pairs, by_column):
    """Mark the columns whose rows are worth sorting.

    Returns whether one is left that has rows and postings and is not marked.

    Estimates in nanoseconds: a tile of the column against a look-up and a look at some postings for
    each row.
    """
    left = False
    for a in range(len(column) - 1):
        by_column[a] = 0
        n = column[a + 1] - column[a]
        if n == 0 or group_first[attr_group[a]] == group_first[attr_group[a + 1]]:
            continue
        sorted_cost = 300.0 + 6.0 * n + 1.1 * n * pairs
        sorted_cost += 1.1 * n * pairs if sets_few(ranks, pairs, n) else ranks * (2.0 + n / 16.0)
        row_cost = 0.0
        for g in range(attr_group[a], attr_group[a + 1]):
            postings = float(group_first[g + 1] - group_first[g])
            share = min(1.0, (reach[g] + 1.0) / top[a])
            row_cost += n * (30.0 + 2.0 * share * postings)
            if reach[g] == 0:
                sorted_cost += 4.0 * min(postings, n * postings / top[a]) * (1.0 + n / (top[a] * WORD)) + 20.0 * min(
                    n, top[a]
                )
            else:
                sorted_cost += postings * (4.0 + 5.0 * (1.0 + 0.6 * share * n / WORD))
        if sorted_cost < row_cost or a == len(column) - 2:
            by_column[a] = 1
        else:
            left = True
    return left


@kernel
def match(index, preds, rows, start, stop, scratch, sink, counters):
    """Match rows ``start:stop``, all of them or none.

    Returns ``stop``, or ``start`` when the sink is too small.
    """
    group_first, reach, attr_group, lo, hi, head = (
        index.group_first,
        index.reach,
        index.attr_group,
        index.lo,
        index.hi,
        index.head,
    )
    rest, rest_op, who, multi, ranks = index.rest, index.rest_op, index.who, index.multi, index.ranks[0]
    lowest, highest, cell_first, cell_shift, below = (
        index.lowest,
        index.highest,
        index.cell_first,
        index.cell_shift,
        index.below,
    )
    row_first, row_attr, row_code = rows.first, rows.attr, rows.code
    first, pred, run_lo, run_hi, owner = preds.first, preds.pred, preds.run_lo, preds.run_hi, preds.owner
    jump_first, jump = preds.jump_first, preds.jump
    tile, survivor, place, mask, target = scratch.tile, scratch.survivor, scratch.place, scratch.mask, scratch.target
    slot, slot_first = scratch.slot, scratch.slot_first
    active, active_from, active_to = scratch.active, scratch.active_from, scratch.active_to
    found, segment_first = scratch.found, scratch.segment_first
    column, col_row, col_code, by_column, code_place = (
        scratch.column,
        scratch.row,
        scratch.code,
        scratch.sorted,
        scratch.code_place,
    )
    segment, bits, candidate_row, candidate_conj = (
        scratch.segment,
        scratch.bits,
        scratch.candidate_row,
        scratch.candidate_conj,
    )
    sink_row, sink_sub, hits, wanted, fill = (
        sink.row,
        sink.sub,
        sink.hits,
        sink.state[WANTED] != 0,
        np.uint64(sink.state[FILL]),
    )
    before = np.int64(fill)
    attributes = len(multi)
    count = stop - start
    pairs = (row_first[stop] - row_first[start]) / count
    bin_entries(row_first, row_attr, row_code, start, stop, index.rank, index.bin_first, index.bin_of, slot, slot_first)
    place_columns(row_first, row_attr, row_code, start, stop, column, col_row, col_code)
    by_rows = choose_columns(attr_group, group_first, reach, index.top, column, ranks, pairs, by_column)
    visits = np.uint64(0)
    tiles = 0
    noted = 0
    last_segment = np.uint64(0)
    most = np.uint64(BUFFER)

    # Columns whose rows are sorted, the column of all rows, and all rows again, one by one, for
    # what the columns not sorted bring.
    for a in range(attributes + 2):
        by_row = a > attributes
        if not by_rows if by_row else not by_column[a]:
            continue
        begin, end = column[min(a, attributes)], column[min(a, attributes) + 1]
        tabled = False
        if a < attributes:
            sort_column(
                col_row, col_code, begin, end, index.top[a], scratch.spare_row, scratch.spare_code, scratch.histogram
            )
            tabled = index.top[a] <= 8 * (end - begin)
            if tabled:
                place_codes(col_code, begin, end, index.top[a], code_place)
        size = 1 if by_row else scratch.stride[0]
        stride = np.uint64(size)
        # if by_row: where to go on, when there was no room for the segments of all rows
        next_a, next_e = np.int64(0), np.int64(0)
        at = begin
        while at < end:
            tile_end = min(at + size, end)
            s, segments, k, actives = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
            if by_row:
                if at == begin:
                    next_a, next_e, all_segments = segments_of_rows(
                        attr_group, group_first, reach, lo, lowest, highest, cell_first, cell_shift, below, by_column, column, col_row,
                        col_code, next_a, next_e, found,
                    )  # fmt: skip
                    order_segments(found, all_segments, count, segment_first, segment)
                    last_segment = np.uint64(max(all_segments - 1, 0))
                s, segments = np.uint64(segment_first[at - begin]), np.uint64(segment_first[tile_end - begin])
            else:
                for g in range(attr_group[a], attr_group[a + 1]):
                    i, i_end = group_first[g], group_first[g + 1]
                    if reach[g] == 0:
                        found_here = segments_of_column(
                            lo,
                            i,
                            lowest[g],
                            highest[g],
                            cell_first[g],
                            cell_shift[g],
                            below,
                            col_code,
                            at,
                            tile_end,
                            segment,
                            bits,
                        )
                        segments = np.uint64(found_here)
                    else:
                        i = first_at_least(lo, i, i_end, np.int64(col_code[at]) - np.int64(reach[g]))
                        i_end = first_at_least(lo, i, i_end, np.int64(col_code[tile_end - 1]) + 1)
                        actives = admit(
                            lo, hi, np.uint64(i), np.uint64(i_end), col_code, at, tile_end, code_place, tabled, active, active_from,
                            active_to, actives,
                        )  # fmt: skip
            tiled = s < segments or k < actives
            if tiled:
                fill_tile(tile, stride, slot_first, slot, col_row, at, tile_end)
                tiles += 1
            while s < segments or k < actives:
                n = np.uint64(0)
                if by_row:
                    s, n, looked = visit_row(
                        head, hi, tile, segment, s, segments, last_segment, most, survivor, place, mask, n
                    )
                else:
                    s, n, looked = visit(head, tile, stride, segment, bits, s, segments, most, survivor, place, mask, n)
                visits += looked
                k, n, looked = visit_active(
                    head, tile, stride, active, active_from, active_to, k, actives, most, survivor, place, mask, n
                )
                visits += looked
                n = refine(head, rest, rest_op, who, tile, stride, survivor, place, mask, n)
                fill, noted = put(
                    owner, jump_first, jump, who, head, rest, rest_op, tile, stride, col_row, at, start, survivor, place, mask, n,
                    target, sink_row, sink_sub, hits, wanted, fill, candidate_row, candidate_conj, noted,
                )  # fmt: skip
                if noted > len(candidate_row) - WORD * len(mask):
                    fill = verify(
                        first, pred, run_lo, run_hi, owner, jump_first, jump, row_first, row_attr, row_code, multi, start, count,
                        candidate_row, candidate_conj, noted, scratch.order, scratch.ordered, scratch.values, sink_row,
                        sink_sub, hits, wanted, fill, counters,
                    )  # fmt: skip
                    noted = 0
            if tiled:
                few = sets_few(ranks, pairs, tile_end - at)
                clear_tile(tile, stride, ranks, few, slot_first, slot, col_row, at, tile_end)
            at = tile_end
            if by_row and at == end and next_a < attributes:
                at = begin
    if noted > 0:
        fill = verify(
            first, pred, run_lo, run_hi, owner, jump_first, jump, row_first, row_attr, row_code, multi, start, count, candidate_row,
            candidate_conj, noted, scratch.order, scratch.ordered, scratch.values, sink_row, sink_sub, hits, wanted, fill, counters,
        )  # fmt: skip
    counters[CONJUNCTIONS] += visits
    counters[NODES] += tiles
    matches = np.int64(fill) - before
    if wanted and fill > np.uint64(len(sink_sub)):
        sink.state[NEEDED] = matches
        return start
    if wanted:
        for i in range(np.uint64(before), fill):
            hits[np.uint64(sink_row[i])] += 1
        sink.state[FILL] = fill
    counters[MATCHES] += matches
    return stop
