"""Boundaries of several segments -> those of all of them.

A boundary that no predicate has any more is left out, so the codes are those of a fresh build.
"""

from colmatch.kernels._jit import kernel
from colmatch.kernels.layout import I64, U8, Written


@kernel
def merge_boundaries(
    first: I64,
    bound: I64,
    new_first: I64,
    new_bound: I64,
    used: U8,
    out_first: Written[I64],
    out: Written[I64],
    moved: Written[I64],
    place: Written[I64],
) -> int:
    """Merges the boundaries of A attributes with those of others that are used.

    Returns how many there are: out and out_first (A + 1) are written, and where each has come to
    stand: moved (B), and place (N) of those that are used.
    """
    n = 0
    out_first[0] = 0
    for a in range(len(first) - 1):
        b, end = first[a], first[a + 1]
        for j in range(new_first[a], new_first[a + 1]):
            if not used[j]:
                continue
            while b < end and bound[b] < new_bound[j]:
                out[n] = bound[b]
                moved[b] = n
                n += 1
                b += 1
            place[j] = n
            if b < end and bound[b] == new_bound[j]:
                moved[b] = n
                b += 1
            out[n] = new_bound[j]
            n += 1
        while b < end:
            out[n] = bound[b]
            moved[b] = n
            n += 1
            b += 1
        out_first[a + 1] = n
    return n
