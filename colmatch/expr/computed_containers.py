"""Types of elements of lists, entries of maps, and sizes: a base class of ``Typing``."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from colmatch.errors import SchemaError
from colmatch.events.computed.derived import constant
from colmatch.events.computed.nodes import (
    FRACTIONS,
    INTEGERS,
    VARIANT,
    WHOLE,
    ValueNode,
    arrow_type,
    is_constant,
    is_number,
)
from colmatch.events.computed.whole import Layout, whole_texts
from colmatch.events.exact import UnfitError, cast_exactly
from colmatch.expr.ast import Refusal
from colmatch.expr.computed import NULL, ComputedValue
from colmatch.expr.spelling import quote_name
from colmatch.given.incoming import is_any_list
from colmatch.given.schema import Column, Family, Schema, Shape, Type, value_type, why_unusable
from colmatch.given.variants import is_variant

COMPARISONS = frozenset({"=", "<>", "<=>", "<", "<=", ">", ">="})


class ContainerRules:
    """The types of parts of lists and maps, a base class of ``Typing``."""

    _schema: Schema
    _ansi: bool
    node: Callable[[ComputedValue], ValueNode]
    _path: Callable[[tuple[str, ...]], tuple[str, ...]]
    normal: Callable[[ComputedValue], ComputedValue]
    _cast: Callable[[ValueNode, str], ValueNode]
    _wider: Callable[[str, str, str], str]

    def _find_column(self, path: tuple[str, ...]) -> Column:
        try:
            return self._schema.column(path)
        except SchemaError as error:
            raise Refusal(str(error)) from None

    def check_json(self, arguments: tuple[ComputedValue, ...]) -> None:
        """Raises Refusal: a path into JSON is a path into a struct, as in ``user:tier``."""
        column, path = arguments[0], arguments[-1]
        container = self._find_column(column.arguments) if column.function == "column" else None
        if container is None or container.shape is not Shape.STRUCT:
            return
        if {"value", "metadata"} <= {field.name for field in container.arrow}:  # maybe a variant: another error says so
            return
        steps = str(path.arguments[-1]).removeprefix("$.").split(".")
        try:
            instead = "write " + ".".join(map(quote_name, self._schema.column((*column.arguments, *steps)).path))
        except SchemaError:
            first = container.arrow.field(0).name if container.arrow.num_fields else "field"
            instead = f"name a field, as in {container.name}.{first}"
        raise Refusal(f"column {container.name!r} is a struct, and no text in JSON: {instead}")

    def _entry(self, name: str, arguments: tuple[Any, ...]) -> ValueNode:
        """Types an element of a list by its place, an entry of a map, or a field of a struct."""
        path, key = arguments[0].arguments, arguments[1]
        container = self._find_column(path)
        if container.shape is Shape.STRUCT and isinstance(key, str):
            return self.node(ComputedValue("column", self._path((*path, key))))
        if container.shape is Shape.LIST and isinstance(key, int):
            if key < 0:
                raise Refusal(
                    f"places in [...] begin with 0: write element_at({container.name}, {key}) for one from the end"
                )
            return self._element(container, key)
        if container.shape is not Shape.MAP or container.key is None or container.type is None:
            need = "a whole number" if container.shape is Shape.LIST else "a map or list before it"
            raise Refusal(f"column {container.name!r} is {container.arrow}: [...] needs {need}")
        _check_key(container, container.key, key, "in [...]")
        return ValueNode("entry", type_of(container.arrow.item_type, container.name), (key, *container.path))

    def _element(self, column: Column, place: int, fields: tuple[str, ...] = (), is_tried: bool = False) -> ValueNode:
        """Types an element of a list, or a field of an element that is a struct.

        is_tried : it is NULL where there is none, also with ANSI
        """
        arrow, name, exact = column.arrow.value_type, column.name, tuple[str, ...]()
        if fields:
            name = f"{column.name}[{place}]"
            element = Schema(pa.schema([(name, arrow)]), self._schema.case_sensitive)
            try:
                part = element.column((name, *fields))
            except SchemaError as error:
                raise Refusal(str(error)) from None
            arrow, name, exact = part.arrow, part.name, part.path[1:]
        if value_type(arrow) is None:
            raise Refusal(why_unusable(name, arrow))
        constants = place, "ansi" if self._ansi and not is_tried else "", "\0".join(exact)
        return ValueNode("element", type_of(arrow, name), (*constants, *column.path))

    def _field(self, name: str, arguments: tuple[Any, ...]) -> ValueNode:
        """Types a field of an element, as in ``items[0].sku``."""
        element, *fields = arguments
        column, place = element.arguments
        container = self._find_column(column.arguments)
        if not is_any_list(container.arrow) or not isinstance(place, int) or place < 0:
            raise Refusal(
                f"column {container.name!r} is {container.arrow}: a list and a place from 0 are needed before the field"
            )
        return self._element(container, place, tuple(fields))

    def _element_at(self, name: str, arguments: tuple[ComputedValue, ...]) -> ValueNode:
        """Types an element by its place from 1, or for "get" from 0, and an entry by its key."""
        column, key = arguments if len(arguments) == 2 else (NULL, NULL)
        if column.function != "column" or key.function != "literal" or key.arguments[0] not in ("int", "bigint"):
            raise Refusal(f"{name} takes a list or map and a literal, as in {name}(tags, 1)")
        container, place = self._find_column(column.arguments), int(key.arguments[1])
        if container.shape is not Shape.LIST and name != "get":
            return self._entry(name, (column, place))
        if container.shape is not Shape.LIST:
            raise Refusal(f"get needs a list column; {container.name!r} is {container.arrow}")
        if name == "get":
            if place < 0:
                return ValueNode("null", self._element(container, 0).type, ())
            return self._element(container, place, is_tried=True)
        if not place:
            raise Refusal(f"element_at counts from 1: the first element of {container.name!r} has the place 1")
        return self._element(container, place - (place > 0), is_tried=name == "try_element_at")

    def _contains_key(self, name: str, arguments: tuple[ComputedValue, ...]) -> ValueNode:
        column, key = arguments if len(arguments) == 2 else (NULL, NULL)
        types = ("string", "int", "bigint")
        if column.function != "column" or key.function != "literal" or key.arguments[0] not in types:
            raise Refusal("map_contains_key takes a map and a literal, as in map_contains_key(attrs, 'colour')")
        container = self._find_column(column.arguments)
        if container.shape is not Shape.MAP or container.key is None:
            raise Refusal(f"map_contains_key needs a map column; {container.name!r} is {container.arrow}")
        value = key.arguments[1] if key.arguments[0] == "string" else int(key.arguments[1])
        _check_key(container, container.key, value, "for the key")
        return ValueNode("map_contains_key", "boolean", (value, *container.path))

    def _extreme_of(self, name: str, arguments: tuple[ComputedValue, ...]) -> ValueNode:
        """Types the largest or smallest element, or that of a field of the elements."""
        if len(arguments) != 1 or arguments[0].function != "column":
            raise Refusal(f"{name} takes the name of one list, as in {name}(scores)")
        type, fields, path = self._elements_of(name, arguments[0])
        if type in ("boolean", "binary"):
            raise Refusal(f"{name} of {type} is not computed")
        return ValueNode(name, type, (fields, *path))

    def _position_of(self, name: str, arguments: tuple[ComputedValue, ...]) -> ValueNode:
        """Types the place of a literal among elements, or among a field of the elements."""
        column, wanted = arguments if len(arguments) == 2 else (NULL, NULL)
        if column.function != "column" or wanted.function != "literal":
            raise Refusal("array_position takes a list and a literal, as in array_position(tags, 'news')")
        type, fields, path = self._elements_of("array_position", column)
        literal = self.node(wanted)
        is_whole = {type, literal.type} <= {*INTEGERS}
        common = "bigint" if is_whole else "double" if type in FRACTIONS else type
        fits = is_whole or (common == "double" and is_number(literal.type))
        if common != literal.type and not fits:
            raise Refusal(f"the elements of {'.'.join(path)!r} are {type}, and the literal is {literal.type}: cast it")
        return ValueNode("array_position", "bigint", (literal.arguments[0], common, fields, *path))

    def _elements_of(self, name: str, column: ComputedValue) -> tuple[str, str, tuple[str, ...]]:
        """Returns the type of the elements of a list, the fields in them, and the list's path.

        The elements may be a field of structs.
        """
        path = column.arguments
        container = self._find_list(path)
        if container is None:
            container = self._find_column(path)
            raise Refusal(f"{name} needs a list column; {container.name!r} is {container.arrow}")
        element = self._element(container, 0, path[len(container.path) :])
        return element.type, element.arguments[2], container.path

    def _find_list(self, path: tuple[str, ...]) -> Column | None:
        """Returns the list at a path, or the list with elements that have fields there."""
        for count in range(1, len(path) + 1):
            try:
                column = self._schema.column(path[:count])
            except SchemaError:
                continue
            if is_any_list(column.arrow):
                return column
        return None

    def compare_whole(self, value: ComputedValue) -> ComputedValue:
        """Compares lists and structs by their texts; other comparisons stay as they are.

        Raises Refusal: a list or struct is compared with what is none of its type, or by its order.
        """
        name, sides = value
        columns = [self._whole_column(side) for side in sides]
        column = next((one for one in columns if one is not None), None)
        if column is None:
            return value
        layouts = [_layout(one.arrow, one.name) for one in columns if one is not None]
        is_other = [one is None and side.function != "array" for one, side in zip(columns, sides, strict=True)]
        if any(is_other) or any(layout != layouts[0] for layout in layouts):
            raise Refusal(f"{_describe(column)} is compared with one of its type, as in tags = array('a', 'b')")
        if name not in ("=", "<>", "<=>"):
            raise Refusal(f"{_describe(column)} is not compared by its order: write =, <> or IN, or compare an element")
        made = [
            ComputedValue("literal", (WHOLE, self._literal_text(side, layouts[0])))
            if one is None
            else ComputedValue(WHOLE, (ComputedValue("column", one.path),))
            for one, side in zip(columns, sides, strict=True)
        ]
        return ComputedValue(name, tuple(made))

    def _whole_column(self, value: ComputedValue) -> Column | None:
        """Returns the column if a value is a list or struct as a whole."""
        try:
            column = self._schema.column(value.arguments) if value.function == "column" else None
        except SchemaError:
            return None
        is_struct = column is not None and column.shape is Shape.STRUCT
        is_whole = column is not None and (is_struct or is_any_list(column.arrow))
        return column if is_whole else None

    def _whole(self, name: str, arguments: tuple[ComputedValue, ...]) -> ValueNode:
        column = self._find_column(arguments[0].arguments)
        return ValueNode(WHOLE, WHOLE, (json.dumps(_layout(column.arrow, column.name)), *column.path))

    def _literal_text(self, value: ComputedValue, layout: Layout) -> str:
        """Returns the text of a list of literals, as a column with equal values would have it."""
        if value.function == "array" and isinstance(layout, list):
            return f"array({', '.join([self._literal_text(part, layout[0]) for part in value.arguments])})"
        node = self.node(self.normal(value))
        if node.type == "void":
            return "NULL"
        if not is_constant(node) or not isinstance(layout, str):
            raise Refusal("the elements of array(...) are literals of the list's type, as in tags = array('a', 'b')")
        wide = self._wider("array", node.type, layout)
        if wide == "double" and layout not in FRACTIONS:
            raise Refusal(
                f"array(...) has a {node.type} beside elements of {layout}: write a whole number or a decimal"
            )
        literal = pa.array([constant(self._cast(node, layout) if wide == layout else node)])

        def plain(values: Any, type: str) -> Any:
            return cast_exactly(values, arrow_type(type))

        try:
            return str(whole_texts(literal, layout, "", plain)[0])
        except UnfitError:
            return f"{literal[0]}::{node.type}"  # what no element is

    def _size(self, name: str, arguments: tuple[ComputedValue, ...]) -> ValueNode:
        column = arguments[0]
        if column.function != "column":
            raise Refusal("size(...) takes the name of one list or map column")
        container = self._find_column(column.arguments)
        if container.shape is not Shape.MAP and not is_any_list(container.arrow):
            raise Refusal(f"size needs a list or map column; {container.name!r} is {container.arrow}")
        return ValueNode("size", "int", container.path)


def _check_key(column: Column, key: Type, value: str | int, where: str) -> None:
    """Raises Refusal: a key has another type than the keys of its map."""
    if (key.family is Family.STRING) is not isinstance(value, str):
        key_kind = "a string" if key.family is Family.STRING else "a whole number"
        raise Refusal(f"the keys of {column.name!r} are {key}: write {key_kind} {where}")


def _describe(column: Column) -> str:
    kind = "struct" if pa.types.is_struct(column.arrow) else "list"
    return f"column {column.name!r} is a {kind}, which"


def _layout(arrow: pa.DataType, name: str) -> Layout:
    """Returns the layout of values of a type.

    Raises Refusal: they have parts that cannot be compared.
    """
    if is_any_list(arrow):
        return [_layout(arrow.value_type, name)]
    if pa.types.is_struct(arrow):
        return {field.name: _layout(field.type, f"{name}.{field.name}") for field in arrow}
    if value_type(arrow) is None:
        raise Refusal(why_unusable(name, arrow))
    type = type_of(arrow, name)
    if type == "binary":
        raise Refusal(f"{name!r} has parts of {arrow}, which are not compared as a part of a list or struct")
    return type


def type_of(arrow: pa.DataType, name: str) -> str:
    """Returns Spark's type for values of a column.

    Raises Refusal: Spark cannot compute with them.
    """
    types = pa.types
    if is_variant(arrow):
        return VARIANT
    while types.is_dictionary(arrow) or types.is_run_end_encoded(arrow):
        arrow = arrow.value_type
    kind = value_type(arrow)
    assert kind is not None
    if types.is_integer(arrow) and not types.is_uint64(arrow):
        width = arrow.bit_width * (2 if types.is_unsigned_integer(arrow) else 1)
        return {8: "tinyint", 16: "smallint", 32: "int", 64: "bigint"}[width]
    if types.is_uint64(arrow):
        return "decimal(20,0)"  # Spark has no such type, and reads it from Parquet as this
    if types.is_floating(arrow):
        return "double" if arrow.bit_width == 64 else "float"
    if types.is_decimal(arrow) and 0 <= arrow.scale <= min(arrow.precision, 38):
        return f"decimal({min(arrow.precision, 38)},{arrow.scale})"
    if types.is_timestamp(arrow) and arrow.unit != "ns":
        return "timestamp_ntz" if arrow.tz is None else "timestamp"
    plain = {"bool": "boolean", "string": "string", "binary": "binary", "date": "date"}.get(kind.family.name.lower())
    if plain is None:
        raise Refusal(f"column {name!r} is {arrow}, and Spark has no such type to compute with: cast the column")
    return plain
