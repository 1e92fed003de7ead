"""Ids of subscriptions: int64 or strings, unique, in one Arrow array."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeGuard

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.growing import Growing
from colmatch.arrays.ranges import ranges_of
from colmatch.errors import SubscriptionError, shown
from colmatch.incoming import is_text, sentence, values_of
from colmatch.kernels.layout import KEY_MAX, KEY_MIN

MOST_BYTES = 2**31 - 1  # of all string ids: what one Arrow array of strings can hold


def ids_of_values(values: list[Any]) -> pa.Array:
    """Makes ids of Python values.

    Raises
    ------
    SubscriptionError : one is neither a number that fits int64 nor a string, or is there twice; or
        there are both numbers and strings
    """
    kinds = {
        str if isinstance(v, str) else int if isinstance(v, (int, np.integer)) and not isinstance(v, bool) else type(v)
        for v in values
    }
    if kinds - {int, str}:
        i, odd = next(
            (i, v) for i, v in enumerate(values) if not isinstance(v, (str, int, np.integer)) or isinstance(v, bool)
        )
        raise SubscriptionError(f"the id of subscription number {i} is {shown(odd)}: ids are int64 or strings")
    if len(kinds) == 2:
        raise SubscriptionError("some ids are numbers and some are strings: use one type for all")
    wanted = pa.string() if kinds == {str} else pa.int64()
    try:
        ids = pa.array(values, wanted)
    except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError) as error:
        place = next((i for i, v in enumerate(values) if not can_be_id(plain_id(v), wanted)), None)
        if place is None:
            raise SubscriptionError(f"the ids cannot be read: {sentence(error)}") from None
        wrong = "is not valid Unicode" if kinds == {str} else "does not fit int64"
        raise SubscriptionError(
            f"the id of subscription number {place} is {shown(values[place])}, which {wrong}"
        ) from None
    return checked_unique(ids)


def ids_of_column(column: pa.Array, where: str) -> pa.Array:
    """Makes ids of a column, which may have one several times.

    Raises
    ------
    SubscriptionError : it is of another type; says ``where``
    """
    types, given = pa.types, column.type
    if types.is_dictionary(given):
        column, given = column.dictionary_decode(), given.value_type
    try:
        if types.is_integer(given):
            return column.cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise SubscriptionError(f"{where}: an id does not fit int64: {sentence(error)}") from None
    if types.is_string(given) or types.is_large_string(given):
        return column.cast(pa.string())
    raise SubscriptionError(f"{where}: column 'id' is {given}, int64 or string is needed")


def checked_unique(ids: pa.Array) -> pa.Array:
    """Returns the ids if none is there twice.

    Raises
    ------
    SubscriptionError : one is; says which
    """
    counts = ids.value_counts()
    if len(counts) < len(ids):
        twice = next(pair["values"].as_py() for pair in counts if pair["counts"].as_py() > 1)
        raise SubscriptionError(f"id {shown(twice)} is given more than once: ids must be unique")
    return ids


def listed_ids(ids: Any) -> Iterable[Any]:
    """Returns the ids that a caller lists, whatever their types.

    ids : any iterable but a text, or an Arrow array

    Raises
    ------
    SubscriptionError : it is not a list of ids
    """
    if hasattr(ids, "__arrow_c_stream__") or hasattr(ids, "__arrow_c_array__"):
        return values_of(ids, SubscriptionError, "the list of ids")
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise SubscriptionError(f"{shown(ids)} is not a list of ids: put a single one into a list")
    return ids


def plain_id(id: Any) -> Any:
    """Returns an id as Python's own integer where it is one of numpy's."""
    return int(id) if isinstance(id, np.integer) else id


def can_be_id(id: object, type: pa.DataType) -> TypeGuard[int | str]:
    """Says whether a Python value can be among ids of a type."""
    if pa.types.is_string(type):
        return isinstance(id, str) and is_text(id)
    return isinstance(id, int) and not isinstance(id, bool) and KEY_MIN <= id <= KEY_MAX


def ids_to_arrays(ids: pa.Array) -> dict[str, NDArray[Any]]:
    """Returns the arrays that a saved matcher has for ids, by name."""
    if pa.types.is_int64(ids.type):
        return {"ids": ids.to_numpy()}
    texts = [text.encode() for text in ids.to_pylist()]
    offset = ranges_of([len(text) for text in texts])
    return {
        "ids.offset": offset.astype(np.int32 if offset[-1] < 2**31 else np.int64),
        "ids": np.frombuffer(b"".join(texts), np.uint8),
    }


def ids_of_arrays(arrays: dict[str, NDArray[Any]]) -> pa.Array:
    """Makes ids of what ``ids_to_arrays`` returned, without a copy where that is possible."""
    if "ids.offset" not in arrays:
        return pa.array(arrays["ids"], pa.int64())
    offset, data = arrays["ids.offset"], pa.py_buffer(arrays["ids"])
    if offset.dtype == np.int32:  # mapped, like all else
        return pa.StringArray.from_buffers(len(offset) - 1, pa.py_buffer(offset), data)
    return pa.LargeStringArray.from_buffers(len(offset) - 1, pa.py_buffer(offset), data).cast(pa.string())


class GrowingIds:
    """Ids by number, an Arrow array to which others can be appended without copying it."""

    def __init__(self, ids: pa.Array) -> None:
        self.type = ids.type
        if pa.types.is_int64(ids.type):
            self._columns = [Growing(ids.to_numpy())]
            return
        self._columns = [Growing(np.zeros(1, np.int32)), Growing(np.empty(0, np.uint8))]
        self.append(ids.to_pylist())

    def view(self) -> pa.Array:
        """Returns all ids, which stay as they are whatever is appended."""
        if len(self._columns) == 1:
            return pa.array(self._columns[0].view())
        offset, data = (column.view() for column in self._columns)
        return pa.StringArray.from_buffers(len(offset) - 1, pa.py_buffer(offset), pa.py_buffer(data))

    def append(self, values: Sequence[int] | Sequence[str]) -> None:
        """Appends ids.

        Raises
        ------
        SubscriptionError : they are more than one Arrow array of strings can hold
        """
        if len(self._columns) == 1:
            self._columns[0].append(np.array(values, np.int64))
            return
        texts = [str(value).encode() for value in values]
        end = self._columns[1].size
        ends = end + np.cumsum([len(text) for text in texts], dtype=np.int64)
        if len(ends) and ends[-1] > MOST_BYTES:
            raise SubscriptionError("the ids have more than 2 GB of text: use shorter ones, or numbers")
        self._columns[0].append(ends.astype(np.int32))
        self._columns[1].append(np.frombuffer(b"".join(texts), np.uint8))

    def cut(self, size: int) -> None:
        """Forgets all ids but the first ``size``."""
        if len(self._columns) == 1:
            self._columns[0].size = size
        else:
            self._columns[0].size = size + 1
            self._columns[1].size = int(self._columns[0].view()[-1])
