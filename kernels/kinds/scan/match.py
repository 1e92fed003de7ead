"""SCAN: every conjunction is tested for every event. It is the yardstick of the papers, and the
last resort.

Most conjunctions fail at their first, most selective predicate. These *heads* are packed in arrays
of their own. A block of heads is tested without a branch into a list of survivors, and only the
survivors are verified. The block stays in the cache while a block of rows passes over it. So memory
is read once for a block of rows, not once for each event.

Times were measured with 1M conjunctions of 5 predicates, 100 attributes, 30 of them present. Heads
take 0.84 ms an event, about one a cycle. The 1.2 % that survive, 12,000, take 0.25 ms.

Tried and lost:

- blocks of 32 rows: 2.5 times the memory traffic of verification;
- testing heads in the body of ``match`` itself: too many arrays for the registers.

If there are enough rows, they are tested 64 at once (``tiles.py``). This takes a quarter of the
time: 42 us an event instead of 182 for 100,000 ``dense`` subscriptions.

A block of 4,096 heads passes over a block of up to 256 rows. At a million subscriptions this takes
about one nanosecond a subscription.
"""

import numpy as np

from colmatch.kernels._jit import brief, device, kernel
from colmatch.kernels.kinds.scan.arrays import HEAD_BLOCK, HEADS, ROW_BLOCK, ScanIndex, ScanScratch
from colmatch.kernels.kinds.scan.tiles import match_tile
from colmatch.kernels.layout import (
    ATTR_MASK,
    CANDIDATES,
    CODE_MAX,
    CONJUNCTIONS,
    I32,
    I64,
    PREDICATES,
    REJECT,
    U32,
    Predicates,
    Rows,
    Sink,
    Table,
    Written,
)
from colmatch.kernels.predicates import clear, conditions_of, conjunction_holds, hull, spread
from colmatch.kernels.sink import FILL, emit, is_decided, roll_back, stops
from colmatch.kernels.tiles import TILE_LEAST, TILE_ROWS


def _enter_heads(
    known_head: Table[U32],
    known_second: Table[U32],
    first: I64,
    pred: Table[U32],
    run_lo: U32,
    run_hi: U32,
    jump_first: I64,
    jump: Table[I32],
    labelled: bool,
    begin: int,
    end: int,
    head: Written[Table[U32]],
    second: Written[Table[U32]],
) -> None:
    """Writes the predicates tested first of the conjunctions ``begin:end``, and copies the known
    ones of the first ``begin``. ``layout.Predicates`` describes the arrays in between.

    These are the first two predicates of a conjunction: lowering puts the narrowest first. Lowering
    a subscription alone cannot compare well. Then there are labels, and their distances follow the
    distances of keys: the predicates with the fewest labels are taken.
    """
    # Copy the known predicates
    for c in range(begin):
        for k in range(3):
            head[c, k], second[c, k] = known_head[c, k], known_second[c, k]
    # Enter the predicates of the new conjunctions
    for c in range(begin, end):
        _enter_all(head, c)
        _enter_all(second, c)
        if first[c] == first[c + 1]:  # without predicates: always true
            continue
        if len(jump_first) > 0 and jump_first[c] >= 0:
            if jump[jump_first[c], 1] == REJECT:  # otherwise the program may accept without it
                _enter(pred, run_lo, run_hi, first[c], head, c)
            continue
        # Choose the first two predicates, or the two with the fewest labels
        best, next = first[c], first[c] + 1
        if labelled:
            next = first[c + 1]
            for p in range(best + 1, first[c + 1]):
                if _width(pred, run_lo, run_hi, p) < _width(pred, run_lo, run_hi, best):
                    best, next = p, best
                elif next == first[c + 1] or _width(pred, run_lo, run_hi, p) < _width(pred, run_lo, run_hi, next):
                    next = p
        _enter(pred, run_lo, run_hi, best, head, c)
        if next < first[c + 1]:
            _enter(pred, run_lo, run_hi, next, second, c)


enter, enter_few = kernel(_enter_heads), brief(_enter_heads)


@device
def _enter(pred, run_lo, run_hi, p, ranges, c):
    low, high = hull(pred, run_lo, run_hi, p)
    ranges[c, 0], ranges[c, 1], ranges[c, 2] = pred[p, 0] & ATTR_MASK, low, high


@device
def _enter_all(ranges, c):
    ranges[c, 0], ranges[c, 1], ranges[c, 2] = 0, 0, CODE_MAX


@device
def _width(pred, run_lo, run_hi, p):
    low, high = hull(pred, run_lo, run_hi, p)
    return np.int64(high) - np.int64(low)


@device
def find_survivors(head, second, begin, end, table, survivor):
    """Writes the conjunctions ``begin:end`` with both predicates true, and returns their number.

    Numbers are unsigned throughout: a signed index is tested for wrap-around each time.
    """
    # Test the first predicates
    left = np.uint64(0)
    for c in range(begin, end):
        v = table[head[c, 0]]
        survivor[left] = c
        left += np.uint64((head[c, 1] <= v) & (v <= head[c, 2]))
    # Test the second predicates of the remaining conjunctions
    kept = np.uint64(0)
    for i in range(left):
        next = np.uint64(survivor[i])
        v = table[second[next, 0]]
        survivor[kept] = next
        kept += np.uint64((second[next, 1] <= v) & (v <= second[next, 2]))
    return kept


@kernel
def match(
    index: ScanIndex,
    preds: Predicates,
    rows: Written[Rows],
    start: int,
    stop: int,
    scratch: Written[ScanScratch],
    sink: Written[Sink],
    counters: Written[I64],
) -> int:
    """Matches rows ``start:stop``.

    Returns the first unfinished row: ``stop``, unless the sink became full.
    """
    heads = np.uint64(index.state[HEADS])
    head, second, multi, owner = index.head, index.second, index.multi, preds.owner
    table, survivor, last = scratch.table, scratch.survivor, scratch.last
    conds = conditions_of(preds)
    block = start
    while block < stop:
        fill = sink.state[FILL]
        # Test the rows 64 at once if there are enough
        if stop - block >= TILE_LEAST and len(scratch.tile) > 0:
            block_end = min(block + TILE_ROWS, stop)
            if not match_tile(index, preds, rows, block, block_end, scratch, sink, counters):
                roll_back(sink, fill, counters)
                return block
            block = block_end
            continue
        # Pass a block of rows over one block of heads after the other
        block_end = min(block + ROW_BLOCK, stop)
        for i in range(block_end - block):
            last[i] = -1
        begin = np.uint64(0)
        while begin < heads:
            end = min(begin + np.uint64(HEAD_BLOCK), heads)
            for row in range(block, block_end):
                if is_decided(sink, row):
                    continue
                event = spread(rows, row, multi, table)
                left = find_survivors(head, second, begin, end, table, survivor)
                counters[CONJUNCTIONS] += end - begin
                counters[CANDIDATES] += left
                # Verify the survivors, except for subscriptions that have matched
                steps = 0
                full = False
                for i in range(left):
                    c = survivor[i]
                    sub = np.int64(owner[c])
                    if sub == last[row - block]:
                        continue
                    holds, taken = conjunction_holds(conds, c, event)
                    steps += taken
                    if holds:
                        last[row - block] = sub
                        if not emit(sink, row, sub, counters):
                            full = True
                            break
                counters[PREDICATES] += steps
                clear(event)
                # Give up the block of rows if the sink has no room
                if full and stops(sink, fill, counters):
                    return block
            begin = end
        block = block_end
    return stop
