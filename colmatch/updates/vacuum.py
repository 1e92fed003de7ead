"""Removal of attributes and string literals that no segment uses any more.

Columns and text patterns are removed with their attributes. An attribute keeps its id as long as it
is there, since segments refer to it by id. The ids of removed attributes are free for new ones.

Ids of attributes are in the arrays of all segments. Indexes also rely on whether the attribute of
an id may have several entries. So a free id goes only to a new attribute that is like the old one
in this.

String literals are removed when a quarter of them has no boundary. The labels of the others stay,
so segments need no change. Gathering literals takes 0.05 s for a million, while updates go on. The
part in an update's turn takes 0.5 ms.

Forms of new subscriptions contain ids (``subscriptions/intake.py``). So known forms stay in use
until a quarter of their attributes is unused. Then a new reader begins without forms, with the free
ids.
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
from colmatch.updates.literals import locate_literals, select_literals, unite_literals
from colmatch.updates.segments import Segment
from colmatch.updates.versions import Version


class Use(NamedTuple):
    """The literals of a version that some segments use."""

    old: U8  # (L) whether each is used
    recent: U8  # the same of recent literals

    @staticmethod
    def of(segments: Iterable[Segment], version: Version) -> Use:
        """Marks the literals that segments use. The version has all of these literals."""
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
    """Returns whether some segment uses each attribute of a version: (A)."""
    used = np.zeros(len(version.attributes), bool)
    for segment in version.segments:
        used[: len(segment.codes.multi)] |= (segment.used > 0) | (np.diff(segment.codes.first) > 0)
    return used


def with_new(known: Attributes, source: Attributes, used: NDArray[np.bool_]) -> Attributes:
    """Returns the known attributes and new ones that new subscriptions use.

    source : attributes of the new subscriptions; known ones have the same ids there
    used : whether new subscriptions use each attribute; its length is the new number of attributes
    """
    new = [i for i in np.flatnonzero(used).tolist() if i >= len(known) or known[i].is_free]
    return known.with_some_of(source, len(used), new) if new else known


def gather_literals(version: Version) -> GatheredLiterals | None:
    """Gathers the used literals, all as old ones. Returns None where this is not worthwhile."""
    literals = version.literals
    use = Use.of(version.segments, version)
    unused = len(literals) - int(np.count_nonzero(use.old)) - int(np.count_nonzero(use.recent))
    if not policy.is_much(unused, len(literals)) and len(literals.recent) <= policy.RECENT_KEPT:
        return None
    words = WordList(
        unite_literals(_select_used(literals.old.literals, use.old), _select_used(literals.recent.literals, use.recent))
    )
    words.prefix  # noqa: B018, so that no batch has to make them
    return GatheredLiterals(version, use, words)


def drop_unused(version: Version, tidy: GatheredLiterals | None) -> Version:
    """Returns the version without unused attributes, and with gathered literals.

    ``tidy`` is of this version or an earlier one. It is ignored if it is too old: a later segment
    uses a literal that it lacks, there are new labels, or another version was restored.
    """
    attributes, literals = version.attributes, version.literals
    # Take the gathered literals, and the literals that came since
    is_recent = tidy is not None and version.lineage is tidy.of.lineage
    if tidy is not None and is_recent and literals.old.literals.label is tidy.of.literals.old.literals.label:
        before = {id(segment) for segment in tidy.of.segments}
        then = version.with_changes(literals=tidy.of.literals.of(len(attributes)))
        newer = Use.of([segment for segment in version.segments if id(segment) not in before], then)
        if not (np.any(newer.old > tidy.use.old) or np.any(newer.recent > tidy.use.recent)):
            literals = Vocabulary(
                tidy.literals, WordList(_without(literals.recent.literals, tidy.of.literals.recent.literals))
            )
    # Free the ids of unused attributes
    used = in_segments(version)
    size = max(len(segment.codes.multi) for segment in version.segments)
    for part in (literals.old.literals, literals.recent.literals):  # ids of attributes with literals must stay
        size = max(size, int(np.searchsorted(part.first, part.first[-1])))
    if attributes.used > np.count_nonzero(used) or size < len(attributes):
        members = zip(attributes.members[:size], used[:size].tolist(), strict=True)
        attributes = Attributes([attribute if used else attribute.freed() for attribute, used in members])
    literals = literals.of(len(attributes))
    if attributes is version.attributes and literals is version.literals:
        return version
    return version.with_changes(attributes=attributes, literals=literals)


def _select_used(literals: Literals, used: NDArray[Any]) -> Literals:
    """Returns the literals with a flag in ``used``."""
    place = np.flatnonzero(used)
    return select_literals(literals, np.searchsorted(place, literals.first), place)


def _without(literals: Literals, others: Literals) -> Literals:
    """Returns literals without others. The others have no more attributes."""
    others = WordList(others).of(len(literals.first) - 1).literals
    _, there = locate_literals(others, literals)
    return _select_used(literals, there == 0)
