"""Arrays with spare room: new rows go behind the others, mostly without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import Array, freeze_view


def with_room(size: int) -> int:
    """Returns the length of an array that must hold ``size`` rows and may grow: half as much again.

    Appending n rows one by one then copies some 3 n rows in all.
    """
    return size + size // 2 + 64


def extend_array(array: Array, used: int, needed: int) -> Array:
    """Returns the array itself, or a longer one with its first ``used`` rows if it has fewer than
    ``needed``.

    The rows behind the used ones of a longer array are 0.
    """
    return array if needed <= len(array) else lengthen_array(array, used, needed)


def lengthen_array(array: Array, used: int, needed: int) -> Array:
    """Returns an array with the first ``used`` rows of another, and room for ``needed`` or more.

    The rows behind the used ones are 0.
    """
    grown = np.zeros((with_room(needed), *array.shape[1:]), array.dtype)
    grown[:used] = array[:used]
    return grown  # type: ignore[return-value]


class Growing:
    """An array with a method to append rows.

    Earlier views never change: new rows go behind them, or into a copy.
    """

    __slots__ = ("_memory", "size")

    def __init__(self, array: NDArray[Any]) -> None:
        self._memory = array
        self.size = len(array)

    def append(self, more: NDArray[Any]) -> None:
        if not len(more):
            return
        size = self.size + len(more)
        if not self._memory.flags.writeable:
            self._memory = self._memory[: self.size]  # leaves no room, so that it is copied
        self._memory = extend_array(self._memory, self.size, size)
        self._memory[self.size : size] = more
        self.size = size

    def view(self) -> NDArray[Any]:
        """Returns all rows, read-only."""
        return freeze_view(self._memory[: self.size])
