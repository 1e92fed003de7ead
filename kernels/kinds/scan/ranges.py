"""SCAN over events that may have ranges as values: row by row, heads first."""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.kinds.scan.arrays import HEAD_BLOCK, HEADS, ROW_BLOCK, ScanIndex, ScanScratch
from colmatch.kernels.layout import CANDIDATES, CONJUNCTIONS, I64, PREDICATES, Predicates, Rows, Sink, Written
from colmatch.kernels.meets import Meeting, clear_ends, conjunction_meets, spread_ends
from colmatch.kernels.predicates import conditions_of
from colmatch.kernels.sink import FILL, emit, is_decided, stops


@device
def _find_meeting(head, second, begin, end, low, high, survivor):
    """Writes the conjunctions ``begin:end`` with both predicates met by the row. Returns their
    number.

    It works as ``survivors`` of ``match``, with a table for each end.
    """
    # Test the first predicates
    left = np.uint64(0)
    for c in range(begin, end):
        a = head[c, 0]
        survivor[left] = c
        left += np.uint64((head[c, 1] <= high[a]) & (low[a] <= head[c, 2]))
    # Test the second predicates of the remaining conjunctions
    kept = np.uint64(0)
    for i in range(left):
        next = np.uint64(survivor[i])
        a = second[next, 0]
        survivor[kept] = next
        kept += np.uint64((second[next, 1] <= high[a]) & (low[a] <= second[next, 2]))
    return kept


@kernel
def match_ranges(
    index: ScanIndex,
    preds: Predicates,
    low: Written[Rows],
    high: Written[Rows],
    start: int,
    stop: int,
    scratch: Written[ScanScratch],
    meeting: Written[Meeting],
    sink: Written[Sink],
    counters: Written[I64],
) -> int:
    """Matches rows ``start:stop``.

    Returns the first unfinished row: ``stop``, unless the sink became full.

    low, high : ``layout.Rows`` of the lower and the upper ends, which differ in ``code`` only
    """
    heads = np.uint64(index.state[HEADS])
    head, second, multi = index.head, index.second, index.multi
    conds, owner, survivor, last = conditions_of(preds), preds.owner, scratch.survivor, scratch.last
    block = start
    while block < stop:
        fill = sink.state[FILL]
        # Pass a block of rows over one block of heads after the other
        block_end = min(block + ROW_BLOCK, stop)
        last[: block_end - block] = -1
        begin = np.uint64(0)
        while begin < heads:
            end = min(begin + np.uint64(HEAD_BLOCK), heads)
            for row in range(block, block_end):
                if is_decided(sink, row):
                    continue
                event = spread_ends(low, high, row, multi, meeting)
                left = _find_meeting(head, second, begin, end, meeting.low, meeting.high, survivor)
                # Verify the survivors, except for subscriptions that have matched
                steps, fits = np.int64(0), True
                for i in range(left):
                    c = np.int64(survivor[i])
                    sub = np.int64(owner[c])
                    if sub == last[row - block]:
                        continue
                    meets, taken = conjunction_meets(conds, c, event, meeting)
                    steps += taken
                    if meets:
                        last[row - block] = sub
                        if not emit(sink, row, sub, counters):
                            fits = False
                            break
                clear_ends(event, meeting)
                counters[CONJUNCTIONS] += end - begin
                counters[CANDIDATES] += left
                counters[PREDICATES] += steps
                # Give up the block of rows if the sink has no room
                if not fits and stops(sink, fill, counters):
                    return block
            begin = end
        block = block_end
    return stop
