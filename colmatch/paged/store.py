"""The contents of a file of pages: tables of slots, records of subscriptions, trees."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.ranges import members, ranges_of
from colmatch.errors import StoreError
from colmatch.kernels.kinds.pbtree import arrays as pb
from colmatch.kernels.kinds.pbtree import update
from colmatch.kernels.kinds.pbtree.editing import (
    FREED,
    FRESH,
    MISSED,
    NO_FRESH,
    NO_ROOM,
    NO_SHADOW,
    PLACES,
    REUSED,
    WRONG,
    PageCache,
)
from colmatch.kernels.kinds.pbtree.leaves import DEPTH_MOST
from colmatch.kernels.layout import I64, U8, U32
from colmatch.kinds.pbtree import ListEntries
from colmatch.paged.cache import make_damage_error
from colmatch.paged.file import PageFile
from colmatch.paged.records import KeyedSubscriptions, unpack
from colmatch.paged.root_page import (
    FREE_SLOT,
    FREE_SLOTS,
    NEEDED_TOP,
    RECORD_PAGE,
    SLOT_COUNT,
    SLOTS_TOP,
    TREES_TOP,
    Chains,
)

SLOT_WORDS = 4
SLOTS_OF_PAGE = pb.CHILDREN // SLOT_WORDS
NEEDED_OF_PAGE = 4 * pb.CHILDREN
RECORD_MOST = pb.WORDS - pb.HEAD  # words of a record in one page, at most
FRESH_LEAST, SHADOWS_LEAST = 4, 32


def block_entries(words: U32, place: int) -> tuple[I64, I64, I64]:
    """Returns list, key and slot of each entry of a block, which begins at word ``place``."""
    room = pb.ROOMS[int(words[pb.SIZE_CLASS])]
    counts = words[place + 1 : place + pb.BLOCK_HEAD].copy().view(np.uint16)
    total, slots = int(counts.sum()), place + pb.BLOCK_HEAD
    keys = words[slots + room : slots + room + 2 * total].copy().view(np.int64)
    return np.repeat(np.arange(pb.LISTS), counts), keys, words[slots : slots + total].astype(np.int64)


def places_of(entry: U32) -> I64:
    """Returns the places of records, page << 16 | word, from the table entries of their slots."""
    return entry[:, 2].astype(np.int64) << 16 | entry[:, 3]


class PageStore(Chains):
    """The contents of a file of pages, to read and change. ``file.commit`` ends an update."""

    def __init__(self, file: PageFile) -> None:
        super().__init__(file)
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forgets everything that was read from pages."""
        self._fresh = 0
        self._freed: I64 = np.empty(0, np.int64)
        self._take_shadows(SHADOWS_LEAST)
        self._known_needed: tuple[tuple[int, int], U8] | None = None

    # Tables

    def table_pages(self, top: int, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the pages at some places of a table, 0 for a missing page."""
        middles = self.file.read(top)[pb.HEAD + numbers // pb.CHILDREN].astype(np.int64)
        pages = np.zeros(len(numbers), np.int64)
        for middle in sorted({*middles.tolist()} - {0}):
            here = middles == middle
            pages[here] = self.file.read(middle)[pb.HEAD + numbers[here] % pb.CHILDREN]
        return pages

    def reach_table_page(self, top: int, number: int) -> int:
        """Returns a page of a table, which is allocated if it is missing."""
        page = top
        for place, level in ((number // pb.CHILDREN, 1), (number % pb.CHILDREN, 0)):
            child = int(self.file.read(page)[pb.HEAD + place])
            if not child:
                child = self.allocate(pb.TABLE)
                self.file.edit(child)[pb.ITEMS] = level
                self.file.edit(page)[pb.HEAD + place] = child
            page = child
        return page

    # Slots

    def slots(self, slots: NDArray[np.integer[Any]]) -> U32:
        """Returns the table entries of slots: (slots, SLOT_WORDS)."""
        # Find the pages of the table
        number, place = np.divmod(slots.astype(np.int64), SLOTS_OF_PAGE)
        distinct, which = np.unique(number, return_inverse=True)
        pages = self.table_pages(self.root(SLOTS_TOP), distinct)
        out = np.empty((len(number), SLOT_WORDS), np.uint32)
        # Copy the entries, from as many pages at once as the cache can hold
        step = max(self.file.cache.frames // 2, 1)
        order = np.argsort(which, kind="stable")
        ends = np.searchsorted(which[order], np.arange(len(distinct) + 1))
        for begin in range(0, len(distinct), step):
            end = min(begin + step, len(distinct))
            words = self.file.read_all(pages[begin:end])
            part = order[ends[begin] : ends[end]]
            at = pb.HEAD + SLOT_WORDS * place[part]
            out[part] = words[(which[part] - begin)[:, None], at[:, None] + np.arange(SLOT_WORDS)]
        return out

    def set_slots(self, slots: Iterable[int], entries: U32) -> None:
        """Writes the table entries of slots."""
        top = self.root(SLOTS_TOP)
        for slot, entry in zip(slots, entries, strict=True):
            page = self.reach_table_page(top, slot // SLOTS_OF_PAGE)
            at = pb.HEAD + SLOT_WORDS * (slot % SLOTS_OF_PAGE)
            self.file.edit(page)[at : at + SLOT_WORDS] = entry

    def set_needed(self, slots: Iterable[int], needed: Iterable[int]) -> None:
        """Writes the needed counts of slots."""
        top, kept = self.root(NEEDED_TOP), self._known_needed
        counts = None if kept is None or kept[0] != self.file.state else kept[1]
        for slot, value in zip(slots, needed, strict=True):
            page = self.reach_table_page(top, slot // NEEDED_OF_PAGE)
            self.file.edit(page).view(np.uint8)[4 * pb.HEAD + slot % NEEDED_OF_PAGE] = value
            if counts is not None and slot < len(counts):
                counts[slot] = value
        if counts is None or self.root(SLOT_COUNT) > len(counts):
            self._known_needed = None

    def needed_counts(self) -> U8:
        """Returns the needed count of each slot, a byte each. The counts stay in memory."""
        cached, count = self._known_needed, self.root(SLOT_COUNT)
        if cached is None or cached[0] != self.file.state:
            pages = self.table_pages(self.root(NEEDED_TOP), np.arange(-(-count // NEEDED_OF_PAGE)))
            counts = np.zeros(len(pages) * NEEDED_OF_PAGE, np.uint8)
            step = max(self.file.cache.frames // 2, 1)
            for begin in range(0, len(pages), step):
                words = self.file.read_all(pages[begin : begin + step])[:, pb.HEAD :]
                counts[begin * NEEDED_OF_PAGE :][: 4 * words.size] = np.ascontiguousarray(words).view(np.uint8).ravel()
            self._known_needed = cached = self.file.state, counts[:count].copy()
        return cached[1]

    def keep_needed(self) -> None:
        """Keeps the needed counts in memory, which the last update has brought up to date."""
        if self._known_needed is not None:
            self._known_needed = self.file.state, self._known_needed[1]

    def forget_needed(self) -> None:
        self._known_needed = None

    def take_slots(self, count: int) -> NDArray[np.uint32]:
        """Returns unused slots, which count as used from now on."""
        taken: list[int] = []
        while len(taken) < count and (free := self.root(FREE_SLOT)):
            taken.append(free - 1)
            page = self.reach_table_page(self.root(SLOTS_TOP), (free - 1) // SLOTS_OF_PAGE)
            self.set_root(FREE_SLOT, int(self.file.read(page)[pb.HEAD + SLOT_WORDS * ((free - 1) % SLOTS_OF_PAGE)]))
            self.set_root(FREE_SLOTS, self.root(FREE_SLOTS) - 1)
        high = self.root(SLOT_COUNT)
        rest = count - len(taken)
        self.set_root(SLOT_COUNT, high + rest)
        return np.array([*taken, *range(high, high + rest)], np.uint32)

    def free_slots(self, slots: list[int]) -> None:
        """Puts slots on the file's free list, and clears their counts."""
        for slot in slots:
            entry = np.array([[self.root(FREE_SLOT), 0, 0, 0]], np.uint32)
            self.set_slots([slot], entry)
            self.set_root(FREE_SLOT, slot + 1)
            self.set_root(FREE_SLOTS, self.root(FREE_SLOTS) + 1)
        self.set_needed(slots, [0] * len(slots))

    # Records

    def write_record(self, words: U32) -> tuple[int, int]:
        """Writes a record. Returns its page and its first word, 0 for a chain of pages."""
        if len(words) > RECORD_MOST:
            return self.write_chain(words), 0
        page = self.root(RECORD_PAGE)
        used = int(self.file.read(page)[pb.SIDS]) if page else RECORD_MOST
        if used + len(words) > RECORD_MOST:
            if page and not self.file.read(page)[pb.ITEMS]:
                self.release(page)
            page, used = self.allocate(pb.RECORDS), 0
            self.set_root(RECORD_PAGE, page)
        into = self.file.edit(page)
        into[pb.HEAD + used : pb.HEAD + used + len(words)] = words
        into[pb.SIDS] = used + len(words)
        into[pb.ITEMS] += 1
        return page, pb.HEAD + used

    def write_over(self, page: int, word: int, words: U32) -> None:
        """Writes a record over one of the same length.

        Raises StoreError: the old record has another length.
        """
        if word:
            into = self.file.edit(page)
            if into[word] != len(words):
                raise StoreError(f"{self.file.path}: a record has another length than before; nothing was changed")
            into[word : word + len(words)] = words
            return
        if len(self.read_chain(page)) != len(words):
            raise StoreError(f"{self.file.path}: a record has another length than before; nothing was changed")
        while page:
            into = self.file.edit(page)
            size, page = int(into[pb.SIDS]), int(into[pb.NEXT])
            into[pb.HEAD : pb.HEAD + size], words = words[:size], words[size:]

    def remove_record(self, page: int, word: int) -> None:
        """Removes a record. A page without records is freed, unless it takes new ones."""
        if not word:
            self.remove_chain(page)
            return
        into = self.file.edit(page)
        into[pb.ITEMS] -= 1
        if not into[pb.ITEMS] and page != self.root(RECORD_PAGE):
            self.release(page)

    def records(self, page: I64, word: I64) -> tuple[U32, I64]:
        """Reads records at some pages and words. Returns all words, and the beginning of each."""
        # Read records that fit in a page
        distinct, which = np.unique(page, return_inverse=True)
        sizes = np.zeros(len(page), np.int64)
        parts: list[tuple[NDArray[np.int64], NDArray[np.uint32]]] = []
        step = max(self.file.cache.frames // 2, 1)
        for begin in range(0, len(distinct), step):
            pages = self.file.read_all(distinct[begin : begin + step])
            part = np.flatnonzero((which >= begin) & (which < begin + step) & (word > 0))
            flat = pages.ravel()
            at = (which[part] - begin) * pb.WORDS + word[part]
            sizes[part] = flat[at]
            if (beyond := word[part] + sizes[part] > pb.WORDS).any():
                raise make_damage_error(self.file.path, int(page[part[beyond.argmax()]]))
            parts.append((part, flat[members(at, ranges_of(sizes[part]))]))
        # Read longer records
        for i in np.flatnonzero(word == 0).tolist():
            words = self.read_chain(int(page[i]))
            sizes[i] = len(words)
            parts.append((np.array([i]), words))
        # Join all records in their order
        first = ranges_of(sizes)
        out = np.empty(int(first[-1]), np.uint32)
        for part, words in parts:
            out[members(first[part], ranges_of(sizes[part]))] = words
        return out, first

    def to_keys(self, places: NDArray[np.int64]) -> KeyedSubscriptions:
        """Returns the subscriptions of records by key. A place is page << 16 | word."""
        try:
            return unpack(*self.records(places >> 16, places & 0xFFFF))
        except ValueError as error:
            raise StoreError(f"{self.file.path} is damaged: {error}: take a copy, or build it again") from error

    # Trees

    def slots_of(self, tree: int, key: int) -> NDArray[np.int64]:
        """Returns the SidSet of a key in the list of equalities of a tree."""
        # Find the tree
        none = np.empty(0, np.int64)
        page = int(self.table_pages(self.root(TREES_TOP), np.array([tree // pb.TREES]))[0])
        begin = pb.HEAD + pb.TREE_WORDS * (tree % pb.TREES)
        entry = self.file.read(page)[begin : begin + pb.TREE_WORDS].tolist() if page else [0]
        if not entry[pb.TREE_ROOT]:
            return none
        # Search the block of a small tree
        words = self.file.read(entry[pb.TREE_ROOT])
        if entry[pb.TREE_SIZE] & pb.IN_BLOCK:
            which, key_of, slots = block_entries(words, entry[pb.TREE_SIZE] ^ pb.IN_BLOCK)
            same: I64 = slots[(which == pb.EQUAL) & (key_of == key)]
            return same
        # Descend to a leaf
        while words[pb.KIND] != pb.LEAF:
            items = int(words[pb.ITEMS])
            child = int(words[pb.INNER_KEYS : pb.INNER_KEYS + 2 * items].view(np.int64).searchsorted(key, "right"))
            words = self.file.read(int(words[pb.HEAD + child]))
        keys = words[pb.HEAD : pb.HEAD + 2 * min(int(words[pb.ITEMS]), pb.LEAF_MOST)].view(np.int64)
        place = int(keys.searchsorted(key))
        if place == len(keys) or keys[place] != key:
            return none
        # Collect the slots from the last node of the list with this key to the first
        pointer = int(words[pb.LEAF_POINTERS + pb.LISTS * place + pb.EQUAL])
        node = (pointer & pb.PAGE_MASK or entry[pb.HEADS + pb.EQUAL]) if pointer & pb.IN_LIST else 0
        parts: list[NDArray[np.int64]] = []
        while node:
            words = self.file.read(node)
            items = int(words[pb.ITEMS])
            item = words[pb.WORDS - pb.ITEM * items :].reshape(-1, pb.ITEM)[::-1]
            keys = item[:, :2].copy().view(np.int64).ravel()
            j = int(keys.searchsorted(key))
            if j == items or keys[j] != key:
                break
            begin = int(item[j - 1, 2]) if j else 0
            parts.append(words[pb.HEAD + begin : pb.HEAD + int(item[j, 2])].astype(np.int64))
            node = int(words[pb.PREV]) if j == 0 and words[pb.CONTINUES] else 0
        return np.concatenate(parts) if parts else none

    def change(self, entries: ListEntries, is_insert: bool) -> None:
        """Inserts slots into the lists of trees, or removes them.

        Raises StoreError: the file is damaged; for example, a slot to remove is missing.
        """
        order = np.lexsort((entries.key, entries.tree))
        tree, key, slot = entries.tree[order], entries.key[order], entries.slot[order]
        inserts = np.full(len(tree), is_insert, np.uint8)
        path = np.zeros((DEPTH_MOST, 2), np.int64)
        done = self._fresh = 0
        while done < len(tree):
            pages = self._pages()
            done = update.apply(pages, self.root(TREES_TOP), inserts, tree, key, slot, done, path)
            self._settle(pages)

    def _pages(self) -> PageCache:
        """Returns the cache as operations see it, with unused pages."""
        cache = self.file.cache
        fresh = [self.allocate(pb.TABLE) for _ in range(self._fresh)]
        if len(self._freed) < self.file.pages:
            self._freed = np.empty(self.file.pages * 5 // 4, np.int64)
        taken = np.array(fresh, np.int64), self._freed, np.zeros(pb.LISTS, np.int64), np.zeros(PLACES, np.int64)
        return PageCache(cache.mem, cache.frame, cache.used, cache.dirty, self._shadow, self._shadow_of, *taken)

    def _take_shadows(self, pages: int) -> None:
        self._shadow: U32 = np.empty(pages * pb.WORDS, np.uint32)
        self._shadow_of: I64 = np.empty((pages, 2), np.int64)

    def _settle(self, pages: PageCache) -> None:
        """Releases unused pages, and gets the page or the room that an operation lacked."""
        state = pages.state
        if state[WRONG]:
            raise StoreError(f"{self.file.path} is damaged: a predicate is not where it should be: build it again")
        for page in [*pages.fresh[state[FRESH] :].tolist()[::-1], *pages.freed[state[REUSED] : state[FREED]].tolist()]:
            self.release(page)
        if state[MISSED]:
            self.file.read(int(state[MISSED]))
        elif state[NO_ROOM] == NO_FRESH:
            self._fresh = max(2 * self._fresh, FRESH_LEAST)
        elif state[NO_ROOM] == NO_SHADOW:  # NO_FREED: there is room again by now
            self._take_shadows(2 * len(self._shadow_of))

    def load_pages(self, pages: NDArray[np.int64]) -> None:
        """Loads pages for a kernel, as many as there is room for."""
        if len(pages) and int(pages.max()) >= self.file.pages:
            raise make_damage_error(self.file.path, int(pages.max()))
        self.file.cache.load(pages)
