"""Bounds of scores, for a tree without further changes.

Source: "Relevance Matters", III.C and VI. ``match_topk.py`` lists the deviations.
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.kinds.trees import arrays as bt
from colmatch.kernels.layout import F64, U32, Table, Written

MARGIN = 1e-6  # share added to bounds, since bounds and sums are rounded
HIGHEST = float(np.finfo(np.float32).max)  # largest 32-bit float, the type of bounds
INFINITE = np.uint32(0x7F800000)  # the number of infinity, which is above all other bounds


@device
def code_of_bound(bound):
    """Returns the number of a bound, rounded up. The bound is at least 0, and a higher one has a
    higher number.
    """
    high = bound * (1.0 + MARGIN)
    return np.float32(high).view(np.uint32) if high <= HIGHEST else INFINITE


@kernel
def code_bounds(bound: Written[F64], code: Written[U32]) -> None:
    """Writes the number of each bound: (L) float64 to (L) uint32."""
    for i in range(len(bound)):
        code[i] = code_of_bound(bound[i])


@kernel
def order_nodes(node: Written[Table[U32]], part: Written[Table[U32]], stack: Written[U32], order: Written[U32]) -> int:
    """Writes the buckets, each before the buckets below it. Returns their number.

    stack, order (N) : written
    """
    # Begin with the root and the bucket of unplaced conjunctions
    stack[0], stack[1] = bt.ALWAYS, bt.ROOT
    height, count = 2, 0
    while height > 0:
        height -= 1
        n = np.int64(stack[height])
        order[count] = n
        count += 1
        # Push the halves, and the topmost buckets of the parts
        for half in (node[n, bt.LEFT], node[n, bt.RIGHT]):
            if half != bt.NONE:
                stack[height] = half
                height += 1
        p = np.int64(node[n, bt.FIRST])
        while p != bt.NONE:
            stack[height] = part[p, bt.TOP]
            height += 1
            p = np.int64(part[p, bt.NEXT])
    return count


@kernel
def bound_nodes(
    node: Written[Table[U32]], part: Written[Table[U32]], bound: Written[U32], order: Written[U32], below: Written[U32]
) -> None:
    """Writes the largest bound at and below each bucket.

    bound (L) : bounds of the entries
    order : buckets, each before the buckets below it
    below (N) : written
    """
    for i in range(len(order) - 1, -1, -1):
        n = np.int64(order[i])
        most = np.uint32(0)
        begin = np.int64(node[n, bt.LEAF])
        for j in range(begin, begin + np.int64(node[n, bt.COUNT])):
            most = max(most, bound[j])
        for half in (node[n, bt.LEFT], node[n, bt.RIGHT]):
            if half != bt.NONE:
                most = max(most, below[half])
        p = np.int64(node[n, bt.FIRST])
        while p != bt.NONE:
            most = max(most, below[part[p, bt.TOP]])
            p = np.int64(part[p, bt.NEXT])
        below[n] = most
