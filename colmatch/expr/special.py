"""Special functions in expressions: checks of their arguments, their attributes and their modes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from colmatch.errors import SchemaError
from colmatch.expr.ast import Predicate, Refusal, Subject, Verb
from colmatch.expr.computed import ComputedValue
from colmatch.expr.functions import TABLE
from colmatch.expr.spelling import quote_name
from colmatch.expr.tree import Modes
from colmatch.given.incoming import is_list
from colmatch.given.schema import Attribute, Family, Role, Schema, Type
from colmatch.given.special import (
    CLOCK,
    NUMBER,
    PLACE,
    SPECIAL,
    TEXT,
    UINT32,
    UNKNOWN,
    WHOLE,
    Call,
    pack,
)
from colmatch.lowering.forms import KeyTest, Kind, Leaf, Op, Operand

COLUMNS = 2  # of each function, its first arguments
_RANGES = {WHOLE: (-(1 << 63), 1 << 63), UINT32: (0, 1 << 32)}
_KINDS = {
    NUMBER: (Kind.INT, Kind.DECIMAL, Kind.DOUBLE),
    TEXT: (Kind.STRING,),
    WHOLE: (Kind.INT,),
    UINT32: (Kind.INT,),
}
_BINARY = Type(Family.BINARY, name="arguments")


class WrongArgument(Exception):
    """The error for an argument that a function does not take, with its place among all."""

    def __init__(self, place: int, message: str) -> None:
        super().__init__(message)
        self.place = place


def literal_of(function: str, arguments: Sequence[tuple[Kind | None, Any]]) -> bytes:
    """Packs arguments into a literal.

    arguments : kind and value of each argument behind the columns; the kind is None for no literal

    Raises WrongArgument: the function does not take one of the arguments.
    """
    values: list[Any] = []
    for place, ((kind, argument), needed) in enumerate(zip(arguments, SPECIAL[function].takes, strict=True), COLUMNS):
        value: Any = None
        if kind in _KINDS[needed]:
            value = str(argument) if needed is TEXT else _float(argument) if needed is NUMBER else int(argument)
        low, most = _RANGES.get(needed, (0, 0))
        fits = value is not None and (needed not in _RANGES or low <= value < most)
        if not fits or (needed is NUMBER and not math.isfinite(value)) or (needed is TEXT and "\0" in value):
            raise WrongArgument(place, f"{needed} is expected here: {function} is called as in {TABLE[function].call}")
        values.append(value)
    return pack(function, tuple(values))


def _float(given: Any) -> float:
    try:
        return float(given)
    except OverflowError:  # an int that is too large for a float
        return math.inf


def subject_of(function: str, columns: Sequence[ComputedValue]) -> Subject:
    """Returns the subject of a predicate that calls a function over columns."""
    return Subject((), computed=ComputedValue(function, tuple(columns)))


def describe_column(function: str) -> str:
    """Returns the error text for an argument that must be a column."""
    return f"the name of a column is expected here: {function} is called as in {TABLE[function].call}"


# Attributes and modes of calls
# --------------------------------------------------------------------------


def call_attribute(schema: Schema, p: Predicate) -> Attribute:
    """Returns the attribute for a function of columns.

    Raises Refusal: a column does not exist, or has another type than the function reads.
    """
    assert p.subject.computed is not None
    function, arguments = p.subject.computed
    columns: list[tuple[str, ...]] = []
    for place, argument in enumerate(arguments):
        at = Predicate(Verb.BARE, Subject(argument.arguments))  # for the place of an error
        try:
            column = schema.column(argument.arguments)
        except SchemaError as error:
            raise Refusal(str(error), predicate=at) from None
        columns.append(column.path)
        reads = SPECIAL[function].reads[place]
        if isinstance(reads, dict):
            fine, needed = _is_list_of(column.arrow, reads), f"a list of {pa.struct(reads)}"
        else:
            fine = _is_number(column.arrow) or (reads == CLOCK and pa.types.is_timestamp(column.arrow))
            needed = reads
        if not fine:
            raise Refusal(f"column {column.name!r} is {column.arrow!s:.200}, {function} needs {needed}", predicate=at)
        if reads == CLOCK and len(column.path) > 1:
            raise Refusal(f"{function} takes a column for its clock, not the field {column.name!r}", predicate=at)
    names = [".".join(map(quote_name, path)) for path in columns]
    path = p.subject.path or (f"{function}({', '.join([*names, PLACE])})",)
    return Attribute(path, Role.CALL, _BINARY, Call(function, tuple(columns)).key)


def _is_number(type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type))


def _is_list_of(type: pa.DataType, fields: dict[str, pa.DataType]) -> bool:
    """Returns whether values are lists of structs with these fields, strings or whole numbers."""
    if not is_list(type) or not pa.types.is_struct(type.value_type):
        return False
    types = {field.name: field.type for field in type.value_type}
    texts = (pa.types.is_string, pa.types.is_large_string)
    return types.keys() == fields.keys() and all(
        any(is_text(types[name]) for is_text in texts)
        if pa.types.is_string(field_type)
        else pa.types.is_integer(types[name])
        for name, field_type in fields.items()
    )


def call_modes(attr: int, p: Predicate) -> Modes:
    """Returns the modes of a call: Unknown where something that it reads is not known.

    Rows have entries where the function is true, or false, as ``Function.marks_false`` says.
    """
    assert p.subject.computed is not None
    (operand,) = p.operands
    assert operand is not None
    entry, either = (KeyTest(Op.EQ, (operand,)),), (KeyTest(Op.IN, (operand, Operand(Kind.BINARY, value=UNKNOWN))),)
    some, none = Leaf(attr, entry), Leaf(attr, entry, True)
    maybe, other = Leaf(attr, either), Leaf(attr, either, True)
    marks_false = SPECIAL[p.subject.computed.function].marks_false
    return (other, some, maybe, none) if marks_false else (some, other, none, maybe)
