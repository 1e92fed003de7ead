"""The best matches of one batch of events, found and ordered with the memory of one thread.

All segments of a version offer their matches to the same heaps, one after the other. So later
segments need not offer matches that can no longer be among the best.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from colmatch.arrays.frozen import NO_U64, freeze_view
from colmatch.kernels._jit import entry
from colmatch.kernels.layout import DOT, MAX, SUM, EventWeights, Top
from colmatch.kernels.scores import ScoreScratch, offer_known, offer_pairs
from colmatch.kernels.sink import PAIRS
from colmatch.kernels.topk import AGAIN, BASE, SCORING, sort_best
from colmatch.kinds.base import Strata
from colmatch.matching.event_weights import NO_WEIGHTS
from colmatch.matching.pieces import Piece
from colmatch.matching.strata import match_strata
from colmatch.matching.topk.arguments import TopK
from colmatch.matching.worker import BatchJob, SegmentJob, Worker
from colmatch.updates.versions import Version

NO_SCORES = freeze_view(np.empty(0))
AGAIN_MOST = 256  # best matches; among more, it takes long to look for a subscription
PLACES = 1 << 22  # most places of heaps, and most weights of events, at a time: 50 MB


def best_pieces(
    worker: Worker, version: Version, lenient: bool, rows: pa.RecordBatch, offset: int, topk: TopK
) -> Iterator[Piece]:
    """Yields the best matches of a batch, in pieces that need no more than ``PLACES``.

    lenient : an absent column is NULL
    offset : number of the first row within the whole input
    """
    most = max(min(topk.most, len(version)), 1)
    size = max(PLACES // most, 1)
    pending = [rows.slice(start, size) for start in range(0, rows.num_rows, size)][::-1]
    while pending:
        part = pending.pop()
        weights: EventWeights | None = NO_WEIGHTS
        if topk.weights is not None:
            weights = topk.weights.read(version.attributes, part, offset, PLACES)
        if weights is None:
            half = part.num_rows // 2
            pending += [part.slice(half), part.slice(0, half)]
            continue
        job = worker.read(version, lenient, part, PAIRS, offset, best=True)
        yield _best_piece(worker, version, job, offset, most, topk, weights)
        offset += part.num_rows


def _best_piece(
    worker: Worker, version: Version, job: BatchJob, offset: int, most: int, topk: TopK, weights: EventWeights
) -> Piece:
    rows, memory, attributes = job.rows, worker.memory, len(version.attributes)
    # Without weights of events, DOT equals SUM
    scoring = SUM if topk.scoring == DOT and not len(weights.first) else topk.scoring
    id, offsets, data = version.ids.order
    # Make the heaps
    top = Top(
        score=memory.array(rows * most, np.float64).reshape(rows, most),
        number=memory.array(rows * most, np.uint32).reshape(rows, most),
        fill=np.zeros(rows, np.int64),
        id=id,
        offset=offsets,
        data=data,
        deleted_bits=NO_U64,
        state=np.zeros(3, np.int64),
    )
    stack = max([part.segment.longest_tree for part in job.parts], default=0)
    scores = ScoreScratch(np.zeros(attributes, np.uint32), np.ones(attributes), np.empty(stack))
    # Offer the matches of each segment
    for part in job.parts:
        segment = part.segment
        kind = segment.index.kind
        top.state[BASE], top.state[SCORING] = part.base, scoring
        top = top._replace(deleted_bits=part.deleted_bits)
        at_once = worker.is_ranged or (segment.repeats and most > AGAIN_MOST)
        if kind.match_topk is None or at_once:
            strata = segment.whole if at_once else segment.strata
            top.state[AGAIN] = segment.repeats and len(strata.best) > 1
            _offer_found(worker, job, part, strata, weights, scores, top)
            continue
        top.state[AGAIN] = segment.repeats
        worker.code(job, part)
        match = entry(kind.match_topk)
        arrays, scratch = segment.index.arrays, part.scratch
        match(arrays, segment.predicates, job.events, 0, rows, scratch, weights, scores, top, worker.counters)
    worker.forget_codes()
    # Order the best matches
    place, total = np.empty(rows + 1, np.int64), int(top.fill.sum())
    score, number = memory.array(total, np.float64), memory.array(total, np.uint32)
    entry(sort_best)(top, rows, place, score, number)
    ids = version.ids.numbers
    if ids is not None:
        taken = memory.array(total, np.int64)
        np.take(ids, number, out=taken)
        return Piece(offset, place, taken, None, memory, score)
    return Piece(offset, place, number, version.ids, memory, score)


def _offer_found(
    worker: Worker,
    job: BatchJob,
    part: SegmentJob,
    strata: Strata,
    weights: EventWeights,
    scores: ScoreScratch,
    top: Top,
) -> None:
    """Matches a batch with one part while any match can be among the best, and offers matches."""
    segment, scoring = part.segment, int(top.state[SCORING])
    changed = len(weights.first) > 0 and scoring in (DOT, MAX) and len(segment.predicates.weight) > 0
    fixed_scores = NO_SCORES if changed else segment.known_scores(scoring)
    own = segment.predicates, segment.codes.multi, *segment.conjunctions, fixed_scores, job.events
    for place, sub, start in match_strata(worker, job, part, strata, weights, top):
        if len(fixed_scores) and not entry(offer_known)(fixed_scores, place, sub, start, top):
            continue
        entry(offer_pairs)(*own, *worker.upper_ends(segment), place, sub, start, weights, scores, top)
