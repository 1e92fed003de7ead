"""What a call says beside the events."""

from __future__ import annotations

from typing import NamedTuple

from colmatch.events.range_reader import Ranges
from colmatch.matching.subset import Subset


class Asked(NamedTuple):
    """Which attributes are ranges, and among which subscriptions matches are looked for."""

    ranges: Ranges = ()
    among: Subset | None = None  # None for all
