"""The arrays of BE-Tree and BE*-Tree.

A *bucket* is a range of one attribute. It shares a row with its c-node, which has a leaf of
conjunctions and a directory of *parts* (p-nodes). A part divides conjunctions by one attribute. The
buckets of this attribute hang below the part's topmost bucket. Each bucket has a left and a right
half that do not meet. Conjunctions that fit in neither half stay in the bucket itself. Bucket 0 is
the root and has no attribute. Bucket 1 has the conjunctions that no attribute can place.

New rows of the tables come from lists of free rows first. A leaf is a block of entries with room
for 4, 8, 16 ... of them. Free blocks of one size form a list.

Matching reads one cache line for a bucket, with the ranges of the bucket and its halves. So it
visits a half only if the half may have a match. After everything has been deleted, the tables are
empty, keep their length, and are used again.
"""

from typing import Annotated, NamedTuple

from colmatch.kernels.layout import F64, I64, U8, U32, U64, Fixed, Table

NONE = 2**32 - 1
ROOT, ALWAYS = 0, 1

# Columns of ``node``, which matching reads: a row is one cache line.
ATTR = 0
LEFT, RIGHT = 1, 2  # the halves
LEAF, COUNT = 3, 4  # first entry of the leaf, number of entries
FIRST, PARTS = 5, 6  # first part of the directory, number of parts
OWN_LO, OWN_HI = 7, 8  # range of the bucket's leaf and parts, without its halves
LEFT_LO, LEFT_HI, RIGHT_LO, RIGHT_HI = 9, 10, 11, 12  # ranges of the halves, with all below them
HALVES = ((LEFT, LEFT_LO), (RIGHT, RIGHT_LO))  # columns of each half, and of its range
MASK_LOW, MASK_HIGH = 13, 14  # bits of the attributes in the directory
NODE_WORDS = 16

# Columns of ``above``, which only changes read.
PART, UP = 0, 1  # the bucket's part; the bucket above, if this one is a half
SIZE = 2  # class of the leaf's block, NONE without a block
CAPACITY = 3  # the leaf is too full with more entries than this
BELOW = 4  # conjunctions in the bucket and below
LEVEL = 5  # parts on the path from the root
BOX = 6  # first of the bucket's rows in ``box``
NEXT_FREE = 7
ABOVE_WORDS = 8

# Columns of ``part``.
PART_ATTR, TOP, OWNER, NEXT, BEFORE, PART_COUNT, PART_LO, PART_HI = range(8)
PART_WORDS = 8

# Columns of ``box``: the range of one attribute in the bucket itself, then with its halves.
# (NONE, 0) is an empty range.
LOW, HIGH, ALL_LOW, ALL_HIGH = range(4)
MOST_LEVELS = 15  # most parts on a path

# ``state``
NODES, FREE_NODE, N_PARTS, FREE_PART, ENTRIES, SLOTS = range(6)  # rows used, first free row (NONE: none)
BOXES = 6
SEVERAL = 7  # 1 when a subscription may have several conjunctions
HALVED, RAISED, INJECTED, SPACED, TIGHTENED = range(8, 13)  # numbers of these steps
FREE_BLOCK = 16  # and the next 31: first free block of each size
FREE_BOX = 48  # and the next 15: first free rows of ``box``, by their number
STATE_WORDS = 64

# ``plan``: the settings
RIGID, BY_CODES, RANKING, LEAF_CAPACITY, EXHAUSTIVE, ALPHA, BETA, SHORT_CIRCUIT, EVALUATION = range(9)
PLAN_WORDS = 9
POPULARITY, SELECTIVITY = 0, 1
LAZY, BITMAP = 0, 2  # each predicate when reached; all distinct ones first. 1: each distinct one once

# ``bounded``: the kind of the bounds of scores.
UNBOUNDED, BY_WEIGHTS, BY_PRIORITY = range(3)

WINDOW = ("window", "window_first", "window_key", "window_rows")  # arrays that changes read and never write

HEAVIEST = 8  # attributes of a row with separate weights; all others share a factor

SMALLEST = 2  # a block of class k has 4 << k entries


class Tree(NamedTuple):
    """The tables: N buckets, M parts, H slots, L entries, C conjunctions, P predicates, V distinct
    ones.

    Arrays may be longer than their used part.
    """

    node: Annotated[U32, NODE_WORDS]  # (N, 16)
    above: Annotated[U32, ABOVE_WORDS]  # (N, 8)
    part: Annotated[U32, PART_WORDS]  # (M, 8)
    slot: U32  # (H) hash table of the directories: part + 1, or 0; H is a power of two
    entry: U32  # (L) conjunction; the first of a free block has the next free block
    need: U64  # (L) bits of the attributes that the conjunction needs to be true
    reach: Annotated[U32, 2]  # (L, 2) lowest and highest code of the bucket's attribute that can make it true
    at: U32  # (C) bucket of each conjunction, or NONE
    # (X, 4) ranges of a bucket, one for each part on its path: the bucket's attribute first, then
    # upwards. There are none where buckets are halves of a domain
    box: Annotated[U32, 4]
    plan: I64  # (9)
    state: I64  # (64)
    multi: U8  # (A)
    bounded: U8  # (1) BY_WEIGHTS, BY_PRIORITY, or UNBOUNDED; then the following are (0)
    # (L) largest score of each entry as a number (``bounds.py``), descending within a leaf
    bound: U32
    bound_below: U32  # (N) largest ``bound`` in a bucket and below
    most_below: U32  # (N) largest weight of one predicate there, as a number; (0) without weights
    # The most that each attribute can add to a score, where events may give weights (``caps.py``);
    # else (0).
    cap_first: U32  # (N + 1) bucket -> caps of its leaf
    cap: Annotated[U32, 2]  # (K, 2) attribute, ascending within a bucket, and its cap as a number
    cap_all: U32  # (A + 1) attribute -> its cap in the whole tree, as a number; last the cap of negations
    same: U32  # (P) predicate -> number of the distinct predicate; (0) where predicates are not shared
    some: U32  # (V) one predicate of each number, ascending by first word; (0) without BITMAP
    by_attr: U32  # (A + 1) attribute -> its plain predicates in ``some``; or (0)
    # The values in a window of events, where they rank attributes for changes. Otherwise, and in an
    # index that takes no more changes, these arrays are (0).
    window: Fixed[I64]  # (W + 1) values with the codes, or keys, before each
    window_first: Fixed[I64]  # (A + 1) known attribute -> its codes, from code 1 on, or its keys
    window_key: Fixed[I64]  # (W) key, ascending within an attribute; (0) where values are counted by code
    window_rows: Fixed[I64]  # (A + 1) events with each attribute, all events


class TreeWork(NamedTuple):
    """Scratch arrays and the state of changes."""

    todo: U32  # (2 N + 64) buckets to look at
    waiting: U32  # (2 N + 64) buckets that cannot be halved, to be divided
    # (7) length of ``todo``; next conjunction to enter; needed rows of nodes, parts, entries and
    # boxes; length of ``waiting``
    left: I64
    vote: F64  # (A) zeros
    votes: I64  # (A) zeros
    touched: U32  # (A)
    chosen: U32  # (A)
    tally: I64  # (4 C + 1)
    conj: U32  # (C) conjunctions
    side: U32  # (C) destination of each entry of a leaf
    lo: U32  # (C) ranges of entries, and their orders by low and by high end
    hi: U32
    by_lo: U32
    by_hi: U32
    low_after: U32  # (C) lowest code of the ranges from a place on, then highest
    high_after: U32


class TreeScratch(NamedTuple):
    table: U32  # (A) zero between rows
    tile: U32  # (A * TILE_ROWS) zero between calls; (0) where attributes are too many
    there: U64  # (A) zero between calls: bits of the tile's rows that have an attribute
    absent: U64  # (TILE_ROWS) bits of the attributes that a row lacks
    stack: U32  # (N) buckets still to visit, each at most once
    rows: U64  # (N) bits of the tile's rows to visit each bucket for
    heap: U32  # (M) heap of the bounds of parts still to visit, the highest first
    parts: U32  # (M) the parts in the order of ``heap``
    part_rows: U64  # (M) bits of the tile's rows to visit each part for
    # (TILE_ROWS) largest weight that a row gives to any attribute but its heaviest; -1 where bounds
    # do not apply to the row's scores
    factor: F64
    heaviest: I64  # (TILE_ROWS) number of the following places that a row fills
    heavy_attr: Annotated[U32, HEAVIEST]  # (TILE_ROWS, 8) the attributes with the largest weights, the heaviest first
    heavy: Annotated[F64, HEAVIEST]  # (TILE_ROWS, 8) these weights
    heavy_cap: Annotated[F64, HEAVIEST]  # (TILE_ROWS, 8) caps of these attributes in the whole tree
    # (V + 1, 2) bits of a tile's rows where a distinct predicate is true, number of that tile.
    # Last: bits of all rows of the present tile, its number
    truth: Annotated[U64, 2]
    floor: U32  # (TILE_ROWS) bound, as a number: no conjunction below it is among the row's best
    leaf_floor: U32  # (TILE_ROWS) the same within one leaf
    weighed: Table[F64]  # (TILE_ROWS, A) 1 between calls: the rows' weights of attributes
    asks: I64  # (1) number of times that rows may still search the caps of a leaf (``caps.py``)
