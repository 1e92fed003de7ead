"""Events by attribute -> events by row, with codes for keys.

The transpose takes 4 ns an entry, codes included. Hints of the next columns are prefetched: with
30,000 attributes an entry takes 15 ns with this and 80 without.
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.bits import ask_for
from colmatch.kernels.hints import FEW_KEYS, ONE, TILE, Hints, cell_of, distance, find_code, find_codes
from colmatch.kernels.layout import I32, I64, U8, U32, Batch, Codes, Written
from colmatch.kernels.ranges import begin_ranges, rewind_ranges

ROW_BLOCK = 256
COLUMNS_AHEAD = 8  # hints are prefetched this many columns ahead, and at most this many of each column


@kernel
def transpose(
    batch: Batch, used: U8, next: Written[I64], first: Written[I64], attr: Written[U32], place: Written[I32]
) -> None:
    """Fills ``layout.Rows`` but for the codes.

    There are two passes over the entries, without sorting. A block of rows passes over all columns
    before the next, so that the entries being written stay in the cache.

    Places of entries are unsigned, here and below. Signed ones are tested for wrap-around each
    time, and both kernels took twice as long.

    used : (A) uint8; only entries of these attributes are entered, and the batch may have more
        attributes
    next : (A) int64, scratch
    first : (N + 1) int64, written
    attr : (at least E) uint32, written
    place : (at least E) int32, written, the new place of each entry of the batch; ``ENTRIES_MOST``
        limits them
    """
    rows = len(first) - 1
    col, entry_row = batch.col, batch.row
    first[:] = 0
    attributes = len(used)
    # Count the entries of each row
    for a in range(attributes):
        next[a] = col[a] if used[a] else col[a + 1]
        for there in range(np.uint64(next[a]), np.uint64(col[a + 1])):
            first[np.uint64(entry_row[there]) + np.uint64(1)] += 1
    begin_ranges(first, rows)
    # Place the entries, one block of rows after the other
    block = rows_at_once(col, attributes, rows)
    for stop in range(min(block, rows), rows + block, max(block, 1)):
        for a in range(attributes):
            e, e_end = np.uint64(next[a]), np.uint64(col[a + 1])
            while e < e_end and entry_row[e] < stop:
                row = np.uint64(entry_row[e])
                to = first[row]
                first[row] = to + 1
                attr[np.uint64(to)] = a
                place[e] = to
                e += np.uint64(1)
            next[a] = e
    rewind_ranges(first, rows)


@kernel
def code_rows(
    batch: Batch,
    codes: Codes,
    hints: Hints,
    used: U8,
    next: Written[I64],
    first: Written[I64],
    place: Written[I32],
    found: Written[U32],
    code: Written[U32],
) -> None:
    """Fills ``Rows.code`` (at least E), for rows that ``transpose`` has placed.

    It is a separate kernel, since segments that use the same attributes have the same rows but for
    codes.

    found : (``hints.TILE``) uint32, scratch
    """
    rows = len(first) - 1
    bound, code_first, lowest, highest = codes.bound, codes.first, hints.lowest, hints.highest
    cell_first, cell_shift, below = hints.first, hints.shift, hints.below
    col, entry_key = batch.col, batch.key
    attributes = len(used)
    for a in range(attributes):
        next[a] = col[a] if used[a] else col[a + 1]
    block = rows_at_once(col, attributes, rows)
    for stop in range(min(block, rows), rows + block, max(block, 1)):
        end = first[min(stop, rows)]
        for a in range(attributes):
            e, e_end = np.uint64(next[a]), np.uint64(col[a + 1])
            begin, behind = code_first[a], code_first[a + 1]
            cells, shift, low, high = cell_first[a], cell_shift[a], lowest[a], highest[a]
            # Prefetch hints of a later column
            soon = min(a + COLUMNS_AHEAD, attributes - 1)
            for soon_e in range(next[soon], min(next[soon] + COLUMNS_AHEAD, col[soon + 1])):
                key = min(max(entry_key[soon_e], lowest[soon]), highest[soon])
                ask_for(below, np.uint64(cell_first[soon]) + cell_of(distance(lowest[soon], key), cell_shift[soon]))
            # Code many keys together, then the others one by one
            while shift != 0 and e + FEW_KEYS <= e_end and place[e] < end:
                keys = min(e_end - e, TILE)  # some of the next block among them
                find_codes(bound, begin, behind, low, high, cells, shift, below, entry_key, e, keys, found)
                for i in range(keys):
                    code[np.uint64(place[e + np.uint64(i)])] = found[i]
                e += keys
            while e < e_end and place[e] < end:
                code[np.uint64(place[e])] = find_code(bound, begin, low, high, cells, shift, below, entry_key[e])
                e += ONE
            next[a] = e


@device
def rows_at_once(col, attributes, rows):
    """Returns the number of rows of a block.

    It is all rows where columns have so few entries that another pass costs more.
    """
    return ROW_BLOCK if col[attributes] >= 4 * attributes * (rows // ROW_BLOCK + 1) else rows


@kernel
def count_codes(batch: Batch, codes: Codes, hints: Hints, hits: Written[I64], present: Written[I64]) -> None:
    """Adds to ``hits`` (codes) the number of entries with each code of each attribute.

    Code 1 of attribute 0 comes first. Adds to ``present`` (A) the number of rows with each
    attribute.
    """
    base = 0
    for a in range(len(batch.col) - 1):
        begin, end = codes.first[a], codes.first[a + 1]
        for e in range(batch.col[a], batch.col[a + 1]):
            code = find_code(
                codes.bound,
                begin,
                hints.lowest[a],
                hints.highest[a],
                hints.first[a],
                hints.shift[a],
                hints.below,
                batch.key[e],
            )
            hits[base + code - 1] += 1
            # Count a row once, for its first entry
            present[a] += e == batch.col[a] or batch.row[e] != batch.row[e - 1]
        base += end - begin + 1


@kernel
def to_labels(codes: Codes, first: Written[I64], attr: Written[U32], code: Written[U32]) -> None:
    """Replaces codes of ``layout.Rows`` by labels, in place.

    This is a separate pass, so it costs nothing for kinds without updates.
    """
    code_first, label = codes.first, codes.label
    rows = len(first) - 1
    for e in range(first[rows]):
        if code[e] > 1:
            code[e] = label[np.uint64(code_first[attr[e]]) + np.uint64(code[e]) - np.uint64(2)]
