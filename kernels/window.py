"""The values of a window of events that meet a predicate.

Source: "Relevance Matters", V-B: the loss of a node is its number of false candidates over a window
of events. A conjunction matches as often, whichever of its attributes finds it. So it has the
fewest false candidates where the fewest events look at it.
"""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.geometry import boundaries_below
from colmatch.kernels.search import first_at_least


@device
def values_met(window, first, key, code_first, bound, label, a, lo, hi):
    """Counts the values of a window that have a code, or label, from ``lo`` to ``hi``.

    Returns -1 where the window does not know the attribute.

    window : (W + 1) int64, number of values with the codes, or keys, before each
    first : attribute -> its codes, from code 1 on, or its keys; for attributes that were known
    key : (W) int64, ascending within an attribute; (0) where values are counted by code
    code_first, bound, label : of the present codes
    """
    if a + 1 >= len(first):
        return np.int64(-1)
    begin, end = first[a], first[a + 1]
    if len(key) == 0:
        end = begin + min(hi, end - begin)
        begin = min(begin + lo - 1, end)
    else:  # by key, since boundaries come and go
        n = code_first[a]
        least, most = n + boundaries_below(code_first, label, a, lo) - 1, n + boundaries_below(code_first, label, a, hi)
        if most < code_first[a + 1]:
            end = first_at_least(key, begin, end, bound[most])
        if least >= n:
            begin = min(first_at_least(key, begin, end, bound[least]), end)
    return np.int64(window[end] - window[begin])


@device
def estimate_looks(tree, codes, a, lo, hi, part):
    """Estimates the share of events that look at an entry with this range.

    These events have the attribute, with a value in the range. ``part`` is the share of the domain.
    It counts as one more event of the window, so it decides between equals. It is also the result
    for an attribute that the window does not know.
    """
    met = values_met(tree.window, tree.window_first, tree.window_key, codes.first, codes.bound, codes.label, a, lo, hi)
    if met < 0:
        return part
    rows = tree.window_rows
    met = min(met, rows[a])  # a row may have several values
    return (float(met) + part) / (float(rows[len(rows) - 1]) + 1.0)
