"""Weights that events give to attributes, read from separate columns.

The weights are a map from name to weight, or a column or a number for each name. An attribute
without a weight, or with NULL, weighs 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.frozen import freeze_view
from colmatch.arrays.ranges import members, ranges_of
from colmatch.errors import EventError, show_value, suggest_names
from colmatch.given.incoming import doubles_of, one_piece, plain
from colmatch.given.schema import Attributes, Role
from colmatch.kernels.layout import EventWeights
from colmatch.kernels.weights import join_weights
from colmatch.lowering.weights import WEIGHT_MOST, Name

NAMES_KEPT = 1 << 16  # remembered keys of maps

NO_WEIGHTS = EventWeights(
    freeze_view(np.empty(0, np.int64)), freeze_view(np.empty(0, np.uint32)), freeze_view(np.empty(0, np.float64))
)


_ids: WeakKeyDictionary[Attributes, dict[Name, list[int]]] = WeakKeyDictionary()


def ids_of(attributes: Attributes, name: Name) -> list[int]:
    """Returns the ids of all attributes on the column, or the part of a column, that is named."""
    ids_by_name = _ids.get(attributes)
    if ids_by_name is None:
        ids_by_name = {}
        for id, attribute in enumerate(attributes.members):
            if attribute.is_free:
                continue
            ids_by_name.setdefault(Name(attribute.path), []).append(id)
            if attribute.role is Role.ENTRY:
                ids_by_name.setdefault(Name(attribute.path, attribute.role, attribute.key), []).append(id)
        _ids[attributes] = ids_by_name
    return ids_by_name.get(name, [])


def _is_exact(name: Name) -> bool:
    """Returns whether a name takes precedence over the name of its column."""
    return name.role is not Role.VALUE


class ColumnWeights:
    """Weights of events: for each name, a column or one number for all events.

    Attributes
    ----------
    columns : columns of the events that are needed
    """

    def __init__(self, given: Mapping[Name, str | float]) -> None:
        self._given = given
        self.columns = list(dict.fromkeys(source for source in given.values() if isinstance(source, str)))

    def read(self, attributes: Attributes, events: pa.RecordBatch, offset: int, most: int) -> EventWeights | None:
        """Returns the weights of a batch, or None if several rows have more than ``most`` weights.

        Raises EventError: a column is absent, or a value in it is no weight. The error names the
        event, counted from ``offset``.
        """
        values = {name: _column_of(events, name, offset) for name in self.columns}
        source: dict[int, str | float] = {}
        for name, column_or_number in sorted(self._given.items(), key=lambda item: _is_exact(item[0])):
            source |= dict.fromkeys(ids_of(attributes, name), column_or_number)
        ids, rows = sorted(source), events.num_rows
        if rows * len(ids) > most and rows > 1:
            return None
        if not ids:
            return NO_WEIGHTS
        weight = np.empty((rows, len(ids)))
        for i, id in enumerate(ids):
            column_or_number = source[id]
            weight[:, i] = values[column_or_number] if isinstance(column_or_number, str) else column_or_number
        attr = np.tile(np.array(ids, np.uint32), rows)
        return EventWeights(freeze_view(np.arange(rows + 1) * len(ids)), freeze_view(attr), freeze_view(weight.ravel()))


class MapWeights:
    """Weights of events: a column of maps from name to weight.

    Parameters
    ----------
    meaning : returns the name that a key means, or None

    Attributes
    ----------
    columns : columns of the events that are needed
    """

    def __init__(self, column: str, meaning: Callable[[str], Name | None]) -> None:
        self.columns = [column]
        self._column = column
        self._meaning = meaning
        self._known: dict[str, Name | None] = {}

    def read(self, attributes: Attributes, events: pa.RecordBatch, offset: int, most: int) -> EventWeights | None:
        """Returns the weights of a batch, like ``ColumnWeights.read``."""
        what = f"event_weights: column {self._column!r}"
        column = _find_column(events, self._column)
        if pa.types.is_null(column.type):
            return NO_WEIGHTS
        column = one_piece(column, EventError, what)
        if not pa.types.is_map(column.type):
            raise EventError(f"{what} is {column.type}: a map from name to weight is needed, or a mapping in Python")
        # Find the entries of rows with a map
        begin = column.offsets.to_numpy()
        size = np.where(column.is_valid().to_numpy(zero_copy_only=False), np.diff(begin), 0)
        place = ranges_of(size)
        entries = pa.array(members(begin[:-1].astype(np.int64), place))
        # Read keys and weights
        keys, items = plain(column.keys).take(entries), plain(column.items).take(entries)
        if pa.types.is_dictionary(keys.type):
            keys = keys.dictionary_decode()
        if not (pa.types.is_string(keys.type) or pa.types.is_large_string(keys.type)):
            raise EventError(f"{what} is {column.type}: its keys must be strings, which name attributes")
        value = _numbers(items, what, lambda entry: offset + int(np.searchsorted(place, entry, "right")) - 1)
        encoded = keys.dictionary_encode()
        return self._join_weights(attributes, place, encoded, value, most)

    def _join_weights(
        self,
        attributes: Attributes,
        place: NDArray[np.int64],
        keys: pa.DictionaryArray,
        value: NDArray[np.float64],
        most: int,
    ) -> EventWeights | None:
        # Count the weights: a name may apply to several attributes
        names = [self._name(key) for key in keys.dictionary.to_pylist()]
        targets = [[] if name is None else ids_of(attributes, name) for name in names]
        sizes = np.array([*map(len, targets), 0])
        name = keys.indices.to_numpy().astype(np.int64)
        total = int(sizes[name].sum())
        if total > most and len(place) > 2:
            return None
        if not total:
            return NO_WEIGHTS
        # Join the weights of each row; an exact name takes precedence over its column's
        exact = np.array([name is not None and _is_exact(name) for name in names], np.uint8)
        first = np.empty(len(place), np.int64)
        attr, rank, weight = np.empty(total, np.uint32), np.empty(total, np.uint8), np.empty(total)
        target = np.concatenate([np.array(ids, np.int64) for ids in targets])
        slot = np.full(len(attributes), -1)
        join_weights(
            freeze_view(place), freeze_view(name), freeze_view(value), freeze_view(ranges_of(sizes[:-1])), freeze_view(target),
            freeze_view(exact), slot, rank, first, attr, weight,
        )  # fmt: skip
        return EventWeights(freeze_view(first), freeze_view(attr[: first[-1]]), freeze_view(weight[: first[-1]]))

    def _name(self, key: str) -> Name | None:
        names_by_key = self._known  # another thread may replace the dictionary
        if key not in names_by_key:
            if len(names_by_key) >= NAMES_KEPT:
                names_by_key = self._known = {}
            names_by_key[key] = self._meaning(key)
        return names_by_key[key]


Weights = ColumnWeights | MapWeights


def _find_column(events: pa.RecordBatch, name: str) -> pa.Array:
    """Returns the column of a name, or else the only column that differs in case alone.

    Raises EventError: there is no such column, or several.
    """
    names = events.schema.names
    numbers = [i for i, other in enumerate(names) if other == name]
    numbers = numbers or [i for i, other in enumerate(names) if other.lower() == name.lower()]
    if len(numbers) == 1:
        return events.column(numbers[0])
    if numbers:
        raise EventError(
            f"event_weights: {len(numbers)} columns could be {show_value(name)}: rename or drop all but one"
        )
    raise EventError(
        f"event_weights: the events have no column {show_value(name)}: {suggest_names(name[:200], names, 'the batch')}"
    )


def _column_of(events: pa.RecordBatch, name: str, offset: int) -> NDArray[np.float64]:
    what = f"event_weights: column {name!r}"
    column = _find_column(events, name)
    if not pa.types.is_null(column.type):
        column = one_piece(column, EventError, what)
    return _numbers(column, what, lambda row: offset + row)


def _numbers(column: pa.Array, what: str, event: Callable[[int], int]) -> NDArray[np.float64]:
    """Returns weights as doubles, with 1 for NULL.

    event : place -> number of the event, for errors
    """
    doubles = doubles_of(column, EventError, what)
    value: NDArray[np.float64] = doubles.fill_null(1.0).to_numpy(zero_copy_only=False)
    good = (value >= 0) & (value <= WEIGHT_MOST)
    if not good.all():
        wrong = int(np.argmin(good))
        message = f"the weight is {value[wrong]}, a number from 0 to 1e100 is needed"
        raise EventError(message, column=what, event=event(wrong))
    return value
