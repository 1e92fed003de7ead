"""PB+tree: inserts and deletes of predicates, by which trees grow and shrink.

A tree begins as a block and moves to larger ones. If no block can hold it, it gets separate pages.
It becomes a block again when it has half as many entries as the largest block can hold.
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.kinds.pbtree import arrays as pb
from colmatch.kernels.kinds.pbtree.blocks import (
    class_for,
    copy_block,
    count_of,
    enter_in_block,
    remove_from_block,
    total_of,
)
from colmatch.kernels.kinds.pbtree.editing import (
    FREED,
    FRESH,
    REUSED,
    WRONG,
    PageCache,
    edit,
    end_operation,
    has_failed,
    locate_page,
    take_page,
)
from colmatch.kernels.kinds.pbtree.large import delete_large, drain, insert_large
from colmatch.kernels.kinds.pbtree.pages import key_at
from colmatch.kernels.kinds.pbtree.small import entry_of, give_block, lead_to, take_block
from colmatch.kernels.layout import I64, U8, U32, Table, Written


@device
def move(pages, top, tree, size_class, page, place):
    """Moves a small tree to a block of another size. Returns its page, and its place there."""
    mem = pages.mem
    to_page, to_place = take_block(pages, top, tree, size_class)
    base, to = locate_page(pages, page), locate_page(pages, to_page)
    if has_failed(pages):
        return to_page, to_place
    room = pb.ROOMS[np.int64(mem[base + pb.SIZE_CLASS])]
    copy_block(mem, base + place, room, to + to_place, pb.ROOMS[size_class])
    lead_to(pages, top, tree, to_page, to_place)
    give_block(pages, top, page, place)
    return to_page, to_place


@device
def plant(pages, top, tree, page, place, path):
    """Moves a small tree from its block to separate pages."""
    mem = pages.mem
    table, e = entry_of(pages, top, tree)
    edit(pages, table)
    # Make the first leaf
    root = take_page(pages, pb.LEAF)
    base = locate_page(pages, page)
    if has_failed(pages):
        return
    mem[e + pb.TREE_ROOT], mem[e + pb.TREE_SIZE] = root, 0
    # Insert the entries of the block, then free it
    block, room, i = base + place, pb.ROOMS[np.int64(mem[base + pb.SIZE_CLASS])], np.int64(0)
    for which in range(pb.LISTS):
        for _ in range(count_of(mem, block, which)):
            key = key_at(mem, block + pb.BLOCK_HEAD + room + 2 * i)
            insert_large(pages, e, which, key, mem[block + pb.BLOCK_HEAD + i], path)
            if has_failed(pages):
                return
            i += 1
    give_block(pages, top, page, place)


@device
def insert(pages, top, tree, which, key, slot, path):
    """Enters a slot into the SidSet of a key in a list."""
    mem = pages.mem
    table, e = entry_of(pages, top, tree)
    if has_failed(pages):
        return
    # Begin the tree in the smallest block
    if mem[e + pb.TREE_ROOT] == 0:
        page, place = take_block(pages, top, tree, np.int64(0))
        lead_to(pages, top, tree, page, place)
    if has_failed(pages):
        return
    # Enter the slot in its block, or in a larger one
    if mem[e + pb.TREE_SIZE] & pb.IN_BLOCK:
        page, place = np.int64(mem[e + pb.TREE_ROOT]), np.int64(mem[e + pb.TREE_SIZE]) ^ pb.IN_BLOCK
        base = edit(pages, page)
        if has_failed(pages):
            return
        size_class, total = np.int64(mem[base + pb.SIZE_CLASS]), total_of(mem, base + place)
        if total < pb.ROOMS[-1]:
            if total == pb.ROOMS[size_class]:
                page, place = move(pages, top, tree, size_class + 1, page, place)
            base = edit(pages, page)
            if not has_failed(pages):
                room = pb.ROOMS[np.int64(mem[base + pb.SIZE_CLASS])]
                enter_in_block(mem, base + place, room, which, key, slot)
            return
        # Move the tree to separate pages if no block can hold it
        plant(pages, top, tree, page, place, path)
    # Enter the slot in the pages of the tree
    edit(pages, table)
    if not has_failed(pages):
        insert_large(pages, e, which, key, slot, path)


@device
def delete(pages, top, tree, which, key, slot, path):
    """Removes a slot from the SidSet of a key in a list."""
    mem = pages.mem
    table, e = entry_of(pages, top, tree)
    if has_failed(pages):
        return
    # Remove the slot
    if mem[e + pb.TREE_SIZE] & pb.IN_BLOCK:
        delete_small(pages, top, tree, which, key, slot)
        return
    edit(pages, table)
    delete_large(pages, e, which, key, slot, path)
    if has_failed(pages) or mem[e + pb.TREE_SIZE] > pb.SHRUNK:
        return
    # Move the tree to a block if it has few entries left
    size_class = class_for(np.int64(mem[e + pb.TREE_SIZE]))
    page, place = take_block(pages, top, tree, size_class)
    base = locate_page(pages, page)
    if has_failed(pages):
        return
    drain(pages, e, base + place, pb.ROOMS[size_class], path)
    lead_to(pages, top, tree, page, place)


@device
def delete_small(pages, top, tree, which, key, slot):
    """Removes a slot from a block. The tree moves to a smaller block if few entries are left, and
    is removed if none are.
    """
    mem = pages.mem
    # Remove the slot from its block
    table, e = entry_of(pages, top, tree)
    page, place = np.int64(mem[e + pb.TREE_ROOT]), np.int64(mem[e + pb.TREE_SIZE]) ^ pb.IN_BLOCK
    base = edit(pages, page)
    if has_failed(pages):
        return
    size_class = np.int64(mem[base + pb.SIZE_CLASS])
    if not remove_from_block(mem, base + place, pb.ROOMS[size_class], which, key, slot):
        pages.state[WRONG] = 1
        return
    # Free the block, or move the tree to a smaller one
    total = total_of(mem, base + place)
    if total == 0:
        edit(pages, table)
        if has_failed(pages):
            return
        mem[e + pb.TREE_ROOT], mem[e + pb.TREE_SIZE] = 0, 0
        give_block(pages, top, page, place)
    elif size_class > 0 and total <= pb.ROOMS[size_class - 1] * 3 // 4:
        move(pages, top, tree, size_class - 1, page, place)


@kernel
def apply(
    pages: Written[PageCache],
    top: int,
    inserts: Written[U8],
    tree: Written[I64],
    key: Written[I64],
    slot: Written[U32],
    begin: int,
    path: Written[Table[I64]],
) -> int:
    """Carries out operations from ``begin`` on: each inserts a slot into a list, or deletes it
    there.

    Returns the first unfinished operation: ``pages.state`` has the reason.

    inserts (N) : 1 for an insert
    tree (N) : number of the tree times LISTS, plus number of the list
    """
    for i in range(begin, len(tree)):
        fresh, freed, reused = pages.state[FRESH], pages.state[FREED], pages.state[REUSED]
        number, which = tree[i] // pb.LISTS, tree[i] % pb.LISTS
        if inserts[i]:
            insert(pages, top, number, which, key[i], slot[i], path)
        else:
            delete(pages, top, number, which, key[i], slot[i], path)
        if not end_operation(pages, fresh, freed, reused):
            return i
    return len(tree)
