"""Room for pairs of a row and something that kernels find in it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from colmatch.kernels.layout import I64

FIRST = 1 << 14  # pairs for which there is room at first


def found_pairs(end: int, find: Callable[[int, I64, I64, I64], int]) -> tuple[I64, I64]:
    """Calls a kernel until it has come to the end, with twice the room each time.

    find : takes where to go on from, the arrays of rows and of what is found, and ``state``, whose
        first is how many pairs there are; returns where there was no room for more, or ``end``
    """
    row, found, state = np.empty(FIRST, np.int64), np.empty(FIRST, np.int64), np.zeros(1, np.int64)
    start = find(0, row, found, state)
    while start < end:
        row, found = np.resize(row, 2 * len(row)), np.resize(found, 2 * len(found))
        start = find(start, row, found, state)
    return row[: state[0]], found[: state[0]]
