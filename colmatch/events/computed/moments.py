"""Texts and numbers as dates and timestamps, and the other way round, with the results of Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from colmatch.errors import show_value
from colmatch.events.computed.dates import instant, local
from colmatch.events.computed.failed import refuse, set_nulls, true_rows
from colmatch.events.computed.formats import write
from colmatch.events.computed.texts import ONLY_ANSI
from colmatch.kernels.layout import I64, Bools
from colmatch.text.formats import reader_of
from colmatch.text.moments import Moment, offset_of, read_date, read_moment

SECOND, DAY = 10**6, 86_400 * 10**6  # microseconds
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
UTC, LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")


def array_of_numbers(values: Any) -> tuple[I64, Bools]:
    """Returns the whole numbers of an array, which count days or microseconds, and its NULLs."""
    if pa.types.is_date(values.type):
        values = values.cast(pa.int32())
    null = np.asarray(values.is_null().to_numpy(zero_copy_only=False))
    return pc.fill_null(values.cast(pa.int64()), 0).to_numpy(zero_copy_only=False), null


def read_texts(values: pa.Array, to: pa.DataType, ansi: bool, zone: str, format: str | None = None) -> pa.Array:
    """Reads the texts of dates or timestamps, each distinct text once.

    A text that is none is NULL, or refused with ANSI.

    to : date32, or timestamps of microseconds with or without a zone
    zone : for timestamps whose texts have none
    format : of the texts; None for the forms that Spark casts
    """
    encoded = values.dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    if pa.types.is_date(to):
        found = pa.array([read_date(text) for text in texts], pa.int32()).cast(to)
        timeless = None
    else:
        read = read_moment if format is None else reader_of(format).read
        found, timeless = _timestamps([read(text) for text in texts], to, zone)
    found = found.take(encoded.indices)
    if timeless is not None and to.tz is not None and timeless.any():
        rows = true_rows(pa.array(timeless).take(encoded.indices))
        message = "{} is a time of day, which the date of the match would complete: give it a date"
        found = refuse(rows, found, lambda row: message.format(show_value(values[row].as_py())))
    if not ansi:
        return found
    wrong = pc.and_(pc.is_valid(values), pc.is_null(found))
    what = "date" if pa.types.is_date(to) else "timestamp"
    where = "" if format is None else f" in the format {show_value(format)}"
    return refuse(wrong, found, lambda row: f"{show_value(values[row].as_py())} is no {what}{where}")


def _timestamps(moments: list[Moment | None], to: pa.DataType, zone: str) -> tuple[pa.Array, Bools]:
    """Returns timestamps, and which are times of day alone, which are NULL."""
    timeless = np.array([moment is not None and moment.day is None for moment in moments], np.bool_)
    clocks: list[int] = []
    missing = np.zeros(len(moments), np.bool_)
    zones: dict[str, list[int]] = {}
    for i, moment in enumerate(moments):
        micros = 0 if moment is None or moment.day is None else moment.day * DAY + moment.nanos // 1000
        offset = 0
        if moment is not None and to.tz is not None:
            name = moment.zone or zone
            known = offset_of(name) if moment.zone is not None else None
            if known is None:
                zones.setdefault(name, []).append(i)
            offset = known or 0
        micros -= offset * SECOND
        missing[i] = moment is None or moment.day is None or not _LEAST <= micros <= _MOST
        clocks.append(0 if missing[i] else micros)
    numbers = np.array(clocks, np.int64)
    for name, places in zones.items():
        numbers[places] = instant(pa.array(numbers[places]).cast(LOCAL), name).cast(pa.int64()).to_numpy()
    return pa.array(numbers, mask=missing).cast(to), timeless


def show(values: pa.Array, zone: str) -> pa.Array:
    """Returns the texts of dates or timestamps, as Spark casts them."""
    if pa.types.is_timestamp(values.type) and values.type.tz is not None:
        values = local(values, zone)
    numbers, null = array_of_numbers(values)
    unit = "D" if pa.types.is_date(values.type) else "us"
    texts = pa.array(np.datetime_as_string(numbers.view(f"M8[{unit}]")).astype(object), pa.string(), mask=null)
    texts = pc.replace_substring_regex(texts, r"^(\d{5,})", r"+\1")
    texts = pc.replace_substring_regex(texts, r"^-(\d{3})-", r"-0\1-")
    if unit == "D":
        return texts
    return pc.replace_substring_regex(pc.replace_substring(texts, "T", " "), r"\.0{6}$|0+$", "")


def of_seconds(values: pa.Array, ansi: bool) -> pa.Array:
    """Casts numbers to timestamps: seconds since 1970, which end with 64 bits of microseconds."""
    null = np.asarray(values.is_null().to_numpy(zero_copy_only=False))
    numbers = pc.fill_null(values, 0).to_numpy(zero_copy_only=False)
    if pa.types.is_integer(values.type):
        clipped = np.clip(numbers.astype(np.int64), _LEAST // SECOND, _MOST // SECOND)
        micros = clipped * SECOND
        micros[numbers > _MOST // SECOND], micros[numbers < -(_MOST // SECOND)] = _MOST, _LEAST
        return pa.array(micros, mask=null).cast(UTC)
    doubles = numbers.astype(np.float64)
    undefined = ~np.isfinite(doubles) & ~null
    found = pa.array(_micros(np.where(undefined, 0.0, doubles)), mask=null | undefined).cast(UTC)
    if not ansi:
        return found
    wrong = (undefined | (np.abs(doubles) >= 2.0**63 / 1e6)) & ~null
    return refuse(wrong, set_nulls(found, wrong), "the number is no timestamp")


def _micros(seconds: Any) -> I64:
    """Returns the microseconds of seconds, cut off as Java does it."""
    with np.errstate(over="ignore"):
        scaled = seconds * 1e6
    low, high = scaled <= -(2.0**63), scaled >= 2.0**63
    micros = np.trunc(np.where(low | high, 0.0, scaled)).astype(np.int64)
    micros[low], micros[high] = _LEAST, _MOST
    return micros


def to_seconds(values: pa.Array) -> pa.Array:
    """Returns the whole seconds since 1970 of timestamps, rounded down."""
    numbers, null = array_of_numbers(values)
    return pa.array(numbers // SECOND, mask=null)


def to_double(values: pa.Array) -> pa.Array:
    """Returns the seconds since 1970 of timestamps, with their fractions."""
    numbers, null = array_of_numbers(values)
    return pa.array(numbers / 1e6, mask=null)


def _scaled(factor: int) -> Callable[[pa.Array], pa.Array]:
    """Returns a function for timestamps of so many microseconds each."""

    def run(values: pa.Array) -> pa.Array:
        numbers, null = array_of_numbers(values)
        large = (numbers > _MOST // factor) | (numbers < -(-_LEAST // factor))
        found = pa.array(np.where(large, 0, numbers) * factor, mask=null).cast(UTC)
        return refuse(large, set_nulls(found, large), "the timestamp is too large")

    return run


def _timestamp_seconds(values: pa.Array) -> pa.Array:
    if pa.types.is_decimal(values.type):
        return _of_decimal_seconds(values)
    return _scaled(SECOND)(values) if pa.types.is_integer(values.type) else of_seconds(values, False)


def _of_decimal_seconds(values: pa.Array) -> pa.Array:
    """Returns timestamps of exact seconds, without parts of microseconds."""
    encoded = values.dictionary_encode()
    micros = [None if number is None else number * SECOND for number in encoded.dictionary.to_pylist()]
    whole = [number is not None and number == int(number) and _LEAST <= number <= _MOST for number in micros]
    numbers = [int(number) if number is not None and fits else 0 for number, fits in zip(micros, whole, strict=True)]
    found = pa.array(numbers, pa.int64()).cast(UTC).take(encoded.indices)
    wrong = true_rows(pc.invert(pa.array(whole, pa.bool_()).take(encoded.indices)))
    return refuse(wrong, set_nulls(found, wrong), "the timestamp is too large, or has parts of microseconds")


def _to_timestamp(values: pa.Array, format: str, zone: str) -> pa.Array:
    return read_texts(values, UTC, False, zone, format)


def _to_timestamp_checked(values: pa.Array, format: str, zone: str) -> pa.Array:
    return read_texts(values, UTC, True, zone, format)


MOMENTS: dict[str, Callable[..., Any]] = {
    "timestamp_seconds": _timestamp_seconds,
    "timestamp_millis": _scaled(1000),
    "timestamp_micros": _scaled(1),
    "to_timestamp": _to_timestamp,
    "to_timestamp_checked": _to_timestamp_checked,
    "date_format": write,
}
FAILING = frozenset(
    {"make_date", "conv", *ONLY_ANSI, *(name.removesuffix("_checked") for name in MOMENTS if name.endswith("_checked"))}
)
