"""Arrays with room: what is appended goes behind what is there, most of the time without a copy."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import frozen

Array = TypeVar("Array", bound=NDArray[Any])


def with_room(size: int) -> int:
    """Length of an array that must hold ``size`` rows and may get more: half as much again.

    To append n rows one by one then copies some 3 n of them in all.
    """
    return size + size // 2 + 64


def extended(array: Array, used: int, needed: int) -> Array:
    """Returns the array itself, or a longer one with its first ``used`` rows if it has fewer than
    ``needed``.

    What is behind the used rows of a longer one is 0.
    """
    return array if needed <= len(array) else longer(array, used, needed)


def longer(array: Array, used: int, needed: int) -> Array:
    """Returns an array with the first ``used`` rows of another, and room for ``needed`` and more.

    What is behind them is 0.
    """
    made = np.zeros((with_room(needed), *array.shape[1:]), array.dtype)
    made[:used] = array[:used]
    return made  # type: ignore[return-value]


class Growing:
    """An array that can be appended to.

    Views stay as they are; what is appended goes behind them, or elsewhere.
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
            self._memory = self._memory[: self.size]  # so that it is copied
        self._memory = extended(self._memory, self.size, size)
        self._memory[self.size : size] = more
        self.size = size

    def view(self) -> NDArray[Any]:
        """Returns what has been appended, read-only."""
        return frozen(self._memory[: self.size])
