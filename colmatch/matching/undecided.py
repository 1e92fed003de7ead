"""Rows in which a computed value cannot be computed, and the subscriptions that need it there.

``b <> 0 AND a / b > 1`` is false where b is 0, whatever a / b is. So such a row is an error only if
a subscription is true or false with the value. A NOT is part of a predicate, and an expression has
none else. So it is true whatever the value is if it is true where all predicates on the value are
false; and false if it is false where all of them are true. Where the value is NULL, it is then what
it must be, so matches are right as they are, for all kinds.

Both are asked of the subscriptions that use the value alone, and only of batches that have such
rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import freeze, frozen
from colmatch.arrays.ranges import ranges_of
from colmatch.errors import EventError, shown
from colmatch.events.failed import Failed, Rows
from colmatch.indexing.plan import AutoSettings
from colmatch.indexing.registry import FEWEST
from colmatch.kernels import _forks
from colmatch.kernels.layout import ATTR_MASK, FLAG_NONE, Batch
from colmatch.predicates.columns import take
from colmatch.schema import Attributes, Role
from colmatch.updates.segments import Segment, indexed
from colmatch.updates.versions import Version

KEPT = 16  # sets of values that bounds of a segment are kept for

Bounds = tuple[Segment, Segment]
_lock = _forks.lock()
_known: WeakKeyDictionary[Segment, dict[bytes, Bounds | None]] = WeakKeyDictionary()


class Group(NamedTuple):
    """Rows of a batch in which the same values cannot be computed."""

    rows: Rows
    attributes: NDArray[np.int64]  # those of the values
    failed: dict[str, Failed]  # by the names of the values

    def error(self, row: int, id: int | str) -> EventError:
        """Returns what is said of a row and a subscription that needs a value there."""
        name, of = next(iter(self.failed.items()))
        return EventError(f"{name} cannot be computed: {of.said(row)} (subscription {shown(id)})", event=row)


def groups(failed: Mapping[str, Failed], attributes: Attributes, rows: int) -> Iterator[Group]:
    """Yields the rows of a batch in which values cannot be computed."""
    names = list(failed)
    wrong = np.stack([np.broadcast_to(of.rows, rows) for of in failed.values()], axis=1)
    some = np.flatnonzero(wrong.any(axis=1))
    sets, each = np.unique(wrong[some], axis=0, return_inverse=True)
    for place, among in enumerate(sets):
        inside = np.zeros(rows, np.bool_)
        inside[some[each.ravel() == place]] = True
        here = {name: failed[name] for name, is_in in zip(names, among.tolist(), strict=True) if is_in}
        computed = [i for i, a in enumerate(attributes) if a.role is Role.COMPUTED and a.path[0] in here]
        yield Group(inside, np.array(computed, np.int64), here)


def narrowed(entries: Batch, rows: NDArray[np.int64]) -> tuple[Batch, NDArray[np.bool_]]:
    """Returns the entries of some rows, which get the numbers from 0.

    The second array (E) says which entries they are.
    """
    number = np.full(int(entries.rows[0]), -1, np.int32)
    number[rows] = np.arange(len(rows))
    count = int(entries.col[-1])
    row = number[entries.row[:count]]
    kept = row >= 0
    col = ranges_of(kept)[entries.col]
    return freeze(Batch(np.array([len(rows)]), col, row[kept], entries.key[:count][kept])), kept


def bounds(version: Version, attributes: NDArray[np.int64]) -> tuple[Version, Version] | None:
    """Returns two versions with the subscriptions that use some attributes.

    Where an event has no value of these, predicates on them are false in the first version and true
    in the second.

    The result is None where no subscription uses them.
    """
    found = [_of_segment(segment, attributes) for segment in version.segments]
    there = [place for place, pair in enumerate(found) if pair is not None and version.alive[place]]
    if not there:
        return None
    parts = {
        "bases": tuple([version.bases[place] for place in there]),
        "alive": tuple([version.alive[place] for place in there]),
        "stale": tuple([1 for _ in there]),  # those that an index has taken out are found again
    }
    lower, upper = zip(*[pair for place in there if (pair := found[place]) is not None], strict=True)
    return version.changed(segments=lower, **parts), version.changed(segments=upper, **parts)


def _of_segment(segment: Segment, attributes: NDArray[np.int64]) -> Bounds | None:
    attributes = attributes[attributes < len(segment.used)]
    attributes = attributes[segment.used[attributes] > 0]
    if not len(attributes):
        return None
    key = attributes.tobytes()
    with _lock:
        known = _known.setdefault(segment, {})
        if key in known:
            return known[key]
    made = _made(segment, attributes)
    with _lock:
        if len(known) >= KEPT:
            known.clear()
        known[key] = made
    return made


def _made(segment: Segment, attributes: NDArray[np.int64]) -> Bounds | None:
    all_of = segment.predicates
    about = np.isin(all_of.pred[:, 0] & ATTR_MASK, attributes)
    if not about.any():
        return None
    uses = np.zeros(segment.size, np.bool_)
    uses[np.repeat(all_of.owner, np.diff(all_of.first))[about]] = True
    some = take(all_of, np.flatnonzero(uses[all_of.owner]))
    about = np.isin(some.pred[:, 0] & ATTR_MASK, attributes)
    made = []
    for is_true in (False, True):
        pred = some.pred.copy()
        pred[about, 0] = pred[about, 0] | FLAG_NONE if is_true else pred[about, 0] & ~np.uint32(FLAG_NONE)
        codes = segment.codes
        wanted = FEWEST.settings() if len(codes.label) else AutoSettings()  # labels are for kinds that take inserts
        made.append(indexed(wanted, some._replace(pred=frozen(pred)), codes, None, segment.size, int(uses.sum()))[0])
    return made[0], made[1]
