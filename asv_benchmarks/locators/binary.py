"""Sorted boundaries and binary search: nothing but the boundaries themselves."""

from __future__ import annotations

from locators.kernels import binary
from locators.spaces import boundary_kind

KIND = boundary_kind(
    "binary",
    "sorted boundaries, binary search",
    ready=lambda bound: (),
    locate=lambda of, points, space: binary.locate(of.spaces.bound, points, space),
    touch=lambda of, points, counters: binary.touch(of.spaces.bound, points, counters),
)
