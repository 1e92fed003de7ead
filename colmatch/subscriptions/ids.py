"""Ids of subscriptions: int64 or strings, unique, in one Arrow array."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous, frozen
from colmatch.arrays.growing import Growing
from colmatch.errors import SubscriptionError, shown
from colmatch.events.reader import texts_of
from colmatch.given.arguments import members, python_value
from colmatch.given.incoming import is_arrow, is_text, plain, refusing, sentence, single_column, values_of
from colmatch.kernels.layout import I64, KEY_MAX, KEY_MIN, U8
from colmatch.subscriptions.lookup import NUMBERS, IdLookup

MOST_BYTES = 2**31 - 1  # of all string ids: what one Arrow array of strings can hold
_NONE: I64 = frozen(np.empty(0, np.int64))


def ids_of_values(values: list[Any]) -> Ids:
    """Makes ids of Python values.

    Raises SubscriptionError: one is neither a number that fits int64 nor a string, or is there
    twice; or there are both numbers and strings.
    """
    if {type(v) for v in values} == {int}:  # as usual, and quicker
        with suppress(OverflowError):  # to be told below
            return _unique(Ids(np.array(values, np.int64)))
    values = [python_value(v) for v in values]
    kinds = {str if isinstance(v, str) else type(v) for v in values}
    if kinds - {int, str}:
        i, odd = next((i, v) for i, v in enumerate(values) if not isinstance(v, (str, int)) or isinstance(v, bool))
        raise SubscriptionError(f"the id of subscription number {i} is {shown(odd)}: ids are int64 or strings")
    if len(kinds) == 2:
        raise SubscriptionError("some ids are numbers and some are strings: use one type for all")
    wanted = pa.string() if kinds == {str} else pa.int64()
    try:
        ids = pa.array(values, wanted)
    except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError) as error:
        place = next((i for i, v in enumerate(values) if not can_be_id(v, wanted)), None)
        if place is None:
            raise SubscriptionError(f"the ids cannot be read: {sentence(error)}") from None
        wrong = "is not valid Unicode" if kinds == {str} else "does not fit int64"
        raise SubscriptionError(
            f"the id of subscription number {place} is {shown(values[place])}, which {wrong}"
        ) from None
    return _unique(Ids(ids))


def _unique(ids: Ids) -> Ids:
    if len(ids) > 1:
        checked_unique(ids.array)
    return ids


def ids_of_column(column: pa.Array, where: str) -> pa.Array:
    """Makes ids of a column, which may have one several times.

    Raises SubscriptionError: it is of another type; says ``where``.
    """
    types, given = pa.types, column.type
    if types.is_dictionary(given):
        column, given = column.dictionary_decode(), given.value_type
    try:
        if types.is_integer(given):
            return pc.add(column.cast(pa.int64()), 0)  # in memory of its own: the caller may write into his
    except pa.ArrowInvalid as error:
        raise SubscriptionError(f"{where}: an id does not fit int64: {sentence(error)}") from None
    if types.is_string(given) or types.is_large_string(given):
        return column.cast(pa.string())
    raise SubscriptionError(f"{where}: column 'id' is {given}, int64 or string is needed")


def unique_ids(column: pa.Array, where: str) -> Ids:
    """Makes ids of a column.

    Raises SubscriptionError: it is of another type, or an id is NULL or there twice.
    """
    if column.null_count:
        raise SubscriptionError(f"{where}: column 'id' is NULL in row {column.is_null().index(True).as_py()}")
    return Ids(checked_unique(ids_of_column(column, where)))


def checked_unique(ids: pa.Array) -> pa.Array:
    """Returns the ids if none is there twice.

    Raises SubscriptionError: one is; says which.
    """
    counts = ids.value_counts()
    if len(counts) < len(ids):
        twice = next(pair["values"].as_py() for pair in counts if pair["counts"].as_py() > 1)
        raise SubscriptionError(f"id {shown(twice)} is given more than once: ids must be unique")
    return ids


def listed(ids: Any) -> list[Any]:
    """Returns what a caller lists: any iterable but a text, or an Arrow array.

    Raises SubscriptionError: it is not a list of ids.
    """
    if not isinstance(ids, list):
        if is_arrow(ids):
            ids = values_of(ids, SubscriptionError, "the list of ids")
        found = members(ids)
        if found is None:
            raise SubscriptionError(f"{shown(ids)} is not a list of ids: put a single one into a list")
        return found
    return list(ids)


def wanted_ids(values: list[Any], type: pa.DataType) -> Ids:
    """Returns listed ids, of the type of those that are there.

    Raises SubscriptionError: one cannot be among those.
    """
    if type is NUMBERS and {value.__class__ for value in values} == {int}:  # as usual, and quicker
        with suppress(OverflowError):  # to be told below
            return Ids(np.array(values, np.int64))
    return _of_type(values, type, "there is no subscription {}: nothing was deleted")


def ids_among(given: Any, type: pa.DataType | None) -> Ids:
    """Returns ids that a caller lists to be matched among, which may be those of no subscription.

    given : any iterable, an array of numpy or of Arrow
    type : of the ids that there are, None where there are none

    Raises SubscriptionError: it is no list of ids, or they are of another type.
    """
    if not is_arrow(given) and (not isinstance(given, np.ndarray) or given.dtype.hasobject):
        values = listed(given)
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
    """Makes ids of a type; ``refused`` says what another value is, with braces for it."""
    values = [python_value(id) for id in values]
    for id in values:
        if not can_be_id(id, type):
            raise SubscriptionError(refused.format(shown(id)))
    return Ids(pa.array(values, type))


def can_be_id(id: object, type: pa.DataType) -> TypeGuard[int | str]:
    """Says whether a Python value can be among ids of a type."""
    if pa.types.is_string(type):
        return isinstance(id, str) and is_text(id)
    return isinstance(id, int) and not isinstance(id, bool) and KEY_MIN <= id <= KEY_MAX


def check_type(known: pa.DataType, given: pa.DataType) -> None:
    """Raises SubscriptionError where ids have another type than those of a matcher."""
    if known != given:
        raise SubscriptionError(f"the ids of this matcher are {known}, those given are {given}")


def check_new(ids: Ids, place: NDArray[np.int64]) -> None:
    """Raises SubscriptionError where an id to be inserted has a place in the matcher already."""
    if len(place) and (place >= 0).any():
        raise SubscriptionError(
            f"subscription {shown(ids[int((place >= 0).argmax())])} is there already: nothing was inserted; replace() "
            "exchanges it"
        )


def check_known(ids: Ids, place: NDArray[np.int64]) -> None:
    """Raises SubscriptionError where an id to be deleted has no place in the matcher: -1."""
    if len(place) and (place < 0).any():
        raise SubscriptionError(f"there is no subscription {shown(ids[int(place.argmin())])}: nothing was deleted")


def ids_to_arrays(ids: Ids) -> dict[str, NDArray[Any]]:
    """Returns the arrays that a saved matcher has for ids, by name."""
    if ids.numbers is not None:
        return {"ids": ids.numbers}
    offset, data = _text_columns(ids.array)
    return {"ids.offset": offset, "ids": data}


def ids_of_arrays(arrays: dict[str, NDArray[Any]]) -> Ids:
    """Makes ids of what ``ids_to_arrays`` returned, without a copy where that is possible."""
    if "ids.offset" not in arrays:
        return Ids(np.asarray(arrays["ids"], np.int64))
    offset, data = arrays["ids.offset"], pa.py_buffer(arrays["ids"])
    return Ids(pa.StringArray.from_buffers(len(offset) - 1, pa.py_buffer(offset), data))


class Ids:
    """Ids by number; with more of them it is another object, and this one stays as it is.

    Parameters
    ----------
    ids : an array of Arrow, int64 or string, or one of numbers

    Attributes
    ----------
    type : int64 or string
    numbers : the ids as an array, where they are int64
    """

    __slots__ = ("_array", "_lookup", "_order", "_store", "numbers", "type")

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

    @property
    def order(self) -> tuple[I64, I64, U8]:
        """Returns what ids are ordered by, as ``layout.Top`` has it, made when it is first asked
        for.
        """
        if self._order is None:
            if self.numbers is not None:
                self._order = self.numbers, _NONE, frozen(np.empty(0, np.uint8))
            else:
                offset, data = texts_of(self.array)
                self._order = _NONE, frozen(offset.astype(np.int64)), data
        return self._order

    @property
    def array(self) -> pa.Array:
        """The ids as an array of Arrow, which is made when it is first asked for."""
        if self._array is None:
            assert self.numbers is not None  # in the same memory; ``pa.array`` takes twice as long
            self._array = pa.Array.from_buffers(NUMBERS, len(self.numbers), [None, pa.py_buffer(self.numbers)])
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

    def filter(self, left: NDArray[np.bool_]) -> Ids:
        """Returns the ids of which this is true."""
        return Ids(self.array.filter(pa.array(left)) if self.numbers is None else self.numbers[left])

    def find(self, wanted: Ids) -> NDArray[np.int64]:
        """Returns the last number that each id has, -1 where there is none.

        wanted : of the type of these ids, unless there are none
        """
        if not len(self) or not len(wanted):
            return np.full(len(wanted), -1)
        if len(wanted) == 1:
            return np.array([self._index().find_one(wanted[0])])
        return self._index().find(wanted.given)

    def find_one(self, id: object) -> int:
        """Returns the last number that an id has, -1 where there is none."""
        id = python_value(id)
        return self._index().find_one(id) if len(self) and can_be_id(id, self.type) else -1

    def prepare(self) -> None:
        """Makes what ``find`` needs, which otherwise is made when it is called first."""
        self._index()

    @property
    def given(self) -> pa.Array | NDArray[np.int64]:
        """The numbers, or the strings as an array of Arrow."""
        return self.array if self.numbers is None else self.numbers

    def _index(self) -> IdLookup:
        if self._lookup is None:
            self._lookup = IdLookup(self.given)
        return self._lookup

    def extended(self, more: Ids) -> Ids:
        """Returns these ids and others, behind them in the same memory if there is room.

        Raises SubscriptionError: they are more than one Arrow array of strings can hold.
        """
        if not len(self):
            return Ids(more.given)
        store = self._store or _Store(self)
        store.cut(len(self))
        store.append(more)
        ids = store.view()
        return Ids(ids, store, None if self._lookup is None else self._lookup.extended(ids))


class _Store:
    """Memory of ids, with room behind them."""

    def __init__(self, ids: Ids) -> None:
        columns = (ids.numbers,) if ids.numbers is not None else _text_columns(ids.array)
        self._columns = [Growing(contiguous(column)) for column in columns]

    def view(self) -> pa.Array | NDArray[np.int64]:
        """Returns all ids, which stay as they are whatever is appended."""
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


def _text_columns(ids: pa.Array) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Returns where each text begins and the last one ends, from 0 on, and their bytes."""
    if not len(ids):
        return np.zeros(1, np.int32), np.empty(0, np.uint8)
    offset, text = texts_of(ids)
    return offset - offset[0], text[offset[0] : offset[-1]]
