"""The arrays of BE-Tree and BE*-Tree.

A *bucket* is a range of one attribute, and is one with its c-node: a leaf of conjunctions, and a
directory of *parts* (p-nodes). A part is an attribute that conjunctions are divided by; the buckets
of its attribute hang below its topmost one, each with a left and a right half that do not meet, and
what fits in neither stays in the bucket itself. Bucket 0 is the root, which has no attribute;
bucket 1 has what no attribute can place.

Rows of the tables are taken from lists of free ones first. A leaf is a block of entries with room
for 4, 8, 16 ... of them; free blocks of one size are a list.

Matching reads one line of the cache for a bucket, its own range and those of its halves included.
So a half is visited only if it can have something. After everything has been deleted the tables are
as long as before, empty, and used again.
"""

from typing import Annotated, NamedTuple

from colmatch.kernels.layout import F64, I64, U8, U32, U64, Fixed, Table

NONE = 2**32 - 1
ROOT, ALWAYS = 0, 1

# A row of ``node``: what matching reads, one line of the cache.
ATTR = 0
LEFT, RIGHT = 1, 2  # the halves
LEAF, COUNT = 3, 4  # first entry of the leaf, how many there are
FIRST, PARTS = 5, 6  # first part of the directory, how many there are
OWN_LO, OWN_HI = 7, 8  # range of all that is below the bucket itself, without its halves
LEFT_LO, LEFT_HI, RIGHT_LO, RIGHT_HI = 9, 10, 11, 12  # of all that is below the halves
HALVES = ((LEFT, LEFT_LO), (RIGHT, RIGHT_LO))  # where each half stands, and its range
MASK_LOW, MASK_HIGH = 13, 14  # bits of the attributes in the directory
NODE_WORDS = 16

# A row of ``above``: what only changes read.
PART, UP = 0, 1  # the part that the bucket belongs to, the bucket that it is a half of
SIZE = 2  # class of the leaf's block, NONE without one
CAPACITY = 3  # entries from which on the leaf is too full
BELOW = 4  # conjunctions in the bucket and below
LEVEL = 5  # parts between it and the root
BOX = 6  # first row of its ranges of other attributes
NEXT_FREE = 7
ABOVE_WORDS = 8

# A row of ``part``.
PART_ATTR, TOP, OWNER, NEXT, BEFORE, PART_COUNT, PART_LO, PART_HI = range(8)
PART_WORDS = 8

# A row of ``box``: range of one attribute, of the bucket itself, and with its halves; (NONE, 0) is
# empty.
LOW, HIGH, ALL_LOW, ALL_HIGH = range(4)
MOST_LEVELS = 15  # parts on a path

# ``state``
NODES, FREE_NODE, N_PARTS, FREE_PART, ENTRIES, SLOTS = range(6)  # rows used, first free one (NONE: none)
BOXES = 6
SEVERAL = 7  # 1 when a subscription may have several conjunctions
HALVED, DIVIDED, RAISED, RECYCLED, MERGED, INJECTED, SPACED, TIGHTENED = range(8, 16)  # how often what was done
FREE_BLOCK = 16  # and the next 31: first free block of each size
FREE_BOX = 48  # and the next 16: first free rows of ranges, by how many they are
STATE_WORDS = 64

# ``plan``: the settings that changes go by
RIGID, BY_CODES, RANKING, LEAF_CAPACITY, EXHAUSTIVE, ALPHA, BETA, SHORT_CIRCUIT, EVALUATION = range(9)
PLAN_WORDS = 9
POPULARITY, SELECTIVITY = 0, 1
LAZY, BITMAP = 0, 2  # predicates as they are come to, all distinct ones first; 1 is each distinct one once

# ``bounded``: what bounds of scores there are.
UNBOUNDED, BY_WEIGHTS, BY_PRIORITY = range(3)

WINDOW = ("window", "window_first", "window_key", "window_rows")  # arrays that changes read only

HEAVIEST = 8  # attributes of a row whose weights count one by one; all others count together

SMALLEST = 2  # a block of class k has 4 << k entries


class Tree(NamedTuple):
    """N buckets, M parts, H slots, L entries, C conjunctions, P predicates, V distinct ones. Arrays
    may be longer than what is used of them.
    """

    node: Annotated[U32, NODE_WORDS]  # (N, 16)
    above: Annotated[U32, ABOVE_WORDS]  # (N, 8)
    part: Annotated[U32, PART_WORDS]  # (M, 8)
    slot: U32  # (H) hash table of the directories: part + 1, or 0; H is a power of two
    entry: U32  # (L) conjunction; the first of a free block has the next free block
    need: U64  # (L) bits of attributes without which it is false
    reach: Annotated[U32, 2]  # (L, 2) lowest and highest code of the bucket's attribute with which it can be true
    at: U32  # (C) bucket of each conjunction, NONE where it has none
    # (X, 4) ranges of a bucket, one for each part on its path: of its own attribute first, then
    # upwards; none where buckets are halves of a domain
    box: Annotated[U32, 4]
    plan: I64  # (9)
    state: I64  # (64)
    multi: U8  # (A)
    bounded: U8  # (1) UNBOUNDED, then the following are (0), or BY_WEIGHTS, BY_PRIORITY
    # (L) largest score of each entry, falling within a leaf, as a number (``bounds.py``)
    bound: U32
    bound_below: U32  # (N) largest of a bucket and all below it
    most_below: U32  # (N) largest weight of one predicate there, as a number; (0) without weights
    # Where events may give weights: the most that each attribute can add to a score (``caps.py``).
    # Else (0).
    cap_first: U32  # (N + 1) bucket -> caps of its leaf
    cap: Annotated[U32, 2]  # (K, 2) attribute, ascending within a bucket, and its cap, a number as in ``bound``
    cap_all: U32  # (A + 1) attribute -> its cap in the whole tree, as a number; last that of negations
    same: U32  # (P) number of the distinct predicate that each is; (0) where predicates are not shared
    some: U32  # (V) one predicate of each number, ascending by first word; (0) but for BITMAP
    by_attr: U32  # (A + 1) attribute -> its plain predicates in ``some``; or (0)
    # What a window of events had, where changes are to go by that; else and in an index that takes
    # no more all are (0).
    window: Fixed[I64]  # (W + 1) values with the codes, or keys, before each
    window_first: Fixed[I64]  # (A + 1) attribute -> its codes, from code 1 on, or its keys; of those that were known
    window_key: Fixed[I64]  # (W) key, ascending within an attribute; (0) where values are counted by code
    window_rows: Fixed[I64]  # (A + 1) events with each attribute, all events


class TreeWork(NamedTuple):
    """What changes need for a while."""

    todo: U32  # (2 N + 64) buckets that are to be looked at
    waiting: U32  # (2 N + 64) buckets that cannot be halved, and are to be divided
    # (7) how many these are; conjunction that goes next; rows of nodes, parts, entries and boxes
    # that are needed; how many wait
    left: I64
    vote: F64  # (A) zeros
    votes: I64  # (A) zeros
    touched: U32  # (A)
    chosen: U32  # (A)
    tally: I64  # (4 C + 1)
    conj: U32  # (C) conjunctions
    side: U32  # (C) where each entry of a leaf goes
    lo: U32  # (C) ranges of entries, and their orders
    hi: U32
    by_lo: U32
    by_hi: U32
    low_after: U32  # (C) lowest of the ranges from a place on
    high_after: U32


class TreeScratch(NamedTuple):
    table: U32  # (A) zero between rows
    tile: U32  # (A * TILE_ROWS) zero between calls; (0) where attributes are too many
    there: U64  # (A) zero between calls: rows of the tile that have an attribute
    absent: U64  # (TILE_ROWS) bits of attributes that a row has not
    stack: U32  # (N) buckets that are still to be visited: each at most once
    rows: U64  # (N) rows of the tile to visit them for
    heap: U32  # (M) parts that are still to be visited, a heap by their bounds, the highest first
    parts: U32  # (M) which these are
    part_rows: U64  # (M) rows of the tile to visit each part for
    # (TILE_ROWS) largest weight that a row gives to an attribute beside its heaviest ones; -1 where
    # bounds say nothing of the row's scores
    factor: F64
    heaviest: I64  # (TILE_ROWS) how many of the following places a row fills
    heavy_attr: Annotated[U32, HEAVIEST]  # (TILE_ROWS, 8) the attributes with the largest weights, the heaviest first
    heavy: Annotated[F64, HEAVIEST]  # (TILE_ROWS, 8) these weights
    heavy_cap: Annotated[F64, HEAVIEST]  # (TILE_ROWS, 8) caps of these attributes in the whole tree
    # (V + 1, 2) rows of a tile for which a distinct predicate is true, number of that tile; last
    # all rows of this tile, its number
    truth: Annotated[U64, 2]
    floor: U32  # (TILE_ROWS) bound, as a number, below which nothing is among the row's best
    leaf_floor: U32  # (TILE_ROWS) the same within one leaf
    weighed: Table[F64]  # (TILE_ROWS, A) 1 between calls: what rows give to attributes
    asks: I64  # (1) how often rows may still search the caps of a leaf (``caps.py``)
