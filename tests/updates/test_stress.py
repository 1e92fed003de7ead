"""Some seconds of what ``stress.py`` does for as long as one likes."""

from __future__ import annotations

import numpy as np
import pytest
from sizes import SMALL
from stress import COUNTERS, stress, wrong


@pytest.mark.parametrize("kind", ["bitslice", "opindex", "auto"])
@pytest.mark.parametrize("threads", [1, 2])
def test_what_is_seen_is_of_one_version(kind: str, threads: int) -> None:
    """Beside single updates, many at once, merges that are due and merges that are forced."""
    outcome = stress(kind, threads, 60, updates=1 if SMALL else 20, rows=30 if SMALL else 400)
    assert not outcome.violations
    assert outcome.tables and outcome.matches and outcome.updates


@pytest.mark.parametrize(
    ("event", "id", "what"),
    [
        ([0, 0, 1, 1], [6, 7, 6, 7], None),
        ([1, 0, 0, 1], [7, 6, 7, 6], None),
        ([0, 0, 1], [6, 7, 7], "pair"),
        ([0, 1], [6, 7], "pair"),
        ([0, 0, 0], [6, 7, 7], "pair"),
        ([0, 0, 0, 0], [6, 6, 7, 7], "pair"),
        ([0, 1], [COUNTERS + 3, COUNTERS + 4], "counters"),
        ([0, 1], [COUNTERS + 2] * 2, "counters"),
        ([0, 1], [COUNTERS + 5] * 2, "counters"),
        ([0, 1, 1], [COUNTERS + 3] * 3, "state"),
        ([0], [COUNTERS + 3], "state"),
    ],
)
def test_what_stress_takes_for_wrong(event: list[int], id: list[int], what: str | None) -> None:
    counters = [(3, 4)]
    if max(id) < COUNTERS:  # then of the pairs alone
        event, id = [*event, 0, 1], [*id, COUNTERS + 3, COUNTERS + 3]
    found = wrong(np.array(event), np.array(id), 2, counters)
    assert (found is None) if what is None else (what in found)
