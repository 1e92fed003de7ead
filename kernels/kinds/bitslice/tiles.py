"""Tiles: some rows of a batch as one byte for each attribute and row.

Predicates are tested against them for many rows at once.

The codes of an attribute are cut into up to 254 *bins*, numbered from 1; the byte is the number of
the value's bin, 0 where the row has none. The bytes of one attribute stand side by side, so
``within`` tells for 64 rows from one place on whose value lies in a range of bins. With as many
bins as codes that is the truth of a predicate; with fewer it is a superset of it, where an end of
the range lies within a bin.

Three rows, their values in the bins 3, 1 and 2 of one attribute and 7, none, 7 of another, stride
64::

    tile   * * * 0 ...  | 3 1 2 0 ... | 7 0 7 0 ...

    bins 2 to 3 of the first: within(tile, 64, 2 | 1 << 8) = 0b101

Rank 0 is no attribute. Its bytes are anything up to 254, the entries that no predicate asks for go
there, and so the bounds ``ALWAYS`` hold for them and ``NEVER`` do not.
"""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.bits import ask_for
from colmatch.kernels.kinds.bitslice.arrays import NO_RANK

ROWS_AHEAD = 8  # rows whose slots are on their way from memory


@device
def bin_entries(first, attr, code, start, stop, rank, bin_first, bin_of, slot, slot_first):
    """Writes what each entry of rows ``start:stop`` sets in a tile: slot = rank * 256 + bin.
    slot_first (rows + 1): row -> its slots.

    A row's slots are a multiple of eight, some of which set nothing: loops over those of one row
    and of the next then end alike, which the processor foretells. bin_first (A + 1), bin_of:
    attribute -> the bin of each of its codes, or nothing where they are the same.
    """
    n = np.uint64(0)
    for r in range(start, stop):
        slot_first[r - start] = n
        for e in range(np.uint64(first[r]), np.uint64(first[r + 1])):
            a = np.uint64(attr[e])
            bin = np.uint64(code[e])
            if bin_first[a] < bin_first[a + np.uint64(1)]:
                bin = np.uint64(bin_of[np.uint64(bin_first[a]) + bin - np.uint64(1)])
            slot[n] = np.uint64(rank[a]) << np.uint64(8) | bin if rank[a] != NO_RANK else np.uint64(0)
            n += np.uint64(1)
        while n & np.uint64(7) != 0:
            slot[n] = 0
            n += np.uint64(1)
    slot_first[stop - start] = n


@device
def fill_tile(tile, stride, slot_first, slot, order, begin, end):
    """Writes the tile of rows ``order[begin:end]``, at most ``stride``. It must be clear."""
    for i in range(np.uint64(begin), np.uint64(end)):
        soon = slot_first[np.uint64(order[min(i + np.uint64(ROWS_AHEAD), np.uint64(end - 1))])]
        ask_for(slot, soon)
        ask_for(slot, soon + np.uint64(16))
        row = np.uint64(order[i])
        place = i - np.uint64(begin)
        for e in range(slot_first[row], slot_first[row + np.uint64(1)], np.uint64(8)):
            for k in range(np.uint64(8)):
                s = np.uint64(slot[e + k])
                tile[(s >> np.uint64(8)) * stride + place] = s & np.uint64(255)


@device
def sets_few(ranks, pairs, rows):
    """Returns whether rows with so few pairs are cheaper to clear one by one.

    The alternative is to clear the bytes of all attributes.
    """
    return 16 * pairs * rows < ranks * (32 + rows)


@device
def clear_tile(tile, stride, ranks, few, slot_first, slot, order, begin, end):
    """Clears the tile of these rows; few: see ``sets_few``."""
    if few:
        for i in range(np.uint64(begin), np.uint64(end)):
            row = np.uint64(order[i])
            place = i - np.uint64(begin)
            for e in range(slot_first[row], slot_first[row + np.uint64(1)], np.uint64(8)):
                for k in range(np.uint64(8)):
                    tile[(np.uint64(slot[e + k]) >> np.uint64(8)) * stride + place] = 0
    else:
        for k in range(np.uint64(ranks)):
            at = k * stride
            for i in range(at, at + np.uint64(end - begin)):
                tile[i] = 0
