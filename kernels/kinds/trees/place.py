"""Placement of conjunctions: down the directories, in each attribute to the smallest bucket.

Source: "Relevance Matters", Algorithms 1 and 2.
"""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.geometry import predicate_on, range_of, required_end, share, width
from colmatch.kernels.kinds.trees import arrays as bt
from colmatch.kernels.kinds.trees.boxes import add_all, copy_bounds
from colmatch.kernels.kinds.trees.tables import find_part, new_node
from colmatch.kernels.layout import ATTR_MASK, FLAG_MULTI, FLAG_NONE
from colmatch.kernels.window import estimate_looks


@device
def is_used(tree, n, a):
    """Returns whether the path to a bucket has a part of this attribute."""
    part = np.int64(tree.above[n, bt.PART])
    while part != bt.NONE:
        if tree.part[part, bt.PART_ATTR] == a:
            return True
        part = np.int64(tree.above[np.int64(tree.part[part, bt.OWNER]), bt.PART])
    return False


@device
def can_be_placed(preds, c):
    """Returns whether a conjunction needs some attribute to be true."""
    for p in range(preds.first[c], required_end(preds, c)):
        if not preds.pred[p, 0] & FLAG_NONE:
            return True
    return False


@device
def find_narrowest(tree, preds, codes, c, n):
    """Returns a conjunction's predicate that holds for the smallest part of its domain, and that
    part.

    With a window of events, it is instead the predicate met by the smallest part of these events.
    Predicates on attributes of the path to bucket ``n`` are left out. The predicate is -1 where
    none is left.
    """
    best, least = np.int64(-1), 2.0
    by_window = len(tree.window_first) > 0
    for p in range(preds.first[c], required_end(preds, c)):
        word = np.int64(preds.pred[p, 0])
        if word & FLAG_NONE or is_used(tree, n, word & ATTR_MASK):
            continue
        if word & FLAG_MULTI and predicate_on(preds, c, word & ATTR_MASK) != p:
            continue  # only these attributes can have several predicates
        lo, hi = range_of(preds, p)
        part = share(codes, word & ATTR_MASK, lo, hi)
        if by_window:  # not always: passing the arguments takes as long as the rest of the loop
            part = estimate_looks(tree, codes, word & ATTR_MASK, lo, hi, part)
        if part < least:
            best, least = np.int64(p), part
    return best, least


@device
def best_part(tree, preds, codes, c, n):
    """Returns the part of a bucket's directory for a conjunction, and its predicate there.

    The part is -1 where the conjunction stays in the leaf.
    """
    # Without parts, the conjunction stays
    if tree.node[n, bt.PARTS] == 0:
        return np.int64(-1), np.int64(-1)
    # Without popularity, only the part of the narrowest predicate counts
    if tree.plan[bt.RANKING] != bt.POPULARITY:
        p, _ = find_narrowest(tree, preds, codes, c, n)
        if p < 0:
            return np.int64(-1), p
        return find_part(tree.slot, tree.part, n, np.int64(preds.pred[p, 0]) & ATTR_MASK), p
    # By popularity, choose the part with the most conjunctions
    best, by = np.int64(-1), np.int64(-1)
    for p in range(preds.first[c], required_end(preds, c)):
        word = np.int64(preds.pred[p, 0])
        if word & FLAG_NONE:
            continue
        part = find_part(tree.slot, tree.part, n, word & ATTR_MASK)
        if part >= 0 and part != best and (best < 0 or tree.part[part, bt.PART_COUNT] > tree.part[best, bt.PART_COUNT]):
            best, by = part, np.int64(p)
    return best, by


@device
def find_enclosing(tree, codes, n, lo, hi):
    """Returns the smallest bucket below ``n`` that may take a range, or a new bucket for it."""
    a = np.int64(tree.node[n, bt.ATTR])
    while True:
        left, right = np.int64(tree.node[n, bt.LEFT]), np.int64(tree.node[n, bt.RIGHT])
        # In a rigid tree, go down as long as a half encloses the range
        if tree.plan[bt.RIGID]:
            if left != bt.NONE and tree.node[n, bt.LEFT_LO] <= lo and hi <= tree.node[n, bt.LEFT_HI]:
                n = left
            elif right != bt.NONE and tree.node[n, bt.RIGHT_LO] <= lo and hi <= tree.node[n, bt.RIGHT_HI]:
                n = right
            else:
                return n
            continue
        # A bucket without halves and parts takes any range
        if left == bt.NONE and right == bt.NONE and tree.node[n, bt.PARTS] == 0:
            return n
        # Put a bucket above this one if the range would widen it too much
        at = np.int64(tree.above[n, bt.BOX])
        low, high = np.int64(tree.box[at, bt.ALL_LOW]), np.int64(tree.box[at, bt.ALL_HIGH])
        if low <= high:
            now = width(codes, a, low, high)
            if width(codes, a, min(low, lo), max(high, hi)) > tree.plan[bt.BETA] * now and now > 0.0:
                return inject_bucket(tree, n)
        # With one half, go there unless the range would widen it too much
        if left == bt.NONE:
            return n
        if right == bt.NONE:
            low, high = np.int64(tree.node[n, bt.LEFT_LO]), np.int64(tree.node[n, bt.LEFT_HI])
            now, then = width(codes, a, low, high), width(codes, a, min(low, lo), max(high, hi))
            if low > high or then <= tree.plan[bt.BETA] * now:
                n = left
                continue
            return n if lo <= high and low <= hi else add_half(tree, n, hi < low)
        # With two halves, stay if the range meets both of them
        in_left = tree.node[n, bt.LEFT_LO] <= hi and lo <= tree.node[n, bt.LEFT_HI]
        in_right = tree.node[n, bt.RIGHT_LO] <= hi and lo <= tree.node[n, bt.RIGHT_HI]
        if in_left and in_right:
            return n
        # If it meets neither, choose the half that stays clear of the other; of two, the narrower
        # one
        if not in_left and not in_right:
            left_low, left_high = (
                min(np.int64(tree.node[n, bt.LEFT_LO]), lo),
                max(np.int64(tree.node[n, bt.LEFT_HI]), hi),
            )
            right_low, right_high = (
                min(np.int64(tree.node[n, bt.RIGHT_LO]), lo),
                max(np.int64(tree.node[n, bt.RIGHT_HI]), hi),
            )
            near_left = left_high < tree.node[n, bt.RIGHT_LO]  # else it would meet the other half
            near_right = right_low > tree.node[n, bt.LEFT_HI]
            if near_left and near_right:
                in_left = width(codes, a, left_low, left_high) < width(codes, a, right_low, right_high)
            else:
                in_left = near_left
        n = left if in_left else right


@device
def inject_bucket(tree, n):
    """Puts a bucket above another bucket, which becomes its left half, for a much wider range.

    Without it, events would visit the bucket below for values that only the wide range has.
    """
    # Make the new bucket
    part, up = np.int64(tree.above[n, bt.PART]), np.int64(tree.above[n, bt.UP])
    above = new_node(tree, part, up, np.int64(tree.node[n, bt.ATTR]), np.int64(tree.above[n, bt.LEVEL]))
    # Replace the old bucket by the new one
    if up == bt.NONE:
        tree.part[part, bt.TOP] = above
    elif tree.node[up, bt.LEFT] == n:
        tree.node[up, bt.LEFT] = above
    else:
        tree.node[up, bt.RIGHT] = above
    # Hang the old bucket below the new one
    tree.node[above, bt.LEFT] = n
    tree.above[n, bt.UP] = above
    tree.above[above, bt.BELOW] = tree.above[n, bt.BELOW]
    # Give the new bucket the old one's ranges
    add_all(tree, above, n, 0, bt.ALL_LOW)
    copy_bounds(tree, n)
    copy_bounds(tree, above)
    tree.state[bt.INJECTED] += 1
    return above


@device
def add_half(tree, n, before):
    """Gives a bucket above another bucket its second half, for values far from the first half.

    before : whether the new half has lower values; then the first half becomes the right one
    """
    first = np.int64(tree.node[n, bt.LEFT])
    level = np.int64(tree.above[n, bt.LEVEL])
    other = new_node(tree, np.int64(tree.above[n, bt.PART]), n, np.int64(tree.node[n, bt.ATTR]), level)
    tree.node[n, bt.RIGHT] = other
    if before:
        tree.node[n, bt.LEFT], tree.node[n, bt.RIGHT] = other, first
    copy_bounds(tree, first)
    copy_bounds(tree, other)
    return other


@device
def place(tree, preds, codes, c, n):
    """Returns the bucket for a conjunction, starting at bucket ``n``."""
    if n == bt.ROOT and not can_be_placed(preds, c):
        return np.int64(bt.ALWAYS)
    while True:
        part, p = best_part(tree, preds, codes, c, n)
        if part < 0:
            return n
        lo, hi = range_of(preds, p)
        n = find_enclosing(tree, codes, np.int64(tree.part[part, bt.TOP]), lo, hi)


@device
def count_path(tree, n, stop, step):
    """Adds ``step`` to the numbers of conjunctions from bucket ``n`` up to, but without, bucket
    ``stop``.

    With NONE as ``stop``, it counts up to the root.
    """
    while n != stop:
        tree.above[n, bt.BELOW] = np.int64(tree.above[n, bt.BELOW]) + step
        up, part = np.int64(tree.above[n, bt.UP]), np.int64(tree.above[n, bt.PART])
        if up != bt.NONE:
            n = up
        elif part != bt.NONE:
            tree.part[part, bt.PART_COUNT] = np.int64(tree.part[part, bt.PART_COUNT]) + step
            n = np.int64(tree.part[part, bt.OWNER])
        else:
            return
