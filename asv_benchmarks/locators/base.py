"""What a kind of locator is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from colmatch.arrays.frozen import freeze_view
from colmatch.arrays.ranges import ranges_of
from colmatch.kernels.layout import I64, U32
from locators.kernels.counting import N_TOUCHED

Found = tuple[I64, U32]  # (m + 1) point -> its intervals; (their number) number of an interval


@dataclass(frozen=True, slots=True)
class LocatorKind:
    """A kind of locator: a module of ``kernels/`` here and a file beside it.

    Attributes
    ----------
    name, says : its name, and what it does in one line
    build : lower ends, upper ends (n) -> its arrays, with the intervals numbered from 0
    count : arrays, points (m) -> how many intervals contain each
    stab : arrays, points (m) -> the intervals that contain each, in any order
    touch : arrays, points -> what ``count`` reads for them, by ``locators/kernels/counting.py``
    sizes : arrays -> bytes of these
    locate : arrays, points (m) -> the space that each lies in, of kinds that have spaces. Spaces
        ascend with keys from 0, and all keys of one are in the same intervals
    insert : arrays, lower end, upper end, number -> arrays with an interval more. What can be
        written may be. None where the structure is static
    delete : as ``insert``, for an interval that is there; None when it is not
    """

    name: str
    says: str
    build: Callable[[I64, I64], Any]
    count: Callable[[Any, I64], I64]
    stab: Callable[[Any, I64], Found]
    touch: Callable[[Any, I64], I64]
    sizes: Callable[[Any], int]
    locate: Callable[[Any, I64], I64] | None = None
    insert: Callable[[Any, int, int, int], Any] | None = None
    delete: Callable[[Any, int, int, int], Any | None] | None = None


def counting_kind(
    name: str, says: str, build: Callable[[I64, I64], Any], count: Callable[..., None], fill: Callable[..., None],
    insert: Callable[[Any, int, int, int], Any] | None = None,
    delete: Callable[[Any, int, int, int], Any | None] | None = None,
) -> LocatorKind:  # fmt: skip
    """Makes a kind of two kernels: one counts the intervals of points, one writes them."""

    def counted(arrays: Any, points: I64) -> tuple[I64, I64]:
        hits, counters = np.empty(len(points), np.int64), np.zeros(N_TOUCHED, np.int64)
        count(arrays, points, hits, counters)
        return hits, counters

    def stab(arrays: Any, points: I64) -> Found:
        first = ranges_of(counted(arrays, points)[0])
        found = np.empty(first[-1], np.uint32)
        fill(arrays, points, freeze_view(first), found)
        return first, found

    return LocatorKind(
        name,
        says,
        build,
        count=lambda arrays, points: counted(arrays, points)[0],
        stab=stab,
        touch=lambda arrays, points: counted(arrays, points)[1],
        sizes=bytes_of,
        insert=insert,
        delete=delete,
    )


def bytes_of(arrays: Any) -> int:
    """Bytes of the arrays of a NamedTuple, and of those within it."""
    return arrays.nbytes if isinstance(arrays, np.ndarray) else sum(map(bytes_of, arrays))
