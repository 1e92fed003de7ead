"""Truth of predicates for 64 rows at a time: a bit for each row.

The codes of an attribute are cut into *bins*. Over a word of up to 64 rows, slot ``(attr, k)`` of a table holds the rows whose
value lies in one of the first ``k`` bins. So ``table[attr, high + 1] & ~table[attr, low]`` are the rows with a value in the bins
``low..high``, for every range at the same cost. With as many bins as codes that is the truth of a range predicate; with fewer it is a
superset of it, where an end of the range lies within a bin.

Three rows, one attribute of three bins, values in bins 2, 0 and 1 (bit 0 is the first row)::

    k                     0    1    2    3
    table[attr, k]      000  010  110  111     "bins 1..2" is table[3] & ~table[1] = 101

Slots are ordered by ``k`` and then by attribute, those with the most bins first, so that one pass of a flat OR makes step ``k`` from
step ``k - 1``. Slot 0 stays empty (step 0 of every attribute), slot 1 full, and slot 2 takes the entries of attributes without slots.
"""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.hints import code_of

EMPTY = 0
FULL = 1
NOWHERE = 2
FIRST_STEP = 8  # step 1 starts here
MOST_SLOTS = 65536  # they are numbered by uint16

# rest_op
MORE = 1  # another interval of the same predicate follows
OUTSIDE = 2  # the predicate is true where none of its intervals holds
VAGUE = 4  # in a program: the mask is a superset of the truth
LAST = 8  # the last entry of its posting
STEP = 16  # of a program

ALL = np.uint64(2**64 - 1)
WORD = 64


@device
def slots_of_rows(first, attr, code, start, stop, rank, step, cut_first, cut, exact, slot):
    """Slot of each entry of rows ``start:stop``: step bin + 1 of its attribute, from which the prefix pass starts."""
    offset = first[start]
    for e in range(offset, first[stop]):
        a = attr[e]
        if rank[a] == np.uint32(0xFFFFFFFF):
            slot[e - offset] = NOWHERE
        elif exact[a]:
            slot[e - offset] = step[np.int64(code[e])] + rank[a]
        else:
            slot[e - offset] = step[code_of(cut, cut_first[a], cut_first[a + 1], code[e])] + rank[a]


@device
def or_words(table, to, source, size):
    """``table[to:to + size] |= table[source:source + size]``."""
    for i in range(size):
        table[to + i] |= table[source + i]


@device
def fill_table(table, step, row_first, slot, offset, start, order, begin, end):
    """The table of rows ``order[begin:end]``, at most 64 (counted from ``start``). It must be clear."""
    bit = np.uint64(1)
    for i in range(begin, end):
        row = start + np.int64(order[i])
        for e in range(np.uint64(row_first[row] - offset), np.uint64(row_first[row + 1] - offset)):
            table[slot[e]] |= bit
        bit <<= np.uint64(1)
    for k in range(2, len(step) - 1):
        or_words(table, np.uint64(step[k]), np.uint64(step[k - 1]), np.uint64(step[k + 1] - step[k]))
    table[EMPTY] = np.uint64(0)
    table[FULL] = ALL


@device
def sets_few(step, pairs, rows):
    """Whether it is cheaper to clear the slots that some rows set than all: no steps but the first, and most slots are clear."""
    return len(step) <= 3 and 8 * pairs * rows < step[len(step) - 1]


@device
def clear_table(table, step, row_first, slot, offset, start, order, begin, end):
    """Clear the table of these rows: the slots that they set, if nothing else is set and these are few, or all."""
    if sets_few(step, row_first[start + 1] - row_first[start], end - begin):
        for i in range(begin, end):
            row = start + np.int64(order[i])
            for e in range(np.uint64(row_first[row] - offset), np.uint64(row_first[row + 1] - offset)):
                table[slot[e]] = np.uint64(0)
    else:
        for i in range(np.uint64(step[len(step) - 1])):
            table[i] = np.uint64(0)
