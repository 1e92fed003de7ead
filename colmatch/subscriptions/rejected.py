"""Subscriptions that were left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from colmatch.subscriptions.ids import Ids

KEPT_MOST = 10_000  # that are kept from one update to the next
FEW = 16  # ids that are looked up one by one


class Rejected(NamedTuple):
    """A subscription that was left out, with ``errors="collect"``."""

    id: int | str
    position: tuple[int, int] | None  # line and column in its text, from 1
    message: str

    @staticmethod
    def of_list(entry: Sequence[Any]) -> Rejected:
        """Returns what JSON has as a list of the three."""
        id, position, message = entry
        return Rejected(id, tuple(position) if position else None, message)


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
    if len(taken) > FEW:
        of_type = str if pa.types.is_string(taken.type) else int
        wanted = pa.array([id for id in known if isinstance(id, of_type)], taken.type)
        taken = taken.filter(pc.is_in(taken, wanted))
    gone = {id for id in taken.to_pylist() if id in known}
    if not gone and not new:
        return known
    found = by_id([*(entry for id, entry in known.items() if id not in gone), *new])
    most = max(KEPT_MOST, len(new))
    return dict(list(found.items())[-most:]) if new and len(found) > most else found
