"""Casts of Arrow arrays that keep every value, except decimals that become floats.

Arrow's own safe casts cut, round or refuse wrongly. A timestamp loses its time of day in a date,
and a double is rounded to a decimal. A whole number above 2**53 is refused as a double even if it
is one. A decimal of 32 bits is refused as an integer. So floats, dates and narrow decimals are
checked here, and only the rest is left to the casts.

A decimal becomes the nearest float, as in Spark and Arrow. The price 1.10, for example, has no
equal among doubles, and databases return this decimal for ``SELECT 1.10``.

NaN in an array of floats is NULL if the other type has no NaN: NumPy and pandas write missing
numbers this way.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.given.incoming import decode_runs, plain
from colmatch.given.schema import UNITS

_DAY = 86_400  # seconds
_BYTES = 256 ** np.arange(8, dtype=np.uint64)  # the least numbers of 1 to 8 bytes
_MOST_DECIMAL = 1e76  # beyond all decimals of Arrow
_MOST_SCALE = 18  # of decimals that are made of all doubles at once


class UnfitError(ValueError):
    """An error for a value without an equal in the wanted type.

    Attributes
    ----------
    index : of the value
    value : its text for errors
    """

    def __init__(self, values: pa.Array, index: int) -> None:
        self.index = index
        try:
            self.value = str(values[index])
        except (ValueError, ArithmeticError, pa.ArrowException):  # a moment outside Python's range
            self.value = "a value beyond the years 1 to 9999"
        super().__init__(index)


def cast_exactly(values: pa.Array, to: pa.DataType) -> pa.Array:
    """Returns the same values in another type, without dictionaries and runs.

    Raises UnfitError: a value has no equal in that type, or a decimal is too large for a float.
    """
    types, values = pa.types, decode_array(values)
    if values.type == to:
        return values
    if types.is_null(values.type):
        return pa.nulls(len(values), to)
    if types.is_decimal(values.type) and values.type.bit_width < 128:
        values = values.cast(pa.decimal128(38, values.type.scale))
    if types.is_integer(to):
        return _integers(values, to)
    if types.is_floating(to):
        return _floats(values, to)
    if types.is_decimal(to):
        return _decimals(values, to)
    if types.is_date64(values.type):
        values = values.cast(pa.timestamp("ms"))
    if types.is_date(to) and types.is_timestamp(values.type):
        return _dates(values)
    return _cast(values, to)


def decode_array(values: pa.Array) -> pa.Array:
    """Returns an array without extensions, dictionaries and runs."""
    while True:
        if isinstance(values, pa.ExtensionArray):
            values = values.storage
        elif pa.types.is_run_end_encoded(values.type):
            values = decode_runs(values)
        elif pa.types.is_dictionary(values.type):
            values = plain(values.dictionary).take(values.indices)
        else:
            return values


def unscaled_words(decimals: pa.Decimal128Array) -> NDArray[np.uint64]:
    """Returns the unscaled number of each decimal as two words, the lower one first."""
    count = len(decimals)
    words = np.frombuffer(decimals.buffers()[1], np.uint64, 2 * count, 16 * decimals.offset)
    return words.reshape(count, 2)


def ordered_bytes(decimals: pa.Decimal128Array) -> pa.FixedSizeBinaryArray:
    """Returns for each decimal 17 bytes that have the order of the numbers.

    The first byte has the sign, and the size of the unscaled number in bytes. The number follows,
    from the highest byte to the lowest, then zeros. For a negative number, the bytes behind the
    first are inverted. So the first 8 bytes, which are compared before all else, distinguish most
    numbers.
    """
    count = len(decimals)
    if not count:
        return pa.array([], pa.binary(17))
    words = unscaled_words(decimals)
    # Take the absolute values, and count their bytes
    negative = words[:, 1] >> 63 != 0
    low = np.where(negative, ~words[:, 0] + 1, words[:, 0])
    high = np.where(negative, ~words[:, 1] + (words[:, 0] == 0), words[:, 1])
    size = np.where(high, 8 + np.searchsorted(_BYTES, high, "right"), np.searchsorted(_BYTES, low, "right"))
    # Shift the numbers to the left
    shift = (8 * (16 - size)).astype(np.uint64)  # to the left, bits
    part = shift & 63
    top = np.where(shift < 64, high, low) << part
    carried = np.where((shift < 64) & (part > 0), low >> (64 - part & 63), 0)
    # Write the bytes, inverted for negative numbers
    flip = np.where(negative, ~np.uint64(0), np.uint64(0))
    ordered = np.empty((count, 17), np.uint8)
    ordered[:, 0] = 128 + np.where(negative, -size, size)
    ordered[:, 1:9] = ((top | carried) ^ flip).astype(">u8").view(np.uint8).reshape(count, 8)
    ordered[:, 9:] = (np.where(shift < 64, low << part, 0) ^ flip).astype(">u8").view(np.uint8).reshape(count, 8)
    there = pa.py_buffer(np.packbits(~_nulls(decimals), bitorder="little")) if decimals.null_count else None
    return pa.Array.from_buffers(pa.binary(17), count, [there, pa.py_buffer(ordered)])


def _nulls(values: pa.Array) -> NDArray[np.bool_]:
    return np.asarray(values.is_null().to_numpy(zero_copy_only=False), np.bool_)


def _check(values: pa.Array, fits: NDArray[np.bool_]) -> None:
    if not fits.all():
        raise UnfitError(values, int(np.argmin(fits)))


def _doubles(values: pa.Array) -> NDArray[np.float64]:
    """Returns floats as doubles, with NaN for NULL."""
    doubles: NDArray[np.float64] = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return doubles


def _integers(values: pa.Array, to: pa.DataType) -> pa.Array:
    if not pa.types.is_floating(values.type):
        return _cast(values, to)
    numbers, signed = _doubles(values), pa.types.is_signed_integer(to)
    low, high = (-(2.0**63), 2.0**63) if signed else (0.0, 2.0**64)
    missing = np.isnan(numbers)
    _check(values, missing | ((numbers >= low) & (numbers < high) & (np.trunc(numbers) == numbers)))
    whole = np.where(missing, 0.0, numbers).astype(np.int64 if signed else np.uint64)
    wide = pa.array(whole, mask=missing)
    return wide if wide.type == to else _cast(wide, to)


def _floats(values: pa.Array, to: pa.DataType) -> pa.Array:
    types, have = pa.types, values.type
    if types.is_integer(have):
        numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
        doubles = numbers.astype(np.float64)
        low = doubles < 2.0 ** (64 if types.is_uint64(have) else 63)
        _check(values, low & (np.where(low, doubles, 0).astype(numbers.dtype) == numbers))
        floats = pa.array(doubles, mask=_nulls(values))
    elif types.is_decimal(have):
        # Arrow's cast of a decimal may miss the nearest number. The cast of its text does not, but
        # a decimal of negative scale has no text.
        plain = values if have.scale >= 0 else values.cast(pa.decimal256(76, 0))
        nearest = plain.cast(pa.string()).cast(to)
        _check(values, ~np.isinf(_doubles(nearest)))
        return nearest
    else:
        floats = values.cast(pa.float64())
    if to.bit_width == 64:
        return floats
    narrow, wide = floats.cast(to, safe=False), _doubles(floats)
    _check(values, np.isnan(wide) | (_doubles(narrow) == wide))
    return narrow


def _decimals(values: pa.Array, to: pa.DataType) -> pa.Array:
    if pa.types.is_integer(values.type):
        return _locate_failure(values, lambda some: some.cast(pa.decimal128(20, 0)).cast(to))
    if not pa.types.is_floating(values.type):
        return _cast(values, to)
    numbers, scale = _doubles(values), to.scale
    missing = np.isnan(numbers)
    numbers = np.where(missing, 0.0, numbers)
    with np.errstate(over="ignore"):
        shifted = np.ldexp(numbers, max(scale, 0))
    _check(values, (np.abs(numbers) < _MOST_DECIMAL) & (np.trunc(shifted) == shifted))
    if not 0 <= scale <= _MOST_SCALE or np.abs(shifted).max(initial=0.0) >= 2.0**63:
        exactly = pa.array([None if none else Decimal(float(one)) for one, none in zip(numbers, missing, strict=True)])
        return _cast(exactly, to)
    whole = pa.array(shifted.astype(np.int64), mask=missing).cast(pa.decimal128(19, 0))
    if scale:  # shifted / 2**scale, which has so many digits after the point
        half = pa.scalar(Decimal(2) ** -scale, pa.decimal128(scale, scale))
        whole = pc.multiply(whole, half)
    return _locate_failure(values, lambda some: some.cast(to), whole)


def _dates(values: pa.Array) -> pa.Array:
    missing, unit = _nulls(values), UNITS[values.type.unit]
    day, rest = np.divmod(values.cast(pa.int64()).fill_null(0).to_numpy(), _DAY * unit)
    _check(values, missing | ((rest == 0) & (np.abs(day) < 2**31)))
    return pa.array(day.astype(np.int32), mask=missing).cast(pa.date32())


def _cast(values: pa.Array, to: pa.DataType) -> pa.Array:
    return _locate_failure(values, lambda some: some.cast(to))


def _locate_failure(
    values: pa.Array, change: Callable[[pa.Array], pa.Array], changing: pa.Array | None = None
) -> pa.Array:
    """Returns the values after ``change``.

    changing : is changed instead of the values, if given; errors show the values

    Raises UnfitError: for the first value that ``change`` refuses
    """
    changing = values if changing is None else changing
    try:
        return change(changing)
    except pa.ArrowException:
        low, high = 0, len(values)
    while high - low > 1:  # the first refused value is among these
        middle = (low + high) // 2
        try:
            change(changing.slice(low, middle - low))
            low = middle
        except pa.ArrowException:
            high = middle
    raise UnfitError(values, low)
