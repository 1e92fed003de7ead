"""The arrays of PSTHash.

A *bucket* is a space of several attributes: one space, or cell, of each, by ascending attributes.
Its key is what its space without the last attribute has for a number, and the last space. So what
begins a bucket of three spaces is one of two, and is there, too, maybe without conjunctions. A
space alone is the bucket of this space and NONE.

A space of a PS-Tree has a list of its *members*, the conjunctions that have it: what is cut off
from it is theirs, too. Cells are never cut and have none.
"""

from typing import Annotated, NamedTuple

from colmatch.kernels.kinds.pstree import arrays as ps
from colmatch.kernels.layout import F64, I64, U8, U32, U64, Fixed

DIMENSIONS_MOST = 4

# A row of ``bucket``. A free one has NONE for a prefix, and then the next free one.
PREFIX, LAST_SPACE = 0, 1  # its key: the prefix is a space, or BUCKET and another bucket
LONGER = 2  # buckets that it begins
BUCKET_LIST, BUCKET_COUNT, BUCKET_SIZE = ps.LIST, ps.COUNT, ps.SIZE  # as a row of ``space`` has them
PARTNERS_LOW, PARTNERS_HIGH = 6, 7  # bits of the attributes that come next, as ``space`` has them
BUCKET_WORDS = 8
BUCKET = 1 << 31

# ``state``
BUCKETS, FREE_BUCKET, SLOTS = ps.OWN, ps.OWN + 1, ps.OWN + 2

# ``work.left``: conjunction that goes next; its predicate, interval and step, and the space or the
# bucket of that; what is cut off a space, and of which of its members, if that is not done yet;
# rows of inner nodes, cuts, spaces, entries and buckets that are needed
GOES_NEXT, PREDICATE, INTERVAL, STEP, PLACE, NEW_SPACE, OLD_SPACE, MEMBER, MEMBER_PLACE = range(9)
NEED_INNERS, NEED_CUTS, NEED_SPACES, NEED_ENTRIES, NEED_BUCKETS = range(9, 14)
LEFT_WORDS = 14


class PSTHash(NamedTuple):
    """PS-Trees as in ``pstree/arrays.py``, and C conjunctions of P predicates in N buckets.

    Arrays may be longer than what is used of them.
    """

    tree: Annotated[U32, ps.TREE_WORDS]  # (A, 8)
    top: U8  # (A)
    highest: U64  # (A)
    inner: Annotated[U32, ps.INNER_WORDS]  # (M, 17)
    cut: Annotated[U32, ps.CUT_WORDS]  # (K, 3)
    key: U64  # (K)
    space: Annotated[U32, ps.SPACE_WORDS]  # (S, 8)
    state: I64  # (64)
    # (L, 3) conjunction, and its two most selective predicates after the access predicates, 0 where
    # there is none; the first of a free block has the next free block
    entry: Annotated[U32, 3]
    bucket: Annotated[U32, BUCKET_WORDS]  # (N, 8)
    slot: U32  # (H) hash table of the buckets: row + 1, or 0; H is a power of two
    probe: U32  # (P) how each predicate is tested (``pstree/choose.py``)
    at: U8  # (C) 1 for those that are there
    plan: I64  # (8)
    multi: U8  # (A)
    common: U32  # (A) predicates that an attribute has had, deleted ones included
    # Values of a sample of events, as ``kernels/window.py`` reads them, while access predicates are
    # chosen by these; else (0)
    window: Fixed[I64]  # (W + 1)
    window_first: Fixed[I64]  # (A + 1)
    window_key: Fixed[I64]  # (W)


class Work(NamedTuple):
    """What changes need for a while."""

    left: I64  # (14)
    score: F64  # one for each predicate of the longest conjunction
    next: Annotated[U32, 2]  # (C, 2) what its entries have of a conjunction
    spaces: U32  # (4 * S) spaces of a conjunction's access predicates, S for each; their number is in ``dims``
    dims: I64  # (9) how many there are, of each how many spaces, and its attribute


class Scratch(NamedTuple):
    table: U32  # (A) zero between rows
    walk: Annotated[U32, ps.WALK_WORDS]  # (E, 4)
    attr: U32  # (2 E) attributes of the row's spaces, ascending
    space: U32  # (2 E) its spaces and cells
    # (2 E + DIMENSIONS_MOST * BLOCK, 4) prefixes of buckets that are to be looked for, where the
    # last space of each stands, where the next one does, and how many it has
    stack: Annotated[U32, 4]
    key: Annotated[U32, 3]  # (BLOCK, 3) buckets that are looked for, and where their last space stands
    slot: I64  # (BLOCK) their places in the hash table, then which they are
    conj: U32  # (BLOCK)
