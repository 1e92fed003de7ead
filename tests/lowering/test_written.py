"""Keys back to text."""

from __future__ import annotations

import numpy as np
import pytest

from colmatch.lowering.keys import float_keys
from colmatch.lowering.written import literal_text
from colmatch.schema import Family, Type


@pytest.mark.parametrize(
    ("type", "key", "text"),
    [
        (Type(Family.INT), -5, "-5"),
        (Type(Family.BOOL), 1, "TRUE"),
        (Type(Family.UINT64), 1 - 2**63, "1"),
        (Type(Family.DECIMAL, scale=2), -1250, "-12.50"),
        (Type(Family.DATE), 15736, "DATE '2013-01-31'"),
        (Type(Family.FLOAT), int(float_keys(np.array([0.1]))[0]), "0.1"),
        (Type(Family.TIMESTAMP, unit="s", zone="UTC"), 1359590400, "TIMESTAMP '2013-01-31 00:00:00Z'"),
    ],
)
def test_keys_back_to_text(type: Type, key: int, text: str) -> None:
    assert literal_text(type, key) == text
