"""Rejected subscriptions of a matcher, by id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.errors import Rejected
from colmatch.subscriptions.ids import Ids

KEPT_MOST = 10_000  # entries that are kept from one update to the next
FEW_IDS = 16  # ids that are looked up one by one


def by_id(entries: Iterable[Rejected]) -> Mapping[int | str, Rejected]:
    """Returns the last entry of each id, in the order of these entries."""
    last: dict[int | str, Rejected] = {}
    for entry in entries:
        last.pop(entry.id, None)
        last[entry.id] = entry
    return last


def update_rejected(
    known: Mapping[int | str, Rejected], ids: Ids, new: Sequence[Rejected]
) -> Mapping[int | str, Rejected]:
    """Returns the rejected subscriptions after an update.

    If nothing has changed, the result is the same object. Of too many, it drops the oldest entries.

    ids : inserted, replaced or deleted ids, which lose their older entries
    """
    if not known and not new:
        return known
    taken = ids.array
    if len(taken) > FEW_IDS:
        taken = taken.filter(_are_among(taken, known))
    return _apply_update(known, taken.to_pylist(), new)


def update_all_rejected(
    known: Mapping[int | str, Rejected], ids: Ids, update: NDArray[np.int64], new: Mapping[int, Sequence[Rejected]]
) -> Mapping[int | str, Rejected]:
    """Returns the rejected subscriptions after several updates, as by ``update_rejected`` for each.

    ids, update : each touched id with the number of its update, in any order
    new : rejected subscriptions of each update that has some
    """
    entries = {*known, *(entry.id for group in new.values() for entry in group)}
    if not entries:
        return known
    there = _are_among(ids.array, entries)
    taken: dict[int, list[int | str]] = {number: [] for number in new}
    for number, id in zip(update[there].tolist(), ids.filter(there).array.to_pylist(), strict=True):
        taken.setdefault(number, []).append(id)
    for number in sorted(taken):
        known = _apply_update(known, taken[number], new.get(number, ()))
    return known


def _are_among(ids: pa.Array, entries: Iterable[int | str]) -> NDArray[np.bool_]:
    of_type = str if pa.types.is_string(ids.type) else int
    values = pa.array([id for id in entries if isinstance(id, of_type)], ids.type)
    return np.asarray(pc.is_in(ids, values))


def _apply_update(
    known: Mapping[int | str, Rejected], taken: Iterable[int | str], new: Sequence[Rejected]
) -> Mapping[int | str, Rejected]:
    gone = {id for id in taken if id in known}
    if not gone and not new:
        return known
    entries = by_id([*(entry for id, entry in known.items() if id not in gone), *new])
    most = max(KEPT_MOST, len(new))
    return dict(list(entries.items())[-most:]) if new and len(entries) > most else entries
