"""Variants, Spark's values of any shape, in the binary form of the Parquet specification.

A variant here is one binary: the length of its metadata in four bytes, its metadata, its value. The
metadata has the names of all fields. Each offset is checked before it is followed, and values that
share bytes are refused, since a short binary could otherwise be a very long JSON text.
"""

from __future__ import annotations

import base64
import datetime as dt
import struct
from collections.abc import Callable
from decimal import Context, Decimal
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from colmatch.errors import EventError
from colmatch.events.computed.failed import Unfit, true_rows
from colmatch.events.computed.json_texts import ONLY_SIGNS, Fields, Written, write_double, write_float, write_json
from colmatch.given.session import time_zone
from colmatch.text.json_paths import variant_steps

NULL, BOOLEAN, WHOLE, DOUBLE, FLOAT, DECIMAL = "null", "boolean", "bigint", "double", "float", "decimal"
TEXT, BYTES, DATE, TIMESTAMP, LOCAL, OBJECT, ARRAY = (
    "string", "binary", "date", "timestamp", "timestamp_ntz", "object", "array",
)  # fmt: skip
_NAMED, _LISTED, _SHORT = 2, 3, 1  # basic types; 0 is a primitive
_PRIMITIVES = {  # number of the primitive -> its family, and the bytes of its content
    0: (NULL, 0), 1: (BOOLEAN, 0), 2: (BOOLEAN, 0), 3: (WHOLE, 1), 4: (WHOLE, 2), 5: (WHOLE, 4), 6: (WHOLE, 8), 7: (DOUBLE, 8),
    8: (DECIMAL, 5), 9: (DECIMAL, 9), 10: (DECIMAL, 17), 11: (DATE, 4), 12: (TIMESTAMP, 8), 13: (LOCAL, 8), 14: (FLOAT, 4),
    15: (BYTES, 4), 16: (TEXT, 4), 20: (TEXT, 16),
}  # fmt: skip  # 20 is a UUID, which Spark reads as a text
_UUID, _TRUE = 20, 1
_DIGITS = 38  # of a decimal
_DEEPEST = 1000  # levels, as many as a JSON text has at most
_EPOCH = dt.datetime(1970, 1, 1)
_EXACT = Context(prec=_DIGITS + 1)


class Variant(NamedTuple):
    """A variant, which begins at a place of its bytes."""

    metadata: bytes
    value: bytes


class _Container(NamedTuple):
    """An object or array: the places of its names, and of its values from the place ``data`` on."""

    ids: list[int]  # of names; none for an array
    offset: list[int]  # one more than values, the last is their end
    data: int


def pack(column: Any, name: str) -> Any:
    """Returns a column of variants, structs of two binaries, with one binary for each.

    name : of the column

    Raises EventError: the column has no variants.
    """
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    if pa.types.is_null(column.type):
        return column.cast(pa.binary())
    names = [field.name for field in column.type] if pa.types.is_struct(column.type) else []
    if not {"value", "metadata"} <= set(names) or "typed_value" in names:
        if "typed_value" in names:
            cure = "write the file with spark.sql.variant.writeShredding.enabled = false, or match a DataFrame of it"
            raise EventError(f"column {name!r} is a shredded variant, which is not read: {cure}")
        need = "a struct of the binaries value and metadata is needed"
        raise EventError(f"column {name!r} is {column.type!s:.200}, the schema says a variant: {need}")
    parts = [pc.struct_field(column, part) for part in ("metadata", "value")]
    if not all(map(_is_binary, [part.type for part in parts])):
        raise EventError(f"column {name!r} is {column.type!s:.200}: the parts of a variant are binaries")
    metadata, value = [part.cast(pa.binary()) for part in parts]
    half = true_rows(pc.and_(column.is_valid(), pc.or_(metadata.is_null(), value.is_null())))
    if half.any():
        raise EventError("the variant has a part that is NULL", column=f"column {name!r}", event=int(half.argmax()))
    length = pc.binary_length(metadata).view(pa.binary(4)).cast(pa.binary())
    return pc.binary_join_element_wise(length, metadata, value, b"")


def _is_binary(type: pa.DataType) -> bool:
    return bool(pa.types.is_binary(type) or pa.types.is_large_binary(type) or pa.types.is_binary_view(type))


def join(metadata: bytes, value: bytes) -> bytes:
    """Returns a variant as one binary."""
    return len(metadata).to_bytes(4, "little") + metadata + value


def split(packed: bytes) -> Variant:
    """Returns the parts of a variant."""
    end = 4 + int.from_bytes(packed[:4], "little")
    return Variant(packed[4:end], packed[end:])


# Finding


def variant_at(packed: bytes, path: str) -> bytes | None:
    """Returns what a path leads to, None if nothing is there.

    Raises
    ------
    Unfit : the variant is damaged
    ValueError : the path is none
    """
    steps = variant_steps(path)
    metadata, value = split(packed)
    at = 0
    for step in steps:
        container = _container(value, at)
        if container is None or (type(step) is str) is not (value[at] & 3 == _NAMED):
            return None
        if isinstance(step, int):
            place = step if step < len(container.offset) - 1 else -1
        else:
            place = _find(container, names_of(metadata), step.encode(errors="replace"))
        if place < 0:
            return None
        at = container.data + container.offset[place]
    return join(metadata, value[at : _end(value, at)])


@lru_cache(512)
def names_of(metadata: bytes) -> list[bytes]:
    """Returns the names of fields, which objects have by their numbers.

    Raises Unfit: the metadata is damaged.
    """
    header = _number(metadata, 0, 1, "metadata")
    if header & 15 != 1:
        raise Unfit(f"the metadata of the variant has the version {header & 15}, and 1 is read")
    width = (header >> 6) + 1
    count = _number(metadata, 1, width, "metadata")
    offset = _numbers(metadata, 1 + width, width, count + 1, "metadata")
    begin = 1 + width * (count + 2)
    for first, end in pairwise(offset):
        if not first <= end <= len(metadata) - begin:
            raise _damage("metadata", 1 + width)
    return [metadata[begin + offset[i] : begin + offset[i + 1]] for i in range(count)]


def _find(container: _Container, names: list[bytes], name: bytes) -> int:
    """Returns the place of a field in an object, -1 without it."""
    if name not in names:
        return -1
    return next((place for place, id in enumerate(container.ids) if _name(names, id) == name), -1)


def _name(names: list[bytes], id: int) -> bytes:
    if id >= len(names):
        raise Unfit(f"the variant has a field with the number {id}, and its metadata has {len(names)} names")
    return names[id]


def _container(value: bytes, at: int) -> _Container | None:
    """Returns the object or array at a place, None for another value."""
    header = _number(value, at, 1)
    basic, info = header & 3, header >> 2
    if basic not in (_NAMED, _LISTED):
        return None
    is_large = info >> (4 if basic == _NAMED else 2) & 1
    size = _number(value, at + 1, 4 if is_large else 1)
    begin, width, ids = at + (5 if is_large else 2), (info & 3) + 1, list[int]()
    if basic == _NAMED:
        id_width = (info >> 2 & 3) + 1
        ids = _numbers(value, begin, id_width, size)
        begin += id_width * size
    offset = _numbers(value, begin, width, size + 1)
    data = begin + width * (size + 1)
    if max(offset) > len(value) - data:
        raise _damage("value", begin)
    return _Container(ids, offset, data)


def _end(value: bytes, at: int) -> int:
    """Returns the place behind a value.

    Raises Unfit: the bytes end before.
    """
    header = _number(value, at, 1)
    container = _container(value, at)
    if container is not None:
        return container.data + container.offset[-1]
    if header & 3 == _SHORT:
        end = at + 1 + (header >> 2)
    else:
        kind = header >> 2
        if kind not in _PRIMITIVES:
            raise Unfit(f"the variant has a value of type {kind} at byte {at}, which is not read")
        family, size = _PRIMITIVES[kind]
        end = at + 1 + size
        if size == 4 and family in (TEXT, BYTES):
            end += _number(value, at + 1, 4)
    if end > len(value):
        raise _damage("value", at)
    return end


def _number(data: bytes, at: int, width: int, part: str = "value") -> int:
    if at + width > len(data):
        raise _damage(part, at)
    return int.from_bytes(data[at : at + width], "little")


def _numbers(data: bytes, at: int, width: int, count: int, part: str = "value") -> list[int]:
    """Returns unsigned numbers that stand side by side."""
    end = at + width * count
    if end > len(data):
        raise _damage(part, at)
    if width == 1:
        return list(data[at:end])
    return [int.from_bytes(data[i : i + width], "little") for i in range(at, end, width)]


def _damage(part: str, at: int) -> Unfit:
    return Unfit(f"the {part} of the variant is damaged at byte {at}")


# Reading


def is_variant_null(packed: bytes) -> bool:
    """Returns whether a variant is the null of JSON. Raises Unfit: it is damaged."""
    return read(packed)[0] == NULL


def read(packed: bytes) -> tuple[str, Any]:
    """Returns the family of a variant and its value, None for an object or array.

    Dates and timestamps are numbers, and floats of 32 bits are doubles.

    Raises Unfit: it is damaged.
    """
    return _scalar(split(packed).value, 0)


def _scalar(value: bytes, at: int) -> tuple[str, Any]:
    end, header = _end(value, at), value[at]
    basic, kind = header & 3, header >> 2
    if basic in (_NAMED, _LISTED):
        return (OBJECT if basic == _NAMED else ARRAY), None
    if basic == _SHORT:
        return TEXT, _text(value, at + 1, end)
    family, size = _PRIMITIVES[kind]
    if family == BOOLEAN:
        return family, kind == _TRUE
    if family == TEXT:
        return family, str(UUID(bytes=value[at + 1 : end])) if kind == _UUID else _text(value, at + 1 + size, end)
    if family == BYTES:
        return family, value[at + 1 + size : end]
    if family in (DOUBLE, FLOAT):
        return family, struct.unpack_from("<d" if family == DOUBLE else "<f", value, at + 1)[0]
    number = int.from_bytes(value[at + 1 + (family == DECIMAL) : end], "little", signed=True)
    if family != DECIMAL:
        return family, None if family == NULL else number
    scale = value[at + 1]
    if scale > _DIGITS or abs(number) >= 10**_DIGITS:
        raise _damage("value", at)
    return family, Decimal(number).scaleb(-scale, _EXACT).normalize(_EXACT)


def _text(value: bytes, begin: int, end: int) -> str:
    try:
        return value[begin:end].decode()
    except UnicodeDecodeError as error:
        raise Unfit(f"the variant has a text at byte {begin + error.start} that is not UTF-8") from None


# Writing as JSON


def to_json(packed: bytes, zone: str) -> str:
    """Returns an object or array as JSON, with the fields in the order of their names.

    zone : of timestamps in it

    Raises Unfit: it is damaged, or has a timestamp that cannot be written.
    """
    return write_json(_tree(split(packed), zone), ONLY_SIGNS)


def _tree(variant: Variant, zone: str) -> Any:
    """Returns lists and fields as ``write_json`` takes them."""
    value, names, found = variant.value, names_of(variant.metadata), [None]
    room = len(value)  # bytes that are not taken yet
    stack: list[tuple[int, list[Any], int, int]] = [(0, found, 0, 0)]
    while stack:
        at, into, place, depth = stack.pop()
        container = _container(value, at)
        room -= (container.data if container else _end(value, at)) - at
        if room < 0 or depth > _DEEPEST:
            raise Unfit(
                f"the variant has values that share bytes, at byte {at}" if room < 0 else "the variant nests too deep"
            )
        made: Any
        if container is None:
            made = _written(*_scalar(value, at), zone)
        else:
            made = list[Any]() if value[at] & 3 == _LISTED else Fields()
            made += [None] * (len(container.offset) - 1)
            stack += [(container.data + offset, made, i, depth + 1) for i, offset in enumerate(container.offset[:-1])]
            for i, id in enumerate(container.ids):
                made[i] = _name(names, id).decode(errors="replace"), None
        into[place] = (into[place][0], made) if type(into) is Fields else made
    return found[0]


def _written(family: str, value: Any, zone: str) -> Any:
    """Returns a scalar as it is written in JSON."""
    if value is None or family in (BOOLEAN, TEXT):
        return value
    if family == BYTES:
        return base64.b64encode(value).decode()
    if family in (DATE, TIMESTAMP, LOCAL):
        return _moment(family, value, zone)
    text = text_of(family, value)
    return Written(text if text[-1].isdigit() else f'"{text}"')


def _moment(family: str, value: int, zone: str) -> str:
    try:
        if family == DATE:
            return (_EPOCH + dt.timedelta(value)).date().isoformat()
        at = _EPOCH + dt.timedelta(microseconds=value)
        if family == TIMESTAMP:
            at = at.replace(tzinfo=dt.UTC).astimezone(time_zone(zone))
    except OverflowError:
        raise Unfit("the variant has a time beyond the year 9999, which is not written as JSON") from None
    text = at.replace(tzinfo=None, microsecond=0).isoformat(" ")
    text += f".{at.microsecond:06}".rstrip("0") if at.microsecond else ""
    return text if at.tzinfo is None else text + at.isoformat()[-6:]


def text_of(family: str, value: Any) -> str:
    """Returns a number or Boolean as Spark casts it to a text."""
    if family == BOOLEAN:
        return "true" if value else "false"
    if family == DECIMAL:
        return f"{value:f}"
    return _NUMBERS[family](value)


_NUMBERS: dict[str, Callable[[Any], str]] = {WHOLE: str, DOUBLE: write_double, FLOAT: write_float}
