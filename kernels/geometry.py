"""Ranges of codes as ranges of keys: how wide they are, and where they are cut.

Codes number the intervals between boundaries of predicates. So the middle of two codes says nothing
about the domain. Widths and middles are computed from keys, as floats. They are estimates, and no
match depends on them.
"""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.layout import ATTR_MASK, FLAG_NONE, FLAG_RUN, REJECT


@device
def count_below(codes, a, code):
    """Returns the number of boundaries of an attribute that begin a code up to this one."""
    return boundaries_below(codes.first, codes.label, a, code)


@device
def boundaries_below(first, label, a, code):
    """Counts like ``count_below`` on the arrays of codes, for inner loops."""
    begin, end = first[a], first[a + 1]
    if len(label) == 0:
        return min(np.int64(code) - 1, end - begin)
    low, high = begin, end
    while low < high:
        middle = (low + high) >> 1
        if label[middle] <= code:
            low = middle + 1
        else:
            high = middle
    return low - begin


@device
def code_from(codes, a, n):
    """Returns the code that begins at boundary number ``n`` of an attribute."""
    if len(codes.label) == 0:
        return n + 2
    return np.int64(codes.label[codes.first[a] + n])


@device
def low_key(codes, a, code):
    """Returns the lowest key with this code, or the lowest boundary."""
    return _key_from(codes.first, codes.bound, a, count_below(codes, a, code))


@device
def high_key(codes, a, code):
    """Returns the key after the highest key with this code, or after the highest boundary."""
    return _key_after(codes.first, codes.bound, a, count_below(codes, a, code))


@device
def _key_from(first, bound, a, n):
    return float(bound[first[a] + max(n - 1, 0)])


@device
def _key_after(first, bound, a, n):
    begin, end = first[a], first[a + 1]
    return float(bound[begin + n]) if begin + n < end else float(bound[end - 1]) + 1.0


@device
def width(codes, a, lo, hi):
    """Returns the number of keys with a code from ``lo`` to ``hi``, between the outermost
    boundaries.
    """
    if codes.first[a] == codes.first[a + 1]:
        return 1.0
    return max(high_key(codes, a, hi) - low_key(codes, a, lo), 0.0)


@device
def share(codes, a, lo, hi):
    """Returns the share of keys with a code from ``lo`` to ``hi`` among all keys between the
    outermost boundaries.
    """
    return share_between(codes.first, codes.bound, codes.label, a, lo, hi)


@device
def share_between(first, bound, label, a, lo, hi):
    """Returns ``share`` from the arrays of codes, for inner loops."""
    begin, end = first[a], first[a + 1]
    if begin == end:
        return 1.0
    low = _key_from(first, bound, a, boundaries_below(first, label, a, lo))
    high = _key_after(first, bound, a, boundaries_below(first, label, a, hi))
    domain = max(float(bound[end - 1]) + 1.0 - float(bound[begin]), 1.0)
    return min(max(high - low, 0.0) / domain, 1.0)


@device
def middle_of(codes, a, lo, hi, by_codes):
    """Returns the code that begins the upper half of a range, 0 where the range cannot be cut.

    It begins at the boundary within the range that is nearest to the middle of its keys.

    by_codes : take the middle one of the boundaries instead
    """
    begin = codes.first[a]
    low, high = count_below(codes, a, lo), count_below(codes, a, hi)  # boundaries within: low to high - 1
    if low >= high:
        return np.int64(0)
    if by_codes:
        return code_from(codes, a, (low + high) >> 1)
    # Find the first boundary at or above the middle of the keys
    middle = (low_key(codes, a, lo) + high_key(codes, a, hi)) / 2
    n, end = low, high - 1
    while n < end:
        between = (n + end) >> 1
        if float(codes.bound[begin + between]) < middle:
            n = between + 1
        else:
            end = between
    # Take the boundary before it where that is nearer
    if n > low and middle - float(codes.bound[begin + n - 1]) < float(codes.bound[begin + n]) - middle:
        n -= 1
    return code_from(codes, a, n)


@device
def required_end(preds, c):
    """Returns the end of the predicates that must be true for the conjunction to be true.

    They are its first ones. Unless the conjunction is a program, all of its predicates must be
    true.
    """
    return end_of_required(preds.first, preds.jump_first, preds.jump, c)


@device
def end_of_required(first, jump_first, jump, c):
    begin, end = first[c], first[c + 1]
    if len(jump_first) == 0 or jump_first[c] < 0:
        return end
    at = jump_first[c]
    n = np.int64(0)
    while begin + n < end and jump[at + n, 1] == REJECT:
        n += 1
        if jump[at + n - 1, 0] != n:
            break
    return begin + n


@device
def range_of(preds, p):
    """Returns the lowest and highest code of a present value that can make a predicate true."""
    if preds.pred[p, 0] & FLAG_RUN:
        return np.int64(preds.run_lo[preds.pred[p, 1]]), np.int64(preds.run_hi[preds.pred[p, 2] - 1])
    return np.int64(preds.pred[p, 1]), np.int64(preds.pred[p, 2])


@device
def predicate_on(preds, c, a):
    """Returns the first predicate by which an attribute can place a conjunction, -1 without one."""
    return predicate_among(preds.first, preds.pred, preds.jump_first, preds.jump, c, a)


@device
def predicate_among(first, pred, jump_first, jump, c, a):
    for p in range(first[c], end_of_required(first, jump_first, jump, c)):
        word = np.int64(pred[p, 0])
        if word & ATTR_MASK == a and not word & FLAG_NONE:
            return p
    return np.int64(-1)


@device
def attributes_of(preds, c):
    """Returns the bits of the attributes without which a conjunction is false."""
    bits = np.uint64(0)
    for p in range(preds.first[c], required_end(preds, c)):
        if not preds.pred[p, 0] & FLAG_NONE:
            bits |= attribute_bit(preds.pred[p, 0] & ATTR_MASK)
    return bits


@device
def attribute_bit(a):
    return np.uint64(1) << (np.uint64(a) & np.uint64(63))
