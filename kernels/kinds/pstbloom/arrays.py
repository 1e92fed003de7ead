"""The arrays of PSTBloom.

A space, or a cell of an attribute, has a list of the conjunctions with an access predicate that
covers it. It also has a *signature*: a Bloom filter of the conjunctions with another predicate that
covers it. A conjunction has one bit in each signature, its number modulo their length. Signatures
of spaces have one length, and signatures of cells another. Before all signatures are a word without
any bit, for nobody, and a word with all bits, for everybody::

    sign   nobody | everybody | spaces, by row ... | cells, by attribute and number ...

Conjunctions are numbered by access predicate, so the conjunctions of one list have neighbouring
bits. The distance from one signature to the next is no power of two. Otherwise 10,000 words of the
same place would share a few sets of the cache. The look-up of an attribute that the event lacks
leads to the signature of nobody.
"""

from typing import Annotated, NamedTuple

from colmatch.kernels.kinds.pstree.arrays import CUT_WORDS, INNER_WORDS, OWN, SPACE_WORDS, TREE_WORDS, WALK_WORDS
from colmatch.kernels.layout import F64, I64, U8, U32, U64, Fixed

# ``state``
WORDS = OWN  # 64-bit words of a space's signature, a power of two; 0 without signatures
# Words from one signature to the next. Long signatures have gaps of more than a cache line.
# Otherwise words of one conjunction, in many signatures, would need the same place in the cache.
STRIDE = OWN + 1
SIGNED = OWN + 2  # total entries of conjunctions in signatures of spaces
CELL_WORDS, CELL_STRIDE, CELL_SIGNED = OWN + 3, OWN + 4, OWN + 5  # the same for cells
FIRST_CELL = OWN + 6  # place in ``sign`` of the first cell's signature

NOBODY, EVERYBODY, SPACES_FROM = range(3)  # places in ``sign``; spaces begin at the last

# ``work.left``: next conjunction; its next predicate, interval, step and space; numbers of inner
# nodes, cuts, spaces and entries that are needed
GOES_NEXT, PREDICATE, INTERVAL, STEP, PLACE, NEED_INNERS, NEED_CUTS, NEED_SPACES, NEED_ENTRIES = range(9)
LEFT_WORDS = 9


class PSTBloom(NamedTuple):
    """PS-Trees as in ``pstree/arrays.py``, and C conjunctions of P predicates in L entries.

    Arrays may be longer than their used part.
    """

    tree: Annotated[U32, TREE_WORDS]  # (A, 8)
    top: U8  # (A)
    highest: U64  # (A)
    inner: Annotated[U32, INNER_WORDS]  # (M, 17)
    cut: Annotated[U32, CUT_WORDS]  # (K, 3)
    key: U64  # (K)
    space: Annotated[U32, SPACE_WORDS]  # (S, 8)
    state: I64  # (64)
    # (L, 3) conjunction, and the tests of its two most selective predicates after the access
    # predicate, 0 for none. A free block begins with the next free block
    entry: Annotated[U32, 3]
    sign: U64  # signatures, as above
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

    left: I64  # (9)
    score: F64  # one for each predicate of the longest conjunction
    next: Annotated[U32, 2]  # (C, 2) tests of each conjunction for its entries


class Scratch(NamedTuple):
    table: U32  # (A) zero between rows
    # (4 A) attribute and test -> first word of the signature for the row's value. Zero between
    # rows: the signature of nobody
    place: U64
    mask: U64  # (4) test -> bits of a conjunction's number that give its place in a signature
    walk: Annotated[U32, WALK_WORDS]  # (entries of a row, 4)
    visit: U32  # spaces with lists to be read
    conj: U32  # (BLOCK) conjunctions of lists, with their attributes present
    one: U64  # (BLOCK) words of signatures that must have their bits
    two: U64  # (BLOCK)
