"""Merging of the boundaries of several segments.

A boundary that no predicate uses any more is left out, so the codes are those of a fresh build.
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

    Returns the number of boundaries.

    out, out_first (A + 1) : all boundaries, written
    moved (B) : new place of each old boundary, written
    place (N) : place of each new boundary that is used, written
    """
    n = 0
    out_first[0] = 0
    for a in range(len(first) - 1):
        # Walk through the used new boundaries of the attribute
        b, end = first[a], first[a + 1]
        for j in range(new_first[a], new_first[a + 1]):
            if not used[j]:
                continue
            # Copy the old boundaries below it
            while b < end and bound[b] < new_bound[j]:
                out[n] = bound[b]
                moved[b] = n
                n += 1
                b += 1
            # Write it, and skip an equal old one
            place[j] = n
            if b < end and bound[b] == new_bound[j]:
                moved[b] = n
                b += 1
            out[n] = new_bound[j]
            n += 1
        # Copy the other old boundaries
        while b < end:
            out[n] = bound[b]
            moved[b] = n
            n += 1
            b += 1
        out_first[a + 1] = n
    return n
