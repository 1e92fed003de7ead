"""Which attributes and values an event has, and which parts of a directory it meets."""

import numpy as np

from colmatch.kernels._jit import device, inlined
from colmatch.kernels.geometry import attribute_bit
from colmatch.kernels.trees.arrays import FIRST, NEXT, NONE, PART_ATTR, PART_HI, PART_LO, PARTS
from colmatch.kernels.trees.tables import directory, find_part


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


@device
def meets(multi, low, high, attr, code, begin, end, a, lo, hi):
    """Whether the row, entries ``begin:end``, has an attribute that meets a range.

    low, high : tables of the ends, one and the same where events have values. Of several entries
    one has to lie within it.
    """
    if multi[a]:
        return has_value(multi, low, attr, code, begin, end, a, lo, hi)
    return low[a] != 0 and lo <= high[a] and low[a] <= hi


@device
def leads_on(node, n, absent):
    """Whether a bucket's directory may have a part for a row, which lacks some attributes."""
    return directory(node, n) & ~absent != 0


@inlined
def enter_parts(node, part, slot, n, multi, low, high, rows, row, stack, height):
    """Notes the parts of a bucket's directory that a row meets.

    A long directory is asked for each attribute of the row, a short one is read. low, high : as
    ``meets`` has them; stack : parts are written from place ``height`` on. Returns its new height,
    and how many parts were visited.
    """
    attr, code, begin, end = rows.attr, rows.code, rows.first[row], rows.first[row + 1]
    visited = np.int64(0)
    if node[n, PARTS] > end - begin:
        bits = directory(node, n)
        for e in range(begin, end):
            a = np.int64(attr[e])
            if bits & attribute_bit(a) == 0 or (e > begin and attr[e - 1] == a):
                continue
            visited += 1
            p = find_part(slot, part, n, a)
            if p >= 0 and meets(multi, low, high, attr, code, begin, end, a, part[p, PART_LO], part[p, PART_HI]):
                stack[height] = p
                height += 1
        return height, visited
    p = np.int64(node[n, FIRST])
    while p != NONE:
        visited += 1
        a, lo, hi = np.int64(part[p, PART_ATTR]), part[p, PART_LO], part[p, PART_HI]
        if meets(multi, low, high, attr, code, begin, end, a, lo, hi):
            stack[height] = p
            height += 1
        p = np.int64(part[p, NEXT])
    return height, visited
