"""Some of the subscriptions of a matcher: events are matched among these alone.

All others count as deleted, so whatever finds matches, or the best of them, needs not to know.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import sealed
from colmatch.kernels.layout import U64
from colmatch.subscriptions.ids import Ids, ids_among
from colmatch.updates.deleted import Deleted
from colmatch.updates.versions import Version


class Subset:
    """Some subscriptions, by id, prepared to be matched among: ``Matcher.subset`` makes it.

    It follows its matcher: an id counts for the subscription that has it when a batch begins, if
    any has.
    """

    __slots__ = ("_ids", "_known")

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._known: tuple[Version, Version] | None = None  # a version, and what was left of it

    def __len__(self) -> int:
        return len(self._ids)

    def __repr__(self) -> str:
        return f"Subset({len(self):,} ids)"

    def of(self, version: Version) -> Version:
        """Returns a version in which no other subscription is left."""
        known = self._known  # read once, since several threads may ask
        if known is None or known[0] is not version:
            known = version, narrowed(version, self._numbers(version))
            self._known = known
        return known[1]

    def _numbers(self, version: Version) -> NDArray[np.int64]:
        if version.ids.type != self._ids.type:
            return np.empty(0, np.int64)  # all that there were are gone, and others have come
        numbers, _ = version.numbers_of(self._ids)
        return numbers[numbers >= 0]


def subset_of(ids: Any, version: Version) -> Subset:
    """Returns what a caller says of ids, which may be a subset already.

    Raises
    ------
    SubscriptionError : it is no list of ids, or they are of another type
    """
    return ids if isinstance(ids, Subset) else Subset(ids_among(ids, version.ids.type))


def narrowed(version: Version, numbers: NDArray[np.int64]) -> Version:
    """Returns a version of which some numbers are left, which are of subscriptions."""
    others = np.ones(-(-len(version.ids) // 64) * 64, bool)
    others[numbers] = False
    gone = tuple(
        int(np.count_nonzero(others[base : base + segment.size]))
        for segment, base in zip(version.segments, version.bases, strict=True)
    )
    bits: U64 = sealed(np.packbits(others, bitorder="little").view(np.uint64))
    return version.changed(
        deleted=Deleted(bits),
        living=tuple(segment.size - others for segment, others in zip(version.segments, gone, strict=True)),
        found_dead=gone,
        gone=sum(gone),
        narrowed=True,
    )
