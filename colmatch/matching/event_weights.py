"""Weights that events give to attributes, read from columns of their own.

They come as a map from name to weight, or as a column or a number for each name. What has no
weight, or NULL, has 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.frozen import frozen
from colmatch.arrays.ranges import members, ranges_of
from colmatch.errors import EventError, near, shown
from colmatch.given.incoming import doubles_of, one_piece, plain
from colmatch.given.schema import Attributes, Role
from colmatch.kernels.layout import EventWeights
from colmatch.kernels.weights import join_weights
from colmatch.lowering.weights import WEIGHT_MOST, Name

NAMES_KEPT = 1 << 16  # keys of maps whose meaning is remembered

NO_WEIGHTS = EventWeights(
    frozen(np.empty(0, np.int64)), frozen(np.empty(0, np.uint32)), frozen(np.empty(0, np.float64))
)


_ids: WeakKeyDictionary[Attributes, dict[Name, list[int]]] = WeakKeyDictionary()


def ids_of(attributes: Attributes, name: Name) -> list[int]:
    """Returns the attributes that a name counts for: all that is asked of its column or part."""
    known = _ids.get(attributes)
    if known is None:
        known = {}
        for id, attribute in enumerate(attributes.members):
            if attribute.is_free:
                continue
            known.setdefault(Name(attribute.path), []).append(id)
            if attribute.role is Role.ENTRY:
                known.setdefault(Name(attribute.path, attribute.role, attribute.key), []).append(id)
        _ids[attributes] = known
    return known.get(name, [])


def _is_exact(name: Name) -> bool:
    """Returns whether a name counts before that of its column."""
    return name.role is not Role.VALUE


class ColumnWeights:
    """A column, or a number for all events, for each of some names.

    Attributes
    ----------
    columns : of the events, that are needed
    """

    def __init__(self, given: Mapping[Name, str | float]) -> None:
        self._given = given
        self.columns = list(dict.fromkeys(source for source in given.values() if isinstance(source, str)))

    def read(self, attributes: Attributes, events: pa.RecordBatch, offset: int, most: int) -> EventWeights | None:
        """Returns the weights of a batch; None if they are more than ``most``, of several rows.

        Raises EventError: a column is not there, or something in it is no weight; says which event,
        counted from ``offset``.
        """
        values = {name: _column_of(events, name, offset) for name in self.columns}
        source: dict[int, str | float] = {}
        for name, given in sorted(self._given.items(), key=lambda item: _is_exact(item[0])):
            source |= dict.fromkeys(ids_of(attributes, name), given)
        ids, rows = sorted(source), events.num_rows
        if rows * len(ids) > most and rows > 1:
            return None
        if not ids:
            return NO_WEIGHTS
        weight = np.empty((rows, len(ids)))
        for i, id in enumerate(ids):
            given = source[id]
            weight[:, i] = values[given] if isinstance(given, str) else given
        attr = np.tile(np.array(ids, np.uint32), rows)
        return EventWeights(frozen(np.arange(rows + 1) * len(ids)), frozen(attr), frozen(weight.ravel()))


class MapWeights:
    """A column of maps from name to weight.

    Parameters
    ----------
    meaning : says what a key names, None if nothing

    Attributes
    ----------
    columns : of the events, that are needed
    """

    def __init__(self, column: str, meaning: Callable[[str], Name | None]) -> None:
        self.columns = [column]
        self._column = column
        self._meaning = meaning
        self._known: dict[str, Name | None] = {}

    def read(self, attributes: Attributes, events: pa.RecordBatch, offset: int, most: int) -> EventWeights | None:
        """Returns the weights of a batch, as ``ColumnWeights.read`` does."""
        what = f"event_weights: column {self._column!r}"
        column = _found(events, self._column)
        if pa.types.is_null(column.type):
            return NO_WEIGHTS
        column = one_piece(column, EventError, what)
        if not pa.types.is_map(column.type):
            raise EventError(f"{what} is {column.type}: a map from name to weight is needed, or a mapping in Python")
        begin = column.offsets.to_numpy()
        size = np.where(column.is_valid().to_numpy(zero_copy_only=False), np.diff(begin), 0)
        place = ranges_of(size)
        entries = pa.array(members(begin[:-1].astype(np.int64), place))
        keys, items = plain(column.keys).take(entries), plain(column.items).take(entries)
        if pa.types.is_dictionary(keys.type):
            keys = keys.dictionary_decode()
        if not (pa.types.is_string(keys.type) or pa.types.is_large_string(keys.type)):
            raise EventError(f"{what} is {column.type}: its keys must be strings, which name attributes")
        value = _numbers(items, what, lambda entry: offset + int(np.searchsorted(place, entry, "right")) - 1)
        encoded = keys.dictionary_encode()
        return self._joined(attributes, place, encoded, value, most)

    def _joined(
        self,
        attributes: Attributes,
        place: NDArray[np.int64],
        keys: pa.DictionaryArray,
        value: NDArray[np.float64],
        most: int,
    ) -> EventWeights | None:
        names = [self._name(key) for key in keys.dictionary.to_pylist()]
        targets = [[] if name is None else ids_of(attributes, name) for name in names]
        sizes = np.array([*map(len, targets), 0])
        name = keys.indices.to_numpy().astype(np.int64)
        total = int(sizes[name].sum())
        if total > most and len(place) > 2:
            return None
        if not total:
            return NO_WEIGHTS
        exact = np.array([name is not None and _is_exact(name) for name in names], np.uint8)
        first = np.empty(len(place), np.int64)
        attr, rank, weight = np.empty(total, np.uint32), np.empty(total, np.uint8), np.empty(total)
        target = np.concatenate([np.array(ids, np.int64) for ids in targets])
        slot = np.full(len(attributes), -1)
        join_weights(
            frozen(place), frozen(name), frozen(value), frozen(ranges_of(sizes[:-1])), frozen(target), frozen(exact),
            slot, rank, first, attr, weight,
        )  # fmt: skip
        return EventWeights(frozen(first), frozen(attr[: first[-1]]), frozen(weight[: first[-1]]))

    def _name(self, key: str) -> Name | None:
        known = self._known  # another thread may begin a new one
        if key not in known:
            if len(known) >= NAMES_KEPT:
                known = self._known = {}
            known[key] = self._meaning(key)
        return known[key]


Weights = ColumnWeights | MapWeights


def _found(events: pa.RecordBatch, name: str) -> pa.Array:
    """Returns the column of a name, or else the only one that differs from it in case alone."""
    names = events.schema.names
    found = [i for i, other in enumerate(names) if other == name]
    found = found or [i for i, other in enumerate(names) if other.lower() == name.lower()]
    if len(found) == 1:
        return events.column(found[0])
    if found:
        raise EventError(f"event_weights: {len(found)} columns could be {shown(name)}: rename or drop all but one")
    raise EventError(f"event_weights: the events have no column {shown(name)}: {near(name[:200], names, 'the batch')}")


def _column_of(events: pa.RecordBatch, name: str, offset: int) -> NDArray[np.float64]:
    what = f"event_weights: column {name!r}"
    column = _found(events, name)
    if not pa.types.is_null(column.type):
        column = one_piece(column, EventError, what)
    return _numbers(column, what, lambda row: offset + row)


def _numbers(column: pa.Array, what: str, event: Callable[[int], int]) -> NDArray[np.float64]:
    """Returns weights, 1 for NULL.

    event : number of the event of a place, for errors
    """
    doubles = doubles_of(column, EventError, what)
    value: NDArray[np.float64] = doubles.fill_null(1.0).to_numpy(zero_copy_only=False)
    good = (value >= 0) & (value <= WEIGHT_MOST)
    if not good.all():
        wrong = int(np.argmin(good))
        said = f"the weight is {value[wrong]}, a number from 0 to 1e100 is needed"
        raise EventError(said, column=what, event=event(wrong))
    return value
