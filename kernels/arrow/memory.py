"""Loads from raw memory: values at an address, for kernels that read buffers without numpy arrays.

Compiled loads are inlined at the call, without a function around them. Each ``device`` costs a
twentieth of a second to compile, however small, and again for each constant argument.

``load_i32(address, index)`` is the int32 at ``address + 4 * index``, of any alignment, as an int64.
So kernels do their arithmetic in one type. A 64-bit unsigned value arrives as the int64 of the same
bits, a float32 as the bits of the equal float64.

No address is checked. Interpreted kernels read the same memory with ctypes.
"""

import ctypes
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import config, types
from numba.extending import intrinsic

from colmatch.kernels._interpret import register_twin
from colmatch.kernels._jit import device

Load = Callable[[Any, Any], int]

KEY_MIN = -(2**63)


def _make_path_twin(word: int) -> Load:
    def load(address: Any, index: Any) -> int:
        return int(_plain_i64(_plain_i64(address, word), index))

    return load


def _make_twin(stored: Any) -> Load:
    size = ctypes.sizeof(stored)

    def load(address: Any, index: Any) -> int:
        return int(stored.from_address(int(address) + size * int(index)).value)

    return load


def _make_load(stored: Any, size: int, signed: bool) -> Any:
    def load(typing: Any, address: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            address, index = arguments
            value = builder.load(_pointer(context, builder, address, index, stored, size), align=1)
            if size == 8:
                return value
            return builder.sext(value, address.type) if signed else builder.zext(value, address.type)

        return (types.uint64 if stored == types.uint64 else types.int64)(types.int64, types.int64), generate

    return intrinsic(load)


def _make_path_load(word: int) -> Any:
    def load(typing: Any, address: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            address, index = arguments
            inner = builder.load(_pointer(context, builder, address, address.type(word), types.int64, 8), align=1)
            return builder.load(_pointer(context, builder, inner, index, types.int64, 8), align=1)

        return types.int64(types.int64, types.int64), generate

    return intrinsic(load)


def _pointer(context: Any, builder: Any, address: Any, index: Any, stored: Any, size: int) -> Any:
    place = builder.add(address, builder.mul(index, address.type(size)))
    return builder.inttoptr(place, context.get_value_type(stored).as_pointer())


def _plain_bit(address: Any, index: Any) -> int:
    return int(_plain_u8(address, index >> 3) >> (index & 7) & 1)


def _plain_word(address: Any, index: Any) -> Any:
    return np.uint64(ctypes.c_uint64.from_address(int(address) + 8 * int(index)).value)


def _plain_f32(address: Any, index: Any) -> int:
    return _plain_float_bits(ctypes.c_float.from_address(int(address) + 4 * int(index)).value)


def _plain_float_bits(value: Any) -> int:
    return int(struct.unpack("<q", struct.pack("<d", float(value)))[0])


def _plain_prefix(address: Any, length: Any) -> Any:
    head = ctypes.string_at(int(address), min(int(length), 8)) if length else b""
    return int.from_bytes(head.ljust(8, b"\0"), "big") + KEY_MIN


_plain_u8 = _make_twin(ctypes.c_uint8)
_plain_i64 = _make_twin(ctypes.c_int64)


@intrinsic
def _emit_bit_load(typing: Any, address: Any, index: Any) -> Any:
    """Loads bit ``index`` of a bitmap. The lowest bit of a byte comes first."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, index = arguments
        word = address.type
        byte = builder.load(_pointer(context, builder, address, builder.ashr(index, word(3)), types.uint8, 1), align=1)
        return builder.and_(builder.lshr(builder.zext(byte, word), builder.and_(index, word(7))), word(1))

    return types.int64(types.int64, types.int64), generate


@intrinsic
def _emit_f32_load(typing: Any, address: Any, index: Any) -> Any:
    """Loads a float32 as the bits of the equal float64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, index = arguments
        value = builder.load(_pointer(context, builder, address, index, types.float32, 4), align=1)
        return builder.bitcast(builder.fpext(value, context.get_value_type(types.float64)), address.type)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def _emit_float_bits(typing: Any, value: Any) -> Any:
    """Returns the bits of a float64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.int64))

    return types.int64(types.float64), generate


@intrinsic
def _reverse(typing: Any, value: Any) -> Any:
    """Returns the 8 bytes of a word in reverse order."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bswap(arguments[0])

    return types.int64(types.int64), generate


@device
def _compute_prefix(address: Any, length: Any) -> Any:
    """Returns the first 8 of ``length`` bytes as a number in their order, filled up with zeros.

    Never reads past ``length``, since the buffer may end there. Overlapping loads replace a loop
    over 1 to 7 bytes.
    """
    # Load a whole word, or overlapping parts of it
    if length >= 8:
        word = _reverse(load_i64(address, 0))
    elif length >= 4:
        head = _reverse(load_u32(address, 0))  # bytes 0 to 3, already in the high half
        tail = _reverse(load_u32(address + length - 4, 0)) >> 32 & 0xFFFFFFFF
        word = head | tail << 8 * (8 - length) & 0xFFFFFFFF
    elif length > 0:
        half = length >> 1
        last = length - 1
        word = (
            load_u8(address, 0) << 56
            | load_u8(address, half) << 56 - 8 * half
            | load_u8(address, last) << 56 - 8 * last
        )
    else:
        word = 0
    # Map the order of unsigned words to int64
    return word ^ KEY_MIN


def _choose(plain: Any, compiled: Any) -> Any:
    """Returns the intrinsic with its Python function for interpreted kernels, or the function
    without JIT.
    """
    return plain if config.DISABLE_JIT else register_twin(compiled, plain)


load_i8 = _choose(_make_twin(ctypes.c_int8), _make_load(types.int8, 1, True))
load_i16 = _choose(_make_twin(ctypes.c_int16), _make_load(types.int16, 2, True))
load_i32 = _choose(_make_twin(ctypes.c_int32), _make_load(types.int32, 4, True))
load_i64 = _choose(_plain_i64, _make_load(types.int64, 8, True))
load_u8 = _choose(_plain_u8, _make_load(types.uint8, 1, False))
load_u16 = _choose(_make_twin(ctypes.c_uint16), _make_load(types.uint16, 2, False))
load_u32 = _choose(_make_twin(ctypes.c_uint32), _make_load(types.uint32, 4, False))
load_word = _choose(_plain_word, _make_load(types.uint64, 8, False))  # as a uint64, for the functions of ``bits``
load_bit = _choose(_plain_bit, _emit_bit_load)
load_f32 = _choose(_plain_f32, _emit_f32_load)
float_bits = _choose(_plain_float_bits, _emit_float_bits)
load_prefix = _choose(_plain_prefix, _compute_prefix)


def load_path(word: int) -> Any:
    """Returns a load of an int64 through a pointer in a struct.

    The pointer is word ``word`` of the struct at an address. The value is number ``index`` behind
    the pointer.
    """
    return _choose(_make_path_twin(word), _make_path_load(word))
