"""Key intervals of predicates -> merged, ordered, coded predicates. Runs once, when subscriptions are built.

A *run* is a list of closed key intervals ``lo, hi`` that ascend and neither overlap nor touch; ``first`` gives each owner its run.
"""

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.hints import hinted_code
from colmatch.kernels.layout import FLAG_MULTI, FLAG_NONE, FLAG_RUN, KEY_MAX, KEY_MIN


@kernel
def merge_runs(first, lo, hi, outside, out_first, out_lo, out_hi):
    """Intervals that ascend by ``lo`` but may overlap, touch or be empty (lo > hi) -> runs, complemented where ``outside``.

    first (n + 1), lo, hi (m), outside (n) uint8; out_first (n + 1), out_lo, out_hi (m + n).
    """
    out = 0
    out_first[0] = 0
    for i in range(len(first) - 1):
        begin = out
        for j in range(first[i], first[i + 1]):
            if lo[j] > hi[j]:
                continue
            if out > begin and (lo[j] <= out_hi[out - 1] or lo[j] == out_hi[out - 1] + 1):
                out_hi[out - 1] = max(out_hi[out - 1], hi[j])
            else:
                out_lo[out] = lo[j]
                out_hi[out] = hi[j]
                out += 1
        if outside[i]:
            out = begin + _complement(out_lo, out_hi, begin, out)
        out_first[i + 1] = out


@kernel
def group_intervals(owner, lo, hi, first, out_lo, out_hi):
    """Intervals in any order -> by owner, ascending by ``lo`` within one. first (n + 1) is written; all others are (m)."""
    first[:] = 0
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
    """Turn the run ``begin:end`` into its complement in place; needs one more place behind it. Returns its length."""
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
def _intersect(a_lo, a_hi, a, a_end, b_lo, b_hi, b, b_end, lo, hi):
    """Write the intersection of two runs from place 0, return its length: at most the sum of both."""
    out = 0
    while a < a_end and b < b_end:
        low = max(a_lo[a], b_lo[b])
        high = min(a_hi[a], b_hi[b])
        if low <= high:
            lo[out] = low
            hi[out] = high
            out += 1
        if a_hi[a] < b_hi[b]:
            a += 1
        else:
            b += 1
    return out


@device
def _sort_by_attr(leaf, attr, first, end):
    """Shell sort of ``leaf[first:end]`` by attribute: conjunctions are short, and a huge one is still no quadratic trap."""
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
def merge_conjunctions(
    first, leaf, program, leaf_attr, leaf_none, leaf_weight, run_first, run_lo, run_hi, multi, spare_lo, spare_hi,
    keep, out_first, out_attr, out_none, out_weight, out_run, out_lo, out_hi,
):  # fmt: skip
    """Leaves of conjunctions -> predicates: one for each attribute of a plain conjunction; contradictions and tautologies removed.

    What a leaf allows a single-valued attribute is a set of keys and whether it may be absent, so that an AND is the intersection of both.

    Parameters
    ----------
    first (C + 1), leaf (P) int64 : conjunction -> leaf ids; reordered in place. program (C) uint8 : leave its leaves as they are
    leaf_attr (L) int64, leaf_none (L) uint8, leaf_weight (L) float64 or (0), run_first (L + 1), run_lo, run_hi : the leaves
    multi (A) uint8 : attributes with several entries, whose predicates cannot be merged
    spare_lo, spare_hi (3, longest) : room for three runs of the longest conjunction
    keep (C) uint8, out_first (C + 1), out_attr, out_none, out_weight (P), out_run (P + 1), out_lo, out_hi : written; keep = 0 for a
        conjunction that can never be true, which then has no predicates

    Returns
    -------
    predicates, intervals : how many were written
    """
    n = 0
    m = 0
    weighted = len(leaf_weight) > 0
    out_first[0] = 0
    out_run[0] = 0
    for c in range(len(first) - 1):
        begin = n
        begin_run = m
        keep[c] = 1
        if not program[c]:
            _sort_by_attr(leaf, leaf_attr, first[c], first[c + 1])
        p = first[c]
        while p < first[c + 1] and keep[c]:
            a = leaf_attr[leaf[p]]
            last = p + 1
            if not program[c] and not multi[a]:
                while last < first[c + 1] and leaf_attr[leaf[last]] == a:
                    last += 1
            weight = leaf_weight[leaf[p]] if weighted else 0.0
            none = leaf_none[leaf[p]]
            begin_one = m
            if last == p + 1:
                for j in range(run_first[leaf[p]], run_first[leaf[p] + 1]):
                    out_lo[m] = run_lo[j]
                    out_hi[m] = run_hi[j]
                    m += 1
            else:
                side = 0
                size = _allowed(leaf[p], leaf_none, run_first, run_lo, run_hi, spare_lo[0], spare_hi[0])
                for q in range(p + 1, last):
                    f = leaf[q]
                    other = _allowed(f, leaf_none, run_first, run_lo, run_hi, spare_lo[2], spare_hi[2])
                    size = _intersect(
                        spare_lo[side], spare_hi[side], 0, size, spare_lo[2], spare_hi[2], 0, other, spare_lo[1 - side], spare_hi[1 - side]
                    )
                    side = 1 - side
                    none = none & leaf_none[f]
                    if weighted:
                        weight += leaf_weight[f]
                if none:
                    size = _complement(spare_lo[side], spare_hi[side], 0, size)
                for j in range(size):
                    out_lo[m] = spare_lo[side, j]
                    out_hi[m] = spare_hi[side, j]
                    m += 1
            p = last
            if m == begin_one and not program[c]:
                if none:
                    continue  # nothing is forbidden
                keep[c] = 0
                break
            out_attr[n] = a
            out_none[n] = none
            if weighted:
                out_weight[n] = weight
            n += 1
            out_run[n] = m
        if not keep[c]:
            n = begin
            m = begin_run
        out_first[c + 1] = n
    return n, m


@device
def _allowed(f, leaf_none, run_first, run_lo, run_hi, lo, hi):
    """Keys that leaf ``f`` allows, as a run from place 0 of lo, hi. Returns its length."""
    size = 0
    for j in range(run_first[f], run_first[f + 1]):
        lo[size] = run_lo[j]
        hi[size] = run_hi[j]
        size += 1
    if leaf_none[f]:
        size = _complement(lo, hi, 0, size)
    return size


@kernel
def gather_boundaries(attr, run, lo, hi, first, bound):
    """Collect the boundaries of predicates by attribute, unsorted: where an interval begins, and where it has just ended.

    attr (P), run (P + 1), lo, hi (M); first (A + 1): with ``bound`` of length 0 becomes the count, shifted up by one place, else the
    next place of each attribute, which must be its start on entry.
    """
    count_only = len(bound) == 0
    for p in range(len(attr)):
        a = attr[p]
        for j in range(run[p], run[p + 1]):
            if lo[j] != KEY_MIN:
                if count_only:
                    first[a + 1] += 1
                else:
                    bound[first[a]] = lo[j]
                    first[a] += 1
            if hi[j] != KEY_MAX:
                if count_only:
                    first[a + 1] += 1
                else:
                    bound[first[a]] = hi[j] + 1
                    first[a] += 1


@kernel
def drop_equal(first, bound, out_first):
    """Sorted boundaries of each attribute -> distinct ones, in place, closing the gaps. Returns how many are left."""
    out = 0
    out_first[0] = 0
    for a in range(len(first) - 1):
        begin = out
        for i in range(first[a], first[a + 1]):
            if out == begin or bound[out - 1] != bound[i]:
                bound[out] = bound[i]
                out += 1
        out_first[a + 1] = out
    return out


@kernel
def code_predicates(first, attr, none, weight, run, lo, hi, program, multi, code_first, bound, hints, pred, run_lo, run_hi, width):
    """Pack predicates as codes and order those of each plain conjunction by selectivity, the narrowest share of codes first.

    ``program`` (C); ``pred`` (P, 3), ``run_lo``, ``run_hi`` (R, upper bound M), ``width`` (P) float64 scratch are written, and
    ``weight`` is reordered. Returns R.
    """
    r = 0
    cell_first, cell_shift, below = hints.first, hints.shift, hints.below
    for c in range(len(first) - 1):
        for p in range(first[c], first[c + 1]):
            a = attr[p]
            begin, end = code_first[a], code_first[a + 1]
            cells, shift = cell_first[a], cell_shift[a]
            word = a
            if none[p]:
                word |= FLAG_NONE
            if multi[a]:
                word |= FLAG_MULTI
            total = 0
            size = run[p + 1] - run[p]
            if size == 1:
                low = hinted_code(bound, begin, end, cells, shift, below, lo[run[p]])
                high = hinted_code(bound, begin, end, cells, shift, below, hi[run[p]])
                total = high - low + 1
            elif size == 0:
                low, high = 1, 0
            else:
                word |= FLAG_RUN
                low = r
                for j in range(run[p], run[p + 1]):
                    x = hinted_code(bound, begin, end, cells, shift, below, lo[j])
                    y = hinted_code(bound, begin, end, cells, shift, below, hi[j])
                    run_lo[r] = x
                    run_hi[r] = y
                    r += 1
                    total += y - x + 1
                high = r
            share = total / (end - begin + 1)
            if none[p]:
                share = 2.0 - share  # also true of rows without the attribute: behind all others
            elif multi[a]:
                share = 1.0 + share
            q = p
            if not program[c]:
                while q > first[c] and width[q - 1] > share:
                    width[q] = width[q - 1]
                    pred[q, 0] = pred[q - 1, 0]
                    pred[q, 1] = pred[q - 1, 1]
                    pred[q, 2] = pred[q - 1, 2]
                    q -= 1
                if len(weight) > 0 and q < p:
                    moved = weight[p]
                    for j in range(p, q, -1):
                        weight[j] = weight[j - 1]
                    weight[q] = moved
            width[q] = share
            pred[q, 0] = word
            pred[q, 1] = low
            pred[q, 2] = high
    return r


@kernel
def find_repeats(first, pred, run_lo, run_hi, owner, program, most, repeated):
    """Mark plain conjunctions that say the same as an earlier one of their subscription, among its first ``most``. repeated (C) uint8."""
    start = 0
    for c in range(len(owner)):
        repeated[c] = 0
        if owner[c] != owner[start]:
            start = c
        if program[c]:
            continue
        for d in range(start, min(c, start + most)):
            if not program[d] and not repeated[d] and _same(first, pred, run_lo, run_hi, c, d):
                repeated[c] = 1
                break


@device
def _same(first, pred, run_lo, run_hi, c, d):
    size = first[c + 1] - first[c]
    if first[d + 1] - first[d] != size:
        return False
    for i in range(size):
        p, q = first[c] + i, first[d] + i
        if pred[p, 0] != pred[q, 0]:
            return False
        if pred[p, 0] & FLAG_RUN:
            a, b = pred[p, 1], pred[q, 1]
            if pred[p, 2] - a != pred[q, 2] - b:
                return False
            for j in range(pred[p, 2] - a):
                if run_lo[a + j] != run_lo[b + j] or run_hi[a + j] != run_hi[b + j]:
                    return False
        elif pred[p, 1] != pred[q, 1] or pred[p, 2] != pred[q, 2]:
            return False
    return True


@kernel
def reorder(first, pred, weight, order, out_first, out_pred, out_weight):
    """Predicates by conjunction -> the same in the order ``order`` (C) of conjunctions. All ``out_`` are written."""
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
