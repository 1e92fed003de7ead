"""Casts of variants to other types, as ``variant_get`` of Spark makes them in either mode.

The distinct variants of a batch are divided by the family of their values, and each family is cast
as a column.
"""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from colmatch.events.computed.casts import try_cast
from colmatch.events.computed.failed import Unfit, refuse, true_rows
from colmatch.events.computed.variants import (
    ARRAY,
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    DOUBLE,
    FLOAT,
    LOCAL,
    NULL,
    OBJECT,
    TEXT,
    TIMESTAMP,
    WHOLE,
    read,
    text_of,
    to_json,
)

_ARROW = {
    BOOLEAN: pa.bool_(), WHOLE: pa.int64(), DOUBLE: pa.float64(), FLOAT: pa.float32(), TEXT: pa.string(),
    DATE: pa.date32(), TIMESTAMP: pa.timestamp("us", "UTC"), LOCAL: pa.timestamp("us"),
}  # fmt: skip
_MOMENTS = (DATE, TIMESTAMP, LOCAL)
_WIDE = Context(prec=80)


def cast_variants(values: Any, is_tried: str, zone: str, to: pa.DataType) -> Any:
    """Returns variants as values of a type.

    is_tried : "try" makes what cannot be cast NULL, "" makes it an error
    zone : of the session

    Raises RowsError: a variant is damaged, or cannot be cast.
    """
    encoded = values.dictionary_encode()
    families: dict[tuple[str, int], tuple[list[int], list[Any]]] = {}
    faults: dict[int, str] = {}
    nulls = set[int]()
    for i, packed in enumerate(encoded.dictionary.to_pylist()):
        try:
            family, value = read(packed)
            if family in (OBJECT, ARRAY) and pa.types.is_string(to):
                family, value = TEXT, to_json(packed, zone)
        except Unfit as error:
            faults[i] = str(error)
            continue
        if family == NULL:
            nulls.add(i)
            continue
        scale = max(-value.as_tuple().exponent, 0) if family == DECIMAL else 0
        places, some = families.setdefault((family, scale), ([], []))
        places.append(i)
        some.append(value)
    # Cast each family, and put the results into the order of the variants
    count = len(encoded.dictionary)
    order, parts = np.full(count, -1, np.int64), [pa.nulls(0, to)]
    for (family, scale), (places, some) in families.items():
        order[places] = sum(map(len, parts)) + np.arange(len(places))
        parts.append(_cast_family(family, scale, some, to, zone))
    found = pa.concat_arrays(parts).take(pa.array(order, mask=order < 0))
    # Find those that cannot be cast
    lacks = np.asarray(found.is_null().to_numpy(zero_copy_only=False))
    lacks[list(nulls)] = False
    if is_tried:
        lacks[:] = False
    lacks[list(faults)] = True
    row = encoded.indices
    wrong = true_rows(pa.array(lacks).take(row)) if count else np.zeros(len(row), np.bool_)

    def message(at: int) -> str:
        place = row[at].as_py()
        return faults.get(place) or f"{_show(encoded.dictionary[place].as_py(), zone)} in the variant is no {to}"

    return refuse(wrong, found.take(row), message)


def _show(packed: bytes, zone: str) -> str:
    family, value = read(packed)
    try:
        return f"{to_json(packed, zone) if family in (OBJECT, ARRAY) else value!r:.80}"
    except Unfit:
        return f"an {family}"


def _cast_family(family: str, scale: int, values: list[Any], to: pa.DataType, zone: str) -> Any:
    """Casts values of one family. A value that cannot be cast becomes NULL."""
    types = pa.types
    nothing = pa.nulls(len(values), to)
    if types.is_string(to) and family in (BOOLEAN, WHOLE, DOUBLE, FLOAT, DECIMAL):
        return pa.array([text_of(family, value) for value in values], to)
    if family in (OBJECT, ARRAY):
        return nothing
    if family == BYTES:
        return pa.array([value.decode(errors="replace") for value in values], to) if types.is_string(to) else nothing
    if types.is_timestamp(to) and to.tz is not None and family in (WHOLE, DECIMAL):
        return pa.array(list(map(_seconds, values)), pa.int64()).cast(to)
    is_moment = types.is_date(to) or types.is_timestamp(to)
    if is_moment and family not in (*_MOMENTS, TEXT):
        can = family in (DOUBLE, FLOAT) and types.is_timestamp(to) and to.tz is not None
        return try_cast(_array(family, scale, values), to) if can else nothing
    if family in _MOMENTS and not is_moment and not types.is_string(to):
        if family != TIMESTAMP or types.is_boolean(to):
            return nothing
        if types.is_decimal(to):
            seconds = [Decimal(value).scaleb(-6) for value in values]
            return try_cast(pa.array(seconds, pa.decimal128(38, 6)), to)
    if family in (DOUBLE, FLOAT) and types.is_decimal(to):
        return try_cast(pa.array([text_of(DOUBLE, value) for value in values]), to)
    if family == BOOLEAN and types.is_decimal(to):
        return try_cast(pa.array(values).cast(pa.int8()), to)
    array = _array(family, scale, values)
    return array if array.type == to else try_cast(array, to, zone)


def _array(family: str, scale: int, values: list[Any]) -> Any:
    if family == DECIMAL:
        return pa.array(values, pa.decimal128(38, scale))
    arrow = _ARROW[family]
    if family not in _MOMENTS:
        return pa.array(values, arrow)
    return pa.array(values, pa.int32() if family == DATE else pa.int64()).cast(arrow)


def _seconds(value: int | Decimal) -> int | None:
    """Returns so many seconds in microseconds, None for too many."""
    micros = int(Decimal(value).scaleb(6, _WIDE))
    return micros if -(1 << 63) <= micros < 1 << 63 else None
