"""Short cuts from keys to codes, made from the codes where they are needed; never saved."""

from __future__ import annotations

import numpy as np

from colmatch.kernels import hints, layout


def hints_of(codes: layout.Codes) -> hints.Hints:
    """Hints for coding keys with these codes."""
    code_first, bound = codes.first.view(), codes.bound.view()
    for array in (code_first, bound):  # to a kernel, read-only is another type, and the codes of a matcher are
        array.setflags(write=False)
    lowest, highest, shift = (np.empty(len(codes.multi), np.int64) for _ in range(3))
    first = np.empty(len(code_first), np.int64)
    hints.count_cells(code_first, bound, lowest, highest, first, shift)
    below = np.empty(first[-1], np.uint32)
    hints.fill_cells(code_first, bound, first, shift, below)
    return hints.Hints(lowest, highest, first, shift, below)
