"""The growing segment takes inserts and deletes one by one.

It is small, so each update makes new arrays. No update waits for readers of the old arrays, and an
interrupted update has changed nothing.

Its kind is ``scan``. With ``construction="dynamic"``, it is the requested kind, with the inserts
and deletes of its paper. Microseconds for 512 ``dense`` subscriptions: an insert, then an event of
a batch of 4,096, reading included:

======  ====  ======  ======  ========  =======  =======
..      scan  betree  bestar  pstbloom  psthash  opindex
======  ====  ======  ======  ========  =======  =======
insert   160     232     231       243      228      231
event    0.3     0.5     0.4       1.5      2.1      7.2
======  ====  ======  ======  ========  =======  =======

With 64 and 256 subscriptions, the order is the same. ``bitslice`` has no inserts. Measured with
``asv_benchmarks/growing.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import freeze
from colmatch.arrays.ranges import members, ranges_of
from colmatch.kernels.layout import Codes, Predicates
from colmatch.kinds.base import Built
from colmatch.kinds.registry import FEWEST, KINDS
from colmatch.kinds.settings import Settings
from colmatch.kinds.statistics import Sample
from colmatch.predicates.columns import concat
from colmatch.predicates.store import PredicateStore, can_follow
from colmatch.updates import labels
from colmatch.updates.combined import combine
from colmatch.updates.segments import Segment


def for_few(requested: Settings) -> Settings:
    """Returns the requested settings if they provide inserts, else the settings of ``scan``."""
    takes = requested.kind in KINDS and KINDS[requested.kind].insert is not None
    if takes and getattr(requested, "construction", None) != "bulk":
        return requested
    return FEWEST.settings.under(requested.dnf_budget)


FEW_SUBSCRIPTIONS = 16  # a segment of up to this many subscriptions is not rebuilt: they say little about others


class GrowingSegment(Segment):
    """A segment that takes inserts: each insert makes another segment.

    Its codes are labels. Segments that grow out of one another share the memory of predicates. Each
    has a part of the memory that does not change.

    A kind may estimate from a sample (``grows_by_sample``). Its estimates are for the first
    subscriptions and their attributes alone. So the segment is rebuilt when it has grown by half.
    """

    _store: PredicateStore | None = None
    _first = 0  # subscriptions at the start

    @staticmethod
    def begin(
        predicates: Predicates, codes: Codes, requested: Settings, size: int, seen: Callable[[], Sample | None]
    ) -> GrowingSegment:
        """Indexes the first predicates, which have dense codes.

        seen : returns the hits of a sample of events by key, or None
        """
        settings = for_few(requested)
        kind = KINDS[settings.kind]
        predicates, codes = labels.with_labels(predicates, codes)
        sample = seen() if kind.grows_by_sample(settings) else None
        arrays, predicates = kind.build(predicates, codes, sample, settings)
        segment = GrowingSegment(codes, freeze(predicates), Built(kind, settings, freeze(arrays)), size)
        segment._first = size
        return segment

    @staticmethod
    def from_saved(segment: Segment) -> GrowingSegment:
        """Returns the growing segment that was saved as ``segment``."""
        return GrowingSegment(segment.codes, segment.predicates, segment.index, segment.size)

    def with_more(
        self,
        predicates: Predicates,
        codes: Codes,
        more: int,
        left: Callable[[], NDArray[np.bool_]],
        seen: Callable[[], Sample | None],
    ) -> GrowingSegment:
        """Returns the segment with more subscriptions, numbered after all others.

        predicates, codes : dense and read-only; subscriptions count from 0
        more : number of new subscriptions
        left : returns whether each number of the segment is of a subscription
        seen : as for ``begin``
        """
        size = self.size + more
        kind, settings = self.index.kind, self.index.settings
        outgrown = kind.grows_by_sample(settings) and size > max(FEW_SUBSCRIPTIONS, self._first + self._first // 2)
        with suppress(labels.NoRoomError):
            if not outgrown:
                return self._insert(predicates, codes, size)
        both = [self, Segment(codes, predicates, self.index, more)]
        dense = combine(both, [0, self.size], np.concatenate([left(), np.ones(more, bool)]))
        return GrowingSegment.begin(dense.by_subscription(), dense.codes, settings, size, seen)

    def _insert(self, predicates: Predicates, codes: Codes, size: int) -> GrowingSegment:
        """Returns the segment with more, by the kind's own insert. Raises NoRoomError."""
        joined, label = labels.join(self.codes, codes)
        begin = len(self.predicates.owner)
        together = self._append(predicates, codes, label)
        insert = self.index.kind.insert
        assert insert is not None
        arrays = freeze(insert(self.index.arrays, together, joined, begin, len(together.owner)))
        return self._next(joined, together, self.index._replace(arrays=arrays), size)

    def without(self, numbers: NDArray[np.int64]) -> GrowingSegment:
        """Returns the segment without the subscriptions of some ascending numbers."""
        owner = self.predicates.owner
        targets = numbers.astype(np.uint32)  # of the owners' type, or all owners would be converted
        start, end = np.searchsorted(owner, targets), np.searchsorted(owner, targets, "right")
        few = len(targets) == 1
        conjunctions = np.arange(start[0], end[0]) if few else members(start, ranges_of(end - start))
        delete = self.index.kind.delete
        assert delete is not None
        arrays = freeze(delete(self.index.arrays, self.predicates, self.codes, conjunctions))
        return self._next(self.codes, self.predicates, self.index._replace(arrays=arrays), self.size)

    def with_codes(self, codes: Codes) -> GrowingSegment:
        return self._next(codes, self.predicates, self.index, self.size)

    def apart(self) -> GrowingSegment:
        segment = self._next(self.codes, self.predicates, self.index, self.size)
        segment._store = None
        return segment

    def _append(self, more: Predicates, codes: Codes, label: NDArray[np.uint32]) -> Predicates:
        """Returns the predicates with more, in the same memory if it has room."""
        if not can_follow(self.predicates, more):
            self._store = None
            more = labels.relabel_predicates(more, codes, label)
            return freeze(concat([self.predicates, more._replace(owner=more.owner + np.uint32(self.size))]))
        if self._store is None:
            self._store = PredicateStore()
        return self._store.extended(self.predicates, more, codes, label, self.size)

    def _next(self, codes: Codes, predicates: Predicates, index: Built, size: int) -> GrowingSegment:
        segment = GrowingSegment(codes, predicates, index, size)
        segment._store, segment._first = self._store, self._first
        return segment
