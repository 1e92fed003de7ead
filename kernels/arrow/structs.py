"""The struct ``ArrowArray`` of the Arrow C data interface, and the places of its parts in memory.

An array is the address of its struct. A *slot* is a physical position in the array's buffers, all
offsets included.
"""

from colmatch.kernels._jit import device
from colmatch.kernels.arrow.memory import (
    load_bit,
    load_i8,
    load_i16,
    load_i32,
    load_i64,
    load_path,
    load_u8,
    load_u16,
    load_u32,
)

# Words of the struct.
LENGTH, OFFSET, BUFFERS, CHILDREN, DICTIONARY = 0, 2, 5, 6, 7

# Physical forms of values. The first eight are also those of dictionary indexes.
I8, I16, I32, I64, U8, U16, U32, U64, BITS, WIDE, F16, F32, F64, NULLS, UTF32, UTF64, VIEW, FIXED = range(18)
TEXTS = UTF32  # forms from here on are byte strings

# Layouts of lists.
LIST32, LIST64, LIST_FIXED, VIEW32, VIEW64 = range(5)

# Columns of a leaf, which describes the storage of values and their conversion.
INDEX, FORM, WIDTH, AFTER, FACTOR = range(5)  # INDEX: form of dictionary indexes, -1 without a dictionary
NOTHING, FLOATED, SCALED, DIVIDED, FLIPPED = range(5)  # AFTER: conversion of a loaded number


buffer = load_path(BUFFERS)  # (array, b): address of buffer number b, 0 without one
child = load_path(CHILDREN)  # (array, c): child number c
bit = load_bit


@device
def integer(form, data, slot):
    """Returns the integer in a slot. A uint64 is returned as the int64 of the same bits."""
    if form == I32:
        return load_i32(data, slot)
    if form == I8:
        return load_i8(data, slot)
    if form == I16:
        return load_i16(data, slot)
    if form == U8:
        return load_u8(data, slot)
    if form == U16:
        return load_u16(data, slot)
    if form == U32:
        return load_u32(data, slot)
    return load_i64(data, slot)


@device
def value_slot(leaf, array, slot):
    """Returns the slot of a value, in the dictionary if there is one.

    It is -1 for NULL, and -2 for an index beyond the dictionary.
    """
    if leaf[FORM] == NULLS:
        return -1
    bits = buffer(array, 0)
    if bits != 0 and bit(bits, slot) == 0:
        return -1
    if leaf[INDEX] < 0:
        return slot
    k = integer(leaf[INDEX], buffer(array, 1), slot)
    dictionary = load_i64(array, DICTIONARY)
    if k < 0 or k >= load_i64(dictionary, LENGTH):
        return -2
    k += load_i64(dictionary, OFFSET)
    bits = buffer(dictionary, 0)
    return -1 if bits != 0 and bit(bits, k) == 0 else k


@device
def list_start(layout, size, offsets, i):
    """Returns the start of list ``i`` in its child."""
    if layout == LIST32 or layout == VIEW32:
        return load_i32(offsets, i)
    if layout == LIST_FIXED:
        return i * size
    return load_i64(offsets, i)


@device
def list_stop(layout, size, offsets, sizes, i):
    """Returns the end of list ``i`` in its child."""
    if layout == LIST32:
        return load_i32(offsets, i + 1)
    if layout == LIST64:
        return load_i64(offsets, i + 1)
    if layout == LIST_FIXED:
        return (i + 1) * size
    if layout == VIEW32:
        return load_i32(offsets, i) + load_i32(sizes, i)
    return load_i64(offsets, i) + load_i64(sizes, i)
