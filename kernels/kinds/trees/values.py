"""Attributes and values of an event, and the halves and parts of a bucket that it meets."""

import numpy as np

from colmatch.kernels._jit import device, inlined
from colmatch.kernels.geometry import attribute_bit
from colmatch.kernels.kinds.trees import arrays as bt
from colmatch.kernels.kinds.trees.tables import directory, find_part


@device
def has_value(multi, event, a, lo, hi):
    """Returns whether an event has a value of an attribute within a range."""
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
def collect_attributes(event):
    """Returns the bits of an event's attributes."""
    bits = np.uint64(0)
    for e in range(event.begin, event.end):
        bits |= attribute_bit(event.attr[e])
    return bits


@device
def meets(multi, event, high, a, lo, hi):
    """Returns whether an event has an attribute that meets a range.

    high : table of the upper ends, the event's own table where it has values. Of several entries,
        one has to lie within the range
    """
    if multi[a]:
        return has_value(multi, event, a, lo, hi)
    low = event.table[a]
    return low != 0 and lo <= high[a] and low <= hi


@inlined
def enter_halves(index, n, event, stack, height):
    """Pushes those halves of a placed bucket that have a value of an event.

    Returns whether the bucket's own leaf may have a match, and the height of the stack.
    """
    node, multi, a = index.node, index.multi, np.int64(index.node[n, bt.ATTR])
    for half, low in bt.HALVES:
        if node[n, half] != bt.NONE and has_value(multi, event, a, node[n, low], node[n, low + 1]):
            stack[height] = node[n, half]
            height += 1
    return has_value(multi, event, a, node[n, bt.OWN_LO], node[n, bt.OWN_HI]), height


@device
def leads_on(node, n, absent):
    """Returns whether a bucket's directory may have a part for a row that lacks some attributes.

    absent : bits of these attributes
    """
    return directory(node, n) & ~absent != 0


@inlined
def enter_parts(index, n, event, high, stack, height):
    """Pushes the parts of a bucket's directory that an event meets.

    Looks up each attribute of the event in a long directory, and reads a short directory. Returns
    the new height of the stack, and the number of parts visited.

    high : as for ``meets``
    stack : parts are written from place ``height`` on
    """
    node, part, slot, multi = index.node, index.part, index.slot, index.multi
    attr, begin, end = event.attr, event.begin, event.end
    visited = np.int64(0)
    # Look up the event's attributes where the directory has more parts
    if node[n, bt.PARTS] > end - begin:
        bits = directory(node, n)
        for e in range(begin, end):
            a = np.int64(attr[e])
            if bits & attribute_bit(a) == 0 or (e > begin and attr[e - 1] == a):
                continue
            visited += 1
            p = find_part(slot, part, n, a)
            if p >= 0 and meets(multi, event, high, a, part[p, bt.PART_LO], part[p, bt.PART_HI]):
                stack[height] = p
                height += 1
        return height, visited
    # Otherwise read the whole directory
    p = np.int64(node[n, bt.FIRST])
    while p != bt.NONE:
        visited += 1
        a, lo, hi = np.int64(part[p, bt.PART_ATTR]), part[p, bt.PART_LO], part[p, bt.PART_HI]
        if meets(multi, event, high, a, lo, hi):
            stack[height] = p
            height += 1
        p = np.int64(part[p, bt.NEXT])
    return height, visited
