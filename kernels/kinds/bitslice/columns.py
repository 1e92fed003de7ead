"""Coded rows -> columns: for each attribute that some row has, these rows, sorted by code.

The work depends on the entries of the rows, not on the number of attributes. A single event among
100,000 text patterns has a few of their attributes.
"""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.kinds.bitslice.arrays import WORD
from colmatch.kernels.kinds.bitslice.tiles import sets_few

DIGIT = 256
SPARSE = 16  # columns have the order of entries if fewer than one attribute in 16 has rows


@device
def place_columns(row_first, row_attr, row_code, start, stop, attr, column, tally, row, code):
    """Writes the entries of rows ``start:stop`` by attribute, then all rows with code 0.

    Returns the number of columns, of which the last has all rows. Rows ascend within a column, and
    count from ``start``.

    attr (A + 1) : attribute of each column, written. Columns are ascending if many attributes have
        rows
    column (A + 2), row, code (entries + rows) : column -> its rows and codes, written
    tally (A) : zeros before and after
    """
    # Count the entries of each attribute. Signed places would be tested for wrap-around each time.
    attributes, n = len(tally), 0
    for e in range(np.uint64(row_first[start]), np.uint64(row_first[stop])):
        a = row_attr[e]
        if tally[a] == 0:
            attr[n] = a
            n += 1
        tally[a] += 1
    if SPARSE * n > attributes:
        n = 0
        for a in range(attributes):
            if tally[a] > 0:
                attr[n] = a
                n += 1
    # Turn counts into places
    total = 0
    for j in range(n):
        a = attr[j]
        size = tally[a]
        column[j] = tally[a] = total
        total += size
    # Write the entries of each attribute
    for r in range(start, stop):
        for e in range(np.uint64(row_first[r]), np.uint64(row_first[r + 1])):
            a = row_attr[e]
            place = np.uint64(tally[a])
            tally[a] = place + np.uint64(1)
            row[place] = r - start
            code[place] = row_code[e]
    for j in range(n):
        tally[attr[j]] = 0
    # Write the column of all rows
    attr[n] = attributes
    column[n] = total
    for r in range(stop - start):
        row[total + r] = r
        code[total + r] = 0
    column[n + 1] = total + stop - start
    return n + 1


@device
def sort_column(row, code, begin, end, top, spare_row, spare_code, histogram):
    """Sorts the entries ``begin:end`` by code: stably, in a pass for each byte of ``top``.

    top : the highest code
    """
    # Sort a few entries by insertion
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
    # Sort many by one byte after the other, the lowest first
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
    """Writes for each code the place of the first sorted code that is not below it.

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
def choose_columns(group_begin, group_end, group_first, reach, top, attr, columns, column, ranks, pairs, by_column):
    """Marks the columns that are worth sorting, in ``by_column``.

    Returns whether a column is marked, and whether a column with rows and postings is not.

    Costs are estimates in nanoseconds. Tiles of the column compete with a look-up and a test of
    some postings for each row.
    """
    chosen, left = False, False
    for j in range(columns):
        by_column[j] = 0
        a, n = np.int64(attr[j]), column[j + 1] - column[j]
        if group_first[group_begin[a]] == group_first[group_end[a]]:
            continue
        # Estimate the cost of the column's tiles
        sorted_cost = 300.0 + 6.0 * n + 1.1 * n * pairs
        sorted_cost += 1.1 * n * pairs if sets_few(ranks, pairs, n) else ranks * (2.0 + n / 16.0)
        # Add the costs of each group of postings, for tiles and for single rows
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
            by_column[j] = 1
            chosen = True
        else:
            left = True
    return chosen, left
