"""Conjunctions of several segments -> those of one, written straight to where they belong."""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import ADDED, ATTR_MASK, FLAG_RUN, LARGEST


@device
def _mark(low, high, begin, end, used):
    """Marks the boundaries of a range of dense codes, of an attribute that has ``begin:end``."""
    if low > high:
        return
    if low > 1:
        used[begin + low - 2] = 1
    if begin + high - 1 < end:
        used[begin + high - 1] = 1


@kernel
def mark_boundaries(preds, conjunctions, first, used):
    """Marks the boundaries that some conjunctions have: used (B) uint8, zero before.

    Returns one more than the highest attribute that they have.

    preds : ``layout.Predicates`` with dense codes; first (A + 1)
    """
    pred_first, pred, run_lo, run_hi = preds.first, preds.pred, preds.run_lo, preds.run_hi
    attributes = np.int64(0)
    for i in range(len(conjunctions)):
        c = conjunctions[i]
        for p in range(pred_first[c], pred_first[c + 1]):
            word = pred[p, 0]
            a = np.int64(word & np.uint32(ATTR_MASK))
            if a >= attributes:
                attributes = a + 1
            low, high = np.int64(pred[p, 1]), np.int64(pred[p, 2])
            if word & np.uint32(FLAG_RUN):
                for j in range(low, high):
                    _mark(np.int64(run_lo[j]), np.int64(run_hi[j]), first[a], first[a + 1], used)
            else:
                _mark(low, high, first[a], first[a + 1], used)
    return attributes


@kernel
def count_predicates(preds, conjunctions, order, begin, out_first, out_tree_first, totals):
    """Writes sizes of conjunctions, and tokens of their trees, behind their places in ``order``.

    preds : ``layout.Predicates`` of a segment
    conjunctions : those of it that stay; they are numbered from ``begin`` on among all
    order (C) uint32 : the numbers of all
    out_first (C + 1), out_tree_first (C + 1, or 0) int64
    totals (2) int64 : intervals and jumps of all that were counted are added
    """
    pred_first, pred, jump_first, tree_first = preds.first, preds.pred, preds.jump_first, preds.tree_first
    count = len(conjunctions)
    for d in range(len(order)):
        i = np.int64(order[d]) - begin
        if i < 0 or i >= count:
            continue
        c = conjunctions[i]
        out_first[d + 1] = pred_first[c + 1] - pred_first[c]
        for p in range(pred_first[c], pred_first[c + 1]):
            if pred[p, 0] & np.uint32(FLAG_RUN):
                totals[0] += np.int64(pred[p, 2]) - np.int64(pred[p, 1])
        if len(jump_first) > 0:
            out_tree_first[d + 1] = tree_first[c + 1] - tree_first[c]
            if jump_first[c] >= 0:
                totals[1] += pred_first[c + 1] - pred_first[c]


@device
def _lowest(low, begin, out_begin, place):
    return place[begin + low - 2] - out_begin + 2 if low > 1 else np.int64(1)


@device
def _highest(high, begin, end, out_begin, out_end, place):
    return place[begin + high - 1] - out_begin + 1 if begin + high - 1 < end else out_end - out_begin + 1


@kernel
def copy_predicates(preds, conjunctions, order, begin, number, first, place, code_first, out, filled):
    """Copies conjunctions of a segment, with dense codes among all boundaries for its own.

    preds, conjunctions, order, begin as for ``count_predicates``
    number (S) uint32 : of each subscription of the segment
    first (A + 1), place (B) : of the segment's boundaries, as ``merge_boundaries`` writes them
    code_first (A + 1) : of all boundaries
    out : ``layout.Predicates`` of all; ``first`` and ``tree_first`` are there already
    filled (2) int64 : how far intervals and jumps are written
    """
    pred_first, pred, run_lo, run_hi, owner, weight = preds[:6]
    jump_first, jump, tree_first, tree, priority = preds[6:]
    out_first, out_pred, out_lo, out_hi, out_owner, out_weight = out[:6]
    out_jump_first, out_jump, out_tree_first, out_tree, out_priority = out[6:]
    count, runs, jumps = len(conjunctions), filled[0], filled[1]
    for d in range(len(order)):
        i = np.int64(order[d]) - begin
        if i < 0 or i >= count:
            continue
        c = conjunctions[i]
        out_owner[d] = number[owner[c]]
        if len(priority) > 0:
            out_priority[d] = priority[c]
        n = out_first[d]
        for p in range(pred_first[c], pred_first[c + 1]):
            word = pred[p, 0]
            a = np.int64(word & np.uint32(ATTR_MASK))
            start, end, out_start, out_end = first[a], first[a + 1], code_first[a], code_first[a + 1]
            low, high = np.int64(pred[p, 1]), np.int64(pred[p, 2])
            out_pred[n, 0] = word
            if word & np.uint32(FLAG_RUN):
                out_pred[n, 1] = runs
                for j in range(low, high):
                    out_lo[runs] = _lowest(np.int64(run_lo[j]), start, out_start, place)
                    out_hi[runs] = _highest(np.int64(run_hi[j]), start, end, out_start, out_end, place)
                    runs += 1
                out_pred[n, 2] = runs
            elif low <= high:
                out_pred[n, 1] = _lowest(low, start, out_start, place)
                out_pred[n, 2] = _highest(high, start, end, out_start, out_end, place)
            else:
                out_pred[n, 1] = low
                out_pred[n, 2] = high
            if len(weight) > 0:
                out_weight[n, ADDED] = weight[p, ADDED]
                out_weight[n, LARGEST] = weight[p, LARGEST]
            n += 1
        if len(jump_first) == 0:
            continue
        n = out_tree_first[d]
        for t in range(tree_first[c], tree_first[c + 1]):
            out_tree[n] = tree[t]
            n += 1
        if jump_first[c] >= 0:
            out_jump_first[d] = jumps
            for j in range(jump_first[c], jump_first[c] + pred_first[c + 1] - pred_first[c]):
                out_jump[jumps, 0] = jump[j, 0]
                out_jump[jumps, 1] = jump[j, 1]
                jumps += 1
    filled[0] = runs
    filled[1] = jumps
