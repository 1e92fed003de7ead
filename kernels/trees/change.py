"""Conjunctions come and go, one by one or all at once.

A change that finds no room stops between two steps, says what it needs, and goes on when it is
called again. What is too full stands in a list of buckets, not on a stack of calls.

``halve_all`` cuts the range of a bucket in two, and ``divide_all`` makes parts of what cannot be
cut. Two kernels instead of one are compiled in two thirds of the time: LLVM goes over all that a
function calls once more for each function above it.
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.trees.arrays import (
    ALWAYS,
    BELOW,
    BOXES,
    CAPACITY,
    COUNT,
    ENTRIES,
    FIRST,
    FREE_BLOCK,
    FREE_BOX,
    LEAF,
    LEAF_CAPACITY,
    LEFT,
    LEVEL,
    MERGED,
    MOST_LEVELS,
    N_PARTS,
    NEXT,
    NODES,
    NONE,
    OWNER,
    PART,
    PART_COUNT,
    PARTS,
    RAISED,
    RECYCLED,
    RIGHT,
    RIGID,
    ROOT,
    SIZE,
    SLOTS,
    TOP,
    UP,
)
from colmatch.kernels.trees.boxes import tighten, tighten_path, widen_path
from colmatch.kernels.trees.place import can_be_placed, count_path, place
from colmatch.kernels.trees.split import can_be_halved, divide, halve, is_full, look_at
from colmatch.kernels.trees.tables import drop_part, free_node, free_part, make_room, note_part, pull, push, put

TODO, GOES_NEXT, NEED_NODES, NEED_PARTS, NEED_ENTRIES, NEED_BOXES, WAITING = range(7)  # places of TreeWork.left


@device
def _lacks(tree, work, nodes, parts, entries, boxes):
    """Whether there is no room for so many more, which is noted."""
    work.left[NEED_NODES], work.left[NEED_PARTS] = nodes, parts
    work.left[NEED_ENTRIES], work.left[NEED_BOXES] = entries, boxes
    return (
        tree.state[NODES] + nodes > len(tree.node)
        or tree.state[N_PARTS] + parts > len(tree.part)
        or 2 * (tree.state[SLOTS] + parts) > len(tree.slot)
        or tree.state[ENTRIES] + entries > len(tree.entry)
        or tree.state[BOXES] + boxes > len(tree.box)
    )


@kernel
def halve_all(tree, preds, codes, work):
    """Halves what is too full and can be halved; the rest waits for ``divide_all``.

    Says whether there was room for it.
    """
    while work.left[TODO] > 0:
        n = np.int64(work.todo[work.left[TODO] - 1])
        count, level = np.int64(tree.node[n, COUNT]), np.int64(tree.above[n, LEVEL])
        if _lacks(tree, work, 2, 0, 4 * count + 16, 2 * (level + 1)):
            return False
        work.left[TODO] -= 1
        if is_full(tree, n) and not (can_be_halved(tree, n) and halve(tree, preds, codes, work, n)):
            work.waiting[work.left[WAITING]] = n
            work.left[WAITING] += 1
    return True


@kernel
def divide_all(tree, preds, codes, work):
    """Divides what could not be halved, by attributes. What cannot be divided either has more room.

    Says whether there was room for it. New leaves may be too full, and are to be halved.
    """
    while work.left[WAITING] > 0:
        n = np.int64(work.waiting[work.left[WAITING] - 1])
        count, level = np.int64(tree.node[n, COUNT]), np.int64(tree.above[n, LEVEL])
        parts = min(count, np.int64(len(work.vote)))
        if _lacks(tree, work, parts, parts, 6 * count + 16, parts * (level + 1)):
            return False
        work.left[WAITING] -= 1
        if is_full(tree, n) and not divide(tree, preds, codes, work, n):
            tree.above[n, CAPACITY] = 2 * count
            tree.state[RAISED] += 1
    return True


@kernel
def enter(tree, preds, codes, work, end):
    """Enters conjunctions up to ``end``, from ``work.left`` on, until a leaf is too full.

    Says whether there was room.
    """
    while work.left[TODO] == 0 and work.left[GOES_NEXT] < end:
        c = work.left[GOES_NEXT]
        n = np.int64(ROOT)
        if _lacks(tree, work, 1, 0, 8, MOST_LEVELS):
            return False
        n = place(tree, preds, codes, c, n)
        if _lacks(tree, work, 0, 0, 2 * np.int64(tree.node[n, COUNT]) + 8, 0):
            return False
        put(tree, preds, n, c)
        count_path(tree, n, NONE, 1)
        if not tree.plan[RIGID]:
            widen_path(tree, preds, n, c)
        if n != ALWAYS:
            look_at(tree, work, n)
        work.left[GOES_NEXT] += 1
    return True


@kernel
def fill_root(tree, preds, work, end):
    """Puts all conjunctions into the leaf of the root, which is to be divided then.

    There must be room for two blocks.
    """
    placed = np.int64(0)
    for c in range(end):
        if can_be_placed(preds, c):
            placed += 1
    make_room(tree, np.int64(ROOT), placed)
    make_room(tree, np.int64(ALWAYS), end - placed)
    for c in range(end):
        n = np.int64(ROOT if can_be_placed(preds, c) else ALWAYS)
        put(tree, preds, n, c)
    tree.above[ROOT, BELOW] = placed
    tree.above[ALWAYS, BELOW] = end - placed
    look_at(tree, work, np.int64(ROOT))
    work.left[GOES_NEXT] = end


@kernel
def remove(tree, preds, codes, work, conjunctions, begin):
    """Takes conjunctions out, those from place ``begin`` on, until there is no room, or a leaf is
    too full. Returns how many are done.

    Those that are not there are passed over.
    """
    for i in range(begin, len(conjunctions)):
        if work.left[TODO] > 0:
            return i
        few = np.int64(tree.plan[LEAF_CAPACITY])
        if _lacks(tree, work, few + 1, 0, 16 * few + 64, (few + 1) * MOST_LEVELS):
            return i
        c = np.int64(conjunctions[i])
        n = np.int64(tree.at[c])
        if n == NONE:
            continue
        pull(tree, n, c)
        count_path(tree, n, NONE, -1)
        if not tree.plan[RIGID]:
            tighten_path(tree, preds, n)
        _clean(tree, preds, codes, work, n)
    return len(conjunctions)


@device
def _is_leaf(tree, n):
    return tree.node[n, LEFT] == NONE and tree.node[n, RIGHT] == NONE and tree.node[n, PARTS] == 0


@device
def _clean(tree, preds, codes, work, n):
    """Gives back what is not worth having any more, from a bucket up to the root."""
    while tree.above[n, PART] != NONE:
        _merge(tree, preds, n)
        up = np.int64(tree.above[n, UP])
        if up != NONE:
            n = up
            continue
        part = np.int64(tree.above[n, PART])
        owner = np.int64(tree.part[part, OWNER])
        count = np.int64(tree.part[part, PART_COUNT])
        room = tree.plan[LEAF_CAPACITY] - np.int64(tree.node[owner, COUNT])
        if count == 0 or (4 * count <= tree.plan[LEAF_CAPACITY] and count <= room):
            _recycle(tree, preds, codes, work, part)
        n = owner


@device
def _merge(tree, preds, n):
    """Takes the halves of a bucket back into it, if they are few and there are no parts.

    Halves with nothing in them go in any case.
    """
    left, right = np.int64(tree.node[n, LEFT]), np.int64(tree.node[n, RIGHT])
    if left == NONE and right == NONE:
        return
    total = np.int64(0)
    for half in (left, right):
        if half != NONE:
            if not _is_leaf(tree, half):
                return
            total += np.int64(tree.node[half, COUNT])
    if total and (tree.node[n, PARTS] > 0 or total + np.int64(tree.node[n, COUNT]) > tree.plan[LEAF_CAPACITY]):
        return
    for half in (left, right):
        if half != NONE:
            leaf = np.int64(tree.node[half, LEAF])
            for i in range(np.int64(tree.node[half, COUNT])):
                at = leaf + i
                push(tree, n, np.int64(tree.entry[at]), tree.need[at], tree.reach[at, 0], tree.reach[at, 1])
            free_node(tree, half)
    tree.node[n, LEFT] = NONE
    tree.node[n, RIGHT] = NONE
    if not tree.plan[RIGID]:
        tighten(tree, preds, n)
    tree.state[MERGED] += 1


@device
def _recycle(tree, preds, codes, work, part):
    """Gives a part back that has hardly any conjunctions left: they are placed anew."""
    owner = np.int64(tree.part[part, OWNER])
    found = np.int64(0)
    begin = work.left[TODO]
    work.todo[begin] = tree.part[part, TOP]
    free_part(tree, part)
    end = begin + 1
    while end > begin:
        end -= 1
        n = np.int64(work.todo[end])
        leaf = np.int64(tree.node[n, LEAF])
        for i in range(np.int64(tree.node[n, COUNT])):
            work.conj[found] = tree.entry[leaf + i]
            found += 1
        for half in (np.int64(tree.node[n, LEFT]), np.int64(tree.node[n, RIGHT])):
            if half != NONE:
                work.todo[end] = half
                end += 1
        other = np.int64(tree.node[n, FIRST])
        while other != NONE:
            next = np.int64(tree.part[other, NEXT])
            work.todo[end] = tree.part[other, TOP]
            end += 1
            drop_part(tree, other)
            other = next
        free_node(tree, n)
    for i in range(found):
        c = np.int64(work.conj[i])
        n = place(tree, preds, codes, c, owner)
        put(tree, preds, n, c)
        count_path(tree, n, owner, 1)
        if not tree.plan[RIGID]:
            widen_path(tree, preds, n, c)
        look_at(tree, work, n)
    tree.state[RECYCLED] += 1


@kernel
def note_parts(tree):
    """Enters all parts into the hash table anew, which is empty."""
    tree.state[SLOTS] = 0
    for part in range(tree.state[N_PARTS]):
        if tree.part[part, OWNER] != NONE:
            note_part(tree, part)


@kernel
def pack(tree, work, order, need, reach):
    """Puts the leaves side by side, depth first, and numbers the conjunctions as they stand there.

    order (C), need (C), reach (C, 2) : the conjunctions by their new number, and the columns of
    entries, are written.
    """
    count = np.int64(0)
    work.todo[0], work.todo[1] = ALWAYS, ROOT
    end = 2
    while end > 0:
        end -= 1
        n = np.int64(work.todo[end])
        leaf = np.int64(tree.node[n, LEAF])
        tree.node[n, LEAF] = count
        tree.above[n, SIZE] = NONE  # a leaf that gets more is given a block of its own
        for i in range(np.int64(tree.node[n, COUNT])):
            order[count] = tree.entry[leaf + i]
            need[count] = tree.need[leaf + i]
            reach[count, 0], reach[count, 1] = tree.reach[leaf + i, 0], tree.reach[leaf + i, 1]
            count += 1
        for half in (np.int64(tree.node[n, RIGHT]), np.int64(tree.node[n, LEFT])):
            if half != NONE:
                work.todo[end] = half
                end += 1
        part = np.int64(tree.node[n, FIRST])
        while part != NONE:
            work.todo[end] = tree.part[part, TOP]
            end += 1
            part = np.int64(tree.part[part, NEXT])
    for i in range(FREE_BLOCK, FREE_BOX):
        tree.state[i] = NONE
    tree.state[ENTRIES] = count
