"""Insertion and removal of conjunctions, one by one or all at once.

A change without room stops between two steps, notes the rows that it needs, and goes on when it is
called again. Overfull buckets are on a list, not on a stack of calls.

``halve_all`` cuts the ranges of buckets in two. ``divide_all`` makes parts of the leaves that
cannot be cut. Two kernels instead of one compile in two thirds of the time. LLVM processes all
functions below a function once more for each function above it.
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.kinds.trees import arrays as bt
from colmatch.kernels.kinds.trees.arrays import Tree, TreeWork
from colmatch.kernels.kinds.trees.boxes import tighten, tighten_path, widen_path
from colmatch.kernels.kinds.trees.place import can_be_placed, count_path, place
from colmatch.kernels.kinds.trees.split import can_be_halved, divide, halve, is_full, look_at
from colmatch.kernels.kinds.trees.tables import drop_part, free_node, free_part, make_room, note_part, pull, push, put
from colmatch.kernels.layout import I64, U32, U64, Codes, Predicates, Table, Written

TODO, GOES_NEXT, NEED_NODES, NEED_PARTS, NEED_ENTRIES, NEED_BOXES, WAITING = range(7)  # places of TreeWork.left


@device
def _lacks(tree, work, nodes, parts, entries, boxes):
    """Notes the rows that a step may need. Returns whether a table has no room for them."""
    work.left[NEED_NODES], work.left[NEED_PARTS] = nodes, parts
    work.left[NEED_ENTRIES], work.left[NEED_BOXES] = entries, boxes
    return (
        tree.state[bt.NODES] + nodes > len(tree.node)
        or tree.state[bt.N_PARTS] + parts > len(tree.part)
        or 2 * (tree.state[bt.SLOTS] + parts) > len(tree.slot)
        or tree.state[bt.ENTRIES] + entries > len(tree.entry)
        or tree.state[bt.BOXES] + boxes > len(tree.box)
    )


@kernel
def halve_all(tree: Written[Tree], preds: Predicates, codes: Codes, work: Written[TreeWork]) -> bool:
    """Halves the overfull buckets that can be halved. The others wait for ``divide_all``.

    Returns whether there was room for it.
    """
    while work.left[TODO] > 0:
        n = np.int64(work.todo[work.left[TODO] - 1])
        count, level = np.int64(tree.node[n, bt.COUNT]), np.int64(tree.above[n, bt.LEVEL])
        if _lacks(tree, work, 2, 0, 4 * count + 16, 2 * (level + 1)):
            return False
        work.left[TODO] -= 1
        if is_full(tree, n) and not (can_be_halved(tree, n) and halve(tree, preds, codes, work, n)):
            work.waiting[work.left[WAITING]] = n
            work.left[WAITING] += 1
    return True


@kernel
def divide_all(tree: Written[Tree], preds: Predicates, codes: Codes, work: Written[TreeWork]) -> bool:
    """Divides the buckets that could not be halved, by attributes. A leaf that cannot be divided
    gets a higher capacity.

    Returns whether there was room for it. New leaves may be too full, and are to be halved.
    """
    while work.left[WAITING] > 0:
        n = np.int64(work.waiting[work.left[WAITING] - 1])
        count, level = np.int64(tree.node[n, bt.COUNT]), np.int64(tree.above[n, bt.LEVEL])
        parts = min(count, np.int64(len(work.vote)))
        if _lacks(tree, work, parts, parts, 6 * count + 16, parts * (level + 1)):
            return False
        work.left[WAITING] -= 1
        if is_full(tree, n) and not divide(tree, preds, codes, work, n):
            tree.above[n, bt.CAPACITY] = 2 * count
            tree.state[bt.RAISED] += 1
    return True


@kernel
def enter(tree: Written[Tree], preds: Predicates, codes: Codes, work: Written[TreeWork], end: int) -> bool:
    """Enters conjunctions up to ``end``, from ``work.left`` on, until a leaf is too full.

    Returns whether there was room.
    """
    while work.left[TODO] == 0 and work.left[GOES_NEXT] < end:
        # Find the bucket
        c = work.left[GOES_NEXT]
        n = np.int64(bt.ROOT)
        if _lacks(tree, work, 1, 0, 8, bt.MOST_LEVELS):
            return False
        n = place(tree, preds, codes, c, n)
        # Put the conjunction there
        if _lacks(tree, work, 0, 0, 2 * np.int64(tree.node[n, bt.COUNT]) + 8, 0):
            return False
        put(tree, preds, n, c)
        # Update the buckets above
        count_path(tree, n, bt.NONE, 1)
        if not tree.plan[bt.RIGID]:
            widen_path(tree, preds, n, c)
        if n != bt.ALWAYS:
            look_at(tree, work, n)
        work.left[GOES_NEXT] += 1
    return True


@kernel
def fill_root(tree: Written[Tree], preds: Predicates, work: Written[TreeWork], end: int) -> None:
    """Puts all conjunctions into the leaf of the root, for later division.

    Conjunctions that no attribute can place go to their own bucket. There must be room for two
    blocks.
    """
    placed = np.int64(0)
    for c in range(end):
        if can_be_placed(preds, c):
            placed += 1
    make_room(tree, np.int64(bt.ROOT), placed)
    make_room(tree, np.int64(bt.ALWAYS), end - placed)
    for c in range(end):
        n = np.int64(bt.ROOT if can_be_placed(preds, c) else bt.ALWAYS)
        put(tree, preds, n, c)
    tree.above[bt.ROOT, bt.BELOW] = placed
    tree.above[bt.ALWAYS, bt.BELOW] = end - placed
    look_at(tree, work, np.int64(bt.ROOT))
    work.left[GOES_NEXT] = end


@kernel
def remove(
    tree: Written[Tree],
    preds: Predicates,
    codes: Codes,
    work: Written[TreeWork],
    conjunctions: I64,
    begin: int,
) -> int:
    """Removes the conjunctions from place ``begin`` on, until there is no room or a leaf is too
    full.

    Returns the place of the first one not done. Conjunctions that are not in the tree are passed
    over.
    """
    for i in range(begin, len(conjunctions)):
        # Stop for overfull leaves, or without room
        if work.left[TODO] > 0:
            return i
        few = np.int64(tree.plan[bt.LEAF_CAPACITY])
        if _lacks(tree, work, few + 1, 0, 16 * few + 64, (few + 1) * bt.MOST_LEVELS):
            return i
        # Take the conjunction out of its leaf
        c = np.int64(conjunctions[i])
        n = np.int64(tree.at[c])
        if n == bt.NONE:
            continue
        pull(tree, n, c)
        # Update the buckets above
        count_path(tree, n, bt.NONE, -1)
        if not tree.plan[bt.RIGID]:
            tighten_path(tree, preds, n)
        _clean(tree, preds, codes, work, n)
    return len(conjunctions)


@device
def _is_leaf(tree, n):
    return tree.node[n, bt.LEFT] == bt.NONE and tree.node[n, bt.RIGHT] == bt.NONE and tree.node[n, bt.PARTS] == 0


@device
def _clean(tree, preds, codes, work, n):
    """Merges halves and frees parts with too few conjunctions, from a bucket up to the root."""
    while tree.above[n, bt.PART] != bt.NONE:
        _merge(tree, preds, n)
        up = np.int64(tree.above[n, bt.UP])
        if up != bt.NONE:
            n = up
            continue
        part = np.int64(tree.above[n, bt.PART])
        owner = np.int64(tree.part[part, bt.OWNER])
        count = np.int64(tree.part[part, bt.PART_COUNT])
        room = tree.plan[bt.LEAF_CAPACITY] - np.int64(tree.node[owner, bt.COUNT])
        if count == 0 or (4 * count <= tree.plan[bt.LEAF_CAPACITY] and count <= room):
            _recycle(tree, preds, codes, work, part)
        n = owner


@device
def _merge(tree, preds, n):
    """Takes the entries of a bucket's halves back into it, if they are few and there are no parts.

    Halves without entries are removed in any case.
    """
    # Count the entries of the halves, which must be leaves
    left, right = np.int64(tree.node[n, bt.LEFT]), np.int64(tree.node[n, bt.RIGHT])
    if left == bt.NONE and right == bt.NONE:
        return
    total = np.int64(0)
    for half in (left, right):
        if half != bt.NONE:
            if not _is_leaf(tree, half):
                return
            total += np.int64(tree.node[half, bt.COUNT])
    # Keep the halves if they are needed
    if total and (tree.node[n, bt.PARTS] > 0 or total + np.int64(tree.node[n, bt.COUNT]) > tree.plan[bt.LEAF_CAPACITY]):
        return
    # Move the entries, and free the halves
    for half in (left, right):
        if half != bt.NONE:
            leaf = np.int64(tree.node[half, bt.LEAF])
            for i in range(np.int64(tree.node[half, bt.COUNT])):
                at = leaf + i
                push(tree, n, np.int64(tree.entry[at]), tree.need[at], tree.reach[at, 0], tree.reach[at, 1])
            free_node(tree, half)
    tree.node[n, bt.LEFT] = bt.NONE
    tree.node[n, bt.RIGHT] = bt.NONE
    # Recompute the ranges
    if not tree.plan[bt.RIGID]:
        tighten(tree, preds, n)


@device
def _recycle(tree, preds, codes, work, part):
    """Frees a part with hardly any conjunctions left, and places these again."""
    # Take the part out of its directory
    owner = np.int64(tree.part[part, bt.OWNER])
    count = np.int64(0)
    begin = work.left[TODO]
    work.todo[begin] = tree.part[part, bt.TOP]
    free_part(tree, part)
    # Free all buckets below it, and collect their conjunctions
    end = begin + 1
    while end > begin:
        end -= 1
        n = np.int64(work.todo[end])
        leaf = np.int64(tree.node[n, bt.LEAF])
        for i in range(np.int64(tree.node[n, bt.COUNT])):
            work.conj[count] = tree.entry[leaf + i]
            count += 1
        for half in (np.int64(tree.node[n, bt.LEFT]), np.int64(tree.node[n, bt.RIGHT])):
            if half != bt.NONE:
                work.todo[end] = half
                end += 1
        other = np.int64(tree.node[n, bt.FIRST])
        while other != bt.NONE:
            next = np.int64(tree.part[other, bt.NEXT])
            work.todo[end] = tree.part[other, bt.TOP]
            end += 1
            drop_part(tree, other)
            other = next
        free_node(tree, n)
    # Place the conjunctions from the owner on
    for i in range(count):
        c = np.int64(work.conj[i])
        n = place(tree, preds, codes, c, owner)
        put(tree, preds, n, c)
        count_path(tree, n, owner, 1)
        if not tree.plan[bt.RIGID]:
            widen_path(tree, preds, n, c)
        look_at(tree, work, n)


@kernel
def note_parts(tree: Written[Tree]) -> None:
    """Enters all parts into the hash table, which is empty."""
    tree.state[bt.SLOTS] = 0
    for part in range(tree.state[bt.N_PARTS]):
        if tree.part[part, bt.OWNER] != bt.NONE:
            note_part(tree, part)


@kernel
def pack(
    tree: Written[Tree], work: Written[TreeWork], order: Written[U32], need: Written[U64], reach: Written[Table[U32]]
) -> None:
    """Puts the leaves side by side, depth first, and numbers the conjunctions in that order.

    order (C), need (C), reach (C, 2) : written: the conjunctions by new number, and the columns of
        entries
    """
    # Begin with the root and the bucket of unplaced conjunctions
    count = np.int64(0)
    work.todo[0], work.todo[1] = bt.ALWAYS, bt.ROOT
    end = 2
    while end > 0:
        end -= 1
        n = np.int64(work.todo[end])
        # Copy the entries of the leaf
        leaf = np.int64(tree.node[n, bt.LEAF])
        tree.node[n, bt.LEAF] = count
        tree.above[n, bt.SIZE] = bt.NONE  # a leaf that grows gets a new block
        for i in range(np.int64(tree.node[n, bt.COUNT])):
            order[count] = tree.entry[leaf + i]
            need[count] = tree.need[leaf + i]
            reach[count, 0], reach[count, 1] = tree.reach[leaf + i, 0], tree.reach[leaf + i, 1]
            count += 1
        # Push the halves, and the topmost buckets of the parts
        for half in (np.int64(tree.node[n, bt.RIGHT]), np.int64(tree.node[n, bt.LEFT])):
            if half != bt.NONE:
                work.todo[end] = half
                end += 1
        part = np.int64(tree.node[n, bt.FIRST])
        while part != bt.NONE:
            work.todo[end] = tree.part[part, bt.TOP]
            end += 1
            part = np.int64(tree.part[part, bt.NEXT])
    # Forget the free blocks
    for i in range(bt.FREE_BLOCK, bt.FREE_BOX):
        tree.state[i] = bt.NONE
    tree.state[bt.ENTRIES] = count
