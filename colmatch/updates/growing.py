"""The growing segment takes inserts and deletes one by one, in the manner of its kind of index.

It is small, so each update gets arrays of its own: nobody has to wait for those who read the old
ones, and an update that is given up half way has changed nothing.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import freeze
from colmatch.arrays.ranges import members, ranges_of
from colmatch.indexing.base import Built
from colmatch.indexing.registry import KINDS, find
from colmatch.indexing.settings import Settings
from colmatch.kernels.layout import Codes, Predicates
from colmatch.updates import labels
from colmatch.updates.merging import merged
from colmatch.updates.predicates import GrowingPredicates
from colmatch.updates.segments import Segment

FEWEST = "scan"  # the kind for few subscriptions whose own kind takes no inserts: no other has so little to keep


def for_few(asked: Settings) -> Settings:
    """Returns the kind that was asked for if it takes inserts, else that for few subscriptions."""
    takes = asked.kind in KINDS and find(asked.kind).insert is not None
    return asked if takes else find(FEWEST).settings.under(asked.dnf_budget)


class GrowingSegment(Segment):
    """A segment that takes inserts: each gives another one.

    Its codes are labels. What was appended to its predicates lies behind what older ones see.
    """

    def __init__(
        self, codes: Codes, predicates: Predicates, index: Built, size: int, store: GrowingPredicates | None = None
    ) -> None:
        super().__init__(codes, predicates, index, size)
        self._store = store or GrowingPredicates(predicates)

    @staticmethod
    def begun(predicates: Predicates, codes: Codes, asked: Settings, size: int) -> GrowingSegment:
        """Indexes the first predicates, which have dense codes."""
        settings = for_few(asked)
        kind = find(settings.kind)
        predicates, codes = labels.with_labels(predicates, codes)
        arrays, predicates = kind.build(predicates, codes, None, settings)
        return GrowingSegment(codes, freeze(predicates), Built(kind, settings, freeze(arrays)), size)

    @staticmethod
    def opened(segment: Segment) -> GrowingSegment:
        """Returns the growing segment that was saved as ``segment``."""
        return GrowingSegment(segment.codes, segment.predicates, segment.index, segment.size)

    def with_more(self, predicates: Predicates, codes: Codes, more: int) -> GrowingSegment:
        """Returns the segment with more subscriptions, whose numbers come after all others.

        predicates, codes : dense; subscriptions count from 0, and there are ``more`` of them
        """
        size = self.size + more
        with suppress(labels.NoRoomError):
            joined, label = labels.join(self.codes, codes)
            begin = len(self.predicates.owner)
            self._store.cut(self.predicates)
            self._store.append(labels.relabelled(predicates, codes, label), self.size)
            insert = self.index.kind.insert
            assert insert is not None
            together = self._store.view()
            arrays = freeze(insert(self.index.arrays, together, begin, len(together.owner)))
            return GrowingSegment(joined, together, self.index._replace(arrays=arrays), size, self._store)
        dense = merged([self, Segment(codes, predicates, self.index, more)], [0, self.size], len(codes.multi), None)
        return GrowingSegment.begun(*dense, self.index.settings, size)

    def without(self, numbers: NDArray[np.int64]) -> GrowingSegment:
        """Returns the segment without some subscriptions, by number."""
        owner = self.predicates.owner
        wanted = np.sort(numbers).astype(np.uint32)  # of the same type, or all owners would be converted
        start = np.searchsorted(owner, wanted)
        conjunctions = members(start, ranges_of(np.searchsorted(owner, wanted, "right") - start))
        delete = self.index.kind.delete
        assert delete is not None
        arrays = freeze(delete(self.index.arrays, self.predicates, conjunctions))
        return GrowingSegment(self.codes, self.predicates, self.index._replace(arrays=arrays), self.size, self._store)

    def with_codes(self, codes: Codes) -> GrowingSegment:
        return GrowingSegment(codes, self.predicates, self.index, self.size, self._store)
