"""Events by attribute -> events by row, with codes for keys."""

from colmatch.kernels._jit import kernel
from colmatch.kernels.lower import code_of


@kernel
def transpose(batch, codes, first, attr, code):
    """Fill ``layout.Rows``: first (N + 1), attr, code (at least E) are written. Two passes over the entries, no sorting."""
    rows = len(first) - 1
    first[:] = 0
    entries = batch.col[len(batch.col) - 1]
    for e in range(entries):
        first[batch.row[e] + 1] += 1
    for r in range(rows):
        first[r + 1] += first[r]
    for a in range(len(batch.col) - 1):
        begin, end = codes.first[a], codes.first[a + 1]
        for e in range(batch.col[a], batch.col[a + 1]):
            place = first[batch.row[e]]
            first[batch.row[e]] = place + 1
            attr[place] = a
            code[place] = code_of(codes.bound, begin, end, batch.key[e])
    for r in range(rows, 0, -1):
        first[r] = first[r - 1]
    first[0] = 0
