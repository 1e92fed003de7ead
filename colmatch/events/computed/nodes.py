"""What is computed of columns, with all types and casts said: a tree that an attribute's key holds.

Types are Spark's, by its names; ``decimal(p,s)`` has its digits.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa

ARROW = {
    "boolean": pa.bool_(), "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64(),
    "float": pa.float32(), "double": pa.float64(), "string": pa.string(), "binary": pa.binary(), "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"), "timestamp_ntz": pa.timestamp("us"), "void": pa.null(),
}  # fmt: skip
INTEGERS = ("tinyint", "smallint", "int", "bigint")
LEAVES = ("column", "literal", "element", "entry", "map_contains_key", "size")  # functions without nodes for arguments
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


class ValueNode(NamedTuple):
    """A function, the type of what it returns, and its arguments.

    An argument is a node, or a constant that the function is told. An ``element`` of a list has its
    place, from 0 or below 0 from the end, the mode, and the name of the column; an ``entry`` of a
    map and ``map_contains_key`` have the key and the name.
    """

    function: str
    type: str
    arguments: tuple[Any, ...]

    @property
    def key(self) -> str:
        """Returns what an attribute has for its key: the function, the columns that it reads, the
        tree.
        """
        columns: dict[tuple[str, ...], None] = {}
        _collect(self, columns)
        return json.dumps(["", list(columns), self], ensure_ascii=False, separators=(",", ":"))


def path_of(node: ValueNode) -> tuple[str, ...]:
    """Returns the names that lead to the column that a node reads; none if it reads no column."""
    first = {"column": 0, "size": 0, "entry": 1, "map_contains_key": 1, "element": 2}.get(node.function)
    return () if first is None else node.arguments[first:]


def _collect(node: ValueNode, columns: dict[tuple[str, ...], None]) -> None:
    path = path_of(node)
    if path:
        columns[path] = None
        return
    for argument in node.arguments:
        if isinstance(argument, ValueNode):
            _collect(argument, columns)


@lru_cache(10_000)
def node_of(key: str) -> ValueNode:
    """Returns the tree of an attribute's key."""
    return _node(json.loads(key)[2])


def _node(parts: list[Any]) -> ValueNode:
    function, type, arguments = parts
    if function in LEAVES:
        return ValueNode(function, type, tuple(arguments))
    return ValueNode(function, type, tuple([_node(a) if isinstance(a, list) else a for a in arguments]))


def arrow_type(type: str) -> pa.DataType:
    """Returns the Arrow type in which values of a type are computed."""
    found = ARROW.get(type)
    if found is None:
        found = pa.decimal128(*digits(type))
    return found


def digits(type: str) -> tuple[int, int]:
    """Returns the digits of a decimal type, and those after the point."""
    found = _DECIMAL.fullmatch(type)
    assert found
    return int(found[1]), int(found[2])


def is_decimal(type: str) -> bool:
    """Returns whether a type is decimal."""
    return type.startswith("decimal")
