"""Bits of deleted subscriptions: one for each number. Numbers behind the last word have 0."""

import numpy as np

from colmatch.kernels._jit import brief, kernel
from colmatch.kernels.layout import I64, U64, Written
from colmatch.kernels.sink import is_deleted


@brief
def drop_deleted(deleted_bits: U64, few: I64, numbers: Written[I64]) -> int:
    """Writes -1 for each number with its bit set, and for each number that is one of a few.

    Returns the number of others left.

    deleted_bits (W) uint64; few (F) int64, read-only; numbers (N) int64, some of them -1 already
    """
    left = 0
    for i in range(len(numbers)):
        if numbers[i] >= 0 and is_deleted(deleted_bits, np.uint64(numbers[i])):
            numbers[i] = -1
        for j in range(len(few)):
            if few[j] == numbers[i]:
                numbers[i] = -1
        if numbers[i] >= 0:
            left += 1
    return left


@kernel
def mark_deleted(deleted_bits: U64, numbers: I64, bits: Written[U64]) -> None:
    """Writes the bits of ``deleted_bits`` and those of some numbers to ``bits`` (at least W)."""
    for w in range(len(bits)):
        bits[w] = deleted_bits[w] if w < len(deleted_bits) else np.uint64(0)
    for i in range(len(numbers)):
        bits[numbers[i] >> 6] |= np.uint64(1) << np.uint64(numbers[i] & 63)


@kernel
def clear_bits(numbers: I64, bits: Written[U64]) -> None:
    """Clears the bits of some numbers (N) int64 among ``bits`` (W) uint64."""
    for i in range(len(numbers)):
        bits[numbers[i] >> 6] &= ~(np.uint64(1) << np.uint64(numbers[i] & 63))
