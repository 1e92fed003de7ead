"""Labels: codes of a growing segment, with gaps for the codes of new boundaries."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous, freeze, seal
from colmatch.kernels._jit import entry
from colmatch.kernels.labels.boundaries import join_boundaries, label_predicates, space_codes, unlabel_predicates
from colmatch.kernels.layout import LABEL_TOP, Codes, Predicates


class NoRoomError(Exception):
    """A gap without room for a label: all labels have to be spaced again."""


def with_labels(predicates: Predicates, codes: Codes) -> tuple[Predicates, Codes]:
    """Gives labels to dense codes, and to predicates that use these codes."""
    codes = freeze(codes)
    label = np.full(len(codes.bound) + 1, LABEL_TOP, np.uint32)
    space_codes(codes.first, codes.bound, label)
    codes = freeze(codes._replace(label=label))
    return freeze(relabel_predicates(predicates, codes, codes.label)), codes


def without_labels(predicates: Predicates, codes: Codes) -> tuple[Predicates, Codes]:
    """Turns labels back into dense codes, in predicates and codes."""
    own = _own(predicates)
    unlabel_predicates(own.pred, own.run_lo, own.run_hi, codes.first, codes.label)
    return own, codes._replace(label=codes.label[:0])


def relabel_predicates(predicates: Predicates, codes: Codes, label: NDArray[np.uint32]) -> Predicates:
    """Returns predicates with labels in place of their dense codes.

    label (B) : labels of the boundaries of ``codes``
    """
    own = _own(predicates)
    label_predicates(own.pred, own.run_lo, own.run_hi, contiguous(codes.first), contiguous(label))
    return own


def join(codes: Codes, new: Codes) -> tuple[Codes, NDArray[np.uint32]]:
    """Inserts new boundaries into the codes of a growing segment.

    new : dense, of the same attributes or more, read-only as ``codes`` are

    Returns
    -------
    all codes, the same object where nothing is new; and the label of each boundary of ``new``

    Raises NoRoomError: there is no room.
    """
    attributes, before = len(new.multi), len(codes.bound)
    size = len(new.bound)
    place, label = np.empty(size, np.int64), np.empty(size, np.uint32)
    first, bound, labels = (
        np.empty(attributes + 1, np.int64),
        np.empty(before + size, np.int64),
        np.empty(before + size + 1, np.uint32),
    )
    number = entry(join_boundaries)(
        codes.first, codes.bound, codes.label, new.first, new.bound, place, label, first, bound, labels
    )
    if number < 0:
        raise NoRoomError
    label = seal(label)
    if number:
        return Codes(seal(first), seal(bound[: before + number]), new.multi, seal(labels[: before + number + 1])), label
    if attributes > len(codes.multi):
        return codes._replace(first=seal(first), multi=new.multi), label
    return codes, label


def _own(predicates: Predicates) -> Predicates:
    """Returns predicates with copies of the arrays that kernels rewrite."""
    return predicates._replace(**{name: getattr(predicates, name).copy() for name in ("pred", "run_lo", "run_hi")})
