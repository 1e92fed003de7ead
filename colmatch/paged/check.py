"""A check of every page of a file: checksums, links, order, and trees against records.

Pages are checked together or not at all. One page alone cannot show that a link leads to a page of
another kind, or in a circle. Parts that are read on opening are checked then: headers, log, schema,
attributes and literals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous
from colmatch.errors import StoreError
from colmatch.kernels.kinds.pbtree import arrays as pb
from colmatch.kernels.kinds.pbtree.leaves import DEPTH_MOST
from colmatch.kernels.layout import I64, U32
from colmatch.kinds.sound import check_predicates
from colmatch.paged import build, root_page
from colmatch.paged.file import ROOT as ROOT_PAGE
from colmatch.paged.paged_set import PIECE, PagedSet
from colmatch.paged.records import KeyedSubscriptions
from colmatch.paged.store import block_entries
from colmatch.paged.walk import NAMES, Walk
from colmatch.predicates.keys import to_codes


def _block_words(size_class: int) -> int:
    return pb.BLOCK_HEAD + pb.BLOCK_ENTRY * pb.ROOMS[size_class]


class FileFigures(NamedTuple):
    """The composition of a file."""

    pages: dict[str, int]  # by kind
    depth: int  # pages from the root of the deepest tree to a leaf
    fill: dict[str, float]  # mean for leaves, inner pages, list nodes and records, 0 to 1


class _Checker(Walk):
    """A checker of all pages of a file. Each page is reached once."""

    def __init__(self, paged: PagedSet) -> None:
        super().__init__(paged)
        self.depth = 0
        self.found: list[tuple[NDArray[np.int64], ...]] = []  # entries of trees: list, key, slot
        self.blocks: dict[int, set[int]] = {}  # page -> places of its blocks

    def tree(self, number: int, entry: NDArray[np.uint32]) -> None:
        """Checks a tree and its lists."""
        root, size = int(entry[pb.TREE_ROOT]), int(entry[pb.TREE_SIZE])
        # Check an empty tree or a block
        if not root or size & pb.IN_BLOCK:
            if entry[pb.HEADS :].any() or (size > 0 and not root):
                self.wrong(root, f"has lists without a tree: tree {number}")
            if root:
                self._block(number, root, size ^ pb.IN_BLOCK)
            return
        # Walk from the root to the leaves
        leaves: list[int] = []
        self._descend(root, None, None, 1, leaves)
        keys, pointers = self._leaves(leaves)
        if not (pointers & pb.IN_LIST).any(axis=1).all():
            self.wrong(leaves[0], "begins leaves with a key that no list has")
        # Check the lists, and their number of entries
        before = len(self.found)
        for which in range(pb.LISTS):
            self._check_list(number, which, int(entry[pb.HEADS + which]), keys, pointers[:, which].astype(np.int64))
        if size != sum(len(slots) for *_, slots in self.found[before:]) or size <= pb.SHRUNK:
            self.wrong(root, f"has another number of entries than the {size} that are said, or should be a block")

    def _block(self, number: int, page: int, place: int) -> None:
        """Checks a small tree, which is one block."""
        if page not in self.blocks:
            self.reach(page, pb.BLOCKS)
            self.blocks[page] = set()
        # Check the place of the block in its page
        words = self.pages[page]
        size_class = int(words[pb.SIZE_CLASS])
        each = _block_words(size_class) if size_class < len(pb.ROOMS) else pb.WORDS
        if place in self.blocks[page] or (place - pb.HEAD) % each or not pb.HEAD <= place <= pb.WORDS - each:
            self.wrong(page, f"has no block at word {place}, or two trees have it")
        self.blocks[page].add(place)
        # Check its tree, size and order
        which, keys, slots = block_entries(words, place)
        least = pb.ROOMS[size_class - 1] * 3 // 4 if size_class else 0
        if words[place] != number + 1 or not least < len(which) <= pb.ROOMS[size_class]:
            self.wrong(page, f"has the block of another tree at word {place}, or of another size")
        if ((keys[1:] < keys[:-1]) & (which[1:] == which[:-1])).any():
            self.wrong(page, "has keys that do not ascend")
        self.found.append((number * pb.LISTS + which, keys, slots))

    def _blocks(self, spare: NDArray[np.uint32]) -> None:
        """Checks the pages of blocks: all are full, except at most one of each size.

        spare : for each size, the page with free blocks
        """
        free = np.zeros(pb.TREE_WORDS, np.int64)
        for page, places in self.blocks.items():
            words = self.pages[page]
            each = _block_words(int(words[pb.SIZE_CLASS]))
            count = pb.CHILDREN // each
            begins = pb.HEAD + each * np.arange(count)
            if words[pb.ITEMS] != len(places) or np.count_nonzero(words[begins]) != len(places):
                self.wrong(page, "counts other blocks than it has")
            if len(places) < count:
                if free[words[pb.SIZE_CLASS]]:
                    self.wrong(page, f"has free blocks, as page {free[words[pb.SIZE_CLASS]]} has")
                free[words[pb.SIZE_CLASS]] = page
        if (free != spare).any():
            self.wrong(int(spare.max()), "is not the one that has free blocks")

    def _descend(self, page: int, low: int | None, high: int | None, depth: int, leaves: list[int]) -> None:
        if not 0 < page < len(self.pages):
            self.wrong(page, "is not in the file")
        if depth > DEPTH_MOST:
            self.wrong(page, "is deeper in its tree than any page can be")
        # Read the keys of a leaf, or of an inner page and its children
        if self.kinds[page] == pb.LEAF:
            self.reach(page, pb.LEAF)
            self.depth = max(self.depth, depth)
            leaves.append(page)
            keys = self._keys(page, pb.HEAD, pb.LEAF_MOST)
        else:
            words = self.reach(page, pb.INNER)
            keys = self._keys(page, pb.INNER_KEYS, pb.INNER_MOST)
            bounds = [low, *keys.tolist(), high]
            for i, child in enumerate(words[pb.HEAD : pb.HEAD + len(keys) + 1].tolist()):
                self._descend(child, bounds[i], bounds[i + 1], depth + 1, leaves)
        # Compare them with the bounds from the page above
        if len(keys) and ((low is not None and keys[0] < low) or (high is not None and keys[-1] >= high)):
            self.wrong(page, "has a key that belongs elsewhere")

    def _keys(self, page: int, begin: int, most: int) -> I64:
        items = int(self.pages[page, pb.ITEMS])
        if items > most:
            self.wrong(page, "has more items than there is room for")
        keys: I64 = self.pages[page, begin : begin + 2 * items].copy().view(np.int64)
        if (keys[1:] <= keys[:-1]).any():
            self.wrong(page, "has keys that do not ascend")
        return keys

    def _leaves(self, leaves: list[int]) -> tuple[I64, NDArray[np.uint32]]:
        """Checks the chain of leaves. Returns the keys and pointers of all items."""
        # Check the links between neighbours
        before = 0
        for page, behind in zip(leaves, [*leaves[1:], 0], strict=True):
            words = self.pages[page]
            if words[pb.PREV] != before or words[pb.NEXT] != behind:
                self.wrong(page, "is not linked with its neighbours")
            if not words[pb.ITEMS] and len(leaves) > 1:
                self.wrong(page, "is an empty leaf")
            before = page
        # Collect keys and pointers
        keys = np.concatenate([self._keys(page, pb.HEAD, pb.LEAF_MOST) for page in leaves])
        pointers = [
            self.pages[page, pb.LEAF_POINTERS : pb.LEAF_POINTERS + pb.LISTS * int(self.pages[page, pb.ITEMS])].reshape(
                -1, pb.LISTS
            )
            for page in leaves
        ]
        return keys, np.concatenate(pointers)

    def _check_list(self, number: int, which: int, page: int, keys: I64, pointers: I64) -> None:
        """Checks a list: its order, and the pointers from the items of leaves to its nodes."""
        before, last = 0, None
        firsts, nodes, there = [], [], []
        while page:
            words = self.reach(page, pb.LIST)
            items, sids = int(words[pb.ITEMS]), int(words[pb.SIDS])
            if not items or sids + pb.ITEM * items > pb.LIST_ROOM or words[pb.PREV] != before:
                self.wrong(page, "is a node of a list with other sizes or links than it can have")
            # Check the order of keys and SidSets
            item = words[pb.WORDS - pb.ITEM * items :].reshape(-1, pb.ITEM)[::-1]
            own = item[:, :2].copy().view(np.int64).ravel()
            ends = item[:, 2].astype(np.int64)
            size = np.diff(ends, prepend=0)
            if (own[1:] <= own[:-1]).any() or (size <= 0).any() or ends[-1] != sids:
                self.wrong(page, "has keys or SidSets that do not ascend")
            if last is not None and (own[0] < last or (own[0] == last and not words[pb.CONTINUES])):
                self.wrong(page, "begins with a key that belongs before it")
            # Keep the entries, and the first key of each node
            slots = words[pb.HEAD : pb.HEAD + sids].astype(np.int64)
            self.found.append((np.full(sids, number * pb.LISTS + which), np.repeat(own, size), slots))
            firsts.append(int(own[0]))
            nodes.append(page)
            there.append(own)
            before, last, page = page, int(own[-1]), int(words[pb.NEXT])
        # Check the node that each item of a leaf points to
        place = np.searchsorted(np.array(firsts[1:], np.int64), keys, "right")
        targets = np.array([0, *nodes[1:]])[place]
        if (pointers & pb.PAGE_MASK != targets).any():
            self.wrong(int(targets[int((pointers & pb.PAGE_MASK != targets).argmax())]), "is not what items point to")
        # Compare the keys of the list with the items that claim to be in it
        in_list = np.isin(keys, np.concatenate([np.empty(0, np.int64), *there]))
        if (in_list != (pointers & pb.IN_LIST > 0)).any() or len(np.unique(np.concatenate([keys, *there]))) != len(
            keys
        ):
            self.wrong(before, "has other keys than its tree")

    def records(self) -> None:
        """Checks slots, needed counts and trees against the records."""
        paged = self.paged
        places = paged.all_places()
        if len(places) != paged.store.root(root_page.SUBSCRIPTIONS):
            stored_count = paged.store.root(root_page.SUBSCRIPTIONS)
            self.wrong(ROOT_PAGE, f"says {stored_count} subscriptions, there are {len(places)}")
        # Read all records, and check the table of slots
        record_entries: list[tuple[I64, I64, I64]] = []
        needed = np.zeros(paged.store.root(root_page.SLOT_COUNT), np.int64)
        used = np.zeros(len(needed), bool)
        for begin in range(0, len(places), PIECE):
            part = places[begin : begin + PIECE]
            subscriptions = paged.store.to_keys(part)
            entries = build.all_entries(subscriptions)
            self._subscriptions(subscriptions)
            record_entries.append((entries.tree, entries.key, entries.slot.astype(np.int64)))
            if used[subscriptions.slots].any() or len(np.unique(subscriptions.slots)) < len(subscriptions.slots):
                self.wrong(ROOT_PAGE, "leads to a slot that two subscriptions have")
            used[subscriptions.slots], needed[subscriptions.slots] = True, entries.needed
            expected = build.slot_entries(subscriptions, part >> 16, part & 0xFFFF)
            if (paged.store.slots(subscriptions.slots) != expected).any():
                self.wrong(ROOT_PAGE, "leads to a slot of another subscription")
        # Check free slots and needed counts
        self._free_slots(~used)
        if (paged.store.needed_counts() != needed).any():
            self.wrong(ROOT_PAGE, "leads to a slot with another count than its subscription has")
        # Compare the entries of the records with the entries found in trees
        both = []
        for tuples in (record_entries, self.found):
            tree, key, slot = (
                (np.concatenate([np.empty(0, np.int64), *column]) for column in zip(*tuples, strict=True))
                if tuples
                else (np.empty(0, np.int64),) * 3
            )
            order = np.lexsort((slot, key, tree))
            both.append((tree[order], key[order], slot[order]))
        if any(len(a) != len(b) or (a != b).any() for a, b in zip(*both, strict=True)):
            self.wrong(ROOT_PAGE, "leads to predicates in trees that are not those of the subscriptions")
        # Check the pages of records, and the chains of long ones
        counts = np.bincount(places[places & 0xFFFF > 0] >> 16, minlength=len(self.pages))
        for page in np.flatnonzero(self.kinds == pb.RECORDS).tolist():
            if self.reach(page, pb.RECORDS)[pb.ITEMS] != counts[page]:
                self.wrong(page, "counts other records than it has")
            if not counts[page] and page != paged.store.root(root_page.RECORD_PAGE):
                self.wrong(page, "has no records, but is not free")
        for place in places[places & 0xFFFF == 0].tolist():
            self.chain(place >> 16, pb.BLOB)

    def _subscriptions(self, known: KeyedSubscriptions) -> None:
        """Checks the values of records as far as kernels trust them."""
        multi = contiguous(np.array(self.paged.version.attributes.multi, np.uint8))
        predicates, codes = to_codes(known.predicates, known.keys, multi)
        check_predicates(predicates, codes, len(known.ids))
        if (known.ids.numbers is None) != bool(self.paged.store.root(root_page.TEXT_IDS)):
            self.wrong(ROOT_PAGE, "says that ids are of another type than they are")

    def _free_slots(self, free: NDArray[np.bool_]) -> None:
        """Checks that each free slot leads to the next one, from the first to the last."""
        slots, root = np.flatnonzero(free), self.paged.store.root
        behind = np.arange(len(free) + 1)  # slot + 1 -> next free slot + 1, 0 behind the last
        behind[slots + 1] = np.minimum(self.paged.store.slots(slots)[:, 0], len(free))
        # Count the free slots from each slot on, by pointer doubling
        steps = np.append(0, free.astype(np.int64))
        for _ in range(len(slots).bit_length()):
            steps, behind = steps + steps[behind], behind[behind]
        first = root(root_page.FREE_SLOT)
        if first > len(free) or steps[first] != len(slots) or behind[first] or root(root_page.FREE_SLOTS) != len(slots):
            self.wrong(ROOT_PAGE, "leads to other free slots than there are")

    def _root(self) -> U32:
        """Returns the words of the root page, if its counts are possible in a file of this size."""
        root, room = self.reach(ROOT_PAGE, pb.ROOT), len(self.pages) * pb.CHILDREN
        for count in (root_page.SLOT_COUNT, root_page.SUBSCRIPTIONS):
            if root[count] > room:
                self.wrong(ROOT_PAGE, "says that there is more than the file has room for")
        page = int(root[root_page.RECORD_PAGE])
        if page and (page >= len(self.pages) or self.kinds[page] != pb.RECORDS):
            self.wrong(ROOT_PAGE, "leads to no page of records")
        return root

    def check_trees(self) -> FileFigures:
        """Checks trees and their lists."""
        root, spare = self._root(), np.zeros(pb.TREE_WORDS, np.uint32)
        for place, page in self.table(int(root[root_page.TREES_TOP])):
            words = self.pages[page, pb.HEAD : pb.HEAD + pb.TREES * pb.TREE_WORDS].reshape(pb.TREES, pb.TREE_WORDS)
            for i in range(pb.TREES):
                if place * pb.TREES + i == pb.SPARE:
                    spare = words[i]
                else:
                    self.tree(place * pb.TREES + i, words[i])
        self._blocks(spare)
        return self.figures()

    def run(self) -> FileFigures:
        """Checks all pages, links and counts."""
        self.check_trees()
        root = self.pages[ROOT_PAGE]
        self.table(int(root[root_page.SLOTS_TOP]))
        self.table(int(root[root_page.NEEDED_TOP]))
        for chain in root_page.CHAINS:
            self.chain(int(root[chain]), pb.BLOB)
        self.chain(int(root[root_page.FREE_PAGE]), pb.FREE)
        self.records()
        if not self.seen.all():
            self.wrong(int(self.seen.argmin()), "is lost: nothing leads to it, and it is not free")
        return self.figures()

    def figures(self) -> FileFigures:
        counts = Counter(NAMES.get(kind, "unknown") for kind in self.kinds[ROOT_PAGE:].tolist())
        items, sids = self.pages[:, pb.ITEMS].astype(np.int64), self.pages[:, pb.SIDS].astype(np.int64)
        shares = {
            pb.LEAF: items / pb.LEAF_MOST,
            pb.INNER: items / pb.INNER_MOST,
            pb.LIST: (sids + pb.ITEM * items) / pb.LIST_ROOM,
            pb.RECORDS: sids / pb.CHILDREN,
        }
        fill = {
            NAMES[kind]: round(float(share[self.kinds == kind].mean()), 3)
            for kind, share in shares.items()
            if (self.kinds == kind).any()
        }
        return FileFigures({"header": 2, **dict(sorted(counts.items()))}, self.depth, fill)


def check(path: str) -> FileFigures:
    """Verifies every page, link and count of a file.

    The check takes memory for the whole file.

    Raises StoreError: something is wrong; the message names the page.
    """
    return _run_check(path, _Checker.run)


def count_pages(path: str) -> FileFigures:
    """Counts the pages of a file by kind, and verifies trees and lists alone.

    Raises StoreError: something in them is wrong.
    """
    return _run_check(path, _Checker.check_trees)


def _run_check(path: str, walk: Callable[[_Checker], FileFigures]) -> FileFigures:
    paged = PagedSet(path)
    try:
        return paged.run_on_state(lambda: walk(_Checker(paged)))
    except (StoreError, OSError):
        raise
    except Exception as error:  # a crafted file may lead to errors that no check foresees
        message = f"{type(error).__name__}: {error}"
        raise StoreError(f"{path} is damaged: it cannot be read ({message}): take a copy, or build it again") from error


def as_dict(figures: FileFigures) -> dict[str, Any]:
    """Returns figures by name."""
    return {"pages by kind": figures.pages, "depth": figures.depth, "fill": figures.fill}
