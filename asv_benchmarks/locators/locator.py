"""A locator of any kind, behind a door that checks what comes in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from colmatch.arrays.frozen import contiguous
from colmatch.errors import OptionError
from colmatch.kernels.layout import CODE_MAX, I64, KEY_MAX, KEY_MIN
from locators.base import Found, LocatorKind
from locators.registry import find


class Locator:
    """Intervals of keys, and which of them contain a key.

    An interval has both of its ends. Intervals are numbered from 0 as they stand, and those that
    come later have the number that the caller gives them; the same interval may stand there
    several times. Example: of ``[[0, 4], [2, 4]]`` the point 3 is in both, and the point 1 in
    number 0.
    """

    __slots__ = ("arrays", "kind")

    def __init__(self, intervals: ArrayLike, kind: str) -> None:
        self.kind: LocatorKind = find(kind)
        given = np.asarray(intervals)
        if (given.dtype.kind != "i" and given.size) or (given.size and given.shape[1:] != (2,)):
            raise OptionError(
                f"intervals are {given.dtype} of shape {given.shape}: give integers of int64, a lower and an upper "
                "end for each"
            )
        pairs = given.reshape(-1, 2).astype(np.int64)
        low, high = contiguous(pairs[:, 0]), contiguous(pairs[:, 1])
        wrong = np.flatnonzero(low > high)
        if len(wrong):
            _ends(int(low[wrong[0]]), int(high[wrong[0]]), int(wrong[0]))
        self.arrays: Any = self.kind.build(low, high)

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return self.kind.sizes(self.arrays)

    def count(self, points: ArrayLike) -> I64:
        """How many intervals contain each of m points."""
        return self.kind.count(self.arrays, _points(points))

    def stab(self, points: ArrayLike) -> Found:
        """The intervals that contain each of m points, in any order.

        Point i has ``found[first[i]:first[i + 1]]``; returns first (m + 1) and found.
        """
        return self.kind.stab(self.arrays, _points(points))

    def locate(self, points: ArrayLike) -> I64:
        """Number of the space that each of m points lies in."""
        if self.kind.locate is None:
            raise OptionError(f"locator {self.kind.name!r} has no spaces: use 'hinted' or another with boundaries")
        return self.kind.locate(self.arrays, _points(points))

    def touched(self, points: ArrayLike) -> I64:
        """What ``count`` reads for points, by ``locators/kernels/counting.py``."""
        return self.kind.touch(self.arrays, _points(points))

    def insert(self, low: int, high: int, number: int) -> None:
        """Enter an interval."""
        if self.kind.insert is None:
            raise OptionError(f"locator {self.kind.name!r} is static: build another, or use 'interval-tree'")
        _ends(low, high, number)
        self.arrays = self.kind.insert(self.arrays, low, high, number)

    def delete(self, low: int, high: int, number: int) -> None:
        """Take out an interval that was built with or inserted."""
        if self.kind.delete is None:
            raise OptionError(f"locator {self.kind.name!r} is static: build another, or use 'interval-tree'")
        _ends(low, high, number)
        left = self.kind.delete(self.arrays, low, high, number)
        if left is None:
            raise OptionError(f"interval {number} from {low} to {high} is not there: give it as it was inserted")
        self.arrays = left


def _points(points: ArrayLike) -> I64:
    given = np.asarray(points)
    if given.ndim != 1 or (given.dtype.kind != "i" and given.size):
        raise OptionError(f"points are {given.dtype} of shape {given.shape}: give int64 in one dimension")
    return contiguous(given.astype(np.int64, copy=False))


def _ends(low: int, high: int, number: int) -> None:
    if not KEY_MIN <= low <= high <= KEY_MAX:
        raise OptionError(f"interval {number} is from {low} to {high}: give the lower int64 end first")
    if not 0 <= number <= CODE_MAX:
        raise OptionError(f"interval number {number}: numbers are from 0 to {CODE_MAX:,}")
