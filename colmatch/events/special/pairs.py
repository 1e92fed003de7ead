"""Growing room for pairs of a row and an item that kernels find in it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from colmatch.kernels.layout import I64

FIRST = 1 << 14  # pairs that fit at first


def find_pairs(end: int, find: Callable[[int, I64, I64, I64], int]) -> tuple[I64, I64]:
    """Calls a kernel until it reaches the end, with twice the room each time. Returns the pairs.

    find : takes a start, the arrays of rows and of items, and ``state`` with the number of pairs.
        Returns the place where the room ended, or ``end``
    """
    row, items, state = np.empty(FIRST, np.int64), np.empty(FIRST, np.int64), np.zeros(1, np.int64)
    start = find(0, row, items, state)
    while start < end:
        row, items = np.resize(row, 2 * len(row)), np.resize(items, 2 * len(items))
        start = find(start, row, items, state)
    return row[: state[0]], items[: state[0]]
