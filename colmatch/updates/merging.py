"""Several segments to the predicates and codes of one, as if they had been lowered together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous, freeze
from colmatch.arrays.pieces import concat
from colmatch.kernels.layout import FLAG_RUN, I64, U8, Codes, Predicates
from colmatch.kernels.segments.codes import mark_boundaries, merge_boundaries, recode_predicates
from colmatch.updates.labels import without_labels
from colmatch.updates.literals import extended
from colmatch.updates.predicates import attributes_of, selected
from colmatch.updates.segments import Segment


def merged(segments: Sequence[Segment], bases: Sequence[int], left: NDArray[np.bool_]) -> tuple[Predicates, Codes]:
    """Returns the predicates of some segments, ordered by subscription, and their dense codes.

    Parameters
    ----------
    bases : number of the first subscription of each segment
    left : whether each number is of a subscription that stays, by its place from the first base on
    """
    parts, codings = [], []
    for segment, base in zip(segments, bases, strict=True):
        predicates = _live(segment, left[base - bases[0] :][: segment.size])
        codes = segment.codes
        if len(codes.label):
            predicates, codes = without_labels(predicates, codes)
        parts.append(predicates._replace(owner=predicates.owner + np.uint32(base - bases[0])))
        codings.append(codes)
    attributes = max(map(attributes_of, parts))
    codings = [freeze(codes._replace(first=extended(codes.first, attributes + 1))) for codes in codings]
    codes, places = _together(codings, parts, attributes)
    for predicates, coding, place in zip(parts, codings, places, strict=True):
        pred, run_lo, run_hi = predicates.pred, predicates.run_lo, predicates.run_hi
        recode_predicates(pred, run_lo, run_hi, coding.first, place, codes.first)
    return freeze(concatenated(parts)), codes


def _live(segment: Segment, left: NDArray[np.bool_]) -> Predicates:
    """Returns the predicates of subscriptions that are left, by subscription, in arrays of their
    own.
    """
    owner = segment.predicates.owner
    order = np.flatnonzero(left[owner])
    if np.any(owner[1:] < owner[:-1]):
        order = order[np.argsort(owner[order], kind="stable")]
    return selected(segment.predicates, order)


def _together(codings: list[Codes], parts: list[Predicates], attributes: int) -> tuple[Codes, list[I64]]:
    """Returns the codes of all boundaries that are used, and the places of each segment's."""
    first, bound, multi = np.zeros(attributes + 1, np.int64), np.empty(0, np.int64), np.zeros(attributes, np.uint8)
    places: list[I64] = []
    for coding, predicates in zip(codings, parts, strict=True):
        used: U8 = np.zeros(len(coding.bound), np.uint8)
        pred, run_lo, run_hi = map(contiguous, predicates[1:4])
        mark_boundaries(pred, run_lo, run_hi, coding.first, used)
        out_first = np.empty(attributes + 1, np.int64)
        out = np.empty(len(bound) + int(used.sum()), np.int64)
        moved, place = np.empty(len(bound), np.int64), np.full(len(used), -1, np.int64)
        size = merge_boundaries(
            contiguous(first),
            contiguous(bound),
            coding.first,
            coding.bound,
            contiguous(used),
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
        joined["weight"] = concat([part.weight if len(part.weight) else np.zeros(len(part.pred)) for part in parts])
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
