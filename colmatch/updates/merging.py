"""Several segments to the predicates and codes of one, as if they had been lowered together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous, freeze
from colmatch.arrays.pieces import concat
from colmatch.kernels.layout import FLAG_RUN, I64, U8, U64, Codes, Predicates
from colmatch.kernels.segments.codes import mark_boundaries, merge_boundaries, recode_predicates
from colmatch.updates.labels import without_labels
from colmatch.updates.literals import extended
from colmatch.updates.predicates import selected
from colmatch.updates.segments import Segment


def merged(
    segments: Sequence[Segment], bases: Sequence[int], attributes: int, left: NDArray[np.bool_] | None
) -> tuple[Predicates, Codes]:
    """Returns the predicates of some segments, ordered by subscription, and their dense codes.

    Parameters
    ----------
    bases : number of the first subscription of each segment
    attributes : how many there are
    left : whether each number is of a subscription that stays, by its place from the first base on;
        None for all
    """
    parts, codings = [], []
    for segment, base in zip(segments, bases, strict=True):
        predicates = _live(segment, None if left is None else left[base - bases[0] :][: segment.size])
        codes = segment.codes
        if len(codes.label):
            predicates, codes = without_labels(predicates, codes)
        parts.append(predicates._replace(owner=predicates.owner + np.uint32(base - bases[0])))
        codings.append(freeze(codes._replace(first=extended(codes.first, attributes + 1))))
    codes, places = _together(codings, parts, attributes)
    for predicates, coding, place in zip(parts, codings, places, strict=True):
        own = [predicates.pred, predicates.run_lo, predicates.run_hi]
        recode_predicates(*own, coding.first, place, codes.first)
    return freeze(_concatenated(parts)), codes


def _live(segment: Segment, left: NDArray[np.bool_] | None) -> Predicates:
    """Returns the predicates of the subscriptions that are left, ordered by these, in own arrays."""
    owner = segment.predicates.owner
    order = np.arange(len(owner)) if left is None else np.flatnonzero(left[owner])
    if np.any(owner[1:] < owner[:-1]):
        order = order[np.argsort(owner[order], kind="stable")]
    return selected(segment.predicates, order)


def _together(codings: list[Codes], parts: list[Predicates], attributes: int) -> tuple[Codes, list[I64]]:
    """Returns the codes of all boundaries that predicates have, and the place of each among them."""
    first, bound, multi = np.zeros(attributes + 1, np.int64), np.empty(0, np.int64), np.zeros(attributes, np.uint8)
    places: list[I64] = []
    for coding, predicates in zip(codings, parts, strict=True):
        used: U8 = np.zeros(len(coding.bound), np.uint8)
        mark_boundaries(*map(contiguous, predicates[1:4]), coding.first, used)
        out_first = np.empty(attributes + 1, np.int64)
        out = np.empty(len(bound) + int(used.sum()), np.int64)
        moved, place = np.empty(len(bound), np.int64), np.full(len(used), -1, np.int64)
        size = merge_boundaries(
            contiguous(first), contiguous(bound), coding.first, coding.bound, contiguous(used), out_first, out, moved, place
        )
        first, bound = out_first, out[:size]
        places = [np.where(known < 0, -1, moved[known]) if len(moved) else known for known in places] + [place]
        multi[: len(coding.multi)] |= coding.multi
    return freeze(Codes(first, bound.copy(), multi)), [contiguous(place) for place in places]


def _concatenated(parts: list[Predicates]) -> Predicates:
    """Returns the predicates of all parts, whose owners ascend from part to part."""
    if len(parts) == 1:
        return parts[0]
    runs = programs = tokens = predicates = jumps = 0
    columns: list[dict[str, Any]] = []
    has_weights = any(len(part.weight) for part in parts)
    has_programs = any(len(part.jump_first) for part in parts)
    for part in parts:
        pred, count = part.pred, len(part.owner)
        pred[pred[:, 0] & np.uint32(FLAG_RUN) != 0, 1:] += np.uint32(runs)
        column = part._asdict() | {"pred": pred, "first": part.first[1:] + predicates}
        if has_weights and not len(part.weight):
            column["weight"] = np.zeros(len(pred))
        if has_programs:
            known = len(part.jump_first) > 0
            column["jump_first"] = np.where(part.jump_first >= 0, part.jump_first + jumps, -1) if known else np.full(count, -1)
            column["tree_first"] = part.tree_first[1:] + tokens if known else np.full(count, tokens)
        columns.append(column)
        runs, predicates = runs + len(part.run_lo), predicates + len(pred)
        jumps, tokens = jumps + len(part.jump), tokens + len(part.tree)
    joined = {name: concat([column[name] for column in columns]) for name in Predicates._fields}
    joined["first"] = np.concatenate([np.zeros(1, np.int64), joined["first"]])
    if has_programs:
        joined["tree_first"] = np.concatenate([np.zeros(1, np.int64), joined["tree_first"]])
    return Predicates(**joined)
