"""SCAN: conjunctions tested for up to 64 events at once."""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.bits import popcount
from colmatch.kernels.kinds.scan.arrays import HEADS
from colmatch.kernels.layout import CANDIDATES, CONJUNCTIONS, PREDICATES
from colmatch.kernels.predicates import conditions_of
from colmatch.kernels.tiles import TILE_ROWS, clear_tile, fill_tile, lanes_that_hold, lanes_within, take_lanes


@device
def match_tile(index, preds, rows, start, stop, scratch, sink, counters):
    """Matches rows ``start:stop``, at most ``TILE_ROWS``. Returns False if the sink has no room."""
    conds, head, owner = conditions_of(preds), index.head, preds.owner
    tile = fill_tile(rows, start, stop, index.multi, scratch.tile)
    heads = np.uint64(index.state[HEADS])
    every = ~np.uint64(0) >> np.uint64(TILE_ROWS - (stop - start))
    candidates, steps = np.uint64(0), np.uint64(0)
    last, done = np.int64(-1), np.uint64(0)  # a subscription, and the rows that it has matched
    fits = True
    for c in range(heads):
        # Test the head for all undecided rows
        left = every & lanes_within(tile, head[c, 0], head[c, 1], head[c, 2])
        if left == 0:
            continue
        # Leave out rows that another conjunction of the subscription has matched
        sub = np.int64(owner[c])
        if sub != last:
            last, done = sub, np.uint64(0)
        left &= ~done
        # Verify the conjunction for the remaining rows
        candidates += popcount(left)
        left, taken = lanes_that_hold(conds, np.int64(c), left, tile)
        steps += taken
        done |= left
        # Emit the matches, and drop rows that need no more
        fits, decided = take_lanes(left, start, sub, sink, counters)
        every &= ~decided
        if not fits:
            break
    clear_tile(tile)
    counters[CONJUNCTIONS] += np.int64(heads) * (stop - start)
    counters[CANDIDATES] += np.int64(candidates)
    counters[PREDICATES] += np.int64(steps)
    return fits
