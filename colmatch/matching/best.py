"""The part of a matcher that finds the most relevant subscriptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import pyarrow as pa

from colmatch.arguments import checked_flag
from colmatch.errors import OptionError
from colmatch.events.clock import clock_of
from colmatch.kernels.sink import ANY, COUNTS
from colmatch.matching.asked import Asked
from colmatch.matching.range_worker import RangeNames, checked_ranges
from colmatch.matching.subset import Subset, subset_of
from colmatch.matching.topk import TopK, checked_topk
from colmatch.matching.workers import Live, Workers
from colmatch.subscriptions.tags import tags_asked

SUBSETS_KEPT = 64  # of tags that were asked for last: a bit for each subscription


class BestMatches:
    """Finds the best matches of events. ``Matcher`` is one."""

    def __init__(self, live: Live, workers: Workers) -> None:
        self._live = live
        self._workers = workers
        self._tagged = lru_cache(SUBSETS_KEPT)(lambda tags: Subset(None, (tags,)))

    def match_topk(
        self,
        events: Any,
        k: int,
        score: str = "dot",
        event_weights: str | Mapping[str, str | float] | None = None,
        *,
        ids: Any = None,
        tags: Any = None,
        now: Any = None,
    ) -> pa.Table:
        """Finds the most relevant subscriptions among those that are true for each event.

        Sadoghi and Jacobsen, "Relevance Matters" (III.C, VI). What is true is scored: a predicate
        by its weight, an AND by its parts, an OR by the best of its parts that are true. What has
        no weight weighs 0, and a subscription without a priority has 0: where no subscription has
        any, or none has any longer, all scores are 0, and the best are those of the lowest ids.

        Parameters
        ----------
        events : as ``match`` takes them
        k : how many are wanted for each event, at least 1; there are fewer where fewer match
        score : ``"dot"`` adds up the weights of the predicates of an AND, each times what the event
            gives to its attribute; ``"sum"`` adds up their weights alone; ``"max"`` is the largest
            of the products; ``"priority"`` that of the subscription, whatever is true
        ids, tags, now : as for ``match``
        event_weights : what events give to attributes, for ``dot`` and ``max``: the name of a
            column of maps from name to weight, or a mapping from name to the name of a column of
            numbers, or to a number for all events. Names are those of a ``PredicateTable``:
            ``age``, ``user.age``, ``attrs['k']``, but for ``size(tags)``; that of a column counts
            for all that is asked of it, that of an entry before it. NULL, and what is not named, is
            1. Weights are numbers from 0 to 1e100. Keys of a map that name nothing else of the
            schema mean nothing

        Returns
        -------
        table (event: int64 number of the row, subscription: type of the ids, score: double),
        ordered by event, then the best first; equal scores by id, strings by their characters.
        Scores are sums of doubles in no promised order: the last bit may differ between kinds

        Raises
        ------
        OptionError : ``k``, ``score`` or ``event_weights`` cannot be used. It does not depend on
            the subscriptions that are there
        EventError : as from ``match``; or a column of weights is not there, has no numbers, or one
            that is negative, infinite or NaN
        """
        schema = self._live.now.scored_schema
        return pa.Table.from_batches(
            self.match_topk_batches(events, k, score, event_weights, ids=ids, tags=tags, now=now), schema
        )

    def match_topk_batches(
        self,
        events: Any,
        k: int,
        score: str = "dot",
        event_weights: str | Mapping[str, str | float] | None = None,
        *,
        ids: Any = None,
        tags: Any = None,
        now: Any = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yields what ``match_topk`` returns, piece by piece as results come.

        The rows of one event are in one piece.
        """
        topk = self._topk(k, score, event_weights)
        return self._workers.best(events, topk, self._live.now.scored_schema, self._asked(None, ids, tags, now))

    def counters(
        self,
        events: Any,
        k: int | None = None,
        ranges: RangeNames | None = None,
        score: str | None = None,
        event_weights: str | Mapping[str, str | float] | None = None,
        *,
        ids: Any = None,
        tags: Any = None,
        now: Any = None,
        exists: bool = False,
    ) -> dict[str, int]:
        """Counts what the kernels look at for these events, which is the same on every machine.

        k : what is looked at to find the k best of each event
        ranges : as for ``match``; not together with ``k``
        ids, tags, now : as for ``match``
        exists : what is looked at for ``exists``; not together with ``k``
        score, event_weights : with ``k``, as for ``match_topk``

        Returns
        -------
        conjunctions : looked at
        candidates : conjunctions that passed the filter of the kind of index and were verified
        predicates : evaluated while verifying
        nodes : nodes, postings or pages visited, as the kind defines
        matches : pairs that are returned: each counts once, however often a kernel finds it. With
            ``k``, true conjunctions that were scored
        """
        exists = checked_flag("exists={}", exists)
        if k is not None and ranges is not None:
            raise OptionError("the best matches are found for values, not for ranges: give k or ranges, not both")
        if k is not None and exists:
            raise OptionError("give k, to find the best matches, or exists, to find out whether there are any")
        for name, given in (("score", score), ("event_weights", event_weights)):
            if k is None and given is not None:
                raise OptionError(f"{name}= is for the best matches: give k, too")
        topk = None if k is None else self._topk(k, "dot" if score is None else score, event_weights)
        return self._workers.counters(events, topk, self._asked(ranges, ids, tags, now), ANY if exists else COUNTS)

    def columns_of_weights(self, k: int, score: str = "dot", event_weights: Any = None) -> list[str]:
        """Returns the columns of the events that ``match_topk`` needs for event weights."""
        return self._topk(k, score, event_weights).columns

    def _asked(self, ranges: RangeNames | None = None, ids: Any = None, tags: Any = None, now: Any = None) -> Asked:
        """Returns what a call says beside the events, checked."""
        among = (
            self._tagged(tags_asked(tags)) if ids is None and tags is not None else subset_of(ids, tags, self._live.now)
        )
        clock = clock_of(now, self._live.schema, self._live.options.timezone)
        return Asked(checked_ranges(ranges, self._live.schema), among, clock)

    def _topk(self, k: int, score: str = "dot", event_weights: Any = None) -> TopK:
        return checked_topk(k, score, event_weights, self._live.schema)
