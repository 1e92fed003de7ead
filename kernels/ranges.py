"""Ranges ``first[i]:first[i + 1]`` in a counting sort: counts to where they begin, and back."""

from colmatch.kernels._jit import device


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
