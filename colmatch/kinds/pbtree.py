"""PB+tree: one extended B+tree for each attribute, with leaves that point into lists of predicates.

Source: Wang, Zhang and Kitsuregawa, "Design of B+tree-Based Predicate Index for Efficient Event
Matching", called the PB+tree paper here. It leaves open how matching subscriptions follow from
predicates (phase 2). Here they are counted, as in the OpIndex paper.

With a ``path``, the index is a file of pages behind a cache, and ids and subscriptions live there
too (``colmatch/paged/``). Without, the same pages are arrays in memory, as in any kind.

Deviations: keys are whole numbers, so each predicate is in one list
(``kernels/kinds/pbtree/plan.py``). Leaf items also have a pointer to their own SidSet, so leaves
have items of one size and SidSets share nodes. All pointers follow the rule of GTPointer (section
4.2): the last node with a first key not above the key. No leaf points to the first node of a list:
the tree's entry does. A tree with few predicates is a block instead, and several blocks share a
page (``kernels/kinds/pbtree/blocks.py``). Conjunctions that cannot be counted are verified.

Ranges with two ends have two separate lists. A value is in the ranges that began before it and have
not ended, or in the ranges that end behind it and have begun. The first are counted for values in
the lower half of a tree, the second for the others. So few entries are read at both ends of a
domain, and no value reads the entries of both ends. Ranges in GreaterThan and LessThan cost a
million ``dense`` subscriptions 1.8 million entries an event.

In shared pages, 20,000 subscriptions on 30,000 attributes take 7 MB, 366 bytes each. They took 413
MB with a page for each attribute's leaf and one for each list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous, freeze
from colmatch.arrays.ranges import ranges_of
from colmatch.kernels.kinds.pbtree import arrays as pb
from colmatch.kernels.kinds.pbtree import bulk
from colmatch.kernels.kinds.pbtree.arrays import PbtreeIndex, PbtreeScratch
from colmatch.kernels.kinds.pbtree.match import match
from colmatch.kernels.kinds.pbtree.plan import plan_conjunctions
from colmatch.kernels.layout import I64, U8, U32, Codes, Predicates
from colmatch.kinds.base import IndexKind
from colmatch.kinds.settings import FileNames, Settings, setting
from colmatch.kinds.statistics import Sample
from colmatch.predicates.keys import KeyIntervals, keys_of

FILLS = np.array([pb.LIST_ROOM * 9 // 10, pb.LEAF_MOST * 9 // 10, 300], np.int64)  # of pages that are made together

FEW_ENTRIES = 1 << 12  # most entries with room, without counting them first


@dataclass(frozen=True, slots=True, repr=False)
class PbtreeSettings(Settings):
    """Settings of pbtree: the file of pages, the cache and the budget."""

    kind = "pbtree"
    by_predicate = True
    about = "a B+tree for each attribute, in pages of 4 KiB: in a file, of which a cache holds a part, or in memory"

    path: str = setting("", "the file that the index lives in; '' for pages in memory", FileNames([""]))
    cache_bytes: int = setting(1 << 26, "bytes of pages of the file that are held in memory", range(1 << 15, 1 << 40))
    fsync: bool = setting(
        False,
        "write updates of the file to the disk before a call returns, so that they outlast a power cut",
        (False, True),
    )


class ListEntries(NamedTuple):
    """The E entries of lists, and the counts that C slots need."""

    tree: I64  # (E) number of the tree times LISTS, and of the list
    key: I64  # (E)
    slot: U32  # (E)
    needed: U8  # (C)


def entries_of_keys(preds: Predicates, keys: KeyIntervals, slots: NDArray[np.uint32]) -> ListEntries:
    """Returns the entries of conjunctions with known intervals of keys."""
    needed: U8 = np.zeros(len(slots), np.uint8)
    first, pred, own = contiguous(preds.first), contiguous(preds.pred), contiguous(slots)
    columns = first, pred, contiguous(preds.jump_first), contiguous(preds.jump), *freeze(keys)

    def plan(entries: tuple[I64, I64, U32]) -> int:
        return int(plan_conjunctions(*columns, own, needed, entries))

    most = 2 * len(keys.low) + len(slots)
    tree, key, slot = arrays = _room(most if most < FEW_ENTRIES else plan(_room(0)))
    count = plan(arrays)
    return ListEntries(tree[:count], key[:count], slot[:count], needed)


def _room(count: int) -> tuple[I64, I64, U32]:
    return np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.uint32)


class FilledPages(NamedTuple):
    """Pages of trees, and the trees' entries in a table."""

    page: U32  # (pages * WORDS)
    entry: NDArray[np.uint32]  # (trees, TREE_WORDS)


def fill_pages(tree: I64, key: I64, slot: U32, trees: int, base_page: int) -> FilledPages:
    """Makes the pages of so many trees out of entries in any order.

    base_page : number of the first page
    """
    # Sort the entries by list and key.
    order = np.lexsort((key, tree))
    list_first = ranges_of(np.bincount(tree, minlength=pb.LISTS * trees))
    key, slot = contiguous(key[order]), contiguous(slot[order])
    del order
    # Count the pages that small trees share.
    size = np.diff(list_first).reshape(-1, pb.LISTS)
    by_tree = size.sum(axis=1)
    is_small = by_tree <= pb.ROOMS[-1]
    small = np.bincount(np.searchsorted(pb.ROOMS, by_tree[is_small & (by_tree > 0)]), minlength=len(pb.ROOMS))
    shared = -(-small // (pb.CHILDREN // (pb.BLOCK_HEAD + pb.BLOCK_ENTRY * np.array(pb.ROOMS))))
    # Bound the pages of the others.
    size, by_tree = size[~is_small], by_tree[~is_small]
    longest = int(size.max(initial=0))
    leaves = -(-by_tree // int(FILLS[1])) + 1
    # A node is left early only if the next SidSet needs more than its room.
    nodes = -(-size * (1 + pb.ITEM) // (int(FILLS[0]) // 3)) + (size > 0)
    pages = int(nodes.sum() + (leaves + leaves // 100 + 4).sum() + shared.sum())
    most = int(leaves.max(initial=0)) + 1
    # Fill the pages.
    mem = np.empty(pages * pb.WORDS, np.uint32)
    entry = np.zeros((trees, pb.TREE_WORDS), np.uint32)
    used = bulk.fill_trees(
        mem, base_page, contiguous(list_first), key, slot, contiguous(FILLS),
        (np.empty((pb.LISTS, longest), np.int64), np.empty((pb.LISTS, longest), np.int64), *np.zeros((2, pb.LISTS), np.int64)),
        (np.empty(most, np.int64), np.empty(most, np.int64)), entry,
    )  # fmt: skip
    return FilledPages(mem[: used * pb.WORDS], entry)


def table_pages(entries: int, each: int) -> int:
    """Returns room for the pages of a table, in pages."""
    pages = -(-entries // each)
    return pages + pages // 1000 + 3


def build(
    preds: Predicates, codes: Codes, sample: Sample | None, settings: PbtreeSettings
) -> tuple[PbtreeIndex, Predicates]:
    entries = entries_of_keys(preds, keys_of(preds, codes, True), np.arange(len(preds.owner), dtype=np.uint32))
    trees = len(codes.multi) + pb.OWN_TREES
    trees_filled = fill_pages(entries.tree, entries.key, entries.slot, trees, 1)
    base = 1 + len(trees_filled.page) // pb.WORDS
    table = np.empty(table_pages(trees, pb.TREES) * pb.WORDS, np.uint32)
    used, top = bulk.fill_table(table, base, contiguous(trees_filled.entry), pb.TREES)
    page = np.concatenate([np.zeros(pb.WORDS, np.uint32), trees_filled.page, table[: used * pb.WORDS]])
    frame = np.arange(len(page) // pb.WORDS, dtype=np.int32)
    several = len(np.unique(preds.owner)) < len(preds.owner)
    return PbtreeIndex(page, frame, entries.needed, np.array([top, several], np.int64)), preds


def scratch(index: PbtreeIndex, codes: Codes, rows: int, entries: int) -> PbtreeScratch:
    slots, tasks = len(index.needed), pb.WALKS * (entries + 1)
    return PbtreeScratch(
        np.empty(slots, np.uint8),
        np.zeros((pb.SPANS, 2), np.int64),
        np.empty(slots + 1, np.uint32),
        np.empty((tasks, pb.TASK), np.int64),
        np.empty(tasks, np.int64),
        np.zeros(len(index.frame), np.uint8),
        np.zeros(max(len(codes.multi), 1), np.uint32),
        codes.multi,
    )


KIND = IndexKind(
    PbtreeSettings, PbtreeIndex, build, scratch, match, lambda index: bool(index.state[1]),
    in_pages=lambda settings: settings.path != "",
)  # fmt: skip
