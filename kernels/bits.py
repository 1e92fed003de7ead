"""Operations on the bits of 64-bit words, comparisons of many bytes at once that give such words,
and a product that is not rounded.

They are vector instructions when compiled, and use numpy and Python's integers otherwise.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

_WORD = 2**64 - 1
_ODD = 0x9E3779B97F4A7C15  # 2**64 divided by the golden ratio


def ctz(word: np.uint64) -> np.uint64:
    """Returns the number of the lowest set bit: the zeros below it. A word without one gives 64.

    ``ctz(0b101000)`` is 3. A loop over the set bits ends each step with ``word =
    without_lowest(word)``.
    """
    value = int(word)
    return np.uint64((value & -value).bit_length() - 1 if value else 64)


def without_lowest(word: np.uint64) -> np.uint64:
    """Returns the word with its lowest set bit cleared; 0 for 0."""
    value = int(word)
    return np.uint64(value & (value - 1)) if value else np.uint64(0)


def popcount(word: np.uint64) -> np.uint64:
    """Returns the number of set bits, 0 to 64."""
    return np.uint64(int(word).bit_count())


def within(values: Any, at: Any, bounds: Any) -> np.uint64:
    """Tests 64 bytes from ``values[at]`` on against a range.

    Bit i is set if byte i is at least ``bounds & 255``, and exceeds it by at most ``bounds >> 8``.
    This takes ten instructions with AVX2, and two of these tests in an AND share some.

    values : uint8, all 64 bytes must be there to be read
    bounds : uint16
    """
    return np.uint64(_pack(values, at, bounds, 64))


def within_kth(values: Any, at: Any, bounds: Any, k: Any) -> np.uint64:
    """Tests like ``within`` with ``bounds[k]``, and is quicker where no register holds it."""
    return np.uint64(_pack(values, at, bounds[k], 64))


def half_within_kth(values: Any, at: Any, bounds: Any, k: Any) -> np.uint64:
    """Tests like ``within_kth`` for i up to 31, and reads only these bytes."""
    return np.uint64(_pack(values, at, bounds[k], 32))


def words_within(values: Any, at: Any, low: Any, high: Any) -> np.uint64:
    """Tests 64 numbers from ``values[at]`` on against a range.

    Bit i is set if number i lies in ``low`` to ``high``.

    values : uint32, all 64 numbers must be there to be read
    low, high : uint32, low <= high
    """
    part = values[int(at) : int(at) + 64]
    if int(at) < 0 or len(part) < 64:
        raise IndexError(f"64 numbers from {at} of {len(values)}")
    truth = (low <= part) & (part <= high)
    return np.uint64(int.from_bytes(np.packbits(truth, bitorder="little").tobytes(), "little"))


def ask_for(values: Any, at: Any) -> None:
    """Has the processor bring ``values[at]`` into its cache, and goes on without waiting.

    Nothing happens where there is no such place.
    """


def writes_before() -> None:
    """Makes other threads see all earlier writes before they see any later one.

    This is no instruction at all on x86, which keeps this order anyway.
    """


def mix(a: Any, b: Any) -> int:
    """Mixes two 64-bit integers: the low bits of the result depend on all of their bits."""
    word = ((int(a) ^ int(b)) & _WORD) * _ODD & _WORD
    word ^= word >> 32
    return word - 2**64 if word >> 63 else word


def multiply_add(one: Any, other: Any, more: Any) -> float:
    """Returns ``one * other + more`` of doubles, rounded once."""
    if not (math.isfinite(one) and math.isfinite(other) and math.isfinite(more)):
        return float(one * other + more)
    return float(Fraction(float(one)) * Fraction(float(other)) + Fraction(float(more)))


def _pack(values: Any, at: Any, bounds: Any, size: int) -> int:
    part = values[int(at) : int(at) + size]
    if int(at) < 0 or len(part) < size:
        raise IndexError(f"{size} bytes from {at} of {len(values)}")
    truth = part - np.uint8(int(bounds) & 255) <= int(bounds) >> 8
    return int.from_bytes(np.packbits(truth, bitorder="little").tobytes(), "little")


@intrinsic
def _cttz(typing: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        # Zero is defined here (the second operand): the same instruction on every processor since
        # 2013.
        return builder.cttz(args[0], context.get_constant(types.boolean, 0))

    return types.uint64(types.uint64), generate


@intrinsic
def _ctpop(typing: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


@overload(ctz)
def _compile_ctz(word):  # numba compares annotations with the lambda's, which has none
    # another type is an error of compilation, not a silent cast
    return (lambda word: _cttz(word)) if word == types.uint64 else None


@intrinsic
def _mix(typing: Any, a: Any, b: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = builder.xor(*args)
        word = builder.mul(word, word.type(_ODD))
        return builder.xor(word, builder.lshr(word, word.type(32)))

    return types.int64(types.int64, types.int64), generate


@overload(mix)
def _compile_mix(a, b):
    return lambda a, b: _mix(a, b)


@intrinsic
def _prefetch(typing: Any, values: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer, whole = ir.IntType(8).as_pointer(), ir.IntType(32)
        place = builder.bitcast(
            builder.gep(context.make_array(signature.args[0])(context, builder, args[0]).data, [args[1]]), pointer
        )
        prefetch = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [pointer, whole, whole, whole]), "llvm.prefetch.p0"
        )
        builder.call(prefetch, [place, whole(0), whole(3), whole(1)])  # to read, into all levels, data
        return context.get_dummy_value()

    return types.void(values, types.uint64), generate


@overload(ask_for)
def _compile_ask_for(values, at):
    return (lambda values, at: _prefetch(values, at)) if at == types.uint64 else None


@intrinsic
def _fence(typing: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.fence("release")
        return context.get_dummy_value()

    return types.void(), generate


@overload(writes_before)
def _compile_writes_before():
    return lambda: _fence()


@intrinsic
def _fma(typing: Any, one: Any, other: Any, more: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return types.float64(types.float64, types.float64, types.float64), generate


@overload(multiply_add)
def _compile_multiply_add(one, other, more):
    return lambda one, other, more: _fma(one, other, more)


@overload(without_lowest)
def _compile_without_lowest(word):
    return (lambda word: word & (word - np.uint64(1))) if word == types.uint64 else None


@overload(popcount)
def _compile_popcount(word):
    return (lambda word: _ctpop(word)) if word == types.uint64 else None


def _each(builder: Any, value: Any, size: int) -> Any:
    vector, lanes = ir.VectorType(value.type, size), ir.VectorType(ir.IntType(32), size)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), ir.Constant(lanes, [0] * size))


def _compare(context: Any, builder: Any, values: Any, at: Any, low: Any, width: Any, size: int) -> Any:
    # A vector of any length, whatever the processor has: LLVM cuts it into registers, and the
    # vector of bits into a word.
    vector = ir.VectorType(low.type, size)
    part = builder.load(builder.bitcast(builder.gep(values, [at]), vector.as_pointer()))
    part.align = low.type.width // 8
    truth = builder.icmp_unsigned("<=", builder.sub(part, _each(builder, low, size)), _each(builder, width, size))
    word = builder.bitcast(truth, ir.IntType(size))
    return builder.zext(word, ir.IntType(64)) if size < 64 else word


@intrinsic
def _within(typing: Any, values: Any, at: Any, bounds: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        low = builder.trunc(args[2], ir.IntType(8))
        width = builder.trunc(builder.lshr(args[2], ir.Constant(ir.IntType(16), 8)), ir.IntType(8))
        return _compare(context, builder, data, args[1], low, width, 64)

    return types.uint64(values, types.uint64, types.uint16), generate


def _kth(size: int) -> Any:
    @intrinsic
    def within_kth(typing: Any, values: Any, at: Any, bounds: Any, k: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, args[0]).data
            # The two bytes are read one by one. A vector of equal bytes is made from memory at
            # once, but not from half of a register.
            both = context.make_array(signature.args[2])(context, builder, args[2]).data
            both = builder.bitcast(builder.gep(both, [args[3]]), ir.IntType(8).as_pointer())
            low, width = builder.load(both), builder.load(builder.gep(both, [ir.IntType(64)(1)]))
            return _compare(context, builder, data, args[1], low, width, size)

        return types.uint64(values, types.uint64, bounds, types.uint64), generate

    return within_kth


_within_kth = _kth(64)
_half_within_kth = _kth(32)


@intrinsic
def _words_within(typing: Any, values: Any, at: Any, low: Any, high: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return _compare(context, builder, data, args[1], args[2], builder.sub(args[3], args[2]), 64)

    return types.uint64(values, types.uint64, types.uint32, types.uint32), generate


@overload(words_within)
def _compile_words_within(values, at, low, high):
    if values.dtype == low == high == types.uint32 and at == types.uint64:
        return lambda values, at, low, high: _words_within(values, at, low, high)
    return None


@overload(within)
def _compile_within(values, at, bounds):
    return (
        (lambda values, at, bounds: _within(values, at, bounds))
        if at == types.uint64 and bounds == types.uint16
        else None
    )


@overload(within_kth)
def _compile_within_kth(values, at, bounds, k):
    if at == k == types.uint64 and bounds.dtype == types.uint16:
        return lambda values, at, bounds, k: _within_kth(values, at, bounds, k)
    return None


@overload(half_within_kth)
def _compile_half_within_kth(values, at, bounds, k):
    if at == k == types.uint64 and bounds.dtype == types.uint16:
        return lambda values, at, bounds, k: _half_within_kth(values, at, bounds, k)
    return None
