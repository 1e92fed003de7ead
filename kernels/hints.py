"""Keys to codes, quickly.

A key's code is the number of boundaries at or below it, and one. *Hints* cut the span between an
attribute's lowest and highest boundary into equal cells, about as many as it has boundaries, and
say how many lie below each cell; so the search goes over the few boundaries of one cell, unless
they are crowded. A cell of one key has no boundaries within: there the hints are the codes.
"""

from typing import NamedTuple

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import I64, KEY_MAX, U32
from colmatch.kernels.search import first_at_least

SIGN = np.uint64(1 << 63)
EXACT = 8  # cells for each boundary, if every key then has one of its own
CROWD = 8  # boundaries of a cell beyond which they are not looked at one after the other


class Hints(NamedTuple):
    """Made from ``layout.Codes`` by whoever has events to code."""

    lowest: I64  # (A) boundary; KEY_MAX where there are none
    highest: I64  # (A) boundary; KEY_MAX where there are none
    first: I64  # (A + 1) attribute -> its cells and, behind them, one for the end; two where there are no boundaries
    shift: I64  # (A) a cell is as wide as 2^shift keys
    below: U32  # (H) boundaries below the cell


@device
def distance(low, high):
    """``high - low`` for low <= high, which int64 may not hold.

    The signs are flipped first, so that nothing overflows.
    """
    return (np.uint64(high) ^ SIGN) - (np.uint64(low) ^ SIGN)


@kernel
def count_cells(code_first, bound, lowest, highest, first, shift):
    """Write all of ``Hints`` but ``below``: as many cells as boundaries, or up to twice as many."""
    cut_cells(code_first, bound, lowest, highest, first, shift)


@device
def cut_cells(code_first, bound, lowest, highest, first, shift):
    """``count_cells`` for other kernels."""
    first[0] = 0
    for a in range(len(shift)):
        begin, end = code_first[a], code_first[a + 1]
        first[a + 1] = first[a] + 2
        shift[a] = 0
        lowest[a], highest[a] = KEY_MAX, KEY_MAX
        if begin == end:
            continue
        lowest[a], highest[a] = bound[begin], bound[end - 1]
        span = distance(bound[begin], bound[end - 1])
        if span >= np.uint64(EXACT * (end - begin)):
            while (span >> np.uint64(shift[a])) >= np.uint64(2 * (end - begin)):
                shift[a] += 1
        first[a + 1] += np.int64(span >> np.uint64(shift[a]))


@kernel
def fill_cells(code_first, bound, first, shift, below):
    """Write ``Hints.below``."""
    count_below(code_first, bound, first, shift, below)


@device
def count_below(code_first, bound, first, shift, below):
    """``fill_cells`` for other kernels."""
    for a in range(len(shift)):
        b, end = code_first[a], code_first[a + 1]
        cells = first[a + 1] - first[a]
        for cell in range(cells):
            # The last place is behind all cells.
            while b < end and (
                cell == cells - 1 or distance(bound[code_first[a]], bound[b]) >> np.uint64(shift[a]) < np.uint64(cell)
            ):
                b += 1
            below[first[a] + cell] = b - code_first[a]


@device
def between(lowest, highest, cell_first, shift, below, key):
    """Fewest and most boundaries that can be at or below ``key``, going by its cell: often the
    same.
    """
    if key < lowest:
        return np.int64(0), np.int64(0)
    cell = np.uint64(cell_first) + (distance(lowest, min(key, highest)) >> np.uint64(shift))
    most = np.int64(below[cell + np.uint64(1)])
    if shift == 0 or key >= highest:
        return most, most
    return np.int64(below[cell]), most


@device
def hinted_code(bound, begin, lowest, highest, cell_first, shift, below, key):
    """1 + the number of boundaries at or below ``key``.

    Small enough for compilers to put it where it is called.
    """
    low, most = between(lowest, highest, cell_first, shift, below, key)
    if most - low > CROWD:
        # below the highest, so there is a next key
        return first_at_least(bound, begin + low, begin + most, key + 1) - begin + 1
    while low < most and bound[np.uint64(begin + low)] <= key:
        low += 1
    return low + 1
