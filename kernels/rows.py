"""Events by attribute -> events by row, with codes for keys."""

from colmatch.kernels._jit import kernel
from colmatch.kernels.hints import hinted_code

ROW_BLOCK = 256


@kernel
def transpose(batch, codes, hints, next, first, attr, code):
    """Fill ``layout.Rows``: first (N + 1), attr, code (at least E) are written. Two passes over the entries, no sorting.

    A block of rows passes over all columns before the next, so that what is written stays in the cache. next (A) int64: scratch.
    """
    rows = len(first) - 1
    bound, code_first, cell_first, cell_shift, below = codes.bound, codes.first, hints.first, hints.shift, hints.below
    col, entry_row, entry_key = batch.col, batch.row, batch.key
    first[:] = 0
    attributes = len(col) - 1
    for e in range(col[attributes]):
        first[entry_row[e] + 1] += 1
    for r in range(rows):
        first[r + 1] += first[r]
    for a in range(attributes):
        next[a] = col[a]
    # Few entries a column and block would cost more than they save.
    block = ROW_BLOCK if col[attributes] >= 4 * attributes * (rows // ROW_BLOCK + 1) else rows
    for stop in range(min(block, rows), rows + block, max(block, 1)):
        for a in range(attributes):
            e, e_end = next[a], col[a + 1]
            begin, end = code_first[a], code_first[a + 1]
            cells, shift = cell_first[a], cell_shift[a]
            while e < e_end and entry_row[e] < stop:
                place = first[entry_row[e]]
                first[entry_row[e]] = place + 1
                attr[place] = a
                code[place] = hinted_code(bound, begin, end, cells, shift, below, entry_key[e])
                e += 1
            next[a] = e
    for r in range(rows, 0, -1):
        first[r] = first[r - 1]
    first[0] = 0


@kernel
def count_codes(batch, codes, hints, hits):
    """Add to hits (codes) how many entries have each code of each attribute, code 1 of attribute 0 first."""
    base = 0
    for a in range(len(batch.col) - 1):
        begin, end = codes.first[a], codes.first[a + 1]
        for e in range(batch.col[a], batch.col[a + 1]):
            code = hinted_code(codes.bound, begin, end, hints.first[a], hints.shift[a], hints.below, batch.key[e])
            hits[base + code - 1] += 1
        base += end - begin + 1
