"""Runs of key intervals.

A *run* is a list of closed key intervals ``lo, hi`` that ascend and neither overlap nor touch.
``first`` gives each owner its run.
"""

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import I64, KEY_MAX, KEY_MIN, U8, Written
from colmatch.kernels.ranges import group_pairs


@kernel
def merge_runs(
    first: Written[I64],
    lo: Written[I64],
    hi: Written[I64],
    outside: Written[U8],
    out_first: Written[I64],
    out_lo: Written[I64],
    out_hi: Written[I64],
) -> None:
    """Merges intervals into runs, and complements the runs of owners with ``outside``.

    The intervals ascend by ``lo``, but may overlap, touch or be empty (lo > hi).

    first (n + 1), lo, hi (m), outside (n) uint8 : read. With outside (0), none is complemented, and
        these may be the arrays written
    out_first (n + 1), out_lo, out_hi (m + n) : written
    """
    out = 0
    end = first[0]
    out_first[0] = 0
    for i in range(len(first) - 1):
        # Merge the owner's intervals, without empty ones
        begin = out
        j, end = end, first[i + 1]
        while j < end:
            low, high = lo[j], hi[j]
            j += 1
            if low > high:
                continue
            if out > begin and (low <= out_hi[out - 1] or low == out_hi[out - 1] + 1):
                out_hi[out - 1] = max(out_hi[out - 1], high)
            else:
                out_lo[out] = low
                out_hi[out] = high
                out += 1
        # Complement the run
        if len(outside) > 0 and outside[i]:
            out = begin + complement(out_lo, out_hi, begin, out)
        out_first[i + 1] = out


@kernel
def group_intervals(
    owner: Written[I64],
    lo: Written[I64],
    hi: Written[I64],
    first: Written[I64],
    out_lo: Written[I64],
    out_hi: Written[I64],
) -> None:
    """Sorts intervals by owner, and ascending by ``lo`` within one.

    first (n + 1) : written
    owner, lo, hi, out_lo, out_hi : (m)
    """
    group_pairs(owner, lo, hi, first, out_lo, out_hi)
    for o in range(len(first) - 1):
        if first[o + 1] - first[o] > 1:
            sort_intervals(out_lo, out_hi, first[o], first[o + 1])


@device
def sort_intervals(lo, hi, first, end):
    """Sorts intervals by ``lo``, almost always two or three. A shell sort avoids quadratic time for
    long IN lists.
    """
    gap = 1
    while gap < (end - first) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(first + gap, end):
            low, high = lo[i], hi[i]
            j = i
            while j >= first + gap and lo[j - gap] > low:
                lo[j] = lo[j - gap]
                hi[j] = hi[j - gap]
                j -= gap
            lo[j] = low
            hi[j] = high
        gap //= 3


@device
def complement(lo, hi, begin, end):
    """Turns the run ``begin:end`` into its complement in place. This needs one more place behind
    it.

    Returns its length.
    """
    # Write the gap before each interval
    out = begin
    start = KEY_MIN
    open_end = True
    for j in range(begin, end):
        low, high = lo[j], hi[j]
        if low > start:
            lo[out] = start
            hi[out] = low - 1
            out += 1
        if high == KEY_MAX:
            open_end = False
            break
        start = high + 1
    # Write the gap after the last interval
    if open_end:
        lo[out] = start
        hi[out] = KEY_MAX
        out += 1
    return out - begin


@device
def intersect(lo, hi, a, a_end, b, b_end, out):
    """Writes the intersection of the runs ``a:a_end`` and ``b:b_end`` from place ``out`` on.

    Returns its end. The intersection is at most as long as both runs together.
    """
    while a < a_end and b < b_end:
        low = max(lo[a], lo[b])
        high = min(hi[a], hi[b])
        if low <= high:
            lo[out] = low
            hi[out] = high
            out += 1
        if hi[a] < hi[b]:
            a += 1
        else:
            b += 1
    return out
