"""PB+tree: inserts and deletes of items in leaves, with splits and merges up to the root."""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.kinds.pbtree import arrays as pb
from colmatch.kernels.kinds.pbtree.editing import (
    WRONG,
    edit,
    free_page,
    has_failed,
    link_behind,
    locate_page,
    take_page,
    unlink,
)
from colmatch.kernels.kinds.pbtree.pages import child_of, key_at, last_item, put_key

DEPTH_MOST = 12  # most levels of a tree: each level below the root has at least two pages, or is merged away


@device
def descend(pages, root, key, path):
    """Goes down to the leaf of a key.

    path (DEPTH_MOST, 2) : written, the pages from the root on, and the child taken in each

    Returns the number of inner pages above the leaf.
    """
    depth, page = np.int64(0), root
    while not has_failed(pages):
        path[depth, 0] = page
        base = locate_page(pages, page)
        if has_failed(pages) or pages.mem[base + pb.KIND] == pb.LEAF:
            break
        if pages.mem[base + pb.KIND] != pb.INNER or depth + 1 == DEPTH_MOST:
            pages.state[WRONG] = 1
            break
        path[depth, 1] = child_of(pages.mem, base, key)
        page = np.int64(pages.mem[base + pb.HEAD + path[depth, 1]])
        depth += 1
    return depth


@device
def item_from(mem, base, key):
    """Returns the first item of a leaf with a key not below ``key``."""
    place = last_item(mem, base, key)
    return place if place >= 0 and key_at(mem, base + pb.HEAD + 2 * place) == key else place + 1


@device
def move_items(mem, source, first, to, place, count):
    """Copies items of a leaf to another leaf, or to the front of the same leaf."""
    for i in range(2 * count):
        mem[to + pb.HEAD + 2 * place + i] = mem[source + pb.HEAD + 2 * first + i]
    for i in range(pb.LISTS * count):
        mem[to + pb.LEAF_POINTERS + pb.LISTS * place + i] = mem[source + pb.LEAF_POINTERS + pb.LISTS * first + i]


@device
def open_item(mem, base, place):
    """Moves the items of a leaf from ``place`` on one place back."""
    items = np.int64(mem[base + pb.ITEMS])
    for i in range(2 * items - 1, 2 * place - 1, -1):
        mem[base + pb.HEAD + 2 + i] = mem[base + pb.HEAD + i]
    for i in range(pb.LISTS * items - 1, pb.LISTS * place - 1, -1):
        mem[base + pb.LEAF_POINTERS + pb.LISTS + i] = mem[base + pb.LEAF_POINTERS + i]
    mem[base + pb.ITEMS] = items + 1


@device
def enter_item(pages, e, key, path, depth):
    """Finds the item of a key, or makes it with the pointers of the item before it.

    e : place of the tree's entry, on a page that is being changed

    Returns the leaf and the place.
    """
    # Return the item if it exists
    mem, leaf, carried = pages.mem, path[depth, 0], pages.carried
    base = locate_page(pages, leaf)
    place = last_item(mem, base, key)
    if place >= 0 and key_at(mem, base + pb.HEAD + 2 * place) == key:
        return leaf, place
    # Read the pointers of the item before it, maybe in the leaf before
    base = edit(pages, leaf)
    before, last = base, place
    if place < 0 and mem[base + pb.PREV] != 0:
        before = locate_page(pages, np.int64(mem[base + pb.PREV]))
        last = np.int64(mem[before + pb.ITEMS]) - 1
    if has_failed(pages):
        return leaf, place
    place += 1
    pointers = before + pb.LEAF_POINTERS + pb.LISTS * last
    for which in range(pb.LISTS):
        carried[which] = np.int64(mem[pointers + which]) & pb.PAGE_MASK if last >= 0 else 0
    # Split a full leaf, and choose the half
    if mem[base + pb.ITEMS] == pb.LEAF_MOST:
        right = split_leaf(pages, e, path, depth)
        if has_failed(pages):
            return leaf, place
        half = np.int64(mem[base + pb.ITEMS])
        if place > half:
            leaf, place = right, place - half
            base = edit(pages, leaf)
    # Write the item
    open_item(mem, base, place)
    put_key(mem, base + pb.HEAD + 2 * place, key)
    pointers = base + pb.LEAF_POINTERS + pb.LISTS * place
    for which in range(pb.LISTS):
        mem[pointers + which] = carried[which]
    return leaf, place


@device
def split_leaf(pages, e, path, depth):
    """Splits a leaf in halves. Returns the new leaf, on the right."""
    mem, leaf = pages.mem, path[depth, 0]
    base, right = edit(pages, leaf), take_page(pages, pb.LEAF)
    if has_failed(pages):
        return right
    other = edit(pages, right)
    link_behind(pages, leaf, right)
    if has_failed(pages):
        return right
    half = np.int64(mem[base + pb.ITEMS]) // 2
    mem[other + pb.ITEMS] = np.int64(mem[base + pb.ITEMS]) - half
    move_items(mem, base, half, other, np.int64(0), np.int64(mem[other + pb.ITEMS]))
    mem[base + pb.ITEMS] = half
    enter_child(pages, e, path, depth, key_at(mem, other + pb.HEAD), right)
    return right


@device
def enter_child(pages, e, path, depth, key, page):
    """Enters a page behind the page at ``depth`` of a path. The new page's keys begin with
    ``key``.
    """
    mem = pages.mem
    while not has_failed(pages):
        # Make a new root above the old one
        if depth == 0:
            root = take_page(pages, pb.INNER)
            if has_failed(pages):
                return
            base = edit(pages, root)
            mem[base + pb.HEAD], mem[base + pb.HEAD + 1], mem[base + pb.ITEMS] = path[0, 0], page, 1
            put_key(mem, base + pb.INNER_KEYS, key)
            mem[e + pb.TREE_ROOT] = root
            return
        # Enter the page in the page above if it has room
        depth -= 1
        base, place = edit(pages, path[depth, 0]), path[depth, 1]
        if has_failed(pages):
            return
        if mem[base + pb.ITEMS] < pb.INNER_MOST:
            open_child(mem, base, place, key, page)
            return
        # Split the page above, and enter its right half one level higher
        right = take_page(pages, pb.INNER)
        if has_failed(pages):
            return
        other, half = edit(pages, right), pb.INNER_MOST // 2
        up = key_at(mem, base + pb.INNER_KEYS + 2 * half)
        moved = pb.INNER_MOST - half - 1
        move_children(mem, base, half + 1, other, np.int64(0), moved)
        mem[other + pb.ITEMS], mem[base + pb.ITEMS] = moved, half
        if place > half:
            open_child(mem, other, place - half - 1, key, page)
        else:
            open_child(mem, base, place, key, page)
        key, page = up, right


@device
def move_children(mem, source, first, to, place, keys):
    """Copies ``keys`` keys of an inner page, and one child more, to another or to the front."""
    for i in range(keys + 1):
        mem[to + pb.HEAD + place + i] = mem[source + pb.HEAD + first + i]
    for i in range(2 * keys):
        mem[to + pb.INNER_KEYS + 2 * place + i] = mem[source + pb.INNER_KEYS + 2 * first + i]


@device
def open_child(mem, base, place, key, page):
    """Enters a key, and the child on its right, behind child ``place``."""
    items = np.int64(mem[base + pb.ITEMS])
    for i in range(items, place, -1):
        mem[base + pb.HEAD + i + 1] = mem[base + pb.HEAD + i]
    for i in range(2 * items - 1, 2 * place - 1, -1):
        mem[base + pb.INNER_KEYS + 2 + i] = mem[base + pb.INNER_KEYS + i]
    mem[base + pb.HEAD + place + 1] = page
    put_key(mem, base + pb.INNER_KEYS + 2 * place, key)
    mem[base + pb.ITEMS] = items + 1


@device
def remove_item(pages, e, path, depth, place):
    """Removes an item from a leaf, and merges the leaf if it has few items left."""
    mem, leaf = pages.mem, path[depth, 0]
    base = edit(pages, leaf)
    if has_failed(pages):
        return
    items = np.int64(mem[base + pb.ITEMS]) - 1
    move_items(mem, base, place + 1, base, place, items - place)
    mem[base + pb.ITEMS] = items
    if items == 0:
        unlink(pages, leaf)
        remove_child(pages, e, path, depth)
    elif items < pb.LEAF_MOST // 4 and depth > 0:
        merge_leaves(pages, e, path, depth)


@device
def find_neighbours(pages, path, depth, most):
    """Finds a neighbour of the page at ``depth`` of a path below the same page, if both have at
    most ``most`` items together.

    The page behind is tried first, then the page before.

    Returns the left page's place among the children, both pages, and their numbers of items. The
    place is -1 if there is no such neighbour.
    """
    mem = pages.mem
    parent, none = locate_page(pages, path[depth - 1, 0]), np.int64(0)
    for place in range(path[depth - 1, 1], path[depth - 1, 1] - 2, -1):
        if place < 0 or place >= np.int64(mem[parent + pb.ITEMS]) or has_failed(pages):
            continue
        left, right = np.int64(mem[parent + pb.HEAD + place]), np.int64(mem[parent + pb.HEAD + place + 1])
        one, two = locate_page(pages, left), locate_page(pages, right)
        left_items, right_items = np.int64(mem[one + pb.ITEMS]), np.int64(mem[two + pb.ITEMS])
        if left_items + right_items <= most and not has_failed(pages):
            return np.int64(place), left, right, left_items, right_items
    return np.int64(-1), none, none, none, none


@device
def merge_leaves(pages, e, path, depth):
    """Merges a leaf with a neighbour below the same page, if there is one that fits."""
    mem = pages.mem
    place, left, right, left_items, right_items = find_neighbours(pages, path, depth, pb.LEAF_MOST * 3 // 4)
    if place < 0:
        return
    one, two = edit(pages, left), locate_page(pages, right)
    if has_failed(pages):
        return
    move_items(mem, two, np.int64(0), one, left_items, right_items)
    mem[one + pb.ITEMS] = left_items + right_items
    unlink(pages, right)
    path[depth, 0], path[depth - 1, 1] = right, place + 1
    remove_child(pages, e, path, depth)


@device
def remove_child(pages, e, path, depth):
    """Removes the page at ``depth`` of a path from the page above it, and frees it.

    There is always a page above: a tree with few entries left becomes a block before.
    """
    mem = pages.mem
    while not has_failed(pages):
        # Free the page
        free_page(pages, path[depth, 0])
        depth -= 1
        base, place = edit(pages, path[depth, 0]), path[depth, 1]
        if has_failed(pages):
            return
        # Remove the page above too if it has no other child
        items = np.int64(mem[base + pb.ITEMS])
        if items == 0:
            continue
        # Remove the child and a key from the page above
        for i in range(place, items):
            mem[base + pb.HEAD + i] = mem[base + pb.HEAD + i + 1]
        for i in range(2 * max(place - 1, 0), 2 * items - 2):
            mem[base + pb.INNER_KEYS + i] = mem[base + pb.INNER_KEYS + i + 2]
        mem[base + pb.ITEMS] = items - 1
        # Merge a page that has become small
        if depth > 0 and items - 1 < pb.INNER_MOST // 4:
            if not merge_inner(pages, path, depth):
                return
            continue
        # Replace a root with a single child by the child
        while depth == 0 and mem[base + pb.ITEMS] == 0 and mem[base + pb.KIND] == pb.INNER:
            root = path[0, 0]
            path[0, 0] = np.int64(mem[base + pb.HEAD])
            mem[e + pb.TREE_ROOT] = path[0, 0]
            free_page(pages, root)
            base = locate_page(pages, path[0, 0])
            if has_failed(pages):
                return
        return


@device
def merge_inner(pages, path, depth):
    """Merges an inner page with a neighbour below the same page, if there is one that fits.

    Returns whether the page at ``depth`` of the path is now to be removed.
    """
    mem = pages.mem
    place, left, right, left_items, right_items = find_neighbours(pages, path, depth, pb.INNER_MOST * 3 // 4 - 1)
    if place < 0:
        return False
    one, two, parent = edit(pages, left), locate_page(pages, right), locate_page(pages, path[depth - 1, 0])
    if has_failed(pages):
        return False
    put_key(mem, one + pb.INNER_KEYS + 2 * left_items, key_at(mem, parent + pb.INNER_KEYS + 2 * place))
    move_children(mem, two, np.int64(0), one, left_items + 1, right_items)
    mem[one + pb.ITEMS] = left_items + right_items + 1
    path[depth, 0], path[depth - 1, 1] = right, place + 1
    return True
