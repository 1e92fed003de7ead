"""Dense codes of several segments -> those of all of them.

A boundary that no predicate has any more is left out, so the codes are those of a fresh build.
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import ATTR_MASK, FLAG_RUN


@device
def _mark(low, high, begin, end, used):
    """Marks the boundaries of a range of dense codes, of an attribute that has ``begin:end``."""
    if low > high:
        return
    if low > 1:
        used[begin + low - 2] = 1
    if begin + high - 1 < end:
        used[begin + high - 1] = 1


@kernel
def mark_boundaries(pred, run_lo, run_hi, first, used):
    """Marks the boundaries that predicates have: used (B) uint8, zero before.

    pred, run_lo, run_hi as in ``layout.Predicates``, with dense codes; first (A + 1).
    """
    for p in range(len(pred)):
        word = pred[p, 0]
        a = np.int64(word & np.uint32(ATTR_MASK))
        low, high = np.int64(pred[p, 1]), np.int64(pred[p, 2])
        if word & np.uint32(FLAG_RUN):
            for j in range(low, high):
                _mark(np.int64(run_lo[j]), np.int64(run_hi[j]), first[a], first[a + 1], used)
        else:
            _mark(low, high, first[a], first[a + 1], used)


@kernel
def merge_boundaries(first, bound, new_first, new_bound, used, out_first, out, moved, place):
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


@device
def _lowest(low, begin, out_begin, place):
    return place[begin + low - 2] - out_begin + 2 if low > 1 else np.int64(1)


@device
def _highest(high, begin, end, out_begin, out_end, place):
    return place[begin + high - 1] - out_begin + 1 if begin + high - 1 < end else out_end - out_begin + 1


@kernel
def recode_predicates(pred, run_lo, run_hi, first, place, out_first):
    """Dense codes among boundaries of their own -> dense codes among all, in place.

    pred, run_lo, run_hi as in ``layout.Predicates``; first, out_first (A + 1); place (B) as
    ``merge_boundaries`` writes it.
    """
    for p in range(len(pred)):
        word = pred[p, 0]
        a = np.int64(word & np.uint32(ATTR_MASK))
        begin, end, out_begin, out_end = first[a], first[a + 1], out_first[a], out_first[a + 1]
        low, high = np.int64(pred[p, 1]), np.int64(pred[p, 2])
        if word & np.uint32(FLAG_RUN):
            for j in range(low, high):
                run_lo[j] = _lowest(np.int64(run_lo[j]), begin, out_begin, place)
                run_hi[j] = _highest(np.int64(run_hi[j]), begin, end, out_begin, out_end, place)
        elif low <= high:
            pred[p, 1] = _lowest(low, begin, out_begin, place)
            pred[p, 2] = _highest(high, begin, end, out_begin, out_end, place)
