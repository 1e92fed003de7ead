"""Subsets of a matcher's subscriptions: events are matched among these alone.

All other subscriptions count as deleted, so the code that finds matches needs no change. Segments
without subscriptions of the subset are left out.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous, seal
from colmatch.errors import OptionError, show_value
from colmatch.kernels.segments.deleted_bits import clear_bits
from colmatch.show.names import Listed
from colmatch.subscriptions.ids import Ids, ids_among
from colmatch.subscriptions.tags import tags_asked
from colmatch.updates.deleted import DeletedNumbers
from colmatch.updates.versions import Version


class SubsetVersion(NamedTuple):
    """The fields of a version that change if all but some subscriptions count as deleted."""

    deleted: DeletedNumbers
    alive: tuple[int, ...]
    stale: tuple[int, ...]
    gone: int
    narrowed: bool = True


class SubsetSource(NamedTuple):
    """The matcher of a subset."""

    now: Callable[[], Version]
    match: Callable[..., Any]


class Subset(Listed):
    """Some subscriptions of a matcher, made by ``Matcher.subset`` and passed as ``ids=``.

    A subset follows its matcher: a batch sees the subscriptions that have these ids or tags when it
    begins.

    Parameters
    ----------
    ids : ids of the subscriptions; None for all
    tags : sets of tags. A subscription needs any tag of each set
    source : where it finds its subscriptions and matches; None without a matcher

    Examples
    --------
    >>> mine = matcher.subset(["beach", "gone"])
    >>> len(mine), mine.ids.to_pylist(), mine.match(offers).num_rows
    (1, ['beach'], 2)
    """

    __slots__ = ("_ids", "_known", "_source", "_tags")
    _inner = frozenset(("criteria", "of", "with_tags"))

    def __init__(self, ids: Ids | None, tags: tuple[frozenset[str], ...], source: SubsetSource | None = None) -> None:
        self._ids = ids
        self._tags = tags
        self._source = source
        self._known: tuple[weakref.ref[Version], SubsetVersion] | None = None

    @property
    def criteria(self) -> tuple[Ids | None, tuple[frozenset[str], ...]]:
        """The ids and the sets of tags of the subset."""
        return self._ids, self._tags

    @property
    def ids(self) -> pa.Array:
        """The ids that have a subscription now, as an int64 or string array, in their order.

        Raises OptionError: the subset was unpickled, so that it has no matcher.
        """
        version = self._from().now()
        return version.ids.take(version.numbers_with(*self.criteria))

    def __len__(self) -> int:
        return len(self.ids)

    def __bool__(self) -> bool:
        return True  # a subset without subscriptions is not the absence of one

    def match(
        self, events: Any, ranges: Any = None, *, invalid: Any = "skip", keep: Any = None, now: Any = None
    ) -> Any:
        """Matches events among these subscriptions, as ``Matcher.match`` does.

        Raises
        ------
        OptionError : the subset was unpickled, so that it has no matcher
        EventError : as from ``Matcher.match``
        """
        return self._from().match(events, ranges, invalid=invalid, keep=keep, ids=self, now=now)

    def _from(self) -> SubsetSource:
        if self._source is None:
            raise OptionError("this subset was unpickled and has no matcher: pass it as ids= to one")
        return self._source

    def __repr__(self) -> str:
        parts = [] if self._ids is None else [f"{len(self._ids):,} ids"]
        parts += [f"tags={show_value(sorted(tags))}" for tags in self._tags]
        return f"Subset({', '.join(parts)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Subset, (self._ids, self._tags)

    def of(self, version: Version) -> Version:
        """Returns a version with only the subscriptions of the subset."""
        memo = self._known  # read once, since other threads may replace it
        if memo is None or memo[0]() is not version:
            # The reference is weak, so that a replaced version can be freed
            memo = weakref.ref(version), narrow_version(version, version.numbers_with(*self.criteria))
            self._known = memo
        return version.with_changes(**memo[1]._asdict())

    def with_tags(self, tags: frozenset[str]) -> Subset:
        """Returns the subset of these subscriptions with any of some tags."""
        return Subset(self._ids, (*self._tags, tags), self._source)


def subset_of(ids: Any, tags: Any, version: Version, source: SubsetSource | None = None) -> Subset | None:
    """Returns the subset for a caller's ids and tags, or None for all if neither is given.

    source : of a new subset

    Raises
    ------
    SubscriptionError : ``ids`` is no list of ids, or the ids are of another type
    OptionError : ``tags`` is no list of strings
    """
    tag_set = None if tags is None else tags_asked(tags)
    if isinstance(ids, Subset):
        return ids if tag_set is None else ids.with_tags(tag_set)
    if ids is None:
        return None if tag_set is None else Subset(None, (tag_set,), source)
    type = version.id_type if any(version.alive) else None  # an empty matcher takes ids of either type
    return Subset(ids_among(ids, type), () if tag_set is None else (tag_set,), source)


def narrow_version(version: Version, numbers: NDArray[np.int64]) -> SubsetVersion:
    """Returns the changed fields of a version with only some subscriptions.

    numbers : numbers of these subscriptions, ascending, once each
    """
    bits = np.full(-(-len(version.ids) // 64), -1, np.int64).view(np.uint64)
    clear_bits(contiguous(numbers), bits)
    ends = np.append(np.array(version.bases, np.int64), len(version.ids))
    alive = np.diff(np.searchsorted(numbers, ends)).tolist()
    gone = [segment.size - count for segment, count in zip(version.segments, alive, strict=True)]
    return SubsetVersion(DeletedNumbers(seal(bits)), tuple(alive), tuple(gone), len(version.ids) - len(numbers))
