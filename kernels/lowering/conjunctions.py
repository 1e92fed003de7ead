"""Merging of leaves with key intervals into predicates with key intervals.

This step runs once, when subscriptions are built; ``codes`` follows.
"""

from typing import NamedTuple

import numpy as np

from colmatch.kernels import layout
from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import F64, I64, U8, U32, Table, Written
from colmatch.kernels.lowering.runs import complement, intersect


class LeafTable(NamedTuple):
    """L leaves, each with its run of keys."""

    attr: I64  # (L)
    none: U8  # (L) 1: no entry of the attribute may lie in the run
    weight: F64  # (L), or (0); -inf: a further part of a predicate, with the weight in another leaf
    run_first: I64  # (L + 1)
    run_lo: I64
    run_hi: I64


@device
def _sort_by_attr(leaf, attr, first, end):
    """Sorts ``leaf[first:end]`` by attribute, with a shell sort.

    Conjunctions are short, and a huge one does not take quadratic time.
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
def measure(first: Written[I64], leaf: Written[I64], run_first: Written[I64]) -> tuple[int, int]:
    """Bounds the number of intervals in conjunctions, even in their complements.

    first (C + 1), leaf (P), run_first (L + 1)

    Returns the bounds of the longest conjunction, and of all conjunctions.
    """
    longest = 0
    total = 0
    for c in range(len(first) - 1):
        before = total
        for p in range(first[c], first[c + 1]):
            total += run_first[leaf[p] + 1] - run_first[leaf[p]] + 1
        longest = max(longest, total - before)
    return longest, total


@device
def is_simple(leaf, begin, end, attr, run_first):
    """Returns whether the leaves ``begin:end`` have one interval each, and ascending attributes."""
    one = np.uint64(1)
    simple = True
    for i in range(np.uint64(begin), np.uint64(end)):
        f = np.uint64(leaf[i])
        simple &= run_first[f + one] - run_first[f] == 1
        simple &= i + one >= np.uint64(end) or attr[f] < attr[np.uint64(leaf[i + one])]
    return simple


@device
def intersect_leaves(leaf, begin, end, none, run_first, run_lo, run_hi, spare):
    """Intersects the sets of keys that the leaves ``begin:end`` allow their attribute, within
    ``spare``.

    Returns the range of the intervals there, and whether the attribute must not lie in them.
    """
    # Begin with all keys
    lo, hi = spare[0], spare[1]
    longest = len(lo) // 3
    third = 2 * longest  # the first two thirds take turns
    at, at_end = np.int64(0), np.int64(1)
    lo[0], hi[0] = layout.KEY_MIN, layout.KEY_MAX
    outside = none[leaf[begin]]
    for q in range(begin, end):
        # Write the keys that the leaf allows
        f = leaf[q]
        allowed = third
        for j in range(run_first[f], run_first[f + 1]):
            lo[allowed] = run_lo[j]
            hi[allowed] = run_hi[j]
            allowed += 1
        if none[f]:
            allowed = third + complement(lo, hi, third, allowed)
        # Intersect them with those so far
        other = longest - at
        at_end = intersect(lo, hi, at, at_end, third, allowed, other)
        at = other
        outside = outside & none[f]
    # If all leaves allow absence, return the forbidden keys
    if outside:
        at_end = at + complement(lo, hi, at, at_end)
    return at, at_end, outside


@device
def weigh(leaf, begin, end, weight):
    """Returns the sum and the largest of the weights of the leaves ``begin:end``, and whether they
    score.

    The largest is ``LOWEST`` if no leaf has a weight, not even 0.
    """
    added, largest, scored = 0.0, layout.LOWEST, False
    for q in range(begin, end):
        one = weight[leaf[q]]
        if one >= layout.LOWEST:
            added += one
            largest = max(largest, one)
            scored |= one != 0.0
    return added, largest, scored


@kernel
def merge_conjunctions(
    first: Written[I64],
    leaf: Written[I64],
    program: Written[U8],
    leaves: Written[LeafTable],
    multi: Written[U8],
    spare: Written[Table[I64]],
    keep: Written[U8],
    out_first: Written[I64],
    pred: Written[Table[U32]],
    out_weight: Written[Table[F64]],
    out_lo: Written[I64],
    out_hi: Written[I64],
) -> tuple[int, int]:
    """Merges the leaves of conjunctions into predicates: one for each attribute of a plain
    conjunction.

    Contradictions and tautologies are removed. On a single-valued attribute, a leaf allows a set of
    keys, and may allow absence. So an AND intersects both.

    Parameters
    ----------
    first (C + 1), leaf (P) int64 : conjunction -> leaf ids; reordered in place
    program (C) uint8 : 1 to leave the conjunction's leaves unmerged
    leaves : ``LeafTable``
    multi (A) uint8 : attributes with several entries, which have predicates that cannot be merged
    spare (2, 3 * longest) int64 : room for three runs of the longest conjunction
    keep (C) uint8 : written, 0 for a conjunction that can never be true. It then has no predicates
    out_first (C + 1), pred (P, 3) uint32, out_weight (P, 2) : written. A predicate is its attribute
        with flags, and its number of intervals. A predicate that forbids nothing is left out,
        unless it has a weight
    out_lo, out_hi : written, the intervals one after the other

    Returns
    -------
    predicates, intervals : numbers of those written
    """
    attr, none, weight = leaves.attr, leaves.none, leaves.weight
    run_first, run_lo, run_hi = leaves.run_first, leaves.run_lo, leaves.run_hi
    n, m, weighted = 0, 0, len(leaves.weight) > 0
    out_first[0] = 0
    for c in range(len(first) - 1):
        begin = n
        begin_run = m
        keep[c] = 1
        # Sort the leaves of a plain conjunction by attribute
        p, end = first[c], first[c + 1]
        merging = not program[c]
        scored = weigh(leaf, p, end if weighted else p, weight)[2]
        if merging and not is_simple(leaf, p, end, attr, run_first):
            _sort_by_attr(leaf, attr, p, end)
        while p < end:
            # Find all leaves of the attribute that can be merged
            f = np.uint64(leaf[p])
            a = np.uint64(attr[f])
            last = p + 1
            while merging and last < end and not multi[a] and attr[leaf[last]] == attr[f]:
                last += 1
            # Write the intervals of one leaf, or the intersection of several
            begin_one, outside = m, none[f]
            if last == p + 1:
                for j in range(np.uint64(run_first[f]), np.uint64(run_first[f + np.uint64(1)])):
                    out_lo[np.uint64(m)] = run_lo[j]
                    out_hi[np.uint64(m)] = run_hi[j]
                    m += 1
            else:
                at, at_end, outside = intersect_leaves(leaf, p, last, none, run_first, run_lo, run_hi, spare)
                for j in range(at, at_end):
                    out_lo[m] = spare[0, j]
                    out_hi[m] = spare[1, j]
                    m += 1
            # Handle contradictions and tautologies
            added, largest, _ = weigh(leaf, p, last if weighted else p, weight)
            p = last
            if m == begin_one and merging:
                if not outside:
                    keep[c] = 0
                    break
                if not scored or largest == layout.LOWEST:
                    continue  # it forbids nothing
            # Write the predicate
            word = (
                np.uint32(a)
                | np.uint32(outside) * np.uint32(layout.FLAG_NONE)
                | np.uint32(multi[a]) * np.uint32(layout.FLAG_MULTI)
            )
            if m > begin_one + 1:
                word |= np.uint32(layout.FLAG_RUN)
            pred[np.uint64(n), 0] = word
            pred[np.uint64(n), 1] = m - begin_one
            if weighted:
                out_weight[n, layout.ADDED] = added
                out_weight[n, layout.LARGEST] = largest
            n += 1
        # Drop the predicates of a contradiction
        if not keep[c]:
            n = begin
            m = begin_run
        out_first[c + 1] = n
    return n, m
