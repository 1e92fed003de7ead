"""Codes of events: many keys searched for together, few one by one."""

from __future__ import annotations

import numpy as np
import pytest

from colmatch.arrays.frozen import freeze, freeze_view
from colmatch.arrays.hints import hints_of
from colmatch.kernels import layout
from colmatch.kernels.hints import TILE
from colmatch.kernels.layout import KEY_MAX, KEY_MIN
from colmatch.kernels.transpose import ROW_BLOCK, code_rows, transpose

RNG = np.random.default_rng(7)
BOUNDARIES = {
    "none": np.empty(0, np.int64),
    "one": np.array([5]),
    "dense": np.arange(-40, 60),
    "wide": RNG.integers(KEY_MIN, KEY_MAX, 999),
    "ends": np.append(RNG.integers(-1000, 1000, 60), [KEY_MIN, KEY_MIN + 1, KEY_MAX - 1, KEY_MAX]),
    "skewed": np.exp(RNG.normal(0, 3, 500) * 3).astype(np.int64),
    "clusters": (RNG.integers(0, 5, 400) << 50) + RNG.integers(0, 300, 400),
    "crowd": np.append(np.arange(0, 3000, 3), 2**60),
    "behind the crowd": np.append(np.arange(0, 3000, 3), -(2**60)),
}


@pytest.mark.parametrize("rows", [1, 7, 8, int(TILE), int(TILE) + 1, 2 * ROW_BLOCK + 77])
@pytest.mark.parametrize("share", [1.0, 0.3])
def test_the_code_of_a_key_is_how_many_boundaries_are_at_or_below_it(rows: int, share: float) -> None:
    bounds = [np.unique(some) for some in BOUNDARIES.values()]
    first = freeze_view(np.cumsum([0, *map(len, bounds)]))
    codes = freeze(layout.Codes(first, np.concatenate(bounds), np.zeros(len(bounds), np.uint8)))
    events = [np.flatnonzero(RNG.random(rows) < share).astype(np.int32) for _ in bounds]
    keys = [_near(bound, len(there)) for bound, there in zip(bounds, events, strict=True)]
    col = np.cumsum([0, *map(len, events)])
    batch = freeze(layout.Batch(np.array([rows]), col, np.concatenate(events), np.concatenate(keys)))
    used, next = freeze_view(np.ones(len(bounds), np.uint8)), np.empty(len(bounds), np.int64)
    begin, attr, place = np.empty(rows + 1, np.int64), np.empty(col[-1], np.uint32), np.empty(col[-1], np.int32)
    transpose(batch, used, next, begin, attr, place)
    code, found = np.zeros(col[-1], np.uint32), np.empty(TILE, np.uint32)
    hints = freeze(hints_of(codes.first, codes.bound))
    code_rows(batch, codes, hints, used, next, begin.copy(), place, found, code)
    wanted = [np.searchsorted(bound, some, "right") + 1 for bound, some in zip(bounds, keys, strict=True)]
    assert code[place].tolist() == np.concatenate(wanted).tolist()


def _near(bound: np.ndarray, count: int) -> np.ndarray:
    """Keys at boundaries, beside them, and anywhere, the lowest and the highest among them."""
    anywhere = RNG.integers(KEY_MIN, KEY_MAX, count)
    if len(bound):
        at = RNG.choice(bound, count)
        beside = np.clip(at.astype(object) + RNG.integers(-1, 2, count), KEY_MIN, KEY_MAX).astype(np.int64)
        anywhere = np.where(RNG.random(count) < 0.8, beside, anywhere)
    anywhere[:2] = [KEY_MIN, KEY_MAX][:count]
    return anywhere
