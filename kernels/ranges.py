"""Ranges ``first[i]:first[i + 1]``: from sizes to starts, and back; and the members of ranges."""

from typing import TypeVar

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import I64, U8, U32, Written

Values = TypeVar("Values", U8, U32)


@device
def begin_ranges(first, n):
    """Adds up the sizes of n ranges to their starts.

    The size of the i-th is at ``first[i + 1]`` before. The last end is at ``first[n]`` afterwards.
    """
    for i in range(n):
        first[i + 1] += first[i]


@device
def rewind_ranges(first, n):
    """Restores the starts of n ranges, after ``first[i]`` has advanced to the end of the i-th."""
    for i in range(n, 0, -1):
        first[i] = first[i - 1]
    first[0] = 0


@device
def group_pairs(owner, one, other, first, out_one, out_other):
    """Writes pairs of values by owner, in the order that they have.

    owner, one, other (m) : of each pair
    first (n + 1) : written, owner -> its pairs in ``out_one`` and ``out_other``
    """
    for o in range(len(first)):
        first[o] = 0
    for i in range(len(owner)):
        first[owner[i] + 1] += 1
    begin_ranges(first, len(first) - 1)
    for i in range(len(owner)):  # first[o] advances with each pair of o, and ends at the start of o + 1
        place = first[owner[i]]
        out_one[place] = one[i]
        out_other[place] = other[i]
        first[owner[i]] = place + 1
    rewind_ranges(first, len(first) - 1)


@kernel
def list_members(start: I64, first: I64, place: Written[I64]) -> None:
    """Lists the members of n ranges, one range after the other.

    start : (n) int64, start of each range
    first : (n + 1) int64, start of each range in ``place``
    """
    for i in range(len(start)):
        begin = first[i]
        for j in range(begin, first[i + 1]):
            place[j] = start[i] + j - begin


@kernel
def copy_ranges(rows: Values, width: int, start: I64, size: I64, at: I64, out: Written[Values]) -> None:
    """Copies n ranges of rows, each to a separate place.

    rows, out : arrays of one type, with ``width`` values a row, one row after the other
    start, size, at : (n) int64, start of each range, its number of rows, its place in ``out``
    """
    for i in range(len(start)):
        begin, shift = at[i] * width, (start[i] - at[i]) * width
        for j in range(begin, begin + size[i] * width):
            out[j] = rows[j + shift]
