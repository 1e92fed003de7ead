"""Single events: mappings from name to value, read without Arrow where that gives the same.

Values of Python's own types in scalar columns go to the kernel directly. Everything else, such as a
list, a decimal or a NumPy scalar, becomes a record batch of one row, which is read as any other.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import NoneType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from colmatch.arrays.frozen import frozen
from colmatch.errors import EventError, near, shown
from colmatch.events.exact import UnfitError, exact
from colmatch.events.needs import words
from colmatch.events.vocabulary import Vocabulary
from colmatch.incoming import is_list, nulls_of, refusing
from colmatch.kernels.arrow.words import Words
from colmatch.kernels.event import DOUBLE, KEY, TEXT, EventValues
from colmatch.schema import Attribute, Attributes, Family, Role, Schema

FIRST_BYTES = 1 << 10  # of the texts of an event
EXACT = 1 << 53  # whole numbers up to here are doubles
EPOCH = date(1970, 1, 1).toordinal()

Event = Mapping[str, Any]
_Test: TypeAlias = Callable[[Any], bool]
type_of = type  # for functions whose ``type`` is one of Arrow


class _Value(NamedTuple):
    """A column whose values need no Arrow."""

    name: str
    attr: int
    type: type
    low: int  # of whole numbers
    high: int


class EventReader:
    """Reads events for the attributes of one version, in one thread.

    Attributes
    ----------
    is_direct : whether each attribute is a scalar column of a type that needs no Arrow
    """

    def __init__(self, schema: Schema, attributes: Attributes, literals: Vocabulary) -> None:
        found = [_value(schema, i, attribute) for i, attribute in enumerate(attributes) if not attribute.is_free]
        self.is_direct = None not in found
        self._values = [value for value in found if value is not None]
        self.words: Words
        self.words, self._held = words(literals.of(len(attributes)))
        form = np.full(len(attributes), KEY, np.uint8)
        for value in self._values:
            form[value.attr] = {float: DOUBLE, str: TEXT}.get(value.type, KEY)
        count = len(self._values)
        self.values = EventValues(
            frozen(form),
            np.array([value.attr for value in self._values], np.uint32),
            np.empty(count, np.int64),
            np.zeros(count + 1, np.int64),
            np.empty(1, np.int64),
        )
        self._buffer: Any = self.values.value
        self._all = self.values.attr.tobytes()
        self._is_whole = True  # whether ``values.attr`` has all attributes
        self._make_room(FIRST_BYTES)

    def _make_room(self, size: int) -> None:
        self._data = bytearray(size)
        self.values.place[0] = np.frombuffer(self._data, np.uint8).ctypes.data

    def read(self, event: Event) -> int | None:
        """Writes the values of an event to ``values``, and says how many they are.

        None where some value needs Arrow.
        """
        get = event.get
        attrs: list[int] = []
        values: list[int | float] = []
        value: Any
        forms, texts = "", b""
        ends = [0]
        for name, attr, type_, low, high in self._values:
            value = get(name)
            if value is None:
                continue
            if type(value) is not type_:
                if type_ is not float or type(value) is not int or not -EXACT <= value <= EXACT:
                    return None
                value = float(value)
            if type_ is float:
                forms += "d"
            elif type_ is str:
                try:
                    texts += value.encode()
                except UnicodeEncodeError:
                    return None
                value = len(ends) - 1
                ends.append(len(texts))
                forms += "q"
            else:
                if type_ is date:
                    value = value.toordinal() - EPOCH
                elif not low <= value <= high:
                    return None
                forms += "q"
            attrs.append(attr)
            values.append(value)
        return self._write(attrs, values, forms, texts, ends)

    def _write(self, attrs: list[int], values: list[int | float], forms: str, texts: bytes, ends: list[int]) -> int:
        count, into = len(attrs), self.values
        struct.pack_into(forms, self._buffer, 0, *values)
        if count < len(self._values):
            into.attr[:count] = attrs
            self._is_whole = False
        elif not self._is_whole:
            into.attr[:] = np.frombuffer(self._all, np.uint32)
            self._is_whole = True
        if texts or len(ends) > 1:
            if len(texts) > len(self._data):
                self._make_room(2 * len(texts))
            self._data[: len(texts)] = texts
            into.end[: len(ends)] = ends
        return count


_INTEGERS = {  # the bits of a type -> its lowest and highest value
    (bits, signed): (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    for bits in (8, 16, 32, 64)
    for signed in (True, False)
}


def _value(schema: Schema, attr: int, attribute: Attribute) -> _Value | None:
    """Returns how values of an attribute are read without Arrow, None where they need it."""
    if attribute.role is not Role.VALUE or attribute.pattern is not None or len(attribute.path) > 1:
        return None
    (name,) = attribute.path
    arrow, low, high = schema.column(attribute.path).arrow, 0, 1
    if pa.types.is_dictionary(arrow):
        arrow = arrow.value_type
    family = attribute.type.family
    if family is Family.INT:
        if not pa.types.is_integer(arrow):
            return None
        low, high = _INTEGERS[arrow.bit_width, pa.types.is_signed_integer(arrow)]
    elif family is Family.FLOAT and arrow != pa.float64():
        return None  # Python's floats are wider
    python = {Family.INT: int, Family.BOOL: bool, Family.FLOAT: float, Family.STRING: str, Family.DATE: date}.get(
        family
    )
    return None if python is None else _Value(name, attr, python, low, high)


# What a caller hands over


_WAYS = ("asDict", "_asdict", "model_dump")  # of Rows of Spark, named tuples and pydantic models


def is_object(event: object) -> bool:
    """Says whether an event is an object whose fields are columns."""
    if isinstance(event, type):
        return False
    return is_dataclass(event) or any(callable(getattr(event, way, None)) for way in _WAYS)


def as_mapping(event: object) -> Event:
    """Returns an event as a mapping from name to value.

    That is a mapping as it is, and the fields of a dataclass, a named tuple, a Row of Spark or a
    pydantic model.

    Raises EventError: it is something else.
    """
    if isinstance(event, Mapping):
        return event
    if is_dataclass(event) and not isinstance(event, type):
        return {field.name: getattr(event, field.name) for field in fields(event)}
    for method in _WAYS:
        found = None if isinstance(event, type) else getattr(event, method, None)
        if callable(found) and isinstance(made := found(), Mapping):
            return made
    raise EventError(
        f"an event is a mapping from name to value, a dataclass, a Row, a named tuple or a pydantic model, "
        f"not {type(event).__name__}{_instead(event)}"
    )


def _instead(event: object) -> str:
    """Returns what to do with what is no event, for an error."""
    if isinstance(event, (str, bytes)):
        return ": read JSON with json.loads(event)"
    if isinstance(event, (list, tuple)):
        return ": give one event at a time, or match(pyarrow.array(events)) for mappings"
    if hasattr(event, "__arrow_c_stream__") or hasattr(event, "__arrow_c_array__"):
        return ": match(events) takes tables and their like"
    return ": vars(event) is a mapping of its attributes" if hasattr(event, "__dict__") else ""


def renamed(event: Event, names: Sequence[str], where: str, ignored: bool | None) -> Event:
    """Returns an event, or a struct in it, with names as the schema has them.

    Case does not count where it is not needed, as in batches.

    names : of the columns, or fields. where : what has them, for errors
    ignored : other names are left out; else they are errors, and None says that there is no choice

    Raises EventError: there is no such name, or it is there twice.
    """
    found: dict[str, Any] = {}
    for given, value in event.items():
        name = given
        if not isinstance(name, str):
            raise EventError(f"the event has a key {shown(name)}: keys are names of columns")
        if name not in names:
            same = [other for other in names if other.lower() == name.lower()]
            if len(same) != 1:
                if ignored:
                    continue
                said = f"the event has a key {shown(name)}, which {where} has not: {near(name[:200], names, where)}"
                raise EventError(said if ignored is None else f"{said} (unknown='ignore' leaves it out)")
            (name,) = same
        if name in found:
            raise EventError(f"the event has {name!r} twice, in different cases")
        found[name] = value
    return found


class RowMaker:
    """Makes record batches of one row, for the columns of a schema."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._known: dict[str, tuple[pa.DataType, _Test | None]] = {}
        self._last: tuple[list[str], pa.Schema] = [], pa.schema([])

    def row_of(self, event: Event, names: Sequence[str], ignored: bool | None) -> pa.RecordBatch:
        """Returns an event as a record batch of one row, with some columns of the schema.

        ignored : fields that a struct has not are left out; else they are errors, as for
            ``renamed``

        Raises EventError: a value is not of the type that the schema has for its column.
        """
        arrays, types = [], []
        for name in names:
            value = event.get(name)
            type, is_plain = self._known.get(name) or self._column(name, value)
            array = None if is_plain is None or not is_plain(value) else _made(value, type)
            arrays.append(_array(value, type, name, ignored) if array is None else array)
            types.append(type)
        if not arrays:  # a batch without columns has no rows
            return pa.RecordBatch.from_arrays([pa.nulls(1)], ["event"])
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema_of(names, types))

    def _schema_of(self, names: Sequence[str], types: list[pa.DataType]) -> pa.Schema:
        last, schema = self._last
        if names != last:
            schema = pa.schema(list(zip(names, types, strict=True)))
            if self._known.keys() >= set(names):
                self._last = list(names), schema
        return schema

    def _column(self, name: str, value: Any) -> tuple[pa.DataType, _Test | None]:
        """Returns the type of a column, and a test for values that Arrow takes as they are."""
        if name not in self._schema.arrow.names:
            return _weights_type(value), None
        type = _decoded(self._schema.arrow.field(name).type)
        return self._known.setdefault(name, (type, _plain(type)))


def _plain(type: pa.DataType) -> _Test | None:
    """Returns a test that says whether Arrow takes a value for a type and loses nothing of it.

    None where each value has to be looked at by ``_array``.
    """
    types = pa.types
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
        and all(tests[name](some) for name, some in value.items())
    )


def _made(value: Any, type: pa.DataType) -> pa.Array | None:
    """Returns an array of a plain value; None where Arrow refuses it, which ``_array`` tells of."""
    try:
        return pa.array([value], type)
    except (pa.ArrowException, ValueError, OverflowError):
        return None


def _array(value: Any, type: pa.DataType, name: str, ignored: bool | None) -> pa.Array:
    """Returns an array of one value. Structs are made field by field, since Arrow makes none that
    have fields of some types.
    """
    if isinstance(value, pa.Scalar):
        with refusing(EventError, f"column {name!r} is {type!s:.200}, and a {value.type!s:.200} of Arrow is not"):
            value = value.as_py()
    if _is_null(value):
        return nulls_of(1, type)
    said = f"column {name!r} is {type!s:.200}, and {shown(value)} is not"
    if (wanted := _wanted(value, type)) is not None:
        raise EventError(f"{said}: {wanted} is needed")
    with refusing(EventError, said):
        if pa.types.is_struct(type) and type.num_fields:
            given = _fields(value, type, name, ignored)
            parts = [_array(given.get(field.name), field.type, f"{name}.{field.name}", ignored) for field in type]
            return pa.StructArray.from_arrays(parts, fields=list(type))
        if _is_number(value) and (pa.types.is_integer(type) or pa.types.is_decimal(type) or type == pa.float64()):
            return _number(value, type, said)
        if isinstance(value, np.datetime64):
            return _moment(value, type, said)
        fitted = _fitted(value, type, name, ignored)
        array = pa.array([fitted], type)
        if not _is_same(fitted, array):
            raise EventError(f"{said}: it would lose a part")
        return array


def _is_null(value: Any) -> bool:
    """Says whether a value is None, or what pandas has for it, which is not imported for that."""
    return value is None or value.__class__.__name__ in ("NaTType", "NAType") or _is_nat(value)


def _is_nat(value: Any) -> bool:
    return isinstance(value, np.datetime64) and bool(np.isnat(value))


def _wanted(value: Any, type: pa.DataType) -> str | None:
    """Returns what a column of a type needs in the place of a value; None where it may fit.

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
        return None if fits else "a datetime.datetime, as of datetime.datetime.fromisoformat(text),"
    if types.is_date(type):
        return None if isinstance(value, (date, np.datetime64)) else "a datetime.date"
    if types.is_time(type):
        return None if isinstance(value, time) else "a datetime.time"
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal, np.integer, np.floating)) and not isinstance(
        value, (bool, np.timedelta64)
    )


def _number(value: Any, type: pa.DataType, said: str) -> pa.Array:
    """Returns an array of one number, as a batch with the number in a type of its own is read."""
    wide = isinstance(value, int) and not -(1 << 63) <= value < 1 << 63
    return _exact(pa.array([Decimal(value) if wide else value]), type, said)


def _moment(value: np.datetime64, type: pa.DataType, said: str) -> pa.Array:
    """Returns an array of one moment or day of NumPy; Arrow has no hours, say."""
    has_unit = np.datetime_data(value)[0] in ("D", "s", "ms", "us", "ns")
    return _exact(pa.array(np.array([value if has_unit else value.astype("M8[s]")])), type, said)


def _exact(values: pa.Array, type: pa.DataType, said: str) -> pa.Array:
    try:
        return exact(values, type)
    except UnfitError:
        raise EventError(f"{said}: it would lose a part") from None


def _fields(value: Any, type: pa.DataType, name: str, ignored: bool | None) -> Event:
    """Returns the fields of a struct, by their names in the schema."""
    if not isinstance(value, Mapping) and not is_object(value):
        raise EventError(f"column {name!r} is {type!s:.200}, and {shown(value)} is not: a mapping is needed")
    return renamed(as_mapping(value), [field.name for field in type], f"column {name!r}", ignored)


def _weights_type(value: Any) -> pa.DataType:
    """Returns the type of weights that stand in a column of their own."""
    return pa.map_(pa.string(), pa.float64()) if isinstance(value, Mapping) else pa.float64()


def _fitted(value: Any, type: pa.DataType, name: str, ignored: bool | None) -> Any:
    """Returns a value as Arrow wants it for a type. Arrow itself drops fields that it does not
    know, and takes a time without a zone for one in UTC.
    """
    if _is_null(value):
        return None
    if pa.types.is_struct(type):
        types = {field.name: field.type for field in type}
        given = _fields(value, type, name, ignored)
        return {key: _fitted(some, types[key], f"{name}.{key}", ignored) for key, some in given.items()}
    if pa.types.is_map(type):
        return _entries(value, type, name, ignored)
    if is_list(type) or pa.types.is_list_view(type) or pa.types.is_large_list_view(type):
        if isinstance(value, (str, bytes)):
            raise EventError(f"column {name!r} is {type!s:.200}, and {shown(value)} is not: a list is needed")
        if type.value_type.num_fields:
            return [_fitted(some, type.value_type, name, ignored) for some in value]
        if isinstance(value, (list, tuple, set, frozenset)):
            for some in {some.__class__: some for some in value}.values():
                _check(some, type.value_type, name)
        return list(value) if isinstance(value, (set, frozenset)) else value
    if pa.types.is_timestamp(type) and isinstance(value, date):
        zone = value.tzinfo if isinstance(value, datetime) else None
        if (zone is None) != (type.tz is None):
            has, wants = ("no time zone", "has one") if zone is None else ("a time zone", "has none")
            instead = "at.replace(tzinfo=datetime.timezone.utc)" if zone is None else "at.replace(tzinfo=None)"
            said = f"column {name!r} is {type}, which {wants}, and {shown(value)} has {has}"
            raise EventError(f"{said}: write {instead} or the like")
        return value if isinstance(value, datetime) else datetime.combine(value, time())
    _check(value, type, name)
    return value


def _check(value: Any, type: pa.DataType, name: str) -> None:
    """Checks a value within a list or a map."""
    if not isinstance(value, pa.Scalar) and not _is_null(value) and (wanted := _wanted(value, type)) is not None:
        raise EventError(f"column {name!r} has {type!s:.200} in it, and {shown(value)} is not: {wanted} is needed")


def _entries(value: Any, type: pa.DataType, name: str, ignored: bool | None) -> list[tuple[Any, Any]]:
    """Returns the entries of a map as pairs: Arrow crashes on others."""
    given = value.items() if isinstance(value, Mapping) else value if isinstance(value, Iterable) else [value]
    pairs = [(one["key"], one["value"]) if isinstance(one, Mapping) else one for one in given]
    if not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in pairs):
        said = f"column {name!r} is {type!s:.200}, and {shown(value)} is not"
        raise EventError(f"{said}: a mapping is needed, or pairs of a key and a value")
    return [
        (_fitted(key, type.key_type, name, ignored), _fitted(item, type.item_type, name, ignored))
        for key, item in pairs
    ]


def _decoded(type: pa.DataType) -> pa.DataType:
    """Returns the type without dictionaries and runs.

    Arrow makes no such array of any Python value, and crashes on some.
    """
    types = pa.types
    if types.is_dictionary(type) or types.is_run_end_encoded(type):
        return _decoded(type.value_type)
    if types.is_map(type):
        return pa.map_(_decoded(type.key_type), _decoded(type.item_type))
    if types.is_struct(type):
        return pa.struct([pa.field(field.name, _decoded(field.type)) for field in type])
    if types.is_fixed_size_list(type):
        return pa.list_(_decoded(type.value_type), type.list_size)
    for is_one, made in _LISTS:
        if is_one(type):
            return made(_decoded(type.value_type))
    return type


_LISTS: tuple[tuple[_Test, Any], ...] = (
    (pa.types.is_list, pa.list_), (pa.types.is_large_list, pa.large_list), (pa.types.is_list_view, pa.list_view),
    (pa.types.is_large_list_view, pa.large_list_view),
)  # fmt: skip


def _is_same(value: Any, made: pa.Array) -> bool:
    """Says whether an array of one value has all of it: Arrow cuts off fractions and times of
    day.
    """
    return isinstance(value, (int, str, bytes, NoneType)) or _equal(value, made[0].as_py())


def _equal(value: Any, made: Any) -> bool:
    if isinstance(value, Mapping) and isinstance(made, Mapping):
        return all(_equal(some, made.get(key)) for key, some in value.items())
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
