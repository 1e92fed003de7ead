"""Boundaries of predicates with key intervals, and predicates with codes, in order.

This step runs once, after ``conjunctions``.
"""

from typing import NamedTuple

import numpy as np

from colmatch.kernels import layout
from colmatch.kernels._jit import device, kernel
from colmatch.kernels.hints import Hints, cell_of, distance
from colmatch.kernels.layout import F64, I64, U8, U32, Codes, Table, Written
from colmatch.kernels.search import first_at_least


class Spare(NamedTuple):
    """Room to put the predicates of the longest conjunction in order."""

    share: F64  # (longest) share of the codes that a predicate has
    moved: Table[U32]  # (longest, 3)
    moved_weight: Table[F64]  # (longest, 2)


@kernel
def count_boundaries(
    pred: Written[Table[U32]],
    lo: Written[I64],
    hi: Written[I64],
    number: Written[I64],
    least: Written[I64],
    most: Written[I64],
) -> None:
    """Counts the boundaries of each attribute: the starts of intervals, and the keys after their
    ends.

    ``gather_boundaries`` collects them later.

    pred (P, 3), lo, hi : as ``merge_conjunctions`` wrote them
    number (A) : numbers of boundaries, added to
    least, most (A) : lowest and highest boundary, widened
    """
    m = np.int64(0)
    for p in range(len(pred)):
        a = np.int64(pred[p, 0] & np.uint32(layout.ATTR_MASK))
        for j in range(m, m + np.int64(pred[p, 1])):
            if lo[j] != layout.KEY_MIN:
                number[a] += 1
                least[a] = min(least[a], lo[j])
                most[a] = max(most[a], lo[j])
            if hi[j] != layout.KEY_MAX:
                number[a] += 1
                least[a] = min(least[a], hi[j] + 1)
                most[a] = max(most[a], hi[j] + 1)
        m += np.int64(pred[p, 1])


@kernel
def gather_boundaries(
    pred: Written[Table[U32]],
    lo: Written[I64],
    hi: Written[I64],
    least: Written[I64],
    mark_first: Written[I64],
    mark: Written[U8],
    place: Written[I64],
    bound: Written[I64],
) -> None:
    """Collects the boundaries that ``count_boundaries`` counted, by attribute.

    pred (P, 3), lo, hi : as ``merge_conjunctions`` wrote them
    mark_first (A) : start of an attribute's part of ``mark``; its k-th place is set if
        ``least[a] + k`` is a boundary. If it is -1, boundaries are written to ``bound`` from
        ``place[a]`` on, unsorted
    """
    m = np.int64(0)
    for p in range(len(pred)):
        # Find the attribute's marks, or its place in ``bound``
        a = np.int64(pred[p, 0] & np.uint32(layout.ATTR_MASK))
        marks, base, at = mark_first[a], least[a], place[a]
        # Mark or write the boundaries of each interval
        for j in range(m, m + np.int64(pred[p, 1])):
            if lo[j] != layout.KEY_MIN:
                if marks >= 0:
                    mark[marks + (lo[j] - base)] = 1
                else:
                    bound[at] = lo[j]
                    at += 1
            if hi[j] != layout.KEY_MAX:
                if marks >= 0:
                    mark[marks + (hi[j] + 1 - base)] = 1
                else:
                    bound[at] = hi[j] + 1
                    at += 1
        place[a] = at
        m += np.int64(pred[p, 1])


@kernel
def close_gaps(
    first: Written[I64],
    least: Written[I64],
    mark_first: Written[I64],
    mark: Written[U8],
    bound: Written[I64],
    out_first: Written[I64],
) -> int:
    """Writes the distinct boundaries of each attribute to ``bound``, without gaps.

    Returns their number.

    first (A + 1) : an attribute's places in ``bound``, as many as it has marks, or sorted
        boundaries
    """
    out = 0
    out_first[0] = 0
    for a in range(len(first) - 1):
        begin, marks = out, mark_first[a]
        for i in range(first[a], first[a + 1]):
            if marks >= 0:
                if mark[marks + (i - first[a])]:
                    bound[out] = least[a] + (i - first[a])
                    out += 1
            elif out == begin or bound[out - 1] != bound[i]:
                bound[out] = bound[i]
                out += 1
        out_first[a + 1] = out
    return out


@device
def _number(bound, begin, least, cells, shift, below, key):
    """Returns the number of an attribute's boundaries at or below ``key``, which is one of them.

    ``hints.find_code`` explains the search. All but ``bound``, ``shift`` and the two keys are
    unsigned.
    """
    cell = cells + cell_of(distance(least, key), shift)
    low, number = np.int64(below[cell]), np.int64(below[cell + np.uint64(1)])
    if number > low + 1:  # else the cell has one boundary, which is the key
        number = first_at_least(bound, begin + low, begin + number, key) - begin + 1
    return number


@kernel
def code_predicates(
    first: Written[I64],
    weight: Written[Table[F64]],
    lo: Written[I64],
    hi: Written[I64],
    program: Written[U8],
    codes: Written[Codes],
    hints: Written[Hints],
    pred: Written[Table[U32]],
    run_lo: Written[U32],
    run_hi: Written[U32],
    spare: Written[Spare],
) -> int:
    """Codes predicates of ``merge_conjunctions``, and sorts those of a plain conjunction by share
    of codes.

    program (C) : 1 for a conjunction with a program
    codes, hints : ``layout.Codes``, and their hints
    pred (P, 3), run_lo, run_hi (R) : written; ``weight`` is reordered
    spare : ``Spare``

    Returns R.
    """
    code_first, bound = codes.first, codes.bound
    share, moved, moved_weight = spare.share, spare.moved, spare.moved_weight
    r = 0
    m = np.uint64(0)
    one = np.uint64(1)
    cell_first, cell_shift, below = hints.first, hints.shift, hints.below
    for c in range(len(first) - 1):
        start = np.uint64(first[c])
        size = np.uint64(first[c + 1]) - start
        for i in range(size):
            # Find the attribute's boundaries and hints
            p = start + np.uint64(i)
            word, intervals = pred[p, 0], np.uint64(pred[p, 1])
            a = np.uint64(word & np.uint32(layout.ATTR_MASK))
            begin, most = code_first[a], code_first[a + one] - code_first[a] + 1
            cells, shift = np.uint64(cell_first[a]), cell_shift[a]
            least = bound[np.uint64(begin)] if most > 1 else layout.KEY_MIN
            # Code the ends of each interval, and add up the codes between them. Every end is a
            # boundary, or the end of all keys.
            total = 0
            low, high = 1, 0
            first_run = r
            for j in range(m, m + intervals):
                low, high = 1, most
                if lo[j] != layout.KEY_MIN:
                    low += _number(bound, begin, least, cells, shift, below, lo[j])
                if hi[j] != layout.KEY_MAX:
                    high = _number(bound, begin, least, cells, shift, below, hi[j] + 1)
                total += high - low + 1
                if intervals > one:
                    run_lo[r] = low
                    run_hi[r] = high
                    r += 1
            m += intervals
            if intervals > one:
                low, high = first_run, r
            # Compute the predicate's share
            part = total / most
            if word & np.uint32(layout.FLAG_NONE):
                part = 2.0 - part  # after all others, since it is also true without the attribute
            elif word & np.uint32(layout.FLAG_MULTI):
                part = 1.0 + part
            # Write the predicate
            pred[p, 1] = low
            pred[p, 2] = high
            share[np.uint64(i)] = part
        # Order the predicates of a plain conjunction
        if not program[c]:
            _order(pred, weight, start, size, share, moved, moved_weight)
    return r


@device
def _order(pred, weight, start, size, share, moved, moved_weight):
    """Sorts the predicates of a conjunction by share, stably.

    Conjunctions are short. Counting the predicates before each takes half the time of a branching
    sort.
    """
    # Copy the predicates
    weighted = len(weight) > 0
    for i in range(size):
        p = start + np.uint64(i)
        for k in range(3):
            moved[i, k] = pred[p, k]
        if weighted:
            moved_weight[i, layout.ADDED] = weight[p, layout.ADDED]
            moved_weight[i, layout.LARGEST] = weight[p, layout.LARGEST]
    for i in range(size):
        # Count the predicates before this one
        before = np.uint64(0)
        mine = share[i]
        for j in range(i):
            before += np.uint64(share[j] <= mine)
        for j in range(i + np.uint64(1), size):
            before += np.uint64(share[j] < mine)
        # Write it to its place
        p = start + before
        for k in range(3):
            pred[p, k] = moved[i, k]
        if weighted:
            weight[p, layout.ADDED] = moved_weight[i, layout.ADDED]
            weight[p, layout.LARGEST] = moved_weight[i, layout.LARGEST]


@kernel
def find_repeats(
    first: Written[I64],
    pred: Written[Table[U32]],
    weight: Written[Table[F64]],
    run_lo: Written[U32],
    run_hi: Written[U32],
    owner: Written[U32],
    program: Written[U8],
    repeated: Written[U8],
) -> None:
    """Marks plain conjunctions that are equal to an earlier one of their subscription.

    Their weights must be equal, too. Only the first 64 of a subscription are compared with.

    repeated (C) uint8 : written
    """
    start = 0
    for c in range(len(owner)):
        repeated[c] = 0
        if owner[c] != owner[start]:
            start = c
        if program[c]:
            continue
        for d in range(start, min(c, start + 64)):
            if not program[d] and not repeated[d] and _same(first, pred, weight, run_lo, run_hi, c, d):
                repeated[c] = 1
                break


@device
def _same(first, pred, weight, run_lo, run_hi, c, d):
    # Compare the lengths
    size = first[c + 1] - first[c]
    if first[d + 1] - first[d] != size:
        return False
    for i in range(size):
        # Compare attributes, flags and weights
        p, q = first[c] + i, first[d] + i
        if pred[p, 0] != pred[q, 0]:
            return False
        if len(weight) > 0 and (
            weight[p, layout.ADDED] != weight[q, layout.ADDED] or weight[p, layout.LARGEST] != weight[q, layout.LARGEST]
        ):
            return False
        # Compare intervals or codes
        if pred[p, 0] & layout.FLAG_RUN:
            a, b = pred[p, 1], pred[q, 1]
            if pred[p, 2] - a != pred[q, 2] - b:
                return False
            for j in range(pred[p, 2] - a):
                if run_lo[a + j] != run_lo[b + j] or run_hi[a + j] != run_hi[b + j]:
                    return False
        elif pred[p, 1] != pred[q, 1] or pred[p, 2] != pred[q, 2]:
            return False
    return True
