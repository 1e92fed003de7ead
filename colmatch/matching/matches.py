"""The part of a matcher that finds all subscriptions that are true for each event."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arguments import checked_choice
from colmatch.errors import EventError, OptionError
from colmatch.events.range_reader import columns_of
from colmatch.events.required import LACKS
from colmatch.matching.best import BestMatches
from colmatch.matching.range_worker import RangeNames
from colmatch.matching.reasons import By, checked_by
from colmatch.matching.subset import Subset, subset_of


class Matches(BestMatches):
    """Finds all matches of events, and the best. ``Matcher`` is one."""

    def columns_with(self, ranges: RangeNames | None = None, now: Any = None) -> list[str]:
        """Returns the top-level columns that events need if ranges, or the time, are given."""
        attributes, asked = self._live.now.attributes, self._asked(ranges, now=now)
        own = [*columns_of(attributes, asked.ranges), *self._workers.required(asked.ranges).columns]
        return list(dict.fromkeys(own if asked.now is None else asked.now.without(own, attributes)))

    def subset(self, ids: Any = None, tags: Any = None) -> Subset:
        """Prepares some subscriptions to be matched among: what ``ids=`` takes.

        That an id has no subscription is no error: it matches nothing. The subset follows the
        matcher: what has one of its ids, or tags, when a batch begins is in it, be it inserted or
        replaced since. Where many events are matched among the same ids, this spares looking them
        up again.

        Parameters
        ----------
        ids : any iterable, or an array of Arrow or numpy; by default those of all subscriptions
        tags : of these, those that have any of these tags, as for ``match``; by default all

        Raises
        ------
        SubscriptionError : they are no list of ids, or of another type than those of the matcher
        OptionError : ``tags`` is no list of strings, or nothing is said
        """
        found = subset_of(ids, tags, self._live.now)
        if found is None:
            raise OptionError("a subset is of some ids, or of some tags: say which")
        return found

    @overload
    def match(
        self, events: Any, ranges: RangeNames | None = None, *, ids: Any = None, tags: Any = None, now: Any = None
    ) -> pa.Table: ...

    @overload
    def match(
        self,
        events: Any,
        ranges: RangeNames | None = None,
        *,
        invalid: Literal["skip", "raise"],
        ids: Any = None,
        tags: Any = None,
        now: Any = None,
    ) -> pa.Table: ...

    @overload
    def match(
        self,
        events: Any,
        ranges: RangeNames | None = None,
        *,
        invalid: Literal["collect"],
        ids: Any = None,
        tags: Any = None,
        now: Any = None,
    ) -> tuple[pa.Table, pa.Table]: ...

    def match(
        self,
        events: Any,
        ranges: RangeNames | None = None,
        *,
        invalid: str = "skip",
        ids: Any = None,
        tags: Any = None,
        now: Any = None,
    ) -> Any:
        """Finds which subscriptions are true for which events.

        Parameters
        ----------
        events : anything with ``__arrow_c_stream__`` or ``__arrow_c_array__``, with all columns
            that the expressions use (``columns``) unless ``Options(missing_columns="null")``. All
            rows of a table or data frame see the same updates. A reader, which has no length, sees
            those that are made between its batches
        ranges : ``{"price": ("price_low", "price_high")}``: columns or fields of structs that are
            ranges in the events, from the value of one column to that of another, both included.
            These have the attribute's type; the attribute need have no column of its own. NULL is
            no bound, NULL twice is NULL. A subscription matches if it is true of some value of each
            range. ``betree`` and ``bestar`` visit only what ranges meet, ``scan`` has a kernel of
            its own; with all other kinds every condition of every subscription is looked at

        invalid : what becomes of an event that lacks what must be defined, a column that the schema
            declares not nullable. It matches nothing: with ``"skip"``, that is all; ``"raise"`` is
            an error; with ``"collect"`` a second table is returned, which says which and why

        ids : only subscriptions that have one of these are found: what ``subset`` takes or returns
        tags : only subscriptions that have any of these tags are found: an iterable of strings, or
            an array of Arrow. With ``ids``, those that have one of both. That nobody has a tag is
            no error
        now : what time it is for all events, for the special functions: a datetime, or seconds
            since 1970 began in UTC. Their clocks and ``now`` need no columns then, and columns of
            these names count for nothing. Columns of whole numbers have whole seconds. A datetime
            without a zone is one in ``Options(timezone=...)``

        Returns
        -------
        table (event: int64 number of the row, subscription: type of the ids), ordered by event. The
        subscriptions of one event are in the order of ``Matcher.ids``, whatever kind the index is,
        unless ``Options(order="any")`` says that any order will do. With ``invalid="collect"`` a
        pair of this and a table (event, column: what it lacks, reason), ordered by event

        Raises
        ------
        EventError : a column is not there, or does not fit the schema; or a range begins above its
            end, or some expression cannot be asked of ranges: a text pattern that is no prefix, or
            an AND of ORs with too many conditions on them
        OptionError : ``ranges`` is no such mapping, or what it names is no scalar of the schema; or
            ``invalid``, ``tags`` or ``now`` is something else
        """
        invalid = checked_choice("invalid={}", invalid, ("skip", "raise", "collect"))
        schema, asked = self._live.now.result_schema, self._asked(ranges, ids, tags, now)
        if invalid == "skip":
            return pa.Table.from_batches(self._workers.pairs(events, schema, asked), schema)
        found: list[pa.RecordBatch] = []
        lacking: list[pa.RecordBatch] = []
        for pairs, lacks in self._workers.pairs_and_lacks(events, schema, asked):
            if lacks.num_rows and invalid == "raise":
                event, column, reason = (field[0].as_py() for field in lacks)
                raise EventError(reason, column=f"column {column!r}", event=event)
            found.append(pairs)
            lacking.append(lacks)
        matches = pa.Table.from_batches(found, schema)
        return matches if invalid == "raise" else (matches, pa.Table.from_batches(lacking, LACKS))

    def match_batches(
        self, events: Any, ranges: RangeNames | None = None, *, ids: Any = None, tags: Any = None, now: Any = None
    ) -> Iterator[pa.RecordBatch]:
        """Yields what ``match`` returns, piece by piece as results come.

        Memory does not follow the size of the input.
        """
        return self._workers.pairs(events, self._live.now.result_schema, self._asked(ranges, ids, tags, now))

    def match_lists(
        self, events: Any, ranges: RangeNames | None = None, *, ids: Any = None, tags: Any = None, now: Any = None
    ) -> pa.ChunkedArray:
        """Returns the ids that match each event: list<id> array, one list a row, in row order.

        Ids within a list are in the order that ``match`` has. ``ranges``, ``ids``, ``tags`` and
        ``now`` as for ``match``.
        """
        type = self._live.now.id_type
        lists = self._workers.lists(events, type, self._asked(ranges, ids, tags, now))
        return pa.chunked_array(list(lists), pa.list_(type))

    def count(
        self, events: Any, ranges: RangeNames | None = None, *, ids: Any = None, tags: Any = None, now: Any = None
    ) -> NDArray[np.int64]:
        """Returns the number of subscriptions that match each event: (rows) int64.

        ``ranges``, ``ids``, ``tags`` and ``now`` as for ``match``.
        """
        counts = list(self._workers.counts(events, self._asked(ranges, ids, tags, now)))
        return np.concatenate(counts) if counts else np.empty(0, np.int64)

    def exists(
        self, events: Any, ranges: RangeNames | None = None, *, ids: Any = None, tags: Any = None, now: Any = None
    ) -> NDArray[np.bool_]:
        """Says of each event whether any subscription matches it: (rows) bool.

        An event is left at its first match, by ``bitslice`` at the end of its segment. ``ranges``,
        ``ids``, ``tags`` and ``now`` as for ``match``.
        """
        found = list(self._workers.exists(events, self._asked(ranges, ids, tags, now)))
        return np.concatenate(found) if found else np.empty(0, np.bool_)

    def reasons(
        self, events: Any, by: By = "attribute", *, ids: Any = None, tags: Any = None, now: Any = None
    ) -> pa.Table:
        """Says why subscriptions match none of the events: what alone has turned events away.

        A subscription would be true of such an event, were what is named true of it: for a campaign
        that gets nothing, what is to be relaxed, and how much that would bring.

        Parameters
        ----------
        events : as for ``match``, all matched with the subscriptions that there are when it begins
        by : ``"attribute"``, all that a subscription says of one attribute together, or
            ``"predicate"``, each predicate by itself. Its text is made once for each of those that
            are told, so ask for some subscriptions rather than for all of millions
        ids, tags, now : as for ``match``

        Returns
        -------
        table (subscription, attribute, predicate, events: int64) for each subscription that matches
        none of the events, in the order of ``Matcher.ids``; names are dictionaries of strings, and
        ``predicate`` is there only by predicate. What alone turned most events away comes first. A
        last row with NULL for a name tells how many events no single one has turned away. Events
        that lack what must be defined do not count. Predicates are those that ``explain`` shows:
        negations have gone into them

        Raises
        ------
        EventError, SubscriptionError, OptionError : as from ``match``; or ``by`` is something else
        """
        return self._workers.reasons(events, self._asked(None, ids, tags, now), checked_by(by))
