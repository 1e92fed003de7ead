"""Tests of predicate tables: the meaning of the attribute and operator of a row."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import pyarrow as pa

from colmatch.errors import ExpressionError, SchemaError
from colmatch.given.schema import BOOL, INT, Attribute, Column, Family, Role, Schema, Shape, why_unusable
from colmatch.kernels.layout import KEY_MAX, KEY_MIN
from colmatch.lowering.floors import misfit
from colmatch.lowering.forms import PATTERNS, Kind, Op
from colmatch.lowering.weights import Name
from colmatch.subscriptions.computed import ComputedNames

OPERATORS: dict[str, Op] = {
    "=": Op.EQ,
    "==": Op.EQ,
    "<": Op.LT,
    "<=": Op.LE,
    ">": Op.GT,
    ">=": Op.GE,
    "between": Op.BETWEEN,
    "in": Op.IN,
    "is not null": Op.PRESENT,
    "startswith": Op.STARTSWITH,
    "endswith": Op.ENDSWITH,
    "contains": Op.CONTAINS,
    "like": Op.LIKE,
    "ilike": Op.ILIKE,
    "rlike": Op.RLIKE,
    "array_contains": Op.EQ,
    "arrays_overlap": Op.IN,
}
_NEGATED = {"<>": "=", "!=": "=", "is null": "is not null"}


class Operator(NamedTuple):
    """An operator of a table: a test, maybe negated, maybe on lists."""

    op: Op
    negated: bool
    on_list: bool

    @staticmethod
    def parse(text: str) -> Operator | None:
        """Returns the operator of a text, None where the text is no operator."""
        words = " ".join(text.lower().split())
        negated = words.startswith("not ")
        if negated:
            words = words[4:]
        if words in _NEGATED:
            words, negated = _NEGATED[words], not negated
        op = OPERATORS.get(words)
        return None if op is None else Operator(op, negated, words.startswith("array"))


_KINDS: list[tuple[Any, Kind]] = [
    (pa.types.is_integer, Kind.INT),
    (pa.types.is_floating, Kind.DOUBLE),
    (pa.types.is_decimal, Kind.DECIMAL),
    (pa.types.is_boolean, Kind.BOOL),
    (pa.types.is_string, Kind.STRING),
    (pa.types.is_large_string, Kind.STRING),
    (pa.types.is_string_view, Kind.STRING),
    (pa.types.is_date, Kind.DATE),
    (pa.types.is_timestamp, Kind.TIMESTAMP),
    (pa.types.is_binary, Kind.BINARY),
    (pa.types.is_large_binary, Kind.BINARY),
    (pa.types.is_binary_view, Kind.BINARY),
    (pa.types.is_fixed_size_binary, Kind.BINARY),
]


def operand_kind(type: pa.DataType) -> Kind | None:
    """Returns the kind of literals of a type, None where no column compares with them."""
    return next((kind for test, kind in _KINDS if test(type)), None)


# A search starts at each "[" and ends at the next quote. Blanks can belong to at most two parts of
# the pattern.
_ENTRY = re.compile(r"""\[\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|(-?\d{1,19}))\s*\]\Z""", re.DOTALL | re.ASCII)
_SIZE = re.compile(r"(?:size|cardinality)\s*\(", re.IGNORECASE)


def _resolve(schema: Schema, name: str) -> tuple[Column, Role, str | int | None]:
    """Finds the column, role and map key of an attribute by its name in a table.

    Raises SchemaError: there is no such attribute.
    """
    try:
        column = schema.column((name,))
    except SchemaError as error:
        bare = name.strip()
        sized = _SIZE.match(bare) if bare.endswith(")") else None
        entry = _ENTRY.search(bare) if bare.endswith("]") else None
        if sized:
            column = column_named(schema, bare[sized.end() : -1].strip())
            if column.shape not in (Shape.LIST, Shape.MAP):
                raise SchemaError(
                    f"size({column.name}): column {column.name!r} is {column.arrow}, a list or a map is needed"
                ) from None
            return column, Role.SIZE, None
        if entry:
            column = column_named(schema, bare[: entry.start()].strip())
            text = entry[1] if entry[1] is not None else entry[2]
            if column.shape is not Shape.MAP or column.key is None:
                raise SchemaError(f"column {column.name!r} is {column.arrow}, not a map: it has no {name}") from None
            if (text is None) is (column.key.family is Family.STRING):
                raise SchemaError(f"{name}: the keys of column {column.name!r} are {column.key}") from None
            key = int(entry[3]) if text is None else re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)
            if isinstance(key, int) and not KEY_MIN <= key <= KEY_MAX:
                raise SchemaError(
                    f"{name}: the keys of column {column.name!r} are {column.key}, none is as large"
                ) from None
            return column, Role.ENTRY, key
        if "." not in name:
            raise error
        column = column_named(schema, name)
    return column, Role.VALUE, None


def attribute_named(schema: Schema, name: str) -> Name:
    """Returns the path, role and map key of an attribute by its name in a table.

    Raises SchemaError: there is no such attribute, or expressions cannot use it.
    """
    column, role, key = _resolve(schema, name)
    if column.shape is Shape.STRUCT:
        raise SchemaError(f"column {column.name!r} is {column.arrow}: name a field of it")
    if column.shape is Shape.UNUSABLE:
        raise SchemaError(why_unusable(column.name, column.arrow))
    return Name(column.path, role, key)


def column_named(schema: Schema, name: str) -> Column:
    """Returns the column of a name, or the field that its dots lead to."""
    try:
        return schema.column((name,))
    except SchemaError:
        return schema.column(tuple(name.split(".")))


class Target(NamedTuple):
    """The test of an attribute and an operator, with other conditions."""

    attribute: Attribute
    op: Op
    outside: bool
    none: bool
    extras: tuple[tuple[Attribute, bool], ...] = ()  # (attribute, none): presence, or absence


def find_target(schema: Schema, computed: ComputedNames, name: str, operator: Operator, kind: Kind | None) -> Target:
    """Finds the test of an attribute and an operator, with operands of a kind.

    Raises ExpressionError, without a place: there is no such test.
    """
    try:
        column, role, key = _resolve(schema, name)
    except SchemaError as error:
        value = computed.find(name)
        if value is None:
            raise ExpressionError(str(error)) from None
        if operator.on_list:
            raise ExpressionError(
                f"attribute {name!r} is {value.type}, array_contains and arrays_overlap need a list"
            ) from None
        return _make_target(value, name, operator, kind)
    path, shape, op = column.path, column.shape, operator.op
    size = Attribute(path, Role.SIZE, INT)
    if op is Op.PRESENT:
        if role is Role.VALUE and shape in (Shape.LIST, Shape.MAP):
            return Target(size, op, False, operator.negated)
        if role is Role.VALUE and shape is not Shape.SCALAR:
            raise ExpressionError(f"column {column.name!r} is {column.arrow}: name a field of it")
    if role is Role.SIZE:
        attribute = size
    elif role is Role.ENTRY:
        assert column.type is not None
        attribute = Attribute(path, role, column.type, key)
    elif operator.on_list:
        if shape is not Shape.LIST or column.type is None:
            raise ExpressionError(
                f"column {column.name!r} is {column.arrow}, array_contains and arrays_overlap need a list"
            )
        attribute = Attribute(path, Role.ELEMENT, column.type)
    elif shape is not Shape.SCALAR or column.type is None:
        if shape is Shape.UNUSABLE:
            raise ExpressionError(why_unusable(column.name, column.arrow))
        hint = "use array_contains or arrays_overlap" if shape is Shape.LIST else "no predicate can use it"
        raise ExpressionError(f"column {column.name!r} is {column.arrow}: {hint}")
    else:
        attribute = Attribute(path, role, column.type)
    return _make_target(attribute, name, operator, kind)


def _make_target(attribute: Attribute, name: str, operator: Operator, kind: Kind | None) -> Target:
    """Returns the test of an attribute. ``name`` is its name in the table."""
    op = operator.op
    if op is Op.PRESENT:
        return Target(attribute, op, False, operator.negated)
    if op in PATTERNS and attribute.type.family is not Family.STRING:
        raise ExpressionError(f"attribute {name!r} is {attribute.type}, {op.name.lower()} needs a string")
    if kind is None:
        raise ExpressionError(f"the operands of {op.name.lower()} on {name!r} have a type that cannot be compared")
    needed = misfit(attribute.type, kind)
    if needed:
        raise ExpressionError(
            f"attribute {name!r} is {attribute.type}, the operands are {kind.name.lower()}: give {needed}"
        )
    if operator.on_list and operator.negated:
        size, has_null = Attribute(attribute.path, Role.SIZE, INT), Attribute(attribute.path, Role.HAS_NULL, BOOL)
        return Target(attribute, op, False, True, ((size, False), (has_null, True)))
    if op in PATTERNS or op is Op.IN:
        return Target(attribute, op, False, operator.negated, ((attribute, False),) if operator.negated else ())
    return Target(attribute, op, operator.negated, False)
