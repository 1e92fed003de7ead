"""The arrays of PS-Trees.

The ends of predicates cut the keys of an attribute into *spaces*, so a predicate is a run of
spaces. A *cut* is the lowest key of a space. A radix tree has the cuts by the digits of their keys,
4 bits each, the highest first. Its *inner* nodes have 16 children each, and the children of the
lowest nodes are cuts. Keys are unsigned, of up to 64 bits: codes, labels, or ``layout`` keys with
their sign flipped.

A cut has two links of the PS-Tree paper: to the space below it (l), and to the space that begins
with it (e). Keys are whole numbers, so a predicate that ends at 5 is cut before 6. The space above
a value (g) is always the value's own space, or begins at another cut.

An attribute also has room for 16 *cells* of equal width. They lie between the lowest and the
highest cut that was possible when they were placed. The first and the last cell also take the keys
outside. A predicate that covers a great many spaces gets cells instead of spaces.

New rows of the tables come from lists of free rows first.

The paper cuts at each end of a predicate. So there is an empty space between predicates that end at
5 and predicates that begin at 6. Here both share a cut. A cut without predicates is removed. The
spaces on both sides then have the same predicates, lists and signatures, so nothing has to be
compared to merge them.

Cells divide the range of cuts into parts of equal width. The digits of labels would not make useful
cells: labels of whole numbers are neighbours, so they all begin with the same digit. If a predicate
covers only a part of a cell, it is verified.
"""

from typing import Annotated, NamedTuple

from colmatch.kernels.layout import I64, U8, U32, U64

NONE = 2**32 - 1
DIGIT_BITS, FANOUT = 4, 16

# A row of ``tree``, for one attribute.
ROOT = 0  # inner node, NONE without cuts
FIRST, LAST = 1, 2  # the root's own links: the lowest space (its g) and the highest (its l)
CELLS = 3  # row of the first of 16 cells; NONE without
USES, CELL_USES = 4, 5  # predicates with spaces, and predicates with cells
# The lowest code, or label, of the first cell; and the width of a cell, as a power of two.
BASE, SHIFT = 6, 7
TREE_WORDS = 8

# A row of ``inner``: 16 children, NONE for missing ones, and bits of the present ones. A free row
# begins with the next free one.
CHILDREN = FANOUT
INNER_WORDS = FANOUT + 1

# A row of ``cut``. A free row begins with the next free one.
LESS, EQUAL = 0, 1  # the space below, the space that begins here
ENDS = 2  # predicates that begin here, or end before
CUT_WORDS = 3

# A row of ``space``. A free row begins with the next free one.
NEXT = 0  # the space above, NONE for the highest
PREDS = 1  # predicates that cover it
START = 2  # the cut that it begins at, NONE for the lowest, and for cells
LIST, COUNT, SIZE = 3, 4, 5  # of conjunctions: first entry, how many, class of the block (``lists.py``)
# Bits of the attributes that it is paired with, in PSTHash.
PARTNERS_LOW, PARTNERS_HIGH = 6, 7
SPACE_WORDS = 8

# A row of a search for several keys: the space of the key in this place. Then, for a key that is
# still searched, its inner node or cut, its way from there (``search.py``), and its place.
FOUND, NODE, WAY, WHOSE = range(4)
WALK_WORDS = 4

# A space of no attribute: its list has the conjunctions without access predicate.
ALWAYS = 0
RESERVED = 1

# ``state``: number of rows used, first free row (NONE: none)
INNERS, FREE_INNER, CUTS, FREE_CUT, SPACES, FREE_SPACE = range(6)
FREE_CELLS = 6  # first of 16 free spaces
ENTRIES = 7  # of all lists
MERGED = 8  # number of merges
SEVERAL = 10  # 1 when a pair may be found more than once
LOWEST = 11  # the lowest possible key
OWN = 12  # and up to FREE_BLOCK: for the kind itself
FREE_BLOCK = 32  # and the next 32: first free block of each class
STATE_WORDS = 64


class PSTree(NamedTuple):
    """Trees of A attributes: M inner nodes, K cuts, S spaces.

    Arrays may be longer than their used part.
    """

    tree: Annotated[U32, TREE_WORDS]  # (A, 8)
    top: U8  # (A) bits below the highest digit of a key
    highest: U64  # (A) the highest possible key
    inner: Annotated[U32, INNER_WORDS]  # (M, 17)
    cut: Annotated[U32, CUT_WORDS]  # (K, 3)
    key: U64  # (K) of the cuts
    space: Annotated[U32, SPACE_WORDS]  # (S, 8)
    state: I64  # (64)
