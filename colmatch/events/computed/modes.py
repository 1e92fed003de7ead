"""Computed values that depend on the ANSI mode of Spark, as their trees show.

A part of such a value can overflow, be divided by zero, or not fit a cast. This is an error in ANSI
mode; without it, the part wraps or is NULL. Or a whole number meets a FLOAT, and the result is a
DOUBLE in ANSI mode.

The mode follows from the tree, so a saved matcher has nothing more for it. Spark sessions are
checked against ``Options(ansi=...)``.
"""

from __future__ import annotations

from collections.abc import Iterable

from colmatch.errors import EventError
from colmatch.events.computed.derived import constant
from colmatch.events.computed.moments import FAILING
from colmatch.events.computed.nodes import (
    FRACTIONS,
    INSTANTS,
    INTEGERS,
    LEAVES,
    ValueNode,
    digits,
    is_constant,
    is_decimal,
    node_of,
    path_of,
)
from colmatch.given.schema import Attribute, Role
from colmatch.given.special import Call

_CHECKED = "_checked"
_DIVISIONS = ("divide", "modulo", "div")
_ARITHMETIC = ("add", "subtract", "multiply", "negate", "abs", "floor", "ceil")
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}  # of the largest number; one less always fits


def moded_value(attributes: Iterable[Attribute]) -> str | None:
    """Returns the name of a computed value that depends on the mode, None without any."""
    for attribute in attributes:
        if attribute.role is Role.COMPUTED and depends_on_mode(node_of(str(attribute.key))):
            return attribute.path[0]
    return None


def may_fail(attribute: Attribute) -> bool:
    """Returns whether an attribute of an ANSI matcher has values that can fail, as far as is known.

    Conditions on elements are not looked into: any may.
    """
    if attribute.role is Role.COMPUTED:
        return depends_on_mode(node_of(str(attribute.key)))
    details = Call.of(str(attribute.key)).details if attribute.role is Role.CALL else None
    return details is not None and bool(details.get("options", {}).get("ansi"))


def sized_column(attributes: Iterable[Attribute]) -> str | None:
    """Returns a list or map with a ``size`` in the expressions, None without any."""
    for attribute in attributes:
        if attribute.role is Role.SIZE:
            return ".".join(attribute.path)
        if attribute.role is Role.CALL and (Call.of(str(attribute.key)).details or {}).get("counts"):
            return attribute.path[0]
        sized = _find_sized(node_of(str(attribute.key))) if attribute.role is Role.COMPUTED else None
        if sized is not None:
            return sized
    return None


def _find_sized(node: ValueNode) -> str | None:
    """Returns a list or map with its size in a value, None without any."""
    if node.function == "size":
        return ".".join(path_of(node))
    return next((name for name in map(_find_sized, node.parts) if name is not None), None)


def depends_on_mode(node: ValueNode) -> bool:
    """Returns whether a value has another meaning in the other mode."""
    if node.function in LEAVES:
        return node.function == "element"
    parts = node.parts
    if any(map(depends_on_mode, parts)) or _meets_float(node, parts):
        return True
    if is_constant(node):  # its parts mean the same in both modes
        try:
            constant(_in_ansi_mode(node, parts))
        except EventError:
            return True
        return False
    name = node.function.removesuffix(_CHECKED)
    if name in FAILING:
        return True
    if name == "cast":
        return _may_not_fit(parts[0].type, node.type)
    if name in _DIVISIONS:
        return not is_constant(parts[1]) or constant(parts[1]).as_py() in ((0, -1) if name == "div" else (0,))
    return name in _ARITHMETIC and node.type in INTEGERS


def _meets_float(node: ValueNode, parts: list[ValueNode]) -> bool:
    """Returns whether whole numbers and FLOATs get one type: FLOAT, or DOUBLE in ANSI mode."""
    if node.function in ("cast", "divide", "divide" + _CHECKED):
        return False
    if node.function == "case":  # conditions do not meet results
        parts = [*parts[1::2], parts[-1]]
    casts = [(part.type, part.parts[0].type) for part in parts if part.function == "cast"]
    if any(to == "float" and have in INTEGERS for to, have in casts):
        return True
    have = {have for to, have in casts if to == "double"}
    return len(casts) == len(parts) and "float" in have and not have.isdisjoint(INTEGERS)


def _may_not_fit(have: str, to: str) -> bool:
    """Returns whether a cast may fail."""
    if have == "string" or (to == "timestamp" and have in FRACTIONS):
        return True
    if to == "string":
        return is_decimal(have) and digits(have)[1] > 6  # written with an exponent where it is small
    if to in INSTANTS:
        return False
    if have == "timestamp":
        return to in INTEGERS[:-1]
    if to in INTEGERS:
        if have in INTEGERS:
            return INTEGERS.index(have) > INTEGERS.index(to)
        return have != "boolean" and not (is_decimal(have) and _whole(have) < _DIGITS[to])
    if not is_decimal(to) or not is_decimal(have):
        return is_decimal(to) and (1 if have == "boolean" else _DIGITS[have]) > _whole(to)
    rounded = digits(have)[1] > digits(to)[1]  # 9.9 becomes 10, which has a digit more
    return _whole(have) + rounded > _whole(to)


def _whole(type: str) -> int:
    """Returns the number of digits before the point in a decimal type."""
    precision, scale = digits(type)
    return precision - scale


def _in_ansi_mode(node: ValueNode, parts: list[ValueNode]) -> ValueNode:
    if node.function == "cast":
        return node._replace(arguments=(parts[0], "ansi", *node.arguments[2:]))
    checked = node.function in (*_DIVISIONS, *_ARITHMETIC) and not is_decimal(node.type)
    return node._replace(function=node.function + _CHECKED) if checked else node
