"""String literals of all segments, with labels as keys.

A label stays the same when other literals are inserted, so no segment has to know them. Only where
labels run out, all labels of the attribute are spaced again. The keys of its boundaries then change
too, but codes stay.

A label has 62 bits. It is placed by how far the string lies between its neighbours, byte by byte.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous, freeze, seal
from colmatch.events.vocabulary import Vocabulary, WordList
from colmatch.kernels.labels.literals import (
    find_literals,
    find_neighbours,
    key_boundaries,
    key_few,
    key_known,
    label_literals,
    merge_literals,
    move_boundaries,
    space_literals,
    take_literals,
)
from colmatch.kernels.layout import I64, U8, Codes, Literals
from colmatch.updates import policy

FEW_LITERALS = 512  # up to this many literals are looked up without releasing the interpreter's lock


class Move(NamedTuple):
    """New places and labels of the L earlier literals of A attributes."""

    first: Any  # (A + 1)
    label: Any  # (L) their old labels
    place: Any  # (L) their new places
    which: Any  # (A) whether the labels of the attribute were spaced again
    now: Any  # the labels of all literals


def label_first(codes: Codes, literals: Literals) -> tuple[Codes, Literals]:
    """Gives labels to the first literals, and keys by these labels to their boundaries."""
    literals = freeze(literals)
    if len(literals.offset) == 1:
        return freeze(codes), literals
    label = np.empty(len(literals.offset) - 1, np.int64)
    space_literals(literals.first, contiguous(np.ones(len(literals.first) - 1, np.uint8)), label)
    literals = freeze(literals._replace(label=label))
    return _to_keys(codes, literals.first, literals.label), literals


def join_literals(
    known: Vocabulary, codes: Codes, new: Literals, attributes: int
) -> tuple[Vocabulary, Codes, Move | None]:
    """Inserts new literals among the known ones.

    New literals join the recent ones. Only the recent literals and the nearest old ones are
    examined. If a gap has no room for a label, all labels of the attribute are spaced again.

    Parameters
    ----------
    codes, new : of new subscriptions, read-only; ``new`` has no labels
    attributes : number of attributes in all

    Returns
    -------
    all literals, the codes with keys by their labels, and the move for other segments, None where
    labels of known literals stay
    """
    known = known.of(attributes)
    if len(new.offset) == 1:
        return known, codes, None
    if len(new.first) != attributes + 1:
        new = new._replace(first=extend_ranges(new.first, attributes + 1))
    # Look up the literals, in case all are known
    old, bound = known.old.literals, codes.bound.copy()
    scratch = np.empty(len(new.offset) - 1, np.int64)
    key: Callable[..., bool] = key_few if len(scratch) <= FEW_LITERALS else key_known
    if key(*old, *known.recent.literals, *new[:3], scratch, codes.first, bound):
        return known, codes._replace(bound=seal(bound)), None
    # Gather the recent literals and the nearest old ones
    place, _ = locate_literals(old, new)
    near_first, near = np.empty(attributes + 1, np.int64), np.empty(2 * len(place), np.int64)
    number = find_neighbours(old.first, new.first, place, near_first, near)
    around = unite_literals(known.recent.literals, select_literals(old, near_first, near[:number]))
    # Label the new literals among these
    place, there = locate_literals(around, new)
    label, crowded = np.empty(len(place), np.int64), np.empty(attributes, np.uint8)
    label_literals(around, new, place, there, label, crowded)
    if (crowded & (np.diff(around.first) > 0)).any():
        return _space_again(whole(known), codes, new)
    space_literals(new.first, contiguous(crowded), label)  # the first literals of their attributes
    # Add the new literals to the recent ones
    here = np.flatnonzero(there == 0)
    if len(here):
        first = np.searchsorted(here, new.first)
        recent = unite_literals(
            known.recent.literals, select_literals(new._replace(label=contiguous(label)), first, here)
        )
        known = Vocabulary(known.old, WordList(recent))
        if len(known.recent) > policy.RECENT_MOST:
            known = Vocabulary.among(whole(known))
    return known, _to_keys(codes, new.first, contiguous(label)), None


def _space_again(known: Literals, codes: Codes, new: Literals) -> tuple[Vocabulary, Codes, Move | None]:
    """Inserts as ``join_literals`` does, with new labels for attributes that have no room."""
    attributes = len(known.first) - 1
    place, there = locate_literals(known, new)
    label, crowded = np.empty(len(place), np.int64), np.empty(attributes, np.uint8)
    label_literals(known, new, place, there, label, crowded)
    out, moved, new_moved = _merge_literals(known, new, label, place, there)
    space_literals(contiguous(out.first), contiguous(crowded), out.label)
    out = freeze(out)
    again = crowded & (np.diff(known.first) > 0)  # not attributes that had no literals
    move = Move(known.first, known.label, moved, contiguous(again), out.label) if again.any() else None
    return Vocabulary.among(out), _to_keys(codes, new.first, contiguous(out.label[new_moved])), move


def whole(known: Vocabulary) -> Literals:
    """Returns all literals as one part."""
    return unite_literals(known.old.literals, known.recent.literals) if len(known.recent) else known.old.literals


def unite_literals(some: Literals, others: Literals) -> Literals:
    """Returns the literals of two disjoint sets, with their labels."""
    if not len(others.label) or not len(some.label):
        return some if len(some.label) else others
    place, there = locate_literals(some, others)
    return freeze(_merge_literals(some, others, others.label, place, there)[0])


def select_literals(literals: Literals, first: NDArray[np.int64], place: NDArray[np.int64]) -> Literals:
    """Returns the literals at ascending places: first (A + 1), place (L)."""
    size = int((literals.offset[place + 1] - literals.offset[place]).sum())
    out = Literals(first, np.empty(len(place) + 1, np.int64), np.empty(size, np.uint8), np.empty(len(place), np.int64))
    take_literals(literals, contiguous(place), out)
    return freeze(out)


def locate_literals(literals: Literals, new: Literals) -> tuple[I64, U8]:
    """Returns the place of each new literal, and whether the literal is there already."""
    place, there = np.empty(len(new.offset) - 1, np.int64), np.empty(len(new.offset) - 1, np.uint8)
    find_literals(literals, new, place, there)
    return contiguous(place), contiguous(there)


def _merge_literals(known: Literals, new: Literals, label: I64, place: I64, there: U8) -> tuple[Literals, I64, I64]:
    """Returns all literals, and the places of the known and the new ones among them."""
    total, count = len(known.offset) - 1, len(place)
    number = int(np.count_nonzero(there == 0))
    added = int(np.diff(new.offset)[there == 0].sum())
    out = Literals(
        np.empty(len(known.first), np.int64),
        np.empty(total + number + 1, np.int64),
        np.empty(len(known.data) + added, np.uint8),
        np.empty(total + number, np.int64),
    )
    moved, new_moved = np.empty(total, np.int64), np.empty(count, np.int64)
    merge_literals(known, new, contiguous(label), place, there, out, moved, new_moved)
    return out, contiguous(moved), contiguous(new_moved)


def move_keys(codes: Codes, move: Move) -> Codes:
    """Returns codes with keys by new labels; the same object if all of its labels stay."""
    attributes = len(codes.multi)
    if not (move.which[:attributes] & (np.diff(codes.first) > 0)).any():
        return codes
    bound = codes.bound.copy()
    move_boundaries(codes.first, bound, move.first, move.label, move.place, move.now, move.which)
    return freeze(codes._replace(bound=bound))


def extend_ranges(first: I64, size: int) -> I64:
    """Returns ranges of more owners, the added ones empty, or of the first owners only."""
    if size <= len(first):
        return first if size == len(first) else first[:size]
    return contiguous(np.append(first, np.full(size - len(first), first[-1])))


def _to_keys(codes: Codes, literal_first: I64, label: I64) -> Codes:
    bound = codes.bound.copy()
    key_boundaries(contiguous(codes.first), bound, literal_first, label)
    return freeze(codes._replace(bound=bound))
