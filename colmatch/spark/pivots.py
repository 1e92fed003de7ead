"""Pivots of subscriptions: columns or map keys that a row must have. They choose the shards.

Each conjunction needs a value of every attribute that one of its predicates tests, unless a missing
value satisfies the predicate. The rarest of these attributes is its *pivot*, as in OpIndex ("An
Efficient Publish/Subscribe Index for E-Commerce Databases", section 4.1). A row without that
column, or without that key of a map, cannot match the conjunction.

A subscription lives in one shard, chosen by the most frequent pivot of its conjunctions. The shard
needs the rows that have any of the pivots.
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
    """Returns the column and map key that a value of an attribute needs; None if unknown."""
    if attribute.role in DERIVED or attribute.is_free:
        return None
    return attribute.path, attribute.key if attribute.role is Role.ENTRY else None


def condition(routes: Iterable[Route]) -> Expr:
    """Returns the condition that a row has at least one of the routes."""
    parts: list[Expr] = [Not(Predicate(Verb.NULL, Subject(path, key))) for path, key in routes]
    return (Or(tuple(parts)) if len(parts) > 1 else parts[0]) if parts else Constant(False)


class Pivots(NamedTuple):
    """The pivots of the conjunctions of some subscriptions.

    Attributes
    ----------
    known : routes that rows may have
    text : each route as JSON
    share, uses : for each route, a fixed number from 0 to 1, and the number of predicates that need
        the route. The last entry of both is for no pivot
    owner, pivot : (C) number of the subscription of each conjunction, ascending, and the place of
        its pivot in ``known``, or NONE
    """

    known: list[Route]
    text: list[str]
    share: NDArray[np.float64]
    uses: NDArray[np.int64]
    owner: NDArray[np.int64]
    pivot: NDArray[np.int64]


def mark_needed(predicates: Predicates) -> NDArray[np.bool_]:
    """Marks the predicates that need a value of their attribute for the conjunction to hold (P).

    In a program, only leading predicates count: those that make it reject if they are false.
    """
    mask: NDArray[np.bool_] = predicates.pred[:, 0] & FLAG_NONE == 0
    for c in np.flatnonzero(predicates.jump_first >= 0):
        begin, end, jump = predicates.first[c], predicates.first[c + 1], predicates.jump_first[c]
        jumps = predicates.jump[jump : jump + end - begin]
        leads = (jumps[:, 1] == REJECT) & (jumps[:, 0] == np.arange(1, end - begin + 1))
        mask[begin:end] &= np.cumprod(np.append(True, leads[:-1])).astype(bool) & (jumps[:, 1] == REJECT)
    return mask


class PivotReader:
    """A reader that finds the pivots of expressions, batch by batch.

    Parameters
    ----------
    uses : for each route, the number of predicates that need it, as far as known
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
        routes = of[(lowered.pred[:, 0] & ATTR_MASK)[mark_needed(lowered)]]
        counts = np.bincount(routes[routes >= 0], minlength=len(self._routes))
        return Counter({self._routes[i]: int(counts[i]) for i in np.flatnonzero(counts)})

    def pivots(self, subscriptions: pa.Table) -> tuple[Pivots, NDArray[np.int64]]:
        """Returns the pivots of subscriptions (id, expression), and the id of each by its number.

        Invalid expressions are left out.
        """
        intake = self._reader.take_in(subscriptions, "collect")
        of = self._see_attributes()
        share, uses = np.array([*self._share, 0.0]), np.array([*self._rarity, np.iinfo(np.int64).max])
        owner, pivot = _pivots(intake.lowered.predicates, of, share, uses)
        pivots = Pivots(self._routes, self._text, share, uses, owner, pivot)
        return pivots, intake.ids.array.to_numpy()


def _pivots(
    lowered: Predicates, of: NDArray[np.int64], share: NDArray[np.float64], uses: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the subscription and the pivot of each conjunction (C), (C).

    Among equally rare routes, the choice does not depend on the order of reading.

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
        cost = np.where(mark_needed(lowered) & (at >= 0), np.append(rank, far)[at], far)
        best[filled] = np.minimum.reduceat(cost, lowered.first[:-1][filled])
    return owner, np.append(by_rank, NONE)[best]


def homes(pivots: Pivots, count: int) -> NDArray[np.int64]:
    """Returns the pivot that chooses the shard of each subscription, or NONE (count).

    It is the most frequent pivot of the conjunctions, and NONE if one of them has no pivot.
    """
    home = np.full(count, NONE, np.int64)
    order = np.lexsort((pivots.share[pivots.pivot], pivots.uses[pivots.pivot], pivots.owner))
    owner, pivot = pivots.owner[order], pivots.pivot[order]
    last = np.append(owner[1:] != owner[:-1], True)[: len(owner)]
    home[owner[last]] = pivot[last]
    return home


class Layout:
    """The assignment of subscriptions to shards, by pivot and id.

    Pivots lie along a line, each as long as its number of subscriptions in a sample. Subscriptions
    without a pivot come last. Shards are equal parts of that line. A pivot that is longer than a
    part lies in several shards, and a hash spreads the ids over these.

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

        home : (n) the pivot of each, or NONE; a pivot that the sample lacks is placed by its hash
        hashes : (n) hashes of the ids
        """
        spread, total = hashes.view(np.uint64) / 2.0**64, float(self.starts[-1] + self.rows[-1])
        line = spread
        if total >= self.shards:  # the sample is large enough
            at = np.array([*(self.place.get(route, NONE) for route in pivots.known), len(self.place)], np.int64)
            start = np.where(at >= 0, self.starts[at], pivots.share * total)[home]  # NONE selects the last entry
            length = np.where(at >= 0, self.rows[at], 0.0)[home]
            line = (start + spread * length) / total
        numbers: NDArray[np.int64] = np.minimum((line * self.shards).astype(np.int64), self.shards - 1)
        return numbers


def _share(route: Route) -> float:
    return int.from_bytes(hashlib.sha256(repr(route).encode()).digest()[:6]) / 2.0**48
