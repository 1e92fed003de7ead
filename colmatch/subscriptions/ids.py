"""Ids of subscriptions: int64 or strings, unique, in one Arrow array."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.arrays.frozen import NO_I64, contiguous, freeze_view
from colmatch.arrays.growing import Growing
from colmatch.arrays.shared import NUMBERS, shared
from colmatch.errors import SubscriptionError, show_value
from colmatch.events.reader import texts_of
from colmatch.given.arguments import members, python_value
from colmatch.given.incoming import is_arrow, is_text, plain, refusing, sentence, single_column, values_of
from colmatch.kernels.layout import I64, KEY_MAX, KEY_MIN, U8
from colmatch.subscriptions.lookup import IdLookup

MOST_BYTES = 2**31 - 1  # most bytes of all string ids: the limit of one Arrow array of strings


def ids_of_values(values: list[Any]) -> Ids:
    """Makes ids of Python values.

    Raises SubscriptionError: a value is neither an int64 nor a string, an id is repeated, or
    numbers and strings are mixed.
    """
    if {type(v) for v in values} == {int}:  # as usual, and quicker
        with suppress(OverflowError):  # the error is raised below
            return _unique(Ids(np.array(values, np.int64)))
    values = [python_value(v) for v in values]
    kinds = {str if isinstance(v, str) else type(v) for v in values}
    if kinds - {int, str}:
        i, odd = next((i, v) for i, v in enumerate(values) if not isinstance(v, (str, int)) or isinstance(v, bool))
        raise SubscriptionError(f"the id of subscription number {i} is {show_value(odd)}: ids are int64 or strings")
    if len(kinds) == 2:
        raise SubscriptionError("some ids are numbers and some are strings: use one type for all")
    arrow_type = pa.string() if kinds == {str} else pa.int64()
    try:
        ids = pa.array(values, arrow_type)
    except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError) as error:
        place = next((i for i, v in enumerate(values) if not can_be_id(v, arrow_type)), None)
        if place is None:
            raise SubscriptionError(f"the ids cannot be read: {sentence(error)}") from None
        wrong = "is not valid Unicode" if kinds == {str} else "does not fit int64"
        raise SubscriptionError(
            f"the id of subscription number {place} is {show_value(values[place])}, which {wrong}"
        ) from None
    return _unique(Ids(ids))


def _unique(ids: Ids) -> Ids:
    if len(ids) > 1:
        check_unique(ids.array)
    return ids


def ids_of_column(column: pa.Array, where: str, name: str = "id") -> pa.Array:
    """Makes ids of a column, which may repeat ids.

    name : of the column, for errors

    Raises SubscriptionError, with ``where``: the column has another type, or a number does not fit
    int64.
    """
    types, column_type = pa.types, column.type
    if types.is_dictionary(column_type):
        column, column_type = column.dictionary_decode(), column_type.value_type
    try:
        if types.is_integer(column_type):
            return pc.add(column.cast(pa.int64()), 0)  # a copy, since the caller may write into the column
    except pa.ArrowInvalid as error:
        raise SubscriptionError(f"{where}: an id does not fit int64: {sentence(error)}") from None
    if types.is_string(column_type) or types.is_large_string(column_type):
        return column.cast(pa.string())
    raise SubscriptionError(f"{where}: column {name!r} is {column_type}, int64 or string is needed")


def unique_ids(column: pa.Array, where: str, name: str = "id") -> Ids:
    """Makes ids of a column.

    name : of the column, for errors

    Raises SubscriptionError: the column has another type, or an id is NULL or repeated.
    """
    if column.null_count:
        raise SubscriptionError(f"{where}: column {name!r} is NULL in row {column.is_null().index(True).as_py()}")
    return Ids(check_unique(ids_of_column(column, where, name)))


def check_unique(ids: pa.Array) -> pa.Array:
    """Returns the ids if they are unique.

    Raises SubscriptionError, with the id: an id is repeated.
    """
    counts = ids.value_counts()
    if len(counts) < len(ids):
        twice = next(pair["values"].as_py() for pair in counts if pair["counts"].as_py() > 1)
        raise SubscriptionError(f"id {show_value(twice)} is given more than once: ids must be unique")
    return ids


def list_ids(ids: Any) -> list[Any]:
    """Returns a caller's ids as a list, from any iterable but a text, or from an Arrow array.

    Raises SubscriptionError: ``ids`` is not a list of ids.
    """
    if not isinstance(ids, list):
        if is_arrow(ids):
            ids = values_of(ids, SubscriptionError, "the list of ids")
        values = members(ids)
        if values is None:
            raise SubscriptionError(f"{show_value(ids)} is not a list of ids: put a single one into a list")
        return values
    return list(ids)


def convert_ids(values: list[Any], type: pa.DataType) -> Ids:
    """Returns listed ids. ``type`` is the type of the ids of the matcher.

    Raises SubscriptionError: a value cannot be an id of this type.
    """
    if type is NUMBERS and {value.__class__ for value in values} == {int}:  # as usual, and quicker
        with suppress(OverflowError):  # the error is raised below
            return Ids(np.array(values, np.int64))
    return _of_type(values, type, "there is no subscription {}: nothing was deleted")


def ids_among(given: Any, type: pa.DataType | None) -> Ids:
    """Returns the ids that a caller restricts a match to. Some may be of no subscription.

    given : any iterable, an array of numpy or of Arrow
    type : of the ids of the matcher, None where there are none

    Raises SubscriptionError: ``given`` is no list of ids, or its ids have another type.
    """
    if not is_arrow(given) and (not isinstance(given, np.ndarray) or given.dtype.hasobject):
        values = list_ids(given)
        type = type or (pa.string() if values and isinstance(values[0], str) else NUMBERS)
        return _of_type(values, type, f"ids: {{}} is no id of this matcher, whose ids are {type}")
    with refusing(SubscriptionError, "ids cannot be read"):
        column = single_column(given if is_arrow(given) else pa.array(given), SubscriptionError, "ids")
    if not len(column):
        return Ids(pa.array([], type or NUMBERS))
    if column.null_count:
        raise SubscriptionError(f"ids: number {int(np.argmax(np.asarray(column.is_null())))} is NULL")
    column = ids_of_column(plain(column), "ids")
    if type is not None:
        check_type(type, column.type)
    return Ids(column)


def _of_type(values: list[Any], type: pa.DataType, refused: str) -> Ids:
    """Makes ids of a type. ``refused`` is the message for another value, with braces for it."""
    values = [python_value(id) for id in values]
    for id in values:
        if not can_be_id(id, type):
            raise SubscriptionError(refused.format(show_value(id)))
    return Ids(pa.array(values, type))


def can_be_id(id: object, type: pa.DataType) -> TypeGuard[int | str]:
    """Returns whether a Python value can be an id of a type."""
    if pa.types.is_string(type):
        return isinstance(id, str) and is_text(id)
    return isinstance(id, int) and not isinstance(id, bool) and KEY_MIN <= id <= KEY_MAX


def check_type(known: pa.DataType, given: pa.DataType) -> None:
    """Raises SubscriptionError where ids have another type than the ids of a matcher."""
    if known != given:
        raise SubscriptionError(f"the ids of this matcher are {known}, those given are {given}")


def check_new(ids: Ids, place: NDArray[np.int64]) -> None:
    """Raises SubscriptionError where an id to be inserted has a place in the matcher already."""
    if len(place) and (place >= 0).any():
        raise SubscriptionError(
            f"subscription {show_value(ids[int((place >= 0).argmax())])} is there already: nothing was inserted; replace() "
            "exchanges it"
        )


def check_known(ids: Ids, place: NDArray[np.int64], then: str = "nothing was deleted") -> None:
    """Raises SubscriptionError, with ``then``, where an id has no place in the matcher: -1."""
    if len(place) and (place < 0).any():
        raise SubscriptionError(f"there is no subscription {show_value(ids[int(place.argmin())])}: {then}")


def ids_to_arrays(ids: Ids) -> dict[str, NDArray[Any]]:
    """Returns the arrays of ids in a saved matcher, by name."""
    if ids.numbers is not None:
        return {"ids": ids.numbers}
    offset, data = _text_columns(ids.array)
    return {"ids.offset": offset, "ids": data}


def ids_of_arrays(arrays: dict[str, NDArray[Any]]) -> Ids:
    """Makes ids of the arrays of ``ids_to_arrays``, without a copy where that is possible."""
    if "ids.offset" not in arrays:
        return Ids(np.asarray(arrays["ids"], np.int64))
    offset, data = arrays["ids.offset"], pa.py_buffer(arrays["ids"])
    return Ids(pa.StringArray.from_buffers(len(offset) - 1, pa.py_buffer(offset), data))


class Ids:
    """Ids by number. An object never changes: adding ids makes another one.

    Parameters
    ----------
    ids : an array of Arrow, int64 or string, or one of numbers

    Attributes
    ----------
    type : int64 or string
    numbers : the ids as an array, where they are int64
    """

    __slots__ = ("_array", "_longest", "_lookup", "_order", "_store", "_table", "numbers", "type")

    def __init__(
        self, ids: pa.Array | NDArray[np.int64], store: _Store | None = None, lookup: IdLookup | None = None
    ) -> None:
        self._array: pa.Array | None = None
        self.numbers: NDArray[np.int64] | None = None
        if isinstance(ids, np.ndarray):
            self.numbers, self.type = contiguous(ids), NUMBERS
        else:
            self._array, self.type = ids, ids.type
            if self.type == NUMBERS:
                self.numbers, self.type = contiguous(ids.to_numpy()), NUMBERS
        self._store = store
        self._lookup = lookup
        self._order: tuple[I64, I64, U8] | None = None
        self._longest: int | None = None
        self._table: tuple[I64, int] | None = None

    @property
    def table(self) -> tuple[I64, int]:
        """Returns int64 ids by number, and the first id; no ids by number if they are consecutive.

        Most matches then need no look-up: ids of a million subscriptions are in no near cache.
        """
        if self._table is None:
            assert self.numbers is not None
            self._table = (NO_I64, int(self.numbers[0])) if _are_consecutive(self.numbers) else (self.numbers, 0)
        return self._table

    @property
    def order(self) -> tuple[I64, I64, U8]:
        """Returns the sort keys of the ids, as in ``layout.Top``, made on first use."""
        if self._order is None:
            if self.numbers is not None:
                self._order = self.numbers, NO_I64, freeze_view(np.empty(0, np.uint8))
            else:
                offset, data = texts_of(self.array)
                self._order = NO_I64, freeze_view(offset.astype(np.int64)), data
        return self._order

    @property
    def longest(self) -> int:
        """Returns the most bytes that an id has, where they are strings, found on first use."""
        if self._longest is None:
            offset, _ = texts_of(self.array)
            self._longest = int(np.diff(offset).max(initial=0))
        return self._longest

    @property
    def array(self) -> pa.Array:
        """The ids as an array of Arrow, made on first use."""
        if self._array is None:
            assert self.numbers is not None
            self._array = shared(self.numbers)
        return self._array

    def __len__(self) -> int:
        return len(self.array if self.numbers is None else self.numbers)

    def __getitem__(self, number: int) -> int | str:
        id: int | str = self.array[number].as_py() if self.numbers is None else int(self.numbers[number])
        return id

    def __reduce__(self) -> tuple[Any, ...]:
        return Ids, (self.array,)

    def slice(self, begin: int, end: int) -> Ids:
        """Returns the ids of some numbers."""
        return Ids(self.array.slice(begin, end - begin) if self.numbers is None else self.numbers[begin:end])

    def take(self, numbers: NDArray[Any]) -> pa.Array:
        """Returns the ids of some numbers."""
        return shared(self.numbers[numbers]) if self.numbers is not None else self.array.take(pa.array(numbers))

    def filter(self, left: NDArray[np.bool_]) -> Ids:
        """Returns the ids where ``left`` is true."""
        return Ids(self.array.filter(pa.array(left)) if self.numbers is None else self.numbers[left])

    def find(self, wanted: Ids) -> NDArray[np.int64]:
        """Returns the last number of each id, -1 where there is none.

        wanted : of the type of these ids, unless there are none
        """
        if not len(self) or not len(wanted):
            return np.full(len(wanted), -1)
        if len(wanted) == 1:
            return np.array([self._index().find_one(wanted[0])])
        return self._index().find(wanted.given)

    def find_one(self, id: object) -> int:
        """Returns the last number of an id, -1 where there is none."""
        id = python_value(id)
        return self._index().find_one(id) if len(self) and can_be_id(id, self.type) else -1

    def prepare(self) -> None:
        """Makes the look-up of ``find``, which the first call would make otherwise."""
        self._index()

    @property
    def given(self) -> pa.Array | NDArray[np.int64]:
        """The numbers, or the strings as an array of Arrow."""
        return self.array if self.numbers is None else self.numbers

    def apart(self) -> Ids:
        """Returns these ids, with which additions to the others share no memory."""
        return Ids(self.given, None, None if self._lookup is None else self._lookup.apart())

    def _index(self) -> IdLookup:
        if self._lookup is None:
            self._lookup = IdLookup(self.given)
        return self._lookup

    def extended(self, more: Ids) -> Ids:
        """Returns these ids followed by others, in the same memory if there is room.

        Raises SubscriptionError: one Arrow array cannot hold so many bytes of strings.
        """
        if not len(self):
            return Ids(more.given)
        store = self._store or _Store(self)
        store.cut(len(self))
        store.append(more)
        ids = store.view()
        extended = Ids(ids, store, None if self._lookup is None else self._lookup.extended(ids))
        if extended.numbers is not None and self._table is not None:
            last = len(self) - 1  # only this one and the new ids are left to compare
            stay = not len(self._table[0]) and _are_consecutive(extended.numbers[last:])
            extended._table = (NO_I64, self._table[1]) if stay else (extended.numbers, 0)
        return extended


class _Store:
    """The memory of ids, with room for more."""

    def __init__(self, ids: Ids) -> None:
        columns = (ids.numbers,) if ids.numbers is not None else _text_columns(ids.array)
        self._columns = [Growing(contiguous(column)) for column in columns]

    def view(self) -> pa.Array | NDArray[np.int64]:
        """Returns all ids. Later appends do not change the result."""
        if len(self._columns) == 1:
            return self._columns[0].view()
        offset, data = (column.view() for column in self._columns)
        return pa.StringArray.from_buffers(len(offset) - 1, pa.py_buffer(offset), pa.py_buffer(data))

    def append(self, ids: Ids) -> None:
        if ids.numbers is not None:
            self._columns[0].append(ids.numbers)
            return
        offset, data = _text_columns(ids.array)
        ends = self._columns[1].size + offset[1:].astype(np.int64)
        if len(ends) and ends[-1] > MOST_BYTES:
            raise SubscriptionError("the ids have more than 2 GB of text: use shorter ones, or numbers")
        self._columns[0].append(ends.astype(np.int32))
        self._columns[1].append(data)

    def cut(self, size: int) -> None:
        """Forgets all ids but the first ``size``."""
        if len(self._columns) == 1:
            self._columns[0].size = size
        else:
            self._columns[0].size = size + 1
            self._columns[1].size = int(self._columns[0].view()[-1])


def _are_consecutive(ids: I64) -> bool:
    """Returns whether each id is one above the id before it, and there are any."""
    if not len(ids) or int(ids[-1]) - int(ids[0]) != len(ids) - 1:
        return False
    return bool((ids[1:] - ids[:-1] == 1).all())


def _text_columns(ids: pa.Array) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Returns the starts of texts and the end of the last one, from 0 on, and their bytes."""
    if not len(ids):
        return np.zeros(1, np.int32), np.empty(0, np.uint8)
    offset, text = texts_of(ids)
    return offset - offset[0], text[offset[0] : offset[-1]]
