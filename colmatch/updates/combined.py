"""Predicates and codes of several segments combined, as if lowered together.

A kind may reorder the conjunctions (``arrange`` of ``kinds/base.py``). It first gets them in their
present order, and returns another one. It gets them again in the new order, after the first copy is
freed. For a million subscriptions of ``bitslice``, the peak is 2.0 times the memory of the matcher
at rest. For an opened matcher, the peak is 2.25 times that memory. The two factors were 2.5 and 3.0
before. A merge takes 1.1 to 1.6 s instead of 2 to 2.5 s.
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
from colmatch.predicates.columns import PlacedConjunctions, gather
from colmatch.updates.labels import without_labels
from colmatch.updates.literals import extend_ranges
from colmatch.updates.segments import Segment


class MergeInput(NamedTuple):
    """The parts of a segment that a merge reads."""

    predicates: Predicates  # with dense codes; owners are numbers among all segments
    conjunctions: U32  # conjunctions of the subscriptions that stay
    runs: int  # intervals of predicates with several intervals
    first: I64  # (A + 1) attribute -> boundaries
    place: I64  # (B) of each boundary, among all


class MergedPredicates(NamedTuple):
    """The conjunctions of several segments in their present order, and the codes of all.

    Each call makes the predicates from the segments, directly in the requested order. So a kind
    that reorders needs no second copy of the merged predicates, besides the segments that batches
    still read.
    """

    parts: tuple[MergeInput, ...]
    codes: Codes

    def by_subscription(self) -> Predicates:
        """Returns the predicates in the order of the subscriptions."""
        owner = concat([part.predicates.owner[part.conjunctions] for part in self.parts])
        return self.predicates(np.argsort(owner, kind="stable") if np.any(owner[1:] < owner[:-1]) else None)

    def predicates(self, order: NDArray[Any] | None = None) -> Predicates:
        """Returns the predicates in an order of the conjunctions, or else in the present order."""
        begin = ranges_of([len(part.conjunctions) for part in self.parts])
        place = np.arange(begin[-1])
        if order is not None:
            place[order] = np.arange(len(order))
        placed = [
            PlacedConjunctions(part.predicates, part.conjunctions, place[begin[i] : begin[i + 1]])
            for i, part in enumerate(self.parts)
        ]
        runs = sum(part.runs for part in self.parts)
        gathered = gather(placed)._replace(run_lo=np.empty(runs, np.uint32), run_hi=np.empty(runs, np.uint32))
        out, done = (gathered.pred, gathered.run_lo, gathered.run_hi), 0
        for part, (preds, _, own) in zip(self.parts, placed, strict=True):
            at = contiguous(gathered.first[own])
            done = recode_predicates(preds, part.conjunctions, at, part.first, part.place, self.codes.first, done, out)
        return freeze(gathered)


def combine(
    segments: Sequence[Segment], bases: Sequence[int], left: NDArray[np.bool_], dense: bool = False
) -> MergedPredicates:
    """Combines neighbouring segments.

    bases : number of the first subscription of each segment
    left : whether the subscription of each number stays; numbers count from the first base
    dense : whether the subscriptions that stay get numbers without gaps, or keep their numbers
    """
    number = np.cumsum(left, dtype=np.uint32) - np.uint32(1) if dense else np.arange(len(left), dtype=np.uint32)
    parts, used, codings, attributes = [], [], [], 0
    # Mark the boundaries in use, and renumber the owners
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
    # Merge the boundaries of all segments
    codings = [coding._replace(first=extend_ranges(coding.first, attributes + 1)) for coding in codings]
    codes, places = _together(codings, used, attributes)
    parts = [part._replace(first=c.first, place=place) for part, c, place in zip(parts, codings, places, strict=True)]
    return MergedPredicates(tuple(parts), codes)


def _together(codings: list[Codes], used: list[U8], attributes: int) -> tuple[Codes, list[I64]]:
    """Returns the codes of all used boundaries, and the places of each segment's boundaries there.

    used : for each segment, whether each boundary is used: (B) uint8
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
        places = [np.where(earlier < 0, -1, moved[earlier]) if len(moved) else earlier for earlier in places] + [place]
        multi[: len(coding.multi)] |= coding.multi[:attributes]
    return freeze(Codes(first, bound.copy(), multi)), [contiguous(place) for place in places]
