"""Literals in Arrow arrays -> their floors.

Python has no date before the year 1 or after 9999, so these literals never become Python dates.
"""

from __future__ import annotations

import datetime as dt
from contextlib import suppress

import numpy as np
import pyarrow as pa

from colmatch.given.schema import UNITS, Family, Type
from colmatch.given.session import Session
from colmatch.kernels.layout import KEY_MAX, KEY_MIN
from colmatch.kernels.lowering.operators import ABOVE, BELOW, EXACT
from colmatch.lowering.floors import Floors, LiteralErrors, Side, exact, literal_floors
from colmatch.lowering.forms import Kind
from colmatch.lowering.times import DAY, SECOND


def arrow_floors(
    type: Type, kind: Kind, values: pa.Array, negative: bool, session: Session, side: Side | None
) -> Floors:
    """Finds the floors of literals of one kind, none of them NULL, as ``literal_floors`` does."""
    if pa.types.is_large_string(values.type):
        return _text_floors(type, kind, values, negative, session, side)
    quick = _quick(type, values)
    if quick is not None:
        return quick
    moments = pa.types.is_date(values.type) or pa.types.is_timestamp(values.type)
    return literal_floors(type, kind, _moments(values) if moments else values.to_pylist(), False, session, side)


def _text_floors(
    type: Type, kind: Kind, values: pa.Array, negative: bool, session: Session, side: Side | None
) -> Floors:
    """Finds the floors of literals from their texts, once for each distinct text."""
    number = {Family.INT: pa.int64() if kind is Kind.INT else None, Family.FLOAT: pa.float64()}.get(type.family)
    if number is not None and kind in (Kind.INT, Kind.DECIMAL, Kind.DOUBLE):
        with suppress(pa.ArrowInvalid):  # 2**64, or a way to write a number that Arrow does not know
            return literal_floors(type, kind, values.cast(number).to_numpy(), negative, session, side)
    encoded = values.dictionary_encode()
    indices = encoded.indices.to_numpy()
    try:
        floor, place = literal_floors(type, kind, encoded.dictionary.to_pylist(), negative, session, side)
    except LiteralErrors as errors:
        bad = np.flatnonzero(np.isin(indices, list(errors.reasons)))
        raise LiteralErrors({i: errors.reasons[indices[i]] for i in bad.tolist()}) from None
    return floor[indices], place[indices]


def _quick(type: Type, values: pa.Array) -> Floors | None:
    """Returns the floors of dates and timestamps that need no session zone; None for all others."""
    source = values.type
    if type.family is Family.DATE and pa.types.is_date32(source):
        return exact(values.cast(pa.int32()).to_numpy().astype(np.int64))
    if type.family is Family.DATE and pa.types.is_date64(source):
        return exact(values.cast(pa.int64()).to_numpy() // 86_400_000)
    if type.family is Family.TIMESTAMP and pa.types.is_timestamp(source) and (source.tz is None) is (type.zone is None):
        units = values.cast(pa.int64()).to_numpy()
        have, want = UNITS[source.unit], UNITS[type.unit]
        if have > want:
            floor, rest = np.divmod(units, have // want)
            return floor, np.where(rest, ABOVE, EXACT).astype(np.int8)
        factor = want // have
        above, below = units > KEY_MAX // factor, units < -(-KEY_MIN // factor)
        floor = np.where(above, KEY_MAX, np.where(below, KEY_MIN, np.where(above | below, 0, units) * factor))
        return floor, np.where(above, ABOVE, np.where(below, BELOW, EXACT)).astype(np.int8)
    return None


def _moments(values: pa.Array) -> list[tuple[int, dt.tzinfo | None]]:
    """Returns dates or timestamps as nanoseconds since 1970 on the zone's clocks, and the zone."""
    source = values.type
    if pa.types.is_date32(source):
        nanos, units = DAY, values.cast(pa.int32())
    else:
        nanos, units = SECOND // UNITS["ms" if pa.types.is_date64(source) else source.unit], values.cast(pa.int64())
    zone = dt.UTC if pa.types.is_timestamp(source) and source.tz is not None else None
    return [(unit * nanos, zone) for unit in units.to_pylist()]
