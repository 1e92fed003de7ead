"""The part of a call that is said beside the events, read and checked once."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypedDict

from colmatch.events.clock import Clock
from colmatch.events.range_reader import Ranges
from colmatch.matching.subset import Subset

Invalid = Literal["skip", "raise", "collect"]
Unknown = Literal["raise", "ignore"]


class Among(TypedDict, total=False):
    """Keyword arguments of every method that finds matches; ``Matcher.match`` describes them."""

    ids: Any
    tags: Any
    now: Any


class MatchRequest(NamedTuple):
    """Checked arguments of one call: ranges, subscriptions to look among, and the time."""

    ranges: Ranges = ()
    among: Subset | None = None  # None for all
    now: Clock | None = None  # None for that of the events
