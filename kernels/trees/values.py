"""Which attributes and values an event has, and which parts of a directory it meets."""

import numpy as np

from colmatch.kernels._jit import device, inlined
from colmatch.kernels.geometry import attribute_bit
from colmatch.kernels.trees.arrays import FIRST, NEXT, NONE, PART_ATTR, PART_HI, PART_LO, PARTS
from colmatch.kernels.trees.tables import directory, find_part


@device
def has_value(multi, event, a, lo, hi):
    """Whether an event has a value of an attribute within a range."""
    v = np.int64(event.table[a])
    if v == 0:
        return False
    if not multi[a]:
        return lo <= v and v <= hi
    e = event.begin + v - 1
    while e < event.end and event.attr[e] == a:
        if lo <= event.code[e] and event.code[e] <= hi:
            return True
        e += 1
    return False


@device
def attributes_there(event):
    """Bits of the attributes of an event."""
    bits = np.uint64(0)
    for e in range(event.begin, event.end):
        bits |= attribute_bit(event.attr[e])
    return bits


@device
def meets(multi, event, high, a, lo, hi):
    """Whether an event has an attribute that meets a range.

    high : table of the upper ends, the event's own where it has values. Of several entries one has
    to lie within the range.
    """
    if multi[a]:
        return has_value(multi, event, a, lo, hi)
    low = event.table[a]
    return low != 0 and lo <= high[a] and low <= hi


@device
def leads_on(node, n, absent):
    """Whether a bucket's directory may have a part for a row, which lacks some attributes."""
    return directory(node, n) & ~absent != 0


@inlined
def enter_parts(index, n, event, high, stack, height):
    """Notes the parts of a bucket's directory that an event meets.

    A long directory is asked for each attribute of the event, a short one is read. high : as
    ``meets`` has it; stack : parts are written from place ``height`` on. Returns its new height,
    and how many parts were visited.
    """
    node, part, slot, multi = index.node, index.part, index.slot, index.multi
    attr, begin, end = event.attr, event.begin, event.end
    visited = np.int64(0)
    if node[n, PARTS] > end - begin:
        bits = directory(node, n)
        for e in range(begin, end):
            a = np.int64(attr[e])
            if bits & attribute_bit(a) == 0 or (e > begin and attr[e - 1] == a):
                continue
            visited += 1
            p = find_part(slot, part, n, a)
            if p >= 0 and meets(multi, event, high, a, part[p, PART_LO], part[p, PART_HI]):
                stack[height] = p
                height += 1
        return height, visited
    p = np.int64(node[n, FIRST])
    while p != NONE:
        visited += 1
        a, lo, hi = np.int64(part[p, PART_ATTR]), part[p, PART_LO], part[p, PART_HI]
        if meets(multi, event, high, a, lo, hi):
            stack[height] = p
            height += 1
        p = np.int64(part[p, NEXT])
    return height, visited
