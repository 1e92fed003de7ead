"""Segments: subscriptions that are indexed together. A segment never changes."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous, freeze, freeze_view
from colmatch.arrays.hints import hints_of
from colmatch.events.sample import recount_values
from colmatch.events.vocabulary import Vocabulary
from colmatch.given.schema import Attributes
from colmatch.kernels import hints
from colmatch.kernels._forks import cached_property
from colmatch.kernels.layout import ATTR_MASK, F64, FLAG_RUN, I64, KEY_MAX, KEY_MIN, LABEL_TOP, U8, Codes, Predicates
from colmatch.kernels.scores import group_conjunctions, score_each
from colmatch.kinds import plan
from colmatch.kinds.base import Built, Strata, uses_of
from colmatch.kinds.registry import KINDS
from colmatch.kinds.settings import Settings
from colmatch.kinds.statistics import Sample, Statistics
from colmatch.predicates.columns import EMPTY, take


class Segment:
    """An index, with its predicates and codes. Subscriptions have numbers from 0 in it.

    Its arrays are read-only and contiguous.

    Attributes
    ----------
    size : how many numbers it has; some may be of no subscription
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
        """Returns hints that narrow the search for the code of a value."""
        return freeze(hints_of(self.codes.first, self.codes.bound))

    @cached_property
    def used(self) -> U8:
        """Returns whether each attribute has a predicate: (A) uint8."""
        return contiguous((uses_of(self.predicates, len(self.codes.multi)) > 0).astype(np.uint8))

    @cached_property
    def use(self) -> bytes:
        """Returns the used attributes as bytes, the same for segments that use the same ones."""
        return self.used.tobytes()

    @cached_property
    def conjunctions(self) -> tuple[I64, I64]:
        """Returns the conjunctions of each subscription: their starts (S + 1), and themselves (C).

        They are made for the first batch that needs best matches.
        """
        first, members = np.empty(self.size + 1, np.int64), np.empty(len(self.predicates.owner), np.int64)
        group_conjunctions(self.predicates.owner, first, members)
        return freeze_view(first), freeze_view(members)

    @cached_property
    def strata(self) -> Strata:
        """Returns the parts of the index that can be matched alone for the best matches."""
        kind, arrays = self.index.kind, self.index.arrays
        return self.whole if kind.strata is None else kind.strata(arrays)

    @cached_property
    def reach(self) -> tuple[I64, I64]:
        """Returns the lowest and the highest key of each attribute in predicates' intervals: (A).

        They may lie further apart. Without predicates, the lowest is above the highest.
        """
        first, bound, _, label = self.codes
        pred, run_lo, run_hi = self.predicates.pred, self.predicates.run_lo, self.predicates.run_hi
        attr, is_run = pred[:, 0] & ATTR_MASK, pred[:, 0] & FLAG_RUN > 0
        # Find the lowest and highest code of each attribute
        low, high = pred[:, 1].copy(), pred[:, 2].copy()
        low[is_run], high[is_run] = run_lo[pred[is_run, 1]], run_hi[pred[is_run, 2] - 1]
        least, most = np.full(len(first) - 1, LABEL_TOP, np.uint32), np.zeros(len(first) - 1, np.uint32)
        np.minimum.at(least, attr, low)
        np.maximum.at(most, attr, high)
        # Find keys for them
        begin, end = first[:-1], first[1:]
        has = end > begin
        top = np.where(has, end - begin + 1 if not len(label) else label[end - 1], 1)
        lowest, highest = np.full(len(least), KEY_MAX), np.full(len(least), KEY_MIN)
        lowest[has], highest[has] = bound[begin[has]], bound[end[has] - 1] - 1
        lowest[least <= 1], highest[most >= top] = KEY_MIN, KEY_MAX
        return freeze_view(lowest), freeze_view(highest)

    @property
    def whole(self) -> Strata:
        """Returns the whole index as one stratum without known bounds."""
        arrays = self.index.arrays
        return Strata(np.full((1, 4), np.inf), np.full(1, np.inf), lambda begin, end: arrays)

    def known_scores(self, scoring: int) -> F64:
        """Returns the score of each subscription, NaN where it depends on the event: (S).

        The scores are for events without weights. The first batch waits until they are made.
        """
        scores = self._known_scores.get(scoring)
        if scores is None:
            written = np.full(self.size, np.nan)
            ones, seen = np.ones(len(self.codes.multi)), np.zeros(self.size, np.uint8)
            score_each(self.predicates, scoring, ones, written, seen)
            scores = self._known_scores[scoring] = freeze_view(written)
        return scores

    @cached_property
    def longest_tree(self) -> int:
        """Returns the tokens of the longest tree of a program."""
        return int(np.diff(self.predicates.tree_first).max(initial=0))

    def prepare(self) -> None:
        """Makes the hints and used attributes, so that the first batch need not wait."""
        _ = self.hints, self.use

    def apart(self) -> Segment:
        """Returns the segment, as one that shares no memory with the successors of this one."""
        return self

    def with_codes(self, codes: Codes) -> Segment:
        """Returns the segment with other keys for its boundaries."""
        return Segment(codes, self.predicates, self.index, self.size)


class PredicateSource(Protocol):
    """A source of predicates, which makes them for each call."""

    def by_subscription(self) -> Predicates: ...

    def predicates(self, order: NDArray[Any] | None = None) -> Predicates: ...


class Handed:
    """Predicates that nobody else holds: they are freed as soon as they are in another order."""

    def __init__(self, predicates: Predicates) -> None:
        self._held = predicates

    def by_subscription(self) -> Predicates:
        return self._held

    def predicates(self, order: NDArray[Any] | None = None) -> Predicates:
        if order is None:
            return self._held
        held, self._held = self._held, EMPTY
        return take(held, order)


def build_segment(
    requested: Settings,
    predicates: Predicates | PredicateSource,
    codes: Codes,
    seen: Sample | None,
    size: int,
    subscriptions: int,
) -> tuple[Segment, str]:
    """Indexes predicates with dense codes. Returns the segment, and the reason for its kind.

    requested : the kind, or ``auto``
    predicates : predicates, or a source, so that unneeded ones take no memory
    seen : the hits of a sample of events by code, or None
    size, subscriptions : numbers, and how many of them are subscriptions

    Raises OptionError: the kind refuses the predicates.
    """
    codes = freeze(codes)
    source = None if isinstance(predicates, Predicates) else predicates
    preds = freeze(predicates if isinstance(predicates, Predicates) else predicates.predicates())
    # Choose the kind
    chosen = plan.choose(requested, Statistics.of(subscriptions, preds, codes))
    kind = KINDS[chosen.settings.kind]
    # Build the index, with one copy of the predicates at a time
    if source is not None and kind.arrange is not None and kind.build_arranged is not None:
        order, arrangement = kind.arrange(preds, codes, seen, chosen.settings)
        del preds
        preds = freeze(source.predicates(order))
        del order
        arrays = kind.build_arranged(preds, codes, arrangement)
    else:
        if source is not None and np.any(preds.owner[1:] < preds.owner[:-1]):
            del preds
            preds = freeze(source.by_subscription())
        arrays, preds = kind.build(preds, codes, seen, chosen.settings)
    segment = Segment(codes, freeze(preds), Built(kind, chosen.settings, freeze(arrays)), size)
    segment.prepare()
    return segment, chosen.reason


def count_sample(sample: U8, attributes: Attributes, codes: Codes | None, literals: Vocabulary) -> Sample | None:
    """Counts the events of a sample by codes of the first attributes, or else by key."""
    if codes is None:
        return recount_values(sample, attributes, None, literals)
    coded_attributes = Attributes(attributes.members[: len(codes.multi)])
    return recount_values(sample, coded_attributes, freeze(codes), literals)
