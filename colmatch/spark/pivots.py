"""What a row must have for a subscription to be true: the pivots by which shards are chosen.

Each conjunction needs a value of every attribute that one of its predicates tests, unless the
predicate is true of a missing value. The rarest of these is its *pivot*, as in OpIndex ("An
Efficient Publish/Subscribe Index for E-Commerce Databases", section 4.1). A row without that
column, or without that key of a map, cannot match it.

A subscription lives in one shard. Of the pivots of its conjunctions, the most frequent one says
which; the shard needs the rows that have any of them.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.ranges import ranges_of
from colmatch.expr.ast import Constant, Expr, Not, Or, Predicate, Subject, Verb
from colmatch.given.language import Language
from colmatch.given.options import Options
from colmatch.given.schema import DERIVED, Attribute, Attributes, Role, Schema
from colmatch.kernels.layout import ATTR_MASK, FLAG_NONE, REJECT, Predicates
from colmatch.kinds.settings import PROGRAMS_MOST, Budget
from colmatch.spark.manifest import Route
from colmatch.subscriptions.intake import SubscriptionReader

NONE = -1  # a subscription without a pivot: any row may match it
_BUDGET = Budget(16, 16, programs=PROGRAMS_MOST)


def route_of(attribute: Attribute) -> Route | None:
    """Returns what a row has if it has a value of an attribute; None where that is not known."""
    if attribute.role in DERIVED or attribute.is_free:
        return None
    return attribute.path, attribute.key if attribute.role is Role.ENTRY else None


def condition(routes: Iterable[Route]) -> Expr:
    """Returns the condition that a row has one of these."""
    parts: list[Expr] = [Not(Predicate(Verb.NULL, Subject(path, key))) for path, key in routes]
    return (Or(tuple(parts)) if len(parts) > 1 else parts[0]) if parts else Constant(False)


class Pivots(NamedTuple):
    """The pivots of the conjunctions of some subscriptions.

    Attributes
    ----------
    known : what rows may have
    text : of each, as JSON
    share, uses : of each, a number from 0 to 1 that is always the same; and how many need it. They
        are of one more, which is none
    owner, pivot : (C) number of the subscription of each conjunction, ascending, and its pivot
        among ``known``, or NONE
    """

    known: list[Route]
    text: list[str]
    share: NDArray[np.float64]
    uses: NDArray[np.int64]
    owner: NDArray[np.int64]
    pivot: NDArray[np.int64]


def needed(predicates: Predicates) -> NDArray[np.bool_]:
    """Says of each predicate whether its conjunction needs a value of its attribute (P).

    Of a program, they are those at the beginning without which it rejects.
    """
    found: NDArray[np.bool_] = predicates.pred[:, 0] & FLAG_NONE == 0
    for c in np.flatnonzero(predicates.jump_first >= 0):
        begin, end, jump = predicates.first[c], predicates.first[c + 1], predicates.jump_first[c]
        jumps = predicates.jump[jump : jump + end - begin]
        leads = (jumps[:, 1] == REJECT) & (jumps[:, 0] == np.arange(1, end - begin + 1))
        found[begin:end] &= np.cumprod(np.append(True, leads[:-1])).astype(bool) & (jumps[:, 1] == REJECT)
    return found


class PivotReader:
    """Finds pivots of texts, batch after batch.

    Parameters
    ----------
    uses : how many conjunctions need each of what rows may have; of rows, where that is known
    """

    def __init__(self, schema: Schema, options: Options, language: Language, uses: dict[Route, int]) -> None:
        self._attributes = Attributes()
        self._reader = SubscriptionReader(schema, options, self._attributes, _BUDGET, language)
        self._uses = uses
        self._routes: list[Route] = []
        self._text: list[str] = []
        self._share: list[float] = []
        self._rarity: list[int] = []
        self._number: dict[Route, int] = {}
        self._of: list[int] = []  # attribute -> its route, or NONE

    def _see_attributes(self) -> NDArray[np.int64]:
        for attribute in self._attributes.members[len(self._of) :]:
            route = route_of(attribute)
            if route is None:
                self._of.append(NONE)
                continue
            if route not in self._number:
                self._number[route] = len(self._routes)
                self._routes.append(route)
                self._text.append(json.dumps(route))
                self._share.append(_share(route))
                self._rarity.append(self._uses.get(route, 0))
            self._of.append(self._number[route])
        return np.array(self._of, np.int64)

    def needs(self, subscriptions: pa.Table) -> Counter[Route]:
        """Counts the predicates that need each route."""
        lowered = self._reader.take_in(subscriptions, "collect").lowered.predicates
        of = self._see_attributes()
        routes = of[(lowered.pred[:, 0] & ATTR_MASK)[needed(lowered)]]
        counts = np.bincount(routes[routes >= 0], minlength=len(self._routes))
        return Counter({self._routes[i]: int(counts[i]) for i in np.flatnonzero(counts)})

    def pivots(self, subscriptions: pa.Table) -> tuple[Pivots, NDArray[np.int64]]:
        """Returns the pivots of subscriptions (id, expression), and the ids of their numbers.

        Expressions that cannot be understood are not among them.
        """
        intake = self._reader.take_in(subscriptions, "collect")
        of = self._see_attributes()
        share, uses = np.array([*self._share, 0.0]), np.array([*self._rarity, np.iinfo(np.int64).max])
        owner, pivot = _pivots(intake.lowered.predicates, of, share, uses)
        found = Pivots(self._routes, self._text, share, uses, owner, pivot)
        return found, intake.ids.array.to_numpy()


def _pivots(
    lowered: Predicates, of: NDArray[np.int64], share: NDArray[np.float64], uses: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the subscription and the pivot of each conjunction (C), (C).

    Of equally rare ones it is always the same, in whatever order they were come upon.

    of : attribute -> its route, or NONE
    """
    owner, far = lowered.owner.astype(np.int64), len(share) - 1
    rank = np.empty(far, np.int64)
    by_rank = np.lexsort((share[:-1], uses[:-1]))
    rank[by_rank] = np.arange(far)
    best = np.full(len(owner), far, np.int64)
    filled = np.flatnonzero(np.diff(lowered.first))
    if len(filled):
        at = of[lowered.pred[:, 0] & ATTR_MASK]
        cost = np.where(needed(lowered) & (at >= 0), np.append(rank, far)[at], far)
        best[filled] = np.minimum.reduceat(cost, lowered.first[:-1][filled])
    return owner, np.append(by_rank, NONE)[best]


def homes(pivots: Pivots, count: int) -> NDArray[np.int64]:
    """Returns the pivot that says where a subscription lives, or NONE (count).

    It is the most frequent one of its conjunctions, and NONE if one of these has none.
    """
    home = np.full(count, NONE, np.int64)
    order = np.lexsort((pivots.share[pivots.pivot], pivots.uses[pivots.pivot], pivots.owner))
    owner, pivot = pivots.owner[order], pivots.pivot[order]
    last = np.append(owner[1:] != owner[:-1], True)[: len(owner)]
    home[owner[last]] = pivot[last]
    return home


class Layout:
    """Which shard a subscription belongs to, by its pivot and its id.

    Pivots stand one behind the other, each as long as it has subscriptions in a sample, those
    without a pivot last. Shards are equal parts of that line. A pivot that is longer than a part
    lies in several shards, and ids are spread over these by a hash.

    Parameters
    ----------
    pivots, rows : as in ``Manifest``
    """

    def __init__(self, pivots: Sequence[Route], rows: Sequence[int], shards: int) -> None:
        self.starts = ranges_of(rows)[:-1].astype(np.float64)
        self.rows = np.array(rows, np.float64)
        self.shards = shards
        self.place = {route: i for i, route in enumerate(pivots[: len(rows) - 1])}

    def shard_of(self, pivots: Pivots, home: NDArray[np.int64], hashes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the shard of each of n subscriptions.

        home : (n) the pivot of each, or NONE; one that the sample lacks is placed by its own hash
        hashes : (n) of the ids
        """
        spread, total = hashes.view(np.uint64) / 2.0**64, float(self.starts[-1] + self.rows[-1])
        line = spread
        if total >= self.shards:  # the sample says something
            at = np.array([*(self.place.get(route, NONE) for route in pivots.known), len(self.place)], np.int64)
            start = np.where(at >= 0, self.starts[at], pivots.share * total)[home]  # home is NONE: the last one
            length = np.where(at >= 0, self.rows[at], 0.0)[home]
            line = (start + spread * length) / total
        found: NDArray[np.int64] = np.minimum((line * self.shards).astype(np.int64), self.shards - 1)
        return found


def _share(route: Route) -> float:
    return int.from_bytes(hashlib.sha256(repr(route).encode()).digest()[:6]) / 2.0**48
