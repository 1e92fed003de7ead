"""The arguments of a call other than the events, read and checked once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypedDict

import pyarrow as pa

from colmatch.events.computed.failed import Doubts
from colmatch.events.range_reader import Ranges
from colmatch.events.special.clock import Clock
from colmatch.matching.subset import Subset

Invalid = Literal["skip", "raise", "collect"]
Unknown = Literal["raise", "ignore"]
Keep = str | Sequence[str] | None  # columns of the events


class Among(TypedDict, total=False):
    """Keyword arguments of every method that finds matches; ``Matcher.match`` describes them."""

    ids: Any
    tags: Any
    now: Any


class MatchRequest(NamedTuple):
    """Checked arguments of one call: ranges, subscriptions to search, time, and kept columns.

    ``doubts`` receives matches that depend on a value that fails. Without it, they are errors.
    """

    ranges: Ranges = ()
    among: Subset | None = None  # None for all subscriptions
    now: Clock | None = None
    keep: tuple[pa.Field, ...] = ()  # columns of the events that the result repeats
    doubts: list[Doubts] | None = None
