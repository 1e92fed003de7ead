"""Every type has an order-preserving int64 *key*.

======================  ==========================================================================
family                  key
======================  ==========================================================================
BOOL                    0, 1
INT, DATE               the value; days since 1970-01-01
UINT64                  value - 2**63
FLOAT                   bits of the float64, negative ones flipped; one NaN, above all; one zero
DECIMAL                 the unscaled integer at the column's scale
TIMESTAMP               units since 1970-01-01, of UTC when the column has a zone
TIME                    units since midnight
STRING, BINARY,         label among the attribute's sorted distinct literals, see
WIDE_DECIMAL            ``kernels.layout.Literals`` and, of decimals, ``wide``
======================  ==========================================================================

``floors`` makes keys of literals, ``written`` makes literals of keys, for people.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from colmatch.kernels.layout import KEY_MAX

UINT64_OFFSET = 2**63  # a UINT64's value above its key
NEVER_ROUNDS = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)  # for decimals
_DOUBLE, _BITS = Struct("<d"), Struct("<q")


def float_keys(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Makes keys of float64 values of any shape.

    Keys ascend as Spark orders the values: NaN is last, and -0.0 is 0.0.
    """
    clean = np.where(np.isnan(values), np.nan, values + 0.0)  # adding 0.0 turns -0.0 into 0.0
    bits = np.ascontiguousarray(clean).view(np.int64)
    return np.where(bits >= 0, bits, bits ^ np.int64(KEY_MAX))


def float_key(value: float) -> int:
    """Makes the key of one float64 value."""
    (bits,) = _BITS.unpack(_DOUBLE.pack(value + 0.0 if value == value else np.nan))
    return int(bits if bits >= 0 else bits ^ KEY_MAX)


def key_float(key: int) -> float:
    """Returns the float64 value of a key."""
    bits = key if key >= 0 else key ^ KEY_MAX
    return float(np.int64(bits).view(np.float64))


LOWEST, HIGHEST, NAN = float_key(-np.inf), float_key(np.inf), float_key(np.nan)
