"""Weights that subscriptions give to attributes, for the leaves on these.

A name is a column, or an entry or the size of a column. The weight of a column counts for all
predicates on it, the weight of an entry or a size before that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colmatch.given.schema import Attributes, Role

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

# Weights of leaves before the subscription's weights are entered.
OF_ATTRIBUTE, OF_COLUMN = np.nan, np.inf
WEIGHT_MOST = 1e100  # most of a weight and of a priority: sums of products stay finite
FURTHER_PART = -np.inf  # see ``kernels.lowering.conjunctions.LeafTable``


class Name(NamedTuple):
    """The meaning of a name: a column, or the size of a column, or an entry of a map."""

    path: tuple[str, ...]
    role: Role = Role.VALUE
    key: str | int | None = None


class AttributeWeights:
    """W weights, each of a subscription and a name.

    Parameters
    ----------
    names : N
    place (W) : subscription times N and place of the name, ascending
    value (W)
    """

    def __init__(self, names: Sequence[Name], place: I64, value: F64) -> None:
        self._names = names
        self._place = place
        self._value = value

    def enter(self, weight: F64, sub: I64, attr: I64, attributes: Attributes) -> None:
        """Enters the weights of leaves that are ``OF_ATTRIBUTE`` or ``OF_COLUMN``, 0 without one.

        weight, sub, attr : of each leaf
        """
        of_attribute, of_column = np.isnan(weight), weight == OF_COLUMN
        weight[of_attribute | of_column] = 0
        if not len(self._place):
            return
        own, column = places_of(attributes, self._names)
        self._enter(np.flatnonzero(of_attribute | of_column), column, weight, sub, attr)
        self._enter(np.flatnonzero(of_attribute), own, weight, sub, attr)

    def _enter(self, which: I64, places: I64, weight: F64, sub: I64, attr: I64) -> None:
        """Enters the weights that subscriptions give to the names at ``places`` for some leaves."""
        named = places[attr[which]]
        which, named = which[named >= 0], named[named >= 0]
        keys = sub[which] * len(self._names) + named
        at = np.minimum(np.searchsorted(self._place, keys), len(self._place) - 1)
        there = self._place[at] == keys
        weight[which[there]] = self._value[at[there]]


def places_of(attributes: Attributes, names: Sequence[Name]) -> tuple[I64, I64]:
    """Returns the places of two names of each attribute, its own and its column's; -1 without."""
    place = {name: i for i, name in enumerate(names)}
    own, column = np.full(len(attributes), -1), np.full(len(attributes), -1)
    for a, attribute in enumerate(attributes):
        if attribute.role in (Role.SIZE, Role.ENTRY):
            own[a] = place.get(Name(attribute.path, attribute.role, attribute.key), -1)
        column[a] = place.get(Name(attribute.path), -1)
    return own, column
