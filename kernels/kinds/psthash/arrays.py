"""The arrays of PSTHash.

A *bucket* is a space of several attributes: one space, or cell, of each, by ascending attributes.
Its key is its *prefix* and its last space. The prefix is the bucket, or the single space, without
the last attribute. So the prefix of a bucket of three spaces is a bucket of two, which also exists,
maybe without conjunctions. A space alone is the bucket of this space and NONE.

A space of a PS-Tree has a list of its *members*, the conjunctions with an access predicate that
covers it. They are also members of each space that is cut off from it. Cells are never cut and have
no members.
"""

from typing import Annotated, NamedTuple

from colmatch.kernels.kinds.pstree import arrays as ps
from colmatch.kernels.layout import F64, I64, U8, U32, U64, Fixed

DIMENSIONS_MOST = 4

# A row of ``bucket``. A free row has NONE as prefix, then the next free one.
PREFIX, LAST_SPACE = 0, 1  # its key: the prefix is a space, or BUCKET and another bucket
LONGER = 2  # number of buckets that have it as prefix
BUCKET_LIST, BUCKET_COUNT, BUCKET_SIZE = ps.LIST, ps.COUNT, ps.SIZE  # as in a row of ``space``
PARTNERS_LOW, PARTNERS_HIGH = 6, 7  # bits of the attributes that come next, as in ``space``
BUCKET_WORDS = 8
BUCKET = 1 << 31

# ``state``
BUCKETS, FREE_BUCKET, SLOTS = ps.OWN, ps.OWN + 1, ps.OWN + 2

# ``work.left``: next conjunction; its next predicate, interval, step, and space or bucket. For an
# unfinished split: the new space, the old one, its next member and the member's next bucket. Then
# numbers of inner nodes, cuts, spaces, entries and buckets that are needed
GOES_NEXT, PREDICATE, INTERVAL, STEP, PLACE, NEW_SPACE, OLD_SPACE, MEMBER, MEMBER_PLACE = range(9)
NEED_INNERS, NEED_CUTS, NEED_SPACES, NEED_ENTRIES, NEED_BUCKETS = range(9, 14)
LEFT_WORDS = 14


class PSTHash(NamedTuple):
    """PS-Trees as in ``pstree/arrays.py``, and C conjunctions of P predicates in N buckets.

    Arrays may be longer than their used part.
    """

    tree: Annotated[U32, ps.TREE_WORDS]  # (A, 8)
    top: U8  # (A)
    highest: U64  # (A)
    inner: Annotated[U32, ps.INNER_WORDS]  # (M, 17)
    cut: Annotated[U32, ps.CUT_WORDS]  # (K, 3)
    key: U64  # (K)
    space: Annotated[U32, ps.SPACE_WORDS]  # (S, 8)
    state: I64  # (64)
    # (L, 3) conjunction, and the tests of its two most selective predicates after the access
    # predicates, 0 for none. A free block begins with the next free block
    entry: Annotated[U32, 3]
    bucket: Annotated[U32, BUCKET_WORDS]  # (N, 8)
    slot: U32  # (H) hash table of the buckets: row + 1, or 0; H is a power of two
    probe: U32  # (P) test of each predicate (``pstree/choose.py``)
    at: U8  # (C) 1 if it is entered
    plan: I64  # (8)
    multi: U8  # (A)
    common: U32  # (A) predicates that an attribute has had, deleted ones included
    # Values of a sample of events, as ``kernels/window.py`` reads them, if access predicates are
    # chosen by a sample; else (0)
    window: Fixed[I64]  # (W + 1)
    window_first: Fixed[I64]  # (A + 1)
    window_key: Fixed[I64]  # (W)


class UpdateScratch(NamedTuple):
    """Working memory of changes."""

    left: I64  # (14)
    score: F64  # one for each predicate of the longest conjunction
    next: Annotated[U32, 2]  # (C, 2) tests of each conjunction for its entries
    spaces: U32  # (4 * S) spaces of a conjunction's access predicates, room for S each; ``dims`` has their numbers
    dims: I64  # (9) number of access predicates; for each, number of spaces and attribute


class Scratch(NamedTuple):
    table: U32  # (A) zero between rows
    walk: Annotated[U32, ps.WALK_WORDS]  # (E, 4)
    attr: U32  # (2 E) attributes of the row's spaces, ascending
    space: U32  # (2 E) its spaces and cells
    # (2 E + DIMENSIONS_MOST * BLOCK, 4) prefixes of buckets to look for; place of the last space.
    # Then the place of the space to try next; number of spaces
    stack: Annotated[U32, 4]
    key: Annotated[U32, 3]  # (BLOCK, 3) keys of buckets to look for, and places of their last spaces
    slot: I64  # (BLOCK) their places in the hash table, then their rows
    conj: U32  # (BLOCK)
