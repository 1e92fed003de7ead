"""The arrays of PS-Trees.

The ends of predicates cut the keys of an attribute into *spaces*, so a predicate is a run of them.
A *cut* is the lowest key of a space. Cuts hang in a radix tree by the digits of their keys, 4 bits
each, the highest first: *inner* nodes have 16 children each, the lowest ones have cuts. Keys are
unsigned, of up to 64 bits: codes, labels, or ``layout`` keys with their sign flipped.

A cut has two links of the PS-Tree paper: to the space below it (l), and to the one that begins with
it (e). Keys are whole numbers, so a predicate that ends at 5 is cut before 6. The space above a
value (g) is always that of the value itself, or begins at a cut of its own.

An attribute also has room for 16 *cells* of like width. They lie between the lowest and the highest
cut that was possible when they were placed; the first and the last also have what lies outside. A
predicate that covers a great many spaces is given cells instead of spaces.

Rows of the tables are taken from lists of free ones first.

The paper has a cut at each end of a predicate, with an empty space between what ends at 5 and what
begins at 6. Here both share a cut. A cut without predicates goes: the spaces on both sides then
have the same predicates, lists and signatures, so nothing has to be compared to merge them.

Cells divide the range of cuts into parts of like width. Cells by the digits of labels would not do:
labels of whole numbers are neighbours, so all of them begin with the same digit. A predicate is
verified where it covers a part of a cell.
"""

from typing import Annotated, NamedTuple

from colmatch.kernels.layout import I64, U8, U32, U64

NONE = 2**32 - 1
DIGIT_BITS, FANOUT = 4, 16

# A row of ``tree``: of an attribute.
ROOT = 0  # inner node, NONE without cuts
FIRST, LAST = 1, 2  # the root's own links: the lowest space (its g) and the highest (its l)
CELLS = 3  # row of the first of 16 cells; NONE without
USES, CELL_USES = 4, 5  # predicates that have spaces, and such as have cells
# The lowest code, or label, of the first cell; and the width of a cell, as a power of two.
BASE, SHIFT = 6, 7
TREE_WORDS = 8

# A row of ``inner``: 16 children, NONE where there is none, and bits of those that there are. A
# free row has the next free one in front.
CHILDREN = FANOUT
INNER_WORDS = FANOUT + 1

# A row of ``cut``. A free one has the next free one in front.
LESS, EQUAL = 0, 1  # the space below, the space that begins here
ENDS = 2  # predicates that begin here, or end before
CUT_WORDS = 3

# A row of ``space``. A free one has the next free one in front.
NEXT = 0  # the space above, NONE for the highest
PREDS = 1  # predicates that cover it
START = 2  # the cut that it begins at, NONE for the lowest, and for cells
LIST, COUNT, SIZE = 3, 4, 5  # of conjunctions: first entry, how many, class of the block (``lists.py``)
# Bits of the attributes that it is paired with, for a kind that does so.
PARTNERS_LOW, PARTNERS_HIGH = 6, 7
SPACE_WORDS = 8

# A row of what a search for several keys has: the space that was found for the key in this place;
# and of a key that is still looked for its inner node or cut, how it goes on (``search.py``), its
# place.
FOUND, NODE, WAY, WHOSE = range(4)
WALK_WORDS = 4

# A space of no attribute: its list has the conjunctions that no attribute can place.
ALWAYS = 0
RESERVED = 1

# ``state``: rows used, first free one (NONE: none)
INNERS, FREE_INNER, CUTS, FREE_CUT, SPACES, FREE_SPACE = range(6)
FREE_CELLS = 6  # first of 16 free spaces
ENTRIES = 7  # of all lists
SPLIT, MERGED = 8, 9  # how often what was done
SEVERAL = 10  # 1 when a pair may be found more than once
LOWEST = 11  # the lowest key that there is
OWN = 12  # and up to FREE_BLOCK: what a kind has itself
FREE_BLOCK = 32  # and the next 32: first free block of each class
STATE_WORDS = 64


class PSTree(NamedTuple):
    """Trees of A attributes: M inner nodes, K cuts, S spaces.

    Arrays may be longer than what is used of them.
    """

    tree: Annotated[U32, TREE_WORDS]  # (A, 8)
    top: U8  # (A) bits below the highest digit of a key
    highest: U64  # (A) the highest key that there is
    inner: Annotated[U32, INNER_WORDS]  # (M, 17)
    cut: Annotated[U32, CUT_WORDS]  # (K, 3)
    key: U64  # (K) of the cuts
    space: Annotated[U32, SPACE_WORDS]  # (S, 8)
    state: I64  # (64)
