"""Several segments to the predicates and codes of one, as if they had been lowered together.

A kind that puts conjunctions in an order of its own (``arrange`` of ``indexing/base.py``) first
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
from colmatch.kernels.layout import FLAG_RUN, I64, U8, U32, Codes, Predicates
from colmatch.kernels.segments.codes import merge_boundaries
from colmatch.kernels.segments.predicates import copy_predicates, count_predicates, mark_boundaries
from colmatch.updates.labels import without_labels
from colmatch.updates.literals import extended
from colmatch.updates.segments import Segment


class Part(NamedTuple):
    """What is merged of a segment."""

    predicates: Predicates  # with dense codes
    conjunctions: U32  # those of subscriptions that stay
    number: U32  # of each subscription, among all
    first: I64  # (A + 1) attribute -> boundaries
    place: I64  # (B) of each boundary, among all


class Combined(NamedTuple):
    """Conjunctions of some segments, numbered as they stand there, and the codes of all.

    Their predicates are made from those of the segments whenever they are asked for, straight in
    the order that is wanted. So a kind that has an order of its own needs no second copy of what a
    merge has made, beside the segments that batches still read.
    """

    parts: tuple[Part, ...]
    codes: Codes

    def by_subscription(self) -> Predicates:
        """Returns the predicates in the order of the subscriptions."""
        owner = concat([part.number[part.predicates.owner[part.conjunctions]] for part in self.parts])
        return self.predicates(np.argsort(owner, kind="stable") if np.any(owner[1:] < owner[:-1]) else None)

    def predicates(self, order: NDArray[Any] | None = None) -> Predicates:
        """Returns the predicates in an order of the conjunctions, or else as they stand."""
        count = sum(len(part.conjunctions) for part in self.parts)
        numbers: U32 = contiguous(np.arange(count, dtype=np.uint32) if order is None else np.asarray(order, np.uint32))
        programs = count if any(len(part.predicates.jump_first) for part in self.parts) else 0
        first, tree_first = np.zeros(count + 1, np.int64), np.zeros(programs and count + 1, np.int64)
        totals, begin = np.zeros(2, np.int64), 0
        for part in self.parts:
            count_predicates(part.predicates, part.conjunctions, numbers, begin, first, tree_first, totals)
            begin += len(part.conjunctions)
        np.cumsum(first, out=first)
        np.cumsum(tree_first, out=tree_first)
        weighted = any(len(part.predicates.weight) for part in self.parts)
        prior = any(len(part.predicates.priority) for part in self.parts)
        made = Predicates(
            first=first,
            pred=np.empty((first[-1], 3), np.uint32),
            run_lo=np.empty(totals[0], np.uint32),
            run_hi=np.empty(totals[0], np.uint32),
            owner=np.empty(count, np.uint32),
            weight=np.zeros((first[-1] if weighted else 0, 2)),
            jump_first=np.full(programs, -1),
            jump=np.empty((totals[1], 2), np.int32),
            tree_first=tree_first,
            tree=np.empty(tree_first[-1] if programs else 0, np.int32),
            priority=np.zeros(count if prior else 0),
        )
        filled, begin = np.zeros(2, np.int64), 0
        for part in self.parts:
            copy_predicates(
                part.predicates,
                part.conjunctions,
                numbers,
                begin,
                part.number,
                part.first,
                part.place,
                self.codes.first,
                made,
                filled,
            )
            begin += len(part.conjunctions)
        return freeze(made)


def combine(
    segments: Sequence[Segment], bases: Sequence[int], left: NDArray[np.bool_], dense: bool = False
) -> Combined:
    """Combines some neighbours.

    Parameters
    ----------
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
        attributes = max(attributes, int(mark_boundaries(predicates, conjunctions, coding.first, marked)))
        parts.append(Part(predicates, conjunctions, contiguous(number[begin:end]), coding.first, coding.first))
        used.append(contiguous(marked))
        codings.append(coding)
    codings = [coding._replace(first=extended(coding.first, attributes + 1)) for coding in codings]
    codes, places = _together(codings, used, attributes)
    parts = [part._replace(first=c.first, place=place) for part, c, place in zip(parts, codings, places, strict=True)]
    return Combined(tuple(parts), codes)


def selected(predicates: Predicates, codes: Codes, left: NDArray[np.bool_]) -> Predicates:
    """Returns the predicates of the subscriptions that stay, which get numbers without gaps.

    Their codes are as they were, also those of boundaries that no predicate has any more.
    """
    number = np.cumsum(left, dtype=np.uint32) - np.uint32(1)
    conjunctions: U32 = contiguous(np.flatnonzero(left[predicates.owner]).astype(np.uint32))
    predicates, codes = freeze(predicates), freeze(codes)
    part = Part(predicates, conjunctions, contiguous(number), codes.first, contiguous(np.arange(len(codes.bound))))
    return Combined((part,), codes).predicates()


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
            contiguous(first),
            contiguous(bound),
            coding.first,
            coding.bound,
            marked,
            out_first,
            out,
            moved,
            place,
        )
        first, bound = out_first, out[:size]
        places = [np.where(known < 0, -1, moved[known]) if len(moved) else known for known in places] + [place]
        multi[: len(coding.multi)] |= coding.multi[:attributes]
    return freeze(Codes(first, bound.copy(), multi)), [contiguous(place) for place in places]


def concatenated(parts: Sequence[Predicates]) -> Predicates:
    """Returns the predicates of all parts. Their owners, which ascend from part to part, stay."""
    if len(parts) == 1:
        return parts[0]
    columns = dict(zip(Predicates._fields, zip(*parts, strict=True), strict=True))
    del columns["first"], columns["pred"]
    joined = {name: concat([array for array in column if len(array)] or column[:1]) for name, column in columns.items()}
    runs = predicates = 0
    preds, firsts = [], [np.zeros(1, np.int64)]
    for part in parts:
        pred = part.pred
        if runs:
            pred = pred.copy()
            pred[pred[:, 0] & np.uint32(FLAG_RUN) != 0, 1:] += np.uint32(runs)
        preds.append(pred)
        firsts.append(part.first[1:] + predicates)
        runs, predicates = runs + len(part.run_lo), predicates + len(pred)
    joined |= {"first": concat(firsts), "pred": concat(preds)}
    if len(joined["weight"]):
        joined["weight"] = concat(
            [part.weight if len(part.weight) else np.zeros((len(part.pred), 2)) for part in parts]
        )
    if len(joined["priority"]):
        joined["priority"] = concat(
            [part.priority if len(part.priority) else np.zeros(len(part.owner)) for part in parts]
        )
    if len(joined["jump_first"]):
        joined |= _programs(parts)
    return freeze(Predicates(**joined))


def _programs(parts: Sequence[Predicates]) -> dict[str, Any]:
    """Returns where the programs of all parts begin, and their trees."""
    jumps = tokens = 0
    jump_first, tree_first = [], [np.zeros(1, np.int64)]
    for part in parts:
        count, there = len(part.owner), len(part.jump_first) > 0
        jump_first.append(np.where(part.jump_first >= 0, part.jump_first + jumps, -1) if there else np.full(count, -1))
        tree_first.append(part.tree_first[1:] + tokens if there else np.full(count, tokens))
        jumps, tokens = jumps + len(part.jump), tokens + len(part.tree)
    return {"jump_first": concat(jump_first), "tree_first": concat(tree_first)}
