"""Fields of structs, lists and maps of single events, read without Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from colmatch.events.single.computed import Event, NeedsBatch
from colmatch.given.schema import Attribute, Family, Role, Schema, Shape, Type

EXACT = 1 << 53  # whole numbers up to here are doubles

Add = Callable[[int, type, Any], None]  # takes the attribute, type and value of an entry

_PYTHON: dict[Family, type] = {
    Family.INT: int, Family.BOOL: bool, Family.FLOAT: float, Family.STRING: str, Family.DATE: date,
}  # fmt: skip
_INTEGERS = {  # bits and sign of a type -> its lowest and highest value
    (bits, signed): (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    for bits in (8, 16, 32, 64)
    for signed in (True, False)
}


class ScalarType(NamedTuple):
    """A type with values that need no Arrow."""

    python: type
    low: int  # of whole numbers
    high: int

    def check(self, value: Any) -> Any:
        """Returns a value of the type, which is not None.

        Raises NeedsBatch: the value is of another type, or too large.
        """
        kind = type(value)
        if kind is not self.python:
            if self.python is float and kind is int and -EXACT <= value <= EXACT:
                return float(value)
            raise NeedsBatch
        if kind is int and not self.low <= value <= self.high:
            raise NeedsBatch
        return value


BIGINT = ScalarType(int, *_INTEGERS[64, True])


def scalar_type(arrow: pa.DataType, type: Type) -> ScalarType | None:
    """Returns a type of values without Arrow, None if there is none."""
    if pa.types.is_dictionary(arrow):
        arrow = arrow.value_type
    low, high, python = 0, 1, _PYTHON.get(type.family)
    if type.family is Family.INT:
        if not pa.types.is_integer(arrow):
            return None
        low, high = _INTEGERS[arrow.bit_width, pa.types.is_signed_integer(arrow)]
    elif type.family is Family.FLOAT and arrow != pa.float64():
        return None  # Python's floats are wider
    return None if python is None else ScalarType(python, low, high)


def computed_type(type: Type) -> ScalarType | None:
    """Returns the type of a computed value without Arrow, None if there is none."""
    python = _PYTHON.get(type.family)
    return None if python is None else BIGINT._replace(python=python)


def is_unique(schema: Schema, path: tuple[str, ...]) -> bool:
    """Returns whether each struct on a path has one field of the name that follows."""
    arrow = schema.arrow.field(path[0]).type
    for name in path[1:]:
        if len(arrow.get_all_field_indices(name)) != 1:
            return False
        arrow = arrow.field(name).type
    return True


def find_field(schema: Schema, path: tuple[str, ...]) -> Callable[[Event], Any] | None:
    """Returns the function that follows a path through structs, None for a column.

    The function raises NeedsBatch if a struct is no ``dict``, or has a field that is unknown.
    """
    name, *fields = path
    if not fields:
        return None
    steps, arrow = [], schema.arrow.field(name).type
    for field in fields:
        steps.append((field, frozenset(inner.name for inner in arrow)))
        arrow = arrow.field(field).type

    def find(event: Event) -> Any:
        value: Any = event.get(name)
        for field, names in steps:
            if value is None:
                return None
            if type(value) is not dict or not value.keys() <= names:
                raise NeedsBatch
            value = value.get(field)
        return value

    return find


class NestedColumn(Protocol):
    """A list or map that is read without Arrow."""

    @property
    def name(self) -> str:
        """Returns the name of the top-level column."""

    @property
    def find(self) -> Callable[[Event], Any] | None:
        """Returns the function that finds the value, None if it is a column."""

    def read(self, value: Any, add: Add) -> None:
        """Adds the entries of a value that is not None.

        Raises NeedsBatch: some part of it needs Arrow.
        """


class _List(NamedTuple):
    name: str
    find: Callable[[Event], Any] | None
    element: ScalarType
    attrs: Mapping[Role, int]  # -1 for a role that no expression uses

    def read(self, value: Any, add: Add) -> None:
        if type(value) is not list:
            raise NeedsBatch
        element, attr, has_null = self.element, self.attrs[Role.ELEMENT], False
        add(self.attrs[Role.SIZE], int, len(value))
        for item in value:
            if item is None:
                has_null = True
            else:
                add(attr, element.python, element.check(item))
        if has_null:
            add(self.attrs[Role.HAS_NULL], int, 1)


class _Map(NamedTuple):
    name: str
    find: Callable[[Event], Any] | None
    key: ScalarType
    item: ScalarType
    size: int  # attribute, or -1
    attrs: Mapping[Any, int]

    def read(self, value: Any, add: Add) -> None:
        if type(value) is not dict:
            raise NeedsBatch
        check_key, item, attrs = self.key.check, self.item, self.attrs
        add(self.size, int, len(value))
        for key, part in value.items():
            check_key(key)
            if type(key) is str and not key.isascii():
                key.encode()
            if part is not None:
                add(attrs.get(key, -1), item.python, item.check(part))


def nested_columns(schema: Schema, attributes: Iterable[tuple[int, Attribute]]) -> list[NestedColumn] | None:
    """Returns the lists and maps that attributes with their ids need; None if one needs Arrow."""
    by_path: dict[tuple[str, ...], list[tuple[int, Attribute]]] = {}
    for id, attribute in attributes:
        by_path.setdefault(attribute.path, []).append((id, attribute))
    columns = [_nested(schema, path, members) for path, members in by_path.items()]
    known = [column for column in columns if column is not None]
    return known if len(known) == len(columns) else None


def _nested(schema: Schema, path: tuple[str, ...], members: list[tuple[int, Attribute]]) -> NestedColumn | None:
    column = schema.column(path)
    if column.type is None or not is_unique(schema, path):
        return None
    find = find_field(schema, path)
    roles = dict.fromkeys((Role.ELEMENT, Role.SIZE, Role.HAS_NULL), -1) | {of.role: id for id, of in members}
    arrow, types = column.arrow, pa.types
    if column.shape is Shape.MAP and column.key is not None:
        key, item = scalar_type(arrow.key_type, column.key), scalar_type(arrow.item_type, column.type)
        attrs = {of.key: id for id, of in members if of.role is Role.ENTRY}
        return None if key is None or item is None else _Map(path[0], find, key, item, roles[Role.SIZE], attrs)
    if not (types.is_list(arrow) or types.is_large_list(arrow)):
        return None
    element = scalar_type(arrow.value_type, column.type)
    return None if element is None else _List(path[0], find, element, roles)
