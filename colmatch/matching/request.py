"""The part of a call that is said beside the events, read and checked once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypedDict

import pyarrow as pa

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
    """Checked arguments of one call: ranges, whom to look among, the time, what is kept."""

    ranges: Ranges = ()
    among: Subset | None = None  # None for all
    now: Clock | None = None  # None for that of the events
    keep: tuple[pa.Field, ...] = ()  # columns of the events that stand beside the pairs
