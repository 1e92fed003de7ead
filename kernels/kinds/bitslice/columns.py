"""Coded rows -> columns sorted by code: for each attribute the rows that have it, lowest code
first.
"""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.kinds.bitslice.arrays import WORD
from colmatch.kernels.kinds.bitslice.tiles import sets_few
from colmatch.kernels.ranges import rewind_ranges

DIGIT = 256


@device
def place_columns(row_first, row_attr, row_code, start, stop, column, row, code):
    """Entries of rows ``start:stop`` by attribute, rows ascending and counted from 0; and behind
    them all rows, with code 0.

    column (A + 2), row, code (entries + rows) are written.
    """
    attributes = len(column) - 2
    for a in range(attributes + 1):
        column[a] = 0
    # Signed places would be tested for wrap-around each time.
    for e in range(np.uint64(row_first[start]), np.uint64(row_first[stop])):
        column[row_attr[e]] += 1
    total = 0
    for a in range(attributes + 1):
        size = column[a]
        column[a] = total
        total += size
    for r in range(start, stop):
        for e in range(np.uint64(row_first[r]), np.uint64(row_first[r + 1])):
            a = row_attr[e]
            place = np.uint64(column[a])
            column[a] = place + np.uint64(1)
            row[place] = r - start
            code[place] = row_code[e]
    rewind_ranges(column, attributes)
    for r in range(stop - start):
        row[column[attributes] + r] = r
        code[column[attributes] + r] = 0
    column[attributes + 1] = column[attributes] + stop - start


@device
def sort_column(row, code, begin, end, top, spare_row, spare_code, histogram):
    """Sorts the entries ``begin:end`` by code, at most ``top``: bytewise and stable, by as many
    passes as ``top`` has bytes.
    """
    n = end - begin
    if n < 32:
        for i in range(begin + 1, end):
            r, value = row[i], code[i]
            j = i
            while j > begin and code[j - 1] > value:
                row[j] = row[j - 1]
                code[j] = code[j - 1]
                j -= 1
            row[j] = r
            code[j] = value
        return
    shift = 0
    while (top >> shift) > 0:
        for d in range(DIGIT):
            histogram[d] = 0
        for i in range(begin, end):
            histogram[(code[i] >> shift) & 255] += 1
        total = 0
        for d in range(DIGIT):
            size = histogram[d]
            histogram[d] = total
            total += size
        for i in range(begin, end):
            d = (code[i] >> shift) & 255
            place = histogram[d]
            histogram[d] = place + 1
            spare_row[place] = row[i]
            spare_code[place] = code[i]
        for i in range(n):
            row[begin + i] = spare_row[i]
            code[begin + i] = spare_code[i]
        shift += 8


@device
def place_codes(code, begin, end, top, place):
    """Writes for each code the place of the first of the sorted codes that is not below it.

    place (top + 2), for codes 0 to top + 1.
    """
    at = np.int64(begin)
    value = 0
    while at < end:
        next = np.int64(code[at])
        while value <= next:
            place[value] = at
            value += 1
        at += 1
    while value <= top + 1:
        place[value] = end
        value += 1


@device
def choose_columns(group_begin, group_end, group_first, reach, top, column, ranks, pairs, by_column):
    """Marks the columns whose rows are worth sorting.

    Returns whether any is marked, and whether one is left that has rows and postings and is not.

    Estimates in nanoseconds: a tile of the column against a look-up and a look at some postings for
    each row.
    """
    chosen, left = False, False
    for a in range(len(column) - 1):
        by_column[a] = 0
        n = column[a + 1] - column[a]
        if n == 0 or group_first[group_begin[a]] == group_first[group_end[a]]:
            continue
        sorted_cost = 300.0 + 6.0 * n + 1.1 * n * pairs
        sorted_cost += 1.1 * n * pairs if sets_few(ranks, pairs, n) else ranks * (2.0 + n / 16.0)
        row_cost = 0.0
        for g in range(group_begin[a], group_end[a]):
            postings = float(group_first[g + 1] - group_first[g])
            share = min(1.0, (reach[g] + 1.0) / top[a])
            row_cost += n * (30.0 + 2.0 * share * postings)
            if reach[g] == 0:
                sorted_cost += 4.0 * min(postings, n * postings / top[a]) * (1.0 + n / (top[a] * WORD)) + 20.0 * min(
                    n, top[a]
                )
            else:
                sorted_cost += postings * (4.0 + 5.0 * (1.0 + 0.6 * share * n / WORD))
        if sorted_cost < row_cost:
            by_column[a] = 1
            chosen = True
        else:
            left = True
    return chosen, left
