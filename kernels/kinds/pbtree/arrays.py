"""PB+tree: the layout of a page, and the arrays of an index that is held in memory.

A page is 1,024 words of 32 bits. The first twelve are its header; page 0 means "none". A key takes
two words, the low one first.

blocks     small trees, one to a block: numbers of slots, ordered by list and key, and the keys. All
           blocks of a page can hold the same number of entries, one of ``ROOMS``.
leaf       up to 126 items: a key, and a pointer for each of the six lists. The top bit of a pointer
           says that the key is in the list. The pointer leads to the last node of the list that
           begins at the item's key or below. It is 0 for the first node: the tree's entry has it.
inner      up to 336 keys and one child more. Child i + 1 has keys from key i on.
list node  numbers of slots from the front, items from the back. An item has a key, and the end of
           its SidSet. A SidSet that a node cannot hold goes on in the next one (``CONTINUES``).
table      level 2 and 1: pages of the next level. Level 0: entries of a fixed size.
"""

from typing import Annotated, NamedTuple

from colmatch.kernels.layout import I32, I64, U8, U32, Fixed, Table

WORDS = 1024
HEAD = 12
# Words of a header.
CHECKSUM, OTHER, STAMP, STAMP_HIGH, KIND, ITEMS, PREV, NEXT, SIDS, CONTINUES = range(10)
SIZE_CLASS = SIDS  # the same word in a page of blocks: the place of its size in ``ROOMS``
# Kinds of pages.
FREE, LEAF, INNER, LIST, TABLE, RECORDS, BLOB, ROOT, BLOCKS = range(9)

LEAF_MOST = 126
LEAF_POINTERS = HEAD + 2 * LEAF_MOST
INNER_MOST = 336
INNER_KEYS = HEAD + INNER_MOST + 1
LIST_ROOM = WORDS - HEAD
ITEM = 3  # words of an item of a list node
CHILDREN = WORDS - HEAD  # of a page of a table

# Entries that a block of each size can hold. A page has 63, 32, 15, 7, 3 blocks of these sizes,
# or one. A tree that outgrows its block moves to the next size.
ROOMS = (4, 9, 21, 46, 111, 336)
SHRUNK = ROOMS[-1] // 2  # entries: with so few, a tree with separate pages becomes a block again
BLOCK_HEAD = 4  # words: the tree's number plus 1, or 0 in a free block; entries of the six lists, two in a word
BLOCK_ENTRY = 3  # words: the slot, and two for its key

IN_LIST = 1 << 31
PAGE_MASK = IN_LIST - 1

# The lists of an attribute. Ranges with two ends are in the last two, once for each end.
EQUAL, GREATER, LESS, UNEQUAL, LOW_END, HIGH_END = range(6)
LISTS = 6

# An attribute's entry in the table of attributes: a page, the number of entries of the tree, and
# the first nodes of its lists. For a small tree the second word has ``IN_BLOCK`` and the place of
# its block in the page, and there are no nodes.
TREE_WORDS = 8
TREES = CHILDREN // TREE_WORDS  # entries of a page
TREE_ROOT, TREE_SIZE, HEADS = 0, 1, 2
IN_BLOCK = 1 << 31

# Trees that belong to no attribute; the trees of attributes follow. The entry ``SPARE`` is no tree.
# It has for each size of ``ROOMS`` the one page with free blocks, or 0.
IDS, TAGS, ALWAYS, SPARE = range(4)
OWN_TREES = 4

MOST_NEEDED = 127
VERIFY = 128  # flag in ``needed``: a complete slot is verified

# Stages of a task. Missed ranges are counted before met predicates.
(TOP, MIDDLE, ENTRY, DOWN, ENDED, BEGINS, BLOCK_MISSES, EQ, GT, LT_START, LT_BACK, LT, NE_START, NE_BACK, NE, BEGUN,
 ENDS, BLOCK_HITS) = range(18)  # fmt: skip
IS_HIT = EQ  # stages from here on count met predicates
TASK = 7  # words of a task
SPANS = 1024  # spans of slots that are remembered for a row
WALKS = 10  # most tasks that an entry of an event can become


class PbtreeIndex(NamedTuple):
    """Pages in memory; slots are conjunctions."""

    page: U32  # (pages * WORDS)
    frame: I32  # (pages) page -> its frame, as in a cache
    needed: U8  # (C) count that each slot needs, and VERIFY
    state: I64  # (2) top page of the table of trees; 1 if a subscription has several slots


class PbtreeScratch(NamedTuple):
    """Working memory of one thread."""

    left: U8  # (C) count that each slot still needs
    # (SPANS, 2) spans of slots that were counted for a row: start and end. The first row has the
    # number of spans, and of their slots
    spans: Annotated[I64, 2]
    done: U32  # (C) complete slots
    # (WALKS * entries of a row, TASK) stage; page; the tree, later the half that has the key or the
    # place of its block. Then the key; the first nodes of the lists, two in a number
    task: Annotated[I64, 7]
    wanted: I64  # (as many) pages that are not in memory
    used: U8  # (frames) 1 if the page was read
    table: U32  # (A) zero between calls
    multi: Fixed[U8]  # (A) 1 where a row may have several entries


class SearchScratch(NamedTuple):
    """Working memory of ``search_rows``, for a number of slots and the entries of a row."""

    task: Table[I64]  # (T, TASK)
    left: U8  # (slots)
    spans: Table[I64]  # (SPANS, 2)
    done: U32  # (slots + 1)
    wanted: I64  # (T)
