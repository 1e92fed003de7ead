"""Several segments to the predicates and codes of one, as if they had been lowered together.

A kind that puts conjunctions in an order of its own (``arrange`` of ``kinds/base.py``) first
gets them as they stand and says the order. It gets them again in that order when the first copy has
gone. For a million subscriptions of ``bitslice``, the peak is 2.0 times what the matcher has at
rest, and 2.25 times for one that was opened. It was 2.5 and 3.0 before. A merge takes 1.1 to 1.6 s
instead of 2 to 2.5 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous, freeze
from colmatch.arrays.pieces import concat
from colmatch.arrays.ranges import ranges_of
from colmatch.kernels.layout import I64, U8, U32, Codes, Predicates
from colmatch.kernels.segments.codes import merge_boundaries
from colmatch.kernels.segments.predicates import mark_boundaries, recode_predicates
from colmatch.predicates.columns import Placed, gather
from colmatch.updates.labels import without_labels
from colmatch.updates.literals import extended
from colmatch.updates.segments import Segment


class MergeInput(NamedTuple):
    """What is merged of a segment."""

    predicates: Predicates  # with dense codes; owners have their numbers among all
    conjunctions: U32  # those of subscriptions that stay
    runs: int  # intervals of their predicates that have several
    first: I64  # (A + 1) attribute -> boundaries
    place: I64  # (B) of each boundary, among all


class MergedPredicates(NamedTuple):
    """Conjunctions of some segments, numbered as they stand there, and the codes of all.

    Their predicates are made from those of the segments whenever they are asked for, straight in
    the order that is wanted. So a kind that has an order of its own needs no second copy of what a
    merge has made, beside the segments that batches still read.
    """

    parts: tuple[MergeInput, ...]
    codes: Codes

    def by_subscription(self) -> Predicates:
        """Returns the predicates in the order of the subscriptions."""
        owner = concat([part.predicates.owner[part.conjunctions] for part in self.parts])
        return self.predicates(np.argsort(owner, kind="stable") if np.any(owner[1:] < owner[:-1]) else None)

    def predicates(self, order: NDArray[Any] | None = None) -> Predicates:
        """Returns the predicates in an order of the conjunctions, or else as they stand."""
        begin = ranges_of([len(part.conjunctions) for part in self.parts])
        place = np.arange(begin[-1])
        if order is not None:
            place[order] = np.arange(len(order))
        placed = [
            Placed(part.predicates, part.conjunctions, place[begin[i] : begin[i + 1]])
            for i, part in enumerate(self.parts)
        ]
        runs = sum(part.runs for part in self.parts)
        made = gather(placed)._replace(run_lo=np.empty(runs, np.uint32), run_hi=np.empty(runs, np.uint32))
        out, done = (made.pred, made.run_lo, made.run_hi), 0
        for part, (preds, _, own) in zip(self.parts, placed, strict=True):
            at = contiguous(made.first[own])
            done = recode_predicates(preds, part.conjunctions, at, part.first, part.place, self.codes.first, done, out)
        return freeze(made)


def combine(
    segments: Sequence[Segment], bases: Sequence[int], left: NDArray[np.bool_], dense: bool = False
) -> MergedPredicates:
    """Combines some neighbours.

    bases : number of the first subscription of each segment
    left : whether each number is of a subscription that stays, by its place from the first base on
    dense : whether these get numbers without gaps; else they keep those that they have
    """
    number = np.cumsum(left, dtype=np.uint32) - np.uint32(1) if dense else np.arange(len(left), dtype=np.uint32)
    parts, used, codings, attributes = [], [], [], 0
    for segment, base in zip(segments, bases, strict=True):
        begin, end = base - bases[0], base - bases[0] + segment.size
        predicates, coding = segment.predicates, segment.codes
        if len(coding.label):
            predicates, coding = without_labels(predicates, coding)
        predicates, coding = freeze(predicates), freeze(coding)
        conjunctions: U32 = contiguous(np.flatnonzero(left[begin:end][predicates.owner]).astype(np.uint32))
        marked: U8 = np.zeros(len(coding.bound), np.uint8)
        own, runs = mark_boundaries(predicates, conjunctions, coding.first, marked)
        attributes = max(attributes, int(own))
        predicates = predicates._replace(owner=contiguous(number[begin:end][predicates.owner]))
        parts.append(MergeInput(predicates, conjunctions, int(runs), coding.first, coding.first))
        used.append(contiguous(marked))
        codings.append(coding)
    codings = [coding._replace(first=extended(coding.first, attributes + 1)) for coding in codings]
    codes, places = _together(codings, used, attributes)
    parts = [part._replace(first=c.first, place=place) for part, c, place in zip(parts, codings, places, strict=True)]
    return MergedPredicates(tuple(parts), codes)


def _together(codings: list[Codes], used: list[U8], attributes: int) -> tuple[Codes, list[I64]]:
    """Returns the codes of all boundaries that are used, and the places of each segment's.

    used : of each segment, whether each boundary is: (B) uint8
    """
    first, bound, multi = np.zeros(attributes + 1, np.int64), np.empty(0, np.int64), np.zeros(attributes, np.uint8)
    places: list[I64] = []
    for coding, marked in zip(codings, used, strict=True):
        out_first = np.empty(attributes + 1, np.int64)
        out = np.empty(len(bound) + int(np.count_nonzero(marked)), np.int64)
        moved, place = np.empty(len(bound), np.int64), np.full(len(marked), -1, np.int64)
        size = merge_boundaries(
            contiguous(first), contiguous(bound), coding.first, coding.bound, marked, out_first, out, moved, place
        )
        first, bound = out_first, out[:size]
        places = [np.where(known < 0, -1, moved[known]) if len(moved) else known for known in places] + [place]
        multi[: len(coding.multi)] |= coding.multi[:attributes]
    return freeze(Codes(first, bound.copy(), multi)), [contiguous(place) for place in places]
