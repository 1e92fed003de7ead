"""Bits and bytes: what is compiled to single instructions against Python."""

from __future__ import annotations

import numpy as np
import pytest
from contract import NO_JIT
from numpy.typing import NDArray

from colmatch.kernels import bits
from colmatch.kernels._jit import kernel

# Kernels are what compiles: tests cannot call intrinsics from Python.


@kernel
def each_within(values, bounds, single, half):
    for at in range(np.uint64(len(single))):
        for k in range(np.uint64(len(bounds))):
            single[at, k] = bits.within(values, at, bounds[k])
            if single[at, k] != bits.within_kth(values, at, bounds, k):
                single[at, k] = ~single[at, k]
            half[at, k] = bits.half_within_kth(values, at, bounds, k)


@kernel
def each_words_within(values, low, high, out):
    for at in range(np.uint64(len(out))):
        out[at] = bits.words_within(values, at, low[at], high[at])


@kernel
def each_without_lowest(words, out):
    for i in range(len(words)):
        out[i] = bits.without_lowest(words[i])


@kernel
def ask(values, at):
    bits.ask_for(values, at)


def expected(values: NDArray[np.uint8], at: int, bounds: int, size: int) -> int:
    low, width = bounds & 255, bounds >> 8
    return sum(1 << i for i in range(size) if 0 <= (int(values[at + i]) - low) % 256 <= width)


def test_within_is_a_comparison_of_each_byte() -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(0, 256, 64 + 19, np.uint8)
    bounds = np.concatenate(
        [rng.integers(0, 1 << 16, 12, np.uint16), np.array([0, 255, 255 << 8, 3 | 250 << 8], np.uint16)]
    )
    single, half = np.empty((20, 16), np.uint64), np.empty((20, 16), np.uint64)
    each_within(values, bounds, single, half)
    for at in range(20):
        for k, bound in enumerate(bounds.tolist()):
            assert int(single[at, k]) == expected(values, at, bound, 64)
            assert int(half[at, k]) == expected(values, at, bound, 32)


def test_words_within_is_a_comparison_of_each_number() -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(0, 9, 64 + 9, np.uint32) * np.uint32((2**32 - 1) // 8)
    low = np.minimum(*rng.choice(values, (2, 10)))
    high = np.maximum(low, rng.choice(values, 10))
    low[0], high[0], high[1] = 0, 2**32 - 1, low[1]
    out = np.empty(10, np.uint64)
    each_words_within(values, low, high, out)
    for at in range(10):
        truth = [int(low[at]) <= value <= int(high[at]) for value in values[at : at + 64].tolist()]
        assert int(out[at]) == sum(1 << i for i, holds in enumerate(truth) if holds)


@pytest.mark.skipif(not NO_JIT, reason="compiled code reads what it is told to")
def test_without_the_jit_bytes_that_are_not_there_are_an_error() -> None:
    with pytest.raises(IndexError, match="64 bytes from 20 of 83"):
        bits.within(np.zeros(83, np.uint8), 20, np.uint16(0))
    with pytest.raises(IndexError, match="64 numbers from 20 of 83"):
        bits.words_within(np.zeros(83, np.uint32), 20, np.uint32(0), np.uint32(1))


def test_without_lowest() -> None:
    words = np.array([0, 1, 2, 3, 12, 2**63, 2**64 - 1], np.uint64)
    out = np.empty_like(words)
    each_without_lowest(words, out)
    assert out.tolist() == [0, 0, 0, 2, 8, 0, 2**64 - 2]


@pytest.mark.parametrize("at", [0, 3, 10**12, 2**64 - 1])
def test_asking_for_any_place_does_no_harm(at: int) -> None:
    values = np.arange(4)
    ask(values, np.uint64(at))
    assert values.tolist() == [0, 1, 2, 3]
