"""What a system under measurement is: prepared with a workload, then with events, it finds all
pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.conjunctions import Events
from benchmarks.workloads import Workload


class Pairs(NamedTuple):
    event: NDArray[np.int64]
    subscription: NDArray[np.int64]


Match = Callable[[], Pairs]
System = Callable[[Workload], Callable[[Events], Match]]


class Part:
    """A match of the first ``rows`` events alone, where all would take too long."""

    def __init__(self, match: Match, rows: int) -> None:
        self._match, self.rows = match, rows

    def __call__(self) -> Pairs:
        return self._match()
