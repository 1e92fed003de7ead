"""How often a predicate will be looked at, as the events of a window say.

Source: "Relevance Matters", V-B: the loss of a node is the false candidates over a window of
events. Which of a conjunction's attributes it goes by changes nothing of what matches, so the
fewest that look at it are the fewest false candidates.
"""

from colmatch.kernels._jit import device
from colmatch.kernels.geometry import below
from colmatch.kernels.search import first_at_least


@device
def looked_at(tree, codes, a, lo, hi, part):
    """For which part of the events an entry with this range is expected to be looked at.

    They have the attribute, with a value in the range. ``part`` is that of the domain, which counts
    as one event more than the window has: so it decides between equals, and it is all that there is
    for an attribute that the window does not know.
    """
    first = tree.window_first
    if a + 1 >= len(first):
        return part
    begin, end = first[a], first[a + 1]
    key = tree.window_key
    if len(key) == 0:
        end = begin + min(hi, end - begin)
        begin = min(begin + lo - 1, end)
    else:  # boundaries come and go
        n = codes.first[a]
        least, most = n + below(codes, a, lo) - 1, n + below(codes, a, hi)
        if most < codes.first[a + 1]:
            end = first_at_least(key, begin, end, codes.bound[most])
        if least >= n:
            begin = min(first_at_least(key, begin, end, codes.bound[least]), end)
    rows = tree.window_rows
    met = min(tree.window[end] - tree.window[begin], rows[a])  # a row may have several values
    return (float(met) + part) / (float(rows[len(rows) - 1]) + 1.0)
