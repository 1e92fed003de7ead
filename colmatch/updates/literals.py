"""String literals of all segments, with labels for keys.

A label stays what it is when other literals come between, so no segment has to know of those. Only
where labels run out are those of an attribute spaced anew.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from colmatch.arrays.frozen import contiguous, freeze
from colmatch.kernels.labels.literals import (
    find_literals,
    key_boundaries,
    label_literals,
    merge_literals,
    move_boundaries,
    space_literals,
)
from colmatch.kernels.layout import I64, Codes, Literals


class Move(NamedTuple):
    """What has become of the L literals of A attributes that were there before."""

    first: Any  # (A + 1)
    label: Any  # (L) labels that they had
    place: Any  # (L) their new places
    which: Any  # (A) whether the labels of the attribute were spaced anew
    now: Any  # the labels of all literals


def labelled(codes: Codes, literals: Literals) -> tuple[Codes, Literals]:
    """Gives labels to the first literals, and their boundaries the keys that follow."""
    literals = freeze(literals)
    if len(literals.offset) == 1:
        return freeze(codes), literals
    label = np.empty(len(literals.offset) - 1, np.int64)
    space_literals(literals.first, contiguous(np.ones(len(literals.first) - 1, np.uint8)), label)
    literals = freeze(literals._replace(label=label))
    return _keyed(codes, literals.first, literals.label), literals


def joined(literals: Literals, codes: Codes, new: Literals, attributes: int) -> tuple[Literals, Codes, Move | None]:
    """Puts new literals among those that are there.

    Parameters
    ----------
    codes, new : of new subscriptions; ``new`` has no labels
    attributes : how many there are in all

    Returns
    -------
    all literals, the codes with keys by their labels, and what segments must be told of, None
    where labels of known literals are as they were
    """
    first = extended(literals.first, attributes + 1)
    known = freeze(literals._replace(first=first))
    if len(new.offset) == 1:
        return (literals if first is literals.first else known), freeze(codes), None
    count = len(new.offset) - 1
    new = freeze(new._replace(first=extended(new.first, attributes + 1)))
    place, there = np.empty(count, np.int64), np.empty(count, np.uint8)
    number = find_literals(known, new, place, there)
    if not number:
        keyed = _keyed(codes, new.first, contiguous(known.label[place]))
        return (literals if first is literals.first else known), keyed, None
    label, crowded = np.empty(count, np.int64), np.empty(attributes, np.uint8)
    label_literals(known, new, contiguous(place), contiguous(there), label, crowded)
    total = len(known.offset) - 1
    added = int(np.diff(new.offset)[there == 0].sum())
    out = Literals(
        np.empty(attributes + 1, np.int64),
        np.empty(total + number + 1, np.int64),
        np.empty(len(known.data) + added, np.uint8),
        np.empty(total + number, np.int64),
    )
    moved, new_moved = np.empty(total, np.int64), np.empty(count, np.int64)
    merge_literals(known, new, contiguous(label), contiguous(place), contiguous(there), out, moved, new_moved)
    if crowded.any():
        space_literals(contiguous(out.first), contiguous(crowded), out.label)
    out = freeze(out)
    again = crowded & (np.diff(known.first) > 0)  # not those that had no literals
    move = Move(known.first, known.label, contiguous(moved), contiguous(again), out.label) if again.any() else None
    return out, _keyed(codes, new.first, contiguous(out.label[new_moved])), move


def moved(codes: Codes, move: Move) -> Codes:
    """Returns codes with keys by new labels; the same object if it has none of them."""
    attributes = len(codes.multi)
    if not (move.which[:attributes] & (np.diff(codes.first) > 0)).any():
        return codes
    bound = codes.bound.copy()
    move_boundaries(codes.first, bound, move.first, move.label, move.place, move.now, move.which)
    return freeze(codes._replace(bound=bound))


def extended(first: I64, size: int) -> I64:
    """Returns ranges of more owners, the last of which have nothing, or of the first ones only."""
    if size <= len(first):
        return first if size == len(first) else first[:size]
    return contiguous(np.append(first, np.full(size - len(first), first[-1])))


def _keyed(codes: Codes, literal_first: I64, label: I64) -> Codes:
    bound = codes.bound.copy()
    key_boundaries(contiguous(codes.first), bound, literal_first, label)
    return freeze(codes._replace(bound=bound))
