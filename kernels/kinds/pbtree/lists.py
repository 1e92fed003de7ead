"""PB+tree: nodes of lists, which split and merge, and the pointers of leaves to them.

No leaf points to the first node of a list: a pointer of 0 means it. So the first predicate of a
list changes one leaf only, however many keys there are.

All six lists (``=``, ``>``, ``<``, ``<>`` and both ends of ranges) follow one rule. A pointer leads
to the last node that begins at the item's key or below. So one loop does splits, merges and the
paper's Number_update. The first ``>`` among 100,000 equalities changes one leaf. With pointers to
the first node, it changed all 896 leaves, 3.7 MB of log. The split of a node still changes each
leaf with keys above the keys of the new node, once in some 250 inserts.
"""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.kinds.pbtree import arrays as pb
from colmatch.kernels.kinds.pbtree.editing import (
    edit,
    free_page,
    has_failed,
    link_behind,
    locate_page,
    take_page,
    unlink,
)
from colmatch.kernels.kinds.pbtree.leaves import descend, item_from
from colmatch.kernels.kinds.pbtree.pages import (
    begin_of,
    first_key,
    item_at,
    items_below,
    key_at,
    last_key,
    words_used,
)


@device
def pointer_to(pages, node):
    """Returns the pointer of leaves to a node of a list: 0 for the first node, or for none."""
    if node == 0:
        return node
    base = locate_page(pages, node)
    return np.int64(0) if pages.mem[base + pb.PREV] == 0 else node


@device
def set_pointers(pages, leaf, place, which, old, new, below, bounded):
    """Replaces a pointer in the items from ``place`` of a leaf on, as long as they have the old
    pointer.

    below : if ``bounded``, items from this key on are left alone

    The visited leaves are the Number_update of the PB+tree paper (section 4.5).
    """
    mem = pages.mem
    while leaf != 0 and not has_failed(pages):
        base = locate_page(pages, leaf)
        if has_failed(pages):
            return
        items = np.int64(mem[base + pb.ITEMS])
        while place < items:
            # Stop at another pointer, or at the bound
            pointer = base + pb.LEAF_POINTERS + pb.LISTS * place + which
            if np.int64(mem[pointer]) & pb.PAGE_MASK != old:
                return
            if bounded and key_at(mem, base + pb.HEAD + 2 * place) >= below:
                return
            # Replace the pointer
            edit(pages, leaf)
            if has_failed(pages):
                return
            mem[pointer] = np.int64(mem[pointer]) & pb.IN_LIST | new
            place += 1
        leaf, place = np.int64(mem[base + pb.NEXT]), np.int64(0)


@device
def set_pointers_from(pages, root, key, which, old, new, below, bounded, path):
    """Replaces a pointer as ``set_pointers`` does, from the first item with a key not below
    ``key``.
    """
    depth = descend(pages, root, key, path)
    base = locate_page(pages, path[depth, 0])
    if has_failed(pages):
        return
    leaf, place = path[depth, 0], item_from(pages.mem, base, key)
    set_pointers(pages, leaf, place, which, old, new, below, bounded)


@device
def split_list(pages, root, which, node, key, path):
    """Splits a node of a list. Returns the half that a key belongs to.

    A SidSet that takes most of the node is cut in two, and continues in the new node.
    """
    mem = pages.mem
    right = take_page(pages, pb.LIST)
    base, other = edit(pages, node), edit(pages, right)
    if has_failed(pages):
        return node
    # Find the item in the middle of the node
    items, size = np.int64(mem[base + pb.ITEMS]), np.int64(mem[base + pb.SIDS])
    total = words_used(mem, base)
    j = np.int64(0)
    while np.int64(mem[item_at(base, j) + 2]) + pb.ITEM * (j + 1) <= total // 2:
        j += 1
    # Cut before or behind the item, or inside a large SidSet
    begin, end = begin_of(mem, base, j), np.int64(mem[item_at(base, j) + 2])
    inside = False
    cut = begin
    if j == 0 or total - begin - pb.ITEM * j > pb.LIST_ROOM * 3 // 4:
        if j + 1 < items and end + pb.ITEM * (j + 1) <= pb.LIST_ROOM * 3 // 4:
            j += 1
            cut = end
        else:
            inside = True
            cut = max(begin + 1, min(end - 1, total // 2 - pb.ITEM * (j + 1)))
    # Move the slots and the items behind the cut
    for i in range(size - cut):
        mem[other + pb.HEAD + i] = mem[base + pb.HEAD + cut + i]
    for i in range(j, items):
        source, to = item_at(base, i), item_at(other, i - j)
        mem[to], mem[to + 1], mem[to + 2] = mem[source], mem[source + 1], np.int64(mem[source + 2]) - cut
    mem[other + pb.ITEMS], mem[other + pb.SIDS] = items - j, size - cut
    mem[base + pb.SIDS] = cut
    mem[base + pb.ITEMS] = j
    # Keep the first part of a divided SidSet on the left
    if inside:
        mem[base + pb.ITEMS] = j + 1
        mem[item_at(base, j) + 2] = cut
        mem[other + pb.CONTINUES] = 1
    # Link the new node, and point the items to it
    link_behind(pages, node, right)
    old = pointer_to(pages, node)
    if has_failed(pages):
        return node
    first = first_key(mem, other)
    set_pointers_from(pages, root, first, which, old, right, np.int64(0), False, path)
    return right if key >= first else node


@device
def find_slot(pages, node, key, slot):
    """Finds a slot in a SidSet that ends in ``node``. Returns node, item and place.

    The place is -1 if the slot is not there.
    """
    mem = pages.mem
    while node != 0:
        base = locate_page(pages, node)
        if has_failed(pages):
            break
        j = items_below(mem, base, key)
        if j == mem[base + pb.ITEMS] or key_at(mem, item_at(base, j)) != key:
            break
        for i in range(begin_of(mem, base, j), np.int64(mem[item_at(base, j) + 2])):
            if mem[base + pb.HEAD + i] == slot:
                return node, j, i
        if j > 0 or mem[base + pb.CONTINUES] == 0:
            break
        node = np.int64(mem[base + pb.PREV])
    return node, np.int64(0), np.int64(-1)


@device
def take_slot(mem, base, j, i):
    """Removes the slot at place ``i`` of a node from item ``j``."""
    size = np.int64(mem[base + pb.SIDS])
    for k in range(i, size - 1):
        mem[base + pb.HEAD + k] = mem[base + pb.HEAD + k + 1]
    mem[base + pb.SIDS] = size - 1
    for k in range(j, np.int64(mem[base + pb.ITEMS])):
        mem[item_at(base, k) + 2] -= 1


@device
def remove_key(pages, e, root, which, node, j, key, leaf, place, path):
    """Removes an empty item from a node, and a node without items from its list.

    leaf, place : of the tree's item with the key

    Returns whether the node before has a part of the same SidSet.
    """
    # Remove the item
    mem, base = pages.mem, edit(pages, node)
    items = np.int64(mem[base + pb.ITEMS]) - 1
    for i in range(item_at(base, j) - 1, item_at(base, items) - 1, -1):  # nodes have their items at the end
        mem[i + pb.ITEM] = mem[i]
    mem[base + pb.ITEMS] = items
    # Find out if the SidSet begins in the node before
    before, behind = np.int64(mem[base + pb.PREV]), np.int64(mem[base + pb.NEXT])
    to, more = pointer_to(pages, before), False
    if j == 0 and before != 0 and mem[base + pb.CONTINUES] != 0:
        other = locate_page(pages, before)
        if has_failed(pages):
            return False
        more = last_key(mem, other) == key
    # Correct the pointers to a node with items left
    if items > 0:
        if j == 0:
            mem[base + pb.CONTINUES] = 0
            if before != 0:
                set_pointers(pages, leaf, place, which, node, to, first_key(mem, base), True)
        return more
    # Remove an empty node, and correct the pointers to it or to the next one
    unlink(pages, node)
    if before != 0:
        set_pointers(pages, leaf, place, which, node, to, np.int64(0), False)
    else:
        mem[e + pb.HEADS + which] = behind
        if behind != 0:
            other = locate_page(pages, behind)
            if has_failed(pages):
                return False
            set_pointers_from(pages, root, first_key(mem, other), which, behind, np.int64(0), np.int64(0), False, path)
    free_page(pages, node)
    return more


@device
def merge_lists(pages, root, which, node, path):
    """Merges a node with the next node, or else with the node before, if both fit into one."""
    mem, base = pages.mem, locate_page(pages, node)
    for is_last in range(2):
        left = np.int64(mem[base + pb.PREV]) if is_last else node
        right = node if is_last else np.int64(mem[base + pb.NEXT])
        if left == 0 or right == 0 or has_failed(pages):
            continue
        one, two = locate_page(pages, left), locate_page(pages, right)
        if words_used(mem, one) + words_used(mem, two) <= pb.LIST_ROOM * 3 // 4 and not has_failed(pages):
            join(pages, root, which, left, right, path)
            return


@device
def join(pages, root, which, left, right, path):
    """Moves the contents of a node into the neighbour on its left, and frees the node."""
    mem, one, two = pages.mem, edit(pages, left), edit(pages, right)
    unlink(pages, right)
    if has_failed(pages):
        return
    # Append the slots and the items, with a divided SidSet in one item
    items, size = np.int64(mem[one + pb.ITEMS]), np.int64(mem[one + pb.SIDS])
    first = first_key(mem, two)
    joined = 1 if last_key(mem, one) == first else 0
    for i in range(np.int64(mem[two + pb.SIDS])):
        mem[one + pb.HEAD + size + i] = mem[two + pb.HEAD + i]
    for i in range(np.int64(mem[two + pb.ITEMS])):
        source, to = item_at(two, i), item_at(one, items + i - joined)
        mem[to], mem[to + 1], mem[to + 2] = mem[source], mem[source + 1], np.int64(mem[source + 2]) + size
    mem[one + pb.ITEMS] = items + np.int64(mem[two + pb.ITEMS]) - joined
    mem[one + pb.SIDS] = size + np.int64(mem[two + pb.SIDS])
    # Correct the pointers to the freed node
    to = pointer_to(pages, left)
    set_pointers_from(pages, root, first, which, right, to, np.int64(0), False, path)
    free_page(pages, right)
