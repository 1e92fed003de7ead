"""Elements of lists by place and entries of maps by key, for computed values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from colmatch.errors import EventError
from colmatch.events.computed.failed import refuse
from colmatch.events.gather import match_names
from colmatch.given.incoming import plain


def element(lists: Any, name: str, place: int, mode: str, fields: str) -> Any:
    """Returns an element of each list, NULL if the list has none at that place.

    place : from 0; or from the end if negative, with -1 for the last element
    mode : "ansi" makes a list without such an element an error, "" does not
    fields : as for ``field``

    Raises
    ------
    RowsError : with "ansi", a list has no such element
    EventError : the column has no lists
    """
    lists = as_lists(lists, name)
    length = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    defined = np.asarray(lists.is_valid().to_numpy(zero_copy_only=False))
    at = length + place if place < 0 else np.full(len(lists), place, np.int64)
    inside = defined & (at >= 0) & (at < length)
    begin = lists.offsets.to_numpy()[:-1].astype(np.int64)
    elements = field(lists.values.take(pa.array(np.where(inside, begin + at, 0), mask=~inside)), name, fields)
    if mode != "ansi":
        return elements
    message = f"the list {name!r} has {{}} elements, and none at the place {place}"
    return refuse(defined & ~inside, elements, lambda row: message.format(length[row]))


def field(values: Any, name: str, fields: str) -> Any:
    """Returns a field of structs, or the values themselves without ``fields``.

    name : of the column
    fields : names that lead to it, joined by zeros

    Raises EventError: there is no such field.
    """
    for part in fields.split("\0") if fields else ():
        names = [each.name for each in values.type] if pa.types.is_struct(values.type) else []
        places = match_names(names, [part])
        if len(places) != 1:
            raise EventError(f"column {name!r} has {values.type!s:.200} in it, without one field {part!r}")
        values = pc.struct_field(values, places[0])
    return values


def extreme(values: Any, name: str, fields: str, largest: bool) -> Any:
    """Returns the largest or smallest element of each list, NULL if it has none but NULLs.

    fields : as for ``field``

    Raises EventError: the column has no lists, or no such field.
    """
    lists = as_lists(values, name)
    size_of = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    elements = field(lists.flatten(), name, fields)
    row = np.repeat(np.arange(len(lists)), size_of)[elements.is_valid().to_numpy(zero_copy_only=False)]
    elements = elements.drop_null()
    if pa.types.is_dictionary(elements.type):
        elements = elements.dictionary_decode()
    # Sort the elements of each list; NaN is the largest
    order = pc.sort_indices(
        pa.table([pa.array(row), elements], ["row", "element"]), [("row", "ascending"), ("element", "ascending")]
    )
    end = np.searchsorted(row, np.arange(len(lists)), side="right" if largest else "left")
    has_any = np.bincount(row, minlength=len(lists)) > 0
    at = pa.array(np.where(has_any, end - largest, 0), mask=~has_any)
    return elements.take(order.take(at))


def position(values: Any, name: str, wanted: pa.Scalar, fields: str) -> Any:
    """Returns the place of the first element of each list that equals a literal, from 1.

    It is 0 if no element does, and NULL where there is no list.

    fields : as for ``field``

    Raises EventError: the column has no lists, or no such field.
    """
    lists = as_lists(values, name)
    size_of = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    elements = field(lists.flatten(), name, fields)
    if pa.types.is_dictionary(elements.type):
        elements = elements.dictionary_decode()
    is_equal = pc.equal(elements.cast(wanted.type), wanted)
    place = np.flatnonzero(pc.fill_null(is_equal, False).to_numpy(zero_copy_only=False))
    row, first = np.unique(np.repeat(np.arange(len(lists)), size_of)[place], return_index=True)
    found = np.zeros(len(lists), np.int64)
    found[row] = place[first] - (np.cumsum(size_of) - size_of)[row] + 1
    return pa.array(found, mask=np.asarray(lists.is_null().to_numpy(zero_copy_only=False)))


def size(values: Any, name: str) -> Any:
    """Returns the number of elements or entries of each list or map.

    Raises EventError: the column has neither.
    """
    if pa.types.is_map(values.type):
        offsets = values.offsets.to_numpy().astype(np.int32)
        return pa.array(np.diff(offsets), mask=np.asarray(values.is_null().to_numpy(zero_copy_only=False)))
    return pc.list_value_length(as_lists(values, name)).cast(pa.int32())


def as_lists(values: Any, name: str) -> Any:
    """Returns lists with offsets, and with elements of a type that Arrow can select from.

    Raises EventError: the column has no lists.
    """
    lists = plain(values)
    if pa.types.is_fixed_size_list(lists.type):  # still fixed if its values are nested
        lists = lists.cast(pa.large_list(lists.type.value_type))
    if not (pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type)):
        raise EventError(f"column {name!r} is {values.type}, no list: cast it")
    return lists


def map_part(maps: Any, part: str) -> Any:
    """Returns the keys, values or entries of each map as a list.

    Raises EventError: the column has no maps.
    """
    if not pa.types.is_map(maps.type):
        raise EventError(f"a column is {maps.type!s:.200}, no map: cast it")
    if part == "map_entries":
        parts = pa.StructArray.from_arrays([maps.keys, maps.items], ["key", "value"])
    else:
        parts = maps.keys if part == "map_keys" else maps.items
    offsets = pa.array(maps.offsets.to_numpy())  # Arrow takes no slice of offsets together with a mask
    return pa.ListArray.from_arrays(offsets, parts, mask=maps.is_null())


def entry(maps: Any, name: str, key: str | int) -> Any:
    """Returns the value of a key in each map, NULL if the map lacks the key.

    Raises EventError: the column has no maps with such keys.
    """
    return pc.map_lookup(maps, _key(maps, name, key), "first")


def contains_key(maps: Any, name: str, key: str | int) -> Any:
    """Returns whether each map has a key, whatever its value; NULL where there is no map.

    Raises EventError: the column has no maps with such keys.
    """
    has_key = pc.map_lookup(maps, _key(maps, name, key), "all").is_valid()
    return pc.if_else(maps.is_valid(), has_key, pa.scalar(None, pa.bool_()))


def _key(maps: Any, name: str, key: str | int) -> pa.Scalar:
    if not pa.types.is_map(maps.type):
        raise EventError(f"column {name!r} is {maps.type}, no map: cast it")
    kind = maps.type.key_type
    if pa.types.is_dictionary(kind):
        raise EventError(f"column {name!r} is {maps.type}: cast its keys to {kind.value_type}")
    return pa.scalar(key, kind)
