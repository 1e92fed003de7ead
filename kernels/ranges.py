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
