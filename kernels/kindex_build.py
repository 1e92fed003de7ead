"""k-index is built in counting passes: how many entries each list will have, then the entries, then where sizes begin in each list."""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.columns import first_at_least
from colmatch.kernels.kindex import FANOUT_BITS, NO_CLAUSE
from colmatch.kernels.layout import ATTR_MASK, FLAG_NONE, FLAG_RUN


@kernel
def measure(preds, live, top, raw, raw_first, spans, uses):
    """Add to spans (A) float64 the entries that the predicates on each attribute take if every value has its own list, to uses (A) int64
    their intervals. A float, because 2**64 values may be many times in it.
    """
    for c in range(len(live)):
        if not live[c]:
            continue
        for p in range(preds.first[c], preds.first[c + 1]):
            word = preds.pred[p, 0]
            a = word & ATTR_MASK
            begin, stop = np.int64(0), np.int64(1)
            if word & FLAG_RUN:
                begin, stop = np.int64(preds.pred[p, 1]), np.int64(preds.pred[p, 2])
            for r in range(begin, stop):
                low = np.int64(preds.run_lo[r]) if word & FLAG_RUN else np.int64(preds.pred[p, 1])
                high = np.int64(preds.run_hi[r]) if word & FLAG_RUN else np.int64(preds.pred[p, 2])
                low, high = max(low, np.int64(1)), min(high, top[a])
                if low <= high:
                    uses[a] += 1
                    if len(raw) > 0:
                        spans[a] += raw[raw_first[a] + high] - raw[raw_first[a] + low - 1]
                    else:
                        spans[a] += high - low + 1


@device
def aligned(low, high, last):
    """Cut ``low..high``, of places 0 to ``last``, into whole pieces of the next level and what is left and right of them: returns the last
    place on the left and the first on the right. The last piece may be short.
    """
    mask = (np.int64(1) << FANOUT_BITS) - 1
    left = min(high, ((low + mask) & ~mask) - 1)
    right = high + 1
    if high != last:
        right = max(left + 1, (high + 1) & ~mask)
    return left, right


@kernel
def post(preds, order, begin, size, clause, top, level_first, level_list, raw, raw_first, lists, filling, last, at, entry, entry_clause):
    """Enter every conjunction into its lists.

    begin : first number of a conjunction with clauses. lists : in one plane. last (lists) uint32 : scratch, 0 on entry. filling : False to
    count, at (planes * lists) int64 becomes the number of entries of each list; True to write entry (E) uint32 and entry_clause (those of
    conjunctions with clauses) uint16: ``at`` has the first place of each list and becomes the end
    """
    base = len(entry) - len(entry_clause)
    for number in range(len(order)):
        c = np.int64(order[number])
        plane = lists if number >= begin else 0
        if size[c] == 0:
            z = plane + lists - 1
            if filling:
                entry[at[z]] = 2 * number + 1
                if plane:
                    entry_clause[at[z] - base] = NO_CLAUSE
            at[z] += 1
        for p in range(preds.first[c], preds.first[c + 1]):
            j = clause[p]
            if plane and j == NO_CLAUSE:
                continue
            word = preds.pred[p, 0]
            value = 2 * number + (0 if word & FLAG_NONE else 1)
            a = word & ATTR_MASK
            run, run_end = np.int64(0), np.int64(1)
            if word & FLAG_RUN:
                run, run_end = np.int64(preds.pred[p, 1]), np.int64(preds.pred[p, 2])
            for r in range(run, run_end):
                low = np.int64(preds.run_lo[r]) if word & FLAG_RUN else np.int64(preds.pred[p, 1])
                high = np.int64(preds.run_hi[r]) if word & FLAG_RUN else np.int64(preds.pred[p, 2])
                low, high = max(low - 1, np.int64(0)), min(high, top[a]) - 1
                if low > high:
                    continue
                end = top[a] - 1
                if len(raw) > 0:
                    low, high = raw[raw_first[a] + low], raw[raw_first[a] + high + 1] - 1
                level = level_first[a]
                while low <= high:
                    if level + 1 == level_first[a + 1]:
                        left, right = high, high + 1
                    else:
                        left, right = aligned(low, high, end)
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
                            if plane:
                                entry_clause[at[k] - base] = j
                        at[k] += 1
                        x += 1
                    low, high = (left + 1) >> FANOUT_BITS, (right - 1) >> FANOUT_BITS
                    if left + 1 >= right:
                        break
                    end >>= FANOUT_BITS
                    level += 1


@kernel
def cut_segments(entry, first, part_first, filling, list_first, segment_part, segment_first):
    """Cut each list where a part ends. Returns the number of segments.

    first (lists + 1) int64 : list -> entries. part_first (parts + 1) int64 : part -> numbers. filling : False to count only; True to write
    list_first (lists + 1), segment_part (S), segment_first (S + 1), all uint32
    """
    count = 0
    for k in range(len(first) - 1):
        i, end = first[k], first[k + 1]
        if filling:
            list_first[k] = count
        while i < end:
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


@kernel
def to_codes(pred, run_lo, run_hi, first, label):
    """Labels of predicates (``layout.Predicates``) -> dense codes, in place. first (A + 1), label (B): of the boundaries."""
    for p in range(len(pred)):
        word = pred[p, 0]
        a = np.int64(word & np.uint32(ATTR_MASK))
        if a + 1 >= len(first):
            continue
        begin, end = first[a], first[a + 1]
        low, high = np.int64(pred[p, 1]), np.int64(pred[p, 2])
        if word & np.uint32(FLAG_RUN):
            for j in range(low, high):
                run_lo[j] = first_at_least(label, begin, end, np.int64(run_lo[j]) + 1) - begin + 1
                run_hi[j] = first_at_least(label, begin, end, np.int64(run_hi[j]) + 1) - begin + 1
        elif low <= high:
            pred[p, 1] = first_at_least(label, begin, end, low + 1) - begin + 1
            pred[p, 2] = first_at_least(label, begin, end, high + 1) - begin + 1
