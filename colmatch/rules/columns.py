"""Columns that rules name, with their types if a schema is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from colmatch.errors import SchemaError, show_value
from colmatch.expr.ast import Expr, Subject
from colmatch.expr.build import ColumnHandle
from colmatch.expr.build_computed import make_computed
from colmatch.expr.computed import ComputedValue
from colmatch.given.incoming import is_any_list, is_text
from colmatch.given.schema import Schema
from colmatch.rules.joined import Condition
from colmatch.rules.refusal import Unusable
from colmatch.rules.values import (
    ANY,
    ARRAY,
    BOOLEAN,
    MOMENT,
    NOTHING,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    Value,
    Variable,
    computed,
    of_column,
)


def kind_of_type(type: pa.DataType | None) -> str:
    """Returns the kind of a column's values."""
    if type is None:
        return ANY
    if pa.types.is_dictionary(type):
        return kind_of_type(type.value_type)
    if pa.types.is_null(type):
        return NULL
    if pa.types.is_boolean(type):
        return BOOLEAN
    if pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type):
        return NUMBER
    if pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_string_view(type):
        return STRING
    if is_any_list(type):
        return ARRAY
    if pa.types.is_struct(type) or pa.types.is_map(type):
        return OBJECT
    return MOMENT if pa.types.is_timestamp(type) else ANY


_ELEMENT = "element"  # as ``_make_test`` calls it


class Scope(NamedTuple):
    """The thing that names of a rule begin at: the event, or an element of a list.

    An element has a handle and a type, or a value if the list is one of the rule.
    """

    schema: Schema | None = None
    handle: ColumnHandle | None = None
    type: pa.DataType | None = None
    value: Value | None = None

    @property
    def is_event(self) -> bool:
        return self.handle is None and self.value is None

    def find(self, path: Sequence[str], place: str) -> Value:
        """Returns the value at a path of names, and of positions in lists.

        Raises Unusable: the schema has no such column.
        """
        path = list(path)
        if not all(name and is_text(name) for name in path) or (not path and self.is_event):
            raise Unusable(place, f"the name of a column is needed, not {show_value('.'.join(path))}")
        if self.value is not None:
            if path:
                raise Unusable(place, "a list of the rule has no fields: test its elements by an empty name")
            return self.value
        handle, type = self.handle, self.type
        if handle is None:
            whole = (".".join(path),)
            if self.schema is not None and len(path) > 1 and whole[0] in self.schema.arrow.names:
                path = list(whole)
            handle, type = ColumnHandle(Subject((path[0],))), self._type_of(path[0], place)
            path = path[1:]
        for name in path:
            handle, type = _step(handle, type, name, place)
            if type is not None and pa.types.is_null(type):
                return NOTHING
        return of_column(kind_of_type(type), handle, type)

    def _type_of(self, name: str, place: str) -> pa.DataType | None:
        if self.schema is None:
            return None
        try:
            return self.schema.column((name,)).arrow
        except SchemaError as error:
            raise Unusable(place, str(error)) from None


def _step(
    handle: ColumnHandle, type: pa.DataType | None, name: str, place: str
) -> tuple[ColumnHandle, pa.DataType | None]:
    """Goes to a field, an entry or an element."""
    subject = handle._subject
    if type is not None and pa.types.is_null(type):
        return handle, type
    if type is not None and pa.types.is_map(type):
        return (handle[name] if subject.computed is None else computed("entry", handle, name)), type.item_type
    if name.isdecimal() and (type is None or is_any_list(type)):
        return computed("get", handle, int(name)), None if type is None else type.value_type
    if type is not None and not pa.types.is_struct(type):
        raise Unusable(place, f"{show_value(name)} is no field: {handle} is {type!s:.200}")
    inner = None
    if type is not None:
        fields = [field for field in type if field.name == name] or [
            field for field in type if field.name.lower() == name.lower()
        ]
        if not fields:
            raise Unusable(
                place, f"{handle} has no field {show_value(name)}, but {', '.join(f.name for f in type)!s:.200}"
            )
        inner = fields[0].type
    if subject.computed is not None or subject.key is not None:
        return ColumnHandle(Subject((), computed=_field(handle, name))), inner
    return ColumnHandle(Subject((*subject.path, name))), inner


def _field(handle: ColumnHandle, name: str) -> ComputedValue:
    value = make_computed(handle)
    if value.function == "get":  # of a field, a place is written so
        value = value._replace(function="entry", arguments=(value.arguments[0], int(value.arguments[1].arguments[1])))
    if value.function == "field":
        return ComputedValue("field", (*value.arguments, name))
    return ComputedValue("field", (value, name))


def element_of(leaf: Variable) -> Scope:
    """Returns the scope of names in a condition on the elements of a list."""
    return Scope(handle=ColumnHandle(Subject((_ELEMENT,))), type=leaf.type and leaf.type.value_type)


def some(leaf: Variable, test: Condition) -> Condition:
    """Makes the condition that an element of a list passes a test."""
    return Condition(leaf.handle.exists(_make_test(test)), test.size)


def every(leaf: Variable, test: Condition) -> Condition:
    """Makes the condition that all elements of a list pass a test."""
    return Condition(leaf.handle.forall(_make_test(test)), test.size)


def _make_test(test: Condition) -> Callable[[ColumnHandle], Expr]:
    def passes(element: ColumnHandle) -> Expr:  # the name that conditions call an element by
        return test.expr

    return passes


def schema_of(given: Any) -> Schema | None:
    """Returns a schema from anything that ``Matcher.build`` takes for one; None for None."""
    return given if given is None or isinstance(given, Schema) else Schema(given)
