"""Labels: the coding of a growing segment, with room between codes for those that inserts bring."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous, freeze, sealed
from colmatch.kernels._jit import entry
from colmatch.kernels.labels.boundaries import join_boundaries, label_predicates, space_codes, unlabel_predicates
from colmatch.kernels.layout import LABEL_TOP, Codes, Predicates


class NoRoomError(Exception):
    """There is no room for a label: all are to be spaced anew."""


def with_labels(predicates: Predicates, codes: Codes) -> tuple[Predicates, Codes]:
    """Gives labels to dense codes, and to predicates that have these."""
    codes = freeze(codes)
    label = np.full(len(codes.bound) + 1, LABEL_TOP, np.uint32)
    space_codes(codes.first, codes.bound, label)
    codes = freeze(codes._replace(label=label))
    return freeze(relabelled(predicates, codes, codes.label)), codes


def without_labels(predicates: Predicates, codes: Codes) -> tuple[Predicates, Codes]:
    """Takes the labels away again: both have dense codes."""
    own = _own(predicates)
    unlabel_predicates(own.pred, own.run_lo, own.run_hi, codes.first, codes.label)
    return own, codes._replace(label=codes.label[:0])


def relabelled(predicates: Predicates, codes: Codes, label: NDArray[np.uint32]) -> Predicates:
    """Returns predicates with labels for the dense codes that they have.

    label (B) : of the boundaries of ``codes``
    """
    own = _own(predicates)
    label_predicates(own.pred, own.run_lo, own.run_hi, contiguous(codes.first), contiguous(label))
    return own


def join(codes: Codes, new: Codes) -> tuple[Codes, NDArray[np.uint32]]:
    """Puts new boundaries among those of a growing segment.

    new : dense, of the same attributes or more, read-only as ``codes`` are

    Returns
    -------
    all codes, the same object where nothing is new; and the label of each new boundary

    Raises NoRoomError: there is no room.
    """
    attributes, known = len(new.multi), len(codes.bound)
    size = len(new.bound)
    place, label = np.empty(size, np.int64), np.empty(size, np.uint32)
    first, bound, labels = (
        np.empty(attributes + 1, np.int64),
        np.empty(known + size, np.int64),
        np.empty(known + size + 1, np.uint32),
    )
    number = entry(join_boundaries)(
        codes.first, codes.bound, codes.label, new.first, new.bound, place, label, first, bound, labels
    )
    if number < 0:
        raise NoRoomError
    label = sealed(label)
    if number:
        return Codes(
            sealed(first), sealed(bound[: known + number]), new.multi, sealed(labels[: known + number + 1])
        ), label
    if attributes > len(codes.multi):
        return codes._replace(first=sealed(first), multi=new.multi), label
    return codes, label


def _own(predicates: Predicates) -> Predicates:
    """Returns predicates with arrays of their own for what kernels rewrite."""
    return predicates._replace(**{name: getattr(predicates, name).copy() for name in ("pred", "run_lo", "run_hi")})
