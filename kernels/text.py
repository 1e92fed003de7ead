"""Byte strings among sorted literals, and distinct byte strings.

A string is its address, its length and its *prefix*: the first 8 bytes as a number with the order of the bytes (``load_prefix``), which
decides nearly all comparisons without touching the rest.
"""

from typing import NamedTuple

from colmatch.kernels._jit import device
from colmatch.kernels.layout import I32, I64, U8
from colmatch.kernels.memory import load_i64, load_prefix, load_u8, mix


class Words(NamedTuple):
    """S sets of L sorted distinct byte strings in all. A set of int64 is one of 8-byte strings: the prefix is the number."""

    first: I64  # (S + 1) set -> its strings
    prefix: I64  # (L)
    offset: I64  # (L + 1) string -> its bytes
    data: I64  # (1) address of the bytes
    hint: I64  # (S + 1) set -> its part of the hints: nothing, or a power of two


class Distinct(NamedTuple):
    """Distinct byte strings, V in all, of several groups one after the other. Owned by one thread."""

    table: I32  # (power of two) open addressing: number of a string of the present group, or -1
    offset: I64  # (capacity + 1) string -> its bytes
    data: U8  # (capacity)
    range: I64  # (G, 2) group -> first string, one past the last
    total: I64  # (4) V; strings or bytes that there must be room for when there is not; size of ``table`` in use - 1; address of ``data``


@device
def compare(prefix, address, length, words, r):
    """Below 0, 0 or above 0, as the string is less than, equal to or greater than string ``r`` of ``words``."""
    other = words.prefix[r]
    if prefix != other:
        return -1 if prefix < other else 1
    start = words.offset[r]
    other_length = words.offset[r + 1] - start
    return compare_tails(address, length, words.data[0] + start, other_length)


@device
def compare_tails(a, a_length, b, b_length):
    """As ``compare``, of two strings with the same first 8 bytes (or fewer, then zeros)."""
    at = 8
    while at < a_length and at < b_length:
        x = load_prefix(a + at, a_length - at)
        y = load_prefix(b + at, b_length - at)
        if x != y:
            return -1 if x < y else 1
        at += 8
    # What one has beyond the other can only be zeros in the last word, or whole words: the shorter is less.
    return a_length - b_length


@device
def label(prefix, address, length, words, hints, group):
    """2r + 1 where the string is number r of the set, 2r where it lies between r - 1 and r.

    ``hints`` remembers where strings with the same ends and length were found last. A hint is only ever where to look first, so it
    outlives batches and needs no copy of the string: a repeated string costs two comparisons instead of a search (5 ns instead of 40
    among 1,000 literals).
    """
    low = words.first[group]
    high = words.first[group + 1]
    if low == high:
        return 0
    start = words.hint[group]
    size = words.hint[group + 1] - start
    h = start
    if size > 0:
        last = load_i64(address + length - 8, 0) if length > 8 else 0
        h += mix(prefix, mix(last, length)) & (size - 1)
        r = low + hints[h]
        if r < high:
            order = compare(prefix, address, length, words, r)
            if order == 0:
                return 2 * (r - low) + 1
            if order < 0 and (r == low or compare(prefix, address, length, words, r - 1) > 0):
                return 2 * (r - low)
        elif compare(prefix, address, length, words, r - 1) > 0:
            return 2 * (r - low)
    r = high
    bottom = low
    while bottom < r:  # first string that is not less
        middle = (bottom + r) >> 1
        if words.prefix[middle] < prefix:
            bottom = middle + 1
        else:
            r = middle
    equal = 0
    if r < high and words.prefix[r] == prefix:
        top = high
        while bottom < top:  # one past the last with this prefix
            middle = (bottom + top) >> 1
            if words.prefix[middle] == prefix:
                bottom = middle + 1
            else:
                top = middle
        bottom = r
        while bottom < top:
            middle = (bottom + top) >> 1
            order = compare(prefix, address, length, words, middle)
            if order > 0:
                bottom = middle + 1
            else:
                top = middle
                if order == 0:
                    equal = 1
        r = bottom
    if size > 0:
        hints[h] = r - low
    return 2 * (r - low) + equal


@device
def start_group(distinct, most):
    """Begin a group of at most ``most`` strings. False when there is no room: ``total`` then says how much is needed."""
    if distinct.total[0] + most >= len(distinct.offset):
        distinct.total[1] = distinct.total[0] + most + 1
        return False
    size = 4
    while size < 2 * most:
        size *= 2
    for i in range(size):
        distinct.table[i] = -1
    distinct.total[2] = size - 1
    return True


@device
def number(prefix, address, length, distinct, begin):
    """Number of the string within its group, which began at string ``begin``; -1 when there is no room for its bytes."""
    mask = distinct.total[2]
    h = mix(prefix, length)
    at = 8
    while at < length:
        h = mix(load_prefix(address + at, length - at), h)
        at += 8
    h &= mask
    data = distinct.total[3]
    while distinct.table[h] >= 0:
        v = begin + distinct.table[h]
        start = distinct.offset[v]
        same = distinct.offset[v + 1] - start == length and load_prefix(data + start, length) == prefix
        if same and compare_tails(address, length, data + start, length) == 0:
            return v - begin
        h = (h + 1) & mask
    v = distinct.total[0]
    start = distinct.offset[v]
    if start + length > len(distinct.data):
        distinct.total[1] = start + length
        return -1
    for i in range(length):
        distinct.data[start + i] = load_u8(address, i)
    distinct.offset[v + 1] = start + length
    distinct.table[h] = v - begin
    distinct.total[0] = v + 1
    return v - begin
