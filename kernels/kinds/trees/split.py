"""Division of an overfull leaf: in halves, then the remaining conjunctions by the best attribute.

Source: "Relevance Matters", Algorithms 4 and 5, V-A and V-B.
"""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.geometry import middle_of, predicate_on, required_end
from colmatch.kernels.kinds.trees import arrays as bt
from colmatch.kernels.kinds.trees.boxes import copy_bounds, take_leaf_into_box, tighten
from colmatch.kernels.kinds.trees.buckets import STAYS, TO_LEFT, TO_RIGHT, cut_in_three
from colmatch.kernels.kinds.trees.place import find_narrowest, is_used
from colmatch.kernels.kinds.trees.tables import find_part, keep, make_room, new_node, new_part, put
from colmatch.kernels.layout import ATTR_MASK, CODE_MAX, FLAG_NONE


@device
def is_full(tree, n):
    return tree.node[n, bt.COUNT] > tree.above[n, bt.CAPACITY]


@device
def look_at(tree, work, n):
    """Puts a bucket on the list to be divided, if it is too full."""
    if is_full(tree, n):
        work.todo[work.left[0]] = n
        work.left[0] += 1


@device
def can_be_halved(tree, n):
    return (
        tree.above[n, bt.PART] != bt.NONE
        and tree.node[n, bt.LEFT] == bt.NONE
        and tree.node[n, bt.RIGHT] == bt.NONE
        and tree.node[n, bt.PARTS] == 0
    )


@device
def halve(tree, preds, codes, work, n):
    """Divides a bucket in two halves that do not meet. Conjunctions that fit in neither stay.

    Returns whether this was possible.
    """
    # Choose the side of each entry: at the middle in a rigid tree, else by three buckets
    a = np.int64(tree.node[n, bt.ATTR])
    count, leaf = np.int64(tree.node[n, bt.COUNT]), np.int64(tree.node[n, bt.LEAF])
    cut = np.int64(0)
    if tree.plan[bt.RIGID]:
        cut = middle_of(
            codes, a, np.int64(tree.node[n, bt.OWN_LO]), np.int64(tree.node[n, bt.OWN_HI]), tree.plan[bt.BY_CODES] != 0
        )
        if cut == 0:
            return False
        for i in range(count):
            lo, hi = tree.reach[leaf + i, 0], tree.reach[leaf + i, 1]
            work.side[i] = TO_LEFT if hi < cut else TO_RIGHT if lo >= cut else STAYS
    elif not cut_in_three(tree, codes, work, n):
        return False
    # Give up if all entries stay
    to_left = to_right = np.int64(0)
    for i in range(count):
        to_left += work.side[i] == TO_LEFT
        to_right += work.side[i] == TO_RIGHT
    if to_left + to_right == 0:
        return False
    # Make the halves, and move their entries
    level, part = np.int64(tree.above[n, bt.LEVEL]), np.int64(tree.above[n, bt.PART])
    left, right = new_node(tree, part, n, a, level), new_node(tree, part, n, a, level)
    tree.node[n, bt.LEFT], tree.node[n, bt.RIGHT] = left, right
    _share_out(tree, preds, work, n, left, to_left, right, to_right)
    # Set the ranges
    if tree.plan[bt.RIGID]:
        _set_range(tree, n, left, np.int64(tree.node[n, bt.OWN_LO]), cut - 1)
        _set_range(tree, n, right, cut, np.int64(tree.node[n, bt.OWN_HI]))
    else:
        copy_bounds(tree, left)
        copy_bounds(tree, right)
        tighten(tree, preds, n)
    # Put the buckets that are still too full on the list
    tree.state[bt.HALVED] += 1
    look_at(tree, work, n)
    look_at(tree, work, left)
    look_at(tree, work, right)
    return True


@device
def _set_range(tree, up, n, lo, hi):
    tree.node[n, bt.OWN_LO], tree.node[n, bt.OWN_HI] = lo, hi
    if tree.node[up, bt.LEFT] == n:
        tree.node[up, bt.LEFT_LO], tree.node[up, bt.LEFT_HI] = lo, hi
    else:
        tree.node[up, bt.RIGHT_LO], tree.node[up, bt.RIGHT_HI] = lo, hi


@device
def _share_out(tree, preds, work, n, left, to_left, right, to_right):
    """Moves the entries of a leaf to the halves, by ``work.side``."""
    # Give the halves' leaves room
    count, leaf = np.int64(tree.node[n, bt.COUNT]), np.int64(tree.node[n, bt.LEAF])
    if to_left:
        make_room(tree, left, to_left)
    if to_right:
        make_room(tree, right, to_right)
    # Move each entry to the end of its leaf
    entry, need, reach, at, side = tree.entry, tree.need, tree.reach, tree.at, work.side
    kept, into_left, into_right = leaf, np.int64(tree.node[left, bt.LEAF]), np.int64(tree.node[right, bt.LEAF])
    for i in range(leaf, leaf + count):
        if side[i - leaf] == STAYS:
            to = kept
            kept += 1
        elif side[i - leaf] == TO_LEFT:
            to = into_left
            into_left += 1
            at[entry[i]] = left
        else:
            to = into_right
            into_right += 1
            at[entry[i]] = right
        entry[to], need[to] = entry[i], need[i]
        reach[to, 0], reach[to, 1] = reach[i, 0], reach[i, 1]
    # Set the numbers of entries, and the ranges of the halves
    tree.node[left, bt.COUNT], tree.node[right, bt.COUNT] = to_left, to_right
    if not tree.plan[bt.RIGID]:
        take_leaf_into_box(tree, preds, left)
        take_leaf_into_box(tree, preds, right)
    tree.node[n, bt.COUNT] = kept - leaf
    tree.above[left, bt.BELOW] = to_left
    tree.above[right, bt.BELOW] = to_right


@device
def count_votes(tree, preds, codes, work, n):
    """Has each conjunction of a leaf vote for attributes. Returns the number of attributes with
    votes.

    By popularity, a conjunction votes for each of its attributes. Otherwise it votes for the
    attribute that the fewest events find it by, which is written into ``work.lo``. The attributes
    in ``work.touched`` have ``work.votes`` votes with the weight ``work.vote``.
    """
    leaf = np.int64(tree.node[n, bt.LEAF])
    touched = np.int64(0)
    for i in range(np.int64(tree.node[n, bt.COUNT])):
        # By selectivity, vote for the attribute of the narrowest predicate
        c = np.int64(tree.entry[leaf + i])
        if tree.plan[bt.RANKING] != bt.POPULARITY:
            p, part = find_narrowest(tree, preds, codes, c, n)
            work.lo[i] = bt.NONE
            if p >= 0:
                work.lo[i] = preds.pred[p, 0] & ATTR_MASK
                touched = _vote(work, np.int64(work.lo[i]), 1.0 - part, touched)
            continue
        # By popularity, vote for each attribute that is not on the path
        for p in range(preds.first[c], required_end(preds, c)):
            word = np.int64(preds.pred[p, 0])
            a = word & ATTR_MASK
            if not word & FLAG_NONE and predicate_on(preds, c, a) == p and not is_used(tree, n, a):
                touched = _vote(work, a, 1.0, touched)
    return touched


@device
def _vote(work, a, weight, touched):
    if work.votes[a] == 0:
        work.touched[touched] = a
        touched += 1
    work.votes[a] += 1
    work.vote[a] += weight
    return touched


@device
def divide(tree, preds, codes, work, n):
    """Makes parts of a leaf's best attributes, until the leaf is not too full.

    Returns whether this was possible.
    """
    if tree.above[n, bt.LEVEL] == bt.MOST_LEVELS:
        return False
    # Count the votes
    touched = count_votes(tree, preds, codes, work, n)
    left = np.int64(tree.node[n, bt.COUNT])
    parts = np.int64(0)
    # Choose attributes by votes, until few enough conjunctions are left
    while left > tree.above[n, bt.CAPACITY]:
        best = np.int64(-1)
        for i in range(parts, touched):
            if best < 0 or work.vote[work.touched[i]] > work.vote[work.touched[best]]:
                best = np.int64(i)
        if best < 0:
            break
        a = np.int64(work.touched[best])
        work.touched[best] = work.touched[parts]
        work.touched[parts] = a
        left -= work.votes[a]  # too many by popularity; the next round divides again
        parts += 1
    # Number the chosen attributes, and clear the votes
    for i in range(touched):
        a = np.int64(work.touched[i])
        work.chosen[a] = i + 1 if i < parts else 0
        work.votes[a] = 0
        work.vote[a] = 0.0
    # Move the conjunctions to the new parts
    if parts:
        _move_to_parts(tree, preds, work, n, parts)
    for i in range(touched):
        work.chosen[work.touched[i]] = 0
    return parts > 0


@device
def _move_to_parts(tree, preds, work, n, made):
    """Makes parts of the first ``made`` attributes of ``work.touched``, and moves conjunctions
    there.

    No part is made for an attribute without conjunctions.
    """
    # Choose the part of each conjunction: its attribute that was chosen first
    leaf, count = np.int64(tree.node[n, bt.LEAF]), np.int64(tree.node[n, bt.COUNT])
    for i in range(count):
        c = np.int64(tree.entry[leaf + i])
        chosen = np.int64(0)
        if tree.plan[bt.RANKING] != bt.POPULARITY:
            if work.lo[i] != bt.NONE:
                chosen = np.int64(work.chosen[np.int64(work.lo[i])])
        else:
            for p in range(preds.first[c], required_end(preds, c)):
                word = np.int64(preds.pred[p, 0])
                rank = np.int64(work.chosen[word & ATTR_MASK])
                if not word & FLAG_NONE and rank and (chosen == 0 or rank < chosen):
                    chosen = rank
        work.side[i] = chosen
        if chosen:
            work.votes[np.int64(work.touched[chosen - 1])] += 1
    # Make the parts with room for their conjunctions
    for i in range(made):
        a = np.int64(work.touched[i])
        if work.votes[a]:
            top = np.int64(tree.part[new_part(tree, n, a), bt.TOP])
            make_room(tree, top, work.votes[a])
            tree.above[top, bt.BELOW] = work.votes[a]
            if tree.plan[bt.RIGID]:
                _open_top(tree, top)
    # Move the conjunctions, and close the gaps in the leaf
    kept = np.int64(0)
    for i in range(count):
        c = np.int64(tree.entry[leaf + i])
        if work.side[i] == 0:
            keep(tree, leaf + i, leaf + kept)
            kept += 1
            continue
        part = find_part(tree.slot, tree.part, n, np.int64(work.touched[np.int64(work.side[i]) - 1]))
        top = np.int64(tree.part[part, bt.TOP])
        put(tree, preds, top, c)
        tree.part[part, bt.PART_COUNT] += 1
    tree.node[n, bt.COUNT] = kept
    # Set the ranges of the topmost buckets, and clear the votes
    for i in range(made):
        a = np.int64(work.touched[i])
        if work.votes[a]:
            work.votes[a] = 0
            top = np.int64(tree.part[find_part(tree.slot, tree.part, n, a), bt.TOP])
            if not tree.plan[bt.RIGID]:
                take_leaf_into_box(tree, preds, top)
            copy_bounds(tree, top)
            look_at(tree, work, top)
    # Put the leaf on the list if it is still too full
    look_at(tree, work, n)


@device
def _open_top(tree, top):
    """Gives the topmost bucket of an attribute the whole domain."""
    part = np.int64(tree.above[top, bt.PART])
    tree.node[top, bt.OWN_LO], tree.node[top, bt.OWN_HI] = 1, CODE_MAX
    tree.part[part, bt.PART_LO], tree.part[part, bt.PART_HI] = 1, CODE_MAX
