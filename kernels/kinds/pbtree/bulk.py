"""PB+tree: pages built bottom-up from sorted entries."""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.kinds.pbtree import arrays as pb
from colmatch.kernels.kinds.pbtree.blocks import add_count, block_words, blocks_of, class_for, put_entry
from colmatch.kernels.kinds.pbtree.pages import item_at, put_key
from colmatch.kernels.layout import I64, U32, Table, Written


@device
def begin_page(mem, n, kind):
    """Begins page ``n``, counted from the first of ``mem``. Returns the place of its first word."""
    base = n * pb.WORDS
    for i in range(pb.WORDS):
        mem[base + i] = 0
    mem[base + pb.KIND] = kind
    return base


@device
def fill_block(mem, n, base_page, tree, list_first, key, slot, entry):
    """Writes a small tree to a page of its size with a free block. Returns the next page."""
    lists = list_first[pb.LISTS * tree : pb.LISTS * (tree + 1) + 1]
    size_class = class_for(lists[pb.LISTS] - lists[0])
    # Take the page with free blocks of this size, or begin one
    page = np.int64(entry[pb.SPARE, size_class])
    if page == 0:
        page = base_page + n
        mem[begin_page(mem, n, pb.BLOCKS) + pb.SIZE_CLASS] = size_class
        n += 1
    # Take its next block
    base = (page - base_page) * pb.WORDS
    place = pb.HEAD + block_words(size_class) * np.int64(mem[base + pb.ITEMS])
    mem[base + pb.ITEMS] += 1
    entry[pb.SPARE, size_class] = 0 if mem[base + pb.ITEMS] == blocks_of(size_class) else page
    # Write the tree's entry and its block
    entry[tree, pb.TREE_ROOT], entry[tree, pb.TREE_SIZE] = page, pb.IN_BLOCK | place
    mem[base + place] = tree + 1
    for which in range(pb.LISTS):
        add_count(mem, base + place, which, lists[which + 1] - lists[which])
    for i in range(lists[0], lists[pb.LISTS]):
        put_entry(mem, base + place, pb.ROOMS[size_class], i - lists[0], key[i], slot[i])
    return n


@device
def fill_list(mem, n, base_page, key, slot, begin, end, fill, out_key, out_node):
    """Writes the nodes of a list from sorted entries.

    out_key, out_node : written, each key and the last node that begins at the key or below

    Returns the next page, and the number of keys.
    """
    keys, at = np.int64(0), begin
    base, before, items, sids, open_page = np.int64(0), np.int64(0), np.int64(0), np.int64(0), False
    while at < end:
        # Find the SidSet of the next key
        size = at
        while size < end and key[size] == key[at]:
            size += 1
        whole, first_part, entered = size - at, True, False
        while at < size:
            # Begin a node if this one is full
            room = fill - sids - pb.ITEM * items - pb.ITEM
            # a SidSet that fits into one node is not divided
            if not open_page or room < 1 or (room < size - at and items > 0 and whole + pb.ITEM <= fill):
                fresh = begin_page(mem, n, pb.LIST)
                if open_page:
                    mem[base + pb.NEXT] = base_page + n
                    mem[fresh + pb.PREV] = before
                base, before, items, sids, open_page = fresh, base_page + n, np.int64(0), np.int64(0), True
                n += 1
                mem[base + pb.CONTINUES] = 0 if first_part else 1
                room = fill - pb.ITEM
            # Write the SidSet, or the part that fits
            part = min(room, size - at)
            for i in range(part):
                mem[base + pb.HEAD + sids + i] = slot[at + i]
            sids += part
            put_key(mem, item_at(base, items), key[at])
            mem[item_at(base, items) + 2] = sids
            items += 1
            mem[base + pb.ITEMS], mem[base + pb.SIDS] = items, sids
            at += part
            first_part = False
            # Note the key and its last node
            if entered:
                out_node[keys - 1] = before
            else:
                out_key[keys], out_node[keys] = key[size - 1], before
                keys += 1
                entered = True
    return n, keys


@device
def fill_leaves(mem, n, base_page, count, at, heads, list_key, list_node, fill, level_key, level_page):
    """Writes the leaves of a tree from the keys of its lists. Returns the next page, and the number
    of leaves.

    count (LISTS) : number of keys of each list
    at (LISTS) : scratch
    heads (LISTS) : the first node of each list
    """
    leaves, base, items, before = np.int64(0), np.int64(0), np.int64(fill), np.int64(0)
    for which in range(pb.LISTS):
        at[which] = 0
    while True:
        # Find the lowest key that is left in any list
        best, has_key = np.int64(0), False
        for which in range(pb.LISTS):
            if at[which] < count[which] and (not has_key or list_key[which, at[which]] < best):
                best, has_key = list_key[which, at[which]], True
        if not has_key:
            return n, leaves
        # Begin a leaf if this one is full
        if items >= fill:
            fresh = begin_page(mem, n, pb.LEAF)
            if leaves > 0:
                mem[base + pb.NEXT] = base_page + n
                mem[fresh + pb.PREV] = before
            base, before, items = fresh, base_page + n, np.int64(0)
            level_key[leaves], level_page[leaves] = best, base_page + n
            leaves += 1
            n += 1
        # Write the item: the key, and a pointer into each list
        put_key(mem, base + pb.HEAD + 2 * items, best)
        for which in range(pb.LISTS):
            flag = np.int64(0)
            if at[which] < count[which] and list_key[which, at[which]] == best:
                at[which] += 1
                flag = np.int64(pb.IN_LIST)
            node = np.int64(0) if at[which] == 0 else list_node[which, at[which] - 1]
            mem[base + pb.LEAF_POINTERS + pb.LISTS * items + which] = (0 if node == heads[which] else node) | flag
        items += 1
        mem[base + pb.ITEMS] = items


@device
def fill_inner(mem, n, base_page, count, fill, level_key, level_page):
    """Writes one level of inner pages above ``count`` pages. Returns the next page, and the number
    of pages.
    """
    pages, at = np.int64(0), np.int64(0)
    while at < count:
        # Choose the number of children
        children = min(fill, count - at)
        if count - at - children == 1:  # no page gets a single child
            children -= 1
        # Write the page
        base = begin_page(mem, n, pb.INNER)
        mem[base + pb.ITEMS] = children - 1
        lowest = level_key[at]
        for i in range(children):
            mem[base + pb.HEAD + i] = level_page[at + i]
            if i > 0:
                put_key(mem, base + pb.INNER_KEYS + 2 * (i - 1), level_key[at + i])
        # Note it for the level above
        level_key[pages], level_page[pages] = lowest, base_page + n
        pages += 1
        n += 1
        at += children
    return n, pages


@kernel
def fill_trees(
    mem: Written[U32],
    base_page: int,
    list_first: I64,
    key: I64,
    slot: U32,
    fills: I64,
    keys: Written[tuple[Table[I64], Table[I64], I64, I64]],
    levels_of: Written[tuple[I64, I64]],
    entry: Written[Table[U32]],
) -> int:
    """Writes the trees of sorted entries. Returns the number of their pages.

    Parameters
    ----------
    mem : room for them
    base_page : number of the first page of ``mem``
    list_first (LISTS * trees + 1) : tree and list -> its entries
    key, slot : of the entries, sorted by key within each list
    fills : words of a list node, items of a leaf, children of an inner page that are taken
    keys : scratch, keys and nodes of each list (LISTS, entries of a list), and two of (LISTS)
    levels_of : scratch, keys and pages of a level (one for each leaf)
    entry (trees, TREE_WORDS) : written; zero before
    """
    list_key, list_node, count, at = keys
    level_key, level_page = levels_of
    n = np.int64(0)
    for tree in range(len(entry)):
        # Write a small tree to a block
        total = list_first[pb.LISTS * (tree + 1)] - list_first[pb.LISTS * tree]
        if total <= pb.ROOMS[-1]:
            if total > 0:
                n = fill_block(mem, n, base_page, tree, list_first, key, slot, entry)
            continue
        # Write the lists of a large tree
        for which in range(pb.LISTS):
            begin, end = list_first[pb.LISTS * tree + which], list_first[pb.LISTS * tree + which + 1]
            count[which] = 0
            if begin < end:
                entry[tree, pb.HEADS + which] = base_page + n
                n, count[which] = fill_list(
                    mem, n, base_page, key, slot, begin, end, fills[0], list_key[which], list_node[which]
                )
        # Write its leaves, and inner pages up to the root
        n, level = fill_leaves(
            mem, n, base_page, count, at, entry[tree, pb.HEADS :], list_key, list_node, fills[1], level_key, level_page
        )
        while level > 1:
            n, level = fill_inner(mem, n, base_page, level, fills[2], level_key, level_page)
        entry[tree, pb.TREE_ROOT], entry[tree, pb.TREE_SIZE] = level_page[0], total
    return n


@kernel
def fill_table(mem: Written[U32], base_page: int, entry: Table[U32], each: int) -> tuple[int, int]:
    """Writes a table of entries (E, W), ``each`` of them to a page. Returns the number of pages,
    and the top page.
    """
    words = entry.shape[1]
    n = np.int64(0)
    pages = (len(entry) + each - 1) // each
    # Write the pages of entries
    for at in range(pages):
        base = begin_page(mem, n, pb.TABLE)
        n += 1
        for i in range(min(each, len(entry) - at * each)):
            for w in range(words):
                mem[base + pb.HEAD + words * i + w] = entry[at * each + i, w]
        mem[base + pb.ITEMS] = 0
    # Write the middle pages
    middles = (pages + pb.CHILDREN - 1) // pb.CHILDREN
    for at in range(middles):
        base = begin_page(mem, n, pb.TABLE)
        n += 1
        mem[base + pb.ITEMS] = 1
        for i in range(min(pb.CHILDREN, pages - at * pb.CHILDREN)):
            mem[base + pb.HEAD + i] = base_page + at * pb.CHILDREN + i
    # Write the top page
    base = begin_page(mem, n, pb.TABLE)
    mem[base + pb.ITEMS] = 2
    for at in range(middles):
        mem[base + pb.HEAD + at] = base_page + pages + at
    return n + 1, base_page + n


@kernel
def place_records(length: Written[I64], page: Written[I64], word: Written[I64], first_page: int) -> int:
    """Writes the page and the word of each record, one record after the other. Returns the number
    of pages.

    Records that no page can hold have page 0.
    """
    n, used = np.int64(0), np.int64(pb.WORDS)
    for i in range(len(length)):
        if length[i] > pb.CHILDREN:
            page[i], word[i] = 0, 0
            continue
        if used + length[i] > pb.WORDS:
            n += 1
            used = np.int64(pb.HEAD)
        page[i], word[i] = first_page + n - 1, used
        used += length[i]
    return n
