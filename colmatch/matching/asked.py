"""What a call says beside the events."""

from __future__ import annotations

from typing import NamedTuple

from colmatch.events.clock import Clock
from colmatch.events.range_reader import Ranges
from colmatch.matching.subset import Subset


class Asked(NamedTuple):
    """Which attributes are ranges, among which subscriptions matches are looked for, and when."""

    ranges: Ranges = ()
    among: Subset | None = None  # None for all
    now: Clock | None = None  # None for that of the events
