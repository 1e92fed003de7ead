"""k-index is built in counting passes.

They count the entries of each list, write the entries, and cut each list where sizes begin.
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.kinds.kindex.arrays import FANOUT_BITS, NO_CLAUSE, ONCE, DomainLists, Numbering
from colmatch.kernels.kinds.kindex.bounds import entry_score
from colmatch.kernels.layout import (
    ATTR_MASK,
    F32,
    F64,
    FLAG_MULTI,
    FLAG_NONE,
    FLAG_RUN,
    I64,
    U16,
    U32,
    Bools,
    Predicates,
    Written,
)


@device
def align_range(low, high, last):
    """Cuts ``low..high``, of places 0 to ``last``, into whole pieces of the next level.

    Returns left and right: the places ``low..left`` and ``right..high`` remain on this level. The
    last piece may be short.
    """
    mask = (np.int64(1) << FANOUT_BITS) - 1
    left = min(high, ((low + mask) & ~mask) - 1)
    right = high + 1
    if high != last:
        right = max(left + 1, (high + 1) & ~mask)
    return left, right


@device
def lists_of_interval(low, high, top, tree, raw, first):
    """Counts the lists that the places ``low..high`` of an attribute take, out of 0 to ``top - 1``.

    first : place 0 of the attribute in ``raw``
    """
    if low > high:
        return np.int64(0)
    if low == 0 and high == top - 1:
        return np.int64(1)
    if len(raw) > 0:
        return raw[first + high + 1] - raw[first + low]
    if not tree:
        return high - low + 1
    # Count the places that remain on each level, going up
    count, end = np.int64(0), top - 1
    left, right = align_range(low, high, end)
    while left + 1 < right:
        count += left - low + 1 + high - right + 1
        low, high = (left + 1) >> FANOUT_BITS, (right - 1) >> FANOUT_BITS
        end >>= FANOUT_BITS
        left, right = align_range(low, high, end)
    return count + high - low + 1


@device
def intervals_of(pred, p):
    """Returns the range of a predicate's intervals in ``run_lo`` and ``run_hi``, or 0 and 1."""
    if pred[p, 0] & FLAG_RUN:
        return np.int64(pred[p, 1]), np.int64(pred[p, 2])
    return np.int64(0), np.int64(1)


@device
def interval_of(pred, run_lo, run_hi, p, r, end, by_gaps):
    """Returns the places of interval ``r`` of predicate ``p``.

    With ``by_gaps``, returns the gap behind the interval; for the last one, all from the first on.
    """
    low, high = np.int64(pred[p, 1]), np.int64(pred[p, 2])
    if by_gaps:
        if r + 1 < end:
            low, high = np.int64(run_hi[r]) + 1, np.int64(run_lo[r + 1]) - 1
        else:
            low, high = np.int64(run_lo[low]), np.int64(run_hi[r])
    elif pred[p, 0] & FLAG_RUN:
        low, high = np.int64(run_lo[r]), np.int64(run_hi[r])
    return low - 1, high - 1


@device
def lists_of_predicate(pred, run_lo, run_hi, p, by_gaps, top, tree, raw, first):
    """Counts the lists that a predicate's intervals take.

    With ``by_gaps``, these are one interval from the lowest to the highest value, and the gaps.
    """
    count = np.int64(0)
    begin, end = intervals_of(pred, p)
    for r in range(begin, end):
        low, high = interval_of(pred, run_lo, run_hi, p, r, end, by_gaps)
        count += lists_of_interval(low, high, top, tree, raw, first)
    return count


@device
def takes_gaps(pred, run_lo, run_hi, p, top, tree, raw, first):
    """Returns whether a predicate takes fewer lists by its gaps, as NOT IN does.

    An attribute with several values never takes gaps: a value in a gap decides nothing for others.
    """
    if pred[p, 0] & (FLAG_RUN | FLAG_NONE | FLAG_MULTI) != FLAG_RUN:
        return False
    own = lists_of_predicate(pred, run_lo, run_hi, p, False, top, tree, raw, first)
    begin, end = intervals_of(pred, p)
    if own <= end - begin:  # the gaps and the whole around them take at least a list each
        return False
    return lists_of_predicate(pred, run_lo, run_hi, p, True, top, tree, raw, first) < own


@kernel
def measure(
    preds: Predicates,
    top: Written[I64],
    raw: Written[I64],
    raw_first: Written[I64],
    spans: Written[F64],
    uses: Written[I64],
    whole: Written[Bools],
) -> None:
    """Counts the entries and intervals of the predicates on each attribute, without a tree.

    Entries are added to spans (A) float64, and intervals to uses (A) int64. whole (A) bool is set
    if an interval has all values. Spans are floats, because they may count 2**64 values many times.
    """
    pred, run_lo, run_hi = preds.pred, preds.run_lo, preds.run_hi
    for p in range(len(pred)):
        a = pred[p, 0] & ATTR_MASK
        place = raw_first[a] if len(raw) > 0 else np.int64(0)
        by_gaps = takes_gaps(pred, run_lo, run_hi, p, top[a], np.uint8(0), raw, place)
        spans[a] += lists_of_predicate(pred, run_lo, run_hi, p, by_gaps, top[a], np.uint8(0), raw, place)
        begin, end = intervals_of(pred, p)
        uses[a] += end - begin
        # Of several intervals none has all values; the interval around gaps comes last
        low, high = interval_of(pred, run_lo, run_hi, p, end - 1, end, by_gaps)
        whole[a] = whole[a] or (low == 0 and high == top[a] - 1)


@kernel
def post(
    preds: Predicates,
    numbering: Written[Numbering],
    domains: Written[DomainLists],
    filling: bool,
    last: Written[U32],
    at: Written[I64],
    entry: Written[U32],
    entry_clause: Written[U16],
    entry_weight: Written[F32],
) -> None:
    """Enters every conjunction into its lists.

    Counting, at (planes * lists) int64 becomes the number of entries of each list. Writing, it has
    the first place of each list and becomes the end.

    last (lists of a plane) uint32 : scratch, 0 on entry
    filling : False to count, True to write
    entry (E) uint32, entry_clause (entries of conjunctions with clauses) uint16 : written
    entry_weight (E) float32, or (0) : most that each adds to a score, zeros on entry

    A function that enters one interval, on NamedTuples, made a build take 26 to 37 % more time.
    """
    conj, size, clause = numbering.conj, numbering.size, numbering.clause
    top, tree, raw, raw_first, lists = domains.top, domains.tree, domains.raw, domains.raw_first, domains.lists
    level_first, level_list = domains.level_first, domains.level_list
    base, weighing = len(entry) - len(entry_clause), len(entry_weight) > 0
    pred, run_lo, run_hi, weight = preds.pred, preds.run_lo, preds.run_hi, preds.weight
    for number in range(len(conj)):
        c = np.int64(conj[number])
        plane = lists if number >= numbering.begin else 0
        # Enter a conjunction of size 0 into Z
        if size[c] == 0:
            z = plane + lists - 1
            if filling:
                entry[at[z]] = 2 * number + 1
                if plane:
                    entry_clause[at[z] - base] = NO_CLAUSE
            at[z] += 1
        for p in range(preds.first[c], preds.first[c + 1]):
            word, j = pred[p, 0], np.int64(clause[p])
            if plane and j == NO_CLAUSE:
                continue
            if word & FLAG_NONE and word & FLAG_MULTI:
                j |= ONCE
            a = word & ATTR_MASK
            place = raw_first[a] if len(raw) > 0 else np.int64(0)
            by_gaps = takes_gaps(pred, run_lo, run_hi, p, top[a], tree[a], raw, place)
            run, run_end = intervals_of(pred, p)
            # Enter gaps first: in a list of both, the entry that rejects must precede the other
            for r in range(run, run_end):
                negated = r + 1 < run_end if by_gaps else word & FLAG_NONE != 0
                value = 2 * number + (0 if negated else 1)
                most = np.float32(0.0 if negated or not weighing else entry_score(weight, p))
                low, high = interval_of(pred, run_lo, run_hi, p, r, run_end, by_gaps)
                if low > high:
                    continue
                # Choose the level to begin with, and the places on it
                end, level = top[a] - 1, level_first[a]
                whole = low == 0 and high == end
                if whole:
                    level = level_first[a + 1] - 1
                    high = low
                elif len(raw) > 0:
                    low, high = raw[place + low], raw[place + high + 1] - 1
                # Enter the places that remain on each level, going up
                while low <= high:
                    if whole or not tree[a]:
                        left, right = high, high + 1
                    else:
                        left, right = align_range(low, high, end)
                    x = low
                    while x <= high:
                        if x == left + 1:
                            x = max(x, right)
                            if x > high:
                                break
                        k = plane + level_list[level] + x
                        if plane:
                            if last[k - plane] == number + 1:
                                k += lists
                            else:
                                last[k - plane] = number + 1
                        if filling:
                            entry[at[k]] = value
                            if weighing:
                                entry_weight[at[k]] = most
                            if plane:
                                entry_clause[at[k] - base] = j
                        at[k] += 1
                        x += 1
                    low, high = (left + 1) >> FANOUT_BITS, (right - 1) >> FANOUT_BITS
                    if left + 1 >= right:
                        break
                    end, level = end >> FANOUT_BITS, level + 1


@kernel
def cut_segments(
    entry: Written[U32],
    first: Written[I64],
    part_first: Written[I64],
    filling: bool,
    list_first: Written[U32],
    segment_part: Written[U32],
    segment_first: Written[U32],
) -> int:
    """Cuts each list where a part ends. Returns the number of segments.

    first (lists + 1), part_first (parts + 1) int64 : list -> entries; part -> numbers
    filling : False to count only, True to write the last three arrays
    list_first (lists + 1), segment_part (S), segment_first (S + 1) uint32 : written
    """
    count = 0
    for k in range(len(first) - 1):
        i, end = first[k], first[k + 1]
        if filling:
            list_first[k] = count
        while i < end:
            # Find the part of the next entry
            number = np.int64(entry[i]) >> 1
            low, high = 0, len(part_first) - 1  # part_first[low] <= number < part_first[high]
            while high - low > 1:
                middle = (low + high) >> 1
                if part_first[middle] <= number:
                    low = middle
                else:
                    high = middle
            if filling:
                segment_part[count] = low
                segment_first[count] = i
            count += 1
            # Gallop to the end of the part
            behind = part_first[high]
            step = 1
            while i + step < end and np.int64(entry[i + step]) >> 1 < behind:
                i += step
                step += step
            low, high = i + 1, min(i + step, end)
            while low < high:
                middle = (low + high) >> 1
                if np.int64(entry[middle]) >> 1 < behind:
                    low = middle + 1
                else:
                    high = middle
            i = low
    if filling:
        list_first[len(first) - 1] = count
        segment_first[count] = len(entry)
    return count
