"""Key intervals of leaves -> predicates with key intervals, merged.

Runs once, when subscriptions are built; ``lower_codes`` goes on.

A *run* is a list of closed key intervals ``lo, hi`` that ascend and neither overlap nor touch;
``first`` gives each owner its run.
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import FLAG_MULTI, FLAG_NONE, FLAG_RUN, KEY_MAX, KEY_MIN


@kernel
def merge_runs(first, lo, hi, outside, out_first, out_lo, out_hi):
    """Intervals that ascend by ``lo`` but may overlap, touch or be empty (lo > hi) -> runs,
    complemented where ``outside``.

    first (n + 1), lo, hi (m), outside (n) uint8; out_first (n + 1), out_lo, out_hi (m + n). With
    outside (0) none is complemented, and what is written may be what is read.
    """
    out = 0
    end = first[0]
    out_first[0] = 0
    for i in range(len(first) - 1):
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
        if len(outside) > 0 and outside[i]:
            out = begin + _complement(out_lo, out_hi, begin, out)
        out_first[i + 1] = out


@kernel
def group_intervals(owner, lo, hi, first, out_lo, out_hi):
    """Intervals in any order -> by owner, ascending by ``lo`` within one. first (n + 1) is
    written; all others are (m).
    """
    for o in range(len(first)):
        first[o] = 0
    for i in range(len(owner)):
        first[owner[i] + 1] += 1
    for o in range(len(first) - 1):
        first[o + 1] += first[o]
    for i in range(len(owner)):  # first[o] runs ahead to the place of the next one, and so ends at the start of o + 1
        place = first[owner[i]]
        out_lo[place] = lo[i]
        out_hi[place] = hi[i]
        first[owner[i]] = place + 1
    for o in range(len(first) - 1, 0, -1):
        first[o] = first[o - 1]
    first[0] = 0
    for o in range(len(first) - 1):
        if first[o + 1] - first[o] > 1:
            _sort_intervals(out_lo, out_hi, first[o], first[o + 1])


@device
def _sort_intervals(lo, hi, first, end):
    """Shell sort: almost always two or three intervals, and a long IN list is no quadratic trap."""
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
def _complement(lo, hi, begin, end):
    """Turn the run ``begin:end`` into its complement in place; needs one more place behind it.

    Returns its length.
    """
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
    if open_end:
        lo[out] = start
        hi[out] = KEY_MAX
        out += 1
    return out - begin


@device
def _intersect(lo, hi, a, a_end, b, b_end, out):
    """Write the intersection of the runs ``a:a_end`` and ``b:b_end`` from place ``out`` on.

    Returns its end: at most as long as both.
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


@device
def _sort_by_attr(leaf, attr, first, end):
    """Shell sort of ``leaf[first:end]`` by attribute: conjunctions are short, and a huge one is
    still no quadratic trap.
    """
    gap = 1
    while gap < (end - first) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(first + gap, end):
            moved = leaf[i]
            j = i
            while j >= first + gap and attr[leaf[j - gap]] > attr[moved]:
                leaf[j] = leaf[j - gap]
                j -= gap
            leaf[j] = moved
        gap //= 3


@kernel
def measure(first, leaf, run_first):
    """Intervals and complements of conjunctions at most: first (C + 1), leaf (P), run_first (L +
    1) -> the longest one's, those of all.
    """
    longest = 0
    total = 0
    for c in range(len(first) - 1):
        before = total
        for p in range(first[c], first[c + 1]):
            total += run_first[leaf[p] + 1] - run_first[leaf[p]] + 1
        longest = max(longest, total - before)
    return longest, total


@kernel
def merge_conjunctions(
    first, leaf, program, leaf_attr, leaf_none, leaf_weight, run_first, run_lo, run_hi, multi, spare_lo, spare_hi,
    keep, out_first, pred, out_weight, out_lo, out_hi,
):  # fmt: skip
    """Leaves of conjunctions -> predicates: one for each attribute of a plain conjunction;
    contradictions and tautologies removed.

    What a leaf allows a single-valued attribute is a set of keys and whether it may be absent, so
    that an AND is the intersection of both.

    Parameters
    ----------
    first (C + 1), leaf (P) int64 : conjunction -> leaf ids; reordered in place. program (C) uint8 :
        leave its leaves as they are
    leaf_attr (L) int64, leaf_none (L) uint8, leaf_weight (L) float64 or (0), run_first (L + 1),
        run_lo, run_hi : the leaves
    multi (A) uint8 : attributes with several entries, whose predicates cannot be merged
    spare_lo, spare_hi (3 * longest) : room for three runs of the longest conjunction
    keep (C) uint8, out_first (C + 1), pred (P, 3) uint32, out_weight (P), out_lo, out_hi : written;
        keep = 0 for a conjunction that can never be true, which then has no predicates. A predicate
        is its attribute with flags, and how many intervals it has; these stand in out_lo, out_hi
        one after the other

    Returns
    -------
    predicates, intervals : how many were written
    """
    n = 0
    m = 0
    one = np.uint64(1)
    longest = len(spare_lo) // 3
    weighted = len(leaf_weight) > 0
    out_first[0] = 0
    for c in range(len(first) - 1):
        begin = n
        begin_run = m
        keep[c] = 1
        p, end = first[c], first[c + 1]
        if not program[c]:
            simple = True  # one interval for each attribute, and these ascend
            for i in range(np.uint64(p), np.uint64(end)):
                f = np.uint64(leaf[i])
                simple &= run_first[f + one] - run_first[f] == 1
                simple &= i + one >= np.uint64(end) or leaf_attr[f] < leaf_attr[np.uint64(leaf[i + one])]
            if simple:
                for i in range(np.uint64(p), np.uint64(end)):
                    f = np.uint64(leaf[i])
                    a = leaf_attr[f]
                    out_lo[np.uint64(m)] = run_lo[np.uint64(run_first[f])]
                    out_hi[np.uint64(m)] = run_hi[np.uint64(run_first[f])]
                    pred[np.uint64(n), 0] = (
                        np.uint32(a)
                        | np.uint32(leaf_none[f]) * np.uint32(FLAG_NONE)
                        | np.uint32(multi[np.uint64(a)]) * np.uint32(FLAG_MULTI)
                    )
                    pred[np.uint64(n), 1] = 1
                    if weighted:
                        out_weight[n] = leaf_weight[f]
                    n += 1
                    m += 1
                out_first[c + 1] = n
                continue
            _sort_by_attr(leaf, leaf_attr, p, end)
        while p < end:
            f = leaf[p]
            a = leaf_attr[f]
            last = p + 1
            if not program[c] and not multi[a]:
                while last < end and leaf_attr[leaf[last]] == a:
                    last += 1
            weight = leaf_weight[f] if weighted else 0.0
            none = leaf_none[f]
            begin_one = m
            if last == p + 1:
                for j in range(run_first[f], run_first[f + 1]):
                    out_lo[m] = run_lo[j]
                    out_hi[m] = run_hi[j]
                    m += 1
            else:
                at, end_at = np.int64(0), np.int64(1)
                spare_lo[0], spare_hi[0] = KEY_MIN, KEY_MAX
                for q in range(p, last):
                    f = leaf[q]
                    allowed = 2 * longest
                    for j in range(run_first[f], run_first[f + 1]):
                        spare_lo[allowed] = run_lo[j]
                        spare_hi[allowed] = run_hi[j]
                        allowed += 1
                    if leaf_none[f]:
                        allowed = 2 * longest + _complement(spare_lo, spare_hi, 2 * longest, allowed)
                    other = longest - at
                    end_at = _intersect(spare_lo, spare_hi, at, end_at, 2 * longest, allowed, other)
                    at = other
                    none = none & leaf_none[f]
                    if weighted and q > p:
                        weight += leaf_weight[f]
                if none:
                    end_at = at + _complement(spare_lo, spare_hi, at, end_at)
                for j in range(at, end_at):
                    out_lo[m] = spare_lo[j]
                    out_hi[m] = spare_hi[j]
                    m += 1
            p = last
            if m == begin_one and not program[c]:
                if none:
                    continue  # nothing is forbidden
                keep[c] = 0
                break
            word = np.uint32(a)
            if none:
                word |= np.uint32(FLAG_NONE)
            if multi[a]:
                word |= np.uint32(FLAG_MULTI)
            if m > begin_one + 1:
                word |= np.uint32(FLAG_RUN)
            pred[n, 0] = word
            pred[n, 1] = m - begin_one
            if weighted:
                out_weight[n] = weight
            n += 1
        if not keep[c]:
            n = begin
            m = begin_run
        out_first[c + 1] = n
    return n, m


@kernel
def reorder(first, pred, weight, order, out_first, out_pred, out_weight):
    """Predicates by conjunction -> the same in the order ``order`` (C) of conjunctions.

    All ``out_`` are written.
    """
    n = 0
    out_first[0] = 0
    for i in range(len(order)):
        for p in range(first[order[i]], first[order[i] + 1]):
            for j in range(3):
                out_pred[n, j] = pred[p, j]
            if len(weight) > 0:
                out_weight[n] = weight[p]
            n += 1
        out_first[i + 1] = n
