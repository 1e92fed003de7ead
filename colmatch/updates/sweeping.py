"""What no segment uses any more is left out: attributes, and with them columns and text patterns,
and string literals.

An attribute keeps its id as long as it is there, since segments know it by that. The ids of others
are free for new attributes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous, freeze
from colmatch.indexing.base import uses_of
from colmatch.kernels.labels.literals import mark_literals, select_literals
from colmatch.kernels.layout import U8, Codes, Literals, Predicates
from colmatch.schema import Attributes
from colmatch.updates import policy
from colmatch.updates.segments import Segment
from colmatch.updates.versions import Version


class Use(NamedTuple):
    """What some segments use of a version."""

    attributes: NDArray[np.bool_]  # (A)
    literals: U8  # (L)

    @staticmethod
    def of(segments: Iterable[Segment], version: Version) -> Use:
        """Marks what segments of a version use of it."""
        known = version.literals
        use = Use(np.zeros(len(version.attributes), bool), np.zeros(len(known.label), np.uint8))
        for segment in segments:
            codes = segment.codes
            use.attributes[: len(codes.multi)] |= (segment.used > 0) | (np.diff(codes.first) > 0)
            mark_literals(codes.first, codes.bound, known.first, known.label, use.literals)
        return use


def used_attributes(predicates: Predicates, codes: Codes) -> NDArray[np.bool_]:
    """Returns whether each attribute of some subscriptions has predicates, or boundaries: (A)."""
    return (uses_of(predicates, len(codes.multi)) > 0) | (np.diff(codes.first) > 0)


def with_new(known: Attributes, source: Attributes, used: NDArray[np.bool_]) -> Attributes:
    """Returns attributes with those that new subscriptions use.

    Parameters
    ----------
    source : where new subscriptions have their attributes from; the known ones have the same ids
    used : whether new subscriptions use each attribute: of as many as there are now
    """
    new = [i for i in np.flatnonzero(used).tolist() if i >= len(known) or known[i].is_free]
    return known.with_some_of(source, len(used), new) if new else known


def swept(version: Version) -> Version:
    """Returns the version without attributes and literals that no segment uses.

    It is the same one where all attributes are used, and all but a few literals.
    """
    known, literals = version.attributes, version.literals
    use = Use.of(version.segments, version)
    size = max(len(segment.codes.multi) for segment in version.segments)
    unused = len(literals.label) - int(np.count_nonzero(use.literals))
    if known.used == np.count_nonzero(use.attributes) and size == len(known):
        if not policy.is_much(unused, len(literals.label)):
            return version
    else:
        members = zip(known.members[:size], use.attributes[:size].tolist(), strict=True)
        known = Attributes([attribute if used else attribute.freed() for attribute, used in members])
    if unused or len(known) < len(version.attributes):
        literals = _selected(literals, use.literals, len(known))
    return version.changed(attributes=known, literals=literals)


def _selected(literals: Literals, used: U8, attributes: int) -> Literals:
    """Returns the literals of the first attributes that are used."""
    number = int(np.count_nonzero(used))
    size = int(np.diff(literals.offset)[used.view(bool)].sum())
    selected = Literals(
        np.empty(attributes + 1, np.int64),
        np.empty(number + 1, np.int64),
        np.empty(size, np.uint8),
        np.empty(number, np.int64),
    )
    select_literals(literals, contiguous(used), selected)
    return freeze(selected)
