"""Elements of lists by place and entries of maps by key, for computed values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from colmatch.errors import EventError
from colmatch.events.computed.failed import refuse
from colmatch.given.incoming import plain


def element(lists: Any, name: str, place: int, mode: str) -> Any:
    """Returns an element of each list, NULL if the list has none at that place.

    place : from 0; or from the end if negative, with -1 for the last element
    mode : "ansi" makes a list without such an element an error, "" does not

    Raises
    ------
    RowsError : with "ansi", a list has no such element
    EventError : the column has no lists
    """
    lists = _lists(lists, name)
    length = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    defined = np.asarray(lists.is_valid().to_numpy(zero_copy_only=False))
    at = length + place if place < 0 else np.full(len(lists), place, np.int64)
    inside = defined & (at >= 0) & (at < length)
    begin = lists.offsets.to_numpy()[:-1].astype(np.int64)
    elements = lists.values.take(pa.array(np.where(inside, begin + at, 0), mask=~inside))
    if mode != "ansi":
        return elements
    message = f"the list {name!r} has {{}} elements, and none at the place {place}"
    return refuse(defined & ~inside, elements, lambda row: message.format(length[row]))


def size(values: Any, name: str) -> Any:
    """Returns the number of elements or entries of each list or map.

    Raises EventError: the column has neither.
    """
    if pa.types.is_map(values.type):
        offsets = values.offsets.to_numpy().astype(np.int32)
        return pa.array(np.diff(offsets), mask=np.asarray(values.is_null().to_numpy(zero_copy_only=False)))
    return pc.list_value_length(_lists(values, name)).cast(pa.int32())


def _lists(values: Any, name: str) -> Any:
    """Returns lists with offsets, and with elements of a type that Arrow can select from."""
    lists = plain(values)
    if pa.types.is_fixed_size_list(lists.type):  # still fixed if its values are nested
        lists = lists.cast(pa.large_list(lists.type.value_type))
    if not (pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type)):
        raise EventError(f"column {name!r} is {values.type}, no list: cast it")
    return lists


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
