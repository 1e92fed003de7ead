"""Rows where a computed value or a condition on elements fails, and what depends on it there.

``b <> 0 AND a / b > 1`` is false where b is 0, whatever a / b is. So such a row is an error only if
a match depends on the value. An expression has no NOT but within its predicates. If it is true
while all predicates on the value are false, it is true for every value. If it is false while all of
them are true, it is false for every value. With NULL as the value, it has the same truth. So the
matches need no change, whatever the kind.

Two indexes answer both questions. They have only the subscriptions that use values which fail in a
batch. In such a row, a value that fails has the key ``KEY_MAX``. In one index, the intervals of all
predicates on these values contain that key, so the predicates are true. In the other, none does. A
real value may have that key: the largest BIGINT. It counts as the number below in rows where
another value fails.

A condition on elements is a literal of its attribute, and some literals of a row may be in doubt.
The row then has the key above each of these, which is no key of a literal.
"""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous, freeze
from colmatch.arrays.ranges import ranges_of, sizes_of
from colmatch.errors import EventError, show_value
from colmatch.events.computed.failed import Failures
from colmatch.given.schema import Attributes, Role
from colmatch.kernels import _forks
from colmatch.kernels.layout import ATTR_MASK, FLAG_NONE, FLAG_RUN, KEY_MAX, Batch, Predicates
from colmatch.kinds.plan import AutoSettings
from colmatch.predicates.columns import take
from colmatch.predicates.keys import KeyIntervals, keys_of, to_codes
from colmatch.updates.labels import without_labels
from colmatch.updates.segments import Segment, build_segment
from colmatch.updates.versions import Version

KEPT = 16  # sets of attributes with bounds that a segment keeps

Bounds = tuple[Segment, Segment]
_lock = _forks.lock()
_known: WeakKeyDictionary[Segment, dict[bytes, Bounds | None]] = WeakKeyDictionary()


class Failing:
    """The values that fail in a batch.

    Attributes
    ----------
    attributes : attributes of these values, ascending
    rows : rows where any value fails, ascending
    """

    def __init__(self, failures: Failures, attributes: Attributes, rows: int) -> None:
        values, conditions = failures
        self._names = {
            i: a.path[0] for i, a in enumerate(attributes) if a.role is Role.COMPUTED and a.path[0] in values
        }
        self._failures = failures
        self.attributes = np.array(sorted({*self._names, *conditions}), np.int64)
        # Make an entry for each row of a value, and for each literal in doubt
        failed_rows = [np.flatnonzero(np.broadcast_to(values[name].rows, rows)) for name in self._names.values()]
        row = [*failed_rows, *(doubts.row for doubts in conditions.values())]
        key = [np.full(len(part), KEY_MAX) for part in failed_rows]
        key += [doubts.number + 1 for doubts in conditions.values()]
        none, size = np.empty(0, np.int64), list(map(len, row))
        self._row, self._key = (np.concatenate([none, *parts]) for parts in (row, key))
        self._attribute = np.repeat(np.array([*self._names, *conditions], np.int64), size)
        self.rows = np.unique(self._row)

    def mark_entries(self, entries: Batch, rows: NDArray[np.int64]) -> tuple[Batch, NDArray[np.int64]]:
        """Returns the entries of some rows, and one more for all that fails.

        The rows get the numbers from 0. The second array (E) has the old place of each entry, -1
        for new entries.
        """
        # Find the entries of the rows
        number = np.full(int(entries.rows[0]), -1, np.int64)
        number[rows] = np.arange(len(rows))
        count = int(entries.col[-1])
        attribute = np.repeat(np.arange(len(entries.col) - 1), np.diff(entries.col))
        source = np.flatnonzero(number[entries.row[:count]] >= 0)
        # Add an entry for all that fails
        more = number[self._row] >= 0
        all_of = np.concatenate([attribute[source], self._attribute[more]])
        row = np.concatenate([number[entries.row[source]], number[self._row[more]]])
        is_largest = (entries.key[source] == KEY_MAX) & np.isin(attribute[source], self.attributes)
        key = np.concatenate([entries.key[source] - is_largest, self._key[more]])
        source = np.concatenate([source, np.full(int(more.sum()), -1)])
        # Order all entries by attribute and row
        order = np.lexsort((row, all_of))
        col = ranges_of(np.bincount(all_of, minlength=len(entries.col) - 1))
        batch = Batch(np.array([len(rows)]), col, row[order].astype(np.int32), key[order])
        return freeze(batch), source[order]

    def error(self, row: int, version: Version, number: int) -> EventError:
        """Returns the error for a row where a match depends on a failing value.

        number : number of the subscription that depends on it
        """
        id = version.ids.array[number].as_py()
        return EventError(f"{self.reason(row, version, number)} (subscription {show_value(id)})", event=row)

    def reason(self, row: int, version: Version, number: int | None = None) -> str:
        """Returns the reason why the match of a row is in doubt.

        number : number of the subscription that is in doubt; None for any
        """
        used = set[int]()
        if number is not None:
            segment = version.segments[version.holder(number)]
            used = _find_used(segment.predicates, number - version.bases[version.holder(number)])
        wrong = self._attribute[self._row == row].tolist()
        attribute = next((i for i in wrong if i in used), wrong[0])
        name = self._names.get(attribute)
        if name is None:
            doubts = self._failures.conditions[attribute]
            return doubts.reason(int(np.flatnonzero(doubts.row == row)[0]))
        return f"{name} cannot be computed: {self._failures.values[name].message_of(row)}"


def _find_used(predicates: Predicates, owner: int) -> set[int]:
    """Returns the attributes that a subscription uses."""
    mine = np.repeat(predicates.owner == owner, np.diff(predicates.first))
    return set((predicates.pred[mine, 0] & ATTR_MASK).tolist())


def bounds(version: Version, attributes: NDArray[np.int64]) -> tuple[Version, Version] | None:
    """Returns two versions with the subscriptions that use some attributes.

    Predicates on these attributes are false for what fails in the first version, and true in the
    second.

    The result is None if no subscription uses them.
    """
    is_call = np.array([version.attributes[i].role is Role.CALL for i in attributes.tolist()], np.bool_)
    pairs = [_of_segment(segment, attributes, is_call) for segment in version.segments]
    there = [place for place, pair in enumerate(pairs) if pair is not None and version.alive[place]]
    if not there:
        return None
    parts = {
        "bases": tuple([version.bases[place] for place in there]),
        "alive": tuple([version.alive[place] for place in there]),
        "stale": tuple([1 for _ in there]),  # the new indexes still have deleted subscriptions
    }
    lower, upper = zip(*[pair for place in there if (pair := pairs[place]) is not None], strict=True)
    return version.with_changes(segments=lower, **parts), version.with_changes(segments=upper, **parts)


def _of_segment(segment: Segment, attributes: NDArray[np.int64], is_call: NDArray[np.bool_]) -> Bounds | None:
    is_used = np.isin(attributes, np.flatnonzero(segment.used))
    attributes, is_call = attributes[is_used], is_call[is_used]
    if not len(attributes):
        return None
    key = attributes.tobytes()
    with _lock:
        by_attributes = _known.setdefault(segment, {})
        if key in by_attributes:
            return by_attributes[key]
    lower, upper = _make_bounds(segment, attributes, attributes[is_call])
    with _lock:
        if len(by_attributes) >= KEPT:
            by_attributes.clear()
        by_attributes[key] = lower, upper
    return lower, upper


def _make_bounds(segment: Segment, attributes: NDArray[np.int64], calls: NDArray[np.int64]) -> Iterator[Segment]:
    """Yields the two bounds of a segment, with the subscriptions that use the attributes.

    calls : those attributes that have conditions on elements
    """
    # Find the conjunctions of subscriptions that use the attributes
    all_of = segment.predicates
    about = np.isin(all_of.pred[:, 0] & ATTR_MASK, attributes)
    uses = np.zeros(segment.size, np.bool_)
    uses[np.repeat(all_of.owner, np.diff(all_of.first))[about]] = True
    which = np.flatnonzero(uses[all_of.owner])
    which = which[np.argsort(all_of.owner[which], kind="stable")]  # kinds order conjunctions differently
    # Take KEY_MAX out of the predicates on the attributes
    preds = take(all_of, which)
    preds, codes = without_labels(preds, segment.codes) if len(segment.codes.label) else (preds, segment.codes)
    keys = keys_of(preds, codes)
    about, is_call = (np.isin(preds.pred[:, 0] & ATTR_MASK, some) for some in (attributes, calls))
    keys = _remove_last(keys, about)
    # Index both bounds
    for is_true in (False, True):
        inside = about & ((preds.pred[:, 0] & FLAG_NONE != 0) != is_true)
        # Literals are at least two keys apart
        above = keys._replace(high=keys.high + np.repeat(inside & is_call, sizes_of(keys.first)))
        coded = to_codes(*_add_last(preds, above, inside & ~is_call), contiguous(codes.multi))
        yield build_segment(AutoSettings(), *coded, None, segment.size, int(uses.sum()))[0]


def _remove_last(keys: KeyIntervals, about: NDArray[np.bool_]) -> KeyIntervals:
    """Takes ``KEY_MAX`` out of the intervals of the predicates ``about``."""
    each = np.repeat(about, sizes_of(keys.first))
    empty = each & (keys.low == KEY_MAX) & (keys.high == KEY_MAX)
    low = np.where(empty, 0, keys.low)
    high = np.where(empty, -1, np.where(each & (keys.high == KEY_MAX), KEY_MAX - 1, keys.high))
    return KeyIntervals(keys.first, low, high)


def _add_last(preds: Predicates, keys: KeyIntervals, inside: NDArray[np.bool_]) -> tuple[Predicates, KeyIntervals]:
    """Puts ``KEY_MAX`` into the intervals of the predicates ``inside``, which do not contain it."""
    last = keys.first[1:] - 1
    low, high = keys.low.copy(), keys.high.copy()
    # Change an empty last interval, or extend one that ends right below
    nothing, meets = low[last] > high[last], high[last] == KEY_MAX - 1
    low[last[inside & nothing]] = KEY_MAX
    high[last[inside & (nothing | meets)]] = KEY_MAX
    # Insert an interval elsewhere
    more = inside & ~nothing & ~meets
    at = keys.first[1:][more]
    pred = preds.pred.copy()
    pred[more, 0] |= FLAG_RUN
    first = ranges_of(sizes_of(keys.first) + more)
    return preds._replace(pred=pred), KeyIntervals(first, np.insert(low, at, KEY_MAX), np.insert(high, at, KEY_MAX))
