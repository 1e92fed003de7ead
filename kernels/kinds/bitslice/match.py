"""bitslice: work shared between the events of a batch, 64 at a time.

The algorithm is our own; no paper has it.

Every conjunction is posted under its *access predicate*, once for each interval. Postings of an
attribute are ordered by the lowest code of the interval. If a batch has many rows with that
attribute, these rows are sorted by code. The access predicate is then a range of positions, and
rows outside it are never touched. The other predicates are tested for up to 64 positions at once
(``tiles.py``). If a batch has few such rows, they are taken one by one. Each row's code then picks
the postings that it may meet.

Masks are supersets where a predicate's end lies within a bin. A posting with exact masks is a match
as soon as a bit is left. The rows left by other masks are verified against the predicates
themselves, row by row.

Sparse data were measured with ``compare.py NAME --batch 4096 --kinds bitslice``, a million
subscriptions of ``pstree-sparse`` or ``bestar`` and three million of ``ads``. Microseconds an
event of ``pstree-sparse``, before and after:

- prefetching postings: 18.8, 10.5;
- hints instead of binary searches for postings: 10.1, 8.9;
- prefetching for verification: 57, 45 an event of ``ads``.

Tried and lost:

- comparing all of a small group instead of searching it;
- a separate array with a copy of the first predicate: single events 4 % slower;
- noting the undecided predicates of each conjunction, and verifying only these: ``ads`` no faster
  with 475 predicates an event instead of 545, ``bestar`` 13.6 instead of 12.0;
- verifying in the order of postings instead of rows: no gain;
- prefetching longer stretches of ``rest`` and the middle of lists, and huge pages for the index: no
  gain;
- narrower classes of width, and other distances of prefetching: single events no faster.
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.kinds.bitslice.arrays import (
    BUFFER,
    FOUND,
    LOOKED,
    NOTED,
    TILES,
    WORD,
    BitsliceIndex,
    BitsliceScratch,
    GroupHints,
)
from colmatch.kernels.kinds.bitslice.columns import choose_columns, place_codes, place_columns, sort_column
from colmatch.kernels.kinds.bitslice.masks import refine, visit, visit_active, visit_row
from colmatch.kernels.kinds.bitslice.postings import admit, order_segments, segments_of_column, segments_of_rows
from colmatch.kernels.kinds.bitslice.results import put, verify
from colmatch.kernels.kinds.bitslice.tiles import bin_entries, clear_tile, fill_tile, sets_few
from colmatch.kernels.layout import CONJUNCTIONS, I64, MATCHES, NODES, Predicates, Rows, Sink, Written
from colmatch.kernels.search import first_at_least
from colmatch.kernels.sink import FILL, NEEDED, PAIRS, WANTED


@device
def sweep_columns(index, preds, rows, start, stop, columns, pairs, scratch, sink, counters):
    """Matches the columns that ``choose_columns`` has marked.

    Tile after tile of their rows is tested against the postings that these rows may meet.

    columns : number of columns
    pairs : entries of a row, on average
    """
    group_begin, group_end = index.attr_group[: len(index.top)], index.attr_group[-len(index.top) :]
    group_first = index.group_first
    reach, lo, hi = index.reach, index.lo, index.hi
    lowest, highest, cell_first, cell_shift = index.lowest, index.highest, index.cell_first, index.cell_shift
    below, head, rest, rest_op, who = index.below, index.head, index.rest, index.rest_op, index.who
    owner, jump_first, jump = preds.owner, preds.jump_first, preds.jump
    attr, column, row, code = scratch.attr, scratch.column, scratch.row, scratch.code
    by_column, place = scratch.sorted, scratch.code_place
    slot, slot_first, tile, segment, bits = (
        scratch.slot,
        scratch.slot_first,
        scratch.tile,
        scratch.segment,
        scratch.bits,
    )
    survivors, active, candidates = scratch.survivors, scratch.active, scratch.candidates
    progress, target = scratch.progress, scratch.target
    attributes, ranks, size, most = len(index.multi), index.ranks[0], scratch.stride[0], np.uint64(BUFFER)
    stride = np.uint64(size)
    noted_most = len(candidates.row) - WORD * len(survivors.mask)
    for j in range(columns):
        if not by_column[j]:
            continue
        a = np.int64(attr[j])
        begin, end, top = column[j], column[j + 1], index.top[a]
        # Sort the column, except the one of all rows
        tabled = False
        if a < attributes:
            sort_column(row, code, begin, end, top, scratch.spare_row, scratch.spare_code, scratch.histogram)
            tabled = top <= 8 * (end - begin)
            if tabled:
                place_codes(code, begin, end, top, place)
        for at in range(begin, end, size):
            tile_end = min(at + size, end)
            # Find the postings that the rows of the tile may meet
            s, segments, k, actives = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
            for g in range(group_begin[a], group_end[a]):
                i, i_end = group_first[g], group_first[g + 1]
                if reach[g] == 0:
                    low, high, cells, shift = lowest[g], highest[g], cell_first[g], cell_shift[g]
                    more, more_bits = segment[segments:], bits[segments:]
                    here = segments_of_column(
                        lo, i, low, high, cells, shift, below, code, at, tile_end, more, more_bits
                    )
                    segments += np.uint64(here)
                else:
                    i = first_at_least(lo, i, i_end, np.int64(code[at]) - np.int64(reach[g]))
                    i_end = first_at_least(lo, i, i_end, np.int64(code[tile_end - 1]) + 1)
                    actives = admit(
                        lo, hi, np.uint64(i), np.uint64(i_end), code, at, tile_end, place, tabled, active, actives
                    )
            if segments == 0 and actives == 0:
                continue
            # Test them on the tile: by three masks, by all masks, and at last by verification
            fill_tile(tile, stride, slot_first, slot, row, at, tile_end)
            progress[TILES] += 1
            while s < segments or k < actives:
                n = np.uint64(0)
                s, n, looked = visit(head, tile, stride, segment, bits, s, segments, most, survivors, n)
                k, n, words = visit_active(head, tile, stride, active, k, actives, most, survivors, n)
                progress[LOOKED] += np.int64(looked + words)
                n = refine(head, rest, rest_op, who, jump_first, jump, target, tile, stride, survivors, n)
                put(who, owner, row, at, start, survivors, n, sink, candidates, progress)
                if progress[NOTED] > noted_most:
                    verify(preds, rows, index.multi, start, stop - start, scratch, sink, progress, counters)
            few = sets_few(ranks, pairs, tile_end - at)
            clear_tile(tile, stride, ranks, few, slot_first, slot, row, at, tile_end)


@device
def sweep_rows(index, preds, rows, start, stop, columns, pairs, scratch, sink, counters):
    """Matches the columns that are not marked: each row against the postings that its codes pick.

    The rows are swept several times if there is no room for all of their segments.
    """
    head, hi, rest, rest_op, who = index.head, index.hi, index.rest, index.rest_op, index.who
    owner, jump_first, jump = preds.owner, preds.jump_first, preds.jump
    attr, column, row, code = scratch.attr, scratch.column, scratch.row, scratch.code
    by_column, tile = scratch.sorted, scratch.tile
    slot, slot_first, row_segment, segment = scratch.slot, scratch.slot_first, scratch.found, scratch.segment
    segment_first, survivors, candidates = scratch.segment_first, scratch.survivors, scratch.candidates
    progress, target = scratch.progress, scratch.target
    ranks, count, most = index.ranks[0], stop - start, np.uint64(BUFFER)
    stride, few = np.uint64(1), sets_few(ranks, pairs, 1)
    noted_most = len(candidates.row) - WORD * len(survivors.mask)
    group_begin, group_end = index.attr_group[: len(index.top)], index.attr_group[-len(index.top) :]
    group_first, reach = index.group_first, index.reach
    hints = GroupHints(index.lo, index.lowest, index.highest, index.cell_first, index.cell_shift, index.below)
    all_rows = column[columns - 1]
    j, e = np.int64(0), np.int64(0)
    while j < columns:
        # Find the postings of as many columns as there is room for, and order them by row
        j, e, segments = segments_of_rows(
            group_begin, group_end, group_first, reach, hints, by_column, attr, columns, column, row, code, j, e,
            row_segment,
        )  # fmt: skip
        order_segments(row_segment, segments, count, segment_first, segment)
        last = np.uint64(max(segments - 1, 0))
        for r in range(count):
            s, s_end = np.uint64(segment_first[r]), np.uint64(segment_first[r + 1])
            if s == s_end:
                continue
            # Test them on the tile of one row
            at = all_rows + r
            fill_tile(tile, stride, slot_first, slot, row, at, at + 1)
            progress[TILES] += 1
            while s < s_end:
                s, n, looked = visit_row(head, hi, tile, segment, s, s_end, last, most, survivors, np.uint64(0))
                progress[LOOKED] += np.int64(looked)
                n = refine(head, rest, rest_op, who, jump_first, jump, target, tile, stride, survivors, n)
                put(who, owner, row, at, start, survivors, n, sink, candidates, progress)
                if progress[NOTED] > noted_most:
                    verify(preds, rows, index.multi, start, count, scratch, sink, progress, counters)
            clear_tile(tile, stride, ranks, few, slot_first, slot, row, at, at + 1)


@kernel
def match(
    index: BitsliceIndex,
    preds: Predicates,
    rows: Written[Rows],
    start: int,
    stop: int,
    scratch: Written[BitsliceScratch],
    sink: Written[Sink],
    counters: Written[I64],
) -> int:
    """Matches rows ``start:stop``, all of them or none.

    Returns ``stop``, or ``start`` when the sink is too small.
    """
    row_first, row_attr, row_code = rows.first, rows.attr, rows.code
    slot, slot_first, attr, column, progress = (
        scratch.slot,
        scratch.slot_first,
        scratch.attr,
        scratch.column,
        scratch.progress,
    )
    before, wanted = sink.state[FILL], sink.state[WANTED] == PAIRS
    pairs = (row_first[stop] - row_first[start]) / (stop - start)
    progress[FOUND], progress[NOTED], progress[LOOKED], progress[TILES] = before, 0, 0, 0
    # Prepare the slots of rows and the columns
    bin_entries(row_first, row_attr, row_code, start, stop, index.rank, index.bin_first, index.bin_of, slot, slot_first)
    columns = place_columns(
        row_first, row_attr, row_code, start, stop, attr, column, scratch.tally, scratch.row, scratch.code
    )
    chosen, left = choose_columns(
        index.attr_group[: len(index.top)],
        index.attr_group[-len(index.top) :],
        index.group_first,
        index.reach,
        index.top,
        attr,
        columns,
        column,
        index.ranks[0],
        pairs,
        scratch.sorted,
    )
    # Match by column and by row, then verify the remaining candidates
    if chosen:
        sweep_columns(index, preds, rows, start, stop, columns, pairs, scratch, sink, counters)
    if left:
        sweep_rows(index, preds, rows, start, stop, columns, pairs, scratch, sink, counters)
    if progress[NOTED] > 0:
        verify(preds, rows, index.multi, start, stop - start, scratch, sink, progress, counters)
    # Count the matches, and accept them if they fit
    counters[CONJUNCTIONS] += progress[LOOKED]
    counters[NODES] += progress[TILES]
    matches = progress[FOUND] - before
    if wanted and progress[FOUND] > len(sink.sub):
        sink.state[NEEDED] = matches
        return start
    if wanted:
        sink_row, hits = sink.row, sink.hits
        for i in range(np.uint64(before), np.uint64(progress[FOUND])):
            hits[np.uint64(sink_row[i])] += 1
        sink.state[FILL] = progress[FOUND]
    counters[MATCHES] += matches
    return stop
