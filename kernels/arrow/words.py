"""Look-up of byte strings among sorted literals, and among distinct byte strings.

A string is its address, its length and its *prefix*: the first 8 bytes as a number with the order
of the bytes (``load_prefix``). The prefix decides nearly all comparisons without the rest.

Literals are read by address. As arrays, they were counted atomically at the start and end of every
call. A look-up took 40 ns, and now takes 10.
"""

from typing import NamedTuple

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.arrow.memory import load_i64, load_prefix, load_u8
from colmatch.kernels.bits import mix
from colmatch.kernels.layout import I32, I64, U8, Table

LONG = 48  # from so many bytes on, words are hashed two at a time


class Words(NamedTuple):
    """S sets of sorted distinct byte strings, L strings in all."""

    first: I64  # (S + 1) set -> its old strings
    recent: I64  # (S + 1) set -> its recent strings, if there are labels
    # (8) addresses of: prefixes of the old strings, int64 (L); their ends, int64 (L + 1) string ->
    # its bytes; the bytes; labels or 0. Then the same for the recent strings
    place: I64
    hint: I64  # (S + 1) set -> its part of the hints: nothing, or a power of two


class Distinct(NamedTuple):
    """Distinct byte strings, V in all, of several groups one after the other.

    One thread owns them.
    """

    table: I32  # (power of two) open addressing: number of a string of the present group, or -1
    offset: I64  # (capacity + 1) string -> its bytes
    data: U8  # (capacity)
    range: Table[I64]  # (G, 2) group -> first string, one past the last
    # (4) V; needed room in strings or bytes, if there is too little; used size of ``table`` - 1;
    # address of ``data``
    total: I64


@device
def compare(prefix, address, length, r, heads, offsets, data):
    """Compares the string with string ``r`` of the literals at three addresses.

    The result is below 0, 0 or above 0, as the string is less, equal or greater.
    """
    other = load_i64(heads, r)
    if prefix != other:
        return -1 if prefix < other else 1
    start = load_i64(offsets, r)
    return compare_tails(address, length, data + start, load_i64(offsets, r + 1) - start)


@device
def compare_tails(a, a_length, b, b_length):
    """Compares like ``compare``, for strings with the same first 8 bytes, filled up with zeros."""
    at = 8
    while at < a_length and at < b_length:
        x = load_prefix(a + at, a_length - at)
        y = load_prefix(b + at, b_length - at)
        if x != y:
            return -1 if x < y else 1
        at += 8
    # Beyond the shorter string, the longer can only have zeros in the last word, or whole words. So
    # the shorter is less.
    return a_length - b_length


@device
def hash_text(prefix, address, length):
    """Returns the hash of a string. Its low bits depend on all bytes of the string.

    A string of 8 bytes or fewer is not read.
    """
    h = mix(prefix, length)
    at = 8
    if length >= LONG:
        other = length
        while at <= length - 16:  # two words in turns, since each waits for the previous one
            h = mix(load_i64(address + at, 0), h)
            other = mix(load_i64(address + at, 8), other)
            at += 16
        h = mix(other, h)
    while at < length:
        if at > length - 8:
            at = length - 8  # the last word may overlap the previous one
        h = mix(load_i64(address + at, 0), h)
        at += 8
    return h


@device
def is_same_long(a, b, length):
    """Returns whether two strings of the same length, more than 8 bytes, are equal."""
    at = 0
    while at < length:
        if at > length - 8:
            at = length - 8
        if load_i64(a + at, 0) != load_i64(b + at, 0):
            return False
        at += 8
    return True


@device
def hint_place(prefix, address, length, size):
    """Returns the place of a string among ``size`` hints, a power of two: by ends and length."""
    last = load_i64(address + length - 8, 0) if length > 8 else 0
    return mix(prefix, mix(last, length)) & (size - 1)


@device
def label(prefix, address, length, low, high, heads, offsets, data, hint):
    """Returns the label of the string in a set ``low:high``.

    It is 2r + 1 if the string is number ``low + r``. It is 2r if the string lies between
    ``low + r - 1`` and ``low + r``.

    ``hint`` is an r to try first, or -1. For a string that was looked up before, two comparisons
    replace the search. A hint need not be right, so hints outlive batches without copies of
    strings.
    """
    # Try the hint
    if hint >= 0:
        r = low + hint
        order = -1
        if r < high:
            order = compare(prefix, address, length, r, heads, offsets, data)
            if order == 0:
                return 2 * hint + 1
        if order < 0 and (hint == 0 or compare(prefix, address, length, r - 1, heads, offsets, data) > 0):
            return 2 * hint
    # Find the first string with a prefix that is not less
    r = high
    bottom = low
    while bottom < r:
        middle = (bottom + r) >> 1
        if load_i64(heads, middle) < prefix:
            bottom = middle + 1
        else:
            r = middle
    if r == high or load_i64(heads, r) != prefix:
        return 2 * (r - low)
    # Find the end of the strings with this prefix
    top = high
    while bottom < top:
        middle = (bottom + top) >> 1
        if load_i64(heads, middle) == prefix:
            bottom = middle + 1
        else:
            top = middle
    # Find the first of them that is not less
    bottom = r
    while bottom < top:
        middle = (bottom + top) >> 1
        order = compare(prefix, address, length, middle, heads, offsets, data)
        if order == 0:
            return 2 * (middle - low) + 1
        if order > 0:
            bottom = middle + 1
        else:
            top = middle
    return 2 * (bottom - low)


@device
def key_of(found, low, labels):
    """Returns the key with gaps for a label, as in ``layout.Literals``.

    ``labels`` is the address of the labels of all literals. The key among all literals is the
    higher of the keys among old and among recent literals. Each is a label, or one above the
    nearest label below.
    """
    r = low + (found >> 1)
    if found & 1:
        return load_i64(labels, r)
    return load_i64(labels, r - 1) + 1 if r > low else np.int64(0)


@device
def start_group(table, room, total, most):
    """Begins a group of at most ``most`` distinct strings.

    Returns False without room. Then ``total`` has the room that is needed.
    """
    if total[0] + most >= room:
        total[1] = total[0] + most + 1
        return False
    size = 4
    while size < 2 * most:
        size *= 2
    for i in range(size):
        table[i] = -1
    total[2] = size - 1
    return True


@device
def number(prefix, address, length, begin, table, offset, data, total):
    """Returns the number of the string within its group, which begins at string ``begin``.

    It is -1 when there is no room for the string's bytes.
    """
    # Look the string up
    mask = total[2]
    base = total[3]
    h = hash_text(prefix, address, length) & mask
    while table[h] >= 0:
        v = begin + table[h]
        start = offset[v]
        if offset[v + 1] - start == length and load_prefix(base + start, length) == prefix:
            if length <= 8 or is_same_long(address, base + start, length):
                return v - begin
        h = (h + 1) & mask
    # Otherwise check the room for its bytes
    v = total[0]
    start = offset[v]
    if start + length > len(data):
        total[1] = start + length
        return -1
    # Append it
    copy = data[start : start + length]
    for i in range(length):
        copy[i] = load_u8(address, i)
    offset[v + 1] = start + length
    table[h] = v - begin
    total[0] = v + 1
    return v - begin
