"""Segments: subscriptions that are indexed together. Nothing of one ever changes."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous, freeze, frozen
from colmatch.arrays.hints import hints_of
from colmatch.events.sample import recount_values
from colmatch.events.vocabulary import Vocabulary
from colmatch.given.schema import Attributes
from colmatch.kernels import hints
from colmatch.kernels._forks import cached_property
from colmatch.kernels.layout import F64, I64, U8, Codes, Predicates
from colmatch.kernels.scores import group_conjunctions, score_each
from colmatch.kinds import plan
from colmatch.kinds.base import Built, Strata, uses_of
from colmatch.kinds.registry import KINDS
from colmatch.kinds.settings import Settings
from colmatch.kinds.statistics import Sample, Statistics


class Segment:
    """An index and what it is about. Subscriptions have numbers from 0 in it.

    Its arrays are read-only and contiguous.

    Attributes
    ----------
    size : how many numbers it has; not all of them need be subscriptions
    """

    def __init__(self, codes: Codes, predicates: Predicates, index: Built, size: int) -> None:
        self.codes = codes
        self.predicates = predicates
        self.index = index
        self.size = size
        self.repeats = index.kind.repeats(index.arrays)
        self._known_scores: dict[int, F64] = {}

    @cached_property
    def hints(self) -> hints.Hints:
        """Returns what narrows the search for the code of a value."""
        return freeze(hints_of(self.codes.first, self.codes.bound))

    @cached_property
    def used(self) -> U8:
        """Returns whether some predicate is about an attribute: (A) uint8."""
        return contiguous((uses_of(self.predicates, len(self.codes.multi)) > 0).astype(np.uint8))

    @cached_property
    def use(self) -> bytes:
        """Returns which attributes are used: segments that use the same ones have the same
        bytes.
        """
        return self.used.tobytes()

    @cached_property
    def conjunctions(self) -> tuple[I64, I64]:
        """The conjunctions of each subscription: (S + 1) where they begin, (C).

        Made for the first batch whose best matches are asked for.
        """
        first, members = np.empty(self.size + 1, np.int64), np.empty(len(self.predicates.owner), np.int64)
        group_conjunctions(self.predicates.owner, first, members)
        return frozen(first), frozen(members)

    @cached_property
    def strata(self) -> Strata:
        """Returns what can be matched by itself where the best matches alone are asked for."""
        kind, arrays = self.index.kind, self.index.arrays
        return self.whole if kind.strata is None else kind.strata(arrays)

    @property
    def whole(self) -> Strata:
        """All of it, as one stratum that nothing is known of."""
        arrays = self.index.arrays
        return Strata(np.full((1, 4), np.inf), np.full(1, np.inf), lambda begin, end: arrays)

    def known_scores(self, scoring: int) -> F64:
        """Returns the score of each subscription, NaN where it depends on the event: (S).

        Events give no weights; the first batch waits until it is made.
        """
        known = self._known_scores.get(scoring)
        if known is None:
            written = np.full(self.size, np.nan)
            ones, seen = np.ones(len(self.codes.multi)), np.zeros(self.size, np.uint8)
            score_each(self.predicates, scoring, ones, written, seen)
            known = self._known_scores[scoring] = frozen(written)
        return known

    @cached_property
    def longest_tree(self) -> int:
        """Tokens of the longest tree of a program."""
        return int(np.diff(self.predicates.tree_first).max(initial=0))

    def prepare(self) -> None:
        """Makes what a batch needs, which otherwise the first one waits for."""
        _ = self.hints, self.use

    def with_codes(self, codes: Codes) -> Segment:
        """Returns the segment with other keys for its boundaries."""
        return Segment(codes, self.predicates, self.index, self.size)


class PredicateSource(Protocol):
    """What makes predicates whenever they are asked for."""

    def by_subscription(self) -> Predicates: ...

    def predicates(self, order: NDArray[Any] | None = None) -> Predicates: ...


def indexed(
    requested: Settings,
    predicates: Predicates | PredicateSource,
    codes: Codes,
    seen: Sample | None,
    size: int,
    subscriptions: int,
) -> tuple[Segment, str]:
    """Indexes predicates with dense codes. Returns the segment, and why it is of its kind.

    requested : the kind, or ``auto``
    predicates : or what makes them: then none are held that are not needed any more
    seen : what a sample of events said, by code
    size, subscriptions : numbers, and how many of them are subscriptions

    Raises OptionError: the kind refuses them.
    """
    codes = freeze(codes)
    source = None if isinstance(predicates, Predicates) else predicates
    given = freeze(predicates if isinstance(predicates, Predicates) else predicates.predicates())
    chosen = plan.choose(requested, Statistics.of(subscriptions, given, codes))
    kind = KINDS[chosen.settings.kind]
    if source is not None and kind.arrange is not None and kind.arranged is not None:
        order, arrangement = kind.arrange(given, codes, seen, chosen.settings)
        del given  # or there would be two copies at a time
        given = freeze(source.predicates(order))
        del order
        arrays = kind.arranged(given, codes, arrangement)
    else:
        if source is not None and np.any(given.owner[1:] < given.owner[:-1]):
            del given
            given = freeze(source.by_subscription())
        arrays, given = kind.build(given, codes, seen, chosen.settings)
    segment = Segment(codes, freeze(given), Built(kind, chosen.settings, freeze(arrays)), size)
    segment.prepare()
    return segment, chosen.reason


def recounted(sample: U8, attributes: Attributes, codes: Codes | None, literals: Vocabulary) -> Sample | None:
    """Returns what the events of a sample say of codes of the first attributes, or of all keys."""
    if codes is None:
        return recount_values(sample, attributes, None, literals)
    known = Attributes(attributes.members[: len(codes.multi)])
    return recount_values(sample, known, freeze(codes), literals)
