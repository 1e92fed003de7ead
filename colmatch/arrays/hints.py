"""Hints are short cuts to a place among sorted numbers.

They lead from keys to codes, and from codes to postings. They are made where needed and never
saved.
"""

from __future__ import annotations

import numpy as np

from colmatch.arrays.frozen import freeze_view
from colmatch.kernels import hints, layout


def hints_of(bound_first: layout.I64, bound: layout.I64) -> hints.Hints:
    """Makes hints for finding keys among boundaries, or codes among the lowest codes of postings.

    bound_first (A + 1) : starts of A attributes or groups
    bound (B) : their numbers, ascending within each
    """
    bound_first, bound = freeze_view(bound_first), freeze_view(bound)
    lowest, highest, shift = (np.empty(len(bound_first) - 1, np.int64) for _ in range(3))
    first = np.empty(len(bound_first), np.int64)
    hints.count_cells(bound_first, bound, lowest, highest, first, shift)
    below = np.empty(first[-1], np.uint32)
    hints.fill_cells(bound_first, bound, first, shift, below)
    return hints.Hints(lowest, highest, first, shift, below)
