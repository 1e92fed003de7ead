"""bitslice: the postings that some rows meet.

Range postings become active. Postings of equal codes and of single rows become segments.
"""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.hints import find_code
from colmatch.kernels.kinds.bitslice.arrays import ALL, WORD
from colmatch.kernels.ranges import begin_ranges, rewind_ranges
from colmatch.kernels.search import first_at_least, first_at_least_from


@device
def admit(lo, hi, i, end, code, begin, stop, place, tabled, active, count):
    """Makes range postings ``i:end`` active if some sorted row ``begin:stop`` lies in them.

    Positions count from ``begin``. Returns the number of active postings.

    place : see ``place_codes``, if ``tabled``; else positions are searched for in ``code``
    """
    posting, active_begin, active_end = active.posting, active.begin, active.end
    for k in range(i, end):
        if tabled:
            low, high = max(place[np.int64(lo[k])], begin), min(place[np.int64(hi[k]) + 1], stop)
        else:
            low = first_at_least(code, begin, stop, np.int64(lo[k]))
            high = first_at_least_from(code, low, stop, np.int64(hi[k]) + 1)
        posting[count] = k
        active_begin[count] = low - begin
        active_end[count] = high - begin
        count += np.uint64(high > low)
    return count


@device
def segments_of_column(lo, i, lowest, highest, cell_first, shift, below, code, begin, stop, segment, bits):
    """Finds the postings of equal codes that the sorted rows ``begin:stop`` meet.

    A segment is a range of postings, with up to 64 rows that have their code. It has the position
    of the first row, counted from ``begin``, and a mask. Returns the number of segments, at most
    one for each row.

    i : first posting of the group; lowest to below : its hints
    """
    n = 0
    q = begin
    while q < stop:
        # Find the rows with one code, and their postings
        value = np.int64(code[q])
        q_end = q + 1
        while q_end < stop and code[q_end] == value:
            q_end += 1
        from_i = i + find_code(lo, i, lowest, highest, cell_first, shift, below, value - 1) - 1
        to_i = i + find_code(lo, i, lowest, highest, cell_first, shift, below, value) - 1
        # Write a segment for 64 rows each
        if to_i > from_i:
            for w in range(q, q_end, WORD):
                segment[n, 0], segment[n, 1], segment[n, 2] = from_i, to_i, w - begin
                bits[n] = ALL >> np.uint64(WORD - min(q_end - w, WORD))
                n += 1
        q = q_end
    return n


@device
def segments_of_rows(
    group_begin, group_end, group_first, reach, hints, by_column, attr, columns, column, row, code, j, e, found
):
    """Finds postings that rows may meet, from the columns that are not sorted.

    Begins with entry ``e`` of column ``j``. Returns the column and entry where room ends, or the
    number of columns and 0; and the number of segments.

    Columns come one by one, since each needs one part of the index, which is contiguous.

    found (S, 4) : row, range of postings, code that they must reach, 0 if they all do
    """
    lo, lowest, highest = hints.lo, hints.lowest, hints.highest
    cell_first, cell_shift, below = hints.cell_first, hints.cell_shift, hints.below
    n = 0
    while j < columns:
        e = max(e, column[j])
        a = np.int64(attr[j])
        first_group, last_group = group_begin[a], group_end[a]
        if by_column[j] or group_first[first_group] == group_first[last_group]:
            e = column[j + 1]
        while e < column[j + 1]:
            if n + last_group - first_group > len(found):
                return j, e, n
            # Write the range of postings in each group
            value = np.int64(code[e])
            for g in range(first_group, last_group):
                i, low, high, cells, shift = group_first[g], lowest[g], highest[g], cell_first[g], cell_shift[g]
                i_end = i + find_code(lo, i, low, high, cells, shift, below, value) - 1
                i += find_code(lo, i, low, high, cells, shift, below, value - np.int64(reach[g]) - 1) - 1
                found[n, 0], found[n, 1], found[n, 2], found[n, 3] = row[e], i, i_end, value if reach[g] else 0
                n += i_end > i
            e += 1
        j += 1
    return j, np.int64(0), n


@device
def order_segments(found, n, rows, first, segment):
    """Orders segments by row, from found (n, 4) to segment (n, 3).

    first (rows + 1) : row -> its segments, written
    """
    for r in range(rows + 1):
        first[r] = 0
    for s in range(n):
        first[np.int64(found[s, 0]) + 1] += 1
    begin_ranges(first, rows)
    for s in range(n):
        row = np.int64(found[s, 0])
        place = first[row]
        first[row] = place + 1
        segment[place, 0], segment[place, 1], segment[place, 2] = found[s, 1], found[s, 2], found[s, 3]
    rewind_ranges(first, rows)
