"""Keys to codes, quickly.

A key's code is one plus the number of boundaries at or below it. *Hints* cut the span between an
attribute's lowest and highest boundary into equal cells, about as many as it has boundaries. They
give the number of boundaries below each cell. So a search covers only the few boundaries of one
cell, unless these are crowded. A cell of one key has no boundaries within: there the hints are the
codes. Some attributes, such as amounts of money, would have most boundaries in few cells. Their
cells grow with the distance from the lowest boundary: each doubling of the distance is cut into as
many.

Many keys of one attribute are searched for together, step by step (``find_codes``). So no key
waits for another, and no branch depends on a key.

100 attributes of small integers take 8 ns an entry instead of 19, since the hints are the codes.
Growing cells are computed from the exponent and the first bits of a float64. Then as few boundaries
share a cell as among even keys. Searching 64 keys together takes a half to two thirds of the time.
With growing cells, skewed keys take an eighth of the time.
"""

from typing import NamedTuple

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.bits import ask_for
from colmatch.kernels.layout import I64, KEY_MAX, U32, Written
from colmatch.kernels.search import first_at_least

SIGN = np.uint64(1 << 63)
EXACT = 8  # most cells for each boundary where every key has a separate cell
CROWD = 8  # boundaries of a cell beyond which a binary search replaces a linear one
TILE = np.uint64(64)  # keys that are searched for together
FEW_KEYS = np.uint64(8)  # fewer keys than these are searched for one by one
ONE = np.uint64(1)
ONE_POINT_ZERO = np.float64(1.0).view(np.uint64)
GAIN = 4  # growing cells must divide the steps by this, since they cost a conversion


class Hints(NamedTuple):
    """Hints for A attributes in H cells, made from ``layout.Codes``."""

    lowest: I64  # (A) boundary; KEY_MAX where there are none
    highest: I64  # (A) boundary; KEY_MAX where there are none
    first: I64  # (A + 1) attribute -> its cells and, after them, one for the end; two where there are no boundaries
    shift: I64  # (A) a cell is as wide as 2^shift keys; below 0 see ``cell_of``
    below: U32  # (H) boundaries below the cell


@device
def distance(low, high):
    """Returns ``high - low`` for low <= high, which int64 may not hold.

    The signs are flipped first, so that nothing overflows.
    """
    return (np.uint64(high) ^ SIGN) - (np.uint64(low) ^ SIGN)


@device
def cell_of(far, shift):
    """Returns the cell of a key that is ``far`` (uint64) from the lowest boundary.

    A shift below 0 means growing cells. One plus the distance is taken as a float64, and its bits
    ascend with it. Of these bits, the last ``-shift`` are left out.
    """
    if shift >= 0:
        return far >> np.uint64(shift)
    return (np.float64(np.float64(far) + 1.0).view(np.uint64) - ONE_POINT_ZERO) >> np.uint64(-shift)


@kernel
def count_cells(
    code_first: I64, bound: I64, lowest: Written[I64], highest: Written[I64], first: Written[I64], shift: Written[I64]
) -> None:
    """Writes all of ``Hints`` but ``below``.

    There are as many cells as boundaries, or up to twice as many. There may be up to ``EXACT``
    times as many if every key has a separate cell.
    """
    cut_cells(code_first, bound, lowest, highest, first, shift)


@device
def cut_cells(code_first, bound, lowest, highest, first, shift):
    """Does the same as ``count_cells``, for other kernels."""
    first[0] = 0
    for a in range(len(shift)):
        begin, end = code_first[a], code_first[a + 1]
        first[a + 1] = first[a] + 2
        shift[a] = 0
        lowest[a], highest[a] = KEY_MAX, KEY_MAX
        if begin == end:
            continue
        lowest[a], highest[a] = bound[begin], bound[end - 1]
        # Widen the cells until they are at most twice as many as boundaries
        span, most = distance(bound[begin], bound[end - 1]), np.uint64(2 * (end - begin))
        if span >= np.uint64(EXACT * (end - begin)):
            while cell_of(span, shift[a]) >= most:
                shift[a] += 1
            # Let the cells grow where that saves enough steps
            crowd = _crowd(bound, begin, end, shift[a])
            if crowd > GAIN * (end - begin):
                growing = np.int64(-1)
                while cell_of(span, growing) >= most:
                    growing -= 1
                if GAIN * _crowd(bound, begin, end, growing) < crowd:
                    shift[a] = growing
        first[a + 1] += np.int64(cell_of(span, shift[a]))


@device
def _crowd(bound, begin, end, shift):
    """Adds up, over all boundaries, the number of boundaries in the same cell."""
    crowd, size, last = end - end, end - end, np.uint64(0)
    for b in range(begin, end):
        cell = cell_of(distance(bound[begin], bound[b]), shift)
        size = size + 1 if cell == last else 1
        last = cell
        crowd += 2 * size - 1
    return crowd


@kernel
def fill_cells(code_first: I64, bound: I64, first: Written[I64], shift: Written[I64], below: Written[U32]) -> None:
    """Writes ``Hints.below``."""
    count_below(code_first, bound, first, shift, below)


@device
def count_below(code_first, bound, first, shift, below):
    """Does the same as ``fill_cells``, for other kernels."""
    for a in range(len(shift)):
        b, end = code_first[a], code_first[a + 1]
        cells = first[a + 1] - first[a]
        for cell in range(cells):
            # The last place is after all cells.
            while b < end and (
                cell == cells - 1 or cell_of(distance(bound[code_first[a]], bound[b]), shift[a]) < np.uint64(cell)
            ):
                b += 1
            below[first[a] + cell] = b - code_first[a]


@device
def bound_code(lowest, highest, cell_first, shift, below, key):
    """Returns the fewest and most boundaries at or below ``key`` that its cell allows: often the
    same.
    """
    if key < lowest:
        return np.int64(0), np.int64(0)
    cell = np.uint64(cell_first) + cell_of(distance(lowest, min(key, highest)), shift)
    most = np.int64(below[cell + np.uint64(1)])
    if shift == 0 or key >= highest:
        return most, most
    return np.int64(below[cell]), most


@device
def find_code(bound, begin, lowest, highest, cell_first, shift, below, key):
    """Returns 1 + the number of boundaries at or below ``key``.

    The function is small enough for compilers to inline it.
    """
    low, most = bound_code(lowest, highest, cell_first, shift, below, key)
    if most - low > CROWD:
        # below the highest, so there is a next key
        return first_at_least(bound, begin + low, begin + most, key + 1) - begin + 1
    while low < most and bound[np.uint64(begin + low)] <= key:
        low += 1
    return low + 1


@device
def find_codes(bound, begin, end, lowest, highest, cell_first, shift, below, key, start, keys, found):
    """Writes ``find_code`` of up to ``TILE`` keys to ``found``.

    Each step adds the same power of two, or nothing, to the place of each key. Boundaries after a
    key's cell are above the key. So all keys can take as many steps as the fullest of their cells
    needs. The steps are sums, not conditions, so that compilers make no branch of them.

    bound : ``bound[begin:end]`` are the boundaries of an attribute, with many in a cell
    key : (E) int64, with the keys from ``start`` on
    found : (TILE) uint32
    """
    first, begin = np.uint64(cell_first), np.uint64(begin)
    # Find the cell of each key
    for i in range(keys):
        cell = cell_of(distance(lowest, min(max(key[start + np.uint64(i)], lowest), highest)), shift)
        found[i] = cell
        ask_for(below, first + cell)
    # Begin at the first boundary of each cell, and collect the bits of all sizes
    most = np.uint32(0)
    for i in range(keys):
        cell = first + np.uint64(found[i])
        low = below[cell]
        size = below[cell + ONE] - low
        found[i] = low
        ask_for(bound, begin + np.uint64(low + (size >> np.uint32(1))))
        most |= size
    # Add powers of two, from the highest that the fullest cell needs
    last, step = np.uint64(end) - begin - ONE, np.uint64(0)
    while most >> step > np.uint32(0):
        step += ONE
    while step > np.uint64(0):
        step -= ONE
        for i in range(keys):
            at = min(np.uint64(found[i]) + (ONE << step) - ONE, last)
            further = np.uint64(bound[begin + at] <= key[start + np.uint64(i)])
            found[i] = np.uint64(found[i]) + (further << step)
    # Turn the places into codes
    for i in range(keys):
        found[i] = min(found[i], np.uint32(last + ONE)) + np.uint32(1)
