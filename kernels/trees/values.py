"""Which attributes an event has, and whether it has a value within the range of a bucket."""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.trees.geometry import attribute_bit


@device
def has_value(multi, table, attr, code, begin, end, a, lo, hi):
    """Whether the row, entries ``begin:end``, has a value of an attribute within a range."""
    v = np.int64(table[a])
    if v == 0:
        return False
    if not multi[a]:
        return lo <= v and v <= hi
    e = begin + v - 1
    while e < end and attr[e] == a:
        if lo <= code[e] and code[e] <= hi:
            return True
        e += 1
    return False


@device
def attributes_there(attr, begin, end):
    """Bits of the attributes of a row, entries ``begin:end``."""
    bits = np.uint64(0)
    for e in range(begin, end):
        bits |= attribute_bit(attr[e])
    return bits
