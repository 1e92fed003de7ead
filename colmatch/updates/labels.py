"""Labels: codes and literals with room between them for those that updates bring.

The arrays of a matcher that takes updates may be longer than what is in them: ``Codes`` and
``Literals`` here are read-only views.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous, freeze
from colmatch.arrays.growing import with_room
from colmatch.kernels import layout
from colmatch.kernels.labels.boundaries import (
    enter_boundaries,
    find_boundaries,
    label_boundaries,
    label_predicates,
    space_codes,
    unlabel_predicates,
)
from colmatch.kernels.labels.literals import (
    find_literals,
    key_boundaries,
    label_literals,
    merge_literals,
    move_boundaries,
    space_literals,
)
from colmatch.kernels.layout import Codes, Literals, Predicates


class NoRoomError(Exception):
    """There is no room for a label: all are to be spaced anew."""


class Join(NamedTuple):
    """What was there and what came, together."""

    codes: Codes
    literals: Literals
    label: NDArray[np.uint32]  # of the boundaries of the predicates that came
    recoded: bool  # whether anything has changed for those who read events


def with_labels(predicates: Predicates, codes: Codes, literals: Literals) -> tuple[Predicates, Codes, Literals]:
    """Gives labels to predicates with codes, for a kind of index that takes updates."""
    labelled = freeze(literals)
    bound = codes.bound
    if len(literals.offset) > 1:
        label = np.empty(len(literals.offset) - 1, np.int64)
        space_literals(labelled.first, contiguous(np.ones(len(literals.first) - 1, np.uint8)), label)
        labelled = freeze(literals._replace(label=label))
        bound = bound.copy()
        key_boundaries(contiguous(codes.first), bound, labelled.first, labelled.label)
    codes = freeze(codes._replace(bound=bound))
    codes = freeze(codes._replace(label=_spaced_labels(codes)))
    return freeze(relabelled(predicates, codes)), codes, labelled


def relabelled(predicates: Predicates, codes: Codes, label: NDArray[np.uint32] | None = None) -> Predicates:
    """Turns dense codes into labels: those of the codes, or ``label`` (B).

    Arrays that can be written are.
    """
    own = _writable(predicates)
    label_predicates(
        own.pred, own.run_lo, own.run_hi, contiguous(codes.first), codes.label if label is None else contiguous(label)
    )
    return own


def join(codes: Codes, literals: Literals, new_codes: Codes, new_literals: Literals) -> Join:
    """Joins the codes and literals of new subscriptions to those that are there.

    The new ones are dense, and have the same attributes or more.

    The memory of ``codes.bound`` and ``codes.label`` is used again if it can be written, so what is
    handed in is not to be used any more.

    Raises
    ------
    NoRoomError : there is no room; ``codes`` and ``literals`` are as they were
    """
    both = _overlap(codes, literals, new_codes, new_literals)
    known, new = both.known, both.new
    label = np.empty(len(new.bound), np.uint32)
    if not label_boundaries(known.first, known.bound, known.label, new.first, new.bound, both.place, label):
        raise NoRoomError
    recoded = both.number > 0 or both.literals is not literals or len(known.multi) > len(codes.multi)
    if both.number:
        first, left = known.first.copy(), len(known.bound) + both.number
        bound, labels = _room(known.bound, both.number), _room(known.label, both.number)
        enter_boundaries(
            first, new.first, new.bound, contiguous(label), both.place, both.number, len(known.bound), bound, labels
        )
        known = Codes(first, bound[:left], known.multi, labels[:left])
    return Join(freeze(known), both.literals, label, recoded)


def join_respaced(
    predicates: Predicates, codes: Codes, literals: Literals, new_codes: Codes, new_literals: Literals
) -> tuple[Predicates, Join]:
    """Joins new codes and literals as ``join`` does, and spaces all labels anew.

    This is for where there was no room. The labels of ``predicates`` change too.
    """
    both = _overlap(codes, literals, new_codes, new_literals)
    known, new, old = both.known, both.new, len(both.known.bound)
    first, left = known.first.copy(), old + both.number
    bound, origin = np.empty(left, np.int64), np.empty(left, np.uint32)
    bound[:old], origin[:old] = known.bound, np.arange(old)
    own = contiguous(np.arange(old, old + len(new.bound), dtype=np.uint32))
    enter_boundaries(first, new.first, new.bound, own, both.place, both.number, old, bound, origin)
    all_codes = freeze(Codes(first, bound, known.multi))
    all_codes = freeze(all_codes._replace(label=_spaced_labels(all_codes)))
    label = np.empty(old + len(new.bound), np.uint32)
    label[origin] = all_codes.label
    found = np.setdiff1d(np.arange(len(new.bound)), origin[origin >= old].astype(np.int64) - old)
    label[old + found] = label[both.place[found]]
    own_predicates = _writable(predicates)
    own_arrays = own_predicates.pred, own_predicates.run_lo, own_predicates.run_hi
    unlabel_predicates(*own_arrays, known.first, known.label)
    label_predicates(*own_arrays, known.first, contiguous(label[:old]))
    return freeze(own_predicates), Join(all_codes, both.literals, label[old:].copy(), True)


class _Overlap(NamedTuple):
    """What is known and what is new, with the same keys for the same values."""

    known: Codes
    literals: Literals  # all; the ones that were known, if none is new
    new: Codes
    place: Any  # of new boundaries, as ``find_boundaries`` writes it
    number: int  # boundaries that are not known


def _overlap(codes: Codes, literals: Literals, new_codes: Codes, new_literals: Literals) -> _Overlap:
    attributes = len(new_codes.multi)
    known, new = codes, freeze(new_codes)
    if attributes > len(codes.multi):
        known = known._replace(first=_extended(known.first, attributes + 1), multi=new.multi)
        literals = freeze(literals._replace(first=_extended(literals.first, attributes + 1)))
    if len(new_literals.offset) > 1:
        literals, label, move = _merge(literals, freeze(new_literals))
        bound = new.bound.copy()
        key_boundaries(new.first, bound, contiguous(new_literals.first), label)
        new = freeze(new._replace(bound=bound))
        if move is not None and move.which.any():
            bound = known.bound.copy()
            move_boundaries(known.first, bound, move.first, move.label, move.place, literals.label, move.which)
            known = freeze(known._replace(bound=bound))
    place = np.empty(len(new.bound), np.int64)
    number = find_boundaries(known.first, known.bound, new.first, new.bound, place)
    return _Overlap(known, literals, new, place, number)


class _Move(NamedTuple):
    """What has become of the L literals of A attributes that were there before."""

    first: Any  # (A + 1)
    label: Any  # (L) labels that they had
    place: Any  # (L) their new places
    which: Any  # (A) whether the labels of the attribute were spaced anew


def _merge(literals: Literals, new: Literals) -> tuple[Literals, Any, _Move | None]:
    """Puts new literals among those that are there.

    Returns all literals, the label of each new one, and how the old ones moved, None where no
    literal is new.
    """
    count, attributes = len(new.offset) - 1, len(new.first) - 1
    place, known = np.empty(count, np.int64), np.empty(count, np.uint8)
    number = find_literals(literals, new, place, known)
    if not number:
        return literals, contiguous(literals.label[place]), None
    label, crowded = np.empty(count, np.int64), np.empty(attributes, np.uint8)
    label_literals(literals, new, contiguous(place), contiguous(known), label, crowded)
    total = len(literals.offset) - 1
    added = int(np.diff(new.offset)[known == 0].sum())
    out = Literals(
        np.empty(attributes + 1, np.int64),
        np.empty(total + number + 1, np.int64),
        np.empty(len(literals.data) + added, np.uint8),
        np.empty(total + number, np.int64),
    )
    moved, new_moved = np.empty(total, np.int64), np.empty(count, np.int64)
    merge_literals(literals, new, contiguous(label), contiguous(place), contiguous(known), out, moved, new_moved)
    if crowded.any():
        space_literals(contiguous(out.first), contiguous(crowded), out.label)
    again = crowded & (np.diff(literals.first) > 0)  # not those that had no literals
    return (
        freeze(out),
        contiguous(out.label[new_moved]),
        _Move(literals.first, literals.label, contiguous(moved), contiguous(again)),
    )


def _spaced_labels(codes: Codes) -> NDArray[np.uint32]:
    label = np.empty(len(codes.bound), np.uint32)
    space_codes(codes.first, codes.bound, label)
    return label


def _extended(first: layout.I64, size: int) -> layout.I64:
    """Extends ranges to more owners, the last of which have nothing."""
    return contiguous(np.append(first, np.full(size - len(first), first[-1]))) if size > len(first) else first


def _writable(predicates: Predicates) -> Predicates:
    """Returns predicates that own the arrays that kernels rewrite."""
    own = {name: getattr(predicates, name) for name in ("pred", "run_lo", "run_hi")}
    return predicates._replace(
        **{name: array if array.flags.writeable else array.copy() for name, array in own.items()}
    )


def _room(array: NDArray[Any], more: int) -> NDArray[Any]:
    """Returns an array that begins with the same and has room for more.

    It is the memory behind the view, if that was made here and is large enough.
    """
    base = array.base
    needed = len(array) + more
    ours = (
        isinstance(base, np.ndarray)
        and base.flags.writeable
        and base.dtype == array.dtype
        and base.ctypes.data == array.ctypes.data
    )
    if base is not None and ours and len(base) >= needed:
        return base
    larger = np.empty(with_room(needed), array.dtype)
    larger[: len(array)] = array
    return larger
