"""Reasons why subscriptions match nothing: rows that a single slot has turned away.

A subscription has *slots* for its predicates. Equal predicates share a slot, or all predicates on
attributes of one name. A slot alone turns a row away if the row would match with all predicates of
the slot true. Negations are within predicates, so making a predicate true makes nothing false.
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.bits import popcount
from colmatch.kernels.layout import ACCEPT, ATTR_MASK, FLAG_RUN, I64, U8, U32, U64, Predicates, Rows, Written
from colmatch.kernels.predicates import conditions_of
from colmatch.kernels.tiles import TILE_ROWS, clear_tile, fill_tile, lanes_where


@device
def same_predicate(pred, run_lo, run_hi, p, q):
    """Returns whether two predicates are equal, wherever their runs are stored."""
    word = pred[p, 0]
    if word != pred[q, 0]:
        return False
    if not word & FLAG_RUN:
        return pred[p, 1] == pred[q, 1] and pred[p, 2] == pred[q, 2]
    begin, other = np.int64(pred[p, 1]), np.int64(pred[q, 1])
    count = np.int64(pred[p, 2]) - begin
    if np.int64(pred[q, 2]) - other != count:
        return False
    for i in range(count):
        if run_lo[begin + i] != run_lo[other + i] or run_hi[begin + i] != run_hi[other + i]:
            return False
    return True


@kernel
def number_slots(
    preds: Predicates,
    first: I64,
    members: I64,
    name: I64,
    slot: Written[I64],
    begin: Written[I64],
    sample: Written[I64],
) -> int:
    """Numbers the slots of each subscription, from 0 on. Returns the number of slots in all.

    first, members : (S + 1), (C) int64, conjunctions of each subscription
    name : (A) int64, number of each attribute's name, or (0) where only equal predicates share a
        slot
    slot : (P) int64, written, the slot of each predicate
    begin : (S + 1) int64, written, the first slot of each subscription
    sample : (P) int64, written, some predicate of each slot
    """
    pred, run_lo, run_hi = preds.pred, preds.run_lo, preds.run_hi
    total = np.int64(0)
    for s in range(len(first) - 1):
        begin[s] = total
        for i in range(first[s], first[s + 1]):
            c = members[i]
            for p in range(preds.first[c], preds.first[c + 1]):
                # Find the predicate's slot, or make a new one
                at = begin[s]
                while at < total:
                    q = sample[at]
                    if len(name) > 0:
                        if name[pred[p, 0] & ATTR_MASK] == name[pred[q, 0] & ATTR_MASK]:
                            break
                    elif same_predicate(pred, run_lo, run_hi, p, q):
                        break
                    at += 1
                if at == total:
                    sample[total] = p
                    total += 1
                slot[p] = at - begin[s]
    begin[len(first) - 1] = total
    return total


@device
def follow_program(jump, at_jump, count, holds, slot, p, forced, every, target):
    """Returns the rows that a program accepts if all predicates of slot ``forced`` are true.

    Jumps lead forward only, so one pass is enough.

    holds : for each predicate of the program, the rows where it is true
    target : as many zeros, on entry and return
    """
    matches = np.uint64(0)
    target[0] = every
    for i in range(count):
        rows = target[i]
        target[i] = np.uint64(0)
        # Send the rows on to the targets of the predicate
        true = rows if slot[p + i] == forced else rows & holds[i]
        for side in range(2):
            part = true if side == 0 else rows & ~true
            to = jump[at_jump + i, side]
            if to >= 0:
                target[to] |= part
            elif to == ACCEPT:
                matches |= part
    return matches


@kernel
def count_reasons(
    preds: Predicates,
    first: I64,
    members: I64,
    slots: Written[tuple[I64, I64]],
    multi: U8,
    rows: Written[Rows],
    valid: Written[U8],
    left_out: Written[U8],
    scratch: Written[tuple[U32, U64, U64, U64, U64]],
    alone: Written[I64],
    several: Written[I64],
) -> None:
    """Counts the rows that each slot of a subscription alone turns away.

    Parameters
    ----------
    first, members : as for ``number_slots``
    slots : ``slot`` and ``begin``, as ``number_slots`` wrote them
    multi : (A) uint8, as in ``layout.Codes``
    rows : ``layout.Rows``
    valid : (N) uint8, 0 for rows that are left out
    left_out : (S) uint8, 1 for subscriptions that are left out; written for those that match a row
    scratch : tile (A * 64) uint32, zeros; ``failed`` and ``sole`` (most slots of a subscription)
        uint64; ``holds`` and ``target`` (longest program) uint64, zeros
    alone : (slots) int64, added to
    several : (S) int64, added to: rows that no slot alone has turned away
    """
    slot, begin = slots
    value, failed, sole, holds, target = scratch
    conds, jump_first = conditions_of(preds), preds.jump_first
    for start in range(0, len(valid), TILE_ROWS):
        stop = min(start + TILE_ROWS, len(valid))
        # Enter the valid rows into a tile
        every = np.uint64(0)
        for row in range(start, stop):
            every |= np.uint64(valid[row]) << np.uint64(row - start)
        if every == 0:
            continue
        tile = fill_tile(rows, start, stop, multi, value)
        for s in range(len(left_out)):
            if left_out[s]:
                continue
            # Find the rows that match, and those that each slot alone turns away
            count, matched = begin[s + 1] - begin[s], np.uint64(0)
            for i in range(count):
                sole[i] = np.uint64(0)
            for i in range(first[s], first[s + 1]):
                c = members[i]
                p, p_end = preds.first[c], preds.first[c + 1]
                # Evaluate a program once for each slot
                if len(jump_first) > 0 and jump_first[c] >= 0:
                    for q in range(p, p_end):
                        holds[q - p] = lanes_where(conds, q, every, tile)
                    at = jump_first[c]
                    matched |= follow_program(preds.jump, at, p_end - p, holds, slot, p, -1, every, target)
                    for j in range(count):
                        sole[j] |= follow_program(preds.jump, at, p_end - p, holds, slot, p, j, every, target)
                    continue
                # In a plain conjunction, find rows where exactly one slot fails
                once, twice, q = np.uint64(0), np.uint64(0), p
                for j in range(p, p_end):
                    failed[slot[j]] = np.uint64(0)
                while q < p_end and twice != every:
                    rest = every & ~twice
                    fails = rest & ~lanes_where(conds, q, rest, tile)
                    new = fails & ~failed[slot[q]]  # in this slot, no other has failed
                    twice |= once & new
                    once |= new
                    failed[slot[q]] |= fails
                    q += 1
                matched |= every & ~once
                for j in range(p, p_end):
                    sole[slot[j]] |= failed[slot[j]] & ~twice
            # Leave out subscriptions that match, and count the rows of the others
            if matched != 0:
                left_out[s] = 1
                continue
            any = np.uint64(0)
            for i in range(count):
                alone[begin[s] + i] += np.int64(popcount(sole[i]))
                any |= sole[i]
            several[s] += np.int64(popcount(every & ~any))
        clear_tile(tile)
