"""Subscriptions that were left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.errors import Rejected
from colmatch.subscriptions.ids import Ids

KEPT_MOST = 10_000  # that are kept from one update to the next
FEW_IDS = 16  # ids that are looked up one by one


def by_id(entries: Iterable[Rejected]) -> Mapping[int | str, Rejected]:
    """Returns the last entry of each id, in the order of these."""
    found: dict[int | str, Rejected] = {}
    for entry in entries:
        found.pop(entry.id, None)
        found[entry.id] = entry
    return found


def following(known: Mapping[int | str, Rejected], ids: Ids, new: Sequence[Rejected]) -> Mapping[int | str, Rejected]:
    """Returns what is left out after an update; the same object if nothing has changed.

    Of many, those are forgotten that were left out first.

    ids : those that were inserted, replaced or deleted, about which an older entry says nothing now
    """
    if not known and not new:
        return known
    taken = ids.array
    if len(taken) > FEW_IDS:
        taken = taken.filter(_are_among(taken, known))
    return _after(known, taken.to_pylist(), new)


def following_all(
    known: Mapping[int | str, Rejected], ids: Ids, update: NDArray[np.int64], new: Mapping[int, Sequence[Rejected]]
) -> Mapping[int | str, Rejected]:
    """Returns what is left out after several updates, as if ``following`` had been asked of each.

    ids, update : which update touched which id, in any order
    new : what each update has left out that did so
    """
    entries = {*known, *(entry.id for some in new.values() for entry in some)}
    if not entries:
        return known
    there = _are_among(ids.array, entries)
    taken: dict[int, list[int | str]] = {number: [] for number in new}
    for number, id in zip(update[there].tolist(), ids.filter(there).array.to_pylist(), strict=True):
        taken.setdefault(number, []).append(id)
    for number in sorted(taken):
        known = _after(known, taken[number], new.get(number, ()))
    return known


def _are_among(ids: pa.Array, entries: Iterable[int | str]) -> NDArray[np.bool_]:
    of_type = str if pa.types.is_string(ids.type) else int
    wanted = pa.array([id for id in entries if isinstance(id, of_type)], ids.type)
    return np.asarray(pc.is_in(ids, wanted))


def _after(
    known: Mapping[int | str, Rejected], taken: Iterable[int | str], new: Sequence[Rejected]
) -> Mapping[int | str, Rejected]:
    gone = {id for id in taken if id in known}
    if not gone and not new:
        return known
    found = by_id([*(entry for id, entry in known.items() if id not in gone), *new])
    most = max(KEPT_MOST, len(new))
    return dict(list(found.items())[-most:]) if new and len(found) > most else found
