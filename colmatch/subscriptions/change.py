"""An update as its caller gives it: deletions, and subscriptions to insert, replace or upsert.

It is read before the update has its turn. So a caller's source may take long, or itself update the
matcher.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.errors import OptionError, SubscriptionError
from colmatch.given.language import Language
from colmatch.subscriptions.given import ArrowTexts, GivenSubscriptions, add_arguments, read
from colmatch.subscriptions.ids import Ids, check_known, check_new, check_type, check_unique, list_ids
from colmatch.subscriptions.parameters import fill
from colmatch.subscriptions.table import PredicateTable
from colmatch.subscriptions.tags import GivenTags, join_lists, tags_asked
from colmatch.subscriptions.weights import GivenWeights


class Way(IntEnum):
    """The operation of an update on an id, after the deletions."""

    INSERT = 0  # it has no subscription
    REPLACE = 1  # it has one
    UPSERT = 2  # either


class Deletion(NamedTuple):
    """The subscriptions to delete: those that meet every part that is given."""

    listed: list[Any] | None = None  # ids, each of which must have a subscription
    ids: Ids | None = None  # ids of a subset, some of which may have none
    tags: tuple[frozenset[str], ...] = ()  # of each set, a subscription has a tag


class Change(NamedTuple):
    """One update. Deletions come first."""

    deletion: Deletion | None
    given: PredicateTable | GivenSubscriptions | None
    way: Way = Way.UPSERT
    ways: tuple[Ids, NDArray[np.int64]] | None = None  # ids and the way of each, where there are several ways
    definitions: Mapping[str, str] | None = None  # all of them, where some are changed

    def on(self, version: object) -> Change:
        """Returns the update itself, which is the same for all versions."""
        return self

    @property
    def ids(self) -> Ids | None:
        """The ids of new subscriptions, None without any."""
        ids = None if self.given is None else _ids_of(self.given)
        return ids if ids is not None and len(ids) else None

    def with_upserts(self, more: GivenSubscriptions) -> Change:
        """Returns the update with further subscriptions, which are upserted."""
        own = self.ids
        if self.given is None or own is None:
            return self._replace(given=more, way=Way.UPSERT, ways=None)
        ids, ways = self.ways or (own, np.full(len(own), int(self.way)))
        both = Ids(pa.concat_arrays([ids.array, more.ids.array]))
        ways = np.concatenate([ways, np.full(len(more.ids), int(Way.UPSERT))])
        given = self.given.in_order() if isinstance(self.given, GivenSubscriptions) else self.given
        return self._replace(given=join_given([given, more]), ways=(both, ways))

    def check(self, ids: Ids, place: NDArray[np.int64]) -> None:
        """Checks the places of new subscriptions.

        place : number of the present subscription of each id, -1 where there is none

        Raises SubscriptionError: an id that is inserted has a subscription, or one that is replaced
        has none.
        """
        if self.ways is None:
            _check(self.way, ids, place)
            return
        known, ways = self.ways
        way = ways[known.find(ids)]
        for one in (Way.INSERT, Way.REPLACE):
            _check(one, ids.filter(way == one), place[way == one])


def _check(way: Way, ids: Ids, place: NDArray[np.int64]) -> None:
    if way is Way.INSERT:
        check_new(ids, place)
    elif way is Way.REPLACE:
        check_known(ids, place, "nothing was replaced; upsert() adds it")


def read_one_way(
    way: Way,
    subscriptions: Any,
    language: Language,
    constants: Any,
    tags: Any,
    parameters: Mapping[str, Any] | None,
    feed: bool = False,
) -> Change:
    """Reads the arguments of ``Matcher.insert``, ``replace``, ``upsert`` or ``sync``.

    feed : whether the subscriptions may be a change feed
    """
    given = fill(subscriptions, parameters, language)
    return Change(None, read(given, language, constants, tags, feed), way)


def read_ways(
    given: Mapping[Way, Any],
    deletion: Deletion | None,
    language: Language,
    constants: Any,
    tags: Any,
    parameters: Mapping[str, Any] | None,
) -> Change:
    """Reads the arguments of ``Matcher.update``.

    given : subscriptions by the way that they come in; None for none

    Raises
    ------
    OptionError : nothing is given
    SubscriptionError : the subscriptions cannot be read, or an id is given twice
    """
    read_groups = {way: read(group, language) for way, group in given.items() if group is not None}
    groups = {way: group for way, group in read_groups.items() if len(_ids_of(group))} or dict(
        [*read_groups.items()][:1]
    )
    if not groups:
        if deletion is None:
            raise OptionError("an update needs something to insert, replace, upsert or delete")
        if not (constants is tags is parameters is None):
            raise OptionError("constants=, tags= and parameters= go with subscriptions to insert, replace or upsert")
        return Change(deletion, None)
    ids = [_ids_of(group) for group in groups.values()]
    for other in ids[1:]:
        check_type(ids[0].type, other.type)
    together = Ids(check_unique(pa.concat_arrays([part.array for part in ids])))
    joined = join_given(list(groups.values()))
    joined = add_arguments(fill(joined, parameters, language), language, constants, tags)
    if len(groups) == 1:
        return Change(deletion, joined, next(iter(groups)))
    ways = np.repeat(np.array([int(way) for way in groups]), list(map(len, ids)))
    return Change(deletion, joined, ways=(together, ways))


def read_deletion(ids: Any, tags: Any, criteria: tuple[Ids | None, tuple[frozenset[str], ...]] | None) -> Deletion:
    """Returns the deletion for a caller's ids and tags.

    criteria : those of a subset, where ``ids`` is one

    Raises SubscriptionError: ``ids`` is no list of ids. Raises OptionError: ``tags`` is no list of
    strings, or neither is given.
    """
    asked = () if tags is None else (tags_asked(tags),)
    if criteria is not None:
        return Deletion(ids=criteria[0], tags=(*criteria[1], *asked))
    if ids is None and tags is None:
        raise OptionError("a delete needs ids or tags")
    return Deletion(None if ids is None else list_ids(ids), tags=asked)


def definitions_in(given: Sequence[PredicateTable | GivenSubscriptions | None]) -> dict[str, str | None]:
    """Returns the definitions in tables of subscriptions."""
    all_of = [part.definitions for part in given if isinstance(part, GivenSubscriptions)]
    return {name: condition for part in all_of for name, condition in part.items()}


def _ids_of(given: PredicateTable | GivenSubscriptions) -> Ids:
    if isinstance(given, GivenSubscriptions):
        return given.ids
    return Ids(pa.chunked_array([table["id"].combine_chunks() for table in given.tables]).unique())


def join_given(groups: list[PredicateTable | GivenSubscriptions]) -> PredicateTable | GivenSubscriptions:
    """Returns the subscriptions of several groups together."""
    if len(groups) == 1:
        return groups[0]
    tables = [group for group in groups if isinstance(group, PredicateTable)]
    if len(tables) == len(groups):
        return PredicateTable(*chain.from_iterable(table.tables for table in tables))
    given = [group for group in groups if isinstance(group, GivenSubscriptions)]
    if tables:
        raise SubscriptionError(
            "one update has expressions and a PredicateTable: write all of it in one of both forms, or make two updates"
        )
    texts = [group.expressions for group in given]
    if all(isinstance(part, ArrowTexts) for part in texts):
        expressions: Any = ArrowTexts.join(texts)
    else:
        expressions = list(chain.from_iterable(texts))
    sizes = [len(group.ids) for group in given]
    tags = None
    if any(group.tags is not None for group in given):
        tags = GivenTags(None, join_lists([None if group.tags is None else group.tags.lists for group in given], sizes))
    ids = Ids(pa.concat_arrays([group.ids.array for group in given]))
    weights = GivenWeights.join([group.weights for group in given], sizes)
    return GivenSubscriptions(ids, expressions, weights, tags, definitions_in(given))
