"""The numbers of deleted subscriptions: bits, and a list of the last few.

Match kernels leave out a deleted number where they write a pair (``kernels/sink.py``). This costs
0.2 us an event with 380 matches. A separate pass over the pairs took 1.4 to 2.1 us. Counting such
pairs, and dropping them where pairs are ordered, took 0.9 us. Copying the bits of a million took up
to 20 of the 50 us of a delete.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import NO_I64, NO_U64, contiguous, seal
from colmatch.kernels.layout import I64, U64
from colmatch.kernels.segments.deleted_bits import drop_deleted, mark_deleted

FEW_NUMBERS = 64  # numbers that may wait in the list for their bits


class DeletedNumbers:
    """The numbers of deleted subscriptions, immutable.

    The bits of a million are 125 KB, and a delete would have to copy them. So the last deleted
    numbers stay in a list until a reader needs the bits. The reader is mostly a batch, so
    consecutive deletes copy nothing.

    Parameters
    ----------
    bits (W) : bit of each number; bits behind the last word are 0
    few : deleted numbers without a bit
    """

    __slots__ = ("_now",)

    def __init__(self, bits: U64 = NO_U64, few: I64 = NO_I64) -> None:
        self._now = contiguous(bits), few  # one assignment, since several threads may need the bits

    @property
    def bits(self) -> U64:
        """The bits of all numbers; bits behind the last word are 0."""
        bits, few = self._now
        if len(few):
            bits = _with(bits, few)
            self._now = bits, NO_I64
        return bits

    def with_more(self, numbers: NDArray[np.int64]) -> DeletedNumbers:
        """Returns these deleted numbers and others."""
        bits, few = self._now
        more = np.concatenate([few, numbers])
        return DeletedNumbers(_with(bits, more)) if len(more) > FEW_NUMBERS else DeletedNumbers(bits, seal(more))

    def drop(self, numbers: NDArray[np.int64]) -> int:
        """Writes -1 for each deleted number. Returns how many others are left.

        numbers : in writable memory; some may be -1 already
        """
        bits, few = self._now if len(numbers) <= FEW_NUMBERS else (self.bits, NO_I64)
        left: int = drop_deleted(bits, few, numbers)
        return left

    def has(self, number: int) -> bool:
        """Returns whether a number is deleted."""
        return not self.drop(np.array([number]))

    def among(self, begin: int, count: int) -> NDArray[np.bool_]:
        """Returns whether each of ``count`` numbers from ``begin`` on is deleted."""
        first, last = begin // 64, (begin + count + 63) // 64
        bits = np.unpackbits(self.bits[first:last].view(np.uint8), bitorder="little")[begin - 64 * first :][:count]
        return np.concatenate([bits, np.zeros(count - len(bits), np.uint8)]).view(bool)


def _with(bits: U64, numbers: NDArray[np.int64]) -> U64:
    words = int(numbers.max(initial=-1)) // 64 + 1
    more = np.empty(max(len(bits), words), np.uint64)
    mark_deleted(bits, contiguous(numbers), more)
    return seal(more)
