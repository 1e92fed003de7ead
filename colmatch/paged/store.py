"""What stands in a file of pages: tables of slots, records of subscriptions, trees."""

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
    Pages,
)
from colmatch.kernels.kinds.pbtree.leaves import DEPTH_MOST
from colmatch.kernels.layout import I64, U8, U32
from colmatch.kinds.pbtree import ListEntries
from colmatch.paged.cache import damaged
from colmatch.paged.file import PageFile
from colmatch.paged.records import Keyed, unpacked
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
RECORD_MOST = pb.WORDS - pb.HEAD  # words of a record that stands in one page
FRESH_LEAST, SHADOWS_LEAST = 4, 32


def block_entries(words: U32, place: int) -> tuple[I64, I64, I64]:
    """Returns list, key and slot of the entries of a block, which begins at a word of its page."""
    room = pb.ROOMS[int(words[pb.SIZE_CLASS])]
    counts = words[place + 1 : place + pb.BLOCK_HEAD].copy().view(np.uint16)
    total, slots = int(counts.sum()), place + pb.BLOCK_HEAD
    keys = words[slots + room : slots + room + 2 * total].copy().view(np.int64)
    return np.repeat(np.arange(pb.LISTS), counts), keys, words[slots : slots + total].astype(np.int64)


def places_of(entry: U32) -> I64:
    """Returns the places of records, page << 16 | word, by what the table says of their slots."""
    return entry[:, 2].astype(np.int64) << 16 | entry[:, 3]


class PageStore(Chains):
    """Reads and changes what stands in a file of pages. ``file.commit`` ends an update."""

    def __init__(self, file: PageFile) -> None:
        super().__init__(file)
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forgets all that was read from pages."""
        self._fresh = 0
        self._freed: I64 = np.empty(0, np.int64)
        self._take_shadows(SHADOWS_LEAST)
        self._known_needed: tuple[tuple[int, int], U8] | None = None

    # Tables

    def table_pages(self, top: int, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the pages of a table, by their places: 0 where there is none."""
        middles = self.file.read(top)[pb.HEAD + numbers // pb.CHILDREN].astype(np.int64)
        pages = np.zeros(len(numbers), np.int64)
        for middle in sorted({*middles.tolist()} - {0}):
            here = middles == middle
            pages[here] = self.file.read(middle)[pb.HEAD + numbers[here] % pb.CHILDREN]
        return pages

    def reach_table_page(self, top: int, number: int) -> int:
        """Returns a page of a table, which is made if there is none."""
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
        """Returns what the table says of slots: (slots, SLOT_WORDS)."""
        number, place = np.divmod(slots.astype(np.int64), SLOTS_OF_PAGE)
        distinct, which = np.unique(number, return_inverse=True)
        pages = self.table_pages(self.root(SLOTS_TOP), distinct)
        out = np.empty((len(number), SLOT_WORDS), np.uint32)
        step = max(self.file.cache.frames // 2, 1)
        order = np.argsort(which, kind="stable")
        ends = np.searchsorted(which[order], np.arange(len(distinct) + 1))
        for begin in range(0, len(distinct), step):
            end = min(begin + step, len(distinct))
            words = self.file.read_all(pages[begin:end])
            some = order[ends[begin] : ends[end]]
            at = pb.HEAD + SLOT_WORDS * place[some]
            out[some] = words[(which[some] - begin)[:, None], at[:, None] + np.arange(SLOT_WORDS)]
        return out

    def set_slots(self, slots: Iterable[int], entries: U32) -> None:
        """Writes what the table says of slots."""
        top = self.root(SLOTS_TOP)
        for slot, entry in zip(slots, entries, strict=True):
            page = self.reach_table_page(top, slot // SLOTS_OF_PAGE)
            at = pb.HEAD + SLOT_WORDS * (slot % SLOTS_OF_PAGE)
            self.file.edit(page)[at : at + SLOT_WORDS] = entry

    def set_needed(self, slots: Iterable[int], needed: Iterable[int]) -> None:
        """Writes what slots have to count."""
        top, kept = self.root(NEEDED_TOP), self._known_needed
        known = None if kept is None or kept[0] != self.file.state else kept[1]
        for slot, value in zip(slots, needed, strict=True):
            page = self.reach_table_page(top, slot // NEEDED_OF_PAGE)
            self.file.edit(page).view(np.uint8)[4 * pb.HEAD + slot % NEEDED_OF_PAGE] = value
            if known is not None and slot < len(known):
                known[slot] = value
        if known is None or self.root(SLOT_COUNT) > len(known):
            self._known_needed = None

    def needed(self) -> U8:
        """Returns what each slot has to count: one byte for each, which stay in memory."""
        known, count = self._known_needed, self.root(SLOT_COUNT)
        if known is None or known[0] != self.file.state:
            pages = self.table_pages(self.root(NEEDED_TOP), np.arange(-(-count // NEEDED_OF_PAGE)))
            found = np.zeros(len(pages) * NEEDED_OF_PAGE, np.uint8)
            step = max(self.file.cache.frames // 2, 1)
            for begin in range(0, len(pages), step):
                some = self.file.read_all(pages[begin : begin + step])[:, pb.HEAD :]
                found[begin * NEEDED_OF_PAGE :][: 4 * some.size] = np.ascontiguousarray(some).view(np.uint8).ravel()
            self._known_needed = known = self.file.state, found[:count].copy()
        return known[1]

    def keep_needed(self) -> None:
        """Says that what is known of slots is what the last update has made of them."""
        if self._known_needed is not None:
            self._known_needed = self.file.state, self._known_needed[1]

    def forget_needed(self) -> None:
        self._known_needed = None

    def take_slots(self, count: int) -> NDArray[np.uint32]:
        """Returns slots that nobody has."""
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

    def give_slots(self, slots: list[int]) -> None:
        """Makes slots free."""
        for slot in slots:
            entry = np.array([[self.root(FREE_SLOT), 0, 0, 0]], np.uint32)
            self.set_slots([slot], entry)
            self.set_root(FREE_SLOT, slot + 1)
            self.set_root(FREE_SLOTS, self.root(FREE_SLOTS) + 1)
        self.set_needed(slots, [0] * len(slots))

    # Records

    def write_record(self, words: U32) -> tuple[int, int]:
        """Writes a record. Returns its page and the word where it begins, 0 for a page chain."""
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
        """Writes a record in the place of one of the same length.

        Raises StoreError: that one has another length.
        """
        if word:
            into = self.file.edit(page)
            if into[word] != len(words):
                raise StoreError(f"{self.file.path}: a record has another length than before; nothing was changed")
            into[word : word + len(words)] = words
            return
        while page:
            into = self.file.edit(page)
            size, page = int(into[pb.SIDS]), int(into[pb.NEXT])
            into[pb.HEAD : pb.HEAD + size], words = words[:size], words[size:]

    def remove_record(self, page: int, word: int) -> None:
        """Takes a record away. Its page is free when it has no other."""
        if not word:
            self.remove_chain(page)
            return
        into = self.file.edit(page)
        into[pb.ITEMS] -= 1
        if not into[pb.ITEMS] and page != self.root(RECORD_PAGE):
            self.release(page)

    def records(self, page: I64, word: I64) -> tuple[U32, I64]:
        """Returns records, by their pages and words: all words, and where each begins."""
        distinct, which = np.unique(page, return_inverse=True)
        sizes = np.zeros(len(page), np.int64)
        parts: list[tuple[NDArray[np.int64], NDArray[np.uint32]]] = []
        step = max(self.file.cache.frames // 2, 1)
        for begin in range(0, len(distinct), step):
            pages = self.file.read_all(distinct[begin : begin + step])
            some = np.flatnonzero((which >= begin) & (which < begin + step) & (word > 0))
            flat = pages.ravel()
            at = (which[some] - begin) * pb.WORDS + word[some]
            sizes[some] = flat[at]
            if (beyond := word[some] + sizes[some] > pb.WORDS).any():
                raise damaged(self.file.path, int(page[some[beyond.argmax()]]))
            parts.append((some, flat[members(at, ranges_of(sizes[some]))]))
        for i in np.flatnonzero(word == 0).tolist():
            words = self.read_chain(int(page[i]))
            sizes[i] = len(words)
            parts.append((np.array([i]), words))
        first = ranges_of(sizes)
        out = np.empty(int(first[-1]), np.uint32)
        for some, words in parts:
            out[members(first[some], ranges_of(sizes[some]))] = words
        return out, first

    def to_keys(self, places: NDArray[np.int64]) -> Keyed:
        """Returns the subscriptions of some records, by their places: page << 16 | word."""
        try:
            return unpacked(*self.records(places >> 16, places & 0xFFFF))
        except ValueError as error:
            raise StoreError(f"{self.file.path} is damaged: {error}: take a copy, or build it again") from error

    # Trees

    def slots_of(self, tree: int, key: int) -> NDArray[np.int64]:
        """Returns the SidSet of a key that is in the list of equalities of a tree."""
        none = np.empty(0, np.int64)
        page = int(self.table_pages(self.root(TREES_TOP), np.array([tree // pb.TREES]))[0])
        begin = pb.HEAD + pb.TREE_WORDS * (tree % pb.TREES)
        entry = self.file.read(page)[begin : begin + pb.TREE_WORDS].tolist() if page else [0]
        if not entry[pb.TREE_ROOT]:
            return none
        words = self.file.read(entry[pb.TREE_ROOT])
        if entry[pb.TREE_SIZE] & pb.IN_BLOCK:
            which, key_of, slots = block_entries(words, entry[pb.TREE_SIZE] ^ pb.IN_BLOCK)
            same: I64 = slots[(which == pb.EQUAL) & (key_of == key)]
            return same
        while words[pb.KIND] != pb.LEAF:
            items = int(words[pb.ITEMS])
            child = int(words[pb.INNER_KEYS : pb.INNER_KEYS + 2 * items].view(np.int64).searchsorted(key, "right"))
            words = self.file.read(int(words[pb.HEAD + child]))
        keys = words[pb.HEAD : pb.HEAD + 2 * min(int(words[pb.ITEMS]), pb.LEAF_MOST)].view(np.int64)
        place = int(keys.searchsorted(key))
        if place == len(keys) or keys[place] != key:
            return none
        pointer = int(words[pb.LEAF_POINTERS + pb.LISTS * place + pb.EQUAL])
        node = (pointer & pb.PAGE_MASK or entry[pb.HEADS + pb.EQUAL]) if pointer & pb.IN_LIST else 0
        found: list[NDArray[np.int64]] = []
        while node:
            words = self.file.read(node)
            items = int(words[pb.ITEMS])
            item = words[pb.WORDS - pb.ITEM * items :].reshape(-1, pb.ITEM)[::-1]
            keys = item[:, :2].copy().view(np.int64).ravel()
            j = int(keys.searchsorted(key))
            if j == items or keys[j] != key:
                break
            begin = int(item[j - 1, 2]) if j else 0
            found.append(words[pb.HEAD + begin : pb.HEAD + int(item[j, 2])].astype(np.int64))
            node = int(words[pb.PREV]) if j == 0 and words[pb.CONTINUES] else 0
        return np.concatenate(found) if found else none

    def change(self, entries: ListEntries, is_insert: bool) -> None:
        """Enters slots into the lists of trees, or takes them out.

        Raises StoreError: what is to be taken out is not there: the file is damaged.
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

    def _pages(self) -> Pages:
        """Returns the cache as operations see it, with pages that nobody uses."""
        cache = self.file.cache
        fresh = [self.allocate(pb.TABLE) for _ in range(self._fresh)]
        if len(self._freed) < self.file.pages:
            self._freed = np.empty(self.file.pages * 5 // 4, np.int64)
        taken = np.array(fresh, np.int64), self._freed, np.zeros(pb.LISTS, np.int64), np.zeros(PLACES, np.int64)
        return Pages(cache.mem, cache.frame, cache.used, cache.dirty, self._shadow, self._shadow_of, *taken)

    def _take_shadows(self, pages: int) -> None:
        self._shadow: U32 = np.empty(pages * pb.WORDS, np.uint32)
        self._shadow_of: I64 = np.empty((pages, 2), np.int64)

    def _settle(self, pages: Pages) -> None:
        """Does what operations asked for."""
        state = pages.state
        if state[WRONG]:
            raise StoreError(f"{self.file.path} is damaged: a predicate is not where it should be: build it again")
        for page in [*pages.fresh[state[FRESH] :].tolist()[::-1], *pages.freed[state[REUSED] : state[FREED]].tolist()]:
            self.release(page)
        if state[MISSED]:
            self.file.read(int(state[MISSED]))
        elif state[NO_ROOM] == NO_FRESH:
            self._fresh = max(2 * self._fresh, FRESH_LEAST)
        elif state[NO_ROOM] == NO_SHADOW:  # what is freed has room again
            self._take_shadows(2 * len(self._shadow_of))

    def loaded(self, pages: NDArray[np.int64]) -> None:
        """Brings pages into memory that a kernel asks for, as many as there is room for."""
        if len(pages) and int(pages.max()) >= self.file.pages:
            raise damaged(self.file.path, int(pages.max()))
        self.file.cache.load(pages)
