"""PB+tree: inserts and deletes of predicates in trees with separate pages.

Source: the PB+tree paper (``colmatch/kinds/pbtree.py``), sections 4.3 and 4.5.
"""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.kinds.pbtree import arrays as pb
from colmatch.kernels.kinds.pbtree.blocks import add_count, put_entry
from colmatch.kernels.kinds.pbtree.editing import WRONG, edit, free_page, has_failed, locate_page, take_page
from colmatch.kernels.kinds.pbtree.leaves import descend, enter_item, item_from, remove_item
from colmatch.kernels.kinds.pbtree.lists import find_slot, merge_lists, remove_key, split_list, take_slot
from colmatch.kernels.kinds.pbtree.pages import begin_of, item_at, items_below, key_at, put_key, words_used


@device
def insert_large(pages, e, which, key, slot, path):
    """Enters a slot into the SidSet of a key in a list.

    e : place of the tree's entry, on a page that is being changed
    """
    mem = pages.mem
    # Find or make the item of the key
    depth = descend(pages, np.int64(mem[e + pb.TREE_ROOT]), key, path)
    if has_failed(pages):
        return
    leaf, place = enter_item(pages, e, key, path, depth)
    if has_failed(pages):
        return
    # Find the node of the list, or make its first one
    root = np.int64(mem[e + pb.TREE_ROOT])
    node = np.int64(mem[locate_page(pages, leaf) + pb.LEAF_POINTERS + pb.LISTS * place + which]) & pb.PAGE_MASK
    if node == 0:
        node = np.int64(mem[e + pb.HEADS + which])
    if node == 0:
        node = take_page(pages, pb.LIST)
        mem[e + pb.HEADS + which] = node
    # Split the node if it has no room for the slot
    base = edit(pages, node)
    if has_failed(pages):
        return
    j = items_below(mem, base, key)
    there = j < np.int64(mem[base + pb.ITEMS]) and key_at(mem, item_at(base, j)) == key
    if words_used(mem, base) + 1 + (0 if there else pb.ITEM) > pb.LIST_ROOM:
        node = split_list(pages, root, which, node, key, path)
        base = edit(pages, node)
        if has_failed(pages):
            return
        j = items_below(mem, base, key)
        there = j < np.int64(mem[base + pb.ITEMS]) and key_at(mem, item_at(base, j)) == key
    # Enter the slot
    put_slot(mem, base, j, there, key, slot)
    mem[e + pb.TREE_SIZE] += 1
    # Mark the key as one of the list
    base = edit(pages, leaf)
    if has_failed(pages):
        return
    pointer = base + pb.LEAF_POINTERS + pb.LISTS * place + which
    mem[pointer] = np.int64(mem[pointer]) | pb.IN_LIST


@device
def put_slot(mem, base, j, there, key, slot):
    """Enters a slot at the end of the SidSet of item ``j`` of a node, or makes the item."""
    items, size = np.int64(mem[base + pb.ITEMS]), np.int64(mem[base + pb.SIDS])
    # Insert the item
    if not there:
        begin = begin_of(mem, base, j)
        for i in range(item_at(base, items - 1), item_at(base, j - 1)):  # nodes have their items at the end
            mem[i - pb.ITEM] = mem[i]
        put_key(mem, item_at(base, j), key)
        mem[item_at(base, j) + 2] = begin
        items += 1
        mem[base + pb.ITEMS] = items
    # Insert the slot
    end = np.int64(mem[item_at(base, j) + 2])
    for i in range(size, end, -1):
        mem[base + pb.HEAD + i] = mem[base + pb.HEAD + i - 1]
    mem[base + pb.HEAD + end] = slot
    mem[base + pb.SIDS] = size + 1
    for i in range(j, items):
        mem[item_at(base, i) + 2] += 1


@device
def delete_large(pages, e, which, key, slot, path):
    """Removes a slot from the SidSet of a key in a list.

    e : place of the tree's entry, on a page that is being changed
    """
    mem, root = pages.mem, np.int64(pages.mem[e + pb.TREE_ROOT])
    # Find the item of the key
    depth = descend(pages, root, key, path)
    leaf = path[depth, 0]
    base = locate_page(pages, leaf)
    if has_failed(pages):
        return
    place = item_from(mem, base, key)
    if place == mem[base + pb.ITEMS] or key_at(mem, base + pb.HEAD + 2 * place) != key:
        pages.state[WRONG] = 1
        return
    # Remove the slot from its node
    last = np.int64(mem[base + pb.LEAF_POINTERS + pb.LISTS * place + which]) & pb.PAGE_MASK
    if last == 0:
        last = np.int64(mem[e + pb.HEADS + which])
    node, j, i = find_slot(pages, last, key, slot)
    if i < 0 and not has_failed(pages):
        pages.state[WRONG] = 1
    n = edit(pages, node)
    if has_failed(pages):
        return
    take_slot(mem, n, j, i)
    mem[e + pb.TREE_SIZE] -= 1
    # Remove the key from the node if its SidSet is empty there
    still = begin_of(mem, n, j) < np.int64(mem[item_at(n, j) + 2])
    if not still:
        still = remove_key(pages, e, root, which, node, j, key, leaf, place, path) or node != last
    if has_failed(pages):
        return
    # Merge the node if it has become small
    if mem[n + pb.ITEMS] > 0 and words_used(mem, n) < pb.LIST_ROOM // 4:
        merge_lists(pages, root, which, node, path)
    # Unmark the key, and remove its item if no list has the key
    if still or has_failed(pages):
        return
    depth = descend(pages, root, key, path)
    base = edit(pages, leaf)
    if has_failed(pages):
        return
    pointer = base + pb.LEAF_POINTERS + pb.LISTS * place
    mem[pointer + which] = np.int64(mem[pointer + which]) & pb.PAGE_MASK
    for i in range(pb.LISTS):
        if mem[pointer + i] & pb.IN_LIST:
            return
    remove_item(pages, e, path, depth, place)


@device
def drain(pages, e, block, room, path):
    """Moves all entries of a tree to a block with room for them, and frees the pages of the tree.

    e : place of the tree's entry, on a page that is being changed
    """
    mem, n = pages.mem, np.int64(0)
    # Copy the entries of each list, and free its nodes
    for which in range(pb.LISTS):
        node = np.int64(mem[e + pb.HEADS + which])
        mem[e + pb.HEADS + which] = 0
        while node != 0:
            base = locate_page(pages, node)
            if has_failed(pages):
                return
            add_count(mem, block, which, np.int64(mem[base + pb.SIDS]))
            for j in range(np.int64(mem[base + pb.ITEMS])):
                key = key_at(mem, item_at(base, j))
                for i in range(begin_of(mem, base, j), np.int64(mem[item_at(base, j) + 2])):
                    put_entry(mem, block, room, n, key, mem[base + pb.HEAD + i])
                    n += 1
            behind = np.int64(mem[base + pb.NEXT])
            free_page(pages, node)
            node = behind
    # Free the inner pages and the leaves
    depth = np.int64(0)
    path[0, 0], path[0, 1] = mem[e + pb.TREE_ROOT], 0
    while depth >= 0:  # a page is freed after its children
        base = locate_page(pages, path[depth, 0])
        if has_failed(pages):
            return
        if mem[base + pb.KIND] == pb.INNER and path[depth, 1] <= np.int64(mem[base + pb.ITEMS]):
            child = np.int64(mem[base + pb.HEAD + path[depth, 1]])
            path[depth, 1] += 1
            depth += 1
            path[depth, 0], path[depth, 1] = child, 0
        else:
            free_page(pages, path[depth, 0])
            depth -= 1
