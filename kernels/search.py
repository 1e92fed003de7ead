"""Coded rows -> columns sorted by code: for each attribute the rows that have it, lowest code
first.
"""

import numpy as np

from colmatch.kernels._jit import device

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
    for e in range(row_first[start], row_first[stop]):
        column[row_attr[e]] += 1
    total = 0
    for a in range(attributes + 1):
        size = column[a]
        column[a] = total
        total += size
    for r in range(start, stop):
        for e in range(row_first[r], row_first[r + 1]):
            a = row_attr[e]
            place = column[a]
            column[a] = place + 1
            row[place] = r - start
            code[place] = row_code[e]
    for a in range(attributes, 0, -1):
        column[a] = column[a - 1]
    column[0] = 0
    for r in range(stop - start):
        row[column[attributes] + r] = r
        code[column[attributes] + r] = 0
    column[attributes + 1] = column[attributes] + stop - start


@device
def sort_column(row, code, begin, end, top, spare_row, spare_code, histogram):
    """Sort the entries ``begin:end`` by code, at most ``top``: bytewise and stable, by as many
    passes as ``top`` has bytes.
    """
    n = end - begin
    if n < 32:
        for i in range(begin + 1, end):
            r, c = row[i], code[i]
            j = i
            while j > begin and code[j - 1] > c:
                row[j] = row[j - 1]
                code[j] = code[j - 1]
                j -= 1
            row[j] = r
            code[j] = c
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
def first_at_least(code, begin, end, value):
    """Place of the first code that is not below ``value``, by binary search without a branch on
    the comparison.
    """
    base = begin
    size = end - begin
    while size > 0:
        half = (size + 1) >> 1
        if code[base + half - 1] < value:
            base += half
        size -= half
    return base


@device
def first_at_least_from(code, begin, end, value):
    """Place of the first code that is not below ``value``, quickly where that is likely near
    ``begin``: by galloping.
    """
    step = 1
    low = begin
    while low + step <= end and code[low + step - 1] < value:
        low += step
        step += step
    return first_at_least(code, low, min(low + step, end), value)


@device
def place_codes(code, begin, end, top, place):
    """place (top + 2): for each code 0 to top + 1 the place of the first of the sorted codes
    that is not below it.
    """
    at = np.int64(begin)
    c = 0
    while at < end:
        value = np.int64(code[at])
        while c <= value:
            place[c] = at
            c += 1
        at += 1
    while c <= top + 1:
        place[c] = end
        c += 1
