"""PB+tree: the blocks of small trees, and their allocation.

At most one page of each size has free blocks. If a block on another page becomes free, a block of
the page with free ones moves there. So pages stay full whatever is deleted.
"""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.kinds.pbtree import arrays as pb
from colmatch.kernels.kinds.pbtree.blocks import block_words, blocks_of
from colmatch.kernels.kinds.pbtree.editing import edit, free_page, has_failed, locate_page, reach_table_page, take_page


@device
def entry_of(pages, top, tree):
    """Returns the page of a tree's entry, and the place of the entry."""
    page = reach_table_page(pages, top, tree // pb.TREES)
    return page, locate_page(pages, page) + pb.HEAD + pb.TREE_WORDS * (tree % pb.TREES)


@device
def set_spare(pages, top, size_class, page):
    """Records the page with free blocks of a size, 0 for none."""
    table, e = entry_of(pages, top, np.int64(pb.SPARE))
    edit(pages, table)
    if not has_failed(pages):
        pages.mem[e + size_class] = page


@device
def spare_of(pages, top, size_class):
    _, e = entry_of(pages, top, np.int64(pb.SPARE))
    return np.int64(0) if has_failed(pages) else np.int64(pages.mem[e + size_class])


@device
def find_block(mem, base, size_class, is_free):
    """Returns the place of a free block on a page, or of a block in use."""
    words = block_words(size_class)
    place, last = np.int64(pb.HEAD), pb.HEAD + words * (blocks_of(size_class) - 1)
    while place < last and (mem[base + place] == 0) != is_free:
        place += words
    return place


@device
def take_block(pages, top, tree, size_class):
    """Takes a free block for a tree. Returns its page, and its place on the page."""
    mem, page = pages.mem, spare_of(pages, top, size_class)
    is_new = page == 0
    if is_new and not has_failed(pages):
        page = take_page(pages, pb.BLOCKS)
    base = edit(pages, page)
    if has_failed(pages):
        return page, np.int64(pb.HEAD)
    mem[base + pb.SIZE_CLASS] = size_class
    place = find_block(mem, base, size_class, True)
    mem[base + place] = tree + 1
    mem[base + pb.ITEMS] += 1
    is_full = mem[base + pb.ITEMS] == blocks_of(size_class)
    if is_full != is_new:
        set_spare(pages, top, size_class, np.int64(0) if is_full else page)
    return page, place


@device
def lead_to(pages, top, tree, page, place):
    """Points the entry of a tree to a block."""
    table, e = entry_of(pages, top, tree)
    edit(pages, table)
    if not has_failed(pages):
        pages.mem[e + pb.TREE_ROOT], pages.mem[e + pb.TREE_SIZE] = page, pb.IN_BLOCK | place


@device
def give_block(pages, top, page, place):
    """Frees a block, or fills it with a block from the page that has free ones."""
    mem, base = pages.mem, edit(pages, page)
    if has_failed(pages):
        return
    # Fill the block from the page with free ones, and free a block there
    size_class = np.int64(mem[base + pb.SIZE_CLASS])
    words, spare = block_words(size_class), spare_of(pages, top, size_class)
    if spare != 0 and spare != page:
        other = edit(pages, spare)
        if has_failed(pages):
            return
        moved = find_block(mem, other, size_class, False)
        for i in range(words):
            mem[base + place + i] = mem[other + moved + i]
        lead_to(pages, top, np.int64(mem[base + place]) - 1, page, place)
        page, base, place = spare, other, moved
    # Clear the free block
    for i in range(words):
        mem[base + place + i] = 0
    mem[base + pb.ITEMS] -= 1
    # Free an empty page, or note the page with free blocks
    if mem[base + pb.ITEMS] == 0:
        free_page(pages, page)
        page = np.int64(0)
    if page != spare:
        set_spare(pages, top, size_class, page)
