"""Sorted boundaries with the hints that keys of events are coded with (``arrays/hints.py``)."""

from __future__ import annotations

import numpy as np

from colmatch.arrays.frozen import freeze
from colmatch.arrays.hints import hints_of
from colmatch.kernels.hints import TILE, Hints
from colmatch.kernels.layout import I64
from locators.kernels import hinted
from locators.spaces import boundary_kind


def ready(bound: I64) -> Hints:
    """The hints of one attribute with these boundaries."""
    return freeze(hints_of(np.array([0, len(bound)]), bound))


KIND = boundary_kind(
    "hinted",
    "sorted boundaries, hints for equal parts of the keys, then a search among few",
    ready=ready,
    locate=lambda of, points, space: hinted.locate(
        of.spaces.bound, of.search, points, np.empty(TILE, np.uint32), space
    ),
    touch=lambda of, points, counters: hinted.touch(of.spaces.bound, of.search, points, counters),
)
