"""Keys of floats: their order, and the way back."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from colmatch.lowering.keys import float_keys, key_float

floats = st.floats(allow_nan=True, width=64) | st.sampled_from(
    [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, -5e-324]
)


@given(floats, floats)
def test_float_keys_order_like_spark(a: float, b: float) -> None:
    left, right = float_keys(np.array([a, b])).tolist()
    key = [(math.isnan(x), 0.0 if math.isnan(x) else x) for x in (a, b)]
    assert (left < right) == (key[0] < key[1])
    assert (left == right) == (key[0] == key[1])
    assert key_float(left) == a or math.isnan(a)
