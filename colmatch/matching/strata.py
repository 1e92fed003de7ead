"""Matching of a segment's strata one after the other, as long as rows need more.

The conjunctions of one stratum can score higher than the conjunctions of the next. The first step
takes as many strata as are probably enough. Each further step takes the next stratum, and only the
rows that it can improve. Building an index estimates the number of matches, and batches correct the
estimate.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.ranges import ranges_of
from colmatch.kernels._jit import entry
from colmatch.kernels.layout import EventWeights, Rows, Top
from colmatch.kernels.remaining import gather_remaining
from colmatch.kernels.sink import PAIRS
from colmatch.kernels.topk import SCORING
from colmatch.kinds.base import Strata
from colmatch.matching.worker import BatchJob, SegmentJob, Worker

Pairs = tuple[NDArray[np.int64], NDArray[np.uint32], int]


def match_strata(
    worker: Worker, job: BatchJob, part: SegmentJob, strata: Strata, weights: EventWeights, top: Top
) -> Iterator[Pairs]:
    """Matches a batch with one part, the best strata first.

    Yields the places of each row's pairs, the numbers of subscriptions, and the first of these
    rows. The caller offers each result to ``top`` before it takes the next one.
    """
    segment, scoring = part.segment, int(top.state[SCORING])
    worker.code(job, part)
    size = int(job.events.first[-1])
    remaining = Rows(np.empty(job.rows + 1, np.int64), np.empty(size, np.uint32), np.empty(size, np.uint32))
    number = np.empty(job.rows, np.int64)
    for begin, end in _steps(strata, top.score.shape[1], worker.rates.get(segment, 1.0)):
        # Keep the rows that the step can improve
        rows, events = job.rows, job.events
        if top.fill.any():
            best = float(strata.best[begin:end, scoring].max())
            rows = entry(gather_remaining)(job.events, 0, job.rows, best, weights, top, number, remaining)
            if rows == 0:
                continue
            if rows < job.rows:
                events = remaining._replace(first=remaining.first[: rows + 1])
        # Match them with the strata of the step
        step_part = part._replace(arrays=strata.part(begin, end))
        repeats = worker.repeats(segment)
        bits = job.bits if repeats else 0
        alone = BatchJob(job.entries, rows, events, [step_part], np.zeros(rows, np.int64), PAIRS, repeats, bits)
        for start, stop in worker.match_blocks(alone):
            place, sub = worker.take_pairs(alone, start, stop)
            if rows < job.rows:
                sizes = np.zeros(job.rows, np.int64)
                sizes[number[start:stop]] = np.diff(place)
                place, start = ranges_of(sizes), 0
            yield place, sub, start
        # Correct the estimate
        guess = float(strata.expected[:end].sum())
        if begin == 0 and rows == job.rows and rows and 0 < guess < np.inf:
            worker.rates[segment] = (int(alone.hits.sum()) + guess) / ((rows + 1) * guess)


def _steps(strata: Strata, most: int, rate: float) -> list[tuple[int, int]]:
    """Returns the strata of each step: first probably enough of them, then one by one.

    most : number of best matches for each event
    rate : matches for each expected match
    """
    count = len(strata.best)
    enough = most + most**0.5  # with a margin that most events stay within
    first = min(int(np.searchsorted(np.cumsum(strata.expected) * rate, enough)) + 1, count)
    return [(0, first), *((s, s + 1) for s in range(first, count))]
