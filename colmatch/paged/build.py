"""A file of pages built at once, bottom-up, which replaces any file of the same name."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous
from colmatch.arrays.ranges import put_rows
from colmatch.errors import SubscriptionError, show_value
from colmatch.events.reader import texts_of
from colmatch.kernels.ids import hash_texts
from colmatch.kernels.kinds.pbtree import arrays as pb
from colmatch.kernels.kinds.pbtree import bulk
from colmatch.kernels.kinds.pbtree.arrays import ROOT as ROOT_KIND
from colmatch.kernels.layout import I64, U8, U32, Codes, Predicates
from colmatch.kinds.pbtree import ListEntries, entries_of_keys, fill_pages, table_pages
from colmatch.paged import root_page, store
from colmatch.paged.cache import PAGE, checksum, write_error
from colmatch.paged.file import ROOT
from colmatch.paged.header import headers
from colmatch.paged.records import KeyedSubscriptions, pack
from colmatch.predicates.columns import take
from colmatch.predicates.keys import keys_of
from colmatch.store.replacing import replacing
from colmatch.subscriptions.ids import Ids
from colmatch.subscriptions.tags import NO_TAGS, Tags

PIECE = 1 << 16  # subscriptions packed into records at once
FIRST = ROOT + 1  # the first page of trees


def hashes_of(texts: pa.StringArray) -> I64:
    """Returns the keys of texts in trees: signed 64-bit hashes."""
    keys = np.empty(len(texts), np.int64)
    hash_texts(*texts_of(texts), keys)
    return contiguous(keys)


def to_keys(
    preds: Predicates,
    codes: Codes,
    ids: Ids,
    tags: Tags,
    texts: pa.LargeStringArray | None,
    slots: NDArray[np.uint32] | None = None,
) -> KeyedSubscriptions:
    """Returns subscriptions by key. Without ``slots``, their slots are numbered from 0."""
    sizes = np.bincount(preds.owner, minlength=len(ids))
    if slots is None:
        slots = np.arange(int(np.maximum(sizes, 1).sum()), dtype=np.uint32)
    return KeyedSubscriptions(preds, keys_of(preds, codes), ids, tags, texts, slots, sizes)


def id_keys(ids: Ids) -> I64:
    """Returns the key of each id in the tree of ids."""
    if ids.numbers is not None:
        return ids.numbers
    return hashes_of(ids.array)


def all_entries(some: KeyedSubscriptions) -> ListEntries:
    """Returns the entries of subscriptions in all trees. Needed counts are for ``some.slots``."""
    first, keys, here = some.slots[some.slot_first[:-1]], id_keys(some.ids), some.is_of_conjunction
    own, needed = entries_of_keys(some.predicates, some.keys, some.slots[here]), np.zeros(len(here), np.uint8)
    needed[here] = own.needed
    tag_key, tag_slot = check_tags(some.tags)[some.tags.tag], first[some.tags.number]
    return ListEntries(
        np.concatenate(
            [
                own.tree,
                np.full(len(keys), pb.IDS * pb.LISTS + pb.EQUAL),
                np.full(len(tag_key), pb.TAGS * pb.LISTS + pb.EQUAL),
            ]
        ),
        np.concatenate([own.key, keys, tag_key]),
        np.concatenate([own.slot, first, tag_slot]),
        needed,
    )


def check_tags(tags: Tags) -> I64:
    """Returns the key of each tag in the tree of tags.

    Raises SubscriptionError: two tags have the same key.
    """
    if not len(tags):
        return np.empty(0, np.int64)
    keys = hashes_of(pa.array(list(tags.names), pa.string()))
    order = np.argsort(keys, kind="stable")
    same = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    if len(same):
        raise make_key_error(list(tags.names)[order[same[0] + 1]])
    return keys


def make_key_error(tag: str) -> SubscriptionError:
    """Returns the error for two tags with the same key, a chance of one in 2**64."""
    return SubscriptionError(
        f"tag {show_value(tag)} has the same key of 64 bits as another: nothing was changed; another name has another key"
    )


def slot_entries(some: KeyedSubscriptions, page: I64, word: I64) -> U32:
    """Returns the table entries of ``some.slots``, from the page and word of each record."""
    owner = np.repeat(np.arange(len(some.sizes)), np.maximum(some.sizes, 1))
    entry = np.empty((len(owner), store.SLOT_WORDS), np.uint32)
    entry[:, :2] = np.ascontiguousarray(id_keys(some.ids)[owner]).view(np.uint32).reshape(-1, 2)
    entry[:, 2], entry[:, 3] = page[owner], word[owner]
    return entry


def part_of(some: KeyedSubscriptions, begin: int, end: int) -> KeyedSubscriptions:
    """Returns the subscriptions ``begin:end``."""
    preds, here = some.predicates, np.zeros(len(some.sizes), bool)
    here[begin:end] = True
    c, d = np.searchsorted(preds.owner, [begin, end]).tolist()
    cut = take(preds, np.arange(c, d))
    return KeyedSubscriptions(
        cut._replace(owner=cut.owner - np.uint32(begin)),
        some.keys.part(int(preds.first[c]), int(preds.first[d])),
        some.ids.slice(begin, end),
        some.tags.filter(here) if len(some.tags) else NO_TAGS,
        None if some.texts is None else some.texts.slice(begin, end - begin),
        some.slots[slice(*some.slot_first[[begin, end]])],
        some.sizes[begin:end],
    )


class _PageWriter:
    """Pages that are appended block by block."""

    def __init__(self) -> None:
        self.count = FIRST
        self.blocks: list[NDArray[np.uint32]] = []

    def add(self, words: NDArray[np.uint32]) -> int:
        """Appends whole pages. Returns the number of the first page."""
        first = self.count
        self.blocks.append(words)
        self.count += len(words) // pb.WORDS
        return first

    def table(self, entry: U32, each: int) -> int:
        """Appends a table. Returns its first page."""
        mem = np.empty(table_pages(len(entry), each) * pb.WORDS, np.uint32)
        used, top = bulk.fill_table(mem, self.count, contiguous(entry), each)
        self.add(mem[: used * pb.WORDS])
        return int(top)

    def chain(self, words: U32) -> int:
        """Appends words as a chain of pages. Returns the first page."""
        count = max(-(-len(words) // pb.CHILDREN), 1)
        mem = np.zeros((count, pb.WORDS), np.uint32)
        filled_words = np.zeros(count * pb.CHILDREN, np.uint32)
        filled_words[: len(words)] = words
        mem[:, pb.HEAD :] = filled_words.reshape(count, pb.CHILDREN)
        mem[:, pb.KIND], mem[:, pb.SIDS] = pb.BLOB, pb.CHILDREN
        mem[-1, pb.SIDS] = len(words) - (count - 1) * pb.CHILDREN
        mem[:-1, pb.NEXT] = self.count + 1 + np.arange(count - 1)
        return self.add(mem.ravel())

    def records(self, some: KeyedSubscriptions) -> tuple[I64, I64]:
        """Appends records. Returns the page and word of each."""
        page, word = np.zeros(len(some.ids), np.int64), np.zeros(len(some.ids), np.int64)
        for begin in range(0, len(some.ids), PIECE):
            end = min(begin + PIECE, len(some.ids))
            words, first = pack(part_of(some, begin, end))
            length = np.diff(first)
            # Place the records that fit in a page
            base = self.count
            count = bulk.place_records(length, page[begin:end], word[begin:end], base)
            # Write the headers of the pages
            mem = np.zeros((count, pb.WORDS), np.uint32)
            mem[:, pb.KIND] = pb.RECORDS
            here = np.flatnonzero(page[begin:end])
            number = page[begin:end][here] - base
            mem[:, pb.ITEMS] = np.bincount(number, minlength=count)
            mem[:, pb.SIDS] = np.bincount(number, length[here], minlength=count).astype(np.uint32)
            # Copy the words of all these records
            flat = mem.ravel()
            at = number * pb.WORDS + word[begin:end][here]
            put_rows(words, first[:-1][here], length[here], at, flat)
            self.add(flat)
            # Write longer records as chains
            for i in np.flatnonzero(page[begin:end] == 0).tolist():
                page[begin + i] = self.chain(words[first[i] : first[i + 1]])
        return page, word


class BuiltPages(NamedTuple):
    """A complete file: all its pages but the headers."""

    blocks: list[NDArray[np.uint32]]
    total: int  # pages of the file


def build_pages(some: KeyedSubscriptions, trees: int, texts: dict[int, bytes], updates: int) -> BuiltPages:
    """Builds the pages of subscriptions.

    trees : number of trees of attributes. texts : descriptions of the subscriptions, by chain
    """
    # Build the trees
    entries = all_entries(some)
    pages = _PageWriter()
    tree_count = trees + pb.OWN_TREES
    tree_pages = fill_pages(entries.tree, entries.key, entries.slot, tree_count, FIRST)
    needed: U8 = entries.needed
    del entries
    pages.add(tree_pages.page)
    # Append records and tables
    page, word = pages.records(some)
    top = pages.table(tree_pages.entry, pb.TREES)
    slots = np.zeros((len(some.slots), store.SLOT_WORDS), np.uint32)
    slots[some.slots] = slot_entries(some, page, word)
    slots_top = pages.table(slots, store.SLOTS_OF_PAGE)
    bytes_ = np.zeros(-(-len(needed) // store.NEEDED_OF_PAGE) * store.NEEDED_OF_PAGE, np.uint8)
    bytes_[some.slots] = needed
    needed_top = pages.table(bytes_.view(np.uint32).reshape(-1, pb.CHILDREN), 1)
    # Fill in the root page
    root = np.zeros(pb.WORDS, np.uint32)
    root[pb.KIND] = ROOT_KIND
    root[root_page.TREES_TOP], root[root_page.SLOTS_TOP], root[root_page.NEEDED_TOP] = top, slots_top, needed_top
    root[root_page.SLOT_COUNT], root[root_page.SUBSCRIPTIONS] = len(some.slots), len(some.ids)
    root[root_page.UPDATES], root[root_page.UPDATES_HIGH] = updates & 0xFFFFFFFF, updates >> 32
    root[root_page.TEXT_IDS] = some.ids.numbers is None
    root[root_page.TREE_COUNT] = tree_count
    for place, data in texts.items():
        words, size = root_page.words_of(data, place)
        root[place : place + 3] = pages.chain(words), size, 1
    return BuiltPages([root, *pages.blocks], pages.count)


def write(path: str, pages: BuiltPages, generation: int, update_number: int) -> None:
    """Writes a file over any old one, in one step. Readers of the old file are not disturbed.

    generation : higher than the generations of the old file and its log

    Raises StoreError: the file cannot be written; ``path`` is as it was.
    """
    number = ROOT
    try:
        with replacing(path) as file:
            file.write(headers(generation, update_number, pages.total))
            for block in pages.blocks:
                words = block.reshape(-1, pb.WORDS)
                words[:, 2], words[:, 3] = update_number & 0xFFFFFFFF, update_number >> 32
                view = block.reshape(-1).view(np.uint8).data
                sums = [checksum(view[i * PAGE : (i + 1) * PAGE], number + i) for i in range(len(words))]
                words[:, 0] = sums
                file.write(view)
                number += len(words)
    except OSError as error:
        raise write_error(path, error) from error
