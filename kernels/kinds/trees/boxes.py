"""Bounds of buckets, as narrow as their conjunctions allow.

A bucket has one range for each part on its path: for its own attribute, which matching uses, and
for the attributes above it. The latter are there for deletion. The ranges of the halves and parts
directly below a bucket give the bucket's new ranges, so no subtree is read.

Source: "Relevance Matters", IV-B and Algorithm 3.
"""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.geometry import predicate_among, predicate_on, range_of
from colmatch.kernels.kinds.trees import arrays as bt
from colmatch.kernels.layout import FLAG_RUN


@device
def _widen(box, i, low, lo, hi):
    """Widens the range in row ``i`` that begins in column ``low``. Returns whether it changed."""
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
    """Widens a bucket's own ranges, and those with its halves, by a conjunction. Returns whether
    any changed.
    """
    part = np.int64(tree.above[n, bt.PART])
    at = np.int64(tree.above[n, bt.BOX])
    wider = False
    while part != bt.NONE:
        lo, hi = range_of(preds, predicate_on(preds, c, np.int64(tree.part[part, bt.PART_ATTR])))
        wider = _widen(tree.box, at, bt.LOW, lo, hi) or wider
        wider = _widen(tree.box, at, bt.ALL_LOW, lo, hi) or wider
        at += 1
        part = np.int64(tree.above[np.int64(tree.part[part, bt.OWNER]), bt.PART])
    return wider


@device
def take_leaf_into_box(tree, preds, n):
    """Widens the ranges of a bucket by all entries of its leaf."""
    # Skip empty leaves
    begin = np.int64(tree.node[n, bt.LEAF])
    end = begin + np.int64(tree.node[n, bt.COUNT])
    if begin == end:
        return
    # Start with the bucket's own attribute, with ranges from ``reach``
    part, at = np.int64(tree.above[n, bt.PART]), np.int64(tree.above[n, bt.BOX])
    lo, hi = _hull_of_reach(tree.reach, begin, end)
    while True:
        _widen(tree.box, at, bt.LOW, lo, hi)
        _widen(tree.box, at, bt.ALL_LOW, lo, hi)
        # Go on with the attribute of the part above
        part = np.int64(tree.above[np.int64(tree.part[part, bt.OWNER]), bt.PART])
        if part == bt.NONE:
            return
        at += 1
        a = np.int64(tree.part[part, bt.PART_ATTR])
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
    """Returns the range of one attribute over entries that all have it."""
    lowest, highest = np.int64(bt.NONE), np.int64(0)
    for i in range(begin, end):
        p = predicate_among(first, pred, jump_first, jump, np.int64(entry[i]), a)
        lo, hi = np.int64(pred[p, 1]), np.int64(pred[p, 2])
        if pred[p, 0] & FLAG_RUN:
            lo, hi = np.int64(run_lo[lo]), np.int64(run_hi[hi - 1])
        lowest, highest = min(lowest, lo), max(highest, hi)
    return lowest, highest


@device
def copy_bounds(tree, n):
    """Copies the ranges of a bucket's own attribute to the places that matching reads."""
    at = np.int64(tree.above[n, bt.BOX])
    if at == bt.NONE:
        return
    tree.node[n, bt.OWN_LO], tree.node[n, bt.OWN_HI] = tree.box[at, bt.LOW], tree.box[at, bt.HIGH]
    up = np.int64(tree.above[n, bt.UP])
    if up == bt.NONE:
        part = np.int64(tree.above[n, bt.PART])
        tree.part[part, bt.PART_LO], tree.part[part, bt.PART_HI] = tree.box[at, bt.ALL_LOW], tree.box[at, bt.ALL_HIGH]
    elif tree.node[up, bt.LEFT] == n:
        tree.node[up, bt.LEFT_LO], tree.node[up, bt.LEFT_HI] = tree.box[at, bt.ALL_LOW], tree.box[at, bt.ALL_HIGH]
    else:
        tree.node[up, bt.RIGHT_LO], tree.node[up, bt.RIGHT_HI] = tree.box[at, bt.ALL_LOW], tree.box[at, bt.ALL_HIGH]


@device
def add_all(tree, n, other, skip, low):
    """Widens the ranges of bucket ``n``, from column ``low`` on, by all ranges of bucket ``other``.

    Returns whether any changed.

    skip : number of first ranges of ``other`` on attributes that ``n`` lacks
    """
    at, from_ = np.int64(tree.above[n, bt.BOX]), np.int64(tree.above[other, bt.BOX]) + skip
    wider = False
    for i in range(np.int64(tree.above[n, bt.LEVEL])):
        if tree.box[from_ + i, bt.ALL_LOW] != bt.NONE:
            lo, hi = tree.box[from_ + i, bt.ALL_LOW], tree.box[from_ + i, bt.ALL_HIGH]
            wider = _widen(tree.box, at + i, low, lo, hi) or wider
    return wider


@device
def widen_path(tree, preds, n, c):
    """Widens the ranges of a bucket, and of all above, by a conjunction put into it."""
    own = True
    while np.int64(tree.above[n, bt.PART]) != bt.NONE:
        if own:
            wider = take_into_box(tree, preds, n, c)
        else:
            wider = _take_into_all(tree, preds, n, c)
        if not wider:
            return
        copy_bounds(tree, n)
        up = np.int64(tree.above[n, bt.UP])
        own = up == bt.NONE
        n = np.int64(tree.part[np.int64(tree.above[n, bt.PART]), bt.OWNER]) if own else up


@device
def _take_into_all(tree, preds, n, c):
    part, at = np.int64(tree.above[n, bt.PART]), np.int64(tree.above[n, bt.BOX])
    wider = False
    while part != bt.NONE:
        lo, hi = range_of(preds, predicate_on(preds, c, np.int64(tree.part[part, bt.PART_ATTR])))
        wider = _widen(tree.box, at, bt.ALL_LOW, lo, hi) or wider
        at += 1
        part = np.int64(tree.above[np.int64(tree.part[part, bt.OWNER]), bt.PART])
    return wider


@device
def tighten(tree, preds, n):
    """Recomputes the ranges of a bucket from its leaf, its parts and its halves.

    Returns whether they have changed.
    """
    # Sum up the old ranges, and empty them. New ranges are never wider, so with equal sums they are
    # the same.
    at, level = np.int64(tree.above[n, bt.BOX]), np.int64(tree.above[n, bt.LEVEL])
    before = np.int64(0)
    for i in range(at, at + level):
        for k in range(4):
            before += np.int64(tree.box[i, k]) if k & 1 else -np.int64(tree.box[i, k])
        tree.box[i, bt.LOW] = tree.box[i, bt.ALL_LOW] = bt.NONE
        tree.box[i, bt.HIGH] = tree.box[i, bt.ALL_HIGH] = 0
    # Collect the ranges of the leaf, the parts and the halves
    take_leaf_into_box(tree, preds, n)
    part = np.int64(tree.node[n, bt.FIRST])
    while part != bt.NONE:
        top = np.int64(tree.part[part, bt.TOP])
        add_all(tree, n, top, 1, bt.LOW)
        add_all(tree, n, top, 1, bt.ALL_LOW)
        part = np.int64(tree.part[part, bt.NEXT])
    for half in (np.int64(tree.node[n, bt.LEFT]), np.int64(tree.node[n, bt.RIGHT])):
        if half != bt.NONE:
            add_all(tree, n, half, 0, bt.ALL_LOW)
    # Compare the sums
    after = np.int64(0)
    for i in range(at, at + level):
        for k in range(4):
            after += np.int64(tree.box[i, k]) if k & 1 else -np.int64(tree.box[i, k])
    copy_bounds(tree, n)
    return after != before


@device
def tighten_path(tree, preds, n):
    """Recomputes the ranges of a bucket, and of the buckets above it as long as they change."""
    while np.int64(tree.above[n, bt.PART]) != bt.NONE:
        tree.state[bt.TIGHTENED] += 1
        if not tighten(tree, preds, n):
            return
        up = np.int64(tree.above[n, bt.UP])
        n = up if up != bt.NONE else np.int64(tree.part[np.int64(tree.above[n, bt.PART]), bt.OWNER])
