"""Trees of computed values, with all types and casts, which are the keys of attributes.

Types have Spark's names; ``decimal(p,s)`` has its digits.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa

VERSION = "version"  # texts of ``text/versions.py``
VARIANT = "variant"  # binaries of ``variants.py``
WHOLE = "whole"  # texts of ``whole.py``, and the leaf that makes them
ARROW = {
    "boolean": pa.bool_(), "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64(),
    "float": pa.float32(), "double": pa.float64(), "string": pa.string(), "binary": pa.binary(), "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"), "timestamp_ntz": pa.timestamp("us"), "void": pa.null(),
    VERSION: pa.string(), WHOLE: pa.string(), VARIANT: pa.binary(), "months": pa.int32(), "interval": pa.int64(),
    "interval_days": pa.int64(),
}  # fmt: skip
BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
INTEGERS = tuple(BITS)
FRACTIONS = ("float", "double")
# Each of these is widened to a later one for a comparison
NUMBERS = (*INTEGERS, *FRACTIONS)
INSTANTS = ("date", "timestamp_ntz", "timestamp")
NOW = "now"  # the time of the call, a leaf
# Functions without nodes for arguments. A column's path begins at this place of the arguments
LEAVES = {
    "column": 0, "size": 0, "entry": 1, "map_contains_key": 1, "array_max": 1, "array_min": 1, WHOLE: 1, "element": 3,
    "array_position": 3, "literal": None, NOW: None,
}  # fmt: skip
CLOCK = "the time of the call"  # the column that batches get for it
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


class ValueNode(NamedTuple):
    """A function, the type of its result, and its arguments.

    An argument is a node or a constant. The constants of an ``element`` of a list are its place,
    the mode, fields and the column's path. The place counts from 0, or from the end if negative.
    The names of the fields of structs that lead to the value are joined by zeros. An ``entry`` of a
    map and ``map_contains_key`` have the key and the path, ``array_max`` the fields and the path.
    ``array_position`` has the literal, its type, the fields and the path. A ``whole`` list or
    struct has its layout in JSON and the path.
    """

    function: str
    type: str
    arguments: tuple[Any, ...]

    @property
    def parts(self) -> list[ValueNode]:
        """Returns the nodes among the arguments."""
        return [argument for argument in self.arguments if isinstance(argument, ValueNode)]

    @property
    def constants(self) -> list[Any]:
        """Returns the constants among the arguments."""
        return [argument for argument in self.arguments if not isinstance(argument, ValueNode)]

    @property
    def key(self) -> str:
        """Returns the key of an attribute: an empty function name, the columns' paths, the tree."""
        return json.dumps(["", columns_of(self), self], ensure_ascii=False, separators=(",", ":"))


def path_of(node: ValueNode) -> tuple[str, ...]:
    """Returns the path of the column that a node reads, which is empty without a column."""
    first = LEAVES.get(node.function)
    return () if first is None else node.arguments[first:]


def columns_of(node: ValueNode) -> list[tuple[str, ...]]:
    """Returns the paths of the columns that a node reads, each once."""
    path = path_of(node)
    return [path] if path else list(dict.fromkeys(one for part in node.parts for one in columns_of(part)))


@lru_cache(10_000)
def node_of(key: str) -> ValueNode:
    """Returns the tree of an attribute's key."""
    return _node(json.loads(key)[2])


def _node(parts: list[Any]) -> ValueNode:
    function, type, arguments = parts
    if function in LEAVES:
        return ValueNode(function, type, tuple(arguments))
    return ValueNode(function, type, tuple([_node(a) if isinstance(a, list) else a for a in arguments]))


def is_constant(node: ValueNode) -> bool:
    """Returns whether a node is computed of literals alone."""
    return node.function == "literal" or (node.function not in LEAVES and all(map(is_constant, node.parts)))


def reads_now(node: ValueNode) -> bool:
    """Returns whether a node is computed of the time of the call."""
    return node.function == NOW or any(map(reads_now, node.parts))


def widens(node: ValueNode) -> bool:
    """Returns whether a node casts whole numbers to a type for all of them, which never fails."""
    if node.function != "cast" or node.arguments[0].type not in INTEGERS:
        return False
    have = INTEGERS.index(node.arguments[0].type)
    return node.type == "double" or node.type in INTEGERS[have + 1 :]


def arrow_type(type: str) -> pa.DataType:
    """Returns the Arrow type for computing values of a type."""
    arrow = ARROW.get(type)
    if arrow is None:
        arrow = pa.decimal128(*digits(type))
    return arrow


def digits(type: str) -> tuple[int, int]:
    """Returns the number of all digits of a decimal type, and of the digits after the point."""
    match = _DECIMAL.fullmatch(type)
    assert match
    return int(match[1]), int(match[2])


def is_decimal(type: str) -> bool:
    return type.startswith("decimal")


def is_number(type: str) -> bool:
    return type in NUMBERS or is_decimal(type)
