"""Single events as record batches of one row, with values that are checked before Arrow takes them.

Arrow itself cuts off fractions and times of day, drops unknown fields, and takes numbers for times.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import NoneType
from typing import Any, TypeAlias
from uuid import UUID as Uuid

import numpy as np
import pyarrow as pa

from colmatch.errors import EventError, show_value
from colmatch.events.computed.variant_bytes import variant_of
from colmatch.events.exact import UnfitError, cast_exactly
from colmatch.events.single.computed import Event
from colmatch.events.single.iso import EXAMPLE, read_iso
from colmatch.events.single.mapping import as_mapping, is_object, rename_fields
from colmatch.given.incoming import is_list, nulls_of, refusing
from colmatch.given.schema import Schema
from colmatch.given.variants import VARIANT_TYPE, is_variant

_Test: TypeAlias = Callable[[Any], bool]
type_of = type  # for functions with a ``type`` of Arrow


class RowMaker:
    """A maker of record batches of one row, for the columns of a schema."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._known: dict[str, tuple[pa.DataType, _Test | None]] = {}
        self._nulls: dict[str, pa.Array] = {}

    def row_of(self, event: Event, names: Sequence[str], ignored: bool | None) -> pa.RecordBatch:
        """Returns an event as a record batch of one row, with the columns ``names``.

        ignored : whether unknown fields of structs are left out or errors, as for ``rename_fields``

        Raises EventError: a value is not of its column's type.
        """
        arrays = []
        for name in names:
            value = event.get(name)
            if value is None and name in self._nulls:
                arrays.append(self._nulls[name])
                continue
            type, is_plain = self._known.get(name) or self._column(name, value)
            array = None if is_plain is None or not is_plain(value) else _make_array(value, type)
            arrays.append(fit(value, type, name, ignored) if array is None else array)
            if value is None:
                self._nulls[name] = arrays[-1]
        if not arrays:  # a batch without columns has no rows
            return pa.RecordBatch.from_arrays([pa.nulls(1)], ["event"])
        return pa.RecordBatch.from_arrays(arrays, names)

    def _column(self, name: str, value: Any) -> tuple[pa.DataType, _Test | None]:
        """Returns the type of a column, and a test for values that Arrow takes unchanged."""
        if name not in self._schema.arrow.names:
            return weights_type(value), None
        type = decode_type(self._schema.arrow.field(name).type)
        return self._known.setdefault(name, (type, _plain(type)))


def _plain(type: pa.DataType) -> _Test | None:
    """Returns a test that says whether Arrow takes a value for a type without loss.

    The result is None if ``array_of`` must look at each value.
    """
    types = pa.types
    if is_variant(type):
        return None
    if is_list(type) and (inner := _plain(type.value_type)) is not None:
        return lambda some: some is None or (type_of(some) is list and all(map(inner, some)))
    if types.is_struct(type) and type.num_fields:
        tests = {field.name: _plain(field.type) for field in type}
        if None in tests.values() or len(tests) < type.num_fields:  # of several fields with one name, Arrow takes one
            return None
        return lambda some: some is None or _is_plain_struct(some, tests)
    for of, python in _PLAIN:
        if of(type):
            return lambda some: some is None or type_of(some) is python
    return None


_PLAIN: tuple[tuple[_Test, type], ...] = (
    (pa.types.is_string, str), (pa.types.is_large_string, str), (pa.types.is_integer, int), (pa.types.is_boolean, bool),
    (pa.types.is_float64, float),
)  # fmt: skip


def _is_plain_struct(value: Any, tests: Mapping[str, Any]) -> bool:
    return (
        type_of(value) is dict
        and value.keys() <= tests.keys()
        and all(tests[name](part) for name, part in value.items())
    )


def _make_array(value: Any, type: pa.DataType) -> pa.Array | None:
    """Returns an array of a plain value; None if Arrow refuses it, then ``array_of`` says why."""
    try:
        return pa.array([value], type)
    except (pa.ArrowException, ValueError, OverflowError):
        return None


def fit(value: Any, type: pa.DataType, name: str, ignored: bool | None) -> pa.Array:
    """Returns an array of one value, with wider numbers than the type's if the value needs them.

    Batches may have these, too.
    """
    try:
        return array_of(value, type, name, ignored)
    except EventError as error:
        wide = widen_type(type)
        if wide != type:
            with suppress(EventError):
                return array_of(value, wide, name, ignored)
        raise error


def widen_type(type: pa.DataType) -> pa.DataType:
    """Returns a type with the widest numbers that compare like the numbers of a type."""
    types = pa.types
    if types.is_integer(type):
        return pa.uint64() if types.is_uint64(type) else pa.int64()
    if types.is_floating(type):
        return pa.float64()
    if types.is_decimal(type) and type.precision <= 38:
        return pa.decimal128(18 if type.precision <= 18 else 38, type.scale)
    if types.is_struct(type):
        return pa.struct([field.with_type(widen_type(field.type)) for field in type])
    if types.is_map(type):
        return pa.map_(type.key_type, widen_type(type.item_type))
    if types.is_large_list(type):
        return pa.large_list(widen_type(type.value_type))
    return pa.list_(widen_type(type.value_type)) if types.is_list(type) else type


def array_of(value: Any, type: pa.DataType, name: str, ignored: bool | None) -> pa.Array:
    """Returns an array of one value.

    Structs are made field by field, since Arrow makes none with fields of some types.
    """
    if isinstance(value, pa.Scalar):
        with refusing(EventError, f"column {name!r} is {type!s:.200}, and a {value.type!s:.200} of Arrow is not"):
            value = value.as_py()
    if _is_null(value):
        return nulls_of(1, type)
    if is_variant(type):
        return pa.array([variant_of(value, name)], type)
    message = f"column {name!r} is {type!s:.200}, and {show_value(value)} is not"
    if isinstance(value, str) and _is_moment(type):
        value = read_iso(value, message)
    if (expected := _find_expected(value, type)) is not None:
        raise EventError(f"{message}: {expected} is needed")
    with refusing(EventError, message):
        if pa.types.is_struct(type) and type.num_fields:
            members = _fields(value, type, name, ignored)
            parts = [array_of(members.get(field.name), field.type, f"{name}.{field.name}", ignored) for field in type]
            fields = [field.with_type(part.type) for field, part in zip(type, parts, strict=True)]
            return pa.StructArray.from_arrays(parts, fields=fields)
        types = pa.types
        is_narrowed = types.is_floating(type) and type != pa.float64() and isinstance(value, (float, np.floating))
        takes_numbers = types.is_integer(type) or types.is_decimal(type) or types.is_floating(type)
        if takes_numbers and _is_number(value) and not is_narrowed:  # Python has no narrow floats
            return _number(value, type, message)
        if isinstance(value, np.datetime64):
            return _moment(value, type, message)
        fitted = _fit_value(value, type, name, ignored)
        array = pa.array([fitted], type)
        if not _is_same(fitted, array):
            raise EventError(f"{message}: it would lose a part")
        return array


def _is_moment(type: pa.DataType) -> bool:
    return bool(pa.types.is_date(type) or pa.types.is_timestamp(type))


def _is_null(value: Any) -> bool:
    """Returns whether a value is None, or missing to NumPy or pandas. It imports no pandas."""
    return value is None or value.__class__.__name__ in ("NaTType", "NAType") or _is_nat(value)


def _is_nat(value: Any) -> bool:
    return isinstance(value, np.datetime64) and bool(np.isnat(value))


def _uuid_bytes(value: Any, name: str) -> bytes:
    """Returns the bytes of a UUID, which may be a text."""
    if isinstance(value, bytes) and len(value) == 16:
        return value
    try:
        return (value if isinstance(value, Uuid) else Uuid(value)).bytes
    except (ValueError, AttributeError, TypeError):
        message = f"column {name!r} is uuid, and {show_value(value)} is not: a uuid.UUID or its text is needed"
        raise EventError(message) from None


def _find_expected(value: Any, type: pa.DataType) -> str | None:
    """Returns the kind of value that a type needs, for an error; None if this value may fit.

    Arrow takes some more: numbers for times, Booleans for floats, bytes for texts.
    """
    types = pa.types
    if isinstance(value, np.ndarray):
        return None
    if types.is_boolean(type):
        return None if isinstance(value, (bool, np.bool_)) else "True or False"
    if types.is_integer(type) or types.is_floating(type) or types.is_decimal(type):
        return None if _is_number(value) else "a whole number" if types.is_integer(type) else "a number"
    if types.is_string(type) or types.is_large_string(type) or types.is_string_view(type):
        return None if isinstance(value, str) else "a str"
    if types.is_timestamp(type):
        fits = isinstance(value, date) or (isinstance(value, np.datetime64) and type.tz is None)
        return None if fits else f"a datetime.datetime, or a text such as {EXAMPLE},"
    if types.is_date(type):
        return None if isinstance(value, (date, np.datetime64)) else "a datetime.date, or a text such as 2024-01-31,"
    if types.is_time(type):
        return None if isinstance(value, time) else "a datetime.time"
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal, np.integer, np.floating)) and not isinstance(
        value, (bool, np.timedelta64)
    )


def _number(value: Any, type: pa.DataType, said: str) -> pa.Array:
    """Returns an array of one number, read like a batch with the number's own type."""
    if isinstance(value, Decimal) and pa.types.is_floating(type):
        nearest = float(value)
        if math.isinf(nearest) and value.is_finite():
            raise EventError(f"{said}: it is too large")
        return pa.array([nearest])
    wide = isinstance(value, int) and not -(1 << 63) <= value < 1 << 63
    if wide and abs(value) >= 10**38:
        raise EventError(f"{said}: it is too large")
    return _exact(pa.array([Decimal(value) if wide else value]), type, said)


def _moment(value: np.datetime64, type: pa.DataType, said: str) -> pa.Array:
    """Returns an array of one moment or day of NumPy. Arrow lacks some units, such as hours."""
    has_unit = np.datetime_data(value)[0] in ("D", "s", "ms", "us", "ns")
    return _exact(pa.array(np.array([value if has_unit else value.astype("M8[s]")])), type, said)


def _exact(values: pa.Array, type: pa.DataType, said: str) -> pa.Array:
    try:
        return cast_exactly(values, type)
    except UnfitError:
        raise EventError(f"{said}: it would lose a part") from None


def _fields(value: Any, type: pa.DataType, name: str, ignored: bool | None) -> Event:
    """Returns the fields of a struct, by their names in the schema."""
    if not isinstance(value, Mapping) and not is_object(value):
        raise EventError(f"column {name!r} is {type!s:.200}, and {show_value(value)} is not: a mapping is needed")
    return rename_fields(as_mapping(value), [field.name for field in type], f"column {name!r}", ignored)


def weights_type(value: Any) -> pa.DataType:
    """Returns the type of weights in a separate column."""
    return pa.map_(pa.string(), pa.float64()) if isinstance(value, Mapping) else pa.float64()


def _fit_value(value: Any, type: pa.DataType, name: str, ignored: bool | None) -> Any:
    """Returns a value in the form that Arrow needs for a type.

    Arrow itself drops unknown fields, and takes a time without a zone for one in UTC.
    """
    if _is_null(value):
        return None
    if isinstance(value, str) and _is_moment(type):
        value = read_iso(value, f"column {name!r} has {type!s:.200} in it, and {show_value(value)} is not")
    if is_variant(type):
        return variant_of(value, name)
    if pa.types.is_struct(type):
        types = {field.name: field.type for field in type}
        members = _fields(value, type, name, ignored)
        return {key: _fit_value(item, types[key], f"{name}.{key}", ignored) for key, item in members.items()}
    if pa.types.is_map(type):
        return _entries(value, type, name, ignored)
    if is_list(type) or pa.types.is_list_view(type) or pa.types.is_large_list_view(type):
        if isinstance(value, (str, bytes)):
            raise EventError(f"column {name!r} is {type!s:.200}, and {show_value(value)} is not: a list is needed")
        if type.value_type.num_fields or _is_moment(type.value_type):
            return [_fit_value(item, type.value_type, name, ignored) for item in value]
        if isinstance(value, (list, tuple, set, frozenset)):
            for item in {item.__class__: item for item in value}.values():
                _check(item, type.value_type, name)
        if pa.types.is_floating(type.value_type):
            return [float(item) if isinstance(item, Decimal) else item for item in value]
        return list(value) if isinstance(value, (set, frozenset)) else value
    if isinstance(type, pa.UuidType):
        return _uuid_bytes(value, name)
    if pa.types.is_timestamp(type) and isinstance(value, date):
        zone = value.tzinfo if isinstance(value, datetime) else None
        if (zone is None) != (type.tz is None):
            has, wants = ("no time zone", "has one") if zone is None else ("a time zone", "has none")
            instead = "at.replace(tzinfo=datetime.timezone.utc)" if zone is None else "at.replace(tzinfo=None)"
            message = f"column {name!r} is {type}, which {wants}, and {show_value(value)} has {has}"
            raise EventError(f"{message}: write {instead} or the like")
        return value if isinstance(value, datetime) else datetime.combine(value, time())
    _check(value, type, name)
    return float(value) if isinstance(value, Decimal) and pa.types.is_floating(type) else value


def _check(value: Any, type: pa.DataType, name: str) -> None:
    """Checks a value within a list or a map."""
    if (
        not isinstance(value, pa.Scalar)
        and not _is_null(value)
        and (expected := _find_expected(value, type)) is not None
    ):
        raise EventError(
            f"column {name!r} has {type!s:.200} in it, and {show_value(value)} is not: {expected} is needed"
        )


def _entries(value: Any, type: pa.DataType, name: str, ignored: bool | None) -> list[tuple[Any, Any]]:
    """Returns the entries of a map as pairs: Arrow crashes on anything else."""
    entries = value.items() if isinstance(value, Mapping) else value if isinstance(value, Iterable) else [value]
    pairs = [(one["key"], one["value"]) if isinstance(one, Mapping) else one for one in entries]
    if not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in pairs):
        message = f"column {name!r} is {type!s:.200}, and {show_value(value)} is not"
        raise EventError(f"{message}: a mapping is needed, or pairs of a key and a value")
    return [
        (_fit_value(key, type.key_type, name, ignored), _fit_value(item, type.item_type, name, ignored))
        for key, item in pairs
    ]


def decode_type(type: pa.DataType) -> pa.DataType:
    """Returns the type without dictionaries and runs.

    Arrow cannot make arrays with these of Python values, and crashes on some.
    """
    types = pa.types
    if is_variant(type):
        return VARIANT_TYPE
    if types.is_dictionary(type) or types.is_run_end_encoded(type):
        return decode_type(type.value_type)
    if types.is_map(type):
        return pa.map_(decode_type(type.key_type), decode_type(type.item_type))
    if types.is_struct(type):
        return pa.struct([pa.field(field.name, decode_type(field.type)) for field in type])
    if types.is_fixed_size_list(type):
        return pa.list_(decode_type(type.value_type), type.list_size)
    for is_one, make in _LISTS:
        if is_one(type):
            return make(decode_type(type.value_type))
    return type


_LISTS: tuple[tuple[_Test, Any], ...] = (
    (pa.types.is_list, pa.list_), (pa.types.is_large_list, pa.large_list), (pa.types.is_list_view, pa.list_view),
    (pa.types.is_large_list_view, pa.large_list_view),
)  # fmt: skip


def _is_same(value: Any, made: pa.Array) -> bool:
    """Returns whether an array has all of its value: Arrow cuts off fractions and times of day."""
    return isinstance(value, (int, str, bytes, NoneType)) or _equal(value, made[0].as_py())


def _equal(value: Any, made: Any) -> bool:
    if isinstance(value, Mapping) and isinstance(made, Mapping):
        return all(_equal(part, made.get(key)) for key, part in value.items())
    if isinstance(value, (list, tuple, np.ndarray)) and isinstance(made, (list, tuple)):
        return all(map(_equal, value, made))
    if isinstance(value, (float, np.floating, Decimal)) and isinstance(made, int):
        return bool(value == made)
    if isinstance(value, float) and isinstance(made, float):
        return math.isinf(value) or not math.isinf(made)
    if isinstance(value, (time, timedelta)):
        return bool(value == made)
    if isinstance(value, datetime):
        same = made if isinstance(made, datetime) else datetime.combine(made, time(tzinfo=value.tzinfo))
        return bool(value == same)
    return True
