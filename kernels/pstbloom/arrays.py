"""The arrays of PSTBloom.

A space, or a cell of an attribute, has a list of the conjunctions whose access predicate covers it,
and a *signature*: a Bloom filter of those that another predicate of covers it. A conjunction has
one bit of each, its number modulo their length. Signatures of spaces have a length, those of cells
another. In front of all stand a word that nobody is in, and one that everybody is in::

    sign   nobody | everybody | spaces, by row ... | cells, by attribute and number ...
"""

from typing import Annotated, NamedTuple

from colmatch.kernels.layout import F64, I64, U8, U32, U64
from colmatch.kernels.pstree.arrays import CUT_WORDS, INNER_WORDS, OWN, SPACE_WORDS, TREE_WORDS, WALK_WORDS

# ``state``
WORDS = OWN  # of a space's signature, a power of two; 0 where spaces have none
# From one signature to the next. More than a line of the cache longer where they are long: words of
# one conjunction, in many signatures, would else want the same place in the cache.
STRIDE = OWN + 1
SIGNED = OWN + 2  # how often conjunctions are to be in those of spaces
CELL_WORDS, CELL_STRIDE, CELL_SIGNED = OWN + 3, OWN + 4, OWN + 5  # the same of cells
FIRST_CELL = OWN + 6  # first word of the cells' signatures

NOBODY, EVERYBODY, SPACES_FROM = range(3)  # places in ``sign``: where the signatures of spaces begin

# ``work.left``: conjunction that goes next; its predicate, interval and step, and the space of
# that; rows of inner nodes, cuts, spaces and entries that are needed
GOES_NEXT, PREDICATE, INTERVAL, STEP, PLACE, NEED_INNERS, NEED_CUTS, NEED_SPACES, NEED_ENTRIES = range(9)
LEFT_WORDS = 9


class PSTBloom(NamedTuple):
    """PS-Trees as in ``pstree/arrays.py``, and C conjunctions of P predicates in L entries.

    Arrays may be longer than what is used of them.
    """

    tree: Annotated[U32, TREE_WORDS]  # (A, 8)
    top: U8  # (A)
    highest: U64  # (A)
    inner: Annotated[U32, INNER_WORDS]  # (M, 17)
    cut: Annotated[U32, CUT_WORDS]  # (K, 3)
    key: U64  # (K)
    space: Annotated[U32, SPACE_WORDS]  # (S, 8)
    state: I64  # (64)
    # (L, 3) conjunction, and how its two most selective predicates after the access predicate are
    # tested, 0 where there is none; the first of a free block has the next free block
    entry: Annotated[U32, 3]
    sign: U64  # signatures
    probe: U32  # (P) how each predicate is tested (``pstree/choose.py``)
    at: U8  # (C) 1 for those that are there
    plan: I64  # (8)
    multi: U8  # (A)
    common: U32  # (A) predicates of an attribute that have come, deleted ones too
    # What events of a sample had (``kernels/window.py``), while access predicates are chosen by
    # that; else (0)
    window: I64  # (W + 1)
    window_first: I64  # (A + 1)
    window_key: I64  # (W)


class Work(NamedTuple):
    """What changes need for a while."""

    left: I64  # (9)
    score: F64  # one for each predicate of the longest conjunction
    next: Annotated[U32, 2]  # (C, 2) what its entries have of a conjunction


class Scratch(NamedTuple):
    table: U32  # (A) zero between rows
    # (4 A) of each attribute, by how it is tested, the first word of the signature of what the row
    # has; zero between rows: then nobody is in it
    place: U64
    mask: U64  # (4) bits of a conjunction's number that say its place in a signature, by how it is tested
    walk: Annotated[U32, WALK_WORDS]  # (entries of a row, 4)
    visit: U32  # spaces whose lists are to be read
    conj: U32  # (BLOCK) conjunctions of lists that have all attributes
    one: U64  # (BLOCK) words of signatures that they have to stand in
    two: U64  # (BLOCK)
