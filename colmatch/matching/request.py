"""The arguments of a call other than the events, read and checked once."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, SupportsFloat, TypedDict, get_args

import pyarrow as pa

from colmatch.events.computed.failed import Doubts
from colmatch.events.range_reader import Ranges
from colmatch.events.special.clock import Clock
from colmatch.given.incoming import ArrowArray, ArrowStream
from colmatch.matching.subset import Subset

Invalid = Literal["skip", "raise", "collect"]
INVALID: tuple[Invalid, ...] = get_args(Invalid)
Unknown = Literal["raise", "ignore"]
Keep = str | Sequence[str] | None  # columns of the events
SomeIds = Iterable[Any] | ArrowStream | ArrowArray | Subset
SomeTags = Iterable[str] | ArrowStream | ArrowArray
Time = dt.datetime | SupportsFloat | Clock  # a number is seconds since 1970 began in UTC


class Among(TypedDict, total=False):
    """Arguments of every method that finds matches; ``Matcher.match`` describes them."""

    ids: SomeIds | None
    tags: SomeTags | None
    now: Time | None


def among_of(ids: SomeIds | None, tags: SomeTags | None, now: Time | None) -> Among:
    """Returns the arguments of a call; an empty mapping if none is given."""
    return {} if ids is None and tags is None and now is None else {"ids": ids, "tags": tags, "now": now}


class MatchRequest(NamedTuple):
    """Checked arguments of one call: ranges, subscriptions to search, time, and kept columns.

    ``doubts`` receives matches that depend on a value that fails. Without it, they are errors.
    """

    ranges: Ranges = ()
    among: Subset | None = None  # None for all subscriptions
    now: Clock | None = None
    keep: tuple[pa.Field, ...] = ()  # columns of the events that the result repeats
    doubts: list[Doubts] | None = None
