"""Batches of events against a file of pages: the counterpart of ``matching/worker.py``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous
from colmatch.arrays.ranges import ranges_of
from colmatch.events.computed.failed import Failures
from colmatch.events.reader import Reader
from colmatch.kernels import layout
from colmatch.kernels.kinds.pbtree.arrays import SPANS, TASK, VERIFY, WALKS, SearchScratch
from colmatch.kernels.kinds.pbtree.match import search_rows
from colmatch.kernels.kinds.pbtree.verify import verify_pairs
from colmatch.kernels.layout import I64, U32, Batch
from colmatch.matching.pieces import Piece
from colmatch.paged import root_page
from colmatch.paged.store import PageStore, places_of
from colmatch.predicates.keys import to_codes
from colmatch.subscriptions.ids import Ids

OUT_LEAST = 1 << 14  # pairs of row and slot with room at first
VERIFIED_MOST = 4096  # records verified together


class PageMatches(NamedTuple):
    """The matches of a batch: row, slot and its table entry; ordered by row, each once."""

    row: I64
    slot: I64
    entry: U32


class Searcher:
    """The working memory of one matcher for batches. One thread uses it at a time."""

    def __init__(self, pages: PageStore) -> None:
        self.store = pages
        self.counters = np.zeros(layout.N_COUNTERS, np.int64)
        self._scratch: SearchScratch | None = None
        self._out = np.empty((OUT_LEAST, 2), np.int64)
        self._reader: Reader | None = None
        self._read_for: tuple[Any, ...] = ()
        self.failed = Failures()

    def read_entries(self, attributes: Any, literals: Any, lenient: bool, rows: pa.RecordBatch) -> Batch:
        """Reads a batch. ``failed`` then has what failed in it."""
        arguments = attributes, literals, lenient
        if self._reader is None or any(a is not b for a, b in zip(self._read_for, arguments, strict=True)):
            self._reader, self._read_for = Reader(*arguments), arguments
        batch = self._reader.read(rows)
        self.failed = self._reader.failed
        return batch

    def find_matches(self, batch: Batch, rows: int, multi: NDArray[np.uint8]) -> PageMatches:
        """Finds the subscriptions that match rows of a batch."""
        # Order the entries of the batch by row
        col, entry_row = batch.col, batch.row[: batch.col[-1]]
        order = np.argsort(entry_row, kind="stable")
        first = ranges_of(np.bincount(entry_row, minlength=rows))
        attr = np.repeat(np.arange(len(col) - 1), np.diff(col))[order]
        key = batch.key[: col[-1]][order]
        by_row = contiguous(first), contiguous(attr), contiguous(key)
        # Find pairs by counting, and verify where counting is not enough
        pairs = self._search(by_row, rows)
        row, slot = pairs[:, 0], pairs[:, 1]
        needed = self.store.needed_counts()
        entry = self.store.slots(slot)
        doubtful = needed[slot] & VERIFY > 0
        if doubtful.any():
            keep = ~doubtful
            keep[doubtful] = self._verify(row[doubtful], slot[doubtful], entry[doubtful], by_row, multi)
            row, slot, entry = row[keep], slot[keep], entry[keep]
        # Keep one pair for each row and subscription
        place = places_of(entry)
        order = np.lexsort((place, row))
        row, place = row[order], place[order]
        new = np.ones(len(row), bool)
        new[1:] = (row[1:] != row[:-1]) | (place[1:] != place[:-1])
        kept = order[new]
        self.counters[layout.MATCHES] += len(kept)
        return PageMatches(row[new], slot[kept], entry[kept])

    def _search(self, rows: tuple[I64, I64, I64], count: int) -> I64:
        """Returns the pairs of row and slot with a complete count."""
        # Prepare the working memory
        needed, top = contiguous(self.store.needed_counts()), self.store.root(root_page.TREES_TOP)
        scratch = self._room(len(needed), int(np.diff(rows[0]).max(initial=0)))
        state = np.array([0, count, -1, 0, 0, 0, 0], np.int64)
        cache, parts = self.store.file.cache, []
        visits, reads = int(self.counters[layout.NODES]), cache.reads
        # Search, loading missing pages and emptying the full output
        while state[0] < count:
            search_rows(
                (cache.mem, cache.frame, cache.used), top, needed, rows, state, scratch, self._out, self.counters
            )
            if state[5]:
                self.store.load_pages(scratch.wanted[: state[5]])
            elif state[0] < count:
                parts.append(self._out[: state[4]].copy())
                if state[3] > len(self._out):
                    self._out = np.empty((int(state[3]) * 2, 2), np.int64)
                state[4] = 0
        parts.append(self._out[: state[4]].copy())
        cache.hits += int(self.counters[layout.NODES]) - visits - (cache.reads - reads)
        return np.concatenate(parts)

    def _room(self, slots: int, entries: int) -> SearchScratch:
        scratch, tasks = self._scratch, WALKS * (entries + 1)
        if scratch is None or len(scratch.left) != slots or len(scratch.wanted) < tasks:
            self._scratch = scratch = SearchScratch(
                np.empty((tasks, TASK), np.int64),
                np.empty(slots, np.uint8),
                np.zeros((SPANS, 2), np.int64),
                np.empty(slots + 1, np.uint32),
                np.empty(tasks, np.int64),
            )
        return scratch

    def _verify(
        self, row: I64, slot: I64, entry: U32, rows: tuple[I64, I64, I64], multi: NDArray[np.uint8]
    ) -> NDArray[np.bool_]:
        """Checks whether pairs are true, by the records of the subscriptions."""
        distinct, which = np.unique(places_of(entry), return_inverse=True)
        true = np.zeros(len(row), bool)
        for begin in range(0, len(distinct), VERIFIED_MOST):
            # Read some of the records
            part = np.flatnonzero((which >= begin) & (which < begin + VERIFIED_MOST))
            places = distinct[begin : begin + VERIFIED_MOST]
            subscriptions = self.store.to_keys(places)
            predicates, codes = to_codes(subscriptions.predicates, subscriptions.keys, multi)
            # Find the conjunction of each slot
            own = subscriptions.slots[subscriptions.is_of_conjunction].astype(np.int64)
            order = np.argsort(own)
            conj = order[np.searchsorted(own[order], slot[part])]
            # Verify the pairs, ordered by row
            by_row = np.argsort(row[part], kind="stable")
            held, width = np.zeros(len(part), np.uint8), int(np.diff(rows[0]).max(initial=0)) + 1
            scratch = np.zeros(max(len(multi), 1), np.uint32), np.empty(width, np.uint32), np.empty(width, np.uint32)
            pairs = contiguous(row[part][by_row]), contiguous(conj[by_row])
            verify_pairs(predicates, codes, rows, pairs, scratch, held, self.counters)
            true[part[by_row]] = held > 0
        return true


def piece_of(found: PageMatches, rows: int, offset: int, pages: PageStore, memory: Any) -> Piece:
    """Returns the matches of a batch as a ``Piece``, from which all forms of results are made."""
    place = ranges_of(np.bincount(found.row, minlength=rows))
    if not pages.root(root_page.TEXT_IDS):
        ids = np.ascontiguousarray(found.entry[:, :2]).view(np.int64).ravel()
        return Piece(offset, place, ids, None, memory)
    distinct, which = np.unique(places_of(found.entry), return_inverse=True)
    names = pages.to_keys(distinct).ids if len(distinct) else Ids(pa.array([], pa.string()))
    return Piece(offset, place, which.astype(np.uint32), names, memory)
