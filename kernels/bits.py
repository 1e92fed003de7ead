"""Bits of 64-bit words: one machine instruction when compiled, Python's integers otherwise."""

from typing import Any

import numpy as np
from numba.core import types
from numba.extending import intrinsic, overload


def ctz(word: np.uint64) -> np.uint64:
    """Zeros below the lowest set bit: its number. 64 for a word without one.

    ``ctz(0b101000)`` is 3. A loop over the set bits ends each step with ``word &= word - np.uint64(1)``, which clears the lowest.
    """
    value = int(word)
    return np.uint64((value & -value).bit_length() - 1 if value else 64)


def popcount(word: np.uint64) -> np.uint64:
    """Number of set bits, 0 to 64."""
    return np.uint64(int(word).bit_count())


@intrinsic
def _cttz(typing: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        # Zero is defined here (the second operand): the same instruction on every processor since 2013.
        return builder.cttz(args[0], context.get_constant(types.boolean, 0))

    return types.uint64(types.uint64), generate


@intrinsic
def _ctpop(typing: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


@overload(ctz)
def _compile_ctz(word):  # numba compares annotations with the lambda's, which has none
    return (lambda word: _cttz(word)) if word == types.uint64 else None  # another type is an error of compilation, not a silent cast


@overload(popcount)
def _compile_popcount(word):
    return (lambda word: _ctpop(word)) if word == types.uint64 else None
