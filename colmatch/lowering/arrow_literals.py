"""Literals that come as Arrow arrays -> keys.

Python has no date before the year 1 or after 9999, so none is made of these.
"""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa

from colmatch.lowering.forms import Kind
from colmatch.lowering.keys import ABOVE, BELOW, EXACT, KEY_MAX, KEY_MIN, UNITS, Keys, exact, literal_keys
from colmatch.schema import Family, Type
from colmatch.session import Session


def arrow_keys(type: Type, kind: Kind, values: pa.Array, session: Session) -> Keys:
    """Keys of literals of one kind, without NULL, as ``literal_keys`` makes them."""
    quick = _quick(type, values)
    if quick is not None:
        return quick
    moments = pa.types.is_date(values.type) or pa.types.is_timestamp(values.type)
    return literal_keys(type, kind, _moments(values) if moments else values.to_pylist(), False, session)


def _quick(type: Type, values: pa.Array) -> Keys | None:
    """Keys of dates and timestamps whose meaning needs no session zone; None for all else."""
    given = values.type
    if type.family is Family.DATE and pa.types.is_date32(given):
        return exact(values.cast(pa.int32()).to_numpy().astype(np.int64))
    if type.family is Family.DATE and pa.types.is_date64(given):
        return exact(values.cast(pa.int64()).to_numpy() // 86_400_000)
    if type.family is Family.TIMESTAMP and pa.types.is_timestamp(given) and (given.tz is None) is (type.zone is None):
        units = values.cast(pa.int64()).to_numpy()
        have, want = UNITS[given.unit], UNITS[type.unit]
        if have > want:
            floor, rest = np.divmod(units, have // want)
            return floor, np.where(rest, ABOVE, EXACT).astype(np.int8)
        factor = want // have
        above, below = units > KEY_MAX // factor, units < -(-KEY_MIN // factor)
        floor = np.where(above, KEY_MAX, np.where(below, KEY_MIN, np.where(above | below, 0, units) * factor))
        return floor, np.where(above, ABOVE, np.where(below, BELOW, EXACT)).astype(np.int8)
    return None


def _moments(values: pa.Array) -> list[tuple[int, dt.tzinfo | None]]:
    """Dates and timestamps as ``_local`` makes of literals, since Python has none before the
    year 1 or after 9999.
    """
    given = values.type
    if pa.types.is_date32(given):
        nanos, units = 86_400 * 10**9, values.cast(pa.int32())
    else:
        nanos, units = 10**9 // UNITS["ms" if pa.types.is_date64(given) else given.unit], values.cast(pa.int64())
    zone = dt.UTC if pa.types.is_timestamp(given) and given.tz is not None else None
    return [(unit * nanos, zone) for unit in units.to_pylist()]
