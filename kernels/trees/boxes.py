"""Bounds of buckets that are as narrow as what is in them.

A bucket has a range for each part on its path: for its own attribute, by which matching goes, and
for the attributes above it. The latter are there for deletion: what is left below a bucket is known
by the ranges of what hangs directly below it, and no subtree is read.

Source: "Relevance Matters", IV-B and Algorithm 3.
"""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.geometry import predicate_among, predicate_on, range_of
from colmatch.kernels.layout import FLAG_RUN
from colmatch.kernels.trees.arrays import (
    ALL_HIGH,
    ALL_LOW,
    BOX,
    COUNT,
    FIRST,
    HIGH,
    LEAF,
    LEFT,
    LEFT_HI,
    LEFT_LO,
    LEVEL,
    LOW,
    NEXT,
    NONE,
    OWN_HI,
    OWN_LO,
    OWNER,
    PART,
    PART_ATTR,
    PART_HI,
    PART_LO,
    RIGHT,
    RIGHT_HI,
    RIGHT_LO,
    TIGHTENED,
    TOP,
    UP,
)


@device
def _widen(box, i, low, lo, hi):
    """Takes a range into that of row ``i`` which begins in column ``low``. Says if it was wider."""
    wider = False
    if lo < box[i, low]:
        box[i, low] = lo
        wider = True
    if hi > box[i, low + 1]:
        box[i, low + 1] = hi
        wider = True
    return wider


@device
def take_into_box(tree, preds, n, c):
    """Takes a conjunction into the ranges of the bucket itself and those with its halves."""
    part = np.int64(tree.above[n, PART])
    at = np.int64(tree.above[n, BOX])
    wider = False
    while part != NONE:
        lo, hi = range_of(preds, predicate_on(preds, c, np.int64(tree.part[part, PART_ATTR])))
        wider = _widen(tree.box, at, LOW, lo, hi) or wider
        wider = _widen(tree.box, at, ALL_LOW, lo, hi) or wider
        at += 1
        part = np.int64(tree.above[np.int64(tree.part[part, OWNER]), PART])
    return wider


@device
def take_leaf_into_box(tree, preds, n):
    """Takes all entries of a leaf into the ranges of its bucket."""
    begin = np.int64(tree.node[n, LEAF])
    end = begin + np.int64(tree.node[n, COUNT])
    if begin == end:
        return
    part, at = np.int64(tree.above[n, PART]), np.int64(tree.above[n, BOX])
    lo, hi = _hull_of_reach(tree.reach, begin, end)
    while True:
        _widen(tree.box, at, LOW, lo, hi)
        _widen(tree.box, at, ALL_LOW, lo, hi)
        part = np.int64(tree.above[np.int64(tree.part[part, OWNER]), PART])
        if part == NONE:
            return
        at += 1
        a = np.int64(tree.part[part, PART_ATTR])
        lo, hi = _hull_of_leaf(
            tree.entry, begin, end, a, preds.first, preds.pred, preds.run_lo, preds.run_hi, preds.jump_first, preds.jump
        )


@device
def _hull_of_reach(reach, begin, end):
    lo, hi = np.int64(reach[begin, 0]), np.int64(reach[begin, 1])
    for i in range(begin, end):
        lo, hi = min(lo, np.int64(reach[i, 0])), max(hi, np.int64(reach[i, 1]))
    return lo, hi


@device
def _hull_of_leaf(entry, begin, end, a, first, pred, run_lo, run_hi, jump_first, jump):
    """The range of one attribute of entries that all have it."""
    lowest, highest = np.int64(NONE), np.int64(0)
    for i in range(begin, end):
        p = predicate_among(first, pred, jump_first, jump, np.int64(entry[i]), a)
        lo, hi = np.int64(pred[p, 1]), np.int64(pred[p, 2])
        if pred[p, 0] & FLAG_RUN:
            lo, hi = np.int64(run_lo[lo]), np.int64(run_hi[hi - 1])
        lowest, highest = min(lowest, lo), max(highest, hi)
    return lowest, highest


@device
def copy_bounds(tree, n):
    """Writes the ranges of a bucket's own attribute where matching reads them."""
    at = np.int64(tree.above[n, BOX])
    if at == NONE:
        return
    tree.node[n, OWN_LO], tree.node[n, OWN_HI] = tree.box[at, LOW], tree.box[at, HIGH]
    up = np.int64(tree.above[n, UP])
    if up == NONE:
        part = np.int64(tree.above[n, PART])
        tree.part[part, PART_LO], tree.part[part, PART_HI] = tree.box[at, ALL_LOW], tree.box[at, ALL_HIGH]
    elif tree.node[up, LEFT] == n:
        tree.node[up, LEFT_LO], tree.node[up, LEFT_HI] = tree.box[at, ALL_LOW], tree.box[at, ALL_HIGH]
    else:
        tree.node[up, RIGHT_LO], tree.node[up, RIGHT_HI] = tree.box[at, ALL_LOW], tree.box[at, ALL_HIGH]


@device
def add_all(tree, n, other, skip, low):
    """Takes all ranges of bucket ``other`` into those of bucket ``n``, from column ``low`` on.

    skip : ranges of ``other`` that come first, of attributes that ``n`` has not
    """
    at, from_ = np.int64(tree.above[n, BOX]), np.int64(tree.above[other, BOX]) + skip
    wider = False
    for i in range(np.int64(tree.above[n, LEVEL])):
        if tree.box[from_ + i, ALL_LOW] != NONE:
            lo, hi = tree.box[from_ + i, ALL_LOW], tree.box[from_ + i, ALL_HIGH]
            wider = _widen(tree.box, at + i, low, lo, hi) or wider
    return wider


@device
def widen_path(tree, preds, n, c):
    """Takes a conjunction that was put into a bucket into its ranges, and those of all above."""
    own = True
    while np.int64(tree.above[n, PART]) != NONE:
        if own:
            wider = take_into_box(tree, preds, n, c)
        else:
            wider = _take_into_all(tree, preds, n, c)
        if not wider:
            return
        copy_bounds(tree, n)
        up = np.int64(tree.above[n, UP])
        own = up == NONE
        n = np.int64(tree.part[np.int64(tree.above[n, PART]), OWNER]) if own else up


@device
def _take_into_all(tree, preds, n, c):
    part, at = np.int64(tree.above[n, PART]), np.int64(tree.above[n, BOX])
    wider = False
    while part != NONE:
        lo, hi = range_of(preds, predicate_on(preds, c, np.int64(tree.part[part, PART_ATTR])))
        wider = _widen(tree.box, at, ALL_LOW, lo, hi) or wider
        at += 1
        part = np.int64(tree.above[np.int64(tree.part[part, OWNER]), PART])
    return wider


@device
def tighten(tree, preds, n):
    """Makes the ranges of a bucket anew: of its leaf, of its parts, of its halves.

    Says whether they have changed.
    """
    at, level = np.int64(tree.above[n, BOX]), np.int64(tree.above[n, LEVEL])
    # Ranges are summed up: they can only become narrower, so with equal sums they are the same.
    before = np.int64(0)
    for i in range(at, at + level):
        for k in range(4):
            before += np.int64(tree.box[i, k]) if k & 1 else -np.int64(tree.box[i, k])
        tree.box[i, LOW] = tree.box[i, ALL_LOW] = NONE
        tree.box[i, HIGH] = tree.box[i, ALL_HIGH] = 0
    take_leaf_into_box(tree, preds, n)
    part = np.int64(tree.node[n, FIRST])
    while part != NONE:
        top = np.int64(tree.part[part, TOP])
        add_all(tree, n, top, 1, LOW)
        add_all(tree, n, top, 1, ALL_LOW)
        part = np.int64(tree.part[part, NEXT])
    for half in (np.int64(tree.node[n, LEFT]), np.int64(tree.node[n, RIGHT])):
        if half != NONE:
            add_all(tree, n, half, 0, ALL_LOW)
    after = np.int64(0)
    for i in range(at, at + level):
        for k in range(4):
            after += np.int64(tree.box[i, k]) if k & 1 else -np.int64(tree.box[i, k])
    copy_bounds(tree, n)
    return after != before


@device
def tighten_path(tree, preds, n):
    """Makes the ranges of a bucket anew, and those of the ones above it as long as they change."""
    while np.int64(tree.above[n, PART]) != NONE:
        tree.state[TIGHTENED] += 1
        if not tighten(tree, preds, n):
            return
        up = np.int64(tree.above[n, UP])
        n = up if up != NONE else np.int64(tree.part[np.int64(tree.above[n, PART]), OWNER])
