"""Ranges ``first[i]:first[i + 1]``: counts to where they begin, and back; and their members."""

from typing import TypeVar

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import I64, U8, U32, Written

Values = TypeVar("Values", U8, U32)


@device
def begin_ranges(first, n):
    """Sums up the sizes of n ranges to where they begin.

    The size of the i-th stands at ``first[i + 1]``; the last end is then at ``first[n]``.
    """
    for i in range(n):
        first[i + 1] += first[i]


@device
def rewind_ranges(first, n):
    """Restore where n ranges begin, after ``first[i]`` has run ahead to the end of the i-th."""
    for i in range(n, 0, -1):
        first[i] = first[i - 1]
    first[0] = 0


@kernel
def list_members(start: I64, first: I64, place: Written[I64]) -> None:
    """Lists the members of n ranges one range after the other.

    start (n) int64 : where they begin. first (n + 1) int64 : where each begins in ``place``
    """
    for i in range(len(start)):
        begin = first[i]
        for j in range(begin, first[i + 1]):
            place[j] = start[i] + j - begin


@kernel
def copy_ranges(rows: Values, width: int, start: I64, size: I64, at: I64, out: Written[Values]) -> None:
    """Copies n ranges of rows, each to a place of its own.

    rows, out : of one type, so many values a row, one row behind the other
    start, size, at (n) int64 : where each range begins, its rows, where it goes
    """
    for i in range(len(start)):
        begin, shift = at[i] * width, (start[i] - at[i]) * width
        for j in range(begin, begin + size[i] * width):
            out[j] = rows[j + shift]
