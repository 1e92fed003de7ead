"""NOT IN in k-index: an entry of all values, and one for each value or range that is left out,
instead of entries for all others.
"""

from __future__ import annotations

from itertools import product
from random import Random
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from contract import pairs
from sizes import SMALL
from test_kindex import MODULE, arrays, of

import colmatch as cm


def entries_of_last(matcher: cm.Matcher) -> tuple[int, int]:
    """How many positive and negated entries the last conjunction has."""
    index = arrays(matcher)
    (number,) = np.flatnonzero(index.conj == len(index.conj) - 1)
    own = index.entry[index.entry >> 1 == number]
    return int(np.count_nonzero(own % 2)), int(np.count_nonzero(own % 2 == 0))


OTHERS = {i: f"a = {10 * i} AND b > {7 * i}" for i in range(100)}
NEGATED = [
    ("a NOT IN (105, 305, 905)", 1, 3),
    ("a <> 105", 1, 1),
    ("a <> 105 AND a NOT IN (305, 905, 105)", 1, 3),
    ("NOT (a IN (105, 305) OR a = 905)", 1, 3),
    ("a <> 105 AND b <> 305", 2, 2),
    ("(a <> 105 OR c = 1) AND (a <> 305 OR c = 2 OR b <> 305)", 5, 3),
    ("(a <> 105 OR b IS NULL OR (c IN (1, 3)) IS NOT TRUE) AND (a <> 305 OR c = 2)", 3, 5),
    ("a IS NOT NULL", 1, 0),
    ("a IS NULL", 1, 1),  # the first in Z
]


@pytest.mark.parametrize("enumerate", ["boundaries", "raw"])
@pytest.mark.parametrize("flat", [0, 10**9])
@pytest.mark.parametrize(("text", "positive", "negated"), NEGATED)
def test_not_in_has_an_entry_for_presence_and_negated_ones(
    text: str, positive: int, negated: int, flat: int, enumerate: str
) -> None:
    """Not one for each value that is not in the list, of an attribute with a hundred."""
    values = [None, 0, 105, 305, 905, 906]
    rows = product(values, values, [None, 1, 2])
    events = pa.table(
        {name: pa.array(column, pa.int64()) for name, column in zip("abc", zip(*rows, strict=True), strict=True)}
    )
    with patch.object(MODULE, "FLAT", flat):
        matcher = of(OTHERS | {1000: text}, enumerate=enumerate, dnf_budget=1)
    assert entries_of_last(matcher) == (positive, negated)
    found = pairs(matcher.match(events))
    assert found == pairs(of(OTHERS | {1000: text}, "scan").match(events))
    assert matcher.counters(events)["candidates"] == 0


@pytest.mark.parametrize("enumerate", ["boundaries", "raw"])
@pytest.mark.parametrize("flat", [0, 10**9])
def test_ranges_with_gaps_of_every_width(flat: int, enumerate: str) -> None:
    """A gap may take a piece that the range around it takes, too: what rejects must come first
    in its list.
    """
    rng, texts = Random(flat), {}
    for i in range(200 if SMALL else 1000):
        gaps = [
            (low, low + rng.choice([0, 0, 1, 3, 7, 15]))
            for low in (rng.randrange(64) for _ in range(rng.randrange(1, 6)))
        ]
        parts = (
            [f"NOT a BETWEEN {low} AND {high}" for low, high in gaps]
            + ["a BETWEEN 0 AND 63"] * (i % 2)
            + ["b = 1"] * (i % 3 == 0)
        )
        texts[i] = " AND ".join(parts)
    with patch.object(MODULE, "FLAT", flat):
        matcher = of(texts, enumerate=enumerate)
    events = pa.table({"a": pa.array([None, *range(-1, 66)], pa.int64()), "b": [1] * 68})
    assert pairs(matcher.match(events)) == pairs(of(texts, "scan").match(events)) != []
    assert (arrays(matcher).entry % 2 == 0).any()


def test_a_value_in_a_gap_says_nothing_of_the_others() -> None:
    most = ", ".join(str(i) for i in range(64) if i != 5)
    texts = {i: f"array_contains(t, {i})" for i in range(64)} | {64: f"arrays_overlap(t, array({most}))"}
    with patch.object(MODULE, "FLAT", 0):
        matcher = of(texts)
    events = pa.table({"t": pa.array([[5], [5, 6], [70, 5], []], pa.list_(pa.int64()))})
    assert pairs(matcher.match(events)) == [(0, 5), (1, 5), (1, 6), (1, 64), (2, 5)]
