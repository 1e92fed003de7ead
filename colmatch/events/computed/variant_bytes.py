"""Variants of Python's values and of JSON texts, in the binary form of ``variants.py``."""

from __future__ import annotations

import datetime as dt
import json
import struct
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from colmatch.errors import EventError, show_value
from colmatch.events.computed.failed import Unfit
from colmatch.events.computed.json_texts import NOTHING, Fields, check_digits, read_with
from colmatch.events.computed.variants import Variant, join

_DEEPEST = 1000  # levels, as many as a JSON text has at most
_DIGITS = 38  # of a decimal
_WHOLE = {3: 1, 4: 2, 5: 4, 6: 8}  # numbers of the primitives, and their bytes
_DECIMALS = {8: (9, 4), 9: (18, 8), 10: (38, 16)}  # with their digits
_DOUBLE, _DATE, _TIMESTAMP, _LOCAL, _BYTES, _TEXT = 7, 11, 12, 13, 15, 16
_EPOCH = dt.datetime(1970, 1, 1)


class _Close(NamedTuple):
    """The end of an object or array, whose values are encoded."""

    size: int
    names: list[str] | None  # of an object


def parse_json(text: str) -> bytes:
    """Returns the variant of a JSON text, in one binary. Raises Unfit: the text is none."""
    value = read_with(_DECODER, text)
    if value is NOTHING:
        raise Unfit(f"{show_value(text)} is no JSON")
    try:
        return join(*_encode(value))
    except Unfit as error:
        raise Unfit(f"{show_value(text)} is no variant: {error}") from None


def variant_of(value: Any, name: str) -> dict[str, bytes]:
    """Returns the parts of a variant for a value of an event.

    The value is one as JSON has it, also with dates and decimals, or a variant of Arrow or Spark.

    name : of the column

    Raises EventError: the value is something else.
    """
    parts = [value.get("value"), value.get("metadata")] if isinstance(value, Mapping) and len(value) == 2 else [None]
    if type(value).__name__ == "VariantVal":  # of Spark
        parts = [value.value, value.metadata]
    binaries = [bytes(part) for part in parts if isinstance(part, (bytes, bytearray))]
    if len(binaries) == 2:
        return {"value": binaries[0], "metadata": binaries[1]}
    try:
        made = _encode(value)
    except Unfit as error:
        raise EventError(f"column {name!r} is a variant, and {show_value(value)} is none: {error}") from None
    return {"value": made.value, "metadata": made.metadata}


def _encode(value: Any) -> Variant:
    ids: dict[str, int] = {}  # names of fields
    done: list[bytes] = []
    stack: list[tuple[Any, int]] = [(value, 0)]
    while stack:
        part, depth = stack.pop()
        if type(part) is _Close:
            values = done[len(done) - part.size :]
            del done[len(done) - part.size :]
            names = part.names
            done.append(_array(values) if names is None else _object([ids[name] for name in names], values))
        elif isinstance(part, (Mapping, list, tuple)):
            if depth == _DEEPEST:
                raise Unfit(f"it nests deeper than {_DEEPEST} levels")
            names = _open(part, ids)
            parts = part if names is None else [one for _, one in _fields(part)]
            stack.append((_Close(len(parts), names), depth))
            stack += [(one, depth + 1) for one in reversed(parts)]
        else:
            done.append(_scalar(part))
    return Variant(_metadata(list(ids)), done[0])


def _open(part: Any, ids: dict[str, int]) -> list[str] | None:
    """Returns the names of an object in order, which get numbers; None for an array."""
    if not isinstance(part, (Mapping, Fields)):
        return None
    for name, _ in part.items() if isinstance(part, Mapping) else part:
        if not isinstance(name, str):
            raise Unfit(f"its key {show_value(name)} is no text")
        ids.setdefault(name, len(ids))
    names = [name for name, _ in _fields(part)]
    if len(set(names)) < len(names):
        raise Unfit("an object has two fields of one name")
    return names


def _fields(part: Any) -> Sequence[tuple[str, Any]]:
    """Returns the fields of an object in the order of Java's texts."""
    fields = part.items() if isinstance(part, Mapping) else part
    return sorted(fields, key=lambda field: field[0].encode("utf-16-be", "surrogatepass"))


def _scalar(value: Any) -> bytes:
    if value is None or isinstance(value, bool):
        return bytes([4 * (0 if value is None else 1 if value else 2)])
    if isinstance(value, str):
        octets = _utf8(value)
        if len(octets) < 64:
            return bytes([len(octets) << 2 | 1]) + octets
        return _primitive(_TEXT, len(octets), 4) + octets
    if isinstance(value, int):
        kind = next((kind for kind, width in _WHOLE.items() if -(1 << 8 * width - 1) <= value < 1 << 8 * width - 1), 0)
        return _primitive(kind, value, _WHOLE[kind]) if kind else _decimal(Decimal(value))
    if isinstance(value, float):
        return bytes([_DOUBLE << 2]) + struct.pack("<d", value)
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, (bytes, bytearray)):
        return _primitive(_BYTES, len(value), 4) + value
    if isinstance(value, dt.datetime):
        kind = _LOCAL if value.tzinfo is None else _TIMESTAMP
        at = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
        return _primitive(kind, (at - _EPOCH) // dt.timedelta(microseconds=1), 8)
    if isinstance(value, dt.date):
        return _primitive(_DATE, (value - _EPOCH.date()).days, 4)
    raise Unfit(f"{type(value).__name__} is not taken: a dict, list, str, number, Boolean, date or datetime is needed")


def _primitive(kind: int, number: int, width: int) -> bytes:
    return bytes([kind << 2]) + number.to_bytes(width, "little", signed=number < 0)


def _decimal(value: Decimal) -> bytes:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise Unfit(f"{value} is no decimal")
    number = int("".join(map(str, digits)) + "0" * max(exponent, 0)) if exponent <= _DIGITS else 10 ** (_DIGITS + 1)
    scale = max(-exponent, 0)
    if scale > _DIGITS or number >= 10**_DIGITS:
        raise Unfit(f"{show_value(value)} has more than {_DIGITS} digits")
    kind, width = next(
        (kind, width) for kind, (most, width) in _DECIMALS.items() if number < 10**most and scale <= most
    )
    return bytes([kind << 2, scale]) + (-number if sign else number).to_bytes(width, "little", signed=True)


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Unfit("a text has half a surrogate pair in it, which is no character") from None


def _width(number: int) -> int:
    return max(-(-number.bit_length() // 8), 1)


def _array(values: list[bytes]) -> bytes:
    return _container(3, 2, b"", values, 0)


def _object(ids: list[int], values: list[bytes]) -> bytes:
    width = _width(max(ids, default=0))
    return _container(2, 4, b"".join([id.to_bytes(width, "little") for id in ids]), values, (width - 1) << 2)


def _container(basic: int, large_bit: int, ids: bytes, values: list[bytes], info: int) -> bytes:
    count = len(values)
    is_large, width = count > 255, _width(sum(map(len, values)))
    header = basic | (info | is_large << large_bit | width - 1) << 2
    size = count.to_bytes(4 if is_large else 1, "little")
    return b"".join([bytes([header]), size, ids, _offsets(values, width), *values])


def _offsets(values: list[bytes], width: int) -> bytes:
    end, ends = 0, [0]
    for value in values:
        end += len(value)
        ends.append(end)
    return b"".join([one.to_bytes(width, "little") for one in ends])


def _metadata(names: list[str]) -> bytes:
    octets = list(map(_utf8, names))
    width = _width(max(sum(map(len, octets)), len(names)))
    return b"".join(
        [bytes([1 | (width - 1) << 6]), len(names).to_bytes(width, "little"), _offsets(octets, width), *octets]
    )


def _number(text: str) -> Decimal | float:
    """Returns a number with a point or an exponent as Spark has it in a variant."""
    check_digits(text)
    if "e" in text or "E" in text:
        return float(text)
    whole, _, fraction = text.lstrip("-").partition(".")
    is_short = len(fraction) <= _DIGITS and len((whole + fraction).lstrip("0")) <= _DIGITS
    return Decimal(text) if is_short else float(text)


def _whole(text: str) -> int | float | Decimal:
    check_digits(text)
    return int(text) if len(text) < 19 or -(1 << 63) <= int(text) < 1 << 63 else _number(text)


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=Fields, parse_float=_number, parse_int=_whole, parse_constant=_refuse)
