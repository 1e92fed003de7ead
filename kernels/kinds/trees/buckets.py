"""Division of one bucket into three: left, overlap and right, where left and right never meet.

A cut is a code. The left bucket has the ranges that end at the cut or before, the right bucket
those that begin after it. The overlap has the ranges with both sides. Only the highest codes of
ranges are worth trying as cuts. Any other cut has the left bucket of the next such code below it,
and no smaller overlap. So the second of the paper's two orders, by lowest codes, can be left out.

Source: "Relevance Matters", V-A3.
"""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.geometry import middle_of, width
from colmatch.kernels.kinds.trees.arrays import ALPHA, ATTR, COUNT, EXHAUSTIVE, LEAF, SPACED

STAYS, TO_LEFT, TO_RIGHT = 0, 1, 2  # destination of an entry of a leaf


@device
def order_by(key, order, n, count):
    """Writes the numbers below ``n`` into ``order``, by their keys.

    It counts keys where there are not many more keys than numbers. Otherwise it uses a heap.
    """
    # Find the span of the keys
    lowest, highest = np.int64(key[0]), np.int64(key[0])
    for i in range(n):
        lowest, highest = min(lowest, np.int64(key[i])), max(highest, np.int64(key[i]))
    span = highest - lowest + 1
    # Sort by counting
    if span < min(4 * n, len(count)):
        for k in range(span + 1):
            count[k] = 0
        for i in range(n):
            count[np.int64(key[i]) - lowest + 1] += 1
        for k in range(span):
            count[k + 1] += count[k]
        for i in range(n):
            at = np.int64(key[i]) - lowest
            order[count[at]] = i
            count[at] += 1
        return
    # Otherwise sort with a heap
    for i in range(n):
        order[i] = i
    start, end = n // 2, n
    while end > 1:
        if start > 0:
            start -= 1
        else:
            end -= 1
            order[0], order[end] = order[end], order[0]
        root = start
        while 2 * root + 1 < end:
            child = 2 * root + 1
            if child + 1 < end and key[order[child]] < key[order[child + 1]]:
                child += 1
            if key[order[root]] >= key[order[child]]:
                break
            order[root], order[child] = order[child], order[root]
            root = child


@device
def cut_in_three(tree, codes, work, n):
    """Writes the destinations of a leaf's entries into ``work.side``. Returns whether there is a
    cut.
    """
    # Order the ranges by both ends
    a = np.int64(tree.node[n, ATTR])
    count, leaf = np.int64(tree.node[n, COUNT]), np.int64(tree.node[n, LEAF])
    lo, hi = work.lo, work.hi
    for i in range(count):
        lo[i], hi[i] = tree.reach[leaf + i, 0], tree.reach[leaf + i, 1]
    order_by(lo, work.by_lo, count, work.tally)
    order_by(hi, work.by_hi, count, work.tally)
    # Take the best cut, or ranges from both ends in turns
    least = max((count * tree.plan[ALPHA] + 99) // 100, 1)
    if tree.plan[EXHAUSTIVE]:
        cut = _best_cut(codes, a, work, count, least)
        if cut > 0:
            _cut(work, count, cut)
            return True
    elif _cut_from_both_ends(work, count, least):
        return True
    # Otherwise cut in the middle of all ranges
    highest = np.int64(0)
    for i in range(count):
        highest = max(highest, np.int64(hi[i]))
    cut = middle_of(codes, a, np.int64(lo[work.by_lo[0]]), highest, False) - 1
    if cut < 1:
        return False
    _cut(work, count, cut)
    tree.state[SPACED] += 1
    return True


@device
def _cut(work, count, cut):
    for i in range(count):
        work.side[i] = TO_LEFT if work.hi[i] <= cut else TO_RIGHT if work.lo[i] > cut else STAYS


@device
def _best_cut(codes, a, work, count, least):
    """Returns the cut with the least overlap, and of these the least coverage. Returns 0 without a
    cut.

    A cut leaves at least ``least`` ranges on each side. Of equal cuts, the most even one is
    returned.
    """
    # Collect the ends of all ranges from each place on
    lo, hi, by_lo, by_hi = work.lo, work.hi, work.by_lo, work.by_hi
    low_after, high_after = work.low_after, work.high_after  # of the ranges from place i on
    for i in range(count - 1, -1, -1):
        low, high = np.int64(lo[by_hi[i]]), np.int64(hi[by_lo[i]])
        low_after[i] = min(low, np.int64(low_after[i + 1])) if i + 1 < count else low
        high_after[i] = max(high, np.int64(high_after[i + 1])) if i + 1 < count else high
    # Try the highest code of each range as a cut
    best, best_overlap, best_coverage, best_fewer = np.int64(0), 0.0, 0.0, np.int64(0)
    lowest, highest = np.int64(lo[by_hi[0]]), np.int64(0)  # of ranges on the left; of ranges that begin up to the cut
    j = 0  # ranges that begin up to the cut
    for i in range(count):
        cut = np.int64(hi[by_hi[i]])
        lowest = min(lowest, np.int64(lo[by_hi[i]]))
        # Skip repeats, and cuts that leave too few ranges on a side
        if i + 1 < count and hi[by_hi[i + 1]] == cut:
            continue
        while j < count and lo[by_lo[j]] <= cut:
            highest = max(highest, np.int64(hi[by_lo[j]]))
            j += 1
        if count - j < least:
            break
        if i + 1 < least:
            continue
        # Measure the overlap, and the keys that any of the three buckets covers
        right_low, right_high = np.int64(lo[by_lo[j]]), np.int64(high_after[j])
        overlap = 0.0
        coverage = width(codes, a, lowest, cut) + width(codes, a, right_low, right_high)
        if highest > cut:  # something has both sides
            low = np.int64(low_after[i + 1])
            overlap = width(codes, a, low, highest)
            if low < lowest:
                coverage += width(codes, a, low, lowest - 1)
            if highest > right_high:
                coverage += width(codes, a, right_high + 1, highest)
            if cut + 1 <= min(highest, right_low - 1):
                coverage += width(codes, a, cut + 1, min(highest, right_low - 1))
        # Keep the best cut
        fewer = min(i + 1, count - j)
        if overlap == best_overlap and coverage == best_coverage:
            better = fewer > best_fewer
        else:
            better = overlap < best_overlap or (overlap == best_overlap and coverage < best_coverage)
        if best == 0 or better:
            best, best_overlap, best_coverage, best_fewer = cut, overlap, coverage, fewer
    return best


@device
def _cut_from_both_ends(work, count, least):
    """Takes the next range from the left and the next from the right, in turns.

    A range that would meet the other bucket stays. Returns whether each side has at least ``least``
    ranges.
    """
    # Begin with two empty buckets
    lo, hi, by_lo, by_hi, side = work.lo, work.hi, work.by_lo, work.by_hi, work.side
    seen = 3
    for i in range(count):
        side[i] = seen
    left_high, right_low = np.int64(-1), np.int64(2**32)
    to_left = to_right = np.int64(0)
    i, j = 0, count - 1
    while i < count or j >= 0:
        # Take the next range by high end. Put it left, else right, unless it meets both buckets.
        while i < count and side[by_hi[i]] != seen:
            i += 1
        if i < count:
            r = np.int64(by_hi[i])
            if hi[r] < right_low:
                side[r] = TO_LEFT
                left_high = max(left_high, np.int64(hi[r]))
                to_left += 1
            else:
                side[r] = STAYS if lo[r] <= left_high else TO_RIGHT
                if side[r] == TO_RIGHT:
                    right_low = min(right_low, np.int64(lo[r]))
                    to_right += 1
        # Take the next range by low end. Put it right, else left, unless it meets both buckets.
        while j >= 0 and side[by_lo[j]] != seen:
            j -= 1
        if j >= 0:
            r = np.int64(by_lo[j])
            if lo[r] > left_high:
                side[r] = TO_RIGHT
                right_low = min(right_low, np.int64(lo[r]))
                to_right += 1
            else:
                side[r] = STAYS if hi[r] >= right_low else TO_LEFT
                if side[r] == TO_LEFT:
                    left_high = max(left_high, np.int64(hi[r]))
                    to_left += 1
    return to_left >= least and to_right >= least
