"""What no segment uses any more is left out: attributes, and with them columns and text patterns,
and string literals.

An attribute keeps its id as long as it is there, since segments know it by that. The ids of others
are free for new attributes.

Ids of attributes stand in the arrays of all segments. So a new attribute may take a free id only if
both may have several entries, or both may not: indexes hold that property by id. String literals go
when a quarter of them has no boundary, and the labels of the others stay, so no segment is told.
Gathering literals takes 0.05 s for a million, beside updates. The part that runs in an update's
turn takes 0.5 ms. Forms of new subscriptions have ids in them (``subscriptions/intake.py``). So
known forms stay in use, and are begun anew, with the free ids, when a quarter of their attributes
is unused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from colmatch.events.vocabulary import Vocabulary, WordList
from colmatch.given.schema import Attributes
from colmatch.kernels.labels.literals import mark_literals
from colmatch.kernels.layout import U8, Codes, Literals, Predicates
from colmatch.kinds.base import uses_of
from colmatch.updates import policy
from colmatch.updates.literals import found, taken, together
from colmatch.updates.segments import Segment
from colmatch.updates.versions import Version


class Use(NamedTuple):
    """Which literals of a version some segments use."""

    old: U8  # (L)
    recent: U8

    @staticmethod
    def of(segments: Iterable[Segment], version: Version) -> Use:
        """Marks what segments use of a version that has all they use."""
        parts = version.literals.old.literals, version.literals.recent.literals
        use = Use(*(np.zeros(len(part.label), np.uint8) for part in parts))
        for segment in segments:
            codes = segment.codes
            for part, used in zip(parts, use, strict=True):
                if len(used):
                    mark_literals(codes.first, codes.bound, part.first, part.label, used)
        return use


class GatheredLiterals(NamedTuple):
    """The string literals of a version that some segment uses."""

    of: Version
    use: Use
    literals: WordList


def used_attributes(predicates: Predicates, codes: Codes) -> NDArray[np.bool_]:
    """Returns whether each attribute of some subscriptions has predicates, or boundaries: (A)."""
    return (uses_of(predicates, len(codes.multi)) > 0) | (np.diff(codes.first) > 0)


def in_segments(version: Version) -> NDArray[np.bool_]:
    """Returns whether each attribute of a version is used by some segment: (A)."""
    used = np.zeros(len(version.attributes), bool)
    for segment in version.segments:
        used[: len(segment.codes.multi)] |= (segment.used > 0) | (np.diff(segment.codes.first) > 0)
    return used


def with_new(known: Attributes, source: Attributes, used: NDArray[np.bool_]) -> Attributes:
    """Returns attributes with those that new subscriptions use.

    source : where new subscriptions have their attributes from; the known ones have the same ids
    used : whether new subscriptions use each attribute: of as many as there are now
    """
    new = [i for i in np.flatnonzero(used).tolist() if i >= len(known) or known[i].is_free]
    return known.with_some_of(source, len(used), new) if new else known


def gathered_literals(version: Version) -> GatheredLiterals | None:
    """Gathers the literals that are used, all as old ones. None where that is not worth while."""
    literals = version.literals
    use = Use.of(version.segments, version)
    unused = len(literals) - int(np.count_nonzero(use.old)) - int(np.count_nonzero(use.recent))
    if not policy.is_much(unused, len(literals)) and len(literals.recent) <= policy.RECENT_KEPT:
        return None
    some = WordList(together(_marked(literals.old.literals, use.old), _marked(literals.recent.literals, use.recent)))
    some.prefix  # noqa: B018, lest a batch make them
    return GatheredLiterals(version, use, some)


def vacuumed(version: Version, tidy: GatheredLiterals | None) -> Version:
    """Returns the version without attributes that no segment uses, and with tidied literals.

    ``tidy`` is of this version or an earlier one. It is left alone if that is too long ago: a
    segment that came since uses what would be left out, or there are new labels.
    """
    known, literals = version.attributes, version.literals
    if tidy is not None and literals.old.literals.label is tidy.of.literals.old.literals.label:
        before = {id(segment) for segment in tidy.of.segments}
        then = version.changed(literals=tidy.of.literals.of(len(known)))
        newer = Use.of([segment for segment in version.segments if id(segment) not in before], then)
        if not (np.any(newer.old > tidy.use.old) or np.any(newer.recent > tidy.use.recent)):
            literals = Vocabulary(
                tidy.literals, WordList(_without(literals.recent.literals, tidy.of.literals.recent.literals))
            )
    used = in_segments(version)
    size = max(len(segment.codes.multi) for segment in version.segments)
    for part in (literals.old.literals, literals.recent.literals):  # ids of those that have some must stay
        size = max(size, int(np.searchsorted(part.first, part.first[-1])))
    if known.used > np.count_nonzero(used) or size < len(known):
        members = zip(known.members[:size], used[:size].tolist(), strict=True)
        known = Attributes([attribute if used else attribute.freed() for attribute, used in members])
    literals = literals.of(len(known))
    if known is version.attributes and literals is version.literals:
        return version
    return version.changed(attributes=known, literals=literals)


def _marked(literals: Literals, used: NDArray[Any]) -> Literals:
    """Returns the literals that are used."""
    place = np.flatnonzero(used)
    return taken(literals, np.searchsorted(place, literals.first), place)


def _without(literals: Literals, others: Literals) -> Literals:
    """Returns literals without some others, which have no more attributes."""
    others = WordList(others).of(len(literals.first) - 1).literals
    _, there = found(others, literals)
    return _marked(literals, there == 0)
