"""What a workload is drawn from: its parameters, and the check of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np

from colmatch.errors import OptionError, show_value
from colmatch.given.arguments import check_choice, check_flag, number, python_value, text, whole_number

EVENT_CHUNK = 4096  # events that are drawn at a time
# a predicate's ``op`` is a place in this tuple
OPERATORS = ("=", "between", "<=", ">=", "<", ">", "<>", "in", "not in")
_COLUMNS = 10_000  # attributes that are columns, at most: beyond some 2,000 a map is better


@dataclass(frozen=True)
class Parameters:
    """Parameters of a workload. 000, 002 and 003 are the papers: BE*-Tree, OpIndex and PS-Tree.

    Attributes are called ``a0``, ``a1`` …, values run from 0 to ``cardinality - 1``. A subscription
    is a conjunction of predicates on different attributes; its id is its number, from 0. An event
    has at most one value for an attribute; no two events are alike.

    Attributes
    ----------
    name : name of the workload, for messages and tables of results
    subscriptions : number of subscriptions (000, table III "workload size"; 002, table 3 "N"; 003,
        table 1)
    attributes : number of attributes (000 "number of dimensions"; 002 "d"; 003 "dimension number")
    cardinality : values of each attribute's domain, 1 to 2**53 (000 and 003 "dimension
        cardinality"; 002 "value space")
    subscription_size : fewest and most predicates (000, 003 "average size"; 002, section 4.4:
        uniform up to a maximum)
    subscription_mean : mean of that size, with P(size) proportional to r**size; None for a uniform
        distribution (003, section 7.4: 1 to 56, mean 8)
    event_size : fewest and most attribute-value pairs of an event, uniform (000, 003 "event size";
        002 "m")
    equality : share of predicates that are equalities (003 "equal operator ratio"; 002 "percentage
        of equal operator")
    operators : ``(operator, share)`` of the other predicates, or a mapping; shares are relative to
        their sum. Operators are ``between <= >= < > <> in "not in"`` (000, section VII.A: mainly
        BETWEEN; 002, section 7.1: <= and >=)
    attribute_zipf : exponent of the distribution of attributes, C / rank**exponent, 0 for uniform,
        at most 5. Subscriptions and events share it, so ``a0`` is the most popular (002 "Zipf",
        003, section 7.1 "alpha")
    value_zipf : exponent of the distribution of values, with 0 the most frequent value. With
        clusters, exponent of the distribution of clusters (002, section 7.3.8)
    clusters : clusters of values on each attribute, at random places. 0: values come from the whole
        domain (000, section VII.C)
    cluster_size : largest distance of a value from the middle of its cluster (000 "cluster size": a
        distance)
    width : least and greatest width of a BETWEEN as a share of the domain, uniform; at least one
        value. (0, 1): up to the whole domain, half of it on average. The range lies anywhere about
        a value of the distribution. For the other comparisons, such a value is the bound (000,
        section VII.A: "a handful of values"; 002 and 003 are silent)
    list_size : fewest and most values of IN and NOT IN. Repeated values stay (the papers are
        silent)
    planted : share of subscriptions whose predicates are made true for one event of the stream.
        About ``planted / around`` of all subscriptions match each of the first ``around`` events,
        besides matches by chance (000 "match prob", 003 "matching probability"; both are silent on
        how BEGen reaches it). They have no more predicates than that event has pairs
    around : number of events that subscriptions are planted around: the first ones of the stream
    weights : give predicates weights (000, section VII.C): of the normal distribution N(0.8 inv,
        0.05 inv), at most inv. inv is the inverse frequency of the attribute, 1 for the rarest.
        (The paper prints max for min, which would make nearly all of them inv.)
    layout : ``columns``, an int64 column for each attribute, NULL if an event lacks it. Or ``map``,
        one column ``attrs``, a map from name to int64, for thousands of attributes. Predicates then
        name ``attrs['a17']``
    seed : seed of all random numbers, from 0. The same seed gives the same bytes, with the same
        numpy on the same kind of processor

    Raises
    ------
    OptionError : a field has an invalid value. The message has the field and the allowed values
    """

    name: str = "custom"
    subscriptions: int = 1_000_000
    attributes: int = 100
    cardinality: int = 100
    subscription_size: tuple[int, int] = (3, 7)
    subscription_mean: float | None = None
    event_size: tuple[int, int] = (30, 30)
    equality: float = 0.2
    operators: tuple[tuple[str, float], ...] = (("between", 1.0),)
    attribute_zipf: float = 0.0
    value_zipf: float = 0.0
    clusters: int = 0
    cluster_size: int = 100
    width: tuple[float, float] = (0.0, 1.0)
    list_size: tuple[int, int] = (2, 8)
    planted: float = 0.0
    around: int = EVENT_CHUNK
    weights: bool = False
    layout: Literal["columns", "map"] = "columns"
    seed: int = 0

    def __post_init__(self) -> None:
        for field in ("subscription_size", "event_size", "list_size", "width"):
            given = getattr(self, field)
            if isinstance(given, (list, tuple)) and len(given) == 2:
                object.__setattr__(self, field, tuple(map(_plain, given)))
        for field in (field.name for field in fields(self)):
            object.__setattr__(self, field, _plain(getattr(self, field)))
        pairs = self.operators.items() if isinstance(self.operators, Mapping) else self.operators
        try:
            object.__setattr__(self, "operators", tuple((_plain(name), _plain(share)) for name, share in pairs))
        except (TypeError, ValueError):
            raise self._wrong("operators", "pairs of an operator and its share are needed") from None
        self._check()

    def _check(self) -> None:
        self._whole("subscriptions", 0, 2**40)
        self._whole("attributes", 1, 2**24)
        self._whole("cardinality", 1, 2**53)
        self._whole("clusters", 0, 2**16)
        self._whole("cluster_size", 0, 2**52)
        self._whole("around", 1, 2**20)
        self._whole("seed", 0, 2**64 - 1)
        self._bounds("subscription_size", 1, min(self.attributes, 1000), "no more than there are attributes")
        self._bounds("event_size", 1, min(self.attributes, 1000), "no more than there are attributes")
        self._bounds("list_size", 1, 10_000, "a list has a value")
        self._share("equality", 1)
        self._share("planted", 1)
        self._share("attribute_zipf", 5)
        self._share("value_zipf", 5)
        low, high = self.subscription_size
        mean = self.subscription_mean
        if mean is not None and not (_is_number(mean) and low < mean < high):
            raise self._wrong(
                "subscription_mean",
                f"a number between {low} and {high} is needed, the ends of subscription_size, or None",
            )
        width = self.width
        if not (
            isinstance(width, tuple)
            and len(width) == 2
            and all(map(_is_number, width))
            and 0 <= width[0] <= width[1] <= 1
        ):
            raise self._wrong("width", "two shares of the domain are needed, from 0 to 1, the smaller one first")
        others = OPERATORS[1:]
        for name, share in self.operators:
            if text(name) not in others:
                raise self._wrong(
                    "operators",
                    f"there is no {show_value(name)} among {', '.join(others)} (= has a field of its own, equality)",
                )
            if not _is_number(share) or share < 0:
                raise self._wrong("operators", f"the share of {show_value(name)} must be a number from 0")
        names = [name for name, _ in self.operators]
        if len(set(names)) < len(names):
            raise self._wrong("operators", "one of them is there twice")
        if self.equality < 1 and not sum(share for _, share in self.operators) > 0:
            raise self._wrong("operators", "one of them must have a share above 0, or else equality must be 1")
        check_choice("Workload(layout={})", self.layout, ("columns", "map"))
        check_flag("Workload(weights={})", self.weights)
        if text(self.name) is None:
            raise self._wrong("name", "a text is needed")
        if self.layout == "columns" and self.attributes > _COLUMNS:
            raise self._wrong("attributes", f"at most {_COLUMNS:,} can be columns: use layout='map'")

    def _wrong(self, field: str, needed: str) -> OptionError:
        return OptionError(f"Workload({field}={show_value(getattr(self, field))}): {needed}")

    def _whole(self, field: str, low: int, high: int) -> None:
        if not is_whole(getattr(self, field)) or not low <= getattr(self, field) <= high:
            raise self._wrong(field, f"a whole number from {low} to {high} is needed")

    def _share(self, field: str, high: int) -> None:
        if not _is_number(getattr(self, field)) or not 0 <= getattr(self, field) <= high:
            raise self._wrong(field, f"a number from 0 to {high} is needed")

    def _bounds(self, field: str, low: int, high: int, why: str) -> None:
        given = getattr(self, field)
        if not (
            isinstance(given, tuple)
            and len(given) == 2
            and all(map(is_whole, given))
            and low <= given[0] <= given[1] <= high
        ):
            raise self._wrong(
                field, f"two whole numbers from {low} to {high} are needed, the smaller one first ({why})"
            )


def _plain(value: Any) -> Any:
    """Returns a number, a Boolean or a text as Python's own, and all else as it is."""
    found = number(value)
    return python_value(value) if found is None else found


def is_whole(value: object) -> bool:
    return whole_number(value) is not None


def _is_number(value: object) -> bool:
    found = number(value)
    return found is not None and -np.inf < found < np.inf
