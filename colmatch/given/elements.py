"""Conditions on elements of lists: their attributes, and their literals as bytes.

``exists(items, x -> x.price > 10)`` tests the elements of one list. Many conditions occur over one
list. So the function *of this list* is an attribute (role CALL), and a condition is one of its
literals. A condition may also read columns of the event, which are named in the attribute.

A literal is a letter, a number, a space and the condition as a text. The row has it if the
condition is true for so many of its elements; 0 means one, as for ``exists``. The letter ``M``
instead of ``T`` also counts elements where the condition is Unknown. The empty literal means that
the row has no list.
"""

from __future__ import annotations

import base64
import re
from typing import NamedTuple

import pyarrow as pa

from colmatch.given.special import Call

EXISTS = "exists"  # the function of all attributes of elements
_LITERAL = re.compile(rb"([TM])([0-9]{1,10}) (.+)", re.DOTALL)


class ElementTest(NamedTuple):
    """A literal: a condition that holds for some elements."""

    condition: str
    least: int = 0  # number of elements that are counted; 0 for one, as exists has it
    maybe: bool = False  # whether elements count where the condition is Unknown

    def to_bytes(self) -> bytes:
        """Returns the literal."""
        return b"%b%d %b" % (b"M" if self.maybe else b"T", self.least, self.condition.encode())

    @staticmethod
    def of(literal: bytes) -> ElementTest | None:
        """Reads a literal; None for the literal of another attribute."""
        match = _LITERAL.fullmatch(literal)
        try:
            return None if match is None else ElementTest(match[3].decode(), int(match[2]), match[1] == b"M")
        except UnicodeDecodeError:
            return None


class ElementCall(NamedTuple):
    """The list that conditions are about, and what else they read.

    Attributes
    ----------
    column : path of the list
    outer : paths of further columns, in order
    schema : the columns that conditions name: an element, under the name of the parameter, and the
        top-level columns of ``outer`` with the fields that are read
    options : options for reading the conditions, by name
    two_valued : whether a condition on an absent value is false
    counts : whether elements are counted, and no list is no number
    reads_clock : whether conditions read the time of the call
    part : the part of a map that is the list, such as ``map_keys``; empty for a column of lists
    """

    column: tuple[str, ...]
    outer: tuple[tuple[str, ...], ...]
    schema: pa.Schema
    options: dict[str, str | bool | int]
    two_valued: bool
    counts: bool = False
    reads_clock: bool = False
    part: str = ""

    @property
    def parameter(self) -> str:
        """The name of an element in conditions."""
        name: str = self.schema.names[0]
        return name

    def to_call(self) -> Call:
        """Returns the call, with all of it in its key."""
        schema = base64.b64encode(self.schema.serialize()).decode()
        return Call(
            EXISTS, (self.column, *self.outer), {"schema": schema, **dict(zip(_DETAILS, self[3:], strict=True))}
        )

    @staticmethod
    def of(call: Call) -> ElementCall:
        """Returns what ``to_call`` was made of."""
        details, (column, *outer) = call.details, call.columns
        assert details is not None
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(details["schema"])))
        return ElementCall(column, tuple(outer), schema, *[details[name] for name in _DETAILS])


_DETAILS = ElementCall._fields[3:]


def element_type(arrow: pa.DataType, part: str) -> pa.DataType:
    """Returns the type of the elements of a list, or of a part of a map."""
    if not part:
        return arrow.value_type
    entry = {"key": arrow.key_type, "value": arrow.item_type}
    return {"map_keys": entry["key"], "map_values": entry["value"]}.get(part, pa.struct(entry))


def nest(types: dict[tuple[str, ...], pa.DataType]) -> list[pa.Field]:
    """Returns fields for columns and fields of structs, each struct with these fields alone."""
    fields: list[pa.Field] = []
    for name in dict.fromkeys(path[0] for path in types):
        type = types.get((name,))
        if type is None:
            type = pa.struct(nest({path[1:]: of for path, of in types.items() if path[0] == name}))
        fields.append(pa.field(name, type))
    return fields
