"""Ids -> numbers of subscriptions, by a hash table without a Python object for each id.

A dictionary of a million ids took a second to make. Longer look-ups share the slots of the shorter
ones that they grew from.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.frozen import NO_I32, NO_I64, contiguous, freeze_view
from colmatch.arrays.shared import NUMBERS
from colmatch.events.reader import texts_of
from colmatch.kernels import ids as kernels
from colmatch.kernels._jit import entry
from colmatch.kernels.layout import I32, I64, U8

SPARE = 64  # slots beyond two for each id
_NO_DATA: U8 = freeze_view(np.empty(0, np.uint8))


class IdLookup:
    """A look-up of the number of a subscription by its id: its place among ``ids``.

    It does not change. Any number of threads may search at once, also while a thread extends it.

    Parameters
    ----------
    ids : an array of numbers, or an Arrow array of int64 or strings, without NULL. The last place
        of a repeated id counts
    """

    __slots__ = ("_length", "_search", "_table")
    _table: _Table | None

    def __init__(self, ids: pa.Array | I64) -> None:
        self._take(_Table(len(ids)), ids, 0)

    def __len__(self) -> int:
        return self._length

    def find(self, wanted: pa.Array | I64) -> NDArray[np.int64]:
        """Finds the number of each wanted id, -1 where there is none.

        wanted : of the type of the ids, without NULL
        """
        place = np.empty(len(wanted), np.int64)
        kernels.find(*self._search, *_columns(wanted), place)
        return place

    def find_one(self, id: int | str) -> int:
        """Finds the number of an id of the right type, -1 where there is none."""
        if isinstance(id, str):
            number: int = entry(kernels.find_one)(*self._search, 0, np.frombuffer(id.encode(), np.uint8))
        else:
            number = entry(kernels.find_one)(*self._search, id, _NO_DATA)
        return number

    def apart(self) -> IdLookup:
        """Returns a look-up of the same ids that never shares its table with a longer one."""
        other = IdLookup.__new__(IdLookup)
        other._table, other._length, other._search = None, self._length, self._search
        return other

    def extended(self, ids: pa.Array | I64) -> IdLookup:
        """Returns a look-up of more ids, which begin with the ids of this one.

        If the table has room, the result shares it, and takes time for the new ids alone. Only the
        longest look-up of a table can share it. A shorter one gets a new table, even if the longer
        one was thrown away. One thread at a time extends the look-ups of a table.
        """
        table = self._table
        if table is None or table.used != self._length or len(ids) > table.room:
            return IdLookup(ids)
        longer = IdLookup.__new__(IdLookup)
        longer._take(table, ids, self._length)
        return longer

    def _take(self, table: _Table, ids: pa.Array | I64, first: int) -> None:
        columns = _columns(ids)
        table.used = len(ids)  # first, so that no other thread writes there too
        enter: Callable[..., None] = kernels.enter_few if len(ids) - first <= kernels.BLOCK else kernels.enter
        enter(*columns, first, table.base, table.mask, table.hashes, table.slot, table.earlier)
        self._table, self._length = table, len(ids)
        self._search = (*columns, *table.search)


class _Table:
    """A table that look-ups share: see ``kernels/ids.py``.

    It has two slots for each id at the start, and room for ids in two thirds of the slots. So there
    is a new table after a third more ids. A table has some 9 bytes an id.

    Attributes
    ----------
    used : number of ids of the longest look-up in the table
    """

    __slots__ = ("base", "earlier", "hashes", "mask", "room", "search", "slot", "used")

    def __init__(self, length: int) -> None:
        self.slot = np.zeros(2 * length + SPARE, np.uint32)
        self.room = len(self.slot) * 2 // 3
        self.mask = (1 << self.room.bit_length()) - 1
        self.base = length
        self.earlier = np.empty(self.room - length, np.uint32)
        self.hashes = np.empty(kernels.BLOCK, np.int64)
        self.used = 0
        self.search = (freeze_view(self.slot), freeze_view(self.earlier), self.base, self.mask)


def _columns(ids: pa.Array | I64) -> tuple[I64, I32, U8]:
    """Returns ids as kernels take them: numbers, or offsets and bytes of strings."""
    if isinstance(ids, np.ndarray):
        return contiguous(ids), NO_I32, _NO_DATA
    if ids.type == NUMBERS:
        return contiguous(ids.to_numpy()), NO_I32, _NO_DATA
    return (NO_I64, *texts_of(ids))
