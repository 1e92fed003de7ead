"""PB+tree: the layout of a page, and the arrays of an index that is held in memory.

A page is 1,024 words of 32 bits. The first twelve are its header; page 0 means "none". A key takes
two words, the low one first.

blocks     small trees, one to a block: numbers of slots, ordered by list and key, and the keys. All
           blocks of a page have room for the same number of entries, one of ``ROOMS``
leaf       up to 126 items: a key, and for each of the six lists a pointer, whose top bit says that
           the key is in that list. The pointer leads to the last node of the list whose first key
           is not above the item's key. It is 0 for the first node, to which the tree's entry leads
inner      up to 336 keys and one child more; child i + 1 has keys from key i on
list node  numbers of slots from the front, items from the back: key, and where its SidSet ends.
           SidSets that a node cannot hold go on in the next one, which says so (``CONTINUES``)
table      level 2 and 1: pages of the next level; level 0: entries of a fixed size
"""

from typing import Annotated, NamedTuple

from colmatch.kernels.layout import I32, I64, U8, U32, Fixed, Table

WORDS = 1024
HEAD = 12
# Words of a header.
CHECKSUM, OTHER, STAMP, STAMP_HIGH, KIND, ITEMS, PREV, NEXT, SIDS, CONTINUES = range(10)
SIZE_CLASS = SIDS  # the same word in a page of blocks: the place of their size in ``ROOMS``
# Kinds of pages.
FREE, LEAF, INNER, LIST, TABLE, RECORDS, BLOB, ROOT, BLOCKS = range(9)

LEAF_MOST = 126
LEAF_POINTERS = HEAD + 2 * LEAF_MOST
INNER_MOST = 336
INNER_KEYS = HEAD + INNER_MOST + 1
LIST_ROOM = WORDS - HEAD
ITEM = 3  # words of an item of a list node
CHILDREN = WORDS - HEAD  # of a page of a table

# Entries that a block has room for, by its size. A page has 63, 32, 15, 7, 3 blocks of these sizes,
# or one. A tree that outgrows its block moves to the next size.
ROOMS = (4, 9, 21, 46, 111, 336)
SHRUNK = ROOMS[-1] // 2  # entries: with so few, a tree with pages of its own becomes a block again
BLOCK_HEAD = 4  # words: the tree's number plus 1, or 0 in a free block; entries of the six lists, two in a word
BLOCK_ENTRY = 3  # words: the slot, and two for its key

IN_LIST = 1 << 31
PAGE_MASK = IN_LIST - 1

# The lists of an attribute; ranges with two ends are in the last two, once for each end.
EQUAL, GREATER, LESS, UNEQUAL, LOW_END, HIGH_END = range(6)
LISTS = 6

# An attribute's entry in the table of attributes: a page, how many entries the tree has, and the
# first nodes of its lists. For a small tree the second word has ``IN_BLOCK`` and the place of its
# block in the page, and there are no nodes.
TREE_WORDS = 8
TREES = CHILDREN // TREE_WORDS  # entries of a page
TREE_ROOT, TREE_SIZE, HEADS = 0, 1, 2
IN_BLOCK = 1 << 31

# Trees that belong to no attribute; those of attributes follow. The entry ``SPARE`` is no tree: for
# each size of ``ROOMS`` it has the one page with free blocks, or 0.
IDS, TAGS, ALWAYS, SPARE = range(4)
OWN_TREES = 4

MOST_NEEDED = 127
VERIFY = 128  # the flag beside what a slot needs

# How far a walk has come.
# Stages that count ranges which do not hold come before those that count what holds.
(TOP, MIDDLE, ENTRY, DOWN, ENDED, BEGINS, BLOCK_MISSES, EQ, GT, LT_START, LT_BACK, LT, NE_START, NE_BACK, NE, BEGUN,
 ENDS, BLOCK_HITS) = range(18)  # fmt: skip
IS_HIT = EQ  # stages from here on count what holds
TASK = 7  # words of a task
SPANS = 1024  # nodes of a row whose slots are remembered
WALKS = 10  # tasks that an entry of an event can become, at most


class PbtreeIndex(NamedTuple):
    """Pages in memory; slots are conjunctions."""

    page: U32  # (pages * WORDS)
    frame: I32  # (pages) page -> where it stands, as a cache has it
    needed: U8  # (C) what each slot has to count, and VERIFY
    state: I64  # (2) page that the table of trees begins at; 1 where a subscription has several slots


class PbtreeScratch(NamedTuple):
    """Working memory of one thread."""

    left: U8  # (C) what each slot has still to count
    # (SPANS, 2) begin and end of the slots that were counted for a row; of the first, how many
    # others there are, and how many slots
    spans: Annotated[I64, 2]
    done: U32  # (C) slots that have counted all
    # (WALKS * entries of a row, TASK) stage; page; the tree, then which half of it or the place of
    # its block; key; the first nodes of the lists, two in a number
    task: Annotated[I64, 6]
    wanted: I64  # (as many) pages that are not there
    used: U8  # (frames) 1 where a page was read
    table: U32  # (A) zero between calls
    multi: Fixed[U8]  # (A) the attribute may have several entries in a row


class SearchScratch(NamedTuple):
    """What a search needs for so many slots and entries of a row (``search_rows``)."""

    task: Table[I64]  # (T, TASK)
    left: U8  # (slots)
    spans: Table[I64]  # (SPANS, 2)
    done: U32  # (slots + 1)
    wanted: I64  # (T)
