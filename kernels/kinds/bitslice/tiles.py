"""Tiles: some rows of a batch as one byte for each attribute and row.

Predicates are tested against a tile for many rows at once.

The codes of an attribute are cut into up to 254 *bins*, numbered from 1. The byte is the number of
the value's bin, or 0 if the row has no value. The bytes of one attribute are neighbours, so
``within`` tests the values of 64 rows at once against a range of bins. With as many bins as codes,
the result is exact. With fewer bins it is a superset if an end of the range lies within a bin.

Three rows have values in the bins 3, 1 and 2 of one attribute, and 7, none, 7 of another. The
stride is 64::

    tile   * * * 0 ...  | 3 1 2 0 ... | 7 0 7 0 ...

    bins 2 to 3 of the first: within(tile, 64, 2 | 1 << 8) = 0b101

Rank 0 is no attribute. Its bytes may be anything up to 254, since entries without a predicate go
there. So the bounds ``ALWAYS`` hold for them and ``NEVER`` do not.
"""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.bits import ask_for
from colmatch.kernels.kinds.bitslice.arrays import NO_RANK

ROWS_AHEAD = 8  # distance, in rows, at which their slots are prefetched


@device
def bin_entries(first, attr, code, start, stop, rank, bin_first, bin_of, slot, slot_first):
    """Writes a slot for each entry of rows ``start:stop``: rank * 256 + bin, its byte in a tile.

    A row's slots are filled up to a multiple of eight with slots that set nothing. Loops over the
    slots of rows then end alike, which the processor predicts.

    slot_first (rows + 1) : row -> its slots
    bin_first (A + 1), bin_of : attribute -> bins of its codes; empty if codes are bins
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
    """Writes the tile of rows ``order[begin:end]``, at most ``stride``. The tile must be clear."""
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
    """Returns whether rows with ``pairs`` entries each are cheaper to clear one by one.

    The alternative is to clear the bytes of all attributes.
    """
    return 16 * pairs * rows < ranks * (32 + rows)


@device
def clear_tile(tile, stride, ranks, few, slot_first, slot, order, begin, end):
    """Clears the tile of rows ``order[begin:end]``; few : see ``sets_few``."""
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
