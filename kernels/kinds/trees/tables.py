"""Rows of the tables, and the hash table of directories: allocation, release and look-up."""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.bits import mix
from colmatch.kernels.geometry import attribute_bit, attributes_of, predicate_on, range_of
from colmatch.kernels.kinds.trees import arrays as bt
from colmatch.kernels.layout import CODE_MAX


@device
def room_of(size):
    """Returns the number of entries in a block of a class."""
    return np.int64(1) << (np.int64(size) + bt.SMALLEST)


@device
def class_for(count):
    """Returns the class of the smallest block for ``count`` entries."""
    size = 0
    while room_of(size) < count:
        size += 1
    return size


@device
def new_node(tree, part, up, attr, level):
    """Makes a bucket with no entries, no halves and no directory. There must be room."""
    # Take the first free row, or the next unused row
    n = tree.state[bt.FREE_NODE]
    if n != bt.NONE:
        tree.state[bt.FREE_NODE] = tree.above[n, bt.NEXT_FREE]
    else:
        n = tree.state[bt.NODES]
        tree.state[bt.NODES] += 1
    # Clear the row
    for i in range(bt.NODE_WORDS):
        tree.node[n, i] = 0
    for i in range(bt.ABOVE_WORDS):
        tree.above[n, i] = bt.NONE
    # Give the bucket its ranges, except where buckets are halves of a domain
    if part != bt.NONE and not tree.plan[bt.RIGID]:
        tree.above[n, bt.BOX] = new_box(tree, level)
    # Fill the row
    tree.node[n, bt.ATTR] = attr
    tree.node[n, bt.LEFT] = bt.NONE
    tree.node[n, bt.RIGHT] = bt.NONE
    tree.node[n, bt.LEAF] = bt.NONE
    tree.node[n, bt.FIRST] = bt.NONE
    tree.above[n, bt.PART] = part
    tree.above[n, bt.UP] = up
    tree.above[n, bt.CAPACITY] = tree.plan[bt.LEAF_CAPACITY]
    tree.above[n, bt.BELOW] = 0
    tree.above[n, bt.LEVEL] = level
    return n


@device
def free_node(tree, n):
    """Frees a bucket, and the block of its leaf."""
    free_block(tree, np.int64(tree.node[n, bt.LEAF]), np.int64(tree.above[n, bt.SIZE]))
    free_box(tree, np.int64(tree.above[n, bt.BOX]), np.int64(tree.above[n, bt.LEVEL]))
    tree.above[n, bt.NEXT_FREE] = tree.state[bt.FREE_NODE]
    tree.above[n, bt.BELOW] = bt.NONE  # marks a free row
    tree.node[n, bt.COUNT] = 0
    tree.state[bt.FREE_NODE] = n


@device
def new_box(tree, level):
    """Makes empty ranges for a bucket: of its attribute, then of the parts above."""
    at = tree.state[bt.FREE_BOX + level]
    if at != bt.NONE:
        tree.state[bt.FREE_BOX + level] = tree.box[at, 0]
    else:
        at = tree.state[bt.BOXES]
        tree.state[bt.BOXES] += level
    for i in range(at, at + level):
        tree.box[i, bt.LOW] = tree.box[i, bt.ALL_LOW] = bt.NONE
        tree.box[i, bt.HIGH] = tree.box[i, bt.ALL_HIGH] = 0
    return at


@device
def free_box(tree, at, level):
    if at != bt.NONE:
        tree.box[at, 0] = tree.state[bt.FREE_BOX + level]
        tree.state[bt.FREE_BOX + level] = at


@device
def new_block(tree, size):
    at = tree.state[bt.FREE_BLOCK + size]
    if at != bt.NONE:
        tree.state[bt.FREE_BLOCK + size] = tree.entry[at]
        return at
    at = tree.state[bt.ENTRIES]
    tree.state[bt.ENTRIES] += room_of(size)
    return at


@device
def free_block(tree, at, size):
    if size != bt.NONE:
        tree.entry[at] = tree.state[bt.FREE_BLOCK + size]
        tree.state[bt.FREE_BLOCK + size] = at


@device
def make_room(tree, n, count):
    """Gives a leaf a block with room for ``count`` entries, and moves its entries there."""
    size = np.int64(tree.above[n, bt.SIZE])
    if size != bt.NONE and room_of(size) >= count:
        return
    larger = class_for(count)
    at, old = new_block(tree, larger), np.int64(tree.node[n, bt.LEAF])
    for i in range(np.int64(tree.node[n, bt.COUNT])):
        tree.entry[at + i] = tree.entry[old + i]
        tree.need[at + i] = tree.need[old + i]
        tree.reach[at + i, 0], tree.reach[at + i, 1] = tree.reach[old + i, 0], tree.reach[old + i, 1]
    free_block(tree, old, size)
    tree.node[n, bt.LEAF] = at
    tree.above[n, bt.SIZE] = larger


@device
def push(tree, n, c, need, lo, hi):
    """Appends a conjunction to a leaf, with the attributes that it needs and its range."""
    count = np.int64(tree.node[n, bt.COUNT])
    make_room(tree, n, count + 1)
    at = np.int64(tree.node[n, bt.LEAF]) + count
    tree.entry[at] = c
    tree.need[at] = need
    tree.reach[at, 0], tree.reach[at, 1] = lo, hi
    tree.node[n, bt.COUNT] = count + 1
    tree.at[c] = n


@device
def keep(tree, at, to):
    """Moves an entry to an earlier place of its leaf."""
    tree.entry[to] = tree.entry[at]
    tree.need[to] = tree.need[at]
    tree.reach[to, 0], tree.reach[to, 1] = tree.reach[at, 0], tree.reach[at, 1]


@device
def put(tree, preds, n, c):
    """Puts a conjunction into a leaf."""
    lo, hi = np.int64(0), np.int64(CODE_MAX)
    if n > bt.ALWAYS:
        lo, hi = range_of(preds, predicate_on(preds, c, np.int64(tree.node[n, bt.ATTR])))
    push(tree, n, c, attributes_of(preds, c), lo, hi)


@device
def pull(tree, n, c):
    """Removes a conjunction from a leaf. The leaf's last entry takes its place."""
    at = np.int64(tree.node[n, bt.LEAF])
    last = at + np.int64(tree.node[n, bt.COUNT]) - 1
    while tree.entry[at] != c:
        at += 1
    keep(tree, last, at)
    tree.node[n, bt.COUNT] = last - np.int64(tree.node[n, bt.LEAF])
    tree.at[c] = bt.NONE


@device
def place_in_slots(slot, n, a):
    return mix(n, a) & (len(slot) - 1)


@device
def find_part(slot, part, n, a):
    """Returns the part of a bucket's directory for an attribute, or -1."""
    h = place_in_slots(slot, n, a)
    while slot[h] != 0:
        candidate = np.int64(slot[h]) - 1
        if part[candidate, bt.OWNER] == n and part[candidate, bt.PART_ATTR] == a:
            return candidate
        h = (h + 1) & (len(slot) - 1)
    return np.int64(-1)


@device
def note_part(tree, part):
    """Enters a part into the hash table, which must have room."""
    h = place_in_slots(tree.slot, np.int64(tree.part[part, bt.OWNER]), np.int64(tree.part[part, bt.PART_ATTR]))
    while tree.slot[h] != 0:
        h = (h + 1) & (len(tree.slot) - 1)
    tree.slot[h] = part + 1
    tree.state[bt.SLOTS] += 1


@device
def forget_part(tree, part):
    """Removes a part from the hash table, and moves later parts of its run up."""
    # Find the part's slot
    mask = len(tree.slot) - 1
    h = place_in_slots(tree.slot, np.int64(tree.part[part, bt.OWNER]), np.int64(tree.part[part, bt.PART_ATTR]))
    while tree.slot[h] != part + 1:
        h = (h + 1) & mask
    # Fill the hole from later slots of the run, as far as their parts' hash values allow
    hole = h
    while True:
        h = (h + 1) & mask
        if tree.slot[h] == 0:
            break
        other = np.int64(tree.slot[h]) - 1
        home = place_in_slots(tree.slot, np.int64(tree.part[other, bt.OWNER]), np.int64(tree.part[other, bt.PART_ATTR]))
        if ((h - home) & mask) >= ((h - hole) & mask):
            tree.slot[hole] = tree.slot[h]
            hole = h
    # Free the last hole
    tree.slot[hole] = 0
    tree.state[bt.SLOTS] -= 1


@device
def new_part(tree, owner, a):
    """Makes a part in a bucket's directory, with a topmost bucket that has no bounds yet."""
    # Take the first free row, or the next unused row
    part = tree.state[bt.FREE_PART]
    if part != bt.NONE:
        tree.state[bt.FREE_PART] = tree.part[part, bt.NEXT]
    else:
        part = tree.state[bt.N_PARTS]
        tree.state[bt.N_PARTS] += 1
    for i in range(bt.PART_WORDS):
        tree.part[part, i] = 0
    # Put the part at the head of its owner's directory
    next = np.int64(tree.node[owner, bt.FIRST])
    tree.part[part, bt.PART_ATTR] = a
    tree.part[part, bt.OWNER] = owner
    tree.part[part, bt.NEXT] = next
    tree.part[part, bt.BEFORE] = bt.NONE
    if next != bt.NONE:
        tree.part[next, bt.BEFORE] = part
    tree.node[owner, bt.FIRST] = part
    tree.node[owner, bt.PARTS] += 1
    # Make the topmost bucket, and enter the part into the hash table and the directory's bits
    tree.part[part, bt.TOP] = new_node(tree, part, bt.NONE, a, np.int64(tree.above[owner, bt.LEVEL]) + 1)
    note_part(tree, part)
    _mask_directory(tree, owner, directory(tree.node, owner) | attribute_bit(a))
    return part


@device
def free_part(tree, part):
    """Removes a part from its directory and frees it, but not the buckets below it."""
    # Take the part out of the list
    owner, next, before = (
        np.int64(tree.part[part, bt.OWNER]),
        np.int64(tree.part[part, bt.NEXT]),
        np.int64(tree.part[part, bt.BEFORE]),
    )
    if before != bt.NONE:
        tree.part[before, bt.NEXT] = next
    else:
        tree.node[owner, bt.FIRST] = next
    if next != bt.NONE:
        tree.part[next, bt.BEFORE] = before
    tree.node[owner, bt.PARTS] -= 1
    # Set the bits of the remaining attributes
    if tree.node[owner, bt.PARTS] < 64:  # in a longer one, bits of removed parts do no harm
        bits = np.uint64(0)
        other = np.int64(tree.node[owner, bt.FIRST])
        while other != bt.NONE:
            bits |= attribute_bit(tree.part[other, bt.PART_ATTR])
            other = np.int64(tree.part[other, bt.NEXT])
        _mask_directory(tree, owner, bits)
    drop_part(tree, part)


@device
def drop_part(tree, part):
    """Removes a part from the hash table and frees it, without changing its directory."""
    forget_part(tree, part)
    tree.part[part, bt.OWNER] = bt.NONE  # marks a free row
    tree.part[part, bt.PART_COUNT] = 0
    tree.part[part, bt.NEXT] = tree.state[bt.FREE_PART]
    tree.state[bt.FREE_PART] = part


@device
def directory(node, n):
    """Returns the bits of the attributes in a bucket's directory."""
    return np.uint64(node[n, bt.MASK_LOW]) | np.uint64(node[n, bt.MASK_HIGH]) << np.uint64(32)


@device
def _mask_directory(tree, n, bits):
    tree.node[n, bt.MASK_LOW] = bits & np.uint64(bt.NONE)
    tree.node[n, bt.MASK_HIGH] = bits >> np.uint64(32)
