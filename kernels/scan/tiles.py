"""SCAN: conjunctions tested for up to 64 events at once.

The loop over predicates is that of ``lanes_that_hold``, which takes twice as long: called for each
head that holds, it counts references of all its arrays.
"""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.bits import ctz, popcount, without_lowest
from colmatch.kernels.layout import ATTR_MASK, CANDIDATES, CONJUNCTIONS, PREDICATES
from colmatch.kernels.predicates import flagged_holds
from colmatch.kernels.scan.arrays import HEADS
from colmatch.kernels.tiles import TILE_ROWS, clear_tile, fill_tile, lane_accepted, lanes_within, take_lanes


@device
def match_tile(index, preds, rows, start, stop, scratch, sink, counters):
    """Match rows ``start:stop``, at most ``TILE_ROWS``. False when there is no room in the sink."""
    head, multi, tile = index.head, index.multi, scratch.tile
    first, pred, run_lo, run_hi, owner = preds.first, preds.pred, preds.run_lo, preds.run_hi, preds.owner
    jump_first, jump = preds.jump_first, preds.jump
    row_first, row_attr, row_code = rows.first, rows.attr, rows.code
    heads = np.uint64(index.state[HEADS])
    fill_tile(row_first, row_attr, row_code, start, stop, multi, tile)
    every = ~np.uint64(0) >> np.uint64(TILE_ROWS - (stop - start))
    candidates, steps = np.uint64(0), np.uint64(0)
    last, done = np.int64(-1), np.uint64(0)  # a subscription, and the rows that it was emitted for
    fits = True
    for c in range(heads):
        left = every & lanes_within(tile, head[c, 0], head[c, 1], head[c, 2])
        if left == 0:
            continue
        sub = np.int64(owner[c])
        if sub != last:
            last, done = sub, np.uint64(0)
        left &= ~done
        candidates += popcount(left)
        if len(jump_first) > 0 and jump_first[c] >= 0:
            there = left
            while there != 0:
                lane = ctz(there)
                there = without_lowest(there)
                row = start + np.int64(lane)
                holds, taken = lane_accepted(
                    pred, run_lo, run_hi, first[c], jump, jump_first[c],
                    row_attr, row_code, row_first[row], row_first[row + 1], tile, lane,
                )  # fmt: skip
                steps += np.uint64(taken)
                left ^= np.uint64(not holds) << lane
        else:
            p, p_end = np.uint64(first[c]), np.uint64(first[c + np.uint64(1)])
            while left != 0 and p < p_end:
                steps += popcount(left)
                word = pred[p, 0]  # this loop stands in kernels/tiles.py as well
                if word <= ATTR_MASK:
                    left &= lanes_within(tile, word, pred[p, 1], pred[p, 2])
                else:
                    there = left
                    while there != 0:
                        lane = ctz(there)
                        there = without_lowest(there)
                        row = start + np.int64(lane)
                        v = tile[np.uint64(word & ATTR_MASK) * np.uint64(TILE_ROWS) + lane]
                        begin, end = row_first[row], row_first[row + 1]
                        if not flagged_holds(pred, run_lo, run_hi, p, v, row_attr, row_code, begin, end):
                            left ^= np.uint64(1) << lane
                p += np.uint64(1)
        done |= left
        fits, decided = take_lanes(left, start, sub, sink, counters)
        every &= ~decided
        if not fits:
            break
    clear_tile(row_first, row_attr, start, stop, tile)
    counters[CONJUNCTIONS] += np.int64(heads) * (stop - start)
    counters[CANDIDATES] += np.int64(candidates)
    counters[PREDICATES] += np.int64(steps)
    return fits
